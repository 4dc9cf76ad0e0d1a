//! Groups of changes that can land together.
//!
//! Changes are the nodes of a graph whose edges are conflicts. A set of changes can land together if it has no
//! edge. A change brings what it needs, so it also has the conflicts of those. The largest set is found exactly
//! if that takes few steps, and otherwise approximately.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::queue::search::closure;

/// The maximum number of steps of the exact search; one choice among n changes counts as n² steps.
const MOST_STEPS: usize = 2_000_000;

/// Changes in groups, by place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Grouping {
    /// Every change once. The changes of a group merge with each other and are ordered so that each comes after
    /// what it needs. The first group is the largest that can land; each further one is the largest of the
    /// rest. A change that needs two conflicting ones is in a group of its own at the end.
    pub groups: Vec<Vec<usize>>,
    /// The changes that conflict directly or through others, of which only some can land.
    pub clusters: Vec<Cluster>,
}

/// Changes that are connected by conflicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cluster {
    pub places: Vec<usize>,
    /// Those of them in the first group.
    pub lands: Vec<usize>,
}

impl Grouping {
    /// Groups the changes. `needs` has, for each change, the places that it needs; `conflicts` are pairs of places.
    pub fn new(needs: &[Vec<usize>], conflicts: &[(usize, usize)]) -> Self {
        let count = needs.len();
        let known = |place: usize| closure(needs, [place]).into_iter().filter(|need| *need < count);
        let closures: Vec<BTreeSet<usize>> =
            (0..count).map(|place| known(place).collect()).collect();
        let mut direct = vec![BTreeSet::new(); count];
        for (one, other) in conflicts.iter().filter(|(one, other)| *one.max(other) < count) {
            // A change contains what it stands on; they were merged when it was built.
            if !closures[*one].contains(other) && !closures[*other].contains(one) {
                direct[*one].insert(*other);
                direct[*other].insert(*one);
            }
        }
        let rivals: Vec<BTreeSet<usize>> = (0..count)
            .map(|place| {
                let own = &closures[place];
                let met: BTreeSet<usize> =
                    own.iter().flat_map(|own| &direct[*own]).copied().collect();
                let meets = |other: &usize| {
                    !own.contains(other)
                        && !closures[*other].contains(&place)
                        && closures[*other]
                            .iter()
                            .any(|part| met.contains(part) && !own.contains(part))
                };
                (0..count).filter(meets).collect()
            })
            .collect();
        // A change that needs two conflicting ones merges with nothing until one of them was built again.
        let torn = |place: &usize| {
            let own = &closures[*place];
            own.iter().any(|part| !own.is_disjoint(&direct[*part]))
        };
        let (alone, mut left): (BTreeSet<usize>, BTreeSet<usize>) = (0..count).partition(torn);
        let mut groups: Vec<Vec<usize>> = Vec::new();
        // Each pass takes at least one change, because every component of conflicts has a set without an edge.
        while !left.is_empty() {
            let mut group = BTreeSet::new();
            // Components do not conflict with each other, so the largest sets of each make the largest set of
            // all.
            for part in components(&left, &rivals) {
                // Only the first group is shown as what can land, so only it is worth an exact search.
                let mut choices =
                    if groups.is_empty() { MOST_STEPS / part.len().pow(2) } else { 0 };
                group.extend(largest(part, &rivals, &mut choices));
            }
            left.retain(|place| !group.contains(place));
            groups.push(in_order(&group, &closures));
        }
        groups.extend(in_order(&alone, &closures).into_iter().map(|place| vec![place]));
        let first: BTreeSet<usize> = groups.first().into_iter().flatten().copied().collect();
        let all: BTreeSet<usize> = (0..count).collect();
        let clusters = components(&all, &direct)
            .into_iter()
            .filter(|part| part.len() > 1)
            .map(|part| Cluster {
                lands: part.intersection(&first).copied().collect(),
                places: part.into_iter().collect(),
            })
            .collect();
        Self { groups, clusters }
    }
}

/// Returns the connected components of the graph on these places.
fn components(among: &BTreeSet<usize>, edges: &[BTreeSet<usize>]) -> Vec<BTreeSet<usize>> {
    let (mut left, mut found) = (among.clone(), Vec::new());
    while let Some(first) = left.pop_first() {
        let (mut part, mut open) = (BTreeSet::from([first]), vec![first]);
        while let Some(place) = open.pop() {
            for other in edges[place].iter().filter(|other| left.remove(other)) {
                part.insert(*other);
                open.push(*other);
            }
        }
        found.push(part);
    }
    found
}

/// Returns the largest set of these places without an edge, exactly while `choices` last.
fn largest(
    mut left: BTreeSet<usize>,
    edges: &[BTreeSet<usize>],
    choices: &mut usize,
) -> BTreeSet<usize> {
    let mut taken = BTreeSet::new();
    loop {
        let degree = |place: &usize| edges[*place].intersection(&left).count();
        let Some((fewest, place)) = left.iter().map(|place| (degree(place), *place)).min() else {
            return taken;
        };
        // Some largest set contains a place with at most one rival, and any place if all are rivals of each
        // other. Without choices left, the place with the fewest rivals is a good guess.
        if fewest <= 1 || fewest + 1 == left.len() || *choices == 0 {
            taken.insert(place);
            left.remove(&place);
            left.retain(|other| !edges[place].contains(other));
            continue;
        }
        *choices -= 1;
        let most = left.iter().map(|place| (degree(place), *place)).max();
        let (_, most) = most.expect("because it has a place with the fewest rivals");
        left.remove(&most);
        let apart: BTreeSet<usize> =
            left.iter().filter(|other| !edges[most].contains(other)).copied().collect();
        let mut with = largest(apart, edges, choices);
        with.insert(most);
        let without = largest(left, edges, choices);
        // On a tie the change with the most rivals is left out.
        taken.extend(if without.len() >= with.len() { without } else { with });
        return taken;
    }
}

/// Returns the places of a group, each after what it needs.
fn in_order(group: &BTreeSet<usize>, closures: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut order: Vec<usize> = group.iter().copied().collect();
    // A change has a larger closure than anything that it needs.
    order.sort_by_key(|place| (closures[*place].len() > 1, closures[*place].len(), *place));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn groups(count: usize, conflicts: &[(usize, usize)]) -> Grouping {
        Grouping::new(&vec![Vec::new(); count], conflicts)
    }

    #[test]
    fn of_those_that_all_conflict_one_lands_and_the_rest_lands_too() {
        let found = groups(5, &[(0, 1), (0, 2), (1, 2)]);
        assert_eq!(found.groups[0].len(), 3);
        assert_eq!(found.groups.len(), 3, "each of the three is in a group of its own");
        assert_eq!(found.clusters.len(), 1);
        assert_eq!(
            (&found.clusters[0].places[..], found.clusters[0].lands.len()),
            (&[0, 1, 2][..], 1)
        );
    }

    #[test]
    fn the_one_that_stands_in_the_way_of_many_is_left_out() {
        let found = groups(4, &[(0, 1), (0, 2), (0, 3)]);
        assert_eq!(found.groups, [vec![1, 2, 3], vec![0]]);
        assert_eq!(found.clusters[0].lands, [1, 2, 3]);
    }

    #[test]
    fn a_change_conflicts_with_what_its_prerequisite_conflicts_with_and_comes_after_it() {
        // 0 needs 2; 1 conflicts with 2.
        let needs = [vec![2], vec![], vec![]];
        let found = Grouping::new(&needs, &[(1, 2)]);
        assert_eq!(found.groups, [vec![2, 0], vec![1]]);
    }

    #[test]
    fn a_change_that_needs_two_that_conflict_comes_last_and_alone() {
        // 2 needs 0 and 1, which conflict; 3 needs 2.
        let needs = [vec![], vec![], vec![0, 1], vec![2], vec![]];
        let found = Grouping::new(&needs, &[(0, 1)]);
        assert_eq!(found.groups, [vec![0, 4], vec![1], vec![2], vec![3]]);
    }

    #[test]
    fn a_conflict_with_what_a_change_stands_on_is_none() {
        let found = Grouping::new(&[vec![], vec![0]], &[(0, 1)]);
        assert_eq!(found.groups, [vec![0, 1]]);
        assert_eq!(found.clusters, []);
    }

    #[test]
    fn two_hundred_that_all_conflict_are_grouped_at_once() {
        let all: Vec<(usize, usize)> =
            (0..200).flat_map(|one| (one + 1..200).map(move |other| (one, other))).collect();
        let found = groups(200, &all);
        assert_eq!((found.groups[0].len(), found.groups.len()), (1, 200));
        assert_eq!(found.clusters.len(), 1);
    }

    /// Returns the size of the largest set that is closed under needs and has no conflict, by trying all sets.
    fn most(needs: &[Vec<usize>], conflicts: &[(usize, usize)]) -> usize {
        let count = needs.len();
        let is_in = |set: u32, place: usize| set >> place & 1 == 1;
        let may = |set: &u32| {
            (0..count).all(|place| {
                !is_in(*set, place) || needs[place].iter().all(|need| is_in(*set, *need))
            }) && !conflicts.iter().any(|(one, other)| is_in(*set, *one) && is_in(*set, *other))
        };
        (0..1_u32 << count).filter(may).map(|set| set.count_ones() as usize).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn the_first_group_is_the_largest_that_brute_force_finds(
            count in 1..9_usize,
            edges in prop::collection::vec((0..9_usize, 0..9_usize), 0..14),
            needed in prop::collection::vec((0..9_usize, 0..9_usize), 0..4),
        ) {
            let mut needs = vec![Vec::new(); count];
            for (one, other) in needed {
                if one < count && other < one {
                    needs[one].push(other);
                }
            }
            // A change contains what it needs and does not conflict with it.
            let related = |one: usize, other: usize| {
                closure(&needs, [one]).contains(&other) || closure(&needs, [other]).contains(&one)
            };
            let edges: Vec<(usize, usize)> = edges
                .into_iter()
                .filter(|(one, other)| one != other && *one.max(other) < count && !related(*one, *other))
                .collect();
            let found = Grouping::new(&needs, &edges);
            let mut all: Vec<usize> = found.groups.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..count).collect::<Vec<_>>());
            let first = &found.groups[0];
            for (at, place) in first.iter().enumerate() {
                prop_assert!(needs[*place].iter().all(|need| first[..at].contains(need)));
                prop_assert!(!edges.iter().any(|(one, other)| first.contains(one) && first.contains(other)));
            }
            prop_assert_eq!(first.len(), most(&needs, &edges));
        }
    }
}
