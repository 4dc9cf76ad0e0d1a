//! Applies one record to the state: checks that it is legal, then changes the state.

mod effect;
mod require;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pdca_state::BundleId;

use super::{
    Block, Claim, InvalidRecord, Reconciled, RejectedRecord, Resting, RunState, Since, Workstream,
    WorkstreamStatus,
};
use crate::claim::{Epoch, Generation};
use crate::object_id::ObjectId;
use crate::process::Process;
use crate::reconcile::{BundlePhase, RunPhase};
use crate::record::{Activity, BeatEnding, Cause, Entry, Phase, Reason, Record, Seq};
use crate::retry::Tally;

use require::is;

type Checked = Result<(), InvalidRecord>;

impl RunState {
    pub(crate) fn admitted(entry: &Entry) -> Result<Self, RejectedRecord> {
        let rejected = |reason| RejectedRecord { seq: entry.seq, reason };
        let Record::Admitted(admitted) = &entry.record else {
            return Err(rejected(InvalidRecord::NotAdmitted));
        };
        if entry.seq != Seq(1) {
            return Err(rejected(InvalidRecord::OutOfOrder { expected: Seq(1) }));
        }
        let since = Since { seq: entry.seq, at: entry.at };
        let mut bundles = BTreeMap::new();
        for bundle in &admitted.batch {
            if bundles.insert(bundle.clone(), Workstream::new(since)).is_some() {
                return Err(rejected(InvalidRecord::InBatchTwice(bundle.clone())));
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

    /// Applies one record. A refused record leaves the state unchanged.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), RejectedRecord> {
        let rejected = |reason| RejectedRecord { seq: entry.seq, reason };
        let due = Seq(self.last.seq.0 + 1);
        if entry.seq != due {
            return Err(rejected(InvalidRecord::OutOfOrder { expected: due }));
        }
        let takes_up = matches!(entry.record, Record::TakenUp { .. });
        if if takes_up { entry.epoch <= self.epoch } else { entry.epoch != self.epoch } {
            let (current, found) = (self.epoch, entry.epoch);
            return Err(rejected(InvalidRecord::OtherEpoch { current, found }));
        }
        let since = Since { seq: entry.seq, at: entry.at };
        self.take(&entry.record, since, entry.epoch).map_err(rejected)?;
        if !takes_up {
            self.worked += entry.at.uptime.saturating_sub(self.last.at.uptime);
        }
        self.last = since;
        Ok(())
    }

    /// Checks a record and changes the state only if it is legal.
    fn take(&mut self, record: &Record, since: Since, epoch: Epoch) -> Checked {
        match record {
            Record::Admitted(_) => Err(InvalidRecord::AdmittedTwice),
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
                let judged = (*tree, members.clone(), *verdict);
                self.integration(target)?.judged.push(judged);
                if *verdict == crate::record::GateVerdict::Pass {
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
                    return Err(InvalidRecord::Request(id.clone()));
                }
                self.requests.insert(id.clone(), request.clone());
                Ok(())
            }
            Record::Answered { id, refusal: _ } => {
                self.requests.remove(id).ok_or_else(|| InvalidRecord::Request(id.clone()))?;
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
            // A run starts in this phase and never returns to it.
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

    /// Draining abandons blocked bundles. Only a person may give up an accepted change, so none may be
    /// blocked when draining begins.
    fn require_no_accepted_change_waits(&self) -> Checked {
        let waits = |work: &Workstream| {
            matches!(work.status, WorkstreamStatus::Blocked { from: Resting::Sealed, .. })
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
            return Err(InvalidRecord::Generation { bundle: bundle.clone(), found: generation });
        }
        let taken = self.bundles.values().any(|other| {
            other.status == WorkstreamStatus::Running
                && other.claim.as_ref().is_some_and(|claim| claim.slot == slot)
        });
        if taken || slot >= self.admitted.lanes {
            return Err(InvalidRecord::Slot(slot));
        }
        self.require_no_intent(bundle)?;
        let work = self.work(bundle)?;
        work.claim = Some(Claim { generation, slot, base: *base, process: None });
        work.verdicts.clear();
        work.set(WorkstreamStatus::Running, since);
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
        ending: &BeatEnding,
        since: Since,
    ) -> Checked {
        self.attempt(bundle, generation)?;
        let blocked = |reason, evidence: &str| WorkstreamStatus::Blocked {
            reason,
            evidence: evidence.to_owned(),
            from: Resting::Ready,
        };
        let status = match ending {
            BeatEnding::Finished => {
                self.tally.succeeded(Some(bundle), Phase::Attempt);
                blocked(Reason::SignOff, "")
            }
            BeatEnding::NoChange => blocked(Reason::NoChange, ""),
            BeatEnding::Failed { what } => blocked(Reason::Failed, what),
            BeatEnding::Interrupted { cause: _ } => WorkstreamStatus::Interrupted,
        };
        self.work(bundle)?.set(status, since);
        Ok(())
    }

    fn block_run(&mut self, reason: Reason, evidence: &str, since: Since) -> Checked {
        use RunPhase::{Draining, Integrating, Preparing, Running};
        let to = match reason {
            Reason::Conflict => RunPhase::BlockedConflict,
            Reason::Validation => RunPhase::BlockedValidation,
            Reason::Recovery => RunPhase::BlockedRecovery,
            Reason::SignOff | Reason::NoChange | Reason::Failed => {
                return Err(InvalidRecord::NoReasonForARun);
            }
        };
        self.require_run(&[Preparing, Running, Integrating, Draining])?;
        self.block = Some(Block { reason, evidence: evidence.to_owned(), from: self.phase });
        self.set_phase(to, since);
        Ok(())
    }

    fn unblock_run(&mut self, since: Since) -> Checked {
        let block = self.block.take().ok_or(InvalidRecord::NotBlocked)?;
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
            WorkstreamStatus::Ready => Resting::Ready,
            WorkstreamStatus::Interrupted => Resting::Interrupted,
            WorkstreamStatus::Sealed => Resting::Sealed,
            // Blocked again for another reason: it continues in the same status as before.
            WorkstreamStatus::Blocked { from, .. } => *from,
            WorkstreamStatus::Running
            | WorkstreamStatus::Landed
            | WorkstreamStatus::Abandoned { .. }
            | WorkstreamStatus::Cleaned => {
                return Err(is(bundle, work.status.phase()));
            }
        };
        work.set(WorkstreamStatus::Blocked { reason, evidence: evidence.to_owned(), from }, since);
        Ok(())
    }

    fn unblock_bundle(&mut self, bundle: &BundleId, since: Since) -> Checked {
        self.require_live()?;
        let work = self.work(bundle)?;
        let WorkstreamStatus::Blocked { from, .. } = work.status else {
            return Err(InvalidRecord::NotBlocked);
        };
        let status = match from {
            Resting::Ready => WorkstreamStatus::Ready,
            Resting::Interrupted => WorkstreamStatus::Interrupted,
            Resting::Sealed => WorkstreamStatus::Sealed,
        };
        work.set(status, since);
        Ok(())
    }

    fn abandon(&mut self, bundle: &BundleId, why: &str, since: Since) -> Checked {
        self.require_live()?;
        let legal = [BundlePhase::Ready, BundlePhase::Interrupted, BundlePhase::Blocked];
        self.require(bundle, &legal)?;
        self.require_no_intent(bundle)?;
        self.work(bundle)?.set(WorkstreamStatus::Abandoned { why: why.to_owned() }, since);
        Ok(())
    }

    fn clean(&mut self, bundle: &BundleId, since: Since) -> Checked {
        self.require_run(&[RunPhase::Draining])?;
        self.require(bundle, &[BundlePhase::Landed, BundlePhase::Abandoned])?;
        self.require_no_intent(bundle)?;
        self.tally.succeeded(Some(bundle), Phase::Cleanup);
        self.work(bundle)?.set(WorkstreamStatus::Cleaned, since);
        Ok(())
    }

    fn stop(&mut self, to: RunPhase, since: Since) -> Checked {
        self.require_live()?;
        self.require_all(|phase| phase != BundlePhase::Running)?;
        self.finish(to, since)
    }

    fn finish(&mut self, to: RunPhase, since: Since) -> Checked {
        if let Some(seq) = self.intents.keys().next() {
            return Err(InvalidRecord::IntentOpen(*seq));
        }
        self.block = None;
        self.set_phase(to, since);
        Ok(())
    }
}
