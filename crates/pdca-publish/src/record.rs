//! `publish.json`: what is out, and what was about to be.
//!
//! It is written before each thing is asked for and after it was found, so whoever comes after a crash
//! knows which commits at the remote are ours. What is out is still looked up: the record is what we
//! meant, the remote is what is.

use serde::{Deserialize, Serialize};

use crate::gh::PullState;
use crate::key::PublishKey;

/// The version of the form.
const SCHEMA: u32 = 1;
/// As many commits of ours as are remembered.
const REMEMBERED: usize = 32;

/// What is known to be out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishRecord {
    schema: u32,
    /// The key of what is published.
    pub key: String,
    /// Keys under which the bundle was published before it was accepted anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_keys: Vec<String>,
    /// What the gates passed before anything went out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<GateRecord>,
    /// The branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchRecord>,
    /// The pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRecord>,
    /// The comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<CommentRecord>,
}

/// What the gates were asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRecord {
    /// A digest over the rows, the tree and the texts.
    pub digest: String,
    /// The rows that ran.
    pub rows: Vec<String>,
}

/// A branch at a remote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchRecord {
    /// The remote.
    pub remote: String,
    /// The branch, without `refs/heads/`.
    pub name: String,
    /// The commit that is there, or is about to be.
    pub commit: String,
    /// Whether it was seen there.
    pub state: BranchState,
    /// Every commit that we ever put there or meant to, oldest first.
    pub ours: Vec<String>,
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRecord {
    /// Where, as `owner/repo`.
    pub repo: String,
    /// Its number, once it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Its address, once it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// How it was seen; none where it is only intended, or about to be opened again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PullState>,
}

/// A comment in the tracker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentRecord {
    /// On which issue.
    pub issue: String,
    /// Its address, where the tracker gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether it was seen there.
    pub state: CommentState,
}

/// Whether a branch was seen at its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BranchState {
    /// It may be there.
    Intended,
    /// It was seen there.
    Pushed,
}

/// Whether a comment was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommentState {
    /// It may be there.
    Intended,
    /// It was seen there.
    Posted,
}

/// Why a text is no record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is not in this form.
    #[error("it is not in the form that is written here")]
    Form(#[from] serde_json::Error),
    /// It is in a form of another version.
    #[error("it is in a form with the number {found}")]
    Schema {
        /// The number it has.
        found: u32,
    },
}

impl PublishRecord {
    /// A record under which nothing is out yet.
    pub fn new(key: &PublishKey) -> Self {
        Self {
            schema: SCHEMA,
            key: key.to_string(),
            earlier_keys: Vec::new(),
            gates: None,
            branch: None,
            pull_request: None,
            comment: None,
        }
    }

    /// Reads a record.
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        let record: Self = serde_json::from_slice(bytes)?;
        if record.schema == SCHEMA {
            Ok(record)
        } else {
            Err(RecordError::Schema { found: record.schema })
        }
    }

    /// The text of `publish.json`.
    pub fn to_json(&self) -> Vec<u8> {
        self.pretty()
    }

    fn pretty(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("because every key is a string");
        text.push(b'\n');
        text
    }

    /// The record under another key: the bundle was accepted anew. The branch and the pull request
    /// stay its own; what was said about the change before was said about another one.
    #[must_use]
    pub fn under(mut self, key: &PublishKey) -> Self {
        if self.key == key.as_str() {
            return self;
        }
        let before = std::mem::replace(&mut self.key, key.to_string());
        self.earlier_keys.push(before);
        Self { gates: None, comment: None, ..self }
    }

    /// Whether a text carries a key that is, or was, that of the bundle.
    pub fn is_marked(&self, text: &str) -> bool {
        let mut keys = self.earlier_keys.iter().chain([&self.key]);
        keys.any(|key| PublishKey::known(key).is_in(text))
    }

    /// Notes that a commit is about to be at a branch.
    pub fn intend(&mut self, remote: &str, name: &str, commit: &str) {
        let known = self.branch.take().filter(|known| known.remote == remote && known.name == name);
        let mut ours = known.map(|known| known.ours).unwrap_or_default();
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

    /// The commits that we put, or meant to put, at a branch.
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
        assert!(matches!(PublishRecord::parse(b"{\"pr\": 1}"), Err(RecordError::Form(_))));
        let newer =
            String::from_utf8(record.to_json()).unwrap().replace("\"schema\": 1", "\"schema\": 2");
        assert!(matches!(
            PublishRecord::parse(newer.as_bytes()),
            Err(RecordError::Schema { found: 2 })
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
}
