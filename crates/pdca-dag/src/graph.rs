//! The dependency graph of a batch.
//!
//! The node of a bundle is its index in name order. Nothing here recurses along edges, so a chain may
//! be as long as memory allows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use petgraph::Direction::{Incoming, Outgoing};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use pdca_state::Awaits;

use crate::item::SourceLocation;

/// An edge label: the location of the declaration, and the progress that the prerequisite must have.
#[derive(Debug, Clone)]
pub(crate) struct Tie {
    pub(crate) place: SourceLocation,
    pub(crate) awaits: Awaits,
}

/// A directed graph with edges from each prerequisite to its dependants.
#[derive(Debug, Clone, Default)]
pub(crate) struct Graph<W = Tie> {
    graph: DiGraph<(), W>,
}

/// One edge: prerequisite, dependant, label.
pub(crate) type Link<'g, W = Tie> = (usize, usize, &'g W);

impl<W> Graph<W> {
    pub(crate) fn new(nodes: usize, edges: Vec<(usize, usize, W)>) -> Self {
        let mut graph = DiGraph::with_capacity(nodes, edges.len());
        for _ in 0..nodes {
            graph.add_node(());
        }
        for (prerequisite, dependant, place) in edges {
            graph.add_edge(NodeIndex::new(prerequisite), NodeIndex::new(dependant), place);
        }
        Self { graph }
    }

    pub(crate) fn len(&self) -> usize {
        self.graph.node_count()
    }

    pub(crate) fn prerequisites(&self, node: usize) -> impl Iterator<Item = usize> {
        self.graph.neighbors_directed(NodeIndex::new(node), Incoming).map(NodeIndex::index)
    }

    pub(crate) fn dependants(&self, node: usize) -> impl Iterator<Item = usize> {
        self.graph.neighbors_directed(NodeIndex::new(node), Outgoing).map(NodeIndex::index)
    }

    pub(crate) fn before(&self, node: usize) -> impl Iterator<Item = (usize, &W)> {
        let edges = self.graph.edges_directed(NodeIndex::new(node), Incoming);
        edges.map(|edge| (edge.source().index(), edge.weight()))
    }

    pub(crate) fn after(&self, node: usize) -> impl Iterator<Item = (usize, &W)> {
        let edges = self.graph.edges_directed(NodeIndex::new(node), Outgoing);
        edges.map(|edge| (edge.target().index(), edge.weight()))
    }

    /// All edges in the order of declaration.
    pub(crate) fn links(&self) -> impl Iterator<Item = Link<'_, W>> {
        let links = self.graph.edge_references();
        links.map(|edge| (edge.source().index(), edge.target().index(), edge.weight()))
    }

    pub(crate) fn edge(&self, prerequisite: usize, dependant: usize) -> Option<&W> {
        let edge = self.graph.find_edge(NodeIndex::new(prerequisite), NodeIndex::new(dependant))?;
        self.graph.edge_weight(edge)
    }

    /// The strongly connected components with more than one node, each sorted.
    pub(crate) fn cyclic_components(&self) -> Vec<Vec<usize>> {
        let mut cyclic_components: Vec<Vec<usize>> = kosaraju_scc(&self.graph)
            .into_iter()
            .filter(|nodes| nodes.len() > 1)
            .map(|nodes| nodes.into_iter().map(NodeIndex::index).collect())
            .collect();
        for nodes in &mut cyclic_components {
            nodes.sort_unstable();
        }
        cyclic_components.sort_unstable();
        cyclic_components
    }

    /// A shortest cycle through the first node of a strongly connected component, as the edges from
    /// each dependant to the prerequisite that it waits for.
    pub(crate) fn shortest_cycle(&self, tangle: &[usize]) -> Vec<Link<'_, W>> {
        let start = tangle[0];
        let mut towards: Vec<Option<usize>> = vec![None; self.len()];
        let mut todo = VecDeque::from([start]);
        // Breadth-first along dependants until the start is reached again.
        while let Some(node) = todo.pop_front() {
            for next in self.dependants(node).filter(|next| tangle.binary_search(next).is_ok()) {
                if towards[next].is_none() {
                    towards[next] = Some(node);
                    todo.push_back(next);
                }
            }
            if towards[start].is_some() {
                break;
            }
        }
        let mut links = Vec::new();
        let mut node = start;
        while let Some(prerequisite) = towards[node] {
            let edge = self.edge(prerequisite, node).expect("the walk followed edges");
            links.push((prerequisite, node, edge));
            node = prerequisite;
            if node == start {
                break;
            }
        }
        links
    }

    /// Topological order of the nodes that `counts` accepts. Among free nodes, the greatest rank comes
    /// first, then the first name. Edges from other nodes are ignored.
    ///
    /// Nodes on a cycle, and their dependants, are left out.
    pub(crate) fn order(&self, rank: &[u64], counts: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let prerequisites = |node| self.prerequisites(node).filter(|before| counts(*before));
        let mut unmet: Vec<usize> = (0..self.len()).map(|n| prerequisites(n).count()).collect();
        let turn = |node: usize| (rank[node], Reverse(node));
        let free = (0..self.len()).filter(|node| unmet[*node] == 0 && counts(*node));
        let mut free: BinaryHeap<(u64, Reverse<usize>)> = free.map(turn).collect();
        let mut order = Vec::with_capacity(self.len());
        while let Some((_, Reverse(node))) = free.pop() {
            order.push(node);
            for dependant in self.dependants(node).filter(|after| counts(*after)) {
                unmet[dependant] -= 1;
                if unmet[dependant] == 0 {
                    free.push(turn(dependant));
                }
            }
        }
        order
    }

    /// For each node, the weight of the heaviest chain that starts with it. A node of weight 0 ends a
    /// chain: no work is left there that others could wait for.
    pub(crate) fn remaining(&self, weight: &[u64]) -> Vec<u64> {
        let mut rank = weight.to_vec();
        for node in self.order(&vec![0; self.len()], &|_| true).into_iter().rev() {
            if weight[node] > 0 {
                let after = self.dependants(node).map(|dependant| rank[dependant]).max();
                rank[node] = weight[node].saturating_add(after.unwrap_or(0));
            }
        }
        rank
    }
}
