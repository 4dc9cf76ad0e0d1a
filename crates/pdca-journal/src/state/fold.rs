//! One record after another: what may follow what, and what it changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pdca_state::BundleId;

use super::{
    Block, Claim, Illegal, Integration, Objection, Reconciled, Resting, RunState, Sealed, Since,
    Status, Workstream, touches,
};
use crate::claim::{Epoch, Generation};
use crate::object::ObjectId;
use crate::process::Process;
use crate::reconcile::{BundlePhase, RunPhase};
use crate::record::{
    Activity, Cause, Effect, Ending, Entry, Landing, Outcome, Phase, Reason, Record, Seal, Seq,
};
use crate::retry::Tally;

type Checked = Result<(), Objection>;

impl RunState {
    /// The state after the first record.
    pub(crate) fn admitted(entry: &Entry) -> Result<Self, Illegal> {
        let illegal = |objection| Illegal { seq: entry.seq, objection };
        let Record::Admitted(admitted) = &entry.record else {
            return Err(illegal(Objection::NotAdmitted));
        };
        if entry.seq != Seq(1) {
            return Err(illegal(Objection::OutOfOrder { expected: Seq(1) }));
        }
        let since = Since { seq: entry.seq, at: entry.at };
        let mut bundles = BTreeMap::new();
        for bundle in &admitted.batch {
            if bundles.insert(bundle.clone(), Workstream::new(since)).is_some() {
                return Err(illegal(Objection::InBatchTwice(bundle.clone())));
            }
        }
        Ok(Self {
            driver: admitted.driver.clone(),
            admitted: admitted.clone(),
            phase: RunPhase::Preparing,
            since,
            block: None,
            bundles,
            epoch: entry.epoch,
            intents: BTreeMap::new(),
            integrations: BTreeMap::new(),
            tally: Tally::default(),
            leaf_calls: 0,
            worked: Duration::ZERO,
            reconciled: None,
            requests: BTreeMap::new(),
            answered: BTreeSet::new(),
            last: since,
        })
    }

    /// Goes on by one record. A record that is refused leaves the state as it was.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), Illegal> {
        let illegal = |objection| Illegal { seq: entry.seq, objection };
        let due = Seq(self.last.seq.0 + 1);
        if entry.seq != due {
            return Err(illegal(Objection::OutOfOrder { expected: due }));
        }
        let takes_up = matches!(entry.record, Record::TakenUp { .. });
        if if takes_up { entry.epoch <= self.epoch } else { entry.epoch != self.epoch } {
            let (current, found) = (self.epoch, entry.epoch);
            return Err(illegal(Objection::OtherEpoch { current, found }));
        }
        let since = Since { seq: entry.seq, at: entry.at };
        self.take(&entry.record, since, entry.epoch).map_err(illegal)?;
        if !takes_up {
            self.worked += entry.at.uptime.saturating_sub(self.last.at.uptime);
        }
        self.last = since;
        Ok(())
    }

    /// Checks a record, and only then changes anything.
    fn take(&mut self, record: &Record, since: Since, epoch: Epoch) -> Checked {
        match record {
            Record::Admitted(_) => Err(Objection::AdmittedTwice),
            Record::TakenUp { driver, forced: _ } => {
                self.driver = driver.clone();
                self.epoch = epoch;
                Ok(())
            }
            Record::Entered { activity } => self.enter(*activity, since),
            Record::Claimed { bundle, generation, slot, base } => {
                self.claim(bundle, *generation, *slot, base, since)
            }
            Record::Started { bundle, generation, process } => {
                self.start(bundle, *generation, process)
            }
            Record::Ended { bundle, generation, ending } => {
                self.end(bundle, *generation, ending, since)
            }
            Record::Judged { bundle, generation, step, verdict } => {
                self.attempt(bundle, *generation)?;
                self.work(bundle)?.verdicts.insert(step.clone(), *verdict);
                Ok(())
            }
            Record::LeafCalled { bundle, role: _ } => {
                self.require_live()?;
                self.work(bundle)?.leaf_calls += 1;
                self.leaf_calls += 1;
                Ok(())
            }
            Record::Recovery { bundle, phase, cause } => {
                bundle.iter().try_for_each(|bundle| self.work(bundle).map(drop))?;
                self.tally.note(bundle.clone(), *phase, *cause, since, &self.driver.place.boot);
                Ok(())
            }
            Record::Conflict { bundle, with } => {
                with.iter().chain([bundle]).try_for_each(|it| self.work(it).map(drop))?;
                let (phase, cause) = (Phase::Integrate, Cause::Conflict);
                let boot = &self.driver.place.boot;
                self.tally.note(Some(bundle.clone()), phase, cause, since, boot);
                Ok(())
            }
            Record::Intent { effect } => {
                self.check_intent(effect)?;
                self.intents.insert(since.seq, effect.clone());
                Ok(())
            }
            Record::Outcome { intent, outcome } => self.resolve(*intent, outcome, since),
            Record::Planned { target, base, order } => self.plan(target, base, order),
            Record::Combined { target, tree, gate_digest: _, verdict, members } => {
                self.require_run(&[RunPhase::Integrating])?;
                let judged = (tree.clone(), members.clone(), *verdict);
                self.integration(target)?.judged.push(judged);
                if *verdict == crate::record::Verdict::Pass {
                    self.tally.succeeded(None, Phase::Validate);
                }
                Ok(())
            }
            Record::Reconciled { bundle, action } => {
                bundle.iter().try_for_each(|bundle| self.work(bundle).map(drop))?;
                let (bundle, action) = (bundle.clone(), *action);
                self.reconciled = Some(Reconciled { at: since, bundle, action });
                Ok(())
            }
            Record::Blocked { bundle, reason, evidence } => match bundle {
                None => self.block_run(*reason, evidence, since),
                Some(bundle) => self.block_bundle(bundle, *reason, evidence, since),
            },
            Record::Unblocked { bundle: None } => self.unblock_run(since),
            Record::Unblocked { bundle: Some(bundle) } => self.unblock_bundle(bundle, since),
            Record::Requested { id, request } => {
                if self.requests.contains_key(id) || self.answered.contains(id) {
                    return Err(Objection::Request(id.clone()));
                }
                self.requests.insert(id.clone(), request.clone());
                Ok(())
            }
            Record::Answered { id, refusal: _ } => {
                self.requests.remove(id).ok_or_else(|| Objection::Request(id.clone()))?;
                self.answered.insert(id.clone());
                Ok(())
            }
            Record::Abandoned { bundle, why } => self.abandon(bundle, why, since),
            Record::Cleaned { bundle } => self.clean(bundle, since),
            Record::Completed => {
                self.require_run(&[RunPhase::Draining])?;
                self.require_all(|phase| phase == BundlePhase::Cleaned)?;
                self.finish(RunPhase::Completed, since)
            }
            Record::Aborted { why: _ } => self.stop(RunPhase::Aborted, since),
            Record::Failed { why: _ } => self.stop(RunPhase::Failed, since),
        }
    }

    fn enter(&mut self, activity: Activity, since: Since) -> Checked {
        use RunPhase::{Draining, Integrating, Preparing, Running};
        let (to, from): (_, &[_]) = match activity {
            // A run begins there and never comes back.
            Activity::Preparing => (Preparing, &[]),
            Activity::Running => (Running, &[Preparing, Integrating]),
            Activity::Integrating => (Integrating, &[Running]),
            Activity::Draining => (Draining, &[Preparing, Running, Integrating]),
        };
        self.require_run(from)?;
        if to == Draining {
            self.require_no_accepted_change_waits()?;
        }
        self.set_phase(to, since);
        Ok(())
    }

    /// What is blocked is abandoned in draining. Of an accepted change only a person decides that.
    fn require_no_accepted_change_waits(&self) -> Checked {
        let waits = |work: &Workstream| {
            matches!(work.status, Status::Blocked { from: Resting::Sealed, .. })
        };
        match self.bundles.iter().find(|(_, work)| waits(work)) {
            Some((bundle, work)) => Err(is(bundle, work.status.phase())),
            None => Ok(()),
        }
    }

    fn claim(
        &mut self,
        bundle: &BundleId,
        generation: Generation,
        slot: u32,
        base: &ObjectId,
        since: Since,
    ) -> Checked {
        self.require_run(&[RunPhase::Running])?;
        self.require(bundle, &[BundlePhase::Ready, BundlePhase::Interrupted])?;
        if self.next_generation(bundle) != Some(generation) {
            return Err(Objection::Generation { bundle: bundle.clone(), found: generation });
        }
        let taken = self.bundles.values().any(|other| {
            other.status == Status::Running
                && other.claim.as_ref().is_some_and(|claim| claim.slot == slot)
        });
        if taken || slot >= self.admitted.lanes {
            return Err(Objection::Slot(slot));
        }
        self.require_no_intent(bundle)?;
        let work = self.work(bundle)?;
        work.claim = Some(Claim { generation, slot, base: base.clone(), process: None });
        work.verdicts.clear();
        work.set(Status::Running, since);
        Ok(())
    }

    fn start(&mut self, bundle: &BundleId, generation: Generation, process: &Process) -> Checked {
        let claim = self.attempt(bundle, generation)?;
        claim.process = Some(process.clone());
        Ok(())
    }

    fn end(
        &mut self,
        bundle: &BundleId,
        generation: Generation,
        ending: &Ending,
        since: Since,
    ) -> Checked {
        self.attempt(bundle, generation)?;
        let blocked = |reason, evidence: &str| Status::Blocked {
            reason,
            evidence: evidence.to_owned(),
            from: Resting::Ready,
        };
        let status = match ending {
            Ending::Finished => {
                self.tally.succeeded(Some(bundle), Phase::Attempt);
                blocked(Reason::SignOff, "")
            }
            Ending::NoChange => blocked(Reason::NoChange, ""),
            Ending::Failed { what } => blocked(Reason::Failed, what),
            Ending::Interrupted { cause: _ } => Status::Interrupted,
        };
        self.work(bundle)?.set(status, since);
        Ok(())
    }

    fn check_intent(&mut self, effect: &Effect) -> Checked {
        use BundlePhase::{Abandoned, Cleaned, Interrupted, Landed, Ready};
        if let Some(bundle) = effect.bundle() {
            self.require_no_intent(bundle)?;
        }
        match effect {
            Effect::Prepare { bundle, slot } => {
                self.require_run(&[RunPhase::Preparing, RunPhase::Running])?;
                self.require(bundle, &[Ready, Interrupted])?;
                if *slot < self.admitted.lanes { Ok(()) } else { Err(Objection::Slot(*slot)) }
            }
            Effect::Rescue { bundle, reference: _ } => {
                let status = self.work(bundle)?.status.phase();
                if status == BundlePhase::Running {
                    return Err(is(bundle, status));
                }
                Ok(())
            }
            Effect::Seal(seal) => self.check_seal(seal),
            Effect::Apply { target, bundle, commit, onto } => {
                self.check_apply(target, bundle, commit, onto)
            }
            Effect::Land(landing) => self.check_landing(landing),
            Effect::Outside { .. } if self.phase.is_blocked() => self.require_run(&[]),
            Effect::Outside { .. } => self.require_live(),
            Effect::RemoveCheckout { bundle } => {
                self.require_clearing()?;
                self.require(bundle, &[Landed, Abandoned, Cleaned])
            }
            Effect::DeleteBranch { bundle, .. } => {
                self.require_clearing()?;
                self.require(bundle, &[Landed])
            }
        }
    }

    fn check_seal(&self, seal: &Seal) -> Checked {
        self.require_run(&[RunPhase::Running, RunPhase::Integrating])?;
        // What awaits its sign-off is blocked; what runs is not sealed, nor is anything twice.
        let legal = [BundlePhase::Ready, BundlePhase::Interrupted, BundlePhase::Blocked];
        self.require(&seal.bundle, &legal)?;
        if self.bundles.get(&seal.bundle).is_some_and(|work| work.seal.is_some()) {
            return Err(Objection::SealedTwice(seal.bundle.clone()));
        }
        if seal.commits.last() == Some(&seal.head) {
            Ok(())
        } else {
            Err(Objection::SealWithoutCommits)
        }
    }

    fn check_apply(
        &mut self,
        target: &str,
        bundle: &BundleId,
        commit: &ObjectId,
        onto: &ObjectId,
    ) -> Checked {
        self.require_run(&[RunPhase::Integrating])?;
        self.require(bundle, &[BundlePhase::Sealed])?;
        let on_target = |effect: &Effect| {
            matches!(effect, Effect::Apply { target: other, .. } if other == target)
                || matches!(effect, Effect::Land(landing) if landing.target == target)
        };
        if let Some((seq, _)) = self.intents.iter().find(|(_, effect)| on_target(effect)) {
            return Err(Objection::IntentOpen(*seq));
        }
        let sealed = self.seal(bundle)?.clone();
        let integration = self.integration(target)?.clone();
        let place = |id: &BundleId| integration.order.iter().position(|other| other == id);
        // One whose prerequisite is out is left out itself; but none is gone back to, and none left
        // half applied.
        let mut in_turn = true;
        for other in integration.progress.keys().filter(|other| *other != bundle) {
            in_turn &= place(other) < place(bundle)
                && (integration.is_out(other) || integration.is_applied(self.seal(other)?));
        }
        if in_turn && integration.takes(&sealed, commit, onto) {
            Ok(())
        } else {
            Err(Objection::NotNext { bundle: bundle.clone(), commit: commit.clone() })
        }
    }

    /// What lands was planned, applied to its end and judged green as exactly that tree.
    fn check_landing(&mut self, landing: &Landing) -> Checked {
        self.require_run(&[RunPhase::Integrating])?;
        let integration = self.integration(&landing.target)?.clone();
        if !integration.leads_to(landing) {
            return Err(Objection::NotPlanned(landing.target.clone()));
        }
        for bundle in &landing.bundles {
            self.require(bundle, &[BundlePhase::Sealed])?;
            self.require_no_intent(bundle)?;
            if !integration.is_applied(self.seal(bundle)?) {
                return Err(Objection::NotApplied(bundle.clone()));
            }
        }
        if integration.is_green(landing) {
            Ok(())
        } else {
            Err(Objection::NotGated(landing.tree.clone()))
        }
    }

    fn resolve(&mut self, intent: Seq, outcome: &Outcome, since: Since) -> Checked {
        let effect = self.intents.get(&intent).ok_or(Objection::NoSuchIntent(intent))?.clone();
        let applies = matches!(effect, Effect::Apply { .. });
        let fits = match outcome {
            Outcome::Done => !applies,
            Outcome::Applied { .. } | Outcome::Conflict { .. } | Outcome::Skipped { .. } => applies,
            Outcome::Failed { .. } => true,
        };
        if !fits {
            return Err(Objection::WrongOutcome(intent));
        }
        self.intents.remove(&intent);
        if let Outcome::Failed { .. } = outcome {
            return Ok(());
        }
        if !matches!(outcome, Outcome::Conflict { .. }) {
            self.tally.succeeded(effect.bundle(), effect.phase());
        }
        match effect {
            Effect::Seal(seal) => {
                let work = self.work(&seal.bundle.clone())?;
                work.seal = Some(Sealed { seal, order: intent });
                work.set(Status::Sealed, since);
            }
            Effect::Apply { target, bundle, commit, .. } => {
                self.integration(&target)?.note(&bundle, &commit, outcome);
            }
            Effect::Land(landing) => {
                // What is left over needs a plan on the new base.
                self.integrations.remove(&landing.target);
                for bundle in &landing.bundles {
                    self.work(bundle)?.set(Status::Landed, since);
                }
            }
            Effect::Prepare { .. }
            | Effect::Rescue { .. }
            | Effect::Outside { .. }
            | Effect::RemoveCheckout { .. }
            | Effect::DeleteBranch { .. } => {}
        }
        Ok(())
    }

    fn plan(&mut self, target: &str, base: &ObjectId, order: &[BundleId]) -> Checked {
        self.require_run(&[RunPhase::Integrating])?;
        for bundle in order {
            self.require(bundle, &[BundlePhase::Sealed])?;
            self.require_no_intent(bundle)?;
        }
        if !self.admitted.targets.iter().any(|known| known.name == target) {
            return Err(Objection::NotPlanned(target.to_owned()));
        }
        let integration = Integration::new(base.clone(), order.to_vec());
        self.integrations.insert(target.to_owned(), integration);
        Ok(())
    }

    fn block_run(&mut self, reason: Reason, evidence: &str, since: Since) -> Checked {
        use RunPhase::{Draining, Integrating, Preparing, Running};
        let to = match reason {
            Reason::Conflict => RunPhase::BlockedConflict,
            Reason::Validation => RunPhase::BlockedValidation,
            Reason::Recovery => RunPhase::BlockedRecovery,
            Reason::SignOff | Reason::NoChange | Reason::Failed => {
                return Err(Objection::NoReasonForARun);
            }
        };
        self.require_run(&[Preparing, Running, Integrating, Draining])?;
        self.block = Some(Block { reason, evidence: evidence.to_owned(), from: self.phase });
        self.set_phase(to, since);
        Ok(())
    }

    fn unblock_run(&mut self, since: Since) -> Checked {
        let block = self.block.take().ok_or(Objection::NotBlocked)?;
        self.set_phase(block.from, since);
        Ok(())
    }

    fn block_bundle(
        &mut self,
        bundle: &BundleId,
        reason: Reason,
        evidence: &str,
        since: Since,
    ) -> Checked {
        self.require_live()?;
        let work = self.work(bundle)?;
        let from = match &work.status {
            Status::Ready => Resting::Ready,
            Status::Interrupted => Resting::Interrupted,
            Status::Sealed => Resting::Sealed,
            // Another reason for what waits already: it goes on from the same place.
            Status::Blocked { from, .. } => *from,
            Status::Running | Status::Landed | Status::Abandoned { .. } | Status::Cleaned => {
                return Err(is(bundle, work.status.phase()));
            }
        };
        work.set(Status::Blocked { reason, evidence: evidence.to_owned(), from }, since);
        Ok(())
    }

    fn unblock_bundle(&mut self, bundle: &BundleId, since: Since) -> Checked {
        self.require_live()?;
        let work = self.work(bundle)?;
        let Status::Blocked { from, .. } = work.status else {
            return Err(Objection::NotBlocked);
        };
        let status = match from {
            Resting::Ready => Status::Ready,
            Resting::Interrupted => Status::Interrupted,
            Resting::Sealed => Status::Sealed,
        };
        work.set(status, since);
        Ok(())
    }

    fn abandon(&mut self, bundle: &BundleId, why: &str, since: Since) -> Checked {
        self.require_live()?;
        let legal = [BundlePhase::Ready, BundlePhase::Interrupted, BundlePhase::Blocked];
        self.require(bundle, &legal)?;
        self.require_no_intent(bundle)?;
        self.work(bundle)?.set(Status::Abandoned { why: why.to_owned() }, since);
        Ok(())
    }

    fn clean(&mut self, bundle: &BundleId, since: Since) -> Checked {
        self.require_run(&[RunPhase::Draining])?;
        self.require(bundle, &[BundlePhase::Landed, BundlePhase::Abandoned])?;
        self.require_no_intent(bundle)?;
        self.tally.succeeded(Some(bundle), Phase::Cleanup);
        self.work(bundle)?.set(Status::Cleaned, since);
        Ok(())
    }

    fn stop(&mut self, to: RunPhase, since: Since) -> Checked {
        self.require_live()?;
        self.require_all(|phase| phase != BundlePhase::Running)?;
        self.finish(to, since)
    }

    fn finish(&mut self, to: RunPhase, since: Since) -> Checked {
        if let Some(seq) = self.intents.keys().next() {
            return Err(Objection::IntentOpen(*seq));
        }
        self.block = None;
        self.set_phase(to, since);
        Ok(())
    }

    fn set_phase(&mut self, phase: RunPhase, since: Since) {
        self.phase = phase;
        self.since = since;
    }

    fn work(&mut self, bundle: &BundleId) -> Result<&mut Workstream, Objection> {
        self.bundles.get_mut(bundle).ok_or_else(|| Objection::NoSuchBundle(bundle.clone()))
    }

    /// The claim of an attempt that is at work.
    fn attempt(
        &mut self,
        bundle: &BundleId,
        generation: Generation,
    ) -> Result<&mut Claim, Objection> {
        self.require(bundle, &[BundlePhase::Running])?;
        match &mut self.work(bundle)?.claim {
            Some(claim) if claim.generation == generation => Ok(claim),
            Some(_) | None => {
                Err(Objection::Generation { bundle: bundle.clone(), found: generation })
            }
        }
    }

    fn seal(&self, bundle: &BundleId) -> Result<&Seal, Objection> {
        let work =
            self.bundles.get(bundle).ok_or_else(|| Objection::NoSuchBundle(bundle.clone()))?;
        let sealed = work.seal.as_ref().ok_or_else(|| is(bundle, work.status.phase()))?;
        Ok(&sealed.seal)
    }

    fn integration(&mut self, target: &str) -> Result<&mut Integration, Objection> {
        let none = || Objection::NotPlanned(target.to_owned());
        self.integrations.get_mut(target).ok_or_else(none)
    }

    fn require(&self, bundle: &BundleId, legal: &[BundlePhase]) -> Checked {
        let work =
            self.bundles.get(bundle).ok_or_else(|| Objection::NoSuchBundle(bundle.clone()))?;
        let phase = work.status.phase();
        if legal.contains(&phase) { Ok(()) } else { Err(is(bundle, phase)) }
    }

    fn require_all(&self, legal: impl Fn(BundlePhase) -> bool) -> Checked {
        match self.bundles.iter().find(|(_, work)| !legal(work.status.phase())) {
            Some((bundle, work)) => Err(is(bundle, work.status.phase())),
            None => Ok(()),
        }
    }

    fn require_run(&self, legal: &[RunPhase]) -> Checked {
        let phase = self.phase;
        if legal.contains(&phase) { Ok(()) } else { Err(Objection::RunIs { phase }) }
    }

    /// Not over yet.
    fn require_live(&self) -> Checked {
        let phase = self.phase;
        if phase.is_active() { Ok(()) } else { Err(Objection::RunIs { phase }) }
    }

    /// Draining, or over: only then is anything removed.
    fn require_clearing(&self) -> Checked {
        use RunPhase::{Aborted, Completed, Draining, Failed};
        self.require_run(&[Draining, Completed, Aborted, Failed])
    }

    fn require_no_intent(&self, bundle: &BundleId) -> Checked {
        match self.intents.iter().find(|(_, effect)| touches(effect, bundle)) {
            Some((seq, _)) => Err(Objection::IntentOpen(*seq)),
            None => Ok(()),
        }
    }
}

impl Workstream {
    fn new(since: Since) -> Self {
        Self {
            status: Status::Ready,
            since,
            claim: None,
            seal: None,
            verdicts: BTreeMap::new(),
            leaf_calls: 0,
        }
    }

    fn set(&mut self, status: Status, since: Since) {
        self.status = status;
        self.since = since;
    }
}

fn is(bundle: &BundleId, phase: BundlePhase) -> Objection {
    Objection::BundleIs { bundle: bundle.clone(), phase }
}
