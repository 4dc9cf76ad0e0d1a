//! Dry run of publishing.

use pdca_forge::publish::{Pull, PullState};
use pdca_integrate::{ObjectId, SealedOffer};
use pdca_state::{Artifact, Bundle, BundleId};

use crate::publish::gates::rows_at_publishing;
use crate::publish::inputs::inputs;
use crate::publish::messages::has_publisher;
use crate::publish::unasked::require_asked;
use crate::run_bundle::Driver;

use super::forge::{Forge, is_told};
use super::inputs::PublishInputs;
use super::{PublishError, PublishRequest, messages};

/// The steps that publishing a bundle would carry out now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishDryRun {
    pub key: String,
    pub remote: String,
    pub branch: String,
    /// The commit; `None` if its message is not known yet.
    pub commit: Option<String>,
    /// The repository of the pull request.
    pub repo: String,
    /// The target branch of the pull request.
    pub base: String,
    /// The bundle whose branch that is, if the change stands on another one.
    pub stands_on: Option<BundleId>,
    /// The texts that would be written.
    pub texts: Vec<&'static str>,
    /// A leaf would write them.
    pub by_leaf: bool,
    /// The comment would be taken from §8 of the summary.
    pub drafted: bool,
    /// The rows that would be run again.
    pub rows: Vec<String>,
    /// The steps on the forge, in order; empty if everything is published.
    pub would: Vec<Would>,
}

/// A step on the forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Would {
    Push,
    /// A draft pull request would be opened.
    Open,
    Reopen {
        url: String,
    },
    Comment,
    /// The pull request of the builder would be taken over.
    Adopt {
        url: String,
    },
    /// The base of the pull request would be changed.
    Retarget {
        base: String,
    },
    /// The pull request would be merged, if its checks passed.
    Merge,
    /// The pull request would be marked as ready for review.
    Ready,
}

impl Would {
    /// Returns the word for `--json`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Open => "open",
            Self::Reopen { .. } => "reopen",
            Self::Comment => "comment",
            Self::Ready => "ready",
            Self::Adopt { .. } => "adopt",
            Self::Retarget { .. } => "retarget",
            Self::Merge => "merge",
        }
    }
}

/// Predicts the steps of [`publish_accepted`](super::publish_accepted). Changes nothing.
pub fn dry_run_publishing(
    cx: &Driver<'_>,
    bundle: &Bundle,
    request: &PublishRequest<'_>,
) -> Result<PublishDryRun, PublishError> {
    let inputs = inputs(cx.config, bundle, request.settings)?;
    let forge = Forge::look(cx, bundle, &inputs, request)?;
    forge.require_free_way(&inputs)?;
    require_asked(cx, bundle, &inputs, &forge, request)?;
    let absent = messages::absent(bundle, &inputs)?;
    let drafted = messages::drafted(&inputs).is_some_and(|text| !text.is_empty())
        && absent.contains(&Artifact::TrackerComment);
    let texts: Vec<_> = absent.iter().map(|artifact| artifact.file_name()).collect();
    let by_leaf = messages::needs_leaf(&absent, drafted) && has_publisher(cx.config);
    let message = match bundle.read(Artifact::CommitMessage)? {
        Some(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        None if by_leaf => None,
        None => Some(inputs.stand_in(bundle, Artifact::CommitMessage)?),
    };
    let onto = inputs.stack.onto();
    let make =
        |message: &String| SealedOffer::make(&inputs.front.store, &inputs.sealed, message, onto);
    let commit = message.as_ref().map(make).transpose()?.map(|made| made.commit());
    forge.require_branch_is_ours(&inputs, commit)?;
    let rows = rows_at_publishing(cx.config, &inputs.snapshot);
    let would = would(&inputs, &forge, commit, request);
    Ok(PublishDryRun {
        key: inputs.key.to_string(),
        remote: request.settings.remote.clone(),
        branch: inputs.branch.to_string(),
        commit: commit.map(|commit| commit.to_string()),
        repo: inputs.repo.clone(),
        base: forge.base(&inputs),
        stands_on: inputs.stack.below().map(|below| below.id.clone()),
        texts,
        by_leaf,
        drafted,
        rows: rows.as_slice().iter().map(|row| row.id.clone()).collect(),
        would,
    })
}

fn would(
    inputs: &PublishInputs,
    forge: &Forge<'_>,
    commit: Option<ObjectId>,
    request: &PublishRequest<'_>,
) -> Vec<Would> {
    let mut would = Vec::new();
    let state = forge.pull.as_ref().map(Pull::state);
    if !forge.is_merged() && (forge.at.is_none() || forge.at != commit) {
        would.push(Would::Push);
    }
    match &forge.pull {
        None if !forge.has_forge() => {}
        None => would.push(Would::Open),
        Some(pull) if forge.is_to_adopt(inputs) => {
            would.push(Would::Adopt { url: pull.url.clone() });
        }
        Some(pull) if pull.state() == PullState::Closed => {
            would.push(Would::Reopen { url: pull.url.clone() });
        }
        Some(_) => {}
    }
    if forge.tracker().is_some() && !is_told(inputs) && forge.comment.is_none() {
        would.push(Would::Comment);
    }
    let base = forge.base(inputs);
    if forge.pull.as_ref().is_some_and(|pull| pull.is_open() && pull.base_ref_name != base) {
        would.push(Would::Retarget { base });
    }
    let is_draft = state.is_none_or(|state| state == PullState::Draft);
    if request.ready && is_draft && forge.has_forge() {
        would.push(Would::Ready);
    }
    let may_merge = request.ready && request.settings.merge && forge.has_forge();
    if may_merge && !forge.is_merged() {
        would.push(Would::Merge);
    }
    would
}
