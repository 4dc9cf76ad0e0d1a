//! The law, and that both walls follow it, over random trees and rules.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;

const RULES: [Rule; 6] =
    [Rule::Hidden, Rule::Closed, Rule::Own, Rule::Shown, Rule::Declared, Rule::Apart];

/// Directories, and in them names that are missing or links.
#[derive(Debug, Clone)]
struct Scene {
    dirs: BTreeSet<PathBuf>,
    given: Vec<(PathBuf, Rule)>,
    shut_names: Vec<(PathBuf, Rule)>,
}

impl Scene {
    fn rules(&self) -> Rules {
        let mut rules = Rules::default();
        for (path, rule) in &self.given {
            rules.add(path, *rule);
        }
        for (path, rule) in &self.shut_names {
            rules.add_name(path.clone(), *rule);
        }
        rules
    }

    /// The entries of a directory, without links.
    fn entries(&self) -> impl Fn(&Path) -> Vec<PathBuf> {
        |dir| self.dirs.iter().filter(|path| path.parent() == Some(dir)).cloned().collect()
    }

    /// Every directory, the names that have a rule, and a new name in each directory.
    fn paths(&self) -> Vec<PathBuf> {
        let new = self.dirs.iter().map(|dir| dir.join("new"));
        let names = self.shut_names.iter().map(|(name, _)| name.clone());
        self.dirs.iter().cloned().chain(new).chain(names).collect()
    }

    /// All rules with their paths.
    fn all(&self) -> impl Iterator<Item = &(PathBuf, Rule)> {
        self.given.iter().chain(&self.shut_names)
    }
}

fn scenes() -> impl Strategy<Value = Scene> {
    let leaves = btree_set(vec(prop_oneof![Just("a"), Just("b"), Just("c")], 0..5), 1..7);
    leaves.prop_flat_map(|leaves| {
        let dirs: BTreeSet<PathBuf> = leaves
            .into_iter()
            .map(|names| Path::new("/").join(names.into_iter().collect::<PathBuf>()))
            .flat_map(|leaf| leaf.ancestors().map(Path::to_owned).collect::<Vec<_>>())
            .collect();
        let all: Vec<PathBuf> = dirs.iter().cloned().collect();
        let given =
            vec((prop::sample::select(all.clone()), prop::sample::select(&RULES[..])), 0..8);
        let shut = prop_oneof![Just(Rule::Hidden), Just(Rule::Closed)];
        let names = prop::sample::select(&["missing", "link"][..]);
        let shut_names = vec((prop::sample::select(all), names, shut), 0..3);
        (Just(dirs), given, shut_names).prop_map(|(dirs, given, shut_names)| Scene {
            dirs,
            given,
            shut_names: shut_names
                .into_iter()
                .map(|(dir, name, rule)| (dir.join(name), rule))
                .collect(),
        })
    })
}

/// The law once more, by its definition over the list of rules.
fn by_definition(scene: &Scene, path: &Path) -> Access {
    let covers = |rule: &&(PathBuf, Rule)| path.starts_with(&rule.0);
    let is_between = |outer: &Path, inner: &Path| inner != outer && inner.starts_with(outer);
    let reopened = |shut: &Path, by: &[Rule]| {
        let mut openings = scene.all().filter(covers).filter(|(_, rule)| by.contains(rule));
        openings.any(|(open, _)| is_between(shut, open))
    };
    // A closing of which no inner opening takes the path back, and no deeper closing is needed to say so.
    let holds = |kinds: &[Rule], by: &[Rule]| {
        let shut: Vec<_> =
            scene.all().filter(covers).filter(|(_, rule)| kinds.contains(rule)).collect();
        shut.iter().any(|(shut, _)| !reopened(shut, by))
    };
    if holds(&[Rule::Hidden], &[Rule::Own, Rule::Shown]) {
        return Access::Hidden;
    }
    let shut = [Rule::Hidden, Rule::Closed];
    let is_shut = holds(&shut, &[Rule::Own]);
    let has = |kind: Rule| scene.all().filter(covers).any(|(_, rule)| *rule == kind);
    let is_closed_at_all = has(Rule::Hidden) || has(Rule::Closed);
    let is_own = has(Rule::Own) && !is_shut;
    let is_declared = scene.all().filter(covers).any(|(open, rule)| {
        *rule == Rule::Declared
            && !scene
                .all()
                .filter(covers)
                .any(|(apart, rule)| *rule == Rule::Apart && is_between(open, apart))
    });
    if is_own || (is_declared && !is_closed_at_all) { Access::Writable } else { Access::ReadOnly }
}

/// How mounts cover each other: the last one that is made at the path or above it is what is seen.
fn seen(mounts: &BTreeMap<PathBuf, Access>, path: &Path) -> Access {
    let mut above = mounts.iter().filter(|(mount, _)| path.starts_with(mount));
    above.next_back().map_or(Access::ReadOnly, |(_, access)| *access)
}

/// Whether the child can create, remove, rename or replace this name: a mount point cannot be.
fn is_replaceable(mounts: &BTreeMap<PathBuf, Access>, name: &Path) -> bool {
    let Some(dir) = name.parent() else { return false };
    seen(mounts, dir) == Access::Writable && !mounts.contains_key(name)
}

proptest! {
    #[test]
    fn the_access_of_a_path_is_that_of_the_strictest_rule_that_covers_it(scene in scenes()) {
        let rules = scene.rules();
        for path in scene.paths() {
            prop_assert_eq!(rules.access(&path), by_definition(&scene, &path), "{:?}", path);
        }
    }

    #[test]
    fn a_further_closing_opens_nothing_and_a_further_opening_closes_nothing(
        scene in scenes(),
        at in any::<prop::sample::Index>(),
        rule in prop::sample::select(&RULES[..]),
    ) {
        let before = scene.rules();
        let mut after = before.clone();
        let paths = scene.paths();
        after.add(at.get(&paths), rule);
        for path in &paths {
            let (before, after) = (before.access(path), after.access(path));
            match rule {
                Rule::Hidden | Rule::Closed | Rule::Apart => prop_assert!(after <= before),
                Rule::Own | Rule::Shown | Rule::Declared => prop_assert!(after >= before),
            }
        }
    }

    #[test]
    fn mounts_give_each_existing_path_the_access_of_the_law(scene in scenes()) {
        let rules = scene.rules();
        let mounts = rules.mounts(&scene.entries());
        for path in &scene.dirs {
            // A directory with a closed name in it is closed itself, and its entries are not.
            let is_frozen = scene.shut_names.iter().any(|(name, _)| {
                name.parent() == Some(path) && rules.access(name) != Access::Writable
            });
            let lawful = rules.access(path);
            let expected = if is_frozen { lawful.min(Access::ReadOnly) } else { lawful };
            prop_assert_eq!(seen(&mounts, path), expected, "{:?} in {:?}", path, mounts);
        }
    }

    #[test]
    fn behind_mounts_no_closed_path_can_be_made_or_moved_and_nothing_is_put_in_its_place(
        scene in scenes(),
    ) {
        let rules = scene.rules();
        let mounts = rules.mounts(&scene.entries());
        let mut shut: Vec<PathBuf> = scene.all().map(|(path, _)| path.clone()).collect();
        shut.extend(scene.paths());
        shut.retain(|path| rules.access(path) != Access::Writable);
        for path in shut {
            for above in path.ancestors() {
                let is_new = path.ends_with("new") && above == path;
                if !is_new {
                    prop_assert!(!is_replaceable(&mounts, above), "{:?} of {:?}: {:?}", above, path, mounts);
                }
            }
        }
        for path in scene.paths().iter().filter(|path| is_replaceable(&mounts, path)) {
            prop_assert_eq!(rules.access(path), Access::Writable, "{:?} in {:?}", path, mounts);
        }
    }

    #[test]
    fn allowed_trees_hold_what_the_law_allows_and_nothing_else(scene in scenes()) {
        let rules = scene.rules();
        for least in [Access::ReadOnly, Access::Writable] {
            let trees = rules.trees(least, &scene.entries());
            let is_allowed = |path: &Path| trees.iter().any(|tree| path.starts_with(tree));
            for path in scene.paths() {
                let lawful = rules.access(&path) >= least;
                prop_assert!(lawful || !is_allowed(&path), "{:?} in {:?}", path, trees);
            }
            for path in &scene.dirs {
                let below = scene.all().filter(|(rule, _)| rule.starts_with(path));
                let is_whole = below.map(|(rule, _)| rules.access(rule)).all(|access| access >= least);
                let lawful = rules.access(path) >= least;
                prop_assert!(!lawful || !is_whole || is_allowed(path), "{:?} in {:?}", path, trees);
            }
        }
    }
}

/// The rules of a sandbox whose paths are in `root`.
fn rules_in(root: &Path, lists: [&[&str]; 3]) -> Rules {
    let paths = |list: &[&str]| -> Vec<Utf8PathBuf> {
        list.iter().map(|path| Utf8PathBuf::from_path_buf(root.join(path)).unwrap()).collect()
    };
    let [closed, declared, own] = lists.map(paths);
    Rules::of(&Sandbox::default().no_write(closed).write(declared).own(own))
}

fn temp() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap();
    (dir, real)
}

#[test]
fn a_table_of_layouts() {
    let (_dir, root) = temp();
    std::fs::create_dir_all(root.join("repo/.git")).unwrap();
    std::fs::create_dir_all(root.join("repo/lanes/1")).unwrap();
    std::fs::write(root.join("repo/lanes/1/closed"), "").unwrap();
    std::fs::create_dir_all(root.join("repo/cache")).unwrap();
    for (lists, path, expected) in [
        // The workspace is the target: one path, two rules.
        ([&["repo"][..], &["repo"][..], &[][..]], "repo/a", Access::ReadOnly),
        ([&["repo"], &["repo/cache"], &[]], "repo/cache/a", Access::ReadOnly),
        ([&["repo/.git"], &["repo"], &[]], "repo/a", Access::Writable),
        ([&["repo/.git"], &["repo"], &[]], "repo/.git/a", Access::ReadOnly),
        // A lane in a closed tree is open, also where it is declared as well, and what is closed in it is not.
        ([&["repo"], &[], &["repo/lanes/1"]], "repo/lanes/1/a", Access::Writable),
        (
            [&["repo", "repo/lanes/1/closed"], &[], &["repo/lanes/1"]],
            "repo/lanes/1/closed",
            Access::ReadOnly,
        ),
        ([&["repo/lanes/1"], &[], &["repo/lanes/1"]], "repo/lanes/1/a", Access::ReadOnly),
        ([&["repo"], &["repo/lanes/1"], &["repo/lanes/1"]], "repo/lanes/1/a", Access::Writable),
        ([&["repo"], &["repo/lanes/1"], &["repo/lanes"]], "repo/lanes/1/a", Access::Writable),
        ([&[], &[], &[]], "repo/a", Access::ReadOnly),
    ] {
        let rules = rules_in(&root, lists);
        assert_eq!(rules.access(&root.join(path)), expected, "{path} under {lists:?}");
    }
}

#[test]
fn a_missing_path_is_closed_from_its_first_missing_name_on() {
    let (_dir, root) = temp();
    let rules = rules_in(&root, [&["config/deep/file", "there/file"], &[""], &[]]);
    assert_eq!(rules.access(&root.join("config")), Access::ReadOnly);
    assert_eq!(rules.access(&root.join("other")), Access::Writable);
    assert_ne!(rules.mounts(&entries).get(&root), Some(&Access::Writable));
}

#[test]
fn a_file_where_a_closed_path_needs_a_directory_cannot_be_replaced() {
    let (_dir, root) = temp();
    std::fs::write(root.join("config"), "").unwrap();
    let rules = rules_in(&root, [&["config/file"], &[""], &[]]);
    assert_eq!(rules.access(&root.join("config")), Access::ReadOnly);
    assert_ne!(rules.mounts(&entries).get(&root), Some(&Access::Writable));
}

#[test]
fn every_link_on_the_way_to_a_closed_path_is_closed() {
    let (_dir, root) = temp();
    std::fs::create_dir_all(root.join("real/open")).unwrap();
    std::os::unix::fs::symlink("real", root.join("one")).unwrap();
    std::os::unix::fs::symlink(root.join("one"), root.join("two")).unwrap();
    std::os::unix::fs::symlink("nowhere/yet", root.join("dangling")).unwrap();
    let rules = rules_in(&root, [&["two/open", "dangling"], &[""], &[]]);
    for (path, expected) in [
        ("one", Access::ReadOnly),
        ("two", Access::ReadOnly),
        ("real/open", Access::ReadOnly),
        ("real/other", Access::Writable),
        ("dangling", Access::ReadOnly),
        ("nowhere", Access::ReadOnly),
    ] {
        assert_eq!(rules.access(&root.join(path)), expected, "{path}");
    }
    let mounts = rules.mounts(&entries);
    let get = |path: &str| mounts.get(&root.join(path)).copied();
    assert_eq!(get("real"), Some(Access::Writable), "{mounts:?}");
    assert_eq!(get("real/open"), Some(Access::ReadOnly), "{mounts:?}");
}

#[test]
fn an_opening_behind_a_link_that_a_child_can_write_is_ignored() {
    let (_dir, root) = temp();
    for dir in ["cache", "home"] {
        std::fs::create_dir(root.join(dir)).unwrap();
    }
    std::os::unix::fs::symlink("../home", root.join("cache/tool")).unwrap();
    std::os::unix::fs::symlink("home", root.join("mine")).unwrap();
    let planted = rules_in(&root, [&[], &["cache", "cache/tool"], &[]]);
    assert_eq!(planted.access(&root.join("home/a")), Access::ReadOnly);
    let fine = rules_in(&root, [&[], &["cache", "mine"], &[]]);
    assert_eq!(fine.access(&root.join("home/a")), Access::Writable);
}

#[test]
fn a_path_with_links_and_parents_is_resolved_as_the_kernel_does() {
    let (_dir, root) = temp();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::os::unix::fs::symlink("a/b", root.join("link")).unwrap();
    std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
    let found = resolve(&root.join("link/../b/./new/deeper")).unwrap();
    assert_eq!(found.path, root.join("a/b/new"));
    assert_eq!((found.is_missing, found.links), (true, vec![root.join("link")]));
    assert!(resolve(&root.join("loop/x")).is_err());
}
