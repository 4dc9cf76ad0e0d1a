//! When something was: a time for people, and a time to measure with.

use std::time::Duration;

use jiff::Timestamp;

/// A moment, as the caller read it from two clocks.
///
/// The wall clock is written down for people and decides nothing: it can be set to anything at any
/// time. Durations are measured with `uptime`, which only the machine's own running moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock, in UTC.
    pub wall: Timestamp,
    /// How long the machine has been running (`CLOCK_MONOTONIC`); starts again at each boot.
    pub uptime: Duration,
}

/// Reads both clocks.
pub type Clock = fn() -> Moment;

impl Moment {
    /// The moment as a journal keeps it: to the millisecond.
    pub(crate) fn kept(self) -> Self {
        let millis = self.wall.as_millisecond();
        Self {
            wall: Timestamp::from_millisecond(millis)
                .expect("because fewer digits of a legal time are a legal time"),
            uptime: Duration::from_millis(self.uptime_millis()),
        }
    }

    pub(crate) fn uptime_millis(self) -> u64 {
        u64::try_from(self.uptime.as_millis()).unwrap_or(u64::MAX)
    }
}
