//! Instances of an older driver: their configuration is driven as it is, and means the same once it is migrated.

use camino::Utf8PathBuf;
use pdca_e2e::Scene;

/// A file in the shape of an older instance's; the scripts are ours.
const OLDER: &str = r#"
[driver]
worktree = true
max_passes = 20
auto_iterate = false

[tracker]
system = "github"
issue_trailer = "Fixes #{id}"

[publisher]
fix_branch_pattern = "fix/{id}-{slug}"
base_remote = "origin"

[publisher.checkouts]
"team/app" = "../app"

[leaves.builder]
mode = "command"
family = "claude"
effort = "high"
argv = ["sh", "{workspace}/bin/builder.sh", "--model", "small"]

[[leaves.builder_escalation]]
min_iteration = 2
effort = "max"
argv = ["sh", "{workspace}/bin/builder.sh", "--model", "large"]

[[leaves.builder_variant]]
model = "thorough"
effort = "xhigh"
argv = ["sh", "{workspace}/bin/builder.sh", "--model", "large"]

[[leaves.builder_variant]]
model = "hard"
effort = "xhigh"
when = { field = "difficulty", substring = ["high", "hard"] }

[leaves.sizer]
mode = "stub"

[gates]
confirm_gating_fail = true
checks = [
  { id = "C4-verify", tier = "C4", label = "verified", cmd = "sh ./bin/verify.sh", gating = true, scope = "bundle", promote_after = 3 },
]
host_ci = [
  { id = "host-words", label = "words", cmd = "test -f greeting.txt && ! grep -rq forbidden ." },
]
"#;

const BUILDER: &str = r#"cat > /dev/null
printf '%s\n' "$*" > "$PDCA_OUTPUT"
echo "change of $PDCA_ISSUE" > "change-$PDCA_ISSUE.txt"
case "$PDCA_ISSUE" in 3) echo forbidden >> "change-3.txt" ;; esac
"#;

/// As real verify scripts do: a worktree and a branch of its own in the target, red without the change and green with it.
const VERIFY: &str = r#"set -eu
branch="verify${PDCA_LANE:+-l$PDCA_LANE}"
dir="../$branch"
git -C ../app worktree prune
[ -e "$dir/.git" ] || git -C ../app worktree add -q -B "$branch" "$dir" "$PDCA_BASE"
git -C "$dir" reset -q --hard "$PDCA_BASE"
git -C "$dir" clean -fdq
if ls "$dir"/change-* >/dev/null 2>&1; then echo "green without the change"; exit 1; fi
git -C "$dir" apply "$PDCA_BUNDLE/patch.diff"
ls "$dir"/change-* >/dev/null
echo "PDCA-EVIDENCE: red without it, green with it"
"#;

fn instance() -> Scene {
    let scene = Scene::new("");
    scene.workspace.write("bin/builder.sh", BUILDER);
    scene.workspace.write("bin/verify.sh", VERIFY);
    scene.workspace.config(OLDER);
    scene
}

fn bundle(scene: &Scene, id: &str, file: &str) -> Utf8PathBuf {
    scene.workspace.path().join("results").join(format!("issue_{id}")).join(file)
}

fn read(scene: &Scene, id: &str, file: &str) -> String {
    fs_err::read_to_string(bundle(scene, id, file)).expect("the bundle has it")
}

/// Where a bundle stands; the file of an older instance is read too.
fn state(scene: &Scene, id: &str) -> String {
    let status = scene.pdca(&["--compat", "-q", "status", id, "--json"]).expect(0).json();
    status["state"].as_str().unwrap_or_else(|| panic!("{status}")).to_owned()
}

/// Which row said what, and whether it gates.
fn rows(scene: &Scene, id: &str) -> Vec<String> {
    let report: serde_json::Value =
        serde_json::from_str(&read(scene, id, "check-gates.json")).expect("it is JSON");
    let rows = report["rows"].as_array().expect("it has rows").iter();
    rows.filter(|row| row["rule_id"] != "")
        .map(|row| {
            format!("{} {} {}", row["rule_id"], row["result"], row["gating"]).replace('"', "")
        })
        .collect()
}

#[test]
fn an_older_instance_is_driven_and_migrated_it_is_driven_the_same() {
    let scene = instance();
    let carried = r#"{"items": ["C1 Spec — an earlier round asked"]}"#;
    for (flags, id) in [(&["--compat"][..], "1"), (&[][..], "2")] {
        if flags.is_empty() {
            let told = scene.pdca(&["config", "migrate", "--yes", "--json"]).expect(0).json();
            assert_eq!(told["written"], true, "{told}");
        }
        scene.brief(id, &[("Difficulty", "hard")]);
        fs_err::write(bundle(&scene, id, "deferred-findings.json"), carried)
            .expect("it can be written");
        let advice = "- NEEDS-HUMAN — the plan is thin\n";
        fs_err::write(bundle(&scene, id, "plan-advisory-x.md"), advice).expect("it can be written");
        let ran = scene.pdca(&[flags, &["run", id]].concat());
        assert_eq!(state(&scene, id), "AWAITING_SIGNOFF", "{}\n{}", ran.out, ran.err);
        // The variant for hard briefs has no program of its own.
        assert_eq!(read(&scene, id, "build-notes.md").trim(), "--model small --effort xhigh");
        assert_eq!(rows(&scene, id), ["C4-verify pass true", "host-words pass true"]);
        let summary = read(&scene, id, "SUMMARY.md");
        for item in ["- [ ] C1 Spec — an earlier round asked", "- [ ] the plan is thin"] {
            assert!(summary.contains(item), "{item} is not in\n{summary}");
        }
        if id == "1" {
            let line = "`may_write = [\"refs/heads/verify\"]` in [gates]";
            assert!(ran.err.contains(line), "{}", ran.err);
        }
    }
    let text =
        fs_err::read_to_string(scene.workspace.path().join("pdca.toml")).expect("it is there");
    let allowed = text.replacen("[gates]\n", "[gates]\nmay_write = [\"refs/heads/verify*\"]\n", 1);
    assert_ne!(text, allowed);
    scene.workspace.config(&allowed);
    scene.repo.git(&["worktree", "remove", "--force", "../verify"]);
    scene.repo.git(&["branch", "-D", "verify"]);
    scene.brief("3", &[("Do model", "thorough")]);
    let ran = scene.pdca(&["run", "3"]);
    assert!(!ran.err.contains("`may_write = "), "{}", ran.err);
    assert_eq!(read(&scene, "3", "build-notes.md").trim(), "--model large --effort xhigh");
    // What the host's CI would refuse blocks here.
    assert_eq!(rows(&scene, "3"), ["C4-verify pass true", "host-words fail true"]);
    scene.pdca(&["signoff", "3", "iterate-do", "--note", "mend it"]).expect(0);
    scene.pdca(&["run", "3"]);
    assert_eq!(read(&scene, "3", "build-notes.md").trim(), "--model large --effort max");
}

#[test]
fn a_pull_request_that_another_tool_opened_is_not_opened_again() {
    let scene = instance();
    scene.brief("1", &[]);
    scene.pdca(&["--compat", "run", "1"]);
    scene.pdca(&["--compat", "-q", "signoff", "1", "clear", "all"]).expect(0);
    scene.pdca(&["--compat", "-q", "signoff", "1", "accept"]).expect(0);
    assert_eq!(state(&scene, "1"), "COMPLETE");
    let older = r#"{"mode": "new-pr", "branch": "fix/1-x", "pr_url": "https://forge.example/pull/9", "base": "main"}"#;
    fs_err::write(bundle(&scene, "1", "publish.json"), older).expect("it can be written");
    for args in [&["--compat", "publish", "1"][..], &["--compat", "publish", "1", "--dry-run"]] {
        let ran = scene.pdca(args);
        assert_eq!(ran.code, 4, "{}\n{}", ran.out, ran.err);
        assert!(ran.err.contains("https://forge.example/pull/9"), "{}", ran.err);
    }
    assert_eq!(read(&scene, "1", "publish.json"), older);
}
