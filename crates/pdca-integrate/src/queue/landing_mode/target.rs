//! `land = "target"`: the local branch moves.

use crate::Onto;
use crate::queue::IntegrateError;
use crate::queue::integration::Integration;
use crate::queue::settings::QueueSettings;
use crate::queue::target_branch::TargetBranch;

use super::{LandingMode, require_free, require_local};

pub(super) struct LandOnTarget;

impl LandingMode for LandOnTarget {
    fn name(&self) -> &'static str {
        "target"
    }

    fn done(&self) -> &'static str {
        "landed"
    }

    fn require_landable(&self, branch: &TargetBranch) -> Result<(), IntegrateError> {
        require_local(branch)?;
        require_free(branch, &branch.branch)
    }

    fn reference(&self, _settings: &QueueSettings, branch: &TargetBranch) -> String {
        branch.reference.clone()
    }

    fn onto<'i>(&self, integration: &'i Integration<'_>, _reference: &'i str) -> Onto<'i> {
        Onto::Target(&integration.branch.branch)
    }
}
