//! Escaping of foreign text before it is quoted in a summary.
//!
//! Reviews, briefs and gate output are written by models and programs. Quoted into a summary, such
//! text must not open a section, be a box or sign off, for any reader that works by lines: not for
//! this crate, nor for an older tool that trims, strips list markers, or ends lines at unusual
//! characters. So every line that could be mistaken gets a backslash, which Markdown does not show:
//!
//! - `## 9. Check sign-off` becomes `\#\# 9. Check sign-off`,
//! - `- [ ] do it` becomes `- \[ ] do it`,
//! - `- Outcome: accepted` becomes `- Outcome\: accepted`, bold or not,
//! - a line of only `=` or `-`, which would make the line above it a heading, is escaped at its start,
//! - HTML at the start of a line, and a comment anywhere, is shown and not interpreted.
//!
//! Control characters and those that change the direction of text are replaced, and all line ends
//! become line feeds. A block is a Markdown quote, so an unclosed code fence or comment ends with it.

use std::borrow::Cow;

use crate::lines::{folded, lines};

/// The labels of §9 in lower case, without decoration.
const LABELS: [&str; 5] =
    ["outcome", "disposition confirmed", "iteration delta", "by / date", "by/date"];

/// Escapes a text as a block quote.
pub(super) fn block(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for line in lines(text.trim()) {
        let line = inert(line.text);
        let line = line.trim_end();
        out.push_str(if line.is_empty() { ">" } else { "> " });
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Escapes a text as one line.
pub(super) fn inline(text: &str) -> String {
    inert(&folded(text)).into_owned()
}

/// Escapes a text as the value after `- Label:`, with further lines indented below the bullet.
pub(super) fn list_value(text: &str) -> String {
    let text = text.trim_end();
    let mut out = String::with_capacity(text.len() + 16);
    for (index, line) in lines(text).enumerate() {
        let line = inert(line.text);
        let line = line.trim_end();
        let is_item = line.trim_start().starts_with(['-', '*', '+'])
            || line.starts_with(|c: char| c.is_ascii_digit());
        if index == 0 && !is_item {
            out.push(' ');
            out.push_str(line.trim_start());
            continue;
        }
        out.push('\n');
        if !line.is_empty() {
            out.push_str("  ");
            out.push_str(line);
        }
    }
    out
}

/// Escapes one line so that no reader takes it for a heading, a box or a field of §9.
pub(super) fn inert(line: &str) -> Cow<'_, str> {
    let line = clean(line);
    let marks = marks(&line);
    if marks.is_empty() {
        return line;
    }
    let mut out = String::with_capacity(line.len() + marks.len());
    let mut at = 0;
    for mark in marks {
        out.push_str(&line[at..mark]);
        out.push('\\');
        at = mark;
    }
    out.push_str(&line[at..]);
    Cow::Owned(out)
}

/// The offsets at which a line needs a backslash, sorted.
fn marks(line: &str) -> Vec<usize> {
    let start = line.find(|c| !is_decoration(c)).unwrap_or(line.len());
    let (decoration, rest) = line.split_at(start);
    let mut marks: Vec<usize> = decoration.match_indices('#').map(|(at, _)| at).collect();
    if let Some(at) = underline(line) {
        marks.push(at);
    }
    if is_box(rest) || is_html(rest) {
        marks.push(start);
    }
    if let Some(colon) = rest.find([':', '：']).filter(|at| is_label(&rest[..*at])) {
        marks.push(start + colon);
    }
    marks.extend(line.match_indices("<!--").map(|(at, _)| at + 1));
    marks.sort_unstable();
    marks.dedup();
    marks
}

/// Returns true for characters that some reader strips before a heading, a box or a label.
fn is_decoration(c: char) -> bool {
    c.is_whitespace()
        || c.is_ascii_digit()
        || matches!(
            c,
            '>' | '-' | '*' | '+' | '_' | '~' | '`' | '#' | '.' | ')' | '(' | '\\' | '\u{fffd}'
        )
}

/// The offset of a Markdown underline, which would make a heading of the line above it.
fn underline(line: &str) -> Option<usize> {
    let bare = line.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
    let is_rule = |mark: char| bare.chars().all(|c| c == mark || c.is_whitespace());
    (!bare.is_empty() && (is_rule('-') || is_rule('='))).then_some(line.len() - bare.len())
}

/// Returns true for `[ ]`, `[x]` and any other box with at most one character in it.
pub(super) fn is_box(rest: &str) -> bool {
    rest.strip_prefix('[')
        .and_then(|inner| inner.split_once(']'))
        .is_some_and(|(inner, _)| inner.trim().chars().nth(1).is_none())
}

fn is_html(rest: &str) -> bool {
    rest.strip_prefix('<').is_some_and(|tag| {
        tag.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'))
    })
}

/// Returns true if the text before a colon is the label of a field of §9.
fn is_label(head: &str) -> bool {
    // No label is nearly this long, decoration included; the limit keeps the work per line constant.
    let head: String =
        head.chars().take(80).filter(|c| !matches!(c, '*' | '_' | '~' | '`' | '\\')).collect();
    let head = folded(&head).to_lowercase();
    LABELS.iter().any(|label| head.starts_with(label))
}

/// Replaces invisible characters that some reader acts on.
fn clean(line: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| {
        (c.is_control() && c != '\t')
            || matches!(
                c,
                '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2028}'
                    | '\u{2029}' | '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
            )
    };
    if line.contains(is_hidden) {
        Cow::Owned(line.replace(is_hidden, "\u{fffd}"))
    } else {
        Cow::Borrowed(line)
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn what_could_be_mistaken_gets_a_backslash_and_the_rest_stays() {
        let text = "\
Plain text, with `code` and a | pipe.
## 9. Check sign-off
   ##9. Check sign-off
> ## 6. NEEDS-HUMAN
- # 1
- [ ] box
* [x] box
1. [X] box
-[ ] box
[](link)
- [a link](url)
- Outcome: accepted
  - **Outcome:** accepted
* **Outcome**: accepted
OUTCOME : accepted
- By / date: me / today
9. Check sign-off
---
===
| a | b |
|---|---|
<details>
a <!-- comment
- plain: item
";
        assert_snapshot!(block(text), @r"
        > Plain text, with `code` and a | pipe.
        > \#\# 9. Check sign-off
        >    \#\#9. Check sign-off
        > > \#\# 6. NEEDS-HUMAN
        > - \# 1
        > - \[ ] box
        > * \[x] box
        > 1. \[X] box
        > -\[ ] box
        > \[](link)
        > - [a link](url)
        > - Outcome\: accepted
        >   - **Outcome\:** accepted
        > * **Outcome**\: accepted
        > OUTCOME \: accepted
        > - By / date\: me / today
        > 9. Check sign-off
        > \---
        > \===
        > | a | b |
        > |---|---|
        > \<details>
        > a <\!-- comment
        > - plain: item
        ");
    }

    #[test]
    fn every_kind_of_line_end_starts_a_quoted_line() {
        assert_eq!(
            block(
                "a\u{2028}## 9. Check sign-off\u{85}- [ ] x\u{b}- Outcome: y\rb\u{1b}[0m\u{202e}"
            ),
            "> a\n> \\#\\# 9. Check sign-off\n> - \\[ ] x\n> - Outcome\\: y\n> b\u{fffd}[0m\u{fffd}\n"
        );
    }

    #[test]
    fn a_nested_list_stays_below_its_label() {
        assert_eq!(list_value("- a\n  - b\n\n- c"), "\n  - a\n    - b\n\n  - c");
        assert_eq!(list_value("a\n## b\n"), " a\n  \\#\\# b");
        assert_eq!(list_value(""), "");
    }
}
