//! What lanes there are, and how each stands. Nothing is changed by looking.

mod doctor;
mod usage;

use std::{
    fs::{File, TryLockError},
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    time::SystemTime,
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use thiserror::Error;

pub use doctor::{Finding, Remedy};
pub(crate) use usage::disk_usage;

use crate::{
    claim::{LOCK, Lanes, MARKER},
    extra::EXTRA,
    failure::LaneError,
    history,
    hydrate::{self, HYDRATION, HydrationState},
    marker::{Marker, Progress},
    names::TMP,
    provision::LaneKind,
    stage::{self, Stage},
    target::open_repository,
    walk::Walk,
};

/// A lane as it lies on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneReport {
    /// The slot.
    pub slot: u32,
    /// The name of the target.
    pub target: String,
    /// The checkout.
    pub path: Utf8PathBuf,
    /// What it is to the primary.
    pub kind: LaneKind,
    /// The common directory of the repository it was made from, where that was at the time.
    pub primary: Utf8PathBuf,
    /// How far its making got.
    pub state: LaneState,
    /// The commit of the last reset.
    pub base: Option<String>,
    /// The commit that is checked out.
    pub head: Option<String>,
    /// Whether files differ from that commit or are neither tracked nor ignored; none where that
    /// cannot be told by looking.
    pub dirty: Option<bool>,
    /// Who works in the slot.
    pub holder: Option<LaneHolder>,
    /// Whether what it needs beyond what git tracks is there.
    pub hydration: HydrationState,
    /// Bytes on disk: the checkout, and what belongs to it beside it.
    pub size: u64,
    /// When somebody last took the slot.
    pub used: Option<SystemTime>,
}

/// How far the making of a lane got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneState {
    /// It is whole.
    Ready,
    /// Its making was interrupted; the next claim completes it.
    Interrupted,
    /// There is a marker and no checkout; the next claim makes it anew.
    Gone,
}

/// Who works in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneHolder {
    /// The process, by its own word.
    pub pid: Option<u32>,
}

/// Why the lanes could not be looked at.
#[derive(Debug, Error)]
#[error("cannot look at {path}")]
pub struct InspectError {
    /// What was looked at.
    pub path: Utf8PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl Lanes {
    /// The lanes on disk, by slot and target. One whose marker cannot be read is left to
    /// [`doctor`](Self::doctor).
    pub fn list(&self) -> Result<Vec<LaneReport>, InspectError> {
        let mut lanes = Vec::new();
        for (slot, dir) in self.slot_dirs()? {
            for path in markers(&dir)? {
                if let Ok(Some(marker)) = Marker::load(&path)
                    && marker.slot == slot
                    && path.file_name() == Some(&format!("{}{MARKER}", marker.target))
                {
                    lanes.push((dir.clone(), marker));
                }
            }
        }
        // Each is a walk over a whole tree, and they have nothing to do with one another.
        std::thread::scope(|scope| {
            let looks: Vec<_> =
                lanes.iter().map(|(dir, marker)| scope.spawn(|| report(dir, marker))).collect();
            looks
                .into_iter()
                .map(|look| look.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    /// The slots that have a directory, in order.
    pub fn slots(&self) -> Result<Vec<u32>, InspectError> {
        Ok(self.slot_dirs()?.into_iter().map(|(slot, _)| slot).collect())
    }

    /// The slots with their directories, in order.
    pub(crate) fn slot_dirs(&self) -> Result<Vec<(u32, Utf8PathBuf)>, InspectError> {
        let entries = match self.root().read_dir_utf8() {
            Ok(entries) => entries,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed(self.root(), source)),
        };
        let mut slots = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| failed(self.root(), source))?;
            let number = entry.file_name().strip_prefix("lane-").and_then(|rest| rest.parse().ok());
            if let Some(slot) = number
                && self.slot_path(slot) == entry.path()
            {
                slots.push((slot, entry.into_path()));
            }
        }
        slots.sort_unstable();
        Ok(slots)
    }

    /// Who works in a slot, if anybody does.
    pub fn holder(&self, slot: u32) -> Result<Option<LaneHolder>, InspectError> {
        let path = self.slot_path(slot).join(LOCK);
        holder(&path).map_err(|source| failed(&path, source))
    }
}

fn failed(path: &Utf8Path, source: io::Error) -> InspectError {
    InspectError { path: path.to_owned(), source }
}

/// The markers in the directory of a slot, in order.
fn markers(dir: &Utf8Path) -> Result<Vec<Utf8PathBuf>, InspectError> {
    let mut markers = Vec::new();
    for entry in dir.read_dir_utf8().map_err(|source| failed(dir, source))? {
        let entry = entry.map_err(|source| failed(dir, source))?;
        if entry.file_name().ends_with(MARKER) {
            markers.push(entry.into_path());
        }
    }
    markers.sort_unstable();
    Ok(markers)
}

fn report(dir: &Utf8Path, marker: &Marker) -> Result<LaneReport, InspectError> {
    let path = dir.join(&marker.target);
    let there = fs::symlink_metadata(&path).is_ok();
    let state = match (there, marker.progress) {
        (false, _) => LaneState::Gone,
        (true, Progress::Preparing) => LaneState::Interrupted,
        (true, Progress::Ready) => LaneState::Ready,
    };
    // A repository that cannot be read is for the doctor to explain.
    let seen = match state {
        LaneState::Ready => look(dir, marker).unwrap_or_default(),
        LaneState::Interrupted | LaneState::Gone => Seen::default(),
    };
    let hydration = dir.join(format!("{}{HYDRATION}", marker.target));
    let beside = [TMP, EXTRA].map(|end| dir.join(format!("{}{end}", marker.target)));
    let mut size = 0;
    for part in [&path, &hydration].into_iter().chain(&beside) {
        size += disk_usage(part).map_err(|source| failed(part, source))?;
    }
    let lock = dir.join(LOCK);
    Ok(LaneReport {
        slot: marker.slot,
        target: marker.target.clone(),
        path,
        kind: marker.kind,
        primary: marker.primary_path.clone(),
        state,
        base: marker.base.clone(),
        head: seen.head,
        dirty: seen.dirty,
        holder: holder(&lock).map_err(|source| failed(&lock, source))?,
        hydration: hydrate::state(&hydration),
        size,
        used: fs::metadata(&lock).and_then(|found| found.modified()).ok(),
    })
}

/// Who holds the lock at `path`. To ask is to share it for a moment, which whoever takes it allows for.
fn holder(path: &Utf8Path) -> io::Result<Option<LaneHolder>> {
    let mut lock = match File::open(path) {
        Ok(lock) => lock,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(err),
    };
    match lock.try_lock_shared() {
        Ok(()) => lock.unlock().map(|()| None),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let pid = lock.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            Ok(Some(LaneHolder { pid }))
        }
        Err(TryLockError::Error(source)) => Err(source),
    }
}

/// What a look into a checkout shows.
#[derive(Debug, Default)]
struct Seen {
    head: Option<String>,
    dirty: Option<bool>,
}

/// Looks into a checkout without putting anything in order first, so nothing in it is obeyed: no
/// program is run, and files are only compared.
fn look(dir: &Utf8Path, marker: &Marker) -> Result<Seen, LaneError> {
    let checkout = dir.join(&marker.target);
    let repo = open_repository(&checkout)
        .map_err(|source| LaneError::objects("open the checkout", source))?
        .to_thread_local();
    let Some(head) = history::head(&repo)? else {
        return Ok(Seen::default());
    };
    let seen = Seen { head: Some(head.to_string()), dirty: None };
    // A walk takes the permission it needs at the root, which would be a change.
    let open =
        fs::metadata(&checkout).is_ok_and(|found| found.permissions().mode() & 0o700 == 0o700);
    if !open {
        return Ok(seen);
    }
    let index = Stage::new(dir, &marker.target).index_of(&repo, history::tree_of(&repo, head)?)?;
    let plain = !converts(&repo) && stage::attribute_files(&index).next().is_none();
    let walk = Walk::looking(&repo, &index, plain)
        .map_err(|source| LaneError::objects("read the ignore rules", source))?;
    let found = walk.run(&checkout)?;
    let dirty = if !found.untracked.is_empty() || !found.nested.is_empty() {
        Some(true)
    } else if found.different.is_empty() {
        Some(false)
    } else {
        // Where content is converted, only git can say whether a file with other stat data differs.
        plain.then_some(true)
    };
    Ok(Seen { dirty, ..seen })
}

fn converts(repo: &gix::Repository) -> bool {
    let config = repo.config_snapshot();
    ["core.autocrlf", "core.eol"].iter().any(|key| config.string(*key).is_some())
        || repo.common_dir().join("info/attributes").exists()
}
