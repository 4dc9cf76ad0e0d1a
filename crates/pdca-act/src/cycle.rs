//! One finished cycle, read from its bundle.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{
    Artifact, Brief, Bundle, BundleId, CostTotal, Element, GateReport, GateResult, GateRow,
    LoadError, SignoffOutcome, State, Summary, SummaryItem, files, named_paths,
};
use serde::{Serialize, Serializer};

use crate::mark::CycleMark;
use crate::touches::Touches;
use crate::wording::{bullets, one_line};

/// The maximum number of archived attempts to read per bundle.
const MAX_ATTEMPTS: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cycle {
    pub id: BundleId,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub dir: Utf8PathBuf,
    #[serde(serialize_with = "state_name")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub state: State,
    /// The slug of the brief.
    pub slug: Option<String>,
    /// §6: the items that a person had to decide.
    pub needs_human: Vec<NeedsHumanItem>,
    /// §7: the claims that are proven and those that are not.
    pub proven: Vec<String>,
    pub signoff: Signoff,
    /// §10: hints for this review.
    pub candidates: Vec<String>,
    /// The number of attempts before the last one.
    pub iterations: u32,
    /// The reasons why those attempts were sent back, oldest first.
    pub deltas: Vec<String>,
    /// The checks that failed in any attempt, without duplicates.
    pub failed_checks: Vec<String>,
    /// The checks that failed and then passed over the same change, without duplicates.
    pub flaky_checks: Vec<String>,
    /// The costs of the gates over all attempts.
    pub gates: GateCost,
    /// The costs of the leaves over all attempts.
    pub cost: CostTotal,
    /// The declared paths compared with the changed ones.
    pub touches: Touches,
    /// The parts of the bundle that could not be read.
    pub problems: Vec<String>,
    /// The reasons that the brief carries forward from earlier attempts.
    /// Tells this end of the bundle from its others.
    #[serde(skip)]
    pub(crate) mark: CycleMark,
    #[serde(skip)]
    pub(crate) carried: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeedsHumanItem {
    pub text: String,
    /// True if the box was never ticked.
    pub open: bool,
    /// True for the question that every bundle has.
    pub standing: bool,
}

/// The decision of §9.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Signoff {
    pub outcome: Option<SignoffOutcome>,
    pub by: String,
    pub date: String,
    /// The text about the disposition.
    pub disposition: String,
    /// The reason, if one is given.
    pub note: Option<String>,
}

/// The costs of gates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateCost {
    /// The total time of all rows that report one.
    pub ms: u64,
    /// The number of rows that report a time.
    pub timed: usize,
    /// The number of rows with a result.
    pub rows: usize,
}

impl Cycle {
    /// Reads the cycle of a bundle, or returns `None` if it has not ended.
    pub(crate) fn load(bundle: &Bundle) -> Result<Option<Self>, LoadError> {
        let snapshot = bundle.load()?;
        if !snapshot.state.is_terminal() {
            return Ok(None);
        }
        let mut problems: Vec<String> = snapshot.problems.iter().map(ToString::to_string).collect();
        let (attempts, hidden) = earlier_attempts(bundle.dir());
        problems.extend(hidden);
        let patch = bundle.read(Artifact::Patch).unwrap_or_else(|error| {
            problems.push(error.to_string());
            None
        });
        let declared = snapshot.brief.as_ref().map(Brief::touches).unwrap_or_default();
        let summary = snapshot.summary.unwrap_or_default();
        let mark = CycleMark::of(bundle, &summary, snapshot.iterations)?;
        let reports: Vec<&GateReport> = attempts
            .iter()
            .filter_map(|attempt| attempt.gates.as_ref())
            .chain(&snapshot.gates)
            .collect();
        Ok(Some(Self {
            id: snapshot.id,
            dir: snapshot.dir,
            state: snapshot.state,
            slug: snapshot.brief.as_ref().and_then(Brief::slug).map(|slug| one_line(&slug)),
            needs_human: needs_human(&summary),
            proven: summary.section(7).map(bullets).unwrap_or_default(),
            signoff: signoff(&summary),
            candidates: summary.section(10).map(bullets).unwrap_or_default(),
            iterations: snapshot.iterations,
            deltas: deltas(&attempts, &summary),
            failed_checks: checks(&reports, |row| row.result == GateResult::Fail),
            flaky_checks: checks(&reports, |row| row.flaky),
            gates: reports
                .iter()
                .copied()
                .map(GateCost::of)
                .fold(GateCost::default(), GateCost::plus),
            cost: bundle.calls().cost().unwrap_or_else(|error| {
                problems.push(error.to_string());
                CostTotal::default()
            }),
            touches: Touches::compare(
                declared,
                patch.as_deref().map(named_paths).unwrap_or_default(),
            ),
            mark,
            carried: carried(bundle),
            problems,
        }))
    }

    /// Returns every statement that may recur, with its source.
    ///
    /// §7 is left out because it is generated from the gate report and reads the same in every bundle, and so
    /// is the standing question of §6.
    pub(crate) fn said(&self) -> Vec<(&'static str, String)> {
        let findings = self.needs_human.iter().filter(|item| !item.standing);
        let mut said: Vec<(&'static str, String)> =
            findings.map(|item| ("§6", item.text.clone())).collect();
        said.extend(self.candidates.iter().map(|text| ("§10", text.clone())));
        said.extend(self.reasons().map(|text| ("§9", text.clone())));
        said.extend(self.failed_checks.iter().map(|check| ("gates", format!("{check} failed"))));
        said.extend(self.flaky_checks.iter().map(|check| ("gates", format!("{check} is flaky"))));
        said
    }

    /// Returns the reasons why attempts were sent back: the deltas, or those that the brief carries forward.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = &String> {
        if self.deltas.is_empty() { self.carried.iter() } else { self.deltas.iter() }
    }
}

impl GateCost {
    fn of(report: &GateReport) -> Self {
        let decided = report.rows.iter().filter(|row| row.result != GateResult::None);
        let timed = report.rows.iter().filter_map(|row| row.duration_ms);
        Self {
            rows: decided.count(),
            timed: timed.clone().count(),
            ms: timed.fold(0, u64::saturating_add),
        }
    }

    /// Adds two costs.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            ms: self.ms.saturating_add(other.ms),
            timed: self.timed + other.timed,
            rows: self.rows + other.rows,
        }
    }
}

struct Attempt {
    summary: Option<Summary>,
    gates: Option<GateReport>,
}

/// Reads the archived attempts of a bundle: every directory with a summary or a gate report.
fn earlier_attempts(dir: &Utf8Path) -> (Vec<Attempt>, Vec<String>) {
    let mut problems = Vec::new();
    let mut names: Vec<String> = match dir.read_dir_utf8() {
        Ok(entries) => entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.file_name().to_owned())
            .collect(),
        Err(error) => {
            problems.push(format!("cannot list {dir}: {error}"));
            Vec::new()
        }
    };
    // By length first, so that v2 comes before v10.
    names.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    if names.len() > MAX_ATTEMPTS {
        problems
            .push(format!("{dir} has {} directories; {MAX_ATTEMPTS} are looked at", names.len()));
        names.truncate(MAX_ATTEMPTS);
    }
    let mut read = |name: &str, artifact: Artifact| {
        let file = Utf8Path::new(name).join(artifact.file_name());
        files::read_within(dir, &file, artifact.max_len()).unwrap_or_else(|error| {
            problems.push(error.to_string());
            None
        })
    };
    let mut attempts = Vec::new();
    for name in &names {
        let summary = read(name, Artifact::Summary);
        let gates = read(name, Artifact::GatesJson);
        if summary.is_some() || gates.is_some() {
            attempts.push(Attempt {
                summary: summary.map(|bytes| Summary::parse(&String::from_utf8_lossy(&bytes))),
                gates: gates.and_then(|bytes| GateReport::parse(&bytes).ok()),
            });
        }
    }
    (attempts, problems)
}

fn needs_human(summary: &Summary) -> Vec<NeedsHumanItem> {
    let item = |item: &SummaryItem| NeedsHumanItem {
        open: item.open,
        standing: is_standing(&item.text),
        text: one_line(&item.text),
    };
    summary.items().iter().map(item).collect()
}

fn is_standing(item: &str) -> bool {
    let item = item.strip_prefix("V ").unwrap_or(item);
    let rest = item.strip_prefix(Element::V.title());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" — "))
}

fn signoff(summary: &Summary) -> Signoff {
    let recorded = summary.signoff();
    let disposition = one_line(summary.disposition());
    match recorded {
        None => Signoff { disposition, ..Signoff::default() },
        Some(recorded) => Signoff {
            outcome: Some(recorded.outcome),
            by: one_line(&recorded.by),
            date: one_line(&recorded.date),
            note: recorded.note.as_deref().map(one_line),
            disposition,
        },
    }
}

fn deltas(attempts: &[Attempt], last: &Summary) -> Vec<String> {
    let summaries = attempts.iter().filter_map(|attempt| attempt.summary.as_ref()).chain([last]);
    let texts = summaries.map(|summary| one_line(summary.iteration_delta()));
    texts.filter(|text| !text.is_empty()).collect()
}

fn checks(reports: &[&GateReport], wanted: impl Fn(&&GateRow) -> bool) -> Vec<String> {
    let rows = reports.iter().flat_map(|report| &report.rows).filter(wanted);
    let mut checks: Vec<String> = rows.map(|row| one_line(&row.check)).collect();
    checks.sort_unstable();
    checks.dedup();
    checks
}

/// Returns the carry-forward sections of the brief, each on one line.
fn carried(bundle: &Bundle) -> Vec<String> {
    let Ok(Some(bytes)) = bundle.read(Artifact::Brief) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let mut sections: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if line.starts_with('#') {
            open = line.starts_with("## Iteration ") && line.contains("carry-forward");
            if open {
                sections.push(String::new());
            }
        } else if let Some(section) = sections.last_mut().filter(|_| open) {
            section.push_str(line.trim_start_matches(['>', ' ']));
            section.push('\n');
        }
    }
    sections.iter().map(|section| one_line(section)).collect()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands the field as a reference")]
fn state_name<S: Serializer>(state: &State, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}
