//! Recreates a change from its base and its patch, without a working tree.
//!
//! The same base, patch, message and signature yield the same commit as in the checkout in which the change was
//! checked. So a reviewed change can be sealed after that checkout is gone.

use camino::Utf8PathBuf;
use fs_err as fs;
use gix::ObjectId;
use pdca_process::GitOutput;
use pdca_state::sha256_hex;
use thiserror::Error;

use crate::{git::failure::StoreError, git::store::Store};

/// The parts of a commit.
#[derive(Debug, Clone, Copy)]
pub struct Ingredients<'a> {
    /// The parent commit.
    pub base: ObjectId,
    /// The patch in git's format.
    pub patch: &'a [u8],
    pub message: &'a str,
    /// The name of author and committer.
    pub name: &'a str,
    /// The address of author and committer.
    pub email: &'a str,
    /// Seconds since 1970, in UTC.
    pub seconds: i64,
}

/// The reasons why a change cannot be recreated.
#[derive(Debug, Error)]
pub enum RebuildError {
    #[error("the patch does not apply to {base}: {said}")]
    DoesNotApply { base: ObjectId, said: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Creates the commit of a change. No ref names it yet.
    pub fn rebuild(&self, change: &Ingredients<'_>) -> Result<ObjectId, RebuildError> {
        self.require_commit(change.base)?;
        let tree = PrivateIndex::new(self, change)?.patched_tree(change)?;
        Ok(self.commit_tree(change, tree)?)
    }

    /// Creates a commit from an existing tree instead of a patch. No ref names it yet.
    pub fn commit_tree(
        &self,
        change: &Ingredients<'_>,
        tree: ObjectId,
    ) -> Result<ObjectId, StoreError> {
        self.require_commit(change.base)?;
        let who = gix::actor::Signature {
            name: change.name.into(),
            email: change.email.into(),
            time: gix::date::Time { seconds: change.seconds, offset: 0 },
        };
        let commit = gix::objs::Commit {
            tree,
            parents: [change.base].into_iter().collect(),
            author: who.clone(),
            committer: who,
            encoding: None,
            message: change.message.into(),
            extra_headers: Vec::new(),
        };
        crate::git::fold::write(self, &commit)
    }
}

/// An index of ours beside the repository, so that the user's own index is neither read nor written. It lives
/// only while a patch is applied to it.
struct PrivateIndex<'s> {
    store: &'s Store,
    path: Utf8PathBuf,
}

impl<'s> PrivateIndex<'s> {
    fn new(store: &'s Store, change: &Ingredients<'_>) -> Result<Self, StoreError> {
        // Rebuilds of different changes may run at the same time, so each has an index of its own.
        let name = format!("{}-{}", change.base, sha256_hex(change.patch));
        let name = format!("index-{}", &sha256_hex(name.as_bytes())[..16]);
        Ok(Self { store, path: store.git()?.room().join(name) })
    }

    /// Returns the tree of the base with the patch applied.
    fn patched_tree(self, change: &Ingredients<'_>) -> Result<ObjectId, RebuildError> {
        let made = self.apply(change);
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::io("remove", &self.path, error).into())
            }
            Ok(()) | Err(_) => made,
        }
    }

    fn apply(&self, change: &Ingredients<'_>) -> Result<ObjectId, RebuildError> {
        let git = |args: &[&str], stdin: &[u8]| {
            let call = self.store.git()?.call(args).index(&self.path);
            call.stdin(stdin).run().map_err(StoreError::from)
        };
        let succeed = |said: GitOutput, doing| said.require(doing).map_err(StoreError::from);
        succeed(git(&["read-tree", &change.base.to_string()], b"")?, "read the base")?;
        // White space is for the gates to judge; a warning about it would only fill the error of a patch that
        // fails.
        let apply = ["apply", "--cached", "--binary", "-p1", "--whitespace=nowarn", "-"];
        let applied = git(&apply, change.patch)?;
        if !applied.success() {
            return Err(RebuildError::DoesNotApply { base: change.base, said: applied.stderr });
        }
        let tree = succeed(git(&["write-tree"], b"")?, "write the tree")?;
        let form = |_| StoreError::Form { what: "the tree that git wrote".to_owned() };
        Ok(ObjectId::from_hex(tree.stdout.trim_ascii()).map_err(form)?)
    }
}
