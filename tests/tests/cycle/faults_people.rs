//! Group F of the fault matrix: time, limits, people. The real binary, where it can show the row.

use pdca_e2e::Scene;
use pdca_e2e::cast::{REVIEWER, is_at, patient, with};
use rustix::process::Signal;

/// A checkout that cannot be made ready until the file `ready` is there.
const NEVER_READY: &str = "[lanes.hydrate]\nverify = 'test -e \"$PDCA_WORKSPACE/ready\"'\n";

/// A run in which making a checkout was tried until it was blocked.
fn blocked() -> Scene {
    let scene = Scene::with_leaves("echo built > built.txt", REVIEWER, NEVER_READY);
    scene.brief("7", &[]);
    for _ in 0..5 {
        scene.pdca(&["run", "7"]).expect(2);
    }
    scene
}

#[test]
fn f14_abort_of_a_run_at_work_stops_its_lanes_keeps_the_work_and_lands_nothing() {
    let scene = patient(&["7", "8"], "");
    let before = scene.before();
    let driver = scene.start(&["batch", "--lanes", "2", "--events", "events"]);
    scene.wait_until("both are in work", |scene| is_at("7")(scene) && is_at("8")(scene));
    let dry = scene.pdca(&["abort", "-n", "--json"]).expect(0).json();
    assert_eq!((&dry["by"], dry["kept"].as_array().map(Vec::len)), (&"driver".into(), Some(2)));
    let told = scene.pdca(&["abort", "--why", "enough", "--json"]).expect(0).json();
    assert_eq!((&told["phase"], &told["run"]), (&"aborted".into(), &dry["run"]));
    assert_eq!(driver.wait(), 130);
    let events = scene.workspace.read("events");
    let rescued: Vec<&str> = events.lines().filter(|line| line.contains("\"rescued\"")).collect();
    assert_eq!(rescued.len(), 2, "{events}");
    assert_eq!(scene.runs(), Vec::<serde_json::Value>::new());
    scene.check_oracles(&before);
}

#[test]
fn f14_abort_of_a_run_whose_driver_died_keeps_its_work_and_says_how_to_get_it_back() {
    let scene = patient(&["7"], "");
    let before = scene.before();
    let driver = scene.start(&["run", "7"]);
    scene.wait_until("it is in work", is_at("7"));
    driver.signal(Signal::KILL);
    driver.wait();
    let dry = scene.pdca(&["abort", "-n", "--json"]).expect(0).json();
    let told = scene.pdca(&["abort", "--json"]).expect(0).json();
    for (foreseen, done) in [(&dry["run"], &told["run"]), (&dry["by"], &told["by"])] {
        assert_eq!(foreseen, done);
    }
    assert_eq!(dry["kept"][0]["bundle"], told["kept"][0]["bundle"]);
    let commit = told["kept"][0]["commit"].as_str().expect("what was half done is kept");
    assert_eq!(scene.lane(0).git(&["show", &format!("{commit}:half-7.txt")]), "half\n");
    assert!(told["kept"][0]["fetch"].as_str().is_some_and(|fetch| fetch.contains(commit)));
    scene.pdca(&["abort"]).expect(4);
    scene.check_oracles(&before);
    // The bundle itself was not given up.
    scene.workspace.write("go", "");
    scene.pdca(&["run", "7"]).expect(0);
}

#[test]
fn f16_after_a_manual_fix_it_goes_on_from_the_blocked_step_only() {
    let scene = blocked();
    let before = scene.before();
    let again = scene.pdca(&["run", "7"]).expect(104);
    assert!(again.err.contains("pdca unblock 7"), "{}", again.err);
    let shown = scene.pdca(&["recover"]).expect(104);
    assert!(shown.out.contains("decide:") && shown.out.contains("pdca unblock 7"), "{}", shown.out);
    assert!(scene.pdca(&["status"]).expect(0).out.contains("7 waits for a person"));
    scene.check_oracles(&before);
    scene.workspace.write("ready", "");
    scene.pdca(&["unblock", "8"]).expect(2);
    scene.pdca(&["unblock", "7", "-n"]).expect(0);
    scene.pdca(&["run", "7"]).expect(104);
    let told = scene.pdca(&["unblock", "7", "--note", "mended", "--json"]).expect(0).json();
    let run = told["run"].as_str().expect("a run has an id");
    assert!(scene.workspace.read(format!(".pdca/runs/{run}/journal")).contains("mended"));
    scene.pdca(&["unblock", "7"]).expect(2);
    scene.pdca(&["run", "7"]).expect(0);
    assert_eq!(scene.calls(), ["builder 7", "reviewer 7"]);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
}

#[test]
fn c21_unblocked_while_a_driver_is_at_work_it_is_taken_from_the_inbox_once() {
    let scene = patient(&["7", "8"], NEVER_READY);
    scene.pdca_with(&[("PDCA_CRASH_AT", "attempt")], &["batch", "--lanes", "2"]).expect(137);
    for _ in 0..5 {
        scene.pdca(&["run", "7"]).expect(2);
    }
    let before = scene.before();
    scene.workspace.write("ready", "");
    let driver = scene.start(&["batch", "--lanes", "2"]);
    scene.wait_until("8 is at work", is_at("8"));
    let told = scene.pdca(&["unblock", "7", "--json"]).expect(0).json();
    assert_eq!(told["by"], "driver");
    assert_eq!(scene.pdca(&["unblock", "7"]).code, 2, "it is not blocked any more");
    let run = told["run"].as_str().expect("a run has an id");
    let journal = scene.workspace.read(format!(".pdca/runs/{run}/journal"));
    assert_eq!(journal.matches("\"unblocked\"").count(), 1, "{journal}");
    assert_eq!(journal.matches("\"answered\"").count(), 1, "{journal}");
    let inbox = scene.workspace.path().join(format!(".pdca/runs/{run}/inbox"));
    assert_eq!(fs_err::read_dir(inbox).expect("it is there").count(), 0);
    scene.workspace.write("go", "");
    assert_eq!(driver.wait(), 104, "it was blocked when its turn came");
    scene.check_oracles(&before);
    scene.goes_on(&["7", "8"]);
}

#[test]
fn what_waits_for_a_person_waits_on_in_a_run_over_other_bundles() {
    let scene = blocked();
    scene.workspace.write("ready", "");
    scene.brief("8", &[]);
    let ran = scene.pdca(&["batch"]).expect(104);
    assert!(ran.err.contains("pdca unblock 7"), "{}", ran.err);
    assert_eq!((scene.state("7"), scene.state("8")), ("PLANNED".into(), "AWAITING_SIGNOFF".into()));
    scene.pdca(&["unblock", "7"]).expect(0);
    scene.pdca(&["batch"]).expect(0);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
}

#[test]
fn f6_when_the_time_of_a_run_is_up_it_stops_in_order_and_the_same_command_goes_on() {
    let scene = patient(&["7"], "[driver]\nmax_duration_secs = 1\n");
    let before = scene.before();
    let ran = scene.pdca(&["run", "7"]).expect(103);
    assert!(ran.err.contains("max_duration_secs"), "{}", ran.err);
    scene.check_oracles(&before);
    scene.workspace.write("go", "");
    let more = ["run", "7", "--config", "driver.max_duration_secs=600"];
    scene.pdca(&more).expect(0);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
}

#[test]
fn a_run_that_made_all_its_calls_stops_in_order_and_goes_on_when_more_are_allowed() {
    let scene = with("echo $1 > file-$1.txt", &["7"], "[driver]\nmax_leaf_calls = 1\n");
    let before = scene.before();
    let ran = scene.pdca(&["run", "7"]).expect(103);
    assert!(ran.err.contains("raise `max_leaf_calls` in [driver]"), "{}", ran.err);
    assert_eq!(scene.calls(), ["builder 7"]);
    scene.check_oracles(&before);
    scene.pdca(&["run", "7", "--config", "driver.max_leaf_calls=2"]).expect(0);
    assert_eq!(scene.calls(), ["builder 7", "reviewer 7"]);
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
}

#[test]
fn f11_f12_little_memory_makes_fewer_lanes_and_a_full_disk_starts_nothing() {
    let scene = with("echo $1 > file-$1.txt", &["7", "8"], "");
    let before = scene.before();
    let full = ["batch", "--config", "driver.min_free_gb=999999999"];
    let ran = scene.pdca(&full).expect(103);
    assert!(ran.err.contains("have to stay free"), "{}", ran.err);
    assert_eq!((scene.calls(), scene.runs().len()), (Vec::new(), 0));
    scene.check_oracles(&before);
    let little = ["batch", "--lanes", "2", "--config", "driver.lane_memory_mb=999999999"];
    let ran = scene.pdca(&little).expect(0);
    assert!(ran.err.contains("1 of 2 lanes"), "{}", ran.err);
    assert!(!scene.workspace.around().join("ws.lanes/lane-1").exists());
}

#[test]
fn cleanup_does_what_its_dry_run_says_and_keeps_what_nobody_else_has() {
    let scene = with("echo $1 > file-$1.txt", &["7", "8"], "");
    scene.pdca(&["batch", "--lanes", "2"]).expect(0);
    let before = scene.before();
    assert_eq!(scene.pdca(&["cleanup"]).code, 4, "both wait for their sign-off");
    scene.accept("7");
    scene.pdca(&["signoff", "8", "discontinue", "--note", "no"]).expect(0);
    let leftover = scene.workspace.path().join(".pdca/runs/.new-01ARZ3NDEKTSV4RRFFQ69G5FAV");
    fs_err::create_dir_all(&leftover).expect("a directory can be made");
    // Somebody left something in a lane that no commit has.
    let path = scene.lane(1).path().to_owned();
    fs_err::write(path.join("precious.txt"), "precious").expect("a file can be written");
    let decided = |json: serde_json::Value| -> Vec<(String, String, String)> {
        let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let steps = json["steps"].as_array().expect("it says its steps").clone();
        let of = |step: &serde_json::Value| {
            (word(&step["name"]), word(&step["decision"]), word(&step["reason"]))
        };
        steps.iter().map(of).collect()
    };
    let args = ["cleanup", "--keep-days", "0", "--json"];
    let dry = scene.pdca(&[&args[..], &["-n"]].concat()).expect(0).json();
    assert!(leftover.exists() && path.exists(), "a dry run changes nothing");
    let done = scene.pdca(&args).expect(0).json();
    assert_eq!(decided(dry), decided(done.clone()));
    assert!(!leftover.exists() && !path.exists());
    let steps = done["steps"].as_array().expect("it says its steps");
    for kept in steps.iter().filter_map(|step| step["kept"].as_str()) {
        scene.repo.git(&["fetch", "-q", kept, "refs/*:refs/rescued/*"]);
    }
    let refs = scene.repo.git(&["for-each-ref", "--format=%(refname)", "refs/rescued"]);
    let has = |name: &str| {
        let shown = scene.repo.try_git(&["show", &format!("{name}:precious.txt")]);
        shown.stdout == b"precious"
    };
    assert!(refs.lines().any(has), "{refs}");
    assert_eq!(scene.pdca(&args).code, 4, "nothing is left to do");
    scene.check_oracles(&before);
}

/// The latest time of a record, in seconds of the machine's uptime.
fn latest_uptime(journal: &str) -> u64 {
    let uptime = |line: &str| line.split(' ').nth(5)?.parse::<u64>().ok();
    journal.lines().skip(1).filter_map(uptime).max().expect("records have a time") / 1000
}

/// As on a machine that slept for eight hours, `CLOCK_BOOTTIME` is ahead; `CLOCK_MONOTONIC` is not.
#[test]
fn f3_hours_of_sleep_are_no_time_of_a_run_nor_of_a_gate() {
    let gate = "[[gates.checks]]\nid = \"T1\"\ntier = \"T1\"\ntimeout_secs = 60\ncmd = \"true\"\n";
    let config = format!("[driver]\nmax_duration_secs = 3600\n\n{gate}");
    let scene = patient(&["7"], &config);
    let driver = scene.start(&["run", "7"]);
    scene.wait_until("it is in work", is_at("7"));
    let run = scene.runs()[0]["id"].as_str().expect("a run has an id").to_owned();
    driver.signal(Signal::KILL);
    driver.wait();
    scene.workspace.write("go", "");
    let hours = 8 * 3600;
    let Some(ran) = scene.after_sleep(hours, "cat /proc/uptime; exec $PDCA run 7") else { return };
    assert_eq!(ran.code, 0, "{ran:?}");
    let boot = ran.out.split('.').next().and_then(|word| word.parse::<u64>().ok());
    let monotonic = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_sec;
    let monotonic = u64::try_from(monotonic).expect("the machine is up");
    assert!(boot.is_some_and(|boot| boot > monotonic + 7 * 3600), "it was ahead: {}", ran.out);
    // Every record was timed by the clock that stands still in sleep.
    let journal = scene.workspace.read(format!(".pdca/runs/{run}/journal"));
    let latest = latest_uptime(&journal);
    assert!(latest <= monotonic + 1, "{latest} {monotonic}");
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
}

#[test]
fn f12_on_a_disk_that_runs_short_in_the_run_nothing_new_starts_and_what_runs_comes_to_its_end() {
    let small = "[lanes]\nroot = \"../small\"\n\n[driver]\nmin_free_gb = 1\n\n";
    let scene = patient(&["7", "8", "9"], small);
    let before = scene.before();
    let lanes = scene.workspace.around().join("small");
    fs_err::create_dir_all(&lanes).expect("a directory can be made");
    // A disk with a little more than what has to stay free, until two builders are at work.
    let script = "mount -t tmpfs -o size=1200m tmpfs $AROUND/small || exit 99
        $PDCA batch --lanes 2 2> $AROUND/said & driver=$!
        while [ ! -s calls/at-7 ] || [ ! -s calls/at-8 ]; do sleep 0.02; done
        head -c 200000000 /dev/zero > $AROUND/small/filler
        touch go
        wait $driver";
    let Some(ran) = scene.with_mounts(script) else { return };
    let said = fs_err::read_to_string(scene.workspace.around().join("said")).expect("it spoke");
    assert_eq!(ran.code, 103, "{ran:?} {said}");
    assert!(said.contains("have to stay free"), "{said}");
    let states = ["7", "8", "9"].map(|id| scene.state(id));
    assert_eq!(states, ["AWAITING_SIGNOFF", "AWAITING_SIGNOFF", "PLANNED"], "{said}");
    assert!(!scene.calls().contains(&"builder 9".to_owned()), "{:?}", scene.calls());
    scene.check_oracles(&before);
    scene.goes_on(&["7", "8", "9"]);
}
