//! Simulates a plan with different numbers of lanes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use pdca_state::{Awaits, BundleId};
use serde::{Serialize, Serializer};

use crate::claims::Rivalry;
use crate::frontier::{Completion, Frontier, ItemStatus, Waiver};
use crate::plan::{Plan, Rivals};
use crate::problem::Edge;

/// The most constraints whose cost is simulated.
const MAX_TRIED: usize = 16;

/// The durations of a plan for several numbers of lanes, if every bundle succeeds at its first attempt
/// and nothing waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Simulation {
    /// One entry per number of lanes, in the order of the requested range.
    pub makespans: Vec<Makespan>,
    /// The unit of all times.
    pub unit: Unit,
    /// The sum of the work of all bundles.
    pub work: u64,
    /// The work of the critical path. No number of lanes is faster.
    pub critical_path: u64,
    /// The smallest number of lanes in the range with the shortest time.
    pub enough: usize,
    /// The declaration whose removal would save the most time with the largest number of lanes;
    /// `None` if no single one matters.
    pub costliest: Option<Costliest>,
}

/// The duration for one number of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Makespan {
    /// The number of lanes.
    pub lanes: usize,
    /// The time from the first start to the last end.
    pub time: u64,
}

/// The unit of simulated times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// No durations are known, so every bundle takes one unit.
    Bundles,
    /// At least one duration is known, so times are in milliseconds.
    Milliseconds,
}

/// A declaration and the time that it costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Costliest {
    /// The declaration.
    #[serde(flatten)]
    pub constraint: Constraint,
    /// The time by which the last bundle would end earlier without it.
    pub saves: u64,
}

/// A declaration because of which two bundles do not run at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Constraint {
    /// One bundle depends on the other.
    Dependency(
        #[serde(serialize_with = "as_pair")]
        #[cfg_attr(feature = "schema", schemars(with = "DependencyPair<'_>"))]
        Edge,
    ),
    /// The bundles conflict or overlap.
    Rivals(Rivals),
}

/// A dependency in the form of [`Rivals`].
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "DependencyPair", transform = crate::problem::with_rule))]
#[serde(tag = "rule", rename = "depends_on")]
struct DependencyPair<'a> {
    bundles: (&'a BundleId, &'a BundleId),
    edge: &'a Edge,
}

fn as_pair<S: Serializer>(edge: &Edge, to: S) -> Result<S::Ok, S::Error> {
    DependencyPair { bundles: (&edge.prerequisite, &edge.dependant), edge }.serialize(to)
}

impl Plan {
    /// Simulates the plan with a [`Frontier`], as a real run would use it.
    ///
    /// The cost of a declaration is simulated only for a sample of those that determined the end of
    /// the last bundle.
    pub fn simulate(&self, lanes: RangeInclusive<usize>) -> Simulation {
        let mut makespans: Vec<Makespan> = Vec::new();
        let mut run: Option<Timeline> = None;
        for lanes in lanes.clone() {
            // A run that never had all lanes busy is the same with one lane more.
            run = run.filter(|run| run.busiest < run.lanes);
            let run = run.get_or_insert_with(|| Timeline::of(self, lanes, None));
            makespans.push(Makespan { lanes, time: run.time() });
        }
        let best = makespans.iter().map(|span| span.time).min().unwrap_or(0);
        let enough = makespans.iter().find(|span| span.time == best).map_or(0, |span| span.lanes);
        let some_known = self.items.iter().any(|item| item.duration.is_some());
        Simulation {
            unit: if some_known { Unit::Milliseconds } else { Unit::Bundles },
            work: self.weight.iter().sum(),
            critical_path: self.rank.iter().copied().max().unwrap_or(0),
            enough,
            costliest: if makespans.is_empty() {
                None
            } else {
                Timeline::of(self, *lanes.end(), None).costliest(self)
            },
            makespans,
        }
    }
}

/// The last thing that a bundle waited for.
#[derive(Debug, Clone, Copy)]
enum WaitCause {
    Constraint(usize, Waiver),
    Lane(usize),
}

impl Waiver {
    /// Returns the declaration that is ignored.
    fn constraint(self, plan: &Plan) -> Option<Constraint> {
        let id = |bundle: usize| plan.items[bundle].id.clone();
        Some(match self {
            Waiver::Edge(before, after) => Constraint::Dependency(Edge {
                dependant: id(after),
                prerequisite: id(before),
                place: plan.graph.edge(before, after)?.place.clone(),
                awaits: plan.graph.edge(before, after)?.awaits,
            }),
            Waiver::Rivals(a, b) => {
                let rivalry: Rivalry = plan.claims.rivalry(a, b)?;
                Constraint::Rivals(Rivals { bundles: (id(a), id(b)), rivalry })
            }
        })
    }
}

struct Timeline {
    /// The end time of each bundle, in the order of ends.
    ends: Vec<(u64, usize)>,
    cause: Vec<Option<WaitCause>>,
    lanes: usize,
    /// The largest number of lanes that were busy at the same time.
    busiest: usize,
}

impl Timeline {
    fn of(plan: &Plan, lanes: usize, waiver: Option<Waiver>) -> Self {
        let mut frontier = Frontier::waiving(plan, waiver);
        for item in &plan.items {
            if matches!(frontier.status(&item.id), Some(ItemStatus::Halted | ItemStatus::Complete))
            {
                frontier.landed_elsewhere(&item.id).expect("it is in the plan");
            }
        }
        let unknown = vec![None; plan.items.len()];
        let mut run = Self { ends: Vec::new(), cause: unknown, lanes, busiest: 0 };
        let mut busy: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut now = 0;
        let mut just_ended: Vec<usize> = Vec::new();
        loop {
            while busy.len() < lanes {
                let Some(bundle) = frontier.start() else { break };
                run.cause[bundle] = cause(plan, &frontier, bundle, &just_ended);
                busy.push(Reverse((now + plan.weight[bundle], bundle)));
            }
            run.busiest = run.busiest.max(busy.len());
            let Some(&Reverse((end, _))) = busy.peek() else { return run };
            now = end;
            just_ended.clear();
            while let Some(&Reverse((end, bundle))) = busy.peek() {
                if end > now {
                    break;
                }
                busy.pop();
                // The simulation assumes that people sign off and land without delay.
                frontier.end(bundle, Completion::Complete);
                frontier.reach(bundle, Awaits::Landed);
                run.ends.push((now, bundle));
                just_ended.push(bundle);
            }
        }
    }

    fn time(&self) -> u64 {
        self.ends.last().map_or(0, |(end, _)| *end)
    }

    /// The declaration of which the waiver saves the most time.
    fn costliest(&self, plan: &Plan) -> Option<Costliest> {
        let tried = self.decisive();
        let step = tried.len().div_ceil(MAX_TRIED).max(1);
        let gain = |waiver: &Waiver| {
            self.time().saturating_sub(Timeline::of(plan, self.lanes, Some(*waiver)).time())
        };
        let tried = tried.iter().step_by(step).map(|waiver| (gain(waiver), *waiver));
        // `max_by_key` returns the last maximum; reversed, that is the first.
        let best = tried.rev().max_by_key(|(saves, _)| *saves).filter(|(saves, _)| *saves > 0);
        let (saves, waiver) = best?;
        Some(Costliest { constraint: waiver.constraint(plan)?, saves })
    }

    /// The constraints on the chain of causes from the last end back to the start.
    fn decisive(&self) -> Vec<Waiver> {
        let mut decisive = Vec::new();
        let mut bundle = self.ends.last().map(|(_, bundle)| *bundle);
        while let Some(cause) = bundle.and_then(|bundle| self.cause[bundle]) {
            bundle = Some(match cause {
                WaitCause::Constraint(before, waiver) => {
                    decisive.push(waiver);
                    before
                }
                WaitCause::Lane(before) => before,
            });
        }
        decisive
    }
}

/// The reason a bundle started only now, given the bundles that have just ended.
fn cause(
    plan: &Plan,
    frontier: &Frontier<'_>,
    bundle: usize,
    ended: &[usize],
) -> Option<WaitCause> {
    let is_before = |other: &&usize| plan.graph.edge(**other, bundle).is_some();
    if let Some(&before) = ended.iter().find(is_before) {
        return Some(WaitCause::Constraint(before, Waiver::Edge(before, bundle)));
    }
    if let Some(&rival) = ended.iter().find(|other| frontier.are_rivals(bundle, **other)) {
        let waiver = Waiver::Rivals(bundle.min(rival), bundle.max(rival));
        return Some(WaitCause::Constraint(rival, waiver));
    }
    ended.first().map(|before| WaitCause::Lane(*before))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Dice, plan, random_batch};
    use crate::{Options, Outside};

    fn times(batch: &str) -> Vec<u64> {
        plan(batch).simulate(1..=4).makespans.into_iter().map(|span| span.time).collect()
    }

    #[test]
    fn more_lanes_help_until_the_graph_is_the_limit() {
        let batch = "1\n2: 1\n3: 1\n4: 1\n5: 2 3 4";
        assert_eq!(times(batch), [5, 4, 3, 3]);
        let simulation = plan(batch).simulate(1..=16);
        assert_eq!((simulation.enough, simulation.work, simulation.critical_path), (3, 5, 3));
        assert_eq!(simulation.unit, Unit::Bundles);
    }

    #[test]
    fn rivals_take_turns_however_many_lanes_there_are() {
        assert_eq!(times("1 @ x\n2 @ x\n3 @ x"), [3, 3, 3, 3]);
    }

    #[test]
    fn known_durations_count_and_unknown_ones_are_as_long_as_usual() {
        let simulation = plan("1/100\n2/300\n3/200: 1\n4").simulate(2..=2);
        assert_eq!(simulation.makespans, [Makespan { lanes: 2, time: 500 }]);
        assert_eq!((simulation.unit, simulation.work), (Unit::Milliseconds, 800));
    }

    #[test]
    fn work_that_is_done_or_waits_for_a_person_takes_no_time() {
        assert_eq!(times("1+\n2?: 1\n3: 2\n4!"), [1, 1, 1, 1]);
    }

    #[test]
    fn no_lanes_to_try_is_no_answer() {
        #[expect(clippy::reversed_empty_ranges, reason = "this is what is tested")]
        let simulation = plan("1").simulate(2..=1);
        assert_eq!((simulation.makespans.len(), simulation.enough), (0, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn every_bundle_is_done_and_never_faster_than_the_graph_allows(seed in any::<u64>()) {
            let items = random_batch(&mut Dice(seed), 12);
            let plan = Plan::new(items, &Outside::default(), Options::default()).unwrap();
            let active = plan.order().len();
            let simulation = plan.simulate(1..=6);
            for Makespan { lanes, time } in &simulation.makespans {
                let run = Timeline::of(&plan, *lanes, None);
                prop_assert_eq!((run.ends.len(), run.time()), (active, *time));
                let least = simulation.work.div_ceil(*lanes as u64).max(simulation.critical_path);
                prop_assert!(*time >= least && *time <= simulation.work);
                for waiver in run.decisive() {
                    prop_assert_eq!(Timeline::of(&plan, *lanes, Some(waiver)).ends.len(), active);
                }
            }
        }
    }

    #[test]
    fn the_declaration_that_costs_most_is_named_with_what_it_costs() {
        let costliest = |batch: &str| plan(batch).simulate(1..=4).costliest;
        let edge = costliest("1/10\n2/500: 1\n3/400: 2\n4/10").expect("an edge costs");
        assert_eq!(edge.saves, 400);
        assert!(matches!(&edge.constraint, Constraint::Dependency(edge)
            if (edge.dependant.as_str(), edge.prerequisite.as_str()) == ("3", "2")));
        let overlap = costliest("1/300 @ x\n2/300 @ x\n3/100: 1").expect("an overlap costs");
        assert_eq!(overlap.saves, 200);
        assert!(matches!(&overlap.constraint, Constraint::Rivals(rivals)
            if (rivals.bundles.0.as_str(), rivals.bundles.1.as_str()) == ("1", "2")));
        assert_eq!(costliest("1\n2\n3"), None);
    }
}
