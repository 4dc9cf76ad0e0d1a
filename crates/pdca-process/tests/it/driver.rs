//! Drivers and supervisors that die while a child runs.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use pdca_process::{Cancel, Ending, Sign, Spec, Stdin, load_verdict, run, testing};

use crate::support::{
    DRIVER_DEAF, DRIVER_SPEC, Driver, Scene, eventually, exists, parent, send, stat_field, variable,
};

/// A driver in a process of its own: runs the child that its environment describes, if any.
#[test]
fn driver_entry() {
    let Some(order) = variable(DRIVER_SPEC) else {
        return;
    };
    testing::use_harness();
    let spec: Spec = serde_json::from_slice(&std::fs::read(order).unwrap()).unwrap();
    let deaf = variable(DRIVER_DEAF).is_some();
    run(&spec, &Cancel::new(), &mut |sign| {
        if deaf && matches!(sign, Sign::Started { .. }) {
            loop {
                std::thread::park();
            }
        }
    })
    .unwrap();
}

#[test]
fn a10_b10_the_death_of_the_driver_ends_the_whole_tree() {
    let scene = Scene::new();
    let script =
        "(setsid sleep 1000 &); sleep 1000 & touch up; trap '' TERM; while :; do sleep 1000; done";
    let driver = scene.driver(&scene.script(script));
    eventually("the child is up", || exists(scene.path().join("up")));
    driver.signal(9);
    eventually("nothing is alive", || driver_is_alone(&scene, &driver));
    let verdict = load_verdict(&scene.job()).unwrap();
    assert_eq!(verdict.map(|verdict| verdict.ending), Some(Ending::Cancelled));
}

#[test]
fn a10_b10_a_driver_that_dies_while_it_starts_leaves_nothing() {
    for delay in (0..40).step_by(2) {
        let scene = Scene::new();
        let driver = scene.driver(&scene.script("(setsid sleep 1000 &); sleep 1000"));
        // This sleep waits for nothing; it makes the driver die at many different moments.
        std::thread::sleep(std::time::Duration::from_millis(delay));
        driver.signal(9);
        eventually("nothing is alive", || driver_is_alone(&scene, &driver));
    }
}

/// Returns true if only the driver is left, dead and not collected.
fn driver_is_alone(scene: &Scene, driver: &Driver) -> bool {
    let own = driver.0.id().cast_signed();
    scene.alive().iter().all(|pid| *pid == own)
}

#[test]
fn a11_the_verdict_survives_a_driver_that_did_not_hear_it() {
    let scene = Scene::new();
    let driver = scene.driver_with(&scene.script("echo done; exit 5"), |command| {
        command.env(DRIVER_DEAF, "1");
    });
    eventually("the verdict is stored", || load_verdict(&scene.job()).unwrap().is_some());
    driver.signal(9);
    let verdict = load_verdict(&scene.job()).unwrap().unwrap();
    assert_eq!(verdict.ending, Ending::Exited(5));
    assert_eq!(verdict.output.last_line, "done");
}

#[test]
fn b16_a_driver_that_hangs_up_takes_its_child_with_it() {
    let scene = Scene::new();
    let driver = scene.driver(&scene.script("touch up; sleep 1000"));
    eventually("the child is up", || exists(scene.path().join("up")));
    driver.signal(1);
    eventually("nothing is alive", || driver_is_alone(&scene, &driver));
}

#[test]
fn b9_the_tree_of_a_killed_supervisor_is_ended_by_the_driver_and_no_other() {
    let scene = Scene::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "a child of the embedding program, which is none of ours"
    )]
    let mut stranger = Driver(Command::new("sleep").arg("1000").spawn().unwrap());
    let spec = scene.script("(setsid sleep 1000 &); (setsid sh -c 'sleep 1000; :' &); sleep 1000 & touch up; wait; sleep 1000");
    let up = scene.path().join("up");
    let verdict = scene.run_watched(&spec, &Cancel::new(), &mut |sign| {
        if let Sign::Started { pid } = sign {
            eventually("the child is up", || exists(&up));
            send(parent(pid), 9);
        }
    });
    let Ending::Infra { why } = verdict.ending else {
        panic!("{verdict:?}");
    };
    assert!(why.contains("supervisor"), "{why}");
    let ended = stranger.0.try_wait().unwrap();
    assert!(ended.is_none(), "the stranger ended");
}

#[test]
fn a_supervisor_does_its_duty_through_signals_meant_for_the_driver() {
    let scene = Scene::new();
    let spec = scene.script("until test -e signalled; do sleep 0.01; done; exit 6");
    let signalled = scene.path().join("signalled");
    let verdict = scene.run_watched(&spec, &Cancel::new(), &mut |sign| {
        if let Sign::Started { pid } = sign {
            for signal in [1, 2, 15] {
                send(parent(pid), signal);
            }
            std::fs::write(&signalled, "").unwrap();
        }
    });
    assert_eq!(verdict.ending, Ending::Exited(6));
}

#[test]
fn a_child_has_a_session_and_a_group_apart_from_the_driver() {
    let scene = Scene::new();
    let spec = scene.script("until test -e seen; do sleep 0.01; done");
    let seen = scene.path().join("seen");
    let own = std::process::id().cast_signed();
    scene.run_watched(&spec, &Cancel::new(), &mut |sign| {
        if let Sign::Started { pid } = sign {
            let (group, session) = (stat_field(pid, 5), stat_field(pid, 6));
            assert_eq!(group, pid);
            assert_eq!(session, parent(pid));
            assert_ne!(session, stat_field(own, 6));
            std::fs::write(&seen, "").unwrap();
        }
    });
}

#[test]
fn an_interactive_child_has_the_drivers_streams_and_group() {
    let scene = Scene::new();
    let mut spec = scene.script("cut -d ' ' -f 5 /proc/$$/stat; cat; exit 3");
    spec.interactive = true;
    spec.stdin = Stdin::Inherit;
    let mut driver = scene.driver_with(&spec, |command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
    });
    driver.0.stdin.take().unwrap().write_all(b"typed\n").unwrap();
    let mut shown = String::new();
    driver.0.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    let group = stat_field(std::process::id().cast_signed(), 5);
    assert!(shown.contains(&format!("{group}\ntyped\n")), "{shown}");
    assert!(driver.0.wait().unwrap().success());
    let verdict = load_verdict(&scene.job()).unwrap().unwrap();
    assert_eq!(verdict.ending, Ending::Exited(3));
    assert_eq!(scene.output(), "");
}

#[test]
fn an_interactive_tree_ends_with_its_driver() {
    let scene = Scene::new();
    let mut spec = scene.script("(setsid sleep 1000 &); touch up; sleep 1000");
    spec.interactive = true;
    let driver = scene.driver(&spec);
    eventually("the child is up", || exists(scene.path().join("up")));
    driver.signal(9);
    eventually("nothing is alive", || driver_is_alone(&scene, &driver));
}

#[test]
fn a_child_gets_no_variable_that_binds_it_elsewhere() {
    let scene = Scene::new();
    let mut spec = scene.script("env");
    spec.env = spec.env.with("PDCA_BASE", "given").without("UNWANTED");
    let mut driver = scene.driver_with(&spec, |command| {
        command
            .env("GIT_DIR", "/elsewhere")
            .env("GIT_INDEX_FILE", "/elsewhere")
            .env("PDCA_LANE", "leaked")
            .env("UNWANTED", "x")
            .env("KEPT", "x");
    });
    assert!(driver.0.wait().unwrap().success());
    let output = scene.output();
    let names: Vec<&str> =
        output.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    for absent in ["GIT_DIR", "GIT_INDEX_FILE", "PDCA_LANE", "UNWANTED"] {
        assert!(!names.contains(&absent), "{absent} leaked");
    }
    for present in ["KEPT", "PDCA_BASE"] {
        assert!(names.contains(&present), "{present} is missing");
    }
}
