//! Lanes, lent one at a time.

use std::{
    fs::{File, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::PermissionsExt as _,
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_dag::Pattern;
use pdca_process::{Cancel, lock_alone};
use thiserror::Error;

use crate::{
    dir,
    failure::LaneError,
    lane::Lane,
    marker::{FORMAT, Marker, Progress},
    owner::OwnerFile,
    provision::LaneKind,
    room::Room,
    stage::Stage,
    target::Target,
};

/// The lock of a slot.
pub(crate) const LOCK: &str = "lock";
/// The directory of what was rescued and could not be committed.
pub(crate) const RESCUED: &str = "rescued";
/// What follows the name of the target in the name of its marker.
pub(crate) const MARKER: &str = ".lane.json";
/// What follows it in the name of its occupant note.
pub(crate) const OWNER: &str = ".occupant";

/// The directory of all lanes.
///
/// Lane 0 of target `app` is `lane-0/app/`, with `lane-0/app.lane.json` saying whose it is,
/// `lane-0/app.occupant` saying what lies in it, and `lane-0/lock` held by whoever works there.
#[derive(Debug, Clone)]
pub struct Lanes {
    root: Utf8PathBuf,
    kind: LaneKind,
    cache: Vec<Pattern>,
    cancel: Option<Cancel>,
}

/// What was noted about the work in one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The slot.
    pub slot: u32,
    /// The name of the target whose checkout it is about.
    pub target: String,
    /// The note.
    pub text: Vec<u8>,
    /// When it was written.
    pub written: std::time::SystemTime,
}

/// Why a lane was not lent. Nothing that is not ours was changed.
#[derive(Debug, Error)]
pub enum ClaimError {
    /// A checkout inside another repository would be taken for a part of it.
    #[error("the lanes would be at {root}, inside the repository at {repository}")]
    InsideRepository {
        /// Where the lanes would be.
        root: Utf8PathBuf,
        /// The repository around it.
        repository: Utf8PathBuf,
    },
    /// Someone works in this slot.
    #[error("lane {slot} is in use{}", holder.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    Held {
        /// The slot.
        slot: u32,
        /// Who, where known.
        holder: Option<u32>,
    },
    /// The directory was there before us, or something else is in it.
    #[error("{path} is not a lane of ours: {why}")]
    Foreign {
        /// The directory.
        path: Utf8PathBuf,
        /// How it shows.
        why: &'static str,
    },
    /// The directory was copied from another slot, and what it says of itself is not true here.
    #[error("{path} is a copy of lane {slot}")]
    Copied {
        /// The directory.
        path: Utf8PathBuf,
        /// The slot that it is a copy of.
        slot: u32,
    },
    /// The lane belongs to another repository.
    #[error("{path} is a lane of the repository that was at {primary}")]
    OtherPrimary {
        /// The directory.
        path: Utf8PathBuf,
        /// Where that repository was.
        primary: Utf8PathBuf,
    },
    /// The lane is there, and is not what was asked for.
    #[error("{path} is a lane of kind {kind} and stays so")]
    OtherKind {
        /// The directory.
        path: Utf8PathBuf,
        /// What it is.
        kind: LaneKind,
    },
    /// The lane was made by a newer version.
    #[error("{path} has format {format}, and this version knows {FORMAT}")]
    Newer {
        /// The marker.
        path: Utf8PathBuf,
        /// Its format.
        format: u32,
    },
    /// The system would not.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: Utf8PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The checkout could not be made or put in order.
    #[error(transparent)]
    Lane(#[from] LaneError),
}

impl Lanes {
    /// Lanes below `root`, which need not exist yet and must be absolute.
    pub fn new(root: impl Into<Utf8PathBuf>) -> Self {
        Self { root: root.into(), kind: LaneKind::default(), cache: Vec::new(), cancel: None }
    }

    /// What a new lane is to be; one that is there stays what it is.
    #[must_use]
    pub fn of_kind(self, kind: LaneKind) -> Self {
        Self { kind, ..self }
    }

    /// The same with caches: what these patterns stand for outlives [`Reset::Clean`](crate::Reset).
    #[must_use]
    pub fn with_cache(self, cache: impl IntoIterator<Item = Pattern>) -> Self {
        Self { cache: cache.into_iter().collect(), ..self }
    }

    /// The same lanes, in which git ends when an end is asked for.
    #[must_use]
    pub fn ended_by(self, cancel: &Cancel) -> Self {
        Self { cancel: Some(cancel.clone()), ..self }
    }

    /// Where the lanes are.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// Takes a slot and makes or reuses its checkout of the target.
    ///
    /// A fresh checkout is empty until its first [`reset`](Lane::reset). One whose making was
    /// interrupted is made again. One that is ours and was broken by what ran in it is moved to
    /// `rescued/`, as it is, and made anew; [`Lane::moved_aside`] says so. A directory that is not
    /// ours is refused and left alone.
    pub fn claim(&self, slot: u32, target: &Target) -> Result<Lane, ClaimError> {
        self.refuse_repository()?;
        let dir = self.slot_path(slot);
        fs::create_dir_all(&dir).map_err(|source| failed("make", &dir, source))?;
        let lock = take(slot, &dir.join(LOCK))?;
        let marker = self.marker_path(slot, target);
        let known = Marker::load(&marker).map_err(|source| failed("read", &marker, source))?;
        let kind = known.as_ref().map_or(self.kind, |known| known.kind);
        let mut lane = Lane {
            room: Room::describe(target, &dir.join(target.name()), kind)?,
            stage: Stage::new(&dir, target.name()),
            aside: dir.join(RESCUED),
            marker,
            owner: OwnerFile::at(dir.join(format!("{}{OWNER}", target.name()))),
            moved_aside: None,
            cache: self.cache.clone(),
            cancel: self.cancel.clone(),
            lock,
        };
        lane.moved_aside = prepare(&mut lane, slot, target, known)?;
        Ok(lane)
    }

    /// Takes a slot and looks at nothing in it.
    pub(crate) fn take_slot(&self, slot: u32) -> Result<File, ClaimError> {
        take(slot, &self.slot_path(slot).join(LOCK))
    }

    /// Where the checkout of a target is in a slot.
    pub(crate) fn checkout_path(&self, slot: u32, target: &Target) -> Utf8PathBuf {
        self.slot_path(slot).join(target.name())
    }

    /// What says whose that checkout is.
    pub(crate) fn marker_path(&self, slot: u32, target: &Target) -> Utf8PathBuf {
        self.slot_path(slot).join(format!("{}{MARKER}", target.name()))
    }

    pub(crate) fn slot_path(&self, slot: u32) -> Utf8PathBuf {
        self.root.join(format!("lane-{slot}"))
    }

    /// The notes about whose work lies in which lane, as [`Lane::set_owner`] wrote them.
    ///
    /// A slot without one, or with one that cannot be read, is not among them. Takes nothing and
    /// changes nothing.
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

    /// Forgets whose work lay in a lane whose checkout is gone; says whether it was. Nobody else may be at
    /// work there.
    pub fn forget_lost(&self, note: &Note) -> io::Result<bool> {
        let dir = self.slot_path(note.slot);
        if fs::symlink_metadata(dir.join(&note.target)).is_ok() {
            return Ok(false);
        }
        match fs::remove_file(dir.join(format!("{}{OWNER}", note.target))) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
            Ok(()) | Err(_) => Ok(true),
        }
    }

    /// Refuses a root that is inside any repository, the target's own among them.
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

/// Takes the lock of a slot, and writes who has it.
fn take(slot: u32, path: &Utf8Path) -> Result<File, ClaimError> {
    let open = File::options().read(true).write(true).create(true).truncate(false).open(path);
    let mut lock = open.map_err(|source| failed("open", path, source))?;
    match lock_alone(&lock) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let holder = lock.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(ClaimError::Held { slot, holder });
        }
        Err(TryLockError::Error(source)) => return Err(failed("lock", path, source)),
    }
    let noted = lock
        .set_len(0)
        .and_then(|()| lock.rewind())
        .and_then(|()| writeln!(lock, "{}", std::process::id()));
    noted.map_err(|source| failed("write", path, source))?;
    Ok(lock)
}

/// Brings the checkout of a lane to where it can be entered; says where a broken one went.
fn prepare(
    lane: &mut Lane,
    slot: u32,
    target: &Target,
    known: Option<Marker>,
) -> Result<Option<Utf8PathBuf>, ClaimError> {
    let checkout = lane.room.checkout().to_owned();
    let there = fs::symlink_metadata(&checkout).is_ok();
    let base = known.as_ref().and_then(|known| known.base.clone());
    let mut moved = None;
    match known {
        Some(marker) if marker.format > FORMAT => {
            return Err(ClaimError::Newer { path: lane.marker.clone(), format: marker.format });
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
        Some(marker) if there && marker.progress == Progress::Ready => {
            // One that cannot even be looked at is not whole: whatever ran there may have closed it.
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

/// Makes the repository of a lane in whose place there is nothing.
fn make(lane: &Lane, marker: Marker, base: Option<&str>) -> Result<(), ClaimError> {
    let checkout = lane.room.checkout();
    let write = |marker: &Marker| {
        marker.save(&lane.marker).map_err(|source| failed("write", &lane.marker, source))
    };
    write(&marker)?;
    // What the note says lay in a checkout that is gone.
    lane.owner.forget().map_err(|source| failed("empty", checkout, source))?;
    lane.forget_hydration().map_err(|source| failed("empty", checkout, source))?;
    lane.room.forget(base)?;
    lane.room.create()?;
    write(&Marker { progress: Progress::Ready, ..marker })
}

impl Lane {
    /// Moves the checkout aside as it is, without git and without looking into it, and makes it anew: for one in which
    /// nothing can be done any more because of what was left there. Says where the old one went; none where there was
    /// nothing any more.
    ///
    /// 1. The rename. A crash after it finds no checkout, and the next claim makes one.
    /// 2. The marker says that a checkout is being made.
    /// 3. The repository is made, and the marker says so.
    pub fn renew(&self) -> Result<Option<Utf8PathBuf>, ClaimError> {
        let checkout = self.room.checkout();
        let read = |source| failed("read", &self.marker, source);
        let known = Marker::load(&self.marker).map_err(read)?;
        let known = known.ok_or_else(|| read(io::ErrorKind::NotFound.into()))?;
        let is_there = fs::symlink_metadata(checkout).is_ok();
        let name = checkout.file_name().unwrap_or_default();
        let moved = is_there.then(|| move_aside(checkout, &self.aside, name)).transpose()?;
        let base = known.base.clone();
        let marker = Marker { progress: Progress::Preparing, base: None, branch: None, ..known };
        make(self, marker, base.as_deref())?;
        Ok(moved)
    }
}

/// Whose a lane is that is not the one asked for.
fn not_ours(checkout: Utf8PathBuf, slot: u32, target: &Target, marker: Marker) -> ClaimError {
    if marker.slot != slot && marker.is_of(marker.slot, target) {
        return ClaimError::Copied { path: checkout, slot: marker.slot };
    }
    ClaimError::OtherPrimary { path: checkout, primary: marker.primary_path }
}

/// Moves what is in the place of a checkout to a free name in `aside`; no link is followed.
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
    if !found(aside)?.is_dir() {
        return Err(ClaimError::Foreign { path: aside.to_owned(), why: "it is not a directory" });
    }
    let broken = found(checkout)?;
    let mut permissions = broken.permissions();
    if broken.is_dir() && permissions.mode() & 0o700 != 0o700 {
        // A directory can be moved to another only by whoever may write in it.
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
            // Whoever may set these may also leave them: the flag that forbids every change, or a mount.
            dir::unfasten(checkout);
            fs::rename(checkout, &to).map_err(|_| source)
        })
        .map_err(|source| failed("move aside", checkout, source))?;
    Ok(to)
}

/// Removes what an interrupted creation left, which is a repository without any file.
fn remove_interrupted(checkout: &Utf8Path) -> Result<(), ClaimError> {
    let entries = checkout.read_dir_utf8().map_err(|source| failed("read", checkout, source))?;
    for entry in entries {
        let entry = entry.map_err(|source| failed("read", checkout, source))?;
        if entry.file_name() != ".git" {
            let why = "its making was interrupted, and it has files that we did not put there";
            return Err(ClaimError::Foreign { path: checkout.to_owned(), why });
        }
    }
    dir::remove_at(checkout).map(drop).map_err(|source| failed("remove", checkout, source))
}
