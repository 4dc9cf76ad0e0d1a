//! One versioned stream of facts about runs, bundles and integrations.
//!
//! The driver emits into a [`EventStream`], which stamps each event with time and sequence, appends it to the
//! log of its run and hands it to one listener. The terminal, `--events` and `pdca replay` render the
//! same [`Event`]; a [`LogReader`] reads a log again, also while it grows.
//!
//! ```
//! use pdca_journal::events::{Event, EventKind, EventStream, Scope};
//!
//! let (to, events) = std::sync::mpsc::channel();
//! let stream = EventStream::new(jiff::Timestamp::now, move |event| drop(to.send(event)));
//! stream.emit(Scope::Bundle("7".parse().unwrap()), None, EventKind::Reopened);
//! let event: Event = events.recv().unwrap();
//! assert_eq!((event.schema, event.seq), (1, 1));
//! let line = serde_json::to_string(&event).unwrap();
//! assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
//! ```
//!
//! # Invariants
//! - The stream is a projection for people and tools: nothing is decided from it, so no line is synced.
//! - Sequence numbers of a log only grow. A crash leaves a prefix; a line that cannot be read is skipped
//!   and named.
//! - A field is added, never renamed or removed under the same schema number, and a reader ignores fields
//!   it does not know.

mod activity;
mod combination;
mod event;
mod flow;
mod kind;
mod log;
mod stream;
mod warning;

pub use activity::ActivityChange;
pub use combination::{CombinationVerdict, GatedCombination, combinations, set};
pub use event::{Event, SCHEMA, Scope};
pub use flow::FlowTask;
pub use kind::{EventKind, GatePurpose, Halt, Hold, IntegrationStep, RedEvidence, Step, millis};
pub use log::{FILE, LogLine, LogReader};
pub use stream::EventStream;
pub use warning::WarningCode;
