//! Retry limits with exponential backoff.
//!
//! Attempts are counted per bundle, phase and cause. Only success in the same phase, or a person who
//! unblocks the bundle, resets them, so that a success elsewhere does not hide an endless loop. A total
//! over the whole run is never reset.
//!
//! Pauses are measured with the machine's uptime, never with the wall clock. Within one boot that is
//! exact; after a reboot, at least the time since the boot has passed. So a wall clock that jumps
//! neither triggers a retry nor delays one.

use std::collections::BTreeMap;
use std::time::Duration;

use pdca_state::BundleId;

use crate::record::{Cause, Phase};
use crate::state::Since;
use crate::timestamp::Moment;

/// The retry counters of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetryTally {
    counts: BTreeMap<CountKey, Count>,
    total: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CountKey {
    bundle: Option<BundleId>,
    phase: Phase,
    cause: Cause,
}

/// The counter of one bundle, phase and cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// The attempts since the last success: `recovery_attempts`, `conflict_attempts`.
    pub attempts: u32,
    /// The last attempt.
    pub last: Since,
    /// The boot id at the last attempt, without which its uptime has no meaning.
    pub boot: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryLimits {
    /// The most attempts for one bundle, phase and cause without a success.
    pub attempts: u32,
    /// The most attempts in a run in total.
    pub absolute: u32,
    /// The pause after the first attempt; doubled after each further one.
    pub first_pause: Duration,
    pub longest_pause: Duration,
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self {
            // Five attempts have 75 s of pauses between them; after that a person is asked.
            attempts: 5,
            absolute: 100,
            first_pause: Duration::from_secs(5),
            longest_pause: Duration::from_secs(10 * 60),
        }
    }
}

/// The permission to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    Now,
    /// The remaining pause.
    After(Duration),
    /// No retries are left: block once, with the evidence.
    Exhausted,
}

/// A moment and the boot that its uptime belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now<'a> {
    pub at: Moment,
    /// The boot id, as in [`HostScope::boot`](crate::HostScope::boot).
    pub boot: &'a str,
}

impl RetryLimits {
    /// The pause after this number of attempts.
    pub fn pause(&self, attempts: u32) -> Duration {
        let Some(doublings) = attempts.checked_sub(1) else {
            return Duration::ZERO;
        };
        let factor = 2u32.checked_pow(doublings).unwrap_or(u32::MAX);
        self.first_pause.saturating_mul(factor).min(self.longest_pause)
    }

    /// Decides if there may be another attempt after those in `count`.
    pub fn allowance(&self, count: Option<&Count>, total: u32, now: Now<'_>) -> Allowance {
        let attempts = count.map_or(0, |count| count.attempts);
        let last = count.map(|count| Now { at: count.last.at, boot: &count.boot });
        self.after(attempts, last, total, now)
    }

    /// Like [`RetryLimits::allowance`], for attempts that are counted outside a journal.
    pub fn after(
        &self,
        attempts: u32,
        last: Option<Now<'_>>,
        total: u32,
        now: Now<'_>,
    ) -> Allowance {
        if attempts >= self.attempts || total >= self.absolute {
            return Allowance::Exhausted;
        }
        let Some(last) = last else {
            return Allowance::Now;
        };
        match self.pause(attempts).checked_sub(passed(last, now)) {
            None | Some(Duration::ZERO) => Allowance::Now,
            Some(left) => Allowance::After(left),
        }
    }
}

/// A lower bound of the time since the last attempt.
fn passed(last: Now<'_>, now: Now<'_>) -> Duration {
    // The time from the attempt to the shutdown is unknown and not counted, so a wait can start over
    // at a reboot but is never longer than one whole pause.
    if last.boot == now.boot { now.at.uptime.saturating_sub(last.at.uptime) } else { now.at.uptime }
}

impl RetryTally {
    /// The counter of a bundle, or of the run if `None`.
    pub fn count(&self, bundle: Option<&BundleId>, phase: Phase, cause: Cause) -> Option<&Count> {
        self.counts.get(&CountKey { bundle: bundle.cloned(), phase, cause })
    }

    /// The number of all attempts in the run; never reset.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Decides if a bundle, or the run, may retry a phase that failed for a cause.
    pub fn allowance(
        &self,
        limits: &RetryLimits,
        bundle: Option<&BundleId>,
        phase: Phase,
        cause: Cause,
        now: Now<'_>,
    ) -> Allowance {
        limits.allowance(self.count(bundle, phase, cause), self.total, now)
    }

    pub(crate) fn note(
        &mut self,
        bundle: Option<BundleId>,
        phase: Phase,
        cause: Cause,
        last: Since,
        boot: &str,
    ) {
        let before = self.count(bundle.as_ref(), phase, cause).map_or(0, |count| count.attempts);
        let count = Count { attempts: before.saturating_add(1), last, boot: boot.to_owned() };
        self.counts.insert(CountKey { bundle, phase, cause }, count);
        self.total = self.total.saturating_add(1);
    }

    /// Resets the counters of a phase, for all causes.
    pub(crate) fn succeeded(&mut self, bundle: Option<&BundleId>, phase: Phase) {
        self.counts.retain(|key, _| key.phase != phase || key.bundle.as_ref() != bundle);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::Seq;

    const DAY: i64 = 24 * 60 * 60;

    fn moment(wall: i64, uptime: u64) -> Moment {
        let wall = jiff::Timestamp::from_second(wall).unwrap();
        Moment { wall, uptime: Duration::from_secs(uptime) }
    }

    fn count(attempts: u32, last: Moment) -> Count {
        Count { attempts, last: Since { seq: Seq(9), at: last }, boot: "b1".to_owned() }
    }

    fn allowed(count: &Count, at: Moment, boot: &str) -> Allowance {
        RetryLimits::default().allowance(Some(count), count.attempts, Now { at, boot })
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let limits = RetryLimits::default();
        let seconds: Vec<u64> = (0..10).map(|it| limits.pause(it).as_secs()).collect();
        assert_eq!(seconds, [0, 5, 10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(limits.pause(u32::MAX), limits.longest_pause);
    }

    #[test]
    fn f1_a_clock_a_day_ahead_fires_nothing() {
        let third = count(3, moment(1_000, 50));
        let after = Allowance::After(Duration::from_secs(19));
        assert_eq!(allowed(&third, moment(1_001, 51), "b1"), after);
        assert_eq!(allowed(&third, moment(1_001 + DAY, 51), "b1"), after);
        let since_reboot = Allowance::After(Duration::from_secs(12));
        assert_eq!(allowed(&third, moment(1_001 + DAY, 8), "b2"), since_reboot);
    }

    #[test]
    fn f2_a_clock_a_day_behind_delays_nothing() {
        let third = count(3, moment(DAY + 1_000, 50));
        let after = Allowance::After(Duration::from_secs(19));
        assert_eq!(allowed(&third, moment(1_001, 51), "b1"), after);
        assert_eq!(allowed(&third, moment(1_000, 70), "b1"), Allowance::Now);
        assert_eq!(allowed(&third, moment(1_000, 20), "b2"), Allowance::Now);
    }

    #[test]
    fn f8_at_its_cap_nothing_is_tried_again_however_long_one_waits() {
        let limits = RetryLimits::default();
        let now = Now { at: moment(DAY, 1 << 30), boot: "b1" };
        for (attempts, total, last) in [(4, 4, Allowance::Now), (5, 5, Allowance::Exhausted)] {
            let count = count(attempts, moment(0, 0));
            assert_eq!(limits.allowance(Some(&count), total, now), last);
        }
        let once = count(1, moment(0, 0));
        assert_eq!(limits.allowance(Some(&once), limits.absolute, now), Allowance::Exhausted);
        assert_eq!(limits.allowance(None, limits.absolute, now), Allowance::Exhausted);
    }

    proptest! {
        #[test]
        fn no_clock_delays_beyond_the_longest_pause_and_none_but_uptime_is_looked_at(
            attempts in 0u32..5, walls in any::<[i32; 3]>(), uptimes in any::<[u32; 2]>(),
            same_boot: bool,
        ) {
            let limits = RetryLimits::default();
            let last = count(attempts, moment(walls[0].into(), uptimes[0].into()));
            let boot = if same_boot { "b1" } else { "b2" };
            let [one, other] = [walls[1], walls[2]]
                .map(|wall| allowed(&last, moment(wall.into(), uptimes[1].into()), boot));
            prop_assert_eq!(one, other);
            if let Allowance::After(pause) = one {
                prop_assert!(pause <= limits.pause(attempts) && pause <= limits.longest_pause);
            }
        }
    }
}
