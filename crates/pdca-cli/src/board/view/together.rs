//! The integration: accepted changes on the left, what was gated together on the right.

use crate::columns::{fit, width, wrap};
use pdca_workspace::review::Tone;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{Theme, areas, details, halves, list, pane, work};
use crate::board::data::{ChangeRow, Combined};
use crate::board::navigation::{Areas, Focus};
use crate::board::state::Board;

pub(super) fn draw(frame: &mut Frame<'_>, board: &mut Board, theme: Theme, area: Rect) -> Areas {
    let [left, right] = halves(area);
    let focus = board.navigation().focus();
    let block = pane(&format!("accepted {}", board.data().changes.len()), focus == Focus::List);
    let inner = block.inner(left);
    frame.render_widget(block, left);
    let room = usize::from(inner.width);
    let selected = board.navigation().selected();
    let rows: Vec<Line<'static>> = board
        .change_rows()
        .enumerate()
        .map(|(place, row)| line(row, room, place == selected, theme))
        .collect();
    let is_empty = rows.is_empty();
    let first = list(frame, rows, selected, inner);
    if is_empty {
        frame.render_widget(Paragraph::new("nothing is accepted yet"), inner);
    }
    let block = pane(&title(board), focus == Focus::Detail);
    let detail = block.inner(right);
    frame.render_widget(block, right);
    let lines = describe(board, theme, usize::from(detail.width));
    details(frame, board, lines, detail);
    areas(inner, detail, first)
}

fn title(board: &Board) -> String {
    let usual = board.data().usual_landing;
    let usual = usual.map_or_else(String::new, |time| format!(", usually {}", work::span(time)));
    match &board.data().integration {
        Some(_) => format!("integration runs{usual}"),
        None => "last integration".to_owned(),
    }
}

fn tone(word: &str) -> (Tone, char) {
    match word {
        "landed" | "green" => (Tone::Good, '✓'),
        "staged" | "sealed" => (Tone::Plain, '○'),
        "red" | "held" => (Tone::Bad, '✗'),
        "base" => (Tone::Plain, '┌'),
        "note" => (Tone::Faint, ' '),
        _ => (Tone::Warn, '?'),
    }
}

fn line(row: &ChangeRow, room: usize, is_selected: bool, theme: Theme) -> Line<'static> {
    let mark = if is_selected { ">" } else { " " };
    let (tone, sign) = tone(row.word);
    let words = format!("{sign} {}", row.word);
    let id = fit(row.id.as_ref(), 8.min(room));
    let title = fit(&row.title, room.saturating_sub(11 + width(&words)));
    Line::from(vec![
        Span::raw(format!("{mark}{id} {title} ")),
        Span::styled(words, theme.tone(tone)),
    ])
}

fn describe(board: &Board, theme: Theme, room: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let chosen = board.change_rows().nth(board.navigation().selected());
    if let Some(row) = chosen {
        lines.extend(change(row, theme, room));
        lines.push(Line::default());
    }
    let combined = &board.data().combined;
    if !combined.is_empty() {
        lines.push(Line::styled("Gated together", theme.heading()));
    }
    for one in combined {
        lines.extend(combination(one, theme, room));
    }
    lines
}

fn change(row: &ChangeRow, theme: Theme, room: usize) -> Vec<Line<'static>> {
    let mut texts = vec![format!("{} {}: {} {}", row.id, row.title, row.word, row.text)];
    texts.extend(row.next.as_ref().map(|next| format!("next: {next}")));
    let mut lines = Vec::new();
    for (place, text) in texts.into_iter().enumerate() {
        let style = if place == 0 { theme.heading() } else { theme.tone(Tone::Plain) };
        let wrapped = wrap(&pdca_state::text::printable(&text), room, "  ");
        lines.extend(wrapped.into_iter().map(|line| Line::styled(line, style)));
    }
    lines
}

fn combination(one: &Combined, theme: Theme, room: usize) -> Vec<Line<'static>> {
    let (tone, sign) = tone(one.word);
    let indent = "  ".repeat(one.depth.min(6));
    let text = format!("{indent}{sign} {} {}", one.word, one.text);
    let hang = format!("{indent}    ");
    let wrapped = wrap(&pdca_state::text::printable(&text), room, &hang);
    wrapped.into_iter().map(|line| Line::styled(line, theme.tone(tone))).collect()
}
