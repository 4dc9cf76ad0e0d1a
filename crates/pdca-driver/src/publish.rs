//! An accepted change becomes known outside: a branch, a draft pull request, a comment.
//!
//! ```text
//! WorkspaceConfig::dossier ─► what is published, where, under which key; nothing is changed yet
//! Driver::publish ─► look outside ─ texts ─ gates ─ push ─ pull request ─ comment ─ ready mark
//! WorkspaceConfig::rehearse_publishing ─► the same as far as looking goes
//! ```
//!
//! Each thing outside is looked up by its key before it is asked for, and written into `publish.json`
//! before and after. So a driver that died anywhere is followed by one that finds what is there and
//! goes on, and nothing is there twice. The user's checkout plays no part: the commit is made in the
//! object store, and the gates run in a lane.

mod forge;
mod gates;
mod inputs;
mod messages;
mod rehearsal;

use pdca_integrate::{Offer, OfferError, PushError, StoreError};
use pdca_publish::{BranchFlaw, ForgeError, PublishSettings, PullState};
use pdca_state::{Bundle, BundleId, LoadError, RootError, State, WriteError};

use crate::admission::AdmissionError;
use crate::guard::relieve_guard;
use crate::integrate::TargetBranchError;
use crate::leaf::keep_log;
use crate::publish::gates::gate_again;
use crate::publish::inputs::inputs;
use crate::publish::messages::fill_messages;
use crate::run_bundle::{BeatError, Driver};

pub use rehearsal::{Rehearsal, Would, rehearse_publishing};

use forge::Forge;
use messages::Messages;

/// What is asked of publishing.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// What `[publish]` says.
    pub settings: &'a PublishSettings,
    /// Whether the pull request is to be marked as ready.
    pub ready: bool,
}

/// What is out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The bundle.
    pub id: BundleId,
    /// The key under which everything is found.
    pub key: String,
    /// Where the branch is.
    pub remote: String,
    /// The branch.
    pub branch: String,
    /// The commit that is offered.
    pub commit: String,
    /// The number of the pull request.
    pub number: u64,
    /// The address of the pull request.
    pub url: String,
    /// Where the pull request stands.
    pub state: PullState,
    /// What became of the comment.
    pub comment: Told,
    /// What was done just now, in order; nothing where all was out already.
    pub news: Vec<News>,
}

/// What became of the comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It is there.
    Posted {
        /// Its address, where the tracker tells it.
        url: Option<String>,
    },
    /// Nobody wants one.
    Off,
    /// The bundle's id is no number of an issue of the forge.
    NoIssue,
}

/// Something that publishing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// Texts were written that were not there.
    Messages,
    /// The gates ran again, and passed.
    Gated,
    /// The branch was pushed.
    Pushed,
    /// The pull request was opened, or found to be open before anybody had heard of it.
    Opened,
    /// The pull request was opened again, after its branch had gone away.
    Reopened,
    /// The comment was posted, or found to be posted before anybody had heard of it.
    Commented,
    /// The pull request was marked as ready.
    Ready,
}

impl News {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "texts",
            Self::Gated => "gated",
            Self::Pushed => "pushed",
            Self::Opened => "opened",
            Self::Reopened => "reopened",
            Self::Commented => "commented",
            Self::Ready => "ready",
        }
    }
}

/// Why a bundle is not published, or not to the end. What went out before is out, and is found again.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// Nobody has accepted it.
    #[error("{id} is {state}, and only what was accepted is published")]
    NotAccepted {
        /// The bundle.
        id: BundleId,
        /// Where it stands.
        state: State,
    },
    /// It was closed without a change.
    #[error("{id} was closed without a change: there is nothing to publish")]
    NoChange {
        /// The bundle.
        id: BundleId,
    },
    /// It was accepted without a seal.
    #[error("{id} was accepted without a seal")]
    Unsealed {
        /// The bundle.
        id: BundleId,
    },
    /// What is there is not what was sealed.
    #[error("{id} is not what was sealed: {why}")]
    Drifted {
        /// The bundle.
        id: BundleId,
        /// In what.
        why: String,
    },
    /// It is in the branch already that it is meant for.
    #[error("{id} is in {branch} already, as {commit}")]
    Landed {
        /// The bundle.
        id: BundleId,
        /// The branch.
        branch: String,
        /// The commit that brought it.
        commit: String,
    },
    /// It is not known where the change belongs, or where it stands.
    #[error(transparent)]
    TargetBranch(#[from] TargetBranchError),
    /// The bundles cannot be listed.
    #[error(transparent)]
    Root(#[from] RootError),
    /// No repository is under change.
    #[error("no target is configured that {id} could be published to")]
    NoTarget {
        /// The bundle.
        id: BundleId,
    },
    /// It is not known where the forge has the repository.
    #[error("the target `{target}` has no `repo` of the form owner/repo")]
    NoRepository {
        /// The target.
        target: String,
    },
    /// There is no name for the branch.
    #[error("the branch of {id} has no name")]
    Branch {
        /// The bundle.
        id: BundleId,
        /// Why not.
        source: BranchFlaw,
    },
    /// The branch would be the one that the change is meant for.
    #[error("{id} would be pushed to `{branch}`, the branch that it is meant for")]
    OwnTarget {
        /// The bundle.
        id: BundleId,
        /// The branch.
        branch: String,
    },
    /// A text cannot be used.
    #[error("{file} of {id} cannot be used: it {flaw}")]
    Text {
        /// The bundle.
        id: BundleId,
        /// The file.
        file: &'static str,
        /// What is wrong with it.
        flaw: &'static str,
    },
    /// Rows that block are red.
    #[error("gates are red: {}", rows.join("; "))]
    Red {
        /// The rows, with what they said.
        rows: Vec<String>,
    },
    /// Rows that block came to no verdict.
    #[error("gates came to no verdict: {}", rows.join("; "))]
    Undecided {
        /// The rows, with what they said.
        rows: Vec<String>,
    },
    /// The branch is at a commit that we did not put there.
    #[error("{branch} of {remote} is at {at}, which was not pushed from here")]
    Foreign {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
        /// Where it is.
        at: String,
    },
    /// The branch has a pull request that is not ours.
    #[error("{branch} has a pull request that was not opened from here: {url}")]
    ForeignPull {
        /// The branch.
        branch: String,
        /// The pull request.
        url: String,
    },
    /// Somebody closed the pull request.
    #[error("{url} was closed")]
    Closed {
        /// The pull request.
        url: String,
    },
    /// The remote did not take the branch.
    #[error("{remote} did not take {branch}: {said}")]
    Remote {
        /// The remote.
        remote: String,
        /// The branch.
        branch: String,
        /// What was said.
        said: String,
    },
    /// The forge was not reached, or would not.
    #[error(transparent)]
    Outside(ForgeError),
    /// The tracker was not reached, or would not.
    #[error(transparent)]
    Tracker(ForgeError),
    /// There is no commit to offer.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// git could not be asked to push.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody else has the bundle or the workspace.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The bundle cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The bundle cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A leaf or a gate could not be run.
    #[error(transparent)]
    Beat(Box<BeatError>),
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

/// Publishes an accepted bundle, or finds what of it is out already.
pub fn publish_accepted(
    cx: &Driver<'_>,
    bundle: &Bundle,
    order: &Order<'_>,
) -> Result<Published, PublishError> {
    let _taken = cx.config.locks().take(bundle.id())?;
    require_untouched(cx, bundle)?;
    let mut inputs = inputs(cx.config, bundle, order.settings)?;
    if let Some(kept) = inputs.set_foreign_record_aside(bundle, cx.effects)? {
        cx.warn(bundle, format!("publish.json was not written here; it was kept as {kept}"));
    }
    // Whatever can be found out is found out before anything is changed, here or there.
    let forge = Forge::look(cx, bundle, &inputs, order)?;
    forge.require_free_way(&inputs)?;
    let mut news = Vec::new();
    if fill_messages(cx, bundle, &inputs)? {
        news.push(News::Messages);
    }
    let messages = Messages::load(bundle)?;
    let offer = Offer::make(&inputs.front.store, &inputs.sealed, &messages.message)?;
    forge.require_branch_is_ours(&inputs, Some(offer.commit()))?;
    if gate_again(cx, bundle, &mut inputs, &messages)? {
        news.push(News::Gated);
    }
    stop_if_told(cx)?;
    let done = forge.send(&mut inputs, &offer, &messages, order, &mut news)?;
    Ok(Published {
        id: bundle.id().clone(),
        key: inputs.key.to_string(),
        remote: order.settings.remote.clone(),
        branch: inputs.branch.to_string(),
        commit: offer.commit().to_string(),
        number: done.number,
        url: done.url,
        state: done.state,
        comment: done.comment,
        news,
    })
}

/// A driver before this one may have died while a gate ran: compare before anything is believed.
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
