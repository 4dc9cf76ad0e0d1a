//! A run: the admission to the targets of a workspace, and the journal of what is done under it.
//!
//! 1. Take the lock of each target, in its git common directory. It keeps a second driver off the same
//!    repository, also through another path or workspace.
//! 2. Resume the run of a driver that died, or create one.
//! 3. Write every claim and every end of an attempt into the journal, before anything relies on it. After a crash
//!    the journal says which lanes may hold work.
//! 4. Before each step and artifact, check that the run was not taken over.
//! 5. End the run when nothing of it is open.
//!
//! A run is over when every bundle of it has stopped by itself: waits for its sign-off, failed,
//! or cannot start. An interrupted run stays active, and the next command resumes it, so that
//! retries are counted across commands. The state of a bundle is never read from the
//! journal, only from the bundle's files.

mod abort;
mod begin;
mod elsewhere;
mod observe;
mod prune;
mod status;
mod takeover;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;
use pdca_journal::{
    Activity, Admission, Allowance, AppendError, BeatEnding, Cause, Clock, Epoch, GateVerdict,
    Generation, Inbox, InboxError, InboxRequest, Journal, Moment, Now, ObjectIdError, Phase,
    ProcessIdentity, Reason, Record, RetryLimits, RunId, RunState, Runs, StatusFilesError,
    Workstream, WorkstreamStatus, object_id, write_bundle_status, write_status_files,
};
use pdca_lanes::attempt_branch;
use pdca_state::{BundleId, BundleRoot, LoadError, State};

pub use abort::{AbortError, Salvage, unfinished_work};
pub use begin::{BeginError, Begun};
pub use observe::{Observed, Recovered};
pub use prune::{Prune, RecordOf, prune, to_prune};
pub use status::{RunStatus, integrations, run_statuses, run_statuses_in_lanes};
pub use takeover::TakeOverError;

use crate::calls::{CostCap, CostReached};
use crate::checkout::CheckoutError;
use crate::config::WorkspaceConfig;
use crate::run_bundle::{BeatError, BundleEnd};

/// A run of this process. Dropping it releases the targets; the journal stays.
#[derive(Debug)]
pub struct Run {
    journal: Mutex<Journal>,
    runs: Runs,
    clock: Clock,
    me: ProcessIdentity,
    bundles: BundleRoot,
    admission: Admission,
}

/// The reason something could not be recorded. Nothing that relies on the record may be done.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The journal refused the record, or could not be written.
    #[error("the run's journal cannot be written")]
    Append(#[from] AppendError),
    /// The base is no commit id.
    #[error(transparent)]
    Base(#[from] ObjectIdError),
    #[error("the run's inbox cannot be used")]
    Inbox(#[from] InboxError),
    /// Another driver took the run over. Nothing this driver does counts any longer.
    #[error("run {run} was taken over by another driver")]
    TakenOver { run: RunId },
    /// The status files cannot be written.
    #[error(transparent)]
    Projection(#[from] StatusFilesError),
}

impl Run {
    pub fn id(&self) -> RunId {
        self.journal().run().clone()
    }

    pub fn epoch(&self) -> Epoch {
        self.journal().state().epoch
    }

    pub fn dir(&self) -> Utf8PathBuf {
        self.runs.dir(self.journal().run())
    }

    /// Returns an error if another driver took the run over while this one was stopped or asleep.
    pub(crate) fn require_ours(&self) -> Result<(), RecordError> {
        if self.admission.is_current() {
            Ok(())
        } else {
            Err(RecordError::TakenOver { run: self.id() })
        }
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        // Records are appended whole or not at all, so a panic while the lock was held left no half record.
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time that drivers worked on it, across resumptions.
    pub(crate) fn worked(&self) -> std::time::Duration {
        let journal = self.journal();
        let state = journal.state();
        let now = (self.clock)();
        // The last record is at least this driver's own `Admitted` or `TakenUp`, so both uptimes
        // are of one boot, and the time between two drivers does not count.
        state.worked + now.uptime.saturating_sub(state.last.at.uptime)
    }

    /// The bundles of the run.
    pub fn batch(&self) -> Vec<BundleId> {
        self.journal().state().bundles.keys().cloned().collect()
    }

    /// Returns the number of leaf calls that the run made.
    pub fn leaf_calls(&self) -> u64 {
        self.journal().state().leaf_calls
    }

    /// Returns the reason why a bundle waits to be unblocked by a person, if it does.
    pub(crate) fn block_of(&self, id: &BundleId) -> Option<String> {
        let journal = self.journal();
        journal.state().bundles.get(id)?.status.recovery_block().map(str::to_owned)
    }

    /// Claims a bundle for a lane, with the next generation, unless this driver already holds it.
    /// A bundle outside this run is ignored.
    pub(crate) fn claim(&self, id: &BundleId, slot: u32, base: &str) -> Result<(), RecordError> {
        let mut journal = self.journal();
        let Some(work) = journal.state().bundles.get(id) else { return Ok(()) };
        let mut records = Vec::new();
        match &work.status {
            // It runs at a place that this driver does not use.
            WorkstreamStatus::Running if work.is_on_host() => {
                records.extend(work.claim.as_ref().map(|claim| interrupted(id, claim.generation)));
            }
            // Every beat of an attempt claims the checkout. Only the first of them begins a
            // generation.
            WorkstreamStatus::Running => return Ok(()),
            // A person sent it back or runs it again, which lifts the block.
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
        let (host, base) = (None, object_id::parse(base)?);
        records.push(Record::Claimed { bundle, generation, slot, host, base });
        let (bundle, process) = (id.clone(), self.me.clone());
        records.push(Record::Started { bundle, generation, process });
        // One append: without the process, recovery could tell nothing about the runner of a claim
        // where the lane's lock cannot be probed.
        journal.append((self.clock)(), records)?;
        Ok(())
    }

    /// Returns the generation of the current attempt at a bundle, or of the one that a claim would begin;
    /// `None` for a bundle outside this run.
    pub(crate) fn generation_of(&self, id: &BundleId) -> Option<Generation> {
        let journal = self.journal();
        let work = journal.state().bundles.get(id)?;
        match (&work.status, &work.claim) {
            (WorkstreamStatus::Running, Some(claim)) => Some(claim.generation),
            _ => journal.state().next_generation(id),
        }
    }

    /// Returns the branch of the current attempt at a bundle; `None` if this run has not claimed it.
    pub(crate) fn branch(&self, id: &BundleId) -> Option<String> {
        // `id` locks the journal too, so it comes first.
        let run = self.id();
        let generation = {
            let journal = self.journal();
            let work = journal.state().bundles.get(id)?;
            work.claim.as_ref().filter(|_| work.status == WorkstreamStatus::Running)?.generation
        };
        attempt_branch(run.as_str(), id, generation.get()).ok()
    }

    /// Records that a leaf is about to be called, unless the run has made `limit` calls.
    pub(crate) fn leaf_called(
        &self,
        id: &BundleId,
        role: &str,
        limit: Option<u64>,
    ) -> Result<(), BeatError> {
        let mut journal = self.journal();
        let called = journal.state().leaf_calls;
        // Under the lock of the record, or lanes that ask at the same time would all get the last call.
        if limit.is_some_and(|limit| called >= limit) {
            return Err(BeatError::Capped { called });
        }
        if journal.state().bundles.contains_key(id) {
            let record = Record::LeafCalled { bundle: id.clone(), role: role.to_owned() };
            journal.append((self.clock)(), vec![record]).map_err(RecordError::from)?;
        }
        Ok(())
    }

    /// Records the verdicts of the gates over an attempt.
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

    /// Records the end of an attempt, if the bundle was claimed.
    pub(crate) fn ended(
        &self,
        id: &BundleId,
        result: &Result<BundleEnd, BeatError>,
    ) -> Result<(), RecordError> {
        let mut journal = self.journal();
        let Some(work) = journal.state().bundles.get(id) else { return Ok(()) };
        let mut records = Vec::new();
        let ending = ending(result);
        if let (WorkstreamStatus::Running, Some(claim)) = (&work.status, &work.claim) {
            let (bundle, generation) = (id.clone(), claim.generation);
            // Before `Recovery`: `pauses` takes a status that is newer than the last fault for an
            // unblocking.
            records.push(Record::Ended { bundle, generation, ending: ending.clone() });
        }
        if let BeatEnding::Interrupted { cause } = ending
            // The end of a driver says nothing about the bundle and is not counted against it.
            // Otherwise a machine that is often switched off would block its bundles
            // (decision 009).
            && cause != Cause::Crash
        {
            let (bundle, phase) = (Some(id.clone()), phase(result));
            records.push(Record::Recovery { bundle, phase, cause });
        }
        journal.append((self.clock)(), records)?;
        let at = (self.clock)();
        // Not retried: uncommitted work went with the directory, so a person decides at once.
        if let Err(BeatError::Checkout(error @ CheckoutError::Lost { .. })) = result {
            let (bundle, reason) = (Some(id.clone()), Reason::Recovery);
            let evidence = error.to_string();
            journal.append(at, vec![Record::Blocked { bundle, reason, evidence }])?;
        } else {
            // Only now: it counts the fault that was just recorded.
            exhaust(&mut journal, id, result, at)?;
        }
        write_bundle_status(&self.runs, journal.run(), journal.state(), id)?;
        Ok(())
    }

    /// Returns the requests of people that this driver has to carry out, or has carried out now.
    ///
    /// An abort is returned until [`Self::abort`] has carried it out; any other request is returned once.
    pub(crate) fn requests(&self) -> Result<Vec<InboxRequest>, RecordError> {
        let mut journal = self.journal();
        let inbox = Inbox::new(&self.runs, &journal.run().clone());
        inbox.take(&mut journal, (self.clock)())?;
        let waiting: Vec<(String, InboxRequest)> = journal
            .state()
            .requests
            .iter()
            .map(|(id, request)| (id.clone(), request.clone()))
            .collect();
        let mut taken = Vec::new();
        for (id, request) in waiting {
            let mut records = Vec::new();
            let mut refusal = None;
            match &request {
                InboxRequest::Unblock { bundle, .. } => {
                    if is_blocked(journal.state(), bundle.as_ref()) {
                        records.push(Record::Unblocked { bundle: bundle.clone() });
                    } else {
                        refusal = Some("it is not blocked in this run".to_owned());
                    }
                }
                // Lanes have to stop first. With an answer by now, a driver that dies meanwhile would lose the request.
                InboxRequest::Abort { .. } => {
                    taken.push(request);
                    continue;
                }
            }
            // One append, so that a crash cannot lift a block and leave the request unanswered.
            records.push(Record::Answered { id, refusal: refusal.clone() });
            journal.append((self.clock)(), records)?;
            if refusal.is_none() {
                taken.push(request);
            }
        }
        Ok(taken)
    }

    /// Unblocks a bundle, or the run itself, on the request of that name.
    /// Returns whether it was blocked.
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
        let request = InboxRequest::Unblock { bundle: bundle.clone(), note };
        let records = vec![
            Record::Requested { id: id.clone(), request },
            Record::Unblocked { bundle },
            Record::Answered { id, refusal: None },
        ];
        journal.append((self.clock)(), records)?;
        write_status_files(&self.runs, &journal.run().clone(), journal.state())?;
        Ok(true)
    }

    pub fn state(&self) -> RunState {
        self.journal().state().clone()
    }

    /// Ends the run if every bundle of it has stopped by itself. Returns whether it did.
    pub fn finish(&self) -> Result<bool, RecordError> {
        let mut journal = self.journal();
        let state = journal.state();
        let is_open = |(id, work): (&BundleId, &Workstream)| match &work.status {
            // Interrupted after its last step, or decided by a person meanwhile: the files say that
            // nothing is left to do.
            WorkstreamStatus::Interrupted => can_go_on(&self.bundles, id),
            // Also one elsewhere that this driver does not use: it may still bring a result.
            WorkstreamStatus::Running => true,
            // A bundle that was finished or discontinued meanwhile needs no unblocking.
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

/// Returns whether a driver can continue a bundle, by its files. An unreadable bundle counts.
fn can_go_on(bundles: &BundleRoot, id: &BundleId) -> bool {
    match bundles.bundle(id).glance() {
        // A person removed the bundle, so nothing of it is left to wait for.
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

/// Returns whether anything is left to do in a run: a bundle to continue, or a block that
/// a person must lift.
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

/// Returns whether the driver of a run died in the middle of something. After a signal that it handled, nothing
/// is running and no intent is open.
pub fn was_cut_short(state: &RunState) -> bool {
    let is_running = |work: &Workstream| work.status == WorkstreamStatus::Running;
    !state.intents.is_empty() || state.bundles.values().any(is_running)
}

/// A bundle that waits before its next attempt, after faults of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub attempts: u32,
    /// The remaining wait.
    pub left: std::time::Duration,
}

/// Returns the bundles of a run that have to wait because of repeated faults of the machine: the wait
/// doubles with each fault. A bundle that a person names does not wait.
pub fn pauses(state: &RunState, now: Now<'_>) -> BTreeMap<BundleId, Pause> {
    let limits = RetryLimits::default();
    let pause = |id: &BundleId, work: &Workstream| {
        let of = |phase| {
            let count = state.tally.count(Some(id), phase, Cause::Host)?;
            let attempts = count.attempts;
            // A single fault may be over, and a bundle that was unblocked since is considered repaired.
            if attempts < 2 || work.since.seq > count.last.seq {
                return None;
            }
            // Without the total of the run: a bundle that this exhausts is blocked at its next fault, and waits until then.
            match limits.allowance(Some(count), 0, now) {
                Allowance::After(left) => Some(Pause { attempts, left }),
                // An exhausted bundle is blocked instead.
                Allowance::Now | Allowance::Exhausted => None,
            }
        };
        [Phase::Prepare, Phase::Attempt].into_iter().filter_map(of).max_by_key(|pause| pause.left)
    };
    let interrupted =
        state.bundles.iter().filter(|(_, work)| work.status == WorkstreamStatus::Interrupted);
    interrupted.filter_map(|(id, work)| Some((id.clone(), pause(id, work)?))).collect()
}

/// Returns whether a bundle of a run, or the run itself, is blocked.
fn is_blocked(state: &RunState, bundle: Option<&BundleId>) -> bool {
    match bundle {
        None => state.phase.is_blocked(),
        Some(bundle) => state.bundles.get(bundle).is_some_and(|work| work.status.block().is_some()),
    }
}

/// Returns the record that an attempt was given up without a fault of its own.
fn interrupted(id: &BundleId, generation: Generation) -> Record {
    let ending = BeatEnding::Interrupted { cause: Cause::Crash };
    Record::Ended { bundle: id.clone(), generation, ending }
}

/// Returns the records that end a run in which nothing is running here.
fn closing(journal: &Journal) -> Vec<Record> {
    let state = journal.state();
    let mut records = elsewhere::leave_elsewhere(state);
    records.push(Record::Entered { activity: Activity::Draining });
    for (bundle, work) in &state.bundles {
        let why = match &work.status {
            WorkstreamStatus::Blocked { reason: Reason::SignOff, .. } => {
                "it waits for its sign-off"
            }
            WorkstreamStatus::Blocked { .. } => "it waits for a person",
            WorkstreamStatus::Ready => "it was not started",
            WorkstreamStatus::Interrupted => "another run takes it up",
            WorkstreamStatus::Running if work.is_on_host() => "another run takes it up",
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

/// Blocks a bundle whose retries are exhausted.
fn exhaust(
    journal: &mut Journal,
    id: &BundleId,
    result: &Result<BundleEnd, BeatError>,
    at: Moment,
) -> Result<(), AppendError> {
    let BeatEnding::Interrupted { cause } = ending(result) else { return Ok(()) };
    let (state, limits) = (journal.state(), RetryLimits::default());
    let tried = state.tally.count(Some(id), phase(result), cause).map_or(0, |count| count.attempts);
    let total = state.tally.total();
    let said = result.as_ref().err().map(|error| pdca_state::chain(error)).unwrap_or_default();
    let evidence = if tried >= limits.attempts {
        format!("tried {tried} times, and each time: {said}")
    } else if tried > 0 && total >= limits.absolute {
        // Successes in between reset the count of a bundle, so only this ends a run that alternates between the two. A
        // stop by a signal is no fault and has no count.
        format!("the run had {total} faults of the machine, and the last one is: {said}")
    } else {
        return Ok(());
    };
    let (bundle, reason) = (Some(id.clone()), Reason::Recovery);
    journal.append(at, vec![Record::Blocked { bundle, reason, evidence }]).map(drop)
}

/// Classifies the end of a bundle's run for the journal.
fn ending(result: &Result<BundleEnd, BeatError>) -> BeatEnding {
    let Err(error) = result else { return BeatEnding::Finished };
    match error {
        BeatError::NoChange { .. } => BeatEnding::NoChange,
        // A bundle that meets the cap of its run goes on when that is raised; no person has to unblock it.
        BeatError::Interrupted
        | BeatError::Panicked { .. }
        | BeatError::Cost(CostReached { cap: CostCap::Run, .. }) => {
            BeatEnding::Interrupted { cause: Cause::Crash }
        }
        // A lost place is not the bundle's fault, and a stale result does not count.
        BeatError::Checkout(_)
        | BeatError::Own(_)
        | BeatError::Record(_)
        | BeatError::Place(_)
        | BeatError::StaleResult(_) => BeatEnding::Interrupted { cause: Cause::Host },
        BeatError::Elsewhere(failure) => failure.ending(),
        BeatError::Admission(_)
        | BeatError::Load(_)
        | BeatError::Write(_)
        | BeatError::Archive(_)
        | BeatError::Target(_)
        | BeatError::Dependency { .. }
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
        | BeatError::Cost(CostReached { cap: CostCap::Issue, .. })
        | BeatError::Blocked { .. }
        | BeatError::NoProgress { .. } => BeatEnding::Failed { what: pdca_state::chain(error) },
    }
}

/// Returns the phase in which an end counts against the retries.
fn phase(result: &Result<BundleEnd, BeatError>) -> Phase {
    match result {
        Err(BeatError::Checkout(_)) => Phase::Prepare,
        Ok(_) | Err(_) => Phase::Attempt,
    }
}
