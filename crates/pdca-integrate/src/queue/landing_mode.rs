//! Landing modes: the ref that moves when a combination is green, and the conditions for it.
//!
//! Everything that depends on the mode is a method of [`LandingMode`], and each mode has a file of its own.
//! A new mode is one more file and one line in [`Land::mode`].

mod branch;
mod push;
mod target;

use pdca_process::Cancel;
use serde::{Deserialize, Serialize};

use crate::{
    Destination, Gated, LandError, ObjectId, Onto, RemoteTip, bring_to_read, contains, holders,
    sight, upstream,
};

use super::IntegrateError;
use super::integration::Integration;
use super::landing_base::{LandingBase, RemoteDrift, RemoteStanding, StagedBase};
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
        up_to_date(search)
    }

    /// Returns the commit that new changes go onto if that is not the branch itself, and whose it is.
    fn staged(&self, _branch: &TargetBranch) -> Option<(ObjectId, StagedBase)> {
        None
    }

    /// Checks the base again after the fence was taken.
    fn begin(&self, _integration: &Integration<'_>) -> Result<(), IntegrateError> {
        Ok(())
    }

    /// Returns the current tip of the branch, with what its remote had when the integration began.
    fn look(&self, integration: &Integration<'_>) -> Result<Option<ObjectId>, IntegrateError> {
        let branch = integration.branch;
        let now = branch.store.commit_at(&branch.reference)?;
        let is_as_it_was = now == Some(branch.tip);
        Ok(if is_as_it_was { Some(integration.base.at) } else { now })
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

/// Finds the base of a local branch: its tip, or that of its remote's branch if that is a fast-forward.
///
/// The remote is asked once. One that does not answer is not waited for: what was last fetched counts.
fn up_to_date(search: &BaseSearch<'_>) -> Result<LandingBase, IntegrateError> {
    let BaseSearch { branch, settings, .. } = search;
    let base = LandingBase::of(branch.reference.clone(), branch.tip);
    if !settings.fetch || !branch.reference.starts_with("refs/heads/") {
        return Ok(base);
    }
    let Some((remote, name)) = upstream(&branch.store, &branch.branch, &settings.remote)? else {
        return Ok(base);
    };
    let of = Destination { remote: &remote, branch: &name };
    let (at, silent) = match bring_to_read(&branch.store, of) {
        Ok(RemoteTip::At(at)) => (Some(at), None),
        Ok(RemoteTip::NoBranch) => return Ok(base),
        Ok(RemoteTip::Silent { said }) => (None, Some(said)),
        Err(error) => (None, Some(pdca_state::chain(&error))),
    };
    let last_seen = || branch.store.commit_at(&format!("refs/remotes/{remote}/{name}"));
    let at = match at {
        Some(at) => Some(at),
        None => last_seen()?,
    };
    let drift = match at {
        None => RemoteDrift::Unknown,
        Some(at) if contains(&branch.store, branch.tip, at)? => RemoteDrift::Current,
        Some(at) if contains(&branch.store, at, branch.tip)? => RemoteDrift::FastForwarded,
        Some(_) => RemoteDrift::Diverged,
    };
    let standing = RemoteStanding { name: format!("{remote}/{name}"), at, drift, silent };
    let at = at.filter(|_| drift == RemoteDrift::FastForwarded).unwrap_or(branch.tip);
    Ok(LandingBase { at, remote: Some(standing), ..base })
}

/// Remembers the tip of the remote's branch, so that its commits in a staging branch are known for what they are.
fn remember_remote(integration: &Integration<'_>) -> Result<(), IntegrateError> {
    let Some(RemoteStanding { name, at: Some(at), .. }) = &integration.base.remote else {
        return Ok(());
    };
    let Some((remote, branch)) = name.split_once('/') else { return Ok(()) };
    let (of, log) =
        (Destination { remote, branch }, integration.log("pdca: where the remote's branch is"));
    let keep = || sight(&integration.branch.store, &integration.fence, of, *at, log);
    integration.cx.effects.perform("sight", keep)?;
    Ok(())
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
