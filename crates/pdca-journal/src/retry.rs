//! How often something may be tried again, and when.
//!
//! Attempts count per bundle, phase and cause, and only success in that very phase takes them back.
//! So a success here never hides a loop there. Beside that one number counts them all and is never
//! taken back.
//!
//! How long ago an attempt was is measured with the time the machine has been running, never with
//! the wall clock: within one boot that is exact, and after a reboot at least the time since then
//! has passed. So a clock that is set a day forward fires nothing, and one that is set a day back
//! delays nothing beyond the longest pause.

use std::collections::BTreeMap;
use std::time::Duration;

use pdca_state::BundleId;

use crate::record::{Cause, Phase};
use crate::state::Since;
use crate::timestamp::Moment;

/// What was tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    counts: BTreeMap<Key, Count>,
    total: u32,
}

/// What attempts are counted for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    bundle: Option<BundleId>,
    phase: Phase,
    cause: Cause,
}

/// How often something was tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// How often: `recovery_attempts`, `conflict_attempts`.
    pub attempts: u32,
    /// The last time.
    pub last: Since,
    /// In which boot of the machine that was.
    pub boot: String,
}

/// How often and how fast something may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For one bundle, phase and cause, until it succeeds.
    pub attempts: u32,
    /// For everything in a run together, ever.
    pub absolute: u32,
    /// The pause after the first attempt; each one after that doubles it.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            attempts: 5,
            absolute: 100,
            first_pause: Duration::from_secs(5),
            longest_pause: Duration::from_secs(10 * 60),
        }
    }
}

/// Whether something may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// Now.
    Now,
    /// After a pause of this length.
    After(Duration),
    /// Not any more: block, once, with the evidence.
    Exhausted,
}

/// A moment, and the boot it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now<'a> {
    /// The moment.
    pub at: Moment,
    /// The boot, as [`HostScope::boot`](crate::HostScope::boot) has it.
    pub boot: &'a str,
}

impl Limits {
    /// The pause after that many attempts.
    pub fn pause(&self, attempts: u32) -> Duration {
        let Some(doublings) = attempts.checked_sub(1) else {
            return Duration::ZERO;
        };
        let factor = 2u32.checked_pow(doublings).unwrap_or(u32::MAX);
        self.first_pause.saturating_mul(factor).min(self.longest_pause)
    }

    /// Whether there may be another attempt after those that were counted.
    pub fn allowance(&self, count: Option<&Count>, total: u32, now: Now<'_>) -> Allowance {
        let attempts = count.map_or(0, |count| count.attempts);
        let last = count.map(|count| Now { at: count.last.at, boot: &count.boot });
        self.after(attempts, last, total, now)
    }

    /// The same for attempts that no journal counts: how many there were, and when the last one was.
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

/// How much time has passed for certain since the last attempt.
fn passed(last: Now<'_>, now: Now<'_>) -> Duration {
    if last.boot == now.boot { now.at.uptime.saturating_sub(last.at.uptime) } else { now.at.uptime }
}

impl Tally {
    /// What was counted for a bundle, or for the run, in a phase and for a cause.
    pub fn count(&self, bundle: Option<&BundleId>, phase: Phase, cause: Cause) -> Option<&Count> {
        self.counts.get(&Key { bundle: bundle.cloned(), phase, cause })
    }

    /// All attempts that there ever were.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Whether a bundle, or the run, may try again in a phase after failing for a cause.
    pub fn allowance(
        &self,
        limits: &Limits,
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
        self.counts.insert(Key { bundle, phase, cause }, count);
        self.total = self.total.saturating_add(1);
    }

    /// A phase succeeded: what was counted in it is forgotten, for all causes.
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
        Limits::default().allowance(Some(count), count.attempts, Now { at, boot })
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let limits = Limits::default();
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
        let limits = Limits::default();
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
            let limits = Limits::default();
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
