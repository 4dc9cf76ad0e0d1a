//! What is shown about a workspace is read in one process: no command that only looks starts git.

use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8PathBuf;
use pdca_e2e::Scene;
use pdca_testkit::gits;

const BUILDER: &str = "cp -R \"$PDCA_WORKSPACE/todo/$1/.\" .";
const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";
const GATE: &str =
    "\n[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"test -f greeting.txt\"\n";

/// Puts a `git` before every other that notes its arguments, and returns the file of notes and a `PATH` with it.
fn noting_git(scene: &Scene) -> (Utf8PathBuf, String) {
    let dir = scene.workspace.around().join("noting");
    fs_err::create_dir_all(&dir).expect("a directory can be made");
    let (notes, program) = (dir.join("calls"), dir.join("git"));
    let all = gits();
    let real = all.last().expect("there is a git").program.to_str().expect("its path is UTF-8");
    fs_err::write(&program, format!("#!/bin/sh\necho \"$@\" >> {notes}\nexec {real} \"$@\"\n"))
        .expect("a file can be written");
    fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
        .expect("a file can be made executable");
    #[expect(clippy::disallowed_methods, reason = "the rest of the path stays as it is")]
    let rest = std::env::var("PATH").expect("there is a PATH");
    (notes, format!("{dir}:{rest}"))
}

/// A workspace in which 1 and 2 landed, 3 and 4 are staged, 5 and 6 are sealed, and 7 and 8 wait; 6 and 8 conflict.
fn with_accepted_changes() -> Scene {
    let scene = Scene::with_leaves(BUILDER, REVIEWER, GATE);
    scene.repo.git(&["switch", "--quiet", "--create", "own-work"]);
    let build = |ids: &[&str]| {
        for id in ids {
            let file = if ["6", "8"].contains(id) { "shared.txt" } else { &format!("{id}.txt") };
            scene.workspace.write(format!("todo/{id}/{file}"), format!("by {id}\n"));
            scene.brief(id, &[]);
            scene.pdca(&["run", id]).expect(0);
        }
    };
    build(&["1", "2"]);
    scene.accept("1");
    scene.accept("2");
    scene.pdca(&["integrate"]).expect(0);
    let staging = scene.repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/pdca/"]);
    let landed = scene.repo.git(&["rev-parse", staging.trim()]);
    scene.repo.git(&["update-ref", "refs/heads/main", landed.trim()]);
    build(&["3", "4"]);
    scene.accept("3");
    scene.accept("4");
    scene.pdca(&["integrate"]).expect(0);
    build(&["5", "6", "7", "8"]);
    scene.accept("5");
    scene.accept("6");
    scene
}

#[test]
fn commands_that_only_look_start_no_git() {
    let scene = with_accepted_changes();
    let (notes, path) = noting_git(&scene);
    let env = [("PATH", path.as_str())];

    let status = scene.pdca_with(&env, &["status", "--json"]).expect(0).json();
    let rows = status["bundles"].as_array().unwrap();
    let state = |id: &str| {
        let row = rows.iter().find(|row| row["id"] == id).expect("the bundle is listed");
        row["integration"].as_str().unwrap_or("none").to_owned()
    };
    let found = ["1", "2", "3", "4", "5", "6", "7", "8"].map(state);
    let expected = ["landed", "landed", "staged", "staged", "sealed", "sealed", "none", "none"];
    assert_eq!(found, expected, "{status:#}");
    let queue = scene.pdca_with(&env, &["queue", "--json"]).expect(0).json();
    let eighth = queue["items"].as_array().unwrap().iter().find(|item| item["id"] == "8").unwrap();
    assert_eq!(eighth["forecast_conflicts"], serde_json::json!(["6"]), "{queue:#}");
    for args in [&[][..], &["status"], &["queue"], &["status", "1"], &["status", "8"]] {
        scene.pdca_with(&env, args).expect(0);
    }
    for id in ["1", "2", "3", "4", "5", "6", "7", "8"] {
        scene.pdca_with(&env, &["why", id]).expect(0);
    }
    assert!(!notes.exists(), "git was called: {}", fs_err::read_to_string(&notes).unwrap());

    // The same git notes what `doctor` asks it, so nothing escaped.
    scene.pdca_with(&env, &["doctor", "--json"]);
    assert!(fs_err::read_to_string(&notes).unwrap().contains("--version"));
}

/// A change to the workspace or to its target, after which another answer may be right.
type Mutation<'a> = (&'static str, Box<dyn Fn() + 'a>);

/// Returns changes of every kind that an answer about accepted changes depends on.
fn mutations(scene: &Scene) -> Vec<Mutation<'_>> {
    let landed = scene.repo.git(&["rev-parse", "main"]).trim().to_owned();
    let staging = scene.repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/pdca/"]);
    let staging = staging.trim().to_owned();
    let staged = scene.repo.git(&["rev-parse", &staging]).trim().to_owned();
    let file = |id: &str, name: &str| scene.workspace.bundle(id).join(name);
    let text =
        |id: &str, name: &str| fs_err::read_to_string(file(id, name)).expect("it can be done");
    let (brief, patch) = (text("5", "brief.md"), text("6", "patch.diff"));
    let results = scene.workspace.path().join("results");
    let put = move |id: &'static str, name: &'static str, text: String| -> Box<dyn Fn()> {
        let place = results.join(format!("issue_{id}")).join(name);
        Box::new(move || {
            // The same length and the same time of content: only what no program can set tells.
            let before = fs_err::metadata(&place)
                .expect("it can be done")
                .modified()
                .expect("it can be done");
            fs_err::write(&place, &text).expect("it can be done");
            std::fs::File::options()
                .append(true)
                .open(&place)
                .expect("it can be done")
                .set_modified(before)
                .expect("it can be done");
        })
    };
    let git = |args: Vec<String>| -> Box<dyn Fn() + '_> {
        Box::new(move || {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            scene.repo.git(&args);
        })
    };
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let kept = scene.workspace.path().join(".pdca/snapshot.json");
    vec![
        ("a brief is edited", put("5", "brief.md", brief.replacen("a-slug", "b-slug", 1))),
        ("the brief is as it was", put("5", "brief.md", brief)),
        ("a patch is edited", put("6", "patch.diff", patch.replacen("by 6", "by 9", 1))),
        ("the patch is as it was", put("6", "patch.diff", patch)),
        ("the branch goes back", git(words("update-ref refs/heads/main main~1"))),
        ("the branch is as it was", git(words(&format!("update-ref refs/heads/main {landed}")))),
        ("the staging branch is gone", git(words(&format!("update-ref -d {staging}")))),
        ("the staging branch is back", git(words(&format!("update-ref {staging} {staged}")))),
        ("the branch is staged", git(words(&format!("update-ref refs/heads/main {staged}")))),
        ("another branch has it", git(words(&format!("update-ref refs/heads/other {landed}")))),
        ("refs are packed", git(words("pack-refs --all"))),
        (
            "a landed change is reverted",
            Box::new(move || {
                scene.repo.git(&["switch", "--quiet", "--detach", "main"]);
                scene.repo.git(&["revert", "--no-edit", "HEAD"]);
                scene.repo.git(&["update-ref", "refs/heads/main", "HEAD"]);
                scene.repo.git(&["switch", "--quiet", "own-work"]);
            }),
        ),
        ("a checkout has the branch", git(words("switch --quiet main"))),
        ("no checkout has the branch", git(words("switch --quiet own-work"))),
        (
            "what is kept is damaged",
            Box::new(move || fs_err::write(&kept, "{\"format\":").expect("it can be done")),
        ),
    ]
}

#[test]
fn what_is_kept_is_what_would_be_derived_whatever_changes_in_between() {
    const STEPS: usize = 16;
    let scene = with_accepted_changes();
    let kept = scene.workspace.path().join(".pdca/snapshot.json");
    let status = || scene.pdca(&["status", "--json"]).expect(0).json();
    let keep = || {
        drop(fs_err::remove_file(&kept));
        scene.wait_until("the answer is kept", |_| {
            status();
            kept.exists()
        });
    };
    let mutations = mutations(&scene);
    let mut seed: u64 = 7;
    keep();
    for step in 0..STEPS {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let index = usize::try_from(seed >> 33).unwrap() % mutations.len();
        let (name, mutate) = &mutations[index];
        mutate();
        let found = status();
        drop(fs_err::remove_file(&kept));
        let derived = status();
        assert_eq!(found, derived, "step {step}: {name}");
        keep();
        assert_eq!(status(), derived, "step {step}: {name}, kept");
    }
}

/// Returns the states of accepted changes by plain git: a change is where a commit names its seal, and it is reverted if a
/// later commit there says so.
fn told_by_git(scene: &Scene, ids: &[&str]) -> Vec<String> {
    let names = |reference: &str| {
        let log = scene.repo.git(&["log", "--format=%x00%H%n%B", reference, "--"]);
        log.split('\0').map(str::to_owned).filter(|one| !one.is_empty()).collect::<Vec<_>>()
    };
    let main = names("main");
    let staging = scene.repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/pdca/"]);
    // A staging branch that lacks what the branch has cannot be merged as it was gated: it counts for nothing.
    let main_tip = scene.repo.git(&["rev-parse", "main"]);
    let has_main = |branch: &&str| {
        scene.repo.git(&["rev-list", branch, "--"]).lines().any(|commit| commit == main_tip.trim())
    };
    let staged: Vec<String> = staging.lines().filter(has_main).flat_map(names).collect();
    let state = |id: &&str| {
        let seal =
            fs_err::read(scene.workspace.bundle(id).join("seal.json")).expect("it is sealed");
        let line = format!("Pdca-Sealed: {id} {}", pdca_state::sha256_hex(&seal));
        let with = |log: &[String]| {
            let commit = log.iter().find(|one| one.lines().any(|said| said == line));
            commit.and_then(|one| one.lines().next()).map(str::to_owned)
        };
        let is_reverted = |commit: &String| {
            main.iter().any(|one| one.contains(&format!("This reverts commit {commit}.")))
        };
        let held = fs_err::read_to_string(scene.workspace.path().join(".pdca/held.json"));
        let is_held = held.is_ok_and(|text| {
            let held: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            held.get(id).is_some()
        });
        match (with(&main), with(&staged)) {
            (Some(commit), _) if is_reverted(&commit) => "reverted",
            (Some(_), _) => "landed",
            (None, Some(_)) => "staged",
            (None, None) if is_held => "held",
            (None, None) => "sealed",
        }
        .to_owned()
    };
    ids.iter().map(state).collect()
}

#[test]
fn every_state_of_a_change_is_what_git_says_whatever_happens_to_the_branches() {
    const STEPS: usize = 14;
    const IDS: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];
    let scene = with_accepted_changes();
    // 6 and 8 write the same file: one of them is held. 7 is accepted after that.
    scene.accept("8");
    scene.pdca(&["integrate"]);
    scene.accept("7");
    let commit = |reference: &str| scene.repo.git(&["rev-parse", reference]).trim().to_owned();
    let staging = scene.repo.git(&["for-each-ref", "--format=%(refname)", "refs/heads/pdca/"]);
    let staging = staging.trim().to_owned();
    let (landed, staged) = (commit("main"), commit(&staging));
    scene.repo.git(&["switch", "--quiet", "--detach", "main"]);
    scene.repo.git(&["revert", "--no-edit", "HEAD"]);
    let reverted = commit("HEAD");
    scene.repo.git(&["switch", "--quiet", "own-work"]);
    let before = format!("{landed}~1");
    let moves: [(&str, &[&str]); 8] = [
        ("landed", &["update-ref", "refs/heads/main", &landed]),
        ("one less", &["update-ref", "refs/heads/main", &before]),
        ("all of it", &["update-ref", "refs/heads/main", &staged]),
        ("reverted", &["update-ref", "refs/heads/main", &reverted]),
        ("nothing staged", &["update-ref", "-d", &staging]),
        ("staged", &["update-ref", &staging, &staged]),
        ("on another branch", &["update-ref", "refs/heads/other", &staged]),
        ("packed", &["pack-refs", "--all"]),
    ];
    let mut kinds = std::collections::BTreeSet::new();
    let mut seed: u64 = 11;
    for step in 0..STEPS {
        let status = scene.pdca(&["status", "--json"]).expect(0).json();
        let rows = status["bundles"].as_array().expect("status lists bundles");
        let found: Vec<String> = IDS
            .iter()
            .map(|id| {
                let row = rows.iter().find(|row| row["id"] == **id).expect("the bundle is listed");
                row["integration"].as_str().unwrap_or("none").to_owned()
            })
            .collect();
        assert_eq!(found, told_by_git(&scene, &IDS), "step {step}: {status:#}");
        kinds.extend(found);
        // Each once, in order, and then at random.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = usize::try_from(seed >> 33).expect("it is small") % moves.len();
        scene.repo.git(moves[if step < moves.len() { step } else { random }].1);
    }
    assert_eq!(Vec::from_iter(kinds), ["held", "landed", "reverted", "sealed", "staged"]);
}
