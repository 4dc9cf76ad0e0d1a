mod lanes_file;

use crate::exit::Exit;
use crate::testing::Desk;

/// A small batch in which everything happens that can be declared.
pub(super) fn desk() -> Desk {
    let desk = Desk::new();
    let brief = |id: &str, fields: &[(&str, &str)]| drop(desk.workspace.brief(id, fields));
    brief("12", &[("Touches", "src/*.py")]);
    brief("15", &[("Touches", "src/{ab,c}.py"), ("Depends on", "12")]);
    brief("18", &[("Touches", "docs/**"), ("Conflicts with", "20")]);
    brief("20", &[("Touches", "web"), ("Depends on", "12")]);
    brief("21", &[("Touches", "src/main.py")]);
    brief("30", &[]);
    desk
}

#[test]
fn a_plan_says_the_order_and_why() {
    insta::assert_snapshot!(desk().run(&["plan"]), @"
    6 bundles to build, in 2 waves
    order          12  15  18  20  21  30
    longest chain  12 → 15

    waves  a view: each bundle starts as soon as it may
      1     12  18  30
      2     15  20  21

    groups  what may not run side by side; 2 deep, 2 wide
      a     12  15  21
      b     18  20   (after a)
      c     30

    dependencies
      15 after 12  results/issue_15/brief.md:11
      20 after 12  results/issue_20/brief.md:11

    never side by side
      12 and 15 both can write `src/ab.py`    `src/*.py` meets `src/{ab,c}.py`
      12 and 21 both can write `src/main.py`  `src/*.py` meets `src/main.py`
      18 and 20 conflict                      declared in results/issue_18/brief.md:11

    to look at
      no `Touches`, so they claim nothing:
            30
    ");
}

#[test]
fn scripts_get_the_whole_plan() {
    insta::assert_snapshot!(desk().run(&["waves", "--json"]), @r#"
    {
      "schema": 1,
      "kind": "plan",
      "digest": "53da2810edfdfbe9eaad5520e3ed2b197a049f4449d3c3d78d47e2101be95874",
      "order": [
        "12",
        "15",
        "18",
        "20",
        "21",
        "30"
      ],
      "waves": [
        [
          "12",
          "18",
          "30"
        ],
        [
          "15",
          "20",
          "21"
        ]
      ],
      "groups": [
        {
          "id": "a",
          "bundles": [
            "12",
            "15",
            "21"
          ],
          "depends_on": [],
          "depth": 0
        },
        {
          "id": "b",
          "bundles": [
            "18",
            "20"
          ],
          "depends_on": [
            "a"
          ],
          "depth": 1
        },
        {
          "id": "c",
          "bundles": [
            "30"
          ],
          "depends_on": [],
          "depth": 0
        }
      ],
      "edges": [
        {
          "rule": "depends_on",
          "from": "12",
          "to": "15",
          "awaits": "accepted",
          "file": "results/issue_15/brief.md",
          "line": 11
        },
        {
          "rule": "depends_on",
          "from": "12",
          "to": "20",
          "awaits": "accepted",
          "file": "results/issue_20/brief.md",
          "line": 11
        }
      ],
      "collapse_report": [
        {
          "bundles": [
            "18",
            "20"
          ],
          "rule": "conflict",
          "evidence": "declared in results/issue_18/brief.md:11",
          "witness": null,
          "merged_wps": [
            "18",
            "20"
          ],
          "reason": "declared conflict: declared in results/issue_18/brief.md:11"
        },
        {
          "bundles": [
            "12",
            "15"
          ],
          "rule": "overlap",
          "evidence": "`src/*.py` meets `src/{ab,c}.py`",
          "witness": "src/ab.py",
          "merged_wps": [
            "12",
            "15"
          ],
          "reason": "overlapping paths: `src/*.py` meets `src/{ab,c}.py`"
        },
        {
          "bundles": [
            "12",
            "21"
          ],
          "rule": "overlap",
          "evidence": "`src/*.py` meets `src/main.py`",
          "witness": "src/main.py",
          "merged_wps": [
            "12",
            "21"
          ],
          "reason": "overlapping paths: `src/*.py` meets `src/main.py`"
        }
      ],
      "apart": [],
      "critical_path": [
        "12",
        "15"
      ],
      "depth": 2,
      "width": 2,
      "lanes_file": {
        "path": "[TMP]/ws/lanes.json",
        "was": "absent",
        "written": false
      },
      "notices": [
        {
          "kind": "nothing_declared",
          "id": "30",
          "text": "30 declares no `Touches`",
          "file": "results/issue_30/brief.md",
          "line": 1
        }
      ],
      "problems": [],
      "left_alone": []
    }
    "#);
}

#[test]
fn every_problem_is_named_with_its_place_and_remedy_and_nothing_is_written() {
    let desk = Desk::new();
    let brief = |id: &str, fields: &[(&str, &str)]| drop(desk.workspace.brief(id, fields));
    brief("1", &[("Depends on", "2")]);
    brief("2", &[("Depends on", "3")]);
    brief("3", &[("Depends on", "1")]);
    brief("4", &[("Depends on", "4")]);
    brief("PROJ-12", &[]);
    brief("5", &[("Depends on", "PROJ-21")]);
    brief("6", &[("Depends on", "99")]);
    brief("7", &[("Touches", "../x, src/[b-a].rs")]);
    let before = desk.all_files();
    insta::assert_snapshot!(desk.run(&["plan", "--write"]), @r"
    --- stderr
    error: dependency cycle: 1 → 2 → 3 → 1
      --> results/issue_1/brief.md:10
      1 depends on 2  (results/issue_1/brief.md:10)
      2 depends on 3  (results/issue_2/brief.md:10)
      3 depends on 1  (results/issue_3/brief.md:10)
    hint: remove one of these `Depends on`
    error: 4 depends on itself
      --> results/issue_4/brief.md:10
    hint: take 4 out of that line
    error: 5 depends on PROJ-21, which does not exist
      --> results/issue_5/brief.md:10
    hint: did you mean `PROJ-12`?
    error: 6 depends on 99, which does not exist
      --> results/issue_6/brief.md:10
    hint: `pdca new 99` makes it; or write `none`, or put the reason behind the ids
    error: 7 touches `../x`: column 1: it leaves the tree
      --> results/issue_7/brief.md:10
    hint: paths are relative to the root of the repository
    error: 7 touches `src/[b-a].rs`: column 8: the range goes backwards
      --> results/issue_7/brief.md:10
    hint: globs know `*`, `**`, `?`, `[a-z]`, `{a,b}`; a `\` takes the meaning of the next character
    --- exit 2
    ");
    assert_eq!(desk.all_files(), before);
}

#[test]
fn more_lanes_are_simulated_until_they_stop_helping() {
    insta::assert_snapshot!(desk().run(&["plan", "--simulate", "12", "15", "20", "21"]).out.split_once("simulation").unwrap().1, @"
    every bundle as long as any other
     1 lane   4  ████████████████████████████████████████████████
     2 lanes  3  ████████████████████████████████████
     3 lanes  2  ████████████████████████
     4 lanes  2  ████████████████████████
     5 lanes  2  ████████████████████████
     6 lanes  2  ████████████████████████
     7 lanes  2  ████████████████████████
     8 lanes  2  ████████████████████████
     9 lanes  2  ████████████████████████
    10 lanes  2  ████████████████████████
    11 lanes  2  ████████████████████████
    12 lanes  2  ████████████████████████
    13 lanes  2  ████████████████████████
    14 lanes  2  ████████████████████████
    15 lanes  2  ████████████████████████
    16 lanes  2  ████████████████████████
    3 lanes are as fast as 16
    the work is 4, the longest chain 2: no number of lanes is faster
    ");
    let desk = desk();
    desk.workspace.config("[schedule]\ndurations = \"history\"\n");
    desk.workspace.brief("15", &[("Touches", "src/{ab,c}.py"), ("Difficulty", "90 min")]);
    desk.workspace.brief("21", &[("Touches", "src/main.py, src/c.py"), ("Difficulty", "2 h")]);
    desk.workspace.brief("30", &[("Touches", "web"), ("Difficulty", "low")]);
    insta::assert_snapshot!(desk.run(&["plan", "--simulate", "15", "21", "30"]).out.split_once("simulation").unwrap().1, @"
    durations as measured or declared
     1 lane   5 h 30 min  ████████████████████████████████████████████████
     2 lanes  3 h 30 min  ██████████████████████████████
     3 lanes  3 h 30 min  ██████████████████████████████
     4 lanes  3 h 30 min  ██████████████████████████████
     5 lanes  3 h 30 min  ██████████████████████████████
     6 lanes  3 h 30 min  ██████████████████████████████
     7 lanes  3 h 30 min  ██████████████████████████████
     8 lanes  3 h 30 min  ██████████████████████████████
     9 lanes  3 h 30 min  ██████████████████████████████
    10 lanes  3 h 30 min  ██████████████████████████████
    11 lanes  3 h 30 min  ██████████████████████████████
    12 lanes  3 h 30 min  ██████████████████████████████
    13 lanes  3 h 30 min  ██████████████████████████████
    14 lanes  3 h 30 min  ██████████████████████████████
    15 lanes  3 h 30 min  ██████████████████████████████
    16 lanes  3 h 30 min  ██████████████████████████████
    2 lanes are as fast as 16
    the work is 5 h 30 min, the longest chain 2 h: no number of lanes is faster
    what costs most: 15 and 21 both can write `src/c.py`; without it 1 h 30 min sooner
    ");
    let json = desk.run(&["plan", "--simulate", "15", "21", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    insta::assert_snapshot!(json["simulation"]["costliest"], @r#"{"bundles":["15","21"],"rule":"overlap","saves":5400000,"witness":"src/c.py"}"#);
    assert_eq!(json["simulation"]["makespans"].as_array().unwrap().len(), 16);
}

#[test]
fn workstreams_are_what_has_anything_to_do_with_each_other() {
    let out = desk().run(&["plan", "--workstreams"]).out;
    insta::assert_snapshot!(out.split_once("workstreams").unwrap().1.split_once("\n\n").unwrap().0, @"
    what has anything to do with each other
    1     12  15  18  20  21
    2     30
    ");
}

#[test]
fn dependants_join_the_group_of_what_they_depend_on_where_asked_for() {
    let out = desk().run(&["plan", "--join-dependencies"]).out;
    insta::assert_snapshot!(out.split_once("groups").unwrap().1.split_once("\n\n").unwrap().0, @"
    what may not run side by side; 1 deep, 2 wide
    a     12  15  18  20  21
    b     30
    ");
}

#[test]
fn a_chain_with_disjoint_files_keeps_parallel_groups_and_a_diamond_its_middle() {
    let desk = Desk::new();
    for (id, on) in [("1", ""), ("2", "1"), ("3", "1"), ("4", "2, 3")] {
        desk.workspace.brief(id, &[("Touches", &format!("src/{id}.rs")), ("Depends on", on)]);
    }
    let out = desk.run(&["plan"]).out;
    insta::assert_snapshot!(out.split_once("waves").unwrap().1.split_once("\n\ndep").unwrap().0, @"

    order          1  2  3  4
    longest chain  1 → 2 → 4

    waves  a view: each bundle starts as soon as it may
      1     1
      2     2  3
      3     4

    groups  what may not run side by side; 3 deep, 2 wide
      a     1
      b     2   (after a)
      c     3   (after a)
      d     4   (after b, c)
    ");
}

#[test]
fn independent_chains_start_at_once() {
    let desk = Desk::new();
    for (id, on) in [("1", ""), ("2", "1"), ("7", ""), ("8", "7")] {
        desk.workspace.brief(id, &[("Touches", id), ("Depends on", on)]);
    }
    let json: serde_json::Value = serde_json::from_str(&desk.run(&["plan", "--json"]).out).unwrap();
    assert_eq!(json["waves"][0].to_string(), r#"["1","7"]"#);
}

#[test]
fn a_prerequisite_outside_of_the_batch_must_be_complete() {
    let desk = desk();
    insta::assert_snapshot!(desk.run(&["plan", "15"]), @"
    --- stderr
    error: 15 depends on 12, which is not complete and not in the batch
      --> results/issue_15/brief.md:11
    hint: name 12 too, or have it built and signed off first: `pdca why 12`
    --- exit 2
    ");
    desk.complete("12");
    assert_eq!(desk.run(&["plan", "15"]).exit, Exit::Done);
}

#[test]
fn a_rejected_plan_is_told_to_scripts_too() {
    let desk = Desk::new();
    desk.workspace.brief("1", &[("Depends on", "2")]);
    desk.workspace.brief("2", &[("Depends on", "1")]);
    let run = desk.run(&["plan", "--json"]);
    assert_eq!(run.exit, Exit::Usage);
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&json["problems"]).unwrap(), @r#"
    [
      {
        "bundles": [
          "1",
          "2"
        ],
        "file": "results/issue_1/brief.md",
        "hint": "remove one of these `Depends on`",
        "kind": "cycle",
        "line": 10,
        "message": "dependency cycle: 1 → 2 → 1",
        "path": [
          {
            "awaits": "accepted",
            "file": "results/issue_1/brief.md",
            "from": "2",
            "line": 10,
            "rule": "depends_on",
            "to": "1"
          },
          {
            "awaits": "accepted",
            "file": "results/issue_2/brief.md",
            "from": "1",
            "line": 10,
            "rule": "depends_on",
            "to": "2"
          }
        ]
      }
    ]
    "#);
    assert_eq!(json["order"].to_string(), "[]");
}

#[test]
fn a_workspace_without_bundles_has_an_empty_plan() {
    insta::assert_snapshot!(Desk::new().run(&["plan"]), @"nothing to build");
}

#[test]
fn a_batch_that_declares_nothing_names_every_bundle_in_one_list() {
    let desk = Desk::new();
    for id in 100..140 {
        desk.workspace.brief(&id.to_string(), &[]);
    }
    desk.workspace.brief("1", &[("Conflicts with", "1, 1000, nothing yet"), ("Touches", "x")]);
    let out = desk.run(&["plan"]).out;
    assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    insta::assert_snapshot!(out.split_once("to look at").unwrap().1, @"

    no `Touches`, so they claim nothing:
          100  101  102  103  104  105  106  107  108  109  110  111  112  113  114  115  116  117
          118  119  120  121  122  123  124  125  126  127  128  129  130  131  132  133  134  135
          136  137  138  139
    1 conflicts with itself                                       results/issue_1/brief.md:10
    1 conflicts with 1000, which does not exist; did you mean 100?
        results/issue_1/brief.md:10
    ");
}
