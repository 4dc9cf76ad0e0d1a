//! The decision of a person, and how it gets into the summary.

use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::gates::{GateReport, GateRow, Overall};
use crate::lines::{folded, lines};
use crate::summary::{SIGN_OFF, SignoffField, Summary, SummaryFlaw};

/// What the line of §9 starts with that names a failed row which was accepted all the same.
const OVERRIDE: &str = "- Gate overridden:";

/// What §9 says was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SignoffOutcome {
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
pub enum SignoffAction {
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
pub struct SignoffDecision {
    /// What was decided.
    pub action: SignoffAction,
    /// Who decided.
    pub by: String,
    /// When, as it is to be written: `2026-11-16`.
    pub date: String,
    /// Why. Taken literally; line ends become spaces.
    pub note: Option<String>,
    /// Failed gating rows that are accepted all the same. Only an acceptance may have any.
    pub overrides: Vec<Override>,
}

/// A failed gating row that a person accepts all the same, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// The row: its rule id, or its check where it has none.
    pub row: String,
    /// Why it does not count.
    pub reason: String,
}

/// An acceptance that §9 records and every rule of accepting allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Who accepted it.
    pub by: String,
    /// When, as written.
    pub date: String,
    /// The failed rows that were accepted all the same.
    pub overrides: Vec<Override>,
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
        outcome: SignoffOutcome,
    },
    /// §9 does not say that it was accepted.
    #[error("§9 does not say that it was accepted")]
    NotAccepted,
    /// Nobody is named who decided.
    #[error("nobody is named who decided")]
    NoSigner,
    /// An override without a reason, or for something that is not accepted.
    #[error("overriding `{row}` needs a reason")]
    ReasonRequired {
        /// The row.
        row: String,
    },
    /// An override of a row that did not fail.
    #[error("`{row}` is no gating row that failed")]
    NothingToOverride {
        /// What was named.
        row: String,
        /// The rows that did fail, by the name to override them with.
        failed: Vec<String>,
    },
    /// The action needs a reason.
    #[error("{action} needs a note")]
    NoteRequired {
        /// The action.
        action: SignoffAction,
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

impl SignoffOutcome {
    /// Every outcome.
    pub const ALL: [SignoffOutcome; 5] = [
        SignoffOutcome::MergedWider,
        SignoffOutcome::Accepted,
        SignoffOutcome::IteratedToDo,
        SignoffOutcome::IteratedToPlan,
        SignoffOutcome::Discontinued,
    ];

    /// The token in §9.
    pub fn as_str(self) -> &'static str {
        match self {
            SignoffOutcome::MergedWider => "merged-wider",
            SignoffOutcome::Accepted => "accepted",
            SignoffOutcome::IteratedToDo => "iterated-to-Do",
            SignoffOutcome::IteratedToPlan => "iterated-to-Plan",
            SignoffOutcome::Discontinued => "discontinued",
        }
    }

    /// The field of §9 that says why.
    pub(crate) fn note_field(self) -> SignoffField {
        match self {
            SignoffOutcome::IteratedToDo | SignoffOutcome::IteratedToPlan => SignoffField::Delta,
            SignoffOutcome::MergedWider
            | SignoffOutcome::Accepted
            | SignoffOutcome::Discontinued => SignoffField::Disposition,
        }
    }
}

impl FromStr for SignoffOutcome {
    type Err = UnknownOutcome;

    fn from_str(text: &str) -> Result<Self, UnknownOutcome> {
        SignoffOutcome::ALL
            .into_iter()
            .find(|outcome| outcome.as_str() == text)
            .ok_or(UnknownOutcome)
    }
}

/// A text that is no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a known outcome")]
pub struct UnknownOutcome;

impl std::fmt::Display for SignoffOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl SignoffAction {
    /// Every action.
    pub const ALL: [SignoffAction; 4] = [
        SignoffAction::Accept,
        SignoffAction::IterateDo,
        SignoffAction::IteratePlan,
        SignoffAction::Discontinue,
    ];

    /// The outcome it records.
    pub fn outcome(self) -> SignoffOutcome {
        match self {
            SignoffAction::Accept => SignoffOutcome::MergedWider,
            SignoffAction::IterateDo => SignoffOutcome::IteratedToDo,
            SignoffAction::IteratePlan => SignoffOutcome::IteratedToPlan,
            SignoffAction::Discontinue => SignoffOutcome::Discontinued,
        }
    }

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            SignoffAction::Accept => "accept",
            SignoffAction::IterateDo => "iterate-do",
            SignoffAction::IteratePlan => "iterate-plan",
            SignoffAction::Discontinue => "discontinue",
        }
    }
}

impl std::fmt::Display for SignoffAction {
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
    decision: &SignoffDecision,
) -> Result<String, SignoffError> {
    let parsed = Summary::parse(summary);
    require_recordable(&parsed)?;
    let by = folded(&decision.by);
    if by.is_empty() {
        return Err(SignoffError::NoSigner);
    }
    let note = folded(decision.note.as_deref().unwrap_or(""));
    let overrides = match decision.action {
        SignoffAction::Accept => named_overrides(gates, &decision.overrides)?,
        SignoffAction::Discontinue | SignoffAction::IterateDo | SignoffAction::IteratePlan => {
            Vec::new()
        }
    };
    match decision.action {
        SignoffAction::Accept => require_acceptable(&parsed, gates, &overrides)?,
        SignoffAction::Discontinue if note.is_empty() => {
            return Err(SignoffError::NoteRequired { action: decision.action });
        }
        SignoffAction::Discontinue | SignoffAction::IterateDo | SignoffAction::IteratePlan => {}
    }
    let outcome = decision.action.outcome();
    let mut values = vec![
        (SignoffField::Outcome, outcome.as_str().to_owned()),
        (SignoffField::ByDate, format!("{by} / {}", folded(&decision.date))),
    ];
    if !note.is_empty() {
        values.push((outcome.note_field(), note));
    }
    Ok(with_values(summary, &parsed, &values, &overrides))
}

/// The acceptance that a summary records, if accepting it would be allowed.
///
/// Whoever seals asks this, so that a summary that only says `merged-wider` is no acceptance: it
/// needs a signer, no open item in §6, and a gate report without a failed row that is not overridden.
pub fn require_accepted(
    summary: &str,
    gates: Option<&GateReport>,
) -> Result<Accepted, SignoffError> {
    let parsed = Summary::parse(summary);
    if let Some(flaw) = parsed.unrecordable() {
        return Err(SignoffError::Unrecordable { flaw: flaw.clone() });
    }
    let recorded = parsed.signoff().filter(|recorded| match recorded.outcome {
        SignoffOutcome::MergedWider | SignoffOutcome::Accepted => true,
        SignoffOutcome::IteratedToDo
        | SignoffOutcome::IteratedToPlan
        | SignoffOutcome::Discontinued => false,
    });
    let recorded = recorded.ok_or(SignoffError::NotAccepted)?;
    let by = folded(&recorded.by);
    // A line `- By / date: / 2026-11-16` names a date and nobody.
    if by.is_empty() || by.starts_with('/') {
        return Err(SignoffError::NoSigner);
    }
    let overrides = recorded_overrides(&parsed, gates);
    require_acceptable(&parsed, gates, &overrides)?;
    Ok(Accepted { by, date: folded(&recorded.date), overrides })
}

/// The summary with a decision in place of the acceptance that it has, or why not.
///
/// For an accepted change that has not landed. Who accepted it stays in the note.
pub fn overrule(summary: &str, decision: &SignoffDecision) -> Result<String, SignoffError> {
    let parsed = Summary::parse(summary);
    if let Some(flaw) = parsed.unrecordable() {
        return Err(SignoffError::Unrecordable { flaw: flaw.clone() });
    }
    match (parsed.outcome(), decision.action) {
        (Some(SignoffOutcome::MergedWider | SignoffOutcome::Accepted), SignoffAction::Accept)
        | (None, _) => {
            return record(summary, None, decision);
        }
        (Some(SignoffOutcome::MergedWider | SignoffOutcome::Accepted), _) => {}
        (Some(outcome), _) => return Err(SignoffError::AlreadyDecided { outcome }),
    }
    let by = folded(&decision.by);
    if by.is_empty() {
        return Err(SignoffError::NoSigner);
    }
    let note = folded(decision.note.as_deref().unwrap_or(""));
    if note.is_empty() {
        return Err(SignoffError::NoteRequired { action: decision.action });
    }
    let before = parsed.signoff().map_or_else(String::new, |before| {
        format!(" (accepted before, by {} / {})", folded(&before.by), folded(&before.date))
    });
    let outcome = decision.action.outcome();
    let values = [
        (SignoffField::Outcome, outcome.as_str().to_owned()),
        (SignoffField::ByDate, format!("{by} / {}", folded(&decision.date))),
        (outcome.note_field(), format!("{note}{before}")),
    ];
    Ok(with_values(summary, &parsed, &values, &[]))
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

fn require_acceptable(
    summary: &Summary,
    gates: Option<&GateReport>,
    overrides: &[Override],
) -> Result<(), SignoffError> {
    if !summary.has_needs_human() {
        return Err(SignoffError::NoNeedsHuman);
    }
    let gates = gates.ok_or(SignoffError::NoGateReport)?;
    let open = summary.unsettled();
    let is_overridden = |row: &&GateRow| overrides.iter().any(|given| given.row == row_name(row));
    let failed: Vec<String> = gates
        .failed_gating()
        .filter(|row| !is_overridden(row))
        .map(|row| row.check.clone())
        .collect();
    // A report that says `fail` without a failed row is not to be explained by an override.
    let is_explained = gates.overall == Overall::Pass || gates.failed_gating().next().is_some();
    if open.is_empty() && failed.is_empty() && is_explained {
        return Ok(());
    }
    Err(SignoffError::NotAcceptable { open, failed })
}

/// The name that a row is overridden by.
fn row_name(row: &GateRow) -> String {
    folded(if row.rule_id.trim().is_empty() { &row.check } else { &row.rule_id })
}

/// The overrides as they are recorded: each for a row that failed, each with a reason.
fn named_overrides(
    gates: Option<&GateReport>,
    given: &[Override],
) -> Result<Vec<Override>, SignoffError> {
    let rows: Vec<&GateRow> = gates.into_iter().flat_map(GateReport::failed_gating).collect();
    let mut named: Vec<Override> = Vec::new();
    for Override { row, reason } in given {
        let (row, reason) = (folded(row), folded(reason));
        let found =
            rows.iter().find(|failed| row_name(failed) == row || folded(&failed.check) == row);
        let Some(found) = found else {
            let failed = rows.iter().map(|failed| row_name(failed)).collect();
            return Err(SignoffError::NothingToOverride { row, failed });
        };
        if reason.is_empty() {
            return Err(SignoffError::ReasonRequired { row });
        }
        let row = row_name(found);
        if !named.iter().any(|known| known.row == row) {
            named.push(Override { row, reason });
        }
    }
    Ok(named)
}

/// The overrides that §9 records for rows of this report.
fn recorded_overrides(summary: &Summary, gates: Option<&GateReport>) -> Vec<Override> {
    let rows = gates.into_iter().flat_map(GateReport::failed_gating);
    let recorded = |row: &GateRow| {
        let row = row_name(row);
        let lines = summary.section(SIGN_OFF).into_iter().flat_map(lines);
        let mut reasons = lines.filter_map(|line| {
            let said = line.text.strip_prefix(OVERRIDE)?.trim_start().strip_prefix(row.as_str())?;
            let reason = folded(said.strip_prefix(" — ")?);
            (!reason.is_empty()).then_some(reason)
        });
        let reason = reasons.next()?;
        Some(Override { row, reason })
    };
    rows.filter_map(recorded).collect()
}

/// The text with these fields of §9 set: in every §9, should an older summary have two that agree.
fn with_values(
    text: &str,
    summary: &Summary,
    values: &[(SignoffField, String)],
    overrides: &[Override],
) -> String {
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
        for Override { row, reason } in overrides {
            added.push_str(line_end(text, outcome.end));
            for part in [OVERRIDE, " ", row, " — ", reason] {
                added.push_str(part);
            }
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
