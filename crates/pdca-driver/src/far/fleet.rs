//! The hosts of a run, and their slots beside the local lanes.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pdca_process::Cancel;
use pdca_remote::{Host, HostOffer};

use crate::run::Run;
use crate::run_bundle::{BeatError, Driver};

/// The leaf calls that one job on a host may make at most. A band needs two, and more where calls are repeated.
const CALLS_PER_JOB: u64 = 8;

/// The hosts of a run.
///
/// The slots of the pool are the local lanes first, then those of each host in order.
#[derive(Debug, Default)]
pub struct Fleet {
    /// The number of local lanes, which may be none.
    pub local: u32,
    pub hosts: Vec<FleetHost>,
    /// The leaf calls that jobs under way may still make, of those that the run has left.
    reserved: Mutex<u64>,
}

/// Leaf calls that are set aside for a job, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reserved<'f> {
    fleet: &'f Fleet,
    calls: u64,
}

impl Reserved<'_> {
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        *self.fleet.reserved() -= self.calls;
    }
}

/// A host that was asked for its facts and found fit.
#[derive(Debug)]
pub struct FleetHost {
    pub host: Host,
    pub offer: HostOffer,
    /// Set once it gave no sign of life. It gets no further job in this run.
    lost: AtomicBool,
    /// The repositories with a checkout on the host.
    warm: Mutex<BTreeSet<String>>,
}

impl FleetHost {
    pub fn new(host: Host, offer: HostOffer) -> Self {
        let warm = offer.have.iter().filter(|(_, have)| !have.is_empty());
        let warm = warm.map(|(name, _)| name.clone()).collect();
        Self { host, offer, lost: AtomicBool::new(false), warm: Mutex::new(warm) }
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_warm(&self) -> bool {
        !self.warm.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_empty()
    }

    pub(crate) fn warmed(&self, repository: &str) {
        let mut warm = self.warm.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        warm.insert(repository.to_owned());
    }
}

/// A slot of the pool.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PoolSlot<'f> {
    Local,
    Far(&'f FleetHost, u32),
}

impl Fleet {
    pub fn new(local: u32, hosts: Vec<FleetHost>) -> Self {
        Self { local, hosts, reserved: Mutex::new(0) }
    }

    fn reserved(&self) -> std::sync::MutexGuard<'_, u64> {
        self.reserved.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sets calls aside for a job on a host; `None` where the run has no limit.
    pub(crate) fn grant(&self, cx: &Driver<'_>) -> Result<Option<Reserved<'_>>, BeatError> {
        let (Some(limit), Some(run)) = (cx.config.limits.max_leaf_calls, cx.run) else {
            return Ok(None);
        };
        self.reserve(run, limit, CALLS_PER_JOB, cx.cancel).map(Some)
    }

    /// Sets calls aside, at most `most`. Waits while jobs under way may use up what is left, and fails once the run has
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
                    return Ok(Reserved { fleet: self, calls });
                }
            }
            // Jobs under way take minutes, so polling costs nothing and needs no condition
            // variable.
            std::thread::park_timeout(std::time::Duration::from_millis(50));
        }
    }

    /// Returns the number of slots, of local lanes and hosts together.
    pub fn slots(&self) -> u32 {
        self.hosts.iter().fold(self.local, |sum, one| sum.saturating_add(one.host.spec.slots))
    }

    /// Returns what a slot of the pool is.
    pub(crate) fn place(&self, slot: u32) -> PoolSlot<'_> {
        let Some(mut rest) = slot.checked_sub(self.local) else { return PoolSlot::Local };
        for one in &self.hosts {
            if rest < one.host.spec.slots {
                return PoolSlot::Far(one, rest);
            }
            rest -= one.host.spec.slots;
        }
        PoolSlot::Local
    }

    /// Returns the slot of the pool for a slot of a host.
    pub(crate) fn slot_of(&self, name: &str, host_slot: u32) -> Option<u32> {
        let mut first = self.local;
        for one in &self.hosts {
            if one.host.name() == name {
                return (host_slot < one.host.spec.slots && !one.is_lost())
                    .then(|| first + host_slot);
            }
            first += one.host.spec.slots;
        }
        None
    }

    /// Returns the slots of hosts that were lost.
    pub(crate) fn lost_slots(&self) -> BTreeSet<u32> {
        let is_lost =
            |slot: &u32| matches!(self.place(*slot), PoolSlot::Far(host, _) if host.is_lost());
        (self.local..self.slots()).filter(is_lost).collect()
    }

    /// Returns how well a slot suits the next bundle, the best first: a warm checkout, then the machine with the most
    /// free slots, then the order of the configuration.
    pub(crate) fn rank(&self, slot: u32, is_free: &dyn Fn(u32) -> bool) -> (bool, u32, u32) {
        let (is_cold, range) = match self.place(slot) {
            PoolSlot::Local => (false, 0..self.local),
            PoolSlot::Far(host, at) => {
                let first = slot - at;
                (!host.is_warm(), first..first + host.host.spec.slots)
            }
        };
        let total = range.end - range.start;
        let free = u32::try_from(range.filter(|slot| is_free(*slot)).count()).unwrap_or(u32::MAX);
        (is_cold, total.saturating_sub(free), slot)
    }
}

#[cfg(test)]
pub(super) mod testing {
    use pdca_remote::{HostSpec, JobEngine, LocalProcess};

    use super::*;

    pub(in crate::far) fn host(name: &str, slots: u32, have: &[&str]) -> FleetHost {
        let spec = HostSpec {
            name: name.to_owned(),
            slots,
            root: "~/x".to_owned(),
            engine: JobEngine::Process,
            lost_after: std::time::Duration::from_secs(1),
            send: Vec::new(),
        };
        let transport = LocalProcess::new("/nowhere".into(), "/nowhere".into());
        let have = have.iter().map(|one| ((*one).to_owned(), vec!["c".to_owned()])).collect();
        FleetHost::new(
            Host::new(spec, Box::new(transport)),
            HostOffer { have, ..HostOffer::default() },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::testing::host;
    use super::*;

    fn fleet() -> Fleet {
        Fleet::new(1, vec![host("a", 2, &[]), host("b", 3, &["app"])])
    }

    #[test]
    fn slots_are_local_lanes_first_and_then_those_of_each_host() {
        let fleet = fleet();
        let name = |slot| match fleet.place(slot) {
            PoolSlot::Local => format!("local {slot}"),
            PoolSlot::Far(host, slot) => format!("{} {slot}", host.host.name()),
        };
        let names: Vec<String> = (0..fleet.slots()).map(name).collect();
        assert_eq!(names, ["local 0", "a 0", "a 1", "b 0", "b 1", "b 2"]);
        assert_eq!(fleet.slot_of("b", 1), Some(4));
        assert_eq!(fleet.slot_of("b", 3), None, "the host has fewer slots now");
        assert_eq!(fleet.slot_of("c", 0), None);
    }

    #[test]
    fn a_warm_checkout_comes_first_and_then_the_machine_with_the_most_free_slots() {
        let fleet = fleet();
        let best = |busy: &[u32]| {
            let is_free = |slot: u32| !busy.contains(&slot);
            let free = (0..fleet.slots()).filter(|slot| is_free(*slot));
            free.min_by_key(|slot| fleet.rank(*slot, &is_free))
        };
        assert_eq!(best(&[]), Some(0), "the local lane is warm");
        assert_eq!(best(&[0]), Some(3), "b has the repository, and a does not");
        assert_eq!(best(&[0, 3, 4, 5]), Some(1));
        fleet.hosts[0].warmed("app");
        assert_eq!(best(&[0, 3]), Some(1), "all of a is free");
        assert_eq!(best(&[0, 1, 3]), Some(2), "one slot of each is taken, and a comes first");
    }

    #[test]
    fn a_lost_host_has_no_slots_to_go_to() {
        let fleet = fleet();
        fleet.hosts[0].lose();
        assert_eq!(fleet.lost_slots(), BTreeSet::from([1, 2]));
        assert_eq!(fleet.slot_of("a", 0), None);
    }
}
