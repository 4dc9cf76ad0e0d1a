//! Where work runs: jobs and results as values, and the trait that executors implement.
//!
//! The driver decides what to do; an [`Executor`] does it. A job is either a *band*, which is Do and Check of one
//! bundle at one generation, or the gates over one combination. Sign-off, sealing, summaries and integration stay
//! with the driver.
//!
//! A [`Job`] holds all of the configuration that decides its [`JobResult`]; the executor provides the machine, the
//! repositories and the bundle's files. The local executor, which works in lanes, is in `pdca-driver`.
//!
//! ```
//! use pdca_exec::{Executor, Job, JobContext, JobError, JobName, JobOutcome, JobResult, Terms, Work};
//! use pdca_state::GateReport;
//!
//! /// Passes every combination, for a dry run.
//! struct AlwaysGreen;
//!
//! impl Executor for AlwaysGreen {
//!     fn execute(&self, job: &Job, cx: &JobContext<'_>) -> Result<JobResult, JobError> {
//!         if cx.cancel.is_cancelled() {
//!             return Err(JobError::Interrupted);
//!         }
//!         let report = GateReport::for_close("combined".to_owned());
//!         Ok(JobResult { name: job.name.clone(), outcome: JobOutcome::Gated { report } })
//!     }
//! }
//!
//! let name: JobName = "pdca-01JD-tree+4b825dc6-g1".parse()?;
//! let tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904".to_owned();
//! let work = Work::Combination {
//!     target: "app".to_owned(),
//!     branch: "main".to_owned(),
//!     commit: "1f".repeat(20),
//!     tree,
//! };
//! let job = Job { name: name.clone(), work, terms: Terms::default() };
//! let sent = serde_json::to_string(&job)?;
//! let arrived: Job = serde_json::from_str(&sent)?;
//! let cancel = pdca_process::Cancel::new();
//! let result = AlwaysGreen.execute(&arrived, &JobContext::new(&cancel))?;
//! assert!(result.counted_under(&name).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - Jobs and results are values: they can be serialized, sent and read back without loss.
//! - What arrives is validated like configuration that a person wrote.
//! - A result counts only under the name that was requested. A name contains a generation, so a late result of an
//!   abandoned attempt is refused.
//! - A job contains no credential.

mod executor;
mod job;
mod name;
mod result;
mod terms;

pub use executor::{Executor, JobContext, JobError};
pub use job::{Job, Work};
pub use name::{JobName, JobNameError};
pub use result::{BandEnd, JobOutcome, JobResult, StaleResult};
pub use terms::{IterateFrom, RunLimits, Terms};
