//! Adds globs to `Touches` of a brief, with a reason.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use pdca_dag::{Case, JoinRule, Pattern, PatternError, Plan, Rivalry, Touch};
use pdca_driver::{Batch, WorkspaceConfig};
use pdca_state::{
    Artifact, Brief, Bundle, BundleId, GateReport, LoadError, RootError, Snapshot, State, Widening,
    WriteError, sha256_hex,
};
use serde::Serialize;

use super::PlanningError;
use super::lanes_file::{self, LanesFileState, load_lanes_file};
use crate::{OpenWorkspace, OperationError};

/// A request to widen a brief.
#[derive(Debug, Clone, Copy)]
pub struct WidenRequest<'a> {
    pub id: &'a BundleId,
    pub globs: &'a [String],
    pub reason: &'a str,
    /// The person who widens.
    pub by: &'a str,
    pub date: &'a str,
}

/// The widened brief, actual or predicted.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Widened {
    pub id: BundleId,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub file: Utf8PathBuf,
    pub added: Vec<String>,
    pub by: String,
    pub date: String,
    pub reason: String,
    /// The added rivals; null if the batch has no plan.
    pub new_rivals: Option<Vec<NewRival>>,
    pub judged_again: bool,
    pub lanes_file: LanesFileState,
    pub dry_run: bool,
}

/// A bundle that may no longer run beside this one.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewRival {
    pub id: BundleId,
    /// `overlap` or `conflict`.
    pub rule: JoinRule,
    pub witness: Option<String>,
    /// It is in flight now.
    pub at_work: bool,
    #[serde(skip)]
    pub rivalry: Rivalry,
}

/// Adds globs to `Touches` of a brief.
pub fn widen(
    open: &OpenWorkspace<'_>,
    request: &WidenRequest<'_>,
) -> Result<Widened, OperationError> {
    let &WidenRequest { id, globs, reason, by, date } = request;
    let bundle = open.workspace.require_bundle(id)?;
    require_globs(globs)?;
    let reason = reason.trim();
    if reason.is_empty() {
        return Err(PlanningError::NoReason.into());
    }
    let config = open.driver_config()?;
    let _taken = config.locks().take(bundle.id())?;
    let mut snapshot = bundle.load()?;
    require_open(&bundle, &snapshot)?;
    let text = brief_text(&bundle)?;
    let wider = widened(&Widening { globs, date, by, reason }, &text, &bundle)?;
    let file = load_lanes_file(open.workspace)?;
    let added = added(&text, &wider);
    // Before the brief is published: the plan is made from the disk, and must lack the new globs at first.
    let new_rivals = new_rivals(&config, &snapshot, &added)?;
    snapshot.brief = Some(Brief::parse(&wider));
    let judged_again = is_judged_again(&config, &snapshot)?;
    if !open.dry_run {
        // The brief first. After a crash in between, the same command finds the globs declared and still sets
        // the summary aside.
        if wider != text {
            bundle.publish(Artifact::Brief, wider.as_bytes())?;
            keep_brief_digest(&bundle, &snapshot, (&text, &wider))?;
        }
        if judged_again && snapshot.state == State::AwaitingSignoff {
            // Without the summary the bundle is back in Check, where the driver sees that
            // the drift row is outdated.
            bundle.set_aside(Artifact::Summary)?;
        }
    }
    let lanes_file = match file {
        // A dry run does not write the declarations that would make the file stale.
        Some(_) if open.dry_run && !added.is_empty() => LanesFileState::Stale,
        file => lanes_file::state_of(file.as_ref(), &config)?,
    };
    Ok(Widened {
        id: bundle.id().clone(),
        file: bundle.path(Artifact::Brief),
        added,
        by: by.to_owned(),
        date: date.to_owned(),
        reason: reason.to_owned(),
        new_rivals,
        judged_again,
        lanes_file,
        dry_run: open.dry_run,
    })
}

/// Names the widened brief in the gate report, if it named the one before: what was checked is asked for as before, and the
/// brief says who widened it and why.
fn keep_brief_digest(
    bundle: &Bundle,
    snapshot: &Snapshot,
    (text, wider): (&str, &str),
) -> Result<(), WriteError> {
    let Some(report) = &snapshot.gates else { return Ok(()) };
    if report.brief_digest.as_deref() != Some(sha256_hex(text.as_bytes()).as_str()) {
        return Ok(());
    }
    let brief_digest = Some(sha256_hex(wider.as_bytes()));
    let report = GateReport { brief_digest, ..report.clone() };
    bundle.publish(Artifact::GatesJson, report.to_json().as_bytes())
}

/// Returns an error for invalid globs, all at once.
fn require_globs(globs: &[String]) -> Result<(), PlanningError> {
    let flawed = |glob: &String| Some((glob.clone(), Pattern::parse(glob, Case::Sensitive).err()?));
    let flawed: Vec<(String, PatternError)> = globs.iter().filter_map(flawed).collect();
    if flawed.is_empty() { Ok(()) } else { Err(PlanningError::Globs(flawed)) }
}

fn require_open(bundle: &Bundle, snapshot: &Snapshot) -> Result<(), PlanningError> {
    match snapshot.state {
        state @ (State::Complete | State::Discontinued | State::Resolved) => {
            Err(PlanningError::Settled { bundle: Box::new(bundle.clone()), state })
        }
        State::Unplanned
        | State::Planned
        | State::Built
        | State::Checked
        | State::AwaitingSignoff
        | State::Iterate(_) => Ok(()),
    }
}

fn brief_text(bundle: &Bundle) -> Result<String, OperationError> {
    let no_brief = || PlanningError::NoBrief { bundle: Box::new(bundle.clone()) };
    let bytes = bundle.read(Artifact::Brief)?.ok_or_else(no_brief)?;
    String::from_utf8(bytes)
        .map_err(|_| PlanningError::BriefNotUtf8 { path: bundle.path(Artifact::Brief) }.into())
}

/// Returns the new brief, which must still be readable.
fn widened(widening: &Widening<'_>, text: &str, bundle: &Bundle) -> Result<String, PlanningError> {
    let path = bundle.path(Artifact::Brief);
    let wider = widening
        .apply(text)
        .map_err(|source| PlanningError::Widening { path: path.clone(), source })?;
    if wider.len() as u64 > Artifact::Brief.max_len() {
        return Err(PlanningError::BriefTooLong { path });
    }
    Ok(wider)
}

/// Returns the globs that were added.
fn added(before: &str, after: &str) -> Vec<String> {
    let known: BTreeSet<String> = Brief::parse(before).touches().into_iter().collect();
    Brief::parse(after).touches().into_iter().filter(|glob| !known.contains(glob)).collect()
}

/// Returns whether the gates have to run again, because their verdict about the declaration
/// is outdated.
fn is_judged_again(config: &WorkspaceConfig, snapshot: &Snapshot) -> Result<bool, LoadError> {
    match snapshot.state {
        State::Checked | State::AwaitingSignoff => pdca_driver::is_drift_outdated(config, snapshot),
        State::Unplanned
        | State::Resolved
        | State::Planned
        | State::Built
        | State::Complete
        | State::Iterate(_)
        | State::Discontinued => Ok(false),
    }
}

/// Returns the rivals that the globs add; `None` if the batch has no plan.
fn new_rivals(
    config: &WorkspaceConfig,
    snapshot: &Snapshot,
    added: &[String],
) -> Result<Option<Vec<NewRival>>, RootError> {
    let id = &snapshot.id;
    let mut batch = Batch::of_all(config)?;
    let Ok(before) = batch.plan() else { return Ok(None) };
    let known: BTreeSet<BundleId> =
        before.rivals_of(id).iter().map(|(id, _)| (*id).clone()).collect();
    let Some(item) = batch.items.iter_mut().find(|item| item.id == *id) else {
        return Ok(Some(Vec::new()));
    };
    // The declarations of a template do not count.
    let target = snapshot.authored_brief().and_then(|brief| config.target_of(brief).ok()).flatten();
    let apart = target.as_ref().filter(|_| config.targets.len() > 1);
    for glob in added {
        let is_file = target.as_ref().is_some_and(|target| target.path.join(glob).is_file());
        let glob = apart.map_or(glob.clone(), |target| format!("@{}/{glob}", target.name));
        item.touches.push(Touch { glob, place: item.place.clone(), is_file });
    }
    let Ok(after) = batch.plan() else { return Ok(None) };
    Ok(Some(rivals(&after, id, &known, config)))
}

fn rivals(
    plan: &Plan,
    id: &BundleId,
    known: &BTreeSet<BundleId>,
    config: &WorkspaceConfig,
) -> Vec<NewRival> {
    // A dependant never runs beside its prerequisite anyway.
    let edges = plan.edges();
    let is_ordered = |other: &BundleId| {
        edges.iter().any(|edge| {
            let pair = (&edge.dependant, &edge.prerequisite);
            pair == (id, other) || pair == (other, id)
        })
    };
    let rivals = plan.rivals_of(id).into_iter();
    let rivals = rivals.filter(|(other, _)| !known.contains(*other) && !is_ordered(other));
    let rival = |(other, rivalry): (&BundleId, Rivalry)| NewRival {
        id: other.clone(),
        rule: rivalry.rule(),
        witness: rivalry.witness().map(str::to_owned),
        at_work: config.locks().at_work_on(other).ok().flatten().is_some(),
        rivalry,
    };
    rivals.map(rival).collect()
}
