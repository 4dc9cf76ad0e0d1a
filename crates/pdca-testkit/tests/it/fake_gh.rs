//! The forge in a directory: what it takes, and what it does not.

use std::process::{Command, Output};

use pdca_testkit::{Repo, fake_gh};

struct Forge {
    state: tempfile::TempDir,
    remote: Repo,
}

impl Forge {
    fn new() -> Self {
        let remote = Repo::with_first_commit();
        remote.git(&["branch", "change"]);
        Self { state: tempfile::tempdir().expect("a directory can be made"), remote }
    }

    #[expect(clippy::disallowed_methods, reason = "the program is what is tested")]
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(fake_gh());
        command
            .args(args)
            .env("FAKE_GH_STATE", self.state.path())
            .env("FAKE_GH_REMOTE", self.remote.path().join(".git"))
            .env("GH_PROMPT_DISABLED", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(std::process::Stdio::null());
        command
    }

    fn gh(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program can be started")
    }

    fn create(&self, more: &[&str]) -> Output {
        let usual = ["pr", "create", "--draft", "--repo=team/app", "--base=main", "--title=t"];
        self.gh(&[&usual, more, &["--body-file=-"]].concat())
    }

    fn list(&self) -> String {
        let fields = "--json=number,url,state,isDraft,body,headRefName,baseRefName,headRefOid,isCrossRepository";
        let args = ["pr", "list", "--repo=team/app", "--head=change", "--state=all", "--limit=100"];
        String::from_utf8_lossy(&self.gh(&[&args[..], &[fields]].concat()).stdout).into_owned()
    }
}

#[test]
fn a_call_that_pdca_does_not_make_is_refused() {
    let forge = Forge::new();
    for more in [&["--head=change", "--web"][..], &[], &["change"]] {
        assert_eq!(forge.create(more).status.code(), Some(99), "{more:?}");
    }
    assert_eq!(forge.gh(&["pr", "merge", "1"]).status.code(), Some(99));
    let asking = forge.command(&["pr", "list"]).env_remove("GH_PROMPT_DISABLED").output().unwrap();
    assert_eq!(asking.status.code(), Some(99));
    assert_eq!(forge.list(), "[]\n");
}

#[test]
fn a_branch_has_one_open_pull_request_and_must_be_there() {
    let forge = Forge::new();
    assert_eq!(forge.create(&["--head=no-such-branch"]).status.code(), Some(1));
    assert_eq!(forge.create(&["--head=change"]).status.code(), Some(0));
    assert_eq!(forge.create(&["--head=change"]).status.code(), Some(1));
    assert_eq!(forge.list().matches("\"number\":1").count(), 1);
}

#[test]
fn a_lost_answer_is_that_of_a_call_that_was_carried_out_and_is_lost_once() {
    let forge = Forge::new();
    std::fs::write(forge.state.path().join("faults"), "pr create: busy\npr create: lose\n")
        .unwrap();
    assert_eq!(forge.create(&["--head=change"]).status.code(), Some(1));
    assert_eq!(forge.list(), "[]\n", "it was busy");
    assert_eq!(forge.create(&["--head=change"]).status.code(), Some(1));
    assert!(forge.list().contains("\"number\":1"), "it was carried out");
}
