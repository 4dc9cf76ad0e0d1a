//! The base and the commits of an attempt, recorded from Do to sign-off.
//!
//! The target's tip may move while a bundle is built and checked. Gates must judge the patch on the
//! commit it was made for, so the first step of an attempt records that commit and what it stands on,
//! and every later step of the same attempt reads it. Do adds the commits that make up the patch, so that
//! accepting seals the builder's own commits. A lost record costs only that: the base is computed
//! again, the patch becomes one commit, and a patch that no longer applies is reported.

use std::io;

use camino::Utf8PathBuf;
use pdca_integrate::{Signer, Support};
use pdca_state::{BundleId, files};
use serde::{Deserialize, Serialize};

use crate::config::WorkspaceConfig;
use crate::lane_owner::owner;

/// The starting point and the commits of one attempt at one bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    /// The number of archived attempts of this bundle.
    pub(crate) iterations: u32,
    /// The SHA-256 of the brief that the builder was given.
    pub(crate) brief: String,
    /// The digest of what that brief asks for, without its declared paths; see [`pdca_state::asked_digest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<String>,
    pub(crate) target: String,
    /// The branch the base was resolved from.
    pub(crate) branch: String,
    /// The base commit: the branch's tip plus what the attempt stands on.
    pub(crate) base: String,
    /// The branch's tip; `None` in records of earlier versions, whose base is the tip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tip: Option<String>,
    /// The results that the base has beyond the tip, in the order they were folded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stands_on: Vec<Support>,
    /// The signer of the driver's own commits, with the time the work ended. Recorded before the first
    /// commit, so that a driver that takes over makes identical commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<Signer>,
    /// The commits of this attempt's patches, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<ChangeCommit>,
    /// The reason why no builder ran: the change of the previous attempt was
    /// folded onto a new base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refolded: Option<String>,
    /// The acceptance of this attempt, from the moment before it is sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) acceptance: Option<AttemptAcceptance>,
}

/// The acceptance of one attempt. It tells a seal that a crash left half-way from the seal of an earlier acceptance of
/// the same change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AttemptAcceptance {
    /// The namespace of the seal.
    pub(crate) seal: String,
    /// True once the sign-off is recorded; the attempt is over then.
    #[serde(default)]
    pub(crate) is_recorded: bool,
}

/// A patch and the head of the commits that it consists of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeCommit {
    /// SHA-256 of the patch.
    pub(crate) patch: String,
    /// The last commit of the change, in the target's object store.
    pub(crate) head: String,
}

impl Attempt {
    /// Returns true if the attempt ended in an acceptance that is on record.
    pub(crate) fn is_accepted(&self) -> bool {
        self.acceptance.as_ref().is_some_and(|acceptance| acceptance.is_recorded)
    }

    /// Returns the commit of a patch of this attempt, if recorded.
    pub(crate) fn head_of(&self, patch_digest: &str) -> Option<&str> {
        let known = self.changes.iter().rev().find(|change| change.patch == patch_digest);
        known.map(|change| change.head.as_str())
    }
}

/// The records of all attempts under way in one workspace.
#[derive(Clone, Debug)]
pub(crate) struct AttemptRecords {
    root: Utf8PathBuf,
}

impl AttemptRecords {
    pub(crate) fn new(root: Utf8PathBuf) -> Self {
        Self { root }
    }

    fn path(&self, id: &BundleId) -> Utf8PathBuf {
        self.root.join(format!("{}.json", id.dir_name()))
    }

    /// Returns the record of the attempt under way, if there is one.
    ///
    /// A garbled record counts as none, because all of it can be computed again. An unreadable
    /// one is an error: it may be intact.
    pub(crate) fn load(&self, id: &BundleId) -> io::Result<Option<Attempt>> {
        match fs_err::read(self.path(id)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the bundles that have a record.
    pub(crate) fn list(&self) -> Vec<BundleId> {
        let entries = self.root.read_dir_utf8().into_iter().flatten().flatten();
        let id = |entry: camino::Utf8DirEntry| {
            BundleId::from_dir_name(entry.file_name().strip_suffix(".json")?)
        };
        entries.filter_map(id).collect()
    }

    pub(crate) fn is_under_way(&self, id: &BundleId) -> bool {
        self.path(id).exists()
    }

    /// Removes the record of a failed attempt, so that the next one starts from the branch's tip.
    pub(crate) fn remove(&self, id: &BundleId) -> io::Result<()> {
        match fs_err::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Changes the record of the attempt under way, if there is one.
    pub(crate) fn update(
        &self,
        id: &BundleId,
        change: impl FnOnce(&mut Attempt),
    ) -> io::Result<()> {
        let Some(mut attempt) = self.load(id)? else { return Ok(()) };
        change(&mut attempt);
        self.store(id, &attempt)
    }

    pub(crate) fn store(&self, id: &BundleId, attempt: &Attempt) -> io::Result<()> {
        fs_err::create_dir_all(&self.root)?;
        let bytes = serde_json::to_vec_pretty(attempt).map_err(io::Error::other)?;
        files::replace(self.path(id), &bytes)
    }
}

/// Removes the notes about a bundle's work in a checkout that no longer exists, so that it can start in another.
/// The caller must be admitted to the workspace.
pub fn forget_lost_checkout(config: &WorkspaceConfig, id: &BundleId) -> io::Result<()> {
    let (lanes, workspace) = (config.lanes.lent(), config.dirs.mark());
    for note in lanes.notes()? {
        let job = pdca_lanes::OwnerNote::from_note(&note.text).map(|owner| owner.job);
        if job.and_then(|job| owner(&job, &workspace)).as_ref() == Some(id) {
            lanes.forget_lost(&note)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_gone_is_none_and_one_that_cannot_be_read_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().join("attempts")).unwrap();
        let attempts = AttemptRecords::new(root.clone());
        let id: BundleId = "7".parse().unwrap();
        assert_eq!(attempts.load(&id).unwrap(), None);
        let attempt = Attempt {
            iterations: 1,
            brief: "b".into(),
            target: "t".into(),
            branch: "main".into(),
            base: "c".into(),
            tip: None,
            stands_on: Vec::new(),
            made: None,
            changes: vec![ChangeCommit { patch: "p".into(), head: "h".into() }],
            asked: None,
            refolded: None,
            acceptance: None,
        };
        assert_eq!(attempt.head_of("p"), Some("h"));
        assert_eq!(attempt.head_of("q"), None);
        attempts.store(&id, &attempt).unwrap();
        assert_eq!(attempts.load(&id).unwrap(), Some(attempt));
        attempts.remove(&id).unwrap();
        attempts.remove(&id).unwrap();
        assert_eq!(attempts.load(&id).unwrap(), None);
        fs_err::create_dir(root.join("issue_7.json")).unwrap();
        attempts.load(&id).unwrap_err();
    }

    #[test]
    fn a_garbled_record_counts_as_none_and_an_update_does_not_bring_it_back() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let (attempts, id) = (AttemptRecords::new(root.clone()), "7".parse::<BundleId>().unwrap());
        fs_err::write(root.join("issue_7.json"), "{ torn").unwrap();
        assert_eq!(attempts.load(&id).unwrap(), None);
        attempts.update(&id, |_| panic!("there is nothing to change")).unwrap();
        assert!(attempts.is_under_way(&id), "it is left for a person");
    }

    #[test]
    fn of_two_commits_of_the_same_patch_the_latest_counts() {
        let change =
            |patch: &str, head: &str| ChangeCommit { patch: patch.into(), head: head.into() };
        let text = r#"{"iterations":0,"brief":"b","target":"t","branch":"main","base":"c"}"#;
        let mut attempt: Attempt = serde_json::from_str(text).unwrap();
        attempt.changes = vec![change("p", "first"), change("q", "other"), change("p", "second")];
        assert_eq!(attempt.head_of("p"), Some("second"));
    }
}
