//! Who may change refs, and the change itself.
//!
//! `refs/pdca/fence` names a blob with an epoch and its holder. Whoever takes over raises the
//! epoch, and every change of refs looks at it first: a driver that was taken over and wakes up
//! again finds another epoch and is refused.
//!
//! Looking and changing are one step because both happen under one kernel lock, on a file in the
//! repository's common directory. A transaction of refs alone would not do: a ref that is looked
//! at and not changed is not kept locked until the others have moved. The kernel gives the lock
//! back when its holder dies, so it is never stale; git's own lock files can be, and one of those
//! that has exactly the value in it that we were about to write is ours and is removed. So is one of any
//! ref below `refs/pdca/` that outlives our patience: nobody but us writes those, we hold the kernel lock,
//! and git locks them for an instant only, when it packs refs.

use std::{
    fs::{File, TryLockError},
    thread::sleep,
    time::{Duration, Instant},
};

use fs_err as fs;
use gix::{
    ObjectId,
    bstr::ByteSlice as _,
    refs::{
        FullName, Target,
        transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog},
    },
};
use tracing::debug;

use crate::{
    git::failure::{RefError, StoreError},
    git::name::Run,
    git::store::Store,
};

/// The ref that holds the epoch.
const FENCE: &str = "refs/pdca/fence";
/// Where nobody but us writes refs.
const OWN: &str = "refs/pdca/";
/// The file whose kernel lock is held while refs change.
const LOCK: &str = "pdca-fence.lock";
/// How long another driver's change may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a lock of git that somebody else holds is waited for: longer than a git command that moves a
/// ref takes, and shorter than others wait for us.
const GIT_PATIENCE: Duration = Duration::from_secs(3);
/// How long to wait between two looks at the lock.
const LOOK: Duration = Duration::from_millis(5);

/// The right to change refs, as long as nobody else takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    epoch: u64,
    holder: Run,
    object: ObjectId,
}

/// Whether a step that may be repeated after a crash changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It did.
    Made,
    /// The same was there already.
    Recognised,
}

/// What a reader of the reflog is told.
#[derive(Debug, Clone, Copy)]
pub struct Log<'a> {
    /// What was done.
    pub message: &'a str,
    /// When, in seconds since 1970. The caller has the clock.
    pub seconds: i64,
}

/// One ref to move, and where it must be before.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    pub(crate) name: String,
    /// None where it must not exist.
    pub(crate) from: Option<ObjectId>,
    /// None where it is to be removed.
    pub(crate) to: Option<ObjectId>,
}

impl Fence {
    /// Takes over: raises the epoch above the present one and above every one `seen` before.
    pub fn take(store: &Store, holder: &Run, seen: u64) -> Result<Self, RefError> {
        let _held = lock(store)?;
        let found = Self::current(store)?;
        let epoch = found.as_ref().map_or(0, |fence| fence.epoch).max(seen).saturating_add(1);
        let text = format!("epoch {epoch}\nholder {holder}\n");
        let object = store
            .repo()
            .write_blob(text)
            .map_err(|source| StoreError::objects("write the fence", source))?
            .detach();
        let from = found.map(|fence| fence.object);
        let raise = Move { name: FENCE.to_owned(), from, to: Some(object) };
        apply(store, &[raise], Log { message: "pdca: take over", seconds: 0 })?;
        Ok(Self { epoch, holder: holder.clone(), object })
    }

    /// The fence as it is on disk now.
    pub fn current(store: &Store) -> Result<Option<Self>, StoreError> {
        let Some(object) = ref_at(store, FENCE)? else {
            return Ok(None);
        };
        let blob = store.repo().find_blob(object).map(|mut blob| blob.take_data());
        let text = blob.map_err(|source| StoreError::objects("read the fence", source))?;
        let form = || StoreError::Form { what: FENCE.to_owned() };
        let text = text.to_str().map_err(|_| form())?;
        let (epoch, holder) = text
            .strip_prefix("epoch ")
            .and_then(|rest| rest.strip_suffix('\n'))
            .and_then(|rest| rest.split_once("\nholder "))
            .ok_or_else(form)?;
        let epoch = epoch.parse().map_err(|_| form())?;
        let holder = holder.parse().map_err(|_| form())?;
        Ok(Some(Self { epoch, holder, object }))
    }

    /// The epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The run that took it.
    pub fn holder(&self) -> &Run {
        &self.holder
    }

    /// Moves refs, all of them from exactly where they must be, or none.
    pub(crate) fn move_refs(
        &self,
        store: &Store,
        moves: &[Move],
        log: Log<'_>,
    ) -> Result<(), RefError> {
        let _held = lock(store)?;
        self.verify(store)?;
        apply(store, moves, log)
    }

    /// Looks whether nobody took over.
    pub fn verify(&self, store: &Store) -> Result<(), RefError> {
        let found = Self::current(store)?;
        if found.as_ref() == Some(self) {
            return Ok(());
        }
        Err(RefError::Fenced { held: self.epoch, found: found.map(|fence| fence.epoch) })
    }
}

/// Takes the kernel lock; it is given back when the file is dropped.
fn lock(store: &Store) -> Result<File, RefError> {
    let path = store.common_dir().join(LOCK);
    let failed = |source| StoreError::io("lock", &path, source);
    let file = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(failed)?;
    let file = file.into_parts().0;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(source)) => return Err(failed(source).into()),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(RefError::FenceBusy { path });
            }
            Err(TryLockError::WouldBlock) => sleep(LOOK),
        }
    }
}

/// Moves refs under the lock. A lock file of ours that a crash left is removed, once.
fn apply(store: &Store, moves: &[Move], log: Log<'_>) -> Result<(), RefError> {
    let edits = || moves.iter().map(|step| edit(step, log)).collect::<Result<Vec<_>, _>>();
    let time = format!("{} +0000", log.seconds);
    let who = gix::actor::SignatureRef {
        name: "pdca".into(),
        email: "pdca@pdca.invalid".into(),
        time: &time,
    };
    let repo = store.repo();
    let mut result = repo.edit_references_as(edits()?, Some(who));
    if result.is_err() && remove_own_locks(store, moves)? {
        result = repo.edit_references_as(edits()?, Some(who));
    }
    let deadline = Instant::now() + GIT_PATIENCE;
    let is_locked = || moves.iter().any(|step| lock_file(store, &step.name).exists());
    while result.is_err() && is_locked() && Instant::now() < deadline {
        sleep(LOOK);
        result = repo.edit_references_as(edits()?, Some(who));
    }
    if result.is_err() && remove_left_locks(store, moves)? {
        result = repo.edit_references_as(edits()?, Some(who));
    }
    let Err(source) = result else {
        for Move { name, from, to } in moves {
            debug!(name, ?from, ?to, "moved");
        }
        return sync_refs(store, moves);
    };
    for step in moves {
        let actual = ref_at(store, &step.name)?;
        if actual != step.from && actual != step.to {
            let (name, expected) = (step.name.clone(), step.from);
            return Err(RefError::Moved { name, expected, actual });
        }
        let path = lock_file(store, &step.name);
        if path.exists() {
            return Err(RefError::Locked { path });
        }
    }
    Err(StoreError::objects("move refs", source).into())
}

fn edit(step: &Move, log: Log<'_>) -> Result<RefEdit, RefError> {
    let bad = || RefError::Name { name: step.name.clone() };
    let name = FullName::try_from(step.name.as_str()).map_err(|_| bad())?;
    let expected = match step.from {
        Some(from) => PreviousValue::MustExistAndMatch(Target::Object(from)),
        None => PreviousValue::MustNotExist,
    };
    let change = match step.to {
        Some(to) => Change::Update {
            log: LogChange {
                mode: RefLog::AndReference,
                force_create_reflog: false,
                message: log.message.into(),
            },
            expected,
            new: Target::Object(to),
        },
        None => Change::Delete { expected, log: RefLog::AndReference },
    };
    Ok(RefEdit { change, name, deref: false })
}

/// Removes lock files with exactly the value in them that is to be written, and says whether
/// there were any. We hold the kernel lock, so nobody of ours is still at work on them.
fn remove_own_locks(store: &Store, moves: &[Move]) -> Result<bool, StoreError> {
    let mut removed = false;
    for step in moves {
        let path = lock_file(store, &step.name);
        let Ok(Some(text)) = pdca_state::files::read_bounded(&path, 1024) else {
            continue;
        };
        let ours = step.to.is_some_and(|to| text == format!("{to}\n").as_bytes());
        // Whoever was killed while taking over left an epoch of its own.
        if ours || (step.name == FENCE && names_an_epoch(store, &text)) {
            fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, source))?;
            removed = true;
        }
    }
    Ok(removed)
}

/// Removes lock files of refs that nobody but us writes, and says whether there were any. Whoever was killed
/// may have been about to write something else than we are.
fn remove_left_locks(store: &Store, moves: &[Move]) -> Result<bool, StoreError> {
    let mut removed = false;
    for step in moves.iter().filter(|step| step.name.starts_with(OWN)) {
        let path = lock_file(store, &step.name);
        if path.is_file() {
            fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, source))?;
            removed = true;
        }
    }
    Ok(removed)
}

/// Whether this is the id of a blob with an epoch in it, which nobody else writes.
fn names_an_epoch(store: &Store, text: &[u8]) -> bool {
    let id = ObjectId::from_hex(text.trim_ascii());
    let repo = store.repo();
    let blob = id.ok().and_then(|id| repo.find_blob(id).ok());
    blob.is_some_and(|blob| blob.data.starts_with(b"epoch "))
}

/// Makes the new values survive a loss of power: the files, and the names of the files.
fn sync_refs(store: &Store, moves: &[Move]) -> Result<(), RefError> {
    for step in moves {
        let path = store.common_dir().join(&step.name);
        let failed = |source| StoreError::io("sync", &path, source);
        if step.to.is_some() && path.exists() {
            fs::File::open(&path).and_then(|file| file.sync_all()).map_err(failed)?;
        }
        if let Some(dir) = path.parent().filter(|dir| dir.exists()) {
            fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
        }
    }
    Ok(())
}

fn lock_file(store: &Store, name: &str) -> camino::Utf8PathBuf {
    store.common_dir().join(format!("{name}.lock"))
}

/// What a ref names, without going through tags; none where there is no such ref.
pub(crate) fn ref_at(store: &Store, name: &str) -> Result<Option<ObjectId>, StoreError> {
    let repo = store.repo();
    let found = repo.try_find_reference(name);
    let found = found.map_err(|source| StoreError::objects("read a ref", source))?;
    Ok(found.and_then(|found| found.try_id().map(gix::Id::detach)))
}
