//! The sign-off: a person's decision, and recording it in §9 of the summary.

use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::gates::{GateReport, GateRow, Overall};
use crate::lines::{folded, lines};
use crate::summary::{SIGN_OFF, SignoffField, Summary, SummaryFlaw, is_undecided_with_reason};

/// Prefix of the lines of §9 that name a failed row which was accepted all the same.
const OVERRIDE: &str = "- Gate overridden:";

/// The outcome in §9 of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SignoffOutcome {
    /// Accepted, in the spelling that this crate records.
    #[serde(rename = "merged-wider")]
    MergedWider,
    /// Accepted, in the spelling of some older summaries.
    #[serde(rename = "accepted")]
    Accepted,
    /// Sent back to be built again from the same brief.
    #[serde(rename = "iterated-to-Do")]
    IteratedToDo,
    /// Sent back to be planned again.
    #[serde(rename = "iterated-to-Plan")]
    IteratedToPlan,
    /// Given up; the bundle stays as it is.
    #[serde(rename = "discontinued")]
    Discontinued,
}

/// The choices of a person at sign-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SignoffAction {
    /// Accept the change and freeze the bundle.
    Accept,
    /// Build again from the same brief.
    IterateDo,
    /// Plan again.
    IteratePlan,
    /// Give up the bundle.
    Discontinue,
}

/// A decision for [`record`] or [`overrule`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignoffDecision {
    /// The choice that was made.
    pub action: SignoffAction,
    /// The name of the person; must not be empty.
    pub by: String,
    /// The date in the form to be written, such as `2026-11-16`.
    pub date: String,
    /// The reason; line ends become spaces. Required by all but an acceptance.
    pub note: Option<String>,
    /// Failed gating rows to accept all the same; ignored unless the action is accept.
    pub overrides: Vec<Override>,
}

/// A failed gating row that a person accepts all the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// The rule id of the row, or its check name if it has none.
    pub row: String,
    /// The reason the failure does not count; must not be empty.
    pub reason: String,
}

/// A valid acceptance, returned only by [`require_accepted`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The name of the person who accepted.
    pub by: String,
    /// The date as written in §9.
    pub date: String,
    /// The failed rows that were accepted all the same.
    pub overrides: Vec<Override>,
}

/// The error of recording or checking a decision. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignoffError {
    /// The summary has no outcome line in §9, or more than one.
    #[error("the summary cannot be signed")]
    Unrecordable {
        /// The flaw of the summary.
        #[source]
        flaw: SummaryFlaw,
    },
    /// §9 has an outcome already.
    #[error("already decided: {outcome}")]
    AlreadyDecided {
        /// The recorded outcome.
        outcome: SignoffOutcome,
    },
    /// The outcome in §9 is not an acceptance.
    #[error("§9 does not say that it was accepted")]
    NotAccepted,
    /// The decision has no name.
    #[error("no sign-off author")]
    NoSigner,
    /// An override has no reason.
    #[error("overriding `{row}` needs a reason")]
    ReasonRequired {
        /// The row to override.
        row: String,
    },
    /// An override names a row that is not a failed gating row.
    #[error("`{row}` is not a failed gating row")]
    NothingToOverride {
        /// The row as given.
        row: String,
        /// The failed gating rows, by the name to override them with.
        failed: Vec<String>,
    },
    /// The action requires a note.
    #[error("{action} needs a note")]
    NoteRequired {
        /// The action that was chosen.
        action: SignoffAction,
    },
    /// The summary has no §6, so it cannot show that no decision is open.
    #[error("the summary has no `## 6. NEEDS-HUMAN` section")]
    NoNeedsHuman,
    /// There is no valid gate report, so it is unknown if a gate failed.
    #[error("there is no valid gate report")]
    NoGateReport,
    /// Gating rows have no verdict, and nothing on record says why the change is accepted all the same.
    #[error("no verdict of {}, and no reason on record to accept without one", rows.join(", "))]
    Undecided {
        /// The rows, by name.
        rows: Vec<String>,
    },
    /// Open items or failed gating rows prevent an acceptance.
    #[error("{} open in §6, {} gating rows failed", open.len(), failed.len())]
    NotAcceptable {
        /// The lines of §6 that are not ticked, as written.
        open: Vec<String>,
        /// The failed gating rows, by name.
        failed: Vec<String>,
    },
}

impl SignoffOutcome {
    /// Every outcome that §9 may have.
    pub const ALL: [SignoffOutcome; 5] = [
        SignoffOutcome::MergedWider,
        SignoffOutcome::Accepted,
        SignoffOutcome::IteratedToDo,
        SignoffOutcome::IteratedToPlan,
        SignoffOutcome::Discontinued,
    ];

    /// The spelling in §9.
    pub fn as_str(self) -> &'static str {
        match self {
            SignoffOutcome::MergedWider => "merged-wider",
            SignoffOutcome::Accepted => "accepted",
            SignoffOutcome::IteratedToDo => "iterated-to-Do",
            SignoffOutcome::IteratedToPlan => "iterated-to-Plan",
            SignoffOutcome::Discontinued => "discontinued",
        }
    }

    /// The field of §9 that holds the note for this outcome.
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

/// The error of parsing a [`SignoffOutcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a known outcome")]
pub struct UnknownOutcome;

impl std::fmt::Display for SignoffOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl SignoffAction {
    /// Every action, in the order they are offered.
    pub const ALL: [SignoffAction; 4] = [
        SignoffAction::Accept,
        SignoffAction::IterateDo,
        SignoffAction::IteratePlan,
        SignoffAction::Discontinue,
    ];

    /// The outcome that the action records.
    pub fn outcome(self) -> SignoffOutcome {
        match self {
            SignoffAction::Accept => SignoffOutcome::MergedWider,
            SignoffAction::IterateDo => SignoffOutcome::IteratedToDo,
            SignoffAction::IteratePlan => SignoffOutcome::IteratedToPlan,
            SignoffAction::Discontinue => SignoffOutcome::Discontinued,
        }
    }

    /// The name on the command line.
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

/// Returns the summary with the decision recorded in §9.
///
/// Only the fields of §9 change; every other byte stays. A field that §9 lacks is added below its
/// outcome. An acceptance is refused while §6 has open items, while a gating row failed without an
/// override, while one has no verdict and neither the note nor its item of §6 gives a reason, or without a
/// valid gate report.
pub fn record(
    summary: &str,
    gates: Option<&GateReport>,
    decision: &SignoffDecision,
) -> Result<String, SignoffError> {
    let parsed = Summary::parse(summary);
    require_recordable(&parsed)?;
    // Name, date and note become one line each: a line end in them would add a line to §9, and with
    // it a field or an override.
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
        SignoffAction::Accept => require_acceptable(&parsed, gates, &overrides, &note)?,
        SignoffAction::Discontinue if note.is_empty() => {
            return Err(SignoffError::NoteRequired { action: decision.action });
        }
        // A reason that was written into §9 by hand stays there, and is one.
        SignoffAction::IterateDo | SignoffAction::IteratePlan
            if note.is_empty() && parsed.iteration_delta().trim().is_empty() =>
        {
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

/// Returns the acceptance that a summary records, after checking it against the rules of [`record`].
///
/// Sealing relies on this: a summary that merely says `merged-wider` is not an acceptance. It needs a
/// signer, no open item in §6, and a gate report in which every failed gating row is overridden.
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
    // A line `- By / date: / 2026-11-16` has a date and no name.
    if by.is_empty() || by.starts_with('/') {
        return Err(SignoffError::NoSigner);
    }
    let overrides = recorded_overrides(&parsed, gates);
    // The same rules as when it was recorded: the summary is a file, and what it says may have been
    // written by hand since.
    require_acceptable(&parsed, gates, &overrides, recorded.note.as_deref().unwrap_or(""))?;
    Ok(Accepted { by, date: folded(&recorded.date), overrides })
}

/// Returns the summary with its acceptance replaced by another decision.
///
/// For an accepted change that has not landed. The note keeps the name of the person who accepted.
pub fn overrule(summary: &str, decision: &SignoffDecision) -> Result<String, SignoffError> {
    let parsed = Summary::parse(summary);
    if let Some(flaw) = parsed.unrecordable() {
        return Err(SignoffError::Unrecordable { flaw: flaw.clone() });
    }
    match (parsed.outcome(), decision.action) {
        (Some(SignoffOutcome::MergedWider | SignoffOutcome::Accepted), SignoffAction::Accept)
        | (None, _) => {
            // `record` refuses an acceptance here: of a decided summary because it is decided, and
            // of an undecided one because there is no gate report.
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
    note: &str,
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
    // A report of another tool may say `fail` without a failed row. No override can explain that.
    let is_explained = gates.overall == Overall::Pass || gates.failed_gating().next().is_some();
    if !open.is_empty() || !failed.is_empty() || !is_explained {
        return Err(SignoffError::NotAcceptable { open, failed });
    }
    let rows = undecided(summary, gates, note);
    if rows.is_empty() { Ok(()) } else { Err(SignoffError::Undecided { rows }) }
}

/// Returns the gating rows without a verdict that are accepted without a reason. A tick alone is none: a gate that
/// the change itself killed looks like one that the host killed.
fn undecided(summary: &Summary, gates: &GateReport, note: &str) -> Vec<String> {
    if !note.trim().is_empty() {
        return Vec::new();
    }
    let has_reason = |row: &&GateRow| {
        summary.cleared_items().iter().any(|line| is_undecided_with_reason(line, row))
    };
    let rows = gates.unverifiable().filter(|row| row.gating && !has_reason(row));
    rows.map(|row| row.check.clone()).collect()
}

/// The name to override a row with: its rule id, else its check.
fn row_name(row: &GateRow) -> String {
    folded(if row.rule_id.trim().is_empty() { &row.check } else { &row.rule_id })
}

/// Validates overrides: each must name a failed gating row and have a reason.
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

/// Reads back the overrides that §9 records for failed rows of this report.
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

/// Sets fields of §9. An older summary may have two §9 that agree; both are changed.
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
        // Without an outcome line this is not the section that grants; see `Summary::unrecordable`.
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
    // The sort is stable and must be: where the outcome is empty, its value and the lines that are
    // added below it have the same place, and the value was pushed first.
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

/// The line end at offset `at`; a line feed if the text ends there.
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
