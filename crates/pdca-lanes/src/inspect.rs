//! Reports on the lanes that exist. Reading them changes nothing.

mod doctor;
mod usage;

use std::{io, os::unix::fs::PermissionsExt as _, time::SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_process::FileLock;
use thiserror::Error;

pub use doctor::{LaneFinding, Remedy};
pub(crate) use usage::disk_usage;

use crate::{
    claim::{LOCK, Lanes, MARKER},
    failure::LaneError,
    history,
    hydrate::{HYDRATION, HydrationRecord, HydrationState},
    import::Untrusted,
    marker::{LaneProgress, Marker},
    names::TMP,
    provision::LaneKind,
    room::REPOSITORY,
    stage::{self, IndexPaths},
    target::open_repository,
    walk::TreeWalk,
};

/// The state of a lane on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneReport {
    /// The slot number.
    pub slot: u32,
    /// The name of the target.
    pub target: String,
    /// The path of the checkout.
    pub path: Utf8PathBuf,
    /// The relation to the primary.
    pub kind: LaneKind,
    /// The common directory of the repository it was created from, as of that time.
    pub primary: Utf8PathBuf,
    /// The progress of its creation.
    pub state: LaneState,
    /// The commit of the last reset.
    pub base: Option<String>,
    /// The commit that is checked out.
    pub head: Option<String>,
    /// True if files differ from that commit or are neither tracked nor ignored; `None` if only git could tell.
    pub dirty: Option<bool>,
    /// The process that works in the slot.
    pub holder: Option<LaneHolder>,
    /// The progress of its hydration.
    pub hydration: HydrationState,
    /// Bytes on disk of the checkout and the files that belong to it.
    pub size: u64,
    /// The time of the last claim of the slot.
    pub used: Option<SystemTime>,
}

/// The progress of the creation of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LaneState {
    /// The lane is complete.
    Ready,
    /// The creation was interrupted; the next claim completes it.
    Interrupted,
    /// There is a marker but no checkout; the next claim creates one.
    Gone,
}

/// The holder of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneHolder {
    /// The process id, as written into the lock file by the holder.
    pub pid: Option<u32>,
}

/// Failure to inspect the lanes.
#[derive(Debug, Error)]
#[error("cannot inspect {path}")]
#[non_exhaustive]
pub struct InspectError {
    /// The path that could not be read.
    pub path: Utf8PathBuf,
    /// The error of the system.
    #[source]
    pub source: io::Error,
}

impl LaneReport {
    /// Returns the repository in which the driver works on the checkout.
    pub fn repository(&self) -> Utf8PathBuf {
        repository_of(&self.path, self.kind)
    }
}

/// Returns the repository in which the driver works on the checkout of a target in the directory of a slot.
pub fn repository_in(slot: &Utf8Path, target: &str, kind: LaneKind) -> Utf8PathBuf {
    repository_of(&slot.join(target), kind)
}

/// Returns the repository in which the driver works on a checkout: a worktree's is found through its `.git` file.
pub(crate) fn repository_of(checkout: &Utf8Path, kind: LaneKind) -> Utf8PathBuf {
    match kind {
        LaneKind::Reference => format!("{checkout}{REPOSITORY}").into(),
        LaneKind::Worktree => checkout.to_owned(),
    }
}

impl Lanes {
    /// Returns the lanes on disk, ordered by slot and target. Those with an unreadable marker are left to
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
        // Each report walks a whole tree, and they are independent of one another.
        std::thread::scope(|scope| {
            let looks: Vec<_> =
                lanes.iter().map(|(dir, marker)| scope.spawn(|| report(dir, marker))).collect();
            looks
                .into_iter()
                .map(|look| look.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    /// Returns the slots that have a directory, in order.
    pub fn slots(&self) -> Result<Vec<u32>, InspectError> {
        Ok(self.slot_dirs()?.into_iter().map(|(slot, _)| slot).collect())
    }

    /// Returns the slots with their directories, in order.
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
                // `lane-01` also parses as slot 1, but no lane of ours has that name.
                && self.slot_dir(slot) == entry.path()
            {
                slots.push((slot, entry.into_path()));
            }
        }
        slots.sort_unstable();
        Ok(slots)
    }

    /// Returns the holder of a slot, if it is held.
    pub fn holder(&self, slot: u32) -> Result<Option<LaneHolder>, InspectError> {
        let path = self.slot_dir(slot).join(LOCK);
        holder(&path).map_err(|source| failed(&path, source))
    }
}

/// Returns the directory of the slot that `path` lies in, if it lies in a lane of ours: in a checkout, or in a
/// directory beside one. Children write there, so nothing there may be taken for a person's.
pub fn slot_around(path: &Utf8Path) -> Option<&Utf8Path> {
    let is_slot = |dir: &&Utf8Path| {
        let number = dir.file_name().and_then(|name| name.strip_prefix("lane-"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
            && markers(dir).is_ok_and(|markers| !markers.is_empty())
    };
    // The outermost: a child can make a directory in its checkout look like a slot, but not one above it.
    path.ancestors().filter(is_slot).last()
}

fn failed(path: &Utf8Path, source: io::Error) -> InspectError {
    InspectError { path: path.to_owned(), source }
}

/// Returns the markers in the directory of a slot, in order.
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
        (true, LaneProgress::Preparing) => LaneState::Interrupted,
        (true, LaneProgress::Ready) => LaneState::Ready,
    };
    // An unreadable repository is explained by `doctor`.
    let seen = match state {
        LaneState::Ready => look(dir, marker).unwrap_or_default(),
        LaneState::Interrupted | LaneState::Gone => Seen::default(),
    };
    let hydration = dir.join(format!("{}{HYDRATION}", marker.target));
    let beside = [TMP, REPOSITORY].map(|end| dir.join(format!("{}{end}", marker.target)));
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
        hydration: HydrationRecord::at(hydration).state(),
        size,
        // Each claim writes its process id into the lock file.
        used: fs::metadata(&lock).and_then(|found| found.modified()).ok(),
    })
}

/// Returns the holder of the lock at `path`. Asking takes no lock.
fn holder(path: &Utf8Path) -> io::Result<Option<LaneHolder>> {
    let holder = FileLock::holder(path)?;
    Ok(holder.map(|text| LaneHolder { pid: text.parse().ok() }))
}

/// The state of a checkout, as far as it can be read.
#[derive(Debug, Default)]
struct Seen {
    head: Option<String>,
    dirty: Option<bool>,
}

/// Examines a checkout without restoring its configuration first. So nothing in it is trusted: no program is run, and
/// files are only compared.
fn look(dir: &Utf8Path, marker: &Marker) -> Result<Seen, LaneError> {
    let checkout = dir.join(&marker.target);
    let repo = open_repository(&repository_of(&checkout, marker.kind))
        .map_err(|source| LaneError::objects("open the checkout", source))?
        .to_thread_local();
    let Some(head) = history::head(&repo)? else {
        return Ok(Seen::default());
    };
    let left = match marker.kind {
        LaneKind::Reference => Untrusted(&checkout.join(".git")).head()?,
        LaneKind::Worktree => None,
    };
    let seen = Seen { head: Some(left.unwrap_or(head).to_string()), dirty: None };
    // A walk gives itself permission at the root, which would be a change.
    let open =
        fs::metadata(&checkout).is_ok_and(|found| found.permissions().mode() & 0o700 == 0o700);
    if !open {
        return Ok(seen);
    }
    let index =
        IndexPaths::new(dir, &marker.target).index_of(&repo, history::tree_of(&repo, head)?)?;
    let plain = !converts(&repo) && stage::attribute_files(&index).next().is_none();
    let walk = TreeWalk::looking(&repo, &index, plain)
        .map_err(|source| LaneError::objects("read the ignore rules", source))?;
    let found = walk.run(&checkout)?;
    let dirty = if !found.untracked.is_empty() || !found.nested.is_empty() {
        Some(true)
    } else if found.different.is_empty() {
        Some(false)
    } else {
        // With converted content only git can tell whether a file with other stat data differs.
        plain.then_some(true)
    };
    Ok(Seen { dirty, ..seen })
}

fn converts(repo: &gix::Repository) -> bool {
    let config = repo.config_snapshot();
    ["core.autocrlf", "core.eol"].iter().any(|key| config.string(*key).is_some())
        || repo.common_dir().join("info/attributes").exists()
}
