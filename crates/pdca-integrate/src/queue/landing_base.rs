//! The base of a landing.

use crate::ObjectId;

use super::IntegrateError;
use super::landing_mode::BaseSearch;

/// The commit that changes are folded onto.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingBase {
    /// The local ref that holds it: a branch, or the last known tip of a remote's branch.
    pub reference: String,
    pub at: ObjectId,
}

impl LandingBase {
    /// Finds the base for new changes: the branch, or the staging branch if it is ahead of it.
    pub(crate) fn to_land_on(search: &BaseSearch<'_>) -> Result<Self, IntegrateError> {
        let mode = search.settings.land.mode();
        let found = mode.find(search)?;
        let at = mode.staged(search.branch).unwrap_or(found.at);
        Ok(Self { at, ..found })
    }
}
