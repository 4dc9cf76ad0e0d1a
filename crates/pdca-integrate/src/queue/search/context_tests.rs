//! Tests of culprits that share a file with others: the guilty are named, and the others apart.

use super::TestPurpose;
use crate::testing::shared_file::SharedFile;
use crate::testing::simulation::{Dice, Scenario};

/// Returns a batch in which every change writes to one file.
fn all_share(count: usize, bad: &[&[usize]]) -> SharedFile {
    SharedFile {
        scenario: Scenario::of(count, bad),
        chain: (0..count).collect(),
        torn: [].into(),
        lends: true,
        witnesses: Vec::new(),
    }
}

/// Checks samples that `change` altered. Returns the numbers of culprits named and of those named exactly.
fn named(seed: u64, samples: usize, change: impl Fn(&mut SharedFile, &mut Dice)) -> (usize, usize) {
    let (mut named, mut exact) = (0, 0);
    for number in 0..samples {
        let number = u64::try_from(number).unwrap();
        let mut dice = Dice::new(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let mut world = SharedFile::draw(&mut dice);
        change(&mut world, &mut dice);
        let report = world.integrate(1 + dice.below(4));
        assert!(!world.scenario.is_red(&report.landed), "a culprit landed: {world:?}");
        assert!(report.most_of_one <= 2, "a set was gated three times: {world:?}");
        for (culprit, partners) in &report.explained {
            let context = &report.context[culprit];
            assert!(
                !world.names_an_innocent(*culprit, partners),
                "{culprit} is said to be red with {partners:?} ({context:?}): {world:?}"
            );
            assert!(!partners.iter().any(|it| context.contains(it)), "{partners:?} {context:?}");
            named += 1;
            exact += usize::from(world.scenario.is_exact(*culprit, partners));
        }
    }
    (named, exact)
}

#[test]
fn of_two_thousand_batches_with_a_shared_file_none_names_an_innocent_and_all_are_exact() {
    let (named, exact) = named(1, 2000, |_, _| ());
    assert!(named > 1500, "{named} culprits are no sample");
    assert_eq!(exact, named);
}

#[test]
fn where_halves_of_changes_are_red_none_of_two_thousand_batches_names_an_innocent() {
    let (named, _) = named(2, 2000, |world, dice| {
        world.torn = world.chain.iter().copied().filter(|_| dice.in_thousand(150)).collect();
    });
    assert!(named > 1500, "{named} culprits are no sample");
}

#[test]
fn where_nothing_can_be_taken_from_elsewhere_none_of_two_thousand_batches_names_an_innocent() {
    let (named, _) = named(3, 2000, |world, _| world.lends = false);
    assert!(named > 1500, "{named} culprits are no sample");
}

#[test]
fn wrong_evidence_names_nobody_in_two_thousand_batches() {
    let (named, exact) = named(4, 2000, |world, dice| {
        let count = world.scenario.needs.len();
        world.witnesses = (0..3).map(|_| dice.below(count)).collect();
    });
    assert!(named > 1500, "{named} culprits are no sample");
    assert_eq!(exact, named);
}

#[test]
fn a_pair_is_named_alone_although_everybody_shares_a_file() {
    let report = all_share(8, &[&[2, 7]]).integrate(1);
    assert_eq!(report.explained[&7], [2]);
    assert_eq!(report.context[&7], [0, 1, 3, 4, 5, 6]);
    assert_eq!(report.landed, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn one_that_is_red_alone_has_context_and_no_partners() {
    let report = all_share(6, &[&[5]]).integrate(1);
    assert_eq!(
        (&report.explained[&5][..], &report.context[&5][..]),
        (&[][..], &[0, 1, 2, 3, 4][..])
    );
}

#[test]
fn a_suspect_that_is_red_only_without_the_rest_of_its_context_is_not_called_red_alone() {
    let mut world = all_share(6, &[&[2, 5]]);
    world.chain = [0, 1, 5].into();
    world.torn = [5].into();
    let report = world.integrate(1);
    assert_eq!((&report.explained[&5][..], &report.context[&5][..]), (&[2][..], &[0, 1][..]));
}

#[test]
fn a_partner_that_is_red_without_the_rest_of_its_context_is_no_partner_for_that() {
    // 4 is red with 1. Without the rest of 0, 3 is red by itself.
    let mut world = all_share(5, &[&[1, 4]]);
    (world.chain, world.torn) = ([0, 3].into(), [3].into());
    world.witnesses = vec![3];
    let report = world.integrate(1);
    assert_eq!(report.explained[&4], [1]);
}

#[test]
fn what_does_not_fold_without_others_is_red_with_its_partner_and_not_with_them() {
    let mut world = all_share(5, &[&[0, 4]]);
    (world.chain, world.lends) = ([1, 2, 3].into(), false);
    world.scenario.needs[4] = vec![3];
    let report = world.integrate(1);
    assert_eq!((&report.explained[&4][..], &report.context[&4][..]), (&[0][..], &[1, 2][..]));
}

/// Returns the runs of a batch beyond those that gate prefixes of the line.
fn beyond_deciding(world: &SharedFile) -> usize {
    use crate::queue::search::Search;
    use crate::testing::simulation::{Lanes, carry_out_with};
    let search = Search::new(world.scenario.setup().with_green_base(true));
    let mut beyond = 0;
    let report = carry_out_with(search, Lanes::InStep(1), |test, landed| {
        let answer = world.answer(test, landed);
        let is_run = !matches!(answer.0, super::TestAnswer::Unfit(_));
        beyond += usize::from(is_run && test.purpose != TestPurpose::Decide);
        answer
    });
    assert!(!report.explained.is_empty());
    beyond
}

#[test]
fn a_pair_whose_failing_test_one_of_them_added_takes_at_most_four_runs_beyond_deciding() {
    for count in [2, 5, 9, 23, 40] {
        for partner in 0..count - 1 {
            for share in [true, false] {
                let mut world = all_share(count, &[&[partner, count - 1]]);
                world.witnesses = vec![partner];
                if !share {
                    world.chain.clear();
                }
                let runs = beyond_deciding(&world);
                assert!(runs <= 4, "{runs} for {partner} of {count}, shared: {share}");
            }
        }
    }
}

#[test]
fn the_number_of_runs_that_is_told_when_a_culprit_shows_is_not_exceeded() {
    for count in [2, 5, 9, 23, 40] {
        for culprit in 1..count {
            for partner in [0, culprit / 2, culprit] {
                let set: Vec<usize> =
                    if partner == culprit { vec![culprit] } else { vec![partner, culprit] };
                let report = all_share(count, &[&set]).integrate(1);
                // The first run is the whole batch, and nothing is red before it.
                let told = report.told.iter().skip(1).max().copied().unwrap_or(1);
                assert!(report.runs <= told, "{} of {told} for {set:?} of {count}", report.runs);
                let last = report.told.last().copied().unwrap_or_default();
                assert!(last >= report.runs, "{last} told in the last of {}", report.runs);
            }
        }
    }
}
