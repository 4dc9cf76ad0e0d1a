//! Opens a workspace, reads it, and decides what comes next.
//!
//! - [`config`] loads the configuration of a workspace in five layers.
//! - [`snapshot`] is one reading of its bundles, runs, lanes, queue and accepted changes.
//! - [`issue`] is one bundle in full, all in a list, and those that wait for a sign-off.
//! - [`review`] is one decision about one bundle: its evidence, its value, and its record.
//! - [`drafts`] creates bundles to be planned: one by its id, or a batch from an export of the tracker.
//! - [`act`] looks back at finished cycles and records reviews of the process.
//! - [`publish`] brings accepted changes to a forge and a tracker.
//! - [`batch_report`] is the record of a batch as a value, which pages and files are made of.
//! - [`lanes`] makes, lists, checks, resets, removes and sweeps the private checkouts.
//! - [`doctor`] examines host and workspace.
//! - [`hosts`] lists, checks, adds and cleans up other machines.
//! - [`logs`] reads what leaves and gates printed, and the recorded events of runs.
//! - [`recovery`] recovers, aborts and unblocks runs, and [`cleanup`] removes what they left.
//! - [`planning`] plans a batch, keeps its groups, and changes the declarations of a brief.
//! - [`integration`] predicts conflicts and re-verifies certificates.
//! - [`flow`] derives the next steps of a day of work from the facts of the files.
//!
//! Each operation of the command line is a function that takes an [`OpenWorkspace`] and a request, and returns a value or an
//! [`OperationError`]; rendering is for the caller.
//!
//! # Invariants
//! - Nothing is printed, and neither the environment nor the wall clock is read.
//! - A key that is not known is an error, and each value of a configuration has its origin.
//! - No step of a person happens without a person: a flow takes none without a terminal, and a decision is a value that the
//!   caller passes in.

pub mod act;
pub mod batch_report;
pub mod cleanup;
pub mod config;
pub mod doctor;
pub mod drafts;
mod error;
pub mod flow;
pub mod hosts;
pub mod integration;
pub mod issue;
pub mod lanes;
pub mod logs;
mod open;
pub mod planning;
pub mod publish;
pub mod recovery;
pub mod review;
pub mod snapshot;

pub use error::OperationError;
pub use open::OpenWorkspace;
