//! Candidates: commits to be gated, with the changes that they contain.

use std::collections::BTreeSet;

use gix::ObjectId;
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use crate::{
    git::durable::LooseObjects,
    git::failure::RefError,
    git::fence::{Fence, Move, ReflogEntry, StepEffect, ref_at},
    git::land::holders,
    git::name::{ATTEMPTS, RefNamespace, STAGED_BY, staged_for},
    git::path::TreePath,
    git::store::Store,
    queue::plan::{PlanEntry, Strategy},
};

/// A commit to be gated. Only this type can become [`Gated`](crate::Gated) and then land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub(crate) base: ObjectId,
    pub(crate) commit: ObjectId,
    pub(crate) tree: ObjectId,
    pub(crate) strategy: Strategy,
    pub(crate) git_version: String,
    pub(crate) drivers: String,
    pub(crate) bundles: Vec<TakenChange>,
}

/// A change in a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TakenChange {
    pub(crate) entry: PlanEntry,
    pub(crate) commits: Vec<AppliedCommit>,
    /// The paths to which the target has renamed files of the footprint.
    pub(crate) renamed: BTreeSet<TreePath>,
}

/// A sealed commit and the commit that it became.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppliedCommit {
    #[serde(with = "pdca_journal::object_id")]
    pub source: ObjectId,
    /// The commit on top of the base.
    #[serde(with = "pdca_journal::object_id")]
    pub applied: ObjectId,
    #[serde(with = "pdca_journal::object_id")]
    pub tree: ObjectId,
}

impl Candidate {
    /// Returns the commit that the changes were folded onto.
    pub fn base(&self) -> ObjectId {
        self.base
    }

    /// Returns the commit to be gated.
    pub fn commit(&self) -> ObjectId {
        self.commit
    }

    pub fn tree(&self) -> ObjectId {
        self.tree
    }

    /// Returns the bundles, in order.
    pub fn bundles(&self) -> impl Iterator<Item = &BundleId> {
        self.bundles.iter().map(|taken| taken.entry.sealed().id())
    }

    /// Returns the bundles, in order, each with its commits.
    pub fn applied(&self) -> impl Iterator<Item = (&BundleId, &[AppliedCommit])> {
        self.bundles.iter().map(|taken| (taken.entry.sealed().id(), taken.commits.as_slice()))
    }

    /// Returns the bundles, in order, each with its last commit.
    pub fn commits(&self) -> impl Iterator<Item = (&BundleId, ObjectId)> {
        self.applied().filter_map(|(id, commits)| Some((id, commits.last()?.applied)))
    }

    /// Creates a ref to the commit, so that garbage collection does not remove it while it is gated.
    pub fn anchor(
        &self,
        store: &Store,
        fence: &Fence,
        number: u32,
        log: ReflogEntry<'_>,
    ) -> Result<StepEffect, RefError> {
        let name = fence.holder().fold_ref(number);
        if ref_at(store, &name)? == Some(self.commit) {
            return Ok(StepEffect::Recognised);
        }
        // Before a ref names the commits, or a power loss could leave a ref to nothing.
        LooseObjects::of(store).sync_commits(self.base, self.commit)?;
        let step = Move { name, from: None, to: Some(self.commit) };
        fence.move_refs(store, &[step], log)?;
        Ok(StepEffect::Made)
    }

    /// Returns the part that is left after its first bundles landed as `tip`, or `None` if `tip` is not a
    /// commit between two of its bundles.
    #[must_use]
    pub fn after(&self, tip: ObjectId) -> Option<Self> {
        if tip == self.base {
            return Some(self.clone());
        }
        // Only between two bundles: a bundle lands as a whole.
        let ends_there =
            |taken: &TakenChange| taken.commits.last().is_some_and(|c| c.applied == tip);
        let place = self.bundles.iter().position(ends_there)?;
        let bundles = self.bundles[place + 1..].to_vec();
        Some(Self { base: tip, bundles, ..self.clone() })
    }

    /// Returns every path that the candidate may change: those of its seals, and the names under which the target has
    /// these files now.
    pub(crate) fn footprint(&self) -> BTreeSet<TreePath> {
        let of = |taken: &TakenChange| {
            let sealed = taken.entry.sealed().record().footprint.clone();
            sealed.into_iter().chain(taken.renamed.clone())
        };
        self.bundles.iter().flat_map(of).collect()
    }
}

/// Deletes a ref of ours if it points to exactly `commit`: an anchor of a candidate, kept work, or a staging
/// branch that is not checked out.
///
/// The caller must know that the commit is reachable from elsewhere or no longer needed.
pub fn drop_own_ref(
    store: &Store,
    fence: &Fence,
    name: &str,
    commit: ObjectId,
    log: ReflogEntry<'_>,
) -> Result<StepEffect, RefError> {
    let is_work = name.starts_with(ATTEMPTS);
    // Cleanup passes names from a list of refs, and a branch of the user must never be deleted.
    let is_ours = RefNamespace::of_fold_ref(name).is_some()
        || is_work
        || staged_for(name).is_some()
        || name.starts_with(STAGED_BY);
    let is_free = holders(store, name)?.is_empty();
    if !is_ours || !is_free {
        return Err(RefError::Name { name: name.to_owned() });
    }
    if ref_at(store, name)?.is_none() {
        return Ok(StepEffect::Recognised);
    }
    let step = Move { name: name.to_owned(), from: Some(commit), to: None };
    fence.move_refs(store, &[step], log)?;
    Ok(StepEffect::Made)
}
