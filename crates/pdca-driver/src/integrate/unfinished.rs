//! Integrations that were cut short: what follows for each, and the end of one that has nothing to do.
//!
//! Where a change stands is asked of git, never of the record. An integration whose changes are all in
//! the branch is over whatever its driver lived to write down; it is ended by whoever comes next. One
//! with something left is `pdca integrate`'s to take up, or to replace.

use std::io;

use pdca_journal::{Liveness, RunId, RunState, WorkstreamStatus};
use pdca_state::BundleId;

use crate::config::WorkspaceConfig;
use crate::run::{Clock, RunStatus, integrations};

use super::journal::{IntegrationJournal, JournalError};
use super::target_branch::{ChangeState, TargetBranch, TargetBranches};

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
    /// What follows for one that was seen, with the branches as they are.
    pub fn of(sighting: &RunStatus, fronts: &TargetBranches) -> Self {
        let state = match (&sighting.state, sighting.driver) {
            (Err(_), _) => return Self::Look,
            (Ok(_), Liveness::Alive | Liveness::Unknown) => return Self::Wait,
            (Ok(state), Liveness::Dead) => state,
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
                | WorkstreamStatus::Blocked { .. } => match standing(state, id, fronts) {
                    _ if fronts.is_unplaceable(id) => left.push(id.clone()),
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

/// Where a change of an integration stands now.
fn standing<'f>(
    state: &RunState,
    id: &BundleId,
    fronts: &'f TargetBranches,
) -> Option<&'f ChangeState> {
    let of_target = |front: &&TargetBranch| is_of(state, front);
    let changes = fronts.branches.iter().filter(of_target).flat_map(|front| &front.changes);
    changes.into_iter().find(|change| change.bundle.id() == id).map(|change| &change.standing)
}

impl TargetBranches {
    /// Whether it is not known where this change stands.
    fn is_unplaceable(&self, id: &BundleId) -> bool {
        self.unplaceable.iter().any(|unplaceable| unplaceable.ids.contains(id))
    }
}

fn is_of(state: &RunState, front: &TargetBranch) -> bool {
    state.admitted.targets.iter().any(|target| target.name == front.target.name)
}

impl WorkspaceConfig {
    /// Ends an integration that has nothing left to do. Whoever calls this is admitted to the workspace.
    pub fn end_integration(
        &self,
        run: &RunId,
        fronts: &TargetBranches,
        clock: Clock,
    ) -> Result<(), JournalError> {
        let state = self.integrations().find(run).found;
        let state = state.map_err(|_| JournalError::Unreadable { run: run.clone() })?.state;
        let front = fronts.branches.iter().find(|front| is_of(&state, front));
        IntegrationJournal::close(self, front, &state, run, clock)
    }

    /// Every integration that is not over, the newest first, each with what follows for it.
    pub fn unfinished_integrations(
        &self,
        fronts: &TargetBranches,
    ) -> io::Result<Vec<(RunStatus, NextAction)>> {
        let seen = integrations(self)?;
        let with = |sighting: RunStatus| {
            let follows = NextAction::of(&sighting, fronts);
            (sighting, follows)
        };
        Ok(seen.into_iter().map(with).collect())
    }
}
