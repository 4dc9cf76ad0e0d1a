//! Choice of the sets to gate next.
//!
//! Tests that can let changes land come first, then those that a suspect waits for. Lanes that are still free
//! gate ahead: they run the tests that will be wanted if the most probable answers come.

use std::collections::BTreeSet;

use super::{
    Aside, Search, SetFinding, closure,
    explain::{ExplainProgress, Suspect, Want},
    line::{SearchLine, share_of_culprits},
    union,
};

/// The most parts in which a line is gated after a culprit was set aside, if nothing more is red.
const LINE_PARTS: u32 = 3;

/// The sets that are worth gating, derived from a search.
pub(super) struct Agenda<'s> {
    search: &'s Search,
}

impl<'s> Agenda<'s> {
    pub(super) fn of(search: &'s Search) -> Self {
        Self { search }
    }

    /// Returns every set worth gating, most useful first.
    pub(super) fn wants(&self, free_lanes: usize) -> Vec<Want> {
        let mut wants: Vec<Want> = self.base_wants().into_iter().collect();
        wants.extend(self.line_wants(free_lanes));
        for suspect in &self.search.suspects {
            if let ExplainProgress::Open { wants: due, .. } =
                suspect.progress(self.search.facts(), free_lanes)
            {
                wants.extend(due);
            }
        }
        // Last, so that they only fill lanes that would be idle.
        wants.extend(self.guesses());
        wants
    }

    fn base_wants(&self) -> Option<Want> {
        let base = self.search.batch.base();
        // What landed was gated green on top of the base, so the base by itself no longer matters.
        if self.search.batch.has_landed() || self.search.batch.line(Aside::Nothing).is_empty() {
            return None;
        }
        match self.search.knowledge.finding(&base) {
            SetFinding::Unknown => Some(Want::decide(base)),
            // One more run each time, until `BASE_REDS` agree or one is green.
            SetFinding::Bad => {
                Some(Want::again(base.clone(), self.search.knowledge.runs(&base) + 1))
            }
            SetFinding::Green | SetFinding::Unfit(_) => None,
        }
    }

    fn line_wants(&self, free_lanes: usize) -> Vec<Want> {
        let (landed, line) =
            (self.search.batch.landed_set(), self.search.batch.line(Aside::Suspects));
        let prefixes: Vec<Vec<usize>> =
            (1..=line.len()).map(|length| union(&landed, &line[..length])).collect();
        let in_flight: Vec<usize> =
            (1..=line.len()).filter(|length| self.is_in_flight(&prefixes[length - 1])).collect();
        let outlook = self.outlook(&landed, &line);
        let lengths = if self.search.batch.setup.gates_each {
            // With `gate = "each"` every step must be green by itself, so no prefix is left out.
            let longest = outlook.red.map_or(line.len(), |red| red - 1);
            (1..=longest).filter(|length| !in_flight.contains(length)).take(free_lanes).collect()
        } else {
            outlook.lengths(&in_flight, free_lanes)
        };
        lengths.into_iter().map(|length| Want::decide(prefixes[length - 1].clone())).collect()
    }

    /// Returns the sets that will be wanted if one change of the red prefix turns out to be the suspect: the
    /// rest of the line without it.
    fn guesses(&self) -> Vec<Want> {
        let (landed, line) =
            (self.search.batch.landed_set(), self.search.batch.line(Aside::Suspects));
        let outlook = self.outlook(&landed, &line);
        let Some(red) = outlook.red else { return Vec::new() };
        let guess = |guessed: &usize| {
            let without = |place: &usize| {
                !closure(&self.search.batch.setup.needs, [*place]).contains(guessed)
            };
            let rest: Vec<usize> = line.iter().copied().filter(without).collect();
            let places = union(&landed, &rest);
            (places != landed).then(|| Want::decide(places))
        };
        line[..red].iter().filter_map(guess).collect()
    }

    fn outlook(&self, landed: &[usize], line: &[usize]) -> SearchLine {
        let is_red = |length: &usize| {
            self.search.knowledge.finding(&union(landed, &line[..*length])) == SetFinding::Bad
        };
        let red = (1..=line.len()).find(is_red);
        let culprits = self.search.suspects.len() + self.search.culprits.len();
        let innocents = landed.len() - self.search.batch.setup.landed_before;
        let share = share_of_culprits(culprits, innocents);
        let decided = culprits + innocents;
        SearchLine { len: line.len(), red, share, is_new: decided == 0 && red.is_none() }
    }

    pub(super) fn has_red_line(&self) -> bool {
        let (landed, line) =
            (self.search.batch.landed_set(), self.search.batch.line(Aside::Suspects));
        self.outlook(&landed, &line).red.is_some()
    }

    /// Returns the most runs that are still to come; see [`Search::most_runs_left`].
    pub(super) fn most_runs_left(&self) -> u32 {
        let search = self.search;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let mut runs = u32::from(self.base_wants().is_some());
        let (landed, line) = (search.batch.landed_set(), search.batch.line(Aside::Suspects));
        let outlook = self.outlook(&landed, &line);
        runs += match outlook.red {
            None if line.is_empty() => 0,
            None if search.batch.setup.gates_each => count(line.len()),
            None if outlook.is_new => 1,
            // After a culprit the rest is gated in parts, if it is not likely to be green as a whole.
            None => count(line.len()).min(1 + LINE_PARTS),
            Some(red) => {
                let (place, whole) = (line[red - 1], union(&landed, &line[..red]));
                let below = union(&landed, &line[..red - 1]);
                let halvings = usize::BITS - red.leading_zeros();
                let parts = count(line.len() - red).min(1 + LINE_PARTS);
                let suspect = Suspect { place, below, whole };
                halvings + parts + suspect.most_runs(&search.knowledge)
            }
        };
        let suspects = search.suspects.iter();
        runs + suspects.map(|suspect| suspect.most_runs(&search.knowledge)).sum::<u32>()
    }

    /// Returns the sets whose answers a decision may still wait for.
    pub(super) fn useful(&self) -> BTreeSet<Vec<usize>> {
        let search = self.search;
        let mut useful: BTreeSet<Vec<usize>> = BTreeSet::new();
        let (landed, line) = (search.batch.landed_set(), search.batch.line(Aside::Suspects));
        let longest = self.outlook(&landed, &line).red.map_or(line.len(), |red| red - 1);
        // Every prefix and not only the next ones: which lengths are asked for changes with each answer, and a
        // test that still narrows the line must not be cancelled for that.
        useful.extend((1..=longest).map(|length| union(&landed, &line[..length])));
        useful.extend(self.base_wants().into_iter().chain(self.guesses()).map(|want| want.places));
        for suspect in &search.suspects {
            if let ExplainProgress::Open { wants, alive, .. } = suspect.progress(search.facts(), 1)
            {
                useful.extend(wants.into_iter().map(|want| want.places).chain(alive));
            }
        }
        useful
    }

    fn is_in_flight(&self, places: &[usize]) -> bool {
        self.search.in_flight.values().any(|test| test.places == places)
    }
}
