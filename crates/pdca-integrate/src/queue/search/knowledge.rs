//! The answers so far, by set of places.

use std::collections::{BTreeMap, BTreeSet};

use super::decision::{CulpritEffect, TestAnswer, TestRemarks};

/// The number of runs without a verdict from which that counts as a property of the changes.
/// Until then the host may be at fault, which is never charged to a change.
const TRIES: u32 = 3;

/// All answers of a search. Their meaning does not depend on the order in which they arrived.
#[derive(Debug, Clone, Default)]
pub(super) struct Knowledge {
    sets: BTreeMap<Vec<usize>, Evidence>,
    /// The number of runs without a verdict, over all sets.
    /// Counted over all sets, because a row that cannot be decided shows up in each set with the change that
    /// causes it.
    undecidable: u32,
}

#[derive(Debug, Clone, Default)]
struct Evidence {
    greens: u32,
    reds: u32,
    undecidable: u32,
    unfit: Option<usize>,
    /// It does not fold with files of other changes either.
    never_fits: bool,
    rows: BTreeSet<String>,
    context: BTreeSet<usize>,
    witnesses: Vec<usize>,
}

/// The conclusion about a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetFinding {
    Unknown,
    /// Green at least once. A gate may fail by mistake, but it does not pass by mistake.
    Green,
    /// Never green, and red or without a verdict.
    Bad,
    Unfit(usize),
}

impl Knowledge {
    /// Adds an answer. Returns the failed rows if it shows a flake: the same set was red and green.
    pub(super) fn learn(&mut self, places: &[usize], answer: &TestAnswer) -> Option<Vec<String>> {
        let evidence = self.sets.entry(places.to_vec()).or_default();
        match answer {
            TestAnswer::Green => evidence.greens += 1,
            TestAnswer::Red { rows } => {
                evidence.reds += 1;
                evidence.rows.extend(rows.iter().cloned());
            }
            TestAnswer::Undecidable { rows } => {
                self.undecidable += 1;
                evidence.undecidable += 1;
                evidence.rows.extend(rows.iter().cloned());
            }
            TestAnswer::Unfit(place) => evidence.unfit = Some(*place),
            TestAnswer::Void => return None,
        }
        let is_flake = match answer {
            // Told once for each set, whichever answer came first: the ledger counts flakes and not runs.
            TestAnswer::Green => evidence.reds > 0 && evidence.greens == 1,
            TestAnswer::Red { .. } => evidence.greens > 0 && evidence.reds == 1,
            TestAnswer::Undecidable { .. } | TestAnswer::Unfit(_) | TestAnswer::Void => false,
        };
        is_flake.then(|| evidence.rows.iter().cloned().collect())
    }

    /// Adds what was seen beside an answer.
    pub(super) fn remark(&mut self, places: &[usize], remarks: &TestRemarks) {
        let evidence = self.sets.entry(places.to_vec()).or_default();
        evidence.context.extend(&remarks.context);
        for witness in &remarks.witnesses {
            if !evidence.witnesses.contains(witness) {
                evidence.witnesses.push(*witness);
            }
        }
    }

    /// Returns the places that could not be left out of the tree of a set.
    pub(super) fn context(&self, places: &[usize]) -> Vec<usize> {
        let context = self.sets.get(places).map(|evidence| &evidence.context);
        context.into_iter().flatten().copied().collect()
    }

    /// Returns the places that the reds about a suspect point to, most likely first.
    pub(super) fn witnesses(&self, place: usize, whole: &[usize]) -> Vec<usize> {
        let mut found = Vec::new();
        for (places, evidence) in &self.sets {
            let is_about = places.contains(&place) && is_within(places, whole);
            for witness in evidence.witnesses.iter().filter(|_| is_about) {
                if *witness != place && !found.contains(witness) {
                    found.push(*witness);
                }
            }
        }
        found
    }

    /// Returns the bad sets within `whole` and without `place` whose tree has parts of other changes, each with those
    /// changes. What landed was green as a whole, so it is the missing rest that makes such a tree red.
    pub(super) fn torn(
        &self,
        place: usize,
        whole: &[usize],
    ) -> impl Iterator<Item = (&[usize], &BTreeSet<usize>)> {
        let is_torn = move |(places, evidence): &(&Vec<usize>, &Evidence)| {
            evidence.greens == 0
                && self.bads_of(evidence) > 0
                && !evidence.context.is_empty()
                && !places.contains(&place)
                && is_within(places, whole)
        };
        let torn = self.sets.iter().filter(is_torn);
        torn.map(|(places, evidence)| (places.as_slice(), &evidence.context))
    }

    pub(super) fn finding(&self, places: &[usize]) -> SetFinding {
        let Some(evidence) = self.sets.get(places) else { return SetFinding::Unknown };
        match evidence.unfit {
            // Before the unfit: a set that could not land was gated later, with files of other changes.
            _ if evidence.greens > 0 => SetFinding::Green,
            _ if self.bads_of(evidence) > 0 => SetFinding::Bad,
            Some(place) => SetFinding::Unfit(place),
            None => SetFinding::Unknown,
        }
    }

    /// Returns the conclusion about a set that only explains. That it could not land as it was says nothing then.
    pub(super) fn explaining(&self, places: &[usize]) -> SetFinding {
        let finding = self.finding(places);
        let never_fits = self.sets.get(places).is_some_and(|evidence| evidence.never_fits);
        if matches!(finding, SetFinding::Unfit(_)) && !never_fits {
            return SetFinding::Unknown;
        }
        finding
    }

    /// Records that a set does not fold even to explain.
    pub(super) fn never_fits(&mut self, places: &[usize]) {
        self.sets.entry(places.to_vec()).or_default().never_fits = true;
    }

    /// Returns the number of gate runs of a set.
    pub(super) fn runs(&self, places: &[usize]) -> u32 {
        self.sets
            .get(places)
            .map_or(0, |evidence| evidence.greens + evidence.reds + evidence.undecidable)
    }

    /// Returns the number of gate runs of the proper subsets of `whole` that contain `place`.
    pub(super) fn runs_within(&self, place: usize, whole: &[usize]) -> u32 {
        let is_about = |places: &[usize]| {
            places.contains(&place) && places.len() < whole.len() && is_within(places, whole)
        };
        self.sets.keys().filter(|places| is_about(places)).map(|places| self.runs(places)).sum()
    }

    /// Returns the number of runs in which a set was not green.
    pub(super) fn bads(&self, places: &[usize]) -> u32 {
        self.sets.get(places).map_or(0, |evidence| self.bads_of(evidence))
    }

    /// Returns the rows that were not green.
    pub(super) fn rows(&self, places: &[usize]) -> Vec<String> {
        let rows = self.sets.get(places).map(|evidence| evidence.rows.iter().cloned().collect());
        rows.unwrap_or_default()
    }

    pub(super) fn fault(&self, places: &[usize]) -> CulpritEffect {
        match self.sets.get(places) {
            Some(evidence) if evidence.reds == 0 => CulpritEffect::Undecidable,
            Some(_) | None => CulpritEffect::Red,
        }
    }

    /// Counts the bad runs of all subsets of `whole` that contain `place` and were never green, and returns
    /// their rows.
    pub(super) fn against(&self, place: usize, whole: &[usize]) -> (u32, BTreeSet<&str>) {
        let (mut count, mut rows) = (0, BTreeSet::new());
        for (places, evidence) in &self.sets {
            let counts = evidence.greens == 0;
            if counts && places.contains(&place) && is_within(places, whole) {
                count += self.bads_of(evidence);
                rows.extend(evidence.rows.iter().map(String::as_str));
            }
        }
        (count, rows)
    }

    /// Returns the smallest bad set that contains `low` and is contained in `high`.
    pub(super) fn bad_between(&self, low: &[usize], high: &[usize]) -> Option<Vec<usize>> {
        let bad = self.sets.iter().filter(|(places, evidence)| {
            evidence.greens == 0
                && self.bads_of(evidence) > 0
                && is_within(low, places)
                && is_within(places, high)
        });
        bad.map(|(places, _)| places.clone()).min_by_key(Vec::len)
    }

    /// Returns true if some bad set is a subset of a green one. Then a green set says nothing about its subsets.
    pub(super) fn shows_mending(&self) -> bool {
        let greens = || self.sets.iter().filter(|(_, evidence)| evidence.greens > 0);
        self.sets.iter().any(|(places, evidence)| {
            evidence.greens == 0
                && self.bads_of(evidence) > 0
                && greens().any(|(green, _)| is_within(places, green))
        })
    }

    fn bads_of(&self, evidence: &Evidence) -> u32 {
        let believed = if self.undecidable >= TRIES { evidence.undecidable } else { 0 };
        evidence.reds + believed
    }
}

/// Returns true if the first sorted set is a subset of the second.
pub(super) fn is_within(part: &[usize], whole: &[usize]) -> bool {
    let mut rest = whole.iter();
    part.len() <= whole.len() && part.iter().all(|place| rest.any(|other| other == place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red() -> TestAnswer {
        TestAnswer::Red { rows: vec!["T3".to_owned()] }
    }

    #[test]
    fn a_green_takes_a_red_of_the_same_set_back_and_tells_the_rows_once() {
        let mut known = Knowledge::default();
        assert_eq!(known.learn(&[0, 1], &red()), None);
        assert_eq!(known.finding(&[0, 1]), SetFinding::Bad);
        assert_eq!(known.learn(&[0, 1], &TestAnswer::Green), Some(vec!["T3".to_owned()]));
        assert_eq!(known.finding(&[0, 1]), SetFinding::Green);
        assert_eq!(known.learn(&[0, 1], &TestAnswer::Green), None, "it is known by now");
    }

    #[test]
    fn a_missing_verdict_counts_like_a_red_only_after_it_was_missing_three_times() {
        let mut known = Knowledge::default();
        let missing = TestAnswer::Undecidable { rows: Vec::new() };
        for _ in 0..2 {
            known.learn(&[0], &missing);
            assert_eq!(known.finding(&[0]), SetFinding::Unknown);
        }
        known.learn(&[1], &missing);
        assert_eq!(known.finding(&[0]), SetFinding::Bad, "whichever set it was missing for");
        assert_eq!((known.fault(&[0]), known.bads(&[0])), (CulpritEffect::Undecidable, 2));
    }

    #[test]
    fn only_sets_that_were_never_green_speak_against_a_suspect() {
        let mut known = Knowledge::default();
        known.learn(&[0, 2], &red());
        known.learn(&[2], &red());
        known.learn(&[2], &TestAnswer::Green);
        known.learn(&[2, 3], &red());
        known.learn(&[0, 1], &red());
        assert_eq!(known.against(2, &[0, 1, 2]).0, 1, "not 3, not without 2, and no flake");
    }

    #[test]
    fn a_set_that_mends_a_part_of_itself_is_noticed() {
        let mut known = Knowledge::default();
        known.learn(&[0], &red());
        known.learn(&[1, 2], &TestAnswer::Green);
        assert!(!known.shows_mending(), "the green set does not contain the red one");
        known.learn(&[0, 1], &TestAnswer::Green);
        assert!(known.shows_mending());
    }

    #[test]
    fn between_two_sets_the_smallest_bad_one_is_found() {
        let mut known = Knowledge::default();
        for set in [&[0, 1, 2, 3][..], &[0, 1, 2], &[1, 2]] {
            known.learn(set, &red());
        }
        assert_eq!(known.bad_between(&[0], &[0, 1, 2, 3]), Some(vec![0, 1, 2]));
        assert_eq!(known.bad_between(&[0], &[0, 1]), None);
    }
}
