//! What may follow what, and that a prefix and the rest are the whole.

use proptest::prelude::*;

use super::*;
use crate::record::{Activity, Cause, Ending, Landing, Outcome, Phase, Record};
use crate::retry::{Allowance, Limits, Now};
use crate::testing::{
    admitted, at, claimed, ended, entered, entries, generation, id, intent, oid, outcome, process,
    seal,
};

/// The state after these records, all of which are legal.
fn told(records: Vec<Record>) -> RunState {
    try_tell(records).unwrap()
}

/// The state after these records; all but the last are legal.
fn try_tell(records: Vec<Record>) -> Result<RunState, Illegal> {
    let records = std::iter::once(Record::Admitted(admitted())).chain(records);
    let entries: Vec<Entry> = (1..)
        .zip(records)
        .map(|(seq, record)| Entry { seq: Seq(seq), epoch: Epoch::FIRST, at: at(seq), record })
        .collect();
    RunState::fold(&entries).map(Option::unwrap)
}

/// Why the last of these records is refused.
fn refusal(records: Vec<Record>) -> String {
    let last = Seq(records.len() as u64 + 1);
    let illegal = try_tell(records).unwrap_err();
    assert_eq!(illegal.seq, last, "{illegal}");
    illegal.objection.to_string()
}

fn running() -> Vec<Record> {
    vec![entered(Activity::Running)]
}

fn with(mut records: Vec<Record>, more: impl IntoIterator<Item = Record>) -> Vec<Record> {
    records.extend(more);
    records
}

/// Bundle 1 is accepted and its only commit applied; the tree `7` is judged so, next comes record 12.
fn applied(verdict: Verdict) -> Vec<Record> {
    let target = || "app".to_owned();
    with(
        running(),
        [
            claimed("1", 1, 0),
            ended("1", 1, Ending::Finished),
            intent(Effect::Seal(seal("1", '1'))),
            outcome(5, Outcome::Done),
            entered(Activity::Integrating),
            Record::Planned { target: target(), base: oid('0'), order: vec![id("1")] },
            intent(Effect::Apply {
                target: target(),
                bundle: id("1"),
                commit: oid('1'),
                onto: oid('0'),
            }),
            outcome(9, Outcome::Applied { commit: oid('a') }),
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
    assert!(state.bundles.values().all(|work| work.status == Status::Cleaned));
    assert_eq!(state.bundles[&id("1")].seal.as_ref().unwrap().order, Seq(15));
    assert_eq!(state.bundles[&id("2")].claim.as_ref().unwrap().generation, generation(2));
    assert_eq!(state.leaf_calls, 1);
    assert_eq!(state.reconciled.unwrap().action, Action::MarkCleaned);
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
        [claimed("1", number, 0), ended("1", number, Ending::Interrupted { cause: Cause::Crash })]
    };
    let once = with(running(), interrupted(1));
    told(with(once.clone(), [claimed("1", 2, 0)]));
    for number in [1, 3] {
        let refused = refusal(with(once.clone(), [claimed("1", number, 0)]));
        assert_eq!(refused, format!("generation {number} of 1 is not the one that is due"));
    }
    let stale = with(once, [claimed("1", 2, 0), ended("1", 1, Ending::Finished)]);
    assert_eq!(refusal(stale), "generation 1 of 1 is not the one that is due");
}

#[test]
fn a_lane_has_one_bundle_at_a_time() {
    let first = with(running(), [claimed("1", 1, 0)]);
    assert_eq!(refusal(with(first.clone(), [claimed("2", 1, 0)])), "lane 0 is not to be had");
    assert_eq!(refusal(with(first.clone(), [claimed("2", 1, 2)])), "lane 2 is not to be had");
    let given_back = [ended("1", 1, Ending::NoChange), claimed("2", 1, 0)];
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
fn what_lands_was_judged_green_as_exactly_that_tree() {
    told(with(
        applied(Verdict::Pass),
        [intent(Effect::Land(landing())), outcome(12, Outcome::Done)],
    ));
    let refused =
        |verdict, landing| refusal(with(applied(verdict), [intent(Effect::Land(landing))]));
    let other_tree = Landing { tree: oid('8'), ..landing() };
    let other_base = Landing { old: oid('9'), ..landing() };
    let nothing = Landing { bundles: Vec::new(), ..landing() };
    let another = Landing { bundles: vec![id("1"), id("2")], ..landing() };
    let seven = "7".repeat(40);
    let ungated =
        |tree: &str| format!("tree {tree} was not judged green with exactly these changes");
    for verdict in [Verdict::Fail, Verdict::Timeout, Verdict::Unverifiable, Verdict::Void] {
        assert_eq!(refused(verdict, landing()), ungated(&seven));
    }
    assert_eq!(refused(Verdict::Pass, other_tree), ungated(&"8".repeat(40)));
    let unplanned = "the landing does not follow the plan for app";
    assert_eq!(refused(Verdict::Pass, other_base), unplanned);
    assert_eq!(refused(Verdict::Pass, nothing), unplanned);
    assert_eq!(refused(Verdict::Pass, another), "2 is ready");
    let other_commit = Landing { new: oid('b'), ..landing() };
    assert_eq!(refused(Verdict::Pass, other_commit), unplanned);
}

#[test]
fn nothing_is_applied_twice_and_nothing_lands_twice() {
    let again = Effect::Apply {
        target: "app".to_owned(),
        bundle: id("1"),
        commit: oid('1'),
        onto: oid('a'),
    };
    let refused = refusal(with(applied(Verdict::Pass), [intent(again)]));
    assert_eq!(refused, format!("{} of 1 is not what is applied next", oid('1')));
    let landed = [intent(Effect::Land(landing())), outcome(12, Outcome::Done)];
    let twice = with(with(applied(Verdict::Pass), landed), [intent(Effect::Land(landing()))]);
    assert_eq!(refusal(twice), "the landing does not follow the plan for app");
}

#[test]
fn a_conflict_takes_the_change_and_what_was_applied_of_it_out_of_the_plan() {
    let mut two = seal("1", '2');
    two.commits = vec![oid('1'), oid('2')];
    let apply = |commit: char, onto: char| {
        let target = "app".to_owned();
        intent(Effect::Apply { target, bundle: id("1"), commit: oid(commit), onto: oid(onto) })
    };
    let order = vec![id("1"), id("2")];
    let conflict = Outcome::Conflict { paths: vec!["src/a.rs".to_owned()] };
    let records = with(
        running(),
        [
            intent(Effect::Seal(two)),
            outcome(3, Outcome::Done),
            intent(Effect::Seal(seal("2", '3'))),
            outcome(5, Outcome::Done),
            entered(Activity::Integrating),
            Record::Planned { target: "app".to_owned(), base: oid('0'), order },
            apply('1', '0'),
            outcome(9, Outcome::Applied { commit: oid('a') }),
            apply('2', 'a'),
            outcome(11, conflict),
        ],
    );
    let integration = &told(records.clone()).integrations["app"];
    assert_eq!(integration.tip, oid('0'));
    assert_eq!(integration.progress[&id("1")].conflict.as_deref().unwrap(), ["src/a.rs"]);
    assert!(refusal(with(records, [apply('2', '0')])).contains("not what is applied next"));
}

/// Bundles 1 and 2 are sealed and planned in this order; next comes record 9.
fn planned() -> Vec<Record> {
    with(
        running(),
        [
            intent(Effect::Seal(seal("1", '1'))),
            outcome(3, Outcome::Done),
            intent(Effect::Seal(seal("2", '2'))),
            outcome(5, Outcome::Done),
            entered(Activity::Integrating),
            Record::Planned {
                target: "app".to_owned(),
                base: oid('0'),
                order: vec![id("1"), id("2")],
            },
        ],
    )
}

fn apply(bundle: &str, commit: char, onto: char) -> Record {
    let target = "app".to_owned();
    intent(Effect::Apply { target, bundle: id(bundle), commit: oid(commit), onto: oid(onto) })
}

#[test]
fn changes_are_applied_in_the_order_of_the_plan_each_to_what_came_of_the_one_before() {
    let out_of_turn =
        |record| refusal(with(planned(), [record])).contains("not what is applied next");
    assert!(out_of_turn(apply("1", '1', '9')));
    assert!(out_of_turn(apply("1", '2', '0')));
    let first = [apply("1", '1', '0'), outcome(9, Outcome::Applied { commit: oid('a') })];
    told(with(planned(), first.clone().into_iter().chain([apply("2", '2', 'a')])));
    let elsewhere = with(planned(), first.into_iter().chain([apply("2", '2', '0')]));
    assert!(refusal(elsewhere).contains("not what is applied next"));
    let conflict = outcome(9, Outcome::Conflict { paths: Vec::new() });
    told(with(planned(), [apply("1", '1', '0'), conflict, apply("2", '2', '0')]));
    let back = [
        apply("2", '2', '0'),
        outcome(9, Outcome::Applied { commit: oid('b') }),
        apply("1", '1', 'b'),
    ];
    assert!(refusal(with(planned(), back)).contains("not what is applied next"));
    let twice = with(planned(), [apply("1", '1', '0'), apply("1", '1', '0')]);
    assert_eq!(refusal(twice), "intent 9 has no outcome yet");
}

#[test]
fn a_landing_leaves_no_gap_in_the_plan() {
    let combined = |members: Vec<BundleId>| Record::Combined {
        target: "app".to_owned(),
        tree: oid('7'),
        gate_digest: String::new(),
        verdict: Verdict::Pass,
        members,
    };
    let both = with(
        planned(),
        [
            apply("1", '1', '0'),
            outcome(9, Outcome::Applied { commit: oid('a') }),
            apply("2", '2', 'a'),
            outcome(11, Outcome::Applied { commit: oid('b') }),
        ],
    );
    let land = |bundles: &[&str], new: char| {
        let bundles: Vec<BundleId> = bundles.iter().map(|it| id(it)).collect();
        let landing = Landing { bundles: bundles.clone(), new: oid(new), ..landing() };
        with(both.clone(), [combined(bundles), intent(Effect::Land(landing))])
    };
    told(land(&["1", "2"], 'b'));
    told(land(&["1"], 'a'));
    let mut nothing_of_the_first = both.clone();
    nothing_of_the_first[8] = outcome(9, Outcome::Skipped { why: "there already".to_owned() });
    nothing_of_the_first[9] = apply("2", '2', '0');
    let second = Landing { bundles: vec![id("2")], new: oid('b'), ..landing() };
    told(with(nothing_of_the_first, [combined(vec![id("2")]), intent(Effect::Land(second))]));
    for (bundles, new) in [(&["2"][..], 'b'), (&["2", "1"], 'b'), (&["1"], 'b'), (&["1", "2"], 'a')]
    {
        assert_eq!(refusal(land(bundles, new)), "the landing does not follow the plan for app");
    }
}

#[test]
fn only_what_does_not_run_is_sealed_and_only_once() {
    let claim = with(running(), [claimed("1", 1, 0)]);
    assert_eq!(refusal(with(claim, [intent(Effect::Seal(seal("1", '1')))])), "1 is running");
    let sealed = with(running(), [intent(Effect::Seal(seal("1", '1'))), outcome(3, Outcome::Done)]);
    let again = with(sealed.clone(), [intent(Effect::Seal(seal("1", '1')))]);
    assert_eq!(refusal(again), "1 is sealed");
    let blocked = Record::Blocked {
        bundle: Some(id("1")),
        reason: Reason::Conflict,
        evidence: String::new(),
    };
    let again = with(sealed.clone(), [blocked.clone(), intent(Effect::Seal(seal("1", '1')))]);
    assert_eq!(refusal(again), "1 is sealed already");
    let unblocked = Record::Unblocked { bundle: Some(id("1")) };
    let state = told(with(sealed, [blocked, unblocked]));
    assert_eq!(state.bundles[&id("1")].status, Status::Sealed, "it goes on where it was blocked");
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
        [intent(Effect::Seal(seal("1", '1'))), outcome(3, Outcome::Done), blocked.clone()],
    );
    let draining = || entered(Activity::Draining);
    assert_eq!(refusal(with(waits.clone(), [draining()])), "1 is blocked");
    told(with(waits, [Record::Abandoned { bundle: id("1"), why: String::new() }, draining()]));
    told(with(running(), [blocked, draining()]));
}

#[test]
fn what_is_about_to_be_done_ends_before_anything_else_is_done_with_the_bundle() {
    let preparing = || with(running(), [intent(Effect::Prepare { bundle: id("1"), slot: 0 })]);
    for record in [
        claimed("1", 1, 0),
        intent(Effect::Prepare { bundle: id("1"), slot: 0 }),
        Record::Abandoned { bundle: id("1"), why: String::new() },
        Record::Aborted { why: String::new() },
    ] {
        assert_eq!(refusal(with(preparing(), [record])), "intent 3 has no outcome yet");
    }
    told(with(preparing(), [claimed("2", 1, 0)]));
    let wrong = outcome(3, Outcome::Applied { commit: oid('1') });
    assert_eq!(refusal(with(preparing(), [wrong])), "intent 3 cannot have this outcome");
    let unknown = outcome(9, Outcome::Done);
    assert_eq!(refusal(with(preparing(), [unknown])), "there is no open intent 9");
}

#[test]
fn nothing_is_removed_before_the_run_drains_and_no_branch_that_did_not_land() {
    let remove = || intent(Effect::RemoveCheckout { bundle: id("1") });
    let delete =
        || intent(Effect::DeleteBranch { bundle: id("1"), branch: "b".to_owned(), at: oid('1') });
    assert_eq!(refusal(with(running(), [remove()])), "the run is running");
    let draining = || with(running(), [entered(Activity::Draining)]);
    assert_eq!(refusal(with(draining(), [remove()])), "1 is ready");
    let abandoned = Record::Abandoned { bundle: id("1"), why: String::new() };
    told(with(draining(), [abandoned.clone(), remove()]));
    assert_eq!(refusal(with(draining(), [abandoned, delete()])), "1 is abandoned");
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
    let next = |record, epoch| Entry { seq: Seq(5), epoch: Epoch::new(epoch), at: at(5), record };
    let state = RunState::fold(&entries).unwrap().unwrap();
    for wrong in [next(claimed("1", 1, 0), 2), next(taken.clone(), 1), next(taken.clone(), 0)] {
        let refused = state.clone().apply(&wrong).unwrap_err();
        assert!(matches!(refused.objection, Objection::OtherEpoch { .. }), "{refused}");
    }
    entries.push(next(taken, 7));
    let taken_up = RunState::fold(&entries).unwrap().unwrap();
    let old = Entry { seq: Seq(6), ..next(claimed("1", 1, 0), 1) };
    let refused = taken_up.clone().apply(&old).unwrap_err();
    assert!(matches!(refused.objection, Objection::OtherEpoch { .. }), "{refused}");
    assert_eq!(taken_up.epoch, Epoch::new(7));
}

#[test]
fn f9_success_in_one_phase_leaves_the_counters_of_others_alone() {
    let recovery =
        |bundle: &str, phase, cause| Record::Recovery { bundle: Some(id(bundle)), phase, cause };
    let state = told(with(
        running(),
        [
            recovery("1", Phase::Prepare, Cause::Disk),
            recovery("1", Phase::Prepare, Cause::Git),
            recovery("1", Phase::Attempt, Cause::Disk),
            recovery("2", Phase::Prepare, Cause::Disk),
            recovery("1", Phase::Prepare, Cause::Disk),
            intent(Effect::Prepare { bundle: id("1"), slot: 0 }),
            outcome(8, Outcome::Done),
        ],
    ));
    let count = |bundle: &str, phase, cause| {
        state.tally.count(Some(&id(bundle)), phase, cause).map_or(0, |count| count.attempts)
    };
    assert_eq!(count("1", Phase::Prepare, Cause::Disk), 0);
    assert_eq!(count("1", Phase::Prepare, Cause::Git), 0);
    assert_eq!(count("1", Phase::Attempt, Cause::Disk), 1);
    assert_eq!(count("2", Phase::Prepare, Cause::Disk), 1);
    assert_eq!(state.tally.total(), 5, "the absolute number is never taken back");
}

#[test]
fn a_failure_takes_no_counter_back() {
    let recovery =
        Record::Recovery { bundle: Some(id("1")), phase: Phase::Prepare, cause: Cause::Disk };
    let state = told(with(
        running(),
        [
            recovery,
            intent(Effect::Prepare { bundle: id("1"), slot: 0 }),
            outcome(4, Outcome::Failed { cause: Cause::Disk, what: String::new() }),
        ],
    ));
    assert_eq!(state.tally.count(Some(&id("1")), Phase::Prepare, Cause::Disk).unwrap().attempts, 1);
}

#[test]
fn the_fifth_conflict_of_a_bundle_is_its_last() {
    let conflict = || Record::Conflict { bundle: id("1"), with: vec![id("2")] };
    let now = Now { at: at(1 << 20), boot: "b1" };
    let allowance = |state: &RunState| {
        let (bundle, limits) = (id("1"), Limits::default());
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
    let request = Request::Abort { why: "enough".to_owned() };
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
    assert_eq!(refusal(with(running(), [claimed("9", 1, 0)])), "9 is no part of the run");
}

/// What holds for every state that a legal sequence leads to.
fn require_sound(state: &RunState) {
    let mut slots = BTreeSet::new();
    for (bundle, work) in &state.bundles {
        let running = work.status == Status::Running;
        if running {
            let claim = work.claim.as_ref().expect("what runs is claimed");
            assert!(slots.insert(claim.slot), "two in lane {}", claim.slot);
        }
        let is_sealed = matches!(work.status, Status::Sealed | Status::Landed);
        assert!(!is_sealed || work.seal.is_some(), "{bundle}");
        assert!(!running || state.is_active(), "{bundle} runs in a run that is over");
        assert!(state.intents_about(bundle).count() <= 1, "{bundle}");
    }
    assert_eq!(state.phase.is_blocked(), state.block.is_some());
    if state.phase == RunPhase::Completed {
        assert!(state.bundles.values().all(|work| work.status == Status::Cleaned));
    }
}

/// Records of a small world, most of which do not fit where they are put.
fn any_record() -> impl Strategy<Value = Record> {
    let bundle = || prop_oneof![Just("1"), Just("2"), Just("3")];
    let activity = prop_oneof![
        Just(Activity::Running),
        Just(Activity::Running),
        Just(Activity::Integrating),
        Just(Activity::Draining)
    ];
    let ending = prop_oneof![
        Just(Ending::Finished),
        Just(Ending::NoChange),
        Just(Ending::Interrupted { cause: Cause::Crash })
    ];
    let result = prop_oneof![
        Just(Outcome::Done),
        Just(Outcome::Applied { commit: oid('a') }),
        Just(Outcome::Skipped { why: String::new() }),
        Just(Outcome::Conflict { paths: Vec::new() }),
        Just(Outcome::Failed { cause: Cause::Git, what: String::new() })
    ];
    let verdict = prop_oneof![Just(Verdict::Pass), Just(Verdict::Fail)];
    let reason = prop_oneof![Just(Reason::Conflict), Just(Reason::Recovery)];
    let app = || "app".to_owned();
    prop_oneof![
        activity.prop_map(entered),
        (bundle(), 1u32..4, 0u32..2).prop_map(|(it, number, slot)| claimed(it, number, slot)),
        (bundle(), 1u32..4, ending).prop_map(|(it, number, how)| ended(it, number, how)),
        bundle().prop_map(|it| intent(Effect::Seal(seal(it, '1')))),
        bundle().prop_map(|it| intent(Effect::Prepare { bundle: id(it), slot: 0 })),
        bundle().prop_map(|it| intent(Effect::RemoveCheckout { bundle: id(it) })),
        (bundle(), prop_oneof![Just('0'), Just('a')]).prop_map(move |(it, onto)| {
            let (bundle, commit, onto) = (id(it), oid('1'), oid(onto));
            intent(Effect::Apply { target: "app".to_owned(), bundle, commit, onto })
        }),
        bundle()
            .prop_map(|it| intent(Effect::Land(Landing { bundles: vec![id(it)], ..landing() }))),
        (2u64..40, result).prop_map(|(intent, result)| outcome(intent, result)),
        bundle().prop_map(move |it| Record::Planned {
            target: app(),
            base: oid('0'),
            order: vec![id(it)]
        }),
        (bundle(), verdict).prop_map(|(it, verdict)| Record::Combined {
            target: "app".to_owned(),
            tree: oid('7'),
            gate_digest: String::new(),
            verdict,
            members: vec![id(it)]
        }),
        (proptest::option::of(bundle()), reason).prop_map(|(it, reason)| Record::Blocked {
            bundle: it.map(id),
            reason,
            evidence: String::new()
        }),
        proptest::option::of(bundle()).prop_map(|it| Record::Unblocked { bundle: it.map(id) }),
        bundle().prop_map(|it| Record::Abandoned { bundle: id(it), why: String::new() }),
        bundle().prop_map(|it| Record::Cleaned { bundle: id(it) }),
        Just(Record::Completed),
        Just(Record::Aborted { why: String::new() }),
        Just(Record::Recovery { bundle: None, phase: Phase::Land, cause: Cause::Race }),
    ]
}

/// What the executor of a decision records, first to last.
fn recorded(action: Action, bundle: &BundleId, state: &RunState) -> Vec<Record> {
    let (bundle, text) = (bundle.clone(), String::new);
    let claim = state.bundles[&bundle].claim.as_ref();
    let interrupted = || Record::Ended {
        bundle: bundle.clone(),
        generation: claim.unwrap().generation,
        ending: Ending::Interrupted { cause: Cause::Crash },
    };
    match action {
        Action::Noop
        | Action::AwaitHuman
        | Action::AlertNoop
        | Action::FenceStop
        | Action::DrainKill
        | Action::RevokeLease
        | Action::QueueForIntegration => Vec::new(),
        Action::Prepare => vec![intent(Effect::Prepare { bundle, slot: 0 })],
        Action::Launch | Action::Reclaim => vec![Record::Claimed {
            generation: state.next_generation(&bundle).unwrap(),
            bundle,
            slot: 0,
            base: oid('0'),
        }],
        Action::MarkInterrupted => vec![interrupted()],
        Action::BlockRecovery => {
            let reason = Reason::Recovery;
            let ends = state.bundles[&bundle].status == Status::Running;
            let mut records: Vec<Record> = ends.then(interrupted).into_iter().collect();
            records.push(Record::Blocked { bundle: None, reason, evidence: text() });
            records
        }
        Action::Rescue => vec![intent(Effect::Rescue { bundle, reference: text() })],
        Action::RemoveCheckout => vec![intent(Effect::RemoveCheckout { bundle })],
        Action::DeleteBranch => {
            vec![intent(Effect::DeleteBranch { bundle, branch: text(), at: oid('1') })]
        }
        Action::MarkAbandoned => vec![Record::Abandoned { bundle, why: text() }],
        Action::MarkCleaned => vec![Record::Cleaned { bundle }],
    }
}

/// A state in which the run and its first bundle stand there.
fn standing(run: RunPhase, bundle: BundlePhase) -> RunState {
    let mut state = told(with(running(), [claimed("1", 1, 0)]));
    let (reason, evidence, from) = (Reason::Recovery, String::new(), Resting::Ready);
    state.phase = run;
    state.block = run.is_blocked().then(|| Block {
        reason,
        evidence: String::new(),
        from: RunPhase::Running,
    });
    let work = state.bundles.get_mut(&id("1")).unwrap();
    work.status = match bundle {
        BundlePhase::Ready => Status::Ready,
        BundlePhase::Running => Status::Running,
        BundlePhase::Interrupted => Status::Interrupted,
        BundlePhase::Sealed => Status::Sealed,
        BundlePhase::Landed => Status::Landed,
        BundlePhase::Blocked => Status::Blocked { reason, evidence, from },
        BundlePhase::Abandoned => Status::Abandoned { why: evidence },
        BundlePhase::Cleaned => Status::Cleaned,
    };
    state
}

#[test]
fn whatever_is_decided_about_any_tuple_can_be_recorded() {
    let bundle = id("1");
    let mut recordings = 0;
    for facts in crate::reconcile::all_facts() {
        let mut state = standing(facts.run, facts.bundle);
        let action = crate::reconcile::decide(facts);
        let mut records = recorded(action, &bundle, &state);
        records.push(Record::Reconciled { bundle: Some(bundle.clone()), action });
        recordings += records.len();
        for record in records {
            let (seq, epoch) = (Seq(state.last.seq.0 + 1), state.epoch);
            let entry = Entry { seq, epoch, at: at(9), record };
            let taken = state.apply(&entry);
            assert_eq!(taken, Ok(()), "{facts:?} {action:?} {:?}", entry.record);
        }
    }
    assert!(recordings > 8640);
}

proptest! {
    #[test]
    fn every_legal_sequence_is_sound_at_each_step_and_a_prefix_and_the_rest_are_the_whole(
        records in proptest::collection::vec(any_record(), 1..400), cut in any::<prop::sample::Index>(),
    ) {
        let mut entries = entries()[..1].to_vec();
        let mut state = RunState::fold(&entries).unwrap().unwrap();
        for record in records {
            let seq = Seq(entries.len() as u64 + 1);
            let entry = Entry { seq, epoch: Epoch::FIRST, at: at(1), record };
            let before = state.clone();
            if state.apply(&entry).is_ok() {
                require_sound(&state);
                entries.push(entry);
            } else {
                prop_assert_eq!(&state, &before, "a refused record changes nothing");
            }
        }
        let cut = 1 + cut.index(entries.len());
        let mut resumed = RunState::fold(&entries[..cut]).unwrap().unwrap();
        for entry in &entries[cut..] {
            resumed.apply(entry).unwrap();
        }
        prop_assert_eq!(resumed, state);
    }
}
