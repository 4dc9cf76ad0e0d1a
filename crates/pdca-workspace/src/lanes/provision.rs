//! Makes missing lanes, and hydrates them.

use std::sync::mpsc;
use std::thread;

use pdca_driver::{LaneCount, Reckoning, WorkspaceConfig, fit_ports, reckon_lanes};
use pdca_lanes::{
    HydratePhase, Hydrated, LaneKind, LaneReport, Provision, ProvisionEvent, Provisioned, Target,
};
use pdca_process::Cancel;
use serde::Serialize;

use super::{LanesError, WorkspaceLanes, hydration};
use crate::{OpenWorkspace, OperationError};

/// A request for lanes.
#[derive(Debug, Clone, Copy)]
pub struct ProvisionRequest<'a> {
    /// The number; that of the configuration if none is given.
    pub lanes: Option<LaneCount>,
    /// The kind of new lanes; that of the configuration if none is given.
    pub kind: Option<LaneKind>,
    /// Runs `[lanes.hydrate]` in each that is free.
    pub hydrate: bool,
    /// Only lanes of this target.
    pub target: Option<&'a str>,
}

/// The lanes after provisioning.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProvisionedLanes {
    pub dry_run: bool,
    pub lanes: Vec<ProvisionedLane>,
    /// The missing slots, in a dry run.
    pub missing: Vec<MissingLane>,
}

/// A lane after provisioning.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProvisionedLane {
    pub target: String,
    #[serde(flatten)]
    pub lane: Provisioned,
    pub hydration: HydrationOutcome,
}

/// What hydration did in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum HydrationOutcome {
    /// It was not tried: it was not asked for, or the lane is in use or has changes.
    Skipped,
    /// Nothing is configured.
    Nothing,
    /// The lane was hydrated before.
    Warm,
    /// The lane was hydrated now.
    Fresh,
}

impl HydrationOutcome {
    fn of(hydrated: Option<&Hydrated>) -> Self {
        match hydrated {
            None => Self::Skipped,
            Some(Hydrated::Nothing) => Self::Nothing,
            Some(Hydrated::Warm) => Self::Warm,
            Some(Hydrated::Fresh(_)) => Self::Fresh,
        }
    }
}

/// A lane that is not there yet.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingLane {
    pub slot: u32,
    pub target: String,
}

/// What a caller can show, or has to do, while lanes are made.
#[derive(Debug)]
pub enum ProvisionProgress {
    /// The number of lanes follows from the machine.
    Reckoned(Reckoning),
    /// No lane was asked for, and one is taken.
    NoLaneAsked,
    /// A reason for fewer lanes, or a value that could not be measured.
    Remark(String),
    /// A lane is being made.
    Making { target: String, event: ProvisionEvent },
    /// Commands of `[lanes.hydrate]` begin to run, until this is cancelled or they end.
    HydrationBegins { cancel: Cancel },
    /// A command of `[lanes.hydrate]` was started.
    Hydrating { slot: u32, target: String, phase: HydratePhase },
    /// The commands have ended.
    HydrationEnded,
    /// A file was left out of the copies.
    NotCopied { slot: u32, target: String, path: String },
}

/// Makes missing lanes, and hydrates them.
pub fn provision_lanes(
    open: &OpenWorkspace<'_>,
    request: ProvisionRequest<'_>,
    progress: &mut dyn FnMut(ProvisionProgress),
) -> Result<ProvisionedLanes, OperationError> {
    let place = WorkspaceLanes::of(open.workspace)?;
    let targets = place.targets(request.target)?;
    let config = open.driver_config()?;
    let count = lane_count(open, &config, request.lanes, progress);
    let kind = request.kind.unwrap_or(open.workspace.config.lanes.kind);
    if open.dry_run {
        let missing = missing(&place, &targets, count)?;
        return Ok(ProvisionedLanes { dry_run: true, lanes: Vec::new(), missing });
    }
    refuse_driver(&config)?;
    let mut lanes = Vec::new();
    for target in &targets {
        let base = place.base(target)?.commit;
        let missing = Provision::new(0..count, target, &base).with_kind(kind);
        for lane in provision(&place, &missing, progress)? {
            let hydrated = if request.hydrate {
                let slot = (lane.slot, lane.kind);
                hydration::hydrate(&place, slot, target, &config, progress)?
            } else {
                None
            };
            let hydration = HydrationOutcome::of(hydrated.as_ref());
            lanes.push(ProvisionedLane { target: target.name().to_owned(), lane, hydration });
        }
    }
    Ok(ProvisionedLanes { dry_run: false, lanes, missing: Vec::new() })
}

/// Returns the number of lanes, which has to fit the ports.
fn lane_count(
    open: &OpenWorkspace<'_>,
    config: &WorkspaceConfig,
    asked: Option<LaneCount>,
    progress: &mut dyn FnMut(ProvisionProgress),
) -> u32 {
    let asked = asked.unwrap_or(open.workspace.config.driver.lanes);
    let count = if let Some(count) = asked.number() {
        if asked == LaneCount::Number(0) {
            progress(ProvisionProgress::NoLaneAsked);
        }
        count
    } else {
        let reckoning = reckon_lanes(config);
        let count = reckoning.lanes;
        progress(ProvisionProgress::Reckoned(reckoning));
        count
    };
    let fit = fit_ports(config, count);
    fit.remarks.into_iter().for_each(|remark| progress(ProvisionProgress::Remark(remark)));
    fit.lanes.get()
}

/// Returns an error while a driver is running, which makes and claims lanes itself.
fn refuse_driver(config: &WorkspaceConfig) -> Result<(), OperationError> {
    let locks = config.locks();
    match locks.driver_at_work()?.map_or_else(|| locks.integration_at_work(), |it| Ok(Some(it)))? {
        None => Ok(()),
        Some(holder) => Err(LanesError::DriverAtWork { holder }.into()),
    }
}

/// Returns the lanes that are not there yet.
fn missing(
    place: &WorkspaceLanes<'_>,
    targets: &[Target],
    count: u32,
) -> Result<Vec<MissingLane>, OperationError> {
    let there = place.lanes.list()?;
    let is_there = |slot: u32, target: &Target| {
        let is_it = |lane: &LaneReport| lane.slot == slot && lane.target == target.name();
        there.iter().any(|lane| is_it(lane) && lane.head.is_some())
    };
    let mut missing = Vec::new();
    for target in targets {
        let slots = (0..count).filter(|slot| !is_there(*slot, target));
        missing.extend(slots.map(|slot| MissingLane { slot, target: target.name().to_owned() }));
    }
    Ok(missing)
}

/// Makes the lanes on a thread of its own, while this one reports the progress.
fn provision(
    place: &WorkspaceLanes<'_>,
    request: &Provision<'_>,
    progress: &mut dyn FnMut(ProvisionProgress),
) -> Result<Vec<Provisioned>, LanesError> {
    let (to, from) = mpsc::channel();
    let made = thread::scope(|scope| {
        let worker = scope.spawn(move || {
            place.lanes.provision(request, &|event| {
                // This fails only if the receiver panicked; the work continues.
                drop(to.send(event));
            })
        });
        // The sender is dropped with the worker.
        for event in from {
            let target = request.target.name().to_owned();
            progress(ProvisionProgress::Making { target, event });
        }
        worker.join()
    });
    made.map_err(|_| LanesError::Panicked)?.map_err(LanesError::Provision)
}
