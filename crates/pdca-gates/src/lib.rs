//! Deterministic oracles: what passed, told by exit status alone.
//!
//! A gate is a command of the project. [`Checks`] holds the rows as somebody wrote them,
//! [`Checks::rows`] turns them into [`Rows`] or says everything that is wrong with them, and
//! [`run_checks`] runs them in a [`Scene`] and gives the report that becomes `check-gates.json`.
//! The driver, `pdca gates --working-tree` and the combined gate all come through here, so that
//! what is green for one is green for all.
//!
//! ```
//! use camino::Utf8Path;
//! use pdca_gates::{Checks, Purpose, Scene, Warning, run_checks};
//! use pdca_process::Cancel;
//! use pdca_state::Overall;
//!
//! let checks: Checks = toml::from_str(
//!     "checks = [{ id = 'C4-verify', tier = 'C44', cmd = './verify.sh' }]",
//! )?;
//! let problem = &checks.validate()[0];
//! assert_eq!((problem.row, problem.key, problem.suggestion()), (Some(0), "tier", Some("C4")));
//!
//! // With nothing configured nothing is checked, and that is said.
//! let rows = Checks::default().rows().expect("no rows, no problems");
//! let here = Utf8Path::new(".");
//! let scene = Scene::new(Purpose::WorkingTree, here, here);
//! let outcome = run_checks(&rows, &scene, None, &Cancel::new(), &mut |_| {})?;
//! assert_eq!(outcome.report.overall, Overall::Pass);
//! assert_eq!(outcome.warnings, [Warning::NothingConfigured]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - The exit status is the verdict. Words decide nothing but what the three markers declare,
//!   and those only at the start of a line and only where the status allows it.
//! - A row that was configured is in the report, or there is no report.
//! - A verdict counts for one tree: the checkout is proved to be that tree before the row starts,
//!   and a row that leaves tracked files changed has said nothing.
//! - What the host did is never charged to the patch, and never counted in its favour either.
//! - Rows get the documented variables and no others.
//! - A row whose verdict stands is not run again for the same tree.

mod config;
mod digest;
mod event;
mod failing;
mod fingerprint;
mod fix;
mod host;
mod job;
mod log;
mod marker;
mod preflight;
mod problem;
mod row;
mod run;
mod scene;
mod turn;
mod verdict;
mod when;

pub use config::{Check, Checks, Cwd, Flaky, Scope};
pub use event::{Again, GateEvent};
pub use failing::{Digested, Failing, MOST_NAMES, Scanner, digest_output, read_junit};
pub use fingerprint::Surroundings;
pub use fix::Fix;
pub use host::Trouble;
pub use job::forget;
pub use marker::{MARKERS, Said, harmless};
pub use preflight::{ProgramFault, Unready, preflight};
pub use problem::{ConfigFault, ConfigProblem};
pub use row::{Command, DRIFT_ROW, Row, Rows, quoted};
pub use run::{GatesError, Outcome, Warning, close_report, run_checks};
pub use scene::{Change, LaneNames, Purpose, Scene, Tree, TreeFault};
pub use verdict::{Finding, classify};
pub use when::{When, WhenText};
