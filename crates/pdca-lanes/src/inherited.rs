//! The refs of the primary that a new lane starts with: remote-tracking branches and tags.
//!
//! They are written as one packed file before the lane is a repository, so a crash leaves all of them or none. Branches
//! and the stash are the user's and are not copied.

use std::{io, sync::Arc};

use camino::Utf8PathBuf;
use gix::refs::{Category, TargetRef};

use crate::target::Target;

/// Refs to write into a new repository.
#[derive(Debug, Clone)]
pub(crate) struct Inherited(Option<Arc<gix::ThreadSafeRepository>>);

/// The path of a file in the repository, and its content.
type RefFile = (Utf8PathBuf, Vec<u8>);

impl Inherited {
    /// Uses the refs of the target, read when they are needed.
    pub(crate) fn of(target: &Target) -> Self {
        Self(Some(Arc::new(target.repository().into_sync())))
    }

    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// Calls `work` with the files that hold the refs.
    pub(crate) fn with<Done>(
        &self,
        work: impl FnOnce(&[RefFile]) -> io::Result<Done>,
    ) -> io::Result<Done> {
        match &self.0 {
            Some(repo) => work(&files(&repo.to_thread_local()).map_err(io::Error::other)?),
            None => work(&[]),
        }
    }
}

fn files(repo: &gix::Repository) -> gix::Result<Vec<RefFile>> {
    let mut packed: Vec<(Vec<u8>, String)> = Vec::new();
    let mut files = Vec::new();
    for found in repo.references()?.all()? {
        let mut found = found.map_err(gix::Error::from_error)?;
        let name = found.name().to_owned();
        if !matches!(name.category(), Some(Category::RemoteBranch | Category::Tag)) {
            continue;
        }
        match found.target() {
            TargetRef::Symbolic(to) => {
                let Ok(path) = std::str::from_utf8(name.as_bstr()) else { continue };
                files.push((path.into(), format!("ref: {}\n", to.as_bstr()).into_bytes()));
            }
            TargetRef::Object(id) => {
                let id = id.to_owned();
                // A ref to a missing object would make the lane a damaged repository.
                let Ok(peeled) = found.peel_to_id() else { continue };
                let peeled = peeled.detach();
                let mut line = id.to_string();
                if peeled != id {
                    line = format!("{line}\0^{peeled}");
                }
                packed.push((name.as_bstr().to_vec(), line));
            }
        }
    }
    if !packed.is_empty() {
        // The header says `sorted`, and git then searches the file by bisection.
        packed.sort();
        files.push(("packed-refs".into(), text(&packed)));
    }
    Ok(files)
}

fn text(packed: &[(Vec<u8>, String)]) -> Vec<u8> {
    let mut text = b"# pack-refs with: peeled fully-peeled sorted \n".to_vec();
    for (name, line) in packed {
        let (id, peeled) = line.split_once('\0').unwrap_or((line, ""));
        text.extend_from_slice(id.as_bytes());
        text.push(b' ');
        text.extend_from_slice(name);
        text.push(b'\n');
        if !peeled.is_empty() {
            text.extend_from_slice(peeled.as_bytes());
            text.push(b'\n');
        }
    }
    text
}
