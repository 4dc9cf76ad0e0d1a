//! `land = "branch"`: the staging branch moves, and a person merges it.

use crate::queue::IntegrateError;
use crate::queue::integration::Integration;
use crate::queue::landing_base::StagedBase;
use crate::queue::settings::QueueSettings;
use crate::queue::target_branch::TargetBranch;
use crate::{Gated, ObjectId, Onto, claim};

use super::{LandingMode, remember_remote, require_free};

pub(super) struct LandOnBranch;

impl LandingMode for LandOnBranch {
    fn name(&self) -> &'static str {
        "branch"
    }

    fn done(&self) -> &'static str {
        "staged"
    }

    fn stages(&self) -> bool {
        true
    }

    fn require_landable(&self, branch: &TargetBranch) -> Result<(), IntegrateError> {
        let staging = &branch.staging;
        // The first landing folds the branch anew, which would drop these commits.
        if !staging.foreign.is_empty() {
            let (branch, commits) = (staging.branch.clone(), staging.foreign.clone());
            return Err(IntegrateError::StagingForeign { branch, commits });
        }
        require_free(branch, &staging.branch)
    }

    fn reference(&self, _settings: &QueueSettings, branch: &TargetBranch) -> String {
        format!("refs/heads/{}", branch.staging.branch)
    }

    fn staged(&self, branch: &TargetBranch) -> Option<(ObjectId, StagedBase)> {
        let staging = &branch.staging;
        if staging.is_current {
            return staging.at.map(|at| (at, StagedBase::Own));
        }
        let beneath = staging.beneath.as_ref()?;
        Some((beneath.at, StagedBase::Other { branch: beneath.branch.clone() }))
    }

    fn begin(&self, integration: &Integration<'_>) -> Result<(), IntegrateError> {
        if let Some(StagedBase::Other { branch }) = &integration.base.staged {
            let own = &integration.branch.staging.branch;
            integration.cx.tell(format!(
                "{branch} is staged by another workspace and not merged: the changes go on top of it, into {own}"
            ));
        }
        remember_remote(integration)
    }

    fn stays_on_landing(&self) -> bool {
        true
    }

    fn has_moved(
        &self,
        integration: &Integration<'_>,
        base: ObjectId,
    ) -> Result<bool, IntegrateError> {
        let branch = integration.branch;
        let now = branch.store.commit_at(&branch.reference)?;
        // The base may be what the remote has beyond the tip.
        let is_as_it_was = now == Some(branch.tip) && base == integration.base.at;
        // What is staged on an outdated tip could not be merged with `--ff-only`.
        Ok(now != Some(base) && !is_as_it_was)
    }

    fn onto<'i>(&self, integration: &'i Integration<'_>, _reference: &'i str) -> Onto<'i> {
        let branch = integration.branch;
        Onto::Staging {
            branch: &branch.staging.branch,
            // Only the first landing may replace an earlier fold of ours; later ones must build on it.
            replaces: branch.staging.at.filter(|_| integration.done.references.is_empty()),
        }
    }

    /// Records that this workspace staged the tip.
    fn after(&self, integration: &Integration<'_>, gated: &Gated) {
        let (branch, at) = (integration.branch, gated.candidate().commit());
        let log = integration.log("pdca: who staged it");
        let owner = &branch.staging.owner;
        let own = || claim(&branch.store, &integration.fence, owner, at, log);
        if let Err(error) = integration.cx.effects.perform("staged-by", own) {
            // Without it the changes in the branch tell whose it is.
            let why = pdca_state::chain(&error);
            integration.cx.tell(format!("{owner} could not be written: {why}"));
        }
    }
}
