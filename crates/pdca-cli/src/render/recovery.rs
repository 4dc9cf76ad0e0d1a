//! Recovered, aborted and unblocked runs as text.

use std::io::Write;

use pdca_driver::integrate::NextAction;
use pdca_journal::Torn;
use pdca_state::BundleId;
use pdca_workspace::recovery::{
    Abort, AbortedRun, Recovery, RecoveryProgress, RecoveryStep, RescuedAttempt, RunDecision,
    RunRecovery, Unblock, UnblockedRun, UnfinishedIntegration,
};
use pdca_workspace::snapshot::RunRowKind;
use serde::Serialize;

use super::runs::{found_line, run_lines};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Nothing, Report, Response};
use crate::style::printable;

/// Shows the progress of an operation on a run.
pub(crate) fn show(
    progress: RecoveryProgress,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    match progress {
        RecoveryProgress::JournalCut(torn) => journal_cut(&torn, cx, err),
        RecoveryProgress::DriverAsked => cx.note(err, "asked its driver, and waiting for it"),
    }
}

/// Reports the unfinished end of a journal that was cut off.
pub(crate) fn journal_cut(
    torn: &Torn,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let text = format!("the last record of the run was not finished; it is kept as {}", torn.kept);
    cx.note(err, &format!("{} {text}", cx.err.warn("warning:")))
}

/// Reports that no run is active, and which integrations are.
fn no_run(
    message: &str,
    integrations: &[UnfinishedIntegration],
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let nothing = Nothing::to_do(message, err)?;
    for UnfinishedIntegration { id, blocked } in integrations {
        let why = match blocked {
            Some(evidence) => format!("waits for a person ({})", printable(evidence)),
            None => "is not over".to_owned(),
        };
        writeln!(
            err,
            "integration {id} {why}: `pdca integrate` goes on with it, `pdca recover -n` says how"
        )?;
    }
    Ok(nothing)
}

/// Returns the response to an abort.
pub(crate) fn aborted(abort: Abort, err: &mut dyn Write) -> Result<Response, Failure> {
    match abort {
        Abort::NoRun { integrations } => no_run("no run is active", &integrations, err),
        Abort::Aborted(run) => Ok(Response::done(run)),
    }
}

impl Report for AbortedRun {
    const KIND: &'static str = "abort";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let (is, kept) =
            if self.dry_run { ("would be", "would be kept") } else { ("is", "is kept") };
        writeln!(out, "run {} {is} given up; nothing of it lands", self.run)?;
        for RescuedAttempt { bundle, lane, commit, fetch } in &self.kept {
            let commit = commit.as_ref().map_or_else(String::new, |it| format!(" as {it:.12}"));
            writeln!(out, "  what {bundle} left unfinished in lane {lane} {kept}{commit}")?;
            if let Some(fetch) = fetch {
                writeln!(out, "  {} {fetch}", cx.out.accent("get it back:"))?;
            }
        }
        Ok(())
    }
}

/// Returns the response to lifted blocks.
pub(crate) fn unblocked(unblock: Unblock, err: &mut dyn Write) -> Result<Response, Failure> {
    match unblock {
        Unblock::NoRun { integrations } => {
            no_run("no run is active, so nothing is blocked", &integrations, err)
        }
        Unblock::Unblocked(run) => Ok(Response::done(run)),
    }
}

impl Report for UnblockedRun {
    const KIND: &'static str = "unblock";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let does = if self.dry_run { "would go on" } else { "goes on" };
        for bundle in &self.unblocked {
            match (bundle, &self.run) {
                (Some(id), None) => {
                    writeln!(out, "{id} {does} with its conflict  pdca resolve {id}")?;
                }
                (Some(id), Some(_)) => {
                    writeln!(out, "{id} {does} where it was blocked  pdca run {id}")?;
                }
                (None, run) => {
                    let run = run.as_deref().unwrap_or_default();
                    writeln!(out, "run {run} {does} where it was blocked  pdca batch")?;
                }
            }
        }
        Ok(())
    }
}

/// The active runs and integrations, with what was done about each.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RecoveryReport {
    dry_run: bool,
    runs: Vec<RunReport>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RunReport {
    #[serde(flatten)]
    recovery: RunRecovery,
    /// The next step of `pdca integrate` with an integration.
    follows: Option<String>,
    /// The decisions that a person must make before it can continue.
    decide: Vec<String>,
}

/// Returns the response to a recovery.
pub(crate) fn recovered(recovery: Recovery) -> Response {
    let Recovery { dry_run, runs } = recovery;
    let exit = if runs.iter().any(|run| !run.decide.is_empty()) {
        Exit::RecoveryBlocked
    } else if runs.iter().all(|run| run.action == RecoveryStep::Leave) {
        Exit::NothingToDo
    } else {
        Exit::Done
    };
    let runs = runs.into_iter().map(RunReport::of).collect();
    Response::new(RecoveryReport { dry_run, runs }, exit)
}

impl Report for RecoveryReport {
    const KIND: &'static str = "recover";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.runs.is_empty() {
            writeln!(out, "no run is left to recover")?;
        }
        self.runs.iter().try_for_each(|run| run.write(cx, out))
    }
}

impl RunReport {
    fn of(recovery: RunRecovery) -> Self {
        let kind = recovery.run.kind;
        let decide = recovery.decide.iter().map(|decision| decide(decision, kind)).collect();
        let follows = recovery.next.as_ref().and_then(next_step);
        Self { recovery, follows, decide }
    }

    fn write(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let RunRecovery { run, bundles, action, done, over, .. } = &self.recovery;
        for line in run_lines(run, cx) {
            writeln!(out, "{line}")?;
        }
        for bundle in bundles {
            writeln!(out, "{}", found_line(bundle))?;
        }
        let p = cx.out;
        let may_continue = self.decide.is_empty();
        let outcome = match (action, done) {
            (RecoveryStep::Leave, _) if may_continue => match run.kind {
                RunRowKind::Integration => p.faint("its driver is at work").to_string(),
                RunRowKind::Batch => p
                    .faint("its driver is at work; `--take-over` would take the run from it")
                    .to_string(),
            },
            (RecoveryStep::Leave, _) => p.warn("nothing was touched").to_string(),
            (RecoveryStep::Integrate, _) => self.follows.clone().unwrap_or_default(),
            (RecoveryStep::End, false) => "nothing is left to do: it would be ended".to_owned(),
            (RecoveryStep::End, true) => p.good("nothing was left to do: it is ended").to_string(),
            (RecoveryStep::TakeUp, false) => "would be taken up (take-up)".to_owned(),
            (RecoveryStep::TakeOver, false) => "would be taken up (take-over)".to_owned(),
            (RecoveryStep::TakeUp | RecoveryStep::TakeOver, true) if *over => {
                p.good("nothing was left to do: the run is over").to_string()
            }
            (RecoveryStep::TakeUp | RecoveryStep::TakeOver, true) if may_continue => {
                p.good("set right: `pdca batch` goes on with it").to_string()
            }
            (RecoveryStep::TakeUp | RecoveryStep::TakeOver, true) => {
                p.warn("set right as far as it goes without a person").to_string()
            }
        };
        writeln!(out, "  {outcome}")?;
        for decision in &self.decide {
            writeln!(out, "  {} {decision}", p.accent("decide:"))?;
        }
        Ok(())
    }
}

/// Describes a decision that a person must make, with the commands for it.
fn decide(decision: &RunDecision, kind: RunRowKind) -> String {
    match (decision, kind) {
        (RunDecision::Unreadable { dir }, _) => {
            format!("restore {dir}/journal, or move the directory away")
        }
        (RunDecision::DriverUnknown { driver }, RunRowKind::Batch) => {
            format!("whether {driver} lives cannot be told from here: look there, or wait for it")
        }
        (RunDecision::DriverUnknown { driver }, RunRowKind::Integration) => {
            format!("whether {driver} lives cannot be told from here: look there")
        }
        (RunDecision::Blocked { evidence }, RunRowKind::Batch) => {
            format!("{}: mend it and `pdca unblock`, or `pdca abort`", printable(evidence))
        }
        (RunDecision::Blocked { evidence }, RunRowKind::Integration) => {
            format!("{}: mend it, and `pdca integrate` goes on", printable(evidence))
        }
        (RunDecision::BundleBlocked { id, evidence }, _) => {
            format!("{id}: {}: mend it and `pdca unblock {id}`", printable(evidence))
        }
        (RunDecision::LaneUnknown { id }, _) => {
            format!("{id}: whether anything runs in its lane cannot be told: look there")
        }
        (RunDecision::ChangesUnreadable { error }, _) => {
            format!("where its changes stand cannot be told: {}", printable(error))
        }
    }
}

/// Describes the next step of `pdca integrate`.
fn next_step(next: &NextAction) -> Option<String> {
    let list = |ids: &[BundleId]| {
        let names: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
        names.join(", ")
    };
    match next {
        NextAction::Wait | NextAction::Look => None,
        NextAction::End => Some("`pdca integrate` ends it: nothing is left to do".to_owned()),
        NextAction::GoOn { landed, left } if landed.is_empty() => {
            Some(format!("`pdca integrate` goes on with {}; nothing has landed", list(left)))
        }
        NextAction::GoOn { landed, left } => Some(format!(
            "`pdca integrate` goes on with {}; {} landed and will not land again",
            list(left),
            list(landed)
        )),
    }
}
