//! Command lines as people type them: both spellings, the demo, and the first steps of a newcomer.

use pdca_e2e::Scene;

#[test]
fn the_demo_lands_all_but_the_guilty_and_a_crash_leads_to_the_same_commits() {
    let scene = Scene::new("").env("SOURCE_DATE_EPOCH", "1794830400");
    let place = |name: &str| scene.workspace.around().join(name);
    let main = |name: &str| {
        let repo = pdca_testkit::Repo::existing(&place(name).join("workspace/greeter"));
        repo.git(&["rev-parse", "main"])
    };
    // With one date for all commits the same demo gives the same ids.
    let ran = scene.pdca(&["demo", "--keep", place("whole").as_str()]).expect(0);
    for told in [
        "6 bundles: 6 COMPLETE",
        "held    15 breaks T3-tests only together with 20",
        "greet-nobody       [landed: main]",
        "say-goodbye        [landed: main] [attempt 2]",
        "Agent: greet: an empty name greets the world",
        "holds  process/certificates/",
    ] {
        assert!(ran.out.contains(told), "{told} is missing:\n{}", ran.out);
    }
    let kept = place("killed");
    let ran = scene.pdca(&["demo", "--crash", "--keep", kept.as_str()]).expect(0);
    assert_eq!(ran.out.matches("killed\n").count(), 2, "{}", ran.out);
    assert!(kept.join("workspace/results/issue_23/iteration-v1/SUMMARY.md").exists());
    assert_eq!(main("killed"), main("whole"), "the same ids");
    scene.pdca(&["demo", "--keep", kept.as_str()]).expect(2);
}

#[test]
fn both_spellings_of_a_command_do_the_same() {
    for (old, new) in [
        (&["sign-off", "7", "show"][..], &["signoff", "7", "show"][..]),
        (&["gate", "7"], &["gates", "7"]),
        (&["act", "index"], &["act-index"]),
        (&["act", "diff"], &["act-diff"]),
        (&["status", "#7"], &["status", "issue_7"]),
    ] {
        let scene = Scene::new("");
        scene.brief("7", &[]);
        scene.pdca(&["run", "7"]).expect(0);
        let (old, new) = (scene.pdca(old), scene.pdca(new));
        assert_eq!((old.code, &old.out), (new.code, &new.out));
        assert!(!new.out.is_empty());
    }
}

#[test]
fn a_newcomer_gets_from_nothing_to_sign_off() {
    let scene = Scene::new("");
    let repo = scene.workspace.target("mine");
    repo.write("Makefile", "test:\n\ttrue\n");
    repo.commit("first");
    let here = ["-C", repo.path().as_str()];
    let pdca = |words: &[&str]| scene.pdca(&[&here[..], words].concat());
    pdca(&["init", "--yes"]).expect(0);
    pdca(&["doctor"]).expect(0);
    pdca(&["new", "1", "--title", "first things first"]).expect(0);
    let brief = repo.path().join("results/issue_1/brief.md");
    assert!(brief.exists());
    fs_err::write(&brief, "- **Slug:** first\n- **Goal:** something\n").unwrap();
    let ran = pdca(&["run", "1"]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    let queue = pdca(&["queue", "--json"]).expect(0).json();
    assert_eq!(queue["items"][0]["id"], "1");
}

#[test]
fn without_a_workspace_the_way_to_one_is_shown() {
    let scene = Scene::new("");
    let elsewhere = scene.workspace.around().join("elsewhere");
    fs_err::create_dir_all(&elsewhere).unwrap();
    let ran = scene.pdca(&["-C", elsewhere.as_str(), "status"]).expect(2);
    assert!(ran.err.contains("pdca init"), "{}", ran.err);
}

#[test]
fn events_are_written_as_json_lines() {
    let scene = Scene::new("");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7", "--events", "events.jsonl"]).expect(0);
    let text = scene.workspace.read("events.jsonl");
    let names: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a line is JSON"))
        .map(|event| event["event"].as_str().expect("an event has a name").to_owned())
        .collect();
    assert_eq!(&names[..2], ["dispatched", "began"]);
    assert_eq!(names.last().map(String::as_str), Some("halted"));
}

#[test]
fn the_tree_itself_can_be_gated_as_in_ci() {
    let scene = Scene::new(
        "[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"grep -q hello ../app/greeting.txt\"\n\
         [[gates.checks]]\nid = \"C4-bundle\"\ntier = \"C4\"\nscope = \"bundle\"\ncmd = \"false\"\n",
    );
    let green = scene.pdca(&["gates", "--working-tree", "--json"]).expect(0).json();
    assert_eq!(green["overall"], "pass");
    scene.repo.write("greeting.txt", "goodbye\n");
    scene.pdca(&["gates", "--working-tree"]).expect(100);
    let left = fs_err::read_dir(scene.workspace.path().join(".pdca")).map(Iterator::count);
    assert_eq!(left.unwrap_or(0), 0, "jobs are left behind");
}
