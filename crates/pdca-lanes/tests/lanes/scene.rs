//! A primary and its lanes, as git sees them.

use std::{
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_lanes::{
    CommitSignature, Lane, LaneKind, Lanes, Provision, ProvisionError, Provisioned, Target,
};
use pdca_testkit::{Repo, TestWorkspace};

/// The author of commits in these tests.
pub(crate) const BY: CommitSignature<'static> =
    CommitSignature { name: "A Builder", email: "builder@example.com", seconds: 1_000_000_000 };

/// A primary and the directory of its lanes.
pub(crate) struct Scene {
    pub(crate) primary: Repo,
    around: TestWorkspace,
}

impl Scene {
    /// A primary with the given files committed.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let around = TestWorkspace::new();
        let primary = around.target("primary");
        for (path, text) in files {
            primary.write(path, text);
        }
        primary.commit("base");
        Self { primary, around }
    }

    pub(crate) fn target(&self) -> Target {
        Target::open("app", self.primary.path()).expect("the primary is an ordinary repository")
    }

    pub(crate) fn lanes(&self) -> Lanes {
        Lanes::new(self.around.around().join("work.lanes"))
    }

    pub(crate) fn checkout(&self) -> Utf8PathBuf {
        self.lanes().root().join("lane-0/app")
    }

    pub(crate) fn beside(&self, name: &str) -> Utf8PathBuf {
        self.around.around().join(name)
    }

    pub(crate) fn claim(&self) -> Lane {
        self.lanes().claim(0, &self.target()).expect("the lane is free")
    }

    /// Provisions these slots at the primary's HEAD.
    pub(crate) fn provision(
        &self,
        slots: std::ops::Range<u32>,
        kind: LaneKind,
    ) -> Result<Vec<Provisioned>, ProvisionError> {
        provision(&self.lanes(), &self.target(), &self.primary.head(), slots, kind)
    }

    /// A lane reset to the primary's HEAD.
    pub(crate) fn lane(&self) -> Lane {
        let lane = self.claim();
        lane.reset(&self.primary.head()).expect("a reset works");
        lane
    }
}

/// Provisions without listening to events.
pub(crate) fn provision(
    lanes: &Lanes,
    target: &Target,
    base: &str,
    slots: std::ops::Range<u32>,
    kind: LaneKind,
) -> Result<Vec<Provisioned>, ProvisionError> {
    lanes.provision(&Provision::new(slots, target, base).with_kind(kind), &|_| {})
}

/// Both kinds of lanes, each with slots of its own.
pub(crate) const KINDS: [(LaneKind, std::ops::Range<u32>); 2] =
    [(LaneKind::Reference, 0..2), (LaneKind::Worktree, 2..4)];

/// Everything below a directory: path, mode, change time, content of files and targets of links.
pub(crate) type Inventory = Vec<(PathBuf, u32, (i64, i64), Vec<u8>)>;

/// Records everything below a directory, except entries with one of these relative names.
pub(crate) fn inventory_except(root: &Utf8Path, except: &[&str]) -> Inventory {
    fn add(root: &Path, dir: &Path, except: &[&str], found: &mut Inventory) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if except.iter().any(|except| name == Path::new(except)) {
                continue;
            }
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                add(root, &path, except, found);
                continue;
            }
            let held = if meta.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else {
                fs::read(&path).unwrap()
            };
            // git updates the time of an existing object instead of writing it again.
            let object = name.starts_with(".git/objects") || name.starts_with("objects");
            let time = if object { (0, 0) } else { (meta.mtime(), meta.mtime_nsec()) };
            found.push((name, meta.mode(), time, held));
        }
    }
    let mut found = Vec::new();
    add(root.as_std_path(), root.as_std_path(), except, &mut found);
    found.sort();
    found
}

/// Records the state of a repository of the user, which must be the same before and after.
///
/// Only a linked worktree may add its registration and objects.
pub(crate) fn digest(primary: &Utf8Path, kind: LaneKind) -> Inventory {
    match kind {
        LaneKind::Reference => inventory_except(primary, &[]),
        LaneKind::Worktree => inventory_except(
            primary,
            &[".git/worktrees", ".git/objects", ".git/refs/pdca", "worktrees", "objects"],
        ),
    }
}

/// Runs git in a lane.
pub(crate) fn seen(lane: &Lane) -> Repo {
    Repo::existing(lane.path())
}

/// Runs git in the repository in which the driver works on a lane.
pub(crate) fn own(lane: &Lane) -> Repo {
    Repo::existing(&lane.repository())
}

/// Returns the changed and untracked files according to git; empty if the tree is clean.
pub(crate) fn dirt(lane: &Lane) -> String {
    let repo = seen(lane);
    // A fresh index, so that git compares content and not only stat data.
    repo.git(&["update-index", "-q", "--really-refresh"]);
    repo.git(&["status", "--porcelain", "--untracked-files=all"])
}

/// Runs `git fsck` on the repository.
pub(crate) fn assert_sound(path: &Utf8Path) {
    let repo = Repo::existing(path);
    repo.git(&["fsck", "--strict", "--no-dangling"]);
}
