use std::fmt::Write;

use insta::assert_snapshot;

use crate::testing::{id, items, plan, plan_with, words};
use crate::{
    Awaits, ItemState, Options, Outside, Pattern, Plan, PlanNotice, PlanProblem, Rivalry, Untouched,
};

fn problems(batch: &str, outside: &Outside) -> Vec<PlanProblem> {
    Plan::new(items(batch), outside, Options::default()).expect_err("a rejection").problems
}

/// Each problem on a line, with its place.
fn report(batch: &str) -> String {
    let line = |problem: &PlanProblem| format!("{}: {problem}\n", problem.place());
    problems(batch, &Outside::default()).iter().map(line).collect()
}

fn waves(batch: &str) -> String {
    plan(batch).waves().into_iter().map(words).collect::<Vec<_>>().join(" | ")
}

#[test]
fn a_cycle_is_told_edge_by_edge_with_the_line_of_each() {
    assert_snapshot!(report("1: 3\n2: 1\n3: 2\n4: 3"), @"1:1: cycle: 1 depends on 3 (1:1), 3 depends on 2 (3:1), 2 depends on 1 (2:1)");
}

#[test]
fn all_problems_are_told_at_once() {
    assert_snapshot!(report("1: 1\n2: 99\n3: 4 @ src/[a\n4: 3\n5!\n6: 5 @ ../x\n4"), @r"
    1:1: 1 depends on itself
    2:1: 2 depends on 99, which does not exist
    3:1: cycle: 3 depends on 4 (3:1), 4 depends on 3 (4:1)
    3:3: 3 touches `src/[a`
    4:1: 4 is in the batch twice: 4:1 and 4:1
    6:1: 6 depends on 5, which is given up
    6:3: 6 touches `../x`
    ");
}

#[test]
fn two_knots_are_two_problems_and_a_shorter_way_round_is_shown() {
    let problems = problems("1: 2 4\n2: 3\n3: 1\n4: 1\n8: 9\n9: 8", &Outside::default());
    let sizes = problems.iter().map(|problem| {
        let PlanProblem::Cycle { edges, tangled } = problem else { panic!("{problem}") };
        (edges.len(), *tangled)
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [(2, 4), (2, 2)]);
}

#[test]
fn a_prerequisite_outside_the_batch_must_be_complete() {
    let outside: Outside = [
        (id("10"), ItemState::Complete),
        (id("11"), ItemState::Waiting),
        (id("12"), ItemState::Ended),
    ]
    .into_iter()
    .collect();
    let told: Vec<String> =
        problems("1: 10 11 12", &outside).iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "1 depends on 11, which is not complete and not in the batch",
            "1 depends on 12, which is given up"
        ]
    );
    assert!(Plan::new(items("1: 10"), &outside, Options::default()).is_ok());
}

#[test]
fn a_prerequisite_that_does_not_exist_comes_with_near_names() {
    let outside: Outside = [(id("PROJ-123"), ItemState::Complete)].into_iter().collect();
    let near = |batch: &str| {
        let problem = &problems(batch, &outside)[0];
        let PlanProblem::NoSuchPrerequisite { near, .. } = problem else { panic!("{problem}") };
        words(near)
    };
    assert_eq!(near("PROJ-12\nPROJ-99: PROJ-132"), "PROJ-12 PROJ-123");
    assert_eq!(near("1\n2: 7"), "", "every name of one character is near");
}

#[test]
fn what_a_finished_bundle_waited_for_no_longer_matters() {
    assert_eq!(words(plan("1+: 2 99\n2: 1").order()), "2");
}

#[test]
fn an_item_without_a_declaration_is_named() {
    let plan = plan("1 @ src/a\n2: 1\n3+");
    let named = plan.notices().iter().map(|notice| {
        let PlanNotice::NothingDeclared { id, .. } = notice else { panic!("{notice}") };
        id.as_str()
    });
    assert_eq!(named.collect::<Vec<_>>(), ["2"]);
}

#[test]
fn a_conflict_that_holds_nothing_apart_is_named() {
    let plan = plan("10 ~ 10 11 @ a\n12 @ b");
    let told: Vec<String> = plan.notices().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["10 conflicts with itself", "10 conflicts with 11, which does not exist"]);
}

#[test]
fn with_nothing_declared_the_order_is_that_of_names() {
    assert_eq!(words(plan("9\n10\n2\nPROJ-1\na").order()), "2 9 10 PROJ-1 a");
}

#[test]
fn the_longest_chain_comes_first_in_the_order() {
    assert_eq!(words(plan("1\n2\n3: 2\n4: 3").order()), "2 3 1 4");
    assert_eq!(words(plan("1/10\n2/5\n3/500").order()), "3 1 2");
}

#[test]
fn the_order_of_the_items_does_not_matter() {
    let forward = items("1 @ a\n2: 1 ~ 3 @ b\n3: 1 @ a b\n4: 2 3");
    let mut backward = forward.clone();
    backward.reverse();
    let make = |items| Plan::new(items, &Outside::default(), Options::default()).unwrap();
    let (forward, backward) = (make(forward), make(backward));
    assert_eq!(forward.groups(None), backward.groups(None));
    assert_eq!(forward.waves(), backward.waves());
    assert_eq!(forward.digest(), backward.digest());
}

#[test]
fn the_digest_follows_declarations_and_not_progress() {
    let digest = |batch: &str| plan(batch).digest().to_owned();
    assert_eq!(digest("1 @ a\n2: 1"), digest("1+ @ a\n2*: 1"));
    let all = ["1 @ a\n2: 1", "1 @ a\n2 ~ 1", "1 @ a\n2", "1 @ b\n2: 1", "1 @ a\n3: 1"];
    let distinct: std::collections::BTreeSet<String> = all.map(digest).into();
    assert_eq!(distinct.len(), all.len());
}

#[test]
fn waves_put_neither_dependants_nor_rivals_side_by_side() {
    assert_eq!(waves("1\n2: 1\n3: 1\n4: 2 3"), "1 | 2 3 | 4");
    assert_eq!(waves("1 @ x\n2 @ x\n3 @ y\n4: 3 @ x"), "1 3 | 2 | 4");
    assert_eq!(waves("1 @ x\n2 @ x\n3 ~ 2"), "1 3 | 2");
}

#[test]
fn more_waves_than_bits_in_a_word() {
    let batch: Vec<String> = (100..300).map(|n| format!("{n} @ Cargo.lock")).collect();
    let waves = plan(&batch.join("\n")).waves().len();
    assert_eq!(waves, 200);
}

#[test]
fn the_critical_path_is_the_heaviest_chain() {
    assert_eq!(words(plan("1\n2: 1\n3: 2\n9\n8: 9").critical_path()), "1 2 3");
    assert_eq!(words(plan("1/1\n2/1: 1\n3/1: 2\n9/9").critical_path()), "9");
    assert_eq!(words(plan("1+\n2: 1").critical_path()), "2");
    // What 2 is to be signed off for is built: nobody behind it waits for 1.
    assert_eq!(words(plan("1\n2?: 1\n3: 2").critical_path()), "1");
}

#[test]
fn workstreams_are_what_is_connected_in_any_way() {
    let plan = plan("1\n2: 1\n3 ~ 4\n4\n5 @ x/**\n6 @ x/y\n7\n8+: 7");
    let streams: Vec<String> = plan.workstreams().into_iter().map(words).collect();
    assert_eq!(streams.join(" | "), "1 2 | 3 4 | 5 6 | 7");
}

#[test]
fn every_two_rivals_are_told_once_with_the_reason() {
    let told: Vec<String> = plan("1 @ a b\n2 @ a b/c\n3 ~ 1 @ c")
        .rivals()
        .map(|rivals| format!("{} {} {:?}", rivals.bundles.0, rivals.bundles.1, rivals.rivalry))
        .collect();
    assert_snapshot!(told.join("\n"), @r#"
    1 2 Overlap { globs: ("a", "a"), witness: "a" }
    1 3 Conflict { place: SourceLocation { file: "3", line: 2 } }
    "#);
}

#[test]
fn a_bundle_that_claims_nothing_is_alone_where_that_is_asked_for() {
    let batch = "1\n2 @ a\n3 @ b";
    assert_eq!(plan(batch).rivals().count(), 0);
    let exclusive = Options { untouched: Untouched::Exclusive, ..Options::default() };
    let plan = plan_with(batch, exclusive);
    let of_1 = plan.rivals_of(&id("1"));
    assert_eq!(words(of_1.iter().map(|(id, _)| *id)), "2 3");
    assert!(matches!(&of_1[0].1, Rivalry::Overlap { witness, .. } if witness == "a"));
}

#[test]
fn case_is_folded_where_asked_for() {
    let batch = "1 @ README\n2 @ readme";
    let fold_case = Options { fold_case: true, ..Options::default() };
    assert_eq!(
        (plan(batch).rivals().count(), plan_with(batch, fold_case).rivals().count()),
        (0, 1)
    );
}

#[test]
fn a_very_long_chain_is_planned_and_a_very_long_cycle_refused() {
    let name = |n: usize| format!("{n:06}");
    let mut chain = String::from("000000\n");
    for n in 1..20_000 {
        writeln!(chain, "{}: {}", name(n), name(n - 1)).unwrap();
    }
    let plan = plan(&chain);
    assert_eq!((plan.order().len(), plan.waves().len()), (20_000, 20_000));
    assert_eq!(plan.critical_path().len(), 20_000);
    assert_eq!(plan.groups(None).depth, 20_000);
    let cycle = chain.replacen("000000\n", "000000: 019999\n", 1);
    match &problems(&cycle, &Outside::default())[..] {
        [PlanProblem::Cycle { edges, tangled: 20_000 }] => assert_eq!(edges.len(), 20_000),
        other => panic!("{} problems", other.len()),
    }
}

/// Every pair that the index finds against every pair that is there.
#[test]
fn the_index_finds_exactly_the_pairs_that_meet() {
    let globs = [
        "src/a.rs",
        "src/a",
        "src/ab",
        "src/*.rs",
        "src/**",
        "**/*.rs",
        "**",
        "a*",
        "*b",
        "ab",
        "src/{a,b}/c",
        "src/b/**/d",
        "docs",
        "docs/",
        "docs/*",
        "./docs//x",
        "s*/a.rs",
        "[a-d]ocs",
    ];
    let bundles = globs.iter().enumerate().map(|(n, glob)| format!("{n:02} @ {glob}"));
    let plan = plan(&bundles.collect::<Vec<_>>().join("\n"));
    let found: Vec<(String, String)> = plan
        .rivals()
        .map(|rivals| (rivals.bundles.0.to_string(), rivals.bundles.1.to_string()))
        .collect();
    let pattern = |n: usize| Pattern::parse(globs[n], crate::Case::Sensitive).unwrap();
    let mut expected = Vec::new();
    for a in 0..globs.len() {
        for b in a + 1..globs.len() {
            if pattern(a).meet(&pattern(b)).is_some() {
                expected.push((format!("{a:02}"), format!("{b:02}")));
            }
        }
    }
    assert_eq!(found, expected);
}

fn left(batch: &str) -> String {
    let options = Options { leave_alone: true, ..Options::default() };
    match Plan::new(items(batch), &Outside::default(), options) {
        Err(rejection) => format!("rejected: {}", rejection.problems.len()),
        Ok(plan) => {
            let left = plan.left_alone().iter().map(ToString::to_string).collect::<Vec<_>>();
            format!("{} | {}", words(plan.order()), left.join("; "))
        }
    }
}

#[test]
fn what_cannot_be_started_is_left_alone_with_what_depends_on_it_and_the_rest_goes_on() {
    assert_snapshot!(left("1!\n2\n77: 1\n78: 77\n79: 78 2"), @"2 | 77 depends on 1, which is given up; 78 depends on 77, which is left alone; 79 depends on 78, which is left alone");
    assert_snapshot!(left("1 @ ../x\n2\n3: 1"), @"2 | 1 touches `../x`; 3 depends on 1, which is left alone");
    assert_snapshot!(left("1 ~ alhpa\nalpha"), @"alpha | 1 conflicts with alhpa, which does not exist");
    assert_snapshot!(left("1\n2: 1"), @"1 2 | ");
}

#[test]
fn a_bundle_that_cannot_be_read_is_left_alone_and_named_where_it_was_asked_for() {
    let mut batch = items("1\n2\n3: 1");
    batch[0].unreadable = Some("not UTF-8".to_owned());
    let options = Options { leave_alone: true, ..Options::default() };
    let plan = Plan::new(batch.clone(), &Outside::default(), options).unwrap();
    assert_eq!((words(plan.order()), plan.left_alone().len()), ("2".to_owned(), 2));
    let named = Plan::new(batch, &Outside::default(), Options::default()).unwrap_err();
    assert_eq!(
        named.to_string(),
        "the batch cannot be carried out: 1 cannot be read: not UTF-8 (1:1)"
    );
}

#[test]
fn a_rejection_names_every_problem_and_its_place() {
    let rejection =
        Plan::new(items("1: 1\n2 @ ../x"), &Outside::default(), Options::default()).unwrap_err();
    assert_snapshot!(rejection, @"the batch cannot be carried out: 1 depends on itself (1:1); 2 touches `../x`: column 1: it leaves the tree (2:3)");
}

#[test]
fn a_contradiction_is_refused_whatever_is_left_alone_and_all_of_it_is_told() {
    assert_snapshot!(left("1!\n2: 3\n3: 2\n77: 1\n4: 4\n5: 99"), @"rejected: 4");
}

#[test]
fn leaving_something_alone_does_not_change_the_digest() {
    let options = Options { leave_alone: true, ..Options::default() };
    let plan = |batch: &str| Plan::new(items(batch), &Outside::default(), options).unwrap();
    assert_eq!(plan("1!\n2\n3: 1").digest(), plan("1\n2\n3: 1").digest());
}

#[test]
fn a_prerequisite_outside_the_batch_must_be_as_far_as_asked_for() {
    let outside: Outside = [(id("1"), ItemState::Complete)].into_iter().collect();
    let with = |batch: &str, dependants| {
        let options = Options { dependants, ..Options::default() };
        Plan::new(items(batch), &outside, options)
            .map_err(|rejection| rejection.problems[0].to_string())
    };
    assert!(with("2: 1", Awaits::Accepted).is_ok());
    for refused in [with("2: 1^", Awaits::Accepted), with("2: 1", Awaits::Landed)] {
        assert_eq!(refused.unwrap_err(), "2 depends on 1, which is accepted and has not landed");
    }
}
