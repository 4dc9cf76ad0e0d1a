//! Legal sequences of records, and the law that folding a prefix and then the rest folds the whole.

mod landing;
mod random;

use super::*;
use crate::record::{Activity, BeatEnding, Cause, EffectOutcome, Landing, Phase, Record};
use crate::retry::{Allowance, Now, RetryLimits};
use crate::testing::{
    admitted, at, claimed, ended, entered, entries, generation, id, intent, oid, outcome, process,
    rescue, seal,
};

/// The state after these records, all of which are legal.
fn told(records: Vec<Record>) -> RunState {
    try_tell(records).unwrap()
}

/// The state after these records; all but the last are legal.
fn try_tell(records: Vec<Record>) -> Result<RunState, RejectedRecord> {
    let records = std::iter::once(Record::Admitted(admitted())).chain(records);
    let entries: Vec<JournalEntry> = (1..)
        .zip(records)
        .map(|(seq, record)| JournalEntry {
            seq: Seq(seq),
            epoch: Epoch::FIRST,
            at: at(seq),
            record,
        })
        .collect();
    RunState::fold(&entries).map(Option::unwrap)
}

/// The reason the last of these records is refused.
fn refusal(records: Vec<Record>) -> String {
    let last = Seq(records.len() as u64 + 1);
    let rejected = try_tell(records).unwrap_err();
    assert_eq!(rejected.seq, last, "{rejected}");
    rejected.reason.to_string()
}

fn running() -> Vec<Record> {
    vec![entered(Activity::Running)]
}

fn with(mut records: Vec<Record>, more: impl IntoIterator<Item = Record>) -> Vec<Record> {
    records.extend(more);
    records
}

/// Bundle 1 is accepted and its only commit applied; the tree `7` is judged so, next comes record 12.
fn applied(verdict: GateVerdict) -> Vec<Record> {
    let target = || "app".to_owned();
    with(
        running(),
        [
            claimed("1", 1, 0),
            ended("1", 1, BeatEnding::Finished),
            intent(Effect::Seal(seal("1", '1'))),
            outcome(5, EffectOutcome::Done),
            entered(Activity::Integrating),
            Record::Planned { target: target(), base: oid('0'), order: vec![id("1")] },
            intent(Effect::Apply {
                target: target(),
                bundle: id("1"),
                commit: oid('1'),
                onto: oid('0'),
            }),
            outcome(9, EffectOutcome::Applied { commit: oid('a') }),
            Record::Combined {
                target: target(),
                tree: oid('7'),
                gate_digest: "9a7e".to_owned(),
                verdict,
                members: vec![id("1")],
            },
        ],
    )
}

fn landing() -> Landing {
    Landing {
        target: "app".to_owned(),
        reference: "refs/heads/main".to_owned(),
        old: oid('0'),
        new: oid('a'),
        tree: oid('7'),
        bundles: vec![id("1")],
    }
}

#[test]
fn a_whole_run_ends_clean() {
    let state = RunState::fold(&entries()).unwrap().unwrap();
    assert_eq!(state.phase, RunPhase::Completed);
    assert!(!state.is_active() && state.intents.is_empty() && state.requests.is_empty());
    assert!(state.bundles.values().all(|work| work.status == WorkstreamStatus::Cleaned));
    assert_eq!(state.bundles[&id("1")].seal.as_ref().unwrap().order, Seq(15));
    assert_eq!(state.bundles[&id("2")].claim.as_ref().unwrap().generation, generation(2));
    assert_eq!(state.leaf_calls, 1);
    assert_eq!(state.reconciled.unwrap().action, RecoveryAction::MarkCleaned);
    assert_eq!(state.worked.as_secs(), 38);
}

#[test]
fn every_prefix_of_a_run_is_a_state_and_the_rest_leads_to_the_same_end() {
    let entries = entries();
    let end = RunState::fold(&entries).unwrap();
    for at in 1..entries.len() {
        let mut state = RunState::fold(&entries[..at]).unwrap().unwrap();
        require_sound(&state);
        for entry in &entries[at..] {
            state.apply(entry).unwrap();
        }
        assert_eq!(Some(state), end);
    }
}

#[test]
fn a_record_that_is_left_out_is_missed() {
    let entries = entries();
    for at in 0..entries.len() - 1 {
        let mut gap = entries.clone();
        gap.remove(at);
        assert!(RunState::fold(&gap).is_err(), "without record {}", at + 1);
    }
}

#[test]
fn a_generation_is_never_used_again_and_never_left_out() {
    let interrupted = |number| {
        [
            claimed("1", number, 0),
            ended("1", number, BeatEnding::Interrupted { cause: Cause::Crash }),
        ]
    };
    let once = with(running(), interrupted(1));
    told(with(once.clone(), [claimed("1", 2, 0)]));
    for number in [1, 3] {
        let refused = refusal(with(once.clone(), [claimed("1", number, 0)]));
        assert_eq!(refused, format!("generation {number} of 1 is not the one that is due"));
    }
    let stale = with(once, [claimed("1", 2, 0), ended("1", 1, BeatEnding::Finished)]);
    assert_eq!(refusal(stale), "generation 1 of 1 is not the one that is due");
}

#[test]
fn a_lane_has_one_bundle_at_a_time() {
    let first = with(running(), [claimed("1", 1, 0)]);
    assert_eq!(refusal(with(first.clone(), [claimed("2", 1, 0)])), "lane 0 is not available");
    assert_eq!(refusal(with(first.clone(), [claimed("2", 1, 2)])), "lane 2 is not available");
    let given_back = [ended("1", 1, BeatEnding::NoChange), claimed("2", 1, 0)];
    told(with(first, given_back));
}

#[test]
fn nothing_is_claimed_but_in_a_run_at_work() {
    assert_eq!(refusal(vec![claimed("1", 1, 0)]), "the run is preparing");
    let blocked =
        Record::Blocked { bundle: None, reason: Reason::Recovery, evidence: "e".to_owned() };
    let refused = refusal(with(running(), [blocked, claimed("1", 1, 0)]));
    assert_eq!(refused, "the run is blocked_recovery");
    let draining = [entered(Activity::Draining), claimed("1", 1, 0)];
    assert_eq!(refusal(with(running(), draining)), "the run is draining");
}

#[test]
fn a_run_does_not_drain_while_an_accepted_change_waits_for_a_person() {
    let blocked = Record::Blocked {
        bundle: Some(id("1")),
        reason: Reason::Conflict,
        evidence: String::new(),
    };
    let waits = with(
        running(),
        [intent(Effect::Seal(seal("1", '1'))), outcome(3, EffectOutcome::Done), blocked.clone()],
    );
    let draining = || entered(Activity::Draining);
    assert_eq!(refusal(with(waits.clone(), [draining()])), "1 is blocked");
    told(with(waits, [Record::Abandoned { bundle: id("1"), why: String::new() }, draining()]));
    told(with(running(), [blocked, draining()]));
}

#[test]
fn what_is_about_to_be_done_ends_before_anything_else_is_done_with_the_bundle() {
    let rescuing = || with(running(), [intent(rescue("1"))]);
    for record in [
        claimed("1", 1, 0),
        intent(rescue("1")),
        Record::Abandoned { bundle: id("1"), why: String::new() },
        Record::Aborted { why: String::new() },
    ] {
        assert_eq!(refusal(with(rescuing(), [record])), "intent 3 has no outcome yet");
    }
    told(with(rescuing(), [claimed("2", 1, 0)]));
    let wrong = outcome(3, EffectOutcome::Applied { commit: oid('1') });
    assert_eq!(refusal(with(rescuing(), [wrong])), "intent 3 cannot have this outcome");
    let unknown = outcome(9, EffectOutcome::Done);
    assert_eq!(refusal(with(rescuing(), [unknown])), "there is no open intent 9");
}

#[test]
fn a_run_that_is_over_stays_over() {
    for over in [Record::Aborted { why: String::new() }, Record::Failed { why: String::new() }] {
        let ended = with(running(), [over]);
        for record in [
            entered(Activity::Running),
            claimed("1", 1, 0),
            Record::Unblocked { bundle: None },
            Record::Unblocked { bundle: Some(id("1")) },
            Record::Completed,
            Record::Aborted { why: String::new() },
            intent(Effect::Seal(seal("1", '1'))),
            Record::LeafCalled { bundle: id("1"), role: "builder".to_owned() },
        ] {
            let refused = try_tell(with(ended.clone(), [record.clone()]));
            assert!(refused.is_err(), "{record:?}");
        }
    }
    let busy = with(running(), [claimed("1", 1, 0), Record::Aborted { why: String::new() }]);
    assert_eq!(refusal(busy), "1 is running");
}

#[test]
fn a_run_is_blocked_once_and_goes_on_where_it_was() {
    let block = |reason| Record::Blocked { bundle: None, reason, evidence: "e".to_owned() };
    let unblock = || Record::Unblocked { bundle: None };
    for (reason, name) in [
        (Reason::Conflict, "blocked_conflict"),
        (Reason::Validation, "blocked_validation"),
        (Reason::Recovery, "blocked_recovery"),
    ] {
        let blocked = with(running(), [entered(Activity::Integrating), block(reason)]);
        let state = told(blocked.clone());
        assert_eq!(state.phase.as_str(), name);
        assert!(state.is_active() && state.block.is_some());
        assert_eq!(refusal(with(blocked.clone(), [block(reason)])), format!("the run is {name}"));
        let state = told(with(blocked, [unblock()]));
        assert_eq!((state.phase, state.block), (RunPhase::Integrating, None));
    }
    for reason in [Reason::SignOff, Reason::NoChange, Reason::Failed] {
        assert_eq!(refusal(vec![block(reason)]), "a run is not blocked for this reason");
    }
    assert_eq!(refusal(vec![unblock()]), "it is not blocked");
}

#[test]
fn only_a_new_driver_brings_a_new_epoch_and_an_old_one_says_nothing_any_more() {
    let mut entries = entries()[..4].to_vec();
    let taken = Record::TakenUp { driver: process(), forced: true };
    let next =
        |record, epoch| JournalEntry { seq: Seq(5), epoch: Epoch::new(epoch), at: at(5), record };
    let state = RunState::fold(&entries).unwrap().unwrap();
    for wrong in [next(claimed("1", 1, 0), 2), next(taken.clone(), 1), next(taken.clone(), 0)] {
        let refused = state.clone().apply(&wrong).unwrap_err();
        assert!(matches!(refused.reason, InvalidRecord::OtherEpoch { .. }), "{refused}");
    }
    entries.push(next(taken, 7));
    let taken_up = RunState::fold(&entries).unwrap().unwrap();
    let old = JournalEntry { seq: Seq(6), ..next(claimed("1", 1, 0), 1) };
    let refused = taken_up.clone().apply(&old).unwrap_err();
    assert!(matches!(refused.reason, InvalidRecord::OtherEpoch { .. }), "{refused}");
    assert_eq!(taken_up.epoch, Epoch::new(7));
}

#[test]
fn f9_success_in_one_phase_leaves_the_counters_of_others_alone() {
    let recovery =
        |bundle: &str, phase, cause| Record::Recovery { bundle: Some(id(bundle)), phase, cause };
    let state = told(with(
        running(),
        [
            recovery("1", Phase::Cleanup, Cause::Disk),
            recovery("1", Phase::Cleanup, Cause::Git),
            recovery("1", Phase::Attempt, Cause::Disk),
            recovery("2", Phase::Cleanup, Cause::Disk),
            recovery("1", Phase::Cleanup, Cause::Disk),
            intent(rescue("1")),
            outcome(8, EffectOutcome::Done),
        ],
    ));
    let count = |bundle: &str, phase, cause| {
        state.tally.count(Some(&id(bundle)), phase, cause).map_or(0, |count| count.attempts)
    };
    assert_eq!(count("1", Phase::Cleanup, Cause::Disk), 0);
    assert_eq!(count("1", Phase::Cleanup, Cause::Git), 0);
    assert_eq!(count("1", Phase::Attempt, Cause::Disk), 1);
    assert_eq!(count("2", Phase::Cleanup, Cause::Disk), 1);
    assert_eq!(state.tally.total(), 5, "the absolute number is never taken back");
}

#[test]
fn a_failure_takes_no_counter_back() {
    let recovery =
        Record::Recovery { bundle: Some(id("1")), phase: Phase::Cleanup, cause: Cause::Disk };
    let state = told(with(
        running(),
        [
            recovery,
            intent(rescue("1")),
            outcome(4, EffectOutcome::Failed { cause: Cause::Disk, what: String::new() }),
        ],
    ));
    assert_eq!(state.tally.count(Some(&id("1")), Phase::Cleanup, Cause::Disk).unwrap().attempts, 1);
}

#[test]
fn the_fifth_conflict_of_a_bundle_is_its_last() {
    let conflict = || Record::Conflict { bundle: id("1"), with: vec![id("2")] };
    let now = Now { at: at(1 << 20), boot: "b1" };
    let allowance = |state: &RunState| {
        let (bundle, limits) = (id("1"), RetryLimits::default());
        state.tally.allowance(&limits, Some(&bundle), Phase::Integrate, Cause::Conflict, now)
    };
    for times in 0..=5 {
        let state = told(std::iter::repeat_with(conflict).take(times).collect());
        let expected = if times < 5 { Allowance::Now } else { Allowance::Exhausted };
        assert_eq!(allowance(&state), expected, "after {times}");
    }
}

#[test]
fn a_request_is_taken_once_and_answered_once() {
    let request = InboxRequest::Abort { why: "enough".to_owned() };
    let taken = || Record::Requested { id: "r".to_owned(), request: request.clone() };
    let answered = || Record::Answered { id: "r".to_owned(), refusal: None };
    let refused = "the request \"r\" was taken already, or never";
    assert_eq!(refusal(vec![taken(), taken()]), refused);
    assert_eq!(refusal(vec![taken(), answered(), taken()]), refused);
    assert_eq!(refusal(vec![taken(), answered(), answered()]), refused);
    assert_eq!(refusal(vec![answered()]), refused);
}

#[test]
fn a_bundle_that_is_no_part_of_the_run_is_refused() {
    assert_eq!(refusal(with(running(), [claimed("9", 1, 0)])), "9 is not part of the run");
}

/// The invariants of every state that a legal sequence leads to.
fn require_sound(state: &RunState) {
    let mut slots = BTreeSet::new();
    for (bundle, work) in &state.bundles {
        let running = work.status == WorkstreamStatus::Running;
        if running {
            let claim = work.claim.as_ref().expect("what runs is claimed");
            assert!(slots.insert(claim.slot), "two in lane {}", claim.slot);
        }
        let is_sealed = matches!(work.status, WorkstreamStatus::Sealed | WorkstreamStatus::Landed);
        assert!(!is_sealed || work.seal.is_some(), "{bundle}");
        assert!(!running || state.is_active(), "{bundle} runs in a run that is over");
        let open = state.intents.values().filter(|effect| touches(effect, bundle));
        assert!(open.count() <= 1, "{bundle}");
    }
    assert_eq!(state.phase.is_blocked(), state.block.is_some());
    if state.phase == RunPhase::Completed {
        assert!(state.bundles.values().all(|work| work.status == WorkstreamStatus::Cleaned));
    }
}
