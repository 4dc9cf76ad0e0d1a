//! Preconditions of records.

use std::collections::BTreeMap;

use pdca_state::BundleId;

use super::{Checked, RunState};
use crate::claim::Generation;
use crate::reconcile::{BundlePhase, RunPhase};
use crate::record::Seal;
use crate::state::{
    Claim, IntegrationState, InvalidRecord, Since, Workstream, WorkstreamStatus, touches,
};

impl RunState {
    pub(super) fn set_phase(&mut self, phase: RunPhase, since: Since) {
        self.phase = phase;
        self.since = since;
    }

    pub(super) fn work(&mut self, bundle: &BundleId) -> Result<&mut Workstream, InvalidRecord> {
        self.bundles.get_mut(bundle).ok_or_else(|| InvalidRecord::NoSuchBundle(bundle.clone()))
    }

    /// Returns the claim of a running attempt.
    pub(super) fn attempt(
        &mut self,
        bundle: &BundleId,
        generation: Generation,
    ) -> Result<&mut Claim, InvalidRecord> {
        self.require(bundle, &[BundlePhase::Running])?;
        match &mut self.work(bundle)?.claim {
            Some(claim) if claim.generation == generation => Ok(claim),
            Some(_) | None => {
                Err(InvalidRecord::Generation { bundle: bundle.clone(), found: generation })
            }
        }
    }

    pub(super) fn seal(&self, bundle: &BundleId) -> Result<&Seal, InvalidRecord> {
        let work =
            self.bundles.get(bundle).ok_or_else(|| InvalidRecord::NoSuchBundle(bundle.clone()))?;
        let sealed = work.seal.as_ref().ok_or_else(|| is(bundle, work.status.phase()))?;
        Ok(&sealed.seal)
    }

    pub(super) fn integration(
        &mut self,
        target: &str,
    ) -> Result<&mut IntegrationState, InvalidRecord> {
        let none = || InvalidRecord::NotPlanned(target.to_owned());
        self.integrations.get_mut(target).ok_or_else(none)
    }

    pub(super) fn require(&self, bundle: &BundleId, legal: &[BundlePhase]) -> Checked {
        let work =
            self.bundles.get(bundle).ok_or_else(|| InvalidRecord::NoSuchBundle(bundle.clone()))?;
        let phase = work.status.phase();
        if legal.contains(&phase) { Ok(()) } else { Err(is(bundle, phase)) }
    }

    pub(super) fn require_all(&self, legal: impl Fn(BundlePhase) -> bool) -> Checked {
        match self.bundles.iter().find(|(_, work)| !legal(work.status.phase())) {
            Some((bundle, work)) => Err(is(bundle, work.status.phase())),
            None => Ok(()),
        }
    }

    pub(super) fn require_run(&self, legal: &[RunPhase]) -> Checked {
        let phase = self.phase;
        if legal.contains(&phase) { Ok(()) } else { Err(InvalidRecord::RunIs { phase }) }
    }

    pub(super) fn require_live(&self) -> Checked {
        let phase = self.phase;
        if phase.is_active() { Ok(()) } else { Err(InvalidRecord::RunIs { phase }) }
    }

    pub(super) fn require_no_intent(&self, bundle: &BundleId) -> Checked {
        match self.intents.iter().find(|(_, effect)| touches(effect, bundle)) {
            Some((seq, _)) => Err(InvalidRecord::IntentOpen(*seq)),
            None => Ok(()),
        }
    }
}

impl Workstream {
    pub(super) fn new(since: Since) -> Self {
        Self {
            status: WorkstreamStatus::Ready,
            since,
            claim: None,
            seal: None,
            verdicts: BTreeMap::new(),
            leaf_calls: 0,
        }
    }

    pub(super) fn set(&mut self, status: WorkstreamStatus, since: Since) {
        self.status = status;
        self.since = since;
    }
}

pub(super) fn is(bundle: &BundleId, phase: BundlePhase) -> InvalidRecord {
    InvalidRecord::BundleIs { bundle: bundle.clone(), phase }
}
