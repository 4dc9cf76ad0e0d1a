//! An integration that was left half done: whether it is the one asked for, and what became of it.

use pdca_journal::{
    Admission, Cause, Clock, Effect, Journal, Landing, Record, RunId, RunPhase, RunState, Runs,
    Workstream, WorkstreamStatus,
};
use pdca_state::BundleId;

use crate::Entry;
use crate::queue::landing_base::LandingBase;
use crate::queue::target_branch::TargetBranch;

use super::{IntegrationJournal, JournalError, LOCK, back, myself, next, seal_of};

impl IntegrationJournal {
    /// Ends an integration that was left and has nothing to do any more.
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
        let base = branch.map(|of| LandingBase { reference: of.reference.clone(), at: of.tip });
        settle(&mut journal, branch.zip(base.as_ref()), clock)?;
        let (phase, target) = (journal.state().phase, targets.first());
        let target = target.map(|target| target.name.clone()).unwrap_or_default();
        let is_landed = |work: &Workstream| matches!(work.status, WorkstreamStatus::Landed);
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

/// Whether an integration that was left is the one that is asked for, and can go on.
pub(super) fn is_of(journal: &Journal, entries: &[Entry], terms: &str) -> bool {
    let state = journal.state();
    if state.admitted.config_digest != terms {
        return false;
    }
    let is_there = |entry: &Entry| {
        state.bundles.get(entry.sealed().id()).is_some_and(|work| {
            let same = work.seal.as_ref().is_none_or(|known| known.seal == seal_of(entry));
            same && match work.status {
                WorkstreamStatus::Ready
                | WorkstreamStatus::Interrupted
                | WorkstreamStatus::Sealed
                | WorkstreamStatus::Blocked { .. } => true,
                // What has landed and is asked for again is gone from where it landed.
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

/// Looks what became of everything that a driver was at when it died. Without a branch to look at,
/// nothing is known to have landed.
pub(super) fn settle(
    journal: &mut Journal,
    place: Option<(&TargetBranch, &LandingBase)>,
    clock: Clock,
) -> Result<(), JournalError> {
    for intent in journal.open_intents() {
        let at = clock();
        let is_done = match intent.effect() {
            Effect::Seal(_) => true,
            Effect::Land(landing) => {
                place.is_some_and(|(branch, base)| has_landed(branch, base, landing))
            }
            Effect::Prepare { .. }
            | Effect::Rescue { .. }
            | Effect::Apply { .. }
            | Effect::Outside { .. }
            | Effect::RemoveCheckout { .. }
            | Effect::DeleteBranch { .. } => false,
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
    // What a remote said just now is later than what was remembered of it.
    let now = if landing.reference == base.reference {
        Some(base.at)
    } else {
        branch.store.commit_at(&landing.reference).ok().flatten()
    };
    now.is_some_and(|now| crate::contains(&branch.store, now, back(&landing.new)).unwrap_or(false))
}
