//! A claimed checkout with everything that makes work in it safe: names, owner, reset, hydration, tripwire.
//!
//! Builds, gates, reviews, combinations and resolutions all run on a [`Workbench`]. Its protocol, and the
//! failure that each step prevents:
//!
//! 1. *Claim* the slot's lock: two drivers never share a checkout.
//! 2. *Take names* (ports, database, temporary directory) while the claim lives: test suites in two lanes
//!    never meet.
//! 3. *Save* what no commit holds: the work of an attempt that was killed is never deleted, nor are files that somebody
//!    put into an idle lane.
//! 4. *Mark as clearing*: a driver that dies from here on leaves a checkout that is recognizably nobody's,
//!    and half a reset is never taken for work.
//! 5. *Reset*. A checkout that cannot be reset is moved aside and made anew, once: one bundle cannot wedge
//!    a lane for those that follow.
//! 6. *Hydrate*: nothing runs in a checkout that lacks what it needs beyond git.
//! 7. *Set the owner* to the job: a recorded verdict counts only if the owner says that the checkout is
//!    still that job's.
//! 8. *Arm the tripwire* before a child starts and compare after it ended: writes to the primary are seen.
//!    It is kept in the job's directory, so a driver that takes over compares with the time before the child.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use gix::bstr::{BString, ByteSlice as _};
use pdca_process::{Cancel, Sign};

use crate::{
    claim::{ClaimError, Lanes},
    failure::LaneError,
    hydrate::{Hydrate, HydrateError, HydratePhase, Hydrated},
    idle::{IdleChanges, ReleaseStamp},
    lane::{Lane, Reset, Saved},
    names::{PrivateNames, WorkspaceId},
    owner::OwnerNote,
    ports::PortRange,
    private::{Private, PrivateError},
    target::Target,
    tripwire::{ArmError, Tripwire},
};

/// The file of a job in which its tripwire is kept.
const TRIPWIRE: &str = "primary.json";

/// A claimed checkout, prepared for one job after the other.
#[derive(Debug)]
pub struct Workbench {
    /// The repository that the checkout is of.
    pub target: Target,
    /// The checkout.
    pub lane: Lane,
    slot: u32,
    /// Reserves the ports of the names for as long as the claim lives.
    private: Option<Private>,
    /// True once the changes of the idle time were looked for.
    is_looked_at: AtomicBool,
}

/// The state that a job needs its checkout in.
#[derive(Debug)]
#[non_exhaustive]
pub struct Setup<'a> {
    /// The job that will own the checkout.
    pub job: &'a str,
    /// The commit to stand at.
    pub commit: &'a str,
    /// The branch to stand on; detached if absent.
    pub branch: Option<&'a str>,
    /// How much the reset clears.
    pub reset: Reset,
    /// What the checkout needs beyond git.
    pub hydrate: Hydrate<'a>,
}

impl<'a> Setup<'a> {
    /// Asks for a detached checkout of `commit` after a [`Reset::Clean`].
    pub fn new(job: &'a str, commit: &'a str, hydrate: Hydrate<'a>) -> Self {
        Self { job, commit, branch: None, reset: Reset::default(), hydrate }
    }

    /// Sets the branch to stand on.
    #[must_use]
    pub fn with_branch(self, branch: Option<&'a str>) -> Self {
        Self { branch, ..self }
    }

    /// Sets the extent of the reset.
    #[must_use]
    pub fn with_reset(self, reset: Reset) -> Self {
        Self { reset, ..self }
    }
}

/// Receives the steps and events of a workbench, on the thread that carries them out.
pub trait Observer {
    /// A change that outlives the process is about to be made, or was made if `done`.
    fn reached(&self, step: &'static str, done: bool);

    /// Something happened that a person may want to know.
    fn event(&self, event: WorkbenchEvent);
}

/// An observable event on a workbench.
#[derive(Debug)]
pub enum WorkbenchEvent {
    /// Work that no commit held was committed and is kept under a ref.
    Rescued {
        /// The commit.
        commit: String,
    },
    /// Files changed in the checkout while no process held it. They were moved before a reset removes them.
    FoundInIdle {
        /// The paths in the checkout, sorted.
        paths: Vec<String>,
        /// The directory that has them now.
        aside: Utf8PathBuf,
    },
    /// The checkout could not be used and was made anew.
    Replaced {
        /// Where the old one was moved, if anything of it was left.
        aside: Option<Utf8PathBuf>,
        /// The failure in the old one.
        why: LaneError,
    },
    /// A command of hydration printed a line.
    Hydrating {
        /// The command's phase.
        phase: HydratePhase,
        /// Its last line.
        line: String,
    },
    /// The checkout was hydrated afresh.
    Hydrated {
        /// The number of files that were placed.
        files: usize,
    },
}

/// A workbench that cannot be used. None of these is the fault of the change in it.
#[derive(Debug, thiserror::Error)]
pub enum WorkbenchError {
    /// The checkout cannot be claimed.
    #[error("cannot claim a private checkout of `{name}`")]
    Claim {
        /// The target's name.
        name: String,
        /// The error of the claim.
        source: ClaimError,
    },
    /// The checkout has no names of its own.
    #[error("cannot reserve private names for lane {slot}")]
    Names {
        /// The slot.
        slot: u32,
        /// The error of taking names.
        source: PrivateError,
    },
    /// The checkout lacks what it needs beyond git.
    #[error("the private checkout of `{name}` cannot be hydrated")]
    Hydrate {
        /// The target's name.
        name: String,
        /// The error of the hydration.
        source: Box<HydrateError>,
    },
    /// An operation in the checkout failed.
    #[error("an operation in the private checkout failed")]
    Lane(#[from] LaneError),
    /// The primary checkout cannot be watched.
    #[error("the primary checkout cannot be watched")]
    Watch(#[from] ArmError),
    /// The owner or the tripwire cannot be read or written.
    #[error("the record of the checkout cannot be written")]
    Record(#[source] io::Error),
}

impl Workbench {
    /// Claims the first of `slots` that is free.
    pub fn claim(
        lanes: &Lanes,
        slots: impl IntoIterator<Item = u32>,
        target: Target,
    ) -> Result<Self, WorkbenchError> {
        let mut failed = ClaimError::Held { slot: 0, holder: None };
        for slot in slots {
            match lanes.claim(slot, &target) {
                Ok(lane) => {
                    let is_looked_at = AtomicBool::new(false);
                    return Ok(Self { target, lane, slot, private: None, is_looked_at });
                }
                Err(held @ ClaimError::Held { .. }) => failed = held,
                // Only a held slot is passed over; passing over any other failure would hide a lane
                // that needs a person.
                Err(other) => {
                    failed = other;
                    break;
                }
            }
        }
        Err(WorkbenchError::Claim { name: target.name().to_owned(), source: failed })
    }

    /// Takes the names that the lane goes by while the claim lives.
    pub fn take_names(
        &mut self,
        workspace: &WorkspaceId,
        ports: PortRange,
    ) -> Result<&PrivateNames, WorkbenchError> {
        let taken = self.lane.take_names(workspace, ports);
        let taken = taken.map_err(|source| WorkbenchError::Names { slot: self.slot, source })?;
        Ok(self.private.insert(taken).names())
    }

    /// Returns the owner of the work in the checkout, if it has one.
    pub fn owner(&self) -> Result<Option<OwnerNote>, WorkbenchError> {
        let note = self.lane.owner().map_err(WorkbenchError::Record)?;
        Ok(note.as_deref().and_then(OwnerNote::from_note))
    }

    /// Returns true if the work in the checkout is that of `job`.
    pub fn is_owned_by(&self, job: &str) -> Result<bool, WorkbenchError> {
        Ok(self.owner()?.is_some_and(|owner| owner.job == job))
    }

    /// Records the owner of the work in the checkout.
    pub fn set_owner(&self, owner: &OwnerNote) -> Result<(), WorkbenchError> {
        self.lane.set_owner(&owner.to_note()).map_err(WorkbenchError::Record)
    }

    /// Returns true if the checkout differs from `commit`. A checkout that cannot be read counts as different, so that
    /// saving its work reports the failure.
    pub fn differs_from(&self, commit: &str) -> bool {
        match (self.lane.tree(), self.lane.tree_of(commit)) {
            (Ok(now), Ok(before)) => now != before,
            (Err(_), _) | (_, Err(_)) => true,
        }
    }

    /// Keeps the work that no commit holds: under a ref, or, where it cannot be committed, in a checkout
    /// that is moved aside.
    pub fn save(&self, name: &str, observer: &dyn Observer) -> Result<(), WorkbenchError> {
        let saved = perform(observer, "rescue", || self.lane.save(name));
        match saved.map_err(|source| self.unclaimed(source))? {
            Saved::Nothing => {}
            Saved::Commit(commit) => observer.event(WorkbenchEvent::Rescued { commit }),
            Saved::Aside { path, why } => {
                observer.event(WorkbenchEvent::Replaced { aside: path, why });
            }
        }
        Ok(())
    }

    /// Keeps what changed in the checkout while no process held it. To be called after a claim, before anything is
    /// reset; later calls do nothing. `reset` is the extent of the resets to come. With `goes_on`, the caller continues with the work that this
    /// process left there a moment ago, and there is nothing to look for.
    pub fn keep_idle_changes(
        &self,
        reset: Reset,
        goes_on: bool,
        observer: &dyn Observer,
    ) -> Result<(), WorkbenchError> {
        if self.is_looked_at.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let stamp = self.lane.take_release_stamp().map_err(WorkbenchError::Record)?;
        if goes_on && stamp.is_some_and(ReleaseStamp::is_own) {
            return Ok(());
        }
        let Some(owner) = self.owner()? else { return Ok(()) };
        let Some(stamp) = stamp else { return self.keep_after_kill(&owner, observer) };
        let found = match self.lane.changed_since(stamp, reset) {
            // The reset meets the same obstacle, and moves the whole checkout aside.
            Err(why) if why.is_of_the_lane() => return Ok(()),
            found => found?,
        };
        if owner.is_settled() {
            let has_moved = owner.head.is_some() && self.lane.head()? != owner.head;
            return self.keep_found(&owner, found, has_moved, observer);
        }
        // The rest is saved by `prepare`, or its job goes on with it.
        let found = IdleChanges { visible: Vec::new(), ..found };
        self.keep_found(&owner, found, false, observer)
    }

    /// Keeps what differs from the commit of the last job, whose driver was killed after it.
    fn keep_after_kill(
        &self,
        owner: &OwnerNote,
        observer: &dyn Observer,
    ) -> Result<(), WorkbenchError> {
        let Some(head) = &owner.head else { return Ok(()) };
        let has_moved = self.lane.head()?.as_ref() != Some(head);
        let found = match self.lane.differences() {
            Err(why) if why.is_of_the_lane() => return Ok(()),
            found => found?,
        };
        self.keep_found(owner, found, has_moved, observer)
    }

    /// Keeps files, and the commit of HEAD if it moved. Files that git does not ignore are kept twice: in a commit, which
    /// says what they were changed from, and beside the checkout, where they are found without git.
    fn keep_found(
        &self,
        owner: &OwnerNote,
        found: IdleChanges,
        has_moved: bool,
        observer: &dyn Observer,
    ) -> Result<(), WorkbenchError> {
        let name = format!("{}-idle", owner.job);
        if has_moved || !found.visible.is_empty() {
            self.save(&name, observer)?;
        }
        let is_there = |path: &BString| {
            let at = path.to_path().map(|path| self.lane.path().as_std_path().join(path));
            at.is_ok_and(|at| fs_err::symlink_metadata(at).is_ok())
        };
        // None of them is there if `save` moved the whole checkout aside.
        let mut moved: Vec<BString> = found.visible.into_iter().chain(found.ignored).collect();
        moved.retain(is_there);
        if moved.is_empty() {
            return Ok(());
        }
        let aside = self.lane.move_idle_files(&name, &moved)?;
        let mut paths: Vec<String> =
            moved.iter().map(|path| path.to_str_lossy().into_owned()).collect();
        paths.sort_unstable();
        observer.event(WorkbenchEvent::FoundInIdle { paths, aside });
        Ok(())
    }

    /// Prepares the checkout for a job: steps 3 to 7 of the protocol in the header of this module.
    pub fn prepare(
        &self,
        setup: &Setup<'_>,
        cancel: &Cancel,
        observer: &dyn Observer,
    ) -> Result<(), WorkbenchError> {
        let before = self.owner()?;
        // Not for settled work: a checkout that was being cleared when its driver died holds half a
        // reset, which is nobody's work.
        if !before.as_ref().is_some_and(OwnerNote::is_settled) {
            let name = before.map_or_else(|| "unknown".to_owned(), |before| before.job);
            self.save(&name, observer)?;
        }
        let own =
            |job: &str| perform(observer, "occupy", || self.set_owner(&OwnerNote::unfinished(job)));
        own(OwnerNote::CLEARING)?;
        let reset = || match setup.branch {
            Some(branch) => self.lane.reset_on(setup.commit, branch, setup.reset),
            None => self.lane.reset_with(setup.commit, setup.reset),
        };
        match perform(observer, "reset", reset) {
            // A lane that cannot be cleared would fail every job that follows; it is replaced, once.
            Err(why) if why.is_of_the_lane() && !cancel.is_cancelled() => {
                let aside = perform(observer, "renew", || self.lane.renew());
                let aside = aside.map_err(|source| self.unclaimed(source))?;
                observer.event(WorkbenchEvent::Replaced { aside, why });
                // Again, because making the checkout anew removed the note.
                own(OwnerNote::CLEARING)?;
                perform(observer, "reset", reset)?;
            }
            stood => stood?,
        }
        self.hydrate(&setup.hydrate, cancel, observer)?;
        // Last, because a driver that takes over goes on in a checkout that its job owns, and does
        // not prepare it again.
        own(setup.job)
    }

    fn hydrate(
        &self,
        how: &Hydrate<'_>,
        cancel: &Cancel,
        observer: &dyn Observer,
    ) -> Result<(), WorkbenchError> {
        let mut watch = |phase, sign| {
            if let Sign::Output { last_line: line, .. } = sign {
                observer.event(WorkbenchEvent::Hydrating { phase, line });
            }
        };
        let hydrated = || self.lane.hydrate(how, cancel, &mut watch);
        let hydrated =
            perform(observer, "hydrate", hydrated).map_err(|source| WorkbenchError::Hydrate {
                name: self.target.name().to_owned(),
                source: Box::new(source),
            })?;
        if let Hydrated::Fresh(placed) = hydrated {
            observer.event(WorkbenchEvent::Hydrated { files: placed.files });
        }
        Ok(())
    }

    /// Arms a tripwire at the primary. Writes below the paths in `except` are not looked at.
    pub fn arm(&self, except: &[Utf8PathBuf]) -> Result<Tripwire, WorkbenchError> {
        Ok(Tripwire::arm(&self.target, except)?)
    }

    /// Arms a tripwire that is kept in the directory of a job, or loads the one that an earlier driver kept
    /// there.
    pub fn arm_for(
        &self,
        except: &[Utf8PathBuf],
        job: &Utf8Path,
    ) -> Result<Tripwire, WorkbenchError> {
        let file = job.join(TRIPWIRE);
        let kept = Tripwire::load(&self.target, except, &file).map_err(WorkbenchError::Record)?;
        // The state from before the child started. Arming again would take what a killed driver's
        // child wrote for the user's.
        if let Some(armed) = kept {
            return Ok(armed);
        }
        let armed = self.arm(except)?;
        fs_err::create_dir_all(job).map_err(WorkbenchError::Record)?;
        armed.save(&file).map_err(WorkbenchError::Record)?;
        Ok(armed)
    }

    fn unclaimed(&self, source: ClaimError) -> WorkbenchError {
        WorkbenchError::Claim { name: self.target.name().to_owned(), source }
    }
}

/// Makes a change that the observer is told of before, and after if it succeeded.
fn perform<T, E>(
    observer: &dyn Observer,
    step: &'static str,
    change: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    observer.reached(step, false);
    let done = change()?;
    observer.reached(step, true);
    Ok(done)
}
