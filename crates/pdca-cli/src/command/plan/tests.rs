use crate::testing::Desk;

/// A small batch in which everything happens that can be declared.
fn desk() -> Desk {
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
          "from": "12",
          "to": "15",
          "rule": "depends_on",
          "file": "results/issue_15/brief.md",
          "line": 11
        },
        {
          "from": "12",
          "to": "20",
          "rule": "depends_on",
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
          "witness": null
        },
        {
          "bundles": [
            "12",
            "15"
          ],
          "rule": "overlap",
          "evidence": "`src/*.py` meets `src/{ab,c}.py`",
          "witness": "src/ab.py"
        },
        {
          "bundles": [
            "12",
            "21"
          ],
          "rule": "overlap",
          "evidence": "`src/*.py` meets `src/main.py`",
          "witness": "src/main.py"
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
      "problems": []
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
    error: the way leads back to itself: 1 → 2 → 3 → 1
      --> results/issue_1/brief.md:10
      1 depends on 2  (results/issue_1/brief.md:10)
      2 depends on 3  (results/issue_2/brief.md:10)
      3 depends on 1  (results/issue_3/brief.md:10)
    hint: remove one of these `Depends on`
    error: 4 depends on itself
      --> results/issue_4/brief.md:10
    hint: take 4 out of its own `Depends on`
    error: 5 depends on PROJ-21, which does not exist
      --> results/issue_5/brief.md:10
    hint: did you mean `PROJ-12`?
    error: 6 depends on 99, which does not exist
      --> results/issue_6/brief.md:10
    hint: `pdca new 99` makes it, or take it out of `Depends on`
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
