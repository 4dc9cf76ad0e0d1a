//! Conflicts go to a resolver, and resolutions through Check.

mod killed;

use pdca_e2e::{Ran, leaf};
use serde_json::Value;

use crate::meeting::Meeting;

/// Puts both sides into the file, in the order of the markers.
const UNION: &str = r#"
sed -i -e '/^<<<<<<< /d' -e '/^=======$/d' -e '/^>>>>>>> /d' greeting.txt
echo "both sides are kept" > "$PDCA_OUTPUT"
"#;

/// A meeting with this resolver, which lands on the branch itself.
fn meeting(resolver: &str) -> Meeting {
    meeting_with(resolver, "true", "land = \"target\"\nresolve_pause_secs = 0\n")
}

fn meeting_with(resolver: &str, gate: &str, integrate: &str) -> Meeting {
    let more = format!("{}[integrate]\n{integrate}", leaf("resolver"));
    let scene = Meeting::with(gate, &more);
    let counted = format!(
        "set -eu\necho \"resolver $1\" >> \"$PDCA_WORKSPACE/calls/log\"\n{resolver}\n\
         echo \"resolver $1\" >> \"$PDCA_WORKSPACE/calls/ended\"\n"
    );
    scene.scene.workspace.write("leaves/resolver.sh", counted);
    scene
}

/// Two accepted changes of the same line, and one that has nothing to do with them.
fn rivals(scene: &Meeting) {
    scene.accepted("1", "greeting.txt", "one\n");
    scene.accepted("2", "greeting.txt", "two\n");
    scene.accepted("3", "c.txt", "c\n");
}

fn resolver_calls(scene: &Meeting) -> usize {
    scene.scene.calls().iter().filter(|call| call.starts_with("resolver ")).count()
}

fn resolve(scene: &Meeting, id: &str) -> Ran {
    scene.pdca(&["resolve", id, "--json"])
}

/// The sentence about the first conflict.
fn first(ran: &Ran) -> Value {
    let told = ran.json();
    let key = if told["kind"] == "integrate" { "resolutions" } else { "conflicts" };
    told[key][0].clone()
}

fn show(scene: &Meeting, file: &str) -> String {
    scene.scene.repo.git(&["show", &format!("main:{file}")])
}

/// Says that it is there, and waits until the test lets it go.
fn patient() -> String {
    format!(
        "echo up > \"$PDCA_WORKSPACE/calls/at-$1\"\n\
         while [ ! -e \"$PDCA_WORKSPACE/go\" ]; do sleep 0.02; done\n{UNION}"
    )
}

/// Reads the record of the conflict of 2.
fn case(scene: &Meeting) -> Value {
    let dir = scene.scene.workspace.path().join(".pdca/conflicts/issue_2");
    let mut heads = dir.read_dir_utf8().expect("there is a case");
    let head = heads.next().expect("there is a head").expect("it can be read");
    let text = fs_err::read_to_string(head.path().join("case.json")).expect("there is a record");
    serde_json::from_str(&text).expect("a record is JSON")
}

#[test]
fn a_conflict_is_resolved_checked_signed_off_again_and_lands() {
    let scene = meeting(UNION);
    rivals(&scene);
    let old = scene.seal("2");
    let ran = scene.integrate(&["--json"]).expect(3);
    let told = first(&ran);
    assert_eq!(told["outcome"], "resolved", "{}", ran.out);
    assert_eq!(told["state"], "AWAITING_SIGNOFF", "{}", ran.out);
    assert_eq!(scene.subjects(), ["a slug|3", "a slug|1", "first|"]);
    let workspace = &scene.scene.workspace;
    let summary = workspace.read("results/issue_2/SUMMARY.md");
    let said = "resolved conflict: 2 conflicts with 1 in greeting.txt:1; resolved on main at ";
    assert!(summary.contains(said), "{summary}");
    assert!(summary.contains("by the resolver, attempt 1"), "{summary}");
    let brief = workspace.read("results/issue_2/brief.md");
    assert!(brief.contains("> 2 conflicts with 1 in greeting.txt:1"), "{brief}");
    let notes = workspace.read("results/issue_2/build-notes.md");
    assert_eq!(notes, "both sides are kept\n");
    let archived = workspace.read("results/issue_2/iteration-v1/seal.json");
    assert_eq!(
        serde_json::from_str::<Value>(&archived).unwrap(),
        old,
        "the accepted attempt is kept"
    );
    scene.integrate(&[]).expect(4);
    scene.scene.accept("2");
    assert_ne!(scene.seal("2")["head"], old["head"]);
    let refs = scene.scene.repo.git(&["for-each-ref", "refs/pdca/*/seal/2"]);
    assert_eq!(refs.lines().count(), 2, "both seals are kept: {refs}");
    scene.integrate(&[]).expect(0);
    assert_eq!(show(&scene, "greeting.txt"), "one\ntwo\n");
    assert_eq!(scene.subjects()[0], "a slug|2");
    scene.pdca(&["verify"]).expect(0);
    assert_eq!(resolver_calls(&scene), 1);
}

#[test]
fn f7_a_conflict_is_tried_five_times_then_blocked_once_until_a_person_unblocks_it() {
    let scene = meeting("echo I cannot; exit 3");
    rivals(&scene);
    scene.integrate(&["--json"]).expect(102);
    for attempt in 2..=4 {
        let told = first(&resolve(&scene, "2").expect(102));
        assert_eq!((&told["outcome"], &told["attempts"]), (&"failed".into(), &attempt.into()));
    }
    let fifth = first(&resolve(&scene, "2").expect(102));
    assert_eq!(fifth["outcome"], "blocked_conflict");
    let said = fifth["text"].as_str().unwrap();
    assert!(said.contains("2 conflicts with 1 in greeting.txt:1; attempts 5/5"), "{said}");
    // Nobody is asked again, by hand or by an integration.
    for ran in [resolve(&scene, "2"), scene.integrate(&["--json"])] {
        let told = first(&ran.expect(102));
        assert_eq!(told["outcome"], "blocked_conflict");
        assert!(!told["text"].as_str().unwrap().contains("not tried any more"), "{told}");
    }
    assert_eq!(resolver_calls(&scene), 5);
    let status = scene.pdca(&["status"]).expect(0).out;
    assert!(status.contains("[blocked_conflict: 2 conflicts with 1"), "{status}");
    let why = scene.pdca(&["why", "2"]).expect(0).out;
    assert!(why.contains("attempts 5/5") && why.contains("next: pdca unblock 2"), "{why}");
    let logs: Vec<&str> = why.lines().filter_map(|line| line.split("see ").nth(1)).collect();
    assert_eq!(logs.len(), 5, "{why}");
    for log in logs {
        assert!(scene.scene.workspace.read(log).contains("I cannot"), "{log}");
    }
    assert_eq!(scene.scene.state("2"), "COMPLETE", "the bundle is untouched");
    scene.pdca(&["unblock", "2", "--note", "another model"]).expect(0);
    let told = first(&resolve(&scene, "2").expect(102));
    assert_eq!((&told["outcome"], &told["attempts"]), (&"failed".into(), &1.into()));
    assert_eq!(resolver_calls(&scene), 6);
}

#[test]
fn f7_an_attempt_that_is_not_due_is_reported_and_nobody_waits_for_it() {
    let scene = meeting_with("exit 3", "true", "land = \"target\"\nresolve_pause_secs = 3600\n");
    rivals(&scene);
    let failed = first(&scene.integrate(&["--json"]).expect(102));
    assert_eq!(failed["outcome"], "failed");
    let later = first(&resolve(&scene, "2").expect(102));
    assert_eq!((&later["outcome"], &later["attempts"]), (&"later".into(), &1.into()));
    assert!(later["due"].as_str().unwrap().starts_with("20"), "{later}");
    let rehearsed = first(&scene.pdca(&["resolve", "--dry-run", "--json"]).expect(102));
    assert_eq!(rehearsed["outcome"], "later");
    let status = scene.pdca(&["status"]).expect(0).out;
    assert!(status.contains("attempts 1/5"), "{status}");
    assert_eq!(resolver_calls(&scene), 1);
}

#[test]
fn markers_that_are_left_no_change_and_a_repository_inside_are_failed_attempts() {
    let cases = [
        ("sed -i '/^=======$/d' greeting.txt", "left conflict markers"),
        ("mv greeting.txt other.txt", "left conflict markers"),
        ("true", "changed nothing"),
        ("git init --quiet inner; echo x > inner/x", "left a repository"),
    ];
    let scene = meeting("sh \"$PDCA_WORKSPACE/leaves/now.sh\"");
    rivals(&scene);
    scene.integrate(&["--no-resolve"]).expect(102);
    assert_eq!(resolver_calls(&scene), 0);
    let before = scene.scene.results();
    for (script, expected) in cases {
        scene.scene.workspace.write("leaves/now.sh", format!("set -eu\n{script}\n"));
        let told = first(&resolve(&scene, "2").expect(102));
        assert!(told["text"].as_str().unwrap().contains(expected), "{script}: {told}");
        assert_eq!(scene.scene.results(), before, "the bundle is untouched: {script}");
    }
}

#[test]
fn d10_nobody_is_locked_out_while_a_resolver_works() {
    let scene = meeting(&patient());
    scene.accepted("1", "greeting.txt", "one\n");
    scene.accepted("2", "greeting.txt", "two\n");
    let started = scene.scene.start(&["integrate"]);
    scene.scene.wait_until("the resolver works", |scene| scene.workspace.says("calls/at-2"));
    // Another bundle is built, checked and accepted, and lands.
    scene.accepted("3", "c.txt", "c\n");
    let told = scene.integrate(&["--json"]).expect(102);
    assert_eq!(first(&told)["outcome"], "busy", "{}", told.out);
    assert_eq!(scene.subjects(), ["a slug|3", "a slug|1", "first|"]);
    assert_eq!(scene.scene.state("2"), "COMPLETE", "nothing is changed before it is resolved");
    scene.scene.workspace.write("go", "");
    assert_eq!(started.wait(), 3);
    assert_eq!(scene.scene.state("2"), "AWAITING_SIGNOFF");
    scene.scene.accept("2");
    scene.integrate(&[]).expect(0);
    assert_eq!(show(&scene, "greeting.txt"), "one\ntwo\n");
    assert_eq!(resolver_calls(&scene), 1);
}

#[test]
fn d11_a_resolution_that_leaves_nothing_of_the_change_is_skipped_with_its_reason() {
    let scene = meeting("git checkout --quiet HEAD -- . && git status --short");
    scene.accepted("1", "greeting.txt", "one\n");
    scene.accepted("2", "greeting.txt", "two\n");
    scene.waiting("4", &[("Depends on", "2")], &[("d.txt", "d\n")]);
    scene.scene.accept("4");
    let head = scene.seal("2")["head"].as_str().unwrap().to_owned();
    let told = first(&scene.integrate(&["--json"]).expect(3));
    assert_eq!(told["outcome"], "skipped", "{told}");
    assert!(told["text"].as_str().unwrap().contains("main has its effect"), "{told}");
    assert_eq!(scene.scene.state("2"), "COMPLETE");
    // It is no conflict any more, nobody is asked again, and what waited for it lands.
    let again = scene.integrate(&["--json"]).expect(0).json();
    assert_eq!(again["present"], serde_json::json!(["2"]));
    assert_eq!(scene.subjects(), ["a slug|4", "a slug|1", "first|"]);
    assert_eq!(resolver_calls(&scene), 1);
    let status = scene.pdca(&["status"]).expect(0).out;
    assert!(status.contains("[skipped: 2 conflicts with 1"), "{status}");
    scene.scene.repo.git(&["gc", "--quiet", "--prune=now"]);
    scene.scene.repo.git(&["cat-file", "-e", &head]);
    // Somebody takes 1 back: nothing of what was found holds any more, and 2 lands by itself.
    scene.scene.repo.git(&["update-ref", "refs/heads/main", "main~2"]);
    scene.integrate(&["2"]).expect(0);
    assert_eq!(scene.subjects(), ["a slug|2", "first|"]);
}

#[test]
fn what_depends_on_a_conflict_is_held_until_its_resolution_has_landed() {
    let scene = meeting(UNION);
    rivals(&scene);
    scene.waiting("4", &[("Depends on", "2")], &[("d.txt", "d\n")]);
    scene.scene.accept("4");
    let ran = scene.integrate(&["--json"]).expect(3).json();
    assert_eq!(ran["held"][1]["reason"], "needs");
    // 2 is at its sign-off: 4 needs it all the same.
    let ran = scene.integrate(&["--json"]).expect(3).json();
    assert_eq!(ran["held"][0]["text"], "4 needs 2, which has not landed");
    scene.scene.accept("2");
    // 4 was built on what 2 was before: it is checked again on what it is now.
    let ran = scene.integrate(&["--json"]).expect(3).json();
    assert_eq!(ran["held"][0]["reason"], "stale", "{ran}");
    scene.pdca(&["run", "4"]).expect(0);
    scene.scene.accept("4");
    scene.integrate(&[]).expect(0);
    assert_eq!(scene.subjects()[..2], ["a slug|4", "a slug|2"]);
}

#[test]
fn a_conflict_with_a_commit_of_somebody_else_is_resolved_too() {
    let scene = meeting(UNION);
    scene.accepted("2", "greeting.txt", "two\n");
    scene.commit_to_main("greeting.txt", "somebody\n");
    let told = first(&scene.integrate(&["--json"]).expect(3));
    assert_eq!(told["outcome"], "resolved");
    let conflict = "2 conflicts with the branch in greeting.txt:1";
    assert_eq!(told["conflict"], conflict);
    scene.scene.accept("2");
    scene.integrate(&[]).expect(0);
    assert_eq!(show(&scene, "greeting.txt"), "somebody\ntwo\n");
}

#[test]
fn the_resolver_is_told_both_sides_and_sees_no_notes_of_the_builder() {
    let copy = format!("cp -R \"$PDCA_BUNDLE\" \"$PDCA_WORKSPACE/calls/view\"\n{UNION}");
    let scene = meeting(&copy);
    rivals(&scene);
    scene.integrate(&[]).expect(3);
    let workspace = &scene.scene.workspace;
    let names = fs_err::read_dir(workspace.path().join("calls/view")).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["brief.md", "conflict.md", "patch.diff"]);
    let sides = workspace.read("calls/view/conflict.md");
    for part in [
        "2 conflicts with 1 in greeting.txt:1.",
        "main as it is now, with what landed of 1 |",
        "## greeting.txt\n\nCONFLICT (contents)\n\nLine 1, ours:\n\n    one\n",
    ] {
        assert!(sides.contains(part), "{part:?} in {sides}");
    }
}

#[test]
fn without_a_resolver_a_conflict_is_held_and_the_command_says_what_to_configure() {
    let scene = Meeting::with("true", "[integrate]\nland = \"target\"\n");
    rivals(&scene);
    let ran = scene.integrate(&["--json"]).expect(102).json();
    assert_eq!(ran["resolutions"], serde_json::json!([]));
    let refused = scene.pdca(&["resolve", "2"]).expect(2);
    assert!(refused.err.contains("[leaves.resolver]"), "{}", refused.err);
}

#[test]
fn a_resolver_that_writes_elsewhere_is_kept_from_it_or_caught() {
    let outside = format!("{UNION}\necho x > \"$PDCA_WORKSPACE/../app/planted.txt\"");
    for (mode, expected) in [("off", "wrote outside its checkout"), ("auto", "the resolver ")] {
        let scene = meeting(&outside);
        let config = scene.scene.workspace.read("pdca.toml");
        let sandbox = format!("[leaves.resolver]\nsandbox = \"{mode}\"\n");
        scene.scene.workspace.config(&config.replace("[leaves.resolver]\n", &sandbox));
        rivals(&scene);
        let told = first(&scene.integrate(&["--json"]).expect(102));
        assert_eq!((&told["outcome"], &told["attempts"]), (&"failed".into(), &1.into()));
        assert!(told["text"].as_str().unwrap().contains(expected), "{mode}: {told}");
        let log = fs_err::read_to_string(told["log"].as_str().unwrap()).unwrap();
        assert!(log.contains("planted.txt"), "{mode}: {log}");
        assert_eq!(scene.scene.state("2"), "COMPLETE");
        // Where the kernel confines it the file is not there.
        drop(fs_err::remove_file(scene.scene.repo.path().join("planted.txt")));
    }
}

#[test]
fn with_a_remote_a_conflict_is_resolved_on_what_the_remote_has() {
    let scene = meeting_with(UNION, "true", "land = \"push\"\nremote = \"REMOTE\"\n");
    let path = scene.scene.workspace.around().join("remote.git");
    scene.scene.repo.git(&["clone", "--quiet", "--bare", ".", path.as_str()]);
    let config = scene.scene.workspace.read("pdca.toml");
    scene.scene.workspace.config(&config.replace("REMOTE", path.as_str()));
    let remote = pdca_testkit::Repo::existing(&path);
    rivals(&scene);
    let main = scene.at("main");
    let told = first(&scene.integrate(&["--json"]).expect(3));
    assert_eq!(
        (&told["outcome"], &told["state"]),
        (&"resolved".into(), &"AWAITING_SIGNOFF".into())
    );
    assert_eq!(told["conflict"], "2 conflicts with 1 in greeting.txt:1");
    scene.scene.accept("2");
    let base = remote.git(&["rev-parse", "main"]);
    assert_eq!(scene.seal("2")["base"], base.trim(), "it is based on what the remote has");
    scene.integrate(&[]).expect(0);
    assert_eq!(remote.git(&["show", "main:greeting.txt"]), "one\ntwo\n");
    assert_eq!(scene.at("main"), main, "nothing of the user's moved");
}

#[test]
fn a_rehearsal_says_what_would_be_tried_and_tries_nothing() {
    let scene = meeting(UNION);
    rivals(&scene);
    scene.integrate(&["--no-resolve"]).expect(102);
    let before = scene.scene.results();
    let told = first(&scene.pdca(&["resolve", "--dry-run", "--json"]).expect(102));
    assert_eq!((&told["outcome"], &told["attempts"]), (&"due".into(), &0.into()));
    assert_eq!(told["conflict"], "2 conflicts with 1 in greeting.txt:1");
    assert_eq!((resolver_calls(&scene), scene.scene.results()), (0, before));
    assert!(!scene.scene.workspace.has(".pdca/conflicts"));
    let landed = scene.pdca(&["resolve", "1", "--json"]).expect(4);
    assert_eq!(first(&landed)["text"], "it has landed");
    let nobody = scene.pdca(&["resolve", "9"]).expect(2);
    assert!(nobody.err.contains("issue_9"), "{}", nobody.err);
}

#[test]
fn a_conflict_without_markers_is_resolved_by_changing_what_git_left() {
    let scene = meeting("sh \"$PDCA_WORKSPACE/leaves/now.sh\"");
    scene.accepted("2", "greeting.txt", "two\n");
    let elsewhere = scene.scene.workspace.around().join("elsewhere");
    let repo = &scene.scene.repo;
    repo.git(&["worktree", "add", "--quiet", "--detach", elsewhere.as_str(), "main"]);
    let other = pdca_testkit::Repo::existing(&elsewhere);
    other.git(&["mv", "greeting.txt", "moved.bin"]);
    other.write("moved.bin", "nothing of the old\n");
    let removed = other.commit("it is gone");
    repo.git(&["worktree", "remove", "--force", elsewhere.as_str()]);
    repo.git(&["update-ref", "refs/heads/main", &removed]);
    scene.scene.workspace.write("leaves/now.sh", "test -e greeting.txt\n");
    let told = first(&scene.integrate(&["--json"]).expect(102));
    assert!(told["conflict"].as_str().unwrap().contains("(modify/delete)"), "{told}");
    assert!(told["text"].as_str().unwrap().contains("changed nothing"), "{told}");
    scene.scene.workspace.write("leaves/now.sh", "mv greeting.txt hello.txt\n");
    resolve(&scene, "2").expect(3);
    scene.scene.accept("2");
    scene.integrate(&[]).expect(0);
    assert_eq!(show(&scene, "hello.txt"), "two\n");
}

#[test]
fn a_fault_of_the_host_is_no_attempt_and_changes_nothing() {
    let scene = meeting(UNION);
    rivals(&scene);
    let config = scene.scene.workspace.read("pdca.toml");
    let argv = "argv = [\"sh\", \"{workspace}/leaves/resolver.sh\"";
    assert!(config.contains(argv));
    scene.scene.workspace.config(&config.replace(argv, "argv = [\"no-such-program\", \"\""));
    let ran = scene.integrate(&[]).expect(102);
    assert!(ran.err.contains("resolver program not found"), "{}", ran.err);
    assert_eq!(scene.subjects().len(), 3, "the rest landed");
    let refused = scene.pdca(&["resolve", "2"]).expect(2);
    assert!(refused.err.contains("pdca.toml:"), "{}", refused.err);
    // One that is known only when it is started.
    scene.scene.workspace.config(&config.replace(argv, "argv = [\"{worktree}/none\", \"\""));
    let failed = scene.pdca(&["resolve", "2"]).expect(1);
    assert!(failed.err.contains("no attempt was counted"), "{}", failed.err);
    scene.scene.workspace.config(&config);
    resolve(&scene, "2").expect(3);
    assert_eq!(case(&scene)["attempts"], 1);
}

#[test]
fn two_resolvers_work_at_the_same_time_and_what_is_not_checked_at_once_is_checked_next() {
    let scene = meeting(&patient());
    for (id, text) in [("1", "one\n"), ("2", "two\n"), ("3", "three\n")] {
        scene.accepted(id, "greeting.txt", text);
    }
    scene.integrate(&["--no-resolve"]).expect(102);
    let second = scene.scene.start(&["resolve", "2"]);
    let third = scene.scene.start(&["resolve", "3"]);
    for id in ["2", "3"] {
        let at = format!("calls/at-{id}");
        scene.scene.wait_until("both resolvers work", |scene| scene.workspace.says(&at));
    }
    // Whoever is admitted at the end of the other is not waited for.
    let elsewhere = scene.scene.workspace.path().join(".pdca/driver.lock");
    let lock = pdca_process::FileLock::wait(&elsewhere, "").unwrap();
    scene.scene.workspace.write("go", "");
    assert_eq!((second.wait(), third.wait()), (3, 3));
    for id in ["2", "3"] {
        assert_eq!(scene.scene.state(id), "COMPLETE", "nothing is changed without being admitted");
    }
    drop(lock);
    let told = scene.pdca(&["resolve", "--json"]).expect(3).json();
    for told in told["conflicts"].as_array().unwrap() {
        assert_eq!(told["state"], "AWAITING_SIGNOFF", "{told}");
    }
    assert_eq!(resolver_calls(&scene), 2, "nobody is asked twice");
    // What both made on the same commit conflicts again, and is another case.
    scene.scene.accept("2");
    scene.scene.accept("3");
    let told = first(&scene.integrate(&["--json"]).expect(3));
    assert_eq!((&told["outcome"], &told["attempts"]), (&"resolved".into(), &1.into()));
    scene.scene.accept("3");
    scene.integrate(&[]).expect(0);
    assert_eq!(show(&scene, "greeting.txt"), "one\ntwo\nthree\n");
}

#[test]
fn a_damaged_record_is_an_error_that_names_it_and_nobody_is_asked() {
    let scene = meeting("exit 3");
    rivals(&scene);
    scene.integrate(&[]).expect(102);
    let head = scene.seal("2")["head"].as_str().unwrap().to_owned();
    scene.scene.workspace.write(format!(".pdca/conflicts/issue_2/{head}/case.json"), "{");
    let refused = scene.pdca(&["resolve", "2"]).expect(1);
    assert!(refused.err.contains(&head) && refused.err.contains("case.json"), "{}", refused.err);
    assert_eq!(resolver_calls(&scene), 1);
    scene.pdca(&["status"]).expect(0);
}

#[test]
fn a_conflict_with_a_staged_change_is_resolved_on_top_of_it_without_a_merge() {
    let scene = meeting_with(UNION, "true", "land = \"branch\"\nresolve_pause_secs = 0\n");
    rivals(&scene);
    let main = scene.scene.repo.git(&["rev-parse", "main"]);
    let told = first(&scene.integrate(&["--json"]).expect(3));
    assert_eq!(
        (&told["outcome"], &told["state"]),
        (&"resolved".into(), &"AWAITING_SIGNOFF".into())
    );
    assert_eq!(told["conflict"], "2 conflicts with 1 in greeting.txt:1");
    assert_eq!(resolver_calls(&scene), 1, "the same command asks the resolver");
    assert_eq!(scene.scene.state("2"), "AWAITING_SIGNOFF");
    scene.scene.accept("2");
    scene.integrate(&[]).expect(0);
    let staged = scene.scene.repo.git(&["show", "pdca/staging/main:greeting.txt"]);
    assert!(staged.contains("one\n") && staged.contains("two\n"), "{staged}");
    scene.scene.repo.git(&["cat-file", "-e", "pdca/staging/main:c.txt"]);
    assert_eq!(scene.scene.repo.git(&["rev-parse", "main"]), main, "nothing was merged");
    assert_eq!(resolver_calls(&scene), 1);
}
