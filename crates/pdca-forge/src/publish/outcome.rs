//! The results of publishing a bundle, and of predicting it.

use pdca_state::BundleId;
use serde::{Serialize, Serializer};

use crate::publish::gh::PullState;

/// The result of publishing a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishedBundle {
    pub id: BundleId,
    /// The key that marks everything on the forge.
    pub key: String,
    pub remote: String,
    pub branch: String,
    /// The pushed commit.
    pub commit: String,
    /// The pull request; `None` without a forge.
    #[serde(rename = "pull_request")]
    pub pull: Option<PublishedPull>,
    pub comment: CommentOutcome,
    pub merge: MergeOutcome,
    /// The steps of this call, in order; empty if everything was published before.
    #[serde(rename = "done")]
    pub news: Vec<PublishStep>,
}

/// A pull request that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "MergeFields")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The JSON of a [`MergeOutcome`].
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MergeFields {
    /// `not-asked`, `merged`, `waits` or `refused`.
    state: &'static str,
    why: Option<String>,
}

impl From<MergeOutcome> for MergeFields {
    fn from(merge: MergeOutcome) -> Self {
        let (state, why) = match merge {
            MergeOutcome::NotAsked => ("not-asked", None),
            MergeOutcome::Merged => ("merged", None),
            MergeOutcome::Waits { why } => ("waits", Some(why)),
            MergeOutcome::Refused { why } => ("refused", Some(why)),
        };
        Self { state, why }
    }
}

/// The state of the comment on the issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "CommentFields")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The JSON of a [`CommentOutcome`].
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CommentFields {
    /// `posted`, `off`, `no-issue` or `declined`.
    state: &'static str,
    url: Option<String>,
}

impl From<CommentOutcome> for CommentFields {
    fn from(comment: CommentOutcome) -> Self {
        let (state, url) = match comment {
            CommentOutcome::Posted { url } => ("posted", url),
            CommentOutcome::Off => ("off", None),
            CommentOutcome::NoIssue => ("no-issue", None),
            CommentOutcome::Declined => ("declined", None),
        };
        Self { state, url }
    }
}

/// A step of publishing that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PublishStep {
    /// Missing texts were written.
    #[serde(rename = "texts")]
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

/// The steps that publishing a bundle would carry out now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishDryRun {
    pub id: BundleId,
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
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

impl Serialize for Would {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
