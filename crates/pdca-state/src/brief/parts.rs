//! Parts of a brief: pieces of the work that can become bundles of their own.
//!
//! A part is a field `Part <id>` with further fields below it:
//!
//! ```text
//! - **Part parser:** read the new header
//!   - Paths: `src/header.rs`
//!   - Done when: a header with two lines is read
//! - **Part writer:** write it
//!   - Paths: `src/writer.rs`
//!   - After: parser
//!   - Waits for: the format that 41 decides
//! ```
//!
//! `Waits for` names bundles, which the part depends on then, or says in words what only a person can see.
//!
//! The labels of a part differ from those of a brief on purpose: any reader of briefs takes the first `Depends on` or
//! `Touches` of the document for the bundle's own.

use std::collections::BTreeSet;

use super::{Brief, BriefField, lines, touches};
use crate::id::BundleId;
use crate::id_list::parse_id_list;
use crate::lines::folded;

/// The start of the label.
const PART: &str = "part ";
/// The maximum length of a part's id, which becomes the end of a bundle's id.
const LONGEST: usize = 40;

/// A part of the work that a brief asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The id, in lower-case letters, digits and hyphens.
    pub id: String,
    /// The line of the brief, from 1.
    pub line: usize,
    /// The request, on one line.
    pub what: String,
    /// The globs of the files that the part changes.
    pub paths: Vec<String>,
    /// The condition that is true when the part is done.
    pub done_when: Option<String>,
    /// The ids of the parts that must be done first.
    pub after: Vec<String>,
    /// The reason why the part cannot be started yet.
    pub waits_for: Option<String>,
    /// The bundles that `waits_for` names; empty if it is prose.
    pub blockers: Vec<BundleId>,
}

/// The reasons why the parts of a brief cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// The id cannot be part of a bundle's id.
    #[error("`{}` is no id of a part", id.escape_debug())]
    Id {
        /// The line of the brief, from 1.
        line: usize,
        /// The id as written.
        id: String,
    },
    /// A part comes after one that does not exist.
    #[error("part `{id}` comes after `{}`, which is no part", after.escape_debug())]
    Unknown {
        /// The line of the brief, from 1.
        line: usize,
        /// The part.
        id: String,
        /// The id that is not known.
        after: String,
    },
    /// Parts come after each other.
    #[error("parts come after each other: {}", ids.join(" → "))]
    Cycle {
        /// The line of the first of them, from 1.
        line: usize,
        /// The ids of the cycle.
        ids: Vec<String>,
    },
}

impl PartsError {
    /// Returns the line of the brief, from 1.
    pub fn line(&self) -> usize {
        match self {
            Self::Id { line, .. } | Self::Unknown { line, .. } | Self::Cycle { line, .. } => *line,
        }
    }
}

/// Returns false only if a brief with this text has no parts. Costs far less than to parse the brief.
pub fn may_have_parts(text: &[u8]) -> bool {
    text.windows(PART.len()).any(|word| word.eq_ignore_ascii_case(PART.as_bytes()))
}

/// Returns the parts of a brief, in the order in which they can be done.
pub fn parts(brief: &Brief) -> Result<Vec<Part>, PartsError> {
    let mut found = Vec::new();
    for field in brief.fields().filter(BriefField::is_filled) {
        if let Some(id) = id_of(field.label) {
            found.push(Part::read(id, &field)?);
        }
    }
    for part in &found {
        let is_known = |after: &&String| found.iter().any(|other| other.id == **after);
        if let Some(after) = part.after.iter().find(|after| !is_known(after)) {
            let (line, id, after) = (part.line, part.id.clone(), after.clone());
            return Err(PartsError::Unknown { line, id, after });
        }
    }
    in_order(found)
}

/// Returns the id in a label `Part <id>`.
fn id_of(label: &str) -> Option<&str> {
    let start = label.get(..PART.len())?;
    start.eq_ignore_ascii_case(PART).then(|| label[PART.len()..].trim())
}

impl Part {
    fn read(id: &str, field: &BriefField<'_>) -> Result<Self, PartsError> {
        let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if id.is_empty() || id.len() > LONGEST || id.starts_with('-') || !id.chars().all(is_legal) {
            return Err(PartsError::Id { line: field.line, id: id.to_owned() });
        }
        let own = Brief::parse(field.body);
        let text = |label: &str| own.field(label).map(|field| folded(&field.whole()));
        let after = own.field("after").map(|field| folded(field.own_line)).unwrap_or_default();
        let is_none = |word: &str| matches!(word.to_lowercase().as_str(), "none" | "-" | "n/a");
        let after = after
            .split([',', ' '])
            .map(|word| word.trim_matches(['`', '.']).to_lowercase())
            .filter(|word| !word.is_empty() && !is_none(word))
            .collect();
        // Prose between the line of the part and its fields belongs to the request.
        let prose: String = lines(field.body)
            .map(|line| line.text)
            .take_while(|line| !line.trim_start().starts_with(['-', '*']))
            .collect::<Vec<_>>()
            .join(" ");
        let waits_for = text("waits for").filter(|why| !is_none(why));
        // Only ids that the text alone tells from prose: `approval` is no bundle, and neither is a sentence.
        let blockers = waits_for.as_deref().map(|why| parse_id_list(why).ids()).unwrap_or_default();
        Ok(Self {
            id: id.to_owned(),
            line: field.line,
            what: folded(&format!("{} {prose}", field.own_line)),
            paths: own
                .field("paths")
                .map(|field| touches::globs(&field.whole()))
                .unwrap_or_default(),
            done_when: text("done when"),
            after,
            waits_for,
            blockers,
        })
    }

    /// Takes `waits_for` for prose unless it names existing bundles only: a date has the form of an id too.
    pub fn keep_blockers(&mut self, is_bundle: &dyn Fn(&BundleId) -> bool) {
        if !self.blockers.iter().all(is_bundle) {
            self.blockers.clear();
        }
    }

    /// Returns true if only a person can tell when the part can be started.
    pub fn waits_for_a_person(&self) -> bool {
        self.waits_for.is_some() && self.blockers.is_empty()
    }

    /// Returns true if nothing is left to be filled in by a person.
    pub fn is_complete(&self) -> bool {
        !self.what.is_empty() && self.done_when.is_some() && !self.waits_for_a_person()
    }
}

/// Returns the ids of the parts that cannot be started while these bundles are open, among parts in order.
pub fn held_parts<'p>(parts: &'p [Part], is_open: &dyn Fn(&BundleId) -> bool) -> BTreeSet<&'p str> {
    let mut held: BTreeSet<&str> = BTreeSet::new();
    // Parts are in order, so one pass finds everything behind a held one.
    for part in parts {
        let is_held = part.waits_for_a_person() || part.blockers.iter().any(is_open);
        if is_held || part.after.iter().any(|id| held.contains(id.as_str())) {
            held.insert(&part.id);
        }
    }
    held
}

/// Sorts parts so that each comes after those that it needs, and otherwise as written.
fn in_order(mut left: Vec<Part>) -> Result<Vec<Part>, PartsError> {
    let mut done: Vec<Part> = Vec::new();
    while !left.is_empty() {
        let is_met = |part: &Part| {
            part.after.iter().all(|after| done.iter().any(|other| other.id == *after))
        };
        let Some(at) = left.iter().position(is_met) else {
            let line = left.first().map_or(1, |part| part.line);
            return Err(PartsError::Cycle { line, ids: cycle(&left) });
        };
        done.push(left.remove(at));
    }
    Ok(done)
}

/// Walks from the first part to those that it needs, until one comes again.
fn cycle(left: &[Part]) -> Vec<String> {
    let mut way: Vec<String> = Vec::new();
    let mut at = left.first();
    while let Some(part) = at {
        if let Some(start) = way.iter().position(|id| *id == part.id) {
            way.drain(..start);
            way.push(part.id.clone());
            return way;
        }
        way.push(part.id.clone());
        let next = part.after.iter().find_map(|after| left.iter().find(|one| one.id == *after));
        at = next;
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRIEF: &str = "- **Slug:** s\n- **Touches:** `a/**`\n- **Depends on:** 12\n\n## Parts\n\n\
        - **Part writer:** write it,\n  all of it\n  - Paths: `src/writer.rs`, `docs/`\n  - After: parser\n\
        \x20 - Waits for: the format of 41\n\
        - **Part parser:** read it\n  - Paths: `src/parser.rs`\n  - Done when: two lines are read\n  - After: none\n";

    #[test]
    fn parts_come_in_the_order_in_which_they_can_be_done() {
        let parts = parts(&Brief::parse(BRIEF)).unwrap();
        let ids: Vec<&str> = parts.iter().map(|part| part.id.as_str()).collect();
        assert_eq!(ids, ["parser", "writer"]);
        let [parser, writer] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!(parser.paths, ["src/parser.rs"]);
        assert_eq!(parser.done_when.as_deref(), Some("two lines are read"));
        assert!(parser.after.is_empty() && parser.is_complete());
        assert_eq!(writer.what, "write it, all of it");
        assert_eq!(writer.paths, ["src/writer.rs", "docs/"]);
        assert_eq!(writer.after, ["parser"]);
        assert_eq!(writer.waits_for.as_deref(), Some("the format of 41"));
        assert!(!writer.is_complete());
    }

    proptest::proptest! {
        #[test]
        fn a_text_that_may_have_no_parts_has_none(
            pieces in proptest::collection::vec(
                proptest::sample::select(vec![
                    "- ", "* ", "1. ", "**", "Part", "PART", "part", " ", "\t", "\u{a0}", "a", "b-1", ":", "\n", "\r\n", "  ", "text",
                ]),
                0..24,
            )
        ) {
            let text = pieces.concat();
            let has_none = parts(&Brief::parse(&text)).is_ok_and(|parts| parts.is_empty());
            proptest::prop_assert!(has_none || may_have_parts(text.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn a_part_waits_for_bundles_or_for_a_person() {
        let of = |why: &str| {
            let text = format!("- **Part a:** x\n  - Done when: y\n  - Waits for: {why}\n");
            let mut part = parts(&Brief::parse(&text)).unwrap().remove(0);
            part.keep_blockers(&|id| matches!(id.as_str(), "41" | "42" | "setup-db"));
            let ids: Vec<String> = part.blockers.iter().map(ToString::to_string).collect();
            (ids.join(" "), part.waits_for_a_person(), part.is_complete())
        };
        assert_eq!(of("41"), ("41".into(), false, true));
        assert_eq!(of("41, #42 (both decide it)"), ("41 42".into(), false, true));
        assert_eq!(of("`setup-db`"), ("setup-db".into(), false, true));
        for prose in ["the format of 41", "approval", "2026-12-01", "41, 43"] {
            assert_eq!(of(prose), (String::new(), true, false), "{prose}");
        }
        assert_eq!(of("none"), (String::new(), false, true));
    }

    #[test]
    fn a_part_behind_a_held_one_is_held() {
        let text = "- **Part a:** x\n- **Part b:** x\n  - Waits for: 41\n- **Part c:** x\n  - After: b\n\
            - **Part d:** x\n  - After: a\n";
        let parts = parts(&Brief::parse(text)).unwrap();
        let held = |open: &str| {
            held_parts(&parts, &|id| id.as_str() == open).into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!((held("41"), held("42")), ("b c".into(), String::new()));
    }

    #[test]
    fn a_part_declares_nothing_for_the_whole_bundle() {
        let brief = Brief::parse(BRIEF);
        assert_eq!(brief.touches(), ["a/**"]);
        let only = Brief::parse("- **Slug:** s\n- **Part a:** x\n  - Paths: b\n  - After: none\n");
        assert!(only.touches().is_empty() && only.depends_on().ids().is_empty());
    }

    #[test]
    fn what_cannot_be_split_is_said_with_its_line() {
        let said = |text: &str| {
            let error = parts(&Brief::parse(text)).unwrap_err();
            format!("{}: {error}", error.line())
        };
        assert_eq!(said("- **Part Über:** x\n"), "1: `Über` is no id of a part");
        assert_eq!(
            said("\n- **Part a:** x\n  - After: b\n"),
            "2: part `a` comes after `b`, which is no part"
        );
        assert_eq!(
            said("- **Part a:** x\n  - After: b\n- **Part b:** y\n  - After: a\n"),
            "1: parts come after each other: a → b → a"
        );
        assert_eq!(parts(&Brief::parse("- **Slug:** s\n- Party: x\n")), Ok(Vec::new()));
    }
}
