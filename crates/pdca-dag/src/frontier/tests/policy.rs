//! The progress that prerequisites and rivals must have, under every setting.

use super::*;
use crate::testing::plan_with;

fn policy(dependants: Awaits, rivals: Awaits) -> Options {
    Options { dependants, rivals, ..Options::default() }
}

#[test]
fn a_dependant_starts_when_its_prerequisite_is_as_far_as_it_must_be() {
    let batch = "1\n2: 1\n3: 1^";
    // What frees what: the end at sign-off, the sign-off, the landing.
    for (dependants, freed) in [
        (Awaits::Built, ["2", "", "3"]),
        (Awaits::Accepted, ["", "2", "3"]),
        (Awaits::Landed, ["", "", "2 3"]),
    ] {
        let plan = plan_with(batch, policy(dependants, Awaits::Built));
        let mut frontier = Frontier::new(&plan);
        start_all(&mut frontier);
        let one = id("1");
        let said = [
            end(&mut frontier, "1", Completion::Built),
            words(&frontier.completed_elsewhere(&one).unwrap()),
            words(&frontier.landed_elsewhere(&one).unwrap()),
        ];
        assert_eq!(said, freed, "{dependants:?}");
        assert_eq!(words(&frontier.landed_elsewhere(&one).unwrap()), "", "once");
    }
}

#[test]
fn a_red_result_frees_nobody_who_waits_for_a_green_one() {
    let plan = plan_with("1\n2: 1\n3-\n4: 3\n5=\n6: 5", policy(Awaits::Built, Awaits::Built));
    let mut frontier = Frontier::new(&plan);
    assert_eq!(start_all(&mut frontier), "1 6");
    assert_eq!(end(&mut frontier, "1", Completion::Red), "");
    assert!(matches!(frontier.why(&id("4")), Some(Why::Waits { .. })));
}

#[test]
fn a_prerequisite_that_is_sent_back_keeps_what_was_not_started_waiting_again() {
    let plan = plan_with("1=\n2: 1\n3: 1", policy(Awaits::Built, Awaits::Built));
    let mut frontier = Frontier::new(&plan);
    assert_eq!(frontier.start_next(), Some(id("2")));
    frontier.reopened(&id("1")).unwrap();
    assert_eq!(start_all(&mut frontier), "1", "3 waits again, 2 goes on");
    assert_eq!(end(&mut frontier, "1", Completion::Built), "3");
    assert_eq!(end(&mut frontier, "2", Completion::Built), "");
    assert_eq!(start_all(&mut frontier), "3");
}

#[test]
fn a_result_keeps_its_rivals_waiting_until_it_is_as_far_as_asked_for() {
    for (rivals, after_end, after_sign_off) in
        [(Awaits::Built, "2", ""), (Awaits::Accepted, "", "2"), (Awaits::Landed, "", "")]
    {
        let plan = plan_with("1 @ x\n2 @ x", policy(Awaits::Accepted, rivals));
        let mut frontier = Frontier::new(&plan);
        assert_eq!(start_all(&mut frontier), "1");
        end(&mut frontier, "1", Completion::Built);
        assert_eq!(start_all(&mut frontier), after_end, "{rivals:?}");
        if let (Some(Why::Held { by, .. }), "") = (frontier.why(&id("2")), after_end) {
            assert_eq!((by[0].id.as_str(), by[0].until), ("1", Some(rivals)));
        }
        frontier.completed_elsewhere(&id("1")).unwrap();
        assert_eq!(start_all(&mut frontier), after_sign_off, "{rivals:?}");
        frontier.landed_elsewhere(&id("1")).unwrap();
        assert_eq!(start_all(&mut frontier), if rivals == Awaits::Landed { "2" } else { "" });
    }
}

#[test]
fn a_bundle_that_is_accepted_without_a_worker_keeps_its_rivals_waiting_until_it_lands() {
    // Ready, open, and waiting for a person.
    for batch in ["1 @ x\n2 @ x", "1: 3 @ x\n2 @ x\n3?", "1? @ x\n2 @ x"] {
        let plan = plan_with(batch, policy(Awaits::Accepted, Awaits::Landed));
        let mut frontier = Frontier::new(&plan);
        frontier.completed_elsewhere(&id("1")).unwrap();
        assert_eq!(start_all(&mut frontier), "", "{batch}");
        frontier.landed_elsewhere(&id("1")).unwrap();
        assert_eq!(start_all(&mut frontier), "2", "{batch}");
    }
}

#[test]
fn a_rival_that_is_sent_back_or_given_up_keeps_nobody_waiting() {
    for give_up in [false, true] {
        let plan = plan_with("1- @ x\n2 @ x", policy(Awaits::Accepted, Awaits::Accepted));
        let mut frontier = Frontier::new(&plan);
        assert_eq!(start_all(&mut frontier), "", "even a red result waits for a person");
        if give_up {
            frontier.withdrawn(&id("1")).unwrap();
            assert_eq!(start_all(&mut frontier), "2");
        } else {
            frontier.reopened(&id("1")).unwrap();
            assert_eq!(start_all(&mut frontier), "2");
        }
    }
}

#[test]
fn a_guest_is_never_started_and_keeps_its_rivals_waiting() {
    let mut items = crate::testing::items("1+ @ x\n2 @ x\n3");
    items[0].guest = true;
    let plan =
        Plan::new(items, &Outside::default(), policy(Awaits::Accepted, Awaits::Landed)).unwrap();
    assert_eq!(words(plan.ids()), "2 3");
    let mut frontier = Frontier::new(&plan);
    assert_eq!(start_all(&mut frontier), "3");
    frontier.landed_elsewhere(&id("1")).unwrap();
    assert_eq!(start_all(&mut frontier), "2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn under_every_policy_nothing_starts_too_early_and_all_that_can_run_does(
        seed in any::<u64>(), bundles in 1_usize..12, lanes in 1_usize..=4,
        dependants in 0_usize..3, rivals in 0_usize..3,
    ) {
        const LEVELS: [Awaits; 3] = [Awaits::Built, Awaits::Accepted, Awaits::Landed];
        let (dependants, rivals) = (LEVELS[dependants], LEVELS[rivals]);
        let mut dice = Dice(seed);
        let items = random_batch(&mut dice, bundles);
        let plan = Plan::new(items, &Outside::default(), policy(dependants, rivals)).unwrap();
        let far = |item: &Item| item.standing.reached();
        let mut reached: Vec<Option<Awaits>> = plan.items.iter().map(far).collect();
        let mut built: Vec<bool> = plan.items.iter().map(|item| item.standing.holds(Awaits::Landed)).collect();
        let mut frontier = Frontier::new(&plan);
        for _ in 0..10 * bundles + 10 {
            while frontier.in_flight().len() < lanes {
                let Some(next) = frontier.start_next() else { break };
                let bundle = plan.find(&next).unwrap();
                for (before, _) in plan.graph.before(bundle) {
                    prop_assert!(reached[before] >= Some(dependants), "{} too early", next);
                }
                for other in plan.claims.rivals(bundle) {
                    let is_done = !built[other] || reached[other] >= Some(rivals);
                    prop_assert!(is_done, "{} beside the result of {}", next, plan.items[other].id);
                    prop_assert!(!frontier.in_flight().any(|id| *id == plan.items[other].id));
                }
            }
            // One thing happens: an end, a sign-off, a landing or a way back.
            let at = dice.roll(plan.items.len());
            let id = plan.items[at].id.clone();
            match (frontier.status(&id), dice.roll(6)) {
                (Some(ItemStatus::InFlight), _) => {
                    frontier.ended(&id, Completion::Built).unwrap();
                    (reached[at], built[at]) = (Some(Awaits::Built), true);
                }
                (Some(ItemStatus::Halted), 0) => {
                    frontier.reopened(&id).unwrap();
                    (reached[at], built[at]) = (None, false);
                }
                (Some(ItemStatus::Halted), 1..) => {
                    frontier.completed_elsewhere(&id).unwrap();
                    reached[at] = reached[at].max(Some(Awaits::Accepted));
                }
                (Some(ItemStatus::Complete), _) => {
                    frontier.landed_elsewhere(&id).unwrap();
                    reached[at] = Some(Awaits::Landed);
                }
                _ => {}
            }
        }
        // From here on people do all that is theirs.
        loop {
            while frontier.start_next().is_some() {}
            let busy: Vec<BundleId> = frontier.in_flight().cloned().collect();
            for id in &busy {
                frontier.ended(id, Completion::Built).unwrap();
            }
            for item in &plan.items {
                if matches!(frontier.status(&item.id), Some(ItemStatus::Halted | ItemStatus::Complete)) {
                    frontier.landed_elsewhere(&item.id).unwrap();
                }
            }
            if busy.is_empty() && frontier.is_exhausted() {
                break;
            }
        }
        for item in &plan.items {
            prop_assert_eq!(frontier.status(&item.id), Some(ItemStatus::Complete));
        }
    }
}
