//! Pauses between tries.

use std::thread;
use std::time::{Duration, Instant};

use crate::cancel::Cancel;

/// The interval in which a wait looks whether it was cancelled.
const GLANCE: Duration = Duration::from_millis(20);

/// Pauses that double, without an end: the caller says how many or how long.
///
/// ```
/// use std::time::Duration;
///
/// let pauses = pdca_process::Backoff::new(Duration::from_millis(250)).take(3);
/// assert_eq!(pauses.map(|pause| pause.as_millis()).collect::<Vec<_>>(), [250, 500, 1000]);
/// ```
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// The first pause is this long.
    pub fn new(first: Duration) -> Self {
        Self { next: first, longest: Duration::MAX }
    }

    /// No pause is longer than this.
    #[must_use]
    pub fn at_most(self, longest: Duration) -> Self {
        Self { next: self.next.min(longest), longest }
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.longest);
        Some(pause)
    }
}

impl Cancel {
    /// Waits, unless cancelled. Returns whether it waited to the end.
    pub fn wait(&self, pause: Duration) -> bool {
        let start = Instant::now();
        loop {
            if self.is_cancelled() {
                return false;
            }
            let left = pause.saturating_sub(start.elapsed());
            if left.is_zero() {
                return true;
            }
            thread::park_timeout(left.min(GLANCE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let secs = |pause: Duration| pause.as_secs();
        let pauses = Backoff::new(Duration::from_secs(600)).at_most(Duration::from_secs(900));
        assert_eq!(pauses.take(3).map(secs).collect::<Vec<_>>(), [600, 900, 900]);
        let mut long = Backoff::new(Duration::MAX);
        assert_eq!([long.next(), long.next()], [Some(Duration::MAX), Some(Duration::MAX)]);
    }

    #[test]
    fn a_wait_that_was_cancelled_is_not_waited_for() {
        let cancel = Cancel::new();
        assert!(cancel.wait(Duration::ZERO));
        cancel.cancel();
        assert!(!cancel.wait(Duration::from_secs(3600)));
    }
}
