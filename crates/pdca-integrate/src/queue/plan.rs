//! Plans: sealed changes, the base to fold them onto, and their order.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::git::seal::{Sealed, Support};

/// The way changes are added to the tip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Recreates every commit on the tip: linear history, original authors.
    #[default]
    #[serde(alias = "cherry-pick")]
    RebaseFf,
    /// Creates one merge commit per bundle and keeps the sealed commits.
    MergeCommit,
}

/// The way the commits of a fold are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    /// The form of the first version: trailers without a digest, committers as sealed. Kept so that old certificates
    /// still verify.
    First,
    /// Trailers name the seal by its digest; committers and dates come from the seal.
    #[default]
    Dated,
    /// Messages and people unchanged, on another parent; for unfinished work.
    Plain,
}

/// A sealed change and its dependencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanEntry {
    sealed: Sealed,
    depends_on: BTreeSet<BundleId>,
}

/// Sealed changes in the order in which they are folded.
#[derive(Debug, Clone)]
pub struct FoldPlan {
    base: ObjectId,
    strategy: Strategy,
    form: Form,
    judges_links: bool,
    entries: Vec<PlanEntry>,
}

/// The reasons why a plan cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A bundle occurs twice and could land twice.
    #[error("{id} occurs twice in the plan")]
    Twice { id: BundleId },
    #[error("{} depend on each other", ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Cycle {
        /// The bundles of which none can be first.
        ids: Vec<BundleId>,
    },
}

impl PlanEntry {
    /// Returns an entry. Dependencies outside the plan are ignored here; the caller judges whether they have landed.
    pub fn new(sealed: Sealed, depends_on: impl IntoIterator<Item = BundleId>) -> Self {
        Self { sealed, depends_on: depends_on.into_iter().collect() }
    }

    pub fn sealed(&self) -> &Sealed {
        &self.sealed
    }

    /// Returns true if this is the result that another change was built on.
    pub(crate) fn is(&self, support: &Support) -> bool {
        let record = self.sealed.record();
        record.id == support.id && record.head == support.head
    }

    pub fn depends_on(&self) -> &BTreeSet<BundleId> {
        &self.depends_on
    }
}

impl FoldPlan {
    /// Orders the entries: dependencies first, then changes that others were built on, then by completion.
    ///
    /// A change that was built on another one comes after exactly that result of it, but does not depend on it:
    /// if the other is left out, it is tried without.
    pub fn new(
        base: ObjectId,
        strategy: Strategy,
        entries: impl IntoIterator<Item = PlanEntry>,
    ) -> Result<Self, PlanError> {
        let mut waiting: BTreeMap<BundleId, PlanEntry> = BTreeMap::new();
        for entry in entries {
            let id = entry.sealed.id().clone();
            if waiting.insert(id.clone(), entry).is_some() {
                return Err(PlanError::Twice { id });
            }
        }
        let mut ordered = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let needs_nothing =
                |entry: &&PlanEntry| !entry.depends_on.iter().any(|id| waiting.contains_key(id));
            let stands_on_none = |entry: &&PlanEntry| {
                let mut on = entry.sealed.record().stands_on.iter();
                !on.any(|support| waiting.get(&support.id).is_some_and(|it| it.is(support)))
            };
            // The id breaks ties, so that the same changes are planned in the same order on every machine.
            let order = |entry: &&PlanEntry| {
                (entry.sealed.record().completion_order, entry.sealed.id().clone())
            };
            let ready = || waiting.values().filter(needs_nothing);
            let next = ready().filter(stands_on_none).min_by_key(order);
            // Declared dependencies outweigh the order in which changes happened to be built.
            let next = next.or_else(|| ready().min_by_key(order));
            let next = next.map(|entry| entry.sealed.id().clone());
            let Some(id) = next else {
                return Err(PlanError::Cycle { ids: waiting.into_keys().collect() });
            };
            ordered.extend(waiting.remove(&id));
        }
        Ok(Self { base, strategy, form: Form::default(), judges_links: true, entries: ordered })
    }

    /// Keeps messages and people of the commits, for unfinished work that is folded onto another base.
    #[must_use]
    pub fn keeping_messages(self) -> Self {
        self.in_form(Form::Plain)
    }

    #[must_use]
    pub(crate) fn in_form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// Leaves links as they are, for changes that have landed: earlier versions judged them by the patch alone.
    #[must_use]
    pub(crate) fn of_landed(self) -> Self {
        Self { judges_links: false, ..self }
    }

    pub(crate) fn judges_links(&self) -> bool {
        self.judges_links
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Returns the commit that everything is folded onto.
    pub fn base(&self) -> ObjectId {
        self.base
    }

    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    pub fn entries(&self) -> &[PlanEntry] {
        &self.entries
    }

    /// Returns the places of the dependencies of each entry, as a search needs them.
    pub fn needs(&self) -> Vec<Vec<usize>> {
        let place = |id: &BundleId| self.entries.iter().position(|e| e.sealed.id() == id);
        self.entries.iter().map(|e| e.depends_on.iter().filter_map(place).collect()).collect()
    }
}
