mod policy;

use std::cmp::Reverse;
use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::testing::{Dice, id, plan, random_batch, words};
use crate::{Case, Item, Options, Outside, Rivalry};

/// Starts all that may start, and says what.
fn start_all(frontier: &mut Frontier<'_>) -> String {
    words(&std::iter::from_fn(|| frontier.start_next()).collect::<Vec<_>>())
}

fn end(frontier: &mut Frontier<'_>, bundle: &str, outcome: Completion) -> String {
    words(&frontier.ended(&id(bundle), outcome).unwrap())
}

#[test]
fn independent_chains_start_at_once() {
    let plan = plan("1\n2: 1\n3\n4: 3\n5\n6: 5");
    assert_eq!(start_all(&mut Frontier::new(&plan)), "1 3 5");
}

#[test]
fn one_slow_bundle_holds_nobody_but_its_dependants() {
    let plan = plan("1\n2\n3: 1\n4: 2\n5: 4");
    let mut frontier = Frontier::new(&plan);
    assert_eq!(start_all(&mut frontier), "2 1");
    assert_eq!(end(&mut frontier, "2", Completion::Complete), "4");
    assert_eq!(start_all(&mut frontier), "4");
    assert_eq!(end(&mut frontier, "4", Completion::Complete), "5");
    assert_eq!(words(frontier.in_flight()), "1");
}

#[test]
fn with_nothing_declared_bundles_start_in_name_order() {
    let plan = plan("9\n10\nPROJ-2\n2\na");
    assert_eq!(start_all(&mut Frontier::new(&plan)), "2 9 10 PROJ-2 a");
}

#[test]
fn a_halted_bundle_lets_its_rivals_go_on_and_its_dependants_wait() {
    let plan = plan("1 @ x\n2 @ x\n3: 1");
    let mut frontier = Frontier::new(&plan);
    assert_eq!(start_all(&mut frontier), "1");
    assert_eq!(end(&mut frontier, "1", Completion::Halted), "");
    assert_eq!(start_all(&mut frontier), "2");
    assert_eq!(words(&frontier.completed_elsewhere(&id("1")).unwrap()), "3");
    assert_eq!(start_all(&mut frontier), "3");
}

#[test]
fn a_sign_off_that_was_pending_before_frees_dependants_too() {
    let plan = plan("1?\n2: 1");
    let mut frontier = Frontier::new(&plan);
    assert_eq!(start_all(&mut frontier), "");
    assert!(frontier.is_exhausted());
    assert_eq!(words(&frontier.completed_elsewhere(&id("1")).unwrap()), "2");
    assert!(!frontier.is_exhausted());
    assert_eq!(words(&frontier.completed_elsewhere(&id("1")).unwrap()), "", "once");
}

#[test]
fn one_that_fails_stops_nobody_but_its_dependants() {
    let plan = plan("1\n2: 1\n3");
    let mut frontier = Frontier::new(&plan);
    assert_eq!(start_all(&mut frontier), "1 3");
    end(&mut frontier, "1", Completion::Failed);
    end(&mut frontier, "3", Completion::Complete);
    assert!(frontier.is_exhausted());
    let Some(Why::Waits { on }) = frontier.why(&id("2")) else { panic!("it waits") };
    assert_eq!((on[0].id.as_str(), on[0].status), ("1", ItemStatus::Failed));
}

#[test]
fn a_bundle_that_is_taken_up_again_is_started_again() {
    let plan = plan("1\n2: 1");
    let mut frontier = Frontier::new(&plan);
    start_all(&mut frontier);
    end(&mut frontier, "1", Completion::Halted);
    frontier.reopened(&id("1")).unwrap();
    assert_eq!(start_all(&mut frontier), "1");
    assert_eq!(end(&mut frontier, "1", Completion::Complete), "2");
    let again = frontier.reopened(&id("1")).unwrap_err();
    assert_eq!(again, FrontierError::NotHalted { id: id("1") });
}

#[test]
fn one_completed_from_outside_while_in_flight_keeps_its_rivals_waiting() {
    let plan = plan("1 @ x\n2 @ x\n3: 1");
    let mut frontier = Frontier::new(&plan);
    start_all(&mut frontier);
    assert_eq!(words(&frontier.completed_elsewhere(&id("1")).unwrap()), "3");
    assert_eq!(start_all(&mut frontier), "3");
    assert_eq!(end(&mut frontier, "1", Completion::Failed), "");
    assert_eq!(frontier.status(&id("1")), Some(ItemStatus::Complete));
    assert_eq!(start_all(&mut frontier), "2");
}

#[test]
fn a_report_about_the_wrong_bundle_is_refused() {
    let plan = plan("1\n2: 1");
    let mut frontier = Frontier::new(&plan);
    let not_in_flight = frontier.ended(&id("2"), Completion::Complete).unwrap_err();
    assert_eq!(not_in_flight, FrontierError::NotInFlight { id: id("2") });
    let unknown = frontier.completed_elsewhere(&id("9")).unwrap_err();
    assert_eq!(unknown, FrontierError::Unknown { id: id("9") });
    assert_eq!(frontier.why(&id("9")), None);
}

#[test]
fn every_bundle_that_is_not_running_says_why() {
    let plan = plan("1 @ src/**\n2 @ src/a\n3: 1 2 ~ 4\n4\n5+\n6!\n7?");
    let mut frontier = Frontier::new(&plan);
    assert_eq!(frontier.why(&id("4")), Some(Why::Ready { before: 2 }));
    assert_eq!(frontier.start_next(), Some(id("1")));
    assert_eq!(frontier.why(&id("1")), Some(Why::InFlight));
    let rivalry = Rivalry::Overlap {
        globs: ("src/a".to_owned(), "src/**".to_owned()),
        witness: "src/a".to_owned(),
    };
    let by = vec![ClaimHolder { id: id("1"), rivalry, until: None }];
    assert_eq!(frontier.why(&id("2")), Some(Why::Held { by, aged: 0 }));
    let Some(Why::Waits { on }) = frontier.why(&id("3")) else { panic!("it waits") };
    assert_eq!(words(on.iter().map(|unmet| &unmet.id)), "1 2");
    assert_eq!((on[0].status, on[1].status), (ItemStatus::InFlight, ItemStatus::Ready));
    assert_eq!(on[0].place.to_string(), "3:1");
    let settled = ["5", "6", "7"].map(|bundle| frontier.why(&id(bundle)).unwrap());
    assert_eq!(settled, [Why::Complete, Why::Ended, Why::Halted]);
}

#[test]
fn a_wide_claim_is_not_starved_by_many_small_ones() {
    let mut batch = String::from("a\nb: a @ s/**\n");
    for n in 100..200 {
        writeln!(batch, "c{n} @ s/{n}").unwrap();
    }
    let plan = plan(&batch);
    let mut frontier = Frontier::new(&plan);
    let mut started = Vec::new();
    while !started.contains(&id("b")) {
        while frontier.in_flight().len() < 4 {
            let Some(next) = frontier.start_next() else { break };
            started.push(next);
        }
        if let Some(Why::Held { aged: PATIENCE, .. }) = frontier.why(&id("b")) {
            let waiting = frontier.why(&id("c150")).unwrap();
            assert!(matches!(waiting, Why::Yields { to, .. } if to.id == id("b")));
        }
        let first = frontier.in_flight().next().unwrap().clone();
        frontier.ended(&first, Completion::Complete).unwrap();
    }
    // `a` and three others were started before `b` was ready.
    assert_eq!(started.len(), 4 + PATIENCE as usize + 1);
}

#[test]
fn widening_tells_which_bundles_in_flight_are_rivals_now() {
    let glob = |text: &str| vec![Pattern::parse(text, Case::Sensitive).unwrap()];
    let plan = plan("1 @ a\n2 @ b\n3 @ c");
    let mut frontier = Frontier::new(&plan);
    assert_eq!((frontier.start_next(), frontier.start_next()), (Some(id("1")), Some(id("2"))));
    let clashes = frontier.widen(&id("1"), glob("{b,c}/**")).unwrap();
    assert_eq!(clashes.len(), 1);
    assert_eq!(clashes[0].id, id("2"));
    assert!(matches!(&clashes[0].rivalry, Rivalry::Overlap { witness, .. } if witness == "b/a"));
    // 3 was free to start; now it waits for 1.
    assert_eq!(frontier.start_next(), None);
    end(&mut frontier, "2", Completion::Complete);
    assert_eq!(frontier.start_next(), None);
    end(&mut frontier, "1", Completion::Complete);
    assert_eq!(frontier.start_next(), Some(id("3")));
}

#[test]
fn widening_a_bundle_that_waits_makes_it_wait_for_its_new_rivals() {
    let plan = plan("1 @ a\n2 @ b");
    let mut frontier = Frontier::new(&plan);
    assert_eq!(frontier.start_next(), Some(id("1")));
    let wider = vec![Pattern::parse("a", Case::Sensitive).unwrap()];
    assert_eq!(frontier.widen(&id("2"), wider).unwrap(), []);
    assert_eq!(frontier.start_next(), None);
    end(&mut frontier, "1", Completion::Halted);
    assert_eq!(frontier.start_next(), Some(id("2")));
}

/// The pairs that may never be in flight together, computed from the declarations alone.
fn are_rivals(a: &Item, b: &Item) -> bool {
    let names = |one: &Item, other: &Item| one.conflicts_with.iter().any(|d| d.id == other.id);
    let parse = |glob: &str| Pattern::parse(glob, Case::Sensitive).unwrap();
    let meet = |x: &crate::Touch, y: &crate::Touch| parse(&x.glob).meet(&parse(&y.glob)).is_some();
    names(a, b) || names(b, a) || a.touches.iter().any(|x| b.touches.iter().any(|y| meet(x, y)))
}

/// A pool that looks at everything the frontier does.
struct Pool<'a> {
    items: &'a [Item],
    /// In name order, as the items.
    rivals: Vec<Vec<bool>>,
    rank: Vec<u64>,
    complete: Vec<bool>,
    in_flight: Vec<usize>,
    started: Vec<usize>,
    overtaken: Vec<u32>,
}

impl<'a> Pool<'a> {
    fn new(items: &'a [Item], plan: &Plan) -> Self {
        let rivals =
            items.iter().map(|a| items.iter().map(|b| a.id != b.id && are_rivals(a, b)).collect());
        Self {
            items,
            rivals: rivals.collect(),
            rank: plan.rank.clone(),
            complete: items.iter().map(|item| item.standing == ItemState::Complete).collect(),
            in_flight: Vec::new(),
            started: Vec::new(),
            overtaken: vec![0; items.len()],
        }
    }

    fn find(&self, id: &BundleId) -> usize {
        self.items.iter().position(|item| item.id == *id).unwrap()
    }

    fn may_run(&self, bundle: usize) -> bool {
        let is_complete = |d: &crate::Declared| self.complete[self.find(&d.id)];
        self.items[bundle].standing == ItemState::Active
            && self.items[bundle].depends_on.iter().all(is_complete)
    }

    fn waits(&self, bundle: usize) -> bool {
        self.may_run(bundle) && !self.complete[bundle] && !self.started.contains(&bundle)
    }

    fn first_that_may_start(&self, frontier: &Frontier<'_>) -> Option<BundleId> {
        let is_free = |bundle: &usize| {
            matches!(frontier.why(&self.items[*bundle].id), Some(Why::Ready { .. }))
        };
        let free = (0..self.items.len()).filter(is_free);
        let first = free.min_by_key(|bundle| (Reverse(self.rank[*bundle]), *bundle));
        first.map(|bundle| self.items[bundle].id.clone())
    }

    fn start(&mut self, id: &BundleId) {
        let bundle = self.find(id);
        assert!(self.waits(bundle), "{id} may not start");
        assert!(!self.is_held(bundle), "{id} has a rival in flight");
        let comes_before = |other: usize| {
            (Reverse(self.rank[other]), other) < (Reverse(self.rank[bundle]), bundle)
        };
        for other in 0..self.items.len() {
            if self.waits(other) && self.rivals[other][bundle] && comes_before(other) {
                self.overtaken[other] += 1;
            }
        }
        self.in_flight.push(bundle);
        self.started.push(bundle);
    }

    fn is_held(&self, bundle: usize) -> bool {
        self.in_flight.iter().any(|other| self.rivals[bundle][*other])
    }
}

fn carry_out(seed: u64, bundles: usize, lanes: usize) -> Vec<usize> {
    let mut dice = Dice(seed);
    let mut items = random_batch(&mut dice, bundles);
    let plan = Plan::new(items.clone(), &Outside::default(), Options::default()).unwrap();
    items.sort_by(|a, b| a.id.cmp(&b.id));
    let mut frontier = Frontier::new(&plan);
    let mut pool = Pool::new(&items, &plan);
    let mut halted: Vec<usize> = Vec::new();
    halted.extend((0..items.len()).filter(|n| items[*n].standing == ItemState::Waiting));
    loop {
        while pool.in_flight.len() < lanes {
            let first = pool.first_that_may_start(&frontier);
            assert_eq!(frontier.start_next(), first);
            let Some(next) = first else { break };
            pool.start(&next);
        }
        if pool.in_flight.len() < lanes {
            for bundle in (0..items.len()).filter(|n| pool.waits(*n)) {
                let yields = matches!(frontier.why(&items[bundle].id), Some(Why::Yields { .. }));
                assert!(pool.is_held(bundle) || yields, "{} idles", items[bundle].id);
            }
        }
        assert_eq!(frontier.in_flight().len(), pool.in_flight.len());
        let signs_off = !halted.is_empty() && (pool.in_flight.is_empty() || dice.roll(4) == 0);
        if signs_off {
            let bundle = halted.swap_remove(dice.roll(halted.len()));
            if dice.roll(5) > 0 {
                pool.complete[bundle] = true;
                frontier.completed_elsewhere(&items[bundle].id).unwrap();
            }
        } else if pool.in_flight.is_empty() {
            break;
        } else {
            let bundle = pool.in_flight.swap_remove(dice.roll(pool.in_flight.len()));
            let outcome = match dice.roll(10) {
                0 => Completion::Failed,
                1..=3 => Completion::Halted,
                _ => Completion::Complete,
            };
            match outcome {
                Completion::Complete => pool.complete[bundle] = true,
                Completion::Halted => halted.push(bundle),
                Completion::Built | Completion::Red | Completion::Failed => {}
            }
            frontier.ended(&items[bundle].id, outcome).unwrap();
        }
    }
    assert!(frontier.is_exhausted());
    for (bundle, item) in items.iter().enumerate() {
        assert!(!pool.waits(bundle), "{} could run and did not", item.id);
    }
    let impatient = pool.overtaken.iter().filter(|times| **times >= PATIENCE).count();
    for (bundle, times) in pool.overtaken.iter().enumerate() {
        let bound = PATIENCE + u32::try_from(impatient).unwrap();
        assert!(*times <= bound, "{} was overtaken {times} times", items[bundle].id);
    }
    pool.started
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn rivals_never_meet_dependants_wait_and_all_that_can_run_does(
        seed in any::<u64>(), bundles in 1_usize..16, lanes in 1_usize..=8,
    ) {
        carry_out(seed, bundles, lanes);
    }

    #[test]
    fn the_same_reports_give_the_same_starts(seed in any::<u64>(), lanes in 1_usize..=8) {
        prop_assert_eq!(carry_out(seed, 10, lanes), carry_out(seed, 10, lanes));
    }

    #[test]
    fn with_nothing_declared_the_starts_are_in_name_order_for_any_lanes(
        names in proptest::collection::btree_set("[A-Za-z0-9]{1,4}", 1..20),
        lanes in 1_usize..=8,
        seed in any::<u64>(),
    ) {
        let plan = plan(&names.iter().cloned().collect::<Vec<_>>().join("\n"));
        let (mut frontier, mut dice) = (Frontier::new(&plan), Dice(seed));
        let mut log = Vec::new();
        while !frontier.is_exhausted() {
            while frontier.in_flight().len() < lanes {
                let Some(next) = frontier.start_next() else { break };
                log.push(next.to_string());
            }
            let busy: Vec<BundleId> = frontier.in_flight().cloned().collect();
            frontier.ended(&busy[dice.roll(busy.len())], Completion::Complete).unwrap();
        }
        let mut ids: Vec<BundleId> = names.iter().map(|name| name.parse().unwrap()).collect();
        ids.sort();
        prop_assert_eq!(log, ids.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
}

#[test]
fn larger_batches_keep_the_same_laws() {
    for (seed, lanes) in (0..40).zip((1..=8).cycle()) {
        carry_out(seed, 60, lanes);
    }
}

#[test]
fn what_was_in_flight_before_goes_first_whatever_its_rank() {
    let plan = plan("1\n2: 1\n3 @ x\n4 @ x");
    let mut frontier = Frontier::new(&plan);
    assert!(frontier.start_first(&id("4")).unwrap());
    assert!(!frontier.start_first(&id("3")).unwrap(), "its rival is in flight");
    assert!(!frontier.start_first(&id("2")).unwrap(), "its prerequisite is not complete");
    assert!(!frontier.start_first(&id("4")).unwrap(), "it is in flight already");
    assert!(frontier.start_first(&id("9")).is_err());
    assert_eq!(start_all(&mut frontier), "1");
}

#[test]
fn a_bundle_that_had_to_let_a_rival_finish_is_named_once_for_each_wait() {
    let plan = plan("1 @ x\n2 @ x\n3");
    let mut frontier = Frontier::new(&plan);
    assert_eq!(start_all(&mut frontier), "1 3");
    let passed = frontier.take_passed_over();
    assert_eq!(passed.len(), 1);
    assert_eq!((passed[0].0.as_str(), passed[0].1[0].id.as_str()), ("2", "1"));
    end(&mut frontier, "3", Completion::Halted);
    assert_eq!(start_all(&mut frontier), "");
    assert!(frontier.take_passed_over().is_empty(), "nothing changed for it");
    end(&mut frontier, "1", Completion::Halted);
    assert_eq!(start_all(&mut frontier), "2");
    assert!(frontier.take_passed_over().is_empty());
}
