//! Groups of bundles that run one after the other because they may not run at the same time.

mod file;
mod partition;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};

use pdca_state::BundleId;
use petgraph::unionfind::UnionFind;

pub use file::{BundleGroup, GroupId, GroupIdError, Join, JoinRule, LanesFile, LanesFileError};

use crate::claims::Rivalry;
use crate::graph::Graph;
use crate::plan::Plan;
use crate::problem::PlanProblem;
use partition::{JoinCandidate, Partition};

impl Plan {
    /// Partitions the live bundles into groups, with a report of the reasons.
    ///
    /// Rivals share a group. Dependencies are edges between groups; groups that would wait for each
    /// other are joined.
    ///
    /// Bundles that shared a group in the previous file still do, under the same name. If two groups
    /// are joined, the one in which work has begun gives the name, or else the earlier one. If work
    /// has begun in both, they stay apart, and [`LanesFile::apart`] says so. Names are never reused.
    pub fn groups(&self, previous: Option<&LanesFile>) -> LanesFile {
        let partition = Partition::of(self, previous);
        let order = self.graph.order(&self.rank, &|bundle| partition.is_live(bundle));
        let first_new = previous.map_or(0, |file| file.next.index());
        let names = GroupNames::given(&partition, &order, first_new);
        let mut groups: Vec<BundleGroup> =
            names.in_use.iter().map(|name| BundleGroup::new(*name)).collect();
        for &bundle in &order {
            groups[names.place(&partition, bundle)].bundles.push(self.items[bundle].id.clone());
        }
        let links = self.graph.links();
        let edges: BTreeSet<(usize, usize)> = links
            .filter(|(a, b, _)| partition.is_live(*a) && partition.is_live(*b))
            .map(|(a, b, _)| (names.place(&partition, a), names.place(&partition, b)))
            .filter(|(a, b)| a != b)
            .collect();
        for &(before, after) in &edges {
            let before = groups[before].id.clone();
            groups[after].depends_on.push(before);
        }
        let mut at_depth = vec![0; groups.len()];
        for (group, depth) in groups.iter_mut().zip(depths(names.in_use.len(), &edges)) {
            group.depth = depth;
            at_depth[depth] += 1;
        }
        self.keep_left_alone(&mut groups, previous);
        let (collapse_report, apart) = self.report(&partition);
        LanesFile {
            schema: LanesFile::SCHEMA,
            digest: self.digest().to_owned(),
            depth: at_depth.iter().filter(|groups| **groups > 0).count(),
            width: at_depth.into_iter().max().unwrap_or(0),
            groups,
            collapse_report,
            apart,
            critical_path: self.critical_path().into_iter().cloned().collect(),
            next: GroupId::nth(names.next),
        }
    }

    /// Keeps the bundles that are left alone in their previous groups, after the others. They may come
    /// back, and work on them may have begun.
    fn keep_left_alone(&self, groups: &mut Vec<BundleGroup>, previous: Option<&LanesFile>) {
        let left: HashSet<&BundleId> = self.left.iter().map(PlanProblem::id).collect();
        for before in previous.iter().flat_map(|file| &file.groups) {
            let kept = before.bundles.iter().filter(|id| left.contains(id));
            let kept: Vec<BundleId> = kept.cloned().collect();
            match groups.iter_mut().find(|group| group.id == before.id) {
                _ if kept.is_empty() => {}
                Some(group) => group.bundles.extend(kept),
                None => groups
                    .push(BundleGroup { bundles: kept, ..BundleGroup::new(before.id.index()) }),
            }
        }
        groups.sort_by(|a, b| a.id.cmp(&b.id));
    }

    /// Returns one entry per join of two bundles, by the first rule that joined them, and one per pair
    /// of groups that should have been joined.
    fn report(&self, partition: &Partition<'_>) -> (Vec<Join>, Vec<Join>) {
        let mut known = UnionFind::<usize>::new(self.items.len());
        let mut said = HashSet::new();
        let (mut joined, mut apart) = (Vec::new(), Vec::new());
        for candidate in &partition.candidates {
            let (a, b) = candidate.bundles;
            let (of_a, of_b) = (partition.set(a), partition.set(b));
            if of_a != of_b {
                // Once for each pair of groups: two groups that overlap usually do so in many pairs
                // of bundles.
                if said.insert((of_a.min(of_b), of_a.max(of_b))) {
                    apart.push(self.join(candidate));
                }
            } else if known.union(a, b) {
                joined.push(self.join(candidate));
            }
        }
        (joined, apart)
    }

    fn join(&self, candidate: &JoinCandidate) -> Join {
        let (a, b) = candidate.bundles;
        let bundles = (self.items[a].id.clone(), self.items[b].id.clone());
        let (evidence, witness) = match candidate.rule {
            JoinRule::Conflict | JoinRule::Overlap => match self.claims.rivalry(a, b) {
                Some(Rivalry::Overlap { globs: (of_a, of_b), witness }) => {
                    (format!("`{of_a}` meets `{of_b}`"), Some(witness))
                }
                Some(Rivalry::Conflict { place }) => (format!("declared in {place}"), None),
                None => (String::new(), None),
            },
            JoinRule::Dependency => (self.dependency(a, b), None),
            JoinRule::Cycle => {
                (format!("{}, and their groups wait for each other", self.dependency(a, b)), None)
            }
            JoinRule::Surface => (self.common_surface(a, b), None),
            JoinRule::Previous => ("they shared a group before".to_owned(), None),
        };
        let merged_wps = vec![bundles.0.clone(), bundles.1.clone()];
        let reason = format!("{}: {evidence}", candidate.rule.as_str());
        Join { bundles, rule: candidate.rule, evidence, witness, merged_wps, reason }
    }

    fn common_surface(&self, a: usize, b: usize) -> String {
        let of_b = &self.items[b].surfaces;
        let common: Vec<&str> = self.items[a]
            .surfaces
            .iter()
            .filter(|one| of_b.contains(one))
            .map(|one| &**one)
            .collect();
        format!("both show on {}", common.join(", "))
    }

    fn dependency(&self, a: usize, b: usize) -> String {
        let place =
            |before, after| self.graph.edge(before, after).map(|tie| (before, after, &tie.place));
        match place(a, b).or_else(|| place(b, a)) {
            Some((before, after, place)) => {
                format!("{} depends on {} ({place})", self.items[after].id, self.items[before].id)
            }
            None => String::new(),
        }
    }
}

/// The names of the groups, as numbers.
struct GroupNames {
    /// The name of each set of bundles.
    of: HashMap<usize, usize>,
    /// All names, sorted; the index here is the index in the file.
    in_use: Vec<usize>,
    /// The first name that was never used.
    next: usize,
}

impl GroupNames {
    /// Keeps the name of each set that had one; the others get new names in start order.
    fn given(partition: &Partition<'_>, order: &[usize], first_new: usize) -> Self {
        let mut names = Self { of: HashMap::new(), in_use: Vec::new(), next: first_new };
        for bundle in order {
            let set = partition.set(*bundle);
            if names.of.contains_key(&set) {
                continue;
            }
            let name = partition.was(set).unwrap_or(names.next);
            names.next = names.next.max(name + 1);
            names.of.insert(set, name);
            names.in_use.push(name);
        }
        names.in_use.sort_unstable();
        names
    }

    fn place(&self, partition: &Partition<'_>, bundle: usize) -> usize {
        let name = self.of[&partition.set(bundle)];
        self.in_use.binary_search(&name).expect("a name that was given is in use")
    }
}

/// The length of the longest chain before each group. Groups that wait for each other, which happens
/// if begun work kept them apart, get the same depth.
fn depths(groups: usize, edges: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let all = Graph::new(groups, edges.iter().map(|(a, b)| (*a, *b, ())).collect());
    let mut tangle: Vec<usize> = (0..groups).collect();
    for group in all.cyclic_components() {
        for member in &group {
            tangle[*member] = group[0];
        }
    }
    let between = edges.iter().filter(|(a, b)| tangle[*a] != tangle[*b]);
    let graph = Graph::new(groups, between.map(|(a, b)| (tangle[*a], tangle[*b], ())).collect());
    let mut depths = vec![0; groups];
    for group in graph.order(&vec![0; groups], &|_| true) {
        depths[group] =
            graph.prerequisites(group).map(|before| depths[before] + 1).max().unwrap_or(0);
    }
    (0..groups).map(|group| depths[tangle[group]]).collect()
}
