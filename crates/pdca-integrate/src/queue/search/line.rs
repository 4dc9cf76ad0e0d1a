//! Choice of the prefixes of the line to gate next.
//!
//! Every change is assumed to be a culprit with the same probability, estimated from the changes decided so
//! far, so the place of the first culprit is distributed geometrically. A test splits the distribution: green
//! means "behind this length", red "not behind it". One lane halves it; more lanes cut it into parts of equal
//! weight.

/// A line of undecided changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchLine {
    pub(super) len: usize,
    /// The length of the shortest red prefix.
    pub(super) red: Option<usize>,
    /// The probability that a change is a culprit.
    pub(super) share: f64,
    /// True if no change has been asked about yet.
    pub(super) is_new: bool,
}

impl SearchLine {
    /// Returns up to `count` lengths of prefixes to gate in addition to those in flight, most useful first.
    pub(super) fn lengths(&self, in_flight: &[usize], count: usize) -> Vec<usize> {
        // A prefix at least as long as a red one tells nothing new about the first culprit.
        let longest = self.red.map_or(self.len, |red| red - 1);
        let mut taken: Vec<usize> = in_flight.to_vec();
        let mut found = Vec::new();
        let mut take = |length: usize, taken: &mut Vec<usize>| {
            if (1..=longest).contains(&length) && found.len() < count && !taken.contains(&length) {
                taken.push(length);
                found.push(length);
            }
        };
        // A batch that is green as a whole must cost one run only.
        if self.red.is_none() && (self.is_new || self.behind(self.len) >= GREEN_ENOUGH) {
            take(self.len, &mut taken);
        }
        let parts = in_flight.len() + count;
        let mut cuts: Vec<usize> =
            (1..=parts).map(|part| self.cut(part, parts + 1, longest)).collect();
        // The middle first: with one lane it is the best cut.
        cuts.sort_by_key(|length| length.abs_diff(self.cut(1, 2, longest)));
        for length in cuts {
            take(length, &mut taken);
        }
        // Cuts of a short line fall together, which would leave lanes idle.
        while let Some(length) = self.widest_gap(&taken, longest) {
            let before = taken.len();
            take(length, &mut taken);
            if taken.len() == before {
                break;
            }
        }
        found
    }

    /// Returns the probability that a prefix contains no culprit.
    fn behind(&self, length: usize) -> f64 {
        let length = i32::try_from(length).unwrap_or(i32::MAX);
        (1.0 - self.share).powi(length)
    }

    /// Returns the length before which `part` of `parts` of the weight lie.
    fn cut(&self, part: usize, parts: usize, longest: usize) -> usize {
        let total = self.red.map_or(1.0, |red| 1.0 - self.behind(red));
        let before = total * ratio(part, parts);
        let distance = |length: usize| (1.0 - self.behind(length) - before).abs();
        (1..=longest)
            .min_by(|one, other| distance(*one).total_cmp(&distance(*other)))
            .unwrap_or(longest)
    }

    /// Returns the middle of the heaviest gap between lengths that are taken.
    fn widest_gap(&self, taken: &[usize], longest: usize) -> Option<usize> {
        let mut bounds: Vec<usize> = taken.iter().copied().chain([0, longest + 1]).collect();
        bounds.sort_unstable();
        let weight = |gap: &&[usize]| self.behind(gap[0]) - self.behind(gap[1]);
        let gaps = bounds.windows(2).filter(|gap| gap[1] > gap[0] + 1);
        let widest = gaps.max_by(|one, other| weight(one).total_cmp(&weight(other)))?;
        Some(usize::midpoint(widest[0], widest[1]))
    }
}

/// The considered shares of culprits, each with a prior weight: most batches have few.
const SHARES: [(f64, f64); 6] =
    [(0.01, 8.0), (0.03, 6.0), (0.07, 3.0), (0.15, 1.0), (0.25, 0.4), (0.4, 0.1)];

/// Estimates the probability that a change is a culprit from the numbers of culprits and innocents so far.
pub(super) fn share_of_culprits(culprits: usize, innocents: usize) -> f64 {
    let power = |base: f64, times: usize| base.powi(i32::try_from(times).unwrap_or(i32::MAX));
    let (mut total, mut sum) = (0.0, 0.0);
    for (share, weight) in SHARES {
        let weight = weight * power(share, culprits) * power(1.0 - share, innocents);
        total += weight;
        sum += weight * share;
    }
    if total > 0.0 { sum / total } else { SHARES[0].0 }
}

/// The probability of being green from which the whole line is gated first.
const GREEN_ENOUGH: f64 = 0.3;

fn ratio(part: usize, parts: usize) -> f64 {
    let float = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    float(part) / float(parts)
}

/// Returns up to `count` numbers strictly between two, evenly spread.
pub(super) fn between(low: usize, high: usize, count: usize) -> Vec<usize> {
    let room = high.saturating_sub(low + 1);
    let count = count.min(room);
    (1..=count).map(|part| low + (part * (high - low)).div_ceil(count + 1).min(room)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(len: usize, red: Option<usize>, is_new: bool) -> SearchLine {
        SearchLine { len, red, share: share_of_culprits(0, 0), is_new }
    }

    #[test]
    fn a_new_batch_is_gated_as_a_whole_first() {
        assert_eq!(line(40, None, true).lengths(&[], 1), [40]);
    }

    #[test]
    fn one_lane_halves_a_red_prefix_until_one_change_is_left() {
        let mut red = 16;
        let mut asked = 0;
        while red > 1 {
            let lengths = line(16, Some(red), false).lengths(&[], 1);
            let [length] = lengths[..] else { panic!("{lengths:?}") };
            assert!((1..red).contains(&length), "{length} of {red}");
            (red, asked) = (length, asked + 1);
        }
        assert!(asked <= 5, "{asked} runs for 16 changes");
    }

    #[test]
    fn lanes_never_gate_a_length_twice_nor_one_that_is_in_flight() {
        let lengths = line(9, Some(9), false).lengths(&[4], 8);
        let mut once = lengths.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once, [1, 2, 3, 5, 6, 7, 8]);
        assert_eq!(lengths.len(), once.len());
    }

    #[test]
    fn every_culprit_raises_the_expectation_of_the_next_and_every_innocent_lowers_it() {
        let at_first = share_of_culprits(0, 0);
        assert!(share_of_culprits(3, 0) > at_first);
        assert!(share_of_culprits(0, 30) < at_first);
        assert!(share_of_culprits(usize::MAX, usize::MAX) > 0.0);
    }
}
