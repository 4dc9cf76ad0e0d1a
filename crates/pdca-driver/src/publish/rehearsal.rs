//! What publishing would do.

use pdca_integrate::{ObjectId, Offer};
use pdca_publish::{Pull, PullState};
use pdca_state::{Artifact, Bundle};

use crate::publish::gates::rows_at_publishing;
use crate::publish::inputs::inputs;
use crate::publish::messages::has_publisher;
use crate::run_bundle::Driver;

use super::forge::{Forge, is_told};
use super::inputs::PublishInputs;
use super::{Order, PublishError, messages};

/// What publishing a bundle would do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rehearsal {
    /// The key.
    pub key: String,
    /// Where the branch would be pushed to.
    pub remote: String,
    /// The branch.
    pub branch: String,
    /// The commit, where the words are known already.
    pub commit: Option<String>,
    /// The repository of the pull request.
    pub repo: String,
    /// The branch that the pull request would be for.
    pub base: String,
    /// The texts that would be written.
    pub texts: Vec<&'static str>,
    /// Whether a leaf would write them.
    pub by_leaf: bool,
    /// The rows that would run again.
    pub rows: Vec<String>,
    /// What would be done outside, in order; nothing where all is out.
    pub would: Vec<Would>,
}

/// Something that would be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Would {
    /// The branch would be pushed.
    Push,
    /// A draft would be opened.
    Open,
    /// A pull request would be opened again.
    Reopen {
        /// Which.
        url: String,
    },
    /// A comment would be posted, unless it is there.
    Comment,
    /// The pull request would be marked as ready.
    Ready,
}

impl Would {
    /// In one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Open => "open",
            Self::Reopen { .. } => "reopen",
            Self::Comment => "comment",
            Self::Ready => "ready",
        }
    }
}

/// Finds out what [`publish_accepted`](super::publish_accepted) would do, and changes nothing.
pub fn rehearse_publishing(
    cx: &Driver<'_>,
    bundle: &Bundle,
    order: &Order<'_>,
) -> Result<Rehearsal, PublishError> {
    let inputs = inputs(cx.config, bundle, order.settings)?;
    let forge = Forge::look(cx, bundle, &inputs, order)?;
    forge.require_free_way(&inputs)?;
    let absent = messages::absent(bundle)?;
    let texts: Vec<_> = absent.iter().map(|artifact| artifact.file_name()).collect();
    let by_leaf = !texts.is_empty() && has_publisher(cx.config);
    let message = match bundle.read(Artifact::CommitMessage)? {
        Some(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        None if by_leaf => None,
        None => Some(inputs.stand_in(bundle, Artifact::CommitMessage)?),
    };
    let make = |message: &String| Offer::make(&inputs.front.store, &inputs.sealed, message);
    let commit = message.as_ref().map(make).transpose()?.map(|made| made.commit());
    forge.require_branch_is_ours(&inputs, commit)?;
    let rows = rows_at_publishing(cx.config, &inputs.snapshot);
    let would = would(&inputs, &forge, commit, order);
    Ok(Rehearsal {
        key: inputs.key.to_string(),
        remote: order.settings.remote.clone(),
        branch: inputs.branch.to_string(),
        commit: commit.map(|commit| commit.to_string()),
        repo: inputs.repo.clone(),
        base: inputs.base.clone(),
        texts,
        by_leaf,
        rows: rows.as_slice().iter().map(|row| row.id.clone()).collect(),
        would,
    })
}

fn would(
    inputs: &PublishInputs,
    forge: &Forge<'_>,
    commit: Option<ObjectId>,
    order: &Order<'_>,
) -> Vec<Would> {
    let mut would = Vec::new();
    let state = forge.pull.as_ref().map(Pull::state);
    if !forge.is_merged() && (forge.at.is_none() || forge.at != commit) {
        would.push(Would::Push);
    }
    match &forge.pull {
        None => would.push(Would::Open),
        Some(pull) if pull.state() == PullState::Closed => {
            would.push(Would::Reopen { url: pull.url.clone() });
        }
        Some(_) => {}
    }
    if forge.tracker().is_some() && !is_told(inputs) && forge.comment.is_none() {
        would.push(Would::Comment);
    }
    if order.ready && state.is_none_or(|state| state == PullState::Draft) {
        would.push(Would::Ready);
    }
    would
}
