//! Statistics about past integrations.

use pdca_driver::integrate::{IntegrationTally, Stats};
use serde::Serialize;

use crate::{OpenWorkspace, OperationError};

/// The cost of past integrations.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatsReport {
    pub stats: Stats,
    /// The record of each integration, oldest first.
    pub records: Vec<IntegrationTally>,
}

/// Returns the cost of past integrations: of all, or of those of a target (`NAME`) or branch (`NAME@BRANCH`).
///
/// Unreadable records are left out. A target without a record yields an empty report.
pub fn integration_stats(
    open: &OpenWorkspace<'_>,
    target: Option<&str>,
) -> Result<StatsReport, OperationError> {
    let mut records = IntegrationTally::all(&open.driver_config()?.queue());
    if let Some(wanted) = target {
        let is_it = |record: &IntegrationTally| {
            record.target == wanted || format!("{}@{}", record.target, record.branch) == wanted
        };
        records.retain(is_it);
    }
    Ok(StatsReport { stats: Stats::of(&records), records })
}
