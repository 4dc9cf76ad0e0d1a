//! Conflict forecasts.

use pdca_dag::{Case, Pattern};
use pdca_integrate::{Drivers, MergeEngine, PairOutlook};

use crate::scene::Scene;

#[test]
fn declared_paths_that_meet_are_an_overlap_with_a_path() {
    let touches = |glob: &str| vec![Pattern::parse(glob, Case::Sensitive).unwrap()];
    let (one, two, three) = (touches("src/*.rs"), touches("src/a*"), touches("docs"));
    let expected = PairOutlook::Overlap { path: "src/a.rs".to_owned() };
    assert_eq!(PairOutlook::of_touches(&one, &two), expected);
    assert_eq!(PairOutlook::of_touches(&one, &three), PairOutlook::Clear);
    assert_eq!(PairOutlook::of_touches(&two, &three), PairOutlook::Clear);
}

#[test]
fn results_that_do_not_merge_are_named_with_file_and_lines() {
    let scene = Scene::new(&[("f", "1\n2\n3\n"), ("g", "g\n")]);
    let one = scene.change("1", 1, &[("f", Some("1\none\n3\n"))]).record().head;
    let two = scene.change("2", 2, &[("f", Some("1\ntwo\n3\n"))]).record().head;
    let three = scene.change("3", 3, &[("g", Some("G\n"))]).record().head;
    let mut engine = MergeEngine::new(&scene.store, Drivers::default());
    let pairs = [(one, two), (one, three), (two, three)];
    let outlooks = PairOutlook::of_pairs(&mut engine, scene.base, &pairs).unwrap();
    let PairOutlook::Conflict { conflicts } = &outlooks[0] else { panic!("{outlooks:?}") };
    assert_eq!(conflicts[0].path.to_string(), "f");
    assert_eq!((conflicts[0].hunks[0].line, conflicts[0].hunks[0].theirs.as_str()), (2, "two\n"));
    assert_eq!(outlooks[1..], [PairOutlook::Clear, PairOutlook::Clear]);
}

#[test]
fn a_pair_that_git_cannot_merge_spoils_no_other() {
    let scene = Scene::new(&[("f", "1\n"), ("g", "g\n")]);
    let one = scene.commit(scene.base, "one", |lane| lane.write("f", "one\n"));
    let two = scene.commit(scene.base, "two", |lane| lane.write("g", "two\n"));
    // It has no history in common with the others.
    let alone = crate::scene::id(&scene.repo.git(&["commit-tree", "-m", "x", &scene.tree(one)]));
    let mut engine = MergeEngine::new(&scene.store, Drivers::default());
    let pairs = [(one, alone), (one, two), (alone, two)];
    let outlooks = PairOutlook::of_pairs(&mut engine, scene.base, &pairs).unwrap();
    assert!(matches!(outlooks[0], PairOutlook::Unknown { .. }), "{outlooks:?}");
    assert_eq!(outlooks[1], PairOutlook::Clear);
    assert!(matches!(outlooks[2], PairOutlook::Unknown { .. }), "{outlooks:?}");
}
