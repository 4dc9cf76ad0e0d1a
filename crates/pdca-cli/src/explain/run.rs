//! Explains why a run stopped, and what kept its bundles from their sign-off.

use pdca_driver::integrate::GatedBase;
use pdca_driver::pool::{Batched, Stop};

use crate::exit::Exit;
use crate::failure::{Failure, FilePosition, Problem};
use crate::session;

/// Explains why the run was stopped, if not by a signal.
pub(crate) fn stopped(stop: &Stop) -> Failure {
    match stop {
        Stop::Duration(longest) => {
            let span = crate::progress::span(*longest);
            Failure::new(
                Exit::Capped,
                format!("the run was at work for {span}, which is its limit"),
            )
            .hint("`max_duration_secs` in [driver] is the limit; the same command goes on")
        }
        Stop::Aborted { why } => {
            Failure::new(Exit::Interrupted, format!("the run was given up: {why}"))
                .hint("what is on disk is whole; `pdca status` shows it")
        }
        Stop::Room(short) => session::no_room(*short),
        Stop::SignedOut { agent, said } => Failure::new(
            Exit::Unexpected,
            format!("`{agent}` is not signed in, so nothing more was started: {said}"),
        )
        .hint(format!("mend its key or login (`{agent}` by hand shows it), and run it again")),
        Stop::Cost(reached) => Failure::new(
            Exit::Capped,
            format!("{reached}; nothing more was started"),
        )
        .hint(format!(
            "raise `{}` in [driver], and the same command goes on; `pdca abort` gives the run up",
            reached.cap.key()
        )),
        Stop::NoPlace => Failure::new(Exit::Unexpected, "every host was lost, so nothing more was started")
            .hint("`pdca hosts check` shows why; the same command goes on under new generations, and `--local` does without hosts"),
        Stop::BaseRed { bases } => base_red(bases),
        Stop::Record { error } => Failure::unexpected(format!(
            "the run cannot be recorded any more: {error}"
        ))
        .hint("nothing that was not recorded was done; make room on the disk, and run it again"),
    }
}

/// Explains a red branch, on which nothing is built.
fn base_red(bases: &[GatedBase]) -> Failure {
    let problems = bases.iter().map(|base| {
        let GatedBase { target, branch, commit, rows, .. } = base;
        let rows = rows.join(", ");
        let what = format!("{target} {branch} is red by itself at {commit:.12}: {rows}");
        let problem = Problem::new(what).detail("no bundle is charged with it");
        let problem = base.evidence.iter().fold(problem, Problem::detail);
        let problem = base.red.iter().filter_map(|row| row.reproduce.as_ref()).fold(
            problem,
            |problem, command| problem.detail(format!("reproduce: {command}")),
        );
        let problem = match base.logs.as_slice() {
            [] => problem,
            [first, rest @ ..] => {
                let problem = problem.at(FilePosition::file(first));
                rest.iter().fold(problem, |problem, log| problem.detail(format!("log: {log}")))
            }
        };
        problem.hint(format!("mend {branch} and run the same command again; `--config driver.gate_base=off` builds on it all the same"))
    });
    Failure::of(Exit::GateRed, problems.collect())
}

/// Returns the worst failure among the bundles, if any failed: an interruption first, then faults of the host.
pub(crate) fn first_failure(batched: Batched) -> Option<Failure> {
    let mut failures: Vec<Failure> = batched
        .driven
        .into_iter()
        .filter_map(|(bundle, result)| Some(session::explain(&bundle, result.err()?)))
        .collect();
    // The exit code of the first is that of the command.
    failures.sort_by_key(|failure| match failure.exit {
        Exit::Interrupted => 0,
        Exit::Unexpected => 1,
        Exit::Done
        | Exit::Usage
        | Exit::Waiting
        | Exit::NothingToDo
        | Exit::GateRed
        | Exit::CombinationRed
        | Exit::MergeConflict
        | Exit::Capped
        | Exit::RecoveryBlocked => 2,
    });
    let mut failures = failures.into_iter();
    let mut first = failures.next()?;
    first.problems.extend(failures.flat_map(|failure| failure.problems));
    Some(first)
}
