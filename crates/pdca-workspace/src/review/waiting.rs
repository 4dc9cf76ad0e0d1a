//! The order of decisions.

use crate::snapshot::{SnapshotEntry, WorkspaceSnapshot};
use pdca_state::{Overall, State};

/// Returns the bundles that wait for sign-off, cheapest first: red ones last, those with the fewest open items
/// first, then by id.
pub fn waiting(snapshot: &WorkspaceSnapshot) -> Vec<&SnapshotEntry> {
    let is_due = |entry: &&SnapshotEntry| entry.state() == Some(State::AwaitingSignoff);
    let mut due: Vec<&SnapshotEntry> = snapshot.entries.iter().filter(is_due).collect();
    let effort = |entry: &SnapshotEntry| {
        let glance = entry.glance.as_ref().ok();
        let is_red = glance.is_some_and(|glance| glance.overall == Some(Overall::Fail));
        (is_red, glance.map_or(usize::MAX, |glance| glance.open_items))
    };
    due.sort_by(|a, b| effort(a).cmp(&effort(b)).then_with(|| a.id.cmp(&b.id)));
    due
}
