//! Requests and answers that are lost on the way.

use super::harness::{BUILDER, Hosts, PATIENT};

/// The verbs of a band, in their order.
const VERBS: [&str; 6] = ["offer", "stage", "start", "watch", "collect", "reap"];

#[test]
fn h3_h4_h6_h7_h8_h9_a_link_that_is_cut_before_or_after_any_verb_changes_nothing_of_the_result() {
    let undisturbed = {
        let hosts = Hosts::new(&["a"], BUILDER, "");
        hosts.briefs(&["7", "8"]);
        hosts.batch(&[]).expect(0);
        (hosts.scene.results(), hosts.calls())
    };
    for verb in VERBS {
        for when in ["before", "after"] {
            let hosts = Hosts::new(&["a"], BUILDER, "");
            hosts.briefs(&["7", "8"]);
            hosts.cut(&format!("{verb}-{when}"));
            let mut ran = hosts.batch(&[]);
            if verb == "offer" {
                // The host is not used yet, so the command says so and can be repeated.
                assert_eq!(ran.code, 2, "{}", ran.err);
                assert!(ran.err.contains("ssh a true"), "{}", ran.err);
                ran = hosts.batch(&[]);
            }
            ran.expect(0);
            assert!(!hosts.is_cut(&format!("{verb}-{when}")), "{verb} {when} was not reached");
            assert_eq!(hosts.scene.results(), undisturbed.0, "{verb} {when}");
            assert_eq!(hosts.calls(), undisturbed.1, "{verb} {when}: no leaf is called twice");
        }
    }
}

#[test]
fn h10_a_cancelled_band_leaves_nothing_on_its_host_even_if_the_answer_is_lost() {
    for cut in [None, Some("cancel-before"), Some("cancel-after")] {
        let hosts = Hosts::new(&["a"], PATIENT, "");
        hosts.briefs(&["7"]);
        let driver = hosts.start(&[]);
        hosts.scene.wait_until("the builder is at work", |_| hosts.has("at-7"));
        if let Some(cut) = cut {
            hosts.cut(cut);
        }
        driver.signal(rustix::process::Signal::INT);
        assert_eq!(driver.wait(), 130);
        assert_eq!(hosts.runners("a"), Vec::<i32>::new(), "{cut:?}");
        hosts.let_go("go");
        hosts.batch(&[]).expect(0);
        assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
    }
}

#[test]
fn h11_a_host_that_is_lost_costs_no_attempt_and_its_band_goes_elsewhere_under_a_new_generation() {
    let hosts = Hosts::with_host_keys(&["a", "b"], PATIENT, "", "");
    let toml = hosts
        .scene
        .workspace
        .read("pdca.toml")
        .replace("lost_after_secs = 20", "lost_after_secs = 5");
    hosts.scene.workspace.write("pdca.toml", toml.replace("slots = 2", "slots = 1"));
    hosts.briefs(&["7", "8"]);
    let driver = hosts.start(&["--events", "events"]);
    hosts.scene.wait_until("both are at work", |_| hosts.has("at-7") && hosts.has("at-8"));
    let of_a = hosts.jobs("a");
    let lost = of_a.iter().find_map(|job| job.split('-').nth(2)).unwrap().to_owned();
    let other = if lost == "7" { "8" } else { "7" };
    hosts.cut("down-a");
    hosts.let_go(&format!("go-{other}"));
    hosts.scene.wait_until("the band of the lost host runs on the other", |_| {
        hosts.jobs("b").iter().any(|job| job.contains(&format!("-{lost}-g2")))
    });
    hosts.let_go("go");
    assert_eq!(driver.wait(), 0);
    for id in ["7", "8"] {
        assert_eq!(hosts.scene.state(id), "AWAITING_SIGNOFF");
    }
    let events = hosts.scene.workspace.read("events");
    assert!(events.contains("\"code\":\"host_lost\""), "{events}");
    let failures = hosts.scene.workspace.path().join(".pdca/failures");
    assert!(!failures.join(format!("issue_{lost}.json")).exists(), "no attempt is charged");
    // The link is back: the next run ends what the lost host still has.
    hosts.mend("down-a");
    hosts.scene.pdca(&["hosts", "gc", "a"]).expect(0);
    assert_eq!(hosts.jobs("a"), Vec::<String>::new());
}

#[test]
fn h12_when_every_host_is_lost_the_run_says_so_and_the_same_command_goes_on() {
    let hosts = Hosts::new(&["a"], PATIENT, "");
    let toml = hosts
        .scene
        .workspace
        .read("pdca.toml")
        .replace("lost_after_secs = 20", "lost_after_secs = 5");
    hosts.scene.workspace.write("pdca.toml", toml);
    hosts.briefs(&["7"]);
    let driver = hosts.start(&[]);
    hosts.scene.wait_until("it is at work", |_| hosts.has("at-7"));
    hosts.cut("down-a");
    assert_eq!(driver.wait(), 1);
    hosts.mend("down-a");
    hosts.let_go("go");
    hosts.batch(&[]).expect(0);
    assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
}
