//! Patches that are rejected before git sees them.

use fs_err as fs;
use pdca_lanes::{ApplyError, Lane, PatchError, PatchFault};
use proptest::prelude::*;

use crate::scene::{BY, Scene};

fn new_file(name: &str) -> String {
    format!(
        "diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"
    )
}

fn quoted(name: &str) -> String {
    format!(
        "diff --git \"a/{name}\" \"b/{name}\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/{name}\"\n@@ -0,0 +1 @@\n+x\n"
    )
}

fn link(name: &str, target: &str) -> String {
    format!(
        "diff --git a/{name} b/{name}\nnew file mode 120000\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{target}\n\\ No newline at end of file\n"
    )
}

struct Trial {
    scene: Scene,
    lane: Lane,
}

impl Trial {
    fn new() -> Self {
        let scene = Scene::new(&[("a", "a\n"), ("d/e/f", "f\n")]);
        let lane = scene.lane();
        Self { scene, lane }
    }

    /// Returns the reason why a patch is rejected, if it is, and checks that a rejected one leaves nothing behind.
    fn refusal(&self, patch: &str) -> Option<PatchError> {
        match self.lane.apply(patch.as_bytes()) {
            Err(ApplyError::Refused(refused)) => {
                assert_eq!(self.lane.commit_all("nothing", &BY).expect("a commit works"), None);
                assert!(!self.scene.lanes().root().join("lane-0/x").exists());
                Some(refused)
            }
            Ok(()) | Err(ApplyError::DoesNotApply { .. }) => {
                let base = self.scene.primary.head();
                self.lane.reset(&base).expect("a reset works");
                None
            }
            Err(ApplyError::Lane(err)) => panic!("{err:?}"),
        }
    }
}

#[test]
fn paths_out_of_the_tree_or_into_the_repository_are_refused() {
    let trial = Trial::new();
    let hostile = [
        "../x",
        "d/../../x",
        "..",
        "d/..",
        "./x",
        "d//x",
        "d/",
        ".git/config",
        ".git",
        "d/.git/hooks/x",
        ".GIT/x",
        ".Git",
        ".git./x",
        ".git /x",
        ".git . ./x",
        "git~1/x",
        "GIT~1",
        "d/git~12/x",
        ".git::$INDEX_ALLOCATION/x",
        ".g\u{200c}it/x",
        "d\\..\\..\\x",
        ".git\\config",
        "d\\.git\\x",
    ];
    for name in hostile {
        assert!(trial.refusal(&new_file(name)).is_some(), "{name:?}");
        let renamed =
            format!("diff --git a/a b/a\nsimilarity index 100%\nrename from a\nrename to {name}\n");
        assert!(trial.refusal(&renamed).is_some(), "rename to {name:?}");
        let plain = format!("--- a/{name}\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n");
        assert!(trial.refusal(&plain).is_some(), "plain {name:?}");
    }
    for name in ["\\056\\056/x", ".gi\\164/config", "x\\000y", "\\056git/x"] {
        assert!(trial.refusal(&quoted(name)).is_some(), "{name:?}");
    }
    assert!(trial.refusal("--- /etc/passwd\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+x\n").is_some());
    assert!(trial.refusal("diff --git a/a b/a\nrename from a\nrename to /etc/x\n").is_some());
}

#[test]
fn names_that_only_look_odd_are_taken() {
    let trial = Trial::new();
    let fine = [
        ".gitignore",
        ".gitattributes",
        "git~x",
        "git",
        "..x",
        "x..",
        ".g/it",
        "d/.github/x",
        "a b/c d",
        "...",
        "ünï",
        ".gitx/y",
        "-x",
    ];
    for name in fine {
        assert_eq!(trial.refusal(&new_file(name)), None, "{name:?}");
    }
    assert_eq!(trial.refusal(&quoted("t\\tab/\\303\\274")), None);
}

#[test]
fn links_that_lead_out_are_refused() {
    let trial = Trial::new();
    let hostile = [
        ("l", "/etc/passwd"),
        ("l", ".."),
        ("l", "../x"),
        ("d/l", "../../x"),
        ("l", "d/../../x"),
        ("l", "d/../a"),
        ("l", ".git/config"),
        ("d/l", "../.git"),
        ("l", ".GIT/x"),
    ];
    for (name, target) in hostile {
        let err =
            trial.refusal(&link(name, target)).unwrap_or_else(|| panic!("{name} -> {target}"));
        assert!(matches!(err.fault, PatchFault::Link { .. }), "{err:?}");
        assert_eq!(err.path, "");
    }
    for (name, target) in
        [("l", "a"), ("d/l", "../a"), ("d/e/l", "../../a"), ("l", "d/e"), ("l", "./a")]
    {
        assert_eq!(trial.refusal(&link(name, target)), None, "{name} -> {target}");
    }
}

#[test]
fn a_link_that_is_turned_elsewhere_is_refused() {
    let scene = Scene::new(&[("a", "a\n")]);
    std::os::unix::fs::symlink("a", scene.primary.path().join("l")).unwrap();
    scene.primary.commit("link");
    let lane = scene.lane();
    let id = |text: &str| format!("{text:0>40}");
    let patch = format!(
        "diff --git a/l b/l\nindex {}..{} 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+/etc\n\\ No newline at end of file\n",
        id("1"),
        id("2"),
    );
    assert!(matches!(lane.apply(patch.as_bytes()), Err(ApplyError::Refused(_))));
}

#[test]
fn nothing_goes_through_a_link_that_is_there() {
    let scene = Scene::new(&[("a", "a\n")]);
    let outside = scene.beside("outside");
    fs::create_dir_all(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, scene.primary.path().join("l")).unwrap();
    scene.primary.commit("a link out, by the owner");
    let lane = scene.lane();
    assert!(matches!(lane.apply(new_file("l/x").as_bytes()), Err(ApplyError::DoesNotApply { .. })));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn what_is_no_patch_is_refused_with_its_line() {
    let trial = Trial::new();
    let cases = [
        ("", 1),
        ("hello\n", 1),
        ("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ nonsense\n", 0),
        ("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +x @@\n-a\n+b\n", 4),
        ("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1 @@\n-a\n+b\n", 6),
        ("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n*b\n", 6),
        ("diff --git a/a b/a\nnew file mode 104755\n", 2),
        ("diff --git a/a b/a\nBinary files a/a and b/a differ\n", 2),
    ];
    for (patch, line) in cases {
        let refused = trial.refusal(patch).map_or(0, |refused| refused.line);
        assert_eq!(refused, line, "{patch:?}");
    }
}

#[test]
fn lines_in_a_hunk_that_look_like_headers_are_content() {
    let patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,4 @@\n a\n+++ b/../../x\n+diff --git a/.git/x b/.git/x\n+rename to /etc\n";
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    lane.apply(patch.as_bytes()).unwrap();
    let text = fs::read_to_string(lane.path().join("a")).unwrap();
    assert_eq!(text, "a\n++ b/../../x\ndiff --git a/.git/x b/.git/x\nrename to /etc\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_patch_of_any_bytes_writes_outside_the_checkout(
        lines in prop::collection::vec(
            prop::sample::select(&[
                "diff --git a/x b/x\n", "diff --git a/../y b/../y\n", "new file mode 100644\n", "new file mode 120000\n", "--- /dev/null\n", "--- a/a\n",
                "+++ b/x\n", "+++ b/../y\n", "+++ \"b/\\056\\056/y\"\n", "@@ -0,0 +1 @@\n", "@@ -1 +1 @@\n", "+../y\n", "-a\n", "+b\n", " a\n",
                "\\ No newline at end of file\n", "rename from a\n", "rename to ../y\n", "rename to y\n", "GIT binary patch\n", "\n", "\r\n", "\u{0}\n",
            ][..]),
            0..14,
        ),
    ) {
        let scene = Scene::new(&[("a", "a\n")]);
        let lane = scene.lane();
        let head = lane.head().unwrap();
        let _outcome = lane.apply(lines.concat().as_bytes());
        prop_assert!(!scene.lanes().root().join("lane-0/y").exists());
        prop_assert_eq!(lane.head().unwrap(), head);
    }
}
