//! The far side of a leg: runs a staged job in a workspace made of the files that were sent.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::integrate::FIRST_SLOT;
use pdca_driver::leg::{
    AttemptCommits, CallGrant, GatedTree, GatesLeg, Leg, LegEnd, LegFailure, LegOutcome, LegWork,
    attempt_commits, result_files,
};
use pdca_driver::place::{Here, Place as _, PlaceError};
use pdca_driver::{
    BeatError, CheckoutError, Dates, Driver, LaneEnv, LaneSettings, TargetSpec, WorkspaceConfig,
};
use pdca_journal::events::{Event, EventStream};
use pdca_process::Cancel;
use pdca_state::GateReport;

use crate::objects::pack;
use crate::runner::RunningJob;
use crate::stage::LegSettings;

/// What a host provides, read by its command.
#[derive(Debug, Clone)]
pub struct HostMachine {
    pub search_path: Option<OsString>,
    /// Returns seconds since 1970.
    pub clock: fn() -> i64,
    pub utc_offset: fn() -> i32,
    /// Returns the time of events.
    pub timestamp: fn() -> jiff::Timestamp,
    pub program: Option<Utf8PathBuf>,
    /// The user's own configuration on the host, which no leaf may write.
    pub configuration: Vec<Utf8PathBuf>,
}

/// Runs a job to its end and publishes the result, unless a later attempt was announced meanwhile.
///
/// Returns whether the result was published.
pub fn run_job(job: RunningJob, machine: &HostMachine, cancel: &Cancel) -> io::Result<bool> {
    let job = Arc::new(job);
    let settings: LegSettings = serde_json::from_value(job.assignment().settings.clone())?;
    let config = config(&job, &settings, machine)?;
    let log = Arc::clone(&job);
    let listener = move |event: Event| {
        // The work goes on if its log cannot be written; the result tells what matters.
        if let Ok(line) = serde_json::to_vec(&event) {
            drop(log.log(&line));
        }
    };
    let events = EventStream::new(machine.timestamp, listener);
    let grant = CallGrant::open(settings.called, settings.calls, job.dir().calls())?;
    let driver = Driver { grant: Some(&grant), ..Driver::new(&config, &events, cancel) };
    let outcome = job.alive_while(|| cancel.cancel(), || run_staged(&driver, &job, &grant));
    if cancel.is_cancelled() {
        return Ok(false);
    }
    let (paths, head) = result_of(&config, &job, &settings)?;
    let outcome = serde_json::to_value(&outcome)?;
    job.publish(&paths, head.as_deref(), outcome)
}

/// Returns the configuration of this machine under the terms of a job.
fn config(
    job: &RunningJob,
    settings: &LegSettings,
    machine: &HostMachine,
) -> io::Result<WorkspaceConfig> {
    let assignment = job.assignment();
    let root = job.root();
    let mut targets = Vec::new();
    if let Some(target) = &settings.target {
        targets.push(TargetSpec {
            name: target.name.clone(),
            path: root.repository(&target.repository)?,
            repo: target.repo.clone(),
            branch: target.branch.clone(),
        });
    }
    // Commits have the driver's time, whatever the clock of the host says.
    let behind = settings.sent_at.saturating_sub((machine.clock)());
    let dates = match settings.fixed_date {
        Some(seconds) => Dates::Fixed(seconds),
        None => Dates::Behind(machine.clock, behind),
    };
    // Everything of the host is closed to leaves and gates: other jobs, results, the program. Their own checkout is
    // opened for them again.
    let closed = machine.configuration.iter().cloned().chain([root.path().to_owned()]);
    let workspace = job.dir().workspace();
    let config = WorkspaceConfig {
        configuration: closed.collect(),
        instructions: Some(settings.instructions.clone()),
        targets,
        default_branch: settings.default_branch.clone(),
        lanes: LaneSettings::at(root.lanes().join(&settings.workspace)),
        schedule: settings.schedule,
        search_path: machine.search_path.clone(),
        utc_offset: machine.utc_offset,
        program: machine.program.clone(),
        author: settings.author.clone(),
        dates,
        holder: job.dir().name().to_string(),
        ..WorkspaceConfig::new(workspace, settings.run.clone(), machine.clock)
    };
    Ok(config.under(assignment.job.terms.clone()))
}

fn run_staged(cx: &Driver<'_>, job: &RunningJob, grant: &CallGrant) -> LegOutcome {
    let assignment = job.assignment();
    let lane_env = LaneEnv::new(assignment.slot);
    let cx = &Driver { lane_env: Some(&lane_env), ..*cx };
    match &assignment.job.work {
        LegWork::Attempt { bundle } => {
            let bundle = cx.config.dirs.bundles.bundle(bundle);
            let mut steps = 0;
            let ended = cx.run_leg(&bundle, &mut steps);
            let calls = grant.called();
            match ended {
                Ok(()) => LegOutcome::Steps { steps, calls },
                Err(BeatError::Interrupted) => LegOutcome::Interrupted,
                Err(error) => {
                    let failure = LegFailure::of(&error, bundle.dir());
                    LegOutcome::Failed { failure, steps, calls }
                }
            }
        }
        LegWork::Gates { .. } => match gate(cx, job) {
            Ok(report) => LegOutcome::Gated { outcome: GatedTree { report } },
            Err(BeatError::Interrupted) => LegOutcome::Interrupted,
            Err(error) => {
                let failure = LegFailure::of(&error, &job.dir().workspace());
                LegOutcome::Failed { failure, steps: 0, calls: 0 }
            }
        },
    }
}

/// Gates a combination, in a checkout that no attempt uses.
fn gate(cx: &Driver<'_>, job: &RunningJob) -> Result<GateReport, BeatError> {
    let name = job.dir().name();
    let other_kind = || PlaceError::OtherKind { leg: name.to_string() };
    let LegWork::Gates { target, branch, commit, tree } = &job.assignment().job.work else {
        return Err(other_kind().into());
    };
    let unknown = || CheckoutError::Unconfigured { name: target.clone() };
    let found = cx.config.targets.iter().find(|spec| spec.name == *target);
    let target = found.ok_or_else(unknown)?;
    let workspace = job.dir().workspace();
    let dir = cx.config.jobs().root().join("combination");
    let slot = FIRST_SLOT + job.assignment().slot;
    let leg = Leg::Gates(GatesLeg { name, target, branch, commit, tree, slot, dir: &dir });
    let LegEnd::Gated { mut report } = Here::default().run(cx, &leg)? else {
        return Err(other_kind().into());
    };
    for row in &mut report.rows {
        let inside = |log: &String| {
            Utf8Path::new(log).strip_prefix(&workspace).map(ToString::to_string).ok()
        };
        row.log = row.log.as_ref().and_then(inside);
    }
    Ok(report)
}

/// Returns the files that make up the result, and the head of the commits in the pack that was made of them.
fn result_of(
    config: &WorkspaceConfig,
    job: &RunningJob,
    settings: &LegSettings,
) -> io::Result<(Vec<Utf8PathBuf>, Option<String>)> {
    let work = &job.assignment().job.work;
    let paths = result_files(&job.dir().workspace(), work)?;
    let (LegWork::Attempt { bundle }, Some(target)) = (work, &settings.target) else {
        return Ok((paths, None));
    };
    let Some(AttemptCommits { base, head }) = attempt_commits(config, bundle)? else {
        return Ok((paths, None));
    };
    let repository = job.root().repository(&target.repository)?;
    let pack = pack(&repository, std::slice::from_ref(&head), &[base]);
    // Before `publish`: a result is whole or not there, and its pack is a part of it.
    pdca_state::files::replace(job.dir().pack(), &pack.map_err(io::Error::other)?)?;
    Ok((paths, Some(head)))
}
