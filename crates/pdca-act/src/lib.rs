//! Act: patterns across finished cycles.
//!
//! Act reviews cycles that have ended and asks what the process should learn from them. This crate collects the
//! evidence from their records; people decide what changes. A review is never started automatically, because it costs and
//! its result is a person's decision: `status` shows that one is due, by `[act] every` or `weekly`.
//!
//! ```
//! use pdca_act::{ActRecords, IndexScope, index};
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = camino::Utf8Path::from_path(dir.path()).ok_or("not UTF-8")?;
//! let records = ActRecords::load(&path.join("process"))?;
//! let index = index(&[], &records, IndexScope::SinceLastReview);
//! assert!(index.cycles.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//! - Bundles are only read, and nothing is run.
//! - There is one recorder at a time: [`Recorder`] locks the process directory while the log is read, appended to and
//!   replaced. An interrupted record is finished before another is begun, so no entry is lost or written twice.
//! - It decides nothing: no disposition, no delta, no brief.
//! - The result does not depend on the order of the bundles, and an unreadable bundle affects only its own row.
//! - Unknown parts of an older log, marker or ledger are kept byte for byte.

mod wording;

mod touches;

mod baseline;
mod entry;
mod explain;
mod ledger;
mod log;
mod mark;
mod recorder;
mod records;
mod reviewed;
mod versions;

mod cycle;
mod index;
mod pattern;
mod scaffold;

#[cfg(test)]
mod testing;

pub use baseline::{Baseline, BaselineChange, Changes, ProcessPart};
pub use cycle::{Cycle, GateCost, NeedsHumanItem, Signoff};
pub use entry::{EntryError, adopt};
pub use explain::{PartDiff, explain};
pub use index::{Index, IndexScope, Unreadable, index};
pub use ledger::{Ledger, LedgerError, LedgerReview, Resolution};
pub use log::{ActLog, LogEntry, Signal, append};
pub use mark::CycleMark;
pub use pattern::{BlamedField, Class, JudgedSignal, RecurringText, SignalFate};
pub use recorder::Recorder;
pub use records::{ActRecords, LEDGER, LOG, REVIEWED, RecordsError};
pub use reviewed::ReviewedCycles;
pub use scaffold::{ScaffoldPaths, scaffold};
pub use touches::Touches;
pub use versions::Versions;
pub use wording::normalise;
