//! Predicts merge conflicts between pending changes.

use std::collections::BTreeSet;

use pdca_driver::integrate::BranchForecast;
use pdca_state::BundleId;
use serde::Serialize;

use super::IntegrationError;
use crate::{OpenWorkspace, OperationError};

/// The forecast of each branch.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForecastReport {
    pub forecasts: Vec<BranchForecast>,
}

/// Merges every pair of pending changes, of these bundles or of all, in the object store.
pub fn forecast(
    open: &OpenWorkspace<'_>,
    ids: &[BundleId],
) -> Result<ForecastReport, OperationError> {
    let bundles = open.workspace.require_bundles(ids)?;
    let only: BTreeSet<BundleId> = bundles.iter().map(|bundle| bundle.id().clone()).collect();
    let forecasts = pdca_driver::integrate::forecast(&open.driver_config()?, &only)
        .map_err(IntegrationError::from)?;
    Ok(ForecastReport { forecasts })
}
