//! Tests of the search, one fact each.

use super::{
    Culprit, CulpritEffect, FlakeLedger, FlakeRules, HoldReason, Search, SearchDecision,
    SearchSetup, Test, TestAnswer, TestPurpose,
};
use crate::testing::laws;
use crate::testing::simulation::{Dice, Lanes, Report, Scenario, carry_out};

fn new(count: usize) -> Search {
    Search::new(SearchSetup::new(vec![Vec::new(); count]).with_green_base(true))
}

fn searched(scenario: &Scenario, lanes: usize) -> Report {
    let search = Search::new(scenario.setup().with_green_base(true));
    carry_out(search, Lanes::InStep(lanes), |test| scenario.answer(test))
}

/// Runs a search over `count` changes with one lane.
fn with_gate(count: usize, gate: impl FnMut(&Test) -> TestAnswer) -> Report {
    carry_out(new(count), Lanes::InStep(1), gate)
}

fn rows(text: &str) -> Vec<String> {
    vec![text.to_owned()]
}

#[test]
fn ten_thousand_random_batches_keep_every_law() {
    // One thread per seed keeps the test short.
    let check = |seed| move || laws::check(seed, 2500);
    let tallies: Vec<laws::IntegrationTally> = std::thread::scope(|scope| {
        let threads = [17, 18, 19, 20].map(|seed| scope.spawn(check(seed)));
        threads.map(|thread| thread.join().expect("because a law is told, not panicked")).into()
    });
    for tally in tallies {
        assert!(tally.broken.is_empty(), "{}\n{}", tally.broken.len(), tally.broken[0]);
        assert!(tally.named > 10_000, "{} culprits are no sample", tally.named);
        assert!(tally.exact * 100 >= tally.named * 99, "{} of {}", tally.exact, tally.named);
        assert!(tally.red.ratio() <= 1.0, "{}", tally.red.ratio());
        assert!(tally.large.ratio() <= 0.8, "{}", tally.large.ratio());
    }
}

#[test]
fn sixteen_green_ones_take_one_run_and_one_more_for_an_ungated_base() {
    assert_eq!(searched(&Scenario::of(16, &[]), 1).runs, 1);
    let search = Search::new(SearchSetup::new(vec![Vec::new(); 16]));
    let report = carry_out(search, Lanes::InStep(1), |_| TestAnswer::Green);
    assert_eq!((report.runs, report.landed.len()), (2, 16));
}

#[test]
fn one_culprit_among_eight_takes_at_most_six_runs_wherever_it_is() {
    for culprit in 0..8 {
        let report = searched(&Scenario::of(8, &[&[culprit]]), 1);
        assert!(report.runs <= 6, "{culprit}: {} runs", report.runs);
        assert!(report.explained[&culprit].is_empty());
        assert_eq!(report.landed.len(), 7);
    }
}

#[test]
fn more_lanes_take_fewer_rounds() {
    let scenario = Scenario::of(16, &[&[11]]);
    let rounds = |lanes| searched(&scenario, lanes).rounds;
    assert!(rounds(4) < rounds(1), "{} and {}", rounds(4), rounds(1));
}

#[test]
fn with_four_lanes_one_culprit_among_eight_keeps_the_rest_for_two_rounds() {
    for culprit in 0..8 {
        let report = searched(&Scenario::of(8, &[&[culprit]]), 4);
        assert!(report.rounds_to_land <= 3, "{culprit}: {}", report.rounds_to_land);
    }
    assert_eq!(searched(&Scenario::of(8, &[&[2]]), 4).rounds_to_land, 2);
}

#[test]
fn g1_of_two_that_are_red_together_the_later_is_out_and_the_pair_is_named() {
    let report = searched(&Scenario::of(8, &[&[2, 5]]), 1);
    assert_eq!(report.held.keys().copied().collect::<Vec<_>>(), [5]);
    assert_eq!(report.explained[&5], [2]);
    assert_eq!(report.landed, [0, 1, 2, 3, 4, 6, 7]);
}

#[test]
fn g2_one_that_is_red_on_this_base_is_out_and_the_rest_lands() {
    let report = searched(&Scenario::of(3, &[&[0]]), 1);
    assert_eq!((report.landed, report.explained[&0].len()), (vec![1, 2], 0));
}

#[test]
fn g3_with_a_red_base_nobody_is_blamed() {
    for lanes in [1, 2, 4] {
        let search = Search::new(SearchSetup::new(vec![Vec::new(); 4]));
        let report = carry_out(search, Lanes::InStep(lanes), |_| TestAnswer::red());
        assert_eq!(report.decisions, [SearchDecision::BaseRed], "{lanes}");
    }
    let search = Search::new(SearchSetup::new(vec![Vec::new(); 4]));
    assert_eq!(carry_out(search, Lanes::InStep(1), |_| TestAnswer::red()).runs, 2);
}

#[test]
fn g4_a_red_that_is_green_the_next_time_holds_nobody() {
    for false_red in 0..4 {
        let mut count = 0;
        let report = with_gate(8, |_| {
            count += 1;
            if count == false_red + 1 { TestAnswer::red() } else { TestAnswer::Green }
        });
        assert_eq!(report.landed.len(), 8, "{false_red}");
        assert!(report.held.is_empty());
    }
    let mut first = true;
    let report = with_gate(8, |_| {
        let is_red = std::mem::take(&mut first);
        if is_red { TestAnswer::Red { rows: rows("T1") } } else { TestAnswer::Green }
    });
    let flake = SearchDecision::Flake { places: (0..8).collect(), rows: rows("T1") };
    assert!(report.decisions.contains(&flake), "{:?}", report.decisions);
}

#[test]
fn g5_all_three_of_a_three_way_interaction_are_named() {
    let report = searched(&Scenario::of(8, &[&[1, 3, 6]]), 1);
    assert_eq!(report.held.get(&6), Some(&HoldReason::Culprit(CulpritEffect::Red)));
    assert_eq!(report.explained[&6], [1, 3]);
}

#[test]
fn g6_what_a_later_one_mends_lands_as_it_was_gated_and_is_told() {
    // 0 and 1 are red together unless 2 is present; 3 is red.
    let mut scenario = Scenario::of(4, &[&[0, 1], &[3]]);
    scenario.bad[0].mended_by = Some(2);
    let all = with_gate(3, |test| scenario.answer(test));
    assert_eq!((all.landed, all.runs), (vec![0, 1, 2], 1));
    let told = searched(&scenario, 4);
    assert_eq!(told.landed, [0, 1, 2]);
    let mended = SearchDecision::Mended { red: vec![0, 1], green: vec![0, 1, 2] };
    assert!(told.decisions.contains(&mended), "{:?}", told.decisions);
}

#[test]
fn g7_what_needs_a_culprit_is_held_and_not_blamed() {
    let mut scenario = Scenario::of(5, &[&[1]]);
    scenario.needs[3] = vec![1];
    scenario.needs[4] = vec![3];
    let report = searched(&scenario, 1);
    assert_eq!(report.landed, [0, 2]);
    assert_eq!(report.held.get(&1), Some(&HoldReason::Culprit(CulpritEffect::Red)));
    assert_eq!(report.held.get(&3), Some(&HoldReason::Needs(1)));
    assert_eq!(report.held.get(&4), Some(&HoldReason::Needs(3)));
}

#[test]
fn one_that_does_not_fit_any_more_is_held_and_the_rest_goes_on() {
    // 2 builds on 1, and 1 is red.
    let report = with_gate(4, |test| {
        let has = |place| test.places.contains(&place);
        match () {
            () if has(2) && !has(1) => TestAnswer::Unfit(2),
            () if has(1) => TestAnswer::red(),
            () => TestAnswer::Green,
        }
    });
    assert_eq!(report.landed, [0, 3]);
    assert_eq!(report.held.get(&2), Some(&HoldReason::Unfit));
}

#[test]
fn one_written_upon_a_suspect_waits_for_it_and_lands_with_it() {
    // 2 builds on 1, and 1 is red by mistake, once with 2 and once without.
    let mut mistakes = vec![vec![0, 1], vec![0, 1, 2, 3]];
    let report = with_gate(4, |test| {
        let has = |place| test.places.contains(&place);
        if has(2) && !has(1) {
            return TestAnswer::Unfit(2);
        }
        match mistakes.iter().position(|places| *places == test.places) {
            Some(number) => {
                mistakes.remove(number);
                TestAnswer::red()
            }
            None => TestAnswer::Green,
        }
    });
    assert_eq!((report.landed.len(), report.held.len()), (4, 0), "{:?}", report.decisions);
}

#[test]
fn gates_that_cannot_be_run_hold_nobody() {
    let report = with_gate(4, |_| TestAnswer::Void);
    let stuck = SearchDecision::Stuck { purpose: TestPurpose::Decide, rows: Vec::new() };
    assert_eq!(report.decisions, [stuck]);
    let mut voids = 2;
    let report = with_gate(4, |_| {
        if voids > 0 {
            voids -= 1;
            return TestAnswer::Void;
        }
        TestAnswer::Green
    });
    assert_eq!(report.landed.len(), 4);
}

#[test]
fn after_three_runs_without_a_verdict_the_change_that_causes_it_is_held_and_the_rest_lands() {
    for culprit in 0..5 {
        let report = with_gate(5, |test| {
            let is_in = test.places.contains(&culprit);
            if is_in { TestAnswer::Undecidable { rows: rows("T1") } } else { TestAnswer::Green }
        });
        assert_eq!(report.held[&culprit], HoldReason::Culprit(CulpritEffect::Undecidable));
        assert_eq!(report.landed.len(), 4);
        assert_eq!(report.culprits[0].rows, rows("T1"));
    }
}

#[test]
fn a_verdict_that_comes_the_second_time_holds_nobody() {
    let mut tries = 0;
    let report = with_gate(5, |_| {
        tries += 1;
        if tries < 3 { TestAnswer::Undecidable { rows: rows("T1") } } else { TestAnswer::Green }
    });
    assert_eq!((report.landed.len(), report.runs), (5, 3));
}

#[test]
fn a_base_without_a_verdict_blames_nobody() {
    let search = Search::new(SearchSetup::new(vec![Vec::new(); 4]));
    let gate = |_: &Test| TestAnswer::Undecidable { rows: rows("T1") };
    let report = carry_out(search, Lanes::InStep(1), gate);
    assert_eq!(report.runs, 3);
    let stuck = SearchDecision::Stuck { purpose: TestPurpose::Decide, rows: rows("T1") };
    assert_eq!(report.decisions, [stuck]);
}

#[test]
fn a_red_and_an_undecidable_culprit_are_told_apart() {
    let report = with_gate(8, |test| match () {
        () if test.places.contains(&6) => TestAnswer::red(),
        () if test.places.contains(&2) => TestAnswer::Undecidable { rows: rows("T1") },
        () => TestAnswer::Green,
    });
    assert_eq!(report.held[&2], HoldReason::Culprit(CulpritEffect::Undecidable));
    assert_eq!(report.held[&6], HoldReason::Culprit(CulpritEffect::Red));
    assert_eq!(report.landed.len(), 6);
}

#[test]
fn a_partner_that_landed_in_an_earlier_batch_is_named() {
    // 0 to 7 landed before; 9 is red with 1 and 5.
    let scenario = Scenario { landed_before: 8, ..Scenario::of(12, &[&[1, 5, 9]]) };
    for lanes in [1, 4] {
        let report = searched(&scenario, lanes);
        assert_eq!(report.explained[&9], [1, 5], "{lanes}");
        assert_eq!(report.landed, [8, 10, 11]);
    }
}

fn known(place: usize, partners: &[usize]) -> Culprit {
    let (partners, rows) = (partners.to_vec(), rows("T1"));
    Culprit { place, partners, context: Vec::new(), fault: CulpritEffect::Red, rows }
}

#[test]
fn a_known_culprit_is_held_again_without_a_run_and_so_is_what_needs_it() {
    let needs = vec![Vec::new(), Vec::new(), vec![1]];
    let setup = SearchSetup::new(needs).landed_before(1).with_known(vec![known(1, &[0])]);
    let report = carry_out(Search::new(setup), Lanes::InStep(4), |_| TestAnswer::Green);
    assert_eq!((report.runs, &report.explained[&1][..]), (0, &[0][..]));
    assert_eq!(report.held[&2], HoldReason::Needs(1));
    assert_eq!(report.culprits, [known(1, &[0])]);
}

#[test]
fn a_known_culprit_is_held_once_its_partner_lands_and_lands_where_the_partner_is_held() {
    let scenario = Scenario::of(4, &[&[1, 3]]);
    let setup = || scenario.setup().with_green_base(true).with_known(vec![known(3, &[1])]);
    let report = carry_out(Search::new(setup()), Lanes::InStep(1), |test| scenario.answer(test));
    assert_eq!((report.runs, report.landed), (1, vec![0, 1, 2]));
    let scenario = Scenario::of(4, &[&[1], &[1, 3]]);
    let report = carry_out(Search::new(setup()), Lanes::InStep(1), |test| scenario.answer(test));
    assert_eq!(report.landed, [0, 2, 3]);
}

#[test]
fn what_is_of_no_use_any_more_is_cancelled_and_may_still_be_reported() {
    let mut search = new(16);
    let tests = search.next_tests(4);
    let longest = tests.iter().max_by_key(|test| test.places.len()).unwrap().clone();
    search.report(longest.id, &TestAnswer::Green).unwrap();
    assert!(search.is_done());
    let cancelled = search.cancelled();
    assert_eq!(cancelled.len(), 3);
    assert!(!cancelled.contains(&longest.id) && search.cancelled().is_empty());
    search.report(cancelled[0], &TestAnswer::red()).unwrap();
    assert!(search.is_done());
}

#[test]
fn a_red_prefix_cancels_the_longer_ones_only() {
    let mut search = new(16);
    let mut tests = search.next_tests(4);
    tests.sort_by_key(|test| test.places.len());
    search.report(tests[1].id, &TestAnswer::red()).unwrap();
    let mut longer = vec![tests[2].id, tests[3].id];
    longer.sort_unstable();
    assert_eq!(search.cancelled(), longer);
}

#[test]
fn a_report_about_a_test_that_is_not_in_flight_is_refused() {
    let mut search = new(2);
    let test = search.next_tests(1).remove(0);
    search.report(test.id, &TestAnswer::Green).unwrap();
    assert!(search.report(test.id, &TestAnswer::red()).is_err());
    assert!(search.is_done());
}

#[test]
fn a_confirmation_is_never_taken_from_the_cache() {
    let mut search = new(1);
    let whole = search.next_tests(1).remove(0);
    search.report(whole.id, &TestAnswer::red()).unwrap();
    let again = search.next_tests(1).remove(0);
    assert_eq!((again.purpose, again.fresh), (TestPurpose::Confirm, true));
    assert_eq!(again.places, whole.places);
}

/// Returns the tests that a search asks for, in order, with one lane.
fn asked(scenario: &Scenario) -> Vec<(TestPurpose, usize)> {
    let mut asked = Vec::new();
    with_gate(scenario.needs.len(), |test| {
        asked.push((test.purpose, test.places.len()));
        scenario.answer(test)
    });
    asked
}

#[test]
fn one_that_is_red_by_itself_is_confirmed_by_the_run_that_explains_it() {
    use TestPurpose::{Decide, Explain};
    let asked = asked(&Scenario::of(8, &[&[2]]));
    assert_eq!(asked.iter().filter(|(purpose, _)| *purpose == Decide).count(), 5, "{asked:?}");
    assert_eq!(asked.last(), Some(&(Explain, 1)));
}

#[test]
fn a_pair_that_is_all_there_is_runs_twice_together_and_once_apart() {
    use TestPurpose::{Confirm, Decide, Explain};
    let asked = asked(&Scenario::of(2, &[&[0, 1]]));
    assert_eq!(asked, [(Decide, 2), (Decide, 1), (Explain, 1), (Confirm, 2)]);
}

fn flaky(runs: u32, flakes: u32) -> FlakeRules {
    let mut ledger = FlakeLedger::default();
    (0..runs).for_each(|_| ledger.ran("T1"));
    (0..flakes).for_each(|_| ledger.flaked("T1", "tree", &[], "now"));
    FlakeRules { ledger, ..FlakeRules::default() }
}

#[test]
fn a_row_that_is_known_to_flake_must_be_red_more_often() {
    let runs = |rules| {
        let setup = SearchSetup::new(vec![Vec::new()]).with_green_base(true).with_flakes(rules);
        carry_out(Search::new(setup), Lanes::InStep(1), |_| TestAnswer::Red { rows: rows("T1") })
            .runs
    };
    assert_eq!((runs(flaky(100, 0)), runs(flaky(100, 4)), runs(flaky(100, 20))), (2, 3, 4));
}

/// Runs batches of eight, some with a culprit or a pair, with gates that flake in 3 % of runs, and with a
/// stored ledger. Returns the number of innocents that were held and of innocents that were named as partners.
fn with_mistakes(batches: u32, lanes: usize) -> (u32, u32) {
    let mut dice = Dice::new(7);
    let mut rules = FlakeRules::default();
    let (mut held, mut named) = (0, 0);
    for _ in 0..batches {
        let mut bad: Vec<Vec<usize>> =
            (0..8).filter(|_| dice.in_thousand(50)).map(|place| vec![place]).collect();
        if dice.in_thousand(200) {
            bad.push(vec![dice.below(4), 4 + dice.below(4)]);
        }
        let bad: Vec<&[usize]> = bad.iter().map(Vec::as_slice).collect();
        let scenario = Scenario::of(8, &bad);
        let setup = scenario.setup().with_flakes(rules.clone());
        let report = carry_out(Search::new(setup), Lanes::InStep(lanes), |test| {
            rules.ledger.ran("T1");
            let is_red = scenario.is_red(&test.places) || dice.in_thousand(30);
            if is_red { TestAnswer::Red { rows: rows("T1") } } else { TestAnswer::Green }
        });
        for decision in &report.decisions {
            if let SearchDecision::Flake { rows, .. } = decision {
                for row in rows {
                    rules.ledger.flaked(row, "tree", &[], "now");
                }
            }
        }
        assert!(!scenario.is_red(&report.landed), "a culprit landed");
        let is_innocent = |place: &usize| !scenario.bad.iter().any(|bad| bad.set.contains(place));
        held += u32::from(report.held.keys().any(is_innocent));
        named += u32::from(report.explained.values().flatten().any(is_innocent));
    }
    (held, named)
}

#[test]
fn with_three_percent_of_false_reds_an_innocent_is_held_in_under_one_of_a_thousand_batches() {
    let (held, named) = with_mistakes(4000, 1);
    assert!(held < 4, "{held} of 4000");
    assert!(named < 4, "{named} of 4000");
}

#[test]
fn with_three_percent_of_false_reds_no_explanation_of_a_thousand_names_an_innocent() {
    assert_eq!(with_mistakes(1000, 1).1, 0);
    assert_eq!(with_mistakes(1000, 4).1, 0);
}
