//! The reviewer is independent and the builder is confined, by the kernel where it can.

use pdca_e2e::{Scene, leaf};
use pdca_process::{SandboxKind, wall_support};

const BUILDER: &str = r#"
echo changed > greeting.txt
echo "the builder's secret" > "$PDCA_BUNDLE/build-notes.md"
"#;

const TABLE: &str =
    r"printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | %s |\n'";

/// Returns whether this host has a sandbox; then the tests require it.
fn enforced() -> bool {
    matches!(wall_support(), SandboxKind::Landlock { .. } | SandboxKind::Bwrap { .. })
}

fn summary(scene: &Scene) -> String {
    scene.workspace.read("results/issue_7/SUMMARY.md")
}

#[test]
fn a_reviewer_cannot_read_the_builders_notes_by_their_absolute_path() {
    let reviewer = format!(
        r#"
real="$PDCA_WORKSPACE/results/issue_7"
test ! -e "$PDCA_BUNDLE/build-notes.md"
seen=$(cat "$real/build-notes.md" "$PDCA_BUNDLE/../../../../../results/issue_7/build-notes.md" /proc/self/root/"$real"/build-notes.md 2>/dev/null || true)
{TABLE} "saw: <$seen>"
"#
    );
    let scene = Scene::with_leaves(BUILDER, &reviewer, "");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.workspace.read("results/issue_7/build-notes.md"), "the builder's secret\n");
    if enforced() {
        assert!(summary(&scene).contains("saw: <>"), "{}", summary(&scene));
        // Which wall it is depends on the host; that it is said does not.
        let wall = wall_support().to_string();
        assert!(ran.err.contains(&format!("reviewer  exit status 0 · {wall}")), "{}", ran.err);
    } else {
        assert!(ran.err.contains("the reviewer was not confined by the kernel"), "{}", ran.err);
    }
}

#[test]
fn a_reviewer_that_fails_because_it_was_refused_is_reported() {
    let scene =
        Scene::with_leaves(BUILDER, r#"cat "$PDCA_WORKSPACE/results/issue_7/build-notes.md""#, "");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(0);
    if enforced() {
        assert!(ran.err.contains("there is no review"), "{}", ran.err);
        let log = scene.workspace.read("results/issue_7/check-review.error.log");
        // Landlock refuses; behind bwrap there is nothing to be seen.
        let refused = log.contains("ermission denied") || log.contains("No such file");
        assert!(log.contains("build-notes.md") && refused, "{log}");
        assert!(summary(&scene).contains("- [ ] no review exists"), "{}", summary(&scene));
        scene.pdca(&["signoff", "7", "accept"]).expect(2);
    } else {
        assert!(ran.err.contains("not confined"), "{}", ran.err);
    }
}

#[test]
fn a_reviewer_cannot_edit_the_fix() {
    let reviewer = format!(
        r#"
lane="$PDCA_WORKSPACE/../workspace.lanes/lane-0/app"
test -d "$lane" || lane=$(ls -d "$PDCA_WORKSPACE".lanes/lane-0/app)
if echo sabotage 2>/dev/null > "$lane/greeting.txt"; then {TABLE} "wrote it"; else {TABLE} "refused"; fi
"#
    );
    let scene = Scene::with_leaves(BUILDER, &reviewer, "");
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(0);
    if enforced() {
        assert!(summary(&scene).contains("refused"), "{}", summary(&scene));
    } else {
        assert!(ran.err.contains("void"), "{}", ran.err);
    }
}

#[test]
fn without_a_sandbox_a_review_that_edits_the_fix_or_the_bundle_is_void() {
    for (what, deed) in [
        (
            "the reviewed checkout changed",
            "echo sabotage > \"$(ls -d \"$PDCA_WORKSPACE\".lanes/lane-0/app)/greeting.txt\"",
        ),
        (
            "build-notes.md changed",
            "echo nicer > \"$PDCA_WORKSPACE/results/issue_7/build-notes.md\"",
        ),
    ] {
        let scene = Scene::with_leaves(BUILDER, &format!("{deed}\n{TABLE} fine"), "");
        let config = scene
            .workspace
            .read("pdca.toml")
            .replace("[leaves.reviewer]", "[leaves.reviewer]\nsandbox = \"off\"");
        scene.workspace.config(&config);
        scene.brief("7", &[]);
        let ran = scene.pdca(&["run", "7"]).expect(0);
        assert!(
            ran.err.contains("the reviewer was not confined") || ran.err.contains("no sandbox"),
            "{}",
            ran.err
        );
        let log = scene.workspace.read("results/issue_7/check-review.error.log");
        assert!(log.contains(what) || ran.err.contains(what), "{log}\n{}", ran.err);
        assert!(!scene.workspace.has("results/issue_7/check-review.md"));
        assert!(summary(&scene).contains("- [ ] no review exists"));
    }
}

#[test]
fn b12_a_builder_cannot_write_the_primary_checkout() {
    let builder = r#"
echo changed > greeting.txt
if echo oops 2>/dev/null >> "$PDCA_WORKSPACE/../app/greeting.txt"; then echo wrote; else echo refused; fi > "$PDCA_BUNDLE/build-notes.md"
"#;
    let scene = Scene::with_leaves(builder, &format!("{TABLE} fine"), "");
    scene.brief("7", &[]);
    let before = scene.repo.status();
    if enforced() {
        scene.pdca(&["run", "7"]).expect(0);
        assert_eq!(scene.workspace.read("results/issue_7/build-notes.md"), "refused\n");
        assert_eq!(scene.repo.status(), before);
    } else {
        let ran = scene.pdca(&["run", "7"]).expect(1);
        assert!(ran.err.contains("files outside the checkout changed"), "{}", ran.err);
    }
}

#[test]
fn b12_without_a_sandbox_a_builder_that_writes_the_primary_checkout_is_rejected_and_nothing_is_restored()
 {
    let builder =
        "echo changed > greeting.txt\necho oops >> \"$PDCA_WORKSPACE/../app/greeting.txt\"\n";
    let config = leaf("builder").replace("prompt_via", "sandbox = \"off\"\nprompt_via");
    let scene = Scene::new(&config);
    scene.workspace.write("leaves/builder.sh", builder);
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]).expect(1);
    assert!(
        ran.err.contains("files outside the checkout changed while the builder ran"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("greeting.txt"), "{}", ran.err);
    assert_eq!(scene.state("7"), "PLANNED");
    assert_eq!(scene.repo.read("greeting.txt"), b"hello\noops\n");
    assert!(scene.workspace.read("results/issue_7/builder.error.log").contains("greeting.txt"));
}

#[test]
fn a_required_sandbox_holds_or_nothing_starts() {
    let config = leaf("builder").replace("prompt_via", "sandbox = \"require\"\nprompt_via");
    let scene = Scene::new(&config);
    scene.workspace.write("leaves/builder.sh", BUILDER);
    scene.brief("7", &[]);
    let ran = scene.pdca(&["run", "7"]);
    if enforced() {
        ran.expect(0);
    } else {
        assert!(ran.expect(1).err.contains("requires a sandbox"));
    }
}

/// The command of the prompt that lays out the red side, carried out as a reviewer does it.
const RED_SIDE: &str = r#"
prompt=$(cat "$PDCA_PROMPT_FILE")
command=$(printf '%s\n' "$prompt" | grep -o 'git worktree add --detach "$TMPDIR/red" [0-9a-f]*' | head -n 1)
test -n "$command"
eval "$command" >/dev/null 2>&1
red=$(cat "$TMPDIR/red/greeting.txt")
green=$(cat greeting.txt)
"#;

#[test]
fn the_reviewer_gets_the_red_side_as_its_prompt_says() {
    let reviewer = format!("{RED_SIDE}\n{TABLE} \"red: $red, green: $green\"\n");
    let scene = Scene::with_leaves(BUILDER, &reviewer, "");
    let config = scene.workspace.read("pdca.toml");
    let reviewers = leaf("reviewer");
    let told = reviewers.replace("prompt_via = \"none\"", "prompt_via = \"file\"");
    scene.workspace.config(&config.replace(&reviewers, &told));
    scene.brief("7", &[]);
    scene.pdca(&["run", "7"]).expect(0);
    assert!(summary(&scene).contains("red: hello, green: changed"), "{}", summary(&scene));
    // It was laid out in the reviewer's own copy: the user's repository has no such worktree.
    assert_eq!(scene.repo.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(scene.repo.git(&["worktree", "prune", "--dry-run", "-v"]), "");
}
