//! Keeps a workspace in order: its lanes, and what runs and integrations left.
//!
//! Each function is one operation. It returns a report with its exit code, or says why nothing was changed:
//!
//! ```no_run
//! # fn main() -> Result<(), pdca_front::failure::Failure> {
//! use pdca_front::ProcessEnv;
//! use pdca_front::context::{Context, Globals};
//!
//! let env = ProcessEnv::read()?;
//! let cx = Context::new(&env, Globals { dry_run: true, ..Globals::default() });
//! let response = pdca_upkeep::sweep(Some(14), None, &cx)?;
//! println!("exit code {}", response.exit.code());
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//! - Nothing is removed that is in use, or that is neither in its target nor rescued.
//! - Lanes are reset and removed only while no driver runs: the locks are held for the whole operation. They are made
//!   and hydrated after one look for a driver, because that takes long; each is claimed while it is worked on.
//! - With `dry_run` nothing is changed, and the report names what would be.

mod abort;
mod cleanup;
pub mod hosts;
pub mod lanes;
mod recover;
pub mod runs;
mod sweep;
mod unblock;

pub use abort::{AbortReport, abort};
pub use cleanup::{CleanupReport, cleanup};
pub use recover::{RecoverReport, recover};
pub use sweep::{SweepReport, sweep};
pub use unblock::{UnblockReport, unblock};

use pdca_front::{
    context, exit, explain, failure, faults, json, process_env, report, session, style, words,
    workspace,
};
