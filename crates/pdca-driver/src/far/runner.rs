//! The far side of a band: runs a staged job in a workspace made of the files that were sent.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_exec::{Executor as _, JobContext, JobOutcome, Work};
use pdca_journal::events::{Event, EventStream, Step};
use pdca_process::Cancel;
use pdca_remote::{RunningJob, files_below};
use pdca_state::{Bundle, GateReport};

use super::{CallGrant, FarFailure, FarOutcome, FarSettings};
use crate::authorship::Dates;
use crate::config::{LaneSettings, TargetSpec, WorkspaceConfig};
use crate::integrate::{FIRST_SLOT, GateBase};
use crate::lane_env::LaneEnv;
use crate::local_executor::LocalExecutor;
use crate::run_bundle::{BeatError, Driver, carry_here, settle_dead_driver, unexpected_outcome};
use crate::step::step;

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
    let settings: FarSettings = serde_json::from_value(job.assignment().settings.clone())?;
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
    let outcome = job.alive_while(|| cancel.cancel(), || carry_out(&driver, &job, &grant));
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
    settings: &FarSettings,
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
        // Gating the branch by itself is the driver's, once for all bundles.
        gate_base: GateBase::Off,
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

fn carry_out(cx: &Driver<'_>, job: &RunningJob, grant: &CallGrant) -> FarOutcome {
    let assignment = job.assignment();
    let lane_env = LaneEnv::new(assignment.slot);
    let cx = &Driver { lane_env: Some(&lane_env), ..*cx };
    match &assignment.job.work {
        Work::Band { bundle } => {
            let bundle = cx.config.dirs.bundles.bundle(bundle);
            let mut steps = 0;
            let ended = run_steps(cx, &bundle, &mut steps);
            let calls = grant.called();
            match ended {
                Ok(()) => FarOutcome::Band { steps, calls },
                Err(BeatError::Interrupted) => FarOutcome::Interrupted,
                Err(error) => {
                    let failure = FarFailure::of(&error, bundle.dir());
                    FarOutcome::Failed { failure, steps, calls }
                }
            }
        }
        Work::Combination { .. } => match gate(cx, job) {
            Ok(report) => FarOutcome::Gated { outcome: JobOutcome::Gated { report } },
            Err(BeatError::Interrupted) => FarOutcome::Interrupted,
            Err(error) => {
                let failure = FarFailure::of(&error, &job.dir().workspace());
                FarOutcome::Failed { failure, steps: 0, calls: 0 }
            }
        },
    }
}

/// Gates a combination, in a checkout that no band uses.
fn gate(cx: &Driver<'_>, job: &RunningJob) -> Result<GateReport, BeatError> {
    let workspace = job.dir().workspace();
    let slot = FIRST_SLOT + job.assignment().slot;
    let dir = cx.config.jobs().root().join("combination");
    let place = JobContext { cancel: cx.cancel, slot: Some(slot), dir: Some(&dir) };
    let outcome = LocalExecutor::new(*cx).execute(&job.assignment().job, &place)?.outcome;
    let JobOutcome::Gated { mut report } = outcome else {
        return Err(unexpected_outcome(job.dir().name()));
    };
    for row in &mut report.rows {
        let inside = |log: &String| {
            Utf8Path::new(log).strip_prefix(&workspace).map(ToString::to_string).ok()
        };
        row.log = row.log.as_ref().and_then(inside);
    }
    Ok(report)
}

/// Carries out the steps that are a host's, from wherever the files stand, until one that is not.
fn run_steps(cx: &Driver<'_>, bundle: &Bundle, steps: &mut u32) -> Result<(), BeatError> {
    let _taken = cx.config.locks().take(bundle.id())?;
    // A runner before this one may have died while a child ran.
    settle_dead_driver(cx, bundle)?;
    loop {
        let snapshot = bundle.load()?;
        let position = cx.position(&snapshot)?;
        let next = step(position);
        match next {
            Step::Build | Step::Gate | Step::Review => {}
            Step::Halt(_) | Step::Close | Step::Assemble | Step::SendBack | Step::Archive(_) => {
                return cx.config.jobs().remove_all(bundle.id()).map_err(BeatError::Own);
            }
        }
        if cx.cancel.is_cancelled() {
            return Err(BeatError::Interrupted);
        }
        let begun = std::time::Instant::now();
        carry_here(cx, next, bundle, &snapshot)?;
        let after = bundle.load()?;
        if cx.position(&after)? == position {
            return Err(BeatError::NoProgress { step: next });
        }
        *steps += 1;
        let duration_ms = pdca_journal::events::millis(begun.elapsed());
        cx.tell(
            bundle,
            pdca_journal::events::EventKind::Finished { step: next, to: after.state, duration_ms },
        );
    }
}

/// Returns the files that make up the result, and the head of the commits in the pack that was made of them.
fn result_of(
    config: &WorkspaceConfig,
    job: &RunningJob,
    settings: &FarSettings,
) -> io::Result<(Vec<Utf8PathBuf>, Option<String>)> {
    let workspace = job.dir().workspace();
    let Work::Band { bundle: id } = &job.assignment().job.work else {
        let logs = Utf8Path::new(".pdca/evidence");
        let below = files_below(&workspace.join(logs))?;
        return Ok((below.into_iter().map(|path| logs.join(path)).collect(), None));
    };
    let root = Utf8Path::new("results").join(id.dir_name());
    let mut paths: Vec<Utf8PathBuf> =
        files_below(&workspace.join(&root))?.into_iter().map(|path| root.join(path)).collect();
    let record = format!("{}.json", id.dir_name());
    for of in ["attempts", "attempt-notes"] {
        let path = Utf8Path::new(".pdca").join(of).join(&record);
        if workspace.join(&path).is_file() {
            paths.push(path);
        }
    }
    let attempt = config.attempts().load(id)?;
    let head = attempt
        .as_ref()
        .and_then(|attempt| attempt.changes.last())
        .map(|change| change.head.clone());
    let (Some(head), Some(target), Some(attempt)) = (head, &settings.target, attempt) else {
        return Ok((paths, None));
    };
    let repository = job.root().repository(&target.repository)?;
    let pack = pdca_remote::pack(&repository, std::slice::from_ref(&head), &[attempt.base]);
    // Before `publish`: a result is whole or not there, and its pack is a part of it.
    pdca_state::files::replace(job.dir().pack(), &pack.map_err(io::Error::other)?)?;
    Ok((paths, Some(head)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::stand_guard;
    use crate::testing::Scene;

    #[test]
    fn what_a_child_of_a_dead_runner_wrote_into_the_bundle_fails_the_job() {
        let scene = Scene::planned();
        let (driver, bundle) = (scene.driver(), scene.bundle());
        stand_guard(&driver, &bundle).unwrap();
        fs_err::write(bundle.path(pdca_state::Artifact::Review), "all is well\n").unwrap();
        let ended = run_steps(&driver, &bundle, &mut 0);
        assert!(matches!(ended, Err(BeatError::Breach { .. })), "{ended:?}");
    }
}
