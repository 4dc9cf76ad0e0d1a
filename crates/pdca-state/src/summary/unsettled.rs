//! The lines of §6 that are not settled.
//!
//! An acceptance depends on this, so it lists what counts as settled; everything else is open. The
//! other way round is not safe: people and editors spell an open box in many ways.

use super::quoting::is_box;
use super::{NOTHING_OPEN, STANDING_INTRODUCTION};
use crate::lines::lines;

/// The columns by which a continuation line is indented deeper than its item.
const CONTINUATION: usize = 2;

/// Iterates over the unsettled lines of a §6, trimmed.
pub(super) fn lines_of(body: &str) -> impl Iterator<Item = &str> {
    // The indentation of the last ticked item, while its continuation lines may follow.
    let mut ticked: Option<usize> = None;
    lines(body).filter_map(move |line| {
        let text = line.text.trim();
        if text.is_empty() {
            return None;
        }
        let width = width(line.text);
        if is_ticked(text) {
            ticked = Some(width);
            return None;
        }
        if ticked.is_some_and(|item| width >= item + CONTINUATION) && is_prose(text) {
            return None;
        }
        ticked = None;
        (text != NOTHING_OPEN && text != STANDING_INTRODUCTION).then_some(text)
    })
}

/// The indentation of a line in columns.
fn width(line: &str) -> usize {
    line.chars()
        .map_while(|c| match c {
            ' ' => Some(1),
            '\t' => Some(4),
            _ => None,
        })
        .sum()
}

/// Returns true for a ticked box.
fn is_ticked(line: &str) -> bool {
    let ticked = bulleted(line)
        .and_then(|item| item.strip_prefix("[x]").or_else(|| item.strip_prefix("[X]")))
        .filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    // In `- [x] - [ ] …` only the outer box is ticked.
    ticked.is_some_and(|rest| {
        let rest = rest.trim_start();
        !is_box(rest) && !bulleted(rest).is_some_and(is_box)
    })
}

/// The text after a list marker.
fn bulleted(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(['-', '*', '+'])?;
    rest.starts_with([' ', '\t']).then(|| rest.trim_start_matches([' ', '\t']))
}

/// Returns true if an indented line continues a sentence: it is not an item, a box, a quote, a
/// heading, a table or HTML.
fn is_prose(text: &str) -> bool {
    let unnumbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = unnumbered.len() < text.len() && unnumbered.starts_with(['.', ')']);
    let is_bulleted =
        text.strip_prefix(['-', '*', '+', '•']).is_some_and(|rest| !rest.starts_with('*'));
    !is_numbered && !is_bulleted && !is_box(text) && !text.starts_with(['>', '#', '|', '<'])
}
