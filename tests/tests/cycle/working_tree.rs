//! `pdca gates --working-tree`: which tree is gated, wherever it is started.

use camino::Utf8Path;
use pdca_e2e::{Ran, Scene};

/// Red where the tree it runs in has the file `red`, which it has to be a tree of ours to have.
const GATE: &str = "[[gates.checks]]\nid = \"T3-tests\"\ntier = \"T3\"\ncmd = \"test -f greeting.txt && ! test -e red\"\n";

/// Gates the tree as it stands, from a directory, which must be red or not.
#[track_caller]
fn gated(scene: &Scene, from: &Utf8Path, is_red: bool) -> String {
    let told = from_dir(scene, from, &["gates", "--working-tree", "--json"]);
    let told = told.expect(if is_red { 100 } else { 0 }).json();
    told["tree"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

fn from_dir(scene: &Scene, dir: &Utf8Path, args: &[&str]) -> Ran {
    scene.pdca(&[&["-C", dir.as_str()][..], args].concat())
}

fn real(path: &Utf8Path) -> String {
    path.canonicalize_utf8().expect("it exists").into_string()
}

#[test]
fn beside_the_target_the_target_is_gated_wherever_it_is_started() {
    let scene = Scene::new(GATE);
    scene.brief("1", &[]);
    let work = scene.workspace.path();
    for dir in [work.to_owned(), work.join("results"), work.join("results/issue_1")] {
        assert_eq!(gated(&scene, &dir, false), real(scene.repo.path()), "{dir}");
    }
    scene.repo.write("red", "");
    assert_eq!(gated(&scene, &work.join("results"), true), real(scene.repo.path()));
    let told = from_dir(&scene, work, &["gates", "--working-tree"]).expect(100);
    assert!(told.out.contains(&format!("gated {}", real(scene.repo.path()))), "{}", told.out);
}

#[test]
fn inside_the_target_the_checkout_around_is_gated_at_its_top() {
    // The workspace is in the target, so that every checkout of it is one.
    let scene = Scene::new("");
    let text = format!("[[targets]]\nname = \"app\"\npath = \".\"\n\n{GATE}");
    scene.repo.write("pdca.toml", text);
    scene.repo.write("src/deep/file", "");
    scene.repo.commit("a workspace");
    let inside = scene.repo.path().join("src/deep");
    assert_eq!(gated(&scene, &inside, false), real(scene.repo.path()));
    // A linked worktree has files of its own.
    let linked = scene.workspace.around().join("linked");
    scene.repo.git(&["worktree", "add", "--quiet", "--detach", linked.as_str()]);
    fs_err::write(linked.join("red"), "").expect("a file can be written");
    assert_eq!(gated(&scene, &linked.join("src/deep"), true), real(&linked));
    assert_eq!(gated(&scene, &inside, false), real(scene.repo.path()));
}

#[test]
fn with_several_targets_one_is_named_or_the_one_around_is_taken() {
    let scene = Scene::new("");
    let other = scene.workspace.target("other");
    other.write("greeting.txt", "hello\n");
    other.commit("first");
    let target = |name: &str| format!("[[targets]]\nname = \"{name}\"\npath = \"../{name}\"\n\n");
    scene.workspace.config(&format!("{}{}{GATE}", target("app"), target("other")));
    let args = ["gates", "--working-tree"];
    let refused = from_dir(&scene, scene.workspace.path(), &args).expect(2);
    for name in ["--target app", "--target other"] {
        assert!(refused.err.contains(name), "{}", refused.err);
    }
    other.write("red", "");
    scene.pdca(&[&args[..], &["--target", "other"]].concat()).expect(100);
    scene.pdca(&[&args[..], &["--target", "app"]].concat()).expect(0);
    let unknown = scene.pdca(&[&args[..], &["--target", "none"]].concat()).expect(2);
    assert!(unknown.err.contains("--target app"), "{}", unknown.err);
}

#[test]
fn a_bare_target_has_no_tree_and_the_way_to_one_is_shown() {
    let scene = Scene::new("");
    let bare = scene.workspace.around().join("bare.git");
    scene.repo.git(&["clone", "--quiet", "--bare", ".", bare.as_str()]);
    let target = "[[targets]]\nname = \"bare\"\npath = \"../bare.git\"\n\n";
    scene.workspace.config(&format!("{target}{GATE}"));
    let refused = scene.pdca(&["gates", "--working-tree"]).expect(2);
    assert!(refused.err.contains("bare") && refused.err.contains("git clone"), "{}", refused.err);
}

#[test]
fn a_tree_that_is_named_is_gated_wherever_it_is() {
    let scene = Scene::new(GATE);
    let linked = scene.workspace.around().join("merge");
    scene.repo.git(&["worktree", "add", "--quiet", "--detach", linked.as_str()]);
    fs_err::create_dir_all(linked.join("deep")).expect("a directory can be made");
    fs_err::write(linked.join("red"), "").expect("a file can be written");
    let named = |dir: &Utf8Path| scene.pdca(&["--json", "gates", "--tree", dir.as_str()]);
    for dir in [linked.clone(), linked.join("deep")] {
        let told = named(&dir).expect(100).json();
        assert_eq!(told["tree"], real(&linked).as_str(), "{dir}");
    }
    named(scene.repo.path()).expect(0);
    // A tree without a repository is gated as it is.
    let plain = scene.workspace.around().join("plain");
    fs_err::create_dir_all(&plain).expect("a directory can be made");
    fs_err::write(plain.join("greeting.txt"), "").expect("a file can be written");
    named(&plain).expect(0);
    named(&plain.join("none")).expect(2);
    scene.pdca(&["gates", "1", "--tree", plain.as_str()]).expect(2);
}
