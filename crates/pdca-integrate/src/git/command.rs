//! The git command line.
//!
//! Git runs in a *room*: an empty repository of ours whose object directory is the target's. No configuration,
//! attributes, hooks, grafts or replacements of the target or the user have any effect there; the objects are
//! the same.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_process::GitCall;

use crate::git::failure::StoreError;

/// The longest output of a call, which may be a pack.
const LARGEST: usize = 2 << 30;

/// Settings that are fixed against changes of git's defaults.
/// A certificate must fold to the same trees with any later git (decision 020). Another limit or another
/// treatment of renames, line ends or file names would give other trees. The conflict style fixes the form of
/// the hunks that are read.
const SETTINGS: &[&str] = &[
    "core.autocrlf=false",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
    "diff.algorithm=myers",
    "merge.renames=true",
    "merge.renameLimit=7000",
    "merge.directoryRenames=conflict",
    "merge.renormalize=false",
    "merge.conflictStyle=merge",
    "pack.threads=1",
];

/// Git in its room.
#[derive(Debug, Clone)]
pub(crate) struct RoomGit {
    program: OsString,
    room: Utf8PathBuf,
    objects: Utf8PathBuf,
}

impl RoomGit {
    /// Creates the room, or restores its required files.
    pub(crate) fn prepare(
        program: OsString,
        room: &Utf8Path,
        objects: &Utf8Path,
        hash: gix::hash::Kind,
    ) -> Result<Self, StoreError> {
        let io = |source| StoreError::io("prepare", room, source);
        fs::create_dir_all(room).map_err(io)?;
        let room = &room.canonicalize_utf8().map_err(io)?;
        let git = Self { program, room: room.clone(), objects: objects.to_owned() };
        for dir in ["objects", "refs"] {
            fs::create_dir_all(room.join(dir)).map_err(io)?;
        }
        let format = if hash == gix::hash::Kind::Sha1 { "sha1" } else { "sha256" };
        let config = format!(
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = {format}\n"
        );
        for (name, text) in [("config", config.as_str()), ("HEAD", "ref: refs/heads/none\n")] {
            // Written each time and not synced: a room contains nothing that cannot be made again.
            pdca_state::files::replace_unsynced(room.join(name), text.as_bytes()).map_err(io)?;
        }
        Ok(git)
    }

    pub(crate) fn room(&self) -> &Utf8Path {
        &self.room
    }

    pub(crate) fn program(&self) -> &OsString {
        &self.program
    }

    /// Returns the same room with another object directory.
    pub(crate) fn with_objects(&self, objects: &Utf8Path) -> Self {
        Self { objects: objects.to_owned(), ..self.clone() }
    }

    /// Returns a call of git with these arguments.
    pub(crate) fn call(&self, args: &[&str]) -> GitCall {
        GitCall::isolated(&self.room)
            .program(&self.program)
            // The target's own object directory and not an alternate of the room, so that git writes merged
            // trees where the target finds them.
            .objects(&self.objects)
            .settings(SETTINGS)
            .args(args)
    }

    /// Runs git and returns its standard output; any exit code but 0 is an error.
    pub(crate) fn must(
        &self,
        doing: &'static str,
        args: &[&str],
        stdin: Vec<u8>,
    ) -> Result<Vec<u8>, StoreError> {
        let call = self.call(args).stdin(stdin).max_stdout(LARGEST);
        Ok(call.run()?.require(doing)?.stdout)
    }
}

/// A private directory, removed on drop unless it was renamed.
#[derive(Debug)]
pub(crate) struct Scratch(Utf8PathBuf);

impl Scratch {
    /// Creates a directory below `parent`, which is created if needed.
    pub(crate) fn new(parent: &Utf8Path) -> Result<Self, StoreError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(parent).map_err(|source| StoreError::io("make", parent, source))?;
        loop {
            // A dead process with the same id may have left a directory of this name.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("scratch-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(StoreError::io("make", path, source)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover directory does no harm.
        drop(fs::remove_dir_all(&self.0));
    }
}
