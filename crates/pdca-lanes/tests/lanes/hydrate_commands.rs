//! The commands of a hydration: run once, to their end, and again after a failure.

use std::{process::Stdio, time::Duration};

use camino::Utf8Path;
use fs_err as fs;
use pdca_lanes::{
    Hydrate, HydrateConfig, HydrateError, HydratePhase, HydrateProgram, Hydrated, HydrationState,
    Lanes, Reset, Target,
};
use pdca_process::{Cancel, Ending, Env, Sign, testing, wait_until_free};

use crate::{
    hydrate::{hydrate, list},
    scene::{Scene, dirt},
};

pdca_process::supervisor_entry!();

fn shell(text: &str) -> HydrateProgram {
    HydrateProgram::Shell(text.to_owned())
}

/// A target whose dependencies are in `deps/`, and whose lock file is `deps.lock`.
fn scene() -> Scene {
    testing::use_harness();
    Scene::new(&[(".gitignore", "/deps/\n*.env\n"), ("deps.lock", "1\n")])
}

/// Counts its runs in `deps/runs`.
fn counting() -> HydrateConfig {
    HydrateConfig {
        install: Some(shell("mkdir -p deps && echo run >> deps/runs")),
        verify: Some(shell("test -s deps/runs")),
        key: Some(list(&["deps.lock"])),
        ..HydrateConfig::default()
    }
}

fn runs(lane: &Utf8Path) -> usize {
    fs::read_to_string(lane.join("deps/runs")).unwrap_or_default().lines().count()
}

#[test]
fn a_warm_lane_is_not_hydrated_again() {
    let scene = scene();
    let lane = scene.lane();
    let config = counting();
    assert!(matches!(hydrate(&lane, &scene.target(), &config), Ok(Hydrated::Fresh(_))));
    assert_eq!(hydrate(&lane, &scene.target(), &config).unwrap(), Hydrated::Warm);
    lane.reset(&scene.primary.head()).unwrap();
    assert_eq!(hydrate(&lane, &scene.target(), &config).unwrap(), Hydrated::Warm);
    assert_eq!(runs(lane.path()), 1);
    assert_eq!(dirt(&lane), "");
}

#[test]
fn a_changed_input_hydrates_again() {
    let scene = scene();
    let lane = scene.lane();
    let mut config = counting();
    hydrate(&lane, &scene.target(), &config).unwrap();
    scene.primary.write("deps.lock", "2\n");
    lane.reset(&scene.primary.commit("another lock file")).unwrap();
    hydrate(&lane, &scene.target(), &config).unwrap();
    assert_eq!(runs(lane.path()), 2);
    scene.primary.write("local.env", "1");
    config.copy = list(&["local.env"]);
    hydrate(&lane, &scene.target(), &config).unwrap();
    assert_eq!(runs(lane.path()), 3);
    scene.primary.write("local.env", "2");
    hydrate(&lane, &scene.target(), &config).unwrap();
    assert_eq!(runs(lane.path()), 4);
    assert_eq!(fs::read(lane.path().join("local.env")).unwrap(), b"2");
    scene.primary.write("local.env", "2");
    assert_eq!(hydrate(&lane, &scene.target(), &config).unwrap(), Hydrated::Warm);
}

#[test]
fn a_pristine_reset_takes_the_hydration_with_it() {
    let scene = scene();
    let lane = scene.lane();
    hydrate(&lane, &scene.target(), &counting()).unwrap();
    lane.reset_with(&scene.primary.head(), Reset::Pristine).unwrap();
    assert!(!lane.path().join("deps").exists());
    assert_eq!(scene.lanes().list().unwrap()[0].hydration, HydrationState::None);
    assert!(matches!(hydrate(&lane, &scene.target(), &counting()), Ok(Hydrated::Fresh(_))));
    assert_eq!(runs(lane.path()), 1);
}

#[test]
fn a_lane_that_was_made_anew_is_hydrated_anew() {
    let scene = scene();
    let lane = scene.lane();
    hydrate(&lane, &scene.target(), &counting()).unwrap();
    drop(lane);
    fs::remove_dir_all(scene.checkout().join(".git")).unwrap();
    let lane = scene.lane();
    assert!(lane.moved_aside().is_some());
    assert!(matches!(hydrate(&lane, &scene.target(), &counting()), Ok(Hydrated::Fresh(_))));
}

#[test]
fn the_commands_have_the_environment_they_are_given_and_run_in_the_lane() {
    let scene = scene();
    let lane = scene.lane();
    let target = scene.target();
    let config = HydrateConfig {
        install: Some(HydrateProgram::Argv(list(&[
            "sh",
            "-c",
            "mkdir deps && echo $PDCA_LANE $(pwd) > deps/said",
        ]))),
        ..HydrateConfig::default()
    };
    let how = Hydrate::new(&target, &config).with_env(Env::default().with("PDCA_LANE", "0"));
    lane.hydrate(&how, &Cancel::new(), &mut |_, _| {}).unwrap();
    let said = fs::read_to_string(lane.path().join("deps/said")).unwrap();
    assert_eq!(said, format!("0 {}\n", lane.path()));
}

#[test]
fn a_failure_carries_the_log_and_the_next_attempt_begins_from_a_clean_tree() {
    let scene = scene();
    let lane = scene.lane();
    let failing = HydrateConfig {
        install: Some(shell("mkdir -p deps/sub && touch deps/sub/half && chmod 500 deps/sub")),
        verify: Some(shell("for n in $(seq 20); do echo line $n; done; exit 3")),
        ..HydrateConfig::default()
    };
    let error = hydrate(&lane, &scene.target(), &failing).unwrap_err();
    let HydrateError::Command { phase: HydratePhase::Verify, ending, log, last_lines } = error
    else {
        panic!("{error:?}");
    };
    assert_eq!(ending, Ending::Exited(3));
    assert_eq!(last_lines.len(), 10);
    assert_eq!(last_lines.last().unwrap(), "line 20");
    assert!(fs::read_to_string(log).unwrap().starts_with("line 1\n"));
    let again = hydrate(&lane, &scene.target(), &failing).unwrap_err();
    assert!(matches!(again, HydrateError::Command { .. }), "it is no warmer for having been tried");
    let mended = HydrateConfig {
        install: Some(shell("test ! -e deps && mkdir deps")),
        verify: None,
        ..failing
    };
    hydrate(&lane, &scene.target(), &mended).unwrap();
    assert!(!lane.path().join("deps/sub").exists());
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let scene = scene();
    let lane = scene.lane();
    let config = HydrateConfig {
        install: Some(shell("sleep 1000")),
        timeout_secs: Some(1),
        ..HydrateConfig::default()
    };
    let error = hydrate(&lane, &scene.target(), &config).unwrap_err();
    assert_eq!(error.to_string(), "install ended with timeout");
}

#[test]
fn an_install_that_changes_what_git_sees_is_refused() {
    let scene = scene();
    let lane = scene.lane();
    let dirtying = |text: &str| {
        let config = HydrateConfig { install: Some(shell(text)), ..HydrateConfig::default() };
        let error = hydrate(&lane, &scene.target(), &config).unwrap_err();
        lane.reset(&scene.primary.head()).unwrap();
        error.to_string()
    };
    let said = "install or verify changed files that are not ignored: ";
    assert_eq!(dirtying("echo 2 > deps.lock"), format!("{said}deps.lock"));
    assert_eq!(dirtying("touch stray"), format!("{said}stray"));
    assert_eq!(dirtying("git init -q inner"), format!("{said}inner"));
    let added = "ignored files that were added to the index";
    assert_eq!(dirtying("touch x.env; git add -f x.env"), format!("{said}{added}"));
}

#[test]
fn a_lane_with_changes_is_not_hydrated() {
    let scene = scene();
    let lane = scene.lane();
    fs::write(lane.path().join("work"), "w").unwrap();
    let error = hydrate(&lane, &scene.target(), &counting()).unwrap_err();
    assert_eq!(error.to_string(), "the lane has changes before it is hydrated: work");
    assert_eq!(runs(lane.path()), 0);
}

#[test]
fn a_cancelled_hydration_is_none() {
    let scene = scene();
    let lane = scene.lane();
    let (target, cancel) = (scene.target(), Cancel::new());
    let config = HydrateConfig {
        install: Some(shell("mkdir deps && touch deps/half && echo up && sleep 1000")),
        ..HydrateConfig::default()
    };
    let error = lane
        .hydrate(&Hydrate::new(&target, &config), &cancel, &mut |_, sign| {
            if let Sign::Output { .. } = sign {
                cancel.cancel();
            }
        })
        .unwrap_err();
    assert!(matches!(error, HydrateError::Cancelled), "{error}");
    let config = HydrateConfig { install: Some(shell("test ! -e deps")), ..config };
    assert!(matches!(hydrate(&lane, &target, &config), Ok(Hydrated::Fresh(_))));
}

/// The variables that make `a_driver_that_dies` hydrate a lane: the primary and the lanes.
const PRIMARY: &str = "HYDRATE_PRIMARY";
const LANES: &str = "HYDRATE_LANES";

/// An install command that needs a clean tree, prints a word half-way, and takes long while a file `slow` exists beside
/// the lanes.
fn halting(root: &Utf8Path) -> HydrateConfig {
    let text = format!(
        "mkdir deps && echo up && if test -e '{root}/slow'; then sleep 1000; fi; echo run >> deps/runs"
    );
    HydrateConfig { install: Some(shell(&text)), ..counting() }
}

/// A driver in a process of its own, which is killed as soon as the install prints its word.
#[test]
fn a_driver_that_dies() {
    let given = |name: &str| {
        let found = std::env::vars_os().find(|(found, _)| found == name);
        found.map(|(_, value)| camino::Utf8PathBuf::from(value.into_string().unwrap()))
    };
    let (Some(primary), Some(root)) = (given(PRIMARY), given(LANES)) else {
        return;
    };
    testing::use_harness();
    let target = Target::open("app", &primary).unwrap();
    let lane = Lanes::new(&root).claim(0, &target).unwrap();
    lane.reset(&target.resolve(None).unwrap().commit).unwrap();
    let (hold, config) = (root.join("hold"), halting(&root));
    let how = Hydrate::new(&target, &config).with_hold(&hold);
    drop(lane.hydrate(&how, &Cancel::new(), &mut |_, sign| {
        if let Sign::Output { .. } = sign {
            pdca_process::end_self_with_sigkill();
        }
    }));
}

#[test]
fn a4_a_hydration_that_was_killed_is_run_again_from_a_clean_tree() {
    let scene = scene();
    let root = scene.lanes().root().to_owned();
    fs::create_dir(&root).unwrap();
    fs::write(root.join("slow"), "").unwrap();
    #[expect(clippy::disallowed_methods, reason = "the driver must be a process of its own")]
    let mut driver = std::process::Command::new(std::env::current_exe().unwrap());
    let ended = driver
        .args(["a_driver_that_dies", "--test-threads=1"])
        .env(PRIMARY, scene.primary.path())
        .env(LANES, &root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(!ended.success());
    wait_until_free(&root.join("hold"), Duration::from_secs(60)).unwrap();
    fs::remove_file(root.join("slow")).unwrap();
    assert_eq!(scene.lanes().list().unwrap()[0].hydration, HydrationState::Begun);
    let lane = scene.claim();
    assert!(lane.path().join("deps").exists() && runs(lane.path()) == 0, "it was killed half-way");
    lane.rescue("killed").unwrap();
    lane.reset(&scene.primary.head()).unwrap();
    assert!(matches!(hydrate(&lane, &scene.target(), &halting(&root)), Ok(Hydrated::Fresh(_))));
    assert_eq!(runs(lane.path()), 1);
    assert_eq!(hydrate(&lane, &scene.target(), &halting(&root)).unwrap(), Hydrated::Warm);
}
