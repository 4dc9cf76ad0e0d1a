//! Certificates of landings can be verified.

use pdca_integrate::{
    Certificate, Drivers, MergeEngine, Onto, Strategy, VerifyError, land, verify,
};

use crate::scene::{LOG, Scene, passed};

fn landed(strategy: Strategy) -> (Scene, Vec<u8>) {
    let scene = Scene::new(&[("f", "1\n2\n3\n4\n5\n")]);
    let one = scene.change("1", 1, &[("f", Some("one\n2\n3\n4\n5\n"))]);
    let two = scene.change("2", 2, &[("f", Some("1\n2\n3\n4\nfive\n"))]);
    let gated = passed(&scene.fold(&scene.plan(&[&one, &two], strategy)));
    let landed = land(&scene.store, &scene.fence, &gated, Onto::Target("main"), LOG).unwrap();
    let text = Certificate::new(&landed, &gated).to_json();
    (scene, text)
}

fn verified(scene: &Scene, text: &[u8]) -> Result<(), VerifyError> {
    let mut engine = MergeEngine::new(&scene.store, Drivers::default());
    verify(&mut engine, text).map(drop)
}

/// Returns the place that an error names.
fn place(error: &VerifyError) -> String {
    match error {
        VerifyError::Unreadable { line, column, .. } | VerifyError::Bytes { line, column } => {
            format!("{line}:{column}")
        }
        VerifyError::Changed { place }
        | VerifyError::Wrong { place, .. }
        | VerifyError::Seal { place, .. } => place.clone(),
        VerifyError::Order(_) => "inputs".to_owned(),
        VerifyError::Fold(_) => String::new(),
    }
}

#[test]
fn a_certificate_holds_for_each_strategy() {
    for strategy in [Strategy::RebaseFf, Strategy::MergeCommit] {
        let (scene, text) = landed(strategy);
        verified(&scene, &text).unwrap();
    }
}

#[test]
fn one_changed_byte_anywhere_fails_with_its_place() {
    let (scene, text) = landed(Strategy::RebaseFf);
    for at in 0..text.len() {
        for bit in [1, 32] {
            let mut changed = text.clone();
            changed[at] ^= bit;
            let error = verified(&scene, &changed).unwrap_err();
            assert!(!place(&error).is_empty(), "byte {at}: {error:?}");
        }
    }
    for cut in [0, 1, text.len() / 2, text.len() - 1] {
        assert!(verified(&scene, &text[..cut]).is_err(), "{cut}");
    }
    let longer = [text.as_slice(), b"\n"].concat();
    assert!(matches!(verified(&scene, &longer), Err(VerifyError::Bytes { .. })));
}

#[test]
fn the_section_that_was_changed_is_named() {
    let (scene, text) = landed(Strategy::RebaseFf);
    let text = String::from_utf8(text).unwrap();
    for (from, to, named) in [
        ("\"light\": \"green\"", "\"light\": \"red\"", "certificate.verdict"),
        (
            "\"environment_digest\": \"env1\"",
            "\"environment_digest\": \"env2\"",
            "certificate.verdict",
        ),
        ("refs/heads/main", "refs/heads/mine", "certificate.reference"),
        ("\"strategy\": \"rebase-ff\"", "\"strategy\": \"merge-commit\"", "certificate.strategy"),
        (
            "\"gate_digest\": \"gates1\",\n          \"c",
            "\"gate_digest\": \"gates2\",\n          \"c",
            "certificate.inputs",
        ),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let error = verified(&scene, text.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert_eq!(place(&error), named);
    }
}

/// Recomputes the digests, as a forger would.
fn forged(text: &[u8], change: impl FnOnce(&mut Certificate)) -> Vec<u8> {
    let file: serde_json::Value = serde_json::from_slice(text).unwrap();
    let mut certificate: Certificate = serde_json::from_value(file["certificate"].clone()).unwrap();
    change(&mut certificate);
    certificate.to_json()
}

#[test]
fn what_a_forger_writes_with_new_digests_is_found_by_doing_it_again() {
    let (scene, text) = landed(Strategy::RebaseFf);
    assert_eq!(forged(&text, |_| {}), text);
    let base = scene.base;
    let forgeries: Vec<(&str, Vec<u8>)> = vec![
        ("commit", forged(&text, |c| c.commit = base)),
        ("tree", forged(&text, |c| c.tree = base)),
        (
            "results[1].commits[0].applied",
            forged(&text, |c| c.results[1].commits[0].applied = base),
        ),
        ("inputs[0].seal", forged(&text, |c| c.inputs[0].seal.tree = base)),
        ("footprint", forged(&text, |c| c.footprint.clear())),
        (
            "results[0].id",
            forged(&text, |c| {
                c.inputs[0].seal.completion_order = 9;
            }),
        ),
        ("verdict.key.tree", forged(&text, |c| c.verdict.key.tree = base)),
        ("schema", forged(&text, |c| c.schema = 3)),
    ];
    for (named, text) in forgeries {
        let error = verified(&scene, &text).unwrap_err();
        assert_eq!(place(&error), named, "{error:?}");
    }
}

#[test]
fn certificates_of_the_first_form_still_hold() {
    // Written by version 0.1.0, before commits were dated: two landings, and the seals that they name.
    let home = tempfile::tempdir().unwrap();
    let home = camino::Utf8Path::from_path(home.path()).unwrap();
    let bundle = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/first_form/repository.bundle");
    let path = home.join("repo");
    std::fs::create_dir(&path).unwrap();
    let repo = pdca_testkit::Repo::existing(&path);
    repo.git(&["init", "--quiet", "--bare"]);
    repo.git(&["fetch", "--quiet", bundle, "refs/*:refs/*"]);
    let store = pdca_integrate::Store::open(&path, &home.join("room")).unwrap();
    let mut engine = MergeEngine::new(&store, Drivers::default());
    let mut landed = Vec::new();
    for text in
        [&include_bytes!("first_form/first.json")[..], include_bytes!("first_form/second.json")]
    {
        let held = verify(&mut engine, text).unwrap();
        assert_eq!(held.certificate.schema, 1);
        landed.push(held.certificate.commit.to_string());
        let error = verify(&mut engine, &forged(text, |c| c.schema = 2)).unwrap_err();
        assert_eq!(place(&error), "results[0].commits[0].applied", "{error:?}");
    }
    assert_eq!(repo.git(&["rev-parse", "main"]).trim(), landed[1]);
}
