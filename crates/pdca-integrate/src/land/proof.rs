//! That what is there is what was gated, and nothing else.

use gix::ObjectId;
use thiserror::Error;

use crate::{
    failure::StoreError, footprint::Difference, path::TreePath, store::Store, verdict::Gated,
};

/// In what a commit is not what was gated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Disproof {
    /// It has another tree.
    #[error("its tree is {found}, and {gated} was gated")]
    Tree {
        /// The tree that was gated.
        gated: ObjectId,
        /// The tree that is there.
        found: ObjectId,
    },
    /// It changes paths that nobody sealed.
    #[error("it changes {}, which nobody sealed", list(paths))]
    Paths {
        /// Those paths.
        paths: Vec<TreePath>,
    },
    /// It does not go on from the gated base.
    #[error("it does not go on from {base}")]
    Base {
        /// The gated base.
        base: ObjectId,
    },
}

#[derive(Debug, Error)]
pub(super) enum ProofError {
    #[error(transparent)]
    Disproved(#[from] Disproof),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn list(paths: &[TreePath]) -> String {
    paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Looks at a commit with the eyes of somebody who knows only what was gated and sealed.
pub(super) fn examine(store: &Store, gated: &Gated, commit: ObjectId) -> Result<(), ProofError> {
    let candidate = &gated.candidate;
    let base = store.tree_of(candidate.base)?;
    let found = store.tree_of(commit)?;
    let footprint = candidate.footprint();
    let changed = Difference::between(store, Some(base), found)?.paths;
    let paths: Vec<TreePath> =
        changed.into_iter().filter(|path| !footprint.contains(path)).collect();
    if !paths.is_empty() {
        return Err(Disproof::Paths { paths }.into());
    }
    let tree = gated.verdict.key.tree;
    if found != tree {
        return Err(Disproof::Tree { gated: tree, found }.into());
    }
    let most = candidate.bundles.iter().map(|taken| taken.commits.len()).sum::<usize>();
    if !goes_on_from(store, candidate.base, commit, most)? {
        return Err(Disproof::Base { base: candidate.base }.into());
    }
    Ok(())
}

/// Whether `base` is at most so many first parents behind `commit`.
fn goes_on_from(
    store: &Store,
    base: ObjectId,
    commit: ObjectId,
    most: usize,
) -> Result<bool, StoreError> {
    let mut at = commit;
    for _ in 0..most {
        match store.parents_of(at)?.first() {
            Some(parent) if *parent == base => return Ok(true),
            Some(parent) => at = *parent,
            None => return Ok(false),
        }
    }
    Ok(false)
}

/// Whether `commit` is `tip` or an ancestor of it.
pub(crate) fn contains(store: &Store, tip: ObjectId, commit: ObjectId) -> Result<bool, StoreError> {
    if tip == commit {
        return Ok(true);
    }
    let args =
        ["rev-list", "--count", "--max-count=1", &commit.to_string(), &format!("^{tip}"), "--"];
    let said = store.git().must("compare two commits", &args, Vec::new())?;
    Ok(said.trim_ascii() == b"0")
}
