//! Everything that a person needs to decide about one bundle, as a plain value.

mod attempt;

use crate::snapshot::WorkspaceSnapshot;
use camino::Utf8PathBuf;
use pdca_driver::WorkspaceConfig;
use pdca_state::{
    Artifact, Bundle, BundleId, CostTotal, Coverage, Element, GateReport, GateResult, GateRow,
    Label, LoadError, Overall, Review, SignoffAction, SignoffDecision, SignoffError,
    SignoffProposal, Snapshot, State, Summary, SummaryItem, patch_files, record, title_of,
};
use serde::Serialize;

pub use attempt::{AttemptDelta, NoteAnswer};

use crate::review::checklist::tick;
use crate::review::decision::{Choice, Decision, Ticks};

/// The places that a card is read from.
#[derive(Debug, Clone, Copy)]
pub struct CardSource<'a> {
    /// The view of the workspace; conflicts and staleness come from it.
    pub snapshot: &'a WorkspaceSnapshot,
    /// The driver's configuration; without it, undeclared and protected paths are not known.
    pub config: Option<&'a WorkspaceConfig>,
}

/// The evidence about one bundle, and the decisions that are possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Card {
    pub id: BundleId,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: Utf8PathBuf,
    pub title: String,
    pub state: State,
    /// The number of the present attempt, from 1.
    pub attempt: u32,
    /// The defect or goal, in the words of the brief.
    pub claim: Option<String>,
    /// The condition that is true when the work is done.
    pub success: Option<String>,
    /// The expected outcome; the reason of a close, if it is one.
    pub disposition: Option<String>,
    /// It closes without a change.
    pub closes: bool,
    /// The proof that the change does what it claims.
    pub proof: Proof,
    /// The verdict of the gates; null if there is no valid report.
    pub overall: Option<Overall>,
    /// The rows with a verdict, failed ones first.
    pub gates: Vec<GateLine>,
    /// The rows of the review, those that need a person first.
    pub review: Vec<ReviewLine>,
    /// There is no review, and the bundle is not closed without a change.
    pub review_missing: bool,
    pub change: ChangeSize,
    /// The results that it was built on; null for the branch alone.
    pub stands_on: Option<String>,
    /// The reason why it is stale.
    pub stale: Option<String>,
    /// The bundles that it is known to conflict with.
    pub conflicts: Vec<BundleId>,
    /// The difference to the attempt before; null if this is the first.
    pub since_last: Option<AttemptDelta>,
    /// The cost of all attempts; null if nothing is known of it.
    pub cost: Option<CostTotal>,
    /// What advisers found in the brief; items of §6 once there is one.
    pub plan_advice: Vec<String>,
    /// Every item of §6, open or ticked, with a number that never moves.
    pub items: Vec<SummaryItem>,
    /// The decision that the sign-off leaf proposes, and that nobody has made.
    pub proposal: Option<ProposedDecision>,
    /// Files that were ignored or only partly readable.
    pub problems: Vec<String>,
    /// The decisions, in the order of their keys.
    pub offers: Vec<OfferedDecision>,
}

/// A decision that the sign-off leaf proposes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProposedDecision {
    pub action: SignoffAction,
    pub note: Option<String>,
    pub date: String,
    /// The command with which a person makes it their own.
    pub command: String,
}

impl ProposedDecision {
    pub fn of(id: &BundleId, proposal: SignoffProposal) -> Self {
        let SignoffProposal { action, note, date } = proposal;
        let decision = Decision { id: id.clone(), choice: Choice::of(action), note };
        let command = decision.command_line();
        Self { action, note: decision.note, date, command }
    }
}

/// The proof of a change: a check fails without it and passes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// The check fails before the change.
    pub red_before: ProofStep,
    /// The check passes after the change.
    pub green_after: ProofStep,
}

/// One half of the proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ProofStep {
    /// A gate showed it.
    Shown { by: String, evidence: String },
    /// A gate showed that it is not so.
    Disproved { by: String, evidence: String },
    /// A gate could not tell.
    Undecided { by: String, evidence: String },
    /// No gate is configured for it.
    NoGate,
}

/// One row of the gates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateLine {
    /// The element as written, such as `T3`.
    pub element: String,
    /// The element in plain words, such as `all tests`.
    pub plain: &'static str,
    /// The name to override it with.
    pub rule: String,
    pub check: String,
    pub result: GateResult,
    /// If true, its failure prevents an acceptance.
    pub gating: bool,
    pub evidence: String,
    /// The failing tests, as far as they are known.
    pub failing: Vec<String>,
    /// The number of failing tests that are not named.
    pub failing_more: usize,
    pub flaky: bool,
    /// The log, relative to the bundle.
    pub log: Option<String>,
    /// The command that runs a failed row by itself.
    pub reproduce: Option<String>,
    pub duration_ms: Option<u64>,
}

/// One row of the review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewLine {
    pub item: String,
    pub verdict: String,
    pub basis: String,
    /// It says anything but a plain pass.
    pub notable: bool,
}

/// The size and the reach of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangeSize {
    pub files: Vec<ChangedFile>,
    pub added: usize,
    pub removed: usize,
    /// Written paths that `Touches` of the brief does not declare; empty if it declares none.
    pub outside_touches: Vec<String>,
    /// Written paths that decide how changes are judged.
    pub protected: Vec<String>,
    /// The patch is not the one that the gates saw.
    pub edited_after_check: bool,
}

/// One file of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedFile {
    pub path: String,
    pub added: usize,
    pub removed: usize,
}

/// A decision that a person may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfferedDecision {
    /// The key in `pdca review` and on the board.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub key: char,
    /// The word on the command line.
    pub action: &'static str,
    /// What it does, in a few words.
    pub what: &'static str,
    /// The command that records it; `…` stands for a note that it needs.
    pub command: String,
    pub needs_note: bool,
    /// The reason why it would be refused now.
    pub refused: Option<String>,
}

impl Card {
    /// Reads the card of a bundle, in any state.
    pub fn load(source: CardSource<'_>, bundle: &Bundle) -> Result<Self, LoadError> {
        let snapshot = bundle.load()?;
        let text = |artifact| {
            let bytes = bundle.read(artifact)?;
            Ok::<_, LoadError>(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        };
        let brief_text = text(Artifact::Brief)?.unwrap_or_default();
        let patch = bundle.read(Artifact::Patch)?.unwrap_or_default();
        let coverage = snapshot.coverage()?;
        let field = |label| {
            let brief = snapshot.authored_brief()?;
            brief.known(label).map(|field| field.whole()).filter(|text| !text.is_empty())
        };
        let hint = || snapshot.authored_brief()?.disposition_hint().map(str::to_owned);
        let (id, landing) = (bundle.id(), &source.snapshot.landing);
        let is_landed = landing.mark(id).is_some_and(|mark| mark.word == "landed");
        let stands_on = source
            .config
            .and_then(|config| pdca_driver::stands_on(config, bundle, snapshot.iterations));
        Ok(Self {
            id: id.clone(),
            dir: bundle.dir().to_owned(),
            title: title_of(&brief_text, id),
            state: snapshot.state,
            attempt: snapshot.iterations + 1,
            claim: field(Label::Defect),
            success: field(Label::SuccessCriterion),
            disposition: snapshot.close_disposition.clone().or_else(hint),
            closes: snapshot.close_disposition.is_some(),
            proof: Proof::of(snapshot.gates.as_ref()),
            overall: snapshot.gates.as_ref().map(|gates| gates.overall),
            gates: snapshot.gates.as_ref().map(gate_lines).unwrap_or_default(),
            review: snapshot.review.as_ref().map(review_lines).unwrap_or_default(),
            review_missing: snapshot.review.is_none() && snapshot.close_disposition.is_none(),
            change: change_size(source.config, &snapshot, &patch, coverage),
            stands_on,
            stale: landing.stale(id).map(|stale| stale.why.clone()),
            conflicts: landing.conflicts(id).to_vec(),
            since_last: AttemptDelta::load(bundle, &snapshot, &patch)?,
            cost: Some(bundle.calls().cost()?).filter(CostTotal::is_known),
            plan_advice: match &snapshot.summary {
                Some(_) => Vec::new(),
                None => pdca_state::carried_items(bundle),
            },
            items: snapshot.summary.as_ref().map(Summary::items).unwrap_or_default().to_vec(),
            proposal: bundle
                .proposal()?
                .filter(|_| snapshot.state == State::AwaitingSignoff)
                .map(|proposal| ProposedDecision::of(id, proposal)),
            problems: snapshot.problems.iter().map(ToString::to_string).collect(),
            // What has landed is mended by another bundle.
            offers: if is_landed { Vec::new() } else { offers(&snapshot, coverage) },
        })
    }

    /// Returns the items of §6 that are open.
    pub fn open_items(&self) -> impl Iterator<Item = &SummaryItem> {
        self.items.iter().filter(|item| item.open)
    }

    /// Returns the failed rows that prevent an acceptance, by the names to override them with.
    pub fn red_gating(&self) -> impl Iterator<Item = &str> {
        let is_red = |line: &&GateLine| line.gating && line.result == GateResult::Fail;
        self.gates.iter().filter(is_red).map(|line| line.rule.as_str())
    }

    /// Returns the offer behind a key.
    pub fn offer(&self, key: char) -> Option<&OfferedDecision> {
        self.offers.iter().find(|offer| offer.key == key)
    }
}

impl Proof {
    fn of(gates: Option<&GateReport>) -> Self {
        let step = |element: Element| {
            let rows = || gates.into_iter().flat_map(|gates| &gates.rows);
            let of_it = rows().filter(|row| row.element() == Some(element) && !row.is_stub());
            ProofStep::of(of_it)
        };
        let (before, after) = (step(Element::C2), step(Element::C4));
        // One gate often shows both: the verification of red to green runs the check without the change too.
        Self { red_before: before, green_after: after }
    }
}

impl ProofStep {
    /// Sums up the rows of one element: the worst of them counts.
    fn of<'r>(rows: impl Iterator<Item = &'r GateRow>) -> Self {
        let rows: Vec<&GateRow> = rows.collect();
        let first = |result: GateResult| rows.iter().find(|row| row.result == result);
        let said = |row: &GateRow| (row_name(row), row.reason().to_owned());
        if let Some((by, evidence)) = first(GateResult::Fail).map(|row| said(row)) {
            Self::Disproved { by, evidence }
        } else if let Some((by, evidence)) = first(GateResult::Unverifiable).map(|row| said(row)) {
            Self::Undecided { by, evidence }
        } else if let Some((by, evidence)) = first(GateResult::Pass).map(|row| said(row)) {
            Self::Shown { by, evidence }
        } else if let Some((by, evidence)) = first(GateResult::Deferred).map(|row| said(row)) {
            Self::Undecided { by, evidence }
        } else {
            Self::NoGate
        }
    }
}

/// The name to override a row with.
fn row_name(row: &GateRow) -> String {
    if row.rule_id.trim().is_empty() { row.check.clone() } else { row.rule_id.clone() }
}

/// Returns the rows that say something, failed ones first.
fn gate_lines(report: &GateReport) -> Vec<GateLine> {
    let line = |row: &GateRow| GateLine {
        element: row.element.clone(),
        plain: row.element().map_or("", Element::plain),
        rule: row_name(row),
        check: row.check.clone(),
        result: row.result,
        gating: row.gating,
        evidence: row.reason().to_owned(),
        failing: row.failing.clone(),
        failing_more: row.failing_more,
        flaky: row.flaky,
        log: row.log.clone(),
        reproduce: row.reproduce.clone(),
        duration_ms: row.duration_ms,
    };
    let mut lines: Vec<GateLine> =
        report.rows.iter().filter(|row| row.result != GateResult::None).map(line).collect();
    // A stable sort: within a group the rows keep the order of the report.
    lines.sort_by_key(|line| match (line.result, line.gating) {
        (GateResult::Fail, true) => 0,
        (GateResult::Unverifiable, _) => 1,
        (GateResult::Fail, false) => 2,
        (GateResult::Deferred, _) => 3,
        (GateResult::Pass | GateResult::None, _) => 4,
    });
    lines
}

/// Returns the rows of the review, those that need a person first.
fn review_lines(review: &Review) -> Vec<ReviewLine> {
    let mut lines: Vec<ReviewLine> = review
        .rows
        .iter()
        .map(|row| ReviewLine {
            item: row.item.clone(),
            verdict: row.verdict.clone(),
            basis: row.basis.clone(),
            notable: !matches!(
                row.verdict.trim_matches(['*', ' ']).to_ascii_lowercase().as_str(),
                "pass" | "ok" | "n/a" | "na"
            ),
        })
        .collect();
    lines.sort_by_key(|line| !line.notable);
    lines
}

fn change_size(
    config: Option<&WorkspaceConfig>,
    snapshot: &Snapshot,
    patch: &[u8],
    coverage: Coverage,
) -> ChangeSize {
    let file = |file: pdca_state::PatchFile<'_>| {
        let (added, removed) = (file.added, file.removed);
        ChangedFile { path: file.path, added, removed }
    };
    let files: Vec<ChangedFile> = patch_files(patch).into_iter().map(file).collect();
    let brief = snapshot.authored_brief().filter(|brief| !brief.touches().is_empty());
    let outside = brief.and_then(|brief| pdca_driver::undeclared_paths(brief, patch).ok());
    let protected = config.map(|config| pdca_driver::protected_paths(&config.rows, patch));
    ChangeSize {
        added: files.iter().map(|file| file.added).sum(),
        removed: files.iter().map(|file| file.removed).sum(),
        files,
        outside_touches: outside.unwrap_or_default(),
        protected: protected.unwrap_or_default(),
        edited_after_check: coverage == Coverage::Changed,
    }
}

/// Returns the decisions that a person may take in this state, by key.
fn offers(snapshot: &Snapshot, coverage: Coverage) -> Vec<OfferedDecision> {
    let offer = |key, what, choice: Choice, needs_note| OfferedDecision {
        key,
        action: choice.word(),
        what,
        command: offered_command(&snapshot.id, choice, needs_note),
        needs_note,
        refused: None,
    };
    let discontinue = |what| offer('x', what, Choice::Discontinue, true);
    match snapshot.state {
        State::AwaitingSignoff => {
            let has_open = snapshot.summary.as_ref().is_some_and(|s| !s.open_items().is_empty());
            let accept = if has_open { Choice::accept_all() } else { Choice::accept() };
            let refused = refusal(snapshot, coverage);
            let mut offers = vec![
                OfferedDecision { refused, ..offer('a', "accept it as done", accept, false) },
                offer('i', "build it again from the same brief", Choice::IterateDo, true),
                offer('p', "plan it again", Choice::IteratePlan, true),
                discontinue("give it up"),
            ];
            if has_open {
                let clear = Choice::Clear(Ticks::All);
                offers.push(offer('c', "tick the open items, and decide later", clear, false));
            }
            offers
        }
        State::Complete => vec![
            offer('i', "take the acceptance back, and build it again", Choice::IterateDo, true),
            offer('p', "take the acceptance back, and plan it again", Choice::IteratePlan, true),
            discontinue("take the acceptance back, and give it up"),
        ],
        State::Unplanned | State::Planned | State::Built | State::Checked | State::Iterate(_) => {
            vec![discontinue("give it up")]
        }
        State::Resolved | State::Discontinued => Vec::new(),
    }
}

fn offered_command(id: &BundleId, choice: Choice, needs_note: bool) -> String {
    let command = Decision::new(id, choice).command_line();
    if needs_note { format!("{command} --note '…'") } else { command }
}

/// Returns why an acceptance with all items ticked would be refused. The rules themselves are asked.
fn refusal(snapshot: &Snapshot, coverage: Coverage) -> Option<String> {
    if coverage == Coverage::Changed {
        return Some("the patch was edited after Check".to_owned());
    }
    if snapshot.is_brief_edited().unwrap_or(true) {
        let id = &snapshot.id;
        return Some(format!("the brief was edited after Check; `pdca run {id}` checks it again"));
    }
    let summary = snapshot.summary.as_ref()?;
    // Open items alone are no refusal: they are asked for one by one before an acceptance.
    let text = match tick(summary, &Ticks::All, None) {
        Ok((text, _)) => text,
        Err(_) => summary.text().to_owned(),
    };
    let decision = SignoffDecision {
        action: SignoffAction::Accept,
        // Any name will do: the rule refuses an empty one, which says nothing about the bundle.
        by: "x".to_owned(),
        date: String::new(),
        // The person may give one, and a row without a verdict needs it.
        note: Some("x".to_owned()),
        overrides: Vec::new(),
    };
    match record(&text, snapshot.gates.as_ref(), &decision) {
        Ok(_) => None,
        Err(SignoffError::NotAcceptable { open, failed }) => {
            let open = open.iter().map(|line| format!("open in §6: {line}"));
            let failed = failed.iter().map(|check| format!("gate red: {check}"));
            Some(failed.chain(open).collect::<Vec<_>>().join("; "))
        }
        Err(error) => Some(pdca_state::chain(&error)),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Makes the card of a bundle that waits for sign-off, with these open items and nothing red.
    pub(crate) fn card(id: &str, open: &[&str]) -> Card {
        let id: BundleId = id.parse().expect("an id");
        let item = |(index, text): (usize, &&str)| SummaryItem {
            number: index + 1,
            text: (*text).to_owned(),
            open: true,
            standing: false,
        };
        let offer = |key, choice: Choice, needs_note| OfferedDecision {
            key,
            action: choice.word(),
            what: "",
            command: String::new(),
            needs_note,
            refused: None,
        };
        Card {
            dir: Utf8PathBuf::from("/w"),
            title: String::new(),
            state: State::AwaitingSignoff,
            attempt: 1,
            claim: None,
            proposal: None,
            success: None,
            disposition: None,
            closes: false,
            proof: Proof { red_before: ProofStep::NoGate, green_after: ProofStep::NoGate },
            overall: Some(Overall::Pass),
            gates: Vec::new(),
            review: Vec::new(),
            review_missing: false,
            change: ChangeSize::default(),
            stands_on: None,
            stale: None,
            conflicts: Vec::new(),
            since_last: None,
            cost: None,
            plan_advice: Vec::new(),
            items: open.iter().enumerate().map(item).collect(),
            problems: Vec::new(),
            offers: vec![
                offer('a', Choice::accept(), false),
                offer('i', Choice::IterateDo, false),
                offer('p', Choice::IteratePlan, false),
                offer('x', Choice::Discontinue, true),
            ],
            id,
        }
    }
}
