//! The gate report: what was checked of a change, and how it came out.
//!
//! Reading is strict, because a report grants: an unknown verdict, a missing one, or an `overall`
//! that says pass beside a gating row that failed makes the whole report malformed, and a
//! malformed report counts as absent. Keys nobody knows are ignored.

mod element;
mod markdown;

use serde::{Deserialize, Serialize};

pub use element::{Element, ElementError, ElementKind};

use crate::lines::folded;

/// How many characters of evidence one row carries.
pub const EVIDENCE_MAX: usize = 120;

/// How many names of failing tests are read of one row.
const FAILING_MAX: usize = 100;

/// What the name and the oracle of a row say that checked nothing real.
const STUB: &str = "(stub)";

/// Every row of one run of the gates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateReport {
    /// The directory name of the bundle: `issue_36`.
    pub issue_dir: String,
    /// `fail` if and only if a gating row failed.
    pub overall: Overall,
    /// The sha256 of the patch that was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch_digest: Option<String>,
    /// The commit it was checked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// All eleven elements in order, several rows for one where several are configured.
    pub rows: Vec<GateRow>,
}

/// One row of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateRow {
    /// What was checked, for people.
    pub check: String,
    /// How it came out.
    pub result: GateResult,
    /// What decided it: a command, a file, a person.
    pub oracle: String,
    /// The id of the configured row; empty for an element without one.
    pub rule_id: String,
    /// One line of evidence, at most [`EVIDENCE_MAX`] characters.
    pub path_line: String,
    /// Whether a failure of this row fails the report.
    pub gating: bool,
    /// The element of the check matrix, as written: `C4`.
    pub element: String,
    /// The log, relative to the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The tests that failed, as far as the row names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// How many more failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failing_more: usize,
    /// The command that runs a red row by itself, on the same change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
    /// How long the row took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// It failed first and passed when it was run again.
    #[serde(skip_serializing_if = "is_false")]
    pub flaky: bool,
    /// It passed after its own fix command had changed the tree.
    #[serde(skip_serializing_if = "is_false")]
    pub fixed: bool,
    /// Anything else a person should know about this row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How one row came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GateResult {
    /// It holds.
    Pass,
    /// It does not hold.
    Fail,
    /// It could not be decided here; a person must.
    Unverifiable,
    /// It is decided later, by a run that cannot be skipped.
    Deferred,
    /// Nothing is configured for it.
    None,
}

/// How the report came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overall {
    /// No gating row failed.
    Pass,
    /// A gating row failed.
    Fail,
}

/// What a report was made of, so that a later reader can tell whether it still holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The sha256 of the patch.
    pub patch_digest: Option<String>,
    /// The base commit.
    pub base: Option<String>,
}

/// Why a file is no gate report.
#[derive(Debug, thiserror::Error)]
pub enum GateReportError {
    /// It is not JSON of this shape, or a verdict in it is unknown.
    #[error("not a gate report (line {line}, column {column})")]
    Malformed {
        /// Where reading stopped, from 1; 0 where the end came too early.
        line: usize,
        /// The column there.
        column: usize,
        /// What the reader said.
        #[source]
        source: serde_json::Error,
    },
    /// It has no row at all, so nothing was checked.
    #[error("the report has no rows")]
    NoRows,
    /// It claims a pass that its own rows deny.
    #[error("overall is pass, but gating row `{row}` failed")]
    Contradicts {
        /// The row that failed.
        row: String,
    },
}

impl GateReport {
    /// Reads `check-gates.json`.
    pub fn parse(bytes: &[u8]) -> Result<Self, GateReportError> {
        let raw: RawReport = serde_json::from_slice(bytes).map_err(|source| {
            GateReportError::Malformed { line: source.line(), column: source.column(), source }
        })?;
        let report = Self {
            issue_dir: raw.issue_dir,
            overall: raw.overall,
            patch_digest: raw.patch_digest,
            base: raw.base,
            rows: raw.rows.into_iter().map(GateRow::from).collect(),
        };
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

    /// The report of these rows: all eleven elements in order, each filled by its rows in the
    /// order given, or by a row that says nothing is configured. No row is ever left out.
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
            rows,
        }
    }

    /// The same report with one row more, behind the others of its element; it takes the place of
    /// the row that says nothing is configured.
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

    /// The same report in which a row does not block, with a note that says why.
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

    /// The report of a bundle closed without a change: there is nothing to verify.
    pub fn for_close(issue_dir: impl Into<String>) -> Self {
        let mut report = Self::assemble(issue_dir, Vec::new(), Provenance::default());
        for row in &mut report.rows {
            if row.element().map(Element::kind) == Some(ElementKind::Gate) {
                "N/A — close disposition (no patch to verify)".clone_into(&mut row.path_line);
            }
        }
        report
    }

    /// The report where no row is configured at all: each gate element passes, and its name says
    /// that nothing real was checked.
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

    /// Whether no row says anything about a change, as in the report of a close.
    pub fn checked_nothing(&self) -> bool {
        self.rows.iter().all(|row| row.result == GateResult::None)
    }

    /// The gating rows that failed.
    pub fn failed_gating(&self) -> impl Iterator<Item = &GateRow> {
        self.rows.iter().filter(|row| row.is_failed_gating())
    }

    /// The rows that could not be decided.
    pub fn unverifiable(&self) -> impl Iterator<Item = &GateRow> {
        self.rows.iter().filter(|row| row.result == GateResult::Unverifiable)
    }

    /// `check-gates.json`: keys in a fixed order, two spaces, a newline at the end.
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

    /// `check-gates.md`: the same as a table for people.
    pub fn to_markdown(&self) -> String {
        markdown::render(self)
    }
}

impl GateRow {
    /// The row of an element nothing is configured for.
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

    /// The element of the check matrix, where the name is one.
    pub fn element(&self) -> Option<Element> {
        self.element.parse().ok()
    }

    /// Whether the row stands in for one that is not configured: it passes and proves nothing.
    pub fn is_stub(&self) -> bool {
        self.oracle == STUB || self.check.ends_with(STUB)
    }

    /// Whether this row fails the report.
    pub fn is_failed_gating(&self) -> bool {
        self.gating && self.result == GateResult::Fail
    }

    /// The tests that failed, on one line; none where the row names none.
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

    /// The best one line there is to say why the row came out as it did.
    pub fn reason(&self) -> &str {
        [&self.path_line, &self.oracle]
            .into_iter()
            .find(|text| !text.is_empty())
            .map_or("no reason given", String::as_str)
    }
}

impl GateResult {
    /// The token in the file.
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
    /// The token in the file.
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

/// A text as evidence: one line, cut to [`EVIDENCE_MAX`] characters.
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

/// The report as older tools and ours write it.
#[derive(Debug, Deserialize)]
struct RawReport {
    #[serde(default)]
    issue_dir: String,
    overall: Overall,
    #[serde(default)]
    patch_digest: Option<String>,
    #[serde(default)]
    base: Option<String>,
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
    /// A row that does not say is gating: the strict reading of a failure.
    #[serde(default = "yes")]
    gating: bool,
    #[serde(default)]
    element: Option<String>,
    #[serde(default)]
    log: Option<String>,
    #[serde(default)]
    duration_ms: Option<u64>,
    /// How older tools give the duration.
    #[serde(default)]
    duration_secs: Option<f64>,
    #[serde(default)]
    flaky: Option<bool>,
    #[serde(default)]
    fixed: Option<bool>,
    #[serde(default)]
    note: Option<String>,
    /// Evidence for people: other tools may mean something else by these, and their report counts
    /// all the same.
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
