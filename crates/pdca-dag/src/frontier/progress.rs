//! Progress: how far each bundle has come, and how many prerequisites each one still waits for.

use pdca_state::Awaits;

use crate::graph::{Graph, Tie};
use crate::item::Item;

/// The progress of all bundles, compared with what their dependants wait for.
///
/// For each bundle, `unmet` is the number of prerequisites whose progress is below what it awaits.
#[derive(Debug, Clone)]
pub(super) struct FrontierProgress<'p> {
    graph: &'p Graph,
    /// An edge, prerequisite first, that a simulation ignores.
    waived: Option<(usize, usize)>,
    reached: Vec<Option<Awaits>>,
    unmet: Vec<usize>,
}

impl<'p> FrontierProgress<'p> {
    pub(super) fn new(items: &[Item], graph: &'p Graph, waived: Option<(usize, usize)>) -> Self {
        let reached: Vec<_> = items.iter().map(|item| item.standing.reached()).collect();
        let mut progress = Self { graph, waived, reached, unmet: Vec::new() };
        let unmet = |bundle| {
            let unmet = progress.unmet(bundle);
            unmet.into_iter().filter(|(before, _)| waived != Some((*before, bundle))).count()
        };
        progress.unmet = (0..items.len()).map(unmet).collect();
        progress
    }

    pub(super) fn of(&self, bundle: usize) -> Option<Awaits> {
        self.reached[bundle]
    }

    /// Returns true if no prerequisite is awaited any more.
    pub(super) fn is_met(&self, bundle: usize) -> bool {
        self.unmet[bundle] == 0
    }

    /// Returns the prerequisites that a bundle waits for, in name order; a waived one as well.
    pub(super) fn unmet(&self, bundle: usize) -> Vec<(usize, &'p Tie)> {
        let mut unmet: Vec<_> = self.graph.before(bundle).collect();
        // `None` is less than any `Some`: a bundle that has come nowhere satisfies nothing.
        unmet.retain(|(before, tie)| self.reached[*before] < Some(tie.awaits));
        unmet.sort_unstable_by_key(|(before, _)| *before);
        unmet
    }

    /// Raises the progress of a bundle. Returns the dependants that waited for it, or `None` if the bundle
    /// had come that far before.
    pub(super) fn raise(&mut self, bundle: usize, level: Awaits) -> Option<Vec<usize>> {
        let before = self.reached[bundle];
        if before >= Some(level) {
            return None;
        }
        self.reached[bundle] = Some(level);
        let released = self.dependants_between(bundle, before, Some(level));
        for &dependant in &released {
            self.unmet[dependant] -= 1;
        }
        Some(released)
    }

    /// Resets the progress of a bundle. Returns the dependants that wait for it again.
    pub(super) fn reset(&mut self, bundle: usize) -> Vec<usize> {
        let before = self.reached[bundle].take();
        let waiting = self.dependants_between(bundle, None, before);
        for &dependant in &waiting {
            self.unmet[dependant] += 1;
        }
        waiting
    }

    /// The dependants that the progress `to` satisfies and the progress `from` does not.
    fn dependants_between(
        &self,
        bundle: usize,
        from: Option<Awaits>,
        to: Option<Awaits>,
    ) -> Vec<usize> {
        let after = self.graph.after(bundle);
        after
            .filter(|(_, tie)| from < Some(tie.awaits) && Some(tie.awaits) <= to)
            .filter(|(after, _)| self.waived != Some((bundle, *after)))
            .map(|(after, _)| after)
            .collect()
    }
}
