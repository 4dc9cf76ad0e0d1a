//! Build products: what stays out of a commit unasked, and that nothing of it is lost.

use std::collections::{BTreeMap, BTreeSet};

use fs_err as fs;
use pdca_lanes::{Lane, Products};
use proptest::prelude::*;

use crate::scene::{BY, Scene, seen};

fn write(lane: &Lane, path: &str, text: &str) {
    let path = lane.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn found(lane: &Lane) -> Vec<String> {
    lane.products(&Products::default(), &|_| false).unwrap().names()
}

#[test]
fn what_an_agent_leaves_is_found_as_a_whole_and_what_is_ignored_is_not() {
    let scene = Scene::new(&[("Cargo.toml", "[package]\n"), (".gitignore", "*.log\n.tox/\n")]);
    let lane = scene.lane();
    for path in [
        "src/new.rs",
        "pkg/__pycache__/m.cpython-312.pyc",
        "pkg/__pycache__/n.cpython-312.pyc",
        "node_modules/a/index.js",
        "node_modules/a/b/c/deep.js",
        "target/debug/app",
        "src/target/mod.rs",
        ".aider.chat.history.md",
        ".tox/x",
        "src/.new.rs.swp",
        "node_modules.txt",
    ] {
        write(&lane, path, path);
    }
    let expected =
        [".aider.chat.history.md", "node_modules", "pkg/__pycache__", "src/.new.rs.swp", "target"];
    assert_eq!(found(&lane), expected);
}

#[test]
fn a_directory_with_a_usual_name_is_a_product_only_with_a_sign_of_it() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    write(&lane, "target/one.txt", "");
    assert_eq!(found(&lane), [""; 0]);
    write(&lane, "target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
    assert_eq!(found(&lane), ["target"]);
}

#[test]
fn a_repository_inside_a_product_goes_with_it() {
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let inner = pdca_testkit::Repo::at(&lane.path().join("node_modules/dep"));
    inner.write("x", "x\n");
    inner.commit("inner");
    let found = lane.products(&Products::default(), &|_| false).unwrap();
    assert_eq!(found.names(), ["node_modules"]);
    lane.set_aside(&found, "p").unwrap();
    assert_eq!(lane.nested().unwrap(), [""; 0]);
    assert!(lane.aside("p").join("node_modules/dep/x").is_file());
}

#[test]
fn a_name_that_is_no_text_is_moved_like_any_other() {
    use std::os::unix::ffi::OsStrExt as _;
    let scene = Scene::new(&[("a", "a\n")]);
    let lane = scene.lane();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.pyc");
    fs::write(lane.path().as_std_path().join(name), "x").unwrap();
    let found = lane.products(&Products::default(), &|_| false).unwrap();
    assert_eq!(found.names(), ["caf\u{fffd}.pyc"]);
    lane.set_aside(&found, "p").unwrap();
    assert!(lane.aside("p").as_std_path().join(name).is_file());
    assert_eq!(lane.commit_all("x", &BY).unwrap(), None);
}

/// What happened to a file since the base.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Done {
    Nothing,
    Written,
    Added,
    Committed,
}

#[derive(Clone, Copy, Debug)]
struct FileCase {
    in_base: bool,
    done: Done,
    is_wanted: bool,
}

/// Each path with the parts of it that are the name of a product, outermost first.
const PATHS: [(&str, &[&str]); 14] = [
    ("a.py", &[]),
    ("a.pyc", &["a.pyc"]),
    ("__pycache__/keep.txt", &["__pycache__"]),
    ("__pycache__/m.pyc", &["__pycache__", "__pycache__/m.pyc"]),
    ("src/__pycache__/m.pyc", &["src/__pycache__", "src/__pycache__/m.pyc"]),
    ("src/x.rs", &[]),
    ("src/.x.rs.swp", &["src/.x.rs.swp"]),
    (".aider.input.history", &[".aider.input.history"]),
    ("web/node_modules/p/i.js", &["web/node_modules"]),
    ("web/node_modules/q.o", &["web/node_modules", "web/node_modules/q.o"]),
    ("web/app.js", &[]),
    ("rs/Cargo.toml", &[]),
    ("rs/target/debug/x", &["rs/target"]),
    ("sub/target/y", &["sub/target"]),
];

fn file_case() -> impl Strategy<Value = FileCase> {
    let done = prop_oneof![
        2 => Just(Done::Nothing),
        4 => Just(Done::Written),
        1 => Just(Done::Added),
        1 => Just(Done::Committed),
    ];
    (prop::bool::weighted(0.2), done, prop::bool::weighted(0.15))
        .prop_map(|(in_base, done, is_wanted)| FileCase { in_base, done, is_wanted })
}

/// The paths that a change has to have, worked out from the rule alone.
fn expected(cases: &BTreeMap<&str, FileCase>) -> BTreeSet<String> {
    let is_tracked =
        |case: &FileCase| case.in_base || matches!(case.done, Done::Added | Done::Committed);
    let is_free = |part: &str| {
        let below = format!("{part}/");
        let holds = cases.iter().any(|(path, case)| path.starts_with(&below) && is_tracked(case));
        let manifest = cases["rs/Cargo.toml"];
        let has_manifest = manifest.in_base || manifest.done != Done::Nothing;
        let is_sure = match part {
            "rs/target" => has_manifest,
            "sub/target" => false,
            _ => true,
        };
        !holds && is_sure
    };
    let stays = |path: &str, parts: &[&str]| {
        let case = &cases[path];
        case.done != Done::Nothing
            && (is_tracked(case) || case.is_wanted || !parts.iter().any(|part| is_free(part)))
    };
    let all = PATHS.iter().filter(|(path, parts)| stays(path, parts));
    all.map(|(path, _)| (*path).to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_patch_is_the_change_without_its_products_and_nothing_is_lost(
        cases in prop::collection::vec(file_case(), PATHS.len())
    ) {
        let cases: BTreeMap<&str, FileCase> =
            PATHS.iter().map(|(path, _)| *path).zip(cases).collect();
        let mut base = vec![("README", "base\n")];
        base.extend(cases.iter().filter(|(_, case)| case.in_base).map(|(path, _)| (*path, "base\n")));
        let scene = Scene::new(&base);
        let lane = scene.lane();
        let git = seen(&lane);
        let of = |done| cases.iter().filter(move |(_, case)| case.done == done);
        for (path, _) in of(Done::Committed) {
            write(&lane, path, "work\n");
            git.git(&["add", "--force", path]);
        }
        if of(Done::Committed).next().is_some() {
            git.git(&["commit", "--quiet", "--message", "own"]);
        }
        for (path, _) in of(Done::Added) {
            write(&lane, path, "work\n");
            git.git(&["add", "--force", path]);
        }
        for (path, _) in of(Done::Written) {
            write(&lane, path, "work\n");
        }
        let is_wanted = |path: &str| cases.get(path).is_some_and(|case| case.is_wanted);
        let found = lane.products(&Products::default(), &is_wanted).unwrap();
        lane.set_aside(&found, "products").unwrap();
        lane.commit_all("all\n", &BY).unwrap();
        let base = scene.primary.head();
        let changed = git.git(&["diff", "--name-only", "--no-renames", &base, "HEAD"]);
        let changed: BTreeSet<String> = changed.lines().map(str::to_owned).collect();
        prop_assert_eq!(&changed, &expected(&cases));
        for (path, case) in &cases {
            if case.done != Done::Nothing && !changed.contains(*path) {
                let kept = fs::read_to_string(lane.aside("products").join(path)).unwrap();
                prop_assert_eq!(kept, "work\n");
            }
        }
    }
}
