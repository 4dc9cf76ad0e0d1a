//! Group C of the fault matrix: several at once. Drivers, and the user in the same repository.

#![expect(clippy::print_stdout, reason = "how long it took is said and not asserted")]

use pdca_e2e::Scene;
use pdca_e2e::cast::{is_at, patient, with};
use pdca_journal::{
    Admission, HostScope, Journal, Moment, ProcessIdentity, RecoveryAction, Runs, next_epoch,
};
use rustix::process::Signal;

/// A driver at work on the bundle 7, which waits.
fn at_work(scene: &Scene) -> pdca_e2e::Started {
    let driver = scene.start(&["run", "7"]);
    scene.wait_until("it is in work", is_at("7"));
    driver
}

#[test]
fn c1_c2_a_second_driver_is_refused_by_every_way_to_the_same_repository() {
    let scene = patient(&["7"], "");
    let before = scene.before();
    let driver = at_work(&scene);
    let around = scene.workspace.around();
    // Another workspace with the same repository: by its path, by a link, by another worktree of it.
    let worktree = around.join("tree");
    scene.repo.git(&["worktree", "add", "-q", "--detach", worktree.as_str()]);
    fs_err::os::unix::fs::symlink(scene.repo.path(), around.join("link")).expect("a link");
    for (name, path) in [("plain", "../app"), ("linked", "../link"), ("tree", "../tree")] {
        let other = around.join(format!("other-{name}"));
        fs_err::create_dir_all(&other).expect("a directory can be made");
        let config = format!("[[targets]]\nname = \"app\"\npath = \"{path}\"\nbranch = \"main\"\n");
        fs_err::write(other.join("pdca.toml"), config).expect("a file can be written");
        scene.pdca(&["-C", other.as_str(), "new", "1", "--title", "other"]).expect(0);
        let brief = other.join("results/issue_1/brief.md");
        fs_err::write(&brief, "- **Slug:** other\n- **Repo + branch target:** app @ main\n")
            .expect("a file can be written");
        let begun = std::time::Instant::now();
        let second = scene.pdca(&["-C", other.as_str(), "run", "1"]).expect(2);
        println!("refused through {name} after {} ms", begun.elapsed().as_millis());
        let pid = driver.pid().as_raw_nonzero().to_string();
        assert!(second.err.contains("pdca.lock is held by process"), "{name}: {}", second.err);
        assert!(second.err.contains(&pid), "{name}: {}", second.err);
        assert!(!other.join(".pdca/runs").exists(), "{name}: nothing was begun");
    }
    scene.repo.git(&["worktree", "remove", "--force", worktree.as_str()]);
    scene.workspace.write("go", "");
    assert_eq!(driver.wait(), 0);
    scene.check_oracles(&before);
}

#[test]
fn c2_a_second_driver_through_a_bind_mount_is_refused_and_told_who_is_at_work() {
    let scene = patient(&["7"], "");
    let before = scene.before();
    let driver = at_work(&scene);
    let other = scene.workspace.around().join("other");
    fs_err::create_dir_all(other.join("results/issue_1")).expect("a directory can be made");
    fs_err::create_dir_all(scene.workspace.around().join("mounted")).expect("the same");
    let config = "[[targets]]\nname = \"app\"\npath = \"../mounted\"\nbranch = \"main\"\n";
    fs_err::write(other.join("pdca.toml"), config).expect("a file can be written");
    let brief = "- **Slug:** other\n- **Repo + branch target:** app @ main\n";
    fs_err::write(other.join("results/issue_1/brief.md"), brief).expect("the same");
    let script = "mount --bind $AROUND/app $AROUND/mounted && exec $PDCA -C $AROUND/other run 1";
    if let Some(second) = scene.with_mounts(script) {
        let pid = driver.pid().as_raw_nonzero().to_string();
        assert_eq!(second.code, 2, "{second:?}");
        assert!(second.err.contains("pdca.lock is held by process"), "{}", second.err);
        assert!(second.err.contains(&pid), "{}", second.err);
        assert!(!other.join(".pdca/runs").exists(), "nothing was begun");
    }
    scene.workspace.write("go", "");
    assert_eq!(driver.wait(), 0);
    scene.check_oracles(&before);
}

/// Now, by the clock of the machine.
fn moment() -> Moment {
    let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(uptime.tv_sec).expect("the machine is up");
    let wall = "2026-11-16T08:00:00Z".parse().expect("a time");
    Moment { wall, uptime: std::time::Duration::from_secs(seconds) }
}

#[test]
fn c4_a_driver_that_sleeps_through_a_takeover_changes_nothing_when_it_wakes() {
    let scene = patient(&["7"], "");
    let before = scene.before();
    let driver = at_work(&scene);
    driver.signal(Signal::STOP);
    // Somebody takes the run over, and lets the old driver live.
    let runs = Runs::new(scene.workspace.path().join(".pdca/runs"));
    let run = runs.list().expect("runs can be listed").pop().expect("there is one");
    let lock = scene.repo.path().join(".git/pdca.lock");
    let admission = Admission::take_over([lock]).expect("the lock can be replaced");
    let state = runs.find(&run).found.expect("it can be read").state;
    let me =
        ProcessIdentity::of(&HostScope::here().expect("this is somewhere"), std::process::id());
    let epoch = next_epoch([state.epoch]).expect("an epoch is left");
    let me = me.expect("this process is alive");
    let taken = Journal::open(&runs, &admission, &run, epoch, moment(), me, true).expect("taken");
    let journal = scene.workspace.read(format!(".pdca/runs/{run}/journal"));
    scene.workspace.write("go", "");
    driver.signal(Signal::CONT);
    let code = driver.wait();
    assert_ne!(code, 0, "it found out");
    assert_eq!(scene.workspace.read(format!(".pdca/runs/{run}/journal")), journal);
    assert!(!scene.workspace.has("results/issue_7/patch.diff"), "nothing was published");
    drop((taken, admission));
    scene.check_oracles(&before);
    scene.goes_on(&["7"]);
}

#[test]
fn c5_a_run_that_is_taken_over_has_its_driver_ended_and_its_bundle_claimed_again() {
    let scene = patient(&["7"], "");
    let before = scene.before();
    let driver = at_work(&scene);
    driver.signal(Signal::STOP);
    let dry = scene.pdca(&["recover", "--take-over", "-n", "--json"]).expect(0).json();
    assert_eq!(dry["runs"][0]["action"], "take-over");
    let told = scene.pdca(&["recover", "--take-over", "--json"]).expect(0).json();
    let run = &told["runs"][0];
    assert_eq!((&run["action"], &run["done"]), (&"take-over".into(), &true.into()));
    assert_eq!(run["id"], dry["runs"][0]["id"]);
    assert_eq!(driver.wait(), 128 + 9);
    assert_eq!(run["bundles"][0]["action"], "mark-interrupted");
    let runs = Runs::new(scene.workspace.path().join(".pdca/runs"));
    let id = runs.list().expect("runs can be listed").pop().expect("there is one");
    let state = runs.find(&id).found.expect("it can be read").state;
    let last = state.reconciled.expect("what was decided is on record");
    assert_eq!(last.action, RecoveryAction::MarkInterrupted);
    scene.check_oracles(&before);
    scene.goes_on(&["7"]);
}

#[test]
fn b21_a_run_of_a_driver_on_another_host_is_shown_and_not_touched() {
    let scene = patient(&["7"], "");
    let driver = at_work(&scene);
    driver.signal(Signal::KILL);
    driver.wait();
    // The record of a driver that cannot be seen from here.
    let runs = Runs::new(scene.workspace.path().join(".pdca/runs"));
    let run = runs.list().expect("runs can be listed").pop().expect("there is one");
    let state = runs.find(&run).found.expect("it can be read").state;
    let elsewhere = HostScope { host: "elsewhere".to_owned(), ..state.driver.place.clone() };
    let far = ProcessIdentity { place: elsewhere, ..state.driver.clone() };
    let lock = scene.repo.path().join(".git/pdca.lock");
    let admission = Admission::take([lock]).expect("nobody holds it");
    let epoch = next_epoch([state.epoch]).expect("an epoch is left");
    drop(Journal::open(&runs, &admission, &run, epoch, moment(), far, false).expect("taken"));
    drop(admission);
    let journal = scene.workspace.read(format!(".pdca/runs/{run}/journal"));
    for args in [&["recover"][..], &["recover", "--take-over"], &["abort"], &["unblock"]] {
        let told = scene.pdca(args).expect(104);
        assert!(told.out.contains("elsewhere") || told.err.contains("elsewhere"), "{told:?}");
    }
    assert_eq!(scene.runs()[0]["driver"]["liveness"], "unknown");
    assert_eq!(scene.workspace.read(format!(".pdca/runs/{run}/journal")), journal);
}

#[test]
fn c9_c11_the_user_may_collect_garbage_and_switch_branches_while_a_run_works() {
    let scene = patient(&["7"], "");
    scene.repo.git(&["branch", "mine"]);
    let driver = at_work(&scene);
    scene.repo.git(&["gc", "-q", "--prune=now"]);
    scene.repo.git(&["checkout", "-q", "mine"]);
    scene.repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    scene.repo.git(&["gc", "-q", "--prune=now"]);
    let before = scene.before();
    scene.workspace.write("go", "");
    let code = driver.wait();
    assert_eq!(scene.calls().len(), 2, "exit {code}: {:?}", scene.calls());
    assert_eq!(code, 0);
    scene.check_oracles(&before);
    scene.goes_on(&["7"]);
}

#[test]
fn c12_a_checkout_that_is_removed_while_it_is_worked_in_stops_its_bundle_until_a_person_decides() {
    let scene = patient(&["7", "8"], "");
    let before = scene.before();
    let driver = scene.start(&["batch", "--lanes", "2"]);
    scene.wait_until("both are in work", |scene| is_at("7")(scene) && is_at("8")(scene));
    let has = |slot: u32, id: &str| scene.lane(slot).path().join(format!("half-{id}.txt")).exists();
    let slot = u32::from(!has(0, "7"));
    fs_err::remove_dir_all(scene.lane(slot).path()).expect("it can be removed");
    scene.workspace.write("go", "");
    assert_eq!(driver.wait(), 104);
    assert_eq!((scene.state("7"), scene.state("8")), ("PLANNED".into(), "AWAITING_SIGNOFF".into()));
    let again = scene.pdca(&["run", "7"]).expect(104);
    assert!(again.err.contains("removed while in use"), "{}", again.err);
    assert!(again.err.contains("pdca unblock 7"), "{}", again.err);
    assert_eq!(scene.calls().iter().filter(|call| *call == "builder 7").count(), 1);
    scene.check_oracles(&before);
    scene.pdca(&["unblock", "7"]).expect(0);
    scene.goes_on(&["7", "8"]);
}

#[test]
fn c12_a_checkout_that_goes_with_its_driver_is_blocked_and_made_anew_when_a_person_says_so() {
    let scene = patient(&["7"], "");
    let before = scene.before();
    let driver = at_work(&scene);
    driver.signal(Signal::KILL);
    driver.wait();
    scene.wait_until("nothing of the run is alive", |scene| scene.processes().is_empty());
    fs_err::remove_dir_all(scene.lane(0).path()).expect("it can be removed");
    scene.pdca(&["run", "7"]).expect(104);
    scene.check_oracles(&before);
    scene.pdca(&["unblock", "7"]).expect(0);
    scene.goes_on(&["7"]);
}

#[test]
fn c13_a_lane_whose_branches_are_deleted_while_it_works_costs_nobody_anything_else() {
    let scene = patient(&["7"], "");
    let before = scene.before();
    let driver = at_work(&scene);
    let heads = scene.lane(0).path().join(".git/refs/heads");
    drop(fs_err::remove_dir_all(&heads));
    fs_err::create_dir_all(&heads).expect("a directory can be made");
    scene.workspace.write("go", "");
    driver.wait();
    scene.check_oracles(&before);
    scene.goes_on(&["7"]);
}

#[test]
fn c17_a_summary_that_a_person_wrote_while_it_was_due_stays_as_it_is() {
    let scene = with("echo $1 > file-$1.txt", &["7"], "");
    scene.pdca_with(&[("PDCA_CRASH_AT", "SUMMARY.md")], &["run", "7"]).expect(137);
    let theirs =
        "# Mine\n\n## 6. NEEDS-HUMAN\n\n- [ ] look at it\n\n## 9. Check sign-off\n\n- Outcome:\n";
    scene.workspace.write("results/issue_7/SUMMARY.md", theirs);
    let before = scene.before();
    scene.pdca(&["run", "7"]).expect(3);
    assert_eq!(scene.workspace.read("results/issue_7/SUMMARY.md"), theirs);
    scene.check_oracles(&before);
}

#[test]
fn c17_what_a_person_writes_in_the_moment_the_summary_is_put_in_place_wins() {
    let scene = with("echo $1 > file-$1.txt", &["7"], "");
    let driver = scene.start_with(&[("PDCA_STOP_AT", "SUMMARY.md")], &["run", "7"]);
    scene.wait_until("it is about to write the summary", |_| driver.is_stopped());
    let theirs = "# Mine\n\n## 9. Check sign-off\n\n- Outcome:\n";
    scene.workspace.write("results/issue_7/SUMMARY.md", theirs);
    let before = scene.before();
    driver.signal(Signal::CONT);
    assert_eq!(driver.wait(), 0);
    assert_eq!(scene.workspace.read("results/issue_7/SUMMARY.md"), theirs);
    scene.check_oracles(&before);
}

#[test]
fn c18_status_in_a_loop_never_fails_and_disturbs_nobody() {
    let scene = with("sleep 0.1; echo $1 > file-$1.txt", &["7", "8", "9"], "");
    let before = scene.before();
    let driver = scene.start(&["batch", "--lanes", "2"]);
    let mut looks = 0;
    while ["7", "8", "9"].iter().any(|id| scene.state(id) != "AWAITING_SIGNOFF") {
        looks += 1;
        assert!(looks < 2000, "it does not end");
    }
    assert_eq!(driver.wait(), 0);
    println!("looked {looks} times");
    assert_eq!(scene.ended().len(), 6, "{:?}", scene.ended());
    scene.check_oracles(&before);
}

#[test]
fn c20_a_lane_that_cannot_be_used_says_so_and_the_others_go_on() {
    let scene = with("echo $1 > file-$1.txt", &["7", "8", "9"], "");
    let before = scene.before();
    let foreign = scene.workspace.around().join("ws.lanes/lane-1/app");
    fs_err::create_dir_all(&foreign).expect("a directory can be made");
    fs_err::write(foreign.join("theirs.txt"), "theirs").expect("a file can be written");
    let ran = scene.pdca(&["batch", "--lanes", "2"]).expect(2);
    assert!(ran.err.contains("lane-1"), "{}", ran.err);
    let reached = ["7", "8", "9"].iter().filter(|id| scene.state(id) == "AWAITING_SIGNOFF");
    assert!(reached.count() >= 1, "{}", ran.err);
    assert_eq!(fs_err::read_to_string(foreign.join("theirs.txt")).expect("kept"), "theirs");
    scene.check_oracles(&before);
    fs_err::rename(&foreign, scene.workspace.around().join("theirs")).expect("it can be moved");
    scene.goes_on(&["7", "8", "9"]);
}
