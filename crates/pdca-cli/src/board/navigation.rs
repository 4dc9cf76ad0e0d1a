//! The position of a person on the board: view, pane, selected rows, scrolling and filter.

use ratatui::layout::{Position, Rect};

use crate::board::input::BoardKey;

/// The lines that a page key moves.
const PAGE: isize = 10;

/// The lines that one step of the wheel moves.
const WHEEL: isize = 3;

/// The three views.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum View {
    #[default]
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

    /// Returns the view that comes `by` places later; the first follows the last.
    fn further(self, by: usize) -> Self {
        Self::ALL[(self.index() + by) % Self::ALL.len()]
    }
}

/// The pane that keys go to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Focus {
    #[default]
    List,
    /// The card or the details beside the list.
    Detail,
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

/// View, pane, selected rows, scrolling and filter. It knows how many rows a list has only when it is told.
#[derive(Debug, Default)]
pub struct Navigation {
    view: View,
    focus: Focus,
    /// The selected row of each view.
    selected: [usize; 3],
    /// The first line of the details.
    scroll: u16,
    filter: String,
    /// Keys go into the filter.
    is_filtering: bool,
    /// The places of panes, for the mouse.
    areas: Areas,
}

impl Navigation {
    pub fn view(&self) -> View {
        self.view
    }

    pub fn focus(&self) -> Focus {
        self.focus
    }

    /// Returns the text of the filter.
    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// Returns whether keys go into the filter.
    pub fn is_filtering(&self) -> bool {
        self.is_filtering
    }

    /// Returns the first line of the details that is shown.
    pub fn scroll(&self) -> u16 {
        self.scroll
    }

    /// Returns the selected row of the present view.
    pub fn selected(&self) -> usize {
        self.selected_in(self.view)
    }

    pub(crate) fn selected_in(&self, view: View) -> usize {
        self.selected[view.index()]
    }

    /// Returns whether all words of the filter are in these texts.
    pub(crate) fn fits(&self, texts: &[&str]) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        let text = texts.join(" ").to_lowercase();
        self.filter.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }

    pub(crate) fn show(&mut self, view: View) {
        (self.view, self.focus, self.scroll) = (view, Focus::List, 0);
    }

    /// Selects a row of a view.
    pub(crate) fn select(&mut self, view: View, row: usize) {
        (self.selected[view.index()], self.scroll) = (row, 0);
    }

    /// Follows the selected row of a view to its new place in the list.
    pub(crate) fn follow(&mut self, view: View, row: usize) {
        self.selected[view.index()] = row;
    }

    /// Shows the details from their first line.
    pub(crate) fn scroll_to_top(&mut self) {
        self.scroll = 0;
    }

    /// Keeps the selection inside a list of so many rows.
    pub(crate) fn keep_inside(&mut self, rows: usize) {
        let selected = &mut self.selected[self.view.index()];
        *selected = (*selected).min(rows.saturating_sub(1));
    }

    /// Keeps the details from being scrolled past their end, which only the drawing knows.
    pub(crate) fn limit_scroll(&mut self, most: u16) {
        self.scroll = self.scroll.min(most);
    }

    pub(crate) fn set_areas(&mut self, areas: Areas) {
        self.areas = areas;
    }

    /// Takes a key that moves, in a list of so many rows. Returns whether it was one.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other keys are not about moving")]
    pub(crate) fn key(&mut self, key: BoardKey, rows: usize) -> bool {
        match key {
            BoardKey::Char('1') => self.show(View::Decide),
            BoardKey::Char('2') => self.show(View::Work),
            BoardKey::Char('3') => self.show(View::Together),
            BoardKey::Tab => self.show(self.view.further(1)),
            // Two further of three views is one back.
            BoardKey::BackTab => self.show(self.view.further(2)),
            BoardKey::Char('/') => self.is_filtering = true,
            BoardKey::Up | BoardKey::Char('k' | 'b') => self.move_by(-1, rows),
            BoardKey::Down | BoardKey::Char('j' | 'n' | ' ') => self.move_by(1, rows),
            BoardKey::PageUp => self.move_by(-PAGE, rows),
            BoardKey::PageDown => self.move_by(PAGE, rows),
            BoardKey::Home | BoardKey::Char('g') => self.move_by(isize::MIN, rows),
            BoardKey::End | BoardKey::Char('G') => self.move_by(isize::MAX, rows),
            BoardKey::Enter | BoardKey::Right => self.focus = Focus::Detail,
            BoardKey::Left => self.focus = Focus::List,
            BoardKey::Escape if self.focus == Focus::Detail => self.focus = Focus::List,
            BoardKey::Escape => self.filter.clear(),
            _ => return false,
        }
        true
    }

    /// Takes a key while the filter is typed.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing here")]
    pub(crate) fn filter_key(&mut self, key: BoardKey, rows: usize) {
        match key {
            BoardKey::Enter | BoardKey::Tab => self.is_filtering = false,
            BoardKey::Escape => {
                self.filter.clear();
                self.is_filtering = false;
            }
            BoardKey::Char(letter) => self.filter.push(letter),
            BoardKey::Backspace => drop(self.filter.pop()),
            BoardKey::Up => self.move_by(-1, rows),
            BoardKey::Down => self.move_by(1, rows),
            _ => {}
        }
    }

    /// Takes the left button.
    pub(crate) fn click(&mut self, at: Position, rows: usize) {
        let areas = self.areas;
        if areas.tabs.contains(at) {
            self.click_tab(at.x);
        } else if areas.list.contains(at) {
            self.focus = Focus::List;
            let row = areas.first + usize::from(at.y - areas.list.y);
            if row < rows {
                self.select(self.view, row);
            }
        } else if areas.detail.contains(at) {
            self.focus = Focus::Detail;
        }
    }

    fn click_tab(&mut self, column: u16) {
        let mut end = self.areas.tabs.x;
        for view in View::ALL {
            end += tab_width(view);
            if column < end {
                return self.show(view);
            }
        }
    }

    /// Takes the wheel, which moves the pane under it and leaves the focus where it is.
    pub(crate) fn wheel(&mut self, at: Position, by: i8, rows: usize) {
        let focus = self.focus;
        self.focus = if self.areas.detail.contains(at) { Focus::Detail } else { Focus::List };
        self.move_by(WHEEL * isize::from(by), rows);
        self.focus = focus;
    }

    fn move_by(&mut self, by: isize, rows: usize) {
        match self.focus {
            Focus::Detail => {
                // Far enough for every card. `limit_scroll` takes back what leads past the end.
                let by = i16::try_from(by.clamp(-1000, 1000)).unwrap_or(0);
                self.scroll = self.scroll.saturating_add_signed(by);
            }
            Focus::List => {
                let selected = self.selected();
                let moved = selected.saturating_add_signed(by).min(rows.saturating_sub(1));
                if moved != selected {
                    self.select(self.view, moved);
                }
            }
        }
    }
}

/// Returns the width of a tab: ` 1 Decide `.
pub(crate) fn tab_width(view: View) -> u16 {
    u16::try_from(view.title().len()).unwrap_or(0) + 4
}
