//! Timestamps: wall clock for people, uptime to measure with.

use std::time::Duration;

use jiff::Timestamp;

/// A moment, as the caller read it from two clocks.
///
/// The wall clock is recorded for people and decides nothing, because it can be set at any time.
/// Durations are measured with `uptime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock, in UTC.
    pub wall: Timestamp,
    /// The uptime of the machine (`CLOCK_MONOTONIC`); starts again at each boot.
    pub uptime: Duration,
}

/// Reads both clocks.
pub type Clock = fn() -> Moment;

impl Moment {
    /// The moment in the precision of the journal, milliseconds.
    pub(crate) fn kept(self) -> Self {
        // The state in memory must be equal to the one that the next driver folds from the file.
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
