//! A run: the right to work on the targets of a workspace, and the record of what is done with it.
//!
//! A command that drives begins a run. It takes the lock of each target, which lies in the
//! target's git common directory, so that no second driver works on the same repository through
//! another path; it takes up the run of a driver that died, or begins one of its own; and it writes
//! every claim and every end of an attempt into the run's journal before it relies on it.
//!
//! A run is over when every bundle of it came to an end of its own: waits for its sign-off, failed,
//! or cannot start. One that was cut short stays active, and the next command takes it up, so that
//! what was tried again is counted across commands. Where a bundle stands is never asked of the
//! journal; the bundle's files say that.

mod abort;
mod begin;
mod observe;
mod prune;
mod status;
mod takeover;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;
use pdca_journal::{
    Activity, Admission, Allowance, AppendError, BeatEnding, Cause, Clock, Epoch, GateVerdict,
    Generation, Inbox, InboxError, Journal, Limits, Moment, Now, ObjectIdError, Phase, Process,
    Reason, Record, Request, RunId, RunState, Runs, StatusFilesError, Workstream, WorkstreamStatus,
    write_bundle_status, write_status_files,
};
use pdca_lanes::attempt_branch;
use pdca_state::{BundleId, BundleRoot, LoadError, State};

pub use abort::{AbortError, Salvage};
pub use begin::{Begun, RunError};
pub use observe::{Observed, Recovered};
pub(crate) use prune::is_past;
pub use prune::{Prune, RecordOf, prune, to_prune};
pub use status::{RunStatus, integrations, run_statuses, run_statuses_in_lanes};
pub use takeover::TakeOverError;

use crate::checkout::CheckoutError;
use crate::config::WorkspaceConfig;
use crate::run_bundle::BeatError;
use pdca_exec::BandEnd;

/// A run that this process drives. Dropping it gives the targets back; the record stays.
#[derive(Debug)]
pub struct Run {
    journal: Mutex<Journal>,
    runs: Runs,
    clock: Clock,
    me: Process,
    bundles: BundleRoot,
    admission: Admission,
}

/// Why something could not be recorded. Nothing that relies on it may be done.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The journal refused it, or could not be written.
    #[error("the run's journal cannot go on")]
    Append(#[from] AppendError),
    /// A base that is no commit.
    #[error(transparent)]
    Base(#[from] ObjectIdError),
    /// The inbox cannot be used.
    #[error("the run's inbox cannot be used")]
    Inbox(#[from] InboxError),
    /// Somebody took the run over. Whatever this driver does counts for nothing any more.
    #[error("somebody took run {run} over")]
    TakenOver {
        /// The run.
        run: RunId,
    },
    /// The files for people cannot be written.
    #[error(transparent)]
    Projection(#[from] StatusFilesError),
}

impl Run {
    /// Its id.
    pub fn id(&self) -> RunId {
        self.journal().run().clone()
    }

    /// The epoch of this driver.
    pub fn epoch(&self) -> Epoch {
        self.journal().state().epoch
    }

    /// Where its journal lies.
    pub fn dir(&self) -> Utf8PathBuf {
        self.runs.dir(self.journal().run())
    }

    /// Refuses where somebody took the run over while this driver was stopped, or slept.
    pub(crate) fn require_ours(&self) -> Result<(), RecordError> {
        if self.admission.is_current() {
            Ok(())
        } else {
            Err(RecordError::TakenOver { run: self.id() })
        }
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        // A thread that panicked while it held this has appended whole records or none.
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long drivers were at work on it.
    pub(crate) fn worked(&self) -> std::time::Duration {
        let journal = self.journal();
        let state = journal.state();
        let now = (self.clock)();
        state.worked + now.uptime.saturating_sub(state.last.at.uptime)
    }

    /// How many leaves were called in it.
    pub(crate) fn leaf_calls(&self) -> u64 {
        self.journal().state().leaf_calls
    }

    /// Whether the bundle waits for a person who unblocks it, and why.
    pub(crate) fn block_of(&self, id: &BundleId) -> Option<String> {
        let journal = self.journal();
        journal.state().bundles.get(id)?.status.recovery_block().map(str::to_owned)
    }

    /// Claims a bundle for a lane, with the next generation, unless this driver has it already.
    /// A bundle that is not of this run is nobody's business here.
    pub(crate) fn claim(&self, id: &BundleId, slot: u32, base: &str) -> Result<(), RecordError> {
        let mut journal = self.journal();
        let Some(work) = journal.state().bundles.get(id) else { return Ok(()) };
        let mut records = Vec::new();
        match &work.status {
            WorkstreamStatus::Running => return Ok(()),
            // A person sent it back, or runs it again: it goes on from where it waited.
            WorkstreamStatus::Blocked { .. } => {
                records.push(Record::Unblocked { bundle: Some(id.clone()) });
            }
            WorkstreamStatus::Ready
            | WorkstreamStatus::Interrupted
            | WorkstreamStatus::Sealed
            | WorkstreamStatus::Landed
            | WorkstreamStatus::Abandoned { .. }
            | WorkstreamStatus::Cleaned => {}
        }
        let Some(generation) = journal.state().next_generation(id) else { return Ok(()) };
        let bundle = id.clone();
        records.push(Record::Claimed { bundle, generation, slot, base: base.parse()? });
        let (bundle, process) = (id.clone(), self.me.clone());
        records.push(Record::Started { bundle, generation, process });
        journal.append((self.clock)(), records)?;
        Ok(())
    }

    /// Returns the generation of the attempt at a bundle: that under way, or the one that a claim would begin.
    /// None for a bundle that is not of this run.
    pub(crate) fn generation_of(&self, id: &BundleId) -> Option<Generation> {
        let journal = self.journal();
        let work = journal.state().bundles.get(id)?;
        match (&work.status, &work.claim) {
            (WorkstreamStatus::Running, Some(claim)) => Some(claim.generation),
            _ => journal.state().next_generation(id),
        }
    }

    /// The branch for the attempt at a bundle that this run has claimed; none where it has not.
    pub(crate) fn branch(&self, id: &BundleId) -> Option<String> {
        // Before the journal is held, because that is where the run's name is.
        let run = self.id();
        let generation = {
            let journal = self.journal();
            let work = journal.state().bundles.get(id)?;
            work.claim.as_ref().filter(|_| work.status == WorkstreamStatus::Running)?.generation
        };
        attempt_branch(run.as_str(), id, generation.get()).ok()
    }

    /// Notes that a leaf is about to be called, which costs.
    pub(crate) fn leaf_called(&self, id: &BundleId, role: &str) -> Result<(), RecordError> {
        let mut journal = self.journal();
        if journal.state().bundles.contains_key(id) {
            let record = Record::LeafCalled { bundle: id.clone(), role: role.to_owned() };
            journal.append((self.clock)(), vec![record])?;
        }
        Ok(())
    }

    /// Notes what the gates said about an attempt.
    pub(crate) fn judged(
        &self,
        id: &BundleId,
        rows: impl IntoIterator<Item = (String, GateVerdict)>,
    ) -> Result<(), RecordError> {
        let mut journal = self.journal();
        let Some(work) = journal.state().bundles.get(id) else { return Ok(()) };
        let (WorkstreamStatus::Running, Some(claim)) = (&work.status, &work.claim) else {
            return Ok(());
        };
        let generation = claim.generation;
        let record =
            |(step, verdict)| Record::Judged { bundle: id.clone(), generation, step, verdict };
        let records: Vec<Record> = rows.into_iter().map(record).collect();
        journal.append((self.clock)(), records)?;
        Ok(())
    }

    /// Notes how an attempt ended, if the bundle was claimed at all.
    pub(crate) fn ended(
        &self,
        id: &BundleId,
        result: &Result<BandEnd, BeatError>,
    ) -> Result<(), RecordError> {
        let mut journal = self.journal();
        let Some(work) = journal.state().bundles.get(id) else { return Ok(()) };
        let mut records = Vec::new();
        let ending = ending(result);
        if let (WorkstreamStatus::Running, Some(claim)) = (&work.status, &work.claim) {
            let (bundle, generation) = (id.clone(), claim.generation);
            records.push(Record::Ended { bundle, generation, ending: ending.clone() });
        }
        if let BeatEnding::Interrupted { cause } = ending
            && cause != Cause::Crash
        {
            let (bundle, phase) = (Some(id.clone()), phase(result));
            records.push(Record::Recovery { bundle, phase, cause });
        }
        journal.append((self.clock)(), records)?;
        let at = (self.clock)();
        if let Err(BeatError::Checkout(error @ CheckoutError::Lost { .. })) = result {
            let (bundle, reason) = (Some(id.clone()), Reason::Recovery);
            let evidence = error.to_string();
            journal.append(at, vec![Record::Blocked { bundle, reason, evidence }])?;
        } else {
            exhaust(&mut journal, id, result, at)?;
        }
        write_bundle_status(&self.runs, journal.run(), journal.state(), id)?;
        Ok(())
    }

    /// What people asked for since the last time. Each is taken once.
    pub(crate) fn requests(&self) -> Result<Vec<Request>, RecordError> {
        let mut journal = self.journal();
        let inbox = Inbox::new(&self.runs, &journal.run().clone());
        inbox.take(&mut journal, (self.clock)())?;
        let waiting: Vec<(String, Request)> = journal
            .state()
            .requests
            .iter()
            .map(|(id, request)| (id.clone(), request.clone()))
            .collect();
        let mut taken = Vec::new();
        for (id, request) in waiting {
            let mut records = Vec::new();
            let mut refusal = None;
            if let Request::Unblock { bundle, .. } = &request {
                if is_blocked(journal.state(), bundle.as_ref()) {
                    records.push(Record::Unblocked { bundle: bundle.clone() });
                } else {
                    refusal = Some("it is not blocked in this run".to_owned());
                }
            }
            records.push(Record::Answered { id, refusal: refusal.clone() });
            journal.append((self.clock)(), records)?;
            if refusal.is_none() {
                taken.push(request);
            }
        }
        Ok(taken)
    }

    /// Lets a bundle, or the run itself, go on where it was blocked, as the request of that name asks.
    /// Says whether it was blocked.
    pub fn unblock(
        &self,
        name: &RunId,
        bundle: Option<&BundleId>,
        note: Option<String>,
    ) -> Result<bool, RecordError> {
        let mut journal = self.journal();
        if !is_blocked(journal.state(), bundle) {
            return Ok(false);
        }
        let (id, bundle) = (name.to_string(), bundle.cloned());
        let request = Request::Unblock { bundle: bundle.clone(), note };
        let records = vec![
            Record::Requested { id: id.clone(), request },
            Record::Unblocked { bundle },
            Record::Answered { id, refusal: None },
        ];
        journal.append((self.clock)(), records)?;
        write_status_files(&self.runs, &journal.run().clone(), journal.state())?;
        Ok(true)
    }

    /// Where the run stands.
    pub fn state(&self) -> RunState {
        self.journal().state().clone()
    }

    /// Ends the run if every bundle came to an end of its own. Says whether it did.
    pub fn finish(&self) -> Result<bool, RecordError> {
        let mut journal = self.journal();
        let state = journal.state();
        let is_open = |(id, work): (&BundleId, &Workstream)| match &work.status {
            // Cut short after its last step, or decided by a person meanwhile: its files say that
            // nothing is left to do.
            WorkstreamStatus::Interrupted => can_go_on(&self.bundles, id),
            WorkstreamStatus::Running => true,
            // What was finished or given up meanwhile waits for nobody.
            WorkstreamStatus::Blocked { reason, .. } => {
                *reason == Reason::Recovery && can_go_on(&self.bundles, id)
            }
            WorkstreamStatus::Ready
            | WorkstreamStatus::Sealed
            | WorkstreamStatus::Landed
            | WorkstreamStatus::Abandoned { .. }
            | WorkstreamStatus::Cleaned => false,
        };
        if state.bundles.iter().any(is_open) || !state.intents.is_empty() {
            return Ok(false);
        }
        let records = closing(&journal);
        journal.append((self.clock)(), records)?;
        write_status_files(&self.runs, journal.run(), journal.state())?;
        Ok(true)
    }
}

/// Whether a driver has something to do for a bundle, by its files. One that cannot be read may.
fn can_go_on(bundles: &BundleRoot, id: &BundleId) -> bool {
    match bundles.bundle(id).glance() {
        Err(LoadError::Missing { .. }) => false,
        Err(_) => true,
        Ok(glance) => match glance.state {
            State::Planned | State::Built | State::Checked | State::Iterate(_) => true,
            State::Unplanned
            | State::Resolved
            | State::AwaitingSignoff
            | State::Complete
            | State::Discontinued => false,
        },
    }
}

/// Whether anything is left to do in a run: a bundle that a driver would go on with, or something that
/// a person must unblock.
pub fn has_work(config: &WorkspaceConfig, state: &RunState) -> bool {
    state.phase.is_blocked()
        || !state.intents.is_empty()
        || state.bundles.iter().any(|(id, work)| match &work.status {
            WorkstreamStatus::Ready | WorkstreamStatus::Running | WorkstreamStatus::Interrupted => {
                can_go_on(&config.dirs.bundles, id)
            }
            WorkstreamStatus::Sealed => true,
            WorkstreamStatus::Blocked { reason, .. } => {
                *reason == Reason::Recovery && can_go_on(&config.dirs.bundles, id)
            }
            WorkstreamStatus::Landed
            | WorkstreamStatus::Abandoned { .. }
            | WorkstreamStatus::Cleaned => false,
        })
}

/// Whether the driver of a run ended in the middle of something, and not in an orderly way: after a signal
/// that it heeded nothing runs and no intent is open.
pub fn was_cut_short(state: &RunState) -> bool {
    let is_running = |work: &Workstream| work.status == WorkstreamStatus::Running;
    !state.intents.is_empty() || state.bundles.values().any(is_running)
}

/// A bundle that the machine failed, and that is not tried again at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// How often it was tried.
    pub attempts: u32,
    /// How long it is left alone from now on.
    pub left: std::time::Duration,
}

/// The bundles of a run that are to be left alone for a while, because the machine failed them more than
/// once: the pause doubles with each time. A person who names one does not wait for it.
pub fn pauses(state: &RunState, now: Now<'_>) -> BTreeMap<BundleId, Pause> {
    let limits = Limits::default();
    let pause = |id: &BundleId, work: &Workstream| {
        let of = |phase| {
            let allowance = state.tally.allowance(&limits, Some(id), phase, Cause::Host, now);
            let count = state.tally.count(Some(id), phase, Cause::Host)?;
            let attempts = count.attempts;
            // What happened once may be over, and what a person unblocked since was mended.
            if attempts < 2 || work.since.seq > count.last.seq {
                return None;
            }
            match allowance {
                Allowance::After(left) => Some(Pause { attempts, left }),
                // What is exhausted is blocked, and waits for a person.
                Allowance::Now | Allowance::Exhausted => None,
            }
        };
        [Phase::Prepare, Phase::Attempt].into_iter().filter_map(of).max_by_key(|pause| pause.left)
    };
    let interrupted =
        state.bundles.iter().filter(|(_, work)| work.status == WorkstreamStatus::Interrupted);
    interrupted.filter_map(|(id, work)| Some((id.clone(), pause(id, work)?))).collect()
}

/// Whether a bundle of a run, or the run itself, waits for a person.
fn is_blocked(state: &RunState, bundle: Option<&BundleId>) -> bool {
    match bundle {
        None => state.phase.is_blocked(),
        Some(bundle) => state.bundles.get(bundle).is_some_and(|work| work.status.block().is_some()),
    }
}

/// What ends a run in which nothing is at work any more.
fn closing(journal: &Journal) -> Vec<Record> {
    let state = journal.state();
    let mut records = vec![Record::Entered { activity: Activity::Draining }];
    for (bundle, work) in &state.bundles {
        let why = match &work.status {
            WorkstreamStatus::Blocked { reason: Reason::SignOff, .. } => {
                "it waits for its sign-off"
            }
            WorkstreamStatus::Blocked { .. } => "it waits for a person",
            WorkstreamStatus::Ready => "it was not started",
            WorkstreamStatus::Interrupted => "another run takes it up",
            WorkstreamStatus::Running
            | WorkstreamStatus::Sealed
            | WorkstreamStatus::Landed
            | WorkstreamStatus::Abandoned { .. }
            | WorkstreamStatus::Cleaned => "",
        };
        if !why.is_empty() {
            records.push(Record::Abandoned { bundle: bundle.clone(), why: why.to_owned() });
        }
        if !matches!(work.status, WorkstreamStatus::Cleaned) {
            records.push(Record::Cleaned { bundle: bundle.clone() });
        }
    }
    records.push(Record::Completed);
    records
}

/// Blocks a bundle that was tried again often enough, once.
fn exhaust(
    journal: &mut Journal,
    id: &BundleId,
    result: &Result<BandEnd, BeatError>,
    at: Moment,
) -> Result<(), AppendError> {
    let BeatEnding::Interrupted { cause } = ending(result) else { return Ok(()) };
    let state = journal.state();
    let tried = state.tally.count(Some(id), phase(result), cause).map_or(0, |count| count.attempts);
    if tried < Limits::default().attempts {
        return Ok(());
    }
    let said = result.as_ref().err().map(|error| pdca_state::chain(error)).unwrap_or_default();
    let evidence = format!("tried {tried} times, and each time: {said}");
    let (bundle, reason) = (Some(id.clone()), Reason::Recovery);
    journal.append(at, vec![Record::Blocked { bundle, reason, evidence }]).map(drop)
}

/// What the end of a drive is for the run.
fn ending(result: &Result<BandEnd, BeatError>) -> BeatEnding {
    let Err(error) = result else { return BeatEnding::Finished };
    match error {
        BeatError::NoChange { .. } => BeatEnding::NoChange,
        BeatError::Interrupted | BeatError::Panicked { .. } => {
            BeatEnding::Interrupted { cause: Cause::Crash }
        }
        // A host that was lost is no fault of the bundle, and what came too late counts for nothing.
        BeatError::Checkout(_)
        | BeatError::Own(_)
        | BeatError::Record(_)
        | BeatError::Executor(_)
        | BeatError::StaleResult(_) => BeatEnding::Interrupted { cause: Cause::Host },
        BeatError::Admission(_)
        | BeatError::Load(_)
        | BeatError::Write(_)
        | BeatError::Archive(_)
        | BeatError::Target(_)
        | BeatError::Base(_)
        | BeatError::Gates(_)
        | BeatError::Leaf { .. }
        | BeatError::Nested { .. }
        | BeatError::Patch { .. }
        | BeatError::Breach { .. }
        | BeatError::EmptyPatch
        | BeatError::Stale { .. }
        | BeatError::Signed
        | BeatError::Capped { .. }
        | BeatError::Blocked { .. }
        | BeatError::NoProgress { .. } => BeatEnding::Failed { what: pdca_state::chain(error) },
    }
}

/// What kind of work an end belongs to.
fn phase(result: &Result<BandEnd, BeatError>) -> Phase {
    match result {
        Err(BeatError::Checkout(_)) => Phase::Prepare,
        Ok(_) | Err(_) => Phase::Attempt,
    }
}
