//! Publishes accepted changes: a branch, a draft pull request, a comment, and where it is asked for the ready mark
//! and the merge.
//!
//! ```text
//! PublishInputs ─► the change, its destination and its key; nothing is changed yet
//! publish_bundle ─► look at the forge ─ texts ─ gates ─ push ─ pull request ─ comment ─ ready mark ─ merge
//! predict_publication ─► the same, up to looking
//! ```
//!
//! Each thing on the forge is looked up by its key before it is created, and recorded in `publish.json`
//! before and after. So after a crash at any point the next driver finds what exists and
//! continues, and nothing is created twice. The user's checkout is not used: the commit is made in the
//! object store, and the gates run in a lane.

mod accept;
mod gates;
mod request;
mod texts;

use std::time::Duration;

use pdca_driver::{BeatError, BundleLockError, Driver, require_untouched};
use pdca_forge::publish::{
    ForgeState, Messages, Publication, PublishDryRun, PublishError, PublishInputs, PublishRequest,
    PublishStep, PublishedBundle, absent_texts, drafted_comment, needs_author, stop_if_cancelled,
};
use pdca_integrate::{SealRecord, SealedOffer};
use pdca_journal::events::WarningCode;
use pdca_state::{Artifact, Bundle, BundleId};

pub use request::{
    FailedPublication, PublicationCause, PublicationRequest, Publications, PublishOptions, publish,
};

use gates::{gate_again, rows_at_publishing};
use texts::{fill_texts, has_publisher};

/// The reason a bundle is not published, or not completely. Whatever was published stays, and is found again.
#[derive(Debug, thiserror::Error)]
pub enum PublicationError {
    /// The change, its remote, its forge or its tracker is in the way, or cancellation was requested.
    #[error(transparent)]
    Publish(#[from] PublishError),
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
    /// Another process holds the bundle or the workspace.
    #[error(transparent)]
    Lock(#[from] BundleLockError),
    /// A leaf or a gate failed.
    #[error(transparent)]
    Beat(Box<BeatError>),
}

impl PublicationError {
    /// Returns whether cancellation was requested.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Publish(PublishError::Interrupted))
    }
}

impl From<BeatError> for PublicationError {
    fn from(error: BeatError) -> Self {
        if matches!(error, BeatError::Interrupted) {
            return Self::Publish(PublishError::Interrupted);
        }
        Self::Beat(Box::new(error))
    }
}

/// Publishes an accepted bundle, reusing what is already on the forge.
fn publish_bundle(
    cx: &Driver<'_>,
    bundle: &Bundle,
    request: PublishRequest<'_>,
    patience: Duration,
) -> Result<PublishedBundle, PublicationError> {
    let _taken = cx.config.locks().take_within(bundle.id(), patience)?;
    require_untouched(cx, bundle)?;
    let workspace = cx.config.queue();
    let warn = |code, text| cx.warn(bundle, code, text);
    let (effects, cancel) = (cx.effects, cx.cancel);
    let publication =
        Publication { bundle, workspace: &workspace, request, effects, cancel, warn: &warn };
    let mut inputs = PublishInputs::load(&workspace, bundle, request.settings)?;
    let kept = inputs.set_foreign_record_aside(bundle, effects).map_err(PublishError::from)?;
    if let Some(kept) = kept {
        let text = format!("publish.json was not written here; it was kept as {kept}");
        cx.warn(bundle, WarningCode::FileSetAside, text);
    }
    // Everything is looked up before anything is changed, here or on the forge.
    let forge = ForgeState::look(publication, &inputs)?;
    forge.require_free_way(&inputs)?;
    forge.require_asked(&inputs)?;
    let mut news = Vec::new();
    if fill_texts(cx, bundle, &inputs)? {
        news.push(PublishStep::Messages);
    }
    let messages = Messages::load(bundle, &inputs)?;
    let onto = inputs.stack.onto();
    // After the texts: the message is part of the commit, and the same message makes the same
    // commit.
    let store = &inputs.target_branch.store;
    let offer = SealedOffer::make(store, &inputs.sealed, &messages.message, onto);
    let offer = offer.map_err(PublishError::from)?;
    forge.require_branch_is_ours(&inputs, Some(offer.commit()))?;
    // The last step before the first effect on the forge, because the gates also read the texts.
    if gate_again(cx, bundle, &mut inputs, &messages)? {
        news.push(PublishStep::Gated);
    }
    stop_if_cancelled(cancel)?;
    let sent = forge.send(&mut inputs, &offer, &messages, &mut news)?;
    Ok(PublishedBundle {
        id: bundle.id().clone(),
        key: inputs.key.to_string(),
        remote: request.settings.remote.clone(),
        branch: inputs.branch.to_string(),
        commit: offer.commit().to_string(),
        pull: sent.pull,
        comment: sent.comment,
        merge: sent.merge,
        news,
    })
}

/// Predicts the steps of [`publish_bundle`]. Changes nothing.
fn predict_publication(
    cx: &Driver<'_>,
    bundle: &Bundle,
    request: PublishRequest<'_>,
) -> Result<PublishDryRun, PublicationError> {
    let workspace = cx.config.queue();
    let warn = |code, text| cx.warn(bundle, code, text);
    let (effects, cancel) = (cx.effects, cx.cancel);
    let publication =
        Publication { bundle, workspace: &workspace, request, effects, cancel, warn: &warn };
    let inputs = PublishInputs::load(&workspace, bundle, request.settings)?;
    let forge = ForgeState::look(publication, &inputs)?;
    forge.require_free_way(&inputs)?;
    forge.require_asked(&inputs)?;
    let absent = absent_texts(bundle, &inputs)?;
    let drafted = drafted_comment(&inputs).is_some_and(|text| !text.is_empty())
        && absent.contains(&Artifact::TrackerComment);
    let by_leaf = needs_author(&absent, drafted) && has_publisher(cx.config);
    let message = match bundle.read(Artifact::CommitMessage).map_err(PublishError::from)? {
        Some(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        None if by_leaf => None,
        None => Some(inputs.default_text(bundle, Artifact::CommitMessage)?),
    };
    let (store, onto) = (&inputs.target_branch.store, inputs.stack.onto());
    let make = |message: &String| SealedOffer::make(store, &inputs.sealed, message, onto);
    let offer = message.as_ref().map(make).transpose().map_err(PublishError::from)?;
    let commit = offer.map(|made| made.commit());
    forge.require_branch_is_ours(&inputs, commit)?;
    let rows = rows_at_publishing(cx.config, &inputs.snapshot);
    Ok(PublishDryRun {
        id: bundle.id().clone(),
        key: inputs.key.to_string(),
        remote: request.settings.remote.clone(),
        branch: inputs.branch.to_string(),
        commit: commit.map(|commit| commit.to_string()),
        repo: inputs.repo.clone(),
        base: forge.base(&inputs),
        stands_on: inputs.stack.below().map(|below| below.id.clone()),
        texts: absent.iter().map(|artifact| artifact.file_name()).collect(),
        by_leaf,
        drafted,
        rows: rows.as_slice().iter().map(|row| row.id.clone()).collect(),
        would: forge.would(&inputs, commit),
    })
}

/// Orders bundles so that each comes after those that it stands on, and otherwise as given.
fn in_stack_order(bundles: &[Bundle]) -> Vec<Bundle> {
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
