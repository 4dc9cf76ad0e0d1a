//! `land = "target"`: the local branch moves.

use crate::git::fence::Move;
use crate::queue::IntegrateError;
use crate::queue::integration::Integration;
use crate::queue::settings::QueueSettings;
use crate::queue::target_branch::TargetBranch;
use crate::{LandError, Onto};

use super::{LandingMode, remember_remote, require_free, require_local};

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

    /// Brings the branch up to date with its remote. Nobody has it checked out, see `require_landable`.
    fn begin(&self, integration: &Integration<'_>) -> Result<(), IntegrateError> {
        remember_remote(integration)?;
        let (branch, to) = (integration.branch, integration.base.at);
        if to == branch.tip {
            return Ok(());
        }
        require_free(branch, &branch.branch)?;
        let log = integration.log("pdca: fast-forward to the remote");
        let (name, from) = (branch.reference.clone(), Some(branch.tip));
        let step = Move { name, from, to: Some(to) };
        let forward =
            || integration.fence.move_refs(&branch.store, std::slice::from_ref(&step), log);
        integration.cx.effects.perform("fast-forward", forward).map_err(LandError::from)?;
        Ok(())
    }

    fn onto<'i>(&self, integration: &'i Integration<'_>, _reference: &'i str) -> Onto<'i> {
        Onto::Target(&integration.branch.branch)
    }
}
