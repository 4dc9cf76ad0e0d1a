//! The issues that wait for a sign-off, cheapest first.

use pdca_state::{Bundle, BundleId, Coverage, LoadError, Overall, Snapshot, State};
use serde::Serialize;

use crate::review::waiting;
use crate::{OpenWorkspace, OperationError};

/// The bundles that wait for a sign-off, cheapest first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReviewQueue {
    pub items: Vec<QueuedIssue>,
}

/// One bundle that waits for a sign-off.
#[expect(clippy::struct_excessive_bools, reason = "each is a documented field of the JSON")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueuedIssue {
    pub id: BundleId,
    /// Nothing is open and no gating check is red, so one look is enough.
    pub cheap: bool,
    /// The number of open decisions, the standing question included.
    pub needs_human: usize,
    pub disposition: Option<String>,
    pub overall: Option<Overall>,
    /// 1 if the standing question is open.
    pub standing: usize,
    /// It closes without a change.
    pub closes: bool,
    pub patch_changed: bool,
    /// The brief was edited after Check.
    pub brief_changed: bool,
    pub open_items: Vec<String>,
    pub slug: Option<String>,
    /// The bundles that its change conflicts with.
    pub forecast_conflicts: Vec<BundleId>,
}

/// Lists the bundles that wait for a sign-off: red ones last, then by open items, then by id.
pub fn review_queue(open: &OpenWorkspace<'_>) -> Result<ReviewQueue, OperationError> {
    let snapshot = open.snapshot_at_work()?;
    // `status` reports a bundle that became unreadable since the survey.
    let read = |entry: &crate::snapshot::SnapshotEntry| {
        let conflicts = snapshot.landing.conflicts(&entry.id).to_vec();
        QueuedIssue::load(&Bundle::at(&*entry.dir).ok()?, conflicts).ok().flatten()
    };
    Ok(ReviewQueue { items: waiting(&snapshot).into_iter().filter_map(read).collect() })
}

impl QueuedIssue {
    /// Reads a bundle; `None` if it does not wait for a sign-off.
    fn load(bundle: &Bundle, conflicts: Vec<BundleId>) -> Result<Option<Self>, LoadError> {
        let snapshot = bundle.load()?;
        let coverage = snapshot.coverage()?;
        let brief_changed = snapshot.is_brief_edited()?;
        let Snapshot { id, summary, gates, brief, close_disposition, state, .. } = snapshot;
        if state != State::AwaitingSignoff {
            return Ok(None);
        }
        let summary = summary.unwrap_or_default();
        let needs_human = summary.open_items().len();
        let overall = gates.map(|gates| gates.overall);
        let hint = brief.as_ref().and_then(|brief| brief.disposition_hint()).map(str::to_owned);
        Ok(Some(Self {
            id,
            cheap: needs_human == 0 && overall != Some(Overall::Fail),
            needs_human,
            closes: close_disposition.is_some(),
            disposition: close_disposition
                .and_then(|text| text.lines().next().map(str::to_owned))
                .or(hint),
            overall,
            standing: summary.open_standing(),
            patch_changed: coverage == Coverage::Changed,
            brief_changed,
            open_items: summary.open_texts(),
            slug: brief.and_then(|brief| brief.slug()),
            forecast_conflicts: conflicts,
        }))
    }
}
