//! Provisioning by other processes: many at once, killed half-way, out of space.
//!
//! The other process is this test program again, running one test that only acts when asked.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    ops::Range,
    process::{Child, Command, Output, Stdio},
};

use camino::Utf8Path;
use pdca_lanes::{LaneKind, Lanes, Provision, ProvisionEvent, Target};

use crate::scene::{Inventory, Scene, assert_sound, digest, dirt};

/// The task of the child: primary, root, base, kind, number of lanes, event to stop at.
const ASKED: &str = "PDCA_LANES_TEST_PROVISION";

/// A primary with enough files for several steps, some of them larger than a small limit.
fn scene() -> Scene {
    let scene = Scene::new(&[]);
    for at in 0..60 {
        let size = if at % 7 == 0 { 20_000 } else { 100 };
        scene.primary.write(format!("dir{}/sub/file{at}", at % 9), "x".repeat(size));
    }
    scene.primary.commit("files");
    scene
}

#[expect(clippy::disallowed_methods, reason = "the child must be one that can be killed")]
fn child(scene: &Scene, kind: LaneKind, lanes: u32, stop: usize, shell: &str) -> Child {
    let kind = if kind == LaneKind::Worktree { "worktree" } else { "reference" };
    let root = scene.lanes().root().to_owned();
    let asked = [
        scene.primary.path().as_str(),
        root.as_str(),
        &scene.primary.head(),
        kind,
        &lanes.to_string(),
        &stop.to_string(),
    ];
    let exe = std::env::current_exe().expect("this program has a path");
    Command::new("sh")
        .args(["-c", &format!("{shell} exec \"$0\" \"$@\"")])
        .arg(exe)
        .args(["--exact", "interrupted::does_as_it_is_asked", "--nocapture"])
        .env(ASKED, asked.join("\n"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell can be started")
}

#[test]
fn does_as_it_is_asked() {
    #[expect(clippy::disallowed_methods, reason = "how the other process is told what to do")]
    let asked = std::env::var(ASKED);
    // The range of slots is empty, which is an error.
    let Ok(asked) = asked else {
        let scene = Scene::new(&[("a", "a\n")]);
        assert!(scene.provision(0..0, LaneKind::Reference).is_err());
        return;
    };
    let asked: Vec<&str> = asked.split('\n').collect();
    let target = Target::open("app", Utf8Path::new(asked[0])).unwrap();
    let kind = if asked[3] == "worktree" { LaneKind::Worktree } else { LaneKind::Reference };
    let slots: Range<u32> = 0..asked[4].parse().unwrap();
    let stop: usize = asked[5].parse().unwrap();
    let heard = std::sync::atomic::AtomicUsize::new(0);
    let request = Provision::new(slots, &target, asked[2]).with_kind(kind);
    let tell = |event: ProvisionEvent| {
        let count = heard.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
        if count == stop {
            let mut out = std::io::stdout().lock();
            writeln!(out, "\nstopped at {event:?}").unwrap();
            out.flush().unwrap();
            loop {
                std::thread::park();
            }
        }
    };
    let lanes = Lanes::new(asked[1]).provision(&request, &tell).unwrap();
    for lane in lanes.iter().filter(|lane| lane.made) {
        writeln!(std::io::stdout(), "\nmade {}", lane.slot).unwrap();
    }
}

/// Kills the child once it reports that it stopped. Returns true if it did.
fn kill_when_stopped(mut child: Child) -> bool {
    let out = BufReader::new(child.stdout.take().unwrap());
    let stopped = out.lines().map_while(Result::ok).any(|line| line.starts_with("stopped"));
    if stopped {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    assert!(stopped || status.success(), "{status}");
    stopped
}

fn assert_completes(scene: &Scene, kind: LaneKind, lanes: u32, before: &Inventory) {
    let all = scene.provision(0..lanes, kind).unwrap();
    assert_eq!(all.len(), lanes as usize);
    for lane in all {
        assert_eq!(lane.base, scene.primary.head());
        let lane = scene.lanes().claim(lane.slot, &scene.target()).unwrap();
        assert_eq!(lane.moved_aside(), None);
        assert_eq!(dirt(&lane), "");
        assert_sound(lane.path());
    }
    assert!(*before == digest(scene.primary.path(), kind), "the primary was changed");
    if kind == LaneKind::Worktree {
        let listed = scene.primary.git(&["worktree", "list", "--porcelain"]);
        assert_eq!(listed.matches("\nlocked ").count(), lanes as usize, "{listed}");
    }
}

fn killed_at_every_step(kind: LaneKind) {
    let mut steps = 0;
    for stop in 1.. {
        let scene = scene();
        let before = digest(scene.primary.path(), kind);
        if !kill_when_stopped(child(&scene, kind, 2, stop, "")) {
            break;
        }
        steps += 1;
        assert_completes(&scene, kind, 2, &before);
    }
    assert!(steps >= 8, "only {steps} steps");
}

#[test]
fn a2_lanes_whose_making_was_killed_at_any_step_are_completed() {
    killed_at_every_step(LaneKind::Reference);
}

#[test]
fn a3_worktrees_whose_making_was_killed_at_any_step_are_completed() {
    killed_at_every_step(LaneKind::Worktree);
}

/// The states after a crash between two steps without an event.
#[test]
fn a3_a_worktree_that_is_half_registered_is_registered_once() {
    let scene = scene();
    let before = digest(scene.primary.path(), LaneKind::Worktree);
    scene.provision(0..2, LaneKind::Worktree).unwrap();
    let marker = scene.lanes().root().join("lane-0/app.lane.json");
    let ready = fs_err::read_to_string(&marker).unwrap();
    let keep: [&[&str]; 3] =
        [&[], &["gitdir", "locked"], &["gitdir", "locked", "commondir", "HEAD"]];
    for keep in keep {
        fs_err::write(&marker, ready.replace("\"ready\"", "\"preparing\"")).unwrap();
        let dot_git = fs_err::read_to_string(scene.checkout().join(".git")).unwrap();
        let registration = Utf8Path::new(dot_git.trim().strip_prefix("gitdir: ").unwrap());
        for entry in registration.read_dir_utf8().unwrap() {
            let entry = entry.unwrap();
            if !keep.contains(&entry.file_name()) && entry.file_type().unwrap().is_file() {
                fs_err::remove_file(entry.path()).unwrap();
            }
        }
        fs_err::remove_dir_all(scene.checkout()).unwrap();
        if keep.is_empty() {
            // A registration that names no checkout is not ours to remove; git prunes it.
            fs_err::remove_dir_all(registration).unwrap();
        }
        assert_completes(&scene, LaneKind::Worktree, 2, &before);
    }
}

#[test]
fn e2_e3_files_that_may_not_grow_stop_it_and_it_completes_when_they_may() {
    for kind in [LaneKind::Reference, LaneKind::Worktree] {
        let scene = scene();
        let before = digest(scene.primary.path(), kind);
        // As on a full disk: some files fit and some do not.
        let limited = child(&scene, kind, 2, 0, "trap '' XFSZ; ulimit -f 16;");
        let Output { status, stderr, stdout } = limited.wait_with_output().unwrap();
        let said =
            format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(!status.success(), "{said}");
        assert!(said.contains("file") && said.contains("too large"), "{said}");
        assert_completes(&scene, kind, 2, &before);
    }
}

#[test]
fn eight_processes_make_each_lane_once() {
    for kind in [LaneKind::Reference, LaneKind::Worktree] {
        let scene = scene();
        let before = digest(scene.primary.path(), kind);
        let children: Vec<Child> = (0..8).map(|_| child(&scene, kind, 4, 0, "")).collect();
        let mut made = Vec::new();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
            made.extend(
                said.lines().filter_map(|line| line.strip_prefix("made ")).map(str::to_owned),
            );
        }
        made.sort();
        assert_eq!(made, ["0", "1", "2", "3"]);
        assert_completes(&scene, kind, 4, &before);
    }
}

#[test]
fn files_have_the_modes_that_the_mask_of_the_process_leaves() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = scene();
    scene.primary.write_executable("run.sh", "#!/bin/sh\n");
    scene.primary.commit("with a program");
    let output = child(&scene, LaneKind::Reference, 1, 0, "umask 027;").wait_with_output().unwrap();
    assert!(output.status.success());
    let mode = |file: &str| {
        fs_err::metadata(scene.checkout().join(file)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("run.sh"), mode("dir0/sub/file0"), mode("dir0")), (0o750, 0o640, 0o750));
}
