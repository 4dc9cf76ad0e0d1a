//! The gate report `check-gates.json`: the checks of a change and their results.
//!
//! Parsing is strict, because an acceptance relies on the report: an unknown or missing verdict, or an
//! `overall` of pass beside a failed gating row, makes the whole report malformed, and a malformed
//! report counts as absent. Unknown keys are ignored.

mod element;
mod markdown;

use serde::{Deserialize, Serialize};

pub use element::{Element, ElementError, ElementKind};

use crate::lines::folded;

/// The most characters of evidence in one row.
pub const EVIDENCE_MAX: usize = 120;

/// The most names of failing tests that are read from one row.
const FAILING_MAX: usize = 100;

/// The mark in the name and the oracle of a row that checked nothing.
const STUB: &str = "(stub)";

/// The result of one run of the gates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateReport {
    /// The directory name of the bundle: `issue_36`.
    pub issue_dir: String,
    /// `fail` if and only if a gating row failed.
    pub overall: Overall,
    /// The sha256 of the patch that was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_digest: Option<String>,
    /// The commit that the patch was applied to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The sha256 of the brief when Check began; absent in reports of earlier versions and of other tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brief_digest: Option<String>,
    /// The rows in the order of [`Element::ALL`]; at least one per element in our own reports.
    pub rows: Vec<GateRow>,
}

/// One row of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateRow {
    /// The name of the check, for people.
    pub check: String,
    /// The verdict.
    pub result: GateResult,
    /// The source of the verdict: a command, a file, a person.
    pub oracle: String,
    /// The id of the configured row; empty if nothing is configured for the element.
    pub rule_id: String,
    /// One line of evidence, at most [`EVIDENCE_MAX`] characters.
    pub path_line: String,
    /// If true, a failure of this row fails the report.
    pub gating: bool,
    /// The element of the check matrix as written, such as `C4`.
    pub element: String,
    /// The path of the log, relative to the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The names of failed tests, as far as they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// The number of failed tests that `failing` does not name.
    #[serde(skip_serializing_if = "is_zero")]
    pub failing_more: usize,
    /// The command that runs a failed row by itself on the same change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
    /// The duration of the check in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The check failed, then passed when it was run again.
    #[serde(skip_serializing_if = "is_false")]
    pub flaky: bool,
    /// The check passed after its own fix command changed the tree.
    #[serde(skip_serializing_if = "is_false")]
    pub fixed: bool,
    /// A remark for people, such as the reason a failed row does not block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The verdict of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GateResult {
    /// The check passed.
    Pass,
    /// The check failed.
    Fail,
    /// The check could not be decided here; a person has to.
    Unverifiable,
    /// The check is decided later, by a run that cannot be skipped.
    Deferred,
    /// Nothing is configured for the element.
    None,
}

/// The verdict of the whole report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Overall {
    /// No gating row failed.
    Pass,
    /// At least one gating row failed.
    Fail,
}

/// The inputs of a run of the gates, by which a later reader can tell whether the report still holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The sha256 of the patch that was checked.
    pub patch_digest: Option<String>,
    /// The commit that the patch was applied to.
    pub base: Option<String>,
}

/// The error of parsing a gate report.
#[derive(Debug, thiserror::Error)]
pub enum GateReportError {
    /// The file is not JSON of this shape, or it has an unknown verdict.
    #[error("not a gate report (line {line}, column {column})")]
    Malformed {
        /// The line at which parsing failed, from 1; 0 if serde reports none.
        line: usize,
        /// The column at which parsing failed.
        column: usize,
        /// The error of the JSON parser.
        #[source]
        source: serde_json::Error,
    },
    /// The report has no rows, so nothing was checked.
    #[error("the report has no rows")]
    NoRows,
    /// `overall` is pass although a gating row failed.
    #[error("overall is pass, but gating row `{row}` failed")]
    Contradicts {
        /// The name of the failed check.
        row: String,
    },
}

impl GateReport {
    /// Parses and validates `check-gates.json`.
    pub fn parse(bytes: &[u8]) -> Result<Self, GateReportError> {
        let raw: RawReport = serde_json::from_slice(bytes).map_err(|source| {
            GateReportError::Malformed { line: source.line(), column: source.column(), source }
        })?;
        let report = Self {
            issue_dir: raw.issue_dir,
            overall: raw.overall,
            patch_digest: raw.patch_digest,
            base: raw.base,
            brief_digest: raw.brief_digest,
            rows: raw.rows.into_iter().map(GateRow::from).collect(),
        };
        // A report without rows would pass although nothing was checked.
        if report.rows.is_empty() {
            return Err(GateReportError::NoRows);
        }
        if report.overall == Overall::Pass
            && let Some(row) = report.failed_gating().next()
        {
            return Err(GateReportError::Contradicts { row: row.check.clone() });
        }
        Ok(report)
    }

    /// Makes a report of these rows, sorted by element. An element without rows gets one that says
    /// that nothing is configured.
    pub fn assemble(
        issue_dir: impl Into<String>,
        rows: Vec<(Element, GateRow)>,
        provenance: Provenance,
    ) -> Self {
        let mut by_element: Vec<Vec<GateRow>> = Element::ALL.iter().map(|_| Vec::new()).collect();
        for (element, row) in rows {
            by_element[element.index()].push(GateRow {
                element: element.as_str().to_owned(),
                path_line: evidence(&row.path_line),
                ..row
            });
        }
        let rows: Vec<GateRow> = Element::ALL
            .iter()
            .zip(by_element)
            .flat_map(
                |(element, rows)| {
                    if rows.is_empty() { vec![GateRow::none(*element)] } else { rows }
                },
            )
            .collect();
        let overall =
            if rows.iter().any(GateRow::is_failed_gating) { Overall::Fail } else { Overall::Pass };
        Self {
            issue_dir: issue_dir.into(),
            overall,
            patch_digest: provenance.patch_digest,
            base: provenance.base,
            brief_digest: None,
            rows,
        }
    }

    /// Adds a row after the others of its element. It replaces a row that says that nothing is
    /// configured.
    #[must_use]
    pub fn with_row(mut self, element: Element, row: GateRow) -> Self {
        let row = GateRow {
            element: element.as_str().to_owned(),
            path_line: evidence(&row.path_line),
            ..row
        };
        if row.is_failed_gating() {
            self.overall = Overall::Fail;
        }
        self.rows.retain(|other| *other != GateRow::none(element));
        let is_later = |other: &GateRow| other.element().is_none_or(|other| other > element);
        let at = self.rows.iter().position(is_later).unwrap_or(self.rows.len());
        self.rows.insert(at, row);
        self
    }

    /// Makes the rows of one rule advisory, with a note that says why they do not block.
    #[must_use]
    pub fn with_pardon(mut self, rule_id: &str, why: &str) -> Self {
        for row in self.rows.iter_mut().filter(|row| row.rule_id == rule_id) {
            row.gating = false;
            let said = row.note.take().map_or_else(String::new, |note| format!("{note}; "));
            row.note = Some(format!("{said}{why}"));
        }
        let is_red = self.rows.iter().any(GateRow::is_failed_gating);
        self.overall = if is_red { Overall::Fail } else { Overall::Pass };
        self
    }

    /// Makes the report of a bundle that is closed without a change: there is nothing to verify.
    pub fn for_close(issue_dir: impl Into<String>) -> Self {
        let mut report = Self::assemble(issue_dir, Vec::new(), Provenance::default());
        for row in &mut report.rows {
            if row.element().map(Element::kind) == Some(ElementKind::Gate) {
                "N/A — close disposition (no patch to verify)".clone_into(&mut row.path_line);
            }
        }
        report
    }

    /// Makes the report of a workspace without any configured row: each gate element passes as a
    /// stub, whose name says that nothing real was checked.
    pub fn stub(issue_dir: impl Into<String>, provenance: Provenance) -> Self {
        let rows = Element::ALL
            .iter()
            .filter(|element| element.kind() == ElementKind::Gate)
            .map(|element| {
                let row = GateRow {
                    check: format!("{} {STUB}", element.title()),
                    result: GateResult::Pass,
                    oracle: STUB.to_owned(),
                    path_line: "nothing real was checked: no row is configured".to_owned(),
                    ..GateRow::none(*element)
                };
                (*element, row)
            })
            .collect();
        Self::assemble(issue_dir, rows, provenance)
    }

    /// Returns true if no row has a verdict, as in the report of a close.
    pub fn checked_nothing(&self) -> bool {
        self.rows.iter().all(|row| row.result == GateResult::None)
    }

    /// Iterates over the gating rows that failed.
    pub fn failed_gating(&self) -> impl Iterator<Item = &GateRow> {
        self.rows.iter().filter(|row| row.is_failed_gating())
    }

    /// Iterates over the rows that could not be decided.
    pub fn unverifiable(&self) -> impl Iterator<Item = &GateRow> {
        self.rows.iter().filter(|row| row.result == GateResult::Unverifiable)
    }

    /// Renders `check-gates.json`: keys in a fixed order, two spaces, a newline at the end.
    #[expect(
        clippy::missing_panics_doc,
        reason = "strings, numbers and booleans always have a JSON form"
    )]
    pub fn to_json(&self) -> String {
        let mut json = serde_json::to_string_pretty(self)
            .expect("a report is strings, numbers and booleans, which JSON can hold");
        json.push('\n');
        json
    }

    /// Renders `check-gates.md`: the report as a table for people.
    pub fn to_markdown(&self) -> String {
        markdown::render(self)
    }
}

impl GateRow {
    /// The row of an element for which nothing is configured.
    pub fn none(element: Element) -> Self {
        Self {
            check: element.title().to_owned(),
            result: GateResult::None,
            oracle: element.default_oracle().to_owned(),
            rule_id: String::new(),
            path_line: String::new(),
            gating: false,
            element: element.as_str().to_owned(),
            log: None,
            failing: Vec::new(),
            failing_more: 0,
            reproduce: None,
            duration_ms: None,
            flaky: false,
            fixed: false,
            note: None,
        }
    }

    /// Parses the name in the field `element`; `None` if it is not an element.
    pub fn element(&self) -> Option<Element> {
        self.element.parse().ok()
    }

    /// Returns true for a row of [`GateReport::stub`]: it passes and proves nothing.
    pub fn is_stub(&self) -> bool {
        self.oracle == STUB || self.check.ends_with(STUB)
    }

    /// Returns true if this row fails the report.
    pub fn is_failed_gating(&self) -> bool {
        self.gating && self.result == GateResult::Fail
    }

    /// The failed tests on one line; `None` if the row names none.
    pub fn failing_tests(&self) -> Option<String> {
        if self.failing.is_empty() {
            return None;
        }
        let more = match self.failing_more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("{}{more}", self.failing.join(", ")))
    }

    /// One line that explains the verdict: the evidence, else the oracle.
    pub fn reason(&self) -> &str {
        [&self.path_line, &self.oracle]
            .into_iter()
            .find(|text| !text.is_empty())
            .map_or("no reason given", String::as_str)
    }
}

impl GateResult {
    /// The value in `check-gates.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            GateResult::Pass => "pass",
            GateResult::Fail => "fail",
            GateResult::Unverifiable => "unverifiable",
            GateResult::Deferred => "deferred",
            GateResult::None => "none",
        }
    }
}

impl Overall {
    /// The value in `check-gates.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Overall::Pass => "pass",
            Overall::Fail => "fail",
        }
    }
}

impl std::fmt::Display for GateResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::fmt::Display for Overall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Joins a text into one line of evidence, cut to [`EVIDENCE_MAX`] characters.
pub fn evidence(text: &str) -> String {
    let line = folded(text);
    if line.chars().nth(EVIDENCE_MAX).is_none() {
        return line;
    }
    let mut cut: String = line.chars().take(EVIDENCE_MAX - 1).collect();
    cut.push('…');
    cut
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The lenient form that also accepts what older tools write.
#[derive(Debug, Deserialize)]
struct RawReport {
    #[serde(default)]
    issue_dir: String,
    overall: Overall,
    #[serde(default)]
    patch_digest: Option<String>,
    #[serde(default)]
    base: Option<String>,
    #[serde(default)]
    brief_digest: Option<String>,
    rows: Vec<RawRow>,
}

#[derive(Debug, Deserialize)]
struct RawRow {
    check: String,
    result: GateResult,
    #[serde(default)]
    oracle: Option<String>,
    #[serde(default)]
    rule_id: Option<String>,
    #[serde(default)]
    path_line: Option<String>,
    // The strict reading: a failed row without the key blocks.
    #[serde(default = "yes")]
    gating: bool,
    #[serde(default)]
    element: Option<String>,
    #[serde(default)]
    log: Option<String>,
    #[serde(default)]
    duration_ms: Option<u64>,
    // Older tools write seconds.
    #[serde(default)]
    duration_secs: Option<f64>,
    #[serde(default)]
    flaky: Option<bool>,
    #[serde(default)]
    fixed: Option<bool>,
    #[serde(default)]
    note: Option<String>,
    // Other tools may use these keys for values of another type. They are only evidence, so a value
    // of the wrong type is dropped and does not make the report malformed.
    #[serde(default)]
    failing: serde_json::Value,
    #[serde(default)]
    failing_more: serde_json::Value,
    #[serde(default)]
    reproduce: serde_json::Value,
}

fn yes() -> bool {
    true
}

impl From<RawRow> for GateRow {
    fn from(raw: RawRow) -> Self {
        let from_secs = || {
            let duration = std::time::Duration::try_from_secs_f64(raw.duration_secs?).ok()?;
            u64::try_from(duration.as_millis()).ok()
        };
        let names = raw.failing.as_array().into_iter().flatten().take(FAILING_MAX);
        let more = raw.failing_more.as_u64();
        Self {
            duration_ms: raw.duration_ms.or_else(from_secs),
            check: raw.check,
            result: raw.result,
            oracle: raw.oracle.unwrap_or_default(),
            rule_id: raw.rule_id.unwrap_or_default(),
            path_line: raw.path_line.unwrap_or_default(),
            gating: raw.gating,
            element: raw.element.unwrap_or_default(),
            log: raw.log,
            failing: names.filter_map(|name| name.as_str().map(evidence)).collect(),
            failing_more: more.and_then(|more| usize::try_from(more).ok()).unwrap_or_default(),
            reproduce: raw.reproduce.as_str().map(ToOwned::to_owned),
            flaky: raw.flaky.unwrap_or(false),
            fixed: raw.fixed.unwrap_or(false),
            note: raw.note,
        }
    }
}

#[cfg(test)]
mod tests;
