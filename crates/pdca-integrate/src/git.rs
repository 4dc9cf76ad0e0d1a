//! Git operations on a target repository: objects, folds, seals and refs. No working tree is read or written.

pub(crate) mod attempt_refs;
pub(crate) mod command;
pub(crate) mod durable;
mod effect;
pub(crate) mod engine;
pub(crate) mod failure;
pub(crate) mod fence;
pub(crate) mod fold;
pub(crate) mod footprint;
pub(crate) mod land;
pub(crate) mod link;
pub(crate) mod name;
pub(crate) mod path;
pub(crate) mod presence;
pub(crate) mod rebuild;
pub(crate) mod seal;
pub(crate) mod seal_name;
pub(crate) mod store;
