//! Earlier contents of a file, from the git history of the workspace.

use std::collections::HashSet;

use camino::{Utf8Path, Utf8PathBuf};

/// The number of commits to look through. A review that is older than this is compared by digest alone.
const MAX_COMMITS: usize = 5_000;
/// Longer contents are no text for people.
const MAX_LEN: u64 = 16 << 20;

/// The history of the repository that a workspace lies in.
#[derive(Debug)]
pub struct Versions {
    repository: gix::Repository,
    /// The workspace, relative to the working tree.
    prefix: Utf8PathBuf,
    /// Reachable commits, newest first.
    commits: Vec<gix::ObjectId>,
}

impl Versions {
    /// Opens the repository around `workspace`. `None` if there is none, or it has no commit.
    pub fn open(workspace: &Utf8Path) -> Option<Self> {
        let repository = gix::discover(workspace).ok()?;
        let tree = fs_err::canonicalize(repository.workdir()?).ok()?;
        let own = fs_err::canonicalize(workspace).ok()?;
        let prefix = Utf8PathBuf::from_path_buf(own.strip_prefix(tree).ok()?.to_owned()).ok()?;
        let head = repository.head_id().ok()?.detach();
        let walk = repository.rev_walk([head]).all().ok()?;
        let commits = walk.take(MAX_COMMITS).map_while(Result::ok).map(|info| info.id).collect();
        Some(Self { repository, prefix, commits })
    }

    /// Returns the contents of a file of the workspace, newest first, each once.
    pub fn of(&self, file: &Utf8Path) -> impl Iterator<Item = Vec<u8>> {
        let path = self.prefix.join(file);
        let mut seen = HashSet::new();
        self.commits.iter().filter_map(move |commit| {
            let blob = self.blob_in(*commit, &path)?;
            if !seen.insert(blob) || self.repository.find_header(blob).ok()?.size() > MAX_LEN {
                return None;
            }
            Some(self.repository.find_object(blob).ok()?.detach().data)
        })
    }

    /// Returns the committed content of a file; `None` if the last commit does not have it.
    pub fn head(&self, file: &Utf8Path) -> Option<Vec<u8>> {
        let blob = self.blob_in(*self.commits.first()?, &self.prefix.join(file))?;
        Some(self.repository.find_object(blob).ok()?.detach().data)
    }

    fn blob_in(&self, commit: gix::ObjectId, path: &Utf8Path) -> Option<gix::ObjectId> {
        let tree = self.repository.find_commit(commit).ok()?.tree().ok()?;
        let entry = tree.lookup_entry_by_path(path.as_std_path()).ok()??;
        entry.mode().is_blob().then(|| entry.object_id())
    }
}
