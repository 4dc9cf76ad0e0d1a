//! Deterministic gates: the exit status of a command decides whether a change passes.
//!
//! A check is a command of the project. [`GatesConfig`] holds the checks as they are written in `pdca.toml`.
//! [`GatesConfig::checks`] validates them into [`Checks`] or returns every problem. [`run_checks`] runs them in a
//! [`GateContext`] and returns the report that becomes `check-gates.json`. The driver, `pdca gates --working-tree` and
//! the combined gate all use this code, so the same change gets the same result everywhere.
//!
//! ```
//! use camino::Utf8Path;
//! use pdca_gates::{GateContext, GatesConfig, Purpose, Warning, run_checks};
//! use pdca_process::Cancel;
//! use pdca_state::Overall;
//!
//! let config: GatesConfig = toml::from_str(
//!     "checks = [{ id = 'C4-verify', tier = 'C44', cmd = './verify.sh' }]",
//! )?;
//! let problem = &config.validate()[0];
//! assert_eq!((problem.row, problem.key, problem.suggestion()), (Some(0), "tier", Some("C4")));
//!
//! // Without any check nothing is checked, and a warning says so.
//! let checks = GatesConfig::default().checks().expect("no checks, no problems");
//! let here = Utf8Path::new(".");
//! let context = GateContext::new(Purpose::WorkingTree, here, here);
//! let outcome = run_checks(&checks, &context, None, &Cancel::new(), &mut |_| {})?;
//! assert_eq!(outcome.report.overall, Overall::Pass);
//! assert_eq!(outcome.warnings, [Warning::NothingConfigured]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - The exit status is the verdict. Output decides nothing but what the three markers declare, and those count only at
//!   the start of a line and only where the status allows it.
//! - Every configured check is in the report, or there is no report.
//! - A verdict counts for one tree: the checkout is verified to be that tree before the check starts, and a check that
//!   leaves tracked files changed has no verdict.
//! - A fault of the host is never charged to the patch, and never counted in its favour either.
//! - Checks get the documented variables and no others, a home directory of their own, and fixed limits.
//! - A check with a settled verdict is not run again for the same tree, unless a check that has to run reads the files
//!   that it shares.
//! - A check leaves nothing for the next one, unless it says `shares`.

mod apart;
mod attempt;
mod check;
mod config;
mod confirm;
mod context;
mod denied;
mod digest;
mod event;
mod failing;
mod fingerprint;
mod fix;
mod followed;
mod home;
mod host_fault;
mod job;
mod junit_report;
mod leftovers;
mod log;
mod marker;
mod preflight;
mod problem;
mod run;
mod verdict;
mod when;

pub use check::{Check, Checks, Command, DRIFT_ROW, UnusableChecks, quoted};
pub use config::{CheckConfig, CheckScope, Cwd, Flaky, GatesConfig};
pub use context::{
    CHANGING, Change, GateContext, LaneNames, PrimaryView, Purpose, RowCheckout, Tree, TreeFault,
};
pub use event::{Again, GateEvent};
pub use failing::{Digested, Failing, MOST_NAMES, digest_output, read_junit};
pub use fingerprint::{GateHost, words_in};
pub use fix::Fix;
pub use home::{GateHome, TOOLS};
pub use host_fault::HostFault;
pub use job::forget;
pub use junit_report::{junit_report, junit_suite};
pub use marker::harmless;
pub use preflight::{ProgramFault, Unready, preflight};
pub use problem::{ConfigFault, ConfigProblem};
pub use run::{GatesError, GatesOutcome, Warning, close_report, run_checks};
pub use verdict::CheckFinding;
pub use when::{When, WhenText};
