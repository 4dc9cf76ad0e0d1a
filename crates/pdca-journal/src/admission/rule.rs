//! The admission rule: decides from the journals if a run may start.

use crate::reconcile::RunPhase;
use crate::run_id::RunId;
use crate::runs::RunEntry;

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
    /// The journal of a run cannot be read, so the run may not be over.
    Unreadable { run: RunId },
    /// A run waits for a person. It excludes others until it is resolved or aborted.
    Blocked { run: RunId, phase: RunPhase },
}

/// Decides if a run may start, given all runs on its targets. The caller holds the locks of the targets.
///
/// The order of the runs does not matter. Of several interrupted runs, the newest is resumed first.
pub fn rule(runs: &[RunFact]) -> AdmissionRuling {
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

    #[test]
    fn a_run_that_is_over_bars_nobody() {
        let over = [RunPhase::Completed, RunPhase::Aborted, RunPhase::Failed];
        let runs = over.map(|phase| fact(1, phase));
        assert_eq!(rule(&runs), AdmissionRuling::Admit);
        assert_eq!(rule(&[]), AdmissionRuling::Admit);
    }

    #[test]
    fn a_run_whose_driver_died_goes_on_and_the_newest_does_first() {
        for phase in RunPhase::ALL.into_iter().filter(|it| it.is_active() && !it.is_blocked()) {
            let runs = [fact(1, phase), fact(2, phase), fact(3, RunPhase::Completed)];
            assert_eq!(rule(&runs), AdmissionRuling::Resume(runs[1].run.clone()));
        }
    }

    #[test]
    fn a_blocked_run_bars_every_other_although_nobody_holds_its_lock() {
        for phase in RunPhase::ALL.into_iter().filter(|phase| phase.is_blocked()) {
            let runs = [fact(1, phase), fact(2, RunPhase::Running)];
            let run = runs[0].run.clone();
            assert_eq!(
                rule(&runs),
                AdmissionRuling::Refuse(AdmissionRefusal::Blocked { run, phase })
            );
        }
    }

    #[test]
    fn a_run_of_which_nothing_is_known_bars_every_other() {
        let runs = [fact(1, None), fact(2, RunPhase::BlockedConflict)];
        let run = runs[0].run.clone();
        assert_eq!(rule(&runs), AdmissionRuling::Refuse(AdmissionRefusal::Unreadable { run }));
    }
}
