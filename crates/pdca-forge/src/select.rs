//! Plan's front door: a tracker's export becomes a pool of records, a profile, buckets and an order.
//!
//! 1. An export is read record by record ([`Selector::read_csv`], [`Selector::read_json`]). A record that cannot be
//!    read is reported with its line, because a pool with holes would look like the whole tracker.
//! 2. Each record is put into the first bucket that matches it. A record in no bucket is an error, so that the sums of
//!    the buckets are the sum of the export.
//! 3. The [`Profile`] counts status, severity, component and age before anything is chosen.
//! 4. [`Pool::order`] orders what is not dropped by the [`Character`] of the batch.
//! 5. [`Triage`] renders the scaffold of a draft brief, and [`BatchIndex`] the list of a batch.
//!
//! ```
//! use pdca_forge::select::{SelectSettings, Selector};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let selector = Selector::new(&SelectSettings::default(), "2026-11-17".parse()?)?;
//! let export = "Id;Summary;Status\r\n7;\"two\r\nlines\";new\r\n8;done;closed\r\n";
//! let pool = selector.read_csv(export.as_bytes(), None)?;
//! assert_eq!((pool.records.len(), pool.records[1].line), (2, 4));
//! assert_eq!(pool.tallies()[0].count + pool.tallies()[2].count, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//! - Records are counted, not lines, and every record is in exactly one bucket.
//! - Of an export only one record and the short fields of all are in memory at a time.
//! - No I/O beyond the reader that is handed in; no clock: today is a value.

mod settings;

mod date;
mod field;
mod labels;

mod csv;
mod json;

mod bucket;
mod order;
mod pool;
mod profile;

mod batch;
mod triage;

pub use batch::{BatchIndex, BatchRow};
pub use bucket::BucketCount;
pub use date::DateOrder;
pub use field::IssueField;
pub use order::{Character, Outlook};
pub use pool::{FlawKind, IssueRecord, Pool, PoolError, RecordFlaw, Selector, UnreadDates};
pub use profile::{AgeBand, AgeCount, Profile, ValueCount};
pub use settings::{BucketSettings, Columns, Condition, SelectSettings, SelectSettingsProblem};
pub use triage::Triage;
