//! The facts that the driver emits.

pub(crate) use pdca_events::{
    EventKind as What, GatePurpose, Hold, IntegrationStep, Proof, Scope, Stream, millis,
};
