//! From two accepted patches to a certificate that holds elsewhere.

use pdca_integrate::{
    Certificate, Drivers, MergeEngine, Onto, StepEffect, Store, Strategy, land, verify,
};
use pdca_testkit::Repo;

use crate::scene::{LOG, Scene, passed};

#[test]
fn two_patches_are_sealed_folded_landed_and_verified_in_a_clone() {
    let scene = Scene::new(&[("a.txt", "1\n2\n3\n4\n5\n"), ("b.txt", "b\n")]);
    let first = scene.change("11", 1, &[("a.txt", Some("one\n2\n3\n4\n5\n"))]);
    let second = scene.change("12", 2, &[("a.txt", Some("1\n2\n3\n4\nfive\n"))]);
    let folded = scene.fold(&scene.plan(&[&second, &first], Strategy::RebaseFf));
    let gated = passed(&folded);
    let landed = land(&scene.store, &scene.fence, &gated, Onto::Target("main"), LOG).unwrap();
    assert_eq!(landed.effect(), StepEffect::Made);
    assert_eq!(scene.main(), landed.commit());
    assert_eq!(scene.file(landed.commit(), "a.txt"), "one\n2\n3\n4\nfive\n");
    let log = scene.repo.git(&["log", "--format=%s|%(trailers:key=Pdca-Sealed,valueonly)", "main"]);
    let (old, new) = (first.digest(), second.digest());
    assert_eq!(log, format!("change 12|12 {new}\n\nchange 11|11 {old}\n\nbase|\n"));

    let certificate = Certificate::new(&landed, &gated).to_json();
    let home = tempfile::tempdir().unwrap();
    let home = camino::Utf8Path::from_path(home.path()).unwrap();
    let clone = home.join("clone");
    scene.repo.git(&["clone", "--quiet", "--mirror", ".", clone.as_str()]);
    let clone = Store::open(Repo::existing(&clone).path(), &home.join("room")).unwrap();
    let mut engine = MergeEngine::new(&clone, Drivers::default());
    let verified = verify(&mut engine, &certificate).unwrap();
    assert_eq!(verified.certificate.commit, landed.commit());
}

#[test]
fn a_repository_with_longer_ids_is_served_as_well() {
    let home = tempfile::tempdir().unwrap();
    let place = camino::Utf8Path::from_path(home.path()).unwrap().join("repo");
    std::fs::create_dir(&place).unwrap();
    let init = ["init", "--quiet", "--initial-branch=main", "--object-format=sha256"];
    Repo::existing(&place).git(&init);
    let repo = Repo::existing(&place);
    repo.write("f", "f\n");
    repo.commit("base");
    let scene = Scene::of(repo);
    let one = scene.change("1", 1, &[("f", Some("F\n"))]);
    let gated = passed(&scene.fold(&scene.plan(&[&one], Strategy::RebaseFf)));
    let landed = land(&scene.store, &scene.fence, &gated, Onto::Target("main"), LOG).unwrap();
    assert_eq!(landed.commit().to_string().len(), 64);
    let certificate = Certificate::new(&landed, &gated).to_json();
    verify(&mut MergeEngine::new(&scene.store, Drivers::default()), &certificate).unwrap();
}
