//! A sitting at the terminal: keys become decisions, each of which can be undone for a while.
//!
//! This is a state machine without a terminal, a clock or a file: the caller shows cards, reads keys and records what
//! [`ReviewSession::due`] hands out. Nothing is recorded before that, so a process that dies loses its pending decisions and
//! has recorded none of them.

use std::collections::VecDeque;
use std::time::Duration;

use pdca_state::BundleId;

use crate::review::card::Card;
use crate::review::decision::{Choice, Decision, Overridden, Ticks};

/// A sitting over several bundles.
#[derive(Debug)]
pub struct ReviewSession {
    ids: Vec<BundleId>,
    at: usize,
    mode: KeyMode,
    /// The note of the present card, from an editor.
    note: Option<String>,
    pending: VecDeque<Pending>,
    window: Duration,
}

/// What the keys mean at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyMode {
    /// A card is shown, and a key chooses what to do with it.
    Card,
    /// An acceptance waits for its open items to be ticked, one key each.
    Ticking {
        /// The numbers still to be asked, in order.
        left: Vec<usize>,
        ticked: Vec<usize>,
        /// The red rows that the person gave a reason for before.
        overridden: Option<Overridden>,
    },
}

/// A decision that is not recorded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pending {
    decision: Decision,
    due: Duration,
}

/// What the caller has to do after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStep {
    /// Show the present card, or the end of the list.
    Show,
    /// Ask about the item with this number.
    AskItem(usize),
    /// Ask for one line, and call [`ReviewSession::answer`].
    AskLine(Prompt),
    /// Say this beside the card.
    Say(String),
    Diff,
    Log,
    /// A shell in a throwaway checkout with the change.
    Shell,
    /// Edit the note, and call [`ReviewSession::set_note`].
    EditNote,
    /// Show the whole card, with a pager.
    Whole,
    Help,
    /// A decision is pending; show the next card.
    Decided(Decision),
    /// The last pending decision was taken back; its card is shown again.
    Undone(Decision),
    Quit,
}

/// A line that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// The note of a decision; required if `needed`.
    Note { choice: Choice, needed: bool },
    /// The reason for accepting although gating rows are red.
    Override { rows: Vec<String> },
}

/// The keys, for the help and the line below a card.
pub const KEYS: [(&str, &str); 15] = [
    ("a", "accept; open items are asked one by one, `y` ticks"),
    ("i", "iterate: build it again from the same brief, with your note"),
    ("p", "plan it again, with your note"),
    ("x", "discontinue it, with your note"),
    ("u", "undo the last decision, for five seconds"),
    ("e", "write the note in $EDITOR; it goes with the next decision"),
    ("d", "the diff, in $PAGER or delta"),
    ("l", "the logs of its gates"),
    ("t", "a shell in a throwaway checkout with the change"),
    ("v", "the whole card, in $PAGER"),
    ("n", "next card, undecided (also Space)"),
    ("b", "the card before"),
    ("Enter", "at the end: record what is pending at once"),
    ("q", "quit; what is pending is recorded when you confirm it"),
    ("?", "these keys"),
];

/// The time in which a decision can be undone, before it is recorded.
pub const UNDO_WINDOW: Duration = Duration::from_secs(5);

impl ReviewSession {
    /// Begins with these bundles. A decision stays pending for `window`.
    pub fn new(ids: Vec<BundleId>, window: Duration) -> Self {
        let (pending, mode) = (VecDeque::new(), KeyMode::Card);
        Self { ids, at: 0, mode, note: None, pending, window }
    }

    /// Returns the bundle whose card is to be shown; `None` at the end of the list.
    pub fn current(&self) -> Option<&BundleId> {
        self.ids.get(self.at)
    }

    /// Returns the place of the present card, from 1, and the number of cards.
    pub fn place(&self) -> (usize, usize) {
        (self.at + 1, self.ids.len())
    }

    pub fn mode(&self) -> &KeyMode {
        &self.mode
    }

    /// Returns the decisions that are not recorded yet, oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &Decision> {
        self.pending.iter().map(|pending| &pending.decision)
    }

    /// Returns when the next decision is due.
    pub fn next_due(&self) -> Option<Duration> {
        self.pending.front().map(|pending| pending.due)
    }

    /// Hands out the decisions whose window is over at `now`, in order. They can no longer be undone.
    pub fn due(&mut self, now: Duration) -> Vec<Decision> {
        // All windows are equally long, so an older decision is never due after a newer one.
        let count = self.pending.iter().take_while(|pending| pending.due <= now).count();
        self.pending.drain(..count).map(|pending| pending.decision).collect()
    }

    /// Hands out every pending decision, because the person confirmed them.
    pub fn confirm(&mut self) -> Vec<Decision> {
        self.pending.drain(..).map(|pending| pending.decision).collect()
    }

    /// Puts a bundle back at the end of the list, because its decision was refused.
    pub fn put_back(&mut self, id: &BundleId) {
        self.ids.push(id.clone());
    }

    /// Goes to the card of a bundle, which is added if it is not in the list.
    pub fn select(&mut self, id: &BundleId) {
        let at = self.ids.iter().position(|one| one == id).unwrap_or(self.ids.len());
        if at == self.ids.len() {
            self.ids.push(id.clone());
        }
        self.go_to(at);
    }

    /// Leaves the present card out: it can no longer be decided.
    pub fn skip(&mut self) {
        self.go_to(self.at + 1);
    }

    /// Sets the note for the next decision about the present card.
    pub fn set_note(&mut self, note: &str) {
        self.note = Some(note.trim().to_owned()).filter(|note| !note.is_empty());
    }

    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Takes a key on the present card; `card` is `None` at the end of the list.
    pub fn press(&mut self, key: char, card: Option<&Card>, now: Duration) -> SessionStep {
        // Every key answers the item, `u` and `q` too: an acceptance is ticked to its end or cancelled.
        if let KeyMode::Ticking { left, ticked, overridden } = self.mode.clone() {
            return self.press_item(key, left, ticked, overridden, now);
        }
        let is_pending = self.pending().any(|decision| Some(&decision.id) == self.current());
        match (key, card) {
            ('a' | 'i' | 'p' | 'x', Some(_)) if is_pending => {
                SessionStep::Say("it is decided already; `u` undoes the last decision".to_owned())
            }
            ('u', _) => self.undo(),
            ('q', _) => SessionStep::Quit,
            ('?' | 'h', _) => SessionStep::Help,
            ('b', _) => {
                self.go_to(self.at.saturating_sub(1));
                SessionStep::Show
            }
            (_, None) => SessionStep::Show,
            ('n' | ' ', Some(_)) => {
                self.go_to(self.at + 1);
                SessionStep::Show
            }
            ('d', Some(_)) => SessionStep::Diff,
            ('l', Some(_)) => SessionStep::Log,
            ('t', Some(_)) => SessionStep::Shell,
            ('e', Some(_)) => SessionStep::EditNote,
            ('v', Some(_)) => SessionStep::Whole,
            ('a', Some(card)) => self.accept(card, now),
            ('i', Some(card)) => self.send_back(card, Choice::IterateDo, now),
            ('p', Some(card)) => self.send_back(card, Choice::IteratePlan, now),
            ('x', Some(card)) => self.send_back(card, Choice::Discontinue, now),
            (other, Some(_)) => {
                SessionStep::Say(format!("`{other}` is no key here; `?` shows them"))
            }
        }
    }

    /// Takes the answer to a prompt. An empty one cancels what needs a line.
    pub fn answer(
        &mut self,
        prompt: Prompt,
        line: &str,
        card: &Card,
        now: Duration,
    ) -> SessionStep {
        let line = line.trim();
        match prompt {
            Prompt::Note { needed: true, .. } if line.is_empty() => {
                SessionStep::Say("nothing was decided: it needs a note".to_owned())
            }
            Prompt::Note { choice, .. } => {
                self.set_note(line);
                self.decide(choice, now)
            }
            Prompt::Override { .. } if line.is_empty() => {
                SessionStep::Say("nothing was decided: an override needs a reason".to_owned())
            }
            Prompt::Override { rows } => {
                let overridden = Overridden { rows, reason: line.to_owned() };
                // The reason is about the red rows alone.
                self.tick_or_accept(open_numbers(card), Vec::new(), Some(overridden), now)
            }
        }
    }

    /// Accepts: red gating rows need a reason, open items a key each.
    fn accept(&mut self, card: &Card, now: Duration) -> SessionStep {
        let red: Vec<String> = card.red_gating().map(str::to_owned).collect();
        match card.offer('a') {
            None => {
                SessionStep::Say(format!("{} is {} and cannot be accepted", card.id, card.state))
            }
            Some(offer) if offer.refused.is_some() && red.is_empty() => {
                let why = offer.refused.clone().unwrap_or_default();
                SessionStep::Say(format!("it cannot be accepted: {why}"))
            }
            Some(_) if !red.is_empty() => SessionStep::AskLine(Prompt::Override { rows: red }),
            Some(_) => self.tick_or_accept(open_numbers(card), Vec::new(), None, now),
        }
    }

    fn press_item(
        &mut self,
        key: char,
        mut left: Vec<usize>,
        mut ticked: Vec<usize>,
        overridden: Option<Overridden>,
        now: Duration,
    ) -> SessionStep {
        match (key, left.first().copied()) {
            ('y' | 'a' | ' ', Some(number)) => {
                left.remove(0);
                ticked.push(number);
                self.tick_or_accept(left, ticked, overridden, now)
            }
            ('?', Some(number)) => {
                self.mode = KeyMode::Ticking { left, ticked, overridden };
                SessionStep::AskItem(number)
            }
            _ => {
                self.mode = KeyMode::Card;
                SessionStep::Say("nothing was decided: an item is still open".to_owned())
            }
        }
    }

    fn tick_or_accept(
        &mut self,
        left: Vec<usize>,
        ticked: Vec<usize>,
        overridden: Option<Overridden>,
        now: Duration,
    ) -> SessionStep {
        if let Some(&number) = left.first() {
            self.mode = KeyMode::Ticking { left, ticked, overridden };
            return SessionStep::AskItem(number);
        }
        let clear = if ticked.is_empty() { Ticks::Nothing } else { Ticks::Numbers(ticked) };
        self.decide(Choice::Accept { clear, overridden }, now)
    }

    fn send_back(&mut self, card: &Card, choice: Choice, now: Duration) -> SessionStep {
        let Some(offer) = card.offers.iter().find(|offer| offer.action == choice.word()) else {
            return SessionStep::Say(format!(
                "{} is {}: that cannot be decided",
                card.id, card.state
            ));
        };
        if self.note.is_some() {
            return self.decide(choice, now);
        }
        SessionStep::AskLine(Prompt::Note { choice, needed: offer.needs_note })
    }

    fn decide(&mut self, choice: Choice, now: Duration) -> SessionStep {
        let Some(id) = self.current().cloned() else { return SessionStep::Show };
        let decision = Decision { id, choice, note: self.note.take() };
        let due = now + self.window;
        self.pending.push_back(Pending { decision: decision.clone(), due });
        self.go_to(self.at + 1);
        SessionStep::Decided(decision)
    }

    fn undo(&mut self) -> SessionStep {
        let Some(Pending { decision, .. }) = self.pending.pop_back() else {
            return SessionStep::Say("there is nothing to undo: everything is recorded".to_owned());
        };
        // A bundle that was put back is listed twice, and its later place is where it was decided.
        let at = self.ids.iter().rposition(|id| *id == decision.id);
        self.go_to(at.unwrap_or(self.at));
        self.note.clone_from(&decision.note);
        SessionStep::Undone(decision)
    }

    fn go_to(&mut self, at: usize) {
        (self.at, self.mode, self.note) = (at.min(self.ids.len()), KeyMode::Card, None);
    }
}

/// Returns the numbers of the open items.
fn open_numbers(card: &Card) -> Vec<usize> {
    card.open_items().map(|item| item.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::card::testing::card;

    const WINDOW: Duration = Duration::from_secs(5);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn session(ids: &[&str]) -> ReviewSession {
        ReviewSession::new(ids.iter().map(|id| id.parse().unwrap()).collect(), WINDOW)
    }

    fn lines(decisions: &[Decision]) -> Vec<String> {
        decisions.iter().map(Decision::command_line).collect()
    }

    #[test]
    fn a_cheap_bundle_takes_one_key_and_one_per_open_item() {
        let mut session = session(&["1", "2"]);
        let step = session.press('a', Some(&card("1", &[])), at(0));
        assert!(matches!(step, SessionStep::Decided(_)), "{step:?}");
        assert_eq!(session.press('a', Some(&card("2", &["fit?"])), at(1)), SessionStep::AskItem(1));
        let step = session.press('y', Some(&card("2", &["fit?"])), at(2));
        assert!(matches!(step, SessionStep::Decided(_)), "{step:?}");
        assert_eq!(session.current(), None);
        let done = session.due(at(5));
        assert_eq!(lines(&done), ["pdca signoff 1 accept"]);
        assert_eq!(lines(&session.due(at(7))), ["pdca signoff 2 accept --clear=1"]);
    }

    #[test]
    fn an_undone_decision_is_never_handed_out_and_its_card_comes_back() {
        let mut session = session(&["1", "2"]);
        session.press('a', Some(&card("1", &[])), at(0));
        session.press('a', Some(&card("2", &[])), at(1));
        let step = session.press('u', None, at(2));
        assert!(
            matches!(&step, SessionStep::Undone(decision) if decision.id.as_ref() == "2"),
            "{step:?}"
        );
        assert_eq!(session.current().map(AsRef::as_ref), Some("2"));
        assert_eq!(lines(&session.due(at(60))), ["pdca signoff 1 accept"]);
        let step = session.press('u', None, at(61));
        assert!(matches!(step, SessionStep::Say(_)), "{step:?}");
    }

    #[test]
    fn an_item_that_is_not_ticked_cancels_the_acceptance() {
        let mut session = session(&["1"]);
        let card = card("1", &["a", "b"]);
        session.press('a', Some(&card), at(0));
        assert_eq!(session.press('y', Some(&card), at(0)), SessionStep::AskItem(2));
        assert!(matches!(session.press('n', Some(&card), at(0)), SessionStep::Say(_)));
        assert_eq!((session.pending().count(), session.mode()), (0, &KeyMode::Card));
    }

    #[test]
    fn a_reason_for_red_rows_ticks_no_item_by_itself() {
        let mut session = session(&["1"]);
        let card = card("1", &["fit?"]);
        let prompt = Prompt::Override { rows: vec!["T3-tests".to_owned()] };
        let step = session.answer(prompt.clone(), "no browser", &card, at(0));
        assert_eq!(step, SessionStep::AskItem(1));
        session.press('n', Some(&card), at(0));
        assert_eq!(session.pending().count(), 0);
        session.answer(prompt, "no browser", &card, at(0));
        session.press('y', Some(&card), at(0));
        assert_eq!(
            lines(&session.confirm()),
            ["pdca signoff 1 accept --clear=1 --override T3-tests --reason 'no browser'"]
        );
    }

    #[test]
    fn a_note_from_the_editor_goes_with_the_decision_and_with_no_other() {
        let mut session = session(&["1", "2"]);
        let first = card("1", &[]);
        assert_eq!(session.press('e', Some(&first), at(0)), SessionStep::EditNote);
        session.set_note("mind the gap\n");
        session.press('i', Some(&first), at(0));
        let second = card("2", &[]);
        let SessionStep::AskLine(prompt) = session.press('x', Some(&second), at(0)) else {
            panic!()
        };
        assert!(matches!(session.answer(prompt.clone(), " ", &second, at(0)), SessionStep::Say(_)));
        session.answer(prompt, "superseded", &second, at(0));
        assert_eq!(
            lines(&session.confirm()),
            [
                "pdca signoff 1 iterate-do --note 'mind the gap'",
                "pdca signoff 2 discontinue --note superseded"
            ]
        );
    }

    proptest::proptest! {
        /// Whatever is typed, a bundle has at most one pending decision at a time, and what is handed out was decided.
        #[test]
        fn no_bundle_is_decided_twice(keys in "[aipxunb yq?e]{0,60}") {
            let ids = ["1", "2", "3"];
            let mut session = session(&ids);
            let mut handed = Vec::new();
            for (now, key) in keys.chars().enumerate() {
                let now = at(now as u64);
                handed.extend(session.due(now));
                let current = session.current().cloned();
                let shown = current.as_ref().map(|id| card(id.as_ref(), &["fit?"]));
                // A card that was recorded is shown as decided, which the caller knows from the disk.
                if current.is_some_and(|id| handed.iter().any(|one: &Decision| one.id == id)) {
                    session.skip();
                    continue;
                }
                if let (SessionStep::AskLine(prompt), Some(card)) =
                    (session.press(key, shown.as_ref(), now), &shown)
                {
                    session.answer(prompt, "because", card, now);
                }
            }
            handed.extend(session.confirm());
            let mut ids: Vec<_> = handed.iter().map(|decision| decision.id.clone()).collect();
            ids.sort();
            ids.dedup();
            proptest::prop_assert_eq!(ids.len(), handed.len());
        }
    }
}
