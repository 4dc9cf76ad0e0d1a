//! Conflict forecasts.

use pdca_dag::{Case, Pattern};
use pdca_integrate::{Drivers, Forecast, Level, MergeEngine, PairOutlook};

use crate::scene::Scene;

#[test]
fn declared_paths_that_meet_are_an_overlap_with_a_path() {
    let touches = |id: &str, glob: &str| {
        (id.parse().unwrap(), vec![Pattern::parse(glob, Case::Sensitive).unwrap()])
    };
    let items = [touches("1", "src/*.rs"), touches("2", "src/a*"), touches("3", "docs")];
    let forecast = Forecast::of_touches(&items);
    assert_eq!(forecast.level, Level::Declared);
    assert_eq!(forecast.pairs.len(), 3);
    let trouble: Vec<_> = forecast.troubles().collect();
    assert_eq!(trouble.len(), 1);
    let expected = PairOutlook::Overlap { path: "src/a.rs".to_owned() };
    assert_eq!(forecast.between(&items[1].0, &items[0].0), Some(&expected));
}

#[test]
fn results_that_do_not_merge_are_named_with_file_and_lines() {
    let scene = Scene::new(&[("f", "1\n2\n3\n"), ("g", "g\n")]);
    let one = scene.change("1", 1, &[("f", Some("1\none\n3\n"))]);
    let two = scene.change("2", 2, &[("f", Some("1\ntwo\n3\n"))]);
    let three = scene.change("3", 3, &[("g", Some("G\n"))]);
    let mut engine = MergeEngine::new(&scene.store, Drivers::default());
    let forecast = Forecast::of_seals(&mut engine, scene.base, &[&one, &two, &three]).unwrap();
    let Some(PairOutlook::Conflict { conflicts }) = forecast.between(one.id(), two.id()) else {
        panic!("{forecast:?}")
    };
    assert_eq!(conflicts[0].path.to_string(), "f");
    assert_eq!((conflicts[0].hunks[0].line, conflicts[0].hunks[0].theirs.as_str()), (2, "two\n"));
    assert_eq!(forecast.between(one.id(), three.id()), Some(&PairOutlook::Clear));
    assert_eq!(forecast.troubles().count(), 1);
}

#[test]
fn a_pair_that_git_cannot_merge_spoils_no_other() {
    let scene = Scene::new(&[("f", "1\n"), ("g", "g\n")]);
    let one = scene.commit(scene.base, "one", |lane| lane.write("f", "one\n"));
    let two = scene.commit(scene.base, "two", |lane| lane.write("g", "two\n"));
    // It has no history in common with the others.
    let alone = crate::scene::id(&scene.repo.git(&["commit-tree", "-m", "x", &scene.tree(one)]));
    let heads =
        [("1", one), ("2", alone), ("3", two)].map(|(id, head)| (id.parse().unwrap(), head));
    let mut engine = MergeEngine::new(&scene.store, Drivers::default());
    let forecast = Forecast::of_heads(&mut engine, scene.base, &heads).unwrap();
    let outlooks: Vec<&PairOutlook> = forecast.pairs.iter().map(|pair| &pair.outlook).collect();
    assert!(matches!(outlooks[0], PairOutlook::Unknown { .. }), "{outlooks:?}");
    assert_eq!(outlooks[1], &PairOutlook::Clear);
    assert!(matches!(outlooks[2], PairOutlook::Unknown { .. }), "{outlooks:?}");
}
