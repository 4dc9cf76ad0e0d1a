//! Landing modes: which ref moves when a combination is green, and what is asked before it does.
//!
//! Everything that depends on the mode is a method of [`LandingMode`], and each mode is a file of its own.
//! A new mode is one more file and its line in [`Land::mode`].

mod branch;
mod push;
mod target;

use pdca_process::Cancel;
use serde::{Deserialize, Serialize};

use crate::{Gated, LandError, ObjectId, Onto, holders};

use super::IntegrateError;
use super::integration::Integration;
use super::landing_base::LandingBase;
use super::settings::QueueSettings;
use super::target_branch::TargetBranch;

/// The configured landing mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Land {
    /// The local branch moves.
    Target,
    /// A branch of the integration's own moves, for a person to merge.
    #[default]
    Branch,
    /// The branch of a remote moves.
    Push,
}

impl Land {
    pub(crate) fn mode(self) -> &'static dyn LandingMode {
        match self {
            Self::Target => &target::Target,
            Self::Branch => &branch::Branch,
            Self::Push => &push::Push,
        }
    }

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        self.mode().name()
    }

    /// The word for what has landed, such as `staged`.
    pub fn done(self) -> &'static str {
        self.mode().done()
    }

    /// Returns whether a landing waits in the staging branch for a person to merge it.
    pub fn stages(self) -> bool {
        self.mode().stages()
    }
}

/// A branch to be found, and what may be said and stopped meanwhile.
pub(crate) struct BaseSearch<'s> {
    pub(crate) branch: &'s TargetBranch,
    pub(crate) settings: &'s QueueSettings,
    pub(crate) cancel: &'s Cancel,
    pub(crate) tell: &'s dyn Fn(String),
}

/// The outcome of bringing a gated commit to where others see it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It is there, or nothing but the ref here has to move.
    There,
    /// The branch went somewhere else meanwhile.
    Moved,
}

/// One way to land.
pub(crate) trait LandingMode: Sync {
    /// The word in the configuration.
    fn name(&self) -> &'static str;

    /// The word for what has landed.
    fn done(&self) -> &'static str;

    fn stages(&self) -> bool {
        false
    }

    /// Refuses what could not land in the end, before any gate is paid for.
    fn require_landable(&self, branch: &TargetBranch) -> Result<(), IntegrateError>;

    /// The ref here that moves.
    fn reference(&self, settings: &QueueSettings, branch: &TargetBranch) -> String;

    /// A ref as people read it.
    fn shown(&self, _settings: &QueueSettings, reference: &str) -> String {
        reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned()
    }

    /// Finds the branch. Nothing is written for that but objects.
    fn find(&self, search: &BaseSearch<'_>) -> Result<LandingBase, IntegrateError> {
        let branch = search.branch;
        Ok(LandingBase { reference: branch.reference.clone(), at: branch.tip })
    }

    /// The commit that new changes go onto, where that is not the branch itself.
    fn staged(&self, _branch: &TargetBranch) -> Option<ObjectId> {
        None
    }

    /// Looks at the base once the fence is taken.
    fn begin(&self, _integration: &Integration<'_>) -> Result<(), IntegrateError> {
        Ok(())
    }

    /// Asks where the branch is now.
    fn look(&self, integration: &Integration<'_>) -> Result<Option<ObjectId>, IntegrateError> {
        let branch = integration.branch;
        Ok(branch.store.commit_at(&branch.reference)?)
    }

    /// Returns whether the next round goes onto the last landing, wherever the branch is.
    fn stays_on_landing(&self) -> bool {
        false
    }

    /// Returns whether the branch moved away from the base of a first landing.
    fn has_moved(
        &self,
        _integration: &Integration<'_>,
        _base: ObjectId,
    ) -> Result<bool, IntegrateError> {
        Ok(false)
    }

    /// Brings a gated commit to where others see it, before the ref here moves.
    fn deliver(
        &self,
        _integration: &Integration<'_>,
        _gated: &Gated,
    ) -> Result<Delivery, IntegrateError> {
        Ok(Delivery::There)
    }

    /// The move of the ref here.
    fn onto<'i>(&self, integration: &'i Integration<'_>, reference: &'i str) -> Onto<'i>;

    /// Follows a landing that has its certificate. A failure does not undo the landing.
    fn after(&self, _integration: &Integration<'_>, _gated: &Gated) {}
}

/// Refuses a branch that a checkout has.
fn require_free(branch: &TargetBranch, name: &str) -> Result<(), IntegrateError> {
    let holders = holders(&branch.store, &format!("refs/heads/{name}"))?;
    match holders.into_iter().next() {
        Some(holder) => Err(LandError::CheckedOut { branch: name.to_owned(), holder }.into()),
        None => Ok(()),
    }
}

/// Refuses the branch of a remote, which does not move here.
fn require_local(branch: &TargetBranch) -> Result<(), IntegrateError> {
    if branch.reference.starts_with("refs/heads/") {
        return Ok(());
    }
    Err(IntegrateError::NotLocal { reference: branch.reference.clone() })
}
