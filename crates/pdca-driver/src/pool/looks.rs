//! The times at which a pool looks at the bundles that wait for a person.
//!
//! A look costs as much as there are such bundles, and the dispatcher has time for one whenever a lane is free. Without
//! a limit a batch would get slower with each bundle that it finishes. So there is at most one look a tick; it compares
//! time stamps, and loads only the bundles whose turn it is.

use std::time::Instant;

use super::TICK;

/// Within so many looks each bundle is loaded once, even if the time stamp of its directory is unchanged: editing a
/// file in place does not change it.
// At one look a tick, an edit that the time stamp does not show is seen within two seconds.
const TURNS: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Looks {
    count: usize,
    latest: Option<Instant>,
}

/// One look at all bundles that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitingLook {
    /// Loads the bundles with this turn.
    Turn(usize),
    /// Loads all.
    Thorough,
}

impl Looks {
    /// Returns the turn of the bundle that is the `nth` to wait.
    pub(super) fn turn(nth: usize) -> usize {
        nth % TURNS
    }

    /// Begins a look if one is due. The last of a pool always is, and leaves nothing out.
    pub(super) fn begin(&mut self, now: Instant, last: bool) -> Option<WaitingLook> {
        if last {
            return Some(WaitingLook::Thorough);
        }
        if self.latest.is_some_and(|latest| now.saturating_duration_since(latest) < TICK) {
            return None;
        }
        self.latest = Some(now);
        self.count = self.count.wrapping_add(1);
        Some(WaitingLook::Turn(Self::turn(self.count)))
    }
}

impl WaitingLook {
    /// Returns true if it loads the bundles with this turn in any case.
    pub(super) fn loads(self, turn: usize) -> bool {
        match self {
            Self::Turn(at) => at == turn,
            Self::Thorough => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lanes_that_end_within_a_tick_cost_one_look() {
        let (mut looks, start) = (Looks::default(), Instant::now());
        assert!(looks.begin(start, false).is_some());
        let soon = (1..100).map(|ms| start + Duration::from_millis(ms));
        assert_eq!(soon.filter_map(|now| looks.begin(now, false)).count(), 0);
        assert!(looks.begin(start + TICK, false).is_some());
    }

    #[test]
    fn each_bundle_has_its_turn_once_in_a_round() {
        let (mut looks, start) = (Looks::default(), Instant::now());
        let mut loaded = [0; 50];
        for tick in 0..u32::try_from(TURNS).unwrap() {
            let look = looks.begin(start + TICK * tick, false).unwrap();
            for (nth, loaded) in loaded.iter_mut().enumerate() {
                *loaded += u32::from(look.loads(Looks::turn(nth)));
            }
        }
        assert_eq!(loaded, [1; 50]);
    }

    #[test]
    fn the_last_look_waits_for_no_tick_and_loads_all() {
        let (mut looks, now) = (Looks::default(), Instant::now());
        looks.begin(now, false);
        let look = looks.begin(now, true).unwrap();
        assert!((0..TURNS).all(|turn| look.loads(turn)));
    }
}
