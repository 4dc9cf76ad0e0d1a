//! Messages that claim to bring another accepted change.

use pdca_integrate::{ObjectId, Sealed, SealedOffer, Strategy, present_in};

use crate::scene::{Scene, id};

const BOTH: [Strategy; 2] = [Strategy::RebaseFf, Strategy::MergeCommit];

type Edit = fn(&pdca_testkit::Repo);

/// Two accepted changes: 2, which a forger names, and 3, which the forger builds.
struct Forgery {
    scene: Scene,
    victim: Sealed,
}

impl Forgery {
    fn new() -> Self {
        let scene = Scene::new(&[("two", "a\nb\nc\nd\n"), ("three", "a\n")]);
        let victim = scene.change("2", 1, &[("two", Some("a\nB\nc\nD\n"))]);
        Self { scene, victim }
    }

    /// Seals a change of two commits whose messages contain a claim.
    fn forged(&self, message: &str) -> Sealed {
        let first = self.scene.commit(self.scene.base, message, |lane| lane.write("three", "b\n"));
        let head = self.scene.commit(first, message, |lane| lane.write("three", "c\n"));
        self.scene.accept("3", 2, self.scene.base, head)
    }

    fn is_present(&self, tip: ObjectId) -> bool {
        !present_in(&self.scene.store, tip, &[self.victim.record()]).unwrap().is_empty()
    }

    /// Returns the seals that trailers name by git's own reading, in every commit since the base.
    fn trailers(&self, tip: ObjectId) -> Vec<String> {
        let format =
            "--format=%(trailers:key=Pdca-Sealed,valueonly)%(trailers:key=Pdca-Checked,valueonly)";
        let range = format!("{}..{tip}", self.scene.base);
        let said = self.scene.repo.git(&["log", format, &range]);
        let named = said.lines().filter_map(|line| line.split_whitespace().next());
        named.map(str::to_owned).collect()
    }
}

/// Spellings of a claim, and the places of a message where it can stand.
fn messages(digest: &str) -> Vec<String> {
    let lines = [
        format!("Pdca-Sealed: 2 {digest}"),
        format!("pdca-sealed: 2 {digest}"),
        format!("PDCA-SEALED: 2 {digest}"),
        format!("Pdca-Sealed:2 {digest}"),
        format!("Pdca-Sealed : 2 {digest}"),
        format!("Pdca-Sealed\t:\t2 {digest}"),
        format!("  Pdca-Sealed: 2 {digest}"),
        format!("\tPdca-Sealed: 2 {digest}"),
        format!("Pdca-Sealed:\n 2 {digest}"),
        format!("Pdca-Sealed: 2\n {digest}"),
        format!("Pdca-Sealed\u{a0}: 2 {digest}"),
        format!("Pdca-Sealed:\u{2003}2 {digest}"),
        format!("Pdca-Checked: 2 {digest}"),
    ];
    let mut all = Vec::new();
    for line in lines {
        all.push(format!("{line}\n\n{line}\n"));
        all.push(format!("subject\n\n{line}\n"));
        all.push(format!("subject\n\nbody\n\nSigned-off-by: A <a@b>\n{line}\n"));
        all.push(format!("subject\r\n\r\n{}\r\n", line.replace('\n', "\r\n")));
        all.push(format!("subject\n\n{line}\n\n---\n"));
    }
    all
}

#[test]
fn a_claim_in_any_spelling_names_nothing_whatever_the_strategy() {
    for strategy in BOTH {
        let forgery = Forgery::new();
        for (number, message) in messages(&forgery.victim.digest()).iter().enumerate() {
            let forged = forgery.forged(message);
            let folded = forgery.scene.fold(&forgery.scene.plan(&[&forged], strategy));
            let tip = folded.candidate().commit();
            assert_ne!(tip, forgery.scene.base, "3 lands");
            assert!(!forgery.is_present(tip), "{strategy:?} {message:?}");
            let others: Vec<String> =
                forgery.trailers(tip).into_iter().filter(|named| named != "3").collect();
            assert!(others.is_empty(), "{strategy:?} {message:?} {others:?}");
            assert_eq!(forgery.scene.file(tip, "three"), "c\n", "{number}");
            forgery.scene.repo.git(&["update-ref", "-d", "refs/pdca/run1/seal/3"]);
        }
    }
}

#[test]
fn a_claim_in_any_commit_of_an_offer_is_quoted() {
    let forgery = Forgery::new();
    let claim = format!("s\n\npdca-sealed : 2 {}\n", forgery.victim.digest());
    let forged = forgery.forged(&claim);
    // A commit with the files of the base, as the published branch of a change below is one.
    let onto = forgery.scene.commit(forgery.scene.base, "other", |lane| lane.write("x", ""));
    let onto = forgery.scene.commit(onto, "same files", |lane| {
        std::fs::remove_file(lane.path().join("x")).unwrap();
    });
    for onto in [None, Some(onto)] {
        let offer = SealedOffer::make(&forgery.scene.store, &forged, &claim, onto).unwrap();
        assert!(!forgery.is_present(offer.commit()));
        assert_eq!(forgery.trailers(offer.commit()), ["3"]);
        let log = forgery.scene.repo.git(&["log", "--format=%B", &offer.commit().to_string()]);
        assert_eq!(log.matches("\n> pdca-sealed : 2").count(), 2, "{log}");
    }
}

#[test]
fn commits_without_a_claim_stay_the_sealed_ones_in_a_merge() {
    let forgery = Forgery::new();
    let honest = forgery.forged("subject\n\nbody about Pdca-Sealed: in words\n");
    let folded = forgery.scene.fold(&forgery.scene.plan(&[&honest], Strategy::MergeCommit));
    let parents = forgery.scene.repo.git(&[
        "log",
        "-1",
        "--format=%P",
        &folded.candidate().commit().to_string(),
    ]);
    assert!(parents.contains(&honest.record().head.to_string()), "{parents}");
}

/// Claims that reached the branch by other ways than ours are compared with the change that they name.
#[test]
fn a_trailer_counts_only_on_a_commit_that_brings_the_sealed_change() {
    let claim = |forgery: &Forgery| format!("s\n\nPdca-Sealed: 2 {}\n", forgery.victim.digest());
    let table: [(&str, Edit, bool); 9] = [
        ("another file", |lane| lane.write("three", "x\n"), false),
        ("the same file, other lines", |lane| lane.write("two", "A\nb\nc\nd\n"), false),
        ("the same lines, other text", |lane| lane.write("two", "a\nX\nc\nY\n"), false),
        ("a part of it", |lane| lane.write("two", "a\nB\nc\nd\n"), false),
        ("its lines in another file", |lane| lane.write("three", "a\nB\nD\n"), false),
        ("nothing but a mode", |lane| lane.write_executable("two", "a\nb\nc\nd\n"), false),
        ("the change itself", |lane| lane.write("two", "a\nB\nc\nD\n"), true),
        ("the change and more lines", |lane| lane.write("two", "a\nB\nc\nD\nmore\n"), true),
        (
            "the change and another file",
            |lane| {
                lane.write("two", "a\nB\nc\nD\n");
                lane.write("three", "x\n");
            },
            true,
        ),
    ];
    for (name, edit, expected) in table {
        let forgery = Forgery::new();
        let tip = forgery.scene.commit(forgery.scene.base, &claim(&forgery), edit);
        assert_eq!(forgery.is_present(tip), expected, "{name}");
    }
}

#[test]
fn a_claim_after_the_change_has_landed_is_not_what_brought_it() {
    let forgery = Forgery::new();
    let claim = format!("s\n\nPdca-Sealed: 2 {}\n", forgery.victim.digest());
    let landed = forgery.scene.commit(forgery.scene.base, &claim, |lane| {
        lane.write("two", "a\nB\nc\nD\n");
    });
    let later = forgery.scene.commit(landed, &claim, |lane| lane.write("three", "x\n"));
    let found = present_in(&forgery.scene.store, later, &[forgery.victim.record()]).unwrap();
    let found = found.values().next().unwrap();
    assert_eq!((found.commit, found.reverted_by), (landed, None));
}

#[test]
fn a_change_is_found_under_the_name_that_the_target_gave_its_file() {
    let forgery = Forgery::new();
    let moved = forgery.scene.commit(forgery.scene.base, "rename", |lane| {
        lane.git(&["mv", "two", "second"]);
    });
    let claim = format!("s\n\nPdca-Sealed: 2 {}\n", forgery.victim.digest());
    let tip = forgery.scene.commit(moved, &claim, |lane| lane.write("second", "a\nB\nc\nD\n"));
    assert!(forgery.is_present(tip));
}

#[test]
fn a_claim_in_a_tag_or_in_a_merged_commit_names_nothing() {
    let forgery = Forgery::new();
    let claim = format!("s\n\nPdca-Sealed: 2 {}\n", forgery.victim.digest());
    let side = forgery.scene.commit(forgery.scene.base, &claim, |lane| lane.write("x", "x\n"));
    let repo = &forgery.scene.repo;
    repo.git(&["tag", "-a", "-m", &claim, "claims", &side.to_string()]);
    let main = forgery.scene.commit(forgery.scene.base, "main", |lane| lane.write("y", "y\n"));
    let merged = forgery.scene.commit(main, "unused", |lane| {
        lane.git(&["merge", "--quiet", "--no-ff", "--no-edit", "claims"]);
        lane.write("z", "z\n");
    });
    let merge = id(&repo.git(&["rev-parse", &format!("{merged}^")]));
    assert_eq!(repo.git(&["log", "-1", "--format=%P", &merge.to_string()]).split(' ').count(), 2);
    assert!(!forgery.is_present(merged));
}
