//! Creating many lanes at once, from any number of processes.
//!
//! A process locks a slot before it looks into it, and never waits while it holds a lock: it creates and releases the
//! slots that are free, and only then waits for the next one. So processes that ask for the same slots share the work,
//! and none can block another for ever. Lanes that a killed process began are completed by the next one.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    checkout,
    claim::{ClaimError, Lanes},
    failure::LaneError,
    history,
    lane::Lane,
    marker::{LaneProgress, LaneRecord},
    target::Target,
};

/// The longest wait of one call for other processes that are creating lanes.
const PATIENCE: Duration = Duration::from_secs(600);

/// The interval between two attempts at a lock.
const AGAIN: Duration = Duration::from_millis(20);

/// The relation of a lane to the repository it is a checkout of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LaneKind {
    /// A repository of its own that only borrows objects. The primary is not written.
    #[default]
    Reference,
    /// A linked worktree, registered in the primary's `.git/worktrees`; its refs and objects are the primary's.
    Worktree,
}

impl std::fmt::Display for LaneKind {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Reference => "reference",
            Self::Worktree => "worktree",
        })
    }
}

/// The lanes to provision.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Provision<'a> {
    /// The slots; at least one.
    pub slots: Range<u32>,
    /// The repository to check out.
    pub target: &'a Target,
    /// The full id of the commit to check out, as [`Target::resolve`] returns it.
    pub base: &'a str,
    /// The kind of new lanes. An existing lane of another kind is an error.
    pub kind: LaneKind,
}

impl<'a> Provision<'a> {
    /// Asks for lanes of the default kind.
    pub fn new(slots: Range<u32>, target: &'a Target, base: &'a str) -> Self {
        Self { slots, target, base, kind: LaneKind::default() }
    }

    /// Sets the kind of new lanes.
    #[must_use]
    pub fn with_kind(self, kind: LaneKind) -> Self {
        Self { kind, ..self }
    }

    /// Examines all slots in parallel, because most of the time goes into syncing the markers.
    fn find_all(&self, lanes: &Lanes, slots: &[u32]) -> Vec<(u32, Result<There, ProvisionError>)> {
        std::thread::scope(|scope| {
            let look = |slot: &u32| {
                let slot = *slot;
                (slot, scope.spawn(move || self.find(lanes, slot)))
            };
            let looks: Vec<_> = slots.iter().map(look).collect();
            let join = |(slot, look): (u32, std::thread::ScopedJoinHandle<'_, _>)| {
                (slot, look.join().expect("a look reports its failure and never panics"))
            };
            looks.into_iter().map(join).collect()
        })
    }

    /// Examines a slot, and claims it if its checkout must be created.
    fn find(&self, lanes: &Lanes, slot: u32) -> Result<There, ProvisionError> {
        let failed = |source| ProvisionError::Fill { slot, source };
        match lanes.claim(slot, self.target) {
            Ok(lane) if lane.kind() != self.kind => {
                let source =
                    ClaimError::OtherKind { path: lane.path().to_owned(), kind: lane.kind() };
                Err(ProvisionError::Claim { slot, source })
            }
            Ok(lane) => match lane.base().map_err(failed)? {
                Some(base) => Ok(There::Ready(provisioned(&lane, slot, base, false))),
                None => Ok(There::Free(Box::new(lane))),
            },
            Err(source @ ClaimError::Held { .. }) => {
                Ok(self.ready_in_use(lanes, slot).map_or(There::Held(source), There::Ready))
            }
            Err(source) => Err(ProvisionError::Claim { slot, source }),
        }
    }

    /// Returns a lane that another process works in, if it matches the request and has a checkout.
    fn ready_in_use(&self, lanes: &Lanes, slot: u32) -> Option<Provisioned> {
        let record = LaneRecord::new(&lanes.slot_dir(slot), self.target.name());
        let marker = record.marker().ok().flatten()?;
        let ours = marker.is_of(slot, self.target)
            && marker.kind == self.kind
            && marker.progress == LaneProgress::Ready;
        let base = marker.base.filter(|_| ours)?;
        let path = record.checkout_path();
        Some(Provisioned { slot, path, kind: marker.kind, base, made: false })
    }
}

/// The progress of provisioning, reported from any thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProvisionEvent {
    /// Another process holds the slot and its lane is not ready. No lock is held while waiting.
    Waiting {
        /// The slot number.
        slot: u32,
        /// The process id of the holder, if known.
        holder: Option<u32>,
    },
    /// The lane is claimed and its checkout is about to be created.
    Making {
        /// The slot number.
        slot: u32,
    },
    /// Files are being written.
    Files {
        /// The slot number.
        slot: u32,
        /// The number of files written so far.
        done: usize,
        /// The total number of files.
        total: usize,
    },
    /// The lane is ready.
    Ready(Provisioned),
}

/// A lane that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Provisioned {
    /// The slot number.
    pub slot: u32,
    /// The path of the checkout.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: Utf8PathBuf,
    /// The relation to the primary.
    pub kind: LaneKind,
    /// The commit of its last reset, which in an existing lane may differ from the requested one.
    pub base: String,
    /// True if it was created now. An existing lane is left as it is.
    pub made: bool,
}

/// Failure to provision all lanes. Those that are ready stay so, and a second call completes the rest.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// The range of slots is empty.
    #[error("no slots were requested")]
    NoSlots,
    /// A slot could not be claimed.
    #[error("cannot create lane {slot}")]
    Claim {
        /// The slot number.
        slot: u32,
        /// The error of the claim.
        #[source]
        source: ClaimError,
    },
    /// The files could not be written.
    #[error("cannot check out the files of lane {slot}")]
    Fill {
        /// The slot number.
        slot: u32,
        /// The error of the lane.
        #[source]
        source: LaneError,
    },
}

/// A listener that may be called from any thread.
type Tell<'a> = &'a (dyn Fn(ProvisionEvent) + Sync);

impl Lanes {
    /// Creates the requested lanes that do not exist yet, and returns all of them, ordered by slot.
    ///
    /// An existing checkout is left as it is, even while another process works in it. An interrupted creation is
    /// completed. Several processes may ask for the same lanes at once.
    pub fn provision(
        &self,
        request: &Provision<'_>,
        tell: Tell<'_>,
    ) -> Result<Vec<Provisioned>, ProvisionError> {
        if request.slots.is_empty() {
            return Err(ProvisionError::NoSlots);
        }
        let lanes = self.clone().of_kind(request.kind);
        let mut ready = Vec::new();
        let mut wanted: Vec<u32> = request.slots.clone().collect();
        let mut waits = Waits::default();
        while !wanted.is_empty() {
            let (mut later, mut fresh) = (Vec::new(), Vec::new());
            for (slot, there) in request.find_all(&lanes, &std::mem::take(&mut wanted)) {
                match there? {
                    There::Ready(lane) => ready.push(said(tell, lane)),
                    There::Free(lane) => fresh.push((slot, *lane)),
                    There::Held(source) => later.push((slot, source)),
                }
            }
            // After a round that filled lanes the others are looked at again at once: they may be
            // ready by now.
            let progressed = !fresh.is_empty();
            ready.extend(fill(fresh, request, tell)?);
            if let Some((slot, source)) = later.first()
                && !progressed
            {
                waits.wait(*slot, source, tell).map_err(|()| {
                    let (slot, source) = later.swap_remove(0);
                    ProvisionError::Claim { slot, source }
                })?;
            }
            wanted.extend(later.iter().map(|(slot, _)| *slot));
        }
        ready.sort_unstable_by_key(|lane| lane.slot);
        Ok(ready)
    }
}

/// The state of a slot.
enum There {
    Ready(Provisioned),
    Free(Box<Lane>),
    Held(ClaimError),
}

/// The waiting time of one call, over all slots.
#[derive(Default)]
struct Waits {
    told: Vec<u32>,
    since: Option<Instant>,
}

impl Waits {
    /// Waits a little; fails once the total exceeds [`PATIENCE`].
    fn wait(&mut self, slot: u32, held: &ClaimError, tell: Tell<'_>) -> Result<(), ()> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() > PATIENCE {
            return Err(());
        }
        if !self.told.contains(&slot) {
            self.told.push(slot);
            let holder = if let ClaimError::Held { holder, .. } = held { *holder } else { None };
            tell(ProvisionEvent::Waiting { slot, holder });
        }
        std::thread::sleep(AGAIN);
        Ok(())
    }
}

fn provisioned(lane: &Lane, slot: u32, base: String, made: bool) -> Provisioned {
    Provisioned { slot, path: lane.path().to_owned(), kind: lane.kind(), base, made }
}

fn said(tell: Tell<'_>, lane: Provisioned) -> Provisioned {
    tell(ProvisionEvent::Ready(lane.clone()));
    lane
}

/// Checks the base out in lanes that have nothing checked out, and releases them.
fn fill(
    mut lanes: Vec<(u32, Lane)>,
    request: &Provision<'_>,
    tell: Tell<'_>,
) -> Result<Vec<Provisioned>, ProvisionError> {
    let Some((first, _)) = lanes.first() else { return Ok(Vec::new()) };
    let first = *first;
    let failed = |slot: u32| move |source: LaneError| ProvisionError::Fill { slot, source };
    for (slot, _) in &lanes {
        tell(ProvisionEvent::Making { slot: *slot });
    }
    let mut begun = Vec::new();
    for (slot, lane) in &lanes {
        // A killed process left files there; a reset corrects them one by one.
        if !lane.place().is_fresh().map_err(failed(*slot))? {
            begun.push(*slot);
            lane.reset(request.base).map_err(failed(*slot))?;
        }
    }
    let fresh = lanes.iter().filter(|(slot, _)| !begun.contains(slot)).collect::<Vec<_>>();
    fan_out(&fresh, request, tell).map_err(failed(first))?;
    let mut ready = Vec::new();
    for (slot, lane) in lanes.drain(..) {
        ready.push(said(tell, provisioned(&lane, slot, request.base.to_owned(), true)));
    }
    Ok(ready)
}

/// Writes the base to all of them at once.
fn fan_out(
    lanes: &[&(u32, Lane)],
    request: &Provision<'_>,
    tell: Tell<'_>,
) -> Result<(), LaneError> {
    let mut entered = Vec::new();
    for (_, lane) in lanes {
        entered.push((lane, lane.room.enter()?));
    }
    let Some((_, repo)) = entered.first() else { return Ok(()) };
    let commit = history::find_commit(repo, request.base)?;
    let places: Vec<_> = lanes.iter().map(|(_, lane)| lane.place()).collect();
    checkout::fill(repo, history::tree_of(repo, commit)?, &places, &|done, total| {
        for (slot, _) in lanes {
            tell(ProvisionEvent::Files { slot: *slot, done, total });
        }
    })?;
    entered.iter().try_for_each(|(lane, repo)| {
        lane.settle(repo, commit, None)?;
        lane.stage.lend_memory(&lane.room)
    })
}
