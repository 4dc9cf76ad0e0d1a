//! That what is there is what was gated, and nothing else.

use gix::ObjectId;
use thiserror::Error;

use crate::{
    git::command::run, git::failure::StoreError, git::footprint::Difference, git::path::TreePath,
    git::store::Store, queue::verdict::Gated,
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

/// Whether `commit` is `tip` or an ancestor of it. Asked of git as a question about ancestry, never as a
/// range: a range walk stops by dates, and dates lie.
pub(crate) fn contains(store: &Store, tip: ObjectId, commit: ObjectId) -> Result<bool, StoreError> {
    if tip == commit {
        return Ok(true);
    }
    let (commit, tip) = (commit.to_string(), tip.to_string());
    let said = run(&store.git().tool(&["merge-base", "--is-ancestor", &commit, &tip], &[]))?;
    match said.code {
        0 => Ok(true),
        1 => Ok(false),
        code => {
            let said = said.stderr.trim().to_owned();
            Err(StoreError::Git { doing: "compare two commits", code, said })
        }
    }
}
