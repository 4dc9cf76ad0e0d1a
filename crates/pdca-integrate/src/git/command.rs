//! The git command line.
//!
//! Git runs in a *room*: an empty repository of ours whose object directory is the target's. No configuration,
//! attributes, hooks, grafts or replacements of the target or the user have any effect there; the objects are
//! the same.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::ByteSlice as _;
use pdca_process::Tool;

use crate::git::failure::StoreError;

/// The time limit of a call. Even large repositories need less; a git that hangs must end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Settings that are fixed against changes of git's defaults.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "diff.renames=true",
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
pub(crate) struct Git {
    program: OsString,
    room: Utf8PathBuf,
    objects: Utf8PathBuf,
}

/// The output of git.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Git {
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

    /// Returns git with these arguments, ready to be run.
    pub(crate) fn tool(&self, args: &[&str], settings: &[String]) -> Tool {
        let fixed = [
            ("GIT_DIR", self.room.as_str()),
            ("GIT_OBJECT_DIRECTORY", self.objects.as_str()),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("GIT_CONFIG_COUNT", "0"),
            ("GIT_CONFIG_PARAMETERS", ""),
            ("LC_ALL", "C"),
        ];
        let all = SETTINGS.iter().copied().chain(settings.iter().map(String::as_str));
        let tool = Tool::new(&self.program)
            .args(all.flat_map(|setting| ["-c", setting]))
            .args(args)
            .cwd(&self.room)
            .timeout(PATIENCE);
        fixed.iter().fold(tool, |tool, (name, value)| tool.env(*name, *value))
    }

    /// Runs git and returns its standard output; any exit code but 0 is an error.
    pub(crate) fn must(
        &self,
        doing: &'static str,
        args: &[&str],
        stdin: Vec<u8>,
    ) -> Result<Vec<u8>, StoreError> {
        let said = run(&self.tool(args, &[]).stdin(stdin).max_stdout(2 << 30))?;
        match said.code {
            0 => Ok(said.stdout),
            code => Err(StoreError::Git { doing, code, said: said.stderr.trim().to_owned() }),
        }
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

pub(crate) fn run(tool: &Tool) -> Result<Said, StoreError> {
    let output = tool.run().map_err(|source| StoreError::Tool { source })?;
    let stderr = output.stderr.to_str_lossy().into_owned();
    Ok(Said { code: output.code, stdout: output.stdout, stderr })
}
