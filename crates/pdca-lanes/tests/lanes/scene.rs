//! A primary, its lanes, and how git sees both.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_lanes::{Lane, Lanes, Signature, Target};
use pdca_testkit::{Repo, Workspace};

/// Who commits in these tests.
pub(crate) const BY: Signature<'static> =
    Signature { name: "A Builder", email: "builder@example.com", seconds: 1_000_000_000 };

/// A primary beside the place of its lanes.
pub(crate) struct Scene {
    pub(crate) primary: Repo,
    around: Workspace,
}

impl Scene {
    /// A primary with the given files committed.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let around = Workspace::new();
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

    /// A lane reset to the primary's HEAD.
    pub(crate) fn lane(&self) -> Lane {
        let lane = self.claim();
        lane.reset(&self.primary.head()).expect("a reset works");
        lane
    }
}

/// How git sees a lane.
pub(crate) fn seen(lane: &Lane) -> Repo {
    Repo::existing(lane.path())
}

/// What git would list as changed or untracked; nothing when the tree is clean.
pub(crate) fn dirt(lane: &Lane) -> String {
    let repo = seen(lane);
    // A fresh look, so that git compares content and not only what the index remembers.
    repo.git(&["update-index", "-q", "--really-refresh"]);
    repo.git(&["status", "--porcelain", "--untracked-files=all"])
}

/// Asks git whether everything in the repository holds together.
pub(crate) fn assert_sound(path: &Utf8Path) {
    let repo = Repo::existing(path);
    repo.git(&["fsck", "--strict", "--no-dangling"]);
}
