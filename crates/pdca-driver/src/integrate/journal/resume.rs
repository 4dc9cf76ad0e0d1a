//! An integration that was left half done: whether it is the one asked for, and what became of it.

use pdca_integrate as git;
use pdca_integrate::Entry;
use pdca_journal::{
    Admission, Cause, Effect, Journal, Landing, Record, RunId, RunPhase, RunState, Workstream,
    WorkstreamStatus,
};
use pdca_state::BundleId;

use crate::config::WorkspaceConfig;
use crate::integrate::landing_base::LandingBase;
use crate::integrate::target_branch::TargetBranch;
use crate::run::Clock;

use super::{IntegrationJournal, JournalError, LOCK, back, myself, next, seal_of};

impl IntegrationJournal {
    /// Ends an integration that was left and has nothing to do any more.
    pub(in crate::integrate) fn close(
        config: &WorkspaceConfig,
        front: Option<&TargetBranch>,
        state: &RunState,
        run: &RunId,
        clock: Clock,
    ) -> Result<(), JournalError> {
        let targets = &state.admitted.targets;
        let admission = Admission::take(targets.iter().map(|target| target.common_dir.join(LOCK)))?;
        let (runs, at) = (config.integrations(), clock());
        let opened = Journal::open(&runs, &admission, run, next(&runs)?, at, myself()?, false);
        let opened = opened.map_err(|source| JournalError::TakeUp {
            run: run.clone(),
            source: Box::new(source),
        })?;
        let mut journal = opened.journal;
        let tip =
            front.map(|front| LandingBase { reference: front.reference.clone(), at: front.tip });
        settle(&mut journal, front.zip(tip.as_ref()), clock)?;
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
                place.is_some_and(|(front, tip)| has_landed(front, tip, landing))
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

fn has_landed(front: &TargetBranch, tip: &LandingBase, landing: &Landing) -> bool {
    // What a remote said just now is later than what was remembered of it.
    let now = if landing.reference == tip.reference {
        Some(tip.at)
    } else {
        front.store.commit_at(&landing.reference).ok().flatten()
    };
    now.is_some_and(|now| git::contains(&front.store, now, back(&landing.new)).unwrap_or(false))
}
