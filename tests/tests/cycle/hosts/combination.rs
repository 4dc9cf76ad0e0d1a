//! Combinations of accepted changes, gated on hosts.

use rustix::process::Signal;

use super::harness::{BUILDER, Hosts};

/// A gate over every tree, whose script says where it runs.
const GATE: &str = "[gates]\nsandbox = \"off\"\n[[gates.checks]]\nid = \"T1-together\"\ntier = \"T1\"\ncmd = 'sh \"$PDCA_WORKSPACE/leaves/gate.sh\"'\n";

/// Bundles that were built here and accepted, with a gate that does `script` in each tree.
fn accepted(names: &[&str], ids: &[&str], script: &str) -> Hosts {
    let hosts = Hosts::new(names, BUILDER, GATE);
    let count = hosts.around().join("count");
    // A gate has a home of its own, so the place of its checkout says which machine it runs on.
    let said = "place=${PDCA_WORKTREE#\"${COUNT%/count}\"/}\nplace=${place#hosts/}\necho \"gate - ${place%%/*}\" >> \"$COUNT/log\"";
    hosts.scene.workspace.write("leaves/gate.sh", format!("COUNT='{count}'\n{said}\n{script}\n"));
    hosts.briefs(ids);
    hosts.scene.pdca(&["batch", "--local"]).expect(0);
    hosts.accept(ids);
    hosts
}

/// The homes that gates ran in.
fn homes(hosts: &Hosts) -> Vec<String> {
    let calls = hosts.calls();
    let gates = calls.iter().filter_map(|call| call.strip_prefix("gate - "));
    gates.map(str::to_owned).collect()
}

/// What the logs of red rows say, all of them.
fn logs(hosts: &Hosts) -> String {
    let root = hosts.scene.workspace.path().join(".pdca/evidence");
    let mut text = String::new();
    for dir in root.read_dir_utf8().unwrap().flatten() {
        for file in dir.path().read_dir_utf8().unwrap().flatten() {
            text.push_str(&fs_err::read_to_string(file.path()).unwrap());
        }
    }
    text
}

fn staged(hosts: &Hosts) -> String {
    hosts.scene.repo.git(&["ls-tree", "-r", "pdca/staging/main"])
}

#[test]
fn a_red_combination_on_hosts_has_its_culprit_and_its_log_and_the_rest_lands_as_it_would_here() {
    let ids = ["7", "8", "9", "10"];
    let script =
        "if [ -e file-8.txt ] && [ -e file-9.txt ]; then echo they do not agree; exit 1; fi";
    let hosts = accepted(&["a", "b"], &ids, script);
    let before = hosts.keep();
    let mut ends = Vec::new();
    for more in [&["--local", "--lanes", "2"][..], &["--lanes", "0"]] {
        hosts.go_back(&before);
        // They are of the repository before it was copied.
        fs_err::remove_dir_all(hosts.around().join("ws.lanes")).unwrap();
        let so_far = homes(&hosts);
        let ran = hosts.scene.pdca(&[&["integrate"], more].concat());
        assert_eq!(ran.code, 101, "{} {}", ran.out, ran.err);
        assert!(logs(&hosts).contains("they do not agree"), "{}", logs(&hosts));
        let mut ran_in = homes(&hosts);
        for home in so_far {
            let at = ran_in.iter().position(|one| *one == home).unwrap();
            ran_in.remove(at);
        }
        ends.push((staged(&hosts), ran_in));
    }
    assert_eq!(ends[0].0, ends[1].0);
    let far = &ends[1].1;
    assert!(!far.is_empty() && far.iter().all(|home| home == "a" || home == "b"), "{far:?}");
    for name in ["a", "b"] {
        assert_eq!(hosts.jobs(name), Vec::<String>::new());
    }
}

/// Waits on a host, and not here.
const WAITS_THERE: &str = r#"case "$HOME" in */hosts/*) touch "$COUNT/at-gate"; while [ ! -e "$COUNT/go" ]; do sleep 0.02; done;; esac"#;

#[test]
fn h29_a_host_that_is_lost_while_it_gates_a_combination_is_replaced_by_this_machine() {
    let hosts = accepted(&["a"], &["7", "8"], WAITS_THERE);
    hosts.edit("lost_after_secs = 20", "lost_after_secs = 5");
    let driver = hosts.scene.start(&["integrate", "--lanes", "0", "--events", "events"]);
    hosts.scene.wait_until("the host gates", |_| hosts.has("at-gate"));
    hosts.cut("down-a");
    assert_eq!(driver.wait(), 0);
    let events = hosts.scene.workspace.read("events");
    assert!(events.contains("\"code\":\"host_lost\""), "{events}");
    assert!(staged(&hosts).contains("file-8.txt"));
    hosts.let_go("go");
    hosts.mend("down-a");
    hosts.scene.wait_until("the lost one has ended", |_| hosts.runners("a").is_empty());
    hosts.scene.pdca(&["hosts", "gc"]).expect(0);
    assert_eq!(hosts.jobs("a"), Vec::<String>::new());
}

#[test]
fn h30_the_next_driver_finds_the_combination_that_a_host_gates_for_a_killed_one() {
    // With another slot, another question would be asked meanwhile.
    let with_one_slot = || {
        let hosts = accepted(&["a"], &["7", "8"], WAITS_THERE);
        hosts.edit("slots = 2", "slots = 1");
        hosts
    };
    let undisturbed = with_one_slot();
    undisturbed.let_go("go");
    undisturbed.scene.pdca(&["integrate", "--lanes", "0"]).expect(0);

    let hosts = with_one_slot();
    let driver = hosts.scene.start(&["integrate", "--lanes", "0"]);
    hosts.scene.wait_until("the host gates", |_| hosts.has("at-gate"));
    driver.signal(Signal::KILL);
    assert_eq!(driver.wait(), 137);
    let jobs = hosts.jobs("a");
    let again = hosts.scene.start(&["integrate", "--lanes", "0", "--events", "events"]);
    hosts.scene.wait_until("it is found", |scene| {
        let events = scene.workspace.path().join("events");
        fs_err::read_to_string(events).unwrap_or_default().contains("\"resumed\":true")
    });
    assert_eq!(hosts.jobs("a"), jobs);
    hosts.let_go("go");
    assert_eq!(again.wait(), 0);
    assert!(staged(&hosts).contains("file-8.txt"));
    let on_host = |hosts: &Hosts| homes(hosts).iter().filter(|home| *home == "a").count();
    assert_eq!(on_host(&hosts), on_host(&undisturbed), "no gate ran again");
    assert_eq!(homes(&hosts).len(), homes(&undisturbed).len(), "nor here");
}

#[test]
fn h34_a_link_that_is_cut_before_or_after_any_verb_of_a_combination_changes_nothing_of_what_lands()
{
    let hosts = accepted(&["a"], &["7", "8"], "true");
    hosts.edit("slots = 2", "slots = 1");
    let before = hosts.keep();
    let integrate = |cut: &str| {
        hosts.go_back(&before);
        // They are of the repository before it was copied.
        fs_err::remove_dir_all(hosts.around().join("ws.lanes")).unwrap();
        if !cut.is_empty() {
            hosts.cut(cut);
        }
        let mut ran = hosts.scene.pdca(&["integrate", "--lanes", "0"]);
        if cut.starts_with("offer") {
            // The host is not used yet, so the command says so and can be repeated.
            assert!(ran.code == 2 && ran.err.contains("ssh a true"), "{cut}: {}", ran.err);
            ran = hosts.scene.pdca(&["integrate", "--lanes", "0"]);
        }
        assert_eq!(ran.code, 0, "{cut}: {}", ran.err);
        assert!(cut.is_empty() || !hosts.is_cut(cut), "{cut} was not reached");
        (staged(&hosts), homes(&hosts))
    };
    let undisturbed = integrate("");
    for verb in ["offer", "stage", "start", "watch", "collect", "reap"] {
        for when in ["before", "after"] {
            let cut = format!("{verb}-{when}");
            assert_eq!(integrate(&cut), undisturbed, "{cut}");
        }
    }
}
