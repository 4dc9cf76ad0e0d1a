//! Sealing, applying and landing: in order, once, and only what was judged.

use super::*;

#[test]
fn what_lands_was_judged_green_as_exactly_that_tree() {
    told(with(
        applied(GateVerdict::Pass),
        [intent(Effect::Land(landing())), outcome(12, EffectOutcome::Done)],
    ));
    let refused =
        |verdict, landing| refusal(with(applied(verdict), [intent(Effect::Land(landing))]));
    let other_tree = Landing { tree: oid('8'), ..landing() };
    let other_base = Landing { old: oid('9'), ..landing() };
    let nothing = Landing { bundles: Vec::new(), ..landing() };
    let another = Landing { bundles: vec![id("1"), id("2")], ..landing() };
    let seven = "7".repeat(40);
    let ungated =
        |tree: &str| format!("tree {tree} did not pass the gates with exactly these changes");
    for verdict in
        [GateVerdict::Fail, GateVerdict::Timeout, GateVerdict::Unverifiable, GateVerdict::Void]
    {
        assert_eq!(refused(verdict, landing()), ungated(&seven));
    }
    assert_eq!(refused(GateVerdict::Pass, other_tree), ungated(&"8".repeat(40)));
    let unplanned = "the landing does not follow the plan for app";
    assert_eq!(refused(GateVerdict::Pass, other_base), unplanned);
    assert_eq!(refused(GateVerdict::Pass, nothing), unplanned);
    assert_eq!(refused(GateVerdict::Pass, another), "2 is ready");
    let other_commit = Landing { new: oid('b'), ..landing() };
    assert_eq!(refused(GateVerdict::Pass, other_commit), unplanned);
}

#[test]
fn nothing_is_applied_twice_and_nothing_lands_twice() {
    let again = Effect::Apply {
        target: "app".to_owned(),
        bundle: id("1"),
        commit: oid('1'),
        onto: oid('a'),
    };
    let refused = refusal(with(applied(GateVerdict::Pass), [intent(again)]));
    assert_eq!(refused, format!("{} of 1 is not the next commit to apply", oid('1')));
    let landed = [intent(Effect::Land(landing())), outcome(12, EffectOutcome::Done)];
    let twice = with(with(applied(GateVerdict::Pass), landed), [intent(Effect::Land(landing()))]);
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
    let conflict = EffectOutcome::Conflict { paths: vec!["src/a.rs".to_owned()] };
    let records = with(
        running(),
        [
            intent(Effect::Seal(two)),
            outcome(3, EffectOutcome::Done),
            intent(Effect::Seal(seal("2", '3'))),
            outcome(5, EffectOutcome::Done),
            entered(Activity::Integrating),
            Record::Planned { target: "app".to_owned(), base: oid('0'), order },
            apply('1', '0'),
            outcome(9, EffectOutcome::Applied { commit: oid('a') }),
            apply('2', 'a'),
            outcome(11, conflict),
        ],
    );
    let integration = &told(records.clone()).integrations["app"];
    assert_eq!(integration.tip, oid('0'));
    assert_eq!(integration.progress[&id("1")].conflict.as_deref().unwrap(), ["src/a.rs"]);
    assert!(refusal(with(records, [apply('2', '0')])).contains("not the next commit to apply"));
}

/// Bundles 1 and 2 are sealed and planned in this order; next comes record 9.
fn planned() -> Vec<Record> {
    with(
        running(),
        [
            intent(Effect::Seal(seal("1", '1'))),
            outcome(3, EffectOutcome::Done),
            intent(Effect::Seal(seal("2", '2'))),
            outcome(5, EffectOutcome::Done),
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
        |record| refusal(with(planned(), [record])).contains("not the next commit to apply");
    assert!(out_of_turn(apply("1", '1', '9')));
    assert!(out_of_turn(apply("1", '2', '0')));
    let first = [apply("1", '1', '0'), outcome(9, EffectOutcome::Applied { commit: oid('a') })];
    told(with(planned(), first.clone().into_iter().chain([apply("2", '2', 'a')])));
    let elsewhere = with(planned(), first.into_iter().chain([apply("2", '2', '0')]));
    assert!(refusal(elsewhere).contains("not the next commit to apply"));
    let conflict = outcome(9, EffectOutcome::Conflict { paths: Vec::new() });
    told(with(planned(), [apply("1", '1', '0'), conflict, apply("2", '2', '0')]));
    let back = [
        apply("2", '2', '0'),
        outcome(9, EffectOutcome::Applied { commit: oid('b') }),
        apply("1", '1', 'b'),
    ];
    assert!(refusal(with(planned(), back)).contains("not the next commit to apply"));
    let twice = with(planned(), [apply("1", '1', '0'), apply("1", '1', '0')]);
    assert_eq!(refusal(twice), "intent 9 has no outcome yet");
}

#[test]
fn a_landing_leaves_no_gap_in_the_plan() {
    let combined = |members: Vec<BundleId>| Record::Combined {
        target: "app".to_owned(),
        tree: oid('7'),
        gate_digest: String::new(),
        verdict: GateVerdict::Pass,
        members,
    };
    let both = with(
        planned(),
        [
            apply("1", '1', '0'),
            outcome(9, EffectOutcome::Applied { commit: oid('a') }),
            apply("2", '2', 'a'),
            outcome(11, EffectOutcome::Applied { commit: oid('b') }),
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
    nothing_of_the_first[8] =
        outcome(9, EffectOutcome::Skipped { why: "there already".to_owned() });
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
    let sealed =
        with(running(), [intent(Effect::Seal(seal("1", '1'))), outcome(3, EffectOutcome::Done)]);
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
    assert_eq!(
        state.bundles[&id("1")].status,
        WorkstreamStatus::Sealed,
        "it goes on where it was blocked"
    );
}
