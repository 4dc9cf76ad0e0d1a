//! Whether anyone wrote to the primary.
//!
//! Cheap on a large repository: a file that the index knows is compared by its stat data, and
//! only the few that are changed or untracked are read. Ignored files are not looked at. What
//! only refreshes stat data in the index, as any `git status` does, is no breach.

use std::{collections::BTreeMap, io, os::unix::fs::MetadataExt as _};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::{BString, ByteSlice as _};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::target::{Target, open_repository};

/// The state of a primary at one moment, to be compared with a later one.
#[derive(Debug)]
pub struct Tripwire {
    path: Utf8PathBuf,
    before: State,
}

/// Why the primary could not be looked at.
#[derive(Debug, Error)]
pub enum ArmError {
    /// Refs, index or objects could not be read.
    #[error("cannot read the repository")]
    Repository(#[source] Box<gix::Error>),
    /// The system would not.
    #[error("cannot look at the repository")]
    Io(#[from] io::Error),
}

/// Each fact by its name: `HEAD`, `ref refs/heads/main`, `index src/a.rs`, `file notes.txt`.
type State = BTreeMap<BString, BString>;

/// Files up to this size are read; of larger ones size, time and inode must do.
const READ_UP_TO: u64 = 1 << 20;

impl Tripwire {
    /// Notes how the primary is now.
    pub fn arm(target: &Target) -> Result<Self, ArmError> {
        Ok(Self { path: target.path().to_owned(), before: look(target.path())? })
    }

    /// What was written since, one line each; nothing when nothing was.
    pub fn breaches(&self) -> Vec<String> {
        let after = match look(&self.path) {
            Ok(after) => after,
            Err(err) => {
                return vec![format!("the repository could be read before and not now: {err}")];
            }
        };
        let mut breaches = Vec::new();
        for (name, value) in &self.before {
            match after.get(name) {
                None => breaches.push(format!("{name} is gone, or as committed again")),
                Some(now) if now != value => breaches.push(format!("{name} was changed")),
                Some(_) => {}
            }
        }
        let new = after.keys().filter(|name| !self.before.contains_key(*name));
        breaches.extend(new.map(|name| format!("{name} is new, or changed")));
        breaches
    }
}

fn look(path: &Utf8Path) -> Result<State, ArmError> {
    let repo = open_repository(path).map_err(repository)?.to_thread_local();
    let mut state = State::new();
    state.insert("HEAD".into(), fs::read(repo.git_dir().join("HEAD"))?.into());
    note_refs(&repo, &mut state).map_err(repository)?;
    note_settings(&repo, &mut state)?;
    if repo.workdir().is_some() {
        note_index(&repo, &mut state).map_err(repository)?;
        note_files(&repo, &mut state)?;
    }
    Ok(state)
}

fn repository(source: gix::Error) -> ArmError {
    ArmError::Repository(Box::new(source))
}

fn note_refs(repo: &gix::Repository, state: &mut State) -> gix::Result<()> {
    for found in repo.references()?.all()?.flatten() {
        let name = format!("ref {}", found.name().as_bstr());
        state.insert(name.into(), format!("{:?}", found.target()).into());
    }
    Ok(())
}

/// The configuration and the hooks: what would make a later git of the user do something else.
fn note_settings(repo: &gix::Repository, state: &mut State) -> Result<(), ArmError> {
    let common = repo.common_dir();
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
                state.insert(name.into(), stat_line(&hook.metadata()?));
            }
        }
        Err(err) if err.kind() == io::ErrorKind::NotFound => {}
        Err(err) => return Err(err.into()),
    }
    Ok(())
}

/// What the index says, as one digest: entries, not their stat data.
fn note_index(repo: &gix::Repository, state: &mut State) -> gix::Result<()> {
    let index = repo.index_or_empty()?;
    let mut hasher = Sha256::new();
    for entry in index.entries() {
        hasher.update(entry.path(&index));
        hasher.update([0]);
        hasher.update(entry.id.as_slice());
        hasher.update(entry.mode.bits().to_be_bytes());
        hasher.update([u8::try_from(entry.stage_raw()).unwrap_or(u8::MAX)]);
    }
    state.insert("the index".into(), hasher.finalize().to_vec().into());
    Ok(())
}

fn note_files(repo: &gix::Repository, state: &mut State) -> Result<(), ArmError> {
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
        // An entry without a summary only needs new stat data; its content is as committed.
        if change.summary().is_none() {
            continue;
        }
        let path = change.rela_path();
        let Ok(relative) = path.to_path() else {
            continue;
        };
        let mut name = BString::from("file ");
        name.extend_from_slice(path);
        state.insert(name, content(&root.join(relative)));
    }
    Ok(())
}

fn content(path: &std::path::Path) -> BString {
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
            .map_or_else(|_| stat_line(&found), |digest| format!("{mode:o} {digest:?}").into());
    }
    stat_line(&found)
}

fn digest(bytes: &[u8]) -> BString {
    Sha256::digest(bytes).to_vec().into()
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
