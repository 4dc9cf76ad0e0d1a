//! `land = "branch"`: the staging branch moves, and a person merges it.

use crate::queue::IntegrateError;
use crate::queue::integration::Integration;
use crate::queue::settings::QueueSettings;
use crate::queue::target_branch::TargetBranch;
use crate::{ObjectId, Onto};

use super::{LandingMode, require_free};

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

    fn staged(&self, branch: &TargetBranch) -> Option<ObjectId> {
        branch.staging.at.filter(|_| branch.staging.is_current)
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
        // What is staged on an outdated tip could not be merged with `--ff-only`.
        Ok(branch.store.commit_at(&branch.reference)? != Some(base))
    }

    fn onto<'i>(&self, integration: &'i Integration<'_>, _reference: &'i str) -> Onto<'i> {
        let branch = integration.branch;
        Onto::Staging {
            branch: &branch.branch,
            // Only the first landing may replace an earlier fold of ours; later ones must build on it.
            replaces: branch.staging.at.filter(|_| !integration.has_landing()),
        }
    }
}
