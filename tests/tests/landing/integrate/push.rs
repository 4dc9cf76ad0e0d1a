//! The branch of a remote: what goes there, and what others put there meanwhile.

use camino::Utf8PathBuf;
use pdca_e2e::{Ran, Started};
use pdca_testkit::Repo;

use crate::meeting::Meeting;

/// Waits, where `a.txt` is there and the test wants it to, until the test lets it go; and counts.
const PATIENT: &str = r#"
echo run >> "$PDCA_WORKSPACE/calls/runs"
if [ -e a.txt ] && [ -e "$PDCA_WORKSPACE/wait" ]; then
  echo up >> "$PDCA_WORKSPACE/calls/at"
  while [ ! -e "$PDCA_WORKSPACE/go" ]; do sleep 0.02; done
fi"#;

/// A remote that several may push to.
struct Remote(Utf8PathBuf);

impl Remote {
    /// A bare clone beside the scene's workspace.
    fn of(scene: &Meeting) -> Self {
        let path = scene.scene.workspace.around().join("remote.git");
        scene.scene.repo.git(&["clone", "--quiet", "--bare", ".", path.as_str()]);
        Self(path)
    }

    fn repo(&self) -> Repo {
        Repo::existing(&self.0)
    }

    fn subjects(&self) -> String {
        self.repo().git(&["log", "--format=%s", "main"])
    }

    fn at(&self) -> String {
        self.repo().git(&["rev-parse", "main"]).trim().to_owned()
    }

    fn hook(&self, text: &str) {
        self.repo().write_executable("hooks/pre-receive", format!("#!/bin/sh\n{text}\n"));
    }

    /// Somebody else commits there.
    fn gains(&self, file: &str) {
        let clone = self.0.with_file_name(format!("clone-for-{file}"));
        self.repo().git(&["clone", "--quiet", "--branch", "main", ".", clone.as_str()]);
        let clone = Repo::existing(&clone);
        clone.write(file, "theirs\n");
        clone.commit("somebody else");
        clone.git(&["push", "--quiet", "origin", "main"]);
    }
}

/// Has the scene push to a remote.
fn pushing_to(scene: &Meeting, remote: &Remote) {
    let config = scene.scene.workspace.read("pdca.toml");
    let to = format!("{config}\n[integrate]\nland = \"push\"\nremote = \"{}\"\n", remote.0);
    scene.scene.workspace.config(&to);
}

fn waiting_at_the_gate(scene: &Meeting) -> Started {
    scene.scene.workspace.write("wait", "");
    let started = scene.scene.start(&["integrate", "--fresh"]);
    scene.scene.wait_until("the gate waits", |scene| scene.workspace.says("calls/at"));
    started
}

fn let_go(scene: &Meeting, started: Started) -> i32 {
    scene.scene.workspace.write("go", "");
    started.wait()
}

fn runs(scene: &Meeting) -> usize {
    scene.scene.workspace.read("calls/runs").lines().count()
}

/// It is known here what the remote has, and there is nothing left to do.
fn is_done(scene: &Meeting) -> Ran {
    scene.integrate(&[]).expect(4)
}

#[test]
fn what_was_pushed_has_landed_and_nothing_of_the_users_moved() {
    let scene = Meeting::new("true");
    let remote = Remote::of(&scene);
    pushing_to(&scene, &remote);
    scene.accepted("1", "a.txt", "a\n");
    let main = scene.at("main");
    let done = scene.integrate(&["--json"]).expect(0).json();
    assert_eq!(remote.at(), done["tip"].as_str().unwrap());
    assert_eq!(scene.at("main"), main);
    assert_eq!(scene.scene.repo.git(&["branch", "--list", "pdca/*"]), "");
    is_done(&scene);
    let status = scene.pdca(&["status", "--json"]).expect(0).json();
    assert_eq!(status["bundles"][0]["integration"], "landed", "{status}");
    scene.pdca(&["verify"]).expect(0);
}

#[test]
fn a_named_remote_is_used_as_configured_and_what_is_known_of_it_stays_the_users() {
    let scene = Meeting::new("true");
    let remote = Remote::of(&scene);
    // The user fetched once; that is what they know of the remote until they fetch again.
    scene.scene.repo.git(&["remote", "add", "origin", "../remote.git"]);
    scene.scene.repo.git(&["fetch", "--quiet", "origin"]);
    let scene = scene.looked_at_anew();
    scene.scene.workspace.config(&format!(
        "{}\n[integrate]\nland = \"push\"\n",
        scene.scene.workspace.read("pdca.toml")
    ));
    remote.gains("theirs.txt");
    scene.accepted("1", "a.txt", "a\n");
    scene.integrate(&[]).expect(0);
    assert_eq!(remote.subjects(), "a slug\nsomebody else\nfirst\n");
    is_done(&scene);
}

#[test]
fn what_the_user_has_not_pushed_is_not_pushed_for_them() {
    for (strategy, code) in [("rebase-ff", 0), ("merge-commit", 104)] {
        let scene = Meeting::new("true");
        let remote = Remote::of(&scene);
        pushing_to(&scene, &remote);
        let config = scene.scene.workspace.read("pdca.toml");
        scene.scene.workspace.config(&format!("{config}strategy = \"{strategy}\"\n"));
        scene.commit_to_main("own-and-not-pushed.txt", "mine\n");
        scene.accepted("1", "a.txt", "a\n");
        let done = scene.integrate(&[]).expect(code);
        let there = remote.repo().git(&["ls-tree", "--name-only", "main"]);
        assert!(!there.contains("own-and-not-pushed.txt"), "{strategy}: {there}");
        assert_eq!(there.contains("a.txt"), code == 0, "{strategy}: {there}");
        let told =
            done.err.contains("own-and-not-pushed.txt") && done.err.contains("push those first");
        assert_eq!(told, code != 0, "{strategy}: {}", done.err);
    }
}

#[test]
fn c3_a_second_driver_in_another_clone_loses_the_race_and_gates_again() {
    let (first, second) = (Meeting::new(PATIENT), Meeting::new(PATIENT));
    assert_eq!(first.at("main"), second.at("main"), "both are clones of the same");
    let remote = Remote::of(&first);
    pushing_to(&first, &remote);
    pushing_to(&second, &remote);
    second.accepted("1", "a.txt", "a\n");
    first.accepted("2", "b.txt", "b\n");
    let slower = waiting_at_the_gate(&second);
    let before = runs(&second);
    // The second driver works on the same branch of the same remote at this moment.
    first.integrate(&[]).expect(0);
    assert_eq!(let_go(&second, slower), 0);
    assert_eq!(remote.subjects(), "a slug\na slug\nfirst\n");
    assert!(runs(&second) > before, "what landed was gated with what the other one brought");
    is_done(&first);
    is_done(&second);
    first.pdca(&["verify"]).expect(0);
    second.pdca(&["verify"]).expect(0);
}

#[test]
fn d20_a_remote_without_the_branch_is_refused_before_anything_is_gated() {
    let scene = Meeting::new(PATIENT);
    let remote = Remote::of(&scene);
    pushing_to(&scene, &remote);
    scene.accepted("1", "a.txt", "a\n");
    remote.repo().git(&["update-ref", "-d", "refs/heads/main"]);
    let (before, refs) = (runs(&scene), scene.scene.repo.git(&["for-each-ref"]));
    for args in [&[][..], &["--dry-run"]] {
        let refused = scene.integrate(args).expect(2);
        assert!(refused.err.contains("has no branch main"), "{}", refused.err);
        assert!(refused.err.contains("git push"), "the remedy: {}", refused.err);
    }
    assert_eq!((runs(&scene), scene.scene.repo.git(&["for-each-ref"])), (before, refs));
    assert_eq!(remote.repo().git(&["for-each-ref", "refs/heads/main"]), "", "it is not made");
}

#[test]
fn d21_a_push_that_lost_a_race_is_gated_again_on_what_is_there() {
    let scene = Meeting::new(PATIENT);
    let remote = Remote::of(&scene);
    pushing_to(&scene, &remote);
    scene.accepted("1", "a.txt", "a\n");
    let started = waiting_at_the_gate(&scene);
    let before = runs(&scene);
    remote.gains("theirs.txt");
    assert_eq!(let_go(&scene, started), 0);
    assert_eq!(remote.subjects(), "a slug\nsomebody else\nfirst\n");
    assert!(runs(&scene) > before, "the new combination was gated");
    is_done(&scene);
}

#[test]
fn a_base_that_gained_more_commits_than_the_limit_waits_for_a_person() {
    for (gained, is_followed) in [(2, true), (3, false)] {
        let scene = Meeting::new(PATIENT);
        let remote = Remote::of(&scene);
        pushing_to(&scene, &remote);
        let config = scene.scene.workspace.read("pdca.toml");
        scene.scene.workspace.config(&format!("{config}max_base_drift_commits = 2\n"));
        scene.accepted("1", "a.txt", "a\n");
        let started = waiting_at_the_gate(&scene);
        for number in 0..gained {
            remote.gains(&format!("theirs-{number}.txt"));
        }
        let theirs = remote.at();
        assert_eq!(let_go(&scene, started), if is_followed { 0 } else { 104 }, "{gained}");
        if !is_followed {
            assert_eq!(remote.at(), theirs, "nothing is pushed without a person");
            assert_eq!(scene.scene.state("1"), "COMPLETE");
            // The person looked at what others did, and asks again.
            scene.integrate(&[]).expect(0);
        }
        let expected = format!("a slug\n{}first\n", "somebody else\n".repeat(gained));
        assert_eq!(remote.subjects(), expected);
        is_done(&scene);
    }
}

#[test]
fn d21_a_push_that_fails_for_the_moment_is_repeated() {
    let scene = Meeting::new("true");
    let remote = Remote::of(&scene);
    pushing_to(&scene, &remote);
    scene.accepted("1", "a.txt", "a\n");
    // A lock that somebody else has on the branch at the first try and not at the second.
    let lock = remote.0.join("refs/heads/main.lock");
    let once = remote.0.join("once");
    remote.hook(&format!("if [ -e {once} ]; then rm -f {lock}; else touch {once} {lock}; fi"));
    let done = scene.integrate(&[]).expect(0);
    assert!(done.err.contains("retrying"), "{}", done.err);
    assert_eq!(remote.subjects(), "a slug\nfirst\n");
}

#[test]
fn d21_a_push_that_is_refused_for_good_waits_for_a_person_and_loses_nothing() {
    let scene = Meeting::new(PATIENT);
    let remote = Remote::of(&scene);
    pushing_to(&scene, &remote);
    scene.accepted("1", "a.txt", "a\n");
    remote.hook("exit 1");
    let main = remote.at();
    let refused = scene.integrate(&[]).expect(104);
    assert!(refused.err.contains("pre-receive hook declined"), "{}", refused.err);
    assert_eq!(remote.at(), main);
    remote.hook("exit 0");
    let before = runs(&scene);
    scene.integrate(&[]).expect(0);
    assert_eq!(remote.subjects(), "a slug\nfirst\n");
    assert_eq!(runs(&scene), before, "what was gated is not gated again");
}

#[test]
fn a_remote_that_does_not_answer_is_asked_again_and_then_reported() {
    let scene = Meeting::new("true");
    let remote = Remote::of(&scene);
    pushing_to(&scene, &remote);
    scene.accepted("1", "a.txt", "a\n");
    let away = remote.0.with_extension("away");
    fs_err::rename(&remote.0, &away).unwrap();
    let refused = scene.integrate(&[]).expect(104);
    assert!(refused.err.contains("does not answer"), "{}", refused.err);
    assert_eq!(refused.err.matches("retrying").count(), 3, "{}", refused.err);
    fs_err::rename(&away, &remote.0).unwrap();
    scene.integrate(&[]).expect(0);
}

#[test]
fn a_remote_that_was_rewound_since_the_last_time_is_not_forced() {
    let scene = Meeting::new("true");
    let remote = Remote::of(&scene);
    pushing_to(&scene, &remote);
    scene.accepted("1", "a.txt", "a\n");
    scene.integrate(&[]).expect(0);
    remote.repo().git(&["update-ref", "refs/heads/main", "main~1"]);
    scene.accepted("2", "b.txt", "b\n");
    let told = scene.integrate(&[]).expect(104);
    assert!(told.err.contains("was rewound or rewritten"), "{}", told.err);
    assert_eq!(remote.subjects(), "first\n");
    // Told once; asked again, it starts from where the remote is, and brings back what is not there.
    scene.integrate(&[]).expect(0);
    assert_eq!(remote.subjects(), "a slug\na slug\nfirst\n");
}

#[test]
fn a25_killed_at_any_effect_of_a_push_the_next_one_lands_it_once() {
    // Each of them before it is done, so "land" is where the remote has it and nobody knows.
    let points =
        ["sight", "announce", "land-intent", "push", "land", "certificate", "land-outcome"];
    for at in points {
        let scene = Meeting::new("true");
        let remote = Remote::of(&scene);
        pushing_to(&scene, &remote);
        scene.accepted("1", "a.txt", "a\n");
        let killed = scene.scene.pdca_with(&[("PDCA_CRASH_AT", at)], &["integrate"]);
        assert_eq!(killed.code, 128 + 9, "{at}: {}", killed.err);
        let again = scene.integrate(&[]);
        assert!([0, 4].contains(&again.code), "{at}: {} {}", again.code, again.err);
        assert_eq!(remote.subjects(), "a slug\nfirst\n", "{at}");
        is_done(&scene);
        let certificates = scene.scene.workspace.path().join("process/certificates");
        assert_eq!(certificates.read_dir_utf8().unwrap().count(), 1, "{at}");
        scene.pdca(&["verify"]).expect(0);
    }
}
