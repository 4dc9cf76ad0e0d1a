//! The places of a run, and their slots.

use std::collections::BTreeSet;
use std::sync::Mutex;

use pdca_process::Cancel;
use pdca_state::sha256_hex;

use super::{Here, Place, PlaceSlot};
use crate::run::Run;
use crate::run_bundle::{BeatError, Driver};

/// The leaf calls that one leg elsewhere may make at most. A leg needs two, and more where calls are repeated.
const CALLS_PER_LEG: u64 = 8;

/// The places of a run.
///
/// The slots of the pool are the local lanes first, then those of each other place in order.
#[derive(Debug)]
pub struct Places {
    here: Here,
    others: Vec<Box<dyn Place>>,
    /// The leaf calls that legs under way may still make, of those that the run has left.
    reserved: Mutex<u64>,
}

/// Leaf calls that are set aside for a leg, given back when it is dropped.
#[derive(Debug)]
pub struct Reserved<'f> {
    places: &'f Places,
    calls: u64,
}

impl Reserved<'_> {
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        *self.places.reserved() -= self.calls;
    }
}

impl Places {
    /// Makes the places of a run with so many local lanes, which may be none.
    pub fn new(lanes: u32, others: Vec<Box<dyn Place>>) -> Self {
        Self { here: Here { lanes }, others, reserved: Mutex::new(0) }
    }

    fn all(&self) -> impl Iterator<Item = &dyn Place> {
        std::iter::once(&self.here as &dyn Place).chain(self.others())
    }

    /// Returns the places other than the driver's own machine.
    pub(crate) fn others(&self) -> impl Iterator<Item = &dyn Place> {
        self.others.iter().map(AsRef::as_ref)
    }

    /// Returns the number of local lanes.
    pub(crate) fn lanes(&self) -> u32 {
        self.here.lanes
    }

    fn reserved(&self) -> std::sync::MutexGuard<'_, u64> {
        self.reserved.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sets calls aside for a leg elsewhere; `None` where the run has no limit.
    pub(crate) fn grant(&self, cx: &Driver<'_>) -> Result<Option<Reserved<'_>>, BeatError> {
        let (Some(limit), Some(run)) = (cx.config.limits.max_leaf_calls, cx.run) else {
            return Ok(None);
        };
        self.reserve(run, limit, CALLS_PER_LEG, cx.cancel).map(Some)
    }

    /// Sets calls aside, at most `most`. Waits while legs under way may use up what is left, and fails once the run has
    /// used up its limit.
    pub(crate) fn reserve(
        &self,
        run: &Run,
        limit: u64,
        most: u64,
        cancel: &Cancel,
    ) -> Result<Reserved<'_>, BeatError> {
        loop {
            let called = run.leaf_calls();
            if called >= limit {
                return Err(BeatError::Capped { called });
            }
            if cancel.is_cancelled() {
                return Err(BeatError::Interrupted);
            }
            {
                let mut reserved = self.reserved();
                let calls = (limit - called).saturating_sub(*reserved).min(most);
                if calls > 0 {
                    *reserved += calls;
                    return Ok(Reserved { places: self, calls });
                }
            }
            // Legs under way take minutes, so polling costs nothing and needs no condition
            // variable.
            std::thread::park_timeout(std::time::Duration::from_millis(50));
        }
    }

    /// Returns the number of slots, of all places together.
    pub fn slots(&self) -> u32 {
        self.all().fold(0, |sum, place| sum.saturating_add(place.slots()))
    }

    /// Returns what a slot of the pool is. Further ones are lanes here.
    pub(crate) fn at(&self, slot: u32) -> PlaceSlot<'_> {
        let mut rest = slot;
        for place in self.all() {
            if rest < place.slots() {
                return PlaceSlot { place, slot: rest };
            }
            rest -= place.slots();
        }
        PlaceSlot { place: &self.here, slot }
    }

    /// Returns the slot of the pool for a slot of a place that is not lost.
    pub(crate) fn slot_of(&self, name: &str, at: u32) -> Option<u32> {
        let mut first = 0;
        for place in self.all() {
            if place.name() == Some(name) {
                return (at < place.slots() && !place.is_lost()).then(|| first + at);
            }
            first += place.slots();
        }
        None
    }

    /// Returns the slots of places that were lost.
    pub(crate) fn lost_slots(&self) -> BTreeSet<u32> {
        let is_lost = |slot: &u32| self.at(*slot).place.is_lost();
        (self.here.lanes..self.slots()).filter(is_lost).collect()
    }

    /// Returns how well a slot suits the next bundle, the best first: a warm checkout, then the place with the most
    /// free slots, then the order of the configuration.
    pub(crate) fn rank(&self, slot: u32, is_free: &dyn Fn(u32) -> bool) -> (bool, u32, u32) {
        let PlaceSlot { place, slot: at } = self.at(slot);
        let first = slot - at;
        let free = (first..first + place.slots()).filter(|slot| is_free(*slot)).count();
        let free = u32::try_from(free).unwrap_or(u32::MAX);
        (!place.is_warm(), place.slots().saturating_sub(free), slot)
    }

    /// Returns the environment of gates that may run at any of the places: a verdict counts where all of them are the
    /// same.
    pub(crate) fn gates_environment(&self, here: &str) -> String {
        let mut all: Vec<&str> = self.others().filter_map(Place::gates_environment).collect();
        all.sort_unstable();
        all.dedup();
        sha256_hex(format!("{here}\0{}", all.join("\0")).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::leg::{Leg, LegEnd};

    #[derive(Debug, Default)]
    struct Named {
        name: String,
        slots: u32,
        is_warm: AtomicBool,
        is_lost: AtomicBool,
        environment: Option<String>,
    }

    impl Place for std::sync::Arc<Named> {
        fn run<'a>(&self, cx: &Driver<'a>, leg: &Leg<'a>) -> Result<LegEnd, BeatError> {
            Here::default().run(cx, leg)
        }

        fn name(&self) -> Option<&str> {
            Some(&self.name)
        }

        fn slots(&self) -> u32 {
            self.slots
        }

        fn is_lost(&self) -> bool {
            self.is_lost.load(Ordering::SeqCst)
        }

        fn is_warm(&self) -> bool {
            self.is_warm.load(Ordering::SeqCst)
        }

        fn gates_environment(&self) -> Option<&str> {
            self.environment.as_deref()
        }
    }

    type Shared = std::sync::Arc<Named>;

    /// One lane here, two cold slots of `a` and three warm ones of `b`.
    fn places() -> (Places, Shared) {
        let named = |name: &str, slots| Named { name: name.to_owned(), slots, ..Named::default() };
        let (a, b) = (Shared::new(named("a", 2)), Shared::new(named("b", 3)));
        b.is_warm.store(true, Ordering::SeqCst);
        (Places::new(1, vec![Box::new(Shared::clone(&a)), Box::new(b)]), a)
    }

    #[test]
    fn slots_are_local_lanes_first_and_then_those_of_each_place() {
        let (places, _) = places();
        let name = |slot| {
            let at = places.at(slot);
            format!("{} {}", at.place.name().unwrap_or("local"), at.slot)
        };
        let names: Vec<String> = (0..places.slots()).map(name).collect();
        assert_eq!(names, ["local 0", "a 0", "a 1", "b 0", "b 1", "b 2"]);
        assert_eq!(places.slot_of("b", 1), Some(4));
        assert_eq!(places.slot_of("b", 3), None, "the place has fewer slots now");
        assert_eq!(places.slot_of("c", 0), None);
    }

    #[test]
    fn a_warm_checkout_comes_first_and_then_the_place_with_the_most_free_slots() {
        let (places, a) = places();
        let best = |busy: &[u32]| {
            let is_free = |slot: u32| !busy.contains(&slot);
            let free = (0..places.slots()).filter(|slot| is_free(*slot));
            free.min_by_key(|slot| places.rank(*slot, &is_free))
        };
        assert_eq!(best(&[]), Some(0), "the local lane is warm");
        assert_eq!(best(&[0]), Some(3), "b has the repository, and a does not");
        assert_eq!(best(&[0, 3, 4, 5]), Some(1));
        a.is_warm.store(true, Ordering::SeqCst);
        assert_eq!(best(&[0, 3]), Some(1), "all of a is free");
        assert_eq!(best(&[0, 1, 3]), Some(2), "one slot of each is taken, and a comes first");
    }

    #[test]
    fn a_lost_place_has_no_slots_to_go_to() {
        let (places, a) = places();
        a.is_lost.store(true, Ordering::SeqCst);
        assert_eq!(places.lost_slots(), BTreeSet::from([1, 2]));
        assert_eq!(places.slot_of("a", 0), None);
    }

    #[test]
    fn the_environment_of_a_verdict_has_those_of_all_places_in_no_order() {
        let environment = |digests: &[&str]| {
            let one = |digest: &&str| {
                let environment = Some((*digest).to_owned());
                Box::new(Shared::new(Named { environment, ..Named::default() })) as Box<dyn Place>
            };
            Places::new(0, digests.iter().map(one).collect()).gates_environment("here")
        };
        assert_eq!(environment(&["a", "b"]), environment(&["b", "a", "b"]));
        assert_ne!(environment(&["a"]), environment(&["a", "b"]));
        assert_ne!(environment(&["a"]), environment(&[]));
    }
}
