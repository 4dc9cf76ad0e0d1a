//! Nobody but the driver and the person moves a bundle: not a gate, not a leaf, not a leftover.

use pdca_e2e::{Scene, leaf};
use pdca_process::{SandboxKind, wall_support};
use rustix::process::Signal;

const REVIEWER: &str =
    r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'";

const FORGED: &str = r#"printf '# Result\n\n## 6. NEEDS-HUMAN — items\n\n## 9. Check sign-off\n- Outcome: merged-wider\n- By / date: me / today\n' > "$PDCA_WORKSPACE/results/issue_7/SUMMARY.md""#;

fn enforced() -> bool {
    matches!(wall_support(), SandboxKind::Landlock { .. } | SandboxKind::Bwrap { .. })
}

/// Switches the sandbox of a leaf off.
fn unconfined(scene: &Scene, role: &str) {
    let (table, off) = (format!("[leaves.{role}]"), format!("[leaves.{role}]\nsandbox = \"off\""));
    scene.workspace.config(&scene.workspace.read("pdca.toml").replace(&table, &off));
}

fn gate(cmd: &str) -> String {
    format!("[[gates.checks]]\nid = \"T3\"\ntier = \"T3\"\nscope = \"bundle\"\ncmd = '''{cmd}'''\n")
}

#[test]
fn code_of_the_patch_that_a_gate_runs_cannot_sign_the_bundle() {
    for sandbox in ["auto", "off"] {
        let rows =
            format!("[gates]\nsandbox = \"{sandbox}\"\n{}", gate(&format!("{FORGED} || true")));
        let scene = Scene::with_leaves("echo x > greeting.txt", REVIEWER, &rows);
        scene.brief("7", &[]);
        let ran = scene.pdca(&["run", "7"]);
        if sandbox == "auto" && enforced() {
            ran.expect(0);
            assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
        } else {
            let ran = ran.expect(1);
            assert!(
                ran.err.contains("files outside the checkout changed while the gates ran"),
                "{}",
                ran.err
            );
            assert_eq!(scene.state("7"), "BUILT", "{sandbox}");
        }
    }
}

#[test]
fn a_reviewer_that_signs_the_bundle_itself_is_found_out_and_its_summary_set_aside() {
    let scene = Scene::with_leaves("echo x > greeting.txt", &format!("{FORGED}\n{REVIEWER}"), "");
    unconfined(&scene, "reviewer");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(1);
    assert!(ran.err.contains("SUMMARY.md"), "{}", ran.err);
    assert_eq!(scene.state("7"), "CHECKED");
    assert!(scene.results().keys().any(|name| name.contains("SUMMARY.md.aside")));
}

#[test]
fn a_patch_that_a_builder_planted_in_the_bundle_is_not_taken_on_the_next_run() {
    let builder =
        "echo x > greeting.txt\necho planted > \"$PDCA_WORKSPACE/results/issue_7/patch.diff\"";
    for crash in [None, Some("commit")] {
        let scene = Scene::with_leaves(builder, REVIEWER, "");
        unconfined(&scene, "builder");
        scene.brief("7", &[]);
        match crash {
            None => drop(scene.pdca(&["run", "7"]).expect(1)),
            // The driver dies before it could look.
            Some(_) => drop(
                scene.pdca_with(&[("PDCA_CRASH_AT", "guard-done:1")], &["run", "7"]).expect(137),
            ),
        }
        let next = scene.pdca(&["run", "7"]);
        assert_ne!(next.code, 0, "{}", next.err);
        assert_eq!(scene.state("7"), "PLANNED");
        assert!(!scene.workspace.has("results/issue_7/patch.diff"));
    }
}

#[test]
fn a_breach_that_a_dead_driver_saw_begin_is_found_by_the_next_one() {
    let builder =
        "echo changed > greeting.txt\necho oops >> \"$PDCA_WORKSPACE/../app/greeting.txt\"\n";
    let scene = Scene::with_leaves(builder, REVIEWER, "");
    unconfined(&scene, "builder");
    scene.brief("7", &[]);
    scene.pdca_with(&[("PDCA_CRASH_AT", "guard-done")], &["run", "7"]).expect(137);
    let ran = scene.pdca(&["run", "7"]).expect(1);
    assert!(ran.err.contains("files outside the checkout changed"), "{}", ran.err);
    assert_eq!(scene.ended(), ["builder 7"]);
}

#[test]
fn a6_what_a_killed_driver_started_is_dead_before_the_next_one_touches_the_checkout() {
    let builder = r#"
trap "" TERM
test -f "$PDCA_WORKSPACE/go" && { echo right > greeting.txt; exit 0; }
echo up > "$PDCA_WORKSPACE/calls/up"
i=0
while :; do i=$((i+1)); echo foreign > "foreign-$i.txt"; done
"#;
    let scene = Scene::with_leaves(builder, REVIEWER, "");
    scene.brief("7", &[]);
    let driver = scene.start(&["run", "7"]);
    scene.wait_until("the builder is up", |scene| scene.workspace.has("calls/up"));
    scene.workspace.write("go", "");
    driver.signal(Signal::KILL);
    driver.wait();
    scene.pdca(&["run", "7"]).expect(0);
    let patch = scene.workspace.read("results/issue_7/patch.diff");
    assert!(patch.contains("+right") && !patch.contains("foreign"), "{patch}");
}

#[test]
fn a_checkout_that_was_being_cleared_for_another_bundle_is_nobodys_work() {
    let builder = "echo $1 > one.txt\necho $1 > two.txt\necho $1 > greeting.txt";
    for point in ["reset", "occupy:2", "occupy:1"] {
        let scene = Scene::with_leaves(builder, REVIEWER, "");
        scene.brief("7", &[]);
        scene.brief("8", &[]);
        scene.pdca_with(&[("PDCA_CRASH_AT", "commit")], &["run", "7"]).expect(137);
        scene.pdca_with(&[("PDCA_CRASH_AT", point)], &["run", "8"]).expect(137);
        scene.pdca(&["run", "7"]).expect(0);
        let patch = scene.workspace.read("results/issue_7/patch.diff");
        for file in ["one.txt", "two.txt", "greeting.txt"] {
            assert!(patch.contains(&format!("b/{file}")), "{point}: {patch}");
        }
        assert!(!patch.contains("+8"), "{point}: {patch}");
    }
}

#[test]
fn two_workspaces_with_the_same_lanes_never_take_each_others_work() {
    let scene = Scene::with_leaves(
        "echo $1 > greeting.txt",
        REVIEWER,
        "[lanes]\nroot = \"../shared.lanes\"\n",
    );
    scene.brief("7", &[]);
    let other = scene.workspace.around().join("other");
    for dir in ["leaves", "calls"] {
        fs_err::create_dir_all(other.join(dir)).unwrap();
    }
    for file in ["pdca.toml", "leaves/builder.sh", "leaves/reviewer.sh"] {
        fs_err::copy(scene.workspace.path().join(file), other.join(file)).unwrap();
    }
    fs_err::create_dir_all(other.join("results/issue_7")).unwrap();
    let brief = scene.workspace.read("results/issue_7/brief.md") + "\nand more\n";
    fs_err::write(other.join("results/issue_7/brief.md"), brief).unwrap();
    fs_err::write(other.join("leaves/builder.sh"), "echo theirs > greeting.txt\n").unwrap();
    let crash = [("PDCA_CRASH_AT", "commit")];
    scene.pdca_with(&crash, &["run", "7"]).expect(137);
    scene.pdca_with(&crash, &["-C", other.as_str(), "run", "7"]).expect(137);
    scene.pdca(&["run", "7"]).expect(0);
    let patch = scene.workspace.read("results/issue_7/patch.diff");
    assert!(patch.contains("+7") && !patch.contains("theirs"), "{patch}");
}

#[test]
fn the_gates_of_a_frozen_bundle_change_nothing_even_if_a_row_has_a_fix() {
    let rows = "[[gates.checks]]\nid = \"T3\"\ntier = \"T3\"\nscope = \"bundle\"\ncmd = \"test ! -e ../../red\"\nfix = \"echo fixed > greeting.txt\"\n";
    let scene = Scene::with_leaves("echo x > greeting.txt", REVIEWER, rows);
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let red = scene.workspace.around().join("workspace.lanes/red");
    let lanes = fs_err::read_dir(scene.workspace.around()).unwrap().flatten();
    let lanes =
        lanes.map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with(".lanes"));
    fs_err::write(lanes.map_or(red.into_std_path_buf(), |lanes| lanes.join("red")), "").unwrap();
    let waiting = scene.results();
    scene.pdca(&["gates", "7"]).expect(100);
    assert_eq!(scene.results(), waiting);
    scene.accept("7");
    let frozen = scene.results();
    scene.pdca(&["gates", "7"]).expect(100);
    scene.pdca(&["gates", "7", "-n"]).expect(100);
    assert_eq!(scene.results(), frozen);
}

#[test]
fn a_patch_edited_before_sign_off_is_gated_and_reviewed_again() {
    let scene = Scene::with_leaves(
        "echo right > greeting.txt",
        REVIEWER,
        &gate("grep -q right greeting.txt"),
    );
    for by_hand in [false, true] {
        let id = if by_hand { "8" } else { "7" };
        scene.brief(id, &[]);
        scene.pdca_with(&[("PDCA_CRASH_AT", "SUMMARY.md")], &["run", id]).expect(137);
        let patch = format!("results/issue_{id}/patch.diff");
        let edited = scene.workspace.read(&patch).replace("+right", "+right and more");
        scene.workspace.write(&patch, edited);
        if by_hand {
            scene.pdca(&["gates", id]).expect(0);
        }
        scene.pdca(&["run", id]).expect(0);
        let reviews =
            scene.ended().iter().filter(|line| **line == format!("reviewer {id}")).count();
        assert_eq!(reviews, 2, "by hand: {by_hand}");
    }
}

#[test]
fn a_change_that_no_gate_saw_or_that_changes_nothing_cannot_be_accepted() {
    let scene = Scene::with_leaves("echo x > greeting.txt", REVIEWER, "");
    scene.brief("7", &[("Disposition hint", "wontfix")]);
    scene.pdca(&["run", "7"]).expect(0);
    scene.workspace.write("results/issue_7/patch.diff", "diff --git a/x b/x\n");
    scene.pdca(&["signoff", "7", "accept"]).expect(2);

    scene.brief("8", &[]);
    scene.workspace.write("results/issue_8/patch.diff", "");
    let ran = scene.pdca(&["run", "8"]).expect(2);
    assert!(ran.err.contains("changes nothing"), "{}", ran.err);
}

#[test]
fn looking_at_the_gates_of_a_bundle_that_is_being_built_costs_nothing() {
    let scene = Scene::with_leaves("echo x > greeting.txt", REVIEWER, &gate("true"));
    scene.brief("7", &[]);
    scene.pdca_with(&[("PDCA_CRASH_AT", "commit")], &["run", "7"]).expect(137);
    scene.pdca(&["gates", "7"]).expect(0);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.ended(), ["builder 7", "reviewer 7"]);
}

#[test]
fn an_attempt_that_failed_does_not_hold_the_next_one_to_its_base() {
    let builder = "test -f \"$PDCA_WORKSPACE/go\" || exit 1\ncp upstream.txt greeting.txt";
    let scene = Scene::with_leaves(builder, REVIEWER, "");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(1);
    scene.repo.write("upstream.txt", "newer\n");
    scene.repo.commit("the target moves on");
    scene.workspace.write("go", "");
    scene.pdca(&["run", "7"]).expect(0);
}

#[test]
fn a_person_may_commit_and_plan_while_a_builder_works() {
    if !enforced() {
        // Where nothing keeps the builder out, nobody can tell whose doing it was.
        return;
    }
    let builder = r#"
echo up > "$PDCA_WORKSPACE/calls/up"
while ! test -f "$PDCA_WORKSPACE/go"; do sleep 0.02; done
echo x > greeting.txt
"#;
    let scene = Scene::with_leaves(builder, REVIEWER, "");
    scene.brief("7", &[]);
    let driver = scene.start(&["run", "7"]);
    scene.wait_until("the builder is up", |scene| scene.workspace.has("calls/up"));
    scene.repo.write("mine.txt", "mine\n");
    scene.repo.commit("my own work");
    scene.workspace.write("results/issue_7/notes.json", "{}");
    scene.workspace.write("go", "");
    assert_eq!(driver.wait(), 0);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
}

#[test]
fn a_workspace_inside_the_target_does_not_accuse_itself() {
    let scene = Scene::new("");
    let repo = scene.workspace.target("inside");
    repo.write("a.txt", "a\n");
    repo.commit("first");
    let builder = leaf("builder").replace("writable = [\"calls\"]", "sandbox = \"off\"");
    repo.write("pdca.toml", format!("[[targets]]\npath = \".\"\n{builder}{}", gate("true")));
    repo.write("leaves/builder.sh", "echo b > a.txt\n");
    repo.write("results/issue_1/brief.md", "- **Slug:** first\n");
    let ran = scene.pdca(&["-C", repo.path().as_str(), "run", "1"]).expect(0);
    assert!(!ran.err.contains("primary checkout changed"), "{}", ran.err);
}

#[test]
fn a_box_in_any_spelling_that_is_not_ticked_keeps_the_bundle_from_being_accepted() {
    let scene = Scene::with_leaves("echo x > greeting.txt", REVIEWER, "");
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    let summary = scene.workspace.read("results/issue_7/SUMMARY.md");
    let boxed = summary.lines().find(|line| line.starts_with("- [ ]")).expect("§6 has a box");
    for line in ["* [ ] V", "- [] V", "1. [ ] V", "> - [ ] V", "- [?] V", "- V", "V is open"] {
        scene.workspace.write("results/issue_7/SUMMARY.md", summary.replace(boxed, line));
        let ran = scene.pdca(&["signoff", "7", "accept"]);
        assert_eq!(ran.code, 2, "{line}: {}", ran.out);
        assert_eq!(scene.state("7"), "AWAITING_SIGNOFF", "{line}");
    }
}

#[test]
fn a_repository_inside_the_checkout_is_refused_by_name_and_kept() {
    let builder = "echo x > greeting.txt\nmkdir lib\necho code > lib/a\ngit init -q lib";
    let scene = Scene::with_leaves(builder, REVIEWER, "");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(1);
    assert!(ran.err.contains("repository inside the checkout"), "{}", ran.err);
    assert!(scene.workspace.read("results/issue_7/builder.error.log").contains("lib"));
    scene.workspace.write("leaves/builder.sh", "echo y > greeting.txt\n");
    scene.pdca(&["run", "7"]).expect(0);
    let kept = find(&scene.workspace.around(), "lib/a");
    assert!(kept.is_some(), "the builder's lib/a is gone");
}

/// A file that ends in `tail` somewhere below `dir`.
fn find(dir: &camino::Utf8Path, tail: &str) -> Option<camino::Utf8PathBuf> {
    dir.read_dir_utf8().ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.ends_with(tail) { Some(path.to_owned()) } else { find(path, tail) }
    })
}

#[test]
fn c12_a_builder_that_destroys_its_checkout_stops_nobody_else() {
    for deed in ["rm -rf .git", "rm -rf .git; ln -s /nonexistent .git"] {
        let scene = Scene::with_leaves(deed, REVIEWER, "");
        scene.brief("7", &[]);
        assert_ne!(scene.pdca(&["run", "7"]).code, 0, "{deed}");
        scene.workspace.write("leaves/builder.sh", "echo y > greeting.txt\n");
        scene.pdca(&["run", "7"]).expect(0);
    }
}

#[test]
fn how_a_run_ended_is_told_even_if_nobody_reads_what_it_says() {
    let scene = Scene::with_leaves("echo x > greeting.txt", REVIEWER, &gate("false"));
    scene.brief("7", &[]);
    let pdca = pdca_testkit::pdca_bin();
    let script = format!("{{ {pdca} run 7; echo $? > code; }} 2>&1 | true; cat code");
    let said =
        pdca_process::Tool::new("sh").args(["-c", &script]).cwd(scene.workspace.path()).run();
    assert_eq!(String::from_utf8_lossy(&said.expect("sh runs").stdout).trim(), "100");
}

#[test]
fn what_gates_that_nothing_confines_write_into_the_users_checkout_is_told_and_left_there() {
    let row = "[gates]\nsandbox = \"off\"\n\n[[gates.checks]]\nid = \"T1-reach\"\ntier = \"T1\"\nscope = \"bundle\"\n\
               cmd = 'echo planted > \"$PDCA_WORKSPACE/../app/planted.txt\"'\n";
    let scene = Scene::with_leaves("echo x > greeting.txt", REVIEWER, row);
    scene.brief("7", &[]);
    // It cannot be told apart from the user's own work, for which no bundle fails.
    let ran = scene.pdca(&["run", "7"]).expect(0);
    assert!(ran.err.contains("planted.txt"), "what was written is named: {}", ran.err);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    let planted = scene.repo.path().join("planted.txt");
    assert_eq!(fs_err::read_to_string(&planted).unwrap(), "planted\n");
}

#[test]
fn gates_get_no_variable_of_the_shell_but_those_that_are_named() {
    let row = "[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"echo \\\"token=$GH_TOKEN npm=$NPM_TOKEN plain=$PLAIN\\\"\"\n";
    for (named, expected) in [("", "token= npm= plain="), ("\"NPM_TOKEN\"", "token= npm=n plain=")]
    {
        let config = format!("[gates]\nenv_pass = [{named}]\n{row}");
        let scene =
            Scene::new(&config).env("GH_TOKEN", "g").env("NPM_TOKEN", "n").env("PLAIN", "seen");
        scene.brief("7", &[]);
        scene.pdca(&["run", "7"]).expect(0);
        let log = scene.workspace.read("results/issue_7/gate-logs/T3-tests.log");
        assert_eq!(log.trim(), expected);
        // The user's own tree is judged in the same environment.
        let own = scene.pdca(&["gates", "--working-tree", "--json"]).expect(0).out;
        assert!(own.contains(expected) && !own.contains("token=g"), "{own}");
    }
}

#[test]
fn what_stays_closed_to_gates_cannot_be_opened_by_configuration() {
    for path in ["results", "results/issue_7", ".pdca/runs", "../ws.lanes/lane-0"] {
        let scene = Scene::new(&format!("[gates]\nmay_write = [\"{path}\"]\n"));
        scene.brief("7", &[]);
        let refused = scene.pdca(&["run", "7"]).expect(2);
        for said in ["which stays closed", path, "pdca.toml:", "hint: take it out"] {
            assert!(refused.err.contains(said), "{said}: {}", refused.err);
        }
        assert_eq!(scene.state("7"), "PLANNED");
    }
}
