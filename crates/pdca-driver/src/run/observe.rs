//! Reconciles the journal of a driver that died with the lanes.
//!
//! 1. Read the claims from the journal, and the lanes from disk.
//! 2. `pdca_journal::decide` maps both to an action, for each bundle.
//! 3. Record the actions that are bookkeeping. Preparing,
//!    launching and claiming are left to the pool, which does them in its own order.

use camino::Utf8PathBuf;
use pdca_journal::{
    AppendError, BeatEnding, BranchFact, Cause, CheckoutFact, Generation, HostScope, Journal,
    LaneLock, Liveness, Reason, Record, RecoveryAction, RecoveryFacts, RunState, WorkstreamStatus,
    decide,
};
use pdca_lanes::{LaneReport, LaneState};
use pdca_state::BundleId;

use super::begin::RunRequest;
use crate::config::WorkspaceConfig;
use crate::lane_owner::LaneOwners;

/// The facts found about one bundle of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub checkout: CheckoutFact,
    /// The state of its branch there.
    pub branch: BranchFact,
    /// The liveness of processes in its lane.
    pub runner: Liveness,
}

/// The facts found about a bundle, and the action decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    pub id: BundleId,
    /// Its phase in the journal.
    pub was: &'static str,
    pub observed: Observed,
    pub action: RecoveryAction,
    /// The claimed slot, if any.
    pub slot: Option<u32>,
}

/// The most rounds per bundle; each round's records change the facts of the next.
// The present table needs two: one round that records and one that finds nothing to record. The
// bound ends the loop if a row ever led back to itself.
const LOOKS: u32 = 4;

/// Compares journal and lanes for every bundle, and records the actions.
pub(super) fn reconcile(
    request: &RunRequest<'_>,
    journal: &mut Journal,
) -> Result<Vec<Recovered>, AppendError> {
    // Read once for all bundles: nothing changes in the lanes while the admission is held.
    let lanes = LanesOnDisk::look(request.config);
    let mut recovered = Vec::new();
    let ids: Vec<BundleId> = journal.state().bundles.keys().cloned().collect();
    for id in ids {
        for _ in 0..LOOKS {
            let Some(found) = look(&lanes, journal.state(), &id) else { break };
            let records = records(&found, journal);
            let is_rest = records.is_empty();
            if !is_rest {
                let reconciled =
                    Record::Reconciled { bundle: Some(id.clone()), action: found.action };
                journal
                    .append((request.clock)(), records.into_iter().chain([reconciled]).collect())?;
            }
            if found.action != RecoveryAction::Noop {
                recovered.push(found);
            }
            if is_rest {
                break;
            }
        }
    }
    Ok(recovered)
}

/// Returns the facts about a bundle of a run, with the action from the recovery table. Changes nothing.
pub(crate) fn look(lanes: &LanesOnDisk, state: &RunState, id: &BundleId) -> Option<Recovered> {
    let work = state.bundles.get(id)?;
    // What runs at another place goes on without its driver. The next one finds it there by name.
    if work.is_on_host() {
        return None;
    }
    let observed = lanes.observe(id, work.claim.as_ref());
    let facts = RecoveryFacts {
        run: state.phase,
        bundle: work.status.phase(),
        checkout: observed.checkout,
        branch: observed.branch,
        runner: observed.runner,
    };
    Some(Recovered {
        id: id.clone(),
        was: work.status.phase().as_str(),
        action: decide(facts),
        observed,
        slot: work.claim.as_ref().map(|claim| claim.slot),
    })
}

/// Returns the records for an action; none if it is carried out elsewhere.
fn records(found: &Recovered, journal: &Journal) -> Vec<Record> {
    let Some(work) = journal.state().bundles.get(&found.id) else { return Vec::new() };
    let bundle = found.id.clone();
    let interrupted = |generation: Generation| Record::Ended {
        bundle: found.id.clone(),
        generation,
        ending: BeatEnding::Interrupted { cause: Cause::Crash },
    };
    let claimed = match (&work.status, &work.claim) {
        (WorkstreamStatus::Running, Some(claim)) => Some(claim.generation),
        _ => None,
    };
    match found.action {
        RecoveryAction::MarkInterrupted => claimed.map(interrupted).into_iter().collect(),
        RecoveryAction::BlockRecovery => {
            let evidence = format!(
                "its checkout is {:?} and its commits are {:?}, which the record does not say",
                found.observed.checkout, found.observed.branch
            )
            .to_lowercase();
            let blocked =
                Record::Blocked { bundle: Some(bundle), reason: Reason::Recovery, evidence };
            claimed.map(interrupted).into_iter().chain([blocked]).collect()
        }
        // The pool starts and claims again in its own order; `closing` gives up and is done with; the
        // session waited for runners before it began; the rest needs a person.
        RecoveryAction::Noop
        | RecoveryAction::Launch
        | RecoveryAction::Reclaim
        | RecoveryAction::AwaitRunner
        | RecoveryAction::MarkAbandoned
        | RecoveryAction::MarkCleaned
        | RecoveryAction::AwaitHuman
        | RecoveryAction::AlertNoop => Vec::new(),
    }
}

/// The lanes as found on disk.
pub(crate) struct LanesOnDisk {
    reports: Vec<LaneReport>,
    homes: std::collections::BTreeMap<BundleId, u32>,
    here: Option<HostScope>,
    readable: bool,
    root: Utf8PathBuf,
}

impl LanesOnDisk {
    pub(crate) fn look(config: &WorkspaceConfig) -> Self {
        let listed = config.lanes.lent().list();
        Self {
            readable: listed.is_ok(),
            reports: listed.unwrap_or_default(),
            homes: LaneOwners::in_lanes_of(config).homes(),
            here: HostScope::here().ok(),
            root: config.lanes.root.clone(),
        }
    }

    fn observe(&self, id: &BundleId, claim: Option<&pdca_journal::Claim>) -> Observed {
        let Some(claim) = claim else {
            let (checkout, branch) = (CheckoutFact::Absent, BranchFact::Absent);
            return Observed { checkout, branch, runner: Liveness::Dead };
        };
        if claim.host.is_some() {
            // An attempt at another place that is over leaves nothing here: the same as a lane that was prepared.
            let (checkout, branch) = (CheckoutFact::Clean, BranchFact::AsExpected);
            return Observed { checkout, branch, runner: Liveness::Dead };
        }
        let recorded = claim.process.as_ref().zip(self.here.as_ref());
        let recorded = recorded.map(|(process, here)| process.liveness(here));
        let of_slot = || self.reports.iter().filter(|report| report.slot == claim.slot);
        let lock = match of_slot().find_map(|report| report.holder) {
            // Lanes that cannot be listed must not count as free: work might be cleared under a
            // live child.
            _ if !self.readable => LaneLock::Untold,
            Some(_) => LaneLock::Held,
            None => LaneLock::Free,
        };
        let runner = Liveness::in_lane(lock, recorded);
        // Not true once its work has left the lane, or another bundle's work is there.
        let is_its = self.homes.get(id) == Some(&claim.slot);
        let report = of_slot().find(|_| is_its);
        let (checkout, branch) = match report {
            None if !is_its && self.root.join(format!("lane-{}", claim.slot)).is_dir() => {
                // Claimed, with nothing in the lane yet: the same as prepared.
                (CheckoutFact::Clean, BranchFact::AsExpected)
            }
            None => (CheckoutFact::Absent, BranchFact::Absent),
            // A child broke the repository. The next claim moves it aside, whole, and makes a new one.
            Some(report) if report.state != LaneState::Gone && report.head.is_none() => {
                (CheckoutFact::Clean, BranchFact::AsExpected)
            }
            Some(report) => (
                match (report.state, report.dirty) {
                    (LaneState::Gone, _) => CheckoutFact::Absent,
                    (LaneState::Interrupted | LaneState::Ready, Some(false)) => CheckoutFact::Clean,
                    (LaneState::Interrupted | LaneState::Ready, Some(true) | None) => {
                        CheckoutFact::Dirty
                    }
                },
                if report.head.is_some() { BranchFact::AsExpected } else { BranchFact::Absent },
            ),
        };
        Observed { checkout, branch, runner }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(readable: bool, root: &str) -> LanesOnDisk {
        let homes = std::collections::BTreeMap::new();
        LanesOnDisk { reports: Vec::new(), homes, here: None, readable, root: root.into() }
    }

    #[test]
    fn a_lane_that_cannot_be_listed_is_not_taken_for_a_free_one() {
        let base = "a".repeat(40).parse().unwrap();
        let (generation, host, process) = (Generation::FIRST, None, None);
        let claim = pdca_journal::Claim { generation, slot: 0, host, base, process };
        let id: BundleId = "7".parse().unwrap();
        let seen = |readable| lanes(readable, "/nowhere").observe(&id, Some(&claim));
        assert_eq!(seen(false).runner, Liveness::Unknown);
        assert_eq!(seen(true).runner, Liveness::Dead);
        assert_eq!(
            (seen(true).checkout, seen(true).runner),
            (CheckoutFact::Absent, Liveness::Dead)
        );
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("lane-0")).unwrap();
        let empty = lanes(true, dir.path().to_str().unwrap()).observe(&id, Some(&claim));
        assert_eq!(empty.checkout, CheckoutFact::Clean, "claimed, and nothing was put there yet");
    }

    #[test]
    fn a_bundle_without_a_claim_has_no_lane_to_look_at() {
        let seen = lanes(false, "/nowhere").observe(&"7".parse().unwrap(), None);
        assert_eq!((seen.checkout, seen.runner), (CheckoutFact::Absent, Liveness::Dead));
    }
}
