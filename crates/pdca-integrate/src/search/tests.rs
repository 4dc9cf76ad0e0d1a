//! One fact each about the search.

use super::model::{Report, Scenario, carry_out};
use super::{Answer, Decision, Purpose, Search, Why};

/// A batch of so many changes of which these sets are red.
fn batch(count: usize, bad: &[&[usize]]) -> Scenario {
    let bad = bad.iter().map(|set| set.iter().copied().collect()).collect();
    Scenario { needs: vec![Vec::new(); count], bad }
}

fn searched(scenario: &Scenario, lanes: usize) -> Report {
    carry_out(Search::new(scenario.needs.clone(), true), lanes, |test| {
        if scenario.is_red(&test.places) { Answer::Red } else { Answer::Green }
    })
}

#[test]
fn sixteen_green_ones_take_one_run_and_one_more_for_an_ungated_base() {
    assert_eq!(searched(&batch(16, &[]), 1).runs, 1);
    let search = Search::new(vec![Vec::new(); 16], false);
    let report = carry_out(search, 1, |_| Answer::Green);
    assert_eq!((report.runs, report.landed.len()), (2, 16));
}

#[test]
fn one_culprit_among_eight_takes_at_most_six_runs_wherever_it_is() {
    for culprit in 0..8 {
        let report = searched(&batch(8, &[&[culprit]]), 1);
        assert!(report.runs <= 6, "{culprit}: {} runs", report.runs);
        assert!(report.explained[&culprit].is_empty());
        assert_eq!(report.landed.len(), 7);
    }
}

#[test]
fn more_lanes_take_fewer_rounds() {
    let scenario = batch(16, &[&[11]]);
    let rounds = |lanes| searched(&scenario, lanes).rounds;
    assert!(rounds(4) < rounds(1), "{} and {}", rounds(4), rounds(1));
}

#[test]
fn g1_of_two_that_are_red_together_the_later_is_out_and_the_pair_is_named() {
    let report = searched(&batch(8, &[&[2, 5]]), 1);
    assert_eq!(report.held.keys().copied().collect::<Vec<_>>(), [5]);
    assert_eq!(report.explained[&5], [2]);
    assert_eq!(report.landed, [0, 1, 2, 3, 4, 6, 7]);
}

#[test]
fn g2_one_that_is_red_on_this_base_is_out_and_the_rest_lands() {
    let report = searched(&batch(3, &[&[0]]), 1);
    assert_eq!((report.landed, report.explained[&0].len()), (vec![1, 2], 0));
}

#[test]
fn g3_with_a_red_base_nobody_is_blamed() {
    let search = Search::new(vec![Vec::new(); 4], false);
    let report = carry_out(search, 2, |_| Answer::Red);
    assert_eq!(report.decisions, [Decision::BaseRed]);
    assert_eq!(report.runs, 2);
}

#[test]
fn g4_a_red_that_is_green_the_next_time_holds_nobody() {
    for false_red in 0..4 {
        let mut count = 0;
        let report = carry_out(Search::new(vec![Vec::new(); 8], true), 1, |_| {
            count += 1;
            if count == false_red + 1 { Answer::Red } else { Answer::Green }
        });
        assert_eq!(report.landed.len(), 8, "{false_red}");
        assert!(report.held.is_empty());
    }
    let mut first = true;
    let report = carry_out(Search::new(vec![Vec::new(); 8], true), 1, |_| {
        if std::mem::take(&mut first) { Answer::Red } else { Answer::Green }
    });
    let flake = Decision::Flake { places: (0..8).collect() };
    assert!(report.decisions.contains(&flake), "{:?}", report.decisions);
}

#[test]
fn g5_all_three_of_a_three_way_interaction_are_named() {
    let report = searched(&batch(8, &[&[1, 3, 6]]), 1);
    assert_eq!(report.held.get(&6), Some(&Why::Culprit));
    assert_eq!(report.explained[&6], [1, 3]);
}

#[test]
fn g6_what_a_later_one_mends_lands_as_it_was_gated_and_is_told() {
    // 0 and 1 are red together, unless 2 is there; 3 is red.
    let gate = |places: &[usize]| {
        let broken = places.contains(&0) && places.contains(&1) && !places.contains(&2);
        if broken || places.contains(&3) { Answer::Red } else { Answer::Green }
    };
    let all = carry_out(Search::new(vec![Vec::new(); 3], true), 1, |test| gate(&test.places));
    assert_eq!((all.landed, all.runs), (vec![0, 1, 2], 1));
    let told = carry_out(Search::new(vec![Vec::new(); 4], true), 3, |test| gate(&test.places));
    assert_eq!(told.landed, [0, 1, 2]);
    let mended = Decision::Mended { red: vec![0, 1], green: vec![0, 1, 2] };
    assert!(told.decisions.contains(&mended), "{:?}", told.decisions);
}

#[test]
fn g7_what_needs_a_culprit_is_held_and_not_blamed() {
    let mut scenario = batch(5, &[&[1]]);
    scenario.needs[3] = vec![1];
    scenario.needs[4] = vec![3];
    let report = searched(&scenario, 1);
    assert_eq!(report.landed, [0, 2]);
    assert_eq!(report.held.get(&1), Some(&Why::Culprit));
    assert_eq!(report.held.get(&3), Some(&Why::Needs(1)));
    assert_eq!(report.held.get(&4), Some(&Why::Needs(3)));
}

#[test]
fn one_that_does_not_fit_any_more_is_held_and_the_rest_goes_on() {
    // 2 was written upon 1, and 1 is red.
    let report = carry_out(Search::new(vec![Vec::new(); 4], true), 1, |test| {
        let has = |place| test.places.contains(&place);
        match () {
            () if has(2) && !has(1) => Answer::Unfit(2),
            () if has(1) => Answer::Red,
            () => Answer::Green,
        }
    });
    assert_eq!(report.landed, [0, 3]);
    assert_eq!(report.held.get(&2), Some(&Why::Unfit));
}

#[test]
fn gates_that_cannot_be_run_hold_nobody() {
    let report = carry_out(Search::new(vec![Vec::new(); 4], true), 1, |_| Answer::Void);
    assert_eq!(report.decisions, [Decision::Stuck { purpose: Purpose::Whole }]);
    let mut voids = 2;
    let report = carry_out(Search::new(vec![Vec::new(); 4], true), 1, |_| {
        if voids > 0 {
            voids -= 1;
            return Answer::Void;
        }
        Answer::Green
    });
    assert_eq!(report.landed.len(), 4);
}

#[test]
fn a_report_that_nobody_waits_for_changes_nothing() {
    let mut search = Search::new(vec![Vec::new(); 2], true);
    let test = search.next_tests(1).remove(0);
    search.report(test.id, Answer::Green).unwrap();
    assert!(search.report(test.id, Answer::Red).is_err());
    assert!(search.is_done());
}

#[test]
fn a_confirmation_is_never_taken_from_the_cache() {
    let mut search = Search::new(vec![Vec::new()], true);
    let whole = search.next_tests(1).remove(0);
    search.report(whole.id, Answer::Red).unwrap();
    let again = search.next_tests(1).remove(0);
    assert_eq!((again.purpose, again.fresh), (Purpose::Confirm, true));
    assert_eq!(again.places, whole.places);
}

/// What is asked, in order, with one lane.
fn purposes(scenario: &Scenario) -> Vec<Purpose> {
    let mut asked = Vec::new();
    carry_out(Search::new(scenario.needs.clone(), true), 1, |test| {
        asked.push(test.purpose);
        if scenario.is_red(&test.places) { Answer::Red } else { Answer::Green }
    });
    asked
}

#[test]
fn one_that_is_red_by_itself_is_confirmed_by_the_run_that_explains_it() {
    use Purpose::{Alone, Prefix, Whole};
    let asked = purposes(&batch(8, &[&[2]]));
    assert_eq!(asked, [Whole, Prefix, Prefix, Prefix, Alone, Whole]);
}

#[test]
fn one_that_is_red_only_with_others_must_be_so_three_times() {
    use Purpose::{Alone, Confirm, Prefix, Whole};
    assert_eq!(purposes(&batch(2, &[&[0, 1]])), [Whole, Prefix, Confirm, Alone, Confirm]);
    let asked = purposes(&batch(3, &[&[0, 1]]));
    assert_eq!(asked, [Whole, Prefix, Prefix, Alone, Confirm, Confirm, Whole]);
}
