//! What is on disk before an effect, and what has to follow it.

use crate::journal::{AppendError, Journal};
use crate::record::{Cause, Effect, EffectOutcome, Record, Seq};
use crate::timestamp::Moment;

/// An effect whose intent is on disk: now it may be carried out, and then it has to be resolved.
///
/// One that is dropped is what a crash would leave: [`Journal::open_intents`] has it.
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

    /// As [`Journal::intent`], with facts that come before it in the same sync.
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

    /// The intents without an outcome, in order. After a crash these are what has to be looked at: is
    /// it done, is it not, or has somebody else been there?
    pub fn open_intents(&self) -> Vec<Intent> {
        let open = self.state().intents.iter();
        open.map(|(seq, effect)| Intent { seq: *seq, effect: effect.clone() }).collect()
    }
}

impl Intent {
    /// The place of the intent. Of a seal it is the `completion_order`.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// What is carried out.
    pub fn effect(&self) -> &Effect {
        &self.effect
    }

    /// It is done, and was found to be when looked at afterwards.
    pub fn done(self, journal: &mut Journal, at: Moment) -> Result<Seq, AppendError> {
        self.resolve(journal, at, EffectOutcome::Done)
    }

    /// It is not done, and nothing of it is left.
    pub fn failed(
        self,
        journal: &mut Journal,
        at: Moment,
        cause: Cause,
        what: impl Into<String>,
    ) -> Result<Seq, AppendError> {
        self.resolve(journal, at, EffectOutcome::Failed { cause, what: what.into() })
    }

    /// It ended like this.
    pub fn resolve(
        self,
        journal: &mut Journal,
        at: Moment,
        outcome: EffectOutcome,
    ) -> Result<Seq, AppendError> {
        self.resolve_before(journal, at, outcome, Vec::new())
    }

    /// It ended like this, and these facts follow from that, in the same sync.
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
