//! The fence: only the latest driver may change refs.
//!
//! `refs/pdca/fence` names a blob with an epoch and its holder.
//!
//! # Protocol
//! 1. *Take*: a driver that takes over raises the epoch.
//! 2. *Lock*: each ref update holds a kernel lock on a file in the common directory. Comparing the epoch and
//!    moving the refs are thereby one step. A ref transaction alone is not enough: it does not keep a ref
//!    locked that is only compared. The kernel releases the lock when its holder dies, so it is never stale.
//! 3. *Compare* the epoch. A driver that was superseded and wakes up finds another one and is refused.
//! 4. *Move* every ref from exactly the expected value, or none.
//! 5. *Sync* the refs, so that they survive a power loss.
//!
//! Git's own lock files can be stale. One that contains exactly the value that is about to be written is ours, left
//! by a crash, and is removed. So is one of a ref below `refs/pdca/` that outlasts [`GIT_PATIENCE`]: only this crate
//! writes those refs, the kernel lock is held, and git itself locks them only for an instant to pack them.

use std::{
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
use pdca_process::{FileLock, FileLockError};
use tracing::debug;

use crate::{
    git::failure::{RefError, StoreError},
    git::name::RefNamespace,
    git::store::Store,
};

/// The ref that names the epoch.
const FENCE: &str = "refs/pdca/fence";
/// The prefix of refs that only this crate writes.
const OWN: &str = "refs/pdca/";
/// The file whose kernel lock is held while refs change.
const LOCK: &str = "pdca-fence.lock";
/// The time after which another driver's ref update counts as stuck.
/// The longest step under the lock waits `GIT_PATIENCE` for a lock file of git and then syncs a few files.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time to wait for a lock file of git: longer than a git command needs to move a ref, and shorter than
/// [`PATIENCE`], with which other drivers wait for us.
const GIT_PATIENCE: Duration = Duration::from_secs(3);
/// The pause between two tries.
const LOOK: Duration = Duration::from_millis(5);

/// The right to change refs, until another driver takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    epoch: u64,
    holder: RefNamespace,
    object: ObjectId,
}

/// The effect of a step that may be repeated after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepEffect {
    Made,
    /// The same state was there already.
    Recognised,
}

/// The entry for the reflog.
#[derive(Debug, Clone, Copy)]
pub struct ReflogEntry<'a> {
    pub message: &'a str,
    /// Seconds since 1970. The caller has the clock.
    pub seconds: i64,
}

/// An update of one ref.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    pub(crate) name: String,
    /// The expected value; `None` if the ref must not exist.
    pub(crate) from: Option<ObjectId>,
    /// The new value; `None` to delete the ref.
    pub(crate) to: Option<ObjectId>,
}

impl Fence {
    /// Takes the fence: raises the epoch above the current one and above `seen`.
    pub fn take(store: &Store, holder: &RefNamespace, seen: u64) -> Result<Self, RefError> {
        // Read and raised under one lock, so that two drivers cannot take the same epoch.
        let _held = lock(store)?;
        let found = Self::current(store)?;
        // `seen` comes from the journal. It keeps the epoch growing where the ref was lost, for example with a
        // restored repository.
        let epoch = found.as_ref().map_or(0, |fence| fence.epoch).max(seen).saturating_add(1);
        let text = format!("epoch {epoch}\nholder {holder}\n");
        let object = store
            .repo()
            .write_blob(text)
            .map_err(|source| StoreError::objects("write the fence", source))?
            .detach();
        let from = found.map(|fence| fence.object);
        let raise = Move { name: FENCE.to_owned(), from, to: Some(object) };
        // By default git keeps no reflog below `refs/pdca/`, so the time is not used.
        apply(store, &[raise], ReflogEntry { message: "pdca: take over", seconds: 0 })?;
        Ok(Self { epoch, holder: holder.clone(), object })
    }

    /// Reads the current fence.
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

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the run that took the fence.
    pub fn holder(&self) -> &RefNamespace {
        &self.holder
    }

    /// Moves all refs from exactly their expected values, or none of them.
    pub(crate) fn move_refs(
        &self,
        store: &Store,
        moves: &[Move],
        log: ReflogEntry<'_>,
    ) -> Result<(), RefError> {
        // Under the lock, so that no other driver takes the fence between the look and the move.
        let _held = lock(store)?;
        self.verify(store)?;
        apply(store, moves, log)
    }

    /// Fails if another driver has taken the fence.
    pub fn verify(&self, store: &Store) -> Result<(), RefError> {
        let found = Self::current(store)?;
        // The holder is compared too: the epoch alone would be equal if the ref was lost and taken anew.
        if found.as_ref() == Some(self) {
            return Ok(());
        }
        Err(RefError::Fenced { held: self.epoch, found: found.map(|fence| fence.epoch) })
    }
}

/// Takes the kernel lock, which is released on drop. A process that can only read the repository cannot hold it.
fn lock(store: &Store) -> Result<FileLock, RefError> {
    let path = store.common_dir().join(LOCK);
    let failed = |source| StoreError::io("lock", &path, source);
    let deadline = Instant::now() + PATIENCE;
    loop {
        match FileLock::take(&path, "") {
            Ok(lock) => return Ok(lock),
            Err(FileLockError::Held { .. }) if Instant::now() < deadline => sleep(LOOK),
            Err(FileLockError::Held { .. }) => return Err(RefError::FenceBusy { path }),
            Err(error) => return Err(failed(error.into()).into()),
        }
    }
}

/// Moves refs under the lock, and removes lock files that a crash of ours left behind.
fn apply(store: &Store, moves: &[Move], log: ReflogEntry<'_>) -> Result<(), RefError> {
    let edits = || moves.iter().map(|step| edit(step, log)).collect::<Result<Vec<_>, _>>();
    let time = format!("{} +0000", log.seconds);
    let who = gix::actor::SignatureRef {
        name: "pdca".into(),
        email: "pdca@pdca.invalid".into(),
        time: &time,
    };
    let repo = store.repo();
    // Edits are built again for each try, because gix consumes them.
    let mut result = repo.edit_references_as(edits()?, Some(who));
    // First what a crash of ours left, then a wait for a git of the user, and only then what nobody else can have left.
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

fn edit(step: &Move, log: ReflogEntry<'_>) -> Result<RefEdit, RefError> {
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
    // Without following a symbolic ref: the update would move another ref than the one that was compared.
    Ok(RefEdit { change, name, deref: false })
}

/// Removes lock files that contain exactly the value to be written, and returns true if there were any. The
/// kernel lock is held, so no process of ours still uses them.
fn remove_own_locks(store: &Store, moves: &[Move]) -> Result<bool, StoreError> {
    let mut removed = false;
    // gix reports only that the transaction failed. Reading the refs tells a ref that moved, which the caller
    // handles as a race, from a lock file that a person must look at.
    for step in moves {
        let path = lock_file(store, &step.name);
        // A lock file of git has one id in it. An unreadable one is left to the error that names it.
        let Ok(Some(text)) = pdca_state::files::read_bounded(&path, 1024) else {
            continue;
        };
        let ours = step.to.is_some_and(|to| text == format!("{to}\n").as_bytes());
        // A driver that was killed while it took the fence left an epoch of its own.
        if ours || (step.name == FENCE && names_an_epoch(store, &text)) {
            fs::remove_file(&path).map_err(|source| StoreError::io("remove", &path, source))?;
            removed = true;
        }
    }
    Ok(removed)
}

/// Removes lock files of refs that only this crate writes, and returns true if there were any. A killed driver
/// may have been about to write another value than this one.
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

/// Returns true if the text is the id of a blob with an epoch, which only this crate writes.
fn names_an_epoch(store: &Store, text: &[u8]) -> bool {
    let id = ObjectId::from_hex(text.trim_ascii());
    let repo = store.repo();
    let blob = id.ok().and_then(|id| repo.find_blob(id).ok());
    blob.is_some_and(|blob| blob.data.starts_with(b"epoch "))
}

/// Syncs the refs and their directories, so that the new values survive a power loss.
fn sync_refs(store: &Store, moves: &[Move]) -> Result<(), RefError> {
    for step in moves {
        let path = store.common_dir().join(&step.name);
        let failed = |source| StoreError::io("sync", &path, source);
        if step.to.is_some() && path.exists() {
            fs::File::open(&path).and_then(|file| file.sync_all()).map_err(failed)?;
        }
        if let Some(dir) = path.parent().filter(|dir| dir.exists()) {
            pdca_state::files::sync_dir(dir).map_err(failed)?;
        }
    }
    Ok(())
}

fn lock_file(store: &Store, name: &str) -> camino::Utf8PathBuf {
    store.common_dir().join(format!("{name}.lock"))
}

/// Returns the object that a ref names, without peeling tags, or `None` if the ref does not exist.
pub(crate) fn ref_at(store: &Store, name: &str) -> Result<Option<ObjectId>, StoreError> {
    let repo = store.repo();
    let found = repo.try_find_reference(name);
    let found = found.map_err(|source| StoreError::objects("read a ref", source))?;
    Ok(found.and_then(|found| found.try_id().map(gix::Id::detach)))
}
