//! The branch by itself, gated once before a batch pays anybody.
//!
//! # Protocol
//! 1. *Which*: the tip of every branch that a bundle of the plan is to be built on, and that may start now.
//! 2. *Known*: the verdict about that tree is looked up where integrations keep theirs, so one pays for the
//!    other. A green one that is known costs nothing.
//! 3. *Gate*: the rows that judge a combination, in a checkout of an integration. Until the verdict is kept
//!    the jobs of the rows stay: a driver that was killed is followed by one that does not pay twice.
//! 4. *Confirm*: a red, known or new, is asked about once more. Only what is red twice stops a batch.
//!
//! Gates that nothing confines and that write the user's checkout stop a batch too: a bundle whose gates
//! write the same once more would not be caught. What cannot be decided stops nobody: it is told, and the bundles' own gates say the same.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_dag::{Frontier, Plan as Schedule, Why};
use pdca_integrate::{
    Engine, FIRST_SLOT, GateJob, GateRunError, IntegrateError, Light, Lookup, Origin, Plan,
    Recorded, RedRow, TargetBranch, Verdict, counts, excuse, fold, pardon,
};
use pdca_state::{Reentry, chain, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::event::{Scope, What};
use crate::job::Jobs;
use crate::run_bundle::{BeatError, Driver};
use crate::step::{Step, step};

use super::gate::gate_combination;
use super::stand_in;

/// What stands for the branch by itself in what is told. It looks like no id that people give.
const BASE_SCOPE: &str = "base+";
/// How often a base must be red to stop a batch.
const REDS: u32 = 2;

/// When the branch by itself is gated.
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

/// What is known about a branch by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Base {
    /// The name of the target.
    pub target: String,
    /// The branch.
    pub branch: String,
    /// Where it is.
    pub commit: String,
    /// What the gates say.
    pub verdict: BaseVerdict,
    /// How often gates ran for that.
    pub gate_runs: u32,
    /// The rows that are red.
    pub rows: Vec<String>,
    /// What they said, or why there is no verdict, one line each.
    pub evidence: Vec<String>,
    /// Their logs.
    pub logs: Vec<Utf8PathBuf>,
    /// The same rows with failing tests and a command that shows it again.
    pub red: Vec<RedRow>,
}

/// What the gates say about a branch by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaseVerdict {
    /// It is green.
    Green,
    /// It is red, and was so twice.
    Red,
    /// It could not be decided.
    Undecided,
}

impl Base {
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

    /// Whether nothing is to be built on it: it is red.
    pub fn stops(&self) -> bool {
        match self.verdict {
            BaseVerdict::Red => true,
            BaseVerdict::Green | BaseVerdict::Undecided => false,
        }
    }
}

/// Gates every branch that a bundle of the plan is about to be built on. An error is an interruption.
pub(crate) fn gate_bases(
    cx: &Driver<'_>,
    batch: &Batch,
    schedule: &Schedule,
) -> Result<Vec<Base>, BeatError> {
    if cx.config.rows.combined().next().is_none() {
        return Ok(Vec::new());
    }
    let fronts = bases_of(cx, batch, schedule);
    std::thread::scope(|scope| {
        let gate = |(slot, front)| scope.spawn(move || gate_base(cx, front, slot));
        let asked: Vec<_> = (FIRST_SLOT..).zip(&fronts).map(gate).collect();
        let answers = asked.into_iter().map(|thread| {
            let said = "its thread panicked".to_owned();
            thread.join().unwrap_or(Err(BeatError::Panicked { said }))
        });
        answers.collect()
    })
}

/// The branches, each once. What cannot be found is told by whoever builds on it.
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
        let is_built = matches!(next, Ok(Step::Build | Step::Archive(Reentry::Do)));
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
        // One brief may name the branch that another means by saying nothing.
        let is_known =
            |other: &TargetBranch| (&other.target.name, &other.branch) == (&name, &front.branch);
        if !fronts.iter().any(is_known) {
            fronts.push(front);
        }
    }
    fronts
}

/// What is known about one branch, after asking where it is not known.
fn gate_base(cx: &Driver<'_>, front: &TargetBranch, slot: u32) -> Result<Base, BeatError> {
    let (target, branch) = (front.target.name.clone(), front.branch.clone());
    let scope = Scope::Base { target, branch };
    let driver = Driver { scope: Some(&scope), ..*cx };
    let base = match ask_about_base(&driver, front, slot) {
        Ok(base) => base,
        Err(IntegrateError::Interrupted) => return Err(BeatError::Interrupted),
        // A checkout that cannot be had or the like is no fault of the branch.
        Err(error) => {
            let evidence = vec![chain(&error)];
            Base { evidence, ..Base::of(front, BaseVerdict::Undecided) }
        }
    };
    let at = format!("{} {} at {:.12}", base.target, base.branch, base.commit);
    let told = stand_in(&cx.config.dirs.bundles, BASE_SCOPE);
    let what = match base.verdict {
        BaseVerdict::Green if base.gate_runs == 0 => {
            What::integration(format!("{at} is known to be green"))
        }
        BaseVerdict::Green => What::integration(format!("{at} is green by itself")),
        BaseVerdict::Red => {
            What::Warning { text: format!("{at} is red by itself: {}", base.rows.join(", ")) }
        }
        BaseVerdict::Undecided => What::Warning {
            text: format!(
                "whether {at} is green by itself could not be found out: {}",
                base.evidence.join("; ")
            ),
        },
    };
    driver.tell(&told, what);
    Ok(base)
}

fn ask_about_base(
    cx: &Driver<'_>,
    front: &TargetBranch,
    slot: u32,
) -> Result<Base, IntegrateError> {
    let settings = &cx.config.integrate;
    let plan = Plan::new(front.tip, settings.strategy, [])?;
    let mut engine = Engine::new(&front.store, settings.drivers()?);
    let folded = fold(&mut engine, &plan, &Recorded::default(), &mut |_| Ok(()))?;
    let candidate = folded.candidate();
    let cache = settings.verdicts(&cx.config.queue(), cx.config.now());
    let rules = cx.config.flake_rules();
    let key = cx.config.gate_set().key(candidate);
    let known = match cache.look_up(&key)? {
        Lookup::Found(verdict) => counts(&verdict, &rules).then_some(verdict.light),
        Lookup::Unknown | Lookup::Dropped { .. } => None,
    };
    let mut base = Base::of(front, BaseVerdict::Green);
    if known == Some(Light::Green) {
        return Ok(base);
    }
    let told = stand_in(&cx.config.dirs.bundles, BASE_SCOPE);
    let jobs = base_jobs(cx, front)?;
    let mut reds = u32::from(known == Some(Light::Red));
    loop {
        let (target, branch) = (&base.target, &base.branch);
        let again = if reds > 0 { " once more" } else { "" };
        let text = format!("gating {target} {branch} by itself{again} ({:.12})", base.commit);
        cx.tell(&told, What::integration(text));
        let rows = jobs.join(format!("{:.20}-{reds}", candidate.tree()));
        let (commit, tree) = (candidate.commit(), candidate.tree());
        let asked = GateJob { slot, commit, tree, asked: reds, jobs: rows };
        let ruling = gate_combination(cx, &told, front, &asked);
        let mut ruling = ruling.map_err(GateRunError::from)?;
        let quarantined = pardon(&mut ruling, &rules);
        for row in &quarantined {
            let text = format!("{row} is red over {} and {}", base.branch, excuse(row, &rules));
            cx.tell(&told, What::Warning { text });
        }
        base.gate_runs += 1;
        (base.rows, base.evidence, base.logs) = (ruling.rows, ruling.evidence, ruling.logs);
        base.red = ruling.red;
        let Some(light) = ruling.light else {
            base.verdict = BaseVerdict::Undecided;
            break;
        };
        let verdict = Verdict { key: key.clone(), light, quarantined };
        let origin = Origin { at: Some(cx.config.now()), by: None };
        cx.effects.perform("verdict", || cache.keep_from(&verdict, &origin))?;
        match light {
            Light::Green => {
                base.verdict = BaseVerdict::Green;
                break;
            }
            Light::Red => reds += 1,
        }
        if reds >= REDS {
            base.verdict = BaseVerdict::Red;
            break;
        }
    }
    let removed = Jobs::new(jobs.clone()).remove(&jobs);
    removed.map_err(|source| IntegrateError::Io { path: jobs, source })?;
    Ok(base)
}

/// Where the rows over a branch leave their verdicts until that about the branch is kept. What was
/// left there about another commit is of no use any more.
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

/// Forgets where attempts began that have no result yet and stand on a red base, so that they begin
/// anew once it is mended.
pub(crate) fn leave_red_bases(
    cx: &Driver<'_>,
    batch: &Batch,
    bases: &[Base],
) -> std::io::Result<()> {
    let attempts = cx.config.attempts();
    for bundle in &batch.bundles {
        let Some(attempt) = attempts.load(bundle.id())? else { continue };
        let stands_on = |base: &Base| {
            base.stops() && base.target == attempt.target && base.commit == attempt.base
        };
        let is_unbuilt =
            bundle.load().is_ok_and(|snapshot| snapshot.state == pdca_state::State::Planned);
        if is_unbuilt && bases.iter().any(stands_on) {
            attempts.remove(bundle.id())?;
        }
    }
    Ok(())
}
