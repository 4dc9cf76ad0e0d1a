//! Interrupted integrations: the next action for each, and the end of one with nothing left to do.
//!
//! The state of a change is read from git, never from the journal. An integration whose changes are all in the
//! branch is over whatever its driver managed to record, and the next command ends it. One with changes left is
//! resumed or replaced by `pdca integrate`.

use pdca_journal::{Clock, Liveness, RunId, RunState, WorkstreamStatus};
use pdca_state::BundleId;

use super::journal::{IntegrationJournal, JournalError};
use super::target_branch::{ChangeState, TargetBranch, TargetBranches};
use super::workspace::QueueWorkspace;

/// The next action for an integration that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextAction {
    /// Its driver is alive, or may be.
    Wait,
    /// Its journal cannot be read; a person must look at it.
    Look,
    /// All its changes are in the branch or no longer accepted.
    End,
    /// `pdca integrate` resumes it.
    GoOn { landed: Vec<BundleId>, left: Vec<BundleId> },
}

impl NextAction {
    /// Derives the next action from the branches as they are. `state` is `None` if the journal cannot be read.
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
                    // A change that is no longer accepted for this branch does not land.
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

/// Returns the current state of a change of an integration.
fn change_state<'b>(
    state: &RunState,
    id: &BundleId,
    branches: &'b TargetBranches,
) -> Option<&'b ChangeState> {
    let mut of_target = branches.branches.iter().filter(|branch| is_of(state, branch));
    of_target.find_map(|branch| branch.change(id)).map(|change| &change.standing)
}

impl TargetBranches {
    fn is_unplaceable(&self, id: &BundleId) -> bool {
        self.unplaceable.iter().any(|unplaceable| unplaceable.ids.contains(id))
    }
}

fn is_of(state: &RunState, branch: &TargetBranch) -> bool {
    state.admitted.targets.iter().any(|target| target.name == branch.target.name)
}

/// Ends an integration that has nothing left to do. The caller must hold the admission to the workspace.
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
