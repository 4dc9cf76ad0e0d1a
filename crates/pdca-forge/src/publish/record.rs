//! `publish.json`: the things that are published, or were about to be.
//!
//! The record is written before each request and again when the result was found, so that after a crash the
//! commits at the remote can be recognized as ours. It states an intention; the remote is always looked at.

use pdca_state::{Artifact, Bundle, LoadError};
use serde::{Deserialize, Serialize};

use crate::publish::gh::PullState;
use crate::publish::key::PublishKey;

/// The version of the file format.
const SCHEMA: u32 = 1;
/// The maximum number of our commits to remember for a branch.
/// Only the newest can be at the remote, unless pushes fail again and again.
const REMEMBERED: usize = 32;

/// The content of `publish.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishRecord {
    schema: u32,
    /// The current [`PublishKey`].
    pub key: String,
    /// Keys from before the bundle was accepted again, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_keys: Vec<String>,
    /// The gates that passed before publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<GateRecord>,
    /// The published change that this one stands on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<CommentRecord>,
}

/// The published change that another one stands on. Once decided it stays: another base would be another commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackRecord {
    /// The bundle.
    pub id: String,
    /// Its branch, without `refs/heads/`.
    pub branch: String,
    /// The commit of that branch that the change was put on.
    pub onto: String,
}

/// The gates that passed, and their input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRecord {
    /// A digest of the rows, the tree and the texts.
    pub digest: String,
    /// The ids of the rows that ran.
    pub rows: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchRecord {
    pub remote: String,
    /// The branch name without `refs/heads/`.
    pub name: String,
    /// The commit that was pushed or is about to be.
    pub commit: String,
    pub state: BranchState,
    /// Every commit that was pushed to the branch or intended for it, oldest first.
    pub ours: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRecord {
    /// The repository, as `owner/repo`.
    pub repo: String,
    /// The number, once the pull request was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The last state found; `None` before it is opened or reopened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PullState>,
    /// Set if the builder opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopted: Option<Adoption>,
}

/// The progress of taking over a pull request that the builder opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adoption {
    /// Its text was about to be replaced.
    Intended,
    /// Its text carries the key.
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentRecord {
    pub issue: String,
    /// The address, if the tracker reports one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub state: CommentState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BranchState {
    /// The push was about to start; the commit may be at the remote.
    Intended,
    /// The commit was found at the remote.
    Pushed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommentState {
    /// The request was about to be made; the comment may exist.
    Intended,
    /// The comment was found.
    Posted,
}

/// The reasons why `publish.json` cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PublishRecordError {
    #[error("not a valid publish record")]
    Form(#[from] serde_json::Error),
    #[error("unsupported schema version {found}")]
    Schema { found: u32 },
}

/// Returns the address of a change's pull request, or its number, if it is out and neither merged nor closed.
pub fn open_pull_request(bundle: &Bundle) -> Result<Option<String>, LoadError> {
    let pull = pull_request_of(bundle)?;
    let pull =
        pull.filter(|pull| !matches!(pull.state, Some(PullState::Merged | PullState::Closed)));
    Ok(pull.map(|pull| pull.url.unwrap_or_else(|| "its number is not known".to_owned())))
}

/// Returns the address of a change's pull request if that was merged; empty if it is not known.
pub fn merged_pull_request(bundle: &Bundle) -> Result<Option<String>, LoadError> {
    let pull = pull_request_of(bundle)?;
    let merged = pull.filter(|pull| pull.state == Some(PullState::Merged));
    Ok(merged.map(|pull| pull.url.unwrap_or_default()))
}

/// Returns the recorded pull request; none if another program wrote the record.
fn pull_request_of(bundle: &Bundle) -> Result<Option<PullRecord>, LoadError> {
    let text = bundle.read(Artifact::Publish)?;
    Ok(text.and_then(|text| PublishRecord::parse(&text).ok()?.pull_request))
}

impl PublishRecord {
    /// Returns a record with nothing published yet.
    pub fn new(key: &PublishKey) -> Self {
        Self {
            schema: SCHEMA,
            key: key.to_string(),
            earlier_keys: Vec::new(),
            gates: None,
            stack: None,
            branch: None,
            pull_request: None,
            comment: None,
        }
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, PublishRecordError> {
        let record: Self = serde_json::from_slice(bytes)?;
        if record.schema == SCHEMA {
            Ok(record)
        } else {
            Err(PublishRecordError::Schema { found: record.schema })
        }
    }

    /// Returns the text of `publish.json`.
    pub fn to_json(&self) -> Vec<u8> {
        self.pretty()
    }

    fn pretty(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("because every key is a string");
        text.push(b'\n');
        text
    }

    /// Moves the record to a new key after the bundle was accepted again. Branch and pull request are kept and
    /// reused; gates, stack and comment were about the previous change and are dropped.
    #[must_use]
    pub fn under(mut self, key: &PublishKey) -> Self {
        if self.key == key.as_str() {
            return self;
        }
        let before = std::mem::replace(&mut self.key, key.to_string());
        self.earlier_keys.push(before);
        Self { gates: None, comment: None, stack: None, ..self }
    }

    /// Returns true if the text carries the current key or an earlier one.
    pub fn is_marked(&self, text: &str) -> bool {
        let mut keys = self.earlier_keys.iter().chain([&self.key]);
        keys.any(|key| PublishKey::known(key).is_in(text))
    }

    /// Records that a commit is about to be pushed to a branch.
    pub fn intend(&mut self, remote: &str, name: &str, commit: &str) {
        // On another branch no commit is known to be ours, so nothing there may be replaced.
        let known = self.branch.take().filter(|known| known.remote == remote && known.name == name);
        let mut ours = known.map(|known| known.ours).unwrap_or_default();
        // Moved to the end, so that it is not the next one to be forgotten.
        ours.retain(|other| other != commit);
        ours.push(commit.to_owned());
        let excess = ours.len().saturating_sub(REMEMBERED);
        ours.drain(..excess);
        self.branch = Some(BranchRecord {
            remote: remote.to_owned(),
            name: name.to_owned(),
            commit: commit.to_owned(),
            state: BranchState::Intended,
            ours,
        });
    }

    /// Records a commit that was at the branch before as ours.
    pub fn remember(&mut self, commit: &str) {
        if let Some(branch) = &mut self.branch
            && !branch.ours.iter().any(|known| known == commit)
        {
            // At the front, because it is older than every commit that was pushed here.
            branch.ours.insert(0, commit.to_owned());
        }
    }

    /// Returns the commits that were pushed or intended for a branch.
    pub fn ours(&self, remote: &str, name: &str) -> &[String] {
        match &self.branch {
            Some(branch) if branch.remote == remote && branch.name == name => &branch.ours,
            Some(_) | None => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seal: &[u8]) -> PublishKey {
        PublishKey::new("r", &"7".parse().unwrap(), seal)
    }

    #[test]
    fn a_record_reads_back_and_another_s_form_is_told_apart() {
        let mut record = PublishRecord::new(&key(b"1"));
        record.intend("origin", "pdca/7", "c1");
        assert_eq!(PublishRecord::parse(&record.to_json()).unwrap(), record);
        assert!(matches!(PublishRecord::parse(b"{\"pr\": 1}"), Err(PublishRecordError::Form(_))));
        let newer =
            String::from_utf8(record.to_json()).unwrap().replace("\"schema\": 1", "\"schema\": 2");
        assert!(matches!(
            PublishRecord::parse(newer.as_bytes()),
            Err(PublishRecordError::Schema { found: 2 })
        ));
    }

    #[test]
    fn what_was_ever_meant_for_the_branch_is_ours() {
        let mut record = PublishRecord::new(&key(b"1"));
        for commit in ["c1", "c2", "c1", "c3"] {
            record.intend("origin", "pdca/7", commit);
        }
        assert_eq!(record.ours("origin", "pdca/7"), ["c2", "c1", "c3"]);
        assert!(record.ours("fork", "pdca/7").is_empty());
    }

    #[test]
    fn accepted_anew_the_branch_stays_ours_and_the_comment_is_another() {
        let mut record = PublishRecord::new(&key(b"1"));
        record.intend("origin", "pdca/7", "c1");
        record.comment =
            Some(CommentRecord { issue: "7".into(), url: None, state: CommentState::Posted });
        let again = record.under(&key(b"2"));
        assert_eq!(again.ours("origin", "pdca/7"), ["c1"]);
        assert_eq!(again.comment, None);
        for seal in [b"1", b"2"] {
            assert!(again.is_marked(&key(seal).marker()));
        }
        assert!(!again.is_marked(&key(b"3").marker()));
    }

    #[test]
    fn only_a_merged_pull_request_counts_as_merged_and_only_one_that_is_out_as_open() {
        let workspace = pdca_testkit::TestWorkspace::new();
        workspace.brief("7", &[]);
        let root = pdca_state::BundleRoot::new(workspace.path().join("results"));
        let bundle = root.bundle(&"7".parse().unwrap());
        let facts = |state| {
            let mut record = PublishRecord::new(&key(b"seal"));
            let url = Some("https://forge/1".to_owned());
            record.pull_request =
                Some(PullRecord { repo: "a/b".into(), number: Some(1), url, state, adopted: None });
            bundle.publish(Artifact::Publish, &record.to_json()).unwrap();
            (
                merged_pull_request(&bundle).unwrap().is_some(),
                open_pull_request(&bundle).unwrap().is_some(),
            )
        };
        assert_eq!(facts(None), (false, true));
        assert_eq!(facts(Some(PullState::Draft)), (false, true));
        assert_eq!(facts(Some(PullState::Closed)), (false, false));
        assert_eq!(facts(Some(PullState::Merged)), (true, false));
    }
}
