//! Conflict forecast: predicts which results do not merge, before anything is gated.
//!
//! There are three levels of increasing certainty: the paths that briefs declare, the heads of attempts that
//! are still being built, and seals. Heads and seals are merged pair by pair in the object store.

mod grouping;

use gix::ObjectId;
use pdca_dag::Pattern;
use serde::Serialize;

use crate::{
    conflict::Conflict,
    git::engine::{EngineError, MergeEngine, Merged, Question},
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

impl PairOutlook {
    /// Compares the paths that two briefs declare.
    pub fn of_touches(ours: &[Pattern], theirs: &[Pattern]) -> Self {
        let meet = |ours: &Pattern| theirs.iter().find_map(|theirs| ours.meet(theirs));
        match ours.iter().find_map(meet) {
            Some(path) => Self::Overlap { path },
            None => Self::Clear,
        }
    }

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
