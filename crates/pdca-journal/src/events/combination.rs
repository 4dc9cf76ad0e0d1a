//! The combinations that an integration gated, as a tree: each below the smallest earlier one that contains it. Made of
//! events, for people.

use std::collections::BTreeSet;

use pdca_state::BundleId;

use crate::events::{GatePurpose, IntegrationStep};

/// A combination that was gated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatedCombination {
    /// The changes in it; none for the branch by itself.
    pub bundles: Vec<BundleId>,
    /// The tree that was gated.
    pub tree: String,
    /// The question; `None` if the verdict was known before.
    pub purpose: Option<GatePurpose>,
    /// The verdict.
    pub verdict: CombinationVerdict,
    /// The smaller combinations that were asked about because of it, in their order.
    pub parts: Vec<GatedCombination>,
}

/// The verdict about a combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CombinationVerdict {
    /// The gates passed.
    Green,
    /// A gate failed.
    Red {
        /// The rows that failed.
        rows: Vec<String>,
        /// The tests that failed, as far as the rows name them.
        failing: Vec<String>,
    },
    /// The gates came to none.
    Undecided {
        /// The rows, with the reason.
        rows: Vec<String>,
    },
    /// The record ends before there is one.
    Open,
}

impl CombinationVerdict {
    /// Returns the word for people.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Red { .. } => "red",
            Self::Undecided { .. } => "no verdict",
            Self::Open => "unfinished",
        }
    }
}

/// Makes the trees of an integration, usually one for each round.
pub fn combinations<'s>(
    steps: impl IntoIterator<Item = &'s IntegrationStep>,
) -> Vec<GatedCombination> {
    let mut asked: Vec<GatedCombination> = Vec::new();
    for step in steps {
        match step {
            IntegrationStep::Gating { bundles, tree, purpose } => asked.push(GatedCombination {
                bundles: bundles.clone(),
                tree: tree.clone(),
                purpose: Some(*purpose),
                verdict: CombinationVerdict::Open,
                parts: Vec::new(),
            }),
            IntegrationStep::Green { bundles, tree } => {
                answer(&mut asked, bundles, tree, CombinationVerdict::Green);
            }
            IntegrationStep::Red { bundles, tree, rows, failing } => {
                let verdict =
                    CombinationVerdict::Red { rows: rows.clone(), failing: failing.clone() };
                answer(&mut asked, bundles, tree, verdict);
            }
            IntegrationStep::NoVerdict { bundles, tree, rows } => {
                answer(
                    &mut asked,
                    bundles,
                    tree,
                    CombinationVerdict::Undecided { rows: rows.clone() },
                );
            }
            IntegrationStep::BaseMoved { .. }
            | IntegrationStep::Flaky { .. }
            | IntegrationStep::Mended { .. }
            | IntegrationStep::Held { .. }
            | IntegrationStep::Landed { .. } => {}
        }
    }
    nested(asked)
}

/// Returns a combination as text: `12 + 15`, or `the branch by itself`.
pub fn set(bundles: &[BundleId]) -> String {
    if bundles.is_empty() {
        return "the branch by itself".to_owned();
    }
    bundles.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" + ")
}

/// Gives the verdict to the question it answers, or to a new entry where none was asked.
fn answer(
    asked: &mut Vec<GatedCombination>,
    bundles: &[BundleId],
    tree: &str,
    verdict: CombinationVerdict,
) {
    // By its changes and not by its tree: where every commit is gated, the answer names a tree on
    // the way.
    let is_it = |one: &&mut GatedCombination| {
        one.bundles == bundles && one.verdict == CombinationVerdict::Open
    };
    if let Some(open) = asked.iter_mut().find(is_it) {
        open.verdict = verdict;
        return;
    }
    // Where every commit is gated on the way, further trees of one combination are green too.
    if asked.iter().any(|one| one.bundles == bundles && one.verdict == verdict) {
        return;
    }
    asked.push(GatedCombination {
        bundles: bundles.to_vec(),
        tree: tree.to_owned(),
        purpose: None,
        verdict,
        parts: Vec::new(),
    });
}

/// Puts each combination below the smallest earlier one that contains it.
fn nested(asked: Vec<GatedCombination>) -> Vec<GatedCombination> {
    let sets: Vec<BTreeSet<BundleId>> =
        asked.iter().map(|one| one.bundles.iter().cloned().collect()).collect();
    let parent = |place: usize| {
        let contains = |other: &usize| sets[*other].is_superset(&sets[place]);
        (0..place).filter(contains).min_by_key(|other| sets[*other].len())
    };
    let parents: Vec<Option<usize>> = (0..asked.len()).map(parent).collect();
    // From the last to the first, so that an entry is complete before it is moved.
    let mut slots: Vec<Option<GatedCombination>> = asked.into_iter().map(Some).collect();
    for place in (0..slots.len()).rev() {
        let Some(parent) = parents[place] else { continue };
        if let Some(part) = slots[place].take()
            && let Some(whole) = &mut slots[parent]
        {
            whole.parts.insert(0, part);
        }
    }
    slots.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids(text: &str) -> Vec<BundleId> {
        text.split('+').map(|id| id.trim().parse().unwrap()).collect()
    }

    /// Reads `12+15 red` as a question and its answer, `12+15 ?` as a question alone, `12 known` as an answer alone.
    fn steps(script: &str) -> Vec<IntegrationStep> {
        let mut steps = Vec::new();
        for line in script.split(';') {
            let (set, word) = line.trim().rsplit_once(' ').unwrap();
            let (bundles, tree) = (ids(set), "t".to_owned());
            if word != "known" {
                let purpose = GatePurpose::Decide;
                let (bundles, tree) = (bundles.clone(), tree.clone());
                steps.push(IntegrationStep::Gating { bundles, tree, purpose });
            }
            steps.extend(match word {
                "green" | "known" => Some(IntegrationStep::Green { bundles, tree }),
                "red" => {
                    let (rows, failing) = (vec!["T3".to_owned()], Vec::new());
                    Some(IntegrationStep::Red { bundles, tree, rows, failing })
                }
                _ => None,
            });
        }
        steps
    }

    fn shown(all: &[GatedCombination]) -> String {
        let one = |one: &GatedCombination| {
            let parts = if one.parts.is_empty() {
                String::new()
            } else {
                format!(" [{}]", shown(&one.parts))
            };
            format!("{} {}{parts}", set(&one.bundles), one.verdict.as_str())
        };
        all.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    fn count(all: &[GatedCombination]) -> usize {
        all.iter().map(|one| 1 + count(&one.parts)).sum()
    }

    #[test]
    fn a_part_is_below_the_smallest_whole_that_was_asked_about_before() {
        let tree = combinations(&steps(
            "12+20+15+23 red; 12+20 green; 15 red; 23 green; 12+20+15 red; 7 ?; 12 known",
        ));
        assert_eq!(
            shown(&tree),
            "12 + 20 + 15 + 23 red [12 + 20 green [12 green]; 15 red; 23 green; 12 + 20 + 15 red]; 7 unfinished"
        );
    }

    #[test]
    fn a_question_asked_again_is_below_the_first() {
        let tree = combinations(&steps("12+20 red; 12+20 red"));
        assert_eq!(shown(&tree), "12 + 20 red [12 + 20 red]");
    }

    proptest! {
        #[test]
        fn every_combination_that_was_asked_about_is_in_the_tree_once(
            sets in proptest::collection::vec(proptest::collection::btree_set(1u8..6, 1..5), 0..12)
        ) {
            let asked: Vec<IntegrationStep> = sets
                .iter()
                .map(|set| IntegrationStep::Gating {
                    bundles: set.iter().map(|id| id.to_string().parse().unwrap()).collect(),
                    tree: "t".to_owned(),
                    purpose: GatePurpose::Decide,
                })
                .collect();
            prop_assert_eq!(count(&combinations(&asked)), sets.len());
        }
    }
}
