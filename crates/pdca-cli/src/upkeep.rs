//! Keeps a workspace in order: its lanes, and what runs and integrations left.
//!
//! Each function is one operation. It returns a report with its exit code, or says why nothing was changed.
//!
//! # Invariants
//! - Nothing is removed that is in use, or that is neither in its target nor rescued.
//! - Lanes are reset and removed only while no driver runs: the locks are held for the whole operation. They are made
//!   and hydrated after one look for a driver, because that takes long; each is claimed while it is worked on.
//! - With `dry_run` nothing is changed, and the report names what would be.

pub(crate) mod abort;
pub(crate) mod cleanup;
pub(crate) mod hosts;
pub(crate) mod lanes;
pub(crate) mod recover;
pub(crate) mod runs;
pub(crate) mod unblock;

pub(crate) use abort::abort;
pub(crate) use cleanup::cleanup;
pub(crate) use recover::recover;
pub(crate) use unblock::unblock;
