//! Integrations that were cut short: what follows for each, and the end of one that has nothing to do.
//!
//! Where a change stands is asked of git, never of the record. An integration whose changes are all in
//! the branch is over whatever its driver lived to write down; it is ended by whoever comes next. One
//! with something left is `pdca integrate`'s to take up, or to replace.

use pdca_journal::{Clock, Liveness, RunId, RunState, WorkstreamStatus};
use pdca_state::BundleId;

use super::journal::{IntegrationJournal, JournalError};
use super::target_branch::{ChangeState, TargetBranch, TargetBranches};
use super::workspace::QueueWorkspace;

/// What follows for an integration that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextAction {
    /// Its driver lives, or may: nobody touches it.
    Wait,
    /// Its journal cannot be read: a person looks at it.
    Look,
    /// Everything it was about is in the branch, or not accepted any more: it is ended.
    End,
    /// `pdca integrate` goes on with it.
    GoOn {
        /// What is in the branch.
        landed: Vec<BundleId>,
        /// What is not.
        left: Vec<BundleId>,
    },
}

impl NextAction {
    /// What follows for an integration, with the branches as they are. `state` is none where its
    /// journal cannot be read.
    pub fn of(state: Option<&RunState>, driver: Liveness, branches: &TargetBranches) -> Self {
        let state = match (state, driver) {
            (None, _) => return Self::Look,
            (Some(_), Liveness::Alive | Liveness::Unknown) => return Self::Wait,
            (Some(state), Liveness::Dead) => state,
        };
        let (mut landed, mut left) = (Vec::new(), Vec::new());
        for (id, work) in &state.bundles {
            match &work.status {
                WorkstreamStatus::Abandoned { .. } | WorkstreamStatus::Cleaned => {}
                WorkstreamStatus::Ready
                | WorkstreamStatus::Running
                | WorkstreamStatus::Interrupted
                | WorkstreamStatus::Sealed
                | WorkstreamStatus::Landed
                | WorkstreamStatus::Blocked { .. } => match change_state(state, id, branches) {
                    _ if branches.is_unplaceable(id) => left.push(id.clone()),
                    // What is not accepted for this branch any more is nobody's to land.
                    None => {}
                    Some(ChangeState::Landed { .. }) => landed.push(id.clone()),
                    Some(
                        ChangeState::Unsealed
                        | ChangeState::Sealed(_)
                        | ChangeState::Staged { .. }
                        | ChangeState::Reverted { .. }
                        | ChangeState::Drifted { .. },
                    ) => left.push(id.clone()),
                },
            }
        }
        if left.is_empty() { Self::End } else { Self::GoOn { landed, left } }
    }
}

/// The state now of a change of an integration.
fn change_state<'b>(
    state: &RunState,
    id: &BundleId,
    branches: &'b TargetBranches,
) -> Option<&'b ChangeState> {
    let of_target = |branch: &&TargetBranch| is_of(state, branch);
    let changes = branches.branches.iter().filter(of_target).flat_map(|branch| &branch.changes);
    changes.into_iter().find(|change| change.bundle.id() == id).map(|change| &change.standing)
}

impl TargetBranches {
    /// Whether it is not known where this change stands.
    fn is_unplaceable(&self, id: &BundleId) -> bool {
        self.unplaceable.iter().any(|unplaceable| unplaceable.ids.contains(id))
    }
}

fn is_of(state: &RunState, branch: &TargetBranch) -> bool {
    state.admitted.targets.iter().any(|target| target.name == branch.target.name)
}

/// Ends an integration that has nothing left to do. The caller is admitted to the workspace.
pub fn end_integration(
    workspace: &QueueWorkspace,
    run: &RunId,
    branches: &TargetBranches,
    clock: Clock,
) -> Result<(), JournalError> {
    let runs = workspace.dirs.integrations();
    let found = runs.find(run).found;
    let state = found.map_err(|_| JournalError::Unreadable { run: run.clone() })?.state;
    let branch = branches.branches.iter().find(|branch| is_of(&state, branch));
    IntegrationJournal::close(&runs, branch, &state, run, clock)
}
