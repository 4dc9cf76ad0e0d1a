//! Drivers, runners and hosts that die, freeze or are two.

use rustix::process::Signal;

use super::harness::{BUILDER, Hosts, PATIENT, signal};

#[test]
fn h13_the_next_driver_finds_the_bands_of_a_killed_one_by_name_and_starts_nothing_again() {
    let hosts = Hosts::new(&["a", "b"], PATIENT, "");
    let ids = ["7", "8", "9"];
    hosts.briefs(&ids);
    let driver = hosts.start(&[]);
    hosts
        .scene
        .wait_until("all are at work", |_| ids.iter().all(|id| hosts.has(&format!("at-{id}"))));
    let jobs = (hosts.jobs("a"), hosts.jobs("b"));
    driver.signal(Signal::KILL);
    assert_eq!(driver.wait(), 137);
    hosts.let_go("go-7");
    let again = hosts.start(&["--events", "events"]);
    hosts.scene.wait_until("they are found", |scene| {
        fs_err::read_to_string(scene.workspace.path().join("events"))
            .unwrap_or_default()
            .matches("\"resumed\":true")
            .count()
            >= 3
    });
    assert_eq!((hosts.jobs("a"), hosts.jobs("b")), jobs, "the same jobs");
    hosts.let_go("go");
    assert_eq!(again.wait(), 0);
    for id in ids {
        assert_eq!(hosts.scene.state(id), "AWAITING_SIGNOFF");
    }
    let builders = hosts.calls().into_iter().filter(|call| call.starts_with("builder")).count();
    assert_eq!(builders, 3, "{:?}", hosts.calls());
}

#[test]
fn h14_killed_at_every_effect_of_a_band_on_a_host_the_next_driver_ends_as_an_undisturbed_one() {
    let undisturbed = {
        let hosts = Hosts::new(&["a"], BUILDER, "");
        hosts.briefs(&["7"]);
        hosts.batch(&[]).expect(0);
        (hosts.scene.results(), hosts.calls())
    };
    for at in [
        "claim",
        "take-in",
        "work-ref:2",
        "attempt:2",
        "leg-file",
        "patch.diff",
        "check-gates.json",
        "check-review.md",
        "SUMMARY.md",
    ] {
        let hosts = Hosts::new(&["a"], BUILDER, "");
        hosts.briefs(&["7"]);
        let killed = hosts.scene.pdca_with(&[("PDCA_CRASH_AT", at)], &["batch", "--lanes", "0"]);
        assert_eq!(killed.code, 137, "{at}: {}", killed.err);
        hosts.batch(&[]).expect(0);
        assert_eq!(hosts.scene.results(), undisturbed.0, "{at}");
        assert_eq!(hosts.calls(), undisturbed.1, "{at}: no leaf is called twice");
    }
}

#[test]
fn h15_a_host_that_was_frozen_until_its_band_went_elsewhere_publishes_nothing_when_it_thaws() {
    let hosts = Hosts::new(&["a", "b"], PATIENT, "");
    let toml = hosts
        .scene
        .workspace
        .read("pdca.toml")
        .replace("lost_after_secs = 20", "lost_after_secs = 5");
    hosts.scene.workspace.write("pdca.toml", toml.replace("slots = 2", "slots = 1"));
    hosts.briefs(&["7"]);
    let driver = hosts.start(&[]);
    hosts.scene.wait_until("it is at work", |_| hosts.has("at-7"));
    let (first, second) = if hosts.jobs("a").is_empty() { ("b", "a") } else { ("a", "b") };
    let frozen = hosts.runners(first);
    assert_eq!(frozen.len(), 1);
    signal(frozen[0], Signal::STOP);
    hosts.scene.wait_until("it runs elsewhere", |_| {
        hosts.jobs(second).iter().any(|job| job.ends_with("-7-g2"))
    });
    hosts.let_go("go");
    assert_eq!(driver.wait(), 0);
    let accepted = hosts.scene.workspace.read("results/issue_7/patch.diff");
    signal(frozen[0], Signal::CONT);
    // It ends its work, and nobody asks for it. What it has is refused by its generation.
    hosts.scene.wait_until("it has ended", |_| hosts.runners(first).is_empty());
    let before = hosts.scene.results();
    hosts.batch(&[]).expect(3);
    assert_eq!(hosts.scene.results(), before);
    assert_eq!(hosts.scene.workspace.read("results/issue_7/patch.diff"), accepted);
    let sent = hosts.verbs();
    assert!(!sent.contains(&format!("{first} collect")), "{sent:?}");
}

#[test]
fn h16_a_runner_that_is_killed_is_started_again_and_what_ended_there_does_not_run_again() {
    let hosts = Hosts::new(&["a"], BUILDER, "");
    hosts.leaf(
        "reviewer",
        &format!(
            "touch \"$COUNT/at-review\"\nwhile [ ! -e \"$COUNT/go\" ]; do sleep 0.02; done\n{}",
            super::harness::REVIEWER
        ),
    );
    hosts.briefs(&["7"]);
    let driver = hosts.start(&[]);
    hosts.scene.wait_until("the reviewer is at work", |_| hosts.has("at-review"));
    hosts.runners("a").into_iter().for_each(|pid| signal(pid, Signal::KILL));
    hosts.let_go("go");
    assert_eq!(driver.wait(), 0);
    let builders = hosts.calls().into_iter().filter(|call| call.starts_with("builder")).count();
    assert_eq!(builders, 1, "{:?}", hosts.calls());
    assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
}

#[test]
fn h17_two_drivers_on_one_host_share_its_slots_and_wait_for_each_other() {
    let one = Hosts::new(&["a"], PATIENT, "");
    let toml = one.scene.workspace.read("pdca.toml").replace("slots = 2", "slots = 1");
    one.scene.workspace.write("pdca.toml", &toml);
    let other = Hosts::new(&["a"], BUILDER, "");
    other.scene.workspace.write(
        "pdca.toml",
        other.scene.workspace.read("pdca.toml").replace("slots = 2", "slots = 1"),
    );
    one.briefs(&["7"]);
    other.briefs(&["8"]);
    let first = one.start(&[]);
    one.scene.wait_until("it is at work", |_| one.has("at-7"));
    let hosts = one.around().join("hosts");
    let second = other.scene.start_with(&[("HOSTS", hosts.as_str())], &["batch", "--lanes", "0"]);
    other.scene.wait_until("the second was refused a slot", |_| {
        other.verbs().iter().filter(|verb| *verb == "a start").count() >= 2
    });
    assert_eq!(other.calls(), Vec::<String>::new());
    one.let_go("go");
    assert_eq!((first.wait(), second.wait()), (0, 0));
    assert_eq!(other.scene.state("8"), "AWAITING_SIGNOFF");
}

#[test]
fn h18_a_driver_that_no_longer_uses_the_host_builds_it_here_under_a_new_generation() {
    let hosts = Hosts::new(&["a"], PATIENT, "");
    hosts.briefs(&["7"]);
    let driver = hosts.start(&[]);
    hosts.scene.wait_until("it is at work", |_| hosts.has("at-7"));
    driver.signal(Signal::KILL);
    driver.wait();
    hosts.let_go("go");
    hosts.scene.pdca(&["batch", "--local"]).expect(0);
    assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
    let builders: Vec<String> =
        hosts.calls().into_iter().filter(|call| call.starts_with("builder")).collect();
    assert_eq!(builders.len(), 2, "{builders:?}");
    hosts.scene.pdca(&["hosts", "gc"]).expect(0);
    assert_eq!(hosts.jobs("a"), Vec::<String>::new());
}

#[test]
fn h19_content_that_was_damaged_on_a_host_is_asked_for_again() {
    let hosts = Hosts::new(&["a"], BUILDER, "");
    hosts.briefs(&["7"]);
    hosts.batch(&[]).expect(0);
    for entry in hosts.root("a").join("contents").read_dir_utf8().unwrap().flatten() {
        fs_err::write(entry.path(), "torn").unwrap();
    }
    hosts.briefs(&["8"]);
    let ran = hosts.batch(&[]);
    if ran.code != 0 {
        hosts.scene.pdca(&["run", "8", "--lanes", "0"]).expect(0);
    }
    assert_eq!(hosts.scene.state("8"), "AWAITING_SIGNOFF");
}

/// Codex whose login is accepted on `b` alone.
const SIGNED_OUT_ON_A: &str = r#"
if [ "$(basename "$HOME")" = a ]; then
    echo '{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: bad key"}}'
    exit 1
fi
echo "$1" > "file-$1.txt"
echo '{"type":"turn.completed"}'
"#;

#[test]
fn h35_a_host_whose_agent_is_not_signed_in_gets_no_further_band_and_no_attempt_is_charged() {
    let hosts = Hosts::new(&["a", "b"], SIGNED_OUT_ON_A, "");
    hosts.edit("[leaves.builder]\n", "[leaves.builder]\nprotocol = \"codex\"\n");
    hosts.edit("slots = 2", "slots = 1");
    let ids = ["7", "8", "9", "10"];
    hosts.briefs(&ids);
    let ran = hosts.batch(&[]).expect(0);
    for id in ids {
        assert_eq!(hosts.scene.state(id), "AWAITING_SIGNOFF", "{id}");
    }
    let on_a = hosts.calls().into_iter().filter(|call| call.ends_with(" a")).count();
    assert_eq!(on_a, 1, "{:?}", hosts.calls());
    let is_said = ran.err.contains("a is not fit for it") && ran.err.contains("is not signed in");
    assert!(is_said, "{}", ran.err);
    let failures = hosts.scene.workspace.path().join(".pdca/failures");
    let charged = failures.read_dir_utf8().map_or(0, Iterator::count);
    assert_eq!(charged, 0, "no attempt is charged");
}

/// A builder that finds the disk of `a` full.
const FULL_ON_A: &str = r#"
if [ "$(basename "$HOME")" = a ]; then
    echo "write: No space left on device" >&2
    exit 1
fi
echo "$1" > "file-$1.txt"
"#;

#[test]
fn a_host_whose_disk_is_full_gets_no_further_band_and_no_attempt_is_charged() {
    let hosts = Hosts::new(&["a", "b"], FULL_ON_A, "");
    hosts.edit("slots = 2", "slots = 1");
    let ids = ["7", "8", "9"];
    hosts.briefs(&ids);
    let ran = hosts.batch(&[]).expect(0);
    for id in ids {
        assert_eq!(hosts.scene.state(id), "AWAITING_SIGNOFF", "{id}");
    }
    assert!(ran.err.contains("a is not fit for it"), "{}", ran.err);
    let failures = hosts.scene.workspace.path().join(".pdca/failures");
    assert_eq!(failures.read_dir_utf8().map_or(0, Iterator::count), 0, "no attempt is charged");
}

#[test]
fn h36_a_runner_that_is_started_again_goes_on_with_the_calls_that_are_left() {
    let hosts = Hosts::new(&["a"], BUILDER, "[driver]\nmax_leaf_calls = 2\n");
    let waits = "touch \"$COUNT/at-review\"\nwhile [ ! -e \"$COUNT/go\" ]; do sleep 0.02; done\n";
    hosts.leaf("reviewer", &format!("{waits}{}", super::harness::REVIEWER));
    hosts.briefs(&["7"]);
    let driver = hosts.start(&[]);
    hosts.scene.wait_until("the reviewer is at work", |_| hosts.has("at-review"));
    hosts.runners("a").into_iter().for_each(|pid| signal(pid, Signal::KILL));
    // The builder and the first reviewer have used up the cap.
    assert_eq!(driver.wait(), 103);
    let reviews = hosts.calls().into_iter().filter(|call| call.starts_with("reviewer")).count();
    assert_eq!(reviews, 1, "{:?}", hosts.calls());
    hosts.let_go("go");
}
