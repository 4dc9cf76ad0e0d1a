//! Gates the branch alone, once, before a batch calls any leaf.
//!
//! # Protocol
//! 1. *Find* the tip of every branch that a bundle of the plan is built on and that may start now.
//! 2. *Look up* the verdict about that tree in the cache of integrations, so that each profits from the
//!    other. A known green costs nothing.
//! 3. *Gate* with the rows that judge a combination, in a checkout of an integration. The jobs of the rows stay until
//!    the verdict is stored: after a kill, the next driver runs no row twice.
//! 4. *Confirm*: a red verdict, known or new, is repeated once. Only a base that is red twice stops a batch.
//!
//! An undecided base stops nothing: it is reported, and the
//! bundles' own gates will say the same.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_dag::{Frontier, Plan as Schedule, Why};
use pdca_integrate::{
    FIRST_SLOT, FoldPlan, GateJob, GateRunError, IntegrateError, Light, Lookup, MergeEngine,
    Recorded, RedRow, TargetBranch, Verdict, VerdictOrigin, counts, fold,
};
use pdca_journal::events::WarningCode;
use pdca_state::{Reentry, chain, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::job::Jobs;
use crate::run_bundle::{BeatError, Driver};
use crate::step::{Step, step};
use pdca_journal::events::{EventKind, Scope};

use super::gate::gate_combination;
use super::stand_in;

/// The id that stands for the branch alone in events. It cannot be an id that a person gives.
const BASE_SCOPE: &str = "base+";
/// The number of red verdicts that stop a batch.
// A red verdict is never believed once (decision 013): one flaky test would stop a whole batch.
const REDS: u32 = 2;

/// The condition under which the branch alone is gated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateBase {
    /// Before anything starts: a red base stops the batch.
    #[default]
    Before,
    /// While the first bundles are built: a red base stops what is in flight.
    Beside,
    /// Not at all.
    Off,
}

/// The verdict over a branch alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GatedBase {
    pub target: String,
    pub branch: String,
    pub commit: String,
    pub verdict: BaseVerdict,
    /// The number of gate runs that this took; 0 if the verdict was cached.
    pub gate_runs: u32,
    pub rows: Vec<String>,
    /// The reasons of the red rows, or of a missing verdict, one line each.
    pub evidence: Vec<String>,
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub logs: Vec<Utf8PathBuf>,
    /// The red rows with failing tests and a command that reproduces each.
    pub red: Vec<RedRow>,
}

/// The verdict of the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BaseVerdict {
    Green,
    /// Red twice.
    Red,
    /// The gates came to no verdict.
    Undecided,
}

impl GatedBase {
    fn of(front: &TargetBranch, verdict: BaseVerdict) -> Self {
        Self {
            target: front.target.name.clone(),
            branch: front.branch.clone(),
            commit: front.tip.to_string(),
            verdict,
            gate_runs: 0,
            rows: Vec::new(),
            evidence: Vec::new(),
            logs: Vec::new(),
            red: Vec::new(),
        }
    }

    /// Returns whether nothing may be built on it, because it is red.
    pub fn stops(&self) -> bool {
        match self.verdict {
            BaseVerdict::Red => true,
            BaseVerdict::Green | BaseVerdict::Undecided => false,
        }
    }
}

/// Gates every branch that a bundle of the plan is about to be built on. Fails only if interrupted or on a panic.
pub(crate) fn gate_bases(
    cx: &Driver<'_>,
    batch: &Batch,
    schedule: &Schedule,
) -> Result<Vec<GatedBase>, BeatError> {
    if cx.config.rows.combined().next().is_none() {
        return Ok(Vec::new());
    }
    let fronts = bases_of(cx, batch, schedule);
    std::thread::scope(|scope| {
        // A slot for each branch, or they would wait for one checkout.
        let gate = |(slot, front)| scope.spawn(move || gate_base(cx, front, slot));
        let asked: Vec<_> = (FIRST_SLOT..).zip(&fronts).map(gate).collect();
        let answers = asked.into_iter().map(|thread| {
            let said = "its thread panicked".to_owned();
            thread.join().unwrap_or(Err(BeatError::Panicked { said }))
        });
        answers.collect()
    })
}

/// Returns the branches, each once. One that cannot be found is reported when a bundle is built on it.
fn bases_of(cx: &Driver<'_>, batch: &Batch, schedule: &Schedule) -> Vec<TargetBranch> {
    let frontier = Frontier::new(schedule);
    let mut places = BTreeMap::new();
    for bundle in &batch.bundles {
        let may_start = match frontier.why(bundle.id()) {
            Some(Why::Ready { .. } | Why::Held { .. } | Why::Yields { .. } | Why::InFlight) => true,
            Some(Why::Waits { .. } | Why::Halted | Why::Failed | Why::Complete | Why::Ended)
            | None => false,
        };
        let Ok(snapshot) = bundle.load() else { continue };
        let next = cx.position(&snapshot).map(step);
        let is_built =
            // Steps after which a builder is called. What is built already stands on its recorded
            // base.
            matches!(next, Ok(Step::Build | Step::SendBack | Step::Archive(Reentry::Do)));
        let Some(brief) = snapshot.authored_brief().filter(|_| may_start && is_built) else {
            continue;
        };
        if let Ok(Some(target)) = cx.config.target_of(brief) {
            let branch = cx.config.branch_of(brief, &target);
            places.insert((target.name.clone(), branch), target);
        }
    }
    let queue = cx.config.queue();
    let mut fronts: Vec<TargetBranch> = Vec::new();
    for ((name, branch), target) in places {
        let Ok(front) = TargetBranch::load(&queue, target, branch.as_deref(), Vec::new()) else {
            continue;
        };
        // One brief may name the branch that is the default of another.
        let is_known =
            |other: &TargetBranch| (&other.target.name, &other.branch) == (&name, &front.branch);
        if !fronts.iter().any(is_known) {
            fronts.push(front);
        }
    }
    fronts
}

/// Returns the verdict over one branch, from the cache or from its gates, and emits it.
fn gate_base(cx: &Driver<'_>, front: &TargetBranch, slot: u32) -> Result<GatedBase, BeatError> {
    let (target, branch) = (front.target.name.clone(), front.branch.clone());
    let scope = Scope::Base { target, branch };
    let driver = Driver { scope: Some(&scope), ..*cx };
    let base = match ask_about_base(&driver, front, slot) {
        Ok(base) => base,
        Err(IntegrateError::Interrupted) => return Err(BeatError::Interrupted),
        // A checkout that cannot be claimed, or the like, says nothing about the branch.
        Err(error) => {
            let evidence = vec![chain(&error)];
            GatedBase { evidence, ..GatedBase::of(front, BaseVerdict::Undecided) }
        }
    };
    let at = format!("{} {} at {:.12}", base.target, base.branch, base.commit);
    let told = stand_in(&cx.config.dirs.bundles, BASE_SCOPE);
    let what = match base.verdict {
        BaseVerdict::Green if base.gate_runs == 0 => {
            EventKind::integration(format!("{at} is known to be green"))
        }
        BaseVerdict::Green => EventKind::integration(format!("{at} is green by itself")),
        BaseVerdict::Red => {
            let text = format!("{at} is red by itself: {}", base.rows.join(", "));
            EventKind::warning(WarningCode::BaseRed, text)
        }
        BaseVerdict::Undecided => {
            let evidence = base.evidence.join("; ");
            let text = format!("the gates over {at} alone came to no verdict: {evidence}");
            EventKind::warning(WarningCode::BaseNotGated, text)
        }
    };
    driver.tell(&told, what);
    Ok(base)
}

fn ask_about_base(
    cx: &Driver<'_>,
    front: &TargetBranch,
    slot: u32,
) -> Result<GatedBase, IntegrateError> {
    let settings = &cx.config.integrate;
    let plan = FoldPlan::new(front.tip, settings.strategy, [])?;
    let mut engine = MergeEngine::new(&front.store, settings.drivers()?);
    let folded = fold(&mut engine, &plan, &Recorded::default(), &mut |_| Ok(()))?;
    let candidate = folded.candidate();
    let cache = settings.verdicts(&cx.config.queue(), cx.config.now());
    let rules = cx.config.gates().flake_rules();
    let key = cx.config.gates().id().key(candidate);
    let known = match cache.look_up(&key)? {
        Lookup::Found(verdict) => counts(&verdict, &rules).then_some(verdict.light),
        Lookup::Unknown | Lookup::Dropped { .. } => None,
    };
    let mut base = GatedBase::of(front, BaseVerdict::Green);
    if known == Some(Light::Green) {
        return Ok(base);
    }
    let told = stand_in(&cx.config.dirs.bundles, BASE_SCOPE);
    let jobs = base_jobs(cx, front)?;
    // A known red counts as the first of the two, so that confirming it costs one run.
    let mut reds = u32::from(known == Some(Light::Red));
    loop {
        let (target, branch) = (&base.target, &base.branch);
        let again = if reds > 0 { " once more" } else { "" };
        let text = format!("gating {target} {branch} by itself{again} ({:.12})", base.commit);
        cx.tell(&told, EventKind::integration(text));
        // A directory per round, or the confirming round would find the verdicts of the first.
        let rows = jobs.join(format!("{:.20}-{reds}", candidate.tree()));
        let (commit, tree) = (candidate.commit(), candidate.tree());
        let run = cx.config.run.clone();
        let asked = GateJob { run, slot, commit, tree, asked: reds, jobs: rows };
        let ruling = gate_combination(cx, &told, front, &asked);
        let ruling = ruling.map_err(GateRunError::from)?;
        base.gate_runs += 1;
        (base.rows, base.evidence, base.logs) = (ruling.rows, ruling.evidence, ruling.logs);
        base.red = ruling.red;
        let Some(light) = ruling.light else {
            base.verdict = BaseVerdict::Undecided;
            break;
        };
        let verdict = Verdict::new(key.clone(), light);
        let origin = VerdictOrigin { at: Some(cx.config.now()), by: None };
        cx.effects.perform("verdict", || cache.keep_from(&verdict, &origin))?;
        match light {
            Light::Green => {
                base.verdict = BaseVerdict::Green;
                break;
            }
            Light::Red => reds += 1,
        }
        let is_quarantined = base.rows.iter().all(|row| rules.is_quarantined(row));
        // A row that is known to fail by mistake gets more chances to pass; one that never does is red.
        let asks = if is_quarantined {
            rules.agreement(base.rows.iter().map(String::as_str))
        } else {
            REDS
        };
        if reds >= asks {
            base.verdict = BaseVerdict::Red;
            break;
        }
    }
    // After the verdict is stored: the rows' own verdicts are what a killed driver would go on
    // from.
    let removed = Jobs::new(jobs.clone()).remove(&jobs);
    removed.map_err(|source| IntegrateError::Io { path: jobs, source })?;
    Ok(base)
}

/// Returns the directory for the verdicts of single rows until the verdict over the branch is stored. Leftovers
/// about other commits are removed.
fn base_jobs(cx: &Driver<'_>, front: &TargetBranch) -> Result<Utf8PathBuf, IntegrateError> {
    let place = format!("{}\0{}", front.target.name, front.branch);
    let name = &sha256_hex(place.as_bytes())[..16];
    let dir = cx.config.dirs.private().join("bases").join(name);
    let tree = format!("{:.20}-", front.store.tree_of(front.tip)?);
    let entries = dir.read_dir_utf8().into_iter().flatten().flatten();
    for entry in entries.filter(|entry| !entry.file_name().starts_with(&tree)) {
        let removed = Jobs::new(dir.clone()).remove(entry.path());
        removed.map_err(|source| IntegrateError::Io { path: dir.clone(), source })?;
    }
    Ok(dir)
}

/// Discards the records of attempts without a result on a red base, so that they start
/// over once it is repaired.
pub(crate) fn leave_red_bases(
    cx: &Driver<'_>,
    batch: &Batch,
    bases: &[GatedBase],
) -> std::io::Result<()> {
    let attempts = cx.config.attempts();
    for bundle in &batch.bundles {
        let Some(attempt) = attempts.load(bundle.id())? else { continue };
        // The base of an attempt that stands on other results is a commit of its own above the tip.
        let tip = attempt.tip.as_ref().unwrap_or(&attempt.base);
        let stands_on =
            |base: &GatedBase| base.stops() && base.target == attempt.target && base.commit == *tip;
        let is_unbuilt =
            bundle.load().is_ok_and(|snapshot| snapshot.state == pdca_state::State::Planned);
        if is_unbuilt && bases.iter().any(stands_on) {
            attempts.remove(bundle.id())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Attempt;
    use crate::testing::Scene;

    #[test]
    fn an_attempt_that_stands_on_others_leaves_a_red_tip_too() {
        let scene = Scene::planned();
        let (id, tip) = (scene.bundle().id().clone(), "a".repeat(40));
        let attempt = Attempt {
            iterations: 0,
            brief: String::new(),
            target: "app".to_owned(),
            branch: "main".to_owned(),
            base: "b".repeat(40),
            tip: Some(tip.clone()),
            stands_on: Vec::new(),
            made: None,
            changes: Vec::new(),
            asked: None,
            refolded: None,
            acceptance: None,
        };
        scene.config.attempts().store(&id, &attempt).unwrap();
        let red = GatedBase {
            target: "app".to_owned(),
            branch: "main".to_owned(),
            commit: tip,
            verdict: BaseVerdict::Red,
            gate_runs: 2,
            rows: Vec::new(),
            evidence: Vec::new(),
            logs: Vec::new(),
            red: Vec::new(),
        };
        let batch = Batch::of_all(&scene.config).unwrap();
        leave_red_bases(&scene.driver(), &batch, &[red]).unwrap();
        assert_eq!(scene.config.attempts().load(&id).unwrap(), None);
    }
}
