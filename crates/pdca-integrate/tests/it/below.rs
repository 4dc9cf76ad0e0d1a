//! Landed changes directly below a tip.

use pdca_integrate::{LandedChange, ObjectId, Onto, Sealed, Strategy, land, landed_below};

use crate::scene::{LOG, Scene, passed};

/// Three changes, of which the second has two commits.
fn three(scene: &Scene) -> Vec<Sealed> {
    let one = scene.change("1", 1, &[("a", Some("a\n"))]);
    let half = scene.commit(scene.base, "half of 2", |lane| lane.write("b", "b\n"));
    let head = scene.commit(half, "rest of 2", |lane| lane.write("c", "c\n"));
    let two = scene.accept("2", 2, scene.base, head);
    let three = scene.change("3", 3, &[("d", Some("d\n"))]);
    vec![one, two, three]
}

/// Lands them, and returns each with its commit.
fn landed(scene: &Scene, changes: &[Sealed], strategy: Strategy) -> Vec<(Sealed, ObjectId)> {
    let plan = scene.plan(&changes.iter().collect::<Vec<_>>(), strategy);
    let gated = passed(&scene.fold(&plan));
    land(&scene.store, &scene.fence, &gated, Onto::Target("main"), LOG).unwrap();
    let commits: Vec<ObjectId> = gated.candidate().commits().map(|(_, commit)| commit).collect();
    changes.iter().cloned().zip(commits).collect()
}

fn below(
    scene: &Scene,
    strategy: Strategy,
    landings: &[(Sealed, ObjectId)],
    most: usize,
) -> (ObjectId, Vec<String>) {
    let landings: Vec<LandedChange<'_>> =
        landings.iter().map(|(sealed, commit)| LandedChange { sealed, commit: *commit }).collect();
    let (origin, found) =
        landed_below(&scene.store, scene.main(), strategy, &landings, most).unwrap();
    (origin, found.iter().map(|landing| landing.sealed.id().to_string()).collect())
}

#[test]
fn changes_that_landed_one_upon_the_other_are_found_down_to_what_they_were_put_onto() {
    for strategy in [Strategy::RebaseFf, Strategy::MergeCommit] {
        let scene = Scene::new(&[("f", "f\n")]);
        let changes = three(&scene);
        let landings = landed(&scene, &changes, strategy);
        let (origin, found) = below(&scene, strategy, &landings, 64);
        assert_eq!((origin, found.join(" ")), (scene.base, "1 2 3".to_owned()), "{strategy:?}");
        let (origin, found) = below(&scene, strategy, &landings, 2);
        assert_eq!((origin, found.join(" ")), (landings[0].1, "2 3".to_owned()), "{strategy:?}");
    }
}

#[test]
fn a_commit_that_no_known_change_brought_ends_it() {
    let scene = Scene::new(&[("f", "f\n")]);
    let changes = three(&scene);
    let landings = landed(&scene, &changes, Strategy::RebaseFf);
    let (origin, found) = below(&scene, Strategy::RebaseFf, &landings[2..], 64);
    assert_eq!((origin, found.join(" ")), (landings[1].1, "3".to_owned()));
    let (origin, found) = below(&scene, Strategy::RebaseFf, &landings[..2], 64);
    assert_eq!((origin, found.len()), (scene.main(), 0), "the tip is of another");
}
