use pdca_lanes::{Lanes, Target};
use pdca_testkit::Repo;
use serde_json::Value;

use crate::exit::Exit;
use crate::process_env::Clock;
use crate::testing::{Desk, Run};

/// A workspace with one target, `app`, which has one commit.
fn desk() -> (Desk, Repo) {
    desk_with("")
}

fn desk_with(more: &str) -> (Desk, Repo) {
    let desk = Desk::new();
    let app = desk.workspace.target("app");
    app.write(".gitignore", "*.env\n/deps/\n");
    app.write("README.md", "hello\n");
    app.commit("first");
    desk.workspace.config(&format!("[[targets]]\npath = \"../app\"\n{more}"));
    (desk, app)
}

fn lanes(desk: &Desk) -> Lanes {
    Lanes::new(desk.workspace.around().join("ws.lanes"))
}

fn target(app: &Repo) -> Target {
    Target::open("app", app.path()).unwrap()
}

pdca_process::supervisor_entry!();

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {run}"))
}

/// The text about lanes without what differs between filesystems: their sizes.
fn without_sizes(run: &Run) -> String {
    let text = run.to_string();
    let is_size = |part: &str| part.ends_with(" KiB") || part.ends_with(" B");
    let parts = text.split(", ").map(|part| if is_size(part) { "[SIZE]" } else { part });
    parts.collect::<Vec<_>>().join(", ")
}

/// This many seconds after the last lane was taken.
fn after(desk: &Desk, seconds: i64) -> Clock {
    let used = lanes(desk).list().unwrap().into_iter().filter_map(|lane| lane.used).max();
    let used = used.unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    Clock::Fixed(i64::try_from(used).unwrap() + seconds)
}

#[test]
fn lanes_are_made_and_listed() {
    let (mut desk, _app) = desk();
    insta::assert_snapshot!(desk.run(&["lanes", "list"]), @"
    no lanes in [TMP]/ws.lanes
    hint: `pdca lanes provision` makes them
    ");
    insta::assert_snapshot!(desk.run(&["lanes", "provision", "--lanes", "2", "-n"]), @"
    lane 0 of app: would be made
    lane 1 of app: would be made
    ");
    insta::assert_snapshot!(desk.run(&["lanes", "provision", "--lanes", "2"]), @"
    lane 0 of app: made at 7b92703f6b51  [TMP]/ws.lanes/lane-0/app
    lane 1 of app: made at 7b92703f6b51  [TMP]/ws.lanes/lane-1/app
    --- stderr
    lane 0 of app: being made
    lane 1 of app: being made
    lane 0 of app: ready at 7b92703f6b51
    lane 1 of app: ready at 7b92703f6b51
    ");
    insta::assert_snapshot!(desk.run(&["lanes", "provision", "--lanes", "2"]), @"
    lane 0 of app: was there at 7b92703f6b51  [TMP]/ws.lanes/lane-0/app
    lane 1 of app: was there at 7b92703f6b51  [TMP]/ws.lanes/lane-1/app
    ");
    insta::assert_snapshot!(desk.run(&["lanes", "provision", "--lanes", "2", "-n"]), @"
    every lane is there
    --- exit 4
    ");
    desk.env.clock = after(&desk, 7200);
    insta::assert_snapshot!(without_sizes(&desk.run(&["lanes", "list"])), @"
    lane 0   app              [TMP]/ws.lanes/lane-0/app
             clean, at 7b92703f6b51, [SIZE], used 2 h ago
    lane 1   app              [TMP]/ws.lanes/lane-1/app
             clean, at 7b92703f6b51, [SIZE], used 2 h ago
    ");
}

#[test]
fn the_list_as_json_has_what_scripts_rely_on() {
    let (desk, app) = desk();
    assert_eq!(json(&desk.run(&["lanes", "list", "--json"]))["lanes"], Value::Array(Vec::new()));
    desk.run(&["lanes", "provision"]);
    let held = lanes(&desk).claim(0, &target(&app)).unwrap();
    fs_err::write(held.path().join("new"), "x").unwrap();
    let document = json(&desk.run(&["lanes", "list", "--json"]));
    assert_eq!((&document["schema"], &document["kind"]), (&1.into(), &"lanes".into()));
    let lane = &document["lanes"][0];
    let mut keys: Vec<&str> = lane.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "base",
            "dirty",
            "env",
            "head",
            "holder",
            "hydration",
            "in_use",
            "kind",
            "path",
            "size",
            "slot",
            "state",
            "target",
            "used"
        ]
    );
    assert_eq!(lane["slot"], 0);
    assert_eq!(lane["kind"], "reference");
    assert_eq!(lane["base"], app.head());
    assert_eq!(lane["dirty"], true);
    assert_eq!(lane["holder"], std::process::id());
    assert_eq!(lane["path"], "[TMP]/ws.lanes/lane-0/app");
    assert_eq!(lane["env"]["PDCA_LANE"], "0");
}

#[test]
fn provisioning_as_json_says_what_was_made() {
    let (desk, app) = desk();
    let document = json(&desk.run(&["lanes", "provision", "--json", "-q"]));
    assert_eq!(document["kind"], "lanes-provision");
    let lane = &document["lanes"][0];
    assert_eq!((&lane["slot"], &lane["made"]), (&0.into(), &true.into()));
    assert_eq!((&lane["target"], &lane["base"]), (&"app".into(), &app.head().into()));
    let foreseen = json(&desk.run(&["lanes", "provision", "--lanes", "2", "--json", "-n"]));
    assert_eq!(foreseen["missing"], serde_json::json!([{"slot": 1, "target": "app"}]));
}

#[test]
fn the_names_of_a_lane_are_printed_for_every_shell() {
    let (desk, _app) = desk_with("[lanes]\nports = \"20000-20010\"\n");
    let plain = |run: Run| {
        let text = run.to_string();
        let start = text.find("test_app_").unwrap() + "test_app_".len();
        text.replace(&text[start..start + 8].to_owned(), "HASHHASH")
    };
    insta::assert_snapshot!(plain(desk.run(&["lanes", "env", "1"])), @"
    export COMPOSE_PROJECT_NAME=pdca_app_HASHHASH_l1
    export PDCA_LANE=1
    export PDCA_PORT_BASE=20000
    export PDCA_TEST_DB_NAME=test_app_HASHHASH_l1
    export PDCA_TMP=[TMP]/ws.lanes/lane-1/app.tmp
    --- stderr
    note: lane 1 of app is not there yet
    ");
    insta::assert_snapshot!(plain(desk.run(&["lanes", "env", "1", "--shell", "fish", "-q"])), @"
    set -gx COMPOSE_PROJECT_NAME 'pdca_app_HASHHASH_l1'
    set -gx PDCA_LANE '1'
    set -gx PDCA_PORT_BASE '20000'
    set -gx PDCA_TEST_DB_NAME 'test_app_HASHHASH_l1'
    set -gx PDCA_TMP '[TMP]/ws.lanes/lane-1/app.tmp'
    ");
    insta::assert_snapshot!(plain(desk.run(&["lanes", "env", "1", "--shell", "json", "-q"])), @r#"
    {
      "schema": 1,
      "kind": "lane-env",
      "slot": 1,
      "target": "app",
      "env": {
        "COMPOSE_PROJECT_NAME": "pdca_app_HASHHASH_l1",
        "PDCA_LANE": "1",
        "PDCA_PORT_BASE": "20000",
        "PDCA_TEST_DB_NAME": "test_app_HASHHASH_l1",
        "PDCA_TMP": "[TMP]/ws.lanes/lane-1/app.tmp"
      }
    }
    "#);
}

#[test]
fn a_quote_in_a_path_does_not_end_the_text() {
    let (desk, _app) = desk_with("[lanes]\nroot = \"../it's\\\\here\"\n");
    let tmp = |shell: &str| {
        let run = desk.run(&["lanes", "env", "0", "--shell", shell, "-q"]);
        run.out.lines().last().unwrap().to_owned()
    };
    assert_eq!(tmp("sh"), r"export PDCA_TMP='[TMP]/it'\''s\here/lane-0/app.tmp'");
    assert_eq!(tmp("fish"), r"set -gx PDCA_TMP '[TMP]/it\'s\\here/lane-0/app.tmp'");
}

#[test]
fn a_reset_rescues_what_was_there() {
    let (desk, app) = desk();
    desk.run(&["lanes", "provision"]);
    let readme = desk.workspace.around().join("ws.lanes/lane-0/app/README.md");
    fs_err::write(&readme, "changed\n").unwrap();
    insta::assert_snapshot!(desk.run(&["lanes", "reset", "0", "-n"]), @"
    lane 0 of app: would be reset to 7b92703f6b51
      to rescue: the changes that are in it
    ");
    assert_eq!(fs_err::read_to_string(&readme).unwrap(), "changed\n");
    insta::assert_snapshot!(desk.run(&["lanes", "reset", "0"]), @"
    lane 0 of app: reset to 7b92703f6b51
      rescued: git -C [TMP]/ws.lanes/lane-0/app show fc1959014369
    ");
    assert_eq!(fs_err::read_to_string(&readme).unwrap(), "hello\n");
    let again = json(&desk.run(&["lanes", "reset", "0", "--pristine", "--json"]));
    assert_eq!(again["lanes"][0]["base"], app.head());
    assert_eq!(again["lanes"][0]["reset"], "pristine");
    assert_eq!(again["lanes"][0]["rescued"], Value::Null);
}

#[test]
fn a_removed_lane_leaves_a_bundle_and_the_command_that_reads_it() {
    let (desk, app) = desk();
    desk.run(&["lanes", "provision", "--lanes", "2"]);
    let around = desk.workspace.around();
    fs_err::write(around.join("ws.lanes/lane-1/app/new"), "work\n").unwrap();
    insta::assert_snapshot!(desk.run(&["lanes", "remove", "--all", "-n"]), @"
    lane 0 of app: would be removed
    lane 1 of app: would be removed; what is in it would be kept in a bundle
    ");
    insta::assert_snapshot!(desk.run(&["lanes", "remove", "0", "1"]), @"
    lane 0 of app: removed
    lane 1 of app: removed
      kept: [TMP]/ws.lanes/rescued/app-lane-1-038f5ba8844a.bundle
      get it back: git -C [TMP]/app fetch [TMP]/ws.lanes/rescued/app-lane-1-038f5ba8844a.bundle 'refs/*:refs/rescued/lane-1/*'
    ");
    let document = json(&desk.run(&["lanes", "list", "--json"]));
    assert_eq!(document["lanes"], Value::Array(Vec::new()));
    let bundle =
        fs_err::read_dir(around.join("ws.lanes/rescued")).unwrap().next().unwrap().unwrap();
    let bundle = bundle.path().into_os_string().into_string().unwrap();
    app.git(&["fetch", "--quiet", &bundle, "refs/*:refs/rescued/lane-1/*"]);
    let work = app.git(&["show", "refs/rescued/lane-1/pdca/rescue/lane-1:new"]);
    assert_eq!(work, "work\n");
    insta::assert_snapshot!(desk.run(&["lanes", "remove", "--all"]), @"
    there are no lanes to remove
    --- exit 4
    ");
}

#[test]
fn a_lane_in_use_stays_and_it_is_said_who_works_there() {
    let (desk, app) = desk();
    desk.run(&["lanes", "provision"]);
    let _held = lanes(&desk).claim(0, &target(&app)).unwrap();
    let run = desk.run(&["lanes", "remove", "0"]);
    let holder =
        format!("lane 0 of app: stays (lane 0 is in use by process {})\n", std::process::id());
    assert_eq!((run.out.as_str(), run.exit), (holder.as_str(), Exit::Unexpected));
    let run = desk.run(&["lanes", "reset", "0"]);
    assert_eq!(run.exit, Exit::Usage);
    assert!(run.err.contains(&format!("in use by process {}", std::process::id())), "{run}");
}

#[test]
fn a_driver_at_work_is_left_alone() {
    let (desk, _app) = desk();
    desk.run(&["lanes", "provision"]);
    let lock = desk.workspace.path().join(".pdca/driver.lock");
    fs_err::create_dir_all(lock.parent().unwrap()).unwrap();
    let _driver = pdca_process::FileLock::take(&lock, "process 7").unwrap();
    for args in [
        &["lanes", "provision", "--lanes", "2"][..],
        &["lanes", "reset", "0"],
        &["lanes", "remove", "0"],
        &["sweep", "--older-than", "0"],
    ] {
        let run = desk.run(args);
        assert_eq!(run.exit, Exit::Usage, "{args:?}: {run}");
        assert!(run.err.contains("process 7"), "{args:?}: {run}");
    }
    assert_eq!(desk.run(&["lanes", "list"]).exit, Exit::Done);
}

#[test]
fn the_doctor_names_what_is_wrong_and_the_remedy() {
    let (desk, _app) = desk();
    desk.run(&["lanes", "provision"]);
    insta::assert_snapshot!(desk.run(&["lanes", "doctor"]), @"✓ nothing is wrong with the lanes");
    let slot = desk.workspace.around().join("ws.lanes/lane-0");
    fs_err::create_dir(slot.join("stranger")).unwrap();
    fs_err::write(slot.join("app/.git/index.lock"), "").unwrap();
    insta::assert_snapshot!(desk.run(&["lanes", "doctor"]), @"
    ! note    [TMP]/ws.lanes/lane-0/app/.git/index.lock: was left by a git that is gone
              hint: nothing to do: the next use of the lane puts it in order
    ✗ broken  [TMP]/ws.lanes/lane-0/stranger: is not a lane: it has no marker
              hint: move it out of the lanes, or remove it when nothing in it is needed
    --- exit 2
    ");
    let document = json(&desk.run(&["lanes", "doctor", "--json"]));
    assert_eq!(document["findings"][1]["broken"], true);
}

#[test]
fn a_sweep_says_what_it_does_and_does_what_it_said() {
    let (mut desk, _app) = desk_with("[lanes]\nmax_age_days = 14\n");
    desk.run(&["lanes", "provision", "--lanes", "2"]);
    let kept = desk.run(&["sweep"]);
    assert_eq!(kept.exit, Exit::NothingToDo, "{kept}");
    desk.env.clock = after(&desk, 15 * 24 * 3600);
    let plan = |run: &Run| -> Vec<(Value, Value, Value)> {
        let document = json(run);
        let rows = document["lanes"].as_array().unwrap().clone();
        rows.into_iter()
            .map(|row| (row["slot"].clone(), row["decision"].clone(), row["reason"].clone()))
            .collect()
    };
    let said = plan(&desk.run(&["sweep", "--json", "-n"]));
    assert_eq!(lanes(&desk).list().unwrap().len(), 2);
    let run = desk.run(&["sweep", "--json"]);
    assert_eq!((plan(&run), run.exit), (said, Exit::Done));
    assert_eq!(lanes(&desk).list().unwrap().len(), 0);
    insta::assert_snapshot!(desk.run(&["sweep", "--config", "lanes.max_age_days=1"]).exit.code(), @"4");
}

#[test]
fn a_sweep_without_a_rule_is_refused() {
    let (desk, _app) = desk();
    insta::assert_snapshot!(desk.run(&["sweep"]), @"
    --- stderr
    error: nothing says which lanes are to go
    hint: give `--older-than DAYS` or `--min-free-gb GB`, or set `max_age_days` or `min_free_gb` in [lanes]
    --- exit 2
    ");
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let (desk, _app) = desk();
    insta::assert_snapshot!(desk.run(&["lanes", "reset", "3"]), @"
    --- stderr
    error: there is no lane 3
    hint: `pdca lanes provision` makes lanes
    --- exit 2
    ");
    desk.run(&["lanes", "provision", "--lanes", "2"]);
    insta::assert_snapshot!(desk.run(&["lanes", "remove", "1", "3"]), @"
    --- stderr
    error: there is no lane 3
    hint: lanes: 0, 1; `pdca lanes provision` makes more
    --- exit 2
    ");
    insta::assert_snapshot!(desk.run(&["lanes", "env", "0", "--target", "api"]), @"
    --- stderr
    error: there is no target `api`
    hint: one of: app
    --- exit 2
    ");
    let none = Desk::new();
    insta::assert_snapshot!(none.run(&["lanes", "provision"]), @"
    --- stderr
    error: no target is configured, so there are no lanes
    hint: add a [[targets]] with a `path` to pdca.toml
    --- exit 2
    ");
}

#[test]
fn new_lanes_are_hydrated() {
    pdca_process::testing::use_harness();
    let (desk, app) = desk_with(
        "[lanes.hydrate]\ncopy = [\"local.env\"]\ninstall = \"mkdir -p deps && echo $PDCA_LANE > deps/lane\"\nverify = [\"test\", \"-s\", \"deps/lane\"]\n",
    );
    app.write("local.env", "secret");
    insta::assert_snapshot!(desk.run(&["lanes", "provision", "--lanes", "2"]), @"
    lane 0 of app: made at 7b92703f6b51, hydrated  [TMP]/ws.lanes/lane-0/app
    lane 1 of app: made at 7b92703f6b51, hydrated  [TMP]/ws.lanes/lane-1/app
    --- stderr
    lane 0 of app: being made
    lane 1 of app: being made
    lane 0 of app: ready at 7b92703f6b51
    lane 1 of app: ready at 7b92703f6b51
    lane 0 of app: installing
    lane 0 of app: verifying
    lane 1 of app: installing
    lane 1 of app: verifying
    ");
    let lane = desk.workspace.around().join("ws.lanes/lane-1/app");
    assert_eq!(fs_err::read_to_string(lane.join("deps/lane")).unwrap(), "1\n");
    assert_eq!(fs_err::read_to_string(lane.join("local.env")).unwrap(), "secret");
    let again = json(&desk.run(&["lanes", "provision", "--json"]));
    assert_eq!(again["lanes"][0]["hydration"], "warm");
    let listed = json(&desk.run(&["lanes", "list", "--json"]));
    assert_eq!(listed["lanes"][1]["hydration"], "passed");
}

#[test]
fn a_hydration_that_fails_shows_the_end_of_its_log() {
    pdca_process::testing::use_harness();
    let (desk, _app) = desk_with("[lanes.hydrate]\ninstall = \"echo no such package; exit 9\"\n");
    insta::assert_snapshot!(desk.run(&["lanes", "provision"]), @"
    --- stderr
    lane 0 of app: being made
    lane 0 of app: ready at 7b92703f6b51
    lane 0 of app: installing
    error: install ended with exit status 9
      --> [TMP]/ws.lanes/lane-0/app.hydration/install/log
      | no such package
    hint: mend the command in [lanes.hydrate]; the next attempt begins from a clean tree
    --- exit 1
    ");
}

#[test]
fn a_mistake_in_the_config_of_lanes_has_its_line() {
    let desk = Desk::new();
    desk.workspace.config(
        "[lanes]\nkind = \"clone\"\nports = \"80-90\"\n[lanes.hydrate]\ncopy = [\"../x\"]\ninstal = \"x\"\n",
    );
    insta::assert_snapshot!(desk.run(&["lanes", "list"]), @r#"
    --- stderr
    error: `kind` in [lanes] cannot be `clone`
      --> pdca.toml:2:8
    hint: write one of: reference, worktree
    error: `ports` in [lanes]: ports below 1024 belong to the system, and 80 is one
      --> pdca.toml:3:9
    hint: `pdca config show` lists every key with its value
    error: unknown key `instal` in [lanes.hydrate]
      --> pdca.toml:6:1
    hint: did you mean `install`?
    error: `copy` in [lanes.hydrate]: "../x" is not a path inside the checkout
      --> pdca.toml:5:1
    hint: write a path relative to the root of the checkout
    --- exit 2
    "#);
}
