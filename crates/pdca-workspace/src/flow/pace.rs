//! The pace of the person, which lanes do not run ahead of.

use serde::Serialize;

/// A pause after which a person did something else in between, in seconds.
const BREAK: i64 = 30 * 60;
/// The number of intervals that are looked at, from the latest.
const LATEST: usize = 20;
/// With fewer intervals nothing is known.
const ENOUGH: usize = 3;

/// How much unsigned work there may be, and how much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnsignedWork {
    /// The bundles that are built and wait for a person.
    pub unsigned: u32,
    /// `max_unsigned` of `[flow]`; null without a limit.
    pub max_unsigned: Option<u32>,
    /// The decisions that the person makes in an hour; null while too few are known.
    pub per_hour: Option<u32>,
}

impl UnsignedWork {
    /// Returns the most unsigned work at which a new bundle is started: `max_unsigned` or an hour of the person's rate,
    /// whichever is less, and one at least.
    pub fn cap(&self) -> Option<u32> {
        let caps = [self.max_unsigned, self.per_hour].into_iter().flatten();
        caps.min().map(|cap| cap.max(1))
    }

    /// Returns true if no new bundle is started.
    pub fn is_held(&self) -> bool {
        self.cap().is_some_and(|cap| self.unsigned >= cap)
    }

    /// Says why no new bundle is started.
    pub fn reason(&self) -> Option<String> {
        let cap = self.cap().filter(|_| self.is_held())?;
        let is_rate = self.max_unsigned.is_none_or(|max| max > cap);
        let limit = if is_rate {
            format!("an hour of your decisions is {cap}")
        } else {
            format!("`max_unsigned` in [flow] is {cap}")
        };
        Some(format!("{} wait for sign-off, and {limit}", self.unsigned))
    }
}

/// Returns the decisions that a person makes in an hour of deciding, from the times of past ones in seconds.
///
/// Intervals longer than half an hour are breaks and do not count.
pub fn decisions_per_hour(times: &[i64]) -> Option<u32> {
    let mut times = times.to_vec();
    times.sort_unstable();
    let gaps = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    let gaps: Vec<i64> = gaps.filter(|gap| *gap <= BREAK).collect();
    let latest = &gaps[gaps.len().saturating_sub(LATEST)..];
    if latest.len() < ENOUGH {
        return None;
    }
    let count = i64::try_from(latest.len()).ok()?;
    let spent = latest.iter().sum::<i64>().max(1);
    // Many decisions in one second say that nothing holds anybody up.
    u32::try_from((count * 3600 / spent).clamp(1, 3600)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_stricter_limit_counts_and_says_its_name() {
        let pace =
            |unsigned, max_unsigned, per_hour| UnsignedWork { unsigned, max_unsigned, per_hour };
        let table = [
            (pace(9, Some(10), None), None),
            (
                pace(10, Some(10), None),
                Some("10 wait for sign-off, and `max_unsigned` in [flow] is 10"),
            ),
            (pace(10, None, None), None),
            (
                pace(6, Some(10), Some(6)),
                Some("6 wait for sign-off, and an hour of your decisions is 6"),
            ),
            (
                pace(6, Some(6), Some(6)),
                Some("6 wait for sign-off, and `max_unsigned` in [flow] is 6"),
            ),
            (pace(0, Some(10), Some(1)), None),
            (
                pace(1, None, Some(1)),
                Some("1 wait for sign-off, and an hour of your decisions is 1"),
            ),
        ];
        for (pace, reason) in table {
            assert_eq!(pace.reason().as_deref(), reason, "{pace:?}");
        }
    }

    #[test]
    fn breaks_do_not_count_and_too_few_decisions_say_nothing() {
        assert_eq!(decisions_per_hour(&[]), None);
        assert_eq!(decisions_per_hour(&[0, 600, 1200]), None);
        assert_eq!(decisions_per_hour(&[0, 600, 1200, 1800]), Some(6));
        let day = 86_400;
        assert_eq!(decisions_per_hour(&[0, 600, 1200, day, day + 600]), Some(6));
        assert_eq!(decisions_per_hour(&[5, 5, 5, 5]), Some(3600));
    }

    proptest! {
        #[test]
        fn whatever_the_times_something_may_always_start(times in prop::collection::vec(any::<i64>(), 0..60)) {
            let per_hour = decisions_per_hour(&times);
            let pace = UnsignedWork { unsigned: 0, max_unsigned: Some(0), per_hour };
            prop_assert!(!pace.is_held());
        }
    }
}
