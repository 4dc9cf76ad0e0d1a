//! Failing tests in a `JUnit` report.
//!
//! Only a subset of XML is read: elements, attributes, the five named entities and numeric ones. Declared entities are
//! not expanded, so no document can grow.

use super::{Failing, Names};

/// Returns the test cases with a `failure` or an `error`. Stops at the first syntax error, so a truncated report still
/// names the tests before it.
pub fn read_junit(xml: &[u8]) -> Failing {
    let text = String::from_utf8_lossy(xml);
    let mut names = Names::default();
    let mut case: Option<Case> = None;
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(end) = skipped(rest) {
            rest = &rest[end..];
            continue;
        }
        let Some(end) = end_of_tag(rest) else { break };
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        let is_closed = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let (name, attributes) =
            tag.split_once(char::is_whitespace).map_or((tag, ""), |(name, rest)| (name, rest));
        match name {
            "testcase" => {
                let of = |key| attribute(attributes, key).unwrap_or_default();
                let started = Case {
                    class: of("classname"),
                    name: of("name"),
                    failed: false,
                    excused: false,
                };
                case = (!is_closed).then_some(started);
            }
            "failure" | "error" => {
                if let Some(case) = &mut case {
                    case.failed = true;
                }
            }
            "skipped" => {
                if let Some(case) = &mut case {
                    case.excused = true;
                }
            }
            "/testcase" => {
                if let Some(ended) = case.take() {
                    ended.report(&mut names);
                }
            }
            _ => {}
        }
    }
    if let Some(cut_short) = case {
        cut_short.report(&mut names);
    }
    names.finish()
}

struct Case {
    class: String,
    name: String,
    failed: bool,
    excused: bool,
}

impl Case {
    fn report(self, names: &mut Names) {
        let Self { class, name, failed, excused } = self;
        if !failed || excused {
            return;
        }
        // `node --test` writes `test` as the class of everything.
        let is_plain = class.is_empty() || name.starts_with(&class) || class == "test";
        names.add(&if is_plain { name } else { format!("{class}.{name}") });
    }
}

/// Returns the end of a comment, character data or a declaration.
fn skipped(rest: &str) -> Option<usize> {
    for (start, end) in [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>"), ("!", ">")] {
        if rest.starts_with(start) {
            return Some(rest.find(end).map_or(rest.len(), |at| at + end.len()));
        }
    }
    None
}

/// Returns the end of a tag; a `>` inside an attribute does not end it.
fn end_of_tag(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
    }
    None
}

fn attribute(attributes: &str, wanted: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, after) = after[1..].split_once(quote)?;
        if name.trim() == wanted {
            return Some(unescaped(value));
        }
        rest = after;
    }
}

fn unescaped(value: &str) -> String {
    // Longer than any name.
    let value: String = value.chars().take(1000).collect();
    let mut text = String::with_capacity(value.len());
    let mut rest = value.as_str();
    while let Some((before, after)) = rest.split_once('&') {
        text.push_str(before);
        let Some((entity, following)) = after.split_once(';') else {
            text.push('&');
            rest = after;
            continue;
        };
        let letter = match entity {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => numbered(entity),
        };
        text.extend(letter);
        rest = following;
    }
    text.push_str(rest);
    text
}

fn numbered(entity: &str) -> Option<char> {
    let digits = entity.strip_prefix('#')?;
    let number = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    char::from_u32(number)
}
