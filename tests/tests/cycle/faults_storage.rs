//! Group E of the fault matrix: storage. What a journal makes of a bad disk is shown beside it.

use pdca_e2e::Scene;
use pdca_e2e::cast::{patient, with};
use pdca_process::Tool;
use rustix::process::Signal;

/// A run of the bundle 7 whose driver died, and the path of its journal.
fn left() -> (Scene, camino::Utf8PathBuf) {
    let scene = with("echo $1 > file-$1.txt", &["7"], "");
    scene.pdca_with(&[("PDCA_CRASH_AT", "reset")], &["run", "7"]).expect(137);
    let runs = scene.runs();
    let dir = runs[0]["dir"].as_str().expect("a run has a directory");
    let journal = camino::Utf8PathBuf::from(dir).join("journal");
    (scene, journal)
}

#[test]
fn e6_a_torn_last_record_is_cut_and_kept_and_the_run_goes_on() {
    let (scene, journal) = left();
    let before = scene.before();
    let whole = fs_err::read(&journal).expect("it can be read");
    fs_err::write(&journal, [&whole[..], b"{\"seq\": 9, \"half"].concat()).expect("written");
    let shown = scene.pdca(&["recover", "-n", "--json"]).expect(0).json();
    assert_eq!(shown["runs"][0]["phase"], "running");
    let ran = scene.pdca(&["run", "7"]).expect(0);
    assert!(ran.err.contains("was not finished; it is kept as"), "{}", ran.err);
    scene.check_oracles(&before);
}

#[test]
fn e7_a_flipped_bit_is_said_by_every_command_and_changes_nothing() {
    let (scene, journal) = left();
    let mut bytes = fs_err::read(&journal).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs_err::write(&journal, &bytes).expect("it can be written");
    for args in [&["run", "7"][..], &["recover"], &["abort"], &["unblock"]] {
        let told = scene.pdca(args).expect(104);
        assert!(format!("{}{}", told.out, told.err).contains("journal"), "{told:?}");
    }
    let doctor = scene.pdca(&["doctor"]).expect(2);
    assert!(doctor.out.contains("move the directory away"), "{}", doctor.out);
    assert_eq!(scene.runs()[0]["phase"], "unreadable");
    assert_eq!(fs_err::read(&journal).expect("it is there"), bytes);
    assert_eq!(scene.calls(), Vec::<String>::new());
}

#[test]
fn e8_a_journal_that_is_gone_is_told_and_the_bundle_is_not_lost() {
    let (scene, journal) = left();
    fs_err::remove_file(&journal).expect("it can be removed");
    let told = scene.pdca(&["run", "7"]).expect(104);
    assert!(told.err.contains("cannot be read"), "{}", told.err);
    // What a person is told to do is enough.
    let dir = journal.parent().expect("it lies in a directory");
    fs_err::rename(dir, scene.workspace.around().join("away")).expect("it can be moved");
    let before = scene.before();
    scene.pdca(&["run", "7"]).expect(0);
    scene.check_oracles(&before);
}

#[test]
fn e11_with_too_few_open_files_it_fails_in_words_and_the_same_works_afterwards() {
    let scene = with("echo $1 > file-$1.txt", &["7"], "");
    let before = scene.before();
    let pdca = pdca_testkit::pdca_bin();
    let home = scene.workspace.around();
    for limit in [9, 14, 20] {
        let script = format!("ulimit -n {limit}; exec {pdca} run 7");
        let said = Tool::new("sh")
            .args(["-c", &script])
            .env("HOME", home.as_str())
            .env("XDG_CONFIG_HOME", home.as_str())
            .cwd(scene.workspace.path())
            .run()
            .expect("sh runs");
        let err = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!err.contains("panicked"), "{limit}: {err}");
        assert!(said.code == 0 || said.code == 3 || err.contains("error:"), "{limit}: {err}");
    }
    scene.check_oracles(&before);
    let ran = scene.pdca(&["run", "7"]);
    assert!(ran.code == 0 || ran.code == 3, "{ran:?}");
    assert_eq!(scene.state("7"), "AWAITING_SIGNOFF");
}

/// Has everything around the workspace read-only, for those who come after.
const READ_ONLY: &str = "mount --bind $AROUND $AROUND && mount -o remount,ro,bind $AROUND && \
    cd $AROUND/ws";

#[test]
fn e5_on_a_read_only_disk_everything_that_writes_is_refused_and_nothing_is_lost() {
    let (scene, journal) = left();
    let record = fs_err::read(&journal).expect("it can be read");
    let before = scene.before();
    for args in ["run 7", "batch", "recover", "abort", "cleanup", "integrate"] {
        let Some(ran) = scene.with_mounts(&format!("{READ_ONLY} && exec $PDCA {args}")) else {
            return;
        };
        assert!(![0, 3].contains(&ran.code), "{args}: {ran:?}");
        let said = ran.err.to_lowercase();
        assert!(said.contains("error:") && said.contains("read-only"), "{args}: {}", ran.err);
    }
    let status = scene.with_mounts(&format!("{READ_ONLY} && exec $PDCA status --json"));
    assert_eq!(status.expect("it went before").code, 0, "looking needs no room");
    assert_eq!(fs_err::read(&journal).expect("it can be read"), record);
    scene.pdca(&["run", "7"]).expect(0);
    scene.check_oracles(&before);
}

#[test]
fn e5_a_disk_that_becomes_read_only_in_the_run_ends_it_and_the_same_command_goes_on() {
    let scene = patient(&["7"], "");
    let before = scene.before();
    // The bundles are read-only from when the builder is at work; the rest is as it was.
    let script = "$PDCA run 7 2> $AROUND/said & driver=$!
        while [ ! -s calls/at-7 ]; do sleep 0.02; done
        mount --bind results results && mount -o remount,ro,bind results
        touch go
        wait $driver";
    let Some(ran) = scene.with_mounts(script) else { return };
    let said = fs_err::read_to_string(scene.workspace.around().join("said")).expect("it spoke");
    assert!(![0, 3].contains(&ran.code), "{ran:?} {said}");
    assert!(said.to_lowercase().contains("read-only"), "{said}");
    scene.check_oracles(&before);
    scene.goes_on(&["7"]);
    assert_eq!(
        scene.ended().iter().filter(|call| *call == "builder 7").count(),
        1,
        "paid for once"
    );
}

#[test]
fn e12_a_driver_whose_disk_does_not_answer_is_not_taken_for_dead_and_ends_well() {
    let scene = with("echo $1 > file-$1.txt", &["7"], "");
    let before = scene.before();
    let driver = scene.start_with(&[("PDCA_STOP_AT", "patch.diff")], &["run", "7"]);
    scene.wait_until("it stands before the disk", |_| driver.is_stopped());
    let second = scene.pdca(&["run", "7"]).expect(2);
    let pid = driver.pid().as_raw_nonzero().to_string();
    assert!(
        second.err.contains("is held by process") && second.err.contains(&pid),
        "{}",
        second.err
    );
    let told = scene.pdca(&["recover", "--json"]).expect(4).json();
    assert_eq!(
        (&told["runs"][0]["action"], &told["runs"][0]["driver"]["liveness"]),
        (&"leave".into(), &"alive".into())
    );
    scene.pdca(&["cleanup"]);
    assert!(scene.lane(0).path().join("file-7.txt").exists(), "what it works in is untouched");
    driver.signal(Signal::CONT);
    assert_eq!(driver.wait(), 0);
    assert_eq!(scene.calls(), ["builder 7", "reviewer 7"], "nothing was done twice");
    scene.check_oracles(&before);
}
