//! The reasons a bundle is not published.

use pdca_integrate::{OfferError, PushError, StoreError, TargetBranchError};
use pdca_state::{BundleId, LoadError, RootError, State, WriteError};

use crate::publish::branch::BranchFlaw;
use crate::publish::error::ForgeError;

/// The reason a bundle is not published, or not completely. Whatever was published stays, and is found again.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Cancellation was requested.
    #[error("interrupted")]
    Interrupted,
    /// The bundle is not accepted.
    #[error("{id} is {state}, and only what was accepted is published")]
    NotAccepted { id: BundleId, state: State },
    /// The bundle was closed without a change.
    #[error("{id} was closed without a change: there is nothing to publish")]
    NoChange { id: BundleId },
    /// The bundle was accepted without a seal.
    #[error("{id} was accepted without a seal")]
    Unsealed { id: BundleId },
    /// An older instance has opened a pull request for the bundle.
    #[error("{id} was published before, as {url}")]
    PublishedBefore {
        id: BundleId,
        url: String,
        /// The branch of that pull request.
        branch: String,
    },
    /// The change differs from the sealed one.
    #[error("{id} is not what was sealed: {why}")]
    Drifted {
        id: BundleId,
        /// The difference.
        why: String,
    },
    /// The change is already in its target branch.
    #[error("{id} is in {branch} already, as {commit}")]
    Landed {
        id: BundleId,
        branch: String,
        /// The commit that brought it.
        commit: String,
    },
    /// The target branch of the change, or its state there, cannot be determined.
    #[error(transparent)]
    TargetBranch(#[from] TargetBranchError),
    #[error(transparent)]
    Root(#[from] RootError),
    #[error("no target is configured that {id} could be published to")]
    NoTarget { id: BundleId },
    /// The repository on the forge is not configured.
    #[error("the target `{target}` has no `repo` of the form owner/repo")]
    NoRepository { target: String },
    /// The name of the branch is invalid.
    #[error("the branch of {id} has no name")]
    Branch { id: BundleId, source: BranchFlaw },
    /// The branch would be the target branch itself.
    #[error("{id} would be pushed to `{branch}`, the branch that it is meant for")]
    OwnTarget { id: BundleId, branch: String },
    #[error("{file} of {id} cannot be used: it {flaw}")]
    Text {
        id: BundleId,
        file: &'static str,
        /// Completes "it …".
        flaw: &'static str,
    },
    /// Commits would go out that are not of the change.
    #[error("{} that {remote} lacks would be pushed with {id}", counted(commits.len()))]
    Unasked {
        id: BundleId,
        remote: String,
        /// The commits, in short form with their subjects.
        commits: Vec<String>,
        /// The bundles that the change stands on and that are not published.
        supports: Vec<BundleId>,
    },
    /// The branch is at a commit that was not pushed by this bundle.
    #[error("{branch} of {remote} is at {at}, which was not pushed from here")]
    Foreign { remote: String, branch: String, at: String },
    /// The branch has a pull request without this bundle's key.
    #[error("{branch} has a pull request that was not opened from here: {url}")]
    ForeignPull { branch: String, url: String },
    /// The pull request was closed by a person.
    #[error("{url} was closed")]
    Closed { url: String },
    /// The remote refused the branch, or did not answer.
    #[error("{remote} did not take {branch}: {said}")]
    Remote {
        remote: String,
        branch: String,
        /// The output of git.
        said: String,
    },
    /// The forge was not reached, or refused.
    #[error(transparent)]
    Outside(ForgeError),
    /// The tracker was not reached, or refused.
    #[error(transparent)]
    Tracker(ForgeError),
    /// The commit for the branch cannot be made.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// git could not be started for the push.
    #[error(transparent)]
    Push(#[from] PushError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

fn counted(number: usize) -> String {
    if number == 1 { "1 other commit".to_owned() } else { format!("{number} other commits") }
}

impl From<ForgeError> for PublishError {
    fn from(error: ForgeError) -> Self {
        if matches!(error, ForgeError::Interrupted) {
            return Self::Interrupted;
        }
        Self::Outside(error)
    }
}
