//! Proof that a commit is what was gated, and nothing else.

use gix::ObjectId;
use thiserror::Error;

use crate::{
    git::failure::StoreError, git::footprint::TreeDifference, git::path::TreePath,
    git::store::Store, queue::verdict::Gated,
};

/// The way in which a commit differs from what was gated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Disproof {
    #[error("its tree is {found}, and {gated} was gated")]
    Tree { gated: ObjectId, found: ObjectId },
    /// It changes paths outside the sealed footprints.
    #[error("it changes {}, which no seal covers", list(paths))]
    Paths { paths: Vec<TreePath> },
    /// It does not build on the gated base.
    #[error("it does not go on from {base}")]
    Base { base: ObjectId },
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

/// Examines a commit, trusting only what was gated and sealed.
pub(super) fn examine(store: &Store, gated: &Gated, commit: ObjectId) -> Result<(), ProofError> {
    let candidate = &gated.candidate;
    let base = store.tree_of(candidate.base)?;
    let found = store.tree_of(commit)?;
    let footprint = candidate.footprint();
    // The paths come first, although a wrong tree would be found without them: they tell which files are wrong.
    let changed = TreeDifference::between(store, Some(base), found)?.paths;
    let paths: Vec<TreePath> =
        changed.into_iter().filter(|path| !footprint.contains(path)).collect();
    if !paths.is_empty() {
        return Err(Disproof::Paths { paths }.into());
    }
    let tree = gated.verdict.key.tree;
    if found != tree {
        return Err(Disproof::Tree { gated: tree, found }.into());
    }
    // Nothing but the commits of the candidate may lie between the base and the commit.
    let most = candidate.bundles.iter().map(|taken| taken.commits.len()).sum::<usize>();
    if !goes_on_from(store, candidate.base, commit, most)? {
        return Err(Disproof::Base { base: candidate.base }.into());
    }
    Ok(())
}

/// Returns true if `base` is at most `most` first parents behind `commit`.
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

/// Returns true if `commit` is `tip` or an ancestor of it. Git is asked about ancestry and not for a range,
/// because a range walk trusts dates, which may be wrong.
pub(crate) fn contains(store: &Store, tip: ObjectId, commit: ObjectId) -> Result<bool, StoreError> {
    if tip == commit {
        return Ok(true);
    }
    let (commit, tip) = (commit.to_string(), tip.to_string());
    let said = store.git()?.call(&["merge-base", "--is-ancestor", &commit, &tip]).run()?;
    match said.code {
        1 => Ok(false),
        _ => Ok(said.require("compare two commits").map(|_| true)?),
    }
}
