//! Draws a board onto a frame.
//!
//! The first row has the views, the last one the keys of the focused pane, the row above it what there is to say. Lines
//! are wrapped or cut here, so that nothing leaves its pane.

mod decide;
mod overlay;
mod together;
mod work;

use crate::columns::{cut, width};
use pdca_workspace::review::Tone;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use crate::board::navigation::{Areas, Focus, View, tab_width};
use crate::board::state::Board;

/// The smallest terminal that is drawn on.
const SMALLEST: (u16, u16) = (40, 10);

/// How things look. Without colours everything is still told apart by words, symbols and attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    pub colours: bool,
}

impl Theme {
    fn tone(self, tone: Tone) -> Style {
        let style = Style::new();
        match (tone, self.colours) {
            (Tone::Plain, _) | (Tone::Good, false) => style,
            (Tone::Good, true) => style.fg(Color::Green),
            (Tone::Bad, true) => style.fg(Color::Red).add_modifier(Modifier::BOLD),
            (Tone::Bad, false) => style.add_modifier(Modifier::BOLD),
            (Tone::Warn, true) => style.fg(Color::Yellow),
            (Tone::Warn, false) => style.add_modifier(Modifier::UNDERLINED),
            (Tone::Faint, _) => style.add_modifier(Modifier::DIM),
        }
    }

    fn heading(self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.colours { style.fg(Color::Cyan) } else { style }
    }

    fn selected() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

/// Draws the board. Only the places of panes, for the mouse, are stored in it.
pub fn draw(frame: &mut Frame<'_>, board: &mut Board, theme: Theme) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = "The board needs 40 columns and 10 rows; 80 by 24 is enough. q quits.";
        frame.render_widget(Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true }), area);
        return;
    }
    let [head, body, say, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area);
    tabs(frame, board, theme, head);
    let mut areas = match board.navigation().view() {
        View::Decide => decide::draw(frame, board, theme, body),
        View::Work => work::draw(frame, board, theme, body),
        View::Together => together::draw(frame, board, theme, body),
    };
    areas.tabs = head;
    board.navigation_mut().set_areas(areas);
    frame.render_widget(message(board, say.width), say);
    frame.render_widget(footer(board, foot.width), foot);
    overlay::draw(frame, board, theme, area);
}

fn tabs(frame: &mut Frame<'_>, board: &Board, theme: Theme, area: Rect) {
    let mut spans = Vec::new();
    for (number, view) in (1..).zip(View::ALL) {
        let style =
            if view == board.navigation().view() { Theme::selected() } else { Style::new() };
        spans.push(Span::styled(format!(" {number} {} ", view.title()), style));
    }
    let used: u16 = View::ALL.into_iter().map(tab_width).sum();
    let data = board.data();
    let counts = format!(
        "{} · {} to decide · {} at work · {} waiting",
        data.project,
        board.waiting().len(),
        data.lanes.len(),
        data.rest.len()
    );
    let room = usize::from(area.width.saturating_sub(used + 1));
    let counts = cut(&counts, room);
    let gap = room.saturating_sub(width(&counts));
    spans.push(Span::raw(" ".repeat(gap + 1)));
    spans.push(Span::styled(counts, theme.tone(Tone::Faint)));
    frame.render_widget(Line::from(spans), area);
}

/// Returns the line above the footer: the filter, what was decided last, or the next command.
fn message<'a>(board: &Board, room: u16) -> Paragraph<'a> {
    let room = usize::from(room);
    let filter = board.navigation().filter();
    if board.navigation().is_filtering() {
        return Paragraph::new(cut(
            &format!("filter: {filter}▏  Enter keeps it, Esc clears it"),
            room,
        ));
    }
    let mut parts = Vec::new();
    let pending = board.deciding().session().pending().count();
    if let (1.., Some(left)) = (pending, board.deciding().undo_left()) {
        parts.push(format!("{pending} not recorded yet ({} s, u undoes)", left.as_secs() + 1));
    }
    if !filter.is_empty() {
        parts.push(format!("filter: {filter} (Esc clears)"));
    }
    if !board.message().is_empty() {
        parts.push(board.message().to_owned());
    } else if pending == 0 {
        parts.extend(next(board));
    }
    Paragraph::new(cut(&pdca_state::text::printable(&parts.join(" · ")), room))
}

/// Returns what to do next: what waits for the person is decided here, the rest is a command.
fn next(board: &Board) -> Option<String> {
    let (command, why) = &board.data().next;
    match (board.data().waiting.len(), board.navigation().view()) {
        (0, _) => (!command.is_empty()).then(|| format!("next: {command}   # {why}")),
        (_, View::Decide) => None,
        (1, View::Work | View::Together) => Some("1 bundle waits for you: key 1".to_owned()),
        (count, View::Work | View::Together) => {
            Some(format!("{count} bundles wait for you: key 1"))
        }
    }
}

/// Returns the keys of the focused pane.
fn footer<'a>(board: &Board, room: u16) -> Paragraph<'a> {
    let keys = match (board.navigation().view(), board.navigation().focus()) {
        (View::Decide, Focus::List) => {
            "a accept  i again  p plan  x drop  u undo  d diff  l log  t try  / find  ? keys"
        }
        (View::Decide, Focus::Detail) => {
            "↑↓ scroll  ← Esc back  a accept  i again  d diff  t try  ? keys  q quit"
        }
        (View::Work | View::Together, Focus::List) => {
            "↑↓ select  Enter details  Tab view  / filter  ? keys  q quit"
        }
        (View::Work | View::Together, Focus::Detail) => "↑↓ scroll  ← Esc back  ? keys  q quit",
    };
    Paragraph::new(cut(keys, usize::from(room)))
        .style(Style::new().add_modifier(Modifier::REVERSED))
}

/// A pane with a title; the focused one has a thick border and a mark.
fn pane<'a>(title: &str, is_focused: bool) -> Block<'a> {
    let mark = if is_focused { "▸ " } else { "" };
    let block = Block::bordered().title(format!(" {mark}{title} "));
    if is_focused { block.border_type(ratatui::widgets::BorderType::Thick) } else { block }
}

/// Draws a list so that the selected row is visible, and returns the first row that is shown.
fn list(frame: &mut Frame<'_>, rows: Vec<Line<'_>>, selected: usize, area: Rect) -> usize {
    let height = usize::from(area.height);
    let first = selected.saturating_sub(height.saturating_sub(1));
    let lines: Vec<Line<'_>> = rows
        .into_iter()
        .enumerate()
        .skip(first)
        .take(height)
        .map(
            |(place, line)| {
                if place == selected { line.patch_style(Theme::selected()) } else { line }
            },
        )
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
    first
}

/// Draws the details beside a list, scrolled, with a mark where they go on.
fn details(frame: &mut Frame<'_>, board: &mut Board, lines: Vec<Line<'_>>, area: Rect) {
    let most = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_sub(area.height);
    board.navigation_mut().limit_scroll(most);
    let scroll = board.navigation().scroll();
    frame.render_widget(Paragraph::new(lines).scroll((scroll, 0)), area);
    if scroll < most {
        let below = format!("↓ {} more ", most - scroll);
        // On the lower border of the pane, so that it covers no line of the text.
        let place = Rect { y: area.bottom(), height: 1, ..area };
        frame.render_widget(Line::from(below).right_aligned(), place);
    }
}

/// Splits a view into a list and its details.
fn halves(area: Rect) -> [Rect; 2] {
    let list = (area.width * 2 / 5).clamp(28, 64);
    Layout::horizontal([Constraint::Length(list), Constraint::Min(10)]).areas(area)
}

/// The places of a list and its details, inside their borders.
fn areas(list: Rect, detail: Rect, first: usize) -> Areas {
    Areas { tabs: Rect::default(), list, detail, first }
}
