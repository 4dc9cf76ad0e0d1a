//! The admission rule: decides from locks and journals if a run may start.

use crate::reconcile::RunPhase;
use crate::run_id::RunId;
use crate::runs::RunEntry;

/// The state of a target's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockFact {
    Free,
    Held {
        /// The text that the holder wrote into the lock file.
        by: String,
    },
    /// The file system does not support locks.
    CannotLock,
}

/// The phase of a run according to its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFact {
    pub run: RunId,
    /// `None` if the journal cannot be read.
    pub phase: Option<RunPhase>,
}

impl From<&RunEntry> for RunFact {
    fn from(run: &RunEntry) -> Self {
        Self { run: run.id.clone(), phase: run.phase() }
    }
}

/// The decision of [`rule`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdmissionRuling {
    /// A new run may start.
    Admit,
    /// This interrupted run has to be resumed; its driver is dead.
    Resume(RunId),
    /// No run may start.
    Refuse(AdmissionRefusal),
}

/// The reason no run may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdmissionRefusal {
    /// A file system does not support locks.
    CannotLock,
    /// Another driver is at work.
    Held {
        /// The text that the holder wrote into the lock file.
        by: String,
    },
    /// The journal of a run cannot be read, so the run may not be over.
    Unreadable { run: RunId },
    /// A run waits for a person. It excludes others until it is resolved or aborted.
    Blocked { run: RunId, phase: RunPhase },
}

/// Decides if a run may start on targets with these locks, given all runs on them.
///
/// The order of the runs does not matter. Of several interrupted runs, the newest is resumed first.
pub fn rule(locks: &[LockFact], runs: &[RunFact]) -> AdmissionRuling {
    // First, because without locks "free" and "held" mean nothing.
    if locks.contains(&LockFact::CannotLock) {
        return AdmissionRuling::Refuse(AdmissionRefusal::CannotLock);
    }
    let held = locks.iter().find_map(|lock| match lock {
        LockFact::Held { by } => Some(by.clone()),
        LockFact::Free | LockFact::CannotLock => None,
    });
    if let Some(by) = held {
        return AdmissionRuling::Refuse(AdmissionRefusal::Held { by });
    }
    let mut runs: Vec<&RunFact> = runs.iter().collect();
    runs.sort_unstable_by(|one, other| other.run.cmp(&one.run));
    // Before any run is resumed: the run that cannot be read may have changes under way in the same
    // repository, and a person has to look at it.
    if let Some(unread) = runs.iter().find(|fact| fact.phase.is_none()) {
        return AdmissionRuling::Refuse(AdmissionRefusal::Unreadable { run: unread.run.clone() });
    }
    let known = || runs.iter().filter_map(|fact| Some((&fact.run, fact.phase?)));
    if let Some((run, phase)) = known().find(|(_, phase)| phase.is_blocked()) {
        return AdmissionRuling::Refuse(AdmissionRefusal::Blocked { run: run.clone(), phase });
    }
    match known().find(|(_, phase)| phase.is_active()) {
        Some((run, _)) => AdmissionRuling::Resume(run.clone()),
        None => AdmissionRuling::Admit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(number: u8, phase: impl Into<Option<RunPhase>>) -> RunFact {
        let run = RunId::new(jiff::Timestamp::UNIX_EPOCH, [number; 10]);
        RunFact { run, phase: phase.into() }
    }

    const FREE: &[LockFact] = &[LockFact::Free, LockFact::Free];

    #[test]
    fn a_run_that_is_over_bars_nobody() {
        let over = [RunPhase::Completed, RunPhase::Aborted, RunPhase::Failed];
        let runs = over.map(|phase| fact(1, phase));
        assert_eq!(rule(FREE, &runs), AdmissionRuling::Admit);
        assert_eq!(rule(FREE, &[]), AdmissionRuling::Admit);
    }

    #[test]
    fn a_run_whose_driver_died_goes_on_and_the_newest_does_first() {
        for phase in RunPhase::ALL.into_iter().filter(|it| it.is_active() && !it.is_blocked()) {
            let runs = [fact(1, phase), fact(2, phase), fact(3, RunPhase::Completed)];
            assert_eq!(rule(FREE, &runs), AdmissionRuling::Resume(runs[1].run.clone()));
        }
    }

    // holds: S004-10
    #[test]
    fn a_blocked_run_bars_every_other_although_nobody_holds_its_lock() {
        for phase in RunPhase::ALL.into_iter().filter(|phase| phase.is_blocked()) {
            let runs = [fact(1, phase), fact(2, RunPhase::Running)];
            let run = runs[0].run.clone();
            assert_eq!(
                rule(FREE, &runs),
                AdmissionRuling::Refuse(AdmissionRefusal::Blocked { run, phase })
            );
        }
    }

    #[test]
    fn a_run_of_which_nothing_is_known_bars_every_other() {
        let runs = [fact(1, None), fact(2, RunPhase::BlockedConflict)];
        let run = runs[0].run.clone();
        assert_eq!(
            rule(FREE, &runs),
            AdmissionRuling::Refuse(AdmissionRefusal::Unreadable { run })
        );
    }

    #[test]
    fn a_lock_that_is_held_or_worthless_is_asked_before_any_journal() {
        let held = LockFact::Held { by: "process 12".to_owned() };
        let runs = [fact(1, None)];
        let by = "process 12".to_owned();
        assert_eq!(
            rule(&[LockFact::Free, held.clone()], &runs),
            AdmissionRuling::Refuse(AdmissionRefusal::Held { by })
        );
        assert_eq!(
            rule(&[held, LockFact::CannotLock], &runs),
            AdmissionRuling::Refuse(AdmissionRefusal::CannotLock)
        );
    }
}
