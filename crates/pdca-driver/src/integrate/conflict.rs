//! Conflicts of accepted changes with their branch: state, attempts, sides, and what is done with a resolution.

pub(super) mod apply_resolution;
pub(super) mod attempts;
pub(super) mod resolve;
pub(super) mod resolver;
pub(super) mod sides;
pub(super) mod state;
