//! Writes `SUMMARY.md` from the other artifacts of a bundle.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::{NOTHING_OPEN, STANDING_INTRODUCTION, SignoffField, heading, quoting};
use crate::BundleId;
use crate::brief::{Brief, Label};
use crate::gates::{Element, ElementKind, GateReport, GateResult, GateRow};
use crate::lines::folded;
use crate::review::{MissingReview, Review, declared_dependencies, is_standing_text};
use crate::state::State;

/// The item of §6 about a brief that was edited after Do.
const BRIEF_EDITED: &str = "the brief was edited after Do: the builder worked from another one; decide whether the change serves this one";

/// The inputs of [`assemble()`].
#[derive(Debug, Clone)]
pub struct SummaryInputs<'a> {
    /// The id of the bundle.
    pub id: &'a BundleId,
    /// The parsed `brief.md`.
    pub brief: &'a Brief,
    /// The parsed `check-gates.json`.
    pub gates: &'a GateReport,
    /// The text of `check-review.md`, if there is one.
    pub review: Option<&'a str>,
    /// The reason there is no review; used only if `review` is `None`.
    pub missing_review: MissingReview,
    /// The text of `check-advisory-<id>.md` of each adviser.
    pub advisories: &'a [Advisory<'a>],
    /// The text of `build-notes.md`. Only the dependencies that it declares are shown.
    pub build_notes: Option<&'a str>,
    /// The family of models that builder and reviewer are both of; `None` if they differ or name none.
    pub one_family: Option<&'a str>,
    /// The disposition of a bundle that was closed without builder and reviewer.
    pub close_disposition: Option<&'a str>,
    /// External dependencies that a configured check covers; they need no confirmation.
    pub covered_dependencies: &'a [String],
    /// One line about the conflict of an earlier, accepted attempt and its resolution.
    pub resolution: Option<&'a str>,
    /// A description of the results that the change is based on; `None` if it is the branch alone.
    pub stands_on: Option<&'a str>,
    /// Predicted conflicts with other bundles, one line each.
    pub forecast_conflicts: &'a [String],
    /// Changed paths that decide how changes are judged: gate scripts, CI, the `pdca` configuration.
    pub protected: &'a [String],
    /// Build products that the builder left, each with what became of it.
    pub products: &'a [String],
    /// Findings of earlier rounds and of reviews of the brief, one line each.
    pub carried: &'a [String],
    /// The files that ship with an acceptance.
    pub attachments: &'a [String],
    /// The draft of the comment for the tracker; `None` if nothing is to be posted.
    pub tracker_comment: Option<&'a str>,
    /// The question about a change that is larger than it was meant to be.
    pub size: Option<&'a str>,
    /// True if the builder was given a brief that asks for something else.
    pub brief_edited: bool,
    /// The cost of the leaves so far, in words; `None` if nothing is known of it.
    pub cost: Option<&'a str>,
    /// Hints for the next review of the process, one line each.
    pub act_candidates: &'a [String],
}

/// The review of one adviser.
#[derive(Debug, Clone, Copy)]
pub struct Advisory<'a> {
    /// The id in the file name.
    pub id: &'a str,
    /// The content of the file.
    pub text: &'a str,
}

/// The items that a person must decide before sign-off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeedsHuman {
    /// The findings in order, without duplicates.
    pub findings: Vec<String>,
    /// The validation question that is asked of every bundle.
    pub standing: Option<String>,
}

const NO_VERDICT: &str = "the review has no verdict that could be read";
/// The basis of the standing question if the review gives none.
const NOT_RAISED: &str = "the review did not raise it; is this what the people who use it want?";

impl<'a> SummaryInputs<'a> {
    /// Makes inputs with the required parts; the others are empty.
    pub fn new(id: &'a BundleId, brief: &'a Brief, gates: &'a GateReport) -> Self {
        Self {
            id,
            brief,
            gates,
            review: None,
            missing_review: MissingReview::NotRun,
            advisories: &[],
            build_notes: None,
            one_family: None,
            close_disposition: None,
            covered_dependencies: &[],
            resolution: None,
            stands_on: None,
            forecast_conflicts: &[],
            protected: &[],
            products: &[],
            carried: &[],
            attachments: &[],
            tracker_comment: None,
            size: None,
            brief_edited: false,
            cost: None,
            act_candidates: &[],
        }
    }

    fn review(&self) -> Option<&'a str> {
        self.review.filter(|text| !Review::is_blank(text))
    }

    /// Collects the boxes of §6: a resolved conflict, failed gating rows, undecided and flaky rows, protected
    /// paths, the size, items of reviewer and advisers, a missing review, external dependencies, carried
    /// findings, predicted conflicts, and the standing question.
    pub fn needs_human(&self) -> NeedsHuman {
        let mut items = NeedsHuman::default();
        let mut texts: Vec<String> = Vec::new();
        // First, because an acceptance of an earlier attempt was for another change than this one.
        texts.extend(self.resolution.map(|said| format!("resolved conflict: {said}")));
        texts.extend(self.gates.failed_gating().map(|row| row_item(row, "FAILED (gating)")));
        texts.extend(self.gates.unverifiable().map(|row| row_item(row, UNDECIDED)));
        texts.extend(self.gates.rows.iter().filter(|row| row.flaky).map(flaky_item));
        texts.extend(self.protected.iter().map(|path| protected_item(path)));
        texts.extend(self.size.map(str::to_owned));
        texts.extend(self.brief_edited.then(|| BRIEF_EDITED.to_owned()));
        if let Some(text) = self.review() {
            let review = Review::parse(text);
            texts.extend(review.findings().map(str::to_owned));
            if !review.has_verdict() {
                texts.push(NO_VERDICT.to_owned());
            }
            items.standing = review.standing().map(str::to_owned);
            if !review.raises_validation() && self.close_disposition.is_none() {
                items.standing = Some(format!("{} — {NOT_RAISED}", Element::V.title()));
            }
        } else if self.close_disposition.is_none() {
            let missing = match self.review {
                Some(_) => MissingReview::Empty,
                None => self.missing_review,
            };
            texts.push(missing.item().to_owned());
        }
        for advisory in self.advisories {
            texts.extend(Review::parse(advisory.text).items);
        }
        texts.extend(self.dependency_items());
        texts.extend(self.carried.iter().cloned());
        texts.extend(self.forecast_conflicts.iter().cloned());
        let mut seen = HashSet::new();
        for text in texts {
            let text = finding(&text);
            if !text.is_empty() && seen.insert(text.to_lowercase()) {
                items.findings.push(text);
            }
        }
        items
    }

    fn dependency_items(&self) -> Vec<String> {
        let mut items: Vec<String> = self
            .brief
            .external_dependencies()
            .into_iter()
            .filter(|token| !self.covered_dependencies.contains(token))
            .map(|token| {
                format!("external dependency: `{token}` (from the brief; no check covers it)")
            })
            .collect();
        items.extend(self.build_notes.map(declared_dependencies).into_iter().flatten());
        items
    }
}

/// The word for a row without a verdict in its §6 item.
const UNDECIDED: &str = "unverifiable";

/// The text of the §6 item about a row.
fn row_item(row: &GateRow, word: &str) -> String {
    format!("{} {word} — {}", row.check, row.reason())
}

/// Returns true if a ticked line of §6 is the item about this row without a verdict, and says more than the item did:
/// the reason why it was ticked.
pub(crate) fn is_undecided_with_reason(line: &str, row: &GateRow) -> bool {
    let inline = |text: &str| quoting::inline(&finding(text));
    let item = line.split_once(']').map_or("", |(_, item)| item.trim());
    let (stem, whole) = (format!("{} {UNDECIDED}", row.check), row_item(row, UNDECIDED));
    item.starts_with(&inline(&stem)) && item != inline(&whole)
}

/// The text of the §6 item about a row that failed and then passed.
fn flaky_item(row: &GateRow) -> String {
    let log = row.log.as_ref().map_or_else(String::new, |log| format!(" (`{log}`)"));
    let check = &row.check;
    format!(
        "{check} is flaky — it failed, then passed when it was run again{log}; is the pass to be trusted?"
    )
}

/// The text of the §6 item about a protected path that the change writes.
pub fn protected_item(path: &str) -> String {
    format!("protected path: `{path}` (it decides how changes are judged)")
}

/// Makes one line of a finding, and prefixes it if it could pass for the standing question.
fn finding(text: &str) -> String {
    let text = folded(text);
    if is_standing_text(&text) {
        return format!("Finding: {text}");
    }
    text
}

/// Renders `SUMMARY.md` with an empty §9.
///
/// Quoted text is escaped: it cannot open a section, be a box or sign off.
pub fn assemble(inputs: &SummaryInputs<'_>) -> String {
    let mut out = String::new();
    let slug = quoting::inline(&inputs.brief.slug().unwrap_or_default());
    line(&mut out, format_args!("# Result — issue {} / {slug}", inputs.id));
    spec(&mut out, inputs.brief);
    disposition(&mut out, inputs);
    gate_rows(&mut out, inputs.gates);
    advice(&mut out, inputs);
    boxes(&mut out, &inputs.needs_human());
    proof(&mut out, inputs);
    open(&mut out, 8);
    list(&mut out, inputs.attachments, "(none)");
    if let Some(comment) = inputs.tracker_comment {
        out.push_str(&super::tracker::draft(comment));
    }
    open(&mut out, 9);
    for field in SignoffField::ALL {
        line(&mut out, format_args!("{}", field.prefix()));
    }
    open(&mut out, 10);
    list(&mut out, inputs.act_candidates, "(empty is the common case)");
    out
}

/// Renders the summary of a bundle that is given up before it has one: all sections, without claims.
pub fn given_up(id: &BundleId, brief: Option<&Brief>, state: State) -> String {
    let mut out = String::new();
    let nothing = Brief::default();
    let brief = brief.unwrap_or(&nothing);
    let slug = quoting::inline(&brief.slug().unwrap_or_default());
    line(&mut out, format_args!("# Result — issue {id} / {slug}"));
    spec(&mut out, brief);
    for section in 2..=8 {
        open(&mut out, section);
        line(&mut out, format_args!("(not reached: it was {state} when it was given up)"));
    }
    open(&mut out, 9);
    for field in SignoffField::ALL {
        line(&mut out, format_args!("{}", field.prefix()));
    }
    open(&mut out, 10);
    line(&mut out, format_args!("(empty is the common case)"));
    out
}

/// §1: the request.
fn spec(out: &mut String, brief: &Brief) {
    open(out, 1);
    for (title, label) in [
        ("Defect / goal", Label::Defect),
        ("Success criterion", Label::SuccessCriterion),
        ("Repo + branch target", Label::RepoTarget),
        ("Scope (one logical fix) / out of scope", Label::Scope),
    ] {
        let value = brief.known(label).map(|field| quoting::list_value(&field.whole()));
        let value = value.as_deref().unwrap_or(" (not given)");
        line(out, format_args!("- {title}:{value}"));
    }
}

/// §2: the disposition that Plan expected.
fn disposition(out: &mut String, inputs: &SummaryInputs<'_>) {
    open(out, 2);
    let hint = inputs.brief.disposition_hint().map(quoting::inline);
    let hint = hint.as_deref().unwrap_or("(none)");
    line(out, format_args!("- Hint of the brief: {hint}"));
    if let Some(close) = inputs.close_disposition {
        let close = quoting::inline(close);
        line(out, format_args!("- Closed without a change: {close}"));
    }
    if let Some(said) = inputs.resolution.map(quoting::inline) {
        line(out, format_args!("- Resolved conflict: {said}"));
    }
    if let Some(said) = inputs.stands_on.map(quoting::inline) {
        line(out, format_args!("- Stands on: {said}"));
    }
}

/// §3 and §4: every row of the report except validation.
fn gate_rows(out: &mut String, gates: &GateReport) {
    let is_stack = |row: &GateRow| row.element.starts_with('T');
    let is_validation = |row: &GateRow| row.element() == Some(Element::V);
    open(out, 3);
    for row in gates.rows.iter().filter(|row| !is_stack(row) && !is_validation(row)) {
        gate_row(out, row);
    }
    open(out, 4);
    for row in gates.rows.iter().filter(|row| is_stack(row)) {
        gate_row(out, row);
    }
    line(out, format_args!("- T5 judgment: → see §5."));
}

fn gate_row(out: &mut String, row: &GateRow) {
    let mut text = format!("- {}: {}", folded(&row.check), row.result);
    for (is_set, word) in [(row.flaky, "flaky"), (row.fixed, "fixed by its own command")] {
        if is_set {
            text.push_str(", ");
            text.push_str(word);
        }
    }
    text.push_str(" — ");
    text.push_str(&folded(row.reason()));
    // For a failed row that does not block, the note is the reason.
    if let Some(note) = row.note.as_ref().filter(|_| row.result == GateResult::Fail && !row.gating)
    {
        text.push_str(" (");
        text.push_str(&folded(note));
        text.push(')');
    }
    line(out, format_args!("{}", quoting::inert(&text)));
    if row.result != GateResult::Fail {
        return;
    }
    let log = row.log.as_ref().map(|log| format!("`{log}`"));
    let again = row.reproduce.as_ref().map(|command| format!("`{command}`"));
    for (what, value) in [("failing", row.failing_tests()), ("log", log), ("again", again)] {
        if let Some(value) = value {
            let text = format!("  - {what}: {}", folded(&value));
            line(out, format_args!("{}", quoting::inert(&text)));
        }
    }
}

/// §5: the texts of the reviewer and the advisers.
fn advice(out: &mut String, inputs: &SummaryInputs<'_>) {
    open(out, 5);
    match (inputs.review(), inputs.close_disposition) {
        (Some(text), _) => {
            if let Some(family) = inputs.one_family.map(quoting::inline) {
                line(
                    out,
                    format_args!(
                        "Builder and reviewer are of one family ({family}): they may miss the same things."
                    ),
                );
            }
            line(out, format_args!("The reviewer was not given build-notes.md. It wrote:\n"));
            out.push_str(&quoting::block(text));
        }
        (None, Some(_)) => line(out, format_args!("No review: nothing was built to be reviewed.")),
        (None, None) => line(out, format_args!("No review exists.")),
    }
    for advisory in inputs.advisories {
        let id = quoting::inline(advisory.id);
        line(out, format_args!("\n### Advisory — {id}\n"));
        out.push_str(&quoting::block(advisory.text));
    }
}

/// §6: one box per decision.
fn boxes(out: &mut String, items: &NeedsHuman) {
    open(out, 6);
    if items.findings.is_empty() && items.standing.is_none() {
        line(out, format_args!("{NOTHING_OPEN}"));
    }
    for item in &items.findings {
        line(out, format_args!("- [ ] {}", quoting::inline(item)));
    }
    if let Some(standing) = &items.standing {
        if !items.findings.is_empty() {
            out.push('\n');
        }
        line(out, format_args!("{STANDING_INTRODUCTION}\n"));
        line(out, format_args!("- [ ] {}", quoting::inline(standing)));
    }
}

/// §7: properties that the gates prove, and those that they do not.
fn proof(out: &mut String, inputs: &SummaryInputs<'_>) {
    let gates = inputs.gates;
    open(out, 7);
    let named = |result: GateResult| {
        let rows = gates.rows.iter().filter(|row| row.result == result && !row.is_stub());
        rows.map(|row| folded(&row.check)).collect::<Vec<String>>().join("; ")
    };
    let or_nothing = |names: String| if names.is_empty() { "nothing".to_owned() } else { names };
    let mut proven = or_nothing(named(GateResult::Pass));
    if gates.rows.iter().any(GateRow::is_stub) {
        proven.push_str(" (a stub row proves nothing: nothing real was checked)");
    }
    let unproven: Vec<String> = [
        ("failed", named(GateResult::Fail)),
        ("unverifiable", named(GateResult::Unverifiable)),
        ("deferred", named(GateResult::Deferred)),
        ("no gate", ungated(gates).join(", ")),
    ]
    .into_iter()
    .filter(|(_, names)| !names.is_empty())
    .map(|(why, names)| format!("{why}: {names}"))
    .collect();
    for (title, text) in [
        ("Gates overall", gates.overall.as_str().to_owned()),
        ("Proven by a gate", proven),
        ("Disproven by a gate", or_nothing(named(GateResult::Fail))),
        ("Not proven", format!("{} (and whatever §6 lists)", or_nothing(unproven.join("; ")))),
    ] {
        line(out, format_args!("- {title}: {}", quoting::inline(&text)));
    }
    if let Some(cost) = inputs.cost {
        line(out, format_args!("- Cost of the leaves: {}", quoting::inline(cost)));
    }
    if inputs.close_disposition.is_some() {
        return;
    }
    let together = match inputs.forecast_conflicts.len() {
        0 => "not proven here; `pdca integrate` gates the combination".to_owned(),
        1 => "it does not merge with another result, see §6".to_owned(),
        more => format!("it does not merge with {more} other results, see §6"),
    };
    line(out, format_args!("- Together with other changes: {together}"));
    for product in inputs.products {
        line(out, format_args!("- Build product: {}", quoting::inline(product)));
    }
}

/// The elements that a gate should decide and none does.
fn ungated(gates: &GateReport) -> Vec<&'static str> {
    // Older reports name the element only in the check.
    let element_of =
        |row: &GateRow| row.element().or_else(|| row.check.split_whitespace().next()?.parse().ok());
    let is_gate = |row: &&GateRow| row.result != GateResult::None && !row.is_stub();
    let covered: HashSet<Element> =
        gates.rows.iter().filter(is_gate).filter_map(element_of).collect();
    Element::ALL
        .into_iter()
        .filter(|element| element.kind() == ElementKind::Gate && !covered.contains(element))
        .map(Element::as_str)
        .collect()
}

fn list(out: &mut String, items: &[String], empty: &str) {
    if items.is_empty() {
        line(out, format_args!("- {empty}"));
    }
    for item in items {
        let text = format!("- {}", folded(item));
        line(out, format_args!("{}", quoting::inert(&text)));
    }
}

fn open(out: &mut String, number: usize) {
    line(out, format_args!("\n## {}", heading(number)));
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("writing to a string cannot fail");
}
