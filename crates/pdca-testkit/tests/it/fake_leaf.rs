//! What the scripted leaf does, seen from outside.

#![expect(
    clippy::disallowed_methods,
    reason = "the program under test is started as anyone would start it"
)]

use std::process::{Command, Output, Stdio};

use pdca_testkit::{Repo, TestWorkspace, fake_leaf};

fn run(workspace: &TestWorkspace, script: &str) -> Output {
    let script = workspace.script("script", script);
    Command::new(fake_leaf())
        .arg(script)
        .arg("first word")
        .current_dir(workspace.path())
        .env("PDCA_BUNDLE", workspace.bundle("1"))
        .env("PDCA_WORKTREE", workspace.around().join("tree"))
        .stdin(Stdio::null())
        .output()
        .expect("the leaf can be started")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn writes_go_to_the_place_that_was_named() {
    let workspace = TestWorkspace::new();
    let output = run(
        &workspace,
        "# three places\nwrite here.txt \"a\\tb\\n\"\nappend here.txt ${1}\nwrite bundle:x/y.md <<END\n two\n  lines\nEND\nwrite worktree:z z\n",
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(workspace.read("here.txt"), "a\tb\nfirst word");
    assert_eq!(workspace.read("results/issue_1/x/y.md"), " two\n  lines\n");
    assert!(workspace.around().join("tree/z").exists());
}

#[test]
fn the_first_calls_fail_and_the_next_one_succeeds() {
    let workspace = TestWorkspace::new();
    let codes: Vec<_> = (0..3)
        .map(|_| run(&workspace, "fail-first 2 calls 75\nlog log went-on\n").status.code())
        .collect();
    assert_eq!(codes, [Some(75), Some(75), Some(0)]);
    assert_eq!(workspace.read("log"), "went-on\n");
}

#[test]
fn a_line_can_be_meant_for_one_call_only() {
    let workspace = TestWorkspace::new();
    let script = "count calls\n[1] print one\n[2+] print later\n[-2] print early\n";
    let said: Vec<_> = (0..3).map(|_| stdout(&run(&workspace, script))).collect();
    assert_eq!(said, ["one\nearly\n", "later\nearly\n", "later\n"]);
}

#[test]
fn what_cannot_be_read_is_reported_and_not_an_error() {
    let workspace = TestWorkspace::new();
    let output =
        run(&workspace, "read pdca.toml\nread absent\ntry-write results report\nask really?\n");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        stdout(&output),
        "read pdca.toml: yes\nread absent: no (entity not found)\nreally?\nanswer: end of input\n"
    );
    assert_eq!(workspace.read("report"), "try-write results: no (is a directory)\n");
}

#[test]
fn a_script_without_sense_names_its_line() {
    let output = run(&TestWorkspace::new(), "print a\nfly away\n");
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("line 2"), "{output:?}");
}

#[test]
fn a_commit_is_made_in_the_current_directory() {
    let repo = Repo::with_first_commit();
    let status = Command::new(fake_leaf())
        .args(["-e", "write a.txt a", "-e", "commit \"from a leaf\""])
        .current_dir(repo.path())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(repo.git(&["log", "-1", "--format=%s%n%an"]), "from a leaf\nA Leaf\n");
    assert!(!repo.status().contains('?'));
}

#[test]
fn a_daemon_outlives_the_leaf_in_a_session_of_its_own() {
    let workspace = TestWorkspace::new();
    let output = run(&workspace, "daemon 60000 pid\nprint left\n");
    assert_eq!(stdout(&output), "left\n");
    let pid = workspace.read("pid");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let (parent, session) = (fields[1], fields[3]);
    assert_ne!(session, std::process::id().to_string());
    assert_ne!(parent, std::process::id().to_string());
    let raw = pid.parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(raw).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}
