//! Interrupted integrations: comparison with the requested one, and the outcome of open intents.

use pdca_journal::{
    Admission, Cause, Clock, Effect, Journal, Landing, Record, RunId, RunPhase, RunState, Runs,
    Workstream, WorkstreamStatus,
};
use pdca_state::BundleId;

use crate::PlanEntry;
use crate::queue::landing_base::LandingBase;
use crate::queue::target_branch::TargetBranch;

use super::{IntegrationJournal, JournalError, LOCK, myself, next, seal_of};

impl IntegrationJournal {
    /// Ends an interrupted integration that has nothing left to do.
    pub(crate) fn close(
        runs: &Runs,
        branch: Option<&TargetBranch>,
        state: &RunState,
        run: &RunId,
        clock: Clock,
    ) -> Result<(), JournalError> {
        let targets = &state.admitted.targets;
        let admission = Admission::take(targets.iter().map(|target| target.common_dir.join(LOCK)))?;
        let (epoch, at) = (next(runs)?, clock());
        let opened = Journal::open(runs, &admission, run, epoch, at, myself()?, false);
        let opened = opened.map_err(|source| JournalError::TakeUp {
            run: run.clone(),
            source: Box::new(source),
        })?;
        let mut journal = opened.journal;
        let base = branch.map(|of| LandingBase::of(of.reference.clone(), of.tip));
        settle(&mut journal, branch.zip(base.as_ref()), clock)?;
        let (phase, target) = (journal.state().phase, targets.first());
        let target = target.map(|target| target.name.clone()).unwrap_or_default();
        let is_landed = |work: &Workstream| matches!(work.status, WorkstreamStatus::Landed);
        // All of it landed, so it is completed. Anything less is aborted, which claims no landing.
        if phase == RunPhase::Integrating && journal.state().bundles.values().all(is_landed) {
            let (applying, landing) = (None, None);
            let mut left =
                Self { journal, clock, target, applying, landing, _admission: admission };
            return left.finish(&[], &[]);
        }
        let why = "nothing of it was left to do".to_owned();
        journal.append(clock(), vec![Record::Aborted { why }])?;
        Ok(())
    }
}

/// Returns true if an interrupted integration has the requested terms and changes and can continue.
pub(super) fn is_of(journal: &Journal, entries: &[PlanEntry], terms: &str) -> bool {
    let state = journal.state();
    if state.admitted.config_digest != terms {
        return false;
    }
    let is_there = |entry: &PlanEntry| {
        state.bundles.get(entry.sealed().id()).is_some_and(|work| {
            // A change that was accepted anew has the same id and another seal.
            let same = work.seal.as_ref().is_none_or(|known| known.seal == seal_of(entry));
            same && match work.status {
                WorkstreamStatus::Ready
                | WorkstreamStatus::Interrupted
                | WorkstreamStatus::Sealed
                | WorkstreamStatus::Blocked { .. } => true,
                // A landed change that is requested again was removed from its branch; landing it again is
                // another integration.
                WorkstreamStatus::Landed
                | WorkstreamStatus::Running
                | WorkstreamStatus::Abandoned { .. }
                | WorkstreamStatus::Cleaned => false,
            }
        })
    };
    let is_asked_for = |bundle: &BundleId| entries.iter().any(|e| e.sealed().id() == bundle);
    let mut bundles = state.bundles.iter();
    let nothing_else = bundles.all(|(bundle, work)| {
        matches!(work.status, WorkstreamStatus::Landed) || is_asked_for(bundle)
    });
    nothing_else && entries.iter().all(is_there)
}

/// Resolves each open intent of a driver that died by looking at git. Without a branch, no landing is taken to have
/// happened.
pub(super) fn settle(
    journal: &mut Journal,
    place: Option<(&TargetBranch, &LandingBase)>,
    clock: Clock,
) -> Result<(), JournalError> {
    for intent in journal.open_intents() {
        let at = clock();
        let is_done = match intent.effect() {
            // The change was sealed before the integration began; the effect only records it here.
            Effect::Seal(_) => true,
            Effect::Land(landing) => {
                place.is_some_and(|(branch, base)| has_landed(branch, base, landing))
            }
            // A commit that was applied is found again by folding, so calling it undone costs nothing.
            Effect::Rescue { .. } | Effect::Apply { .. } => false,
        };
        if is_done {
            intent.done(journal, at)?;
        } else {
            intent.failed(journal, at, Cause::Crash, "the driver died")?;
        }
    }
    Ok(())
}

fn has_landed(branch: &TargetBranch, base: &LandingBase, landing: &Landing) -> bool {
    // The base was just read from the remote; the ref only remembers an earlier answer.
    let now = if landing.reference == base.reference {
        Some(base.at)
    } else {
        branch.store.commit_at(&landing.reference).ok().flatten()
    };
    // An unknown commit is in no branch. A wrong answer costs a fold that finds the change present.
    now.is_some_and(|now| crate::contains(&branch.store, now, landing.new).unwrap_or(false))
}
