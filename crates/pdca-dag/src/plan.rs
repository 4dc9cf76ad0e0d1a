//! A valid plan of a batch, and views of it: order, waves, critical path, workstreams.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use pdca_state::BundleId;
use petgraph::unionfind::UnionFind;
use serde::Serialize;

use crate::claims::{Claims, Rivalry};
use crate::graph::Graph;
use crate::item::{Item, ItemState, Options};
use crate::problem::{Edge, PlanNotice, PlanProblem};

/// A batch whose bundles can all be started at some time, provided that people sign off what waits
/// for them.
///
/// Made by [`Plan::new`] and carried out by a [`Frontier`](crate::Frontier).
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) items: Vec<Item>,
    pub(crate) graph: Graph,
    pub(crate) claims: Claims,
    /// The duration of each bundle; 0 if no work is left.
    pub(crate) weight: Vec<u64>,
    /// The weight of the heaviest chain that starts with each bundle.
    pub(crate) rank: Vec<u64>,
    pub(crate) options: Options,
    pub(crate) notices: Vec<PlanNotice>,
    pub(crate) digest: String,
    pub(crate) left: Vec<PlanProblem>,
}

/// Two bundles that are never in flight together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rivals {
    /// The two bundles, in name order.
    pub bundles: (BundleId, BundleId),
    /// The reason they are rivals.
    #[serde(flatten)]
    pub rivalry: Rivalry,
}

impl Plan {
    pub(crate) fn assemble(
        items: Vec<Item>,
        graph: Graph,
        claims: Claims,
        notices: Vec<PlanNotice>,
        options: Options,
        digest: String,
    ) -> Self {
        let weight = weights(&items);
        let rank = graph.remaining(&weight);
        let left = Vec::new();
        Self { items, graph, claims, weight, rank, options, notices, digest, left }
    }

    /// Iterates over all bundles of the batch in name order.
    pub fn ids(&self) -> impl Iterator<Item = &BundleId> {
        self.items.iter().filter(|item| !item.guest).map(|item| &item.id)
    }

    /// Hints for the authors of the briefs.
    pub fn notices(&self) -> &[PlanNotice] {
        &self.notices
    }

    /// The problems of the bundles that are left out because they cannot be started, in name order; see
    /// [`Options::leave_alone`].
    pub fn left_alone(&self) -> &[PlanProblem] {
        &self.left
    }

    /// A digest over the declarations and the options, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The bundles with work to do, in the order in which a single lane would run them.
    pub fn order(&self) -> Vec<&BundleId> {
        self.names(&self.graph.order(&self.rank, &|bundle| self.is_active(bundle)))
    }

    /// The bundles with work to do as sets that could run at the same time, each as early as its
    /// prerequisites and rivals allow.
    ///
    /// This is only a view; a [`Frontier`](crate::Frontier) does not wait for a wave to end.
    pub fn waves(&self) -> Vec<Vec<&BundleId>> {
        let mut wave_of = vec![0; self.items.len()];
        let mut waves: Vec<Vec<usize>> = Vec::new();
        // For each claim, the waves in which it is taken, as bits.
        let mut taken: Vec<Vec<u64>> = vec![Vec::new(); self.claims.len()];
        for bundle in self.graph.order(&self.rank, &|bundle| self.is_active(bundle)) {
            let before = self.graph.prerequisites(bundle).filter(|before| self.is_active(*before));
            let earliest = before.map(|before| wave_of[before] + 1).max().unwrap_or(0);
            let wave = free_from(earliest, self.claims.of(bundle), &taken);
            wave_of[bundle] = wave;
            for claim in self.claims.near(bundle) {
                let bits = &mut taken[claim];
                if bits.len() <= wave / 64 {
                    bits.resize(wave / 64 + 1, 0);
                }
                bits[wave / 64] |= 1 << (wave % 64);
            }
            if waves.len() <= wave {
                waves.resize(wave + 1, Vec::new());
            }
            waves[wave].push(bundle);
        }
        for wave in &mut waves {
            wave.sort_unstable();
        }
        waves.iter().map(|wave| self.names(wave)).collect()
    }

    /// The dependencies inside the batch, sorted by dependant and then by prerequisite.
    pub fn edges(&self) -> Vec<Edge> {
        let mut links: Vec<_> = self.graph.links().collect();
        links.sort_unstable_by_key(|(prerequisite, dependant, _)| (*dependant, *prerequisite));
        let edge = |(prerequisite, dependant, tie): crate::graph::Link<'_>| Edge {
            dependant: self.items[dependant].id.clone(),
            prerequisite: self.items[prerequisite].id.clone(),
            place: tie.place.clone(),
            awaits: tie.awaits,
        };
        links.into_iter().map(edge).collect()
    }

    /// Iterates over all pairs of rivals in name order. The number of pairs may be quadratic, so they
    /// are computed lazily.
    pub fn rivals(&self) -> impl Iterator<Item = Rivals> {
        (0..self.items.len()).flat_map(move |a| {
            let later = self.claims.rivals(a).into_iter().filter(move |b| *b > a);
            later.filter_map(move |b| {
                let bundles = (self.items[a].id.clone(), self.items[b].id.clone());
                self.claims.rivalry(a, b).map(|rivalry| Rivals { bundles, rivalry })
            })
        })
    }

    /// The rivals of one bundle, with the reason. Of two globs, the first belongs to the given bundle.
    pub fn rivals_of(&self, id: &BundleId) -> Vec<(&BundleId, Rivalry)> {
        let Some(bundle) = self.find(id) else { return Vec::new() };
        let rivals = self.claims.rivals(bundle).into_iter();
        let why = |other| self.claims.rivalry(bundle, other);
        rivals.filter_map(|other| why(other).map(|why| (&self.items[other].id, why))).collect()
    }

    /// The heaviest remaining chain of work, prerequisites first. No number of lanes is faster than it.
    pub fn critical_path(&self) -> Vec<&BundleId> {
        let heaviest = |bundles: &mut dyn Iterator<Item = usize>| {
            bundles
                .filter(|b| self.rank[*b] > 0)
                .max_by_key(|b| (self.rank[*b], std::cmp::Reverse(*b)))
        };
        let mut chain = Vec::new();
        let mut next = heaviest(&mut (0..self.items.len()));
        while let Some(bundle) = next {
            chain.push(bundle);
            next = heaviest(&mut self.graph.dependants(bundle));
        }
        self.names(&chain)
    }

    /// The connected components of the live bundles over dependencies, conflicts and overlaps; sets and
    /// members in name order.
    pub fn workstreams(&self) -> Vec<Vec<&BundleId>> {
        let is_live = |bundle: usize| self.is_live(bundle);
        let mut sets = UnionFind::<usize>::new(self.items.len());
        for (a, b) in self.claims.links(&is_live) {
            sets.union(a, b);
        }
        for (a, b, _) in self.graph.links().filter(|(a, b, _)| is_live(*a) && is_live(*b)) {
            sets.union(a, b);
        }
        let mut streams: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut first = vec![None; self.items.len()];
        for bundle in (0..self.items.len()).filter(|bundle| is_live(*bundle)) {
            let named = *first[sets.find(bundle)].get_or_insert(bundle);
            streams.entry(named).or_default().push(bundle);
        }
        streams.values().map(|stream| self.names(stream)).collect()
    }

    /// For each bundle in name order, the number of bundles with work left on the longest chain of
    /// dependants that starts with it, itself included.
    pub fn chains(&self) -> Vec<(&BundleId, u64)> {
        let ones = (0..self.items.len())
            .map(|bundle| u64::from(self.is_active(bundle)))
            .collect::<Vec<_>>();
        let chains = self.items.iter().zip(self.graph.remaining(&ones));
        chains.filter(|(item, _)| !item.guest).map(|(item, chain)| (&item.id, chain)).collect()
    }

    pub(crate) fn is_live(&self, bundle: usize) -> bool {
        let item = &self.items[bundle];
        item.standing.is_live() && !item.guest
    }

    pub(crate) fn find(&self, id: &BundleId) -> Option<usize> {
        self.items.binary_search_by(|item| item.id.cmp(id)).ok()
    }

    pub(crate) fn is_active(&self, bundle: usize) -> bool {
        self.items[bundle].standing == ItemState::Active && !self.items[bundle].guest
    }

    pub(crate) fn names(&self, bundles: &[usize]) -> Vec<&BundleId> {
        bundles.iter().map(|bundle| &self.items[*bundle].id).collect()
    }
}

/// The first wave, not before `earliest`, in which none of the claims is taken.
fn free_from(earliest: usize, claims: &[usize], taken: &[Vec<u64>]) -> usize {
    let mut word = earliest / 64;
    // Mark the waves before `earliest` as taken.
    let mut low = (1_u64 << (earliest % 64)) - 1;
    loop {
        let bits = |claim: &usize| taken[*claim].get(word).copied().unwrap_or(0);
        let free = !claims.iter().fold(low, |all, claim| all | bits(claim));
        if free != 0 {
            return word * 64 + free.trailing_zeros() as usize;
        }
        (word, low) = (word + 1, 0);
    }
}

/// The weight of each bundle: its duration in milliseconds, or 1 if no duration is known at all.
fn weights(items: &[Item]) -> Vec<u64> {
    let millis = |item: &Item| {
        let millis = item.duration?.as_millis();
        // Never 0: that is the weight of a bundle without work, which ends a chain.
        Some(u64::try_from(millis).unwrap_or(u64::MAX).max(1))
    };
    let mut known: Vec<u64> = items.iter().filter_map(millis).collect();
    known.sort_unstable();
    // The median, so that one very long bundle does not make all unknown ones look long.
    let usual = known.get(known.len() / 2).copied().unwrap_or(1);
    let weight = |item: &Item| match item.standing {
        ItemState::Active if !item.guest => millis(item).unwrap_or(usual),
        ItemState::Active
        | ItemState::Waiting
        | ItemState::Built
        | ItemState::Red
        | ItemState::Complete
        | ItemState::Landed
        | ItemState::Ended => 0,
    };
    items.iter().map(weight).collect()
}
