//! What follows from accepted changes, kept in `.pdca/snapshot.json` until anything it follows from changes.
//!
//! Reading 500 seals, their commits and their bundles takes ten times as long as looking at the files. So the answer is
//! kept under a key: the stat data (device, inode, size, times of content and of metadata) of every file and ref that it
//! was derived from, the bundles that are not accepted by name, and the configuration. The file decides nothing by itself,
//! and may be deleted at any time.
//!
//! 1. The key is made. If the kept answer has it, that is the answer.
//! 2. Otherwise a probe file tells the time of the file system, and the key is made again.
//! 3. The answer is derived. It is kept only if both keys agree and no file of the key changed shortly before the probe:
//!    a change after step 2 then always has a later time than any in the key. The time of metadata cannot be set back.
//!
//! A symbolic link among the files is not followed by stat, so nothing is kept then.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::Metadata;
use std::io;
use std::num::NonZero;
use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::WorkspaceConfig;
use pdca_driver::integrate::{ChangeState, HeldChange, TargetBranches};
use pdca_integrate::{QueueWorkspace, TargetSpec};
use pdca_state::parallel::map_chunks;
use pdca_state::{BundleId, files, sha256_hex};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::snapshot::landing_summary::{BranchSummary, ChangeMark};
use crate::snapshot::{SnapshotEntry, open_dirs, read_branches};

/// Changes whenever the same files may lead to another answer.
const FORMAT: &str = concat!("3 ", env!("CARGO_PKG_VERSION"));
const NAME: &str = "snapshot.json";
const SECOND: i128 = 1_000_000_000;
/// File systems with fractions of a second in their times are exact to a tick of the kernel, which is at most 10 ms.
const FINE: i128 = SECOND / 10;
// FAT, the coarsest of the usual file systems, has times of two seconds.
const COARSE: i128 = 2 * SECOND;
/// The number of bundles that one thread looks at, at a time.
const CHUNK: NonZero<usize> = NonZero::new(64).expect("because it is not zero");

/// The states of accepted changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AcceptedChanges {
    pub(crate) marks: BTreeMap<BundleId, ChangeMark>,
    pub(crate) branches: Vec<BranchSummary>,
    /// The accepted bundles that a dependant may not build on as landed.
    pub(crate) not_landed: BTreeSet<BundleId>,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Kept {
    format: String,
    key: String,
    marks: BTreeMap<BundleId, KeptMark>,
    branches: Vec<KeptBranch>,
    not_landed: BTreeSet<BundleId>,
}

#[derive(Serialize, Deserialize)]
struct KeptMark {
    word: String,
    text: Option<String>,
    next: Option<String>,
    held: Option<Box<HeldChange>>,
}

#[derive(Serialize, Deserialize)]
struct KeptBranch {
    target: String,
    name: String,
    counts: Vec<(String, usize)>,
    next: Option<(String, String)>,
}

impl AcceptedChanges {
    /// Returns the kept answer if nothing changed, else derives it; `None` if the targets cannot be read.
    pub(crate) fn load(config: &WorkspaceConfig, entries: &[SnapshotEntry]) -> Option<Self> {
        let path = config.dirs.private().join(NAME);
        let open = open_dirs(entries);
        let key = Key::read(config, &open);
        if let Some(key) = &key
            && let Some(kept) = load_kept(&path, &key.digest())
        {
            return Some(kept);
        }
        let settled = key.as_ref().and_then(|key| key.settled(config, &open));
        // After the second key: a change in between is in the answer and not in the key, so the
        // next reader finds another key and derives it again.
        let found = Self::derive(config, &open)?;
        if let Some(key) = settled {
            found.keep(&path, key);
        }
        Some(found)
    }

    /// Reads the branches and seals.
    fn derive(config: &WorkspaceConfig, open: &BTreeSet<&Utf8Path>) -> Option<Self> {
        let found = read_branches(config, open)?;
        let not_landed = not_landed(&found);
        let (marks, branches) = crate::snapshot::landing_summary::marks(config, &found.branches);
        Some(Self { marks, branches, not_landed })
    }

    /// Keeps the answer. An error costs the next reader the same work again, and nothing else.
    fn keep(&self, path: &Utf8Path, key: String) {
        let mark = |(id, mark): (&BundleId, &ChangeMark)| {
            let ChangeMark { word, text, next, held } = mark.clone();
            (id.clone(), KeptMark { word: word.to_owned(), text, next, held })
        };
        let branch = |branch: &BranchSummary| {
            let BranchSummary { target, name, counts, next } = branch.clone();
            let counts = counts.into_iter().map(|(word, count)| (word.to_owned(), count)).collect();
            KeptBranch { target, name, counts, next }
        };
        let kept = Kept {
            format: FORMAT.to_owned(),
            key,
            marks: self.marks.iter().map(mark).collect(),
            branches: self.branches.iter().map(branch).collect(),
            not_landed: self.not_landed.clone(),
        };
        if let Ok(json) = serde_json::to_vec(&kept) {
            // Not synced: after a loss of power the file is whole or counts as none.
            drop(files::replace_unsynced(path, &json));
        }
    }
}

/// Reads the kept answer, if it has this key. A damaged file counts as none.
fn load_kept(path: &Utf8Path, key: &str) -> Option<AcceptedChanges> {
    let kept: Kept = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    if kept.format != FORMAT || kept.key != key {
        return None;
    }
    let mark = |(id, mark): (BundleId, KeptMark)| {
        let KeptMark { word, text, next, held } = mark;
        Some((id, ChangeMark { word: ChangeMark::known_word(&word)?, text, next, held }))
    };
    let branch = |branch: KeptBranch| {
        let KeptBranch { target, name, counts, next } = branch;
        let count = |(word, count): (String, usize)| Some((ChangeMark::known_word(&word)?, count));
        let counts = counts.into_iter().map(count).collect::<Option<_>>()?;
        Some(BranchSummary { target, name, counts, next })
    };
    Some(AcceptedChanges {
        marks: kept.marks.into_iter().map(mark).collect::<Option<_>>()?,
        branches: kept.branches.into_iter().map(branch).collect::<Option<_>>()?,
        not_landed: kept.not_landed,
    })
}

/// Returns the accepted bundles whose change is not in its branch, as far as it is known.
fn not_landed(found: &TargetBranches) -> BTreeSet<BundleId> {
    let unplaceable = found.unplaceable.iter().flat_map(|unplaceable| &unplaceable.ids).cloned();
    let changes = found.branches.iter().flat_map(|branch| &branch.changes);
    let left = changes.filter(|change| match change.standing {
        // A prerequisite that was accepted without a seal, as other tools do, is taken to be in the
        // branch (decision 018).
        ChangeState::Landed { .. } | ChangeState::Unsealed => false,
        ChangeState::Sealed(_)
        | ChangeState::Staged { .. }
        | ChangeState::Reverted { .. }
        | ChangeState::Drifted { .. } => true,
    });
    unplaceable.chain(left.map(|change| change.bundle.id().clone())).collect()
}

/// The stat data of everything that the answer follows from.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    /// One line per file.
    text: String,
    /// The time, in nanoseconds, from which on a change of any of the files has another time of metadata.
    settled_at: i128,
}

/// A file that stat does not tell about.
struct Unknowable;

impl Key {
    fn empty() -> Self {
        Self { text: String::new(), settled_at: i128::MIN }
    }

    /// Makes the key; `None` if something cannot be known by stat.
    fn read(config: &WorkspaceConfig, open: &BTreeSet<&Utf8Path>) -> Option<Self> {
        let mut key = Self::empty();
        key.configuration(&config.queue(), pdca_driver::integrate::has_resolver(config));
        key.bundles(config.dirs.bundles.path(), open).ok()?;
        key.bundles(config.dirs.bundles.completed().path(), open).ok()?;
        let private = config.dirs.private();
        key.tree(&private.join("held.json"), 0).ok()?;
        key.tree(&private.join("conflicts"), 4).ok()?;
        for target in &config.targets {
            key.repository(&target.name, &target.path).ok()?;
        }
        Some(key)
    }

    /// Adds the configuration, field by field: what `Debug` prints is no format (decision 021).
    fn configuration(&mut self, queue: &QueueWorkspace, has_resolver: bool) {
        let QueueWorkspace { dirs, targets, default_branch } = queue;
        let targets = targets.iter().map(|target| {
            let TargetSpec { name, path, repo, branch } = target;
            json!({ "name": name, "path": path, "repo": repo, "branch": branch })
        });
        let fields = json!({
            "root": dirs.root,
            "bundles": dirs.bundles.path(),
            "targets": targets.collect::<Vec<_>>(),
            "default_branch": default_branch,
            // A resolver that appears or goes changes the command that a held change is shown with.
            "has_resolver": has_resolver,
        });
        self.text.push_str(&fields.to_string());
        self.text.push('\n');
    }

    fn digest(&self) -> String {
        sha256_hex(self.text.as_bytes())
    }

    /// Returns the digest of the key if it is the same again, and nothing of it changed shortly before.
    fn settled(&self, config: &WorkspaceConfig, open: &BTreeSet<&Utf8Path>) -> Option<String> {
        let now = file_system_time(&config.dirs.private())?;
        let is_old = self.settled_at < now;
        // The key from after the probe is the one that counts: whatever changes later has a later
        // time than everything in it, and is not found under this key again.
        (is_old && Self::read(config, open)? == *self).then(|| self.digest())
    }

    /// Adds the directories of all bundles, and of those that are not `open` what lies directly in them. An archived attempt
    /// never changes, and a new one changes the directory. Nothing of an open bundle is read for the answer.
    fn bundles(&mut self, root: &Utf8Path, open: &BTreeSet<&Utf8Path>) -> Result<(), Unknowable> {
        let Some(mut names) = list(root)? else { return Ok(()) };
        names.retain(|name| name.starts_with("issue_"));
        let dirs: Vec<Utf8PathBuf> = names.iter().map(|name| root.join(name)).collect();
        let looked = map_chunks(&dirs, CHUNK, |chunk| {
            let look = |dir: &Utf8PathBuf| {
                if open.contains(dir.as_path()) {
                    Ok(Self { text: format!("open {dir}\n"), ..Self::empty() })
                } else {
                    Self::of_bundle(dir)
                }
            };
            chunk.iter().map(look).collect()
        });
        for one in looked {
            let one = one?;
            self.text.push_str(&one.text);
            self.settled_at = self.settled_at.max(one.settled_at);
        }
        Ok(())
    }

    fn of_bundle(dir: &Utf8Path) -> Result<Self, Unknowable> {
        let mut key = Self::empty();
        key.tree(dir, 1)?;
        Ok(key)
    }

    /// Adds the refs of a repository and what else decides which commits count.
    fn repository(&mut self, name: &str, path: &Utf8Path) -> Result<(), Unknowable> {
        // A target that cannot be opened is explained by whoever derives the answer.
        let target = pdca_lanes::Target::open(name, path).map_err(|_| Unknowable)?;
        let common = target.common_dir();
        self.tree(&path.join(".git"), 0)?;
        // Grafts and a shallow boundary change which commits an ancestor walk finds.
        for file in ["HEAD", "config", "packed-refs", "shallow", "info/grafts"] {
            self.tree(&common.join(file), 0)?;
        }
        // `worktrees/<name>/HEAD` says which checkout has a branch, which decides the merge
        // command.
        for (dir, depth) in [("refs", 32), ("reftable", 1), ("worktrees", 2)] {
            self.tree(&common.join(dir), depth)?;
        }
        Ok(())
    }

    /// Adds a file, or a directory with what lies at most `depth` below it. One that is absent is a line too.
    fn tree(&mut self, path: &Utf8Path, depth: usize) -> Result<(), Unknowable> {
        match std::fs::symlink_metadata(path) {
            Ok(found) => self.add(path, &found, depth),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.text.push_str("- ");
                self.text.push_str(path.as_str());
                self.text.push('\n');
                Ok(())
            }
            Err(_) => Err(Unknowable),
        }
    }

    fn add(&mut self, path: &Utf8Path, found: &Metadata, depth: usize) -> Result<(), Unknowable> {
        // What it leads to can change without a change of the link (decision 059).
        if found.file_type().is_symlink() {
            return Err(Unknowable);
        }
        let changed = time(found.ctime(), found.ctime_nsec());
        self.settled_at = self.settled_at.max(settled_at(changed));
        writeln!(
            self.text,
            "{} {} {} {} {changed} {path}",
            found.dev(),
            found.ino(),
            found.size(),
            time(found.mtime(), found.mtime_nsec()),
        )
        .map_err(|_| Unknowable)?;
        if depth == 0 || !found.is_dir() {
            return Ok(());
        }
        let Ok(entries) = path.as_std_path().read_dir() else { return Err(Unknowable) };
        let mut below = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|_| Unknowable)?;
            let name = entry.file_name().into_string().map_err(|_| Unknowable)?;
            // Relative to the open directory, which is faster than by its path.
            below.push((name, entry.metadata().map_err(|_| Unknowable)?));
        }
        below.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (name, found) in below {
            self.add(&path.join(name), &found, depth - 1)?;
        }
        Ok(())
    }
}

/// Lists a directory in a fixed order; `None` if there is none.
fn list(dir: &Utf8Path) -> Result<Option<Vec<String>>, Unknowable> {
    let entries = match dir.as_std_path().read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) => return Err(Unknowable),
    };
    let name = |entry: io::Result<std::fs::DirEntry>| {
        entry.map_err(|_| Unknowable)?.file_name().into_string().map_err(|_| Unknowable)
    };
    let mut names = entries.map(name).collect::<Result<Vec<_>, _>>()?;
    names.sort_unstable();
    Ok(Some(names))
}

/// Returns a time in nanoseconds.
fn time(seconds: i64, nanos: i64) -> i128 {
    i128::from(seconds) * SECOND + i128::from(nanos)
}

/// Returns the time from which on a change of a file that last changed at `changed` has another time.
fn settled_at(changed: i128) -> i128 {
    // Each file by its own time: bundles and targets may be on file systems of which only some have
    // fractions of a second.
    changed + if changed % SECOND == 0 { COARSE } else { FINE }
}

/// Returns the present time of the file system that `dir` is on, in nanoseconds.
fn file_system_time(dir: &Utf8Path) -> Option<i128> {
    std::fs::create_dir_all(dir).ok()?;
    let probe = tempfile::NamedTempFile::new_in(dir).ok()?;
    let found = probe.as_file().metadata().ok()?;
    Some(time(found.ctime(), found.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use pdca_testkit::TestWorkspace;

    use super::*;

    fn key(dir: &Utf8Path) -> Option<Key> {
        Key::of_bundle(dir).ok()
    }

    #[test]
    fn a_key_changes_with_every_file_and_is_refused_for_a_link() {
        let workspace = TestWorkspace::new();
        workspace.brief("1", &[]);
        let dir = workspace.bundle("1");
        let dir = Utf8Path::new(dir.as_str());
        let before = key(dir).unwrap();
        assert_eq!(key(dir), Some(before));
        for (name, text) in [("patch.diff", "a"), ("patch.diff", "b"), ("seal.json", "{}")] {
            let before = key(dir).unwrap();
            workspace.write(format!("results/issue_1/{name}"), text);
            assert_ne!(key(dir), Some(before), "{name}");
        }
        let before = key(dir).unwrap();
        fs_err::remove_file(dir.join("seal.json")).unwrap();
        assert_ne!(key(dir), Some(before));
        std::os::unix::fs::symlink("patch.diff", dir.join("x")).unwrap();
        assert_eq!(key(dir), None);
    }

    #[test]
    fn a_file_without_fractions_in_its_time_settles_late_beside_one_that_has_them() {
        let (coarse, fine) = (time(10, 0), time(11, 5));
        assert!(settled_at(coarse) > settled_at(fine), "they are on two file systems");
        assert_eq!(settled_at(coarse), time(12, 0));
        assert_eq!(settled_at(fine), time(11, 100_000_005));
    }

    #[test]
    fn the_configuration_is_in_the_key_under_names_of_its_own() {
        let target = TargetSpec {
            name: "app".to_owned(),
            path: "/src/app".into(),
            repo: None,
            branch: Some("main".to_owned()),
        };
        let bundles = pdca_state::BundleRoot::new("/ws/results");
        let dirs = pdca_integrate::WorkspaceDirs { root: "/ws".into(), bundles };
        let queue = QueueWorkspace { dirs, targets: vec![target], default_branch: None };
        let mut key = Key::empty();
        key.configuration(&queue, true);
        let fields: serde_json::Value = serde_json::from_str(&key.text).unwrap();
        let targets =
            json!([{ "name": "app", "path": "/src/app", "repo": null, "branch": "main" }]);
        let expected = json!({
            "root": "/ws", "bundles": "/ws/results", "targets": targets,
            "default_branch": null, "has_resolver": true,
        });
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_kept_answer_that_is_damaged_or_of_another_key_counts_as_none() {
        let workspace = TestWorkspace::new();
        let path = workspace.path().join(NAME);
        let id: BundleId = "7".parse().unwrap();
        let mark =
            ChangeMark { word: "landed", text: Some("main".to_owned()), next: None, held: None };
        let counts = vec![("sealed", 2)];
        let branch =
            BranchSummary { target: "app".into(), name: "main".into(), counts, next: None };
        let answer = AcceptedChanges {
            marks: [(id.clone(), mark)].into(),
            branches: vec![branch],
            not_landed: [id].into(),
        };
        answer.keep(&path, "key".to_owned());
        assert_eq!(load_kept(&path, "key"), Some(answer));
        assert_eq!(load_kept(&path, "other"), None);
        let text = fs_err::read_to_string(&path).unwrap();
        for damaged in [&text[..text.len() / 2], "", &text.replace("landed", "lost"), "{}"] {
            fs_err::write(&path, damaged).unwrap();
            assert_eq!(load_kept(&path, "key"), None, "{damaged}");
        }
    }
}
