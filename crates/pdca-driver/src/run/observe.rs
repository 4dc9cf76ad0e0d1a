//! What is found of a driver that died, and what is done about it.
//!
//! The journal says what that driver had claimed; the lanes say what is there. Both go into the one
//! decision of `pdca-journal`. What it says is carried out here as far as it is bookkeeping: making,
//! launching and claiming again are the pool's business, which does them in its own order.

use camino::Utf8PathBuf;
use pdca_journal::{
    AppendError, BeatEnding, BranchFact, Cause, CheckoutFact, Generation, HostScope, Journal,
    LaneLock, Lease, Liveness, Reason, Record, RecoveryAction, RecoveryFacts, RunState,
    WorkstreamStatus, decide,
};
use pdca_lanes::{LaneReport, LaneState};
use pdca_state::BundleId;

use super::begin::Request;
use crate::config::WorkspaceConfig;
use crate::lane_owner::LaneOwners;

/// What was found about one bundle of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Its checkout.
    pub checkout: CheckoutFact,
    /// Its commits there.
    pub branch: BranchFact,
    /// Whether anything runs in its lane.
    pub runner: Liveness,
    /// The right to run there.
    pub lease: Lease,
}

/// What was found about a bundle, and what was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The bundle.
    pub id: BundleId,
    /// Where the journal had it.
    pub was: &'static str,
    /// What was found.
    pub observed: Observed,
    /// What was decided.
    pub action: RecoveryAction,
    /// The slot it was claimed for, if any.
    pub slot: Option<u32>,
}

/// How often one bundle is looked at before it is left as it is; each look changes what is next.
const LOOKS: u32 = 4;

/// Lays record and facts side by side for every bundle, and records what follows.
pub(super) fn reconcile(
    request: &Request<'_>,
    journal: &mut Journal,
) -> Result<Vec<Recovered>, AppendError> {
    let lanes = Lanes::look(request.config);
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

/// What is found about a bundle of a run, and what the table says about it. Changes nothing.
pub(crate) fn look(lanes: &Lanes, state: &RunState, id: &BundleId) -> Option<Recovered> {
    let work = state.bundles.get(id)?;
    let observed = lanes.observe(id, work.claim.as_ref());
    let facts = RecoveryFacts {
        run: state.phase,
        bundle: work.status.phase(),
        checkout: observed.checkout,
        branch: observed.branch,
        runner: observed.runner,
        lease: observed.lease,
    };
    Some(Recovered {
        id: id.clone(),
        was: work.status.phase().as_str(),
        action: decide(facts),
        observed,
        slot: work.claim.as_ref().map(|claim| claim.slot),
    })
}

/// The bookkeeping that an action asks for; nothing where it is somebody else's to carry out.
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
        // The pool makes, launches and claims again in its own order; the sweep removes; the rest
        // is nobody's to do without a person.
        RecoveryAction::Noop
        | RecoveryAction::Prepare
        | RecoveryAction::Launch
        | RecoveryAction::Reclaim
        | RecoveryAction::FenceStop
        | RecoveryAction::RevokeLease
        | RecoveryAction::QueueForIntegration
        | RecoveryAction::DrainKill
        | RecoveryAction::Rescue
        | RecoveryAction::RemoveCheckout
        | RecoveryAction::DeleteBranch
        | RecoveryAction::MarkAbandoned
        | RecoveryAction::MarkCleaned
        | RecoveryAction::AwaitHuman
        | RecoveryAction::AlertNoop => Vec::new(),
    }
}

/// The lanes as they are found.
pub(crate) struct Lanes {
    reports: Vec<LaneReport>,
    homes: std::collections::BTreeMap<BundleId, u32>,
    here: Option<HostScope>,
    readable: bool,
    root: Utf8PathBuf,
}

impl Lanes {
    /// Looks at every lane of a workspace.
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
        let quiet = |checkout, branch| Observed {
            checkout,
            branch,
            runner: Liveness::Dead,
            lease: Lease::None,
        };
        let Some(claim) = claim else { return quiet(CheckoutFact::Absent, BranchFact::Absent) };
        let recorded = claim.process.as_ref().zip(self.here.as_ref());
        let recorded = recorded.map(|(process, here)| process.liveness(here));
        let of_slot = || self.reports.iter().filter(|report| report.slot == claim.slot);
        let lock = match of_slot().find_map(|report| report.holder) {
            _ if !self.readable => LaneLock::Untold,
            Some(_) => LaneLock::Held,
            None => LaneLock::Free,
        };
        let runner = Liveness::in_lane(lock, recorded);
        let lease = if lock == LaneLock::Held { Lease::Stale } else { Lease::None };
        // Once its work has left the lane, or another bundle's lies there, nothing of it is there.
        let is_its = self.homes.get(id) == Some(&claim.slot);
        let report = of_slot().find(|_| is_its);
        let (checkout, branch) = match report {
            None if !is_its && self.root.join(format!("lane-{}", claim.slot)).is_dir() => {
                // Claimed, and nothing was put there yet: as good as prepared.
                (CheckoutFact::Clean, BranchFact::AsExpected)
            }
            None => (CheckoutFact::Absent, BranchFact::Absent),
            // What ran there broke it. The next claim moves it aside, whole, and makes it anew.
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
        Observed { checkout, branch, runner, lease }
    }
}
