//! Makes several bundles of one.

use pdca_driver::{Effects, Split, SplitBy, SplitError, SplitInto, split_bundle, would_split};
use pdca_state::BundleId;
use serde::Serialize;

use super::PlanningError;
use crate::{OpenWorkspace, OperationError};

/// A request to split a bundle.
#[derive(Debug, Clone, Copy)]
pub struct SplitRequest<'a> {
    pub id: &'a BundleId,
    pub into: &'a SplitInto,
    /// The person who decided, and the date. A dry run needs none.
    pub by: SplitBy<'a>,
}

/// The new bundles, actual or predicted.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SplitReport {
    pub dry_run: bool,
    pub id: BundleId,
    #[serde(flatten)]
    pub split: Split,
}

/// Splits a bundle into several.
pub fn split(
    open: &OpenWorkspace<'_>,
    request: &SplitRequest<'_>,
    effects: &dyn Effects,
) -> Result<SplitReport, OperationError> {
    let bundle = open.workspace.require_bundle(request.id)?;
    if let SplitInto::Names(names) = request.into {
        require_names(names)?;
    }
    let config = open.driver_config()?;
    let refused =
        |source: SplitError| PlanningError::Split { bundle: Box::new(bundle.clone()), source };
    let split = if open.dry_run {
        would_split(&config, &bundle, request.into).map_err(refused)?
    } else {
        let _taken = config.locks().take(bundle.id())?;
        split_bundle(&config, &bundle, request.into, request.by, effects).map_err(refused)?
    };
    Ok(SplitReport { dry_run: open.dry_run, id: bundle.id().clone(), split })
}

/// Checks the names of new bundles like those of parts.
fn require_names(names: &[String]) -> Result<(), PlanningError> {
    for (at, name) in names.iter().enumerate() {
        let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_name = !name.is_empty() && name.len() <= 40 && name.chars().all(is_legal);
        if !is_name || name.starts_with('-') || names[..at].contains(name) {
            return Err(PlanningError::PartName { name: name.clone() });
        }
    }
    Ok(())
}
