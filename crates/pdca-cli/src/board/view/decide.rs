//! What waits for a decision: the list on the left, the card on the right.

use crate::columns::{cut, fit, width, wrap};
use pdca_state::Overall;
use pdca_workspace::review::{Card, Tone};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{Theme, areas, details, halves, list, pane};
use crate::board::data::Waiting;
use crate::board::navigation::{Areas, Focus};
use crate::board::state::Board;

pub(super) fn draw(frame: &mut Frame<'_>, board: &mut Board, theme: Theme, area: Rect) -> Areas {
    let [left, right] = halves(area);
    let focus = board.navigation().focus();
    let waiting = board.waiting();
    let title = format!("waits for you {}", waiting.len());
    let block = pane(&title, focus == Focus::List);
    let inner = block.inner(left);
    frame.render_widget(block, left);
    let ids = waiting.iter().map(|row| width(row.id.as_ref())).max().unwrap_or(0).min(12);
    let room = usize::from(inner.width);
    let selected = board.navigation().selected();
    let rows: Vec<Line<'static>> = waiting
        .iter()
        .enumerate()
        .map(|(place, row)| line(row, ids, room, place == selected, theme))
        .collect();
    let is_empty = rows.is_empty();
    let first = list(frame, rows, selected, inner);
    if is_empty {
        frame.render_widget(Paragraph::new(nothing(board)), inner);
    }
    let block = pane(&card_title(board), focus == Focus::Detail);
    let card_area = block.inner(right);
    frame.render_widget(block, right);
    let lines = card_lines(board, theme, usize::from(card_area.width));
    details(frame, board, lines, card_area);
    areas(inner, card_area, first)
}

fn nothing(board: &Board) -> &'static str {
    match (board.navigation().filter().is_empty(), board.data().waiting.is_empty()) {
        (false, false) => "nothing fits the filter",
        _ => "nothing waits for you",
    }
}

/// Returns a row: a mark for the selection, the id, the title, and what a decision takes in words.
fn line(row: &Waiting, ids: usize, room: usize, is_selected: bool, theme: Theme) -> Line<'static> {
    let (tone, words) = match (row.gates, row.open) {
        (Some(Overall::Fail), _) => (Tone::Bad, "✗ red".to_owned()),
        (_, 0) if row.warning => (Tone::Warn, "! look".to_owned()),
        (_, 0) => (Tone::Good, "✓ cheap".to_owned()),
        (_, open) => (Tone::Warn, format!("? {open} open")),
    };
    let mark = if is_selected { ">" } else { " " };
    let id = fit(row.id.as_ref(), ids);
    let used = 1 + ids + 1 + 1 + width(&words);
    let title = fit(&row.title, room.saturating_sub(used));
    Line::from(vec![
        Span::raw(format!("{mark}{id} {title} ")),
        Span::styled(words, theme.tone(tone)),
    ])
}

fn card_title(board: &Board) -> String {
    match (board.card(), board.current()) {
        (Some(Ok(card)), _) => cut(&format!("{} {}", card.id, card.title), 60),
        (_, Some(id)) => id.to_string(),
        (_, None) => "card".to_owned(),
    }
}

fn card_lines(board: &Board, theme: Theme, room: usize) -> Vec<Line<'static>> {
    match board.card() {
        Some(Ok(card)) => sections(card, board, theme, room),
        Some(Err(why)) => {
            wrap(&pdca_state::text::printable(why), room, "").into_iter().map(Line::from).collect()
        }
        None if board.current().is_some() => vec![Line::from("reading …")],
        None => recorded(board),
    }
}

/// Says what was decided at this sitting, where nothing is left.
fn recorded(board: &Board) -> Vec<Line<'static>> {
    let words = board.deciding().recorded().iter().map(|(word, count)| format!("{count} {word}"));
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        Vec::new()
    } else {
        vec![Line::from(format!("recorded: {}", words.join(", ")))]
    }
}

fn sections(card: &Card, board: &Board, theme: Theme, room: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(note) = board.deciding().session().note() {
        for line in wrap(&format!("your note: {}", pdca_state::text::printable(note)), room, "  ") {
            lines.push(Line::styled(line, theme.heading()));
        }
    }
    for section in card.sections() {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::styled(section.title, theme.heading()));
        for one in section.lines {
            let style = theme.tone(one.tone);
            // The sign has a column of its own, so that what it is about stays readable as a block.
            let wrapped = wrap(&one.text, room.saturating_sub(2), "  ");
            for (place, line) in wrapped.into_iter().enumerate() {
                let sign = if place == 0 { sign(one.tone) } else { ' ' };
                lines.push(Line::styled(format!("{sign} {line}"), style));
            }
        }
    }
    lines.push(Line::default());
    for offer in &card.offers {
        let refused =
            offer.refused.as_deref().map_or_else(String::new, |why| format!(" – refused: {why}"));
        let text = format!("{} {}{refused}", offer.key, offer.what);
        let tone = if offer.refused.is_some() { Tone::Faint } else { Tone::Plain };
        let wrapped = wrap(&pdca_state::text::printable(&text), room, "    ");
        lines.extend(wrapped.into_iter().map(|line| Line::styled(line, theme.tone(tone))));
    }
    lines
}

/// The symbol of a tone, so that it is seen without colours too.
fn sign(tone: Tone) -> char {
    match tone {
        Tone::Bad => '✗',
        Tone::Good => '✓',
        Tone::Warn => '!',
        Tone::Plain | Tone::Faint => ' ',
    }
}
