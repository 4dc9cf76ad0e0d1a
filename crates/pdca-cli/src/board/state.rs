//! The state machine: what comes in changes the board, and what the caller has to do comes out.
//!
//! A [`Board`] has three parts: [`Navigation`] is where the person is, [`Deciding`] what they decide, and the rest is
//! what is shown: the last reading of the workspace, an overlay, a message.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pdca_state::BundleId;
use pdca_workspace::review::{Card, KeyMode, Prompt, SessionStep};
use ratatui::layout::Position;

use crate::board::data::{BoardData, ChangeRow, LaneRow, Waiting, WorkRow};
use crate::board::deciding::Deciding;
use crate::board::input::{BoardEffect, BoardInput, BoardKey};
use crate::board::navigation::{Navigation, View};

/// What lies over the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overlay {
    Help,
    /// A line is typed for this prompt.
    Prompt(Prompt, String),
    /// Decisions are pending, and the person wants to leave.
    Leaving,
}

/// A board.
#[derive(Debug)]
pub struct Board {
    navigation: Navigation,
    deciding: Deciding,
    overlay: Option<Overlay>,
    data: Arc<BoardData>,
    message: String,
}

impl Board {
    /// Begins with nothing to show. A decision can be undone for `undo_window`.
    pub fn new(undo_window: Duration) -> Self {
        Self {
            navigation: Navigation::default(),
            deciding: Deciding::new(undo_window),
            overlay: None,
            data: Arc::default(),
            message: String::new(),
        }
    }

    pub fn navigation(&self) -> &Navigation {
        &self.navigation
    }

    pub(crate) fn navigation_mut(&mut self) -> &mut Navigation {
        &mut self.navigation
    }

    pub fn deciding(&self) -> &Deciding {
        &self.deciding
    }

    pub fn overlay(&self) -> Option<&Overlay> {
        self.overlay.as_ref()
    }

    pub fn data(&self) -> &BoardData {
        &self.data
    }

    /// Returns the line above the footer.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the selected bundle of Decide.
    pub fn current(&self) -> Option<&BundleId> {
        let at = self.navigation.selected_in(View::Decide);
        self.waiting().get(at).map(|row| &row.id)
    }

    /// Returns the card of the selected bundle, if it is loaded.
    pub fn card(&self) -> Option<&Result<Arc<Card>, String>> {
        self.deciding.card(self.current()?)
    }

    /// Returns the bundles to decide that fit the filter and are neither decided nor being recorded.
    pub fn waiting(&self) -> Vec<&Waiting> {
        let rows = self.data.waiting.iter().filter(|row| self.deciding.is_open(&row.id));
        rows.filter(|row| self.navigation.fits(&[row.id.as_ref(), &row.title])).collect()
    }

    /// Returns the rows of Work: lanes first, then the rest.
    pub fn work_rows(&self) -> impl Iterator<Item = WorkItem<'_>> {
        let lanes = self.data.lanes.iter().map(WorkItem::Lane);
        let rest = self.data.rest.iter().map(WorkItem::Rest);
        lanes.chain(rest).filter(|row| self.navigation.fits(&row.texts()))
    }

    /// Returns the rows of Together.
    pub fn change_rows(&self) -> impl Iterator<Item = &ChangeRow> {
        let rows = self.data.changes.iter();
        rows.filter(|row| self.navigation.fits(&[row.id.as_ref(), &row.title, row.word]))
    }

    /// Takes what happened, and returns what the caller has to do.
    pub fn update(&mut self, input: BoardInput) -> Vec<BoardEffect> {
        let mut effects = Vec::new();
        match input {
            BoardInput::Key(key) => {
                self.message.clear();
                effects = self.key(key);
            }
            // Neither a click nor the wheel may select another bundle below a prompt that is about this one.
            BoardInput::Click(..) if self.overlay.is_some() => {
                self.overlay.take_if(|overlay| *overlay == Overlay::Help);
            }
            BoardInput::Scroll(..) if self.overlay.is_some() => {}
            BoardInput::Click(column, row) => {
                let rows = self.rows();
                self.navigation.click(Position::new(column, row), rows);
            }
            BoardInput::Scroll(column, row, by) => {
                let rows = self.rows();
                self.navigation.wheel(Position::new(column, row), by, rows);
            }
            BoardInput::Data(data) => self.take_data(data),
            BoardInput::Resized => {}
            BoardInput::Card(id, card) => self.deciding.set_card(id, card),
            BoardInput::Tick(now) => self.deciding.set_time(now),
            BoardInput::Recorded(id, said) => {
                self.deciding.count(&id);
                self.message = said;
            }
            BoardInput::Say(said) | BoardInput::Unpublished(said) => self.message = said,
            BoardInput::Refused(id, why) => {
                self.deciding.refuse(&id);
                self.message = why;
            }
            BoardInput::Note(note) => {
                self.deciding.set_note(&note);
                "the note goes with the next decision about this bundle"
                    .clone_into(&mut self.message);
            }
        }
        effects.extend(self.settle());
        effects
    }

    /// Takes a new reading. The selection stays on its bundle: a key is about what the person saw, not about a place in
    /// the list that another bundle has taken meanwhile.
    fn take_data(&mut self, data: Arc<BoardData>) {
        let selected = View::ALL.map(|view| {
            let at = self.navigation.selected_in(view);
            (view, self.ids(view).get(at).map(|id| (*id).clone()))
        });
        self.data = data;
        let listed: BTreeSet<&BundleId> = self.data.waiting.iter().map(|row| &row.id).collect();
        self.deciding.refresh(&listed);
        for (view, id) in selected {
            let row = id.and_then(|id| self.ids(view).iter().position(|one| **one == id));
            if let Some(row) = row {
                self.navigation.follow(view, row);
            }
        }
    }

    /// Hands out what is due, keeps the selection inside the list, and asks for the card that is shown.
    fn settle(&mut self) -> Vec<BoardEffect> {
        let mut effects = Vec::new();
        let due = self.deciding.due();
        if !due.is_empty() {
            effects.push(BoardEffect::Record(due));
        }
        let rows = self.rows();
        self.navigation.keep_inside(rows);
        if self.navigation.view() == View::Decide
            && let Some(id) = self.current().cloned()
            && self.deciding.must_ask(&id)
        {
            effects.push(BoardEffect::LoadCard(id));
        }
        effects
    }

    /// Returns the bundles in the list of a view.
    fn ids(&self, view: View) -> Vec<&BundleId> {
        match view {
            View::Decide => self.waiting().into_iter().map(|row| &row.id).collect(),
            View::Work => self.work_rows().map(WorkItem::id).collect(),
            View::Together => self.change_rows().map(|row| &row.id).collect(),
        }
    }

    /// Returns the number of rows in the list of the present view.
    fn rows(&self) -> usize {
        self.ids(self.navigation.view()).len()
    }

    fn key(&mut self, key: BoardKey) -> Vec<BoardEffect> {
        if key == BoardKey::Suspend {
            return vec![BoardEffect::Suspend];
        }
        if key == BoardKey::Interrupt {
            return self.leave();
        }
        match self.overlay.take() {
            Some(overlay) => self.overlay_key(overlay, key),
            None if self.navigation.is_filtering() => {
                let rows = self.rows();
                self.navigation.filter_key(key, rows);
                Vec::new()
            }
            None if *self.deciding.session().mode() != KeyMode::Card => {
                self.letter(item_letter(key))
            }
            None => self.view_key(key),
        }
    }

    fn overlay_key(&mut self, overlay: Overlay, key: BoardKey) -> Vec<BoardEffect> {
        match (overlay, key) {
            (Overlay::Leaving, BoardKey::Enter | BoardKey::Char('y' | 'q')) => {
                // In this order: the caller stops at `Quit`.
                vec![BoardEffect::Record(self.deciding.confirm()), BoardEffect::Quit]
            }
            (Overlay::Leaving, BoardKey::Char('u')) => {
                let step = self.deciding.undo();
                self.take_step(step)
            }
            (Overlay::Help | Overlay::Leaving, _) => Vec::new(),
            (Overlay::Prompt(prompt, text), key) => self.prompt_key(prompt, text, key),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn prompt_key(&mut self, prompt: Prompt, mut text: String, key: BoardKey) -> Vec<BoardEffect> {
        match key {
            BoardKey::Enter => return self.answer(prompt, &text),
            BoardKey::Escape => {
                "nothing was decided".clone_into(&mut self.message);
                return Vec::new();
            }
            BoardKey::Char(letter) => text.push(letter),
            BoardKey::Backspace => drop(text.pop()),
            _ => {}
        }
        self.overlay = Some(Overlay::Prompt(prompt, text));
        Vec::new()
    }

    /// Takes the line that was typed, if the bundle that it is about still waits.
    fn answer(&mut self, prompt: Prompt, text: &str) -> Vec<BoardEffect> {
        let asked = self.deciding.session().current().cloned();
        // A new reading may have taken it off the list while the line was typed.
        let asked = asked.filter(|id| self.current() == Some(id));
        let step = asked.and_then(|id| self.deciding.answer(prompt, text, &id));
        let gone =
            || SessionStep::Say("nothing was decided: it no longer waits for you".to_owned());
        self.take_step(step.unwrap_or_else(gone))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn view_key(&mut self, key: BoardKey) -> Vec<BoardEffect> {
        let rows = self.rows();
        if self.navigation.key(key, rows) {
            return Vec::new();
        }
        match key {
            BoardKey::Char('?') => self.overlay = Some(Overlay::Help),
            BoardKey::Char('q') => return self.leave(),
            BoardKey::Char(letter) if self.navigation.view() == View::Decide => {
                return self.letter(letter);
            }
            _ => {}
        }
        Vec::new()
    }

    fn letter(&mut self, letter: char) -> Vec<BoardEffect> {
        let step = match self.current().cloned() {
            Some(id) => self.deciding.press(letter, &id),
            None if letter == 'u' => self.deciding.undo(),
            None => return Vec::new(),
        };
        self.take_step(step)
    }

    fn take_step(&mut self, step: SessionStep) -> Vec<BoardEffect> {
        let id = self.deciding.session().current().or_else(|| self.current()).cloned();
        let for_it =
            |effect: fn(BundleId) -> BoardEffect| id.clone().map(effect).into_iter().collect();
        match step {
            SessionStep::Show | SessionStep::AskItem(_) => {}
            SessionStep::AskLine(prompt) => {
                self.overlay = Some(Overlay::Prompt(prompt, String::new()));
            }
            SessionStep::Say(text) => self.message = text,
            SessionStep::Diff => return for_it(BoardEffect::Diff),
            SessionStep::Log => return for_it(BoardEffect::Log),
            SessionStep::Shell => return for_it(BoardEffect::Shell),
            SessionStep::Whole => return for_it(BoardEffect::Whole),
            SessionStep::EditNote => {
                let note = self.deciding.session().note().unwrap_or_default().to_owned();
                return id.map(|id| BoardEffect::EditNote(id, note)).into_iter().collect();
            }
            SessionStep::Help => self.overlay = Some(Overlay::Help),
            SessionStep::Decided(decision) => {
                self.message = decision.command_line();
                self.navigation.scroll_to_top();
            }
            SessionStep::Undone(decision) => {
                self.message = format!("undone: {}", decision.command_line());
                let row = self.waiting().iter().position(|row| row.id == decision.id);
                if let Some(row) = row {
                    self.navigation.select(View::Decide, row);
                }
            }
            SessionStep::Quit => return self.leave(),
        }
        Vec::new()
    }

    /// Quits, unless decisions are pending: then the person is asked.
    fn leave(&mut self) -> Vec<BoardEffect> {
        if self.deciding.session().next_due().is_none() {
            return vec![BoardEffect::Quit];
        }
        self.overlay = Some(Overlay::Leaving);
        Vec::new()
    }
}

/// Returns what a key says while open items are ticked one by one: yes, or anything else for no.
#[expect(clippy::wildcard_enum_match_arm, reason = "every other key means no")]
fn item_letter(key: BoardKey) -> char {
    match key {
        BoardKey::Char(letter) => letter,
        BoardKey::Enter => 'y',
        _ => '\u{1b}',
    }
}

/// A row of Work.
#[derive(Debug, Clone, Copy)]
pub enum WorkItem<'a> {
    Lane(&'a LaneRow),
    Rest(&'a WorkRow),
}

impl<'a> WorkItem<'a> {
    pub(crate) fn id(self) -> &'a BundleId {
        match self {
            Self::Lane(row) => &row.id,
            Self::Rest(row) => &row.id,
        }
    }

    fn texts(&self) -> [&str; 3] {
        match self {
            Self::Lane(row) => [row.id.as_ref(), &row.title, &row.doing],
            Self::Rest(row) => [row.id.as_ref(), &row.title, row.state],
        }
    }
}
