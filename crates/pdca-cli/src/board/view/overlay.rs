//! What lies over a view: help, a line to type, the question before leaving.

use crate::columns::{cut, wrap};
use pdca_workspace::review::{KEYS, KeyMode, Prompt};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Paragraph};

use super::{Theme, pane};
use crate::board::state::{Board, Overlay};

/// The keys that every view has.
const EVERYWHERE: [(&str, &str); 7] = [
    ("1 2 3, Tab", "Decide, Work, Together"),
    ("↑ ↓, j k", "select, or scroll; PgUp PgDn Home End, the mouse"),
    ("Enter, →", "go to the details; ← or Esc back"),
    ("/", "filter the list by words"),
    ("Ctrl-Z", "suspend; `fg` comes back"),
    ("q, Ctrl-C", "quit"),
    ("?", "these keys; any key closes them"),
];

pub(super) fn draw(frame: &mut Frame<'_>, board: &Board, theme: Theme, area: Rect) {
    match board.overlay() {
        None => tick(frame, board, theme, area),
        Some(Overlay::Help) => page(frame, "keys", help(theme, area), area),
        Some(Overlay::Prompt(prompt, text)) => {
            let room = usize::from(area.width.min(76)).saturating_sub(2);
            // The end of a long line is what is being typed.
            let tail: String = {
                let letters: Vec<char> = text.chars().collect();
                letters[letters.len().saturating_sub(room.saturating_sub(3))..].iter().collect()
            };
            let mut lines: Vec<Line<'static>> =
                wrap(&question(prompt), room, "").into_iter().map(Line::from).collect();
            lines.push(Line::styled(format!("> {tail}▏"), theme.heading()));
            lines.push(Line::from(cut("Enter takes it, Esc cancels", room)));
            page(frame, "note", lines, area);
        }
        Some(Overlay::Leaving) => {
            let mut lines: Vec<Line<'static>> = vec![Line::from("Not recorded yet:")];
            let room = usize::from(area.width.min(76)).saturating_sub(2);
            let pending = board.deciding().session().pending();
            lines.extend(pending.map(|one| Line::from(cut(&one.command_line(), room))));
            lines.push(Line::default());
            lines.push(Line::from("Enter records and quits, u undoes the last, Esc stays"));
            page(frame, "leave?", lines, area);
        }
    }
}

/// Asks about the next open item of an acceptance, with its whole text.
fn tick(frame: &mut Frame<'_>, board: &Board, theme: Theme, area: Rect) {
    let KeyMode::Ticking { left, ticked, .. } = board.deciding().session().mode() else { return };
    let Some(Ok(card)) = board.card() else { return };
    let number = left.first().copied().unwrap_or_default();
    let item = card.items.iter().find(|item| item.number == number);
    let text = item.map_or_else(String::new, |item| item.text.clone());
    let room = usize::from(area.width.min(76)).saturating_sub(2);
    let wrapped = wrap(&pdca_state::text::printable(&text), room, "  ");
    let mut lines: Vec<Line<'static>> =
        wrapped.into_iter().map(|line| Line::styled(line, theme.heading())).collect();
    lines.push(Line::default());
    let (at, of) = (ticked.len() + 1, ticked.len() + left.len());
    lines.push(Line::from(format!("tick {number}? ({at} of {of})  y yes, any other key no")));
    page(frame, &format!("accept {}", card.id), lines, area);
}

fn question(prompt: &Prompt) -> String {
    match prompt {
        Prompt::Note { choice, needed: true } => format!("{}: why? (needed)", choice.word()),
        Prompt::Note { choice, needed: false } => {
            format!("{}: a note for the next attempt? (may be empty)", choice.word())
        }
        Prompt::Override { rows } => {
            format!("red: {}. Accept all the same? The reason is recorded:", rows.join(", "))
        }
    }
}

fn help(theme: Theme, area: Rect) -> Vec<Line<'static>> {
    let room = usize::from(area.width.min(76)).saturating_sub(2);
    let row = |(keys, what): &(&str, &str)| Line::from(cut(&format!("{keys:<10} {what}"), room));
    let mut lines = vec![Line::styled("Everywhere", theme.heading())];
    lines.extend(EVERYWHERE.iter().map(row));
    lines.push(Line::styled("Decide", theme.heading()));
    // `n`, `b`, Enter, `q` and `?` are about a sitting without a list.
    let is_here = |(key, _): &&(&str, &str)| !matches!(*key, "n" | "b" | "Enter" | "q" | "?");
    lines.extend(KEYS.iter().filter(is_here).map(row));
    lines
}

/// Draws a box in the middle, as large as its lines, inside the screen.
fn page(frame: &mut Frame<'_>, title: &str, lines: Vec<Line<'static>>, area: Rect) {
    let wide = area.width.min(78);
    let height = u16::try_from(lines.len() + 2).unwrap_or(area.height).min(area.height);
    let (x, y) = ((area.width - wide) / 2, (area.height - height) / 2);
    let place = Rect { x: area.x + x, y: area.y + y, width: wide, height };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(pane(title, true)), place);
}
