//! Which sealed changes meet, on which base, in which order.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::seal::Sealed;

/// How a change comes onto the tip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Every commit is made again on the tip: one line, the author kept.
    #[default]
    #[serde(alias = "cherry-pick")]
    RebaseFf,
    /// One merge per bundle, for repositories where commits are not made again.
    MergeCommit,
}

/// A sealed change and the changes that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    sealed: Sealed,
    depends_on: BTreeSet<BundleId>,
}

/// Sealed changes in the order in which they are folded.
#[derive(Debug, Clone)]
pub struct Plan {
    base: ObjectId,
    strategy: Strategy,
    entries: Vec<Entry>,
}

/// Why there is no order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The same bundle is there twice; it could land twice.
    #[error("{id} is there twice")]
    Twice {
        /// The bundle.
        id: BundleId,
    },
    /// Bundles that need each other.
    #[error("{} depend on each other", ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Cycle {
        /// The bundles of which none can be first.
        ids: Vec<BundleId>,
    },
}

impl Entry {
    /// A change that needs others. Those that are not in the plan have landed, or never will, and
    /// are for the caller to judge.
    pub fn new(sealed: Sealed, depends_on: impl IntoIterator<Item = BundleId>) -> Self {
        Self { sealed, depends_on: depends_on.into_iter().collect() }
    }

    /// The change.
    pub fn sealed(&self) -> &Sealed {
        &self.sealed
    }

    /// The bundles that it needs.
    pub fn depends_on(&self) -> &BTreeSet<BundleId> {
        &self.depends_on
    }
}

impl Plan {
    /// Orders the entries: what others need comes first, and otherwise what was completed first.
    pub fn new(
        base: ObjectId,
        strategy: Strategy,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<Self, PlanError> {
        let mut waiting: BTreeMap<BundleId, Entry> = BTreeMap::new();
        for entry in entries {
            let id = entry.sealed.id().clone();
            if waiting.insert(id.clone(), entry).is_some() {
                return Err(PlanError::Twice { id });
            }
        }
        let mut ordered = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let ready = waiting
                .values()
                .filter(|entry| !entry.depends_on.iter().any(|id| waiting.contains_key(id)))
                .min_by_key(|entry| {
                    (entry.sealed.record().completion_order, entry.sealed.id().clone())
                })
                .map(|entry| entry.sealed.id().clone());
            let Some(id) = ready else {
                return Err(PlanError::Cycle { ids: waiting.into_keys().collect() });
            };
            ordered.extend(waiting.remove(&id));
        }
        Ok(Self { base, strategy, entries: ordered })
    }

    /// The same with only some of its entries, such as those that a fold found to fit.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&BundleId) -> bool) -> Self {
        let kept = self.entries.iter().filter(|entry| keep(entry.sealed.id()));
        Self { entries: kept.cloned().collect(), ..*self }
    }

    /// The commit that everything is folded onto.
    pub fn base(&self) -> ObjectId {
        self.base
    }

    /// How changes come onto the tip.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// The entries in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// For each entry the places of the entries that it needs, as the search wants them.
    pub fn needs(&self) -> Vec<Vec<usize>> {
        let place = |id: &BundleId| self.entries.iter().position(|e| e.sealed.id() == id);
        self.entries.iter().map(|e| e.depends_on.iter().filter_map(place).collect()).collect()
    }
}
