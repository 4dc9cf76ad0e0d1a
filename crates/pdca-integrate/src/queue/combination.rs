//! Folded subsets of a plan.

use std::collections::BTreeMap;

use crate::{
    git::engine::MergeEngine,
    git::fold::{FoldError, FoldFate, Folded, Recorded, fold_some},
    queue::candidate::Candidate,
    queue::plan::FoldPlan,
};

/// A plan whose subsets are folded on demand, each once.
#[derive(Debug)]
pub struct Combination<'a> {
    plan: &'a FoldPlan,
    built: BTreeMap<Vec<usize>, Built>,
}

/// The result of folding a subset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Built {
    Candidate(Candidate),
    /// The entry at this place of the plan conflicts with the others.
    Unfit {
        place: usize,
    },
    /// Git failed, which says nothing about the changes.
    Failed {
        why: String,
    },
}

impl<'a> Combination<'a> {
    pub fn new(plan: &'a FoldPlan) -> Self {
        Self { plan, built: BTreeMap::new() }
    }

    /// Folds the entries at these places onto the base of the plan, in the order of the plan.
    pub fn build(
        &mut self,
        engine: &mut MergeEngine<'_>,
        places: &[usize],
    ) -> Result<Built, FoldError> {
        if let Some(built) = self.built.get(places) {
            return Ok(built.clone());
        }
        let chosen = places.iter().copied().collect();
        let nothing = Recorded::default();
        let folded = fold_some(engine, self.plan, &chosen, &nothing, &mut |_| Ok(()))?;
        let built = self.judge(&folded);
        // A failure of git may be transient, so it is not remembered.
        if !matches!(built, Built::Failed { .. }) {
            self.built.insert(places.to_vec(), built.clone());
        }
        Ok(built)
    }

    fn judge(&self, folded: &Folded) -> Built {
        for bundle in &folded.bundles {
            match &bundle.fate {
                FoldFate::Applied { .. } | FoldFate::AlreadyPresent { .. } => {}
                FoldFate::Failed { why } => return Built::Failed { why: why.clone() },
                FoldFate::Conflict { .. } | FoldFate::Unsealed { .. } | FoldFate::Held { .. } => {
                    let is_it =
                        |entry: &crate::queue::plan::PlanEntry| *entry.sealed().id() == bundle.id;
                    let place = self.plan.entries().iter().position(is_it);
                    return Built::Unfit { place: place.unwrap_or_default() };
                }
            }
        }
        Built::Candidate(folded.candidate().clone())
    }
}
