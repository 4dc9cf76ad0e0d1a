//! How the values of `pdca-workspace` are said: one file per operation, a value in and text out.

pub(crate) mod act;
pub(crate) mod lanes;
pub(crate) mod new_bundle;
pub(crate) mod select;
