//! The paths of a patch, as git names them.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use fs_err as fs;
use pdca_testkit::Repo;
use proptest::prelude::*;

/// What is done to one file between two commits.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Add,
    Change,
    Remove,
    Move,
    MoveAndChange,
    Mode,
    Binary,
    Empty,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop::sample::select(vec![
        Edit::Add,
        Edit::Change,
        Edit::Remove,
        Edit::Move,
        Edit::MoveAndChange,
        Edit::Mode,
        Edit::Binary,
        Edit::Empty,
    ])
}

/// Names with blanks, quotes, escapes, letters beyond ASCII, and what looks like a header.
fn name() -> impl Strategy<Value = String> {
    let part = "(a|b|é|\u{1f980}| |\"|'|\\\\|\t|\n|\r|\u{7f}|\\+|-|@|#|b/|--- a/x|, ){1,5}";
    part.prop_map(|name| name.trim_matches('/').replace("//", "/"))
        .prop_filter("it names a file", |name| !name.is_empty())
}

/// Files that do not lie in each other's way.
fn files() -> impl Strategy<Value = Vec<(String, Edit)>> {
    prop::collection::vec((name(), edit()), 1..6).prop_map(|files| {
        let place = |(at, (name, edit)): (usize, (String, Edit))| (format!("{at}/{name}"), edit);
        files.into_iter().enumerate().map(place).collect()
    })
}

fn begin(repo: &Repo, files: &[(String, Edit)]) {
    for (at, (name, edit)) in files.iter().enumerate() {
        if !matches!(edit, Edit::Add | Edit::Empty) {
            let lines: Vec<String> = (0..20).map(|line| format!("{at} {line}\n")).collect();
            let lines = lines.concat();
            repo.write(name, lines);
        }
    }
    repo.write("always", "here");
    repo.git(&["add", "--all"]);
    repo.commit("before");
}

fn carry_out(repo: &Repo, files: &[(String, Edit)]) {
    for (name, edit) in files {
        let path = repo.path().join(name);
        match edit {
            Edit::Add | Edit::Change => repo.write(name, "--- a/x\n+++ b/x\n"),
            Edit::Empty => repo.write(name, ""),
            Edit::Binary => repo.write(name, [0, 1, 2, b'\n', 255]),
            Edit::Remove => fs::remove_file(path).unwrap(),
            Edit::Mode => {
                fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            Edit::Move | Edit::MoveAndChange => {
                let mut text = repo.read(name);
                fs::remove_file(path).unwrap();
                if matches!(edit, Edit::MoveAndChange) {
                    text.extend_from_slice(b"one more\n");
                }
                repo.write(format!("moved {name}"), text);
            }
        }
    }
    repo.git(&["add", "--all"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_footprint_of_a_patch_is_what_git_says_differs(files in files()) {
        let repo = Repo::new();
        begin(&repo, &files);
        carry_out(&repo, &files);
        let named = repo.git_bytes(&["diff", "--cached", "--name-only", "--no-renames", "-z"]);
        let named = named.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let named: BTreeSet<String> =
            named.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        for quoting in ["core.quotePath=true", "core.quotePath=false"] {
            let diff = ["-c", quoting, "diff", "--cached", "--binary", "--find-renames"];
            let patch = repo.git_bytes(&diff);
            let read = pdca_state::footprint(&patch).map(BTreeSet::from_iter);
            prop_assert_eq!(read.as_ref(), Ok(&named), "{}", String::from_utf8_lossy(&patch));
            prop_assert_eq!(BTreeSet::from_iter(pdca_state::named_paths(&patch)), named.clone());
        }
    }
}
