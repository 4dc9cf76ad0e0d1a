//! The builder whose calls are judged: its directories and its environment.

use std::collections::BTreeMap;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use pdca_state::Artifact;

/// The values of `PDCA_ROLE` whose calls are judged.
const BUILDERS: [&str; 2] = ["builder", "resolver"];

/// The artifacts that a builder may write into its view of the bundle.
const OWN_ARTIFACTS: [Artifact; 2] = [Artifact::BuildNotes, Artifact::Patch];

/// The directories that a builder may write, and those that it must not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardScope {
    lane: Utf8PathBuf,
    view: Option<Utf8PathBuf>,
    tmp: Option<Utf8PathBuf>,
    /// The workspace, the primary checkout and the directory of all lanes, each with a description.
    kept: Vec<(Utf8PathBuf, &'static str)>,
    pub(crate) home: Option<Utf8PathBuf>,
    /// The environment, for variables that a command line uses.
    pub(crate) env: BTreeMap<String, String>,
}

/// The one push that a builder may make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnPush<'s> {
    pub(crate) remote: &'s str,
    pub(crate) refspec: &'s str,
    pub(crate) branch: &'s str,
}

impl GuardScope {
    /// Reads the scope from the environment of a leaf; `None` if it is not that of a builder.
    pub fn from_env(env: BTreeMap<String, String>) -> Option<Self> {
        // A role that is not told counts as a builder's: the guard errs towards judging.
        if env.get("PDCA_ROLE").is_some_and(|role| !BUILDERS.contains(&role.as_str())) {
            return None;
        }
        let path = |name: &str| {
            env.get(name)
                .filter(|path| path.starts_with('/'))
                .map(|path| normal(Utf8Path::new(path)))
        };
        let lane = path("PDCA_WORKTREE")?;
        let mut kept = Vec::new();
        kept.extend(path("PDCA_PRIMARY").map(|path| (path, "the user's own checkout")));
        kept.extend(path("PDCA_WORKSPACE").map(|path| (path, "the workspace")));
        kept.extend(lanes_root(&lane).map(|path| (path, "another lane")));
        Some(Self {
            view: path("PDCA_BUNDLE"),
            tmp: path("TMPDIR"),
            kept,
            home: path("HOME"),
            lane,
            env,
        })
    }

    /// Returns the push that the builder may make, if the driver lets it. The branch that the change is for is never one.
    pub(crate) fn may_push(&self) -> Option<OwnPush<'_>> {
        let (remote, refspec) = self.env.get("PDCA_PUSH")?.split_once(' ')?;
        let branch = refspec.rsplit_once("refs/heads/").map_or(refspec, |(_, branch)| branch);
        let is_base = self.env.get("PDCA_BRIEF_BASE").is_some_and(|base| base == branch);
        (!is_base).then_some(OwnPush { remote, refspec, branch })
    }

    /// Returns the private checkout of the builder.
    pub fn lane(&self) -> &Utf8Path {
        &self.lane
    }

    /// Returns the reason against writing `path`, which is absolute, if there is one.
    pub(crate) fn objection(&self, path: &Utf8Path) -> Option<String> {
        let path = normal(path);
        // The order matters: view, temporary directory and lane lie below the workspace or the root
        // of the lanes, which are closed further down.
        if let Some(view) = &self.view
            && path.starts_with(view)
        {
            let artifact = path.file_name().and_then(Artifact::from_file_name);
            // Any other name may be written: agents keep scratch files in the view, and the driver
            // takes only the files of the role.
            return artifact
                .filter(|artifact| path.parent() == Some(view) && !OWN_ARTIFACTS.contains(artifact))
                .map(|artifact| {
                    format!("{} of a bundle is written by the driver alone", artifact.file_name())
                });
        }
        if self.tmp.as_ref().is_some_and(|tmp| path.starts_with(tmp)) {
            return None;
        }
        if let Ok(inside) = path.strip_prefix(&self.lane) {
            return git_internal(inside).map(str::to_owned);
        }
        if let Some((_, what)) = self.kept.iter().find(|(tree, _)| path.starts_with(tree)) {
            return Some(format!("it is in {what}"));
        }
        let at_home = self.home.as_ref().and_then(|home| path.strip_prefix(home).ok())?;
        guarded_at_home(at_home).then(|| "it configures the user's git, agents or forge".to_owned())
    }

    /// Returns true if a command that changes a repository may work in `dir`.
    pub(crate) fn is_own(&self, dir: &Utf8Path) -> bool {
        let dir = normal(dir);
        let temporary = self.tmp.iter().chain(&self.view).any(|own| dir.starts_with(own));
        dir.starts_with(&self.lane)
            || temporary
            // A throwaway repository is ordinary work. A workspace or a primary checkout that lies below
            // `/tmp` stays closed.
            || ["/tmp", "/var/tmp"].iter().any(|tmp| {
                dir.starts_with(tmp) && !self.kept.iter().any(|(tree, _)| dir.starts_with(tree))
            })
    }
}

/// Returns the directory of all lanes, if `lane` has the driver's layout `<root>/lane-<slot>/<target>`.
fn lanes_root(lane: &Utf8Path) -> Option<Utf8PathBuf> {
    let slot = lane.parent()?;
    slot.file_name()?.starts_with("lane-").then(|| slot.parent().map(Utf8Path::to_owned))?
}

/// Returns the reason against writing hooks and configuration of the checkout's git: they decide which programs git
/// runs for the driver.
fn git_internal(inside: &Utf8Path) -> Option<&'static str> {
    // Lower case, because `.GIT/hooks` is the same directory on a filesystem that ignores case.
    // `.git` at any depth, because git runs the hooks of a nested repository as well.
    let mut parts = inside.components().map(|part| part.as_str().to_ascii_lowercase());
    let rest: Vec<String> = parts.by_ref().skip_while(|part| part != ".git").skip(1).collect();
    match rest.first().map(String::as_str) {
        Some("hooks") => Some("it is a hook of the checkout's git"),
        Some("config" | "config.worktree") if rest.len() == 1 => {
            Some("it is the configuration of the checkout's git")
        }
        _ => None,
    }
}

/// Returns true for files below the home directory that configure git, an agent or a forge client for the user.
fn guarded_at_home(path: &Utf8Path) -> bool {
    const TREES: [&str; 6] = [
        ".ssh",
        ".config/gh",
        ".config/git",
        ".config/pdca",
        ".config/opencode",
        ".config/glab-cli",
    ];
    const FILES: [&str; 10] = [
        ".gitconfig",
        ".git-credentials",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".cargo/credentials.toml",
        ".claude/settings.json",
        ".codex/hooks.json",
        ".codex/config.toml",
        ".gemini/settings.json",
    ];
    TREES.iter().any(|tree| path.starts_with(tree)) || FILES.iter().any(|file| path == *file)
}

/// Removes `.` and `..` from a path as text.
pub(crate) fn normal(path: &Utf8Path) -> Utf8PathBuf {
    // Links are not followed: the guard reads nothing. A link can lead a write past it, which the
    // sandbox has to stop.
    let mut normal = Utf8PathBuf::new();
    for part in path.components() {
        match part {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => {
                normal.pop();
            }
            Utf8Component::Prefix(_) | Utf8Component::RootDir | Utf8Component::Normal(_) => {
                normal.push(part);
            }
        }
    }
    normal
}
