//! Adds remedies to errors of integration and sealing.

use pdca_driver::integrate::{
    ConflictResolveError, IntegrateError, JournalError, RedRow, SealingError, TargetBranchError,
};
use pdca_integrate::{LandError, PushError};
use pdca_state::{Artifact, Bundle, SignoffError};

use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::style::printable;

/// Explains why the state of accepted changes is unknown.
pub(crate) fn standing(error: &TargetBranchError) -> Failure {
    let exit = match error {
        TargetBranchError::Target { .. }
        | TargetBranchError::NoBranch { .. }
        | TargetBranchError::Unnamed { .. } => Exit::Usage,
        TargetBranchError::Root(_)
        | TargetBranchError::Load(_)
        | TargetBranchError::Store { .. } => Exit::Unexpected,
    };
    let failure = Failure::from_error(exit, error);
    match error {
        TargetBranchError::Target { id, .. } => {
            failure.hint(format!("`pdca why {id}` says which targets there are"))
        }
        TargetBranchError::NoBranch { .. } | TargetBranchError::Unnamed { .. } => {
            failure.hint("name an existing branch: `branch` in [[targets]], or in the brief")
        }
        TargetBranchError::Root(_)
        | TargetBranchError::Load(_)
        | TargetBranchError::Store { .. } => {
            failure.hint("`pdca doctor` looks at the repositories")
        }
    }
}

/// Adds a red row with its log and the command that reproduces it.
fn explained(failure: Failure, row: &RedRow) -> Failure {
    let failure = failure.detail(format!("{}: {}", row.row, printable(&row.said)));
    let log = row.log.iter().map(|log| format!("log: {log}"));
    let command = row.reproduce.iter().map(|command| format!("reproduce: {command}"));
    log.chain(command).fold(failure, Failure::detail)
}

/// Explains the error of an integration.
pub(crate) fn failed(error: &IntegrateError, branch: &str) -> Failure {
    let failure = Failure::from_error(exit_of(error), error);
    match error {
        IntegrateError::Interrupted => failure.hint("the same command goes on from here"),
        IntegrateError::NoGate => {
            failure.hint("add a row with `scope = \"repo\"` to [[gates.checks]]: nothing lands ungated")
        }
        IntegrateError::NotLocal { .. } => {
            failure.hint("`pdca integrate --land branch` leaves a branch on top of it")
        }
        IntegrateError::StagingForeign { branch: staging, .. } => failure
            .detail("nothing was gated and nothing was moved")
            .hint(format!("merge {staging} into {branch}, or keep its commits elsewhere (`git branch -m {staging} NAME`), then `pdca integrate` again")),
        IntegrateError::BaseRed { red, .. } => red
            .iter()
            .fold(failure, explained)
            .detail("no bundle is blamed and nothing was landed")
            .hint(format!("mend {branch}, then `pdca integrate` again")),
        IntegrateError::Stuck { .. } => failure
            .hint("`pdca doctor` tells what this machine lacks; a row that cannot be decided here needs `gating = false`"),
        IntegrateError::Drifted { .. } => failure
            .detail("nothing was forced")
            .hint(format!("look at `git log {branch}`; `pdca integrate` starts from where it is now")),
        IntegrateError::Land(LandError::CheckedOut { holder, .. }) => failure
            .detail(format!("{} {}", holder.path, holder.doing))
            .hint("`pdca integrate --land branch` leaves a branch to merge; or switch that checkout to another branch"),
        IntegrateError::RemoteLacks { remote, branch } => failure
            .detail("nothing was gated and nothing was pushed")
            .hint(format!("push the branch itself first: `git push {remote} {branch}`; or name another `remote` in [integrate]")),
        IntegrateError::Unreachable { remote, .. } => failure
            .detail("nothing is lost: what was gated stays gated")
            .hint(format!("try `git ls-remote {remote}`; `pdca integrate` goes on from here")),
        IntegrateError::Refused { .. } => failure
            .detail("nothing was forced")
            .hint("the remote must allow it first; or `pdca integrate --land branch` leaves a branch for a person"),
        IntegrateError::Push(PushError::Refused(_)) => failure
            .detail("nothing was pushed")
            .hint(format!("does the remote lack commits that {branch} has here? push those first; `strategy = \"rebase-ff\"` leaves them out")),
        IntegrateError::Journal(_) => failure.hint(
            "is another driver at work on this repository? `pdca status` shows it; the journals are in .pdca/integrations",
        ),
        IntegrateError::Land(_)
        | IntegrateError::NotGated(_)
        | IntegrateError::Ref(_)
        | IntegrateError::Unfoldable { .. }
        | IntegrateError::Plan(_)
        | IntegrateError::Fold(_)
        | IntegrateError::Engine(_)
        | IntegrateError::Push(_)
        | IntegrateError::Store(_)
        | IntegrateError::Gates(_)
        | IntegrateError::Io { .. }
        | IntegrateError::Search(_) => {
            failure.hint("nothing that was not gated has landed; `pdca integrate` goes on from here")
        }
    }
}

/// Explains a refused acceptance.
pub(crate) fn unsealable(error: &SealingError, bundle: &Bundle) -> Failure {
    let id = bundle.id();
    let again = format!("`pdca signoff {id} iterate-do --note \"…\"` builds and checks it again");
    let exit = match error {
        SealingError::Target(_)
        | SealingError::NotAccepted(_)
        | SealingError::Protected { .. }
        | SealingError::PatchChanged { .. }
        | SealingError::BriefChanged
        | SealingError::Base { .. }
        | SealingError::OtherCommit { .. }
        | SealingError::AcceptFirst { .. }
        | SealingError::Stale { .. }
        | SealingError::Rebuild(_)
        | SealingError::Seal(_) => Exit::Usage,
        SealingError::Store(_)
        | SealingError::Admission(_)
        | SealingError::Foundation(_)
        | SealingError::Load(_)
        | SealingError::Write(_) => Exit::Unexpected,
    };
    let failure =
        Failure::from_error(exit, error).at(FilePosition::file(bundle.path(Artifact::Patch)));
    let summary = FilePosition::file(bundle.path(Artifact::Summary));
    match error {
        SealingError::NotAccepted(SignoffError::NotAcceptable { open, failed }) => {
            let mut failure = Failure::usage(format!("{id} cannot be sealed: {error}")).at(summary);
            for item in open {
                failure = failure.detail(format!("open in §6: {item}"));
            }
            for check in failed {
                failure = failure.detail(format!("gate red: {check}"));
            }
            failure.hint(again)
        }
        SealingError::NotAccepted(why) => {
            Failure::usage(format!("{id} cannot be sealed: {error}: {why}")).at(summary).hint(again)
        }
        SealingError::Protected { paths } => {
            let lines: Vec<String> = paths
                .iter()
                .map(|path| format!("- [x] protected path: `{}`", path.escape_debug()))
                .collect();
            Failure::usage(format!("{id} cannot be sealed: {error}")).at(summary).hint(format!(
                "look at the change; then add to §6 of SUMMARY.md: {}; or {again}",
                lines.join(" / ")
            ))
        }
        SealingError::PatchChanged { checked, found } => failure
            .detail(format!("gated: {checked}"))
            .detail(format!("now:   {found}"))
            .hint(format!("put the gated patch back, or {again}")),
        SealingError::BriefChanged => Failure::usage(format!("{id} cannot be sealed: {error}"))
            .at(FilePosition::file(bundle.path(Artifact::Brief)))
            .hint(format!("put the checked brief back, or {again}")),
        SealingError::AcceptFirst { on } => {
            let first = on.iter().map(|on| format!("`pdca signoff {on} accept`"));
            let first = first.collect::<Vec<_>>().join(", then ");
            Failure::usage(format!("{id} cannot be accepted yet: {error}"))
                .at(FilePosition::file(bundle.path(Artifact::Patch)))
                .hint(format!("{first}, then `pdca signoff {id} accept`"))
        }
        SealingError::Stale { .. } => Failure::usage(format!("{id} cannot be accepted: {error}"))
            .at(FilePosition::file(bundle.path(Artifact::Patch)))
            .hint(format!("`pdca run {id}` folds it onto its new base and checks it again")),
        SealingError::Target(_) => failure.hint(format!("`pdca why {id}`")),
        SealingError::Base { .. }
        | SealingError::OtherCommit { .. }
        | SealingError::Rebuild(_)
        | SealingError::Seal(_) => failure.hint(again),
        SealingError::Store(_)
        | SealingError::Admission(_)
        | SealingError::Foundation(_)
        | SealingError::Load(_)
        | SealingError::Write(_) => failure.hint("nothing was recorded; accept again"),
    }
}

/// Returns the exit code of an error.
fn exit_of(error: &IntegrateError) -> Exit {
    match error {
        IntegrateError::Interrupted => Exit::Interrupted,
        IntegrateError::NoGate
        | IntegrateError::NotLocal { .. }
        | IntegrateError::StagingForeign { .. }
        | IntegrateError::RemoteLacks { .. } => Exit::Usage,
        IntegrateError::BaseRed { .. } => Exit::GateRed,
        IntegrateError::Land(pdca_integrate::LandError::CheckedOut { .. }) => Exit::Waiting,
        IntegrateError::Stuck { .. }
        | IntegrateError::Drifted { .. }
        | IntegrateError::Journal(_)
        | IntegrateError::Unreachable { .. }
        | IntegrateError::Refused { .. }
        | IntegrateError::Land(_)
        | IntegrateError::NotGated(_)
        | IntegrateError::Ref(_)
        | IntegrateError::Push(pdca_integrate::PushError::Refused(_)) => Exit::RecoveryBlocked,
        IntegrateError::Unfoldable { .. }
        | IntegrateError::Plan(_)
        | IntegrateError::Fold(_)
        | IntegrateError::Engine(_)
        | IntegrateError::Push(_)
        | IntegrateError::Store(_)
        | IntegrateError::Gates(_)
        | IntegrateError::Io { .. }
        | IntegrateError::Search(_) => Exit::Unexpected,
    }
}

/// Explains why an interrupted integration could not be ended.
pub(crate) fn ending(error: &JournalError) -> Failure {
    Failure::from_error(Exit::RecoveryBlocked, error)
        .hint("`pdca doctor` says more; nothing was landed or lost")
}

/// Explains why an attempt ended early.
pub(crate) fn conflict(error: &ConflictResolveError) -> Failure {
    let exit = match error {
        ConflictResolveError::Interrupted => Exit::Interrupted,
        ConflictResolveError::Unknown { .. } => Exit::Usage,
        ConflictResolveError::Admission(_) => Exit::Waiting,
        ConflictResolveError::LandingBase(_)
        | ConflictResolveError::Engine(_)
        | ConflictResolveError::Store(_)
        | ConflictResolveError::Root(_)
        | ConflictResolveError::Load(_)
        | ConflictResolveError::Beat(_)
        | ConflictResolveError::ConflictRecord { .. } => Exit::Unexpected,
    };
    let failure = Failure::from_error(exit, error);
    match error {
        ConflictResolveError::Interrupted => failure.hint("`pdca resolve` goes on from here"),
        ConflictResolveError::Unknown { id } => failure.hint(format!("`pdca why {id}` says where it stands")),
        ConflictResolveError::Admission(_) => failure.hint("it is waited for; try again in a moment"),
        ConflictResolveError::LandingBase(_) => {
            failure.hint("no attempt was made; does the remote answer, and has it the branch?")
        }
        ConflictResolveError::Beat(_) => failure
            .detail("no attempt was counted")
            .hint("`pdca doctor` looks at programs and checkouts; `pdca resolve` goes on from here"),
        ConflictResolveError::ConflictRecord { dir, .. } => {
            failure.hint(format!("attempts are counted in {dir}; restore its case.json, or move the directory away to count anew"))
        }
        ConflictResolveError::Engine(_)
        | ConflictResolveError::Store(_)
        | ConflictResolveError::Root(_)
        | ConflictResolveError::Load(_) => {
            failure.hint("nothing was changed; `pdca doctor` looks at the repositories")
        }
    }
}
