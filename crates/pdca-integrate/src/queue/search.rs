//! Culprit search: finds which of the changes that are red together are to blame, in few gate runs.
//!
//! A state machine without I/O and without git. The caller takes tests from [`Search::next_tests`], reports
//! answers with [`Search::report`], and carries out [`Search::decisions`]. A test is a set of places, to be
//! folded together and gated as one tree. Any number of tests may be in flight; [`Search::cancelled`] names
//! those that became useless.
//!
//! 1. **Base and whole.** A red base is no change's fault. A whole batch that is green lands, and the search is over.
//! 2. **Bisect.** Otherwise prefixes of the line are gated, one per lane, until a red prefix is one change
//!    longer than a green one. Every green prefix lands at once.
//! 3. **Suspect.** That change is set aside with everything that needs it, and the rest of the line continues without
//!    waiting for it. A change is never held for a single red, which may be a flake.
//! 4. **Explain.** The smallest set with which the suspect is red is searched for: first the suspect alone, then with
//!    everything below it since the integration began, whichever batch that came from. The reds found on the way
//!    count as confirmation, so no run is paid for twice.
//! 5. **Hold.** A suspect with a confirmed set is held and explained. A suspect whose red does not repeat rejoins the
//!    line.
//!
//! Only a tree that was gated green lands, so soundness does not depend on probabilities. If adding a change
//! never turns a red tree green, the result is exactly that of gating one by one; if a later change mends an
//! earlier one, more may land. All decisions are derived from the set of answers. Their order does not matter,
//! and a lost search is restored by reporting the same answers to a new one.
//!
//! Gates that cannot be run are repeated up to three times. From then on a missing verdict counts like a red, and
//! the change that causes it is held as [`CulpritEffect::Undecidable`].

mod ask;
#[cfg(test)]
mod context_tests;
mod costs;
mod decision;
mod explain;
mod flake;
mod knowledge;
mod line;
mod memory;
mod pace;
mod setup;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use ask::Agenda;
use costs::SearchLog;
use explain::{ExplainProgress, Facts, Suspect, Want};
use knowledge::{Knowledge, SetFinding};

pub use costs::Costs;
pub use decision::{
    CulpritEffect, HoldReason, SearchDecision, Test, TestAnswer, TestId, TestPurpose, TestRemarks,
    UnknownTest,
};
pub use flake::{FlakeLedger, FlakeOccurrence, FlakePolicy, FlakeRules, RowHistory};
pub use memory::{Culprit, CulpritMemory, Known};
pub use pace::BatchPace;
pub use setup::SearchSetup;

/// The number of consecutive tests without a gate run after which the search gives up.
/// A host that cannot run gates answers every test like that; trying for ever would keep the locks.
const MAX_VOID: u32 = 3;
/// The number of red runs after which the base is called red.
/// A single red may be a flake, and a red base stops the whole integration.
const BASE_REDS: u32 = 2;
/// The search over one batch.
#[derive(Debug, Clone)]
pub struct Search {
    batch: Batch,
    suspects: Vec<Suspect>,
    knowledge: Knowledge,
    in_flight: BTreeMap<TestId, Test>,
    /// Cancelled tests whose answer may still arrive.
    dropped: BTreeMap<TestId, Test>,
    cancelled: Vec<TestId>,
    decisions: Vec<SearchDecision>,
    culprits: Vec<Culprit>,
    log: SearchLog,
    voids: u32,
    next_id: u64,
    is_over: bool,
}

/// The state of a change in the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceFate {
    Landed,
    /// Undecided.
    Line,
    /// Undecided, and red on top of what landed.
    Suspect,
    /// A remembered culprit with partners that have not all landed yet.
    Recalled,
    /// Does not fold without a suspect that may still rejoin the line.
    Parked,
    Held,
}

impl Search {
    pub fn new(setup: SearchSetup) -> Self {
        let mut search = Self {
            batch: Batch::new(setup),
            suspects: Vec::new(),
            knowledge: Knowledge::default(),
            in_flight: BTreeMap::new(),
            dropped: BTreeMap::new(),
            cancelled: Vec::new(),
            decisions: Vec::new(),
            culprits: Vec::new(),
            log: SearchLog::default(),
            voids: 0,
            next_id: 0,
            is_over: false,
        };
        if search.batch.setup.base_is_green {
            let base = search.batch.base();
            // Nothing ran for it, so it is not logged as a run.
            search.knowledge.learn(&base, &TestAnswer::Green);
        }
        search.advance();
        search
    }

    /// Returns up to `free_lanes` further tests to start now, most useful first. If it returns none while no
    /// test is in flight, the search is done.
    pub fn next_tests(&mut self, free_lanes: usize) -> Vec<Test> {
        let mut tests = Vec::new();
        if self.is_over || free_lanes == 0 {
            return tests;
        }
        for want in Agenda::of(self).wants(free_lanes) {
            let in_flight = self.in_flight.values().filter(|test| test.places == want.places);
            let in_flight = u32::try_from(in_flight.count()).unwrap_or(u32::MAX);
            // A want says how many runs a set needs in total. Those that were made and those in flight count
            // towards it.
            let runs = self.knowledge.runs(&want.places);
            let mut wanted = want.times.saturating_sub(runs);
            // Runs without a verdict were made, and the set is still to be found out.
            if self.knowledge.finding(&want.places) == SetFinding::Unknown {
                wanted = wanted.max(1);
            }
            for number in in_flight..wanted {
                if tests.len() == free_lanes {
                    return tests;
                }
                // A second run of the same set is asked for because the first is in doubt, so a stored verdict
                // must not answer it.
                let fresh = runs + number > 0;
                tests.push(self.ask(&want, fresh));
            }
        }
        tests
    }

    /// Takes the answer to a test. An answer to a cancelled test counts as well.
    pub fn report(&mut self, id: TestId, answer: &TestAnswer) -> Result<(), UnknownTest> {
        self.report_with(id, answer, &TestRemarks::default())
    }

    /// Takes the answer to a test, with what was seen beside it.
    pub fn report_with(
        &mut self,
        id: TestId,
        answer: &TestAnswer,
        remarks: &TestRemarks,
    ) -> Result<(), UnknownTest> {
        // A cancelled test may have ended before it noticed. Its answer is true, and saves a later run.
        let test = self.in_flight.remove(&id).or_else(|| self.dropped.remove(&id));
        let test = test.ok_or(UnknownTest(id))?;
        if self.is_over {
            return Ok(());
        }
        if *answer == TestAnswer::Void {
            self.voids += 1;
            if self.voids >= MAX_VOID {
                self.stop(SearchDecision::Stuck { purpose: test.purpose, rows: Vec::new() });
            }
            return Ok(());
        }
        // Only consecutive failures count: the host works.
        self.voids = 0;
        self.log.ran(&test.places, test.purpose, answer);
        self.knowledge.remark(&test.places, remarks);
        if matches!(answer, TestAnswer::Unfit(_)) && test.purpose != TestPurpose::Decide {
            self.knowledge.never_fits(&test.places);
        }
        if let Some(rows) = self.knowledge.learn(&test.places, answer) {
            self.decisions.push(SearchDecision::Flake { places: test.places, rows });
        }
        self.advance();
        self.cancel_useless();
        Ok(())
    }

    /// Returns the decisions since the last call, in order.
    pub fn decisions(&mut self) -> Vec<SearchDecision> {
        std::mem::take(&mut self.decisions)
    }

    /// Returns the tests that became useless since the last call. They need not be reported.
    pub fn cancelled(&mut self) -> Vec<TestId> {
        std::mem::take(&mut self.cancelled)
    }

    /// Returns true if nothing is left to find out.
    pub fn is_done(&self) -> bool {
        let is_open = |fate: &PlaceFate| !matches!(fate, PlaceFate::Landed | PlaceFate::Held);
        self.is_over || (self.suspects.is_empty() && !self.batch.fates.iter().any(is_open))
    }

    /// Returns the explained culprits, to be [remembered](Known::new).
    pub fn culprits(&self) -> &[Culprit] {
        &self.culprits
    }

    /// Returns the most runs that are still to come, those in flight included, if every culprit is one that shows
    /// already or the first of a line that is red, and is red alone or with one partner.
    pub fn most_runs_left(&self) -> u32 {
        if self.is_over { 0 } else { Agenda::of(self).most_runs_left() }
    }

    /// Returns true if a set was red, so that more is asked than whether the batch is green.
    pub fn has_red(&self) -> bool {
        !self.suspects.is_empty() || !self.culprits.is_empty() || Agenda::of(self).has_red_line()
    }

    /// Returns the runs so far, sorted by what they were good for.
    pub fn costs(&self) -> Costs {
        self.log.costs(&self.batch.base())
    }

    /// Derives every decision that follows from the answers so far.
    fn advance(&mut self) {
        // The order is that of the module: each step may assume that the ones before it have nothing left to
        // do.
        while !self.is_over
            && (self.judge_base()
                || self.land_green()
                || self.settle_recalled()
                || self.set_unfit_aside()
                || self.suspect_first()
                || self.settle_suspects())
        {}
    }

    fn judge_base(&mut self) -> bool {
        let base = self.batch.base();
        if self.batch.has_landed() || self.knowledge.bads(&base) < BASE_REDS {
            return false;
        }
        match (self.knowledge.finding(&base), self.knowledge.fault(&base)) {
            (SetFinding::Bad, CulpritEffect::Red) => self.stop(SearchDecision::BaseRed),
            (SetFinding::Bad, CulpritEffect::Undecidable) => {
                let rows = self.knowledge.rows(&base);
                self.stop(SearchDecision::Stuck { purpose: TestPurpose::Decide, rows });
            }
            (SetFinding::Unknown | SetFinding::Green | SetFinding::Unfit(_), _) => return false,
        }
        true
    }

    /// Lands the longest green prefix, with or without the suspects in it.
    fn land_green(&mut self) -> bool {
        let landed = self.batch.landed_set();
        // With the suspects first: a later change may mend a suspect, and then more lands.
        for line in [self.batch.line(Aside::Nothing), self.batch.line(Aside::Suspects)] {
            // With `gate = "each"` changes land one by one, so that each step of the branch was gated as the
            // tip.
            let longest = if self.batch.setup.gates_each { line.len().min(1) } else { line.len() };
            for length in (1..=longest).rev() {
                let gated = union(&landed, &line[..length]);
                if self.knowledge.finding(&gated) == SetFinding::Green {
                    self.land(&landed, &line[..length], gated);
                    return true;
                }
            }
        }
        false
    }

    fn land(&mut self, landed: &[usize], places: &[usize], gated: Vec<usize>) {
        self.log.decided(&gated);
        let first = union(landed, &places[..1]);
        if let Some(red) = self.knowledge.bad_between(&first, &gated) {
            self.decisions.push(SearchDecision::Mended { red, green: gated.clone() });
        }
        for place in places {
            self.batch.fates[*place] = PlaceFate::Landed;
        }
        // A green set that contains a suspect clears it.
        self.suspects.retain(|suspect| !places.contains(&suspect.place));
        self.decisions.push(SearchDecision::Land { places: places.to_vec(), gated });
    }

    /// Holds a remembered culprit once all its partners have landed, and returns it to the line if one of them
    /// is held.
    fn settle_recalled(&mut self) -> bool {
        let recalled = self.batch.setup.known.iter().find_map(|culprit| {
            let is_open = self.batch.fates[culprit.place] == PlaceFate::Recalled;
            let fates = || culprit.partners.iter().map(|partner| self.batch.fates[*partner]);
            let is_settled = fates().all(|fate| fate == PlaceFate::Landed);
            let is_void = fates().any(|fate| fate == PlaceFate::Held);
            // While a partner is undecided, so is the culprit: it is red only together with all of them.
            (is_open && (is_settled || is_void)).then(|| (culprit.clone(), is_settled))
        });
        let Some((culprit, is_settled)) = recalled else { return false };
        if is_settled {
            self.hold(culprit.place, HoldReason::Culprit(culprit.fault));
            self.explained(culprit, true);
        } else {
            self.batch.fates[culprit.place] = PlaceFate::Line;
        }
        true
    }

    /// Sets a change aside that cannot be folded onto the rest of the line.
    fn set_unfit_aside(&mut self) -> bool {
        let (landed, line) = (self.batch.landed_set(), self.batch.line(Aside::Suspects));
        let is_open = !self.suspects.is_empty();
        let unfit = (1..=line.len()).find_map(|length| {
            match self.knowledge.finding(&union(&landed, &line[..length])) {
                SetFinding::Unfit(place) => Some(place),
                SetFinding::Unknown | SetFinding::Green | SetFinding::Bad => None,
            }
        });
        match unfit {
            // It may build on a suspect that turns out to be innocent, so it is parked and not held.
            Some(place) if line.contains(&place) && is_open => {
                self.batch.fates[place] = PlaceFate::Parked;
            }
            Some(place) if line.contains(&place) => self.hold(place, HoldReason::Unfit),
            // Landed changes were folded before, so the answer does not fit the question.
            Some(_) => {
                self.stop(SearchDecision::Stuck { purpose: TestPurpose::Decide, rows: Vec::new() });
            }
            None if !is_open && self.batch.fates.contains(&PlaceFate::Parked) => {
                for fate in self.batch.fates.iter_mut().filter(|fate| **fate == PlaceFate::Parked) {
                    *fate = PlaceFate::Line;
                }
            }
            None => return false,
        }
        true
    }

    /// Makes the first of the line a suspect if it is red on top of a green base.
    fn suspect_first(&mut self) -> bool {
        let (landed, line) = (self.batch.landed_set(), self.batch.line(Aside::Suspects));
        let Some(place) = line.first().copied() else { return false };
        let whole = union(&landed, &[place]);
        let is_charged = self.knowledge.finding(&whole) == SetFinding::Bad;
        // On a base that may be red itself, a red says nothing about the change. What landed was green.
        let is_sound =
            self.batch.has_landed() || self.knowledge.finding(&landed) == SetFinding::Green;
        if !is_charged || !is_sound {
            return false;
        }
        let needed = closure(&self.batch.setup.needs, [place]);
        // What the suspect needs is in every set with it, so it cannot be told apart as a partner.
        let below = landed.into_iter().filter(|other| !needed.contains(other));
        let below = below.collect();
        self.batch.fates[place] = PlaceFate::Suspect;
        self.suspects.push(Suspect { place, below, whole });
        true
    }

    fn settle_suspects(&mut self) -> bool {
        for number in 0..self.suspects.len() {
            match self.suspects[number].progress(self.facts(), 1) {
                ExplainProgress::Open { .. } => {}
                ExplainProgress::Cleared => {
                    let cleared = self.suspects.remove(number);
                    self.batch.fates[cleared.place] = PlaceFate::Line;
                    return true;
                }
                ExplainProgress::Named { partners, context, named } => {
                    let Suspect { place, whole, .. } = self.suspects.remove(number);
                    // The red on top of what landed decided the change; the runs that explain it are counted as
                    // such.
                    self.log.decided(&whole);
                    let (fault, rows) = (self.knowledge.fault(&named), self.knowledge.rows(&named));
                    self.hold(place, HoldReason::Culprit(fault));
                    self.explained(Culprit { place, partners, context, fault, rows }, false);
                    return true;
                }
            }
        }
        false
    }

    fn explained(&mut self, culprit: Culprit, recalled: bool) {
        let Culprit { place, partners, context, rows, .. } = culprit.clone();
        self.decisions.push(SearchDecision::Explained { place, partners, context, rows, recalled });
        self.culprits.push(culprit);
    }

    /// Holds a change and everything that needs it.
    fn hold(&mut self, place: usize, why: HoldReason) {
        self.batch.fates[place] = PlaceFate::Held;
        self.decisions.push(SearchDecision::Hold { place, why });
        // Recursive through `needs`; a change that is held already is left alone, so it ends.
        for other in 0..self.batch.fates.len() {
            let is_open = !matches!(self.batch.fates[other], PlaceFate::Landed | PlaceFate::Held);
            if is_open && self.batch.setup.needs[other].contains(&place) {
                self.suspects.retain(|suspect| suspect.place != other);
                self.hold(other, HoldReason::Needs(place));
            }
        }
    }

    fn stop(&mut self, decision: SearchDecision) {
        self.decisions.push(decision);
        self.is_over = true;
        self.cancelled.extend(self.in_flight.keys());
        // Their answers may still be reported, which must not be an error.
        self.dropped.append(&mut self.in_flight);
    }

    fn ask(&mut self, want: &Want, fresh: bool) -> Test {
        let id = TestId(self.next_id);
        self.next_id += 1;
        let test = Test { id, places: want.places.clone(), purpose: want.purpose, fresh };
        self.in_flight.insert(id, test.clone());
        test
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            needs: &self.batch.setup.needs,
            knowledge: &self.knowledge,
            flakes: &self.batch.setup.flakes,
        }
    }

    /// Cancels the tests in flight that no decision waits for any more.
    fn cancel_useless(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let useful = Agenda::of(self).useful();
        let useless = self.in_flight.iter().filter(|(_, test)| !useful.contains(&test.places));
        let useless: Vec<TestId> = useless.map(|(id, _)| *id).collect();
        for id in useless {
            self.dropped.extend(self.in_flight.remove_entry(&id));
            self.cancelled.push(id);
        }
    }
}

/// The changes of a batch and what has become of each. Only a green set that contains everything landed may land,
/// so the landed ones are always the same prefix for every test of a line.
#[derive(Debug, Clone)]
struct Batch {
    setup: SearchSetup,
    fates: Vec<PlaceFate>,
}

impl Batch {
    fn new(setup: SearchSetup) -> Self {
        let mut fates = vec![PlaceFate::Line; setup.needs.len()];
        fates[..setup.landed_before].fill(PlaceFate::Landed);
        for culprit in &setup.known {
            // A partner that comes later in this batch has not landed yet and may be the one that is held this time.
            let is_usable = culprit.partners.iter().all(|partner| *partner < culprit.place);
            if is_usable && fates.get(culprit.place) == Some(&PlaceFate::Line) {
                fates[culprit.place] = PlaceFate::Recalled;
            }
        }
        Self { setup, fates }
    }

    /// Returns the places that landed before the batch.
    fn base(&self) -> Vec<usize> {
        (0..self.setup.landed_before).collect()
    }

    fn has_landed(&self) -> bool {
        self.fates[self.setup.landed_before..].contains(&PlaceFate::Landed)
    }

    fn landed_set(&self) -> Vec<usize> {
        (0..self.fates.len()).filter(|place| self.fates[*place] == PlaceFate::Landed).collect()
    }

    /// Returns the undecided changes that may land now, in order: those that need nothing that is set aside.
    fn line(&self, aside: Aside) -> Vec<usize> {
        let mut is_in: Vec<bool> = Vec::with_capacity(self.fates.len());
        for (place, fate) in self.fates.iter().enumerate() {
            let may = match fate {
                PlaceFate::Landed => true,
                PlaceFate::Line => self.setup.needs[place].iter().all(|need| is_in[*need]),
                PlaceFate::Suspect => aside == Aside::Nothing,
                PlaceFate::Recalled | PlaceFate::Parked | PlaceFate::Held => false,
            };
            is_in.push(may);
        }
        let undecided = |place: &usize| is_in[*place] && self.fates[*place] != PlaceFate::Landed;
        (0..self.fates.len()).filter(undecided).collect()
    }
}

/// The changes that are left out of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aside {
    Nothing,
    Suspects,
}

/// Returns the union of two disjoint sets, sorted.
fn union(one: &[usize], other: &[usize]) -> Vec<usize> {
    let mut places: Vec<usize> = one.iter().chain(other).copied().collect();
    places.sort_unstable();
    places
}

/// Returns the places and everything that they need, sorted.
pub(crate) fn closure(needs: &[Vec<usize>], places: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut found = BTreeSet::new();
    let mut open: Vec<usize> = places.into_iter().collect();
    while let Some(place) = open.pop() {
        if found.insert(place) {
            open.extend(needs.get(place).into_iter().flatten());
        }
    }
    found.into_iter().collect()
}
