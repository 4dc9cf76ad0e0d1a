use std::fmt::Write;

use insta::assert_snapshot;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::testing::{id, plan, plan_with, words};
use crate::{Item, Options, Outside};

/// Each group on a line: name, bundles, what it waits for; then why.
fn show(file: &LanesFile) -> String {
    let mut text = String::new();
    for group in &file.groups {
        write!(text, "{}: {}", group.id, words(&group.bundles)).unwrap();
        for on in &group.depends_on {
            write!(text, " <- {on}").unwrap();
        }
        text.push('\n');
    }
    for (sign, joins) in [("=", &file.collapse_report), ("!=", &file.apart)] {
        for Join { bundles: (a, b), rule, evidence, witness, .. } in joins {
            let witness = witness.as_deref().map(|path| format!(" in {path}")).unwrap_or_default();
            writeln!(text, "{a} {sign} {b}: {rule:?}: {evidence}{witness}").unwrap();
        }
    }
    text
}

fn group(file: &LanesFile, bundle: &str) -> String {
    file.group_of(&id(bundle)).unwrap().id.to_string()
}

#[test]
fn a_chain_with_disjoint_files_keeps_parallel_groups() {
    let file = plan("1 @ a\n2: 1 @ b\n3: 2 @ c").groups(None);
    assert_snapshot!(show(&file), @r"
    a: 1
    b: 2 <- a
    c: 3 <- b
    ");
    assert_eq!((file.depth, file.width), (3, 1));
}

#[test]
fn a_diamond_keeps_its_middle_parallel() {
    let file = plan("1 @ a\n2: 1 @ b\n3: 1 @ c\n4: 2 3 @ d").groups(None);
    assert_snapshot!(show(&file), @r"
    a: 1
    b: 2 <- a
    c: 3 <- a
    d: 4 <- b <- c
    ");
    assert_eq!((file.depth, file.width), (3, 2));
    assert_eq!(words(&file.critical_path), "1 2 4");
}

#[test]
fn there_is_one_event_for_each_joined_pair() {
    // 1 and 2 meet in three ways, and 3 is joined once although it meets both.
    assert_snapshot!(show(&plan("1 ~ 2 @ x y\n2 ~ 1 @ x y\n3 @ y z\n4 @ w").groups(None)), @r"
    a: 1 2 3
    b: 4
    1 = 2: Conflict: declared in 1:2
    1 = 3: Overlap: `y` meets `y` in y
    ");
}

#[test]
fn rivals_share_a_group_in_the_order_of_their_dependencies() {
    assert_snapshot!(show(&plan("1: 2 @ src/*.py\n2 @ src/{a,b}.py\n3 @ docs").groups(None)), @r"
    a: 2 1
    b: 3
    1 = 2: Overlap: `src/*.py` meets `src/{a,b}.py` in src/a.py
    ");
}

#[test]
fn groups_that_would_wait_for_each_other_become_one() {
    assert_snapshot!(show(&plan("1 @ x\n2: 1 @ y\n3: 2 @ x\n4: 3 @ z").groups(None)), @r"
    a: 1 2 3
    b: 4 <- a
    1 = 3: Overlap: `x` meets `x` in x
    1 = 2: Cycle: 2 depends on 1 (2:1), and their groups wait for each other
    ");
}

#[test]
fn dependants_join_where_that_is_asked_for() {
    let options = Options { join_dependencies: true, ..Options::default() };
    assert_snapshot!(show(&plan_with("1 @ a\n2: 1 @ b\n3 @ c", options).groups(None)), @r"
    a: 1 2
    b: 3
    1 = 2: Dependency: 2 depends on 1 (2:1)
    ");
}

#[test]
fn re_planning_after_removing_an_item_moves_no_survivor() {
    let before = plan("1 @ a\n2 @ b b2\n3 @ b2 c\n4 @ c\n5 @ e").groups(None);
    assert_eq!(show(&before).lines().take(3).collect::<Vec<_>>(), ["a: 1", "b: 2 3 4", "c: 5"]);
    let after = plan("2 @ b b2\n4 @ c\n5 @ e").groups(Some(&before));
    assert_snapshot!(show(&after), @r"
    b: 2 4
    c: 5
    2 = 4: Previous: they shared a group before
    ");
}

#[test]
fn a_new_bundle_gets_a_name_that_was_never_used() {
    let before = plan("1 @ a\n2 @ b\n3 @ c").groups(None);
    let without = plan("1 @ a\n2 @ b").groups(Some(&before));
    let after = plan("0 @ z\n1 @ a\n2 @ b").groups(Some(&without));
    assert_snapshot!(show(&after), @r"
    a: 1
    b: 2
    d: 0
    ");
}

#[test]
fn groups_that_come_to_meet_become_one_under_the_name_of_the_begun_one() {
    let before = plan("1 @ a\n2 @ b").groups(None);
    assert_eq!(show(&plan("1 @ a\n2 @ a").groups(Some(&before))).lines().next(), Some("a: 1 2"));
    assert_eq!(show(&plan("1 @ a\n2* @ a").groups(Some(&before))).lines().next(), Some("b: 1 2"));
}

#[test]
fn a_begun_bundle_is_never_moved_and_that_is_said() {
    let before = plan("1 @ a\n2 @ b").groups(None);
    assert_snapshot!(show(&plan("1* @ a\n2* @ a\n3 @ a").groups(Some(&before))), @r"
    a: 1 3
    b: 2
    1 = 3: Overlap: `a` meets `a` in a
    1 != 2: Overlap: `a` meets `a` in a
    ");
}

#[test]
fn begun_groups_that_wait_for_each_other_stay_two_and_have_a_depth() {
    let before = plan("1 @ a\n2 @ b\n3 @ a").groups(None);
    assert_eq!((group(&before, "3"), group(&before, "2")), ("a".to_owned(), "b".to_owned()));
    let after = plan("1* @ a\n2*: 1 @ b\n3: 2 @ a\n4: 3").groups(Some(&before));
    assert_snapshot!(show(&after), @r"
    a: 1 3 <- b
    b: 2 <- a
    c: 4 <- a
    1 = 3: Overlap: `a` meets `a` in a
    1 != 2: Cycle: 2 depends on 1 (2:1), and their groups wait for each other
    ");
    assert_eq!(after.depth, 2);
}

#[test]
fn names_go_on_past_z() {
    let batch: Vec<String> = (100..900).map(|n| format!("{n} @ f{n}/x")).collect();
    let file = plan(&batch.join("\n")).groups(None);
    let names: Vec<&str> = file.groups.iter().map(|group| group.id.as_str()).collect();
    assert_eq!(
        (names[0], names[25], names[26], names[51], names[52]),
        ("a", "z", "aa", "az", "ba")
    );
    assert_eq!((names[701], names[702], file.next.as_str()), ("zz", "aaa", "adu"));
    for (n, group) in file.groups.iter().enumerate() {
        assert_eq!(group.id.index(), n);
    }
    assert_eq!(LanesFile::parse(file.to_json().as_bytes()).unwrap(), file);
}

#[test]
fn the_same_batch_gives_the_same_file() {
    let batch = "1 @ a\n2: 1 ~ 4 @ b\n3: 1 @ c\n4: 2 3 @ a";
    let first = plan(batch).groups(None);
    assert_eq!(plan(batch).groups(None).to_json(), first.to_json());
    let again = plan(batch).groups(Some(&first));
    assert_eq!((again.groups, again.next), (first.groups, first.next));
}

#[test]
fn a_corrupt_file_is_not_an_absent_one() {
    let good = plan("1 @ a\n2: 1 @ b").groups(None).to_json();
    assert!(LanesFile::parse(good.as_bytes()).is_ok());
    let cut = &good[..good.len() / 2];
    let cases = [
        ("", "it is damaged"),
        ("{}", "it is damaged"),
        (cut, "it is damaged"),
        (&good.replacen("\"digest\"", "\"digset\"", 1), "it is damaged"),
        (&good.replacen("\"a\"", "\"A\"", 1), "it is damaged"),
        (&good.replacen("\"1\"", "\"../1\"", 1), "it is damaged"),
        (
            &good.replacen("\"schema\": 1", "\"schema\": 2", 1),
            "its schema is 2, this program knows 1",
        ),
        (&good.replacen("\"id\": \"b\"", "\"id\": \"a\"", 1), "group a is there twice"),
        (&good.replacen("\"2\"", "\"1\"", 1), "bundle 1 is in group a and in group b"),
        (
            &good.replacen("[\n        \"a\"", "[\n        \"b\"", 1),
            "group b depends on b, which is not another group of the file",
        ),
        (
            &good.replacen("\"next\": \"c\"", "\"next\": \"b\"", 1),
            "the next group would be b, but there is a group b",
        ),
        (&good.replacen("[\n        \"1\"\n      ]", "[]", 1), "group a has no bundles"),
    ];
    for (text, expected) in cases {
        assert_eq!(LanesFile::parse(text.as_bytes()).expect_err(text).to_string(), expected);
    }
}

#[test]
fn the_file_has_the_documented_form() {
    let plan = plan("1 @ a\n2: 1 @ a b");
    assert_snapshot!(plan.groups(None).to_json().replace(plan.digest(), "…"), @r#"
    {
      "schema": 1,
      "digest": "…",
      "groups": [
        {
          "id": "a",
          "bundles": [
            "1",
            "2"
          ],
          "depends_on": [],
          "depth": 0
        }
      ],
      "collapse_report": [
        {
          "bundles": [
            "1",
            "2"
          ],
          "rule": "overlap",
          "evidence": "`a` meets `a`",
          "witness": "a",
          "merged_wps": [
            "1",
            "2"
          ],
          "reason": "overlapping paths: `a` meets `a`"
        }
      ],
      "apart": [],
      "depth": 1,
      "width": 1,
      "critical_path": [
        "1",
        "2"
      ],
      "next": "b"
    }
    "#);
}

#[test]
fn a_bundle_that_is_left_alone_keeps_its_group() {
    let options = Options { leave_alone: true, ..Options::default() };
    let groups = |batch: &str, previous: Option<&LanesFile>| {
        let plan = Plan::new(crate::testing::items(batch), &Outside::default(), options).unwrap();
        let file = plan.groups(previous);
        LanesFile::parse(file.to_json().as_bytes()).expect("it reads back");
        let shown: Vec<String> = file
            .groups
            .iter()
            .map(|group| format!("{}: {}", group.id, words(&group.bundles)))
            .collect();
        (file, shown.join("; "))
    };
    let (first, shown) = groups("1\n2: 1 @ x\n3 @ x\n4: 1", None);
    assert_eq!(shown, "a: 1; b: 2 3; c: 4");
    let (second, shown) = groups("1!\n2: 1 @ x\n3 @ x\n4: 1", Some(&first));
    assert_eq!(shown, "b: 3 2; c: 4", "2 and 4 are left alone");
    let (_, shown) = groups("1+\n2: 1 @ x\n3 @ x\n4: 1", Some(&second));
    assert_eq!(shown, "b: 2 3; c: 4", "they come back where they were");
}

#[test]
fn a_common_surface_joins_only_where_that_is_asked_for() {
    let mut items = crate::testing::items("1 @ a\n2 @ b\n3 @ c");
    for (item, surfaces) in items.iter_mut().zip([&["menu", "api"][..], &["menu"], &["data"]]) {
        item.surfaces = surfaces.iter().map(|one| (*one).to_owned()).collect();
    }
    let plan = |join_surfaces| {
        let options = Options { join_surfaces, ..Options::default() };
        Plan::new(items.clone(), &Outside::default(), options).unwrap()
    };
    assert_eq!(plan(false).groups(None).groups.len(), 3);
    let file = plan(true).groups(None);
    assert_snapshot!(show(&file), @r"
    a: 1 2
    b: 3
    1 = 2: Surface: both show on menu
    ");
    assert_ne!(plan(true).digest(), plan(false).digest());
    let join = &file.collapse_report[0];
    assert_eq!(join.merged_wps, [id("1"), id("2")]);
    assert_eq!(join.reason, "common surface: both show on menu");
    assert_eq!(LanesFile::parse(file.to_json().as_bytes()).unwrap(), file);
}

/// One bundle of a drawn batch: earlier bundles that it depends on, files, surfaces, and rivals by name.
type Drawn = (Vec<usize>, Vec<usize>, Vec<usize>, Vec<usize>);

fn drawn_batch() -> impl Strategy<Value = Vec<Drawn>> {
    let few = |names: usize| vec(0..names, 0..3);
    vec((few(8), few(6), few(6), few(8)), 1..9)
}

/// The items of a drawn batch. A bundle depends on earlier ones only, so that there is no cycle.
fn drawn_items(batch: &[Drawn]) -> Vec<Item> {
    let at = |bundle: usize| crate::SourceLocation::new(format!("{bundle}"), 1);
    let name = |bundle: usize| id(&bundle.to_string());
    let each = |(bundle, (before, files, surfaces, rivals)): (usize, &Drawn)| {
        let declared = |other: &usize| crate::Declared::new(name(*other), at(bundle));
        let touch = |file: &usize| crate::Touch {
            glob: format!("f{file}"),
            place: at(bundle),
            is_file: true,
        };
        let mut item = Item::new(name(bundle), at(bundle));
        item.depends_on = before.iter().filter(|other| **other < bundle).map(declared).collect();
        item.conflicts_with =
            rivals.iter().filter(|other| **other < bundle).map(declared).collect();
        item.touches = files.iter().map(touch).collect();
        item.surfaces = surfaces.iter().map(|one| format!("s{one}")).collect();
        item
    };
    batch.iter().enumerate().map(each).collect()
}

/// Two bundles that a dependency, a conflict, a file or a surface relates.
fn are_related(a: &Item, b: &Item) -> bool {
    let names = |list: &[crate::Declared], other: &Item| list.iter().any(|one| one.id == other.id);
    let file = |one: &crate::Touch| b.touches.iter().any(|other| other.glob == one.glob);
    names(&a.depends_on, b)
        || names(&b.depends_on, a)
        || names(&a.conflicts_with, b)
        || names(&b.conflicts_with, a)
        || a.touches.iter().any(file)
        || a.surfaces.iter().any(|one| b.surfaces.contains(one))
}

proptest! {
    #[test]
    fn groups_are_the_connected_components_over_dependencies_files_and_surfaces(
        batch in drawn_batch()
    ) {
        let items = drawn_items(&batch);
        // The plainest way to find components: the lowest number spreads until nothing changes.
        let mut lowest: Vec<usize> = (0..items.len()).collect();
        for _ in 0..items.len() {
            for a in 0..items.len() {
                for b in 0..items.len() {
                    if are_related(&items[a], &items[b]) {
                        lowest[a] = lowest[a].min(lowest[b]);
                    }
                }
            }
        }
        let options =
            Options { join_dependencies: true, join_surfaces: true, ..Options::default() };
        let plan = Plan::new(items.clone(), &Outside::default(), options).unwrap();
        let file = plan.groups(None);
        for a in 0..items.len() {
            for b in 0..items.len() {
                let together = file.group_of(&items[a].id) == file.group_of(&items[b].id);
                prop_assert_eq!(together, lowest[a] == lowest[b], "{} and {}: {}", a, b, show(&file));
            }
        }
        // A join for each bundle beyond the first of its group, and each says which relation it is.
        prop_assert_eq!(file.collapse_report.len(), items.len() - file.groups.len());
        for join in &file.collapse_report {
            let of = |id: &BundleId| items.iter().find(|item| item.id == *id).unwrap();
            let (a, b) = (of(&join.bundles.0), of(&join.bundles.1));
            prop_assert!(are_related(a, b), "{}", join.reason);
            if join.rule == JoinRule::Surface {
                let named = join.evidence.strip_prefix("both show on ").unwrap_or_default();
                for surface in named.split(", ") {
                    let has = |item: &Item| item.surfaces.iter().any(|one| one == surface);
                    prop_assert!(has(a) && has(b), "{}", join.reason);
                }
            }
        }
    }
}
