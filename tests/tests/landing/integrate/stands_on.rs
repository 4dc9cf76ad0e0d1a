//! The results that a change stands on, from Do to the landing: prerequisites, rivals, stale results, real commits.

use pdca_e2e::Scene;

use crate::meeting::Meeting;

const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";

/// A workspace with one gate, and `main` free to move.
fn scene(builder: &str, gate: &str, more: &str) -> Scene {
    let rows =
        format!("{more}\n[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = '''{gate}'''\n");
    let scene = Scene::with_leaves(builder, REVIEWER, &rows);
    scene.repo.git(&["checkout", "--quiet", "--detach"]);
    scene
}

fn state(scene: &Scene, id: &str) -> String {
    let told = scene.pdca(&["--json", "status", id]).json();
    told["state"].as_str().expect("a bundle has a state").to_owned()
}

fn integration(scene: &Scene, id: &str) -> String {
    let all = scene.pdca(&["--json", "status"]).json();
    let rows = all["bundles"].as_array().expect("status lists bundles");
    let row = rows.iter().find(|row| row["id"] == id).expect("the bundle is listed");
    row["integration"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_chain_of_commits_by_others_lands_as_it_was_made() {
    // Each change needs the one before it, and is committed by its own author at its own time.
    let builder = r#"
before=$(($1 - 1))
[ "$1" = 1 ] || grep -q "line $before" chapter.txt
echo "line $1" >> chapter.txt
echo "part $1" > "part$1.txt"
GIT_AUTHOR_NAME="Author $1" GIT_AUTHOR_EMAIL="a$1@example.org" GIT_AUTHOR_DATE="@$((1600000000 + $1 * 1000)) +0200" \
GIT_COMMITTER_NAME="Author $1" GIT_COMMITTER_EMAIL="a$1@example.org" \
  git add -A
GIT_AUTHOR_NAME="Author $1" GIT_AUTHOR_EMAIL="a$1@example.org" GIT_AUTHOR_DATE="@$((1600000000 + $1 * 1000)) +0200" \
GIT_COMMITTER_NAME="Author $1" GIT_COMMITTER_EMAIL="a$1@example.org" \
  git commit -q -m "chapter: line $1

Why line $1 is needed."
"#;
    let scene = scene(builder, "true", "[integrate]\nland = \"target\"\n");
    for id in ["1", "2", "3", "4"] {
        let on = (id.parse::<u32>().unwrap() - 1).to_string();
        let fields: &[(&str, &str)] = if id == "1" { &[] } else { &[("Depends on", &on)] };
        scene.brief(id, fields);
    }
    for id in ["1", "2", "3", "4"] {
        scene.pdca(&["batch"]);
        assert_eq!(state(&scene, id), "AWAITING_SIGNOFF");
        let patch = scene.workspace.read(format!("results/issue_{id}/patch.diff"));
        assert!(!patch.contains("b/part1.txt") || id == "1", "{id} carries only its own change");
        scene.accept(id);
    }
    scene.pdca(&["integrate"]).expect(0);
    let log =
        scene.repo.git(&["log", "--reverse", "--format=%an|%ae|%ad|%s|%b", "--date=raw", "main"]);
    for id in 1..=4 {
        let at = 1_600_000_000 + id * 1000;
        let line =
            format!("Author {id}|a{id}@example.org|{at} +0200|chapter: line {id}|Why line {id}");
        assert!(log.contains(&line), "{line}\n{log}");
    }
    for id in 1..=4 {
        let text = (1..=id).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
        let commit = format!("main~{}", 4 - id);
        assert_eq!(scene.repo.git(&["show", &format!("{commit}:chapter.txt")]), text);
    }
    scene.pdca(&["verify"]).expect(0);
    assert_eq!(integration(&scene, "4"), "landed");
}

#[test]
fn eight_rivals_on_four_lanes_integrate_without_a_conflict() {
    let builder = "sed -i \"s/^line $1$/line $1 by $1/\" list.txt\n";
    let scene = scene(builder, "true", "[integrate]\nland = \"target\"\n");
    let lines = (1..=8).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
    scene.repo.write("list.txt", &lines);
    scene.repo.commit("list");
    scene.repo.git(&["branch", "--force", "main", "HEAD"]);
    for id in 1..=8 {
        scene.brief(&id.to_string(), &[("Touches", "list.txt")]);
    }
    scene.pdca(&["batch", "--lanes", "4"]).expect(0);
    // Each stands on all that were built before it, so they can be accepted in that order only.
    let mut left: Vec<String> = (1..=8).map(|id| id.to_string()).collect();
    let last = left.last().unwrap().clone();
    let early = scene.pdca(&["signoff", &last, "clear", "all", "--note", "seen"]);
    assert_eq!(early.code, 0, "{}", early.err);
    let refused = scene.pdca(&["signoff", &last, "accept"]).expect(2);
    assert!(refused.err.contains("must be accepted first"), "{}", refused.err);
    while !left.is_empty() {
        let before = left.len();
        left.retain(|id| {
            scene.pdca(&["signoff", id, "clear", "all", "--note", "seen"]);
            scene.pdca(&["signoff", id, "accept"]).code != 0
        });
        assert!(left.len() < before, "none of {left:?} can be accepted");
    }
    let done = scene.pdca(&["integrate", "--json"]).expect(0).json();
    assert_eq!(done["held"].as_array().unwrap().len(), 0, "{done}");
    let now = scene.repo.git(&["show", "main:list.txt"]);
    let expected = (1..=8).map(|n| format!("line {n} by {n}\n")).collect::<Vec<_>>().concat();
    assert_eq!(now, expected);
}

#[test]
fn a_result_whose_prerequisite_is_sent_back_is_stale_and_is_mended_by_itself() {
    let builder = r#"
echo "by $1, $(cat "$PDCA_WORKSPACE/word")" > "f$1.txt"
"#;
    let scene = scene(builder, "true", "[integrate]\nland = \"target\"\n");
    scene.workspace.write("word", "first");
    scene.brief("1", &[("Touches", "f1.txt, f2.txt")]);
    scene.brief("2", &[("Touches", "f2.txt")]);
    scene.pdca(&["batch"]).expect(0);
    // 2 was built on 1, which nobody has accepted.
    let refused = scene.pdca(&["signoff", "2", "clear", "all"]);
    assert_eq!(refused.code, 0, "{}", refused.err);
    let refused = scene.pdca(&["signoff", "2", "accept"]).expect(2);
    assert!(refused.err.contains("stands on 1"), "{}", refused.err);
    scene.workspace.write("word", "second");
    scene.pdca(&["signoff", "1", "iterate-do", "--note", "say it again"]).expect(0);
    let stale = scene.pdca(&["signoff", "2", "accept"]).expect(2);
    assert!(stale.err.contains("stale"), "{}", stale.err);
    let calls = |role: &str| {
        let log = scene.workspace.read("calls/log");
        log.lines().filter(|line| *line == format!("{role} 2")).count()
    };
    assert_eq!(calls("builder"), 1);
    scene.pdca(&["batch"]).expect(0);
    assert_eq!(calls("builder"), 1, "it was folded and checked again without a builder");
    assert_eq!(calls("reviewer"), 2, "and reviewed again");
    assert_eq!(state(&scene, "2"), "AWAITING_SIGNOFF");
    for _ in 0..2 {
        for id in ["1", "2"] {
            scene.pdca(&["signoff", id, "clear", "all", "--note", "seen"]);
            scene.pdca(&["signoff", id, "accept"]);
        }
    }
    scene.pdca(&["integrate"]).expect(0);
    assert_eq!(scene.repo.git(&["show", "main:f1.txt"]), "by 1, second\n");
    assert_eq!(scene.repo.git(&["show", "main:f2.txt"]), "by 2, first\n");
}

#[test]
fn why_says_that_a_result_that_waits_for_sign_off_is_stale() {
    let scene = scene("echo x > \"f$1.txt\"\n", "true", "");
    scene.brief("1", &[("Touches", "f1.txt, f2.txt")]);
    scene.brief("2", &[("Touches", "f2.txt")]);
    scene.pdca(&["batch"]).expect(0);
    assert!(!scene.pdca(&["why", "2"]).expect(0).out.contains("stale"));
    scene.pdca(&["signoff", "1", "iterate-do", "--note", "say it again"]).expect(0);
    let why = scene.pdca(&["why", "2"]).expect(0).out;
    assert!(why.contains("2 is AWAITING_SIGNOFF") && why.contains("stale: "), "{why}");
}

#[test]
fn what_was_not_asked_for_is_not_in_the_base() {
    let builder = "ls > \"seen$1.txt\"\necho x > \"f$1.txt\"\n";
    let scene = scene(builder, "true", "");
    scene.brief("1", &[]);
    scene.pdca(&["run", "1"]).expect(0);
    scene.accept("1");
    scene.brief("2", &[]);
    scene.brief("3", &[("Depends on", "1")]);
    let plan = scene.pdca(&["plan"]).expect(0).out;
    assert!(
        plan.contains("built on  beyond the branch, if it started now\n  3 on        1\n"),
        "{plan}"
    );
    let plan = scene.pdca(&["plan", "--json"]).expect(0).json();
    assert_eq!(plan["stands_on"], serde_json::json!({ "3": ["1"] }));
    scene.pdca(&["batch"]).expect(0);
    let seen = |id: &str| scene.workspace.read(format!("results/issue_{id}/patch.diff"));
    assert!(!seen("2").contains("+f1.txt"), "2 neither needs nor touches what 1 made");
    assert!(seen("3").contains("+f1.txt"), "3 needs it");
}

#[test]
fn every_attempt_is_on_a_branch_of_its_own_whatever_its_lane_is() {
    for kind in ["reference", "worktree"] {
        let builder = "git symbolic-ref --short HEAD > \"branch$1.txt\"\n";
        let scene = scene(builder, "true", &format!("[lanes]\nkind = \"{kind}\"\n"));
        let ids: Vec<String> = (1..=9).map(|id| id.to_string()).collect();
        for id in &ids {
            scene.brief(id, &[]);
        }
        let before = scene.repo.git(&["rev-parse", "main", "HEAD"]);
        scene.pdca(&["batch", "--lanes", "3"]).expect(0);
        let mut branches = std::collections::BTreeSet::new();
        for id in &ids {
            let patch = scene.workspace.read(format!("results/issue_{id}/patch.diff"));
            let branch = patch.lines().find_map(|line| line.strip_prefix("+pdca/"));
            let branch = branch.expect("HEAD was on a branch").to_owned();
            let (run, attempt) = branch.split_once('/').expect("the run is in its name");
            assert_eq!((run.len(), attempt), (8, format!("{id}.g1").as_str()), "{kind}");
            branches.insert(branch);
        }
        assert_eq!(branches.len(), 9);
        assert_eq!(scene.repo.git(&["rev-parse", "main", "HEAD"]), before);
    }
}

#[test]
fn a_change_that_was_reverted_has_not_landed_until_the_revert_is_reverted() {
    let scene = Meeting::with("true", "[integrate]\nland = \"target\"\n");
    scene.accepted("1", "a.txt", "a\n");
    scene.integrate(&[]).expect(0);
    let of = || integration(&scene.scene, "1");
    assert_eq!(of(), "landed");
    let elsewhere = scene.scene.workspace.around().join("elsewhere");
    let repo = &scene.scene.repo;
    repo.git(&["worktree", "add", "--quiet", "--detach", elsewhere.as_str(), "main"]);
    let other = pdca_testkit::Repo::existing(&elsewhere);
    let move_main = || {
        let at = other.git(&["rev-parse", "HEAD"]);
        repo.git(&["update-ref", "refs/heads/main", at.trim()]);
    };
    other.git(&["revert", "--no-edit", "HEAD"]);
    move_main();
    assert_eq!(of(), "reverted");
    other.git(&["revert", "--no-edit", "HEAD"]);
    move_main();
    assert_eq!(of(), "landed");
    repo.git(&["worktree", "remove", "--force", elsewhere.as_str()]);
}

#[test]
fn a_builder_cannot_claim_in_a_message_that_another_change_landed() {
    let builder = r#"
echo x > "f$1.txt"
git add -A
git -c user.name=b -c user.email=b@x commit -q -m "sly

Pdca-Sealed: 1 $(cat "$PDCA_WORKSPACE/digest" 2>/dev/null || echo none)"
"#;
    let scene = scene(builder, "true", "[integrate]\nland = \"target\"\n");
    scene.brief("1", &[]);
    scene.pdca(&["run", "1"]).expect(0);
    scene.accept("1");
    let seal = fs_err::read(scene.workspace.path().join("results/issue_1/seal.json")).unwrap();
    scene.workspace.write("digest", pdca_state::sha256_hex(&seal));
    scene.brief("2", &[]);
    scene.pdca(&["run", "2"]).expect(0);
    scene.accept("2");
    scene.pdca(&["integrate", "2"]).expect(0);
    assert_eq!(integration(&scene, "2"), "landed");
    assert_eq!(integration(&scene, "1"), "sealed", "its commits are nowhere");
    scene.pdca(&["integrate"]).expect(0);
    assert!(scene.repo.git(&["ls-tree", "--name-only", "main"]).contains("f1.txt"));
}

#[test]
fn commits_that_are_not_one_line_become_one_and_work_goes_on() {
    let builder = r"
git config user.name b; git config user.email b@x
git checkout -q -b side
echo side > side.txt; git add -A; git commit -q -m side
git checkout -q -
echo own > own.txt; git add -A; git commit -q -m own
git merge -q --no-edit side
";
    let scene = scene(builder, "true", "[integrate]\nland = \"target\"\n");
    scene.brief("1", &[]);
    scene.pdca(&["run", "1"]).expect(0);
    scene.accept("1");
    scene.pdca(&["integrate"]).expect(0);
    let files = scene.repo.git(&["ls-tree", "--name-only", "main"]);
    assert!(files.contains("side.txt") && files.contains("own.txt"), "{files}");
    assert_eq!(scene.repo.git(&["rev-list", "--count", "--merges", "main"]).trim(), "0");
    assert_eq!(scene.repo.git(&["log", "-1", "--format=%s", "main"]).trim(), "a slug");
}

#[test]
fn after_sixteen_landings_git_answers_as_in_any_repository() {
    let scene = Meeting::with(
        "true",
        "[project]\nauthor = \"Eve <eve@example.org>\"\n[integrate]\nland = \"target\"\n",
    );
    let first = scene.at("main");
    for id in 1..=16 {
        let id = id.to_string();
        scene.accepted(&id, &format!("f{id}.txt"), "x\n");
        if id.parse::<u32>().unwrap() % 4 == 0 {
            scene.integrate(&[]).expect(0);
        }
    }
    let repo = &scene.scene.repo;
    let count = |range: &str| repo.git(&["rev-list", "--count", range]).trim().to_owned();
    assert_eq!(count(&format!("{first}..main")), "16");
    assert_eq!(count(&format!("main..{first}")), "0");
    let since = repo.git(&["rev-list", "--count", "--since=2.days.ago", &format!("{first}..main")]);
    assert_eq!(since.trim(), "16");
    let who = repo.git(&["shortlog", "--summary", "--email", &format!("{first}..main")]);
    assert_eq!(who.trim(), "16\tEve <eve@example.org>");
    let dates = repo.git(&["log", "--reverse", "--format=%ct", "main"]);
    let dates: Vec<i64> = dates.lines().map(|line| line.parse().unwrap()).collect();
    assert!(dates.is_sorted(), "{dates:?}");
    let blame = repo.git(&["blame", "--porcelain", "main", "--", "f7.txt"]);
    assert!(blame.contains("author Eve"), "{blame}");
    for id in 1..=16 {
        assert_eq!(integration(&scene.scene, &id.to_string()), "landed");
    }
}

#[test]
fn a_change_is_staged_then_landed_here_then_landed_at_the_remote() {
    let scene = Meeting::new("true");
    let remote = scene.scene.workspace.around().join("remote.git");
    let repo = &scene.scene.repo;
    repo.git(&["init", "--quiet", "--bare", "-b", "main", remote.as_str()]);
    scene.accepted("1", "a.txt", "a\n");
    scene.integrate(&[]).expect(0);
    let shown = || scene.pdca(&["status"]).out;
    assert!(shown().contains("[staged: pdca/staging/main]"), "{}", shown());
    repo.git(&["update-ref", "refs/heads/main", "refs/heads/pdca/staging/main"]);
    assert!(shown().contains("[landed: main]"), "{}", shown());
    // The staging branch is merged, so cleanup takes it away.
    scene.pdca(&["cleanup"]).expect(0);
    let branches = repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/pdca/"]);
    assert_eq!(branches.trim(), "");
    repo.git(&["push", "--quiet", remote.as_str(), "main"]);
    repo.git(&["update-ref", "refs/remotes/origin/main", "refs/heads/main"]);
    assert!(shown().contains("[landed: origin/main]"), "{}", shown());
    repo.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
}

#[test]
fn a_staging_branch_goes_on_and_is_folded_anew_when_the_branch_moved() {
    let scene = Meeting::new("true");
    let staging = "refs/heads/pdca/staging/main";
    scene.accepted("1", "a.txt", "a\n");
    scene.integrate(&[]).expect(0);
    let first = scene.at(staging);
    scene.accepted("2", "b.txt", "b\n");
    scene.integrate(&[]).expect(0);
    let repo = &scene.scene.repo;
    repo.git(&["merge-base", "--is-ancestor", &first, staging]);
    scene.commit_to_main("other.txt", "by somebody else\n");
    assert_eq!(integration(&scene.scene, "1"), "sealed", "it is staged on what main was");
    scene.integrate(&[]).expect(0);
    repo.git(&["merge-base", "--is-ancestor", "main", staging]);
    for file in ["a.txt", "b.txt", "other.txt"] {
        repo.git(&["cat-file", "-e", &format!("{staging}:{file}")]);
    }
    // Somebody's own commit on it is never folded away.
    let elsewhere = scene.scene.workspace.around().join("elsewhere");
    repo.git(&["worktree", "add", "--quiet", "--detach", elsewhere.as_str(), staging]);
    let other = pdca_testkit::Repo::existing(&elsewhere);
    other.write("mine.txt", "mine\n");
    let own = other.commit("my own");
    repo.git(&["update-ref", staging, own.trim()]);
    repo.git(&["worktree", "remove", "--force", elsewhere.as_str()]);
    scene.accepted("3", "c.txt", "c\n");
    let refused = scene.integrate(&[]).expect(2);
    assert!(refused.err.contains("no sealed change brought"), "{}", refused.err);
    assert_eq!(scene.at(staging), own.trim());
}
