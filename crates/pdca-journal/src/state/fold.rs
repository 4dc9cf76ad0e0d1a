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
use crate::process::ProcessIdentity;
use crate::reconcile::{BundlePhase, RunPhase};
use crate::record::{Activity, BeatEnding, Cause, JournalEntry, Phase, Reason, Record, Seq};
use crate::retry::RetryTally;

use require::is;

type Checked = Result<(), InvalidRecord>;

impl RunState {
    pub(crate) fn admitted(entry: &JournalEntry) -> Result<Self, RejectedRecord> {
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
            tally: RetryTally::default(),
            leaf_calls: 0,
            worked: Duration::ZERO,
            reconciled: None,
            requests: BTreeMap::new(),
            answered: BTreeSet::new(),
            last: since,
        })
    }

    /// Applies one record. A refused record leaves the state unchanged.
    pub fn apply(&mut self, entry: &JournalEntry) -> Result<(), RejectedRecord> {
        let rejected = |reason| RejectedRecord { seq: entry.seq, reason };
        let due = Seq(self.last.seq.0 + 1);
        if entry.seq != due {
            return Err(rejected(InvalidRecord::OutOfOrder { expected: due }));
        }
        let takes_up = matches!(entry.record, Record::TakenUp { .. });
        // Only `TakenUp` may change the epoch, and only upwards. So no record of a driver that lost
        // the run can follow the record of the one that has it.
        if if takes_up { entry.epoch <= self.epoch } else { entry.epoch != self.epoch } {
            let (current, found) = (self.epoch, entry.epoch);
            return Err(rejected(InvalidRecord::OtherEpoch { current, found }));
        }
        let since = Since { seq: entry.seq, at: entry.at };
        Transition { state: self, since }.take(&entry.record, entry.epoch).map_err(rejected)?;
        // No driver worked between the last record of one driver and the first of the next, and after
        // a reboot the two uptimes have nothing to do with each other.
        if !takes_up {
            self.worked += entry.at.uptime.saturating_sub(self.last.at.uptime);
        }
        self.last = since;
        Ok(())
    }
}

/// One record that is being applied. Every check comes before the first change, so a refused record leaves the
/// state as it was.
struct Transition<'s> {
    state: &'s mut RunState,
    since: Since,
}

impl Transition<'_> {
    /// Checks a record and changes the state only if it is legal.
    fn take(&mut self, record: &Record, epoch: Epoch) -> Checked {
        match record {
            Record::Admitted(_) => Err(InvalidRecord::AdmittedTwice),
            Record::TakenUp { driver, forced: _ } => {
                self.state.driver = driver.clone();
                self.state.epoch = epoch;
                Ok(())
            }
            Record::Entered { activity } => self.enter(*activity),
            Record::Claimed { bundle, generation, slot, host, base } => {
                self.claim(bundle, *generation, (*slot, host.as_deref()), base)
            }
            Record::Started { bundle, generation, process } => {
                self.start(bundle, *generation, process)
            }
            Record::Ended { bundle, generation, ending } => self.end(bundle, *generation, ending),
            Record::Judged { bundle, generation, step, verdict } => {
                self.state.attempt(bundle, *generation)?;
                self.state.work(bundle)?.verdicts.insert(step.clone(), *verdict);
                Ok(())
            }
            Record::LeafCalled { bundle, role: _ } => {
                self.state.require_live()?;
                self.state.work(bundle)?.leaf_calls += 1;
                self.state.leaf_calls += 1;
                Ok(())
            }
            Record::Recovery { bundle, phase, cause } => {
                bundle.iter().try_for_each(|bundle| self.state.work(bundle).map(drop))?;
                self.state.tally.note(
                    bundle.clone(),
                    *phase,
                    *cause,
                    self.since,
                    &self.state.driver.place.boot,
                );
                Ok(())
            }
            Record::Conflict { bundle, with } => {
                with.iter().chain([bundle]).try_for_each(|it| self.state.work(it).map(drop))?;
                let (phase, cause) = (Phase::Integrate, Cause::Conflict);
                let boot = &self.state.driver.place.boot;
                self.state.tally.note(Some(bundle.clone()), phase, cause, self.since, boot);
                Ok(())
            }
            Record::Intent { effect } => {
                self.check_intent(effect)?;
                self.state.intents.insert(self.since.seq, effect.clone());
                Ok(())
            }
            Record::Outcome { intent, outcome } => self.resolve(*intent, outcome),
            Record::Planned { target, base, order } => self.plan(target, base, order),
            Record::Combined { target, tree, gate_digest: _, verdict, members } => {
                self.state.require_run(&[RunPhase::Integrating])?;
                let judged = (*tree, members.clone(), *verdict);
                self.state.integration(target)?.judged.push(judged);
                if *verdict == crate::record::GateVerdict::Pass {
                    self.state.tally.succeeded(None, Phase::Validate);
                }
                Ok(())
            }
            Record::Reconciled { bundle, action } => {
                bundle.iter().try_for_each(|bundle| self.state.work(bundle).map(drop))?;
                let (bundle, action) = (bundle.clone(), *action);
                self.state.reconciled = Some(Reconciled { at: self.since, bundle, action });
                Ok(())
            }
            Record::Blocked { bundle, reason, evidence } => match bundle {
                None => self.block_run(*reason, evidence),
                Some(bundle) => self.block_bundle(bundle, *reason, evidence),
            },
            Record::Unblocked { bundle: None } => self.unblock_run(),
            Record::Unblocked { bundle: Some(bundle) } => self.unblock_bundle(bundle),
            Record::Requested { id, request } => {
                if self.state.requests.contains_key(id) || self.state.answered.contains(id) {
                    return Err(InvalidRecord::Request(id.clone()));
                }
                self.state.requests.insert(id.clone(), request.clone());
                Ok(())
            }
            Record::Answered { id, refusal: _ } => {
                self.state.requests.remove(id).ok_or_else(|| InvalidRecord::Request(id.clone()))?;
                self.state.answered.insert(id.clone());
                Ok(())
            }
            Record::Abandoned { bundle, why } => self.abandon(bundle, why),
            Record::Cleaned { bundle } => self.clean(bundle),
            Record::Completed => {
                self.state.require_run(&[RunPhase::Draining])?;
                self.state.require_all(|phase| phase == BundlePhase::Cleaned)?;
                self.finish(RunPhase::Completed)
            }
            Record::Aborted { why: _ } => self.stop(RunPhase::Aborted),
            Record::Failed { why: _ } => self.stop(RunPhase::Failed),
        }
    }

    fn enter(&mut self, activity: Activity) -> Checked {
        use RunPhase::{Draining, Integrating, Preparing, Running};
        let (to, from): (_, &[_]) = match activity {
            // A run starts in this phase and never returns to it.
            Activity::Preparing => (Preparing, &[]),
            Activity::Running => (Running, &[Preparing, Integrating]),
            Activity::Integrating => (Integrating, &[Running]),
            // Also from `Preparing`: a run can end before anything of it could start.
            Activity::Draining => (Draining, &[Preparing, Running, Integrating]),
        };
        self.state.require_run(from)?;
        if to == Draining {
            self.require_no_accepted_change_waits()?;
        }
        self.state.set_phase(to, self.since);
        Ok(())
    }

    /// Draining abandons blocked bundles. Only a person may give up an accepted change, so none may be
    /// blocked when draining begins.
    fn require_no_accepted_change_waits(&self) -> Checked {
        let waits = |work: &Workstream| {
            matches!(work.status, WorkstreamStatus::Blocked { from: Resting::Sealed, .. })
        };
        match self.state.bundles.iter().find(|(_, work)| waits(work)) {
            Some((bundle, work)) => Err(is(bundle, work.status.phase())),
            None => Ok(()),
        }
    }

    fn claim(
        &mut self,
        bundle: &BundleId,
        generation: Generation,
        (slot, host): (u32, Option<&str>),
        base: &ObjectId,
    ) -> Checked {
        self.state.require_run(&[RunPhase::Running])?;
        self.state.require(bundle, &[BundlePhase::Ready, BundlePhase::Interrupted])?;
        if self.state.next_generation(bundle) != Some(generation) {
            return Err(InvalidRecord::Generation { bundle: bundle.clone(), found: generation });
        }
        let taken = self.state.bundles.values().any(|other| {
            other.status == WorkstreamStatus::Running
                && other
                    .claim
                    .as_ref()
                    .is_some_and(|claim| claim.slot == slot && claim.host.as_deref() == host)
        });
        // A host has slots of its own, as many as its configuration says at the time.
        if taken || (host.is_none() && slot >= self.state.admitted.lanes) {
            return Err(InvalidRecord::Slot(slot));
        }
        // A rescue of the previous attempt has to be over before the next one may change the same
        // checkout.
        self.state.require_no_intent(bundle)?;
        let work = self.state.work(bundle)?;
        work.claim = Some(Claim {
            generation,
            slot,
            host: host.map(str::to_owned),
            base: *base,
            process: None,
        });
        // They judged the commits of an earlier attempt.
        work.verdicts.clear();
        work.set(WorkstreamStatus::Running, self.since);
        Ok(())
    }

    fn start(
        &mut self,
        bundle: &BundleId,
        generation: Generation,
        process: &ProcessIdentity,
    ) -> Checked {
        let claim = self.state.attempt(bundle, generation)?;
        claim.process = Some(process.clone());
        Ok(())
    }

    fn end(&mut self, bundle: &BundleId, generation: Generation, ending: &BeatEnding) -> Checked {
        self.state.attempt(bundle, generation)?;
        let blocked = |reason, evidence: &str| WorkstreamStatus::Blocked {
            reason,
            evidence: evidence.to_owned(),
            from: Resting::Ready,
        };
        let status = match ending {
            BeatEnding::Finished => {
                self.state.tally.succeeded(Some(bundle), Phase::Attempt);
                self.state.tally.succeeded(Some(bundle), Phase::Prepare);
                blocked(Reason::SignOff, "")
            }
            BeatEnding::NoChange => {
                // The builder ran, so it had its checkout.
                self.state.tally.succeeded(Some(bundle), Phase::Prepare);
                blocked(Reason::NoChange, "")
            }
            BeatEnding::Failed { what } => blocked(Reason::Failed, what),
            // Not counted here: the `Recovery` record of the retry counts it, and a driver that
            // died is not counted against its bundles at all (decision 009).
            BeatEnding::Interrupted { cause: _ } => WorkstreamStatus::Interrupted,
        };
        self.state.work(bundle)?.set(status, self.since);
        Ok(())
    }

    fn block_run(&mut self, reason: Reason, evidence: &str) -> Checked {
        use RunPhase::{Draining, Integrating, Preparing, Running};
        let to = match reason {
            Reason::Conflict => RunPhase::BlockedConflict,
            Reason::Validation => RunPhase::BlockedValidation,
            Reason::Recovery => RunPhase::BlockedRecovery,
            Reason::SignOff | Reason::NoChange | Reason::Failed => {
                return Err(InvalidRecord::NoReasonForARun);
            }
        };
        self.state.require_run(&[Preparing, Running, Integrating, Draining])?;
        self.state.block =
            Some(Block { reason, evidence: evidence.to_owned(), from: self.state.phase });
        self.state.set_phase(to, self.since);
        Ok(())
    }

    fn unblock_run(&mut self) -> Checked {
        let block = self.state.block.take().ok_or(InvalidRecord::NotBlocked)?;
        self.state.set_phase(block.from, self.since);
        Ok(())
    }

    fn block_bundle(&mut self, bundle: &BundleId, reason: Reason, evidence: &str) -> Checked {
        self.state.require_live()?;
        let work = self.state.work(bundle)?;
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
        work.set(
            WorkstreamStatus::Blocked { reason, evidence: evidence.to_owned(), from },
            self.since,
        );
        Ok(())
    }

    fn unblock_bundle(&mut self, bundle: &BundleId) -> Checked {
        self.state.require_live()?;
        let work = self.state.work(bundle)?;
        let WorkstreamStatus::Blocked { from, reason, .. } = work.status else {
            return Err(InvalidRecord::NotBlocked);
        };
        let status = match from {
            Resting::Ready => WorkstreamStatus::Ready,
            Resting::Interrupted => WorkstreamStatus::Interrupted,
            Resting::Sealed => WorkstreamStatus::Sealed,
        };
        work.set(status, self.since);
        // A person says that the machine is repaired. With the old counts the next fault would block it again at once.
        if reason == Reason::Recovery {
            self.state.tally.succeeded(Some(bundle), Phase::Prepare);
            self.state.tally.succeeded(Some(bundle), Phase::Attempt);
        }
        Ok(())
    }

    fn abandon(&mut self, bundle: &BundleId, why: &str) -> Checked {
        self.state.require_live()?;
        let legal = [BundlePhase::Ready, BundlePhase::Interrupted, BundlePhase::Blocked];
        self.state.require(bundle, &legal)?;
        self.state.require_no_intent(bundle)?;
        self.state
            .work(bundle)?
            .set(WorkstreamStatus::Abandoned { why: why.to_owned() }, self.since);
        Ok(())
    }

    fn clean(&mut self, bundle: &BundleId) -> Checked {
        self.state.require_run(&[RunPhase::Draining])?;
        self.state.require(bundle, &[BundlePhase::Landed, BundlePhase::Abandoned])?;
        self.state.require_no_intent(bundle)?;
        self.state.tally.succeeded(Some(bundle), Phase::Cleanup);
        self.state.work(bundle)?.set(WorkstreamStatus::Cleaned, self.since);
        Ok(())
    }

    fn stop(&mut self, to: RunPhase) -> Checked {
        self.state.require_live()?;
        // No driver takes up a run that is over, so an attempt of it would never be waited for.
        self.state.require_all(|phase| phase != BundlePhase::Running)?;
        self.finish(to)
    }

    fn finish(&mut self, to: RunPhase) -> Checked {
        // Recovery looks only at runs that are not over. An effect that may or may not have
        // happened would never be found out.
        if let Some(seq) = self.state.intents.keys().next() {
            return Err(InvalidRecord::IntentOpen(*seq));
        }
        self.state.block = None;
        self.state.set_phase(to, self.since);
        Ok(())
    }
}
