//! Planning groups in the pool.

use super::*;

/// A batch with groups: the groups that its own plan has, so that rivals share one.
fn carried_out_in_groups(
    graph: &Graph,
    lanes: u32,
) -> (Vec<Vec<usize>>, Vec<Seen>, BTreeMap<usize, ItemStatus>) {
    let plan = graph.plan();
    let groups: Vec<Vec<BundleId>> =
        plan.groups(None).groups.into_iter().map(|group| group.bundles).collect();
    let seen = Mutex::new(Vec::new());
    let work = |id: &BundleId, lane: Option<u32>| {
        let n = number(id);
        seen.lock().unwrap().push(Seen::Begin(n, lane));
        std::thread::yield_now();
        seen.lock().unwrap().push(Seen::End(n));
        n
    };
    let mut host = Plain { outcomes: &graph.outcomes, ..Plain::default() };
    let frontier = carry_out(&plan, &groups, NonZeroU32::new(lanes).unwrap(), &work, &mut host);
    let status = plan.ids().map(|id| (number(id), frontier.status(id).unwrap())).collect();
    let groups = groups.iter().map(|group| group.iter().map(number).collect()).collect();
    (groups, seen.into_inner().unwrap(), status)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_group_runs_in_one_lane_one_after_the_other_and_in_its_order(
        graph in graphs(), lanes in 1..9_u32,
    ) {
        let (groups, seen, status) = carried_out_in_groups(&graph, lanes);
        let group_of = |n: usize| groups.iter().position(|group| group.contains(&n)).unwrap();
        let mut lane_of: BTreeMap<usize, Option<u32>> = BTreeMap::new();
        let mut in_flight: BTreeMap<usize, Option<u32>> = BTreeMap::new();
        let mut ended: BTreeSet<usize> = BTreeSet::new();
        for one in &seen {
            match *one {
                Seen::Begin(n, lane) => {
                    let group = group_of(n);
                    prop_assert_eq!(*lane_of.entry(group).or_insert(lane), lane, "{} in two lanes", group);
                    for (other, used) in &in_flight {
                        prop_assert_ne!(group_of(*other), group, "{} beside {}", n, other);
                        prop_assert!(lanes == 1 || lane != *used, "two in one lane");
                    }
                    // Whoever is before it in the group has ended, or can never start.
                    for before in groups[group].iter().take_while(|other| **other != n) {
                        let never = status[before] == ItemStatus::Open;
                        prop_assert!(never || ended.contains(before), "{} before {}", n, before);
                    }
                    for before in &graph.bundles[n].0 {
                        let is_complete = graph.outcomes[*before] == Completion::Complete;
                        prop_assert!(is_complete && ended.contains(before), "{} too early", n);
                    }
                    in_flight.insert(n, lane);
                }
                Seen::End(n) => {
                    in_flight.remove(&n);
                    ended.insert(n);
                }
            }
        }
        // Everything that can run does, as without groups.
        let (_, started, _) = carried_out(&graph, lanes);
        let started: BTreeSet<usize> = started.into_iter().collect();
        prop_assert_eq!(ended, started);
    }
}

#[test]
fn a_lane_serves_several_groups_one_after_the_other() {
    let graph = free(6);
    let plan = graph.plan();
    let groups = [vec![id(0), id(3)], vec![id(1), id(4)], vec![id(2), id(5)]];
    let mut host = Lively::new();
    let work = |id: &BundleId, _: Option<u32>| number(id);
    carry_out(&plan, &groups, NonZeroU32::new(1).unwrap(), &work, &mut host);
    assert_eq!(host.log, ["000", "003", "001", "004", "002", "005"]);
}

#[test]
fn a_member_that_waits_for_a_person_is_passed_over_and_comes_in_the_same_lane() {
    let mut graph = free(4);
    graph.bundles[1].0.push(0);
    let plan = graph.plan();
    let groups = [vec![id(0), id(1), id(2)], vec![id(3)]];
    let mut host = Lively::new();
    host.news.push(ExternalEvent::Complete(id(0)));
    let work = |id: &BundleId, _: Option<u32>| number(id);
    carry_out(&plan, &groups, NonZeroU32::new(2).unwrap(), &work, &mut host);
    let of =
        |n: &str| host.log.iter().filter(|line| line.starts_with(n)).cloned().collect::<Vec<_>>();
    assert_eq!(of("000"), ["000 in 0"]);
    assert_eq!(of("002"), ["002 in 0"], "it is not kept by one that waits for a sign-off");
    assert_eq!(of("001"), ["001 freed by 000", "001 in 0"]);
}

#[test]
fn groups_that_wait_for_each_other_still_come_to_their_end() {
    let mut graph = free(4);
    graph.bundles[2].0.push(1);
    graph.bundles[3].0.push(0);
    let plan = graph.plan();
    let groups = [vec![id(2), id(0)], vec![id(3), id(1)]];
    let mut host = Plain { outcomes: &graph.outcomes, ..Plain::default() };
    let work = |id: &BundleId, _: Option<u32>| number(id);
    let frontier = carry_out(&plan, &groups, NonZeroU32::new(2).unwrap(), &work, &mut host);
    assert!(plan.ids().all(|id| frontier.status(id) == Some(ItemStatus::Complete)));
}

#[test]
fn work_that_lies_in_a_lane_binds_its_group_to_it() {
    let graph = free(4);
    let plan = graph.plan();
    let groups = [vec![id(0), id(1)], vec![id(2), id(3)]];
    let mut host = Lively::new();
    host.homes = BTreeMap::from([(id(0), 1), (id(3), 0)]);
    let work = |id: &BundleId, _: Option<u32>| number(id);
    carry_out(&plan, &groups, NonZeroU32::new(2).unwrap(), &work, &mut host);
    let at = |line: &str| host.log.iter().position(|other| other == line);
    assert!(at("000 in 1 again") < at("001 in 1"), "{:?}", host.log);
    let three = host.log.iter().position(|line| line.starts_with("003 in 0"));
    assert!(
        at("002 in 0").is_some() && at("002 in 0") < three,
        "it comes in its turn: {:?}",
        host.log
    );
}
