//! The order in which the driver changes what a later driver looks at. Recovery relies on it, so a
//! redesign keeps it.

use pdca_e2e::Scene;
use pdca_e2e::cast::REVIEWER;

const MORE: &str = r#"
[integrate]
land = "target"

[[gates.checks]]
id = "T1-there"
tier = "T1"
cmd = "test -f greeting.txt"
needs = []
"#;

fn scene() -> Scene {
    let scene = Scene::with_leaves("echo \"$1\" > \"file-$1.txt\"", REVIEWER, MORE);
    // The user is on another branch, so that the target may move.
    scene.repo.git(&["switch", "--quiet", "-c", "own-work"]);
    for id in ["7", "8", "9"] {
        scene.brief(id, &[]);
    }
    scene
}

/// The effect whose beginning a line of the log tells.
fn begun(line: &str) -> Option<&str> {
    let (_, name) = line.split_once("pdca_journal::effects: begins effect=\"")?;
    name.strip_suffix('"')
}

/// The effects of a command, repetitions in a row counted.
fn effects(scene: &Scene, command: &[&str]) -> Vec<String> {
    let ran = scene.pdca_with(&[("PDCA_LOG", "pdca_journal=debug")], command).expect(0);
    let mut counted: Vec<(String, usize)> = Vec::new();
    for name in ran.err.lines().filter_map(begun) {
        match counted.last_mut() {
            Some((last, count)) if last == name => *count += 1,
            _ => counted.push((name.to_owned(), 1)),
        }
    }
    let show = |(name, count)| if count == 1 { name } else { format!("{name} ×{count}") };
    counted.into_iter().map(show).collect()
}

/// The branch is gated by itself before a builder is paid.
const BASE: &str = "rescue, occupy, reset, hydrate, occupy ×2, gate, verdict";

const BUILD: &str = "work-ref, attempt, claim, guard, builder, call-begun";

const TAKE: &str = "occupy, reset, hydrate, occupy, call-kept, guard-done, attempt, import, commit, take-in, \
    work-ref, attempt, patch.diff, occupy, job-done";

const CHECK: &str = "claim, occupy, reset, hydrate, occupy ×2, guard, gate, guard-done, check-verdict, \
    check-gates.json, claim, guard, reviewer, call-begun, call-kept, guard-done, check-review.md, SUMMARY.md";

#[test]
fn a_run_of_three_bundles_an_accept_and_an_integration_have_their_effects_in_this_order() {
    let scene = scene();
    let run = effects(&scene, &["run", "7", "8", "9"]);
    let first = format!("{BUILD}, rescue, {TAKE}, {CHECK}");
    let further = format!("{BUILD}, {TAKE}, {CHECK}");
    assert_eq!(run.join(", "), [BASE, &first, &further, &further].join(", "));

    scene.pdca(&["signoff", "7", "clear", "all"]).expect(0);
    let accept = effects(&scene, &["signoff", "7", "accept"]);
    assert_eq!(accept.join(", "), "attempt, seal-ref, seal.json, sign-off, attempt");

    scene.accept("8");
    let integrate = effects(&scene, &["integrate"]);
    assert_eq!(
        integrate.join(", "),
        "journal, fence, workspace, fold ×6, int-ref, occupy, reset, hydrate, occupy ×2, gate, stats, verdict, \
         announce, land-intent, land, certificate, land-outcome, flakes.json, stats ×2, journal-end, \
         held.json"
    );
}
