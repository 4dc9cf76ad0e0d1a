//! Claiming lanes: one holder per slot, by a kernel lock.
//!
//! 1. *Lock* the slot. The kernel releases the lock when the holder dies, so a crash frees the slot.
//! 2. *Load the marker* beside the checkout. A directory without one, or of another slot or repository, is refused and
//!    left alone, so nothing of the user's is ever deleted.
//! 3. *Write the marker* with `preparing` before a checkout is created, so that an interrupted creation is recognised
//!    and completed by the next claim.
//! 4. *Create* the repository, or *move aside* one that processes in the lane broke; its content is kept.
//! 5. *Write the marker* with `ready`.

use std::{io, os::unix::fs::PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_dag::Pattern;
use pdca_process::{Cancel, FileLock, FileLockError};
use thiserror::Error;

use crate::{
    dir,
    failure::LaneError,
    hydrate::HydrationRecord,
    lane::Lane,
    marker::{FORMAT, LaneProgress, LaneRecord, Marker},
    owner::OwnerFile,
    provision::LaneKind,
    room::CheckoutRepository,
    stage::IndexPaths,
    target::Target,
    work_tree::WorkTree,
};

pub(crate) const LOCK: &str = "lock";
/// The directory for rescued files that could not be committed.
pub(crate) const RESCUED: &str = "rescued";
/// The suffix of the marker of a target.
pub(crate) const MARKER: &str = ".lane.json";
/// The suffix of the owner note of a target.
pub(crate) const OWNER: &str = ".occupant";

/// The directory of all lanes.
///
/// Lane 0 of target `app` is `lane-0/app/`. Beside it `lane-0/app.lane.json` records the repository it belongs to,
/// `lane-0/app.occupant` the owner of the work in it, and the holder of the lane locks `lane-0/lock`.
#[derive(Debug, Clone)]
pub struct Lanes {
    root: Utf8PathBuf,
    kind: LaneKind,
    cache: Vec<Pattern>,
    cancel: Option<Cancel>,
}

/// The owner note of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The slot number.
    pub slot: u32,
    /// The name of the target.
    pub target: String,
    /// The text of the note.
    pub text: Vec<u8>,
    /// The time at which it was written.
    pub written: std::time::SystemTime,
}

/// Failure to claim a lane. Nothing outside of our own lanes was changed.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// The lanes would lie inside another repository, which would take them for a part of itself.
    #[error("the lanes would be at {root}, inside the repository at {repository}")]
    InsideRepository {
        /// The directory of the lanes.
        root: Utf8PathBuf,
        /// The repository around it.
        repository: Utf8PathBuf,
    },
    /// The slot is held by another process.
    #[error("lane {slot} is in use{}", holder.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    Held {
        /// The slot number.
        slot: u32,
        /// The process id of the holder, if known.
        holder: Option<u32>,
    },
    /// The directory existed before and was not created as a lane.
    #[error("{path} was not created as a lane: {why}")]
    Foreign {
        /// The directory.
        path: Utf8PathBuf,
        /// The sign by which it is recognised.
        why: &'static str,
    },
    /// The directory was copied from another slot, so its marker is not true here.
    #[error("{path} is a copy of lane {slot}")]
    Copied {
        /// The directory.
        path: Utf8PathBuf,
        /// The slot that it was copied from.
        slot: u32,
    },
    /// The lane belongs to another repository.
    #[error("{path} is a lane of the repository that was at {primary}")]
    OtherPrimary {
        /// The directory.
        path: Utf8PathBuf,
        /// The former path of that repository.
        primary: Utf8PathBuf,
    },
    /// The lane exists and is of another kind than requested.
    #[error("{path} is a lane of kind {kind}; an existing lane keeps its kind")]
    OtherKind {
        /// The directory.
        path: Utf8PathBuf,
        /// The kind of the existing lane.
        kind: LaneKind,
    },
    /// The lane was created by a newer version.
    #[error("{path} has format {format}, and this version knows {FORMAT}")]
    Newer {
        /// The path of the marker.
        path: Utf8PathBuf,
        /// The format number of the marker.
        format: u32,
    },
    /// An operation of the system failed.
    #[error("cannot {doing} {path}")]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The path it was applied to.
        path: Utf8PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The checkout could not be created or put in order.
    #[error(transparent)]
    Lane(#[from] LaneError),
}

impl Lanes {
    /// Creates a handle for the lanes below `root`, which must be absolute and need not exist yet.
    pub fn new(root: impl Into<Utf8PathBuf>) -> Self {
        Self { root: root.into(), kind: LaneKind::default(), cache: Vec::new(), cancel: None }
    }

    /// Sets the kind of new lanes; existing ones keep theirs.
    #[must_use]
    pub fn of_kind(self, kind: LaneKind) -> Self {
        Self { kind, ..self }
    }

    /// Sets the caches: files that match these patterns survive [`Reset::Clean`](crate::Reset).
    #[must_use]
    pub fn with_cache(self, cache: impl IntoIterator<Item = Pattern>) -> Self {
        Self { cache: cache.into_iter().collect(), ..self }
    }

    /// Makes git operations in these lanes end on cancellation.
    #[must_use]
    pub fn ended_by(self, cancel: &Cancel) -> Self {
        Self { cancel: Some(cancel.clone()), ..self }
    }

    /// Returns the directory of all lanes.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Claims a slot and creates or reuses its checkout of the target.
    ///
    /// A new checkout is empty until its first [`reset`](Lane::reset). One whose creation was interrupted is completed.
    /// One that processes in it broke is moved unchanged to `rescued/` and created anew; see [`Lane::moved_aside`]. A
    /// directory that is no lane of ours is refused and left alone.
    pub fn claim(&self, slot: u32, target: &Target) -> Result<Lane, ClaimError> {
        // A repository around the lanes would be found by every tool that walks upwards, and its
        // `git clean -x` would remove them (decision 051).
        self.refuse_repository()?;
        let dir = self.slot_dir(slot);
        fs::create_dir_all(&dir).map_err(|source| failed("make", &dir, source))?;
        // Before anything is read: another process may be making or removing the lane.
        let lock = take(slot, &dir.join(LOCK))?;
        let record = LaneRecord::new(&dir, target.name());
        let marker = record.marker_path();
        let known = Marker::load(&marker).map_err(|source| failed("read", &marker, source))?;
        // The kind on disk counts: what `self.kind` says is for new lanes.
        let kind = known.as_ref().map_or(self.kind, |known| known.kind);
        let mut lane = Lane {
            work: WorkTree {
                room: CheckoutRepository::describe(target, &dir.join(target.name()), kind)?,
                stage: IndexPaths::new(&dir, target.name()),
                cancel: self.cancel.clone(),
            },
            record,
            aside: dir.join(RESCUED),
            owner: OwnerFile::at(dir.join(format!("{}{OWNER}", target.name()))),
            moved_aside: None,
            cache: self.cache.clone(),
            is_claimed: false,
            _lock: lock,
        };
        lane.room.clear_locks()?;
        lane.moved_aside = prepare(&mut lane, slot, target, known)?;
        lane.is_claimed = true;
        Ok(lane)
    }

    /// Locks a slot without looking at its content.
    pub(crate) fn take_slot(&self, slot: u32) -> Result<FileLock, ClaimError> {
        take(slot, &self.slot_dir(slot).join(LOCK))
    }

    /// Returns the owner notes of all lanes, as [`Lane::set_owner`] wrote them.
    ///
    /// Lanes without a readable note are left out. Takes no lock and changes nothing.
    pub fn notes(&self) -> io::Result<Vec<Note>> {
        let slots = match self.root.read_dir_utf8() {
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read?,
        };
        let mut notes = Vec::new();
        for dir in slots {
            let dir = dir?;
            let slot = dir.file_name().strip_prefix("lane-").and_then(|slot| slot.parse().ok());
            let (Some(slot), Ok(files)) = (slot, dir.path().read_dir_utf8()) else { continue };
            for file in files {
                let file = file?;
                let Some(target) = file.file_name().strip_suffix(OWNER) else { continue };
                let note = OwnerFile::at(file.path().to_owned()).load();
                let written = fs::symlink_metadata(file.path()).and_then(|found| found.modified());
                if let (Ok(Some(text)), Ok(written)) = (note, written) {
                    notes.push(Note { slot, target: target.to_owned(), text, written });
                }
            }
        }
        Ok(notes)
    }

    /// Removes the owner note of a lane whose checkout is gone. Returns true if the checkout is gone. No other process
    /// may use the lane meanwhile.
    pub fn forget_lost(&self, note: &Note) -> io::Result<bool> {
        let dir = self.slot_dir(note.slot);
        if fs::symlink_metadata(dir.join(&note.target)).is_ok() {
            return Ok(false);
        }
        match fs::remove_file(dir.join(format!("{}{OWNER}", note.target))) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
            Ok(()) | Err(_) => Ok(true),
        }
    }

    /// Fails if the root is inside any repository, the target's own included.
    fn refuse_repository(&self) -> Result<(), ClaimError> {
        let made = self.root.ancestors().find(|above| above.exists()).unwrap_or(&self.root);
        let real = made.canonicalize_utf8().map_err(|source| failed("find", made, source))?;
        let repository = real.ancestors().find(|above| {
            let bare = ["HEAD", "objects", "refs"].iter().all(|part| above.join(part).exists());
            bare || fs::symlink_metadata(above.join(".git")).is_ok()
        });
        match repository {
            Some(repository) => Err(ClaimError::InsideRepository {
                root: self.root.clone(),
                repository: repository.to_owned(),
            }),
            None => Ok(()),
        }
    }
}

fn failed(doing: &'static str, path: &Utf8Path, source: io::Error) -> ClaimError {
    ClaimError::Io { doing, path: path.to_owned(), source }
}

/// Takes the lock of a slot and writes the process id of the holder into it, for the error message of another process.
fn take(slot: u32, path: &Utf8Path) -> Result<FileLock, ClaimError> {
    FileLock::take(path, &format!("{}\n", std::process::id())).map_err(|error| match error {
        FileLockError::Held { text, .. } => ClaimError::Held { slot, holder: text.parse().ok() },
        error @ (FileLockError::CannotLock { .. } | FileLockError::Unusable { .. }) => {
            failed("lock", path, error.into())
        }
    })
}

/// Makes the checkout of a lane usable. Returns the path to which a broken one was moved.
fn prepare(
    lane: &mut Lane,
    slot: u32,
    target: &Target,
    known: Option<Marker>,
) -> Result<Option<Utf8PathBuf>, ClaimError> {
    let checkout = lane.room.checkout().to_owned();
    let there = fs::symlink_metadata(&checkout).is_ok();
    // `CheckoutRepository::forget` keeps the HEAD of a worktree under a rescue ref unless it is this commit.
    let base = known.as_ref().and_then(|known| known.base.clone());
    let mut moved = None;
    match known {
        // First of all: no other field of a newer marker means what this version takes it for.
        Some(marker) if marker.format > FORMAT => {
            return Err(ClaimError::Newer {
                path: lane.record.marker_path(),
                format: marker.format,
            });
        }
        Some(marker) if !marker.is_of(slot, target) => {
            return Err(not_ours(checkout, slot, target, marker));
        }
        None if there => {
            let why = match fs::symlink_metadata(checkout.join(".git")) {
                Ok(found) if found.is_file() => {
                    "it has no marker, and its `.git` leads to another checkout's"
                }
                Ok(_) | Err(_) => "it has no marker",
            };
            return Err(ClaimError::Foreign { path: checkout, why });
        }
        Some(marker) if there && marker.progress == LaneProgress::Ready => {
            lane.room.adopt()?;
            // A checkout that cannot even be examined counts as broken: a process in it may have changed its
            // permissions.
            if lane.room.is_whole().unwrap_or(false) {
                return Ok(None);
            }
            moved = Some(move_aside(&checkout, &lane.aside, target.name())?);
        }
        Some(_) if there => remove_interrupted(&checkout)?,
        Some(_) | None => {}
    }
    make(lane, Marker::new(slot, target, lane.kind()), base.as_deref())?;
    Ok(moved)
}

/// Creates the repository of a lane whose checkout does not exist.
fn make(lane: &Lane, marker: Marker, base: Option<&str>) -> Result<(), ClaimError> {
    let checkout = lane.room.checkout();
    let path = lane.record.marker_path();
    let write =
        |marker: &Marker| marker.save(&path).map_err(|source| failed("write", &path, source));
    // Marked as not ready before it is touched, so that a crash from here on is seen.
    write(&marker)?;
    // The note is about a checkout that is gone.
    lane.owner.forget().map_err(|source| failed("empty", checkout, source))?;
    HydrationRecord::of(&lane.record)
        .forget()
        .map_err(|source| failed("empty", checkout, source))?;
    // After the marker: from here on the checkout is known to be incomplete.
    lane.room.forget(base)?;
    lane.room.create()?;
    write(&Marker { progress: LaneProgress::Ready, ..marker })
}

impl Lane {
    /// Moves the checkout aside unchanged and creates it anew: for one in which no operation succeeds any more because
    /// of its content. Neither runs git nor looks into the old checkout. Returns its new path; `None` if it was already
    /// gone.
    ///
    /// 1. Rename the checkout. After a crash the next claim finds none and creates one.
    /// 2. Write the marker with `preparing`.
    /// 3. Create the repository, then write the marker with `ready`.
    pub fn renew(&self) -> Result<Option<Utf8PathBuf>, ClaimError> {
        let checkout = self.room.checkout();
        let read = |source| failed("read", &self.record.marker_path(), source);
        let known = self.record.require_marker().map_err(read)?;
        let is_there = fs::symlink_metadata(checkout).is_ok();
        let name = checkout.file_name().unwrap_or_default();
        // Before the marker: a marker with `preparing` beside the old checkout would let the next
        // claim take it for an interrupted creation.
        let moved = is_there.then(|| move_aside(checkout, &self.aside, name)).transpose()?;
        let base = known.base.clone();
        let marker =
            Marker { progress: LaneProgress::Preparing, base: None, branch: None, ..known };
        make(self, marker, base.as_deref())?;
        Ok(moved)
    }
}

/// Classifies a lane whose marker names another slot or repository.
fn not_ours(checkout: Utf8PathBuf, slot: u32, target: &Target, marker: Marker) -> ClaimError {
    if marker.slot != slot && marker.is_of(marker.slot, target) {
        return ClaimError::Copied { path: checkout, slot: marker.slot };
    }
    ClaimError::OtherPrimary { path: checkout, primary: marker.primary_path }
}

/// Moves whatever is at the path of a checkout to a free name in `aside`, without following a link.
fn move_aside(
    checkout: &Utf8Path,
    aside: &Utf8Path,
    name: &str,
) -> Result<Utf8PathBuf, ClaimError> {
    match fs::create_dir(aside) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed("make", aside, source));
        }
        Ok(()) | Err(_) => {}
    }
    let found = |path: &Utf8Path| {
        fs::symlink_metadata(path).map_err(|source| failed("look at", path, source))
    };
    // A link in its place would lead the broken checkout out of the lanes.
    if !found(aside)?.is_dir() {
        return Err(ClaimError::Foreign { path: aside.to_owned(), why: "it is not a directory" });
    }
    let broken = found(checkout)?;
    let mut permissions = broken.permissions();
    if broken.is_dir() && permissions.mode() & 0o700 != 0o700 {
        // Moving a directory into another one changes its `..`, which takes write permission in it.
        permissions.set_mode(permissions.mode() | 0o700);
        if fs::set_permissions(checkout, permissions.clone()).is_err() {
            dir::unfasten(checkout);
            fs::set_permissions(checkout, permissions)
                .map_err(|source| failed("open", checkout, source))?;
        }
    }
    let mut count = 1_u32;
    let mut to = aside.join(format!("{name}-{count}"));
    while fs::symlink_metadata(&to).is_ok() {
        count += 1;
        to = aside.join(format!("{name}-{count}"));
    }
    fs::rename(checkout, &to)
        .or_else(|source| {
            // A process with the right privileges can leave an immutable flag or a mount behind.
            dir::unfasten(checkout);
            fs::rename(checkout, &to).map_err(|_| source)
        })
        .map_err(|source| failed("move aside", checkout, source))?;
    Ok(to)
}

/// Removes the remains of an interrupted creation: a repository without any file.
fn remove_interrupted(checkout: &Utf8Path) -> Result<(), ClaimError> {
    let entries = checkout.read_dir_utf8().map_err(|source| failed("read", checkout, source))?;
    for entry in entries {
        let entry = entry.map_err(|source| failed("read", checkout, source))?;
        if entry.file_name() != ".git" {
            let why = "its creation was interrupted, and it contains unknown files";
            return Err(ClaimError::Foreign { path: checkout.to_owned(), why });
        }
    }
    dir::remove_at(checkout).map(drop).map_err(|source| failed("remove", checkout, source))
}
