//! Bisection: runs the [`Search`] for culprits with real gates, and carries out its decisions.
//!
//! # Protocol
//! 1. *Recall* earlier knowledge: verdicts of the same gates, and culprits whose change and partners are unchanged.
//!    A known culprit is held again without a gate run.
//! 2. *Ask* the search for tests, at most one per free integration checkout. A test whose trees all have a verdict
//!    is answered from the cache, unless the search wants a fresh run.
//! 3. *Anchor* the candidate by a ref before its gates start, so that a `git gc` cannot remove what is gated.
//! 4. *Gate* on one thread per checkout. This thread alone owns the search, the object store and the refs; a gate
//!    thread only returns rulings, and returns one even if it panics, or this thread would wait for ever.
//! 5. *Store* the verdict and then the journal record before the search sees the answer, so that a crash loses no
//!    finished gate run and nothing lands on a verdict that is only in memory.
//! 6. *Decide*: land a green prefix at once while other tests still run, hold a culprit after its red was
//!    reproduced, and store the set that explains it in `culprits.json`.
//! 7. *Stop* every gate that still runs when the round ends or fails; their trees are void once the base moved.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crossbeam_channel::unbounded;
use pdca_process::Cancel;
use pdca_state::BundleId;

use pdca_journal::events::{GatePurpose, IntegrationStep, WarningCode};

use crate::{
    Built, Candidate, Culprit, CulpritEffect, CulpritMemory, FlakeRules, FoldPlan, HoldReason,
    Known, Light, ObjectId, Search, SearchDecision, SearchSetup, Test, TestAnswer, TestPurpose,
    TestRemarks,
};

use super::IntegrateError;
use super::context::{
    CombinationGate, FIRST_SLOT, GateJob, GateRuling, GateRunError, IntegrationNotice, QueueContext,
};
use super::culprits::{ChangePlaces, gates, head, load_culprits, partners_of, store_culprits};
use super::flakes::{Quarantined, excuse, is_pardoned, store_ledger};
use super::held::{HeldBack, HeldChange, HeldReason};
use super::integration::{Integration, Round, held, needs};
use super::known_verdicts::Red;
use super::settings::GateSteps;
use super::target_branch::{ChangeState, TargetBranch};
use super::witnesses::witnesses;

/// The result of asking for a test: an answer from the cache, or gates to run.
enum Asked {
    Answered(TestAnswer),
    Running(Box<Candidate>, Vec<GateJob>),
}

/// The rulings of a test, tree by tree, up to the first that is not green.
type Rulings = Vec<(ObjectId, GateRuling)>;

/// A test that runs in a checkout.
struct Running {
    test: Test,
    candidate: Box<Candidate>,
    cancel: Cancel,
    /// The search cancelled the test; an `Interrupted` from its gates is then no failure.
    is_cancelled: bool,
    /// The second in which it began.
    begun: i64,
}

/// What is told about the runs of a search when one of them begins.
#[derive(Debug, Clone, Copy)]
struct RunOutlook {
    /// The most runs that are left, this one included.
    most_left: u32,
    /// Something is red, so that culprits are searched for.
    is_red: bool,
}

impl RunOutlook {
    fn of(search: &Search) -> Self {
        Self { most_left: search.most_runs_left(), is_red: search.has_red() }
    }
}

impl Integration<'_> {
    /// Decides for every change of a plan whether it lands or is held, and lands those that may.
    pub(super) fn bisect(&mut self, plan: &FoldPlan) -> Result<Round, IntegrateError> {
        if plan.entries().is_empty() {
            return Ok(Round::Done);
        }
        let places = self.places(plan)?;
        let memory = load_culprits(self.cx.workspace);
        Bisection { integration: self, places, memory }.run()
    }
}

/// One round: the changes of one plan on one base, until each has landed or is held or the base has moved.
///
/// A place means the same change from the first test to the last decision, so nothing here outlives the round
/// but what it stored.
struct Bisection<'i, 'w> {
    integration: &'i mut Integration<'w>,
    places: ChangePlaces,
    memory: CulpritMemory,
}

impl Bisection<'_, '_> {
    fn run(mut self) -> Result<Round, IntegrateError> {
        let QueueContext { workspace, gate, effects, .. } = self.integration.cx;
        let mut search = self.search()?;
        // Taken from the end, so that tests that run one after the other share the first checkout.
        let mut slots: Vec<u32> =
            (0..self.integration.request.lanes.get()).map(|lane| FIRST_SLOT + lane).rev().collect();
        let branch = self.integration.branch;
        // A part of the integration's cancellation: it is cancelled with it, and can be cancelled alone.
        let round = self.integration.cx.cancel.part();
        let ended = thread::scope(|scope| {
            // On every way out, gates that still run must be stopped: the scope waits for their threads.
            let _over = CalledOff(&round);
            let (to, from) = unbounded();
            let mut running: BTreeMap<_, Running> = BTreeMap::new();
            loop {
                // Decisions before new tests: a landing changes the base that tests are folded onto.
                for decision in search.decisions() {
                    if self.carry_out(&decision)? == Round::Moved {
                        return Ok(Round::Moved);
                    }
                }
                for id in search.cancelled() {
                    if let Some(useless) = running.get_mut(&id) {
                        useless.cancel.cancel();
                        useless.is_cancelled = true;
                    }
                }
                let mut answered = false;
                for test in search.next_tests(slots.len()) {
                    let slot = slots.last().copied().unwrap_or(FIRST_SLOT);
                    let outlook = RunOutlook::of(&search);
                    match self.ask(&test, slot, outlook)? {
                        Asked::Answered(answer) => {
                            let remarks = self.remarks(&test, &answer)?;
                            search.report_with(test.id, &answer, &remarks)?;
                            answered = true;
                        }
                        Asked::Running(candidate, jobs) => {
                            slots.pop();
                            let (to, id) = (to.clone(), test.id);
                            let rules = self.integration.verdicts.rules.clone();
                            let cancel = round.part();
                            let (part, is_cancelled) = (cancel.clone(), false);
                            let begun = (self.integration.cx.now)();
                            running.insert(
                                id,
                                Running { test, candidate, cancel, is_cancelled, begun },
                            );
                            scope.spawn(move || {
                                // A thread that ended without an answer would leave this loop waiting for ever.
                                let asked = AssertUnwindSafe(|| {
                                    gate_all(gate, branch, &jobs, &rules, &part)
                                });
                                let rulings = catch_unwind(asked).unwrap_or(Err(panicked()));
                                // The receiver is gone only if this thread returned early with another error.
                                drop(to.send((id, slot, rulings)));
                            });
                        }
                    }
                }
                // An answer from the cache may bring decisions and other tests, and nothing may be running to
                // wait for.
                if answered {
                    continue;
                }
                if running.is_empty() || search.is_done() {
                    return Ok(Round::Done);
                }
                let Ok((id, slot, rulings)) = from.recv() else { return Ok(Round::Done) };
                slots.push(slot);
                let Some(ended) = running.remove(&id) else { continue };
                match rulings {
                    Err(IntegrateError::Interrupted) if ended.is_cancelled => {}
                    // A cancelled test whose gates ended nevertheless counts like any other.
                    rulings => {
                        let (mut answer, mut is_whole) = (TestAnswer::Void, false);
                        for (tree, ruling) in rulings? {
                            is_whole = tree == ended.candidate.tree();
                            answer = self.heard(&ended, tree, ruling)?;
                        }
                        if answer == TestAnswer::Green && !is_whole {
                            // A later tree of the test was skipped for a red that has been quarantined
                            // meanwhile, so ask again.
                            answer = TestAnswer::Void;
                        }
                        let remarks = self.remarks(&ended.test, &answer)?;
                        search.report_with(id, &answer, &remarks)?;
                    }
                }
            }
        });
        // Also after a failed round: the runs have happened, and the history of a row counts each of them.
        let ledger = &self.integration.verdicts.rules.ledger;
        effects.perform("flakes.json", || store_ledger(workspace, ledger))?;
        ended
    }

    /// Sets up the search for a batch with everything that earlier integrations found out.
    fn search(&mut self) -> Result<Search, IntegrateError> {
        let below: Vec<usize> = (0..self.places.landed_before()).collect();
        let each = self.integration.request.settings.gate == GateSteps::Each;
        let mut is_green = self.is_known_green(&below)?;
        // With `gate = "each"` a green whole says nothing about the steps below it.
        if !is_green && !each {
            // If the whole batch is known to be green it lands as it is, and the base need not be gated.
            let whole: Vec<usize> = (0..self.places.needs().len()).collect();
            is_green = self.is_known_green(&whole)?;
        }
        let known = self.recall()?;
        let setup = SearchSetup::new(self.places.needs())
            .landed_before(self.places.landed_before())
            .with_green_base(is_green)
            .with_known(known)
            .gating_each(each)
            .with_flakes(self.integration.verdicts.rules.clone());
        Ok(Search::new(setup))
    }

    fn is_known_green(&mut self, chosen: &[usize]) -> Result<bool, IntegrateError> {
        Ok(match self.build(chosen)? {
            Built::Candidate(candidate) => {
                self.integration.verdicts.of(candidate.tree())? == Some(Light::Green)
            }
            Built::Unfit { .. } | Built::Failed { .. } => false,
        })
    }

    /// Returns the remembered culprits of a batch. A partner that landed before the places that a search can
    /// leave out is always present and needs no place.
    fn recall(&self) -> Result<Vec<Culprit>, IntegrateError> {
        let (names, gates) = (self.places.names(), gates(self.integration.verdicts.gates()));
        let landed =
            self.integration.branch.changes.iter().filter_map(|change| match &change.standing {
                ChangeState::Landed { sealed, .. } | ChangeState::Staged { sealed, .. } => {
                    Some(head(sealed))
                }
                ChangeState::Unsealed
                | ChangeState::Sealed(_)
                | ChangeState::Reverted { .. }
                | ChangeState::Drifted { .. } => None,
            });
        let landed: Vec<String> = landed.collect();
        let mut culprits = Vec::new();
        'culprits: for (at, name) in names.iter().enumerate().skip(self.places.landed_before()) {
            let Some(known) = self.memory.of(name).filter(|known| known.gates == gates) else {
                continue;
            };
            let mut partners = Vec::new();
            for partner in &known.partners {
                match names.iter().position(|name| name == partner) {
                    Some(place) => partners.push(place),
                    None if landed.contains(partner) => {}
                    None => continue 'culprits,
                }
            }
            if self.integration.verdicts.is_current(known)? {
                let (fault, rows) = (known.fault, known.rows.clone());
                let context = known.context.iter();
                let context = context.filter_map(|one| names.iter().position(|name| name == one));
                let context = context.collect();
                culprits.push(Culprit { place: at, partners, context, fault, rows });
            }
        }
        Ok(culprits)
    }

    fn build(&mut self, chosen: &[usize]) -> Result<Built, IntegrateError> {
        self.places.build(&mut self.integration.engine, self.integration.at, chosen)
    }

    /// Returns what a test shows beside its answer: the changes that could not be left out, and those that the evidence
    /// of a red points to.
    fn remarks(&mut self, test: &Test, answer: &TestAnswer) -> Result<TestRemarks, IntegrateError> {
        let context = self.places.context(&test.places);
        let mut remarks = TestRemarks { context, witnesses: Vec::new() };
        if !matches!(answer, TestAnswer::Red { .. }) {
            return Ok(remarks);
        }
        let red = self.red_of_set(&test.places)?.by_row;
        let entries: Vec<_> = test.places.iter().map(|place| self.places.entry(*place)).collect();
        let records: Vec<_> = entries.iter().map(|entry| entry.sealed().record()).collect();
        let found = witnesses(&self.integration.branch.store, &records, &red)?;
        remarks.witnesses = found.into_iter().map(|number| test.places[number]).collect();
        Ok(remarks)
    }

    fn ask(
        &mut self,
        test: &Test,
        slot: u32,
        outlook: RunOutlook,
    ) -> Result<Asked, IntegrateError> {
        let candidate = match self.build(&test.places)? {
            Built::Candidate(candidate) => candidate,
            Built::Unfit { place } => {
                let tip = self.integration.at;
                let lent =
                    self.places.build_lent(&mut self.integration.engine, tip, &test.places)?;
                match lent {
                    Some(lent) => lent.candidate,
                    None => return Ok(Asked::Answered(TestAnswer::Unfit(place))),
                }
            }
            Built::Failed { why } => {
                self.integration.cx.tell(format!("git could not fold: {why}"));
                return Ok(Asked::Answered(TestAnswer::Void));
            }
        };
        let mut steps = self.steps(&candidate);
        steps.push((candidate.commit(), candidate.tree()));
        // A fresh test exists because the verdict is in doubt, so the cache must not answer it.
        if !test.fresh {
            let mut unknown = Vec::new();
            for (commit, tree) in steps {
                match self.integration.verdicts.of(tree)? {
                    Some(Light::Green) => {}
                    Some(Light::Red) => {
                        let rows = self.integration.verdicts.red_over(tree).rows;
                        return Ok(self.answered(TestAnswer::Red { rows }));
                    }
                    None => unknown.push((commit, tree)),
                }
            }
            if unknown.is_empty() {
                return Ok(self.answered(TestAnswer::Green));
            }
            steps = unknown;
        }
        // Before the gates start: they may run for hours, and no other ref has this commit.
        self.integration.anchor(&candidate)?;
        let tree = candidate.tree();
        let tree = tree.to_hex_with_len(12);
        let gating = IntegrationStep::Gating {
            bundles: candidate.bundles().cloned().collect(),
            tree: candidate.tree().to_string(),
            purpose: match test.purpose {
                TestPurpose::Decide => GatePurpose::Decide,
                TestPurpose::Confirm => GatePurpose::Confirm,
                TestPurpose::Explain => GatePurpose::Explain,
            },
        };
        self.integration.runs.begin();
        let told = self.integration.runs.told(outlook.most_left, outlook.is_red);
        let question = question(test, &candidate);
        self.integration.cx.emit(format!("{question} (tree {tree}; {told})"), gating);
        let mut number = 0;
        if test.fresh {
            // Each fresh run has a directory of its own. In that of an earlier run the finished rows would be
            // found and reused.
            number = self.integration.verdicts.next_fresh_run(candidate.tree());
        }
        let job = |(commit, tree): (ObjectId, ObjectId)| GateJob {
            run: self.integration.run.as_str().to_owned(),
            slot,
            commit,
            tree,
            asked: number,
            jobs: self.integration.dir.jobs().join(format!("{tree:.20}-{number}")),
        };
        let jobs = steps.into_iter().map(job).collect();
        Ok(Asked::Running(Box::new(candidate), jobs))
    }

    fn answered(&mut self, answer: TestAnswer) -> Asked {
        self.integration.done.cached += 1;
        self.integration.tally.reused += 1;
        Asked::Answered(answer)
    }

    /// Returns the intermediate commits of a candidate that must be green as well, with their trees: with
    /// `gate = "each"`, the commits of its last change. Earlier changes were gated when they landed.
    fn steps(&self, candidate: &Candidate) -> Vec<(ObjectId, ObjectId)> {
        if self.integration.request.settings.gate != GateSteps::Each {
            return Vec::new();
        }
        let commits = candidate.applied().last().map_or(&[][..], |(_, commits)| commits);
        let steps = commits.iter().filter(|step| step.tree != candidate.tree());
        steps.map(|step| (step.applied, step.tree)).collect()
    }

    /// Stores a verdict, emits it, and returns the answer for the search.
    fn heard(
        &mut self,
        ended: &Running,
        tree: ObjectId,
        mut ruling: GateRuling,
    ) -> Result<TestAnswer, IntegrateError> {
        let (test, candidate) = (&ended.test, &ended.candidate);
        let seconds = (self.integration.cx.now)() - ended.begun;
        self.integration.runs.ended(seconds);
        self.integration.done.gate_runs += 1 + ruling.asked_again;
        let quarantined = self.integration.verdicts.pardon(&mut ruling);
        for row in &quarantined {
            let (of, why) =
                (subject(test, candidate), excuse(row, &self.integration.verdicts.rules));
            let warning = format!("{row} is red over {of} and {why}");
            (self.integration.cx.notify)(IntegrationNotice::Warning {
                code: WarningCode::FlakyRow,
                text: warning,
            });
            let (row, tree) = (row.clone(), tree.to_string());
            let changes: Vec<String> = candidate.bundles().map(ToString::to_string).collect();
            let now = (self.integration.request.clock)().wall.to_string();
            self.integration.verdicts.rules.ledger.flaked(&row, &tree, &changes, &now);
            self.integration.done.quarantined.push(Quarantined { row, tree });
        }
        self.integration.tally.ran(ruling.light);
        self.integration.count();
        let answer = ruling.answer();
        let Some(light) = ruling.light else {
            let sentence = format!("no verdict: {}", ruling.rows.join("; "));
            self.integration.cx.emit(sentence, judged(candidate, tree, &ruling));
            self.integration.verdicts.keep_red(candidate.tree(), Red::of(ruling));
            return Ok(answer);
        };
        // Before the journal and the search: a landing requires the stored verdict, and a crash must not cost
        // the run.
        self.integration.verdicts.keep(tree, light, quarantined)?;
        let said = match light {
            Light::Green => pdca_journal::GateVerdict::Pass,
            Light::Red => pdca_journal::GateVerdict::Fail,
        };
        let is_whole = tree == candidate.tree();
        // The journal records combinations. An intermediate commit of one is none.
        if is_whole {
            let gates = &self.integration.verdicts.gates().gate_digest;
            self.integration.journal.judged(candidate, gates, said)?;
        }
        let word = match light {
            Light::Green => "green".to_owned(),
            Light::Red => format!("red: {}", ruling.rows.join(", ")),
        };
        let of = if is_whole { "" } else { "a commit of " };
        let sentence = format!("{of}{} is {word}", subject(test, candidate));
        self.integration.cx.emit(sentence, judged(candidate, tree, &ruling));
        if light == Light::Red {
            // The explanation of a held change asks for the whole tree, so the red commit's result is stored
            // under both.
            if !is_whole {
                self.integration.verdicts.keep_red(tree, Red::of_rows(&ruling));
            }
            self.integration.verdicts.keep_red(candidate.tree(), Red::of(ruling));
        }
        Ok(answer)
    }

    fn carry_out(&mut self, decision: &SearchDecision) -> Result<Round, IntegrateError> {
        match decision {
            SearchDecision::Land { places: new, gated } => {
                let Built::Candidate(candidate) = self.build(gated)? else {
                    let why = "a gated combination no longer folds".to_owned();
                    return Err(IntegrateError::Unfoldable { id: self.places.id(new[0]), why });
                };
                let over = |id: &BundleId| {
                    self.integration.done.landed.iter().any(|(landed, _)| landed == id)
                        || self.integration.round.iter().any(|held| held.id == *id)
                };
                // The journal plans the rest together with the outcome, so that a resumed integration goes on
                // with it.
                let rest = self.places.batch().filter(|id| !over(id)).collect();
                let round = self.integration.land(&candidate, &rest)?;
                // After a move the places are void, and a new round numbers them again.
                if round == Round::Done {
                    self.places.land(new);
                }
                return Ok(round);
            }
            SearchDecision::Hold { place, why: HoldReason::Culprit(fault) } => {
                let reason = match fault {
                    CulpritEffect::Red => HeldReason::Red,
                    CulpritEffect::Undecidable => HeldReason::Undecidable,
                };
                let mut culprit = held(self.places.entry(*place), reason, Vec::new());
                // The partners come with the `Explained` decision that follows.
                self.red_of(&[*place])?.put_into(&mut culprit);
                self.integration.round.push(culprit);
            }
            SearchDecision::Hold { place, why: HoldReason::Needs(behind) } => {
                self.integration
                    .round
                    .push(needs(self.places.entry(*place), vec![self.places.id(*behind)]));
            }
            SearchDecision::Hold { place, why: HoldReason::Unfit } => {
                self.integration.round.push(held(
                    self.places.entry(*place),
                    HeldReason::Conflict,
                    Vec::new(),
                ));
            }
            SearchDecision::Explained { place, partners, context, rows, recalled } => {
                let (partners, context) = (partners.clone(), context.clone());
                let (place, fault, rows) = (*place, CulpritEffect::Red, rows.clone());
                self.explain(Culprit { place, partners, context, fault, rows }, *recalled)?;
            }
            SearchDecision::Flake { places, rows } => self.count_flake(places, rows)?,
            SearchDecision::Mended { red, green } => {
                let (red, green) = (self.places.ids(red), self.places.ids(green));
                let text = format!("{} is red, and {} mends it", list(&red), list(&green));
                self.integration.cx.emit(text, IntegrationStep::Mended { red, green });
            }
            SearchDecision::BaseRed => {
                let base = self.integration.branch.store.tree_of(self.integration.at)?;
                let Red { rows, by_row: red, .. } = self.integration.verdicts.red_over(base);
                let branch = self.integration.branch.branch.clone();
                return Err(IntegrateError::BaseRed {
                    branch,
                    base: self.integration.at,
                    rows,
                    red,
                });
            }
            SearchDecision::Stuck { rows, .. } => {
                let last = || self.integration.verdicts.any_red_rows();
                let rows = if rows.is_empty() { last() } else { rows.clone() };
                return Err(IntegrateError::Stuck { rows });
            }
        }
        Ok(Round::Done)
    }

    /// Adds to a held change who it is red with, who could not be left out, and the evidence.
    fn explain(&mut self, culprit: Culprit, recalled: bool) -> Result<(), IntegrateError> {
        let place = culprit.place;
        let mut guilty = culprit.partners.clone();
        guilty.push(place);
        let shared = self.places.shared(&guilty, &culprit.context);
        let mut red = self.red_of_named(&guilty, &culprit.context)?;
        red.rows.clone_from(&culprit.rows);
        let (partners, context) = if recalled {
            // The earlier integration that gated it has stored the output of the rows.
            let sealed = self.places.entry(place).sealed().record().head.to_string();
            let known = HeldBack::load(self.integration.cx.workspace);
            if let Some(known) = known.of(&self.places.id(place), Some(&sealed)) {
                red.evidence.clone_from(&known.evidence);
                red.logs.clone_from(&known.logs);
                red.by_row.clone_from(&known.red);
            }
            self.recalled_partners(&culprit)
        } else {
            let ids = (self.places.ids(&culprit.partners), self.places.ids(&culprit.context));
            self.learn(culprit)?;
            ids
        };
        let name = self.places.id(place);
        if let Some(found) = self.integration.round.iter_mut().find(|held| held.id == name) {
            (found.partners, found.context, found.shared) = (partners, context, shared);
            red.put_into(found);
            let (sentence, fact) = (found.sentence(), found.fact());
            self.integration.cx.emit(sentence, fact);
        }
        Ok(())
    }

    fn count_flake(&mut self, red: &[usize], rows: &[String]) -> Result<(), IntegrateError> {
        self.integration.done.flakes += 1;
        let tree = match self.build(red)? {
            Built::Candidate(candidate) => candidate.tree().to_string(),
            Built::Unfit { .. } | Built::Failed { .. } => String::new(),
        };
        let now = (self.integration.request.clock)().wall.to_string();
        let changes: Vec<String> = self.places.ids(red).iter().map(ToString::to_string).collect();
        for row in rows {
            self.integration.verdicts.rules.ledger.flaked(row, &tree, &changes, &now);
            *self.integration.tally.flakes.entry(row.clone()).or_default() += 1;
        }
        let bundles = self.places.ids(red);
        let names = list(&bundles);
        let flaky = IntegrationStep::Flaky { bundles, rows: rows.to_vec() };
        let rows = if rows.is_empty() { "a row".to_owned() } else { rows.join(", ") };
        self.integration
            .cx
            .emit(format!("{rows} is flaky on {names} (failed, then passed)"), flaky);
        Ok(())
    }

    /// Returns the gate results about the smallest combination with these changes; empty if it was not gated.
    fn red_of(&mut self, guilty: &[usize]) -> Result<Red, IntegrateError> {
        self.red_of_set(&self.places.closure(guilty))
    }

    /// Returns the gate results about a named set: that of the guilty, or that with those that could not be left out.
    fn red_of_named(&mut self, guilty: &[usize], context: &[usize]) -> Result<Red, IntegrateError> {
        let red = self.red_of(guilty)?;
        if context.is_empty() || red != Red::default() {
            return Ok(red);
        }
        let all: Vec<usize> = guilty.iter().chain(context).copied().collect();
        self.red_of(&all)
    }

    fn red_of_set(&mut self, places: &[usize]) -> Result<Red, IntegrateError> {
        let tree = self.tree_of_set(places)?;
        Ok(tree.map_or_else(Red::default, |tree| self.integration.verdicts.red_over(tree)))
    }

    /// Returns the tree that was or would be gated for a set.
    fn tree_of_set(&mut self, places: &[usize]) -> Result<Option<ObjectId>, IntegrateError> {
        Ok(match self.build(places)? {
            Built::Candidate(candidate) => Some(candidate.tree()),
            Built::Unfit { .. } => {
                let tip = self.integration.at;
                let lent = self.places.build_lent(&mut self.integration.engine, tip, places)?;
                lent.map(|lent| lent.candidate.tree())
            }
            Built::Failed { .. } => None,
        })
    }

    /// Stores a culprit, so that the next integration holds it without a gate run.
    fn learn(&mut self, culprit: Culprit) -> Result<(), IntegrateError> {
        let mut named = culprit.partners.clone();
        named.push(culprit.place);
        let named = self.places.closure(&named);
        let tree = self.tree_of_set(&named)?.map(|tree| tree.to_string());
        let id = self.places.id(culprit.place);
        let is_undecidable = |held: &HeldChange| held.reason == HeldReason::Undecidable;
        let found = self.integration.round.iter().find(|held| held.id == id);
        let fault = if found.is_some_and(is_undecidable) {
            CulpritEffect::Undecidable
        } else {
            CulpritEffect::Red
        };
        let culprit = Culprit { fault, ..culprit };
        let known = Known::new(
            &culprit,
            &self.places.names(),
            &gates(self.integration.verdicts.gates()),
            tree,
        );
        self.memory.learn(known);
        let QueueContext { workspace, effects, .. } = self.integration.cx;
        effects.perform("culprits.json", || store_culprits(workspace, &self.memory))
    }

    fn recalled_partners(&self, culprit: &Culprit) -> (Vec<BundleId>, Vec<BundleId>) {
        let known = self.memory.of(&self.places.names()[culprit.place]);
        let named = known.and_then(|known| partners_of(known, &self.integration.branch.changes));
        named.unwrap_or_else(|| {
            (self.places.ids(&culprit.partners), self.places.ids(&culprit.context))
        })
    }
}

fn list(ids: &[BundleId]) -> String {
    let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
    if names.is_empty() { "the branch".to_owned() } else { names.join(" ") }
}

/// Cancels the gates of a round when it goes out of scope.
struct CalledOff<'c>(&'c Cancel);

impl Drop for CalledOff<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The error for a gate thread that panicked: a defect of ours, not a verdict.
fn panicked() -> IntegrateError {
    GateRunError::Failed("the thread of a gate panicked".into()).into()
}

/// Gates one tree after the other, up to the first that is not green.
fn gate_all(
    gate: &dyn CombinationGate,
    branch: &TargetBranch,
    jobs: &[GateJob],
    rules: &FlakeRules,
    cancel: &Cancel,
) -> Result<Rulings, IntegrateError> {
    let mut rulings = Rulings::new();
    for job in jobs {
        let ruling = gate_again(gate, branch, job, rules, cancel)?;
        // The later trees of a test contain the earlier ones, so a red one decides. A red that quarantine will
        // turn green does not: the search thread pardons it, and then needs the ruling of the whole tree.
        let is_over = match ruling.light {
            Some(Light::Green) => false,
            Some(Light::Red) => {
                !ruling.rows.iter().all(|row| is_pardoned(row, &ruling.passed_again, rules))
            }
            None => true,
        };
        rulings.push((job.tree, ruling));
        if is_over {
            break;
        }
    }
    Ok(rulings)
}

/// Gates a tree, and gates it again while every red row is in quarantine and none of the runs so far was green for it:
/// a row that fails by mistake passes sooner or later, and one that is red every time is no mistake.
fn gate_again(
    gate: &dyn CombinationGate,
    branch: &TargetBranch,
    job: &GateJob,
    rules: &FlakeRules,
    cancel: &Cancel,
) -> Result<GateRuling, IntegrateError> {
    let mut ruling = gate.gate(branch, job, cancel)?;
    if ruling.light != Some(Light::Red) || !ruling.rows.iter().all(|row| rules.is_quarantined(row))
    {
        return Ok(ruling);
    }
    let asks = rules.agreement(ruling.rows.iter().map(String::as_str));
    for again in 1..asks {
        if ruling.rows.iter().all(|row| ruling.passed_again.contains(row)) {
            break;
        }
        let other = gate.gate(branch, &job.again(again), cancel)?;
        ruling.asked_again += 1;
        match other.light {
            Some(Light::Green) => ruling.passed_again.clone_from(&ruling.rows),
            Some(Light::Red) if !other.rows.iter().all(|row| rules.is_quarantined(row)) => {
                return Ok(GateRuling { asked_again: ruling.asked_again, ..other });
            }
            Some(Light::Red) => {
                let passed = ruling.rows.iter().filter(|row| !other.rows.contains(row)).cloned();
                ruling.passed_again.extend(passed.collect::<Vec<_>>());
                for row in other.rows {
                    if !ruling.rows.contains(&row) {
                        // It passed in the run before.
                        ruling.passed_again.push(row.clone());
                        ruling.rows.push(row);
                    }
                }
            }
            // A run without an answer turns no red into green.
            None => break,
        }
    }
    Ok(ruling)
}

/// Returns the event for a ruling.
fn judged(candidate: &Candidate, tree: ObjectId, ruling: &GateRuling) -> IntegrationStep {
    let bundles: Vec<BundleId> = candidate.bundles().cloned().collect();
    let (tree, rows) = (tree.to_string(), ruling.rows.clone());
    match ruling.light {
        Some(Light::Green) => IntegrationStep::Green { bundles, tree },
        Some(Light::Red) => {
            let failing = ruling.red.iter().flat_map(|row| row.failing.clone()).collect();
            IntegrationStep::Red { bundles, tree, rows, failing }
        }
        None => IntegrationStep::NoVerdict { bundles, tree, rows },
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
        TestPurpose::Decide => format!("gating {subject}"),
        TestPurpose::Confirm => format!("gating {subject} once more"),
        TestPurpose::Explain if candidate.bundles().count() == 1 => {
            format!("gating {subject} alone")
        }
        TestPurpose::Explain => format!("gating {subject} to find the partners"),
    }
}
