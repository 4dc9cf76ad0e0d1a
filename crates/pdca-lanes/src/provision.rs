//! Many lanes made ready at once, by any number of processes.
//!
//! A slot's lock is taken before anything of it is looked at, and nothing is waited for while
//! one is held: what is free is made and given back, and only then is the next one waited for.
//! So processes that ask for the same slots share the work and none can stop another. What was
//! begun by one that was killed is finished by whoever comes next.

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
    marker::{Marker, Progress},
    target::Target,
};

/// How long someone else may take to make a lane that we were asked for.
const PATIENCE: Duration = Duration::from_secs(600);

/// How often a lock that someone holds is tried again.
const AGAIN: Duration = Duration::from_millis(20);

/// What a lane is to the repository it is a checkout of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneKind {
    /// A repository of its own that only borrows objects. Nothing of the primary is written.
    #[default]
    Reference,
    /// A linked worktree: registered in the primary's `.git/worktrees`, with its refs and objects.
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

/// Which lanes are wanted.
#[derive(Debug, Clone)]
pub struct Provision<'a> {
    /// The slots, at least one.
    pub slots: Range<u32>,
    /// The repository.
    pub target: &'a Target,
    /// The commit to check out, in full, as [`Target::resolve`] gives it.
    pub base: &'a str,
    /// What to make where there is no lane yet. One of the other kind is an error.
    pub kind: LaneKind,
}

/// What happens meanwhile, told from whichever thread it happens in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProvisionEvent {
    /// Someone else has the slot and its lane is not ready; waiting, with no lock held.
    Waiting {
        /// The slot.
        slot: u32,
        /// The process that has it, where known.
        holder: Option<u32>,
    },
    /// The lane is ours and has no checkout yet.
    Making {
        /// The slot.
        slot: u32,
    },
    /// Files are being written.
    Files {
        /// The slot.
        slot: u32,
        /// How many are there.
        done: usize,
        /// How many there will be.
        total: usize,
    },
    /// The lane is ready.
    Ready(Provisioned),
}

/// A lane that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provisioned {
    /// The slot.
    pub slot: u32,
    /// The checkout.
    pub path: Utf8PathBuf,
    /// What it is to the primary.
    pub kind: LaneKind,
    /// The commit that it was last reset to, which in a lane that was there already is its own.
    pub base: String,
    /// Whether it was made just now. One that was there was left as it is.
    pub made: bool,
}

/// Why not all lanes are ready. Those that are stay so, and asking again completes the rest.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// No slot was named.
    #[error("no lane was asked for")]
    NoSlots,
    /// A slot was not ours to use.
    #[error("lane {slot} cannot be made")]
    Claim {
        /// The slot.
        slot: u32,
        /// Why.
        #[source]
        source: ClaimError,
    },
    /// The files could not be put there.
    #[error("lane {slot} cannot be filled")]
    Fill {
        /// The slot.
        slot: u32,
        /// Why.
        #[source]
        source: LaneError,
    },
}

/// A listener may be called from any thread.
type Tell<'a> = &'a (dyn Fn(ProvisionEvent) + Sync);

impl Lanes {
    /// Makes the lanes that are not there yet, and says what is there then, by slot.
    ///
    /// A lane that has a checkout is left as it is, whoever works in it. One whose making was
    /// interrupted is completed. Several processes may ask for the same lanes at once.
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
            for (slot, there) in lanes.find_all(&std::mem::take(&mut wanted), request) {
                match there? {
                    There::Ready(lane) => ready.push(said(tell, lane)),
                    There::Free(lane) => fresh.push((slot, *lane)),
                    There::Held(source) => later.push((slot, source)),
                }
            }
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

    /// Looks at all slots at once: most of the time goes into making the markers durable.
    fn find_all(
        &self,
        slots: &[u32],
        request: &Provision<'_>,
    ) -> Vec<(u32, Result<There, ProvisionError>)> {
        std::thread::scope(|scope| {
            let look = |slot: &u32| {
                let slot = *slot;
                (slot, scope.spawn(move || self.find(slot, request)))
            };
            let looks: Vec<_> = slots.iter().map(look).collect();
            let join = |(slot, look): (u32, std::thread::ScopedJoinHandle<'_, _>)| {
                (slot, look.join().expect("a look reports its failure and never panics"))
            };
            looks.into_iter().map(join).collect()
        })
    }

    /// Looks at a slot, and takes it where there is something to make.
    fn find(&self, slot: u32, request: &Provision<'_>) -> Result<There, ProvisionError> {
        let failed = |source| ProvisionError::Fill { slot, source };
        match self.claim(slot, request.target) {
            Ok(lane) if lane.kind() != request.kind => {
                let source =
                    ClaimError::OtherKind { path: lane.path().to_owned(), kind: lane.kind() };
                Err(ProvisionError::Claim { slot, source })
            }
            Ok(lane) => match lane.base().map_err(failed)? {
                Some(base) => Ok(There::Ready(provisioned(&lane, slot, base, false))),
                None => Ok(There::Free(Box::new(lane))),
            },
            Err(source @ ClaimError::Held { .. }) => {
                Ok(self.ready_in_use(slot, request).map_or(There::Held(source), There::Ready))
            }
            Err(source) => Err(ProvisionError::Claim { slot, source }),
        }
    }

    /// A lane that someone works in, if it is a lane of what is wanted and has a checkout.
    fn ready_in_use(&self, slot: u32, request: &Provision<'_>) -> Option<Provisioned> {
        let path = self.marker_path(slot, request.target);
        let marker = Marker::load(&path).ok().flatten()?;
        let ours = marker.is_of(slot, request.target)
            && marker.kind == request.kind
            && marker.progress == Progress::Ready;
        let base = marker.base.filter(|_| ours)?;
        let path = self.checkout_path(slot, request.target);
        Some(Provisioned { slot, path, kind: marker.kind, base, made: false })
    }
}

/// What was found in a slot.
enum There {
    Ready(Provisioned),
    Free(Box<Lane>),
    Held(ClaimError),
}

/// Since when nothing could be done.
#[derive(Default)]
struct Waits {
    told: Vec<u32>,
    since: Option<Instant>,
}

impl Waits {
    /// Waits a little for someone else; an error when that has been going on for too long.
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

/// Checks the base out in lanes that have nothing checked out, and gives them back.
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
        // What a process that was killed left there is made right file by file.
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
    entered.iter().try_for_each(|(lane, repo)| lane.settle(repo, commit, None))
}
