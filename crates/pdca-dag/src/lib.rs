//! Plans which work items may run at the same time.
//!
//! Items (*bundles*) declare what they depend on, what they conflict with and which paths they touch,
//! as globs. [`Plan::new`] turns the declarations of a batch into a [`Plan`], or reports all problems
//! in one [`Rejection`]. A plan can be viewed as an order, waves, groups for `lanes.json`,
//! workstreams, a critical path and a simulation. A [`Frontier`] schedules it: the caller reports what
//! ended, and the frontier returns what to start next and why the rest has to wait.
//!
//! Two bundles are *rivals* if one declares a conflict with the other or if both can write the same
//! path. The crate decides what may start and leaves to the caller how it is run.
//!
//! ```
//! use pdca_dag::{
//!     Completion, Declared, Frontier, Item, Options, Outside, Plan, SourceLocation, Touch,
//! };
//!
//! let brief = |id: &str, line| SourceLocation::new(format!("results/issue_{id}/brief.md"), line);
//! let item = |id: &str, glob: &str| Item {
//!     touches: vec![Touch { glob: glob.to_owned(), place: brief(id, 9), is_file: false }],
//!     ..Item::new(id.parse().unwrap(), brief(id, 1))
//! };
//! let mut after = item("3", "docs");
//! after.depends_on.push(Declared::new("1".parse()?, brief("3", 7)));
//! let items = vec![item("1", "src/{a,b}.py"), item("2", "src/*.py"), after];
//!
//! let plan = Plan::new(items, &Outside::default(), Options::default())?;
//! let mut frontier = Frontier::new(&plan);
//! let first = frontier.start_next().unwrap();
//! assert_eq!(first.as_str(), "1"); // The longest chain of work depends on it.
//! assert_eq!(frontier.start_next(), None); // Both 1 and 2 can write `src/a.py`.
//! frontier.ended(&first, Completion::Complete)?;
//! assert_eq!(frontier.start_next().unwrap().as_str(), "2");
//! assert_eq!(frontier.start_next().unwrap().as_str(), "3");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - A plan that exists can be carried out: no cycle, no prerequisite that never completes.
//! - A rejection has all problems, each with the file and line to change.
//! - Two globs count as disjoint only if no path matches both; an overlap comes with a path.
//! - Rivals are never in flight together, and no bundle starts before its prerequisites are complete,
//!   for any number of lanes and any order of reports.
//! - Bundles without declarations start in name order.
//! - The same input gives the same plan, and the same reports give the same starts.
//! - No I/O, clock, threads or randomness; no recursion along a chain of bundles.

#![warn(missing_docs)]

mod claims;
pub mod foundation;
mod frontier;
mod graph;
mod groups;
mod intake;
mod item;
mod pattern;
mod plan;
mod problem;
mod simulate;
#[cfg(test)]
mod testing;

pub use claims::Rivalry;
pub use frontier::{
    ClaimHolder, Completion, Frontier, FrontierError, ItemStatus, PATIENCE, Unmet, Why,
};
pub use groups::{BundleGroup, GroupId, GroupIdError, Join, JoinRule, LanesFile, LanesFileError};
pub use intake::slips;
pub use item::{Declared, Item, ItemState, Options, Outside, SourceLocation, Touch, Untouched};
pub use pattern::{Case, Pattern, PatternError, PatternFlaw, drift};
pub use pdca_state::Awaits;
pub use plan::{Plan, Rivals};
pub use problem::{Edge, PlanNotice, PlanProblem, Rejection};
pub use simulate::{Constraint, Costliest, Makespan, Simulation, Unit};
