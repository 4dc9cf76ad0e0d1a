//! Progress of gate runs: the number of this one, the most that there will be, and the time that they take.

use std::num::NonZeroU32;

/// The gate runs of an integration so far.
#[derive(Debug, Clone)]
pub(super) struct RunProgress {
    lanes: NonZeroU32,
    begun: u32,
    ended: u32,
    /// The seconds that the ended ones took together.
    seconds: i64,
}

impl RunProgress {
    pub(super) fn new(lanes: NonZeroU32) -> Self {
        Self { lanes, begun: 0, ended: 0, seconds: 0 }
    }

    pub(super) fn begin(&mut self) {
        self.begun += 1;
    }

    pub(super) fn ended(&mut self, seconds: i64) {
        self.ended += 1;
        self.seconds += seconds.max(0);
    }

    /// Describes the run that just began. `most_left` are the runs that may still come, this one included.
    pub(super) fn told(&self, most_left: u32, is_red: bool) -> String {
        let most = (self.ended + most_left).max(self.begun);
        let number = self.begun;
        // As long as nothing is red it is not known how much there is to find out.
        let condition = if is_red { "" } else { " if all is green" };
        let left = self.left(most - self.ended.min(most));
        let left = left.map_or_else(String::new, |left| format!(", about {left} left"));
        format!("run {number} of at most {most}{condition}{left}")
    }

    /// Returns the time for so many runs, in words; `None` before the first has ended.
    fn left(&self, runs: u32) -> Option<String> {
        if self.ended == 0 {
            return None;
        }
        let each = self.seconds / i64::from(self.ended);
        let rounds = i64::from(runs.div_ceil(self.lanes.get()));
        Some(match each * rounds {
            seconds @ ..90 => format!("{seconds} s"),
            seconds @ 90..5400 => format!("{} min", (seconds + 30) / 60),
            seconds => format!("{} h", (seconds + 1800) / 3600),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_its_number_the_most_that_there_are_and_the_time_once_one_has_ended() {
        let mut runs = RunProgress::new(NonZeroU32::MIN);
        runs.begin();
        assert_eq!(runs.told(2, false), "run 1 of at most 2 if all is green");
        runs.ended(40);
        runs.begin();
        assert_eq!(runs.told(9, true), "run 2 of at most 10, about 6 min left");
        runs.ended(20);
        runs.begin();
        assert_eq!(runs.told(1, true), "run 3 of at most 3, about 30 s left");
    }

    #[test]
    fn lanes_share_the_time() {
        let mut runs = RunProgress::new(NonZeroU32::new(4).unwrap());
        runs.begin();
        runs.ended(3600);
        runs.begin();
        assert_eq!(runs.told(5, true), "run 2 of at most 6, about 2 h left");
    }
}
