//! Problems of the lanes, and their remedies.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::{InspectError, failed, markers, repository_of};
use crate::{
    claim::{LOCK, Lanes, MARKER, RESCUED},
    history,
    hydrate::{HYDRATION, HydrationRecord, HydrationState},
    marker::{FORMAT, LaneProgress, Marker},
    names::TMP,
    provision::LaneKind,
    remove::REMOVED,
    room::{LENT, REPOSITORY},
    stage::ATTRIBUTES,
    target::{Target, open_repository},
};

/// A fact about a lane that a person may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneFinding {
    /// A directory in a slot has no marker; a claim refuses it.
    NoMarker {
        /// The directory.
        path: Utf8PathBuf,
    },
    /// A marker cannot be read.
    BadMarker {
        /// The path of the marker.
        path: Utf8PathBuf,
        /// The error in words.
        why: String,
    },
    /// A lane was created by a newer version.
    Newer {
        /// The path of the marker.
        path: Utf8PathBuf,
        /// The format number of the marker.
        format: u32,
    },
    /// A marker names another slot: the directory was copied or renamed.
    Copied {
        /// The path of the checkout.
        path: Utf8PathBuf,
        /// The slot that it was created for.
        slot: u32,
    },
    /// The `.git` of the checkout leads elsewhere: it is a copy of a worktree, in which git would modify the original.
    CopiedWorktree {
        /// The path of the checkout.
        path: Utf8PathBuf,
        /// The path that its `.git` leads to.
        home: String,
    },
    /// The checkout has no `.git`, so git would use a repository above it.
    NoRepository {
        /// The path of the checkout.
        path: Utf8PathBuf,
    },
    /// The creation of the lane was interrupted.
    Interrupted {
        /// The path of the checkout.
        path: Utf8PathBuf,
    },
    /// The repository from which the lane borrows its objects is gone.
    PrimaryGone {
        /// The path of the checkout.
        path: Utf8PathBuf,
        /// The former path of the repository.
        primary: Utf8PathBuf,
    },
    /// The repository has moved.
    PrimaryMoved {
        /// The path of the checkout.
        path: Utf8PathBuf,
        /// The former path of the repository.
        was: Utf8PathBuf,
        /// The present path of the repository.
        now: Utf8PathBuf,
    },
    /// Another repository is at the path of the lane's.
    OtherPrimary {
        /// The path of the checkout.
        path: Utf8PathBuf,
        /// The path of that repository.
        primary: Utf8PathBuf,
    },
    /// No target of this name is configured.
    UnknownTarget {
        /// The path of the checkout.
        path: Utf8PathBuf,
        /// The name of the target.
        target: String,
    },
    /// The base commit of the lane cannot be read: the primary was pruned.
    BaseMissing {
        /// The path of the checkout.
        path: Utf8PathBuf,
        /// The id of the commit.
        base: String,
    },
    /// A git that died left a lock file.
    StaleLock {
        /// The path of the lock file.
        path: Utf8PathBuf,
    },
    /// The hydration was interrupted or failed.
    HydrationInterrupted {
        /// The path of the checkout.
        path: Utf8PathBuf,
    },
    /// A removal was interrupted; its work was rescued before.
    HalfRemoved {
        /// The path of the remains.
        path: Utf8PathBuf,
    },
    /// Rescued work exists.
    Rescued {
        /// The directory that holds it.
        path: Utf8PathBuf,
    },
}

/// The action that resolves a [`LaneFinding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// None: the next claim repairs the lane.
    NextClaim,
    /// Move the directory to another place, or remove it.
    MoveAway,
    /// Use the version that created it, or remove the lane with that version.
    NewerVersion,
    /// Move the repository back to its former path.
    RestorePrimary,
    /// Fetch the commit into the primary, or move the lane away, because its work needs that commit.
    FetchBase,
    /// Configure the target again, or move the lane away.
    NameTarget,
    /// Remove the lane; its work is rescued.
    Remove,
    /// Inspect it, and remove it once it is not needed any more.
    LookAt,
}

impl LaneFinding {
    /// Returns the action that resolves the finding.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::NoMarker { .. }
            | Self::BadMarker { .. }
            | Self::Copied { .. }
            | Self::CopiedWorktree { .. }
            | Self::OtherPrimary { .. } => Remedy::MoveAway,
            Self::Newer { .. } => Remedy::NewerVersion,
            Self::NoRepository { .. }
            | Self::Interrupted { .. }
            | Self::PrimaryMoved { .. }
            | Self::StaleLock { .. }
            | Self::HydrationInterrupted { .. } => Remedy::NextClaim,
            Self::PrimaryGone { .. } => Remedy::RestorePrimary,
            Self::BaseMissing { .. } => Remedy::FetchBase,
            Self::UnknownTarget { .. } => Remedy::NameTarget,
            Self::HalfRemoved { .. } => Remedy::Remove,
            Self::Rescued { .. } => Remedy::LookAt,
        }
    }

    /// Returns true if the lane cannot be used until a person acts.
    pub fn is_broken(&self) -> bool {
        match self.remedy() {
            Remedy::MoveAway
            | Remedy::NewerVersion
            | Remedy::RestorePrimary
            | Remedy::FetchBase => true,
            Remedy::NextClaim | Remedy::NameTarget | Remedy::Remove | Remedy::LookAt => false,
        }
    }

    /// Returns the path that the finding is about.
    pub fn path(&self) -> &Utf8Path {
        match self {
            Self::NoMarker { path }
            | Self::BadMarker { path, .. }
            | Self::Newer { path, .. }
            | Self::Copied { path, .. }
            | Self::CopiedWorktree { path, .. }
            | Self::NoRepository { path }
            | Self::Interrupted { path }
            | Self::PrimaryGone { path, .. }
            | Self::PrimaryMoved { path, .. }
            | Self::OtherPrimary { path, .. }
            | Self::UnknownTarget { path, .. }
            | Self::BaseMissing { path, .. }
            | Self::StaleLock { path }
            | Self::HydrationInterrupted { path }
            | Self::HalfRemoved { path }
            | Self::Rescued { path } => path,
        }
    }
}

impl Lanes {
    /// Examines every slot on disk. Changes nothing.
    pub fn doctor(&self, targets: &[Target]) -> Result<Vec<LaneFinding>, InspectError> {
        let mut findings = Vec::new();
        for (slot, dir) in self.slot_dirs()? {
            let held = self.holder(slot)?.is_some();
            let mut known = Vec::new();
            for path in markers(&dir)? {
                match Marker::load(&path) {
                    Ok(Some(marker)) => {
                        known.push(marker.target.clone());
                        examine(&dir, slot, &path, &marker, targets, held, &mut findings);
                    }
                    Ok(None) => {}
                    Err(err) => {
                        let name = path.file_name().and_then(|name| name.strip_suffix(MARKER));
                        known.extend(name.map(str::to_owned));
                        findings.push(LaneFinding::BadMarker { path, why: err.to_string() });
                    }
                }
            }
            strays(&dir, &known, &mut findings).map_err(|source| failed(&dir, source))?;
        }
        let kept = self.root().join(RESCUED);
        if has_entries(&kept) {
            findings.push(LaneFinding::Rescued { path: kept });
        }
        Ok(findings)
    }
}

/// Examines one lane.
fn examine(
    dir: &Utf8Path,
    slot: u32,
    path: &Utf8Path,
    marker: &Marker,
    targets: &[Target],
    held: bool,
    findings: &mut Vec<LaneFinding>,
) {
    let checkout = dir.join(&marker.target);
    if marker.format > FORMAT {
        findings.push(LaneFinding::Newer { path: path.to_owned(), format: marker.format });
        return;
    }
    // Before anything is read in the checkout: the files of a copy are not described by its marker.
    if marker.slot != slot || path.file_name() != Some(&format!("{}{MARKER}", marker.target)) {
        findings.push(LaneFinding::Copied { path: checkout, slot: marker.slot });
        return;
    }
    let whole = examine_primary(&checkout, marker, targets, findings);
    if held {
        // The holder may be in the middle of any of the states that follow.
        return;
    }
    if marker.progress == LaneProgress::Preparing {
        findings.push(LaneFinding::Interrupted { path: checkout });
        return;
    }
    if fs::symlink_metadata(&checkout).is_err() {
        return;
    }
    let git_dir = checkout.join(".git");
    match fs::symlink_metadata(&git_dir) {
        Err(_) => findings.push(LaneFinding::NoRepository { path: checkout.clone() }),
        Ok(found) if found.is_dir() => {
            findings.extend(stale_locks(&git_dir).map(|path| LaneFinding::StaleLock { path }));
            if whole && let Some(base) = missing_base(&checkout, marker) {
                findings.push(LaneFinding::BaseMissing { path: checkout.clone(), base });
            }
        }
        Ok(_) if marker.kind == LaneKind::Reference => {
            let home = leads_to(&git_dir);
            findings.push(LaneFinding::CopiedWorktree { path: checkout.clone(), home });
        }
        Ok(_) => findings.extend(examine_link(&checkout, &git_dir)),
    }
    let hydration = dir.join(format!("{}{HYDRATION}", marker.target));
    if HydrationRecord::at(hydration).state() == HydrationState::Begun {
        findings.push(LaneFinding::HydrationInterrupted { path: checkout });
    }
}

/// Examines the repository that the lane's objects come from. Returns true if they are available.
fn examine_primary(
    checkout: &Utf8Path,
    marker: &Marker,
    targets: &[Target],
    findings: &mut Vec<LaneFinding>,
) -> bool {
    let path = checkout.to_owned();
    let Some(target) = targets.iter().find(|target| target.name() == marker.target) else {
        let finding = if marker.primary_path.exists() {
            LaneFinding::UnknownTarget { path, target: marker.target.clone() }
        } else {
            LaneFinding::PrimaryGone { path, primary: marker.primary_path.clone() }
        };
        findings.push(finding);
        return marker.primary_path.exists();
    };
    if marker.primary != target.identity() {
        let primary = target.common_dir().to_owned();
        findings.push(LaneFinding::OtherPrimary { path, primary });
        return false;
    }
    if marker.primary_path != target.common_dir() {
        findings.push(LaneFinding::PrimaryMoved {
            path,
            was: marker.primary_path.clone(),
            now: target.common_dir().to_owned(),
        });
        return false;
    }
    true
}

/// Checks that a linked worktree and the primary name each other; the registration does not name a copy.
fn examine_link(checkout: &Utf8Path, git_file: &Utf8Path) -> Option<LaneFinding> {
    let home = leads_to(git_file);
    let back = fs::read_to_string(Utf8Path::new(&home).join("gitdir")).unwrap_or_default();
    let same = |left: &Utf8Path, right: &Utf8Path| matches!((left.canonicalize_utf8(), right.canonicalize_utf8()), (Ok(l), Ok(r)) if l == r);
    let named = same(Utf8Path::new(back.trim_end()), git_file);
    (!named).then(|| LaneFinding::CopiedWorktree { path: checkout.to_owned(), home })
}

/// Returns the path that a `.git` which is no directory leads to.
fn leads_to(git_file: &Utf8Path) -> String {
    if let Ok(target) = fs::read_link(git_file) {
        return target.to_string_lossy().into_owned();
    }
    let text = fs::read_to_string(git_file).unwrap_or_default();
    text.trim_end().strip_prefix("gitdir: ").unwrap_or("nowhere").to_owned()
}

/// Returns the base if it cannot be read.
fn missing_base(checkout: &Utf8Path, marker: &Marker) -> Option<String> {
    let base = marker.base.as_ref()?;
    let repo = open_repository(&repository_of(checkout, marker.kind)).ok()?.to_thread_local();
    let found = history::find_commit(&repo, base).and_then(|id| history::tree_of(&repo, id));
    let there = found.is_ok_and(|tree| repo.find_tree(tree).is_ok());
    (!there).then(|| base.clone())
}

fn stale_locks(git_dir: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> + use<> {
    let entries = git_dir.read_dir_utf8().into_iter().flatten().flatten();
    entries.map(camino::Utf8DirEntry::into_path).filter(|path| path.extension() == Some("lock"))
}

/// Reports entries of a slot that belong to no lane.
fn strays(dir: &Utf8Path, known: &[String], findings: &mut Vec<LaneFinding>) -> io::Result<()> {
    for entry in dir.read_dir_utf8()? {
        let entry = entry?;
        let (name, path) = (entry.file_name().to_owned(), entry.path().to_owned());
        if name == RESCUED {
            if has_entries(&path) {
                findings.push(LaneFinding::Rescued { path });
            }
        } else if name.ends_with(REMOVED) {
            findings.push(LaneFinding::HalfRemoved { path });
        } else if entry.file_type()?.is_dir()
            && name != LOCK
            && ![ATTRIBUTES, HYDRATION, TMP, LENT, REPOSITORY].iter().any(|end| name.ends_with(end))
            && !known.contains(&name)
        {
            findings.push(LaneFinding::NoMarker { path });
        }
    }
    Ok(())
}

fn has_entries(dir: &Utf8Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}
