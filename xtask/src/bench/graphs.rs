//! Random but reproducible batches with scripted durations.

use std::time::Duration;

use pdca_dag::{Declared, Item, Options, Outside, Plan, SourceLocation, Touch};
use pdca_state::BundleId;

use crate::Stopped;
use crate::dice::Dice;

/// A batch: dependencies, touched files and durations.
#[derive(Debug, Clone)]
pub(super) struct BenchGraph {
    pub(super) bundles: Vec<GraphBundle>,
}

#[derive(Debug, Clone)]
pub(super) struct GraphBundle {
    pub(super) id: BundleId,
    pub(super) depends_on: Vec<usize>,
    pub(super) touches: String,
    pub(super) takes: Duration,
}

impl BenchGraph {
    /// Makes a batch of bundles that each depend on up to two earlier ones, most of them near. One in
    /// ten shares a file with another.
    pub(super) fn random(
        dice: &mut Dice,
        bundles: usize,
        longest: Duration,
    ) -> Result<Self, Stopped> {
        let mut graph = Self { bundles: Vec::with_capacity(bundles) };
        for n in 0..bundles {
            let mut depends_on = Vec::new();
            for _ in 0..dice.roll(3) {
                let back = dice.roll(8) + 1;
                if let Some(before) = n.checked_sub(usize::try_from(back)?) {
                    depends_on.push(before);
                }
            }
            depends_on.sort_unstable();
            depends_on.dedup();
            let file = if dice.roll(10) == 0 { dice.roll(4) } else { 100 + n as u64 };
            let fifth = longest / 5;
            let takes = fifth + fifth * u32::try_from(dice.roll(401))? / 100;
            let id: BundleId = format!("{:04}", n + 1).parse()?;
            graph.bundles.push(GraphBundle {
                id,
                depends_on,
                touches: format!("src/{file}.rs"),
                takes,
            });
        }
        Ok(graph)
    }

    /// Returns the plan, with known or unknown durations.
    pub(super) fn plan(&self, known: bool) -> Result<Plan, Stopped> {
        let place = || SourceLocation::new("brief.md", 1);
        let item = |bundle: &GraphBundle| Item {
            depends_on: bundle
                .depends_on
                .iter()
                .map(|n| Declared::new(self.bundles[*n].id.clone(), place()))
                .collect(),
            touches: vec![Touch { glob: bundle.touches.clone(), place: place(), is_file: true }],
            duration: known.then_some(bundle.takes),
            ..Item::new(bundle.id.clone(), place())
        };
        let items = self.bundles.iter().map(item).collect();
        Ok(Plan::new(items, &Outside::default(), Options::default())?)
    }

    /// Makes a batch of these bundles without dependencies.
    pub(super) fn wave(&self, ids: &[&BundleId]) -> Self {
        let in_wave = self.bundles.iter().filter(|bundle| ids.contains(&&bundle.id));
        let free = |bundle: &GraphBundle| GraphBundle { depends_on: Vec::new(), ..bundle.clone() };
        Self { bundles: in_wave.map(free).collect() }
    }

    pub(super) fn takes(&self, id: &BundleId) -> Duration {
        self.bundles.iter().find(|bundle| bundle.id == *id).map_or(Duration::ZERO, |b| b.takes)
    }

    /// Returns a bound for any scheduler: the longest chain, or all work spread evenly.
    pub(super) fn lower_bound(&self, lanes: u32) -> Duration {
        let mut ends: Vec<Duration> = Vec::with_capacity(self.bundles.len());
        for bundle in &self.bundles {
            let start = bundle.depends_on.iter().map(|n| ends[*n]).max().unwrap_or_default();
            ends.push(start + bundle.takes);
        }
        let chain = ends.iter().copied().max().unwrap_or_default();
        let work: Duration = self.bundles.iter().map(|bundle| bundle.takes).sum();
        chain.max(work / lanes)
    }
}
