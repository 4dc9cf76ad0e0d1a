//! Conflicts of accepted changes with their branch: the resolver's attempts, and the use of a resolution.

pub(super) mod apply_resolution;
pub(super) mod resolve;
pub(super) mod resolver;
