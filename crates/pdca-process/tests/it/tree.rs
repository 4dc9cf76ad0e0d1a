//! Everything that a child starts ends with it.

use std::time::Duration;

use pdca_process::Ending;

use crate::support::Scene;

#[test]
fn b3_a_daemon_does_not_outlive_its_child() {
    let scene = Scene::new();
    let verdict = scene.run(&scene.script("(setsid sleep 1000 &) ; exit 0"));
    assert_eq!(verdict.ending, Ending::Exited(0));
    assert_eq!(verdict.stragglers, 1);
}

#[test]
fn b4_a_daemon_that_closed_everything_and_forgot_who_it_is_does_not_outlive_its_child() {
    let scene = Scene::new();
    // After it cleared its environment, only its command line identifies it.
    let daemon = format!("exec env -i setsid sleep 1000.{}", scene.token);
    let script = format!("(sh -c 'exec 0<&- 1>&- 2>&-; {daemon}' &); exit 4");
    let verdict = scene.run(&scene.script(&script));
    assert_eq!(verdict.ending, Ending::Exited(4));
}

#[test]
fn b8_a_child_that_leaves_someone_at_its_pipe_has_ended_when_it_exits() {
    let scene = Scene::new();
    let verdict = scene.run(&scene.script("sleep 1000 & echo done; exit 0"));
    assert_eq!(verdict.ending, Ending::Exited(0));
    assert_eq!(verdict.stragglers, 1);
    assert_eq!(scene.output(), "done\n");
}

#[test]
fn a_straggler_that_ignores_the_request_to_end_is_killed() {
    let scene = Scene::new();
    let mut spec = scene.script(
        "(trap '' TERM; echo up; while :; do sleep 1000; done) & read x < /dev/null; exit 0",
    );
    spec.grace = Duration::from_millis(100);
    let verdict = scene.run(&spec);
    assert_eq!(verdict.ending, Ending::Exited(0));
    assert!(verdict.stragglers >= 1);
}

/// A bounded fork bomb: it doubles the given number of times, and each process then stays for a while. Were it not
/// stopped, it would be some five hundred processes, which the host survives.
const BOMB: &str = "b() { [ $1 -gt 0 ] || exec sleep 60; b $(($1-1)) | b $(($1-1)) & }";

#[test]
fn b5_a_fork_bomb_is_capped_and_its_neighbours_live() {
    let bomb_scene = Scene::new();
    let mut bomb = bomb_scene.script(&format!("{BOMB}; b 9; while :; do sleep 1; done"));
    bomb.max_processes = Some(64);
    std::thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            let scene = Scene::new();
            for _ in 0..5 {
                let verdict = scene.run(&scene.script("echo alive | cat"));
                assert_eq!(verdict.ending, Ending::Exited(0));
            }
        });
        let verdict = bomb_scene.run(&bomb);
        let why = "more than 64 processes".to_owned();
        assert_eq!(verdict.ending, Ending::Infra { why });
        neighbour.join().unwrap();
    });
}

#[test]
fn b5_a_fork_bomb_whose_starter_is_gone_is_ended_too() {
    let scene = Scene::new();
    let mut spec = scene.script(&format!("{BOMB}; b 9; exit 0"));
    spec.grace = Duration::ZERO;
    assert_eq!(scene.run(&spec).ending, Ending::Exited(0));
}
