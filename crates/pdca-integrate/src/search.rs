//! Which of the changes that are red together are to blame, in as few gate runs as possible.
//!
//! A machine without input, output or git: it is asked for [`Search::next_tests`], told with
//! [`Search::report`], and says with [`Search::decisions`] what may land and what is held. Tests
//! are sets of places in the plan, to be folded onto the plan's base and gated as one tree; any
//! number of them may run at once.
//!
//! ```text
//! Base ─green─► Whole ─green─► land all, done
//!   │red twice    │red
//!   ▼             ▼
//! nobody is   Narrow: the first prefix that is red; the green one before it lands at once
//! blamed          ▼
//!             Alone / Confirm: the last of the red prefix by itself, and the prefix once more
//!                 │green again: a flake, nobody is held, the prefix lands
//!                 ▼red
//!             hold it and what needs it; go on with the rest; explain meanwhile
//! ```
//!
//! Only what was gated green lands, so soundness rests on no probability. Where more changes never
//! make a red tree green, what lands is exactly what gating one by one would let land. The number
//! of runs for one culprit among eight is six: the whole, three to narrow, one that both confirms
//! and explains, and one for the rest.
//!
//! A red is never believed once. A change that is red by itself was red in two different trees, and
//! a change that is red only with others must be so three times before it is held.

mod decision;
mod explain;
#[cfg(test)]
mod model;
mod pace;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use explain::Explanation;

pub use decision::{Answer, Decision, Purpose, Test, TestId, UnknownTest, Why};
pub use pace::Pace;

/// How often gates that could not be run are tried again.
const MAX_VOID: u32 = 3;
/// How often a prefix must be red before a change is held that is green by itself.
const REDS: u32 = 3;

/// The search.
#[derive(Debug, Clone)]
pub struct Search {
    needs: Vec<Vec<usize>>,
    landed: Vec<usize>,
    /// What is neither landed nor held, in order.
    line: Vec<usize>,
    stage: Stage,
    waiting: BTreeMap<TestId, Asked>,
    explanations: Vec<Explanation>,
    decisions: Vec<Decision>,
    voids: u32,
    next_id: u64,
}

#[derive(Debug, Clone)]
struct Asked {
    test: Test,
    /// The held one that it explains.
    explains: Option<usize>,
}

/// Where the search is. Prefixes are counted in changes of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    Base {
        reds: u32,
    },
    Whole,
    Narrow {
        green: usize,
        red: usize,
        heard: BTreeMap<usize, Answer>,
    },
    /// The first of the line is suspected. The prefix with it was red so often.
    Suspect {
        reds: u32,
        alone: Option<Answer>,
        first: Doubt,
    },
    Done,
}

/// What is asked first about a suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    Alone,
    Again,
}

impl Search {
    /// A search over as many changes as `needs` has entries, in the order of the plan. Each entry
    /// has the places of the changes that it needs, all of them earlier ones.
    pub fn new(needs: Vec<Vec<usize>>, base_is_green: bool) -> Self {
        let line: Vec<usize> = (0..needs.len()).collect();
        let stage = match (line.is_empty(), base_is_green) {
            (true, _) => Stage::Done,
            (false, false) => Stage::Base { reds: 0 },
            (false, true) => Stage::Whole,
        };
        Self {
            needs,
            landed: Vec::new(),
            line,
            stage,
            waiting: BTreeMap::new(),
            explanations: Vec::new(),
            decisions: Vec::new(),
            voids: 0,
            next_id: 0,
        }
    }

    /// Up to `lanes` tests that may run now, beside those that run already. None, while nothing is
    /// waited for, means that the search is done.
    pub fn next_tests(&mut self, lanes: usize) -> Vec<Test> {
        let mut tests = Vec::new();
        if !self.waiting.values().any(|asked| asked.explains.is_none()) {
            self.ask_main(lanes, &mut tests);
        }
        let mut explanations = std::mem::take(&mut self.explanations);
        for explanation in &mut explanations {
            let busy =
                self.waiting.values().any(|asked| asked.explains == Some(explanation.culprit()));
            if !busy {
                let culprit = Some(explanation.culprit());
                for places in explanation.next(lanes.saturating_sub(tests.len()), &self.needs) {
                    tests.push(self.ask(places, Purpose::Explain, false, culprit));
                }
            }
        }
        self.explanations = explanations;
        tests
    }

    /// Tells what came of a test. One that is not waited for any more, because something else was
    /// found out meanwhile, changes nothing.
    pub fn report(&mut self, id: TestId, answer: Answer) -> Result<(), UnknownTest> {
        let asked = self.waiting.remove(&id).ok_or(UnknownTest(id))?;
        if answer == Answer::Void {
            self.void(&asked);
            return Ok(());
        }
        self.voids = 0;
        let is_about_line = asked.explains.is_none() && asked.test.purpose != Purpose::Alone;
        match answer {
            Answer::Unfit(place) if is_about_line && self.line.contains(&place) => {
                self.unfit(place);
            }
            // What landed was folded before, so this is no answer to what was asked.
            Answer::Unfit(_) if is_about_line => {
                self.decisions.push(Decision::Stuck { purpose: asked.test.purpose });
                self.stop();
            }
            Answer::Green | Answer::Red | Answer::Unfit(_) | Answer::Void => match asked.explains {
                Some(culprit) => self.explained(culprit, &asked.test.places, answer),
                None => self.heard(&asked.test, answer),
            },
        }
        Ok(())
    }

    /// What was found out since the last time, in order.
    pub fn decisions(&mut self) -> Vec<Decision> {
        std::mem::take(&mut self.decisions)
    }

    /// Whether nothing is left to find out.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done && self.explanations.is_empty()
    }

    /// What landed so far, in order.
    pub fn landed(&self) -> &[usize] {
        &self.landed
    }

    fn ask_main(&mut self, lanes: usize, tests: &mut Vec<Test>) {
        if lanes == 0 {
            return;
        }
        let whole = self.line.len();
        match self.stage.clone() {
            Stage::Done => {}
            Stage::Base { reds } => {
                tests.push(self.ask(Vec::new(), Purpose::Base, reds > 0, None));
            }
            Stage::Whole => {
                let places = self.prefix(whole);
                tests.push(self.ask(places, Purpose::Whole, false, None));
            }
            Stage::Narrow { green, red, .. } => {
                for length in spread(green, red, lanes) {
                    let places = self.prefix(length);
                    tests.push(self.ask(places, Purpose::Prefix, false, None));
                }
            }
            Stage::Suspect { reds, alone, first } => {
                let by_itself = self.closure([self.line[0]]);
                let with_all = self.prefix(1);
                let is_same = by_itself == with_all;
                let ask_alone = alone.is_none() && !is_same && (first == Doubt::Alone || reds > 1);
                if ask_alone {
                    tests.push(self.ask(by_itself, Purpose::Alone, false, None));
                } else {
                    tests.push(self.ask(with_all, Purpose::Confirm, true, None));
                }
            }
        }
    }

    fn ask(
        &mut self,
        places: Vec<usize>,
        purpose: Purpose,
        fresh: bool,
        explains: Option<usize>,
    ) -> Test {
        let id = TestId(self.next_id);
        self.next_id += 1;
        let test = Test { id, places, purpose, fresh };
        self.waiting.insert(id, Asked { test: test.clone(), explains });
        test
    }

    fn void(&mut self, asked: &Asked) {
        self.voids += 1;
        if self.voids >= MAX_VOID {
            self.decisions.push(Decision::Stuck { purpose: asked.test.purpose });
            self.stop();
        } else if let Some(culprit) = asked.explains
            && let Some(explanation) = self.explanation(culprit)
        {
            explanation.forget(&asked.test.places);
        }
    }

    fn stop(&mut self) {
        self.stage = Stage::Done;
        self.explanations.clear();
        self.waiting.clear();
    }

    fn explanation(&mut self, culprit: usize) -> Option<&mut Explanation> {
        self.explanations.iter_mut().find(|explanation| explanation.culprit() == culprit)
    }

    fn explained(&mut self, culprit: usize, places: &[usize], answer: Answer) {
        let needs = self.needs.clone();
        let Some(explanation) = self.explanation(culprit) else { return };
        explanation.heard(places, answer == Answer::Red, &needs);
        if let Some(partners) = explanation.partners() {
            self.explanations.retain(|explanation| explanation.culprit() != culprit);
            self.decisions.push(Decision::Explained { place: culprit, partners });
        }
    }

    /// One of the line cannot be folded onto what is left of the others.
    fn unfit(&mut self, place: usize) {
        self.hold(place, Why::Unfit);
        // What else is asked about the line is about a line that is no more.
        self.waiting.retain(|_, asked| asked.explains.is_some());
        self.go_on();
    }

    fn heard(&mut self, test: &Test, answer: Answer) {
        let is_red = answer == Answer::Red;
        match (self.stage.clone(), is_red) {
            (Stage::Done, _) => {}
            (Stage::Base { reds }, true) if reds > 0 => {
                self.decisions.push(Decision::BaseRed);
                self.stop();
            }
            (Stage::Base { .. }, true) => self.stage = Stage::Base { reds: 1 },
            (Stage::Base { reds }, false) => {
                if reds > 0 {
                    self.decisions.push(Decision::Flake { places: Vec::new() });
                }
                self.stage = Stage::Whole;
            }
            (Stage::Whole, false) => self.land(self.line.len()),
            (Stage::Whole, true) => {
                self.narrowed(0, self.line.len(), Doubt::Again);
            }
            (Stage::Narrow { green, red, mut heard }, _) => {
                let length = test.places.len() - self.landed.len();
                heard.insert(length, answer);
                self.stage = Stage::Narrow { green, red, heard };
                if self.waiting.values().all(|asked| asked.explains.is_some()) {
                    self.end_of_round();
                }
            }
            (Stage::Suspect { reds, first, .. }, _) if test.purpose == Purpose::Alone => {
                if is_red {
                    self.convict(Some(Vec::new()));
                } else {
                    self.stage = Stage::Suspect { reds, alone: Some(answer), first };
                }
            }
            (Stage::Suspect { .. }, false) => {
                self.decisions.push(Decision::Flake { places: test.places.clone() });
                self.land(1);
            }
            (Stage::Suspect { reds, alone, first }, true) => self.red_again(reds + 1, alone, first),
        }
    }

    /// The prefix with the suspect was red once more.
    fn red_again(&mut self, reds: u32, alone: Option<Answer>, first: Doubt) {
        let is_same = self.closure([self.line[0]]) == self.prefix(1);
        match alone {
            // It has no others to be red with, so there is nothing else to ask.
            _ if is_same => self.convict(Some(Vec::new())),
            Some(_) if reds >= REDS => self.convict(None),
            Some(_) | None => self.stage = Stage::Suspect { reds, alone, first },
        }
    }

    /// All prefixes that were asked for are known: how far apart are green and red now?
    fn end_of_round(&mut self) {
        let Stage::Narrow { green, red, heard } = self.stage.clone() else { return };
        let greens = heard.iter().filter(|(_, answer)| **answer != Answer::Red);
        let longest = greens.map(|(length, _)| *length).max().unwrap_or(green);
        let reds = heard.iter().filter(|(_, answer)| **answer == Answer::Red);
        let (before, after): (Vec<usize>, Vec<usize>) =
            reds.map(|(length, _)| *length).partition(|length| *length < longest);
        if let Some(shortest) = before.first() {
            let (red, green) = (self.prefix(*shortest), self.prefix(longest));
            self.decisions.push(Decision::Mended { red, green });
        }
        let shortest = after.first().copied().unwrap_or(red);
        // The whole was red once only, and everything else that is red was so within the whole.
        let first = if shortest == self.line.len() { Doubt::Again } else { Doubt::Alone };
        self.narrowed(longest, shortest, first);
    }

    /// A prefix is green and a longer one is red. Where one change is between them, it is suspected.
    fn narrowed(&mut self, green: usize, red: usize, first: Doubt) {
        if red - green > 1 {
            self.stage = Stage::Narrow { green, red, heard: BTreeMap::new() };
            return;
        }
        if green > 0 {
            self.land_prefix(green);
        }
        self.stage = Stage::Suspect { reds: 1, alone: None, first };
    }

    /// The first of the line is to blame: by itself, or with others that are to be found.
    fn convict(&mut self, partners: Option<Vec<usize>>) {
        let culprit = self.line[0];
        let explanation = Explanation::new(culprit, self.landed.clone(), &self.needs);
        self.hold(culprit, Why::Culprit);
        // With a single other there is nothing to search for.
        match partners.or_else(|| explanation.partners()) {
            Some(partners) => {
                self.decisions.push(Decision::Explained { place: culprit, partners });
            }
            None => self.explanations.push(explanation),
        }
        self.go_on();
    }

    /// Takes a change out of the line, with all that need it.
    fn hold(&mut self, place: usize, why: Why) {
        self.line.retain(|other| *other != place);
        self.decisions.push(Decision::Hold { place, why });
        let needing: Vec<usize> =
            self.line.iter().copied().filter(|other| self.needs[*other].contains(&place)).collect();
        for other in needing {
            if self.line.contains(&other) {
                self.hold(other, Why::Needs(place));
            }
        }
    }

    fn land(&mut self, length: usize) {
        self.land_prefix(length);
        self.go_on();
    }

    fn land_prefix(&mut self, length: usize) {
        let places: Vec<usize> = self.line.drain(..length).collect();
        self.landed.extend(&places);
        self.landed.sort_unstable();
        self.decisions.push(Decision::Land { places, gated: self.landed.clone() });
    }

    fn go_on(&mut self) {
        self.stage = if self.line.is_empty() { Stage::Done } else { Stage::Whole };
    }

    /// What landed, and so many of the line, in the order of the plan.
    fn prefix(&self, length: usize) -> Vec<usize> {
        let mut places = self.landed.clone();
        places.extend(&self.line[..length]);
        places.sort_unstable();
        places
    }

    fn closure(&self, places: impl IntoIterator<Item = usize>) -> Vec<usize> {
        closure(&self.needs, places)
    }
}

/// The places and all that they need, in order.
fn closure(needs: &[Vec<usize>], places: impl IntoIterator<Item = usize>) -> Vec<usize> {
    let mut found = BTreeSet::new();
    let mut open: Vec<usize> = places.into_iter().collect();
    while let Some(place) = open.pop() {
        if found.insert(place) {
            open.extend(needs.get(place).into_iter().flatten());
        }
    }
    found.into_iter().collect()
}

/// Up to `count` lengths strictly between two, evenly spread.
fn spread(low: usize, high: usize, count: usize) -> Vec<usize> {
    let between = high - low - 1;
    let count = count.min(between);
    (1..=count).map(|part| low + (part * (high - low)).div_ceil(count + 1).min(between)).collect()
}
