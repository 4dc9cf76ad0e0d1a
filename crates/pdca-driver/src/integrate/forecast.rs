//! Forecasts of merge conflicts, with what is recorded about attempts.

use std::collections::BTreeSet;

use pdca_integrate::{
    BranchForecast, BuiltAttempt, Forecasting, PairForecast, Store, TargetBranchError,
};
use pdca_state::{Bundle, BundleId, Snapshot};

use crate::base::checked_change;
use crate::config::WorkspaceConfig;

/// Compares all pairs of every branch. Bundles that have landed or will not be built are left out.
pub fn forecast(
    config: &WorkspaceConfig,
    only: &BTreeSet<BundleId>,
) -> Result<Vec<BranchForecast>, TargetBranchError> {
    with_attempts(config, |cx| pdca_integrate::forecast(cx, only))
}

/// Like [`forecast`], but returns only pairs that were compared before, and asks git about none. No bundle of `only`
/// may have landed.
pub fn known_forecast(
    config: &WorkspaceConfig,
    only: &BTreeSet<BundleId>,
) -> Result<Vec<BranchForecast>, TargetBranchError> {
    with_attempts(config, |cx| pdca_integrate::known_forecast(cx, only))
}

/// Returns the pairs of a bundle that was just checked with other built ones.
pub fn forecast_of(
    config: &WorkspaceConfig,
    bundle: &BundleId,
) -> Result<Vec<PairForecast>, TargetBranchError> {
    with_attempts(config, |cx| pdca_integrate::forecast_of(cx, bundle))
}

fn with_attempts<T>(config: &WorkspaceConfig, forecast: impl FnOnce(Forecasting<'_>) -> T) -> T {
    let workspace = &config.queue();
    let attempt = &|store: &Store, bundle: &Bundle, snapshot: &Snapshot| {
        attempt(config, store, bundle, snapshot)
    };
    forecast(Forecasting { workspace, settings: &config.integrate, attempt })
}

fn attempt(
    config: &WorkspaceConfig,
    store: &Store,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> BuiltAttempt {
    let checked = checked_change(config, store, bundle, snapshot).ok().flatten();
    let head = checked.map(|(_, head, _)| head);
    let recorded = config.attempts().load(bundle.id()).ok().flatten();
    recorded.map_or(BuiltAttempt { head, ..BuiltAttempt::default() }, |known| BuiltAttempt {
        head,
        base: Some(known.base),
        stands_on: known.stands_on,
    })
}
