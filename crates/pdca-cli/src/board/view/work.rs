//! What is in work, lane by lane, and why the rest is not.

use std::time::Duration;

use crate::columns::{fit, wrap};
use pdca_workspace::review::Tone;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{Theme, areas, details, halves, list, pane};
use crate::board::data::{LaneRow, WorkRow};
use crate::board::navigation::{Areas, Focus};
use crate::board::state::{Board, WorkItem};

pub(super) fn draw(frame: &mut Frame<'_>, board: &mut Board, theme: Theme, area: Rect) -> Areas {
    let [left, right] = halves(area);
    let focus = board.navigation().focus();
    let title =
        format!("{} at work, {} waiting", board.data().lanes.len(), board.data().rest.len());
    let block = pane(&title, focus == Focus::List);
    let inner = block.inner(left);
    frame.render_widget(block, left);
    let room = usize::from(inner.width);
    let selected = board.navigation().selected();
    let rows: Vec<Line<'static>> = board
        .work_rows()
        .enumerate()
        .map(|(place, row)| line(row, room, place == selected, theme))
        .collect();
    let is_empty = rows.is_empty();
    let first = list(frame, rows, selected, inner);
    if is_empty {
        frame.render_widget(Paragraph::new("nothing is at work, and nothing waits"), inner);
    }
    let chosen = board.work_rows().nth(selected);
    let title = chosen.map_or_else(|| "details".to_owned(), |row| row.id().to_string());
    let block = pane(&title, focus == Focus::Detail);
    let detail = block.inner(right);
    let lines =
        chosen.map(|row| describe(row, usize::from(detail.width), theme)).unwrap_or_default();
    frame.render_widget(block, right);
    details(frame, board, lines, detail);
    areas(inner, detail, first)
}

fn line(row: WorkItem<'_>, room: usize, is_selected: bool, theme: Theme) -> Line<'static> {
    let mark = if is_selected { ">" } else { " " };
    let (head, tone, text) = match row {
        WorkItem::Lane(row) => {
            let lane = row.lane.map_or_else(|| "▶".to_owned(), |lane| format!("▶{lane}"));
            // The time first: on a narrow screen the name of a gate is cut before it.
            let time = row.elapsed.map_or_else(String::new, |time| format!("{} ", span(time)));
            let tone = if is_slow(row) { Tone::Warn } else { Tone::Good };
            let slow = if is_slow(row) { "slow " } else { "" };
            (format!("{lane} {}", row.id), tone, format!("{time}{slow}{}", row.doing))
        }
        WorkItem::Rest(row) => {
            let tone = if row.why == "may start" { Tone::Plain } else { Tone::Faint };
            (format!("○ {}", row.id), tone, row.why.clone())
        }
    };
    let head = fit(&head, 10.min(room));
    let text = fit(&text, room.saturating_sub(12));
    Line::from(vec![Span::raw(format!("{mark}{head} ")), Span::styled(text, theme.tone(tone))])
}

fn describe(row: WorkItem<'_>, room: usize, theme: Theme) -> Vec<Line<'static>> {
    let facts = match row {
        WorkItem::Lane(row) => lane_facts(row),
        WorkItem::Rest(row) => rest_facts(row),
    };
    let mut lines = Vec::new();
    for (name, value) in facts {
        let text = format!("{name:<10} {}", pdca_state::text::printable(&value));
        for (place, line) in wrap(&text, room, "           ").into_iter().enumerate() {
            let style = if place == 0 && name == "title" {
                theme.heading()
            } else {
                theme.tone(Tone::Plain)
            };
            lines.push(Line::styled(line, style));
        }
    }
    lines
}

fn lane_facts(row: &LaneRow) -> Vec<(&'static str, String)> {
    let mut facts = vec![("title", row.title.clone())];
    facts.extend(row.lane.map(|lane| ("lane", lane.to_string())));
    facts.push(("by", row.holder.clone()));
    facts.push(("does", row.doing.clone()));
    facts.extend(row.elapsed.map(|time| ("for", against(time, row.usual))));
    facts.extend(row.silent.map(|time| ("last sign", format!("{} ago", span(time)))));
    if !row.last.is_empty() {
        facts.push(("said", row.last.clone()));
    }
    facts.push(("follow", format!("pdca log {} -f", row.id)));
    facts
}

fn rest_facts(row: &WorkRow) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("title", row.title.clone()),
        ("state", row.state.to_owned()),
        ("why", row.why.clone()),
    ];
    facts.extend(row.next.clone().map(|next| ("next", next)));
    facts
}

/// Returns whether a step takes more than twice its usual time.
fn is_slow(row: &LaneRow) -> bool {
    matches!((row.elapsed, row.usual), (Some(time), Some(usual)) if time > usual * 2)
}

/// Formats the time of a step against the usual one.
fn against(time: Duration, usual: Option<Duration>) -> String {
    match usual {
        Some(usual) => format!("{}, usually {}", span(time), span(usual)),
        None => span(time),
    }
}

/// Formats a duration in a few columns.
pub(super) fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h {:02}", seconds / 3600, seconds / 60 % 60),
    }
}
