//! The decision of a person, and how it gets into the summary.

use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::gates::GateReport;
use crate::lines::folded;
use crate::summary::{SignoffField, Summary, SummaryFlaw};

/// What §9 says was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// Accepted, as we record it.
    #[serde(rename = "merged-wider")]
    MergedWider,
    /// Accepted, as some older summaries say.
    #[serde(rename = "accepted")]
    Accepted,
    /// To be built again from the same brief.
    #[serde(rename = "iterated-to-Do")]
    IteratedToDo,
    /// To be planned again.
    #[serde(rename = "iterated-to-Plan")]
    IteratedToPlan,
    /// Given up.
    #[serde(rename = "discontinued")]
    Discontinued,
}

/// What a person can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Freeze it as done.
    Accept,
    /// Build it again.
    IterateDo,
    /// Plan it again.
    IteratePlan,
    /// Give it up.
    Discontinue,
}

/// A decision to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What was decided.
    pub action: Action,
    /// Who decided.
    pub by: String,
    /// When, as it is to be written: `2026-11-16`.
    pub date: String,
    /// Why. Taken literally; line ends become spaces.
    pub note: Option<String>,
}

/// Why a decision was not recorded. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignoffError {
    /// The summary has no place for it, or more than one.
    #[error("the summary cannot be signed")]
    Unrecordable {
        /// What is wrong with it.
        #[source]
        flaw: SummaryFlaw,
    },
    /// It was decided before.
    #[error("already decided: {outcome}")]
    AlreadyDecided {
        /// How.
        outcome: Outcome,
    },
    /// Nobody is named who decided.
    #[error("nobody is named who decided")]
    NoSigner,
    /// The action needs a reason.
    #[error("{action} needs a note")]
    NoteRequired {
        /// The action.
        action: Action,
    },
    /// The summary has no list of open decisions, so nobody can know that there are none.
    #[error("the summary has no `## 6. NEEDS-HUMAN` section")]
    NoNeedsHuman,
    /// There is no readable gate report, so nobody can know that no gate failed.
    #[error("there is no valid gate report")]
    NoGateReport,
    /// Something is in the way of accepting.
    #[error("{} open in §6, {} gating rows failed", open.len(), failed.len())]
    NotAcceptable {
        /// The lines of §6 that nobody has settled, as written.
        open: Vec<String>,
        /// The gating rows that failed, by name.
        failed: Vec<String>,
    },
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Outcome; 5] = [
        Outcome::MergedWider,
        Outcome::Accepted,
        Outcome::IteratedToDo,
        Outcome::IteratedToPlan,
        Outcome::Discontinued,
    ];

    /// The token in §9.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::MergedWider => "merged-wider",
            Outcome::Accepted => "accepted",
            Outcome::IteratedToDo => "iterated-to-Do",
            Outcome::IteratedToPlan => "iterated-to-Plan",
            Outcome::Discontinued => "discontinued",
        }
    }

    /// The field of §9 that says why.
    pub(crate) fn note_field(self) -> SignoffField {
        match self {
            Outcome::IteratedToDo | Outcome::IteratedToPlan => SignoffField::Delta,
            Outcome::MergedWider | Outcome::Accepted | Outcome::Discontinued => {
                SignoffField::Disposition
            }
        }
    }
}

impl FromStr for Outcome {
    type Err = UnknownOutcome;

    fn from_str(text: &str) -> Result<Self, UnknownOutcome> {
        Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == text).ok_or(UnknownOutcome)
    }
}

/// A text that is no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a known outcome")]
pub struct UnknownOutcome;

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl Action {
    /// Every action.
    pub const ALL: [Action; 4] =
        [Action::Accept, Action::IterateDo, Action::IteratePlan, Action::Discontinue];

    /// The outcome it records.
    pub fn outcome(self) -> Outcome {
        match self {
            Action::Accept => Outcome::MergedWider,
            Action::IterateDo => Outcome::IteratedToDo,
            Action::IteratePlan => Outcome::IteratedToPlan,
            Action::Discontinue => Outcome::Discontinued,
        }
    }

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Accept => "accept",
            Action::IterateDo => "iterate-do",
            Action::IteratePlan => "iterate-plan",
            Action::Discontinue => "discontinue",
        }
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The summary with the decision in it, or why not.
///
/// Only the fields of §9 change; every other byte stays. A field that §9 lacks is added below its
/// outcome, so the whole decision is there or none of it.
pub fn record(
    summary: &str,
    gates: Option<&GateReport>,
    decision: &Decision,
) -> Result<String, SignoffError> {
    let parsed = Summary::parse(summary);
    require_recordable(&parsed)?;
    let by = folded(&decision.by);
    if by.is_empty() {
        return Err(SignoffError::NoSigner);
    }
    let note = folded(decision.note.as_deref().unwrap_or(""));
    match decision.action {
        Action::Accept => require_acceptable(&parsed, gates)?,
        Action::Discontinue if note.is_empty() => {
            return Err(SignoffError::NoteRequired { action: decision.action });
        }
        Action::Discontinue | Action::IterateDo | Action::IteratePlan => {}
    }
    let outcome = decision.action.outcome();
    let mut values = vec![
        (SignoffField::Outcome, outcome.as_str().to_owned()),
        (SignoffField::ByDate, format!("{by} / {}", folded(&decision.date))),
    ];
    if !note.is_empty() {
        values.push((outcome.note_field(), note));
    }
    Ok(with_values(summary, &parsed, &values))
}

fn require_recordable(summary: &Summary) -> Result<(), SignoffError> {
    if let Some(flaw) = summary.unrecordable() {
        return Err(SignoffError::Unrecordable { flaw: flaw.clone() });
    }
    match summary.outcome() {
        Some(outcome) => Err(SignoffError::AlreadyDecided { outcome }),
        None => Ok(()),
    }
}

fn require_acceptable(summary: &Summary, gates: Option<&GateReport>) -> Result<(), SignoffError> {
    if !summary.has_needs_human() {
        return Err(SignoffError::NoNeedsHuman);
    }
    let gates = gates.ok_or(SignoffError::NoGateReport)?;
    let open = summary.unsettled();
    let failed: Vec<String> = gates.failed_gating().map(|row| row.check.clone()).collect();
    if open.is_empty() && failed.is_empty() && gates.overall == crate::gates::Overall::Pass {
        return Ok(());
    }
    Err(SignoffError::NotAcceptable { open, failed })
}

/// The text with these fields of §9 set: in every §9, should an older summary have two that agree.
fn with_values(text: &str, summary: &Summary, values: &[(SignoffField, String)]) -> String {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    for section in summary.signoff_sections() {
        let place = |field: SignoffField| {
            let found = section.fields.iter().find(|(name, _)| *name == field);
            found.map(|(_, range)| range.clone())
        };
        let Some(outcome) = place(SignoffField::Outcome) else {
            continue;
        };
        let mut added = String::new();
        for (field, value) in values {
            if let Some(range) = place(*field) {
                edits.push((range, format!(" {value}")));
                continue;
            }
            added.push_str(line_end(text, outcome.end));
            added.push_str(field.prefix());
            added.push(' ');
            added.push_str(value);
        }
        edits.push((outcome.end..outcome.end, added));
    }
    edits.sort_by_key(|(range, _)| (range.end, range.start));
    let mut out = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for (range, replacement) in edits {
        out.push_str(&text[at..range.start]);
        out.push_str(&replacement);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// What ends the line whose text ends at `at`; a line feed for the last line.
fn line_end(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    if rest.starts_with("\r\n") {
        "\r\n"
    } else if rest.starts_with('\r') {
        "\r"
    } else {
        "\n"
    }
}

#[cfg(test)]
mod tests;
