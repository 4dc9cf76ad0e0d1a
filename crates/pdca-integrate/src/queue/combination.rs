//! Any subset of a plan, folded.

use std::collections::BTreeMap;

use crate::{
    git::engine::Engine,
    git::fold::{Fate, FoldError, Folded, Recorded, fold_some},
    queue::candidate::Candidate,
    queue::plan::Plan,
};

/// The subsets of a plan that the search asks for, each folded once.
#[derive(Debug)]
pub struct Combination<'a> {
    plan: &'a Plan,
    built: BTreeMap<Vec<usize>, Built>,
}

/// What became of a subset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Built {
    /// A tip to be gated.
    Candidate(Candidate),
    /// The entry at this place does not fit the others.
    Unfit {
        /// The place in the plan.
        place: usize,
    },
    /// git could not say, which says nothing about the changes.
    Failed {
        /// Why.
        why: String,
    },
}

impl<'a> Combination<'a> {
    /// The subsets of a plan.
    pub fn new(plan: &'a Plan) -> Self {
        Self { plan, built: BTreeMap::new() }
    }

    /// Folds the entries at these places onto the base of the plan, in the order of the plan.
    pub fn build(&mut self, engine: &mut Engine<'_>, places: &[usize]) -> Result<Built, FoldError> {
        if let Some(built) = self.built.get(places) {
            return Ok(built.clone());
        }
        let chosen = places.iter().copied().collect();
        let nothing = Recorded::default();
        let folded = fold_some(engine, self.plan, &chosen, &nothing, &mut |_| Ok(()))?;
        let built = self.judge(&folded);
        // What git could not say now it may say later.
        if !matches!(built, Built::Failed { .. }) {
            self.built.insert(places.to_vec(), built.clone());
        }
        Ok(built)
    }

    fn judge(&self, folded: &Folded) -> Built {
        for bundle in &folded.bundles {
            match &bundle.fate {
                Fate::Applied { .. } | Fate::AlreadyPresent { .. } => {}
                Fate::Failed { why } => return Built::Failed { why: why.clone() },
                Fate::Conflict { .. } | Fate::Held { .. } => {
                    let is_it =
                        |entry: &crate::queue::plan::Entry| *entry.sealed().id() == bundle.id;
                    let place = self.plan.entries().iter().position(is_it);
                    return Built::Unfit { place: place.unwrap_or_default() };
                }
            }
        }
        Built::Candidate(folded.candidate().clone())
    }
}
