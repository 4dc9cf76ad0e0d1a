mod groups;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::num::NonZeroU32;
use std::sync::Mutex;

use pdca_dag::{
    Awaits, Declared, Item, ItemStatus, Options, Outside, Plan, SourceLocation, Touch, Why,
};
use proptest::prelude::*;

use super::*;

fn id(n: usize) -> BundleId {
    format!("{n:03}").parse().unwrap()
}

fn place() -> SourceLocation {
    SourceLocation::new("brief.md", 1)
}

/// The dependencies, conflicts and touched paths of a bundle.
type Brief = (Vec<usize>, Vec<usize>, Vec<usize>);

/// A batch as numbers.
#[derive(Debug, Clone)]
struct Graph {
    bundles: Vec<Brief>,
    /// The completion of each bundle.
    outcomes: Vec<Completion>,
}

impl Graph {
    fn plan(&self) -> Plan {
        Plan::new(self.items(), &Outside::default(), Options::default()).expect("it has no cycle")
    }

    fn items(&self) -> Vec<Item> {
        let named =
            |ids: &[usize]| ids.iter().map(|n| Declared::new(id(*n), place())).collect::<Vec<_>>();
        let item = |(n, (before, rivals, files)): (usize, &Brief)| Item {
            depends_on: named(before),
            conflicts_with: named(rivals),
            touches: files
                .iter()
                .map(|file| Touch { glob: format!("f{file}"), place: place(), is_file: true })
                .collect(),
            ..Item::new(id(n), place())
        };
        self.bundles.iter().enumerate().map(item).collect()
    }

    fn are_rivals(&self, a: usize, b: usize) -> bool {
        let (_, of_a, files_a) = &self.bundles[a];
        let (_, of_b, files_b) = &self.bundles[b];
        of_a.contains(&b) || of_b.contains(&a) || files_a.iter().any(|file| files_b.contains(file))
    }
}

/// Batches without cycles: a bundle depends on lower numbers only.
fn graphs() -> impl Strategy<Value = Graph> {
    (1..14_usize).prop_flat_map(|bundles| {
        let of = move |n: usize| {
            let before = prop::collection::btree_set(0..n.max(1), 0..3);
            let rivals = prop::collection::btree_set(0..bundles, 0..2);
            let files = prop::collection::btree_set(0..6_usize, 0..3);
            (before, rivals, files).prop_map(move |(before, rivals, files)| {
                let lower = |set: BTreeSet<usize>| set.into_iter().filter(|b| *b < n).collect();
                let other = |set: BTreeSet<usize>| set.into_iter().filter(|b| *b != n).collect();
                (lower(before), other(rivals), files.into_iter().collect())
            })
        };
        let outcome = prop_oneof![
            6 => Just(Completion::Complete),
            1 => Just(Completion::Halted),
            1 => Just(Completion::Failed),
        ];
        let bundles_of: Vec<_> = (0..bundles).map(of).collect();
        (bundles_of, prop::collection::vec(outcome, bundles))
            .prop_map(|(bundles, outcomes)| Graph { bundles, outcomes })
    })
}

/// The events that the workers saw, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Begin(usize, Option<u32>),
    End(usize),
}

#[derive(Default)]
struct Plain<'g> {
    outcomes: &'g [Completion],
    started: Vec<BundleId>,
    panics: usize,
}

impl PoolHost<usize> for Plain<'_> {
    fn starting(&mut self, id: &BundleId, _lane: Option<u32>, _resumed: bool) {
        self.started.push(id.clone());
    }

    fn ended(&mut self, _id: &BundleId, result: Result<usize, Panicked>) -> Completion {
        self.panics += usize::from(result.is_err());
        result.map_or(Completion::Failed, |n| self.outcomes[n])
    }
}

fn number(id: &BundleId) -> usize {
    id.as_str().parse().unwrap()
}

/// Carries a graph out and gives what was seen, and what was started in which order.
fn carried_out(graph: &Graph, lanes: u32) -> (Vec<Seen>, Vec<usize>, BTreeMap<usize, ItemStatus>) {
    let plan = graph.plan();
    let seen = Mutex::new(Vec::new());
    let work = |id: &BundleId, lane: Option<u32>| {
        let n = number(id);
        seen.lock().unwrap().push(Seen::Begin(n, lane));
        // Gives others a chance to come in between.
        std::thread::yield_now();
        seen.lock().unwrap().push(Seen::End(n));
        n
    };
    let mut host = Plain { outcomes: &graph.outcomes, ..Plain::default() };
    let frontier = carry_out(&plan, &[], NonZeroU32::new(lanes).unwrap(), &work, &mut host);
    let status = plan.ids().map(|id| (number(id), frontier.status(id).unwrap())).collect();
    let started = host.started.iter().map(number).collect();
    (seen.into_inner().unwrap(), started, status)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn rivals_are_never_in_flight_together_and_nothing_starts_before_its_prerequisites(
        graph in graphs(), lanes in 1..9_u32,
    ) {
        let (seen, ..) = carried_out(&graph, lanes);
        let mut in_flight: BTreeMap<usize, Option<u32>> = BTreeMap::new();
        let mut complete = BTreeSet::new();
        for one in seen {
            match one {
                Seen::Begin(n, lane) => {
                    for (other, used) in &in_flight {
                        prop_assert!(!graph.are_rivals(n, *other), "{n} beside {other}");
                        prop_assert!(lanes == 1 || lane != *used, "two in one lane");
                    }
                    let before = &graph.bundles[n].0;
                    prop_assert!(before.iter().all(|b| complete.contains(b)), "{n} too early");
                    prop_assert!(lane.is_none_or(|lane| lane < lanes));
                    prop_assert_eq!(lane.is_none(), lanes == 1);
                    in_flight.insert(n, lane);
                    prop_assert!(in_flight.len() <= lanes as usize);
                }
                Seen::End(n) => {
                    in_flight.remove(&n);
                    if graph.outcomes[n] == Completion::Complete {
                        complete.insert(n);
                    }
                }
            }
        }
    }

    #[test]
    fn every_bundle_that_can_run_does_and_once(graph in graphs(), lanes in 1..9_u32) {
        let (seen, started, status) = carried_out(&graph, lanes);
        let mut can: BTreeSet<usize> = BTreeSet::new();
        // Lower numbers first: prerequisites are always lower.
        for (n, (before, ..)) in graph.bundles.iter().enumerate() {
            let free = |b: &usize| can.contains(b) && graph.outcomes[*b] == Completion::Complete;
            if before.iter().all(free) {
                can.insert(n);
            }
        }
        let ran: Vec<usize> = started.clone();
        let distinct: BTreeSet<usize> = ran.iter().copied().collect();
        prop_assert_eq!(ran.len(), distinct.len(), "none runs twice");
        prop_assert_eq!(seen.len(), 2 * ran.len());
        for n in 0..graph.bundles.len() {
            let ended = matches!(status[&n], ItemStatus::Complete | ItemStatus::Halted | ItemStatus::Failed);
            prop_assert_eq!(ended, can.contains(&n), "{}", n);
        }
        prop_assert_eq!(distinct, can);
    }

    #[test]
    fn with_nothing_declared_the_dispatch_log_is_the_name_order(
        bundles in 1..40_usize, lanes in 1..9_u32,
    ) {
        let graph = Graph {
            bundles: vec![(Vec::new(), Vec::new(), Vec::new()); bundles],
            outcomes: vec![Completion::Halted; bundles],
        };
        let (_, started, _) = carried_out(&graph, lanes);
        prop_assert_eq!(started, (0..bundles).collect::<Vec<_>>());
    }
}

fn free(bundles: usize) -> Graph {
    Graph {
        bundles: vec![(Vec::new(), Vec::new(), Vec::new()); bundles],
        outcomes: vec![Completion::Complete; bundles],
    }
}

#[test]
fn a_bundle_whose_work_panics_fails_alone() {
    let graph = free(5);
    let plan = graph.plan();
    let mut host = Plain { outcomes: &graph.outcomes, ..Plain::default() };
    let work = |id: &BundleId, _: Option<u32>| {
        let n = number(id);
        assert_ne!(n, 2, "two is odd");
        n
    };
    let frontier = carry_out(&plan, &[], NonZeroU32::new(2).unwrap(), &work, &mut host);
    let complete =
        plan.ids().filter(|id| frontier.status(id) == Some(ItemStatus::Complete)).count();
    assert_eq!((host.panics, complete), (1, 4));
    assert_eq!(frontier.status(&id(2)), Some(ItemStatus::Failed));
}

/// A host at which something happens elsewhere, or work lies in lanes.
struct Lively {
    /// Reported before anything is started.
    early: Vec<ExternalEvent>,
    /// Reported when nothing is left to do.
    news: Vec<ExternalEvent>,
    outcome: Completion,
    homes: BTreeMap<BundleId, u32>,
    log: Vec<String>,
    stop_after: Option<usize>,
}

impl Lively {
    fn new() -> Self {
        Self {
            early: Vec::new(),
            news: Vec::new(),
            outcome: Completion::Halted,
            homes: BTreeMap::new(),
            log: Vec::new(),
            stop_after: None,
        }
    }

    fn log_of(self, graph: &Graph, lanes: u32) -> Vec<String> {
        self.log_with(&graph.plan(), lanes)
    }

    fn log_with(mut self, plan: &Plan, lanes: u32) -> Vec<String> {
        let work = |id: &BundleId, _: Option<u32>| number(id);
        carry_out(plan, &[], NonZeroU32::new(lanes).unwrap(), &work, &mut self);
        self.log
    }
}

impl PoolHost<usize> for Lively {
    fn assigned_lane(&self, id: &BundleId) -> Option<u32> {
        self.homes.get(id).copied()
    }

    fn starting(&mut self, id: &BundleId, lane: Option<u32>, resumed: bool) {
        let lane = lane.map_or_else(String::new, |lane| format!(" in {lane}"));
        let again = if resumed { " again" } else { "" };
        self.log.push(format!("{id}{lane}{again}"));
    }

    fn held(&mut self, id: &BundleId, by: &[ClaimHolder]) {
        let by: Vec<&str> = by.iter().map(|holder| holder.id.as_str()).collect();
        self.log.push(format!("{id} held by {}", by.join(" ")));
    }

    fn freed(&mut self, id: &BundleId, by: &BundleId) {
        self.log.push(format!("{id} freed by {by}"));
    }

    fn ended(&mut self, _id: &BundleId, _result: Result<usize, Panicked>) -> Completion {
        self.outcome
    }

    fn external_events(&mut self, last: bool) -> Vec<ExternalEvent> {
        std::mem::take(if last { &mut self.news } else { &mut self.early })
    }

    fn is_stopped(&self) -> bool {
        self.stop_after.is_some_and(|after| self.log.len() >= after)
    }
}

#[test]
fn a_sign_off_that_comes_meanwhile_frees_its_dependants_at_once() {
    let mut graph = free(3);
    graph.bundles[1].0.push(0);
    graph.bundles[2].0.push(1);
    let mut host = Lively::new();
    host.news.push(ExternalEvent::Complete(id(0)));
    assert_eq!(host.log_of(&graph, 1), ["000", "001 freed by 000", "001"]);
}

#[test]
fn a_bundle_that_was_sent_back_goes_again() {
    let mut host = Lively::new();
    host.news.push(ExternalEvent::Reopened(id(0)));
    assert_eq!(host.log_of(&free(1), 1), ["000", "000"]);
}

#[test]
fn what_lies_in_a_lane_goes_on_there_and_first() {
    let mut host = Lively::new();
    host.homes = BTreeMap::from([(id(4), 1), (id(3), 7)]);
    let log = host.log_of(&free(5), 3);
    assert_eq!(log[0], "004 in 1 again");
    assert_eq!(&log[1..3], ["000 in 0", "001 in 2"]);
    assert!(log.iter().all(|line| !line.contains("in 7")), "there is no such lane: {log:?}");
}

#[test]
fn a_bundle_that_waits_for_a_rival_is_told_with_the_rival() {
    let mut graph = free(2);
    graph.bundles[0].2.push(1);
    graph.bundles[1].2.push(1);
    assert_eq!(Lively::new().log_of(&graph, 2), ["000 in 0", "001 held by 000", "001 in 0"]);
}

#[test]
fn once_stopped_nothing_is_started() {
    let mut host = Lively::new();
    host.stop_after = Some(1);
    assert_eq!(host.log_of(&free(3), 1), ["000"]);
    let mut host = Lively::new();
    host.stop_after = Some(0);
    host.homes = BTreeMap::from([(id(1), 0)]);
    assert!(host.log_of(&free(3), 2).is_empty());
}

#[test]
fn a_worker_is_made_when_a_bundle_needs_it() {
    let threads = Mutex::new(HashSet::new());
    let plan = free(40).plan();
    let work = |id: &BundleId, _: Option<u32>| {
        threads.lock().unwrap().insert(std::thread::current().id());
        number(id)
    };
    // A chain is never more than one in flight, whatever the lanes.
    let mut chain = free(40);
    for n in 1..40 {
        chain.bundles[n].0.push(n - 1);
    }
    let outcomes = vec![Completion::Complete; 40];
    let mut host = Plain { outcomes: &outcomes, ..Plain::default() };
    carry_out(&chain.plan(), &[], NonZeroU32::new(8).unwrap(), &work, &mut host);
    assert_eq!(threads.lock().unwrap().len(), 1);
    threads.lock().unwrap().clear();
    let mut host = Plain { outcomes: &outcomes, ..Plain::default() };
    carry_out(&plan, &[], NonZeroU32::new(8).unwrap(), &work, &mut host);
    assert!(threads.lock().unwrap().len() <= 8);
}

/// Says that there is no room once so many were started.
struct Full {
    room_for: usize,
    started: Vec<BundleId>,
    ended: Vec<BundleId>,
}

impl PoolHost<()> for Full {
    fn starting(&mut self, id: &BundleId, _lane: Option<u32>, _resumed: bool) {
        self.started.push(id.clone());
    }

    fn ended(&mut self, id: &BundleId, _result: Result<(), Panicked>) -> Completion {
        self.ended.push(id.clone());
        Completion::Complete
    }

    fn is_stopped(&self) -> bool {
        self.started.len() >= self.room_for
    }
}

#[test]
fn f12_when_there_is_no_more_room_nothing_starts_and_what_runs_comes_to_its_end() {
    let bundles = (0..6).map(|_| (Vec::new(), Vec::new(), Vec::new())).collect();
    let graph = Graph { bundles, outcomes: vec![Completion::Complete; 6] };
    let plan = graph.plan();
    for room_for in [0, 1, 2, 3] {
        let mut host = Full { room_for, started: Vec::new(), ended: Vec::new() };
        let frontier = carry_out(&plan, &[], NonZeroU32::new(2).unwrap(), &|_, _| (), &mut host);
        assert_eq!(host.started.len(), room_for);
        host.ended.sort();
        host.started.sort();
        assert_eq!(host.ended, host.started, "each that was started came to its end");
        let ready = plan.ids().filter(|id| matches!(frontier.why(id), Some(Why::Ready { .. })));
        assert_eq!(ready.count(), 6 - room_for);
    }
}

/// A host that reports external events at the first poll and lets its workers end only after the second.
struct Busy {
    polls: usize,
    news: Vec<ExternalEvent>,
    go: std::sync::Arc<std::sync::atomic::AtomicBool>,
    outcome: Completion,
    log: Vec<String>,
}

impl Busy {
    fn new(outcome: Completion, news: Vec<ExternalEvent>) -> Self {
        let go = std::sync::Arc::default();
        Self { polls: 0, news, go, outcome, log: Vec::new() }
    }

    /// Carries the plan out; every bundle is in flight until the events were taken.
    fn carry_out<'p>(&mut self, plan: &'p Plan, lanes: u32) -> Frontier<'p> {
        let go = std::sync::Arc::clone(&self.go);
        let work = move |id: &BundleId, _: Option<u32>| {
            while !go.load(std::sync::atomic::Ordering::Acquire) {
                std::thread::yield_now();
            }
            number(id)
        };
        carry_out(plan, &[], NonZeroU32::new(lanes).unwrap(), &work, self)
    }
}

impl PoolHost<usize> for Busy {
    fn starting(&mut self, id: &BundleId, _lane: Option<u32>, _resumed: bool) {
        self.log.push(id.to_string());
    }

    fn freed(&mut self, id: &BundleId, by: &BundleId) {
        self.log.push(format!("{id} freed by {by}"));
    }

    fn met(&mut self, id: &BundleId, rivals: &[ClaimHolder]) {
        let rivals: Vec<&str> = rivals.iter().map(|rival| rival.id.as_str()).collect();
        self.log.push(format!("{id} met {}", rivals.join(" ")));
    }

    fn ended(&mut self, _id: &BundleId, _result: Result<usize, Panicked>) -> Completion {
        self.outcome
    }

    fn external_events(&mut self, _last: bool) -> Vec<ExternalEvent> {
        self.polls += 1;
        if self.polls < 2 {
            return Vec::new();
        }
        self.go.store(true, std::sync::atomic::Ordering::Release);
        std::mem::take(&mut self.news)
    }
}

fn file(n: usize) -> Vec<Pattern> {
    vec![Pattern::of_file(&format!("f{n}"), pdca_dag::Case::Sensitive).unwrap()]
}

#[test]
fn a_change_that_widens_in_flight_is_told_with_the_rivals_that_run_beside_it() {
    let mut graph = free(3);
    graph.bundles[1].2.push(7);
    let mut host = Busy::new(Completion::Halted, vec![ExternalEvent::Widened(id(0), file(7))]);
    host.carry_out(&graph.plan(), 3);
    assert_eq!(host.log, ["000", "001", "002", "000 met 001"]);
}

#[test]
fn a_change_that_widens_before_its_new_rival_starts_keeps_it_waiting() {
    let mut graph = free(2);
    graph.bundles[1].2.push(7);
    let mut host = Lively::new();
    host.early.push(ExternalEvent::Widened(id(0), file(7)));
    assert_eq!(host.log_of(&graph, 2), ["000 in 0", "001 held by 000", "001 in 0"]);
}

#[test]
fn a_dependant_that_waits_for_the_landing_is_not_freed_by_the_sign_off() {
    let mut graph = free(2);
    graph.bundles[1].0.push(0);
    let plan = |awaits| {
        let mut items = graph.items();
        items[1].depends_on[0].awaits = awaits;
        Plan::new(items, &Outside::default(), Options::default()).unwrap()
    };
    let started = |event: ExternalEvent, awaits| {
        let mut host = Busy::new(Completion::Halted, vec![event]);
        host.carry_out(&plan(awaits), 1);
        host.log.contains(&"001".to_owned())
    };
    assert!(started(ExternalEvent::Complete(id(0)), Awaits::Accepted));
    assert!(!started(ExternalEvent::Complete(id(0)), Awaits::Landed));
    assert!(started(ExternalEvent::Landed(id(0)), Awaits::Landed));
}

#[test]
fn a_result_that_was_withdrawn_no_longer_keeps_its_rival_waiting() {
    let mut graph = free(2);
    graph.bundles[0].2.push(7);
    graph.bundles[1].2.push(7);
    let options = Options { rivals: Awaits::Accepted, ..Options::default() };
    let plan = Plan::new(graph.items(), &Outside::default(), options).unwrap();
    let started = |news: Vec<ExternalEvent>| {
        let mut host = Lively::new();
        host.outcome = Completion::Built;
        host.news = news;
        host.log_with(&plan, 2)
    };
    let waiting = started(Vec::new());
    assert!(!waiting.iter().any(|line| line.starts_with("001 in")), "{waiting:?}");
    let withdrawn = started(vec![ExternalEvent::Withdrawn(id(0))]);
    assert_eq!(withdrawn.last().map(String::as_str), Some("001 in 0"), "{withdrawn:?}");
}

#[test]
fn a_bundle_that_was_signed_off_while_it_ran_stays_complete_whatever_its_worker_says() {
    let mut graph = free(2);
    graph.bundles[1].0.push(0);
    let plan = graph.plan();
    let mut host = Busy::new(Completion::Failed, vec![ExternalEvent::Complete(id(0))]);
    let frontier = host.carry_out(&plan, 2);
    assert_eq!(frontier.status(&id(0)), Some(ItemStatus::Complete));
    assert_eq!(host.log, ["000", "001 freed by 000", "001"]);
}

#[test]
fn a_bundle_in_flight_is_not_started_again_because_it_was_sent_back() {
    let mut host = Busy::new(Completion::Halted, vec![ExternalEvent::Reopened(id(0))]);
    host.carry_out(&free(1).plan(), 2);
    assert_eq!(host.log, ["000"]);
}

#[test]
fn events_about_bundles_of_another_batch_change_nothing() {
    let mut host = Lively::new();
    host.early = vec![
        ExternalEvent::Complete(id(9)),
        ExternalEvent::Landed(id(9)),
        ExternalEvent::Withdrawn(id(9)),
        ExternalEvent::Reopened(id(9)),
        ExternalEvent::Widened(id(9), file(1)),
    ];
    assert_eq!(host.log_of(&free(1), 1), ["000"]);
}

/// A host of a machine that refuses threads.
#[derive(Default)]
struct Crowded {
    log: Vec<String>,
    said: Vec<String>,
}

impl PoolHost<usize> for Crowded {
    fn starting(&mut self, id: &BundleId, lane: Option<u32>, _resumed: bool) {
        self.log.push(format!("{id} in {}", lane.unwrap()));
    }

    fn short_of_lanes(&mut self, lanes: usize) {
        self.log.push(format!("{lanes} left"));
    }

    fn ended(&mut self, id: &BundleId, result: Result<usize, Panicked>) -> Completion {
        match result {
            Ok(_) => Completion::Complete,
            Err(Panicked(said)) => {
                self.said.push(format!("{id}: {said}"));
                Completion::Failed
            }
        }
    }
}

/// Carries a plan out on two lanes; `refuses` decides for each request of a thread, by its number.
fn with_refused_threads(plan: &Plan, refuses: &dyn Fn(usize, usize) -> bool) -> Crowded {
    let mut host = Crowded::default();
    let work = |id: &BundleId, _: Option<u32>| number(id);
    let (reports, arrived) = unbounded();
    let asked = std::cell::Cell::new(0);
    std::thread::scope(|scope| {
        let spawn_worker = |slot, lane| {
            asked.set(asked.get() + 1);
            if refuses(asked.get(), slot) {
                return Err(std::io::Error::other("too many threads"));
            }
            worker::spawn_worker(scope, slot, lane, &work, &reports)
        };
        let mut dispatcher = Dispatcher {
            plan,
            frontier: Frontier::new(plan),
            groups: None,
            host: &mut host,
            homes: BTreeMap::new(),
            busy: BTreeSet::new(),
            closed: BTreeSet::new(),
            lanes: vec![None, None],
            spawn_worker: &spawn_worker,
        };
        dispatcher.run(&arrived);
    });
    host
}

#[test]
fn a_bundle_whose_lane_gets_no_thread_goes_to_another_lane() {
    let host = with_refused_threads(&free(1).plan(), &|_, slot| slot == 0);
    assert_eq!(host.log, ["1 left", "000 in 1"]);
    assert_eq!(host.said, Vec::<String>::new());
}

#[test]
fn without_a_thread_for_any_lane_a_bundle_fails_with_the_reason_of_the_system() {
    let host = with_refused_threads(&free(1).plan(), &|_, _| true);
    assert_eq!(host.log, ["1 left", "0 left"]);
    assert_eq!(host.said, ["000: no thread for a lane: too many threads"]);
}

#[test]
fn a_lane_that_got_no_thread_is_tried_again_once_a_worker_is_done() {
    let mut chain = free(3);
    chain.bundles[1].0.push(0);
    chain.bundles[2].0.push(0);
    let host = with_refused_threads(&chain.plan(), &|asked, _| asked == 1);
    let last = &host.log[2..];
    assert_eq!(host.log[..2], ["1 left", "000 in 1"]);
    assert!(last.contains(&"001 in 0".to_owned()), "{last:?}");
}

#[test]
fn a_busy_slot_of_a_lost_host_takes_no_other_lane_away() {
    let graph = Graph { bundles: vec![Brief::default()], outcomes: Vec::new() };
    let (plan, mut host) = (graph.plan(), Plain::default());
    let spawn_worker = |_: usize, _: Option<u32>| Err::<Worker, _>(std::io::Error::other("none"));
    let dispatcher = Dispatcher::<usize> {
        plan: &plan,
        frontier: Frontier::new(&plan),
        groups: None,
        host: &mut host,
        homes: BTreeMap::new(),
        busy: BTreeSet::from([1]),
        closed: BTreeSet::from([1]),
        lanes: vec![None, None],
        spawn_worker: &spawn_worker,
    };
    assert!(dispatcher.has_free_lane());
}
