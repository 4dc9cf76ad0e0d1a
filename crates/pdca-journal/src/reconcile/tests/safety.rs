//! Rules that hold for every tuple, and that every decision comes to rest.

use super::*;

/// A safety rule that a decision breaks.
fn broken(
    rule: impl Fn(RecoveryFacts, RecoveryAction) -> bool,
) -> Vec<(RecoveryFacts, RecoveryAction)> {
    RecoveryFacts::all()
        .map(|facts| (facts, decide(facts)))
        .filter(|(f, a)| !rule(*f, *a))
        .collect()
}

fn spawns(action: RecoveryAction) -> bool {
    matches!(action, RecoveryAction::Launch | RecoveryAction::Reclaim)
}

#[test]
fn spawning_only_in_running() {
    assert_eq!(broken(|f, a| !spawns(a) || f.run == RunPhase::Running), []);
}

#[test]
fn spawning_only_with_no_runner() {
    assert_eq!(broken(|f, a| !spawns(a) || f.runner == Liveness::Dead), []);
}

#[test]
fn unknown_liveness_means_no_action_and_nothing_else_alerts() {
    assert_eq!(
        broken(|f, a| (f.runner == Liveness::Unknown) == (a == RecoveryAction::AlertNoop)),
        []
    );
}

#[test]
fn a_runner_is_waited_for_before_anything_else_is_done_about_its_bundle() {
    assert_eq!(
        broken(|f, a| (f.runner == Liveness::Alive) == (a == RecoveryAction::AwaitRunner)),
        []
    );
}

#[test]
fn runs_that_are_over_never_reopen() {
    let after_the_end = |action: RecoveryAction| match action {
        RecoveryAction::Noop | RecoveryAction::AlertNoop | RecoveryAction::AwaitRunner => true,
        RecoveryAction::Launch
        | RecoveryAction::Reclaim
        | RecoveryAction::MarkInterrupted
        | RecoveryAction::BlockRecovery
        | RecoveryAction::AwaitHuman
        | RecoveryAction::MarkAbandoned
        | RecoveryAction::MarkCleaned => false,
    };
    assert_eq!(broken(|f, a| f.run.is_active() || after_the_end(a)), []);
}

#[test]
fn blocked_runs_never_spawn_or_give_up() {
    let ends = |a| matches!(a, RecoveryAction::MarkAbandoned | RecoveryAction::MarkCleaned);
    assert_eq!(broken(|f, a| !f.run.is_blocked() || !(spawns(a) || ends(a))), []);
}

#[test]
fn every_action_is_decided_for_some_tuple() {
    let decided: std::collections::BTreeSet<RecoveryAction> =
        RecoveryFacts::all().map(decide).collect();
    assert_eq!(decided.len(), 10);
}

#[test]
fn every_tuple_comes_to_rest_in_a_few_steps_and_visits_none_twice() {
    let mut longest = 0;
    for start in RecoveryFacts::all() {
        let mut path = vec![start];
        while let Some(next) = after(path[path.len() - 1], decide(path[path.len() - 1])) {
            assert!(!path.contains(&next), "a cycle: {path:?}");
            path.push(next);
        }
        longest = longest.max(path.len() - 1);
    }
    assert_eq!(longest, 4, "wait, interrupt, abandon, mark");
}
