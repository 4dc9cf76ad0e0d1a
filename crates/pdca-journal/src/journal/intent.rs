//! Intents: an effect is recorded before it is carried out, and resolved after it.

use crate::journal::{AppendError, Journal};
use crate::record::{Cause, Effect, EffectOutcome, Record, Seq};
use crate::timestamp::Moment;

/// An effect whose intent is on disk. Carry it out, then resolve the intent with its outcome.
///
/// Dropping it has the effect of a crash: [`Journal::open_intents`] returns it again.
#[derive(Debug)]
#[must_use = "an effect whose outcome is not recorded is carried out again by the next driver"]
pub struct Intent {
    seq: Seq,
    effect: Effect,
}

impl Journal {
    /// Records that an effect is about to be carried out.
    pub fn intent(&mut self, at: Moment, effect: Effect) -> Result<Intent, AppendError> {
        self.intent_after(at, Vec::new(), effect)
    }

    /// Like [`Journal::intent`], with facts that are recorded before it in the same sync.
    pub fn intent_after(
        &mut self,
        at: Moment,
        mut facts: Vec<Record>,
        effect: Effect,
    ) -> Result<Intent, AppendError> {
        facts.push(Record::Intent { effect: effect.clone() });
        let after = facts.len() as u64 - 1;
        let Seq(first) = self.append(at, facts)?;
        Ok(Intent { seq: Seq(first + after), effect })
    }

    /// Returns the intents without an outcome, in order. After a crash the driver has to find out for
    /// each if the effect happened, did not happen, or was overtaken by another change.
    pub fn open_intents(&self) -> Vec<Intent> {
        let open = self.state().intents.iter();
        open.map(|(seq, effect)| Intent { seq: *seq, effect: effect.clone() }).collect()
    }
}

impl Intent {
    /// The sequence number of the intent. For a seal it is the `completion_order`.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    pub fn effect(&self) -> &Effect {
        &self.effect
    }

    /// Records success, after the caller has verified that the effect happened.
    pub fn done(self, journal: &mut Journal, at: Moment) -> Result<Seq, AppendError> {
        self.resolve(journal, at, EffectOutcome::Done)
    }

    /// Records failure, after the caller has made sure that nothing of the effect is left.
    pub fn failed(
        self,
        journal: &mut Journal,
        at: Moment,
        cause: Cause,
        what: impl Into<String>,
    ) -> Result<Seq, AppendError> {
        self.resolve(journal, at, EffectOutcome::Failed { cause, what: what.into() })
    }

    pub fn resolve(
        self,
        journal: &mut Journal,
        at: Moment,
        outcome: EffectOutcome,
    ) -> Result<Seq, AppendError> {
        self.resolve_before(journal, at, outcome, Vec::new())
    }

    /// Like [`Intent::resolve`], with facts that are recorded after it in the same sync.
    pub fn resolve_before(
        self,
        journal: &mut Journal,
        at: Moment,
        outcome: EffectOutcome,
        facts: Vec<Record>,
    ) -> Result<Seq, AppendError> {
        let mut records = vec![Record::Outcome { intent: self.seq, outcome }];
        records.extend(facts);
        journal.append(at, records)
    }
}
