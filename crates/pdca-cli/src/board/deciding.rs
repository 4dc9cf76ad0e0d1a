//! Decisions at the board: the card that is shown, and what was decided about it until it is recorded.
//!
//! Decisions go through [`ReviewSession`], which `pdca review` uses too: a key becomes a pending decision, and only what is
//! due is handed out to be recorded. A board that dies has recorded nothing that was not due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pdca_state::BundleId;
use pdca_workspace::review::{Card, Decision, Prompt, ReviewSession, SessionStep};

/// A card, or why it cannot be read.
pub(crate) type CardResult = Result<Arc<Card>, String>;

/// The decisions of this sitting.
#[derive(Debug)]
pub struct Deciding {
    session: ReviewSession,
    /// The bundles that were handed out to be recorded and are not gone from the list yet, with the word of the
    /// decision.
    recording: BTreeMap<BundleId, &'static str>,
    /// The decisions that were recorded, by word.
    recorded: BTreeMap<&'static str, usize>,
    /// The card that was read last.
    card: Option<(BundleId, CardResult)>,
    /// The bundle whose card was asked for last.
    asked: Option<BundleId>,
    now: Duration,
}

impl Deciding {
    /// Begins. A decision can be undone for `window`.
    pub fn new(window: Duration) -> Self {
        Self {
            session: ReviewSession::new(Vec::new(), window),
            recording: BTreeMap::new(),
            recorded: BTreeMap::new(),
            card: None,
            asked: None,
            now: Duration::ZERO,
        }
    }

    pub fn session(&self) -> &ReviewSession {
        &self.session
    }

    /// Returns the number of recorded decisions by word.
    pub fn recorded(&self) -> &BTreeMap<&'static str, usize> {
        &self.recorded
    }

    /// Returns the time until the first pending decision is recorded.
    pub fn undo_left(&self) -> Option<Duration> {
        self.session.next_due().map(|due| due.saturating_sub(self.now))
    }

    /// Returns the card of a bundle, if it is the one that is loaded.
    pub(crate) fn card(&self, id: &BundleId) -> Option<&CardResult> {
        self.card.as_ref().filter(|(of, _)| of == id).map(|(_, card)| card)
    }

    /// Returns whether a bundle is neither decided nor being recorded.
    pub(crate) fn is_open(&self, id: &BundleId) -> bool {
        !self.recording.contains_key(id) && self.session.pending().all(|one| one.id != *id)
    }

    pub(crate) fn set_time(&mut self, now: Duration) {
        self.now = now;
    }

    pub(crate) fn set_card(&mut self, id: BundleId, card: CardResult) {
        self.card = Some((id, card));
    }

    pub(crate) fn set_note(&mut self, note: &str) {
        self.session.set_note(note);
    }

    /// Takes a new list of what waits for sign-off.
    pub(crate) fn refresh(&mut self, listed: &BTreeSet<&BundleId>) {
        // A reading from before the recording still lists the bundle. Only one without it ends the wait.
        self.recording.retain(|id, _| listed.contains(id));
        // The card may have changed as well. The old one is shown until the new one comes.
        self.asked = None;
    }

    /// Returns whether the card of this bundle has to be asked for, and takes it as asked.
    pub(crate) fn must_ask(&mut self, id: &BundleId) -> bool {
        if self.asked.as_ref() == Some(id) {
            return false;
        }
        self.asked = Some(id.clone());
        true
    }

    /// The decision was refused; the bundle waits as before.
    pub(crate) fn refuse(&mut self, id: &BundleId) {
        self.recording.remove(id);
    }

    /// A decision is on record.
    pub(crate) fn count(&mut self, id: &BundleId) {
        // Still there: the worker reports a decision before the reading that no longer lists its bundle.
        if let Some(word) = self.recording.get(id) {
            *self.recorded.entry(word).or_default() += 1;
        }
    }

    /// Hands out what is due.
    pub(crate) fn due(&mut self) -> Vec<Decision> {
        let due = self.session.due(self.now);
        self.hand_out(due)
    }

    /// Hands out everything that is pending.
    pub(crate) fn confirm(&mut self) -> Vec<Decision> {
        let all = self.session.confirm();
        self.hand_out(all)
    }

    fn hand_out(&mut self, decisions: Vec<Decision>) -> Vec<Decision> {
        let word = |decision: &Decision| (decision.id.clone(), decision.choice.word());
        self.recording.extend(decisions.iter().map(word));
        decisions
    }

    /// Takes back the last decision that is pending.
    pub(crate) fn undo(&mut self) -> SessionStep {
        self.session.press('u', None, self.now)
    }

    /// Takes a letter about a bundle.
    pub(crate) fn press(&mut self, letter: char, id: &BundleId) -> SessionStep {
        // Selecting discards the note and the items that were ticked, so it is done only for another bundle.
        if self.session.current() != Some(id) {
            self.session.select(id);
        }
        match self.card(id).cloned() {
            Some(Ok(card)) => self.session.press(letter, Some(&card), self.now),
            // Undo is about the last decision, whose card is no longer the one that is shown.
            _ if letter == 'u' => self.undo(),
            Some(Err(why)) => SessionStep::Say(why),
            None => SessionStep::Say("its card is being read; press the key again".to_owned()),
        }
    }

    /// Takes the line that was typed for a prompt; `None` if the card is gone meanwhile.
    pub(crate) fn answer(
        &mut self,
        prompt: Prompt,
        line: &str,
        id: &BundleId,
    ) -> Option<SessionStep> {
        let card = self.card(id).and_then(|card| card.as_ref().ok()).cloned()?;
        Some(self.session.answer(prompt, line, &card, self.now))
    }
}
