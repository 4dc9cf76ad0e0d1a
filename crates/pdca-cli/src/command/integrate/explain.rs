//! What went wrong with an integration or a seal, with the remedy.

use pdca_driver::integrate::{Front, IntegrateError, SealingError, StandingError};
use pdca_integrate::{LandError, PushError};
use pdca_state::{Artifact, Bundle};

use crate::exit::Exit;
use crate::failure::{Failure, Place};

/// Why it is not known where accepted changes stand.
pub(crate) fn standing(error: &StandingError) -> Failure {
    let exit = match error {
        StandingError::Target { .. }
        | StandingError::NoBranch { .. }
        | StandingError::Unnamed { .. } => Exit::Usage,
        StandingError::Root(_) | StandingError::Load(_) | StandingError::Store { .. } => {
            Exit::Unexpected
        }
    };
    let failure = Failure::from_error(exit, error);
    match error {
        StandingError::Target { id, .. } => {
            failure.hint(format!("`pdca why {id}` says which targets there are"))
        }
        StandingError::NoBranch { .. } | StandingError::Unnamed { .. } => {
            failure.hint("name an existing branch: `branch` in [[targets]], or in the brief")
        }
        StandingError::Root(_) | StandingError::Load(_) | StandingError::Store { .. } => {
            failure.hint("`pdca doctor` looks at the repositories")
        }
    }
}

/// Why an integration did not come to its end.
pub(super) fn failed(error: &IntegrateError, front: &Front) -> Failure {
    let failure = Failure::from_error(super::word(error), error);
    let branch = &front.branch;
    match error {
        IntegrateError::Interrupted => failure.hint("the same command goes on from here"),
        IntegrateError::NoGate => {
            failure.hint("add a row with `scope = \"repo\"` to [[gates.checks]]: nothing lands ungated")
        }
        IntegrateError::NotLocal { .. } => {
            failure.hint("`pdca integrate --land branch` leaves a branch on top of it")
        }
        IntegrateError::BaseRed { .. } => failure
            .detail("nobody is blamed and nothing was landed")
            .hint(format!("mend {branch}, then `pdca integrate` again")),
        IntegrateError::Stuck { .. } => failure
            .hint("`pdca doctor` tells what this machine lacks; a row that cannot be decided here needs `gating = false`"),
        IntegrateError::Breached { .. } => failure
            .detail("what those gates said does not count, nothing landed and nothing was put back")
            .hint("look at it with `git status`; `[gates] sandbox = \"require\"` keeps gates out; then `pdca integrate` again"),
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
        IntegrateError::Chronicle(_) => failure.hint(
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
        | IntegrateError::Drive(_)
        | IntegrateError::Io { .. }
        | IntegrateError::Search(_) => {
            failure.hint("nothing that was not gated has landed; `pdca integrate` goes on from here")
        }
    }
}

/// Why an acceptance was refused.
pub(crate) fn unsealable(error: &SealingError, bundle: &Bundle) -> Failure {
    let id = bundle.id();
    let again = format!("`pdca signoff {id} iterate-do --note \"…\"` builds and checks it again");
    let exit = match error {
        SealingError::Target(_)
        | SealingError::PatchChanged { .. }
        | SealingError::Base { .. }
        | SealingError::OtherCommit { .. }
        | SealingError::Rebuild(_)
        | SealingError::Seal(_) => Exit::Usage,
        SealingError::Store(_)
        | SealingError::Admission(_)
        | SealingError::Load(_)
        | SealingError::Write(_) => Exit::Unexpected,
    };
    let failure = Failure::from_error(exit, error).at(Place::file(bundle.path(Artifact::Patch)));
    match error {
        SealingError::PatchChanged { checked, found } => failure
            .detail(format!("gated: {checked}"))
            .detail(format!("now:   {found}"))
            .hint(format!("put the gated patch back, or {again}")),
        SealingError::Target(_) => failure.hint(format!("`pdca why {id}`")),
        SealingError::Base { .. }
        | SealingError::OtherCommit { .. }
        | SealingError::Rebuild(_)
        | SealingError::Seal(_) => failure.hint(again),
        SealingError::Store(_)
        | SealingError::Admission(_)
        | SealingError::Load(_)
        | SealingError::Write(_) => failure.hint("nothing was recorded; accept again"),
    }
}
