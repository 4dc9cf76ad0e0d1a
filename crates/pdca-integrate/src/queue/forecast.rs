//! Conflict forecast: predicts which results do not merge, before anything is gated.
//!
//! There are three levels of increasing certainty: the paths that briefs declare, the heads of attempts that
//! are still being built, and seals. Heads and seals are merged pair by pair in the object store.

mod grouping;

use gix::ObjectId;
use pdca_dag::Pattern;
use pdca_state::BundleId;
use serde::Serialize;

use crate::{
    conflict::Conflict,
    git::engine::{EngineError, MergeEngine, Merged, Question},
    git::seal::Sealed,
};

pub use grouping::{Cluster, Grouping};

/// The data that a forecast is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Level {
    /// Paths that briefs declare.
    Declared,
    /// Heads of attempts.
    Heads,
    /// Seals of accepted changes.
    Seals,
}

/// The forecast for two results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outlook", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PairOutlook {
    /// They merge, or their declared paths are disjoint.
    Clear,
    /// Both declare this path. They may still merge.
    Overlap {
        path: String,
    },
    /// They do not merge.
    Conflict {
        conflicts: Vec<Conflict>,
    },
    Unknown {
        why: String,
    },
}

/// The forecast for every pair of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Forecast {
    pub level: Level,
    pub bundles: Vec<BundleId>,
    /// The pairs as indices into `bundles`, the smaller first, sorted.
    pub pairs: Vec<Pair>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pair {
    pub first: usize,
    pub second: usize,
    #[serde(flatten)]
    pub outlook: PairOutlook,
}

impl Forecast {
    /// Compares the paths that briefs declare.
    pub fn of_touches(items: &[(BundleId, Vec<Pattern>)]) -> Self {
        let bundles = items.iter().map(|(id, _)| id.clone()).collect();
        let outlook = |(first, second): (usize, usize)| {
            let theirs = &items[second].1;
            let meet = |ours: &Pattern| theirs.iter().find_map(|theirs| ours.meet(theirs));
            match items[first].1.iter().find_map(meet) {
                Some(path) => PairOutlook::Overlap { path },
                None => PairOutlook::Clear,
            }
        };
        let pairs = pairs(items.len())
            .map(|(first, second)| Pair { first, second, outlook: outlook((first, second)) })
            .collect();
        Self { level: Level::Declared, bundles, pairs }
    }

    /// Merges the heads of attempts, with the git attributes of the tree of `base`.
    pub fn of_heads(
        engine: &mut MergeEngine<'_>,
        base: ObjectId,
        heads: &[(BundleId, ObjectId)],
    ) -> Result<Self, EngineError> {
        Self::merged(engine, base, heads, Level::Heads)
    }

    /// Merges sealed changes, with the git attributes of the tree of `base`.
    pub fn of_seals(
        engine: &mut MergeEngine<'_>,
        base: ObjectId,
        seals: &[&Sealed],
    ) -> Result<Self, EngineError> {
        let head = |sealed: &&Sealed| (sealed.id().clone(), sealed.record().head);
        let heads: Vec<_> = seals.iter().map(head).collect();
        Self::merged(engine, base, &heads, Level::Seals)
    }

    fn merged(
        engine: &mut MergeEngine<'_>,
        base: ObjectId,
        heads: &[(BundleId, ObjectId)],
        level: Level,
    ) -> Result<Self, EngineError> {
        let asked: Vec<(ObjectId, ObjectId)> =
            pairs(heads.len()).map(|(first, second)| (heads[first].1, heads[second].1)).collect();
        let outlooks = PairOutlook::of_pairs(engine, base, &asked)?;
        let pairs = pairs(heads.len()).zip(outlooks).map(|((first, second), outlook)| Pair {
            first,
            second,
            outlook,
        });
        let bundles = heads.iter().map(|(id, _)| id.clone()).collect();
        Ok(Self { level, bundles, pairs: pairs.collect() })
    }

    /// Returns the forecast for two bundles, or `None` if they are the same or one of them is not part of it.
    pub fn between(&self, one: &BundleId, other: &BundleId) -> Option<&PairOutlook> {
        let place = |id| self.bundles.iter().position(|bundle| bundle == id);
        let (one, other) = (place(one)?, place(other)?);
        let (first, second) = (one.min(other), one.max(other));
        let found = self.pairs.iter().find(|pair| (pair.first, pair.second) == (first, second));
        found.map(|pair| &pair.outlook)
    }

    /// Returns the pairs that may not merge, or about which nothing is known.
    pub fn troubles(&self) -> impl Iterator<Item = (&BundleId, &BundleId, &PairOutlook)> {
        let trouble = self.pairs.iter().filter(|pair| pair.outlook != PairOutlook::Clear);
        trouble.map(|pair| (&self.bundles[pair.first], &self.bundles[pair.second], &pair.outlook))
    }
}

impl PairOutlook {
    /// Merges each pair of commits, all in one batch, with the git attributes of the tree of `base`.
    pub fn of_pairs(
        engine: &mut MergeEngine<'_>,
        base: ObjectId,
        pairs: &[(ObjectId, ObjectId)],
    ) -> Result<Vec<Self>, EngineError> {
        // One tree of attributes for all pairs, so that one process can merge all of them.
        engine.set_attributes(engine.store().tree_of(base)?);
        let question = |&(ours, theirs): &(ObjectId, ObjectId)| Question::Commits { ours, theirs };
        let questions: Vec<Question> = pairs.iter().map(question).collect();
        Ok(engine.ask_all(&questions).into_iter().map(outlook).collect())
    }
}

fn outlook(answer: Result<Merged, EngineError>) -> PairOutlook {
    match answer {
        Ok(Merged::Clean { .. }) => PairOutlook::Clear,
        Ok(Merged::Conflicted { conflicts, .. }) => PairOutlook::Conflict { conflicts },
        Err(error) => PairOutlook::Unknown { why: pdca_state::chain(&error) },
    }
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |first| (first + 1..count).map(move |second| (first, second)))
}
