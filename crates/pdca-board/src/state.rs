//! The state machine: views, selection, filter, overlays, and decisions that can be undone for a while.
//!
//! Decisions go through [`Session`], which `pdca review` uses too: a key becomes a pending decision, and only what is
//! due is handed to the caller to be recorded. A board that dies has recorded nothing that was not due.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pdca_review::{Card, Mode, Prompt, Session, Step};
use pdca_state::BundleId;
use ratatui::layout::Rect;

use crate::data::{BoardData, Waiting};
use crate::input::{Effect, Input, Key};

/// The time in which a decision can be undone.
const WINDOW: Duration = Duration::from_secs(5);

/// The lines that a page key moves.
const PAGE: isize = 10;

/// The three views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Decide,
    Work,
    Together,
}

impl View {
    pub const ALL: [Self; 3] = [Self::Decide, Self::Work, Self::Together];

    pub fn title(self) -> &'static str {
        match self {
            Self::Decide => "Decide",
            Self::Work => "Work",
            Self::Together => "Together",
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Decide => 0,
            Self::Work => 1,
            Self::Together => 2,
        }
    }
}

/// The pane that keys go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    List,
    /// The card or the details beside the list.
    Detail,
}

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
    view: View,
    focus: Focus,
    /// The selected row of each view.
    selected: [usize; 3],
    /// The first line of the details.
    scroll: u16,
    filter: String,
    /// Keys go into the filter.
    is_filtering: bool,
    overlay: Option<Overlay>,
    data: Arc<BoardData>,
    session: Session,
    /// The bundles that were handed out to be recorded and are not gone from the list yet.
    recording: BTreeSet<BundleId>,
    card: Option<(BundleId, Result<Arc<Card>, String>)>,
    asked: Option<BundleId>,
    message: String,
    now: Duration,
    /// Where things were drawn, for the mouse.
    areas: Areas,
    /// The decisions that were recorded, by word.
    recorded: BTreeMap<&'static str, usize>,
}

/// The places of panes in the last frame.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Areas {
    pub(crate) tabs: Rect,
    pub(crate) list: Rect,
    pub(crate) detail: Rect,
    /// The first row that the list shows.
    pub(crate) first: usize,
}

impl Default for Board {
    fn default() -> Self {
        Self::new()
    }
}

impl Board {
    pub fn new() -> Self {
        Self {
            view: View::Decide,
            focus: Focus::List,
            selected: [0; 3],
            scroll: 0,
            filter: String::new(),
            is_filtering: false,
            overlay: None,
            data: Arc::default(),
            session: Session::new(Vec::new(), WINDOW),
            recording: BTreeSet::new(),
            card: None,
            asked: None,
            message: String::new(),
            now: Duration::ZERO,
            areas: Areas::default(),
            recorded: BTreeMap::new(),
        }
    }

    pub fn view(&self) -> View {
        self.view
    }

    pub fn focus(&self) -> Focus {
        self.focus
    }

    pub fn overlay(&self) -> Option<&Overlay> {
        self.overlay.as_ref()
    }

    /// Returns the text of the filter, and whether keys go into it.
    pub fn filter(&self) -> (&str, bool) {
        (&self.filter, self.is_filtering)
    }

    pub fn data(&self) -> &BoardData {
        &self.data
    }

    /// Returns the line above the footer.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the number of recorded decisions by word.
    pub fn recorded(&self) -> &BTreeMap<&'static str, usize> {
        &self.recorded
    }

    /// Returns the first line of the details that is shown.
    pub fn scroll(&self) -> u16 {
        self.scroll
    }

    /// Returns the selected row of the present view.
    pub fn selected(&self) -> usize {
        self.selected[self.view.index()]
    }

    /// Returns the time until the first pending decision is recorded.
    pub fn undo_left(&self) -> Option<Duration> {
        self.session.next_due().map(|due| due.saturating_sub(self.now))
    }

    /// Returns the card of the selected bundle, if it is loaded.
    pub fn card(&self) -> Option<&Result<Arc<Card>, String>> {
        let id = self.current()?;
        self.card.as_ref().filter(|(of, _)| of == id).map(|(_, card)| card)
    }

    /// Returns the bundles to decide that fit the filter and are neither decided nor being recorded.
    pub fn waiting(&self) -> Vec<&Waiting> {
        let is_open = |row: &&Waiting| {
            !self.recording.contains(&row.id) && self.session.pending().all(|one| one.id != row.id)
        };
        let fits = |row: &&Waiting| self.fits(&[row.id.as_ref(), &row.title]);
        self.data.waiting.iter().filter(is_open).filter(fits).collect()
    }

    /// Returns whether all words of the filter are in these texts.
    pub fn fits(&self, texts: &[&str]) -> bool {
        let text = texts.join(" ").to_lowercase();
        self.filter.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }

    /// Returns the number of rows in the list of the present view.
    pub fn rows(&self) -> usize {
        match self.view {
            View::Decide => self.waiting().len(),
            View::Work => self.work_rows().count(),
            View::Together => self.change_rows().count(),
        }
    }

    /// Returns the rows of Work: lanes first, then the rest.
    pub fn work_rows(&self) -> impl Iterator<Item = WorkItem<'_>> {
        let lanes = self.data.lanes.iter().map(WorkItem::Lane);
        let rest = self.data.rest.iter().map(WorkItem::Rest);
        lanes.chain(rest).filter(|row| self.fits(&row.texts()))
    }

    /// Returns the rows of Together.
    pub fn change_rows(&self) -> impl Iterator<Item = &crate::data::ChangeRow> {
        let rows = self.data.changes.iter();
        rows.filter(|row| self.fits(&[row.id.as_ref(), &row.title, row.word]))
    }

    pub(crate) fn set_areas(&mut self, areas: Areas) {
        self.areas = areas;
    }

    /// Takes what happened, and returns what the caller has to do.
    pub fn update(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = match input {
            Input::Key(key) => {
                self.message.clear();
                self.key(key)
            }
            Input::Click(column, row) => self.click(column, row),
            Input::Scroll(column, row, by) => self.wheel(column, row, by),
            Input::Data(data) => {
                self.data = data;
                let listed: BTreeSet<&BundleId> =
                    self.data.waiting.iter().map(|row| &row.id).collect();
                self.recording.retain(|id| listed.contains(id));
                // What is shown may be of yesterday: read it again, and keep the old one until then.
                self.asked = None;
                Vec::new()
            }
            Input::Resized => Vec::new(),
            Input::Card(id, card) => {
                self.card = Some((id, card));
                Vec::new()
            }
            Input::Tick(now) => {
                self.now = now;
                Vec::new()
            }
            Input::Recorded(_, said) | Input::Say(said) => {
                self.message = said;
                Vec::new()
            }
            Input::Refused(id, why) => {
                self.recording.remove(&id);
                self.message = why;
                Vec::new()
            }
            Input::Note(note) => {
                self.session.set_note(&note);
                "the note goes with the next decision about this bundle"
                    .clone_into(&mut self.message);
                Vec::new()
            }
        };
        effects.extend(self.settle());
        effects
    }

    /// Hands out what is due, keeps the selection inside the list, and asks for the card that is shown.
    fn settle(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        let due = self.session.due(self.now);
        if !due.is_empty() {
            effects.push(self.record(due));
        }
        let last = self.rows().saturating_sub(1);
        let selected = &mut self.selected[self.view.index()];
        *selected = (*selected).min(last);
        if self.view == View::Decide
            && let Some(id) = self.current().cloned()
            && self.asked.as_ref() != Some(&id)
        {
            self.asked = Some(id.clone());
            effects.push(Effect::LoadCard(id));
        }
        effects
    }

    fn record(&mut self, due: Vec<pdca_review::Decision>) -> Effect {
        for decision in &due {
            self.recording.insert(decision.id.clone());
            *self.recorded.entry(decision.choice.word()).or_default() += 1;
        }
        Effect::Record(due)
    }

    /// Returns the selected bundle of Decide.
    pub fn current(&self) -> Option<&BundleId> {
        let at = self.selected[View::Decide.index()];
        self.waiting().get(at).map(|row| &row.id)
    }

    fn key(&mut self, key: Key) -> Vec<Effect> {
        if key == Key::Suspend {
            return vec![Effect::Suspend];
        }
        if key == Key::Interrupt {
            return self.leave();
        }
        match self.overlay.take() {
            Some(overlay) => self.overlay_key(overlay, key),
            None if self.is_filtering => self.filter_key(key),
            None if *self.session.mode() != Mode::Card => self.session_key(key),
            None => self.view_key(key),
        }
    }

    fn overlay_key(&mut self, overlay: Overlay, key: Key) -> Vec<Effect> {
        match (overlay, key) {
            (Overlay::Leaving, Key::Enter | Key::Char('y' | 'q')) => {
                let due = self.session.confirm();
                vec![self.record(due), Effect::Quit]
            }
            (Overlay::Leaving, Key::Char('u')) => {
                let step = self.session.press('u', None, self.now);
                self.take_step(step)
            }
            (Overlay::Help | Overlay::Leaving, _) => Vec::new(),
            (Overlay::Prompt(prompt, text), key) => self.prompt_key(prompt, text, key),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn prompt_key(&mut self, prompt: Prompt, mut text: String, key: Key) -> Vec<Effect> {
        match key {
            Key::Enter => {
                let Some(Ok(card)) = self.card().cloned() else { return Vec::new() };
                let step = self.session.answer(prompt, &text, &card, self.now);
                return self.take_step(step);
            }
            Key::Escape => {
                "nothing was decided".clone_into(&mut self.message);
                return Vec::new();
            }
            Key::Char(letter) => text.push(letter),
            Key::Backspace => drop(text.pop()),
            _ => {}
        }
        self.overlay = Some(Overlay::Prompt(prompt, text));
        Vec::new()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn filter_key(&mut self, key: Key) -> Vec<Effect> {
        match key {
            Key::Enter | Key::Tab => self.is_filtering = false,
            Key::Escape => {
                self.filter.clear();
                self.is_filtering = false;
            }
            Key::Char(letter) => self.filter.push(letter),
            Key::Backspace => drop(self.filter.pop()),
            Key::Up => self.move_by(-1),
            Key::Down => self.move_by(1),
            _ => {}
        }
        Vec::new()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn view_key(&mut self, key: Key) -> Vec<Effect> {
        match key {
            Key::Char('1') => self.show(View::Decide),
            Key::Char('2') => self.show(View::Work),
            Key::Char('3') => self.show(View::Together),
            Key::Tab => self.show(View::ALL[(self.view.index() + 1) % 3]),
            Key::BackTab => self.show(View::ALL[(self.view.index() + 2) % 3]),
            Key::Char('/') => self.is_filtering = true,
            Key::Char('?') => self.overlay = Some(Overlay::Help),
            Key::Char('q') => return self.leave(),
            Key::Up | Key::Char('k' | 'b') => self.move_by(-1),
            Key::Down | Key::Char('j' | 'n' | ' ') => self.move_by(1),
            Key::PageUp => self.move_by(-PAGE),
            Key::PageDown => self.move_by(PAGE),
            Key::Home | Key::Char('g') => self.move_by(isize::MIN),
            Key::End | Key::Char('G') => self.move_by(isize::MAX),
            Key::Enter | Key::Right => self.focus = Focus::Detail,
            Key::Left => self.focus = Focus::List,
            Key::Escape if self.focus == Focus::Detail => self.focus = Focus::List,
            Key::Escape => self.filter.clear(),
            Key::Char(letter) if self.view == View::Decide => return self.session_letter(letter),
            _ => {}
        }
        Vec::new()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    fn session_key(&mut self, key: Key) -> Vec<Effect> {
        match key {
            Key::Char(letter) => self.session_letter(letter),
            Key::Enter => self.session_letter('y'),
            _ => self.session_letter('\u{1b}'),
        }
    }

    fn session_letter(&mut self, letter: char) -> Vec<Effect> {
        let Some(id) = self.current().cloned() else {
            let step = self.session.press(letter, None, self.now);
            return if letter == 'u' { self.take_step(step) } else { Vec::new() };
        };
        let card = self.card().cloned();
        if self.session.current() != Some(&id) {
            self.session.select(&id);
        }
        let step = match &card {
            Some(Ok(card)) => self.session.press(letter, Some(card), self.now),
            Some(Err(why)) => Step::Say(why.clone()),
            None if letter == 'u' => self.session.press('u', None, self.now),
            None => Step::Say("its card is being read".to_owned()),
        };
        self.take_step(step)
    }

    fn take_step(&mut self, step: Step) -> Vec<Effect> {
        let id = self.session.current().cloned().or_else(|| self.current().cloned());
        let for_it = |effect: fn(BundleId) -> Effect| id.clone().map(effect).into_iter().collect();
        match step {
            Step::Show | Step::AskItem(_) => {}
            Step::AskLine(prompt) => self.overlay = Some(Overlay::Prompt(prompt, String::new())),
            Step::Say(text) => self.message = text,
            Step::Diff => return for_it(Effect::Diff),
            Step::Log => return for_it(Effect::Log),
            Step::Shell => return for_it(Effect::Shell),
            Step::Whole => return for_it(Effect::Whole),
            Step::EditNote => {
                let note = self.session.note().unwrap_or_default().to_owned();
                return id.map(|id| Effect::EditNote(id, note)).into_iter().collect();
            }
            Step::Help => self.overlay = Some(Overlay::Help),
            Step::Decided(decision) => {
                self.message = format!("{}   u undoes it", decision.command_line());
                self.scroll = 0;
            }
            Step::Undone(decision) => {
                self.message = format!("undone: {}", decision.command_line());
                self.select(&decision.id);
            }
            Step::Quit => return self.leave(),
        }
        Vec::new()
    }

    fn select(&mut self, id: &BundleId) {
        let at = self.waiting().iter().position(|row| row.id == *id);
        if let Some(at) = at {
            self.selected[View::Decide.index()] = at;
            self.scroll = 0;
        }
    }

    /// Quits, unless decisions are pending: then the person is asked.
    fn leave(&mut self) -> Vec<Effect> {
        if self.session.next_due().is_none() {
            return vec![Effect::Quit];
        }
        self.overlay = Some(Overlay::Leaving);
        Vec::new()
    }

    fn show(&mut self, view: View) {
        (self.view, self.focus, self.scroll) = (view, Focus::List, 0);
    }

    fn move_by(&mut self, by: isize) {
        match self.focus {
            Focus::Detail => self.scroll_by(by),
            Focus::List => {
                let last = self.rows().saturating_sub(1);
                let selected = &mut self.selected[self.view.index()];
                let moved = selected.saturating_add_signed(by).min(last);
                if moved != *selected {
                    (*selected, self.scroll) = (moved, 0);
                }
            }
        }
    }

    fn scroll_by(&mut self, by: isize) {
        let by = i16::try_from(by.clamp(-1000, 1000)).unwrap_or(0);
        self.scroll = self.scroll.saturating_add_signed(by);
    }

    /// Keeps the details from being scrolled past their end, which only the drawing knows.
    pub(crate) fn limit_scroll(&mut self, most: u16) {
        self.scroll = self.scroll.min(most);
    }

    fn click(&mut self, column: u16, row: u16) -> Vec<Effect> {
        let at = ratatui::layout::Position::new(column, row);
        let areas = self.areas;
        if self.overlay == Some(Overlay::Help) {
            self.overlay = None;
        } else if areas.tabs.contains(at) {
            // Each tab is as wide as its title with the number and two blanks around.
            let mut from = areas.tabs.x;
            for view in View::ALL {
                let width = tab_width(view);
                if column < from + width {
                    self.show(view);
                    break;
                }
                from += width;
            }
        } else if areas.list.contains(at) {
            let place = areas.first + usize::from(row - areas.list.y);
            self.focus = Focus::List;
            if place < self.rows() {
                (self.selected[self.view.index()], self.scroll) = (place, 0);
            }
        } else if areas.detail.contains(at) {
            self.focus = Focus::Detail;
        }
        Vec::new()
    }

    fn wheel(&mut self, column: u16, row: u16, by: i8) -> Vec<Effect> {
        let at = ratatui::layout::Position::new(column, row);
        let focus = self.focus;
        self.focus = if self.areas.detail.contains(at) { Focus::Detail } else { Focus::List };
        self.move_by(3 * isize::from(by));
        self.focus = focus;
        Vec::new()
    }
}

/// Returns the width of a tab: ` 1 Decide `.
pub(crate) fn tab_width(view: View) -> u16 {
    u16::try_from(view.title().len()).unwrap_or(0) + 4
}

/// A row of Work.
#[derive(Debug, Clone, Copy)]
pub enum WorkItem<'a> {
    Lane(&'a crate::data::LaneRow),
    Rest(&'a crate::data::WorkRow),
}

impl WorkItem<'_> {
    fn texts(&self) -> [&str; 3] {
        match self {
            Self::Lane(row) => [row.id.as_ref(), &row.title, &row.doing],
            Self::Rest(row) => [row.id.as_ref(), &row.title, row.state],
        }
    }
}
