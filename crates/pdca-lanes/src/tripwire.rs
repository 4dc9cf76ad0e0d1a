//! Detection of writes to the primary.
//!
//! Cheap on a large repository: files in the index are compared by their stat data, and only changed and untracked
//! files are read. Ignored files are not examined. A refresh of stat data in the index, as by any `git status`, is not
//! a breach.

use std::{
    collections::BTreeMap,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::{BString, ByteSlice as _, ByteVec as _};
use pdca_state::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::{
    branch,
    target::{Target, open_repository},
};

/// The state of a primary at one moment, to compare with a later one.
#[derive(Debug)]
pub struct Tripwire {
    /// The path of the repository, free of symbolic links.
    path: Utf8PathBuf,
    except: Except,
    before: State,
}

/// Failure to read the state of the primary.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArmError {
    /// Refs, index or objects cannot be read.
    #[error("cannot read the repository")]
    Repository(#[source] Box<gix::Error>),
    /// An operation of the system failed.
    #[error("cannot inspect the repository")]
    Io(#[from] io::Error),
}

/// Facts by name: `HEAD`, `ref refs/heads/main`, `config`, `hook pre-commit`, `the index`, `file notes.txt`.
type State = BTreeMap<BString, BString>;

/// The serialized form of an armed tripwire. Names and values may be any bytes, so they are escaped.
#[derive(Serialize, Deserialize)]
struct KeptState {
    repository: Utf8PathBuf,
    state: BTreeMap<String, String>,
}

/// Paths of the working tree that may be written, relative to its root.
#[derive(Debug)]
struct Except(Vec<PathBuf>);

/// The largest accepted file of a saved tripwire, in bytes.
const LARGEST: u64 = 256 << 20;

const FILE: &[u8] = b"file ";

/// The largest file that is read; a larger one is compared by size, time and inode.
const READ_UP_TO: u64 = 1 << 20;

impl Tripwire {
    /// Records the present state of the primary.
    ///
    /// Changed and untracked files at or below the paths in `except`, which are absolute and need not exist, are not
    /// examined. Refs, HEAD, index and configuration always are.
    pub fn arm(target: &Target, except: &[Utf8PathBuf]) -> Result<Self, ArmError> {
        let path = target.path().canonicalize_utf8()?;
        let except = Except::of(target, except)?;
        let before = look(&path, &except)?;
        Ok(Self { path, except, before })
    }

    /// Saves the recorded state in a file, for a driver that takes over after a crash.
    pub fn save(&self, file: &Utf8Path) -> io::Result<()> {
        let escaped = |bytes: &BString| bytes.escape_bytes().to_string();
        let state = self.before.iter().map(|(name, value)| (escaped(name), escaped(value)));
        let kept = KeptState { repository: self.path.clone(), state: state.collect() };
        files::replace_unsynced(file, &serde_json::to_vec_pretty(&kept)?)
    }

    /// Loads a state that [`save`](Self::save) wrote; `None` if the file does not exist.
    ///
    /// A file that is unreadable, damaged or about another repository is an error of kind
    /// [`InvalidData`](io::ErrorKind::InvalidData), because the earlier state of the primary is unknown then.
    pub fn load(
        target: &Target,
        except: &[Utf8PathBuf],
        file: &Utf8Path,
    ) -> io::Result<Option<Self>> {
        let invalid = |source: Box<dyn std::error::Error + Send + Sync>| {
            io::Error::new(io::ErrorKind::InvalidData, source)
        };
        let Some(bytes) =
            files::read_bounded(file, LARGEST).map_err(|source| invalid(source.into()))?
        else {
            return Ok(None);
        };
        let kept: KeptState = serde_json::from_slice(&bytes)
            .map_err(|source| invalid(format!("{file} is damaged: {source}").into()))?;
        let path = target.path().canonicalize_utf8()?;
        if kept.repository != path {
            let whose = kept.repository;
            return Err(invalid(format!("{file} is about {whose}, not about {path}").into()));
        }
        let except = Except::of(target, except)?;
        let unescaped = |text: &str| BString::from(Vec::unescape_bytes(text));
        let before = kept
            .state
            .iter()
            .map(|(name, value)| (unescaped(name), unescaped(value)))
            // The exceptions are those of the present call. A fact that only the earlier one
            // recorded would be reported as gone.
            .filter(|(name, _)| !except.has_fact(name))
            .collect();
        Ok(Some(Self { path, except, before }))
    }

    /// Returns the changes since then, one line each; empty if there are none.
    pub fn breaches(&self) -> Vec<String> {
        let after = match look(&self.path, &self.except) {
            Ok(after) => after,
            // Counts as a breach: a child that damages the repository must not pass unnoticed.
            Err(err) => {
                return vec![format!("the repository can no longer be read: {err}")];
            }
        };
        let mut breaches = Vec::new();
        for (name, value) in &self.before {
            match after.get(name) {
                None => breaches.push(format!("{name} is gone or was reverted")),
                Some(now) if now != value => breaches.push(format!("{name} was changed")),
                Some(_) => {}
            }
        }
        let new = after.keys().filter(|name| !self.before.contains_key(*name));
        breaches.extend(new.map(|name| format!("{name} is new, or changed")));
        breaches
    }
}

impl Except {
    fn of(target: &Target, except: &[Utf8PathBuf]) -> io::Result<Self> {
        let Some(root) = target.repository().workdir().map(fs::canonicalize).transpose()? else {
            return Ok(Self(Vec::new()));
        };
        let mut below = Vec::new();
        for path in except {
            let real = real_path(path.as_std_path())?;
            if root.starts_with(&real) {
                below.push(PathBuf::new());
            } else if let Ok(relative) = real.strip_prefix(&root) {
                below.push(relative.to_owned());
            }
        }
        Ok(Self(below))
    }

    /// Returns true if the path is at or below one of them.
    fn has(&self, path: &Path) -> bool {
        self.0.iter().any(|except| path.starts_with(except))
    }

    /// Returns true if one of them is below the path.
    fn has_below(&self, path: &Path) -> bool {
        self.0.iter().any(|except| except.starts_with(path))
    }

    /// Returns true if the fact is about a file at or below one of them.
    fn has_fact(&self, name: &BString) -> bool {
        let path = name.strip_prefix(FILE).and_then(|path| path.to_path().ok());
        path.is_some_and(|path| self.has(path))
    }
}

/// Resolves symbolic links in the part of the path that exists.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            match (path.parent(), path.file_name()) {
                (Some(parent), Some(name)) => Ok(real_path(parent)?.join(name)),
                (_, _) => Err(err),
            }
        }
        found => found,
    }
}

fn look(path: &Utf8Path, except: &Except) -> Result<State, ArmError> {
    let repo = open_repository(path).map_err(repository)?.to_thread_local();
    let mut state = State::new();
    state.insert("HEAD".into(), fs::read(repo.git_dir().join("HEAD"))?.into());
    note_refs(&repo, &mut state).map_err(repository)?;
    note_settings(&repo, &mut state)?;
    if repo.workdir().is_some() {
        note_index(&repo, &mut state).map_err(repository)?;
        note_files(&repo, except, &mut state)?;
    }
    Ok(state)
}

fn repository(source: gix::Error) -> ArmError {
    ArmError::Repository(Box::new(source))
}

fn note_refs(repo: &gix::Repository, state: &mut State) -> gix::Result<()> {
    for found in repo.references()?.all()?.flatten() {
        // Rescue refs of a lane of kind `worktree`, and seals: the user may accept a change while a lane works.
        if found.name().as_bstr().starts_with(b"refs/pdca/") {
            continue;
        }
        if branch::is_attempt(found.name().as_bstr()) {
            // The branch of a lane of kind `worktree`, which its builder moves.
            continue;
        }
        let name = format!("ref {}", found.name().as_bstr());
        let target = match found.target() {
            gix::refs::TargetRef::Object(id) => format!("object {id}"),
            gix::refs::TargetRef::Symbolic(name) => format!("ref {}", name.as_bstr()),
        };
        state.insert(name.into(), target.into());
    }
    Ok(())
}

/// Records the configuration and the hooks, which change the behaviour of the user's later git commands.
fn note_settings(repo: &gix::Repository, state: &mut State) -> Result<(), ArmError> {
    let common = repo.common_dir();
    // Compared by content: a `git config` of the user that changes nothing rewrites the file.
    for name in ["config", "info/exclude", "info/attributes"] {
        if let Ok(bytes) = fs::read(common.join(name)) {
            state.insert(name.into(), digest(&bytes));
        }
    }
    match fs::read_dir(common.join("hooks")) {
        Ok(hooks) => {
            for hook in hooks {
                let hook = hook?;
                let name = format!("hook {}", hook.file_name().display());
                // By content as well: a process can set size and time back to what they were. Not by
                // the change time, which a backup or a hard link moves.
                state.insert(name.into(), content(&hook.path()));
            }
        }
        Err(err) if err.kind() == io::ErrorKind::NotFound => {}
        Err(err) => return Err(err.into()),
    }
    Ok(())
}

/// Records the entries of the index as one digest, without their stat data.
fn note_index(repo: &gix::Repository, state: &mut State) -> gix::Result<()> {
    let index = repo.index_or_empty()?;
    let mut hasher = Sha256::new();
    for entry in index.entries() {
        hasher.update(entry.path(&index));
        // Separates the path from the id; a path cannot contain this byte.
        hasher.update([0]);
        hasher.update(entry.id.as_slice());
        hasher.update(entry.mode.bits().to_be_bytes());
        hasher.update([u8::try_from(entry.stage_raw()).unwrap_or(u8::MAX)]);
    }
    state.insert("the index".into(), hasher.finalize().to_vec().into());
    Ok(())
}

fn note_files(repo: &gix::Repository, except: &Except, state: &mut State) -> Result<(), ArmError> {
    let Some(root) = repo.workdir() else {
        return Ok(());
    };
    let changes = repo
        .status(gix::progress::Discard)
        .map_err(repository)?
        .untracked_files(gix::status::UntrackedFiles::Files)
        .index_worktree_rewrites(None)
        .into_index_worktree_iter(Vec::new())
        .map_err(repository)?;
    for change in changes {
        let change = change.map_err(repository)?;
        // An entry without a summary has the committed content and only outdated stat data.
        if change.summary().is_none() {
            continue;
        }
        let path = change.rela_path();
        let Ok(relative) = path.to_path() else {
            continue;
        };
        if except.has(relative) {
            continue;
        }
        let mut name = BString::from(FILE);
        name.extend_from_slice(path);
        let whole = root.join(relative);
        // A repository inside the working tree that contains an excepted path: its content may change.
        let around = except.has_below(relative) && whole.is_dir();
        state.insert(name, if around { "directory".into() } else { content(&whole) });
    }
    Ok(())
}

fn content(path: &Path) -> BString {
    let Ok(found) = fs::symlink_metadata(path) else {
        return "absent".into();
    };
    if found.is_symlink() {
        return fs::read_link(path)
            .map(|to| format!("link {}", to.display()))
            .unwrap_or_default()
            .into();
    }
    if found.is_file() && found.len() <= READ_UP_TO {
        let mode = found.mode();
        return fs::read(path)
            .map(|bytes| digest(&bytes))
            .map_or_else(|_| stat_line(&found), |digest| format!("{mode:o} {digest}").into());
    }
    stat_line(&found)
}

fn digest(bytes: &[u8]) -> BString {
    pdca_state::sha256_hex(bytes).into()
}

fn stat_line(found: &std::fs::Metadata) -> BString {
    format!(
        "{} {} {} {}.{}",
        found.mode(),
        found.len(),
        found.ino(),
        found.mtime(),
        found.mtime_nsec()
    )
    .into()
}
