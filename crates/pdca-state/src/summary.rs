//! The result document `SUMMARY.md`: ten sections, of which §6 is a list of boxes and §9 the sign-off.
//!
//! People read this file and decide; programs, ours and older ones, read back the boxes and the
//! decision. Parsing is strict where the file grants something: only a canonical heading opens a
//! section, and if a document contradicts itself (two sign-offs that differ, two outcomes in one),
//! nothing is granted and the flaw is reported.

mod assemble;
mod quoting;
mod tracker;
mod unsettled;

use std::ops::Range;

pub(crate) use assemble::is_undecided_with_reason;
pub use assemble::{Advisory, NeedsHuman, SummaryInputs, assemble, given_up, protected_item};

pub use tracker::tracker_comment;

use crate::lines::{TextLine, lines};
use crate::review::is_standing_text;
use crate::signoff::SignoffOutcome;

/// The ten sections: the start that identifies a heading, and the heading as it is written.
const SECTIONS: [(&str, &str); 10] = [
    ("1. Spec", "1. Spec (from brief.md)"),
    ("2. Disposition claimed", "2. Disposition claimed"),
    ("3. Correctness", "3. Correctness (Check — chain)"),
    ("4. Conformance", "4. Conformance (Check — stack)"),
    ("5. Advisory review", "5. Advisory review (artifact-only, decorrelated)"),
    ("6. NEEDS-HUMAN", "6. NEEDS-HUMAN — items the human must clear before sign-off"),
    ("7. Proven", "7. Proven / not proven"),
    ("8. Ready-to-ship attachments", "8. Ready-to-ship attachments"),
    ("9. Check sign-off", "9. Check sign-off"),
    ("10. Act candidates", "10. Act candidates (hints for the next Act review)"),
];

/// The content of §6 if there is nothing to decide.
const NOTHING_OPEN: &str = "- (none)";
/// The line of §6 above the standing validation question.
const STANDING_INTRODUCTION: &str = "Asked of every bundle, whatever the review found:";

const OPEN_BOX: &str = "- [ ]";
const CLEARED_BOXES: [&str; 2] = ["- [x]", "- [X]"];

pub(crate) const NEEDS_HUMAN: usize = 6;
pub(crate) const SIGN_OFF: usize = 9;

/// The fields of §9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SignoffField {
    Disposition,
    Outcome,
    Delta,
    ByDate,
}

impl SignoffField {
    pub(crate) const ALL: [SignoffField; 4] = [
        SignoffField::Disposition,
        SignoffField::Outcome,
        SignoffField::Delta,
        SignoffField::ByDate,
    ];

    pub(crate) fn prefix(self) -> &'static str {
        match self {
            SignoffField::Disposition => "- Disposition confirmed / overridden:",
            SignoffField::Outcome => "- Outcome:",
            SignoffField::Delta => "- Iteration delta (if iterating):",
            SignoffField::ByDate => "- By / date:",
        }
    }
}

/// A parsed summary.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    text: String,
    sections: Vec<Section>,
    items: Vec<SummaryItem>,
    open_items: Vec<String>,
    cleared_items: Vec<String>,
    signoffs: Vec<SignoffSection>,
    flaws: Vec<SummaryFlaw>,
}

/// One box of §6.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummaryItem {
    /// Its place among all boxes, open and ticked, from 1. Ticking a box moves no number.
    pub number: usize,
    /// The text after the box.
    pub text: String,
    /// False once it is ticked.
    pub open: bool,
    /// It is the validation question that is asked of every bundle.
    pub standing: bool,
}

/// One `##` section, in bytes of the text.
#[derive(Debug, Clone)]
struct Section {
    /// 1 to 10 for a canonical heading.
    number: Option<usize>,
    heading: Range<usize>,
    body: Range<usize>,
}

/// The fields of one §9, with the byte range of each value.
#[derive(Debug, Clone, Default)]
pub(crate) struct SignoffSection {
    pub(crate) fields: Vec<(SignoffField, Range<usize>)>,
}

/// A defect of a summary because of which it may grant nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SummaryFlaw {
    /// §6 or §9 is missing.
    #[error("no `## {heading}` section")]
    MissingSection {
        /// The start of the section's heading.
        heading: &'static str,
    },
    /// §6 or §9 appears more than once.
    #[error("`## {heading}` is there {count} times")]
    RepeatedSection {
        /// The start of the section's heading.
        heading: &'static str,
        /// The number of sections with that heading.
        count: usize,
    },
    /// §9 has no line for the outcome.
    #[error("`## 9. Check sign-off` has no `- Outcome:` line")]
    NoOutcomeLine,
    /// One §9 has two outcome lines, or two §9 have different outcomes.
    #[error("there are {count} `- Outcome:` lines that could be the sign-off")]
    AmbiguousOutcome {
        /// The number of outcome lines.
        count: usize,
    },
}

/// The decision that §9 records.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedSignoff {
    /// The recorded outcome.
    pub outcome: SignoffOutcome,
    /// The name of the person; empty if §9 has none.
    pub by: String,
    /// The date as written; empty if §9 has none.
    pub date: String,
    /// The recorded reason.
    pub note: Option<String>,
}

impl Summary {
    /// Parses the sections, the boxes and the sign-off. Never fails: other text is a summary that
    /// grants nothing. Takes time linear in the length of the text.
    pub fn parse(text: &str) -> Self {
        let mut summary =
            Self { text: text.to_owned(), sections: sections(text), ..Self::default() };
        summary.read_boxes();
        summary.read_signoffs();
        summary.find_flaws();
        summary
    }

    /// The text that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The body of the first section with this number, without its heading.
    pub fn section(&self, number: usize) -> Option<&str> {
        let section = self.numbered(number).next()?;
        Some(&self.text[section.body.clone()])
    }

    /// Iterates over all `##` headings in order: the number if the heading is canonical, and the line.
    pub fn headings(&self) -> impl Iterator<Item = (Option<usize>, &str)> {
        self.sections.iter().map(|section| (section.number, &self.text[section.heading.clone()]))
    }

    /// The open boxes of §6 as written, `- [ ] …`.
    ///
    /// If §6 is repeated, the boxes of each count; if it is missing, every box of the document counts.
    /// Either can only prevent an acceptance, never allow one.
    pub fn open_items(&self) -> &[String] {
        &self.open_items
    }

    /// The lines of §6 that prevent an acceptance, in order: every line except ticked boxes, their
    /// continuation lines, and the lines that [`assemble()`] writes around the boxes.
    ///
    /// This includes open boxes in any spelling and findings without a box: an item that is not
    /// ticked is not decided. If §6 is missing, these are the [`Self::open_items`].
    pub fn unsettled(&self) -> Vec<String> {
        if !self.has_needs_human() {
            return self.open_items.clone();
        }
        self.numbered(NEEDS_HUMAN)
            .flat_map(|section| unsettled::lines_of(&self.text[section.body.clone()]))
            .map(str::to_owned)
            .collect()
    }

    /// The ticked boxes of §6 as written, `- [x] …`.
    pub fn cleared_items(&self) -> &[String] {
        &self.cleared_items
    }

    /// Every box of §6, open and ticked, in order.
    pub fn items(&self) -> &[SummaryItem] {
        &self.items
    }

    /// The open boxes of §6 without their marks, in order.
    pub fn open_texts(&self) -> Vec<String> {
        self.items.iter().filter(|item| item.open).map(|item| item.text.clone()).collect()
    }

    /// The number of open boxes that are the standing validation question: one or none.
    pub fn open_standing(&self) -> usize {
        usize::from(self.items.iter().any(|item| item.open && item.standing))
    }

    /// Returns true if there is a §6, without which nothing can be accepted.
    pub fn has_needs_human(&self) -> bool {
        self.numbered(NEEDS_HUMAN).next().is_some()
    }

    /// The outcome in §9; `None` if it is empty, unknown, missing or ambiguous.
    pub fn outcome(&self) -> Option<SignoffOutcome> {
        self.outcome_token().parse().ok()
    }

    /// The outcome as written, known or not; empty if it is missing or ambiguous.
    pub fn outcome_token(&self) -> &str {
        if self.is_ambiguous() {
            return "";
        }
        self.value(SignoffField::Outcome)
    }

    /// The iteration delta in §9: the reason the attempt was rejected, and what to change.
    pub fn iteration_delta(&self) -> &str {
        self.value(SignoffField::Delta)
    }

    /// The disposition in §9, confirmed or overridden.
    pub fn disposition(&self) -> &str {
        self.value(SignoffField::Disposition)
    }

    /// The recorded decision with its author, date and note, if there is a known outcome.
    pub fn signoff(&self) -> Option<RecordedSignoff> {
        let outcome = self.outcome()?;
        let by_date = self.value(SignoffField::ByDate);
        let (by, date) = by_date.rsplit_once(" / ").unwrap_or((by_date, ""));
        let note = self.value(outcome.note_field());
        Some(RecordedSignoff {
            outcome,
            by: by.to_owned(),
            date: date.to_owned(),
            note: (!note.is_empty()).then(|| note.to_owned()),
        })
    }

    /// All flaws of this summary.
    pub fn flaws(&self) -> &[SummaryFlaw] {
        &self.flaws
    }

    /// The first flaw that prevents writing a decision into this summary.
    pub fn unrecordable(&self) -> Option<&SummaryFlaw> {
        self.flaws.iter().find(|flaw| match flaw {
            SummaryFlaw::MissingSection { heading } => *heading == SECTIONS[SIGN_OFF - 1].0,
            // Older summaries have two §9 that agree. If they differ, the outcome is ambiguous.
            SummaryFlaw::RepeatedSection { .. } => false,
            SummaryFlaw::NoOutcomeLine | SummaryFlaw::AmbiguousOutcome { .. } => true,
        })
    }

    pub(crate) fn signoff_sections(&self) -> &[SignoffSection] {
        &self.signoffs
    }

    fn numbered(&self, number: usize) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(move |section| section.number == Some(number))
    }

    fn read_boxes(&mut self) {
        let mut bodies: Vec<Range<usize>> =
            self.numbered(NEEDS_HUMAN).map(|section| section.body.clone()).collect();
        let is_missing = bodies.is_empty();
        if is_missing {
            // Every open box of the document counts then. That can only prevent an acceptance.
            bodies.push(0..self.text.len());
        }
        for body in bodies {
            for line in lines(&self.text[body]) {
                let line = line.text.trim();
                if let Some(item) = line.strip_prefix(OPEN_BOX) {
                    self.open_items.push(line.to_owned());
                    self.items.push(SummaryItem::after(&self.items, item, true));
                    continue;
                }
                // Without §6, open boxes count but ticked ones do not: they could be in any section.
                let cleared = CLEARED_BOXES.iter().find_map(|mark| line.strip_prefix(mark));
                if let Some(item) = cleared.filter(|_| !is_missing) {
                    self.cleared_items.push(line.to_owned());
                    self.items.push(SummaryItem::after(&self.items, item, false));
                }
            }
        }
        // Of two open ones that look alike, at least one is a finding, and it is unknown which.
        if self.items.iter().filter(|item| item.open && item.standing).count() > 1 {
            self.items.iter_mut().for_each(|item| item.standing = false);
        }
    }

    fn read_signoffs(&mut self) {
        self.signoffs = self
            .numbered(SIGN_OFF)
            .map(|section| SignoffSection {
                fields: lines(&self.text[section.body.clone()])
                    .filter_map(|line| signoff_line(line, section.body.start))
                    .collect(),
            })
            .collect();
    }

    fn find_flaws(&mut self) {
        for number in [NEEDS_HUMAN, SIGN_OFF] {
            let heading = SECTIONS[number - 1].0;
            match self.numbered(number).count() {
                0 => self.flaws.push(SummaryFlaw::MissingSection { heading }),
                1 => {}
                count => self.flaws.push(SummaryFlaw::RepeatedSection { heading, count }),
            }
        }
        let count = self.outcome_lines().count();
        if !self.signoffs.is_empty() && count == 0 {
            self.flaws.push(SummaryFlaw::NoOutcomeLine);
        } else if self.is_ambiguous() {
            self.flaws.push(SummaryFlaw::AmbiguousOutcome { count });
        }
    }

    /// Returns true for several outcome lines, unless each §9 has exactly one and they agree.
    fn is_ambiguous(&self) -> bool {
        let in_one = |section: &SignoffSection| {
            let is_outcome = |(field, _): &&(SignoffField, _)| *field == SignoffField::Outcome;
            section.fields.iter().filter(is_outcome).count()
        };
        let mut values = self.outcome_lines().map(|range| self.text[range.clone()].trim());
        let first = values.next();
        let agree = values.all(|value| Some(value) == first);
        let one_each = self.signoffs.iter().all(|section| in_one(section) == 1);
        self.outcome_lines().nth(1).is_some() && !(agree && one_each)
    }

    fn outcome_lines(&self) -> impl Iterator<Item = &Range<usize>> {
        self.signoffs
            .iter()
            .flat_map(|section| &section.fields)
            .filter(|(field, _)| *field == SignoffField::Outcome)
            .map(|(_, range)| range)
    }

    fn value(&self, field: SignoffField) -> &str {
        self.signoffs
            .iter()
            .flat_map(|section| &section.fields)
            .find(|(found, _)| *found == field)
            .map_or("", |(_, range)| self.text[range.clone()].trim())
    }
}

impl SummaryItem {
    fn after(before: &[SummaryItem], text: &str, open: bool) -> Self {
        let text = text.trim_start();
        let standing = is_standing_text(text);
        Self { number: before.len() + 1, text: text.to_owned(), open, standing }
    }
}

pub(crate) fn heading(number: usize) -> &'static str {
    SECTIONS[number - 1].1
}

fn opened_heading(line: &str) -> Option<&str> {
    line.strip_prefix("## ").map(str::trim_start)
}

/// The number of the section that a heading opens, by its canonical start.
fn canonical_number(heading: &str) -> Option<usize> {
    let index = SECTIONS.iter().position(|(start, _)| {
        heading
            .strip_prefix(start)
            // `## 9. Check sign-off-notes` is not §9.
            .is_some_and(|rest| rest.chars().next().is_none_or(char::is_whitespace))
    })?;
    Some(index + 1)
}

fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in lines(text) {
        let Some(heading) = opened_heading(line.text) else {
            continue;
        };
        if let Some(last) = sections.last_mut() {
            last.body.end = line.start;
        }
        sections.push(Section {
            number: canonical_number(heading),
            heading: line.range(),
            body: line.next..text.len(),
        });
    }
    sections
}

/// The field on a line of §9, with the byte range of its value in the text.
fn signoff_line(line: TextLine<'_>, offset: usize) -> Option<(SignoffField, Range<usize>)> {
    let field =
        SignoffField::ALL.into_iter().find(|field| line.text.starts_with(field.prefix()))?;
    let start = offset + line.start + field.prefix().len();
    Some((field, start..offset + line.range().end))
}

#[cfg(test)]
mod tests;
