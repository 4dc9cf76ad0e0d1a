//! Landing modes: the ref that moves when a combination is green, and the conditions for it.
//!
//! Everything that depends on the mode is a method of [`LandingMode`], and each mode has a file of its own.
//! A new mode is one more file and one line in [`Land::mode`].

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
    /// Moves the local branch.
    Target,
    /// Moves a staging branch, which a person merges.
    #[default]
    Branch,
    /// Moves the branch of a remote.
    Push,
}

impl Land {
    pub(crate) fn mode(self) -> &'static dyn LandingMode {
        match self {
            Self::Target => &target::LandOnTarget,
            Self::Branch => &branch::LandOnBranch,
            Self::Push => &push::LandByPush,
        }
    }

    pub fn as_str(self) -> &'static str {
        self.mode().name()
    }

    /// Returns the word for a landed change, such as `staged`.
    pub fn done(self) -> &'static str {
        self.mode().done()
    }

    /// Returns true if a landing waits in the staging branch for a person to merge it.
    pub fn stages(self) -> bool {
        self.mode().stages()
    }
}

/// The context for finding the base of a landing.
pub(crate) struct BaseSearch<'s> {
    pub(crate) branch: &'s TargetBranch,
    pub(crate) settings: &'s QueueSettings,
    pub(crate) cancel: &'s Cancel,
    pub(crate) tell: &'s dyn Fn(String),
}

/// The outcome of making a gated commit visible to others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The commit is visible, or the mode has nothing to deliver.
    There,
    /// The branch moved to another commit meanwhile.
    Moved,
}

pub(crate) trait LandingMode: Sync {
    /// Returns the word in the configuration.
    fn name(&self) -> &'static str;

    /// Returns the word for a landed change.
    fn done(&self) -> &'static str;

    fn stages(&self) -> bool {
        false
    }

    /// Fails before any gate runs if a landing would be refused in the end.
    fn require_landable(&self, branch: &TargetBranch) -> Result<(), IntegrateError>;

    /// Returns the local ref that moves.
    fn reference(&self, settings: &QueueSettings, branch: &TargetBranch) -> String;

    /// Returns a ref in the form that is shown to people.
    fn shown(&self, _settings: &QueueSettings, reference: &str) -> String {
        reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned()
    }

    /// Finds the tip of the branch. Writes nothing but objects.
    fn find(&self, search: &BaseSearch<'_>) -> Result<LandingBase, IntegrateError> {
        let branch = search.branch;
        Ok(LandingBase { reference: branch.reference.clone(), at: branch.tip })
    }

    /// Returns the commit that new changes go onto if that is not the branch itself.
    fn staged(&self, _branch: &TargetBranch) -> Option<ObjectId> {
        None
    }

    /// Checks the base again after the fence was taken.
    fn begin(&self, _integration: &Integration<'_>) -> Result<(), IntegrateError> {
        Ok(())
    }

    /// Returns the current tip of the branch.
    fn look(&self, integration: &Integration<'_>) -> Result<Option<ObjectId>, IntegrateError> {
        let branch = integration.branch;
        Ok(branch.store.commit_at(&branch.reference)?)
    }

    /// Returns true if the next round goes onto the last landing, wherever the branch is.
    fn stays_on_landing(&self) -> bool {
        false
    }

    /// Returns true if the branch moved away from the base of the first landing.
    fn has_moved(
        &self,
        _integration: &Integration<'_>,
        _base: ObjectId,
    ) -> Result<bool, IntegrateError> {
        Ok(false)
    }

    /// Makes a gated commit visible to others, before the local ref moves.
    fn deliver(
        &self,
        _integration: &Integration<'_>,
        _gated: &Gated,
    ) -> Result<Delivery, IntegrateError> {
        Ok(Delivery::There)
    }

    /// Returns the update of the local ref.
    fn onto<'i>(&self, integration: &'i Integration<'_>, reference: &'i str) -> Onto<'i>;

    /// Runs after a landing that has its certificate. A failure does not undo the landing.
    fn after(&self, _integration: &Integration<'_>, _gated: &Gated) {}
}

/// Fails if the branch is checked out: moving it would leave that working tree behind.
fn require_free(branch: &TargetBranch, name: &str) -> Result<(), IntegrateError> {
    let holders = holders(&branch.store, &format!("refs/heads/{name}"))?;
    match holders.into_iter().next() {
        Some(holder) => Err(LandError::CheckedOut { branch: name.to_owned(), holder }.into()),
        None => Ok(()),
    }
}

/// Fails for the branch of a remote, which cannot be moved locally.
fn require_local(branch: &TargetBranch) -> Result<(), IntegrateError> {
    if branch.reference.starts_with("refs/heads/") {
        return Ok(());
    }
    Err(IntegrateError::NotLocal { reference: branch.reference.clone() })
}
