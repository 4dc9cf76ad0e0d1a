//! The current activity of a bundle, as its events tell it.

use crate::events::EventKind;

/// The effect of an event on the current activity of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActivityChange<'e> {
    /// An activity begins.
    Begins(String),
    /// A sign of life.
    Shows(&'e String),
    /// The activity ends.
    Ends,
    /// The activity goes on.
    GoesOn,
}

impl<'e> ActivityChange<'e> {
    pub fn of(kind: &'e EventKind) -> Self {
        match kind {
            EventKind::Dispatched { .. } => Self::Begins("starts".to_owned()),
            EventKind::OnHost { host, .. } => Self::Begins(format!("on {host}")),
            EventKind::Began { step, .. } => Self::Begins(step.word().to_owned()),
            EventKind::GateBegan { rule_id, k, n } => {
                Self::Begins(format!("gate {k}/{n} {rule_id}"))
            }
            EventKind::LeafBegan { role, attempt: 1 } => Self::Begins(role.clone()),
            EventKind::LeafBegan { role, attempt } => {
                Self::Begins(format!("{role}, attempt {attempt}"))
            }
            EventKind::Alive { line, .. } => Self::Shows(line),
            EventKind::Halted { .. } | EventKind::Failed { .. } => Self::Ends,
            EventKind::Held { .. }
            | EventKind::Freed { .. }
            | EventKind::Reopened
            | EventKind::Recovered { .. }
            | EventKind::Drifted { .. }
            | EventKind::Finished { .. }
            | EventKind::Checkout { .. }
            | EventKind::Hydrated { .. }
            | EventKind::Rescued { .. }
            | EventKind::GateEnded { .. }
            | EventKind::LeafThrottled { .. }
            | EventKind::LeafEnded { .. }
            | EventKind::LeafRecorded { .. }
            | EventKind::Warning { .. }
            | EventKind::Integration { .. }
            | EventKind::FlowBegan { .. }
            | EventKind::FlowEnded { .. }
            | EventKind::Notice { .. } => Self::GoesOn,
        }
    }
}
