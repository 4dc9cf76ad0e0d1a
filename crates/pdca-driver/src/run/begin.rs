//! Begins a run: admission, then the run of a driver that died, or a new one.

use std::io;
use std::sync::Mutex;

use camino::Utf8PathBuf;
use pdca_journal::{
    Activity, Admission, AdmissionError, AdmissionRefusal, AdmissionRuling, Admitted, AppendError,
    Block, Clock, Epoch, FindError, HostScope, Journal, JournalCreateError, LockHolder, OpenError,
    Opened, ProcessIdentity, Reason, Record, RunFact, RunId, RunPhase, RunState, RunTarget, Runs,
    Torn, Workstream, next_epoch, rule,
};
use pdca_state::BundleId;

use super::observe::{Recovered, reconcile};
use super::{Run, can_go_on, closing};
use crate::config::WorkspaceConfig;
use crate::integrate::FIRST_SLOT;

/// The lock of a target, in its git common directory.
pub(super) const LOCK: &str = "pdca.lock";

/// A run that this process may drive.
#[derive(Debug)]
pub struct Begun {
    pub run: Run,
    /// The run belonged to a driver that died.
    pub resumed: bool,
    /// The traces of that driver, with the action taken about each.
    pub recovered: Vec<Recovered>,
    /// The unfinished end of that driver's journal, which was cut off.
    pub torn: Option<Torn>,
}

/// The reason no run can begin. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// Another process holds a target, or it cannot be locked.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// A run is blocked, and bars others until it is unblocked or aborted.
    #[error("run {run} waits for a person ({phase})")]
    Blocked {
        run: RunId,
        workspace: Utf8PathBuf,
        /// Its kind of block.
        phase: RunPhase,
        /// The reason, if known.
        block: Option<Box<Block>>,
    },
    /// The journal of a run cannot be read, so the run may still be active.
    #[error("the journal of run {run} cannot be read")]
    Unreadable { run: RunId, dir: Utf8PathBuf, source: Option<Box<FindError>> },
    #[error("run {run} cannot be resumed")]
    TakeUp { run: RunId, source: Box<OpenError> },
    #[error("the run's journal cannot be created")]
    Create(#[from] JournalCreateError),
    #[error("the run's journal cannot be written")]
    Append(#[from] AppendError),
    /// The runs cannot be listed, or this process cannot be identified.
    #[error("the runs of the workspace cannot be read")]
    Io(#[from] io::Error),
    /// The epoch counter is exhausted.
    #[error("no epoch is left")]
    NoEpoch,
}

/// The contents of the run that is asked for.
pub(super) struct RunRequest<'a> {
    pub(super) config: &'a WorkspaceConfig,
    pub(super) bundles: &'a [BundleId],
    pub(super) lanes: u32,
    pub(super) clock: Clock,
}

impl Run {
    /// Begins a run over these bundles, or resumes an interrupted one.
    ///
    /// An interrupted run is opened whatever its bundles: the traces of its driver are
    /// cleaned up first. It continues if it has all of these bundles, and is ended otherwise.
    pub fn begin(
        config: &WorkspaceConfig,
        bundles: &[BundleId],
        lanes: u32,
        clock: Clock,
    ) -> Result<Begun, BeginError> {
        let request = RunRequest { config, bundles, lanes, clock };
        let targets = targets(config);
        // The locks come before any journal is read: only their holder may judge whether a run is
        // over.
        let admission = Admission::take(targets.iter().map(|target| target.common_dir.join(LOCK)))?;
        refuse_blocked_elsewhere(config, &admission)?;
        let runs = config.dirs.runs();
        let active = runs.active()?;
        let facts: Vec<RunFact> = active.iter().map(RunFact::from).collect();
        let me = myself()?;
        let mut recovered = Vec::new();
        let mut torn = None;
        let mut blocks = Vec::new();
        match rule(&facts) {
            AdmissionRuling::Admit => {}
            AdmissionRuling::Resume(run) => {
                let taken = take_up(&request, &admission, &runs, &run, &me)?;
                (recovered, torn) = (taken.recovered, taken.torn);
                let mut journal = taken.journal;
                let has = |id: &BundleId| journal.state().bundles.contains_key(id);
                // Continuing keeps the counts of retries and calls. A run cannot grow, so a request
                // for other bundles ends it.
                if bundles.iter().all(has) && journal.state().phase == RunPhase::Running {
                    announce(&admission, config, journal.run())?;
                    let run = Self {
                        journal: Mutex::new(journal),
                        runs,
                        clock,
                        me,
                        bundles: config.dirs.bundles.clone(),
                        admission,
                    };
                    return Ok(Begun { run, resumed: true, recovered, torn });
                }
                blocks = blocks_of(journal.state(), config);
                let records = closing(&journal);
                journal.append(clock(), records)?;
            }
            AdmissionRuling::Refuse(refusal) => return Err(refused(refusal, config, active)),
        }
        // A block outlives its run: until a person lifts it, every run contains the bundle and does not start it.
        let mut batch = bundles.to_vec();
        batch.extend(blocks.iter().map(|(id, _)| id.clone()));
        batch.sort();
        batch.dedup();
        let request = RunRequest { bundles: &batch, ..request };
        let mut journal = create(&request, &admission, &runs, &me, targets)?;
        journal.append(clock(), blocks.into_iter().map(|(_, record)| record).collect())?;
        announce(&admission, config, journal.run())?;
        let journal = Mutex::new(journal);
        let bundles = config.dirs.bundles.clone();
        let run = Self { journal, runs, clock, me, bundles, admission };
        Ok(Begun { run, resumed: false, recovered, torn })
    }
}

/// Returns the blocked bundles of a run, each with the record that
/// blocks it in the next. A bundle that was finished or removed meanwhile is left out.
fn blocks_of(state: &RunState, config: &WorkspaceConfig) -> Vec<(BundleId, Record)> {
    let block = |(id, work): (&BundleId, &Workstream)| {
        let record = Record::Blocked {
            bundle: Some(id.clone()),
            reason: Reason::Recovery,
            evidence: work.status.recovery_block()?.to_owned(),
        };
        can_go_on(&config.dirs.bundles, id).then(|| (id.clone(), record))
    };
    state.bundles.iter().filter_map(block).collect()
}

/// Returns the identity of this process, for later liveness checks.
pub(super) fn myself() -> io::Result<ProcessIdentity> {
    ProcessIdentity::of(&HostScope::here()?, std::process::id())
        .ok_or_else(|| io::Error::other("this process is not in the process table"))
}

/// Returns the targets that can be opened. Errors of the others are reported where they are needed.
pub(super) fn targets(config: &WorkspaceConfig) -> Vec<RunTarget> {
    let open = |spec: &crate::config::TargetSpec| {
        let target = pdca_lanes::Target::open(&spec.name, &spec.path).ok()?;
        Some(RunTarget { name: spec.name.clone(), common_dir: target.common_dir().to_owned() })
    };
    config.targets.iter().filter_map(open).collect()
}

/// Returns an error if a run of another workspace on one of the targets is blocked: it bars this one too.
fn refuse_blocked_elsewhere(
    config: &WorkspaceConfig,
    admission: &Admission,
) -> Result<(), BeginError> {
    for words in admission.words_found() {
        let Some(LockHolder { run, workspace, .. }) = LockHolder::from_words(words) else {
            continue;
        };
        let Ok(run) = run.parse::<RunId>() else { continue };
        // Runs of this workspace are ruled on below, by their journals.
        if workspace == config.dirs.root {
            continue;
        }
        // The text in the lock only says where to look; the journal decides. One that is gone bars
        // nothing.
        let found = Runs::new(workspace.join(".pdca/runs")).find(&run);
        if let Ok(found) = found.found
            && found.state.phase.is_blocked()
        {
            let (phase, block) = (found.state.phase, found.state.block.map(Box::new));
            return Err(BeginError::Blocked { run, workspace, phase, block });
        }
    }
    Ok(())
}

pub(super) fn announce(
    admission: &Admission,
    config: &WorkspaceConfig,
    run: &RunId,
) -> Result<(), BeginError> {
    let host = HostScope::here()?.host;
    let (workspace, run) = (config.dirs.root.clone(), run.to_string());
    Ok(admission.announce(&LockHolder { pid: std::process::id(), host, workspace, run })?)
}

pub(super) struct TakenRun {
    pub(super) journal: Journal,
    pub(super) recovered: Vec<Recovered>,
    pub(super) torn: Option<Torn>,
}

/// Opens the journal of a driver that died, and reconciles it.
pub(super) fn take_up(
    request: &RunRequest<'_>,
    admission: &Admission,
    runs: &Runs,
    run: &RunId,
    me: &ProcessIdentity,
) -> Result<TakenRun, BeginError> {
    let epoch = epoch(runs)?;
    let at = (request.clock)();
    let opened = Journal::open(runs, admission, run, epoch, at, me.clone(), false)
        .map_err(|source| BeginError::TakeUp { run: run.clone(), source: Box::new(source) })?;
    set_right(request, opened)
}

/// Reconciles a journal that this driver now owns with the lanes.
pub(super) fn set_right(request: &RunRequest<'_>, opened: Opened) -> Result<TakenRun, BeginError> {
    let mut journal = opened.journal;
    let recovered = reconcile(request, &mut journal)?;
    // The driver died between `create` and its first record.
    if journal.state().phase == RunPhase::Preparing {
        journal.append((request.clock)(), vec![running()])?;
    }
    Ok(TakenRun { journal, recovered, torn: opened.torn })
}

fn create(
    request: &RunRequest<'_>,
    admission: &Admission,
    runs: &Runs,
    me: &ProcessIdentity,
    targets: Vec<RunTarget>,
) -> Result<Journal, BeginError> {
    let at = (request.clock)();
    let run = RunId::generate(at.wall)?;
    let admitted = Admitted {
        driver: me.clone(),
        targets,
        batch: request.bundles.to_vec(),
        config_digest: request.config.config_digest.clone(),
        // Every slot that bundles may have, and not only the lanes of this driver: the next one may resume the run with
        // more of them, work may be left in a lane beyond them, and a bundle of another place has a slot beside them.
        lanes: request.lanes.max(FIRST_SLOT),
    };
    let mut journal = Journal::create(runs, admission, &run, epoch(runs)?, at, admitted)?;
    journal.append((request.clock)(), vec![running()])?;
    Ok(journal)
}

fn running() -> Record {
    Record::Entered { activity: Activity::Running }
}

/// Returns the next epoch: above that of the newest run, which was above all before it.
pub(super) fn epoch(runs: &Runs) -> Result<Epoch, BeginError> {
    // A run is created only while no other is active, so the highest epoch is the newest run's. One that cannot be read
    // must not take the count back to its beginning.
    let newest = runs.list()?.iter().rev().find_map(|run| runs.find(run).found.ok());
    next_epoch(newest.map(|found| found.state.epoch)).ok_or(BeginError::NoEpoch)
}

fn refused(
    refusal: AdmissionRefusal,
    config: &WorkspaceConfig,
    active: Vec<pdca_journal::RunEntry>,
) -> BeginError {
    let find = |run: &RunId| active.into_iter().find(|one| one.id == *run).map(|one| one.found);
    match refusal {
        AdmissionRefusal::Blocked { run, phase } => {
            let block = find(&run).and_then(Result::ok).and_then(|found| found.state.block);
            let workspace = config.dirs.root.clone();
            BeginError::Blocked { run, workspace, phase, block: block.map(Box::new) }
        }
        AdmissionRefusal::Unreadable { run } => {
            let source = find(&run).and_then(Result::err).map(Box::new);
            BeginError::Unreadable { dir: config.dirs.runs().dir(&run), run, source }
        }
    }
}
