//! The search for what breaks a combination, over the integration checkouts.
//!
//! This thread owns the search, the objects and the refs; a thread per free checkout runs gates. What
//! the search says may land lands at once, while other tests still run.

use std::collections::BTreeMap;
use std::thread;

use crossbeam_channel::unbounded;
use pdca_integrate::{
    Answer, Built, Candidate, Combination, Decision, Light, Lookup, Plan, Purpose, Search, Test,
    Verdict, Why,
};
use pdca_process::Cancel;
use pdca_state::BundleId;

use crate::drive::Driver;
use crate::seat::Seat;

use super::gate::{Bench, FIRST_SLOT, Ruling, bench};
use super::held::Reason;
use super::work::{Round, Work, held, ids, needs};
use super::{Front, IntegrateError};

/// What a test came to at once, or that it runs.
enum Asked {
    Answered(Answer),
    Running(Box<Candidate>, Bench),
}

impl Work<'_> {
    /// Finds out what of a plan lands and what does not, and lands it.
    pub(super) fn hunt(&mut self, plan: &Plan) -> Result<Round, IntegrateError> {
        if plan.entries().is_empty() {
            return Ok(Round::Done);
        }
        let mut combination = Combination::new(plan);
        let base = self.build(&mut combination, &[])?;
        let is_green = match base {
            Built::Candidate(base) => self.known(&base)? == Some(Light::Green),
            Built::Unfit { .. } | Built::Failed { .. } => false,
        };
        let mut search = Search::new(plan.needs(), is_green);
        let mut slots: Vec<u32> =
            (0..self.order.lanes.get()).map(|lane| FIRST_SLOT + lane).rev().collect();
        let (front, told) = (self.front, self.told.clone());
        let several = slots.len() > 1;
        let round = self.driver.cancel.part();
        let driver = Driver { cancel: &round, ..self.driver };
        thread::scope(|scope| {
            // What still runs when the round is over, or lost, is of no use to anybody.
            let _over = CalledOff(&round);
            let (to, from) = unbounded();
            let mut running = BTreeMap::new();
            loop {
                for decision in search.decisions() {
                    if self.carry_out(plan, &mut combination, &decision)? == Round::Moved {
                        return Ok(Round::Moved);
                    }
                }
                let tests = search.next_tests(slots.len());
                let mut answered = false;
                for test in tests {
                    let slot = slots.last().copied().unwrap_or(FIRST_SLOT);
                    match self.ask(&mut combination, &test, slot)? {
                        Asked::Answered(answer) => {
                            search.report(test.id, answer)?;
                            answered = true;
                        }
                        Asked::Running(candidate, bench) => {
                            slots.pop();
                            let (to, told) = (to.clone(), told.clone());
                            running.insert(test.id, (test.clone(), candidate));
                            scope.spawn(move || {
                                let ruling = gate(driver, &told, front, &bench, several);
                                // Nobody listens any more only where something else failed.
                                drop(to.send((test.id, bench.slot, ruling)));
                            });
                        }
                    }
                }
                if answered {
                    continue;
                }
                if running.is_empty() {
                    return Ok(Round::Done);
                }
                let Ok((id, slot, ruling)) = from.recv() else { return Ok(Round::Done) };
                slots.push(slot);
                let Some((test, candidate)) = running.remove(&id) else { continue };
                let answer = self.heard(&test, &candidate, ruling?)?;
                search.report(id, answer)?;
            }
        })
    }

    fn build(
        &mut self,
        combination: &mut Combination<'_>,
        places: &[usize],
    ) -> Result<Built, IntegrateError> {
        Ok(combination.build(&mut self.engine, places)?)
    }

    /// What was said about a tree before, by exactly these gates.
    pub(super) fn known(&self, candidate: &Candidate) -> Result<Option<Light>, IntegrateError> {
        match self.cache.look_up(&self.oracle.key(candidate))? {
            Lookup::Found(verdict) => Ok(Some(verdict.light)),
            Lookup::Unknown => Ok(None),
            Lookup::Dropped { path } => {
                self.tell(format!("{path} was damaged and is dropped"));
                Ok(None)
            }
        }
    }

    fn ask(
        &mut self,
        combination: &mut Combination<'_>,
        test: &Test,
        slot: u32,
    ) -> Result<Asked, IntegrateError> {
        let candidate = match self.build(combination, &test.places)? {
            Built::Candidate(candidate) => candidate,
            Built::Unfit { place } => return Ok(Asked::Answered(Answer::Unfit(place))),
            Built::Failed { why } => {
                self.tell(format!("git could not fold: {why}"));
                return Ok(Asked::Answered(Answer::Void));
            }
        };
        if !test.fresh
            && let Some(light) = self.known(&candidate)?
        {
            self.done.cached += 1;
            return Ok(Asked::Answered(answer(light)));
        }
        self.anchor(&candidate)?;
        let tree = candidate.tree();
        let tree = tree.to_hex_with_len(12);
        self.tell(format!("{} (tree {tree})", question(test, &candidate)));
        let mut number = 0;
        if test.fresh {
            let anew = self.anew.entry(candidate.tree()).or_default();
            *anew += 1;
            number = *anew;
        }
        let jobs = self.jobs().join(format!("{:.20}-{number}", candidate.tree()));
        let bench = bench(&candidate, slot, jobs);
        Ok(Asked::Running(Box::new(candidate), bench))
    }

    /// Keeps a verdict before anything relies on it.
    fn heard(
        &mut self,
        test: &Test,
        candidate: &Candidate,
        ruling: Ruling,
    ) -> Result<Answer, IntegrateError> {
        self.done.gate_runs += 1;
        if !ruling.written.is_empty() {
            return Err(IntegrateError::Breached { written: ruling.written });
        }
        let Some(light) = ruling.light else {
            self.reds.insert(candidate.tree(), ruling.rows.clone());
            self.tell(format!("no verdict: {}", ruling.rows.join("; ")));
            return Ok(Answer::Void);
        };
        let verdict = Verdict { key: self.oracle.key(candidate), light };
        self.driver.effects.perform("verdict", || self.cache.keep(&verdict))?;
        let said = match light {
            Light::Green => pdca_journal::Verdict::Pass,
            Light::Red => pdca_journal::Verdict::Fail,
        };
        self.chronicle.judged(candidate, &self.oracle.gate_digest, said)?;
        let word = match light {
            Light::Green => "green".to_owned(),
            Light::Red => format!("red: {}", ruling.rows.join(", ")),
        };
        self.tell(format!("{} is {word}", subject(test, candidate)));
        if light == Light::Red {
            self.reds.insert(candidate.tree(), ruling.rows);
        }
        Ok(answer(light))
    }

    fn carry_out(
        &mut self,
        plan: &Plan,
        combination: &mut Combination<'_>,
        decision: &Decision,
    ) -> Result<Round, IntegrateError> {
        let entry = |place: usize| &plan.entries()[place];
        let id = |place: &usize| entry(*place).sealed().id().clone();
        match decision {
            Decision::Land { places, gated } => {
                let Built::Candidate(candidate) = self.build(combination, gated)? else {
                    let why = "what was gated cannot be folded any more".to_owned();
                    return Err(IntegrateError::Unfoldable { id: id(&places[0]), why });
                };
                let over = |id: &BundleId| {
                    self.done.landed.iter().any(|(landed, _)| landed == id)
                        || self.round.iter().any(|held| held.id == *id)
                };
                let rest = ids(plan).into_iter().filter(|id| !over(id)).collect();
                return self.land(&candidate, &rest);
            }
            Decision::Hold { place, why: Why::Culprit } => {
                let rows = self.blame(combination, plan, &[*place])?;
                self.round
                    .push(super::Held { rows, ..held(entry(*place), Reason::Red, Vec::new()) });
            }
            Decision::Hold { place, why: Why::Needs(behind) } => {
                self.round.push(needs(entry(*place), vec![id(behind)]));
            }
            Decision::Hold { place, why: Why::Unfit } => {
                self.round.push(held(entry(*place), Reason::Conflict, Vec::new()));
            }
            Decision::Explained { place, partners } => {
                let mut guilty = partners.clone();
                guilty.push(*place);
                let rows = self.blame(combination, plan, &guilty)?;
                let name = id(place);
                if let Some(found) = self.round.iter_mut().find(|held| held.id == name) {
                    found.partners = partners.iter().map(id).collect();
                    if !rows.is_empty() {
                        found.rows = rows;
                    }
                    let sentence = found.sentence();
                    self.tell(sentence);
                }
            }
            Decision::Flake { places } => {
                self.done.flakes += 1;
                let names: Vec<String> = places.iter().map(|place| id(place).to_string()).collect();
                self.tell(format!("{} was red and then green: nobody is held", names.join(" ")));
            }
            Decision::Mended { red, green } => {
                let list = |places: &[usize]| {
                    places.iter().map(|place| id(place).to_string()).collect::<Vec<_>>().join(" ")
                };
                self.tell(format!("{} is red, and {} mends it", list(red), list(green)));
            }
            Decision::BaseRed => {
                let base = self.front.store.tree_of(plan.base())?;
                let rows = self.reds.get(&base).cloned().unwrap_or_default();
                let branch = self.front.branch.clone();
                return Err(IntegrateError::BaseRed { branch, base: plan.base(), rows });
            }
            Decision::Stuck { .. } => {
                let rows = self.reds.values().last().cloned().unwrap_or_default();
                return Err(IntegrateError::Stuck { rows });
            }
        }
        Ok(Round::Done)
    }

    /// The red rows of the smallest gated combination that has these changes in it.
    fn blame(
        &mut self,
        combination: &mut Combination<'_>,
        plan: &Plan,
        guilty: &[usize],
    ) -> Result<Vec<String>, IntegrateError> {
        let mut places: Vec<usize> = guilty.to_vec();
        let needs = plan.needs();
        let mut open = places.clone();
        while let Some(place) = open.pop() {
            for needed in &needs[place] {
                if !places.contains(needed) {
                    places.push(*needed);
                    open.push(*needed);
                }
            }
        }
        places.sort_unstable();
        if let Built::Candidate(candidate) = self.build(combination, &places)?
            && let Some(rows) = self.reds.get(&candidate.tree())
        {
            return Ok(rows.clone());
        }
        Ok(self.reds.values().last().cloned().unwrap_or_default())
    }
}

/// Calls off what still runs when it goes out of scope.
struct CalledOff<'c>(&'c Cancel);

impl Drop for CalledOff<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn gate(
    driver: Driver<'_>,
    told: &pdca_state::Bundle,
    front: &Front,
    bench: &Bench,
    several: bool,
) -> Result<Ruling, IntegrateError> {
    let seat = Seat::new(bench.slot);
    let driver = Driver { seat: several.then_some(&seat), ..driver };
    Ok(driver.gate_combination(told, front, bench)?)
}

fn answer(light: Light) -> Answer {
    match light {
        Light::Green => Answer::Green,
        Light::Red => Answer::Red,
    }
}

fn subject(test: &Test, candidate: &Candidate) -> String {
    if test.places.is_empty() {
        return "the branch by itself".to_owned();
    }
    let names: Vec<String> = candidate.bundles().map(ToString::to_string).collect();
    names.join(" + ")
}

fn question(test: &Test, candidate: &Candidate) -> String {
    let subject = subject(test, candidate);
    match test.purpose {
        Purpose::Base | Purpose::Whole | Purpose::Prefix => format!("gating {subject}"),
        Purpose::Alone => format!("gating {subject} alone"),
        Purpose::Confirm => format!("gating {subject} once more"),
        Purpose::Explain => format!("gating {subject} to find the partners"),
    }
}
