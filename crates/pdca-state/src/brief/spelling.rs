//! The ways in which people write a field, and lines that are almost one.
//!
//! A bullet `- **Label:** value` is a field under any label, as the template has it. Under a label of
//! [`Label`] other shapes count as well: other bullets, a task box, numbers, other emphasis, and a line without a
//! bullet that no paragraph of running text contains. Code and comments have no fields but dash bullets.
//!
//! A line that looks like a known field and is none gets a [`BriefRemark`]. It is an error where the driver
//! would act on the value, because otherwise a bundle would be built without what its author declared.

use std::fmt;

use super::label::{TABLE, normal};
use super::target::is_nothing;
use super::{Label, SPLIT_FROM, SPLIT_INTO, TRIAGE_VERDICT, is_placeholder, touches};
use crate::id_list::parse_id_list;
use crate::lines::lines;

/// A line of a brief that looks like a field and is not read as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BriefRemark {
    /// The line number, from 1.
    pub line: usize,
    /// The label as written.
    pub written: String,
    /// The label that was probably meant.
    pub label: Label,
    /// The reason why the line is not read.
    pub why: Unread,
    /// True if the driver would act on the value, so that building without it would be wrong.
    pub is_lost: bool,
}

/// The reason why a line is not read as a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// The label or its punctuation is not one that is known.
    Spelling,
    /// The label is a heading.
    Heading,
    /// The label is also on this earlier line, which counts.
    Repeated(usize),
    /// The line continues a paragraph.
    InText,
    /// The value is not on the line of the label.
    Below,
}

impl fmt::Display for BriefRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { written, label, .. } = self;
        let (written, label) = (written.escape_debug(), label.as_str());
        match self.why {
            Unread::Spelling | Unread::Heading => {
                write!(f, "`{written}` is not read as a field: write `- **{label}:** …`")
            }
            Unread::Repeated(first) => write!(
                f,
                "`{written}` is not read, because line {first} has `{label}` already: join the two lines"
            ),
            Unread::InText => write!(
                f,
                "`{written}:` continues a paragraph and is read as text: a field begins with `- **{label}:**`"
            ),
            Unread::Below => {
                write!(
                    f,
                    "ids are read from the line of `{written}` only: write them behind the colon"
                )
            }
        }
    }
}

/// A line with the shape of a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape<'a> {
    pub(super) label: &'a str,
    pub(super) value: &'a str,
    pub(super) mark: Mark,
}

/// The marks that set a field off from running text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// A bullet, a number or bold letters.
    Set,
    /// None: the line starts with the label.
    Bare,
}

/// The text of a line behind its bullet.
#[derive(Debug, Clone, Copy)]
struct Marked<'a> {
    rest: &'a str,
    has_bullet: bool,
}

/// Returns the field on a line, if its label is a known one.
pub(super) fn known_field(line: &str) -> Option<Shape<'_>> {
    let shape = shape(line)?;
    let is_known = match shape.mark {
        Mark::Set => is_label(shape.label),
        // A lone `Target:` is an ordinary word of prose.
        Mark::Bare => Label::of(shape.label).is_some() && normal(shape.label) != "target",
    };
    is_known.then_some(shape)
}

/// Returns true for the labels that have a meaning, those of parts included.
fn is_label(label: &str) -> bool {
    const OTHERS: [&str; 7] =
        [TRIAGE_VERDICT, SPLIT_FROM, SPLIT_INTO, "Paths", "After", "Done when", "Waits for"];
    let is_part = label.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("part "));
    is_part
        || Label::of(label).is_some()
        || OTHERS.iter().any(|other| other.eq_ignore_ascii_case(label))
}

/// Splits a line `label: value`, whatever bullet and emphasis it has.
fn shape(line: &str) -> Option<Shape<'_>> {
    // Most lines are prose, and a search for one byte is several times faster than the walk below.
    if !line.contains(':') && !line.contains('：') {
        return None;
    }
    let Marked { rest, has_bullet } = without_bullet(line);
    let inner = rest.trim_start_matches(is_emphasis);
    let opening = &rest[..rest.len() - inner.len()];
    let at = inner.find([':', '：'])?;
    let (label, value) = inner.split_at(at);
    let value = value.trim_start_matches([':', '：']);
    let bare = label.trim_end_matches(|c: char| is_emphasis(c) || c.is_whitespace());
    // Emphasis that the label did not close ends directly behind the colon.
    let is_closed = label.trim_end().ends_with(is_emphasis);
    let value = if opening.is_empty() || is_closed {
        value
    } else {
        let close: String = opening.chars().rev().collect();
        value.strip_prefix(&*close).unwrap_or(value)
    };
    if bare.is_empty() {
        return None;
    }
    let is_set = has_bullet || !opening.is_empty();
    let mark = if is_set { Mark::Set } else { Mark::Bare };
    Some(Shape { label: bare, value: value.trim(), mark })
}

fn is_emphasis(c: char) -> bool {
    matches!(c, '*' | '_' | '`')
}

/// Strips a bullet, a number or a task box.
fn without_bullet(line: &str) -> Marked<'_> {
    let text = line.trim_start();
    let spaced = |rest: &str| rest.starts_with(char::is_whitespace);
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (digits.len() < text.len())
        .then(|| digits.strip_prefix(['.', ')']).filter(|rest| spaced(rest)))
        .flatten();
    let bullet = text
        .strip_prefix('-')
        .or_else(|| text.strip_prefix(['*', '+', '•', '–', '—']).filter(|rest| spaced(rest)))
        .or(numbered);
    let Some(rest) = bullet else { return Marked { rest: text, has_bullet: false } };
    let rest = rest.trim_start();
    let boxed = ["[ ]", "[x]", "[X]"].iter().find_map(|task| rest.strip_prefix(task));
    Marked { rest: boxed.unwrap_or(rest).trim_start(), has_bullet: true }
}

/// Returns true for a line that starts a list item.
pub(super) fn is_bullet(line: &str) -> bool {
    without_bullet(line).has_bullet
}

/// Returns true for a line of the shape `label: value` with a short label, such as `Owner: Ada`.
pub(super) fn is_label_like(line: &str) -> bool {
    shape(line).is_some_and(|shape| shape.label.split_whitespace().count() <= 4)
}

/// Returns true for a heading of Markdown.
pub(super) fn is_heading(line: &str) -> bool {
    heading(line).is_some()
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let rest = text.trim_start_matches('#');
    (rest.len() < text.len() && rest.starts_with(' ')).then(|| rest.trim().trim_end_matches('#'))
}

/// Returns a known label that stands alone as a heading, if the driver acts on it.
pub(super) fn label_of_heading(line: &str) -> Option<(Label, &str)> {
    let title = heading(line)?.trim_end_matches(':').trim_matches(is_emphasis).trim();
    Some((scheduled(Label::of(title)?)?, title))
}

/// Returns the value that a line below a label would have.
pub(super) fn value_below(line: &str) -> &str {
    without_bullet(line).rest.trim()
}

fn scheduled(label: Label) -> Option<Label> {
    matches!(label, Label::DependsOn | Label::ConflictsWith | Label::Touches).then_some(label)
}

/// Returns the remark about a line that is almost a field.
pub(super) fn near_miss(line: &str, number: usize) -> Option<BriefRemark> {
    let (label, written, value) =
        table_row(line).or_else(|| without_colon(line)).or_else(|| {
            let shape = shape(line)?;
            Some((near(shape.label, shape.value)?, shape.label, shape.value))
        })?;
    let is_lost = loses(label, value) && !is_synonym(written);
    let written = written.to_owned();
    Some(BriefRemark { line: number, written, label, why: Unread::Spelling, is_lost })
}

/// Returns true if the driver would act on this value of a field.
pub(super) fn loses(label: Label, value: &str) -> bool {
    if value.is_empty() || is_nothing(value) || is_placeholder(value) {
        return false;
    }
    if matches!(label, Label::DependsOn | Label::ConflictsWith) {
        !parse_id_list(value).among(&|_| false).ids.is_empty()
    } else if label == Label::Touches {
        !touches::globs(value).is_empty()
    } else {
        label.is_acted_on()
    }
}

/// Returns the label and value of a row `| Depends on | 1 |`.
fn table_row(line: &str) -> Option<(Label, &str, &str)> {
    let mut cells = line.trim().strip_prefix('|')?.split('|');
    let title = cells.next()?.trim().trim_matches(is_emphasis).trim_end_matches(':').trim();
    Some((scheduled(Label::of(title)?)?, title, cells.next()?.trim()))
}

/// Returns the label and value of a line such as `- **Depends on** 1`, `Depends on #1` and `Touches = docs`.
fn without_colon(line: &str) -> Option<(Label, &str, &str)> {
    let Marked { rest, .. } = without_bullet(line);
    let inner = rest.trim_start_matches(is_emphasis);
    let is_emphasised = inner.len() < rest.len();
    let lower = inner.to_ascii_lowercase();
    let rows = TABLE.iter().filter(|row| scheduled(row.0).is_some());
    let spellings = rows.flat_map(|row| row.2.iter().map(|spelling| (row.0, *spelling)));
    let (label, length) = spellings
        .filter(|(_, spelling)| lower.starts_with(spelling))
        .map(|(label, spelling)| (label, spelling.len()))
        .max_by_key(|(_, length)| *length)?;
    let (written, behind) = inner.split_at(length);
    let closed = behind.trim_start_matches(is_emphasis);
    if is_emphasised && closed.len() < behind.len() {
        let is_value =
            closed.starts_with(char::is_whitespace) && !closed.trim_start().starts_with(':');
        return is_value.then(|| (label, written, closed.trim()));
    }
    let spaced = behind.trim_start();
    let sign = ["=", "->", "→", "—", "–"].iter().find_map(|sign| spaced.strip_prefix(sign));
    if let Some(value) = sign {
        return Some((label, written, value.trim()));
    }
    let is_id = |word: &str| {
        let bare = word.trim_start_matches('#');
        word == "and" || !bare.is_empty() && bare.chars().all(|c| c.is_ascii_digit())
    };
    let mut words = spaced.split([',', ' ', '&']).map(|word| word.trim_end_matches('.'));
    let all_ids = spaced.len() < behind.len()
        && !spaced.is_empty()
        && words.all(|word| word.is_empty() || is_id(word));
    (all_ids && label != Label::Touches).then_some((label, written, spaced))
}

/// Words that people use for a dependency. They have other senses too, so they are never more than a warning.
const SYNONYMS: [&str; 6] =
    ["blocked by", "dependency", "dependencies", "requires", "prerequisite", "prerequisites"];

fn is_synonym(label: &str) -> bool {
    SYNONYMS.contains(&normal(label).as_str())
}

/// Returns the label that a slightly different one means.
fn near(written: &str, value: &str) -> Option<Label> {
    if is_label(written) || written.chars().count() > 40 {
        return None;
    }
    let normal = normal(written);
    if SYNONYMS.contains(&normal.as_str()) {
        return (!parse_id_list(value).ids().is_empty()).then_some(Label::DependsOn);
    }
    let squashed = |text: &str| text.replace(' ', "");
    let stem = normal.split(" (").next().unwrap_or(&normal);
    let spellings = TABLE.iter().flat_map(|row| row.2.iter().map(|spelling| (row.0, *spelling)));
    let mut best: Option<(usize, Label)> = None;
    for (label, spelling) in spellings {
        // A known label with a remark in parentheses: the text fields have many of those.
        let is_stem = scheduled(label).is_some() && stem == spelling;
        let distance = if is_stem || squashed(&normal) == squashed(spelling) {
            0
        } else {
            let slack = if spelling.len() < 6 { 1 } else { 2 };
            let starts = normal.chars().next() == spelling.chars().next();
            match distance(&normal, spelling) {
                found if starts && found <= slack => found,
                _ => continue,
            }
        };
        if best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, label));
        }
    }
    best.map(|(_, label)| label)
}

/// Counts the letters to insert, delete, replace or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let mut steps =
                (last[j + 1] + 1).min(row[j] + 1).min(last[j] + usize::from(from != to));
            if i > 0 && j > 0 && *from == b[j - 1] && a[i - 1] == *to {
                steps = steps.min(before[j - 1] + 1);
            }
            row.push(steps);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Returns true for a line that opens or closes a block of code.
pub(super) fn is_fence(line: &str) -> bool {
    FENCES.iter().any(|fence| line.trim_start().starts_with(fence))
}

const FENCES: [&str; 2] = ["```", "~~~"];

/// Returns for each line whether it is in a code fence or a comment. One that is not closed is none.
pub(super) fn code_lines(text: &str) -> Vec<bool> {
    let mut code: Vec<bool> = Vec::new();
    let mut open: Option<(usize, &str)> = None;
    for line in lines(text) {
        let trimmed = line.text.trim_start();
        let at = code.len();
        code.push(false);
        match open {
            None => {
                let end = FENCES.into_iter().find(|fence| trimmed.starts_with(fence));
                let comment = trimmed.starts_with("<!--") && !trimmed.contains("-->");
                open = end.or(comment.then_some("-->")).map(|end| (at, end));
            }
            Some((start, end)) => {
                let closes =
                    if end == "-->" { trimmed.contains(end) } else { trimmed.starts_with(end) };
                if closes {
                    code[start..=at].fill(true);
                    open = None;
                }
            }
        }
    }
    code
}

#[cfg(test)]
mod tests;
