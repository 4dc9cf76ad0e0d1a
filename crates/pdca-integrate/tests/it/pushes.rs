//! Pushes of gated candidates to a remote.

use camino::Utf8PathBuf;
use pdca_integrate::{Destination, Gated, ObjectId, PushError, PushOutcome, Strategy, push};
use pdca_testkit::Repo;

use crate::scene::{Scene, id, passed};

const ORIGIN: Destination<'static> = Destination { remote: "origin", branch: "main" };

struct Remote {
    scene: Scene,
    gated: Gated,
    path: Utf8PathBuf,
    config: Vec<u8>,
}

impl Remote {
    fn new() -> Self {
        let scene = Scene::new(&[("f", "1\n")]);
        let sealed = scene.change("1", 1, &[("f", Some("one\n"))]);
        let gated = passed(&scene.fold(&scene.plan(&[&sealed], Strategy::RebaseFf)));
        let path = scene.room("remote.git");
        scene.repo.git(&["clone", "--quiet", "--bare", ".", path.as_str()]);
        let config = std::fs::read(scene.repo.path().join(".git/config")).unwrap();
        scene.repo.git(&["remote", "add", "origin", &format!("file://{path}")]);
        Self { scene, gated, path, config }
    }

    fn push(&self) -> PushOutcome {
        push(&self.scene.store, &self.scene.fence, &self.gated, ORIGIN).unwrap()
    }

    fn at(&self) -> ObjectId {
        id(&Repo::existing(&self.path).git(&["rev-parse", "refs/heads/main"]))
    }

    fn hook(&self, name: &str, text: &str) {
        Repo::existing(&self.path).write_executable(format!("hooks/{name}"), text);
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        std::fs::write(self.scene.repo.path().join(".git/config"), &self.config).unwrap();
    }
}

#[test]
fn a_push_is_done_when_the_remote_says_so() {
    let remote = Remote::new();
    assert_eq!(remote.push(), PushOutcome::Pushed);
    assert_eq!(remote.at(), remote.gated.candidate().commit());
}

#[test]
fn a25_a_push_whose_answer_was_lost_is_already_there() {
    let remote = Remote::new();
    remote.push();
    assert_eq!(remote.push(), PushOutcome::AlreadyThere);
}

#[test]
fn a_remote_that_went_on_is_a_race_and_is_not_forced() {
    let remote = Remote::new();
    let theirs = remote.scene.commit(remote.scene.base, "theirs", |lane| lane.write("g", "g\n"));
    let path = remote.path.as_str();
    remote.scene.repo.git(&["push", "--quiet", path, &format!("{theirs}:refs/heads/main")]);
    assert_eq!(remote.push(), PushOutcome::Race { at: theirs });
    assert_eq!(remote.at(), theirs);
}

#[test]
fn a_remote_that_moves_during_the_push_is_a_race() {
    let remote = Remote::new();
    let theirs = remote.scene.commit(remote.scene.base, "theirs", |lane| lane.write("g", "g\n"));
    let path = remote.path.as_str();
    remote.scene.repo.git(&["push", "--quiet", path, &format!("{theirs}:refs/heads/side")]);
    // The hook runs after the remote reported its tip, and before it accepts anything.
    remote.hook(
        "pre-receive",
        &format!("#!/bin/sh\nunset GIT_QUARANTINE_PATH\ngit update-ref refs/heads/main {theirs}\n"),
    );
    assert_eq!(remote.push(), PushOutcome::Race { at: theirs });
    assert_eq!(remote.at(), theirs);
}

#[test]
fn a_remote_that_refuses_is_permanent_and_says_why() {
    let remote = Remote::new();
    remote.hook("pre-receive", "#!/bin/sh\nexit 1\n");
    let PushOutcome::Permanent { said } = remote.push() else { panic!("it is not permanent") };
    assert!(said.contains("pre-receive hook declined"), "{said}");
    assert_eq!(remote.at(), remote.scene.base);
}

#[test]
fn a_remote_that_cannot_be_reached_is_transient() {
    let remote = Remote::new();
    std::fs::rename(&remote.path, remote.path.with_extension("gone")).unwrap();
    assert!(matches!(remote.push(), PushOutcome::Transient { .. }));
}

#[test]
fn a_remote_without_the_branch_is_told_apart() {
    let remote = Remote::new();
    Repo::existing(&remote.path).git(&["update-ref", "-d", "refs/heads/main"]);
    assert_eq!(remote.push(), PushOutcome::NoBranch);
}

#[test]
fn the_users_hooks_do_not_run() {
    let remote = Remote::new();
    let marker = remote.scene.room("hook-ran");
    remote
        .scene
        .repo
        .write_executable(".git/hooks/pre-push", format!("#!/bin/sh\ntouch {marker}\n"));
    assert_eq!(remote.push(), PushOutcome::Pushed);
    assert!(!marker.exists());
}

#[test]
fn a_name_that_git_would_take_for_an_option_is_refused() {
    let remote = Remote::new();
    let store = &remote.scene.store;
    for to in [
        Destination { remote: "--upload-pack=x", branch: "main" },
        Destination { remote: "origin", branch: "a..b" },
    ] {
        let error = push(store, &remote.scene.fence, &remote.gated, to).unwrap_err();
        assert!(matches!(error, PushError::Name { .. }), "{error:?}");
    }
}
