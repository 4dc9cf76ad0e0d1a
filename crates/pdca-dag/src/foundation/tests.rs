use std::collections::{BTreeMap, BTreeSet};

use pdca_state::BundleId;
use proptest::prelude::*;

use super::{
    BundleResult, Finished, FoundationChange, Lacks, LacksWhy, Results, Speculation, Whereabouts,
};

fn id(name: &str) -> BundleId {
    name.parse().unwrap()
}

fn change(version: &str, on: &[(&str, &str)], order: u64, accepted: bool) -> BundleResult {
    let stands_on = on.iter().map(|(on, version)| (id(on), (*version).to_owned())).collect();
    let place = Whereabouts::Pending;
    BundleResult::Change(Finished {
        version: version.to_owned(),
        stands_on,
        order,
        accepted,
        place,
    })
}

fn at(result: BundleResult, place: Whereabouts) -> BundleResult {
    match result {
        BundleResult::Change(finished) => BundleResult::Change(Finished { place, ..finished }),
        other @ (BundleResult::None | BundleResult::Nothing) => other,
    }
}

fn results(known: &[(&str, BundleResult)]) -> Results {
    Results::new(known.iter().map(|(name, result)| (id(name), result.clone())).collect())
}

fn base(results: &Results, needs: &[&str], rivals: &[&str]) -> Result<Vec<String>, Vec<Lacks>> {
    let needs: Vec<BundleId> = needs.iter().copied().map(id).collect();
    let rivals = rivals.iter().copied().map(id).collect();
    let found = results.foundation(&id("x"), &needs, &rivals, Speculation::default());
    Ok(found?.iter().map(ToString::to_string).collect())
}

#[test]
fn a_dependant_stands_on_what_it_needs_and_on_all_below_that() {
    let known = results(&[
        ("1", change("a", &[], 1, true)),
        ("2", change("b", &[("1", "a")], 2, true)),
        ("3", change("c", &[], 3, true)),
    ]);
    assert_eq!(base(&known, &["2"], &[]).unwrap(), ["1", "2"]);
    assert_eq!(base(&known, &[], &[]).unwrap(), [""; 0], "3 was not asked for");
}

#[test]
fn what_landed_is_in_the_branch_and_is_not_folded_again() {
    let known = results(&[
        ("1", at(change("a", &[], 1, true), Whereabouts::Landed)),
        ("2", change("b", &[("1", "a")], 2, true)),
        ("3", BundleResult::Nothing),
    ]);
    assert_eq!(base(&known, &["1", "2", "3"], &[]).unwrap(), ["2"]);
}

#[test]
fn a_rival_is_stood_on_before_it_is_accepted_and_a_prerequisite_is_not() {
    let known = results(&[("1", change("a", &[], 1, false))]);
    assert_eq!(base(&known, &[], &["1"]).unwrap(), ["1"]);
    let lacks = Lacks { on: id("1"), why: LacksWhy::NotAccepted };
    assert_eq!(base(&known, &["1"], &[]), Err(vec![lacks]));
    let speculative = Speculation { on_prerequisites: true, on_rivals: false };
    let needs = [id("1")];
    let found = known.foundation(&id("x"), &needs, &BTreeSet::new(), speculative);
    assert_eq!(found, Ok(vec![id("1")]));
    let found = known.foundation(&id("x"), &[], &BTreeSet::from([id("1")]), speculative);
    assert_eq!(found, Ok(vec![]));
}

#[test]
fn everything_that_is_wrong_with_prerequisites_is_said_at_once() {
    let known = results(&[
        ("1", at(change("a", &[], 1, true), Whereabouts::Held)),
        ("2", at(change("b", &[], 2, true), Whereabouts::Reverted)),
        ("3", BundleResult::None),
        ("4", change("d", &[("1", "a")], 4, true)),
    ]);
    let lacks = |name, why| Lacks { on: id(name), why };
    assert_eq!(
        base(&known, &["1", "2", "3", "4", "5"], &[]),
        Err(vec![
            lacks("1", LacksWhy::Held),
            lacks("2", LacksWhy::Reverted),
            lacks("3", LacksWhy::NoResult),
            lacks("4", LacksWhy::Stale),
            lacks("5", LacksWhy::NoResult),
        ])
    );
}

#[test]
fn a_result_is_stale_when_anything_below_it_changed() {
    for (below, expected) in [
        (change("a", &[], 1, true), None),
        (change("a", &[], 1, false), None),
        (at(change("a", &[], 1, true), Whereabouts::Landed), None),
        (change("other", &[], 1, true), Some(FoundationChange::Superseded)),
        (BundleResult::None, Some(FoundationChange::Gone)),
        (at(change("a", &[], 1, true), Whereabouts::Held), Some(FoundationChange::Held)),
        (at(change("a", &[], 1, true), Whereabouts::Reverted), Some(FoundationChange::Reverted)),
    ] {
        let known = results(&[
            ("1", below.clone()),
            ("2", change("b", &[("1", "a")], 2, false)),
            ("3", change("c", &[("2", "b")], 3, false)),
        ]);
        let two = known.stale(&id("2")).map(|stale| stale.how);
        assert_eq!(two, expected, "{below:?}");
        let three = known.stale(&id("3")).map(|stale| stale.how);
        assert_eq!(three, expected.map(|_| FoundationChange::Stale), "{below:?}");
    }
}

#[test]
fn a_rival_that_was_built_on_an_earlier_result_of_the_bundle_itself_is_not_stood_on() {
    let known = results(&[("x", BundleResult::None), ("1", change("a", &[("x", "old")], 1, true))]);
    assert_eq!(base(&known, &[], &["1"]).unwrap(), [""; 0]);
}

/// A workspace in which everything happens in some order, with sets of words for trees: the change of a
/// bundle adds one word, and folding is taking words together.
#[derive(Debug, Clone)]
struct World {
    bundles: Vec<Bundle>,
    branch: BTreeSet<String>,
    clock: u64,
}

#[derive(Debug, Clone)]
struct Bundle {
    id: BundleId,
    needs: Vec<usize>,
    rivals: BTreeSet<usize>,
    attempts: u32,
    result: Option<Finished>,
    /// The words of the tree that was last checked.
    tree: BTreeSet<String>,
}

impl World {
    fn results(&self) -> Results {
        let result = |bundle: &Bundle| match &bundle.result {
            Some(finished) => BundleResult::Change(finished.clone()),
            None => BundleResult::None,
        };
        let known: BTreeMap<_, _> =
            self.bundles.iter().map(|bundle| (bundle.id.clone(), result(bundle))).collect();
        Results::new(known)
    }

    fn place(&self, id: &BundleId) -> usize {
        self.bundles.iter().position(|bundle| bundle.id == *id).unwrap()
    }

    fn word(&self, place: usize) -> String {
        let bundle = &self.bundles[place];
        bundle.result.as_ref().map_or_else(String::new, |result| result.version.clone())
    }

    /// Starts an attempt at a bundle, checks the laws about its base, and finishes it green.
    fn build(&mut self, place: usize) {
        let results = self.results();
        let bundle = &self.bundles[place];
        let needs: Vec<BundleId> =
            bundle.needs.iter().map(|need| self.bundles[*need].id.clone()).collect();
        let rivals = bundle.rivals.iter().map(|rival| self.bundles[*rival].id.clone()).collect();
        let speculation = Speculation::default();
        let Ok(on) = results.foundation(&bundle.id, &needs, &rivals, speculation) else { return };
        self.require_laws(place, &on, &results);
        let mut tree = self.branch.clone();
        let mut stands_on = Vec::new();
        for below in &on {
            let word = self.word(self.place(below));
            stands_on.push((below.clone(), word.clone()));
            tree.insert(word);
        }
        let attempts = self.bundles[place].attempts + 1;
        let version = format!("{}.{attempts}", self.bundles[place].id);
        tree.insert(version.clone());
        self.clock += 1;
        let (order, accepted, place_of) = (self.clock, false, Whereabouts::Pending);
        let bundle = &mut self.bundles[place];
        bundle.attempts = attempts;
        bundle.tree = tree;
        bundle.result = Some(Finished { version, stands_on, order, accepted, place: place_of });
    }

    fn require_laws(&self, place: usize, on: &[BundleId], results: &Results) {
        let chosen: BTreeSet<usize> = on.iter().map(|id| self.place(id)).collect();
        let pending = |place: usize| {
            let result = self.bundles[place].result.as_ref();
            result.is_some_and(|result| result.place == Whereabouts::Pending)
        };
        // Law 1, by brute force: follow what is declared.
        let mut open = self.bundles[place].needs.clone();
        while let Some(need) = open.pop() {
            if pending(need) {
                assert!(chosen.contains(&need), "a prerequisite is missing from the base");
                open.extend(&self.bundles[need].needs);
            }
        }
        // Law 2.
        for rival in &self.bundles[place].rivals {
            if pending(*rival) && results.stale(&self.bundles[*rival].id).is_none() {
                assert!(chosen.contains(rival), "a green rival is missing from the base");
            }
        }
        // Law 5: all that is there is asked for, or is below something that is.
        let mut asked: BTreeSet<usize> = self.bundles[place].needs.iter().copied().collect();
        asked.extend(&self.bundles[place].rivals);
        let mut open: Vec<usize> = asked.iter().copied().filter(|at| chosen.contains(at)).collect();
        let mut reached = BTreeSet::new();
        while let Some(at) = open.pop() {
            if reached.insert(at) {
                let below = self.bundles[at].result.iter().flat_map(|result| &result.stands_on);
                open.extend(below.map(|(id, _)| self.place(id)).filter(|at| chosen.contains(at)));
            }
        }
        assert_eq!(reached, chosen, "something is in the base that was not asked for");
        // The order of folding: below comes first.
        for (at, id) in on.iter().enumerate() {
            let result = self.bundles[self.place(id)].result.as_ref().unwrap();
            for (below, _) in &result.stands_on {
                assert!(!on[at..].contains(below), "{below} is folded after what stands on it");
            }
        }
    }

    fn accept(&mut self, place: usize) {
        let results = self.results();
        let id = self.bundles[place].id.clone();
        if results.stale(&id).is_some() || !results.unsigned_below(&id).is_empty() {
            return;
        }
        self.clock += 1;
        if let Some(result) = &mut self.bundles[place].result {
            result.accepted = true;
            result.order = self.clock;
        }
    }

    fn send_back(&mut self, place: usize) {
        let bundle = &mut self.bundles[place];
        if bundle.result.as_ref().is_some_and(|result| result.place != Whereabouts::Landed) {
            bundle.result = None;
        }
    }

    /// Lands everything that is accepted and fresh.
    fn land(&mut self) {
        let results = self.results();
        for place in 0..self.bundles.len() {
            let is_stale = results.stale(&self.bundles[place].id).is_some();
            let bundle = &mut self.bundles[place];
            let Some(result) = &mut bundle.result else { continue };
            if result.accepted && !is_stale && result.place == Whereabouts::Pending {
                result.place = Whereabouts::Landed;
                self.branch.insert(result.version.clone());
            }
        }
    }

    fn hold(&mut self, place: usize) {
        if let Some(result) = &mut self.bundles[place].result
            && result.accepted
            && result.place == Whereabouts::Pending
        {
            result.place = Whereabouts::Held;
        }
    }

    /// The invariants that hold after every step.
    fn require_truth(&self) {
        let results = self.results();
        for bundle in &self.bundles {
            let Some(result) = &bundle.result else { continue };
            if !result.accepted || results.stale(&bundle.id).is_some() {
                continue;
            }
            for (below, version) in &result.stands_on {
                let below = &self.bundles[self.place(below)];
                let now = below.result.as_ref().unwrap();
                assert!(now.accepted, "{} is accepted on {}, which is not", bundle.id, below.id);
                assert_eq!(now.version, *version);
            }
        }
        // The end of a chain has all that is accepted below it, and the fold of those is its tree.
        for bundle in &self.bundles {
            let Some(result) = &bundle.result else { continue };
            if !result.accepted || results.stale(&bundle.id).is_some() {
                continue;
            }
            let mut fold: BTreeSet<String> = self.branch.clone();
            fold.extend(result.stands_on.iter().map(|(_, version)| version.clone()));
            fold.insert(result.version.clone());
            assert!(bundle.tree.is_subset(&fold), "{} was checked with more", bundle.id);
        }
    }
}

fn world() -> impl Strategy<Value = World> {
    let size = 2..9_usize;
    let edges = proptest::collection::vec((0..9_usize, 0..9_usize), 0..8);
    let meets = proptest::collection::vec((0..9_usize, 0..9_usize), 0..8);
    (size, edges, meets).prop_map(|(size, edges, meets)| {
        let mut bundles: Vec<Bundle> = (0..size)
            .map(|number| Bundle {
                id: id(&number.to_string()),
                needs: Vec::new(),
                rivals: BTreeSet::new(),
                attempts: 0,
                result: None,
                tree: BTreeSet::new(),
            })
            .collect();
        for (a, b) in edges {
            let (low, high) = ((a % size).min(b % size), (a % size).max(b % size));
            if low != high {
                bundles[high].needs.push(low);
            }
        }
        for (a, b) in meets {
            let (a, b) = (a % size, b % size);
            if a != b {
                bundles[a].rivals.insert(b);
                bundles[b].rivals.insert(a);
            }
        }
        World { bundles, branch: BTreeSet::new(), clock: 0 }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, ..ProptestConfig::default() })]

    #[test]
    fn every_base_is_what_the_laws_say_whatever_happens_in_between(
        mut world in world(),
        events in proptest::collection::vec((0..16_u8, 0..9_usize), 1..40),
    ) {
        for (event, place) in events {
            let place = place % world.bundles.len();
            match event {
                0..=6 if world.bundles[place].result.is_none() => world.build(place),
                // A stale result is built anew on what is there now.
                7 if world.results().stale(&world.bundles[place].id.clone()).is_some() => {
                    world.send_back(place);
                    world.build(place);
                }
                8..=11 => world.accept(place),
                12 => world.send_back(place),
                13 => world.hold(place),
                14 => world.land(),
                _ => {}
            }
            world.require_truth();
        }
    }
}
