//! Adds position and remedy to the errors of a driver.

use pdca_driver::leg::FailureClass;
use pdca_driver::{
    BaseError, BeatError, BeginError, BundleLockError, CheckoutError, TakeOverError,
    TargetChoiceError,
};
use pdca_lanes::{HydrateError, WorkbenchError};
use pdca_state::{Artifact, Bundle, BundleId};

use super::lanes;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};

/// Explains a refused lock.
pub(crate) fn refused(error: &BundleLockError) -> Failure {
    let failure = Failure::from_error(Exit::Usage, error);
    match error {
        BundleLockError::Taken { path, .. } => failure
            .at(FilePosition::file(path))
            .hint("wait until it is done, or stop it; `pdca status` shows how far the bundles are"),
        BundleLockError::StillRunning(_) => {
            failure.hint("its supervisor ends it; wait a moment and repeat the command")
        }
        BundleLockError::Unusable { path, .. } => failure
            .at(FilePosition::file(path))
            .hint("the workspace must be writable and on a filesystem that can lock files"),
    }
}

/// Explains a full disk.
pub(crate) fn no_room(short: pdca_driver::Short) -> Failure {
    Failure::new(Exit::Capped, short.to_string()).hint(
        "make room (`pdca cleanup`, `pdca sweep`) or lower `min_free_gb` in [driver]; the same command goes on",
    )
}

/// Explains a refused takeover.
pub(crate) fn not_taken_over(error: &TakeOverError) -> Failure {
    let told = |exit| Failure::from_error(exit, error);
    match error {
        TakeOverError::Run(error) => no_run(error),
        TakeOverError::Unknown { .. } => told(Exit::RecoveryBlocked)
            .hint("nothing was touched; repeat the command where that process runs"),
        TakeOverError::Unreadable { .. } => told(Exit::RecoveryBlocked)
            .hint("nothing was touched; restore the journal, or move the run's directory away"),
        TakeOverError::Alive { .. } => told(Exit::Unexpected)
            .hint("what it writes counts for nothing any more; end it, and `pdca recover`"),
        TakeOverError::Children(_) => {
            told(Exit::Unexpected).hint("its supervisor ends it; wait a moment and `pdca recover`")
        }
    }
}

/// Explains why no run can begin.
pub(crate) fn no_run(error: &BeginError) -> Failure {
    let told = |exit| Failure::from_error(exit, error);
    match error {
        BeginError::Admission(pdca_journal::AdmissionError::Held { path, .. }) => told(Exit::Usage)
            .at(FilePosition::file(path))
            .hint("another driver works on this repository; wait until it is done, or stop it"),
        BeginError::Admission(pdca_journal::AdmissionError::CannotLock { path, .. }) => told(Exit::Usage)
            .at(FilePosition::file(path))
            .hint("without locks two drivers could work at once; move the repository to a filesystem that has them"),
        BeginError::Admission(_) => told(Exit::Usage)
            .hint("the git directory of every target must be writable, and its lock a plain file"),
        BeginError::Blocked { workspace, block, .. } => {
            let failure = told(Exit::RecoveryBlocked).at(FilePosition::file(workspace));
            let failure = block.iter().fold(failure, |failure, block| failure.detail(&block.evidence));
            failure.hint("`pdca recover` shows it; `pdca unblock` lets it go on, `pdca abort` gives it up")
        }
        BeginError::Unreadable { dir, .. } => told(Exit::RecoveryBlocked)
            .at(FilePosition::file(dir))
            .hint("nothing was cut or changed; restore the journal, or move the run's directory away"),
        BeginError::TakeUp { .. } => told(Exit::RecoveryBlocked).hint("`pdca recover` shows what is known of it"),
        BeginError::Create(_) | BeginError::Append(_) | BeginError::Io(_) | BeginError::NoEpoch => {
            told(Exit::Unexpected).hint("make room on the disk of the workspace, and run it again")
        }
    }
}

/// Returns exit code and remedy for a base that cannot be computed.
fn baseless(error: &BaseError, again: String) -> (Exit, String) {
    match error {
        BaseError::Lacks { lacks } => {
            let on = lacks.first().map(|lack| lack.on.to_string()).unwrap_or_default();
            (Exit::Waiting, format!("nothing was built; `pdca why {on}` says what it needs"))
        }
        BaseError::Conflict { id, .. } => {
            let hint = format!(
                "nothing was built; `pdca integrate` lands what fits, `pdca signoff {id} iterate-do --note \"…\"` builds {id} again"
            );
            (Exit::Waiting, hint)
        }
        BaseError::Unfoldable { .. }
        | BaseError::Seal { .. }
        | BaseError::NoBranch { .. }
        | BaseError::Root(_)
        | BaseError::Load(_)
        | BaseError::Attempt(_)
        | BaseError::Plan(_)
        | BaseError::Fold(_)
        | BaseError::Engine(_)
        | BaseError::Store(_) => (Exit::Unexpected, again),
    }
}

/// Adds the position and the remedy of an explained cause.
fn with_remedy(told: Failure, cause: &Failure) -> Failure {
    let Some(problem) = cause.problems.last() else { return told };
    let told = problem.place.iter().cloned().fold(told, Failure::at);
    problem.hint.iter().fold(told, Failure::hint)
}

/// Explains a checkout that could not be made or kept.
fn no_checkout(
    id: &BundleId,
    error: CheckoutError,
    told: impl Fn(Exit) -> Failure,
    again: String,
) -> Failure {
    match error {
        CheckoutError::Target { source, .. } => {
            let known = "`pdca doctor` looks at every target; [[targets]] in pdca.toml names them";
            told(Exit::Usage).hint(source.feature().map_or(known, |feature| feature.remedy()))
        }
        CheckoutError::Base { .. } => told(Exit::Usage)
            .hint("name a branch that exists: in the brief, or as `branch` of its [[targets]]"),
        CheckoutError::Workbench(WorkbenchError::Claim { source, .. }) => {
            with_remedy(told(Exit::Usage), &lanes::claim(&source))
        }
        CheckoutError::Workbench(WorkbenchError::Names { .. }) => told(Exit::Usage)
            .hint("`ports` in [lanes] names another range; `pdca lanes doctor` looks at every lane"),
        CheckoutError::Workbench(WorkbenchError::Hydrate { source, .. }) => {
            let told = with_remedy(told(Exit::Usage), &lanes::hydrate(&source));
            if let HydrateError::Command { last_lines, .. } = *source {
                last_lines.into_iter().fold(told, Failure::detail)
            } else {
                told
            }
        }
        CheckoutError::Last(_) => told(Exit::Unexpected)
            .hint("`iterate_from = \"base\"` in [driver] of pdca.toml starts the builder from the base"),
        CheckoutError::Lost { .. } => told(Exit::RecoveryBlocked).hint(format!(
            "nothing else was touched; `pdca unblock {id}` lets it begin again in a checkout that is made anew"
        )),
        CheckoutError::Workbench(
            WorkbenchError::Lane(_) | WorkbenchError::Watch(_) | WorkbenchError::Record(_),
        )
        | CheckoutError::Lane(_)
        | CheckoutError::Objects(_)
        | CheckoutError::Ref(_)
        | CheckoutError::Unconfigured { .. }
        | CheckoutError::NoCommit { .. }
        | CheckoutError::Conflicted(_)
        | CheckoutError::Record(_) => told(Exit::Unexpected).hint(again),
    }
}

/// Explains the error of a bundle.
pub(crate) fn explain(bundle: &Bundle, error: BeatError) -> Failure {
    let id = bundle.id();
    let again = format!("`pdca run {id}` goes on from here");
    let mut plain = Failure::from_error(Exit::Unexpected, &error);
    if let Some(problem) = plain.problems.first_mut() {
        problem.what = format!("{}: {}", id.dir_name(), problem.what);
    }
    let told = |exit| Failure::of(exit, plain.problems.clone());
    match error {
        BeatError::Load(error) => error.into(),
        BeatError::Write(error) => error.into(),
        BeatError::Archive(error) => error.into(),
        BeatError::Interrupted => told(Exit::Interrupted).hint(again),
        BeatError::Admission(error) => refused(&error),
        BeatError::Target(TargetChoiceError::Unknown { line, configured, .. }) => told(Exit::Usage)
            .at(FilePosition::line(bundle.path(Artifact::Brief), line))
            .detail(format!("configured: {}", configured.join(", ")))
            .hint("name a configured target in `Repo + branch target`, or add a [[targets]] to pdca.toml"),
        BeatError::Target(TargetChoiceError::Ambiguous { configured }) => told(Exit::Usage)
            .at(FilePosition::file(bundle.path(Artifact::Brief)))
            .detail(format!("configured: {}", configured.join(", ")))
            .hint("add `- **Repo + branch target:** owner/repo @ branch` to the brief"),
        BeatError::Checkout(error) => no_checkout(id, error, told, again),
        BeatError::Dependency { unmet } => unmet
            .iter()
            .fold(told(Exit::Waiting), |failure, one| failure.detail(one.to_string()))
            .at(FilePosition::file(bundle.path(Artifact::Brief)))
            .hint(format!("nothing was paid for; provide it, `pdca doctor` checks it, then `pdca run {id}`")),
        BeatError::Base(error) => {
            let (exit, hint) = baseless(&error, again);
            told(exit).hint(hint)
        }
        BeatError::Leaf { log, .. } => {
            told(Exit::Unexpected).at(FilePosition::file(log)).hint(format!("mend it, then {again}"))
        }
        BeatError::NoChange { log } => told(Exit::Unexpected)
            .at(FilePosition::file(log))
            .hint(format!("make the brief say more, or close the issue; `pdca run {id}` asks the builder again")),
        BeatError::Nested { log, .. } => told(Exit::Unexpected)
            .at(FilePosition::file(log))
            .hint(format!("have the builder leave plain files; `pdca run {id}` asks it again")),
        BeatError::Patch { log, .. } => told(Exit::Unexpected).at(FilePosition::file(log)).hint(format!(
            "make the brief ask for less, or say what went wrong; `pdca run {id}` asks the builder again, `pdca signoff {id} discontinue --note \"…\"` gives it up"
        )),
        BeatError::Breach { log, written, .. } => written
            .iter()
            .fold(told(Exit::Unexpected), |failure, one| failure.detail(format!("written: {one}")))
            .at(FilePosition::file(log))
            .hint("nothing was restored: look at what was written, then run it again with `sandbox = \"require\"`"),
        BeatError::EmptyPatch => told(Exit::Usage)
            .at(FilePosition::file(bundle.path(Artifact::Patch)))
            .hint(format!("remove it and `pdca run {id}` builds the change")),
        BeatError::Stale { .. } => told(Exit::Usage)
            .at(FilePosition::file(bundle.path(Artifact::Patch)))
            .hint(format!("move patch.diff away, and `pdca run {id}` builds it again on the present base")),
        BeatError::Signed => told(Exit::Usage)
            .at(FilePosition::file(bundle.path(Artifact::GatesJson)))
            .hint("restore the file from a backup or from version control"),
        BeatError::Capped { .. } => {
            told(Exit::Capped).hint("raise `max_leaf_calls` in [driver], and run it again")
        }
        BeatError::Cost(reached) => {
            let key = reached.cap.key();
            told(Exit::Capped).hint(format!("raise `{key}` in [driver], and run it again"))
        }
        BeatError::Blocked { .. } => {
            told(Exit::RecoveryBlocked).hint(format!("mend the cause, then `pdca unblock {id}`"))
        }
        BeatError::Elsewhere(failure) => {
            let failed = match failure.class {
                FailureClass::Cap => told(Exit::Capped)
                    .hint("raise `time_minutes` or `memory_mb` of the host in [[hosts]], and run it again"),
                FailureClass::Calls => {
                    told(Exit::Capped).hint("raise `max_leaf_calls` in [driver], and run it again")
                }
                FailureClass::IssueCost => {
                    told(Exit::Capped).hint("raise `max_cost_per_issue` in [driver], and run it again")
                }
                FailureClass::Machine => told(Exit::Unexpected)
                    .hint(format!("`pdca hosts check` looks at every host; {again}")),
                FailureClass::Full => told(Exit::Unexpected)
                    .hint(format!("`pdca hosts gc` removes what earlier runs left on hosts; {again}")),
                FailureClass::SignedOut => told(Exit::Unexpected)
                    .hint(format!("sign the agent in on that host; {again}")),
                FailureClass::Bundle | FailureClass::NoChange => told(Exit::Unexpected).hint(again),
            };
            failure.log.iter().fold(failed, |failed, log| failed.at(FilePosition::file(log)))
        }
        BeatError::Record(_) => told(Exit::Unexpected).hint("make room on the disk of the workspace, and run it again"),
        BeatError::Gates(_)
        | BeatError::NoProgress { .. }
        | BeatError::Place(_)
        | BeatError::StaleResult(_)
        | BeatError::Panicked { .. }
        | BeatError::Own(_) => told(Exit::Unexpected).hint(again),
    }
}
