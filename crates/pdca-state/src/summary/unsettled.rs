//! The lines of §6 that nobody has settled.
//!
//! An acceptance hangs on this, so it goes by what is known to be settled and not by what is
//! known to be open: people and editors spell an open box in many ways.

use super::quoting::is_box;
use super::{NOTHING_OPEN, STANDING_INTRODUCTION};
use crate::lines::lines;

/// What a text has to be indented by, beyond its item, to belong to it.
const CONTINUATION: usize = 2;

/// The lines of a body of §6 that are not settled, trimmed.
pub(super) fn lines_of(body: &str) -> impl Iterator<Item = &str> {
    // How far the ticked item is indented that a line may go on with.
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

/// How far a line is indented, in columns.
fn width(line: &str) -> usize {
    line.chars()
        .map_while(|c| match c {
            ' ' => Some(1),
            '\t' => Some(4),
            _ => None,
        })
        .sum()
}

/// Whether a line is a box with a tick in it.
fn is_ticked(line: &str) -> bool {
    let ticked = bulleted(line)
        .and_then(|item| item.strip_prefix("[x]").or_else(|| item.strip_prefix("[X]")))
        .filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    // A ticked box around a second one settles only the first.
    ticked.is_some_and(|rest| {
        let rest = rest.trim_start();
        !is_box(rest) && !bulleted(rest).is_some_and(is_box)
    })
}

/// What follows the marker of a list.
fn bulleted(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(['-', '*', '+'])?;
    rest.starts_with([' ', '\t']).then(|| rest.trim_start_matches([' ', '\t']))
}

/// Whether an indented line is a sentence that goes on, and not an item, a box, a quote or a
/// heading of its own.
fn is_prose(text: &str) -> bool {
    let unnumbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = unnumbered.len() < text.len() && unnumbered.starts_with(['.', ')']);
    let is_bulleted =
        text.strip_prefix(['-', '*', '+', '•']).is_some_and(|rest| !rest.starts_with('*'));
    !is_numbered && !is_bulleted && !is_box(text) && !text.starts_with(['>', '#', '|', '<'])
}
