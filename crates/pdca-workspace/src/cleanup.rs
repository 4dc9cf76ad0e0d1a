//! Removes leftovers of runs that are no longer needed.
//!
//! # Invariants
//! - Nothing is removed that is in use, or that is neither in its target nor rescued.
//! - The steps are the same with and without a dry run: what ends or goes only now is left to the next call.

mod integrations;

use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_driver::{
    Effects, LaneOwner, LaneOwners, Prune, RecordOf, RunStatus, WorkspaceConfig, has_work, prune,
    run_statuses, to_prune,
};
use pdca_integrate::KeepReason;
use pdca_journal::{Liveness, RunId, RunPhase};
use pdca_lanes::LaneReport;
use pdca_state::{BundleId, State};

use crate::lanes::WorkspaceLanes;
use crate::recovery::{RecoveryError, resume_run};
use crate::{OpenWorkspace, OperationError};

const DAY: u64 = 24 * 3600;

/// The steps of a cleanup.
#[derive(Debug)]
pub struct Cleanup {
    pub dry_run: bool,
    pub steps: Vec<CleanupStep>,
}

impl Cleanup {
    /// Returns whether anything is removed or ended, or would be.
    pub fn has_work(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step.decision, CleanupDecision::Keep(_)))
    }
}

/// The fate of one leftover.
#[derive(Debug)]
pub struct CleanupStep {
    pub leftover: Leftover,
    pub decision: CleanupDecision,
    /// It was done; never in a dry run.
    pub done: bool,
    /// The file with the rescued contents of a checkout.
    pub kept: Option<Utf8PathBuf>,
    /// The command that fetches them.
    pub fetch: Option<String>,
    /// The reason it could not be done.
    pub error: Option<String>,
}

/// What a run or an integration left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// A run that is active, with nothing left to do.
    Run(RunId),
    /// An integration that is active, with nothing left to do.
    Integration(RunId),
    /// The lane of a target.
    Checkout { slot: u32, target: String },
    /// A ref that protects commits in the repository of a target.
    Ref { name: String, target: String },
    /// The record of a run or an integration that is over.
    Record { of: RecordOf, run: RunId },
    /// A part of a record that a crash left, by the name of its directory.
    PartialRecord { name: String },
    /// The logs of a red combination.
    Evidence { dir: Utf8PathBuf },
}

/// The decision about a leftover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CleanupDecision {
    /// It is ended, because nothing is left to do in it.
    End,
    Remove(RemovalReason),
    Keep(RetentionReason),
}

/// The reason to remove a leftover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalReason {
    /// No unfinished work is in the checkout.
    NothingUnfinished,
    /// The commit of the ref is kept elsewhere or can be made again, as its owner says.
    RefNotNeeded(String),
    /// The record has been over for more than so many days.
    Old { phase: RunPhase, days: u64 },
    /// A crash left it.
    Crash,
    /// Neither a held change nor an open brief names the logs.
    Unnamed,
}

/// The reason to keep a leftover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetentionReason {
    /// A process works in the checkout.
    InUse,
    /// This run is active, and may expect the checkout.
    RunActive(RunId),
    /// The checkout belongs to another workspace.
    OtherWorkspace,
    /// The bundle of the checkout may continue.
    Unfinished { id: BundleId, state: State },
    /// The bundle of the checkout cannot be read.
    Unreadable { id: BundleId },
    /// The target of the checkout is not configured.
    UnknownTarget,
    /// The ref is needed.
    Ref(KeepReason),
    /// The integration was not over, and may need the logs.
    IntegrationActive(RunId),
}

impl CleanupStep {
    fn new(leftover: Leftover, decision: CleanupDecision) -> Self {
        Self { leftover, decision, done: false, kept: None, fetch: None, error: None }
    }

    fn remove(leftover: Leftover, why: RemovalReason) -> Self {
        Self::new(leftover, CleanupDecision::Remove(why))
    }

    fn keep(leftover: Leftover, why: RetentionReason) -> Self {
        Self::new(leftover, CleanupDecision::Keep(why))
    }

    /// Performs the step, except in a dry run, which has no effects.
    fn perform<E: std::error::Error>(
        mut self,
        effects: Option<&dyn Effects>,
        name: &'static str,
        effect: impl FnOnce() -> Result<(), E>,
    ) -> Self {
        match effects.map(|effects| effects.perform(name, effect)) {
            None => {}
            Some(Ok(())) => self.done = true,
            Some(Err(error)) => self.error = Some(pdca_state::chain(&error)),
        }
        self
    }
}

/// Removes leftovers of finished work. Records of runs that are over stay for `keep_days` days.
pub fn clean_up(
    open: &OpenWorkspace<'_>,
    keep_days: u64,
    effects: &dyn Effects,
) -> Result<Cleanup, OperationError> {
    let config = open.driver_config()?;
    let effects = (!open.dry_run).then_some(effects);
    // Before the drivers are locked out: ending a run takes the same locks.
    let (mut steps, active) = end_runs(open, &config, effects)?;
    // Held to the end, so that no driver starts in a checkout that is being removed.
    let _no_driver = open.without_driver()?;
    steps.extend(checkouts(open, &config, active.as_ref(), effects)?);
    let clock = open.machine.moment;
    let (ended, ending) = integrations::end(&config, clock, effects)?;
    steps.extend(ended);
    let keep = Duration::from_secs(keep_days.saturating_mul(DAY));
    steps.extend(integrations::refs(open, &config, keep, &ending, effects)?);
    for record in to_prune(&config, clock(), keep)? {
        // A run that ends only now is left to the next call, as a dry run announces it.
        if record.run.as_ref().is_none_or(|(run, _)| !ending.contains(run)) {
            steps.push(remove_record(&record, keep_days, effects));
        }
    }
    steps.extend(integrations::evidence(&config, &ending, effects)?);
    Ok(Cleanup { dry_run: open.dry_run, steps })
}

/// Ends runs in which nothing is left to do; also returns an active one, if any.
fn end_runs(
    open: &OpenWorkspace<'_>,
    config: &WorkspaceConfig,
    effects: Option<&dyn Effects>,
) -> Result<(Vec<CleanupStep>, Option<RunId>), OperationError> {
    let mut steps = Vec::new();
    let mut active = None;
    for status in run_statuses(config)? {
        let is_done = |status: &RunStatus| {
            status.driver == Liveness::Dead
                && status.state.as_ref().is_ok_and(|state| !has_work(config, state))
        };
        if !is_done(&status) {
            active = Some(status.id);
            continue;
        }
        let mut step = CleanupStep::new(Leftover::Run(status.id.clone()), CleanupDecision::End);
        if let Some(effects) = effects {
            let (begun, _admitted) = resume_run(&status.id, config, open.machine.moment)?;
            let end = || begun.run.finish();
            step.done = effects.perform("end-run", end).map_err(RecoveryError::run)?;
        }
        steps.push(step);
    }
    Ok((steps, active))
}

fn checkouts(
    open: &OpenWorkspace<'_>,
    config: &WorkspaceConfig,
    active: Option<&RunId>,
    effects: Option<&dyn Effects>,
) -> Result<Vec<CleanupStep>, OperationError> {
    if open.workspace.targets.is_empty() {
        return Ok(Vec::new());
    }
    let place = WorkspaceLanes::of(open.workspace)?;
    let targets = place.targets(None)?;
    let mut steps = Vec::new();
    for lane in &place.lanes.list()? {
        let leftover = Leftover::Checkout { slot: lane.slot, target: lane.target.clone() };
        let target = targets.iter().find(|target| target.name() == lane.target);
        steps.push(match (retention(lane, config, active), target) {
            (Some(why), _) => CleanupStep::keep(leftover, why),
            (None, None) => CleanupStep::keep(leftover, RetentionReason::UnknownTarget),
            (None, Some(target)) => {
                let mut step = CleanupStep::remove(leftover, RemovalReason::NothingUnfinished);
                if let Some(effects) = effects {
                    let lane = place.remove(lane, target, effects);
                    (step.done, step.kept, step.fetch) = (lane.removed, lane.bundle, lane.fetch);
                    step.error = lane.kept_because;
                }
                step
            }
        });
    }
    Ok(steps)
}

/// Returns the reason to keep a checkout.
fn retention(
    lane: &LaneReport,
    config: &WorkspaceConfig,
    active: Option<&RunId>,
) -> Option<RetentionReason> {
    if lane.holder.is_some() {
        return Some(RetentionReason::InUse);
    }
    // Whatever the owner notes say: a run that is resumed expects the checkouts that its record
    // names.
    if let Some(run) = active {
        return Some(RetentionReason::RunActive(run.clone()));
    }
    match LaneOwners::in_lanes_of(config).of(lane.slot, &lane.target) {
        // A combination can be made again from the seals.
        LaneOwner::Nobody | LaneOwner::Combination => None,
        LaneOwner::Stranger => Some(RetentionReason::OtherWorkspace),
        LaneOwner::Bundle(id) => unfinished(config, id),
    }
}

/// Returns the reason to keep the checkout of a bundle that may continue; `None` if it is finished or gone.
fn unfinished(config: &WorkspaceConfig, id: BundleId) -> Option<RetentionReason> {
    let state = match config.dirs.bundles.bundle(&id).glance() {
        Ok(glance) => glance.state,
        Err(pdca_state::LoadError::Missing { .. }) => return None,
        Err(_) => return Some(RetentionReason::Unreadable { id }),
    };
    match state {
        State::Complete | State::Discontinued | State::Resolved => None,
        State::Unplanned
        | State::Planned
        | State::Built
        | State::Checked
        | State::AwaitingSignoff
        | State::Iterate(_) => Some(RetentionReason::Unfinished { id, state }),
    }
}

fn remove_record(record: &Prune, days: u64, effects: Option<&dyn Effects>) -> CleanupStep {
    let step = if let Some((run, phase)) = &record.run {
        let leftover = Leftover::Record { of: record.of, run: run.clone() };
        CleanupStep::remove(leftover, RemovalReason::Old { phase: *phase, days })
    } else {
        let name = record.dir.file_name().unwrap_or_default().to_owned();
        CleanupStep::remove(Leftover::PartialRecord { name }, RemovalReason::Crash)
    };
    step.perform(effects, "record", || prune(record))
}
