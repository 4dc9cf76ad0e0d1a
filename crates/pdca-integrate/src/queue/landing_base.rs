//! The commit that changes are put onto, and the ref that says where it is.

use crate::ObjectId;

use super::IntegrateError;
use super::landing_mode::BaseSearch;

/// The commit that changes are put onto.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingBase {
    /// The ref here that says where it is: a branch, or what a remote was last seen at.
    pub reference: String,
    /// Where it is.
    pub at: ObjectId,
}

impl LandingBase {
    /// Finds what new changes go onto: the branch, or what is staged on top of it already.
    pub(crate) fn to_land_on(search: &BaseSearch<'_>) -> Result<Self, IntegrateError> {
        let mode = search.settings.land.mode();
        let found = mode.find(search)?;
        let at = mode.staged(search.branch).unwrap_or(found.at);
        Ok(Self { at, ..found })
    }
}
