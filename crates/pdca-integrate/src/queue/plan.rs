//! Which sealed changes meet, on which base, in which order.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::git::seal::{Sealed, Support};

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

/// How the commits of a fold are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    /// As landings of the first version were: trailers without a digest, committers as sealed. Kept so
    /// that their certificates still verify.
    First,
    /// Trailers name the seal by its digest; committers and dates come from the seal.
    #[default]
    Dated,
    /// As they are, on another parent: for work that is not finished.
    Plain,
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
    form: Form,
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

    /// Whether this is the result that another change stands on.
    pub(crate) fn is(&self, support: &Support) -> bool {
        let record = self.sealed.record();
        record.id == support.id && record.head == support.head
    }

    /// The bundles that it needs.
    pub fn depends_on(&self) -> &BTreeSet<BundleId> {
        &self.depends_on
    }
}

impl Plan {
    /// Orders the entries: what others need comes first, then what others were built on, and otherwise
    /// what was completed first.
    ///
    /// A change that was built on another one comes after exactly that result of it, and does not need
    /// it: where the other one is left out, it is tried without.
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
            let needs_nothing =
                |entry: &&Entry| !entry.depends_on.iter().any(|id| waiting.contains_key(id));
            let stands_on_none = |entry: &&Entry| {
                let mut on = entry.sealed.record().stands_on.iter();
                !on.any(|support| waiting.get(&support.id).is_some_and(|it| it.is(support)))
            };
            let order = |entry: &&Entry| {
                (entry.sealed.record().completion_order, entry.sealed.id().clone())
            };
            let ready = || waiting.values().filter(needs_nothing);
            let next = ready().filter(stands_on_none).min_by_key(order);
            // What somebody declared outweighs what happened to be built first.
            let next = next.or_else(|| ready().min_by_key(order));
            let next = next.map(|entry| entry.sealed.id().clone());
            let Some(id) = next else {
                return Err(PlanError::Cycle { ids: waiting.into_keys().collect() });
            };
            ordered.extend(waiting.remove(&id));
        }
        Ok(Self { base, strategy, form: Form::default(), entries: ordered })
    }

    /// The same with only some of its entries, such as those that a fold found to fit.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&BundleId) -> bool) -> Self {
        let kept = self.entries.iter().filter(|entry| keep(entry.sealed.id()));
        Self { entries: kept.cloned().collect(), ..*self }
    }

    /// The same with messages and people left as they are: for work that is folded onto another base and
    /// is not finished yet.
    #[must_use]
    pub fn keeping_messages(self) -> Self {
        self.in_form(Form::Plain)
    }

    /// The same with commits written in another form.
    #[must_use]
    pub(crate) fn in_form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// How commits are written.
    pub(crate) fn form(&self) -> Form {
        self.form
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
