//! A tip to be gated, and what is in it.

use std::collections::BTreeSet;

use gix::ObjectId;
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use crate::{
    git::failure::RefError,
    git::fence::{Effect, Fence, Log, Move, ref_at},
    git::land::holders,
    git::name::{ATTEMPTS, Run, staged_for},
    git::path::TreePath,
    git::store::Store,
    queue::plan::{Entry, Strategy},
};

/// A tip to be gated: the only thing that can become [`Gated`](crate::Gated), and then land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub(crate) base: ObjectId,
    pub(crate) commit: ObjectId,
    pub(crate) tree: ObjectId,
    pub(crate) strategy: Strategy,
    pub(crate) git_version: String,
    pub(crate) drivers: String,
    pub(crate) bundles: Vec<Taken>,
}

/// A change that is in a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) entry: Entry,
    pub(crate) commits: Vec<AppliedCommit>,
    /// Where the target has files of the footprint that it renamed since.
    pub(crate) renamed: BTreeSet<TreePath>,
}

/// A sealed commit and what it became.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppliedCommit {
    /// The sealed commit.
    #[serde(with = "crate::git::hex")]
    pub source: ObjectId,
    /// The commit on the tip.
    #[serde(with = "crate::git::hex")]
    pub applied: ObjectId,
    /// Its tree.
    #[serde(with = "crate::git::hex")]
    pub tree: ObjectId,
}

impl Candidate {
    /// The commit that everything was folded onto.
    pub fn base(&self) -> ObjectId {
        self.base
    }

    /// The commit to be gated.
    pub fn commit(&self) -> ObjectId {
        self.commit
    }

    /// Its tree.
    pub fn tree(&self) -> ObjectId {
        self.tree
    }

    /// The bundles in it, in order.
    pub fn bundles(&self) -> impl Iterator<Item = &BundleId> {
        self.bundles.iter().map(|taken| taken.entry.sealed().id())
    }

    /// The bundles in it, in order, each with its commits.
    pub fn applied(&self) -> impl Iterator<Item = (&BundleId, &[AppliedCommit])> {
        self.bundles.iter().map(|taken| (taken.entry.sealed().id(), taken.commits.as_slice()))
    }

    /// The bundles in it, in order, each with the last commit that brings it.
    pub fn commits(&self) -> impl Iterator<Item = (&BundleId, ObjectId)> {
        self.applied().filter_map(|(id, commits)| Some((id, commits.last()?.applied)))
    }

    /// Has a ref keep the tip, so that no collection of garbage takes it away while it is gated.
    pub fn anchor(
        &self,
        store: &Store,
        fence: &Fence,
        number: u32,
        log: Log<'_>,
    ) -> Result<Effect, RefError> {
        let name = fence.holder().fold_ref(number);
        if ref_at(store, &name)? == Some(self.commit) {
            return Ok(Effect::Recognised);
        }
        store.sync_commits(self.base, self.commit)?;
        let step = Move { name, from: None, to: Some(self.commit) };
        fence.move_refs(store, &[step], log)?;
        Ok(Effect::Made)
    }

    /// What is left to land after the first bundles of it landed as `tip`; none where that is no
    /// state between two of its bundles.
    #[must_use]
    pub fn after(&self, tip: ObjectId) -> Option<Self> {
        if tip == self.base {
            return Some(self.clone());
        }
        let ends_there = |taken: &Taken| taken.commits.last().is_some_and(|c| c.applied == tip);
        let place = self.bundles.iter().position(ends_there)?;
        let bundles = self.bundles[place + 1..].to_vec();
        Some(Self { base: tip, bundles, ..self.clone() })
    }

    /// Every path that the candidate may change: those of its seals, and where the target has
    /// them by now.
    pub(crate) fn footprint(&self) -> BTreeSet<TreePath> {
        let of = |taken: &Taken| {
            let sealed = taken.entry.sealed().record().footprint.clone();
            sealed.into_iter().chain(taken.renamed.clone())
        };
        self.bundles.iter().flat_map(of).collect()
    }
}

/// Removes a ref of ours, if it is exactly there: one that kept a tip while it was gated, one that kept
/// work, or a staging branch that no checkout has.
///
/// What it kept must be reachable from elsewhere, or be of no use: that is the caller's to know.
pub fn drop_own_ref(
    store: &Store,
    fence: &Fence,
    name: &str,
    commit: ObjectId,
    log: Log<'_>,
) -> Result<Effect, RefError> {
    let is_work = name.starts_with(ATTEMPTS);
    let is_ours = Run::of_fold_ref(name).is_some() || is_work || staged_for(name).is_some();
    let is_free = holders(store, name)?.is_empty();
    if !is_ours || !is_free {
        return Err(RefError::Name { name: name.to_owned() });
    }
    if ref_at(store, name)?.is_none() {
        return Ok(Effect::Recognised);
    }
    let step = Move { name: name.to_owned(), from: Some(commit), to: None };
    fence.move_refs(store, &[step], log)?;
    Ok(Effect::Made)
}
