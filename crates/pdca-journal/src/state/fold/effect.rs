//! Applies intents and outcomes to the state.

use pdca_state::BundleId;

use super::require::is;
use super::{Checked, Transition};

use crate::object_id::ObjectId;
use crate::reconcile::{BundlePhase, RunPhase};
use crate::record::{Effect, EffectOutcome, Landing, Seal, Seq};
use crate::state::{IntegrationState, InvalidRecord, JournaledSeal, WorkstreamStatus};

impl Transition<'_> {
    pub(super) fn check_intent(&mut self, effect: &Effect) -> Checked {
        // One open effect for each bundle, so recovery never has to find out which of two happened
        // first.
        if let Some(bundle) = effect.bundle() {
            self.state.require_no_intent(bundle)?;
        }
        match effect {
            Effect::Rescue { bundle, reference: _ } => {
                let status = self.state.work(bundle)?.status.phase();
                // A live attempt could still write after its work was saved.
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
        }
    }

    pub(super) fn check_seal(&self, seal: &Seal) -> Checked {
        self.state.require_run(&[RunPhase::Running, RunPhase::Integrating])?;
        // A bundle that waits for its sign-off is `Blocked`.
        let legal = [BundlePhase::Ready, BundlePhase::Interrupted, BundlePhase::Blocked];
        self.state.require(&seal.bundle, &legal)?;
        if self.state.bundles.get(&seal.bundle).is_some_and(|work| work.seal.is_some()) {
            return Err(InvalidRecord::SealedTwice(seal.bundle.clone()));
        }
        if seal.commits.last() == Some(&seal.head) {
            Ok(())
        } else {
            Err(InvalidRecord::SealWithoutCommits)
        }
    }

    pub(super) fn check_apply(
        &mut self,
        target: &str,
        bundle: &BundleId,
        commit: &ObjectId,
        onto: &ObjectId,
    ) -> Checked {
        self.state.require_run(&[RunPhase::Integrating])?;
        self.state.require(bundle, &[BundlePhase::Sealed])?;
        // Each commit is applied to the one before it, so a target has one open effect at a time.
        let on_target = |effect: &Effect| {
            matches!(effect, Effect::Apply { target: other, .. } if other == target)
                || matches!(effect, Effect::Land(landing) if landing.target == target)
        };
        if let Some((seq, _)) = self.state.intents.iter().find(|(_, effect)| on_target(effect)) {
            return Err(InvalidRecord::IntentOpen(*seq));
        }
        let sealed = self.state.seal(bundle)?.clone();
        let integration = self.state.integration(target)?.clone();
        let place = |id: &BundleId| integration.order.iter().position(|other| other == id);
        // Bundles may be skipped, because a dependant of one that conflicts is left out too. But every
        // earlier one must be either out or applied completely, and order never goes back.
        let mut in_turn = true;
        for other in integration.progress.keys().filter(|other| *other != bundle) {
            in_turn &= place(other) < place(bundle)
                && (integration.is_out(other) || integration.is_applied(self.state.seal(other)?));
        }
        if in_turn && integration.takes(&sealed, commit, onto) {
            Ok(())
        } else {
            Err(InvalidRecord::NotNext { bundle: bundle.clone(), commit: *commit })
        }
    }

    /// Checks that a landing was planned, applied completely, and passed the gates as exactly that tree.
    pub(super) fn check_landing(&mut self, landing: &Landing) -> Checked {
        self.state.require_run(&[RunPhase::Integrating])?;
        let integration = self.state.integration(&landing.target)?.clone();
        if !integration.leads_to(landing) {
            return Err(InvalidRecord::NotPlanned(landing.target.clone()));
        }
        for bundle in &landing.bundles {
            self.state.require(bundle, &[BundlePhase::Sealed])?;
            self.state.require_no_intent(bundle)?;
            if !integration.is_applied(self.state.seal(bundle)?) {
                return Err(InvalidRecord::NotApplied(bundle.clone()));
            }
        }
        if integration.is_green(landing) {
            Ok(())
        } else {
            Err(InvalidRecord::NotGated(landing.tree))
        }
    }

    pub(super) fn resolve(&mut self, intent: Seq, outcome: &EffectOutcome) -> Checked {
        let effect =
            self.state.intents.get(&intent).ok_or(InvalidRecord::NoSuchIntent(intent))?.clone();
        let applies = matches!(effect, Effect::Apply { .. });
        let fits = match outcome {
            EffectOutcome::Done => !applies,
            EffectOutcome::Applied { .. }
            | EffectOutcome::Conflict { .. }
            | EffectOutcome::Skipped { .. } => applies,
            EffectOutcome::Failed { .. } => true,
        };
        if !fits {
            return Err(InvalidRecord::WrongOutcome(intent));
        }
        self.state.intents.remove(&intent);
        // Nothing of it is left, so the bundle stays where it was and the same effect may be
        // intended again.
        if let EffectOutcome::Failed { .. } = outcome {
            return Ok(());
        }
        // A conflict ended as an outcome, but resets no counter: otherwise attempts at resolving it
        // would never reach their limit.
        if !matches!(outcome, EffectOutcome::Conflict { .. }) {
            self.state.tally.succeeded(effect.bundle(), effect.phase());
        }
        match effect {
            Effect::Seal(seal) => {
                let work = self.state.work(&seal.bundle.clone())?;
                work.seal = Some(JournaledSeal { seal, order: intent });
                work.set(WorkstreamStatus::Sealed, self.since);
            }
            Effect::Apply { target, bundle, commit, .. } => {
                self.state.integration(&target)?.note(&bundle, &commit, outcome);
            }
            Effect::Land(landing) => {
                // The remaining changes need a new plan on the new base.
                self.state.integrations.remove(&landing.target);
                for bundle in &landing.bundles {
                    self.state.work(bundle)?.set(WorkstreamStatus::Landed, self.since);
                }
            }
            Effect::Rescue { .. } => {}
        }
        Ok(())
    }

    pub(super) fn plan(&mut self, target: &str, base: &ObjectId, order: &[BundleId]) -> Checked {
        self.state.require_run(&[RunPhase::Integrating])?;
        for bundle in order {
            self.state.require(bundle, &[BundlePhase::Sealed])?;
            self.state.require_no_intent(bundle)?;
        }
        if !self.state.admitted.targets.iter().any(|known| known.name == target) {
            return Err(InvalidRecord::NotPlanned(target.to_owned()));
        }
        let integration = IntegrationState::new(*base, order.to_vec());
        self.state.integrations.insert(target.to_owned(), integration);
        Ok(())
    }
}
