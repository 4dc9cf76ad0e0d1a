//! What a band on a host gives, and where it runs.

use super::harness::{BUILDER, Hosts, PATIENT, REVIEWER, seals};

const GATE: &str = "[[gates.checks]]\nid = \"T1-file\"\ntier = \"T1\"\nscope = \"bundle\"\ncmd = 'test -f \"file-$PDCA_ISSUE.txt\"'\n";

#[test]
fn h1_bands_on_hosts_give_the_same_bundles_and_seals_as_a_local_run() {
    let ids = ["7", "8", "9", "10"];
    let hosts = Hosts::new(&["a", "b"], BUILDER, GATE);
    hosts.briefs(&ids);
    let before = hosts.keep();
    hosts.batch(&["--hosts", "a,b"]).expect(0);
    let homes: Vec<String> = hosts.calls().iter().map(|call| home_of(call)).collect();
    assert!(homes.iter().all(|home| home == "a" || home == "b"), "{homes:?}");
    assert!(homes.contains(&"a".to_owned()) && homes.contains(&"b".to_owned()), "{homes:?}");
    for name in ["a", "b"] {
        assert_eq!(hosts.jobs(name), Vec::<String>::new(), "nothing is left of a run that is over");
    }
    let bundles = hosts.scene.results();
    hosts.accept(&ids);
    let (calls, sealed) = (hosts.calls().len(), seals(&hosts.scene, &ids));
    hosts.go_back(&before);
    hosts.scene.pdca(&["batch", "--local"]).expect(0);
    assert_eq!(hosts.scene.results(), bundles);
    assert_eq!(hosts.calls().len(), calls);
    hosts.accept(&ids);
    assert_eq!(seals(&hosts.scene, &ids), sealed);
    assert!(hosts.calls().iter().all(|call| !["a", "b"].contains(&home_of(call).as_str())));
}

/// The home directory of a call, which says on which host it was.
fn home_of(call: &str) -> String {
    call.split(' ').nth(2).unwrap_or_default().to_owned()
}

#[test]
fn slots_of_hosts_are_beside_the_local_lanes_and_are_told() {
    let hosts = Hosts::new(&["a"], PATIENT, "");
    let ids = ["7", "8", "9"];
    hosts.briefs(&ids);
    let driver = hosts.scene.start(&["batch", "--lanes", "1", "--events", "events"]);
    hosts.scene.wait_until("all three are in work", |_| {
        ids.iter().all(|id| hosts.has(&format!("at-{id}")))
    });
    let homes: Vec<String> = hosts.calls();
    assert_eq!(homes.iter().filter(|call| call.ends_with(" a")).count(), 2, "{homes:?}");
    let status = hosts.scene.pdca(&["status", "--json"]).expect(0).json();
    assert_eq!(status["bundles"].as_array().unwrap().len(), 3);
    hosts.let_go("go");
    assert_eq!(driver.wait(), 0);
    let events = hosts.scene.workspace.read("events");
    assert_eq!(events.matches("\"event\":\"on_host\"").count(), 2, "{events}");
}

#[test]
fn a_red_gate_and_a_builder_that_fails_mean_on_a_host_what_they_mean_here() {
    let red = "[[gates.checks]]\nid = \"T1-red\"\ntier = \"T1\"\nscope = \"bundle\"\ncmd = 'test \"$PDCA_ISSUE\" != 7'\n";
    let builder = r#"[ "$1" != 8 ] || { echo "cannot" >&2; exit 3; }
[ "$1" = 9 ] || echo "$1" > "file-$1.txt""#;
    let far = Hosts::new(&["a"], builder, red);
    let near = Hosts::new(&[], builder, red);
    let ids = ["7", "8", "9"];
    for hosts in [&far, &near] {
        hosts.briefs(&ids);
        let ran = if hosts.names.is_empty() {
            hosts.scene.pdca(&["batch", "--local", "--json"])
        } else {
            hosts.batch(&["--json"])
        };
        assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
        let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let outcome = |id: &str| {
            let rows = report["bundles"].as_array().unwrap();
            rows.iter().find(|row| row["id"] == id).unwrap()["outcome"].clone()
        };
        assert_eq!(
            (outcome("7"), outcome("8"), outcome("9")),
            ("red".into(), "failed".into(), "failed".into())
        );
        assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
        assert_eq!(hosts.scene.state("8"), "PLANNED");
        let why = hosts.scene.pdca(&["why", "8"]);
        assert!(why.out.contains("builder"), "{}", why.out);
    }
}

#[test]
fn a_reviewer_that_sends_back_gets_a_second_attempt_under_a_second_generation() {
    let hosts = Hosts::new(
        &["a"],
        r#"echo "$1 $(cat "$COUNT/tries" 2>/dev/null | wc -l)" > "file-$1.txt""#,
        "[driver]\nmax_auto_iters = 2\n",
    );
    hosts.leaf(
        "reviewer",
        r#"
echo x >> "$COUNT/tries"
if [ "$(wc -l < "$COUNT/tries")" -lt 2 ]; then verdict=FAIL; else verdict=PASS; fi
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | %s | it is so |\n' "$verdict"
"#,
    );
    hosts.briefs(&["7"]);
    hosts.batch(&[]).expect(0);
    assert_eq!(hosts.scene.state("7"), "AWAITING_SIGNOFF");
    let builders = hosts.calls().into_iter().filter(|call| call.starts_with("builder")).count();
    assert_eq!(builders, 2, "{:?}", hosts.calls());
    assert!(hosts.scene.workspace.path().join("results/issue_7/iteration-v1").is_dir());
}

#[test]
fn a_cap_on_leaf_calls_holds_over_hosts_and_lanes_together() {
    let hosts = Hosts::new(&["a"], BUILDER, "[driver]\nmax_leaf_calls = 3\n");
    hosts.briefs(&["7", "8", "9"]);
    let ran = hosts.scene.pdca(&["batch", "--lanes", "1"]);
    assert_eq!(ran.code, 103, "{}", ran.err);
    assert_eq!(hosts.calls().len(), 3, "{:?}", hosts.calls());
}

#[test]
fn h2_a_leaf_on_a_host_has_the_walls_of_a_local_one_and_no_way_back_to_the_driver() {
    let wall = "[leaves.builder]\nmode = \"command\"\nargv = [\"sh\", \"{workspace}/leaves/builder.sh\", \"{id}\"]\nprompt_via = \"none\"\nsandbox = \"require\"\n";
    let hosts = Hosts::new(&["a"], BUILDER, "");
    let toml = hosts.scene.workspace.read("pdca.toml");
    let open =
        toml.split("[leaves.builder]").nth(1).unwrap().split("\n\n").next().unwrap().to_owned();
    hosts
        .scene
        .workspace
        .write("pdca.toml", toml.replace(&format!("[leaves.builder]{open}\n"), wall));
    hosts.scene.workspace.write("leaves/builder.sh", r#"
env | cut -d= -f1 | grep -E '^(SSH_|GH_TOKEN|GITHUB_)' > file-env.txt || true
for path in "$PDCA_WORKSPACE/results" "$PDCA_WORKSPACE/.pdca" "$HOME/.pdca-host/jobs" "$HOME/.pdca-host/bin" "$HOME/.pdca-host/repositories"; do
  if touch "$path/planted" 2>/dev/null; then echo "wrote $path" >> file-env.txt; fi
done
echo done >> file-env.txt
"#);
    hosts.briefs(&["7"]);
    let env = [("SSH_AUTH_SOCK", "/run/agent"), ("GH_TOKEN", "secret-of-the-driver")];
    let ran = hosts.scene.pdca_with(&env, &["batch", "--lanes", "0"]);
    if ran.err.contains("its kernel offers no sandbox") {
        super::harness::not_shown("the kernel offers no sandbox");
        return;
    }
    ran.expect(0);
    let patch = hosts.scene.workspace.read("results/issue_7/patch.diff");
    let added: Vec<&str> =
        patch.lines().filter(|line| line.starts_with('+') && !line.starts_with("+++")).collect();
    assert_eq!(added, ["+done"], "{patch}");
}

#[test]
fn hosts_are_left_out_with_local_and_an_unknown_one_is_named() {
    let hosts = Hosts::new(&["a"], BUILDER, "");
    hosts.briefs(&["7"]);
    let ran = hosts.scene.pdca(&["batch", "--hosts", "nowhere"]).expect(2);
    assert!(
        ran.err.contains("there is no host `nowhere`")
            && ran.err.contains("pdca hosts add nowhere"),
        "{}",
        ran.err
    );
    hosts.scene.pdca(&["batch", "--local"]).expect(0);
    assert_eq!(hosts.verbs(), Vec::<String>::new());
    let listed = hosts.scene.pdca(&["hosts", "list", "--json"]).expect(0).json();
    assert_eq!(listed["hosts"][0]["slots"], 2);
}

#[test]
fn a_prompt_and_a_script_of_the_workspace_travel_and_are_not_sent_twice() {
    let hosts = Hosts::new(&["a"], BUILDER, "");
    hosts.leaf("reviewer", REVIEWER);
    hosts.briefs(&["7"]);
    hosts.batch(&[]).expect(0);
    let contents = hosts.root("a").join("contents").read_dir_utf8().unwrap().count();
    hosts.briefs(&["8"]);
    hosts.batch(&[]).expect(0);
    let later = hosts.root("a").join("contents").read_dir_utf8().unwrap().count();
    assert!(later <= contents + 3, "scripts are there already: {contents} and {later}");
}
