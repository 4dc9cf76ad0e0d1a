//! How many cycles wait for a review of the process, and whether one is due.

use pdca_act::ActRecords;
use pdca_state::BundleId;
use serde::Serialize;

use crate::OperationError;
use crate::config::ActSettings;
use crate::config::workspace::Workspace;

/// The cycles that wait for a review of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActCadence {
    /// The cycles that ended since the last review.
    pub waiting: usize,
    /// A review is due by `every` or `weekly` of `[act]`.
    pub due: bool,
    /// The number of cycles after which one is due; null if it is never due by count.
    pub every: Option<u32>,
    pub weekly: bool,
    /// The date of the last review, as written; null if there was none.
    pub last_review: Option<String>,
}

/// Counts the ended cycles among `ended`, and those that lie in `completed/`, that no review has considered.
///
/// `today` is a date such as `2026-03-01`.
pub fn cadence<'a>(
    workspace: &Workspace,
    ended: impl Iterator<Item = &'a BundleId>,
    today: &str,
) -> Result<ActCadence, OperationError> {
    let records = ActRecords::load(&workspace.process_dir)?;
    let covered = records.covered();
    let waiting = ended.filter(|id| !covered.contains(*id)).count();
    let completed = workspace.bundle_root.list_completed()?;
    let completed = completed.iter().filter(|bundle| !covered.contains(bundle.id())).count();
    let last = records.log.last_review().map(str::to_owned);
    Ok(ActCadence::of(&workspace.config.act, waiting + completed, last, today))
}

impl ActCadence {
    fn of(settings: &ActSettings, waiting: usize, last: Option<String>, today: &str) -> Self {
        let every = Some(settings.every).filter(|every| *every > 0);
        let by_count = every.is_some_and(|every| waiting >= every as usize);
        // A date that cannot be read counts as none: an early review costs little.
        let age = last.as_deref().and_then(|last| days_between(last, today));
        let by_week = settings.weekly && waiting > 0 && age.is_none_or(|days| days >= 7);
        let due = by_count || by_week;
        Self { waiting, due, every, weekly: settings.weekly, last_review: last }
    }
}

/// Returns the days between two dates; `None` if one cannot be read.
fn days_between(earlier: &str, later: &str) -> Option<i64> {
    let date = |text: &str| text.get(..10)?.parse::<jiff::civil::Date>().ok();
    let span = date(earlier)?.until(date(later)?).ok()?;
    Some(i64::from(span.get_days()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(every: u32, weekly: bool, waiting: usize, last: Option<&str>) -> bool {
        let settings = ActSettings { every, weekly, rules: Vec::new() };
        ActCadence::of(&settings, waiting, last.map(str::to_owned), "2026-03-10").due
    }

    #[test]
    fn a_review_is_due_by_count_or_by_week_and_never_without_a_cycle() {
        assert!(!due(3, false, 2, None) && due(3, false, 3, Some("2026-03-09")));
        assert!(!due(0, false, 1000, None));
        assert!(due(0, true, 1, None) && due(0, true, 1, Some("2026-03-03")));
        assert!(!due(0, true, 1, Some("2026-03-04")) && !due(0, true, 0, Some("2020-01-01")));
        assert!(due(0, true, 1, Some("some day")), "a date that cannot be read counts as none");
    }
}
