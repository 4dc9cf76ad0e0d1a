//! Several lanes at once: the real binary, real checkouts, scripted leaves.

use std::collections::BTreeSet;

use pdca_e2e::Scene;
use rustix::process::Signal;

const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";

/// Says when it is there and in which lane, and goes on when the test lets it.
const PATIENT: &str = r#"
echo "${PDCA_LANE:-none} $PWD" > "$PDCA_WORKSPACE/calls/at-$1"
while [ ! -e "$PDCA_WORKSPACE/go-$1" ] && [ ! -e "$PDCA_WORKSPACE/go" ]; do sleep 0.02; done
echo "$1" > "file-$1.txt"
"#;

fn is_at(scene: &Scene, id: &str) -> bool {
    scene.workspace.says(format!("calls/at-{id}"))
}

fn lane_of(scene: &Scene, id: &str) -> String {
    let text = scene.workspace.read(format!("calls/at-{id}"));
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn let_go(scene: &Scene, id: &str) {
    scene.workspace.write(format!("go-{id}"), "");
}

#[test]
fn each_lane_has_its_own_checkout_and_says_so() {
    let gate = "[[gates.checks]]\nid = \"T1-lane\"\ntier = \"T1\"\nscope = \"bundle\"\n\
                cmd = 'echo \"$PDCA_LANE\" > \"$PDCA_WORKSPACE/calls/gate-$PDCA_ISSUE\"; test -f \"file-$PDCA_ISSUE.txt\"'\n";
    let scene = Scene::with_leaves(PATIENT, REVIEWER, gate);
    for id in ["7", "8", "9"] {
        scene.brief(id, &[]);
    }
    let untouched = scene.repo.status();
    let driver = scene.start(&["batch", "--lanes", "3"]);
    scene.wait_until("all three are in work", |scene| {
        ["7", "8", "9"].iter().all(|id| is_at(scene, id))
    });
    let lanes: BTreeSet<String> = ["7", "8", "9"].map(|id| lane_of(&scene, id)).into();
    assert_eq!(lanes, BTreeSet::from(["0", "1", "2"].map(str::to_owned)));
    let places: BTreeSet<String> =
        ["7", "8", "9"].map(|id| scene.workspace.read(format!("calls/at-{id}"))).into();
    assert_eq!(places.len(), 3, "{places:?}");
    scene.workspace.write("go", "");
    assert_eq!(driver.wait(), 0);
    for id in ["7", "8", "9"] {
        assert_eq!(scene.state(id), "AWAITING_SIGNOFF");
        let patch = scene.workspace.read(format!("results/issue_{id}/patch.diff"));
        assert!(patch.contains(&format!("file-{id}.txt")), "{patch}");
        assert_eq!(patch.matches("diff --git").count(), 1, "no other lane's work: {patch}");
        let gate = scene.workspace.read(format!("calls/gate-{id}"));
        assert_eq!(gate.trim(), lane_of(&scene, id), "gates run where the builder did");
        let bundle = format!("{:?}", scene.results());
        assert!(
            !bundle.contains("lane-"),
            "the slot is the worker's, never the bundle's: {bundle}"
        );
    }
    assert_eq!(scene.repo.status(), untouched);
    assert_eq!(scene.processes(), Vec::<String>::new());
}

#[test]
fn one_lane_is_the_serial_driver_without_slot_or_variable() {
    let scene = Scene::with_leaves(PATIENT, REVIEWER, "");
    scene.workspace.write("go", "");
    for id in ["10", "9", "7"] {
        scene.brief(id, &[]);
    }
    let ran = scene.pdca(&["batch", "--lanes", "1", "--events", "events"]).expect(0);
    for id in ["7", "9", "10"] {
        assert_eq!(lane_of(&scene, id), "none");
    }
    assert!(!ran.err.contains("lane"), "{}", ran.err);
    assert!(!scene.workspace.read("events").contains("\"lane\""));
    let builders: Vec<String> =
        scene.calls().into_iter().filter(|call| call.starts_with("builder")).collect();
    assert_eq!(builders, ["builder 7", "builder 9", "builder 10"], "in the order of the ids");
    assert!(!scene.workspace.around().join("ws.lanes/lane-1").exists());
}

#[test]
fn no_lane_at_all_is_one_and_auto_is_what_the_machine_carries_and_both_carry_every_bundle() {
    for (lanes, said) in [("0", "note: --lanes 0: "), ("auto", "auto: ")] {
        let scene = Scene::with_leaves(PATIENT, REVIEWER, "");
        scene.workspace.write("go", "");
        for id in ["7", "8"] {
            scene.brief(id, &[]);
        }
        let ran = scene.pdca(&["batch", "--lanes", lanes]).expect(0);
        assert!(ran.err.lines().any(|line| line.starts_with(said)), "{}", ran.err);
        for id in ["7", "8"] {
            assert_eq!(scene.state(id), "AWAITING_SIGNOFF");
        }
        assert_eq!(
            lane_of(&scene, "7") == "none",
            ran.err.contains("auto: 1 lane ") || lanes == "0"
        );
    }
}

#[test]
fn more_lanes_than_the_machine_carries_are_cut_with_words_and_the_work_is_done() {
    let gate =
        "[[gates.checks]]\nid = \"T1-all\"\ntier = \"T1\"\nscope = \"repo\"\ncmd = \"true\"\n";
    let scene = Scene::with_leaves(PATIENT, REVIEWER, gate);
    scene.workspace.write("go", "");
    for id in ["7", "8"] {
        scene.brief(id, &[]);
    }
    let untold = ["batch", "--lanes", "4294967296", "--config", "driver.lane_memory_mb=0"];
    let ran = scene.pdca(&untold).expect(0);
    assert!(ran.err.contains("909 of 4294967295"), "{}", ran.err);
    for id in ["7", "8"] {
        assert_eq!(scene.state(id), "AWAITING_SIGNOFF");
        scene.accept(id);
    }
    let ran = scene.pdca(&["integrate", "--lanes", "auto"]).expect(0);
    assert!(ran.err.contains("auto: "), "{}", ran.err);
    assert!(scene.workspace.around().join("ws.lanes/lane-10000").exists());
}

#[test]
fn c19_bundles_that_conflict_or_overlap_are_never_in_work_together() {
    let scene = Scene::with_leaves(
        "echo \"begin $1\" >> \"$PDCA_WORKSPACE/calls/order\"\necho \"$1\" > \"file-$1.txt\"\nsleep 0.1\n\
         echo \"end $1\" >> \"$PDCA_WORKSPACE/calls/order\"",
        REVIEWER,
        "[schedule]\ndrift = \"off\"\n",
    );
    scene.brief("1", &[("Touches", "src/{a,b}.py")]);
    scene.brief("2", &[("Touches", "./src/a.py")]);
    scene.brief("3", &[("Conflicts with", "4")]);
    scene.brief("4", &[("Touches", "docs")]);
    scene.brief("5", &[("Touches", "src/*.py, docs/x")]);
    scene.pdca(&["batch", "--lanes", "4"]).expect(0);
    let rivals = [("1", "2"), ("1", "5"), ("2", "5"), ("3", "4"), ("4", "5")];
    let mut at_work: BTreeSet<String> = BTreeSet::new();
    for line in scene.workspace.read("calls/order").lines() {
        let (what, id) = line.split_once(' ').expect("a word and an id");
        if what == "end" {
            at_work.remove(id);
            continue;
        }
        for (a, b) in rivals {
            let other = if a == id {
                b
            } else if b == id {
                a
            } else {
                continue;
            };
            assert!(!at_work.contains(other), "{id} beside {other}");
        }
        at_work.insert(id.to_owned());
    }
    assert!(at_work.is_empty());
    assert_eq!(scene.ended().iter().filter(|call| call.starts_with("builder")).count(), 5);
}

#[test]
fn a_batch_that_cannot_be_carried_out_is_refused_whole_with_every_problem() {
    let scene = Scene::with_leaves("echo $1 > greeting.txt", REVIEWER, "");
    scene.brief("1", &[("Depends on", "2")]);
    scene.brief("2", &[("Depends on", "1")]);
    scene.brief("3", &[("Depends on", "3")]);
    scene.brief("4", &[("Depends on", "99")]);
    scene.brief("5", &[("Touches", "../outside")]);
    scene.brief("6", &[]);
    let before = scene.results();
    let refused = scene.pdca(&["batch", "--lanes", "2"]).expect(2);
    for told in [
        "1 depends on 2",
        "2 depends on 1",
        "3 depends on itself",
        "4 depends on 99, which does not exist",
        "../outside",
        "results/issue_1/brief.md:",
        "results/issue_3/brief.md:",
        "results/issue_4/brief.md:",
        "results/issue_5/brief.md:",
    ] {
        assert!(refused.err.contains(told), "{told} is missing:\n{}", refused.err);
    }
    assert_eq!((scene.calls(), scene.results()), (Vec::new(), before));
    assert!(!scene.workspace.around().join("ws.lanes").exists());
}

#[test]
fn a_sign_off_that_is_recorded_meanwhile_frees_its_dependants_at_once() {
    let scene = Scene::with_leaves(PATIENT, REVIEWER, "");
    scene.brief("7", &[]);
    scene.brief("8", &[("Depends on", "7")]);
    scene.brief("9", &[]);
    let driver = scene.start(&["batch", "--lanes", "2", "--events", "events"]);
    scene.wait_until("both are in work", |scene| is_at(scene, "7") && is_at(scene, "9"));
    let_go(&scene, "7");
    scene.wait_until("7 waits for sign-off", |scene| scene.state("7") == "AWAITING_SIGNOFF");
    assert!(!is_at(&scene, "8"));
    scene.accept("7");
    scene.wait_until("8 is in work beside 9", |scene| is_at(scene, "8"));
    assert!(!scene.ended().contains(&"builder 9".to_owned()), "9 is still in work");
    scene.workspace.write("go", "");
    assert_eq!(driver.wait(), 0);
    assert!(scene.workspace.read("events").contains("\"event\":\"freed\",\"by\":\"7\""));
    assert_eq!(scene.state("8"), "AWAITING_SIGNOFF");
}

#[test]
fn a_bundle_sent_back_to_do_meanwhile_goes_again_and_one_sent_back_to_plan_does_not() {
    let scene = Scene::with_leaves(PATIENT, REVIEWER, "");
    for id in ["6", "7", "9"] {
        scene.brief(id, &[]);
    }
    let driver = scene.start(&["batch", "--lanes", "3"]);
    scene.wait_until("all are in work", |scene| ["6", "7", "9"].iter().all(|id| is_at(scene, id)));
    for id in ["6", "7"] {
        let_go(&scene, id);
        scene.wait_until("it waits for sign-off", |scene| scene.state(id) == "AWAITING_SIGNOFF");
    }
    scene.pdca(&["signoff", "7", "iterate-plan", "--note", "think again"]).expect(0);
    scene.pdca(&["signoff", "6", "iterate-do", "--note", "once more"]).expect(0);
    scene.wait_until("6 was built again", |scene| {
        scene.ended().iter().filter(|call| *call == "builder 6").count() == 2
    });
    // Its brief is written anew while the pool runs: that is for the next batch.
    scene.brief("7", &[("Slug", "another-plan")]);
    scene.wait_until("6 waits for sign-off again", |scene| scene.state("6") == "AWAITING_SIGNOFF");
    let_go(&scene, "9");
    assert_eq!(driver.wait(), 0);
    assert_eq!(scene.calls().iter().filter(|call| *call == "builder 7").count(), 1);
    assert_eq!(scene.state("7"), "PLANNED");
}

#[test]
fn one_lanes_failure_stops_no_other() {
    let scene = Scene::with_leaves("[ $1 != 8 ] || exit 3\necho $1 > file-$1.txt", REVIEWER, "");
    for id in ["7", "8", "9", "10", "11"] {
        scene.brief(id, &[]);
    }
    scene.workspace.write("results/issue_12/brief.md", [0xff, 0xfe, 0x00]);
    let ran = scene.pdca(&["batch", "--lanes", "2"]).expect(1);
    assert!(ran.err.contains("issue_8") && ran.err.contains("issue_12"), "{}", ran.err);
    for id in ["7", "9", "10", "11"] {
        assert_eq!(scene.state(id), "AWAITING_SIGNOFF", "{id}");
    }
    let lanes = scene.workspace.around().join("ws.lanes");
    assert!(lanes.join("lane-1").exists() && !lanes.join("lane-2").exists(), "slots are reused");
}

#[test]
fn an_interrupt_stops_every_lane_and_the_same_command_goes_on() {
    let scene = Scene::with_leaves(PATIENT, REVIEWER, "");
    for id in ["7", "8", "9"] {
        scene.brief(id, &[]);
    }
    let driver = scene.start(&["batch", "--lanes", "2"]);
    scene.wait_until("two are in work", |scene| is_at(scene, "7") && is_at(scene, "8"));
    let status = scene.pdca(&["status", "--json"]).expect(0).json();
    let lane = |id: &str| {
        let rows = status["bundles"].as_array().expect("status lists bundles");
        rows.iter().find(|row| row["id"] == id).expect("it is listed")["lane"].clone()
    };
    assert_eq!((lane("7"), lane("8")), (0.into(), 1.into()));
    assert!(lane("9").is_null());
    driver.signal(Signal::INT);
    assert_eq!(driver.wait(), 130);
    scene.wait_until("nothing of the run is alive", |scene| scene.processes().is_empty());
    assert!(!is_at(&scene, "9"), "nothing new was started");
    scene.workspace.write("go", "");
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    for id in ["7", "8", "9"] {
        assert_eq!(scene.state(id), "AWAITING_SIGNOFF");
    }
}

/// Takes its time, so that one that is cut off is cut off before its end.
const SLOW: &str = "sleep 0.1\necho \"$1\" > \"file-$1.txt\"";

#[test]
fn work_of_several_lanes_goes_on_with_one() {
    let scene = Scene::with_leaves(SLOW, REVIEWER, "");
    for id in ["7", "8"] {
        scene.brief(id, &[]);
    }
    // Both builders have ended, neither patch is published.
    let at = [("PDCA_CRASH_AT", "patch.diff:2")];
    scene.pdca_with(&at, &["batch", "--lanes", "2"]).expect(137);
    scene.pdca(&["batch"]).expect(0);
    let builders = scene.ended().into_iter().filter(|call| call.starts_with("builder"));
    assert_eq!(builders.collect::<BTreeSet<_>>().len(), 2);
    assert_eq!(scene.calls().iter().filter(|call| call.starts_with("builder")).count(), 2);
}

#[test]
fn a_lane_cannot_write_into_another() {
    let scene = Scene::with_leaves(
        &format!(
            "[ $1 != 8 ] || ! echo stolen > \"$(cut -d' ' -f2 $PDCA_WORKSPACE/calls/at-7)/stolen.txt\" || exit 9\n{PATIENT}"
        ),
        REVIEWER,
        "",
    );
    scene.brief("7", &[]);
    let first = scene.start(&["batch", "--lanes", "2"]);
    scene.wait_until("7 is in work", |scene| is_at(scene, "7"));
    first.signal(Signal::INT);
    assert_eq!(first.wait(), 130);
    // Its place is known now, and it goes on there.
    scene.brief("8", &[]);
    scene.workspace.write("go", "");
    let ran = scene.pdca(&["batch", "--lanes", "2"]);
    let patch = scene.workspace.read("results/issue_7/patch.diff");
    assert!(!patch.contains("stolen"), "{patch}");
    if ran.err.contains("Landlock") {
        assert_eq!(ran.code, 0, "the kernel refused it: {}", ran.err);
        assert_ne!(lane_of(&scene, "7"), lane_of(&scene, "8"));
    }
}

#[test]
fn each_lane_has_names_of_its_own_and_what_it_needs_beyond_git() {
    let builder = r#"
cat .env > env.txt
echo "$PDCA_LANE $PDCA_PORT_BASE $PDCA_TEST_DB_NAME $COMPOSE_PROJECT_NAME" > "$PDCA_WORKSPACE/calls/names-$1"
echo mine > "$PDCA_TMP/mine"
while [ ! -e "$PDCA_WORKSPACE/go" ]; do sleep 0.02; done
"#;
    let gate = "[[gates.checks]]\nid = \"T1-names\"\ntier = \"T1\"\nneeds_lane = true\n\
                cmd = 'test -n \"$PDCA_PORT_BASE\" && echo x > \"$PDCA_TMP/gate\"'\n";
    let scene = Scene::with_leaves(builder, REVIEWER, gate);
    scene.repo.write(".gitignore", ".env\n");
    scene.repo.write(".worktreeinclude", ".env\n");
    scene.repo.commit("what is ignored");
    scene.repo.write(".env", "SECRET=1\n");
    for id in ["7", "8"] {
        scene.brief(id, &[]);
    }
    let driver = scene.start(&["batch", "--lanes", "2"]);
    scene.wait_until("both are in work", |scene| {
        scene.workspace.says("calls/names-7") && scene.workspace.says("calls/names-8")
    });
    scene.workspace.write("go", "");
    assert_eq!(driver.wait(), 0);
    let names = |id: &str| scene.workspace.read(format!("calls/names-{id}"));
    let (seven, eight) = (names("7"), names("8"));
    for (a, b) in seven.split_whitespace().zip(eight.split_whitespace()) {
        assert_ne!(a, b, "{seven}{eight}");
    }
    for id in ["7", "8"] {
        let patch = scene.workspace.read(format!("results/issue_{id}/patch.diff"));
        assert!(patch.contains("+SECRET=1"), "the ignored file was there: {patch}");
        assert!(!patch.contains("b/.env"), "and is no part of the patch: {patch}");
    }
}

#[test]
fn a_lane_whose_hydration_fails_is_not_used_and_that_is_no_fault_of_the_bundle() {
    let scene = Scene::with_leaves(
        "echo built > built.txt",
        REVIEWER,
        "[lanes.hydrate]\nverify = 'echo the-reason; test -e \"$PDCA_WORKSPACE/ready\"'\n",
    );
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(2);
    assert!(ran.err.contains("hydrated") && ran.err.contains("the-reason"), "{}", ran.err);
    assert_eq!((scene.calls(), scene.state("7")), (Vec::new(), "PLANNED".to_owned()));
    assert!(!scene.workspace.has("results/issue_7/builder.error.log"));
    scene.workspace.write("ready", "");
    scene.pdca(&["run", "7"]).expect(0);
}

#[test]
fn a_lane_that_is_provisioned_is_hydrated_with_the_variables_that_a_driver_sets() {
    let verify = "test -d \"$PDCA_WORKSPACE\" && test -e \"$PDCA_WORKTREE/.git\" && test -n \"$PDCA_TARGET\"";
    let scene = Scene::new(&format!("[lanes.hydrate]\nverify = '{verify}'\n"));
    scene.pdca(&["lanes", "provision"]).expect(0);
}
