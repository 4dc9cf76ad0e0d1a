//! Publishes an accepted change: a branch, a draft pull request, a comment, and where it is asked for the ready mark
//! and the merge.
//!
//! ```text
//! inputs ─► the change, its destination and its key; nothing is changed yet
//! publish_accepted ─► look at the forge ─ texts ─ gates ─ push ─ pull request ─ comment ─ ready mark ─ merge
//! dry_run_publishing ─► the same, up to looking
//! ```
//!
//! Each thing on the forge is looked up by its key before it is created, and recorded in `publish.json`
//! before and after. So after a crash at any point the next driver finds what exists and
//! continues, and nothing is created twice. The user's checkout is not used: the commit is made in the
//! object store, and the gates run in a lane.

mod dry_run;
mod forge;
mod gates;
mod inputs;
mod merge;
mod messages;
mod send;
mod stack;
mod unasked;

use std::time::Duration;

use pdca_forge::publish::{BranchFlaw, ForgeError, PublishSettings, PullState};
use pdca_integrate::{OfferError, PushError, SealRecord, SealedOffer, StoreError};
use pdca_journal::events::WarningCode;
use pdca_state::{Artifact, Bundle, BundleId, LoadError, RootError, State, WriteError};

use crate::admission::BundleLockError;
use crate::guard::relieve_guard;
use crate::integrate::TargetBranchError;
use crate::leaf::keep_log;
use crate::publish::gates::gate_again;
use crate::publish::inputs::inputs;
use crate::publish::messages::fill_messages;
use crate::publish::unasked::require_asked;
use crate::run_bundle::{BeatError, Driver};

pub use dry_run::{PublishDryRun, Would, dry_run_publishing};

use forge::Forge;
use messages::Messages;
use send::Sender;

/// Settings and options of one publication.
#[derive(Debug, Clone, Copy)]
pub struct PublishRequest<'a> {
    /// The `[publish]` table.
    pub settings: &'a PublishSettings,
    /// Marks the pull request as ready for review, and merges it where `[publish] merge` says so.
    pub ready: bool,
    /// Pushes commits of the base, too, that the remote lacks.
    pub include_base: bool,
    /// The longest wait for another process or thread that holds the bundle.
    pub patience: Duration,
}

/// The result of publishing a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedBundle {
    pub id: BundleId,
    /// The key that marks everything on the forge.
    pub key: String,
    pub remote: String,
    pub branch: String,
    /// The pushed commit.
    pub commit: String,
    /// The pull request; `None` without a forge.
    pub pull: Option<PublishedPull>,
    pub comment: CommentOutcome,
    pub merge: MergeOutcome,
    /// The steps of this call, in order; empty if everything was published before.
    pub news: Vec<PublishStep>,
}

/// A pull request that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedPull {
    pub number: u64,
    pub url: String,
    pub state: PullState,
    /// The branch that it is to be merged into.
    pub base: String,
    /// The bundle whose branch that is, if it stands on another one.
    pub stands_on: Option<BundleId>,
}

/// The result of merging.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    NotAsked,
    Merged,
    /// Something that may still come is missing.
    Waits {
        why: String,
    },
    /// Somebody has to change something first.
    Refused {
        why: String,
    },
}

/// The state of the comment on the issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommentOutcome {
    /// The comment exists.
    Posted {
        /// Its address, if the tracker gives one.
        url: Option<String>,
    },
    /// Comments are turned off.
    Off,
    /// The bundle's id is not the number of an issue of the forge.
    NoIssue,
    /// A person removed the draft from §8.
    Declined,
}

/// A step of publishing that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishStep {
    /// Missing texts were written.
    Messages,
    /// The gates ran again, and passed.
    Gated,
    /// The branch was pushed.
    Pushed,
    /// The pull request was opened, or one that an earlier driver opened was found.
    Opened,
    /// The pull request that the builder had opened was taken over.
    Adopted,
    /// The pull request was opened again, after its branch had disappeared.
    Reopened,
    /// The comment was posted, or one that an earlier driver posted was found.
    Commented,
    /// The pull request was marked as ready.
    Ready,
    /// The base of the pull request was changed, because the one below is merged.
    Retargeted,
    /// The pull request was merged.
    Merged,
}

impl PublishStep {
    /// Returns the word for `--json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "texts",
            Self::Gated => "gated",
            Self::Pushed => "pushed",
            Self::Opened => "opened",
            Self::Reopened => "reopened",
            Self::Commented => "commented",
            Self::Ready => "ready",
            Self::Adopted => "adopted",
            Self::Retargeted => "retargeted",
            Self::Merged => "merged",
        }
    }
}

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
    /// Gating rows are red.
    #[error("gates are red: {}", rows.join("; "))]
    Red {
        /// The rows with their reasons.
        rows: Vec<String>,
    },
    /// Gating rows came to no verdict.
    #[error("gates came to no verdict: {}", rows.join("; "))]
    Undecided {
        /// The rows with their reasons.
        rows: Vec<String>,
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
    /// Another process holds the bundle or the workspace.
    #[error(transparent)]
    Admission(#[from] BundleLockError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A leaf or a gate failed.
    #[error(transparent)]
    Beat(Box<BeatError>),
}

fn counted(number: usize) -> String {
    if number == 1 { "1 other commit".to_owned() } else { format!("{number} other commits") }
}

impl From<BeatError> for PublishError {
    fn from(error: BeatError) -> Self {
        if matches!(error, BeatError::Interrupted) {
            return Self::Interrupted;
        }
        Self::Beat(Box::new(error))
    }
}

impl From<ForgeError> for PublishError {
    fn from(error: ForgeError) -> Self {
        if matches!(error, ForgeError::Interrupted) {
            return Self::Interrupted;
        }
        Self::Outside(error)
    }
}

/// Publishes an accepted bundle, reusing what is already on the forge.
pub fn publish_accepted(
    cx: &Driver<'_>,
    bundle: &Bundle,
    request: &PublishRequest<'_>,
) -> Result<PublishedBundle, PublishError> {
    let _taken = cx.config.locks().take_within(bundle.id(), request.patience)?;
    require_untouched(cx, bundle)?;
    let mut inputs = inputs(cx.config, bundle, request.settings)?;
    if let Some(kept) = inputs.set_foreign_record_aside(bundle, cx.effects)? {
        cx.warn(
            bundle,
            WarningCode::FileSetAside,
            format!("publish.json was not written here; it was kept as {kept}"),
        );
    }
    // Everything is looked up before anything is changed, here or on the forge.
    let forge = Forge::look(cx, bundle, &inputs, request)?;
    forge.require_free_way(&inputs)?;
    require_asked(cx, bundle, &inputs, &forge, request)?;
    let mut news = Vec::new();
    if fill_messages(cx, bundle, &inputs)? {
        news.push(PublishStep::Messages);
    }
    let messages = Messages::load(bundle, &inputs)?;
    let onto = inputs.stack.onto();
    // After the texts: the message is part of the commit, and the same message makes the same
    // commit.
    let offer = SealedOffer::make(&inputs.front.store, &inputs.sealed, &messages.message, onto)?;
    forge.require_branch_is_ours(&inputs, Some(offer.commit()))?;
    // The last step before the first effect on the forge, because the gates also read the texts.
    if gate_again(cx, bundle, &mut inputs, &messages)? {
        news.push(PublishStep::Gated);
    }
    stop_if_told(cx)?;
    let done = Sender { forge: &forge }.send(&mut inputs, &offer, &messages, request, &mut news)?;
    Ok(PublishedBundle {
        id: bundle.id().clone(),
        key: inputs.key.to_string(),
        remote: request.settings.remote.clone(),
        branch: inputs.branch.to_string(),
        commit: offer.commit().to_string(),
        pull: done.pull,
        comment: done.comment,
        merge: done.merge,
        news,
    })
}

/// Orders bundles so that each comes after those that it stands on, and otherwise as given.
pub fn in_stack_order(bundles: &[Bundle]) -> Vec<Bundle> {
    let supports = |bundle: &Bundle| -> Vec<BundleId> {
        let bytes = bundle.read(Artifact::Seal).ok().flatten().unwrap_or_default();
        // A seal that cannot be read is reported when its bundle is published.
        let seal: Option<SealRecord> = serde_json::from_slice(&bytes).ok();
        let on = seal.map(|seal| seal.stands_on).unwrap_or_default();
        on.into_iter().map(|support| support.id).collect()
    };
    let mut left: Vec<(Bundle, Vec<BundleId>)> =
        bundles.iter().map(|bundle| (bundle.clone(), supports(bundle))).collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let is_left = |id: &BundleId| left.iter().any(|(other, _)| other.id() == id);
        // Seals cannot stand on each other in a circle; if records say so, the order does not matter.
        let at = left.iter().position(|(_, on)| !on.iter().any(is_left)).unwrap_or(0);
        ordered.push(left.remove(at).0);
    }
    ordered
}

/// Compares the bundle with the guard of an earlier driver that may have died while a gate ran.
fn require_untouched(cx: &Driver<'_>, bundle: &Bundle) -> Result<(), PublishError> {
    let written = relieve_guard(cx, bundle)?;
    if written.is_empty() {
        return Ok(());
    }
    let text = format!("Written into the bundle while a child ran:\n- {}\n", written.join("\n- "));
    let log = keep_log(cx, bundle, "breach", &text)?;
    let role = "child of an earlier driver";
    Err(BeatError::Breach { role, log, written }.into())
}

pub(crate) fn stop_if_told(cx: &Driver<'_>) -> Result<(), PublishError> {
    if cx.cancel.is_cancelled() { Err(PublishError::Interrupted) } else { Ok(()) }
}
