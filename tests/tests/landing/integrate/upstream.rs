//! The base is brought up to date with the remote of the branch.

use camino::Utf8PathBuf;
use pdca_e2e::Scene;
use pdca_testkit::Repo;

const REVIEWER: &str = r"
printf '| Item | Verdict | Basis |\n|---|---|---|\n| C1 Spec | PASS | fine |\n'
";

/// A target with a remote, and an accepted change.
fn scene(land: &str) -> (Scene, Utf8PathBuf) {
    let more = format!(
        "[integrate]\nland = \"{land}\"\n\n[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"true\"\n"
    );
    let scene = Scene::with_leaves("echo \"by $1\" > \"own$1.txt\"", REVIEWER, &more);
    let remote = scene.workspace.around().join("hub.git");
    scene.repo.git(&["init", "--quiet", "--bare", "--initial-branch=main", remote.as_str()]);
    scene.repo.git(&["remote", "add", "hub", remote.as_str()]);
    scene.repo.git(&["push", "--quiet", "--set-upstream", "hub", "main"]);
    scene.repo.git(&["checkout", "--quiet", "--detach"]);
    scene.brief("4", &[]);
    scene.pdca(&["run", "4"]).expect(0);
    scene.accept("4");
    (scene, remote)
}

/// Somebody else pushes a file to the remote.
fn push(scene: &Scene, remote: &Utf8PathBuf, file: &str) -> String {
    let clone = scene.workspace.around().join(format!("clone-{file}"));
    scene.repo.git(&["clone", "--quiet", remote.as_str(), clone.as_str()]);
    let clone = Repo::existing(&clone);
    clone.write(file, "theirs\n");
    let commit = clone.commit("by somebody else");
    clone.git(&["push", "--quiet", "origin", "HEAD:main"]);
    commit.trim().to_owned()
}

fn tip(scene: &Scene, name: &str) -> String {
    scene.repo.git(&["rev-parse", name]).trim().to_owned()
}

#[test]
fn what_is_staged_stands_on_what_the_remote_has_and_the_branch_of_the_user_stays() {
    let (scene, remote) = scene("branch");
    let theirs = push(&scene, &remote, "theirs.txt");
    let before = (tip(&scene, "main"), tip(&scene, "HEAD"));
    let ran = scene.pdca(&["--json", "integrate"]).expect(0);
    let told = ran.json();
    assert_eq!(
        (told["base"].as_str(), told["remote"]["drift"].as_str()),
        (Some(&*theirs), Some("fast-forwarded"))
    );
    assert!(told["remote"]["text"].as_str().is_some_and(|text| text.contains("behind hub/main")));
    assert_eq!((tip(&scene, "main"), tip(&scene, "HEAD")), before);
    let staged = told["tip"].as_str().expect("a tip");
    for file in ["theirs.txt", "own4.txt"] {
        scene.repo.git(&["cat-file", "-e", &format!("{staged}:{file}")]);
    }
    // Asking again finds it there, and the commit of somebody else is no work in the staging branch.
    scene.pdca(&["integrate"]).expect(pdca_waiting());
    scene.repo.git(&["fetch", "--quiet", "hub"]);
    scene.repo.git(&["branch", "--force", "main", "hub/main"]);
    let all = scene.pdca(&["--json", "status"]).json();
    assert_eq!(
        all["bundles"][0]["integration"], "staged",
        "after the pull it is still staged: {all}"
    );
    scene.repo.git(&["merge-base", "--is-ancestor", "main", staged]);
}

/// The exit code of an integration with which only a person can go on.
fn pdca_waiting() -> i32 {
    3
}

#[test]
fn a_branch_that_lands_here_is_fast_forwarded_first() {
    let (scene, remote) = scene("target");
    let theirs = push(&scene, &remote, "theirs.txt");
    scene.pdca(&["integrate"]).expect(0);
    assert_eq!(tip(&scene, "main~1"), theirs);
    scene.repo.git(&["cat-file", "-e", "main:own4.txt"]);
    scene.pdca(&["verify"]).expect(0);
}

#[test]
fn a_remote_that_does_not_answer_is_told_and_recorded_and_keeps_nothing_from_being_staged() {
    let (scene, remote) = scene("branch");
    fs_err::rename(&remote, remote.with_file_name("away.git")).expect("it can be moved");
    let ran = scene.pdca(&["--json", "integrate"]).expect(0);
    let told = ran.json();
    assert!(told["remote"]["silent"].is_string(), "{told}");
    assert!(ran.err.contains("hub/main does not answer"), "{}", ran.err);
    assert_eq!(told["staged"][0]["id"], "4");
}

#[test]
fn a_branch_that_has_diverged_from_its_remote_is_told_and_folded_upon_as_it_is() {
    let (scene, remote) = scene("branch");
    push(&scene, &remote, "theirs.txt");
    scene.repo.write("mine.txt", "mine\n");
    let mine = scene.repo.commit("mine");
    scene.repo.git(&["branch", "--force", "main", "HEAD"]);
    let told = scene.pdca(&["--json", "integrate"]).expect(0).json();
    assert_eq!(
        (told["base"].as_str(), told["remote"]["drift"].as_str()),
        (Some(mine.trim()), Some("diverged"))
    );
}

#[test]
fn a_remote_is_not_asked_where_the_configuration_says_so() {
    let (scene, remote) = scene("branch");
    push(&scene, &remote, "theirs.txt");
    let text = scene
        .workspace
        .read("pdca.toml")
        .replace("land = \"branch\"", "land = \"branch\"\nfetch = false");
    scene.workspace.write("pdca.toml", text);
    let told = scene.pdca(&["--json", "integrate"]).expect(0).json();
    assert!(told["remote"].is_null(), "{told}");
}
