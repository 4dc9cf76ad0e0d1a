//! Repositories that can be targets, and those that are refused with a reason.

use camino::Utf8Path;
use fs_err as fs;
use pdca_lanes::{Feature, ResolveBaseError, Target, TargetError};
use pdca_testkit::{Repo, TestWorkspace};

use crate::scene::Scene;

fn refusal(path: &Utf8Path) -> TargetError {
    Target::open("app", path).expect_err("the repository is refused")
}

#[test]
fn what_is_no_repository_is_refused() {
    let scene = Scene::new(&[("src/a", "a\n")]);
    let places = [scene.beside("absent"), scene.beside("ws"), scene.primary.path().join("src")];
    for path in places {
        assert!(matches!(refusal(&path), TargetError::NotARepository { .. }), "{path}");
    }
}

#[test]
fn a_repository_without_a_commit_is_refused() {
    assert!(matches!(refusal(Repo::new().path()), TargetError::Empty { .. }));
}

#[test]
fn a_name_that_is_no_directory_name_is_refused() {
    let repo = Repo::with_first_commit();
    for name in ["", ".", "..", "a/b", ".git", "-x", "a\nb", "a\\b"] {
        assert!(
            matches!(Target::open(name, repo.path()), Err(TargetError::Name { .. })),
            "{name:?}"
        );
    }
}

#[test]
fn a_name_that_lanes_use_beside_the_checkouts_is_refused() {
    let repo = Repo::with_first_commit();
    for name in [
        "lock",
        "rescued",
        "Rescued",
        "x.index",
        "x.index.new",
        "x.lane.json",
        "x.occupant",
        "x.lock",
        "x.repository",
        "x.lent",
    ] {
        let err = Target::open(name, repo.path()).expect_err("the name is refused");
        assert!(matches!(&err, TargetError::Reserved { .. }), "{name:?}: {err}");
    }
    for name in ["locks", "rescued.x", "index", "lane.json", "occupant"] {
        assert!(Target::open(name, repo.path()).is_ok(), "{name:?}");
    }
}

#[test]
fn d7_d14_what_a_lane_would_get_wrong_is_refused_by_name() {
    let scene = Scene::new(&[("a", "a\n"), ("dir/b", "b\n")]);
    scene.primary.commit("second");
    let url = format!("file://{}", scene.primary.path());
    let clone = |name: &str, args: &[&str]| {
        let path = scene.beside(name);
        scene.primary.git(&[&["clone", "-q"], args, &[url.as_str(), path.as_str()]].concat());
        Repo::existing(&path)
    };
    scene.primary.git(&["config", "uploadpack.allowFilter", "true"]);
    // An old git cannot create one; an existing one must be refused nevertheless.
    let reftable = || {
        let path = scene.beside("reftable");
        let args = ["clone", "-q", "--ref-format=reftable", url.as_str(), path.as_str()];
        if scene.primary.try_git(&args).status.success() {
            return Repo::existing(&path);
        }
        let repo = clone("reftable", &[]);
        repo.git(&["config", "core.repositoryFormatVersion", "1"]);
        repo.git(&["config", "extensions.refStorage", "reftable"]);
        repo
    };
    let cases = [
        (clone("shallow", &["--depth=1"]), "shallow clone"),
        (clone("partial", &["--filter=blob:none"]), "partial clone of remote \"origin\""),
        (clone("sparse", &["--sparse"]), "sparse checkout"),
        (reftable(), "\"reftable\""),
    ];
    for (repo, why) in cases {
        let before = repo.try_git(&["for-each-ref"]).stdout;
        let err = refusal(repo.path());
        assert!(matches!(err, TargetError::Unsupported { .. }), "{err:?}");
        assert!(err.to_string().contains(why), "{err}");
        assert_eq!(repo.try_git(&["for-each-ref"]).stdout, before);
    }
}

#[test]
fn d8_filters_and_encodings_are_refused_by_name() {
    let cases = [
        ("*.bin filter=lfs\n", "lfs"),
        ("*.x text\n*.c ident\n", "ident"),
        ("*.txt working-tree-encoding=UTF-16\n", "working-tree-encoding"),
        ("*.y filter=mine\n", "mine"),
    ];
    for (attributes, why) in cases {
        let scene = Scene::new(&[(".gitattributes", attributes)]);
        scene.primary.git(&["config", "filter.mine.clean", "cat"]);
        let err = refusal(scene.primary.path()).to_string();
        assert!(err.contains(why), "{err}");
    }
    let scene = Scene::new(&[(
        ".gitattributes",
        "# *.bin filter=lfs\n*.txt text eol=lf\n*.z filter=unknown\n*.q -filter\n",
    )]);
    scene.target();
}

#[test]
fn a_branch_is_found_where_it_is() {
    let scene = Scene::new(&[("a", "a\n")]);
    let first = scene.primary.head();
    scene.primary.git(&["update-ref", "refs/remotes/origin/main", &first]);
    scene.primary.git(&["update-ref", "refs/remotes/origin/theirs", &first]);
    scene.primary.git(&["update-ref", "refs/remotes/up/feature/x", &first]);
    let second = scene.primary.commit("second");
    let target = scene.target();
    let base = |branch: Option<&str>| {
        target.resolve(branch).map(|base| (base.commit, base.branch)).unwrap()
    };
    assert_eq!(base(None), (second.clone(), "main".to_owned()));
    assert_eq!(base(Some("main")), (second.clone(), "main".to_owned()));
    assert_eq!(base(Some("refs/heads/main")), (second, "main".to_owned()));
    assert_eq!(base(Some("theirs")), (first.clone(), "origin/theirs".to_owned()));
    assert_eq!(base(Some("origin/main")), (first.clone(), "origin/main".to_owned()));
    assert_eq!(base(Some("up/feature/x")), (first, "up/feature/x".to_owned()));
}

#[test]
fn a_branch_that_is_not_there_says_what_was_tried() {
    let scene = Scene::new(&[("a", "a\n")]);
    scene.primary.git(&["tag", "v1"]);
    for name in ["nope", "v1", "HEAD", "a..b", "", "--all", "main~1"] {
        match scene.target().resolve(Some(name)) {
            Err(ResolveBaseError::NoSuchBranch { branch, tried }) => {
                assert_eq!(
                    (branch.as_str(), tried[0].as_str()),
                    (name, format!("refs/heads/{name}").as_str())
                );
            }
            other => panic!("{name:?}: {other:?}"),
        }
    }
}

#[test]
fn d6_a_head_on_no_branch_or_an_unborn_one_must_be_named() {
    let scene = Scene::new(&[("a", "a\n")]);
    scene.primary.git(&["checkout", "-q", "--detach"]);
    assert!(matches!(scene.target().resolve(None), Err(ResolveBaseError::Detached { .. })));
    scene.primary.git(&["symbolic-ref", "HEAD", "refs/heads/unborn"]);
    assert!(matches!(scene.target().resolve(None), Err(ResolveBaseError::Unborn { .. })));
    assert!(scene.target().resolve(Some("main")).is_ok());
}

#[test]
fn all_worktrees_of_a_repository_share_a_common_directory() {
    let scene = Scene::new(&[("a", "a\n")]);
    let linked = scene.beside("linked");
    scene.primary.git(&["worktree", "add", "-q", linked.as_str()]);
    let through_link = scene.beside("through");
    std::os::unix::fs::symlink(scene.primary.path(), &through_link).unwrap();
    for path in [linked, through_link] {
        let target = Target::open("app", &path).unwrap();
        assert_eq!(target.common_dir(), scene.target().common_dir());
    }
}

#[test]
fn a_path_with_odd_letters_can_be_a_primary() {
    let around = TestWorkspace::new();
    let primary = around.target("a b \"ü\"");
    primary.write("a", "a\n");
    let head = primary.commit("a");
    let target = Target::open("app", primary.path()).unwrap();
    let lane = pdca_lanes::Lanes::new(around.around().join("the lanes")).claim(3, &target).unwrap();
    lane.reset(&head).unwrap();
    assert_eq!(fs::read_to_string(lane.path().join("a")).unwrap(), "a\n");
}

#[test]
fn a_branch_whose_tip_cannot_be_read_is_not_said_to_be_absent() {
    for damage in [None, Some("garbage")] {
        let scene = Scene::new(&[("a", "a\n")]);
        let first = scene.primary.head();
        scene.primary.git(&["update-ref", "refs/remotes/origin/broken", &first]);
        scene.primary.git(&["checkout", "-q", "-b", "broken"]);
        scene.primary.write("a", "b\n");
        let tip = scene.primary.commit("second");
        scene.primary.git(&["checkout", "-q", "main"]);
        let object = scene.primary.path().join(".git/objects").join(&tip[..2]).join(&tip[2..]);
        fs::remove_file(&object).unwrap();
        if let Some(damage) = damage {
            fs::write(&object, damage).unwrap();
        }
        for name in ["broken", "refs/heads/broken"] {
            match scene.target().resolve(Some(name)) {
                Err(ResolveBaseError::Tip { reference, .. }) => {
                    assert_eq!(reference, "refs/heads/broken");
                }
                other => panic!("{damage:?} {name}: {other:?}"),
            }
        }
        assert_eq!(scene.target().resolve(Some("origin/broken")).unwrap().commit, first);
    }
}

#[test]
fn a_ref_that_leads_to_no_commit_is_no_branch() {
    let scene = Scene::new(&[("a", "a\n")]);
    let tree = scene.primary.git(&["rev-parse", "HEAD^{tree}"]);
    scene.primary.git(&["tag", "tree", tree.trim()]);
    scene.primary.git(&["tag", "-a", "-m", "x", "annotated"]);
    scene.primary.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone"]);
    for name in ["refs/tags/tree", "origin/HEAD"] {
        let found = scene.target().resolve(Some(name));
        assert!(matches!(found, Err(ResolveBaseError::NoSuchBranch { .. })), "{name}: {found:?}");
    }
    let found = scene.target().resolve(Some("refs/tags/annotated")).unwrap();
    assert_eq!(found.commit, scene.primary.head());
}

/// One of each: the compiler reports a feature that is missing in the match.
fn next(feature: Option<&Feature>) -> Option<Feature> {
    let text = str::to_owned;
    let filter = |filter: &str| Feature::Filter { filter: text(filter), file: text("f") };
    Some(match feature {
        None => Feature::Shallow,
        Some(Feature::Shallow) => Feature::Partial { remote: text("origin") },
        Some(Feature::Partial { .. }) => Feature::Sparse,
        Some(Feature::Sparse) => Feature::RefStorage { format: text("reftable") },
        Some(Feature::RefStorage { .. }) => filter("lfs"),
        Some(Feature::Filter { filter: name, .. }) if name == "lfs" => filter("mine"),
        Some(Feature::Filter { .. }) => {
            Feature::Attribute { attribute: text("ident"), file: text("f") }
        }
        Some(Feature::Attribute { .. }) => return None,
    })
}

#[test]
fn every_feature_that_is_refused_has_a_remedy_of_its_own() {
    let all: Vec<Feature> =
        std::iter::successors(next(None), |feature| next(Some(feature))).collect();
    let mut remedies: Vec<&str> = all.iter().map(Feature::remedy).collect();
    assert!(remedies.iter().all(|remedy| !remedy.trim().is_empty()), "{remedies:?}");
    remedies.sort_unstable();
    remedies.dedup();
    assert_eq!(remedies.len(), 7, "{remedies:?}");
}

#[test]
fn a_remedy_that_is_run_in_the_repository_makes_it_fit() {
    let scene = Scene::new(&[("a", "a\n"), ("dir/b", "b\n")]);
    scene.primary.write("a", "b\n");
    scene.primary.commit("second");
    let url = format!("file://{}", scene.primary.path());
    for (name, flag, feature) in
        [("shallow", "--depth=1", Feature::Shallow), ("sparse", "--sparse", Feature::Sparse)]
    {
        let path = scene.beside(name);
        scene.primary.git(&["clone", "-q", flag, &url, path.as_str()]);
        let err = refusal(&path);
        assert_eq!(err.feature(), Some(&feature));
        let command = feature.remedy().split('`').nth(1).unwrap();
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        Repo::existing(&path).git(&words);
        Target::open("app", &path).unwrap();
    }
    assert!(refusal(&scene.beside("absent")).feature().is_none());
}

#[test]
fn the_size_of_a_checkout_is_that_of_what_git_tracks_in_whole_blocks() {
    let repo = Repo::new();
    repo.write("empty", "");
    repo.write("dir/small", "x");
    repo.write("large", vec![b'x'; 4097]);
    let first = repo.commit("first");
    repo.write("more", "x");
    let second = repo.commit("second");
    repo.write("untracked", vec![b'x'; 100_000]);
    let target = Target::open("app", repo.path()).unwrap();
    assert_eq!(target.checkout_size(&first).unwrap(), 4 * 4096);
    assert_eq!(target.checkout_size(&second).unwrap(), 5 * 4096);
    target.checkout_size(&"0".repeat(40)).unwrap_err();
}

#[test]
fn the_trees_of_a_linked_worktree_are_its_whole_repository_without_our_lanes() {
    let scene = Scene::new(&[("a.txt", "a\n")]);
    let main = scene.primary.path().canonicalize_utf8().unwrap();
    let around = main.parent().unwrap();
    for (name, branch) in [("linked", "one"), ("sibling", "two"), ("lanes/lane-0", "three")] {
        let path = around.join(name);
        scene.primary.git(&["worktree", "add", "-q", "-b", branch, path.as_str()]);
    }
    let trees = pdca_lanes::repository_trees(&around.join("linked"), &around.join("lanes"));
    for tree in [main.clone(), main.join(".git"), around.join("linked"), around.join("sibling")] {
        assert!(trees.contains(&tree), "{tree}: {trees:?}");
    }
    assert!(!trees.iter().any(|tree| tree.starts_with(around.join("lanes"))), "{trees:?}");
}
