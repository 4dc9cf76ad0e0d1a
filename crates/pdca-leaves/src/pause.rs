//! Waiting for a leaf that was told to come back later.

use std::time::Duration;

use pdca_process::Backoff;

use crate::{config::Throttled, role::Role};

/// An agent's limit that ends later than `max_wait_secs` allows, for a person to decide about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongWait {
    /// The role of the leaf.
    pub role: Role,
    /// The agent, which other leaves may call too.
    pub agent: String,
    /// How long from now.
    pub wait: Duration,
    /// The agent's words about it.
    pub said: Option<String>,
}

/// The decision about a [`LongWait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitDecision {
    /// Wait until the limit ends.
    Wait,
    /// End the run; the next one goes on from here.
    Stop,
    /// Call the agent no more in this run: bundles that need it fail, and all others go on.
    LeaveOut,
}

/// However long a leaf has been throttled, it is asked again after this.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The longest pause that a provider may ask for. One that says another day, without a time, asks for more.
const LONGEST_TOLD: Duration = Duration::from_secs(25 * 60 * 60);

/// The pauses of one call: each twice the last, together no longer than configured. A pause until a told moment counts
/// apart: a part of it would only be refused again.
#[derive(Debug)]
pub(crate) struct Pauses {
    next: Backoff,
    left: Duration,
    /// A configuration without any time to wait means that nothing is waited for.
    waits: bool,
    waited: Duration,
}

impl Pauses {
    pub(crate) fn new(config: &Throttled) -> Self {
        Self {
            next: Backoff::new(config.backoff_secs.get()).at_most(LONGEST),
            left: config.max_wait_secs.get(),
            waits: !config.max_wait_secs.get().is_zero(),
            waited: Duration::ZERO,
        }
    }

    /// Returns whether a told moment lies further ahead than is waited for without a word of a person. One that nobody named
    /// does not: there is nothing to ask about.
    pub(crate) fn is_long(&self, told: Duration) -> bool {
        self.waits && told > self.left && told < Duration::MAX
    }

    /// Counts a pause that a person agreed to, however long it is.
    pub(crate) fn agree(&mut self, told: Duration) -> Duration {
        self.waited = self.waited.saturating_add(told);
        told
    }

    /// The next pause: as long as the leaf was told, else twice the last. None when the time is used up, or where the
    /// provider named no moment.
    pub(crate) fn next(&mut self, told: Option<Duration>) -> Option<Duration> {
        if let Some(told) = told.filter(|told| *told > self.left) {
            // `max_wait_secs` limits guesses. That a limit ends at a told moment is none.
            return (self.waits && told <= LONGEST_TOLD).then(|| {
                self.waited += told;
                told
            });
        }
        // A pause of no length would let a leaf be asked for ever.
        let pause = told.or_else(|| self.next.next())?.max(Duration::from_millis(1)).min(self.left);
        if pause.is_zero() {
            return None;
        }
        self.left -= pause;
        self.waited += pause;
        Some(pause)
    }

    /// All pauses so far.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(backoff: u64, max_wait: u64) -> Vec<u64> {
        let mut pauses = Pauses::new(&Throttled {
            backoff_secs: Duration::from_secs(backoff).into(),
            max_wait_secs: Duration::from_secs(max_wait).into(),
            ..Throttled::default()
        });
        std::iter::from_fn(|| pauses.next(None)).map(|pause| pause.as_secs()).collect()
    }

    #[test]
    fn pauses_double_and_never_exceed_the_total() {
        assert_eq!(pauses(1, 20), [1, 2, 4, 8, 5]);
        assert_eq!(pauses(30, 30), [30]);
        assert_eq!(pauses(600, 4000), [600, 900, 900, 900, 700]);
    }

    #[test]
    fn a_pause_longer_than_the_total_is_cut_to_it() {
        assert_eq!(pauses(60, 10), [10]);
        assert_eq!(pauses(u64::MAX, 10), [10]);
    }

    #[test]
    fn pauses_of_no_length_come_to_an_end_too() {
        let mut pauses = Pauses::new(&Throttled {
            backoff_secs: Duration::ZERO.into(),
            max_wait_secs: Duration::from_millis(5).into(),
            ..Throttled::default()
        });
        assert_eq!(std::iter::from_fn(|| pauses.next(None)).count(), 5);
    }

    #[test]
    fn a_told_moment_is_waited_for_however_short_the_time_for_guesses_is() {
        let mut pauses = Pauses::new(&Throttled {
            backoff_secs: Duration::from_secs(30).into(),
            max_wait_secs: Duration::from_secs(100).into(),
            ..Throttled::default()
        });
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(pauses.next(seconds(20)), seconds(20));
        assert_eq!(pauses.next(seconds(7200)), seconds(7200));
        assert_eq!(pauses.next(seconds(80)), seconds(80));
        assert_eq!(pauses.next(None), None);
        assert_eq!(pauses.next(Some(Duration::MAX)), None, "another day, and nobody said when");
        assert_eq!(pauses.waited(), Duration::from_secs(7300));
    }

    #[test]
    fn a_person_is_asked_about_a_named_moment_beyond_the_time_for_guesses() {
        let mut pauses = Pauses::new(&Throttled {
            max_wait_secs: Duration::from_secs(100).into(),
            ..Throttled::default()
        });
        let week = Duration::from_secs(7 * 24 * 60 * 60);
        assert!(!pauses.is_long(Duration::from_secs(100)));
        assert!(pauses.is_long(Duration::from_secs(101)) && pauses.is_long(week));
        assert!(!pauses.is_long(Duration::MAX), "nobody said when");
        assert_eq!(pauses.next(Some(week)), None, "nobody waits for a week unasked");
        assert_eq!(pauses.agree(week), week);
        assert_eq!(pauses.waited(), week);
    }

    #[test]
    fn who_waits_for_nothing_does_not_wait_for_a_told_moment() {
        let mut pauses = Pauses::new(&Throttled {
            max_wait_secs: Duration::ZERO.into(),
            ..Throttled::default()
        });
        assert_eq!(pauses.next(Some(Duration::from_secs(10))), None);
        assert!(!pauses.is_long(Duration::from_secs(10)));
    }
}
