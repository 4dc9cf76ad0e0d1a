//! The events that the driver emits.

pub(crate) use pdca_events::{EventKind as What, Hold, Proof, Scope, Stream, millis};
