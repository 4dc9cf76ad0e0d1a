//! Leftovers of integrations: reported, ended, and removed when no longer needed.

use crate::meeting::Meeting;

const RED: &str = "! { test -e a.txt && test -e b.txt; }";

fn anchors(scene: &Meeting) -> Vec<String> {
    let list = ["for-each-ref", "--format=%(refname)", "refs/pdca/*/int/*"];
    scene.scene.repo.git(&list).lines().map(str::to_owned).collect()
}

fn records(scene: &Meeting) -> usize {
    let dir = scene.scene.workspace.path().join(".pdca/integrations");
    dir.read_dir_utf8().expect("there are integrations").count()
}

/// The steps of a cleanup about integrations: what, decision and reason of each.
fn steps(scene: &Meeting, args: &[&str]) -> Vec<(String, String, String)> {
    let args = [&["cleanup", "--json"][..], args].concat();
    let told = scene.pdca(&args).json();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let steps = told["steps"].as_array().expect("it says its steps").iter();
    let of = |step: &serde_json::Value| {
        assert_eq!(step["error"], serde_json::Value::Null, "{step}");
        (word(&step["what"]), word(&step["decision"]), word(&step["reason"]))
    };
    steps.map(of).filter(|(what, ..)| what != "checkout").collect()
}

#[test]
fn what_landed_needs_no_anchor_and_what_did_not_keeps_it_as_long_as_its_record() {
    let scene = Meeting::with(RED, "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "b.txt", "b\n");
    scene.integrate(&["--fresh"]).expect(101);
    let before = anchors(&scene);
    assert!(before.len() > 1, "{before:?}");
    let dry = steps(&scene, &["-n"]);
    assert_eq!(anchors(&scene), before, "a dry run changes nothing");
    assert_eq!(steps(&scene, &[]), dry, "what it said it does");
    let kept = anchors(&scene);
    assert!(!kept.is_empty() && kept.len() < before.len(), "{kept:?} of {before:?}");
    for name in before.iter().filter(|name| !kept.contains(name)) {
        assert!(
            dry.iter().any(|(what, decision, why)| {
                what == "anchor" && decision == "remove" && why == "main has its commit"
            }),
            "{name}: {dry:?}"
        );
    }
    // The red combination is evidence; with its record it goes, because the seals make it again.
    let later = steps(&scene, &["--keep-days", "0"]);
    assert_eq!(anchors(&scene), Vec::<String>::new(), "{later:?}");
    assert!(later.iter().any(|(_, _, why)| why.contains("the seals make it again")), "{later:?}");
    assert_eq!(records(&scene), 1, "epochs are counted from the newest record");
    assert_eq!(scene.pdca(&["cleanup", "--keep-days", "0"]).code, 4, "nothing is left to do");
    scene.pdca(&["verify"]).expect(0);
}

#[test]
fn an_anchor_that_no_branch_and_no_record_knows_stays() {
    let scene = Meeting::with("true", "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    scene.integrate(&[]).expect(0);
    // A commit that nobody has, kept by an integration of another workspace.
    let tree = scene.at("main^{tree}");
    let alone = scene.scene.repo.git(&["commit-tree", &tree, "-m", "alone"]);
    let name = "refs/pdca/01ARZ3NDEKTSV4RRFFQ69G5FAV/int/1";
    scene.scene.repo.git(&["update-ref", name, alone.trim()]);
    steps(&scene, &["--keep-days", "0"]);
    assert_eq!(anchors(&scene), [name]);
}

#[test]
fn records_of_integrations_that_are_over_go_and_the_newest_stays() {
    let scene = Meeting::with("true", "[integrate]\nland = \"target\"\n");
    for (id, file) in [("1", "a.txt"), ("2", "b.txt"), ("3", "c.txt")] {
        scene.accepted(id, file, "x\n");
        scene.integrate(&[]).expect(0);
    }
    assert_eq!(records(&scene), 3);
    assert_eq!(steps(&scene, &["-n"]).iter().filter(|(what, ..)| what == "record").count(), 0);
    let dry = steps(&scene, &["-n", "--keep-days", "0"]);
    assert_eq!(steps(&scene, &["--keep-days", "0"]), dry);
    assert_eq!(records(&scene), 1);
    scene.accepted("4", "d.txt", "x\n");
    scene.integrate(&[]).expect(0);
}

#[test]
fn recover_lists_an_integration_that_was_cut_short_and_what_will_be_done() {
    let scene = Meeting::with(RED, "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    scene.accepted("2", "c.txt", "c\n");
    let first = scene.scene.pdca_with(&[("PDCA_CRASH_AT", "land")], &["integrate"]);
    assert_eq!(first.code, 128 + 9, "{}", first.err);
    for args in [&["recover", "-n"][..], &["recover"]] {
        let told = scene.pdca(args).expect(0);
        let goes_on = "`pdca integrate` goes on with 1, 2; nothing has landed";
        assert!(told.out.contains(goes_on), "{}", told.out);
    }
    let json = scene.pdca(&["recover", "-n", "--json"]).expect(0).json();
    assert_eq!(
        (&json["runs"][0]["kind"], &json["runs"][0]["action"]),
        (&"integration".into(), &"integrate".into())
    );
    let doctor = scene.pdca(&["doctor"]);
    assert!(doctor.out.contains("`pdca integrate` goes on with it"), "{}", doctor.out);
    for command in ["unblock", "abort"] {
        let told = scene.pdca(&[command]).expect(4);
        assert!(told.err.contains("is not over: `pdca integrate` goes on"), "{}", told.err);
    }
    scene.integrate(&[]).expect(0);
    scene.pdca(&["recover"]).expect(4);
}

#[test]
fn an_integration_that_was_cut_short_with_everything_landed_is_ended_by_whoever_comes_next() {
    for next in ["recover", "cleanup", "integrate"] {
        let scene = Meeting::with("true", "[integrate]\nland = \"target\"\n");
        scene.accepted("1", "a.txt", "a\n");
        let first = scene.scene.pdca_with(&[("PDCA_CRASH_AT", "journal-end")], &["integrate"]);
        assert_eq!(first.code, 128 + 9, "{}", first.err);
        let dry = scene.pdca(&["recover", "-n"]).expect(0);
        assert!(dry.out.contains("it would be ended"), "{}", dry.out);
        assert_eq!(scene.scene.runs().len(), 1, "a dry run changes nothing");
        let foreseen = steps(&scene, &["-n"]);
        assert!(foreseen.iter().any(|(what, ..)| what == "end-integration"), "{foreseen:?}");
        if next == "cleanup" {
            assert_eq!(steps(&scene, &[]), foreseen);
        } else {
            let code = if next == "recover" { 0 } else { 4 };
            scene.pdca(&[next]).expect(code);
        }
        assert_eq!(scene.scene.runs(), Vec::<serde_json::Value>::new(), "{next}");
        scene.pdca(&["verify"]).expect(0);
    }
}

#[test]
fn what_was_pushed_needs_no_anchor_although_no_branch_here_has_it() {
    let scene = Meeting::new("true");
    let remote = scene.scene.workspace.around().join("bare.git");
    scene.scene.repo.git(&["clone", "--quiet", "--bare", ".", remote.as_str()]);
    let config = scene.scene.workspace.read("pdca.toml");
    let push = format!("{config}\n[integrate]\nland = \"push\"\nremote = \"{remote}\"\n");
    scene.scene.workspace.config(&push);
    scene.accepted("1", "a.txt", "a\n");
    scene.integrate(&["--fresh"]).expect(0);
    assert_eq!(anchors(&scene).len(), 1);
    let told = steps(&scene, &[]);
    assert_eq!(anchors(&scene), Vec::<String>::new(), "{told:?}");
    scene.pdca(&["verify"]).expect(0);
}
