//! What is wrong with the lanes, and what to do about it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::{InspectError, failed, markers};
use crate::{
    claim::{LOCK, Lanes, MARKER, RESCUED},
    extra::EXTRA,
    history,
    hydrate::{self, HYDRATION, HydrationState},
    marker::{FORMAT, Marker, Progress},
    names::TMP,
    provision::LaneKind,
    remove::REMOVED,
    target::{Target, open_repository},
};

/// Something that a person may want to know about a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// A directory in a slot that nothing says is ours; a claim refuses it.
    NoMarker {
        /// The directory.
        path: Utf8PathBuf,
    },
    /// A marker that cannot be read.
    BadMarker {
        /// The marker.
        path: Utf8PathBuf,
        /// Why not.
        why: String,
    },
    /// A lane of a newer version.
    Newer {
        /// The marker.
        path: Utf8PathBuf,
        /// Its format.
        format: u32,
    },
    /// A marker that speaks of another slot: the directory was copied or renamed.
    Copied {
        /// The checkout.
        path: Utf8PathBuf,
        /// The slot that it was made for.
        slot: u32,
    },
    /// The `.git` of the checkout leads elsewhere: a copied worktree, in which git would work on
    /// the original.
    CopiedWorktree {
        /// The checkout.
        path: Utf8PathBuf,
        /// Where its `.git` leads.
        home: String,
    },
    /// The checkout has no `.git`: git would climb to a repository above.
    NoRepository {
        /// The checkout.
        path: Utf8PathBuf,
    },
    /// The making of the lane was interrupted.
    Interrupted {
        /// The checkout.
        path: Utf8PathBuf,
    },
    /// The repository from which the lane borrows its objects is gone.
    PrimaryGone {
        /// The checkout.
        path: Utf8PathBuf,
        /// Where the repository was.
        primary: Utf8PathBuf,
    },
    /// The repository is at another place by now.
    PrimaryMoved {
        /// The checkout.
        path: Utf8PathBuf,
        /// Where it was.
        was: Utf8PathBuf,
        /// Where it is.
        now: Utf8PathBuf,
    },
    /// Another repository is where the lane's was.
    OtherPrimary {
        /// The checkout.
        path: Utf8PathBuf,
        /// The place.
        primary: Utf8PathBuf,
    },
    /// No target of this name is configured.
    UnknownTarget {
        /// The checkout.
        path: Utf8PathBuf,
        /// The name.
        target: String,
    },
    /// The commit that the lane stands on cannot be read: the primary was pruned.
    BaseMissing {
        /// The checkout.
        path: Utf8PathBuf,
        /// The commit.
        base: String,
    },
    /// A lock that a dead git left.
    StaleLock {
        /// The lock.
        path: Utf8PathBuf,
    },
    /// The hydration was interrupted or failed.
    HydrationInterrupted {
        /// The checkout.
        path: Utf8PathBuf,
    },
    /// A removal was interrupted; what is left was rescued before.
    HalfRemoved {
        /// What is left.
        path: Utf8PathBuf,
    },
    /// Work that was rescued and lies there still.
    Rescued {
        /// Where it lies.
        path: Utf8PathBuf,
    },
}

/// What helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing need be done: whoever claims the lane next puts it in order.
    NextClaim,
    /// Move the directory to another place, or remove it.
    MoveAway,
    /// Use the version that made it, or remove the lane with that.
    NewerVersion,
    /// Put the repository back where it was.
    RestorePrimary,
    /// Fetch the commit into the primary, or move the lane away: what is in it needs that commit.
    FetchBase,
    /// Name the target again, or move the lane away.
    NameTarget,
    /// Remove the lane; what is in it is rescued.
    Remove,
    /// Look at it; remove it when it is not needed any more.
    LookAt,
}

impl Finding {
    /// What helps.
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

    /// Whether the lane cannot be used until somebody does something.
    pub fn is_broken(&self) -> bool {
        match self.remedy() {
            Remedy::MoveAway
            | Remedy::NewerVersion
            | Remedy::RestorePrimary
            | Remedy::FetchBase => true,
            Remedy::NextClaim | Remedy::NameTarget | Remedy::Remove | Remedy::LookAt => false,
        }
    }

    /// What it is about.
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
    /// Looks at every slot on disk and says what a person may want to know. Nothing is changed.
    pub fn doctor(&self, targets: &[Target]) -> Result<Vec<Finding>, InspectError> {
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
                        findings.push(Finding::BadMarker { path, why: err.to_string() });
                    }
                }
            }
            strays(&dir, &known, &mut findings).map_err(|source| failed(&dir, source))?;
        }
        let kept = self.root().join(RESCUED);
        if has_entries(&kept) {
            findings.push(Finding::Rescued { path: kept });
        }
        Ok(findings)
    }
}

/// Looks at one lane.
fn examine(
    dir: &Utf8Path,
    slot: u32,
    path: &Utf8Path,
    marker: &Marker,
    targets: &[Target],
    held: bool,
    findings: &mut Vec<Finding>,
) {
    let checkout = dir.join(&marker.target);
    if marker.format > FORMAT {
        findings.push(Finding::Newer { path: path.to_owned(), format: marker.format });
        return;
    }
    if marker.slot != slot || path.file_name() != Some(&format!("{}{MARKER}", marker.target)) {
        findings.push(Finding::Copied { path: checkout, slot: marker.slot });
        return;
    }
    let whole = examine_primary(&checkout, marker, targets, findings);
    if held {
        // Whoever is at work may be half-way through anything of what follows.
        return;
    }
    if marker.progress == Progress::Preparing {
        findings.push(Finding::Interrupted { path: checkout });
        return;
    }
    if fs::symlink_metadata(&checkout).is_err() {
        return;
    }
    let git_dir = checkout.join(".git");
    match fs::symlink_metadata(&git_dir) {
        Err(_) => findings.push(Finding::NoRepository { path: checkout.clone() }),
        Ok(found) if found.is_dir() => {
            findings.extend(stale_locks(&git_dir).map(|path| Finding::StaleLock { path }));
            if whole && let Some(base) = missing_base(&checkout, marker) {
                findings.push(Finding::BaseMissing { path: checkout.clone(), base });
            }
        }
        Ok(_) if marker.kind == LaneKind::Reference => {
            let home = leads_to(&git_dir);
            findings.push(Finding::CopiedWorktree { path: checkout.clone(), home });
        }
        Ok(_) => findings.extend(examine_link(&checkout, &git_dir)),
    }
    let hydration = dir.join(format!("{}{HYDRATION}", marker.target));
    if hydrate::state(&hydration) == HydrationState::Begun {
        findings.push(Finding::HydrationInterrupted { path: checkout });
    }
}

/// Looks at where the lane's objects come from, and says whether they are there.
fn examine_primary(
    checkout: &Utf8Path,
    marker: &Marker,
    targets: &[Target],
    findings: &mut Vec<Finding>,
) -> bool {
    let path = checkout.to_owned();
    let Some(target) = targets.iter().find(|target| target.name() == marker.target) else {
        let finding = if marker.primary_path.exists() {
            Finding::UnknownTarget { path, target: marker.target.clone() }
        } else {
            Finding::PrimaryGone { path, primary: marker.primary_path.clone() }
        };
        findings.push(finding);
        return marker.primary_path.exists();
    };
    if marker.primary != target.identity() {
        let primary = target.common_dir().to_owned();
        findings.push(Finding::OtherPrimary { path, primary });
        return false;
    }
    if marker.primary_path != target.common_dir() {
        findings.push(Finding::PrimaryMoved {
            path,
            was: marker.primary_path.clone(),
            now: target.common_dir().to_owned(),
        });
        return false;
    }
    true
}

/// A linked worktree and the primary must name each other; one that was copied is named by none.
fn examine_link(checkout: &Utf8Path, git_file: &Utf8Path) -> Option<Finding> {
    let home = leads_to(git_file);
    let back = fs::read_to_string(Utf8Path::new(&home).join("gitdir")).unwrap_or_default();
    let same = |left: &Utf8Path, right: &Utf8Path| matches!((left.canonicalize_utf8(), right.canonicalize_utf8()), (Ok(l), Ok(r)) if l == r);
    let named = same(Utf8Path::new(back.trim_end()), git_file);
    (!named).then(|| Finding::CopiedWorktree { path: checkout.to_owned(), home })
}

/// Where a `.git` that is no directory leads.
fn leads_to(git_file: &Utf8Path) -> String {
    if let Ok(target) = fs::read_link(git_file) {
        return target.to_string_lossy().into_owned();
    }
    let text = fs::read_to_string(git_file).unwrap_or_default();
    text.trim_end().strip_prefix("gitdir: ").unwrap_or("nowhere").to_owned()
}

/// The base, where it cannot be read.
fn missing_base(checkout: &Utf8Path, marker: &Marker) -> Option<String> {
    let base = marker.base.as_ref()?;
    let repo = open_repository(checkout).ok()?.to_thread_local();
    let found = history::find_commit(&repo, base).and_then(|id| history::tree_of(&repo, id));
    let there = found.is_ok_and(|tree| repo.find_tree(tree).is_ok());
    (!there).then(|| base.clone())
}

fn stale_locks(git_dir: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> + use<> {
    let entries = git_dir.read_dir_utf8().into_iter().flatten().flatten();
    entries.map(camino::Utf8DirEntry::into_path).filter(|path| path.extension() == Some("lock"))
}

/// What lies in a slot and belongs to no lane.
fn strays(dir: &Utf8Path, known: &[String], findings: &mut Vec<Finding>) -> io::Result<()> {
    for entry in dir.read_dir_utf8()? {
        let entry = entry?;
        let (name, path) = (entry.file_name().to_owned(), entry.path().to_owned());
        if name == RESCUED {
            if has_entries(&path) {
                findings.push(Finding::Rescued { path });
            }
        } else if name.ends_with(REMOVED) {
            findings.push(Finding::HalfRemoved { path });
        } else if entry.file_type()?.is_dir()
            && name != LOCK
            && ![HYDRATION, TMP, EXTRA].iter().any(|end| name.ends_with(end))
            && !known.contains(&name)
        {
            findings.push(Finding::NoMarker { path });
        }
    }
    Ok(())
}

fn has_entries(dir: &Utf8Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}
