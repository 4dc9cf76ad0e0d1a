//! The order of decisions.

use pdca_snapshot::{Entry, WorkspaceSnapshot};
use pdca_state::State;

/// Returns the bundles that wait for sign-off, cheapest first: those with the fewest open items, then by id.
pub fn waiting(snapshot: &WorkspaceSnapshot) -> Vec<&Entry> {
    let is_due = |entry: &&Entry| entry.state() == Some(State::AwaitingSignoff);
    let mut due: Vec<&Entry> = snapshot.entries.iter().filter(is_due).collect();
    let open = |entry: &Entry| entry.glance.as_ref().map_or(usize::MAX, |glance| glance.open_items);
    due.sort_by(|a, b| open(a).cmp(&open(b)).then_with(|| a.id.cmp(&b.id)));
    due
}
