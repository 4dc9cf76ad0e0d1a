//! Partition of the live bundles of a plan into the sets that become groups.

use std::collections::HashMap;

use petgraph::unionfind::UnionFind;

use super::file::{JoinRule, LanesFile};
use crate::graph::Graph;
use crate::plan::Plan;

/// Two bundles that a rule would join, lower first.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoinCandidate {
    pub(super) rule: JoinRule,
    pub(super) bundles: (usize, usize),
}

/// Disjoint sets of the live bundles of a plan. A set in which work has begun keeps its name, so two
/// such sets are never joined.
pub(super) struct Partition<'p> {
    plan: &'p Plan,
    sets: UnionFind<usize>,
    /// By representative of a set: its group in the previous file, and if work in it has begun.
    was: HashMap<usize, (usize, bool)>,
    /// All joins that were tried, in the order of rules.
    pub(super) candidates: Vec<JoinCandidate>,
}

impl<'p> Partition<'p> {
    pub(super) fn of(plan: &'p Plan, previous: Option<&LanesFile>) -> Self {
        let sets = UnionFind::new(plan.items.len());
        let mut partition = Self { plan, sets, was: HashMap::new(), candidates: Vec::new() };
        // First, because a bundle never leaves a group that it was in; its candidates are listed
        // last, so that the report names the rule that would join two bundles today, if there is
        // one.
        let kept = partition.keep(previous);
        for bundles in plan.claims.links(&|bundle| partition.is_live(bundle)) {
            let rule = if plan.claims.is_conflict(bundles) {
                JoinRule::Conflict
            } else {
                JoinRule::Overlap
            };
            partition.candidates.push(JoinCandidate { rule, bundles });
        }
        if plan.options.join_dependencies {
            let joined = partition
                .dependencies()
                .map(|bundles| JoinCandidate { rule: JoinRule::Dependency, bundles });
            let joined: Vec<JoinCandidate> = joined.collect();
            partition.candidates.extend(joined);
        }
        if plan.options.join_surfaces {
            let joined = partition.surfaces();
            partition.candidates.extend(joined);
        }
        for at in 0..partition.candidates.len() {
            partition.join(partition.candidates[at].bundles);
        }
        partition.join_cycles();
        partition.candidates.extend(kept);
        partition
    }

    /// The representative of the set of a bundle.
    pub(super) fn set(&self, bundle: usize) -> usize {
        self.sets.find(bundle)
    }

    /// The group of a set in the previous file.
    pub(super) fn was(&self, set: usize) -> Option<usize> {
        self.was.get(&set).map(|(group, _)| *group)
    }

    pub(super) fn is_live(&self, bundle: usize) -> bool {
        self.plan.is_live(bundle)
    }

    /// The dependencies between live bundles, as pairs with the lower index first.
    fn dependencies(&self) -> impl Iterator<Item = (usize, usize)> {
        let links =
            self.plan.graph.links().filter(|(a, b, _)| self.is_live(*a) && self.is_live(*b));
        links.map(|(a, b, _)| (a.min(b), a.max(b)))
    }

    /// Joins each live bundle with the first one of every surface that it has.
    fn surfaces(&self) -> Vec<JoinCandidate> {
        let mut first: HashMap<&str, usize> = HashMap::new();
        let mut joined = Vec::new();
        for bundle in (0..self.plan.items.len()).filter(|bundle| self.is_live(*bundle)) {
            for surface in &self.plan.items[bundle].surfaces {
                let other = *first.entry(surface).or_insert(bundle);
                if other != bundle {
                    let bundles = (other, bundle);
                    joined.push(JoinCandidate { rule: JoinRule::Surface, bundles });
                }
            }
        }
        joined
    }

    /// Joins the bundles that shared a group in the previous file.
    fn keep(&mut self, previous: Option<&LanesFile>) -> Vec<JoinCandidate> {
        let mut kept = Vec::new();
        for group in previous.iter().flat_map(|file| &file.groups) {
            let found = group.bundles.iter().filter_map(|id| self.plan.find(id));
            let members: Vec<usize> = found.filter(|bundle| self.is_live(*bundle)).collect();
            let Some(&first) = members.first() else { continue };
            for &other in &members[1..] {
                self.sets.union(first, other);
                let bundles = (first.min(other), first.max(other));
                kept.push(JoinCandidate { rule: JoinRule::Previous, bundles });
            }
            let begun = members.iter().any(|bundle| self.plan.items[*bundle].started);
            self.was.insert(self.sets.find(first), (group.id.index(), begun));
        }
        kept
    }

    /// Joins the sets of two bundles, unless work has begun in both.
    fn join(&mut self, (a, b): (usize, usize)) {
        let (a, b) = (self.sets.find(a), self.sets.find(b));
        let (of_a, of_b) = (self.was.get(&a).copied(), self.was.get(&b).copied());
        let name = match (of_a, of_b) {
            _ if a == b => return,
            // Joining would move work that has begun into another group.
            (Some((_, true)), Some((_, true))) => return,
            (Some(begun @ (_, true)), _) | (_, Some(begun @ (_, true))) => Some(begun),
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, None) | (None, one) => one,
        };
        self.sets.union(a, b);
        if let Some(name) = name {
            // The representative of the joined set may be either of the two.
            self.was.insert(self.sets.find(a), name);
        }
    }

    /// Joins sets that wait for each other; earlier joins can create such cycles between sets.
    fn join_cycles(&mut self) {
        let between: Vec<(usize, usize)> = self
            .plan
            .graph
            .links()
            .filter(|(a, b, _)| {
                self.is_live(*a) && self.is_live(*b) && self.set(*a) != self.set(*b)
            })
            .map(|(a, b, _)| (a, b))
            .collect();
        let tangle = self.tangled(&between);
        for (a, b) in between {
            let (of_a, of_b) = (tangle.get(&self.set(a)), tangle.get(&self.set(b)));
            if of_a.is_some() && of_a == of_b {
                let candidate =
                    JoinCandidate { rule: JoinRule::Cycle, bundles: (a.min(b), a.max(b)) };
                self.candidates.push(candidate);
            }
        }
        for at in 0..self.candidates.len() {
            if self.candidates[at].rule == JoinRule::Cycle {
                self.join(self.candidates[at].bundles);
            }
        }
    }

    /// The sets on cycles, each with the number of its strongly connected component.
    pub(super) fn tangled(&self, between: &[(usize, usize)]) -> HashMap<usize, usize> {
        let edges = between.iter().map(|(a, b)| (self.set(*a), self.set(*b), ())).collect();
        let tangles = Graph::new(self.plan.items.len(), edges).cyclic_components();
        let numbered = tangles.into_iter().enumerate();
        numbered.flat_map(|(n, sets)| sets.into_iter().map(move |set| (set, n))).collect()
    }
}
