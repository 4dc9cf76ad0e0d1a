//! Offers of accepted changes on branches of a remote.

use pdca_integrate::{
    Destination, ObjectId, OfferError, OfferOutcome, PushError, Sealed, SealedOffer, offer,
    present_in,
};
use pdca_testkit::Repo;

use crate::scene::{Scene, id};

struct Stall {
    scene: Scene,
    sealed: Sealed,
    there: Repo,
}

impl Stall {
    fn new() -> Self {
        let scene = Scene::new(&[("f", "1\n")]);
        let sealed = scene.change("1", 1, &[("f", Some("one\n"))]);
        let path = scene.room("remote.git");
        scene.repo.git(&["clone", "--quiet", "--bare", ".", path.as_str()]);
        Self { there: Repo::existing(&path), scene, sealed }
    }

    fn made(&self, message: &str) -> SealedOffer {
        SealedOffer::make(&self.scene.store, &self.sealed, message, None).unwrap()
    }

    fn push(&self, made: &SealedOffer, ours: &[ObjectId]) -> OfferOutcome {
        let to = Destination { remote: self.there.path().as_str(), branch: "pdca/1" };
        offer(&self.scene.store, made, to, ours).unwrap()
    }

    fn at(&self) -> ObjectId {
        id(&self.there.git(&["rev-parse", "refs/heads/pdca/1"]))
    }
}

#[test]
fn the_same_words_make_the_same_commit_with_the_sealed_tree_on_the_sealed_base() {
    let stall = Stall::new();
    let record = stall.sealed.record();
    let made = stall.made("Mend it\n\nBecause.\n");
    assert_eq!(made, stall.made("Mend it\n\nBecause.\n"));
    assert_ne!(made, stall.made("Mend it\n"));
    let repo = &stall.scene.repo;
    let said = repo.git(&["log", "-1", "--format=%T %P%n%B", &made.commit().to_string()]);
    let digest = stall.sealed.digest();
    let (tree, base) = (record.tree, record.base);
    let expected = format!("{tree} {base}\nMend it\n\nBecause.\n\nPdca-Sealed: 1 {digest}\n");
    assert_eq!(said.trim_end(), expected.trim_end());
    let author = |commit: ObjectId| {
        repo.git(&["log", "-1", "--format=%an %ae %at %cn %ce %ct", &commit.to_string()])
    };
    assert_eq!(author(made.commit()), author(record.head));
}

#[test]
fn an_offer_that_was_merged_elsewhere_is_known_as_the_sealed_change() {
    let stall = Stall::new();
    let made = stall.made("Mend it");
    let found = present_in(&stall.scene.store, made.commit(), &[stall.sealed.record()]).unwrap();
    let commits: Vec<_> = found.values().map(|presence| presence.commit).collect();
    assert_eq!(commits, [made.commit()]);
}

#[test]
fn a_branch_is_made_where_there_is_none_and_made_again_where_it_went_away() {
    let stall = Stall::new();
    let made = stall.made("Mend it");
    assert_eq!(stall.push(&made, &[]), OfferOutcome::Pushed);
    assert_eq!(stall.at(), made.commit());
    assert_eq!(stall.push(&made, &[]), OfferOutcome::AlreadyThere);
    stall.there.git(&["update-ref", "-d", "refs/heads/pdca/1"]);
    assert_eq!(stall.push(&made, &[made.commit()]), OfferOutcome::Pushed);
    assert_eq!(stall.at(), made.commit());
}

#[test]
fn what_we_put_there_is_replaced_and_what_somebody_else_put_there_is_not() {
    let stall = Stall::new();
    let (first, second) = (stall.made("first"), stall.made("second"));
    stall.push(&first, &[]);
    assert_eq!(
        stall.push(&second, &[]),
        OfferOutcome::Foreign { at: first.commit() },
        "nobody says that it is ours"
    );
    assert_eq!(stall.push(&second, &[first.commit()]), OfferOutcome::Pushed);
    let main = stall.there.git(&["rev-parse", "main"]);
    stall.there.git(&["update-ref", "refs/heads/pdca/1", main.trim()]);
    let ours = [first.commit(), second.commit()];
    assert_eq!(stall.push(&second, &ours), OfferOutcome::Foreign { at: id(&main) });
    assert_eq!(stall.at(), id(&main), "nothing was forced");
}

#[test]
fn a_branch_that_appears_during_the_push_is_left_alone() {
    let stall = Stall::new();
    let main = stall.there.git(&["rev-parse", "main"]);
    // The hook runs after the remote reported that there is no such branch, and before it accepts anything.
    stall.there.write_executable(
        "hooks/pre-receive",
        format!(
            "#!/bin/sh\nunset GIT_QUARANTINE_PATH\ngit update-ref refs/heads/pdca/1 {}\n",
            main.trim()
        ),
    );
    assert_eq!(stall.push(&stall.made("first"), &[]), OfferOutcome::Foreign { at: id(&main) });
    assert_eq!(stall.at(), id(&main));
}

#[test]
fn a_remote_that_refuses_says_why_and_one_that_is_away_may_come_back() {
    let stall = Stall::new();
    stall.there.write_executable("hooks/pre-receive", "#!/bin/sh\nexit 1\n");
    let OfferOutcome::Permanent { said } = stall.push(&stall.made("first"), &[]) else {
        panic!("it is not permanent")
    };
    assert!(said.contains("pre-receive hook declined"), "{said}");
    let path = stall.there.path();
    std::fs::rename(path, path.with_extension("gone")).unwrap();
    assert!(matches!(stall.push(&stall.made("first"), &[]), OfferOutcome::Transient { .. }));
}

#[test]
fn a_remote_with_a_relative_path_is_found_where_the_user_finds_it() {
    let stall = Stall::new();
    let (here, there) = (stall.scene.repo.path(), stall.there.path());
    let up = "../".repeat(here.components().count() - 1);
    let remote = format!("{up}{}", there.as_str().trim_start_matches('/'));
    let to = Destination { remote: &remote, branch: "pdca/1" };
    let said = offer(&stall.scene.store, &stall.made("first"), to, &[]).unwrap();
    assert_eq!(said, OfferOutcome::Pushed);
}

#[test]
fn what_is_no_branch_and_what_is_no_message_is_refused() {
    let stall = Stall::new();
    let made = stall.made("first");
    for branch in ["", "-x", "a..b", "a b", "a.lock", "@{-1}"] {
        let to = Destination { remote: stall.there.path().as_str(), branch };
        let refused = offer(&stall.scene.store, &made, to, &[]);
        assert!(matches!(refused, Err(PushError::Name { .. })), "{branch:?}: {refused:?}");
    }
    for message in ["", " \n", "a\0b"] {
        let refused = SealedOffer::make(&stall.scene.store, &stall.sealed, message, None);
        assert!(matches!(refused, Err(OfferError::Message { .. })), "{message:?}");
    }
}
