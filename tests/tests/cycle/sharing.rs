//! Blocks that last, bundles that two workspaces share, ids that are one name on some file systems.

use pdca_e2e::cast::{REVIEWER, is_at, patient, with};
use pdca_e2e::{Ran, Scene};
use rustix::process::Signal;

/// A checkout that cannot be made ready until the file `ready` is there; only for bundle 7.
const NEVER_READY: &str = "[lanes.hydrate]\nverify = 'test -e \"$PDCA_WORKSPACE/ready\"'\n";

/// Bundle 7 is blocked, because its checkout was never ready.
fn blocked() -> Scene {
    let scene = Scene::with_leaves("echo built > \"built-$1.txt\"", REVIEWER, NEVER_READY);
    scene.brief("7", &[]);
    for _ in 0..5 {
        scene.pdca(&["run", "7"]).expect(2);
    }
    scene.workspace.write("ready", "");
    scene
}

/// The name of the block of a bundle, as `status --json` has it.
fn block_of(scene: &Scene, id: &str) -> Option<String> {
    let status = scene.pdca(&["status", "--json"]).expect(0).json();
    let rows = status["bundles"].as_array().expect("status lists bundles");
    let row = rows.iter().find(|row| row["id"] == id).expect("the bundle is listed");
    row["blocked"].as_str().map(str::to_owned)
}

#[test]
fn a_block_lasts_over_other_runs_until_a_person_lifts_it() {
    let scene = blocked();
    let ids: Vec<String> = (20..30).map(|id| id.to_string()).collect();
    for id in &ids {
        scene.brief(id, &[]);
    }
    assert_eq!(block_of(&scene, "7").as_deref(), Some("blocked_recovery"));
    for id in &ids[..3] {
        scene.pdca(&["run", id]).expect(0);
        assert_eq!(block_of(&scene, "7").as_deref(), Some("blocked_recovery"), "after {id}");
    }
    scene.pdca(&["recover"]).expect(104);
    scene.pdca(&["cleanup"]);
    scene.pdca(&["batch", "--lanes", "3"]);
    for id in &ids {
        assert_eq!(scene.state(id), "AWAITING_SIGNOFF");
    }
    assert_eq!(scene.state("7"), "PLANNED");
    let why = scene.pdca(&["why", "7", "--json"]).expect(0).json();
    assert_eq!(why["next"], "pdca unblock 7");
    assert!(why["reasons"].to_string().contains("blocked_recovery: tried 5 times"), "{why}");
    let status = scene.pdca(&["status"]).expect(0).out;
    assert!(
        status.contains("[blocked_recovery]")
            && status.contains("7 waits for a person (blocked_recovery):")
    );
    scene.pdca(&["run", "7"]).expect(104);
    scene.paste("pdca unblock 7").expect(0);
    assert_eq!(block_of(&scene, "7"), None);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
    assert_eq!(scene.runs(), Vec::<serde_json::Value>::new());
}

#[test]
fn a_block_ends_with_a_bundle_that_was_given_up() {
    let scene = blocked();
    scene.brief("8", &[]);
    scene.pdca(&["signoff", "7", "discontinue", "--note", "no longer wanted"]).expect(0);
    scene.pdca(&["run", "8"]).expect(0);
    assert_eq!(scene.runs(), Vec::<serde_json::Value>::new());
}

#[test]
fn a_batch_waits_longer_after_each_failure_of_the_machine_and_a_person_need_not() {
    let scene = Scene::with_leaves("echo built > built.txt", REVIEWER, NEVER_READY);
    scene.brief("7", &[]);
    // What happened once may be over: the next batch tries at once.
    scene.pdca(&["run", "7"]).expect(2);
    scene.pdca(&["batch"]).expect(2);
    for _ in 0..3 {
        let ran = scene.pdca(&["batch"]);
        assert!(
            ran.err.contains("is left alone") && ran.err.contains("tried again in"),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("pdca run 7"), "{}", ran.err);
    }
    scene.pdca(&["run", "7"]).expect(2);
    scene.workspace.write("ready", "");
    scene.pdca(&["run", "7"]).expect(0);
}

/// A second workspace beside the first, with the same bundles and a target of its own.
fn beside(scene: &Scene) -> camino::Utf8PathBuf {
    let around = scene.workspace.around();
    let other = around.join("other");
    fs_err::create_dir_all(other.join("calls")).expect("a file can be written");
    let app = around.join("app2");
    scene.repo.git(&["clone", "--quiet", scene.repo.path().as_str(), app.as_str()]);
    let config = scene
        .workspace
        .read("pdca.toml")
        .replace("../app", "../app2")
        .replace("{workspace}/leaves", &format!("{}/leaves", scene.workspace.path()));
    let paths = "[paths]\nbundle_root = \"../ws/results\"\n\n";
    fs_err::write(other.join("pdca.toml"), format!("{paths}{config}"))
        .expect("a file can be written");
    other
}

fn run_in(scene: &Scene, dir: &camino::Utf8Path, args: &[&str]) -> Ran {
    let mut all = vec!["-C", dir.as_str()];
    all.extend(args);
    scene.pdca(&all)
}

#[test]
fn two_workspaces_with_one_bundle_root_never_drive_one_bundle_at_once() {
    let scene = patient(&["7", "8"], "");
    let other = beside(&scene);
    let driver = scene.start(&["run", "7"]);
    scene.wait_until("it is in work", is_at("7"));
    let calls = scene.calls().len();
    let refused = run_in(&scene, &other, &["run", "7"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("issue_7 is held by"), "{}", refused.err);
    let refused = run_in(&scene, &other, &["signoff", "7", "discontinue", "--note", "x"]);
    assert_ne!(refused.code, 0, "{}", refused.err);
    assert_eq!(scene.calls().len(), calls, "no second builder was started");
    let seen = run_in(&scene, &other, &["why", "7"]).expect(0).out;
    assert!(seen.contains("in work") && seen.contains("(process "), "{seen}");
    // The kernel gives the lock up with its holder, however that dies.
    driver.signal(Signal::KILL);
    driver.wait();
    run_in(&scene, &other, &["signoff", "7", "discontinue", "--note", "x"]).expect(0);
    assert_eq!(scene.state("7"), "DISCONTINUED");
}

#[test]
fn beside_a_driver_at_work_recovery_proposes_nothing_and_after_a_signal_nobody_died() {
    let scene = patient(&["7", "8", "9"], "");
    let driver = scene.start(&["batch", "--lanes", "2"]);
    scene.wait_until("two are in work", |scene| is_at("7")(scene) && is_at("8")(scene));
    let seen = scene.pdca(&["recover", "-n", "--json"]).expect(4).json();
    let run = &seen["runs"][0];
    assert_eq!((&run["action"], &run["driver"]["liveness"]), (&"leave".into(), &"alive".into()));
    for bundle in run["bundles"].as_array().unwrap() {
        assert_eq!(bundle["action"], "noop", "{bundle}");
    }
    driver.signal(Signal::INT);
    assert_eq!(driver.wait(), 130);
    let status = scene.pdca(&["status"]).expect(0).out;
    assert!(status.contains("stopped by process") && !status.contains("died"), "{status}");
    let json = scene.pdca(&["status", "--json"]).expect(0).json();
    assert_eq!(json["runs"][0]["driver"]["cut_short"], false);
    scene.workspace.write("go", "");
    let ran = scene.pdca(&["batch"]).expect(0);
    assert!(!ran.err.contains("died"), "{}", ran.err);
}

#[test]
fn a_driver_that_was_killed_is_said_to_have_died() {
    let scene = patient(&["7"], "");
    let driver = scene.start(&["run", "7"]);
    scene.wait_until("it is in work", is_at("7"));
    driver.signal(Signal::KILL);
    driver.wait();
    assert!(scene.pdca(&["status"]).expect(0).out.contains("its driver died"));
}

#[test]
fn ids_that_differ_only_in_case_are_refused_by_name() {
    let scene = with("echo x > x.txt", &["abc", "9"], "");
    let refused = scene.pdca(&["new", "ABC"]).expect(2);
    assert!(refused.err.contains("`issue_ABC` and `issue_abc` differ only in case"));
    scene.brief("ABC", &[]);
    for command in [
        &["plan"][..],
        &["batch"],
        &["run", "abc"],
        &["run", "9"],
        &["signoff", "ABC", "show"],
        &["integrate"],
    ] {
        let refused = scene.pdca(command).expect(2);
        assert!(refused.err.contains("differ only in case"), "{command:?}: {}", refused.err);
        assert!(refused.err.contains("issue_abc") && refused.err.contains("issue_ABC"));
    }
    assert_eq!(scene.calls(), Vec::<String>::new());
    let status = scene.pdca(&["status"]).expect(0).out;
    assert!(status.contains("issue_abc") && status.contains("issue_ABC"), "{status}");
    let root = scene.workspace.path().join("results");
    fs_err::rename(root.join("issue_ABC"), root.join("issue_ABC-2")).unwrap();
    scene.pdca(&["batch"]).expect(0);
}

#[test]
fn what_the_user_s_file_says_about_walls_counts_only_when_it_is_trusted() {
    let scene = with("echo x > x.txt", &["7"], "");
    let file = scene.workspace.around().join("pdca/config.toml");
    fs_err::create_dir_all(file.parent().unwrap()).unwrap();
    let text = "[project]\nauthor = \"Ada <ada@example.org>\"\n[gates]\nsandbox = \"off\"\n";
    fs_err::write(&file, text).unwrap();
    let sandbox = |args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["config", "show", "gates.sandbox"]);
        scene.pdca(&all).expect(0)
    };
    let shown = sandbox(&[]);
    assert!(shown.out.starts_with("gates.sandbox = \"auto\""), "{}", shown.out);
    assert!(shown.err.contains("config.toml:4: `gates.sandbox` does not count"), "{}", shown.err);
    assert!(scene.pdca(&["config", "show", "project.author"]).expect(0).out.contains("Ada"));
    assert!(sandbox(&["--trust-user-config"]).out.contains("\"off\""));
    assert!(sandbox(&[]).out.contains("\"auto\""), "a flag is for one command");
    scene.pdca(&["config", "trust", "-n"]).expect(0);
    assert!(sandbox(&[]).out.contains("\"auto\""));
    scene.pdca(&["config", "trust"]).expect(0);
    let shown = sandbox(&[]);
    assert!(shown.out.contains("\"off\"") && !shown.err.contains("does not count"));
    fs_err::write(&file, format!("{text}# one more byte\n")).unwrap();
    assert!(sandbox(&[]).out.contains("\"auto\""));
    fs_err::write(&file, "[gates]\nsandbx = \"off\"\n").unwrap();
    let refused = scene.pdca(&["run", "7"]).expect(2);
    assert!(refused.err.contains("config.toml:2"), "{}", refused.err);
}

#[test]
fn no_leaf_writes_the_user_s_file_where_a_wall_stands() {
    let builder = "echo x > x.txt\necho '[gates]' >> \"$XDG_CONFIG_HOME/pdca/config.toml\" || true";
    let scene = with(builder, &["7"], "");
    let held = pdca_process::sandbox_support();
    if !matches!(held, pdca_process::SandboxKind::Landlock { .. }) {
        return;
    }
    let file = scene.workspace.around().join("pdca/config.toml");
    fs_err::create_dir_all(file.parent().unwrap()).unwrap();
    let text = "[driver]\nlanes = 1\n";
    fs_err::write(&file, text).unwrap();
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(fs_err::read_to_string(&file).unwrap(), text);
}

#[test]
fn another_program_than_in_the_run_before_is_told_with_its_line() {
    let scene = with("echo x > x.txt", &["7", "8", "9"], "");
    let first = scene.pdca(&["run", "7"]).expect(0);
    assert!(!first.err.contains("in the run before"), "{}", first.err);
    let config = scene.workspace.read("pdca.toml");
    let other = config.replace("[leaves.builder]", "[leaves.builder]\nsandbox = \"off\"");
    scene.workspace.config(&other);
    let second = scene.pdca(&["run", "8"]).expect(0);
    let told = "`leaves.builder.sandbox` was \"auto\" in the run before, and is \"off\"";
    assert!(second.err.contains("pdca.toml:") && second.err.contains(told), "{}", second.err);
    assert!(!scene.pdca(&["run", "9"]).expect(0).err.contains("in the run before"));
}
