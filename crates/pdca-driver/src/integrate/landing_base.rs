//! What changes are put onto: the branch that moves, and where it is.
//!
//! That is a branch of the target, or with `land = "push"` the branch of a remote. Where a remote's
//! branch is says the remote, each time; the ref here only remembers it.

use std::time::Duration;

use pdca_integrate::{Destination, ObjectId, PushOutcome, RemoteTip, bring, contains, push};
use pdca_integrate::{Gated, Landed, Onto, land, sight};
use pdca_process::Cancel;

use super::IntegrateError;
use super::integration::Integration;
use super::settings::{Land, Settings};
use super::target_branch::TargetBranch;

/// How often a remote that may answer later is asked.
const TRIES: u32 = 4;
/// How long to wait before the second time; twice as long before each further one.
const PAUSE: Duration = Duration::from_millis(500);

/// What changes are put onto.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LandingBase {
    /// The ref here that says where it is.
    pub(super) reference: String,
    /// Where it is.
    pub(super) at: ObjectId,
}

/// What came of a push.
pub(super) enum Pushed {
    /// The remote has it.
    There,
    /// The remote went somewhere else meanwhile.
    Moved,
}

impl Settings {
    /// The branch of the remote that `land = "push"` moves.
    pub(super) fn destination<'s>(&'s self, front: &'s TargetBranch) -> Destination<'s> {
        Destination { remote: &self.remote, branch: &front.branch }
    }
}

impl LandingBase {
    /// What new changes go onto: the branch, or what is staged on top of it already.
    pub(super) fn to_land_on(
        front: &TargetBranch,
        settings: &Settings,
        cancel: &Cancel,
        tell: &dyn Fn(String),
    ) -> Result<Self, IntegrateError> {
        let tip = Self::find(front, settings, cancel, tell)?;
        let is_staged = settings.land == Land::Branch && front.staging.is_current;
        let at = front.staging.at.filter(|_| is_staged).unwrap_or(tip.at);
        Ok(Self { at, ..tip })
    }

    /// Finds the branch. Nothing is written for that but objects.
    pub(super) fn find(
        front: &TargetBranch,
        settings: &Settings,
        cancel: &Cancel,
        tell: &dyn Fn(String),
    ) -> Result<Self, IntegrateError> {
        if settings.land != Land::Push {
            return Ok(Self { reference: front.reference.clone(), at: front.tip });
        }
        let of = settings.destination(front);
        let at = patiently(settings, cancel, tell, || {
            Ok(match bring(&front.store, of)? {
                RemoteTip::At(at) => Ok(at),
                RemoteTip::NoBranch => return Err(lacks(settings, front)),
                RemoteTip::Silent { said } => Err(said),
            })
        })?;
        Ok(Self { reference: of.sighting(), at })
    }
}

impl Integration<'_> {
    /// Asks where the branch is now. With a remote, what is heard is remembered.
    pub(super) fn look(&mut self) -> Result<Option<ObjectId>, IntegrateError> {
        if self.order.settings.land != Land::Push {
            return Ok(self.front.store.commit_at(&self.front.reference)?);
        }
        let tell = |text| self.tell(text);
        let tip = LandingBase::find(self.front, self.order.settings, self.driver.cancel, &tell)?;
        self.remember(tip.at)?;
        Ok(Some(tip.at))
    }

    /// Remembers where the branch of the remote is, and says where it was when we last looked.
    pub(super) fn remember(&self, at: ObjectId) -> Result<Option<ObjectId>, IntegrateError> {
        let of = self.order.settings.destination(self.front);
        let log = self.log("pdca: where the remote's branch is");
        let keep = || sight(&self.front.store, &self.fence, of, at, log);
        Ok(self.driver.effects.perform("sight", keep)?)
    }

    /// Moves the ref that is to move, from the gated base to the gated commit, and proves it.
    pub(super) fn put(&self, gated: &Gated) -> Result<Landed, pdca_integrate::LandError> {
        let settings = self.order.settings;
        let sighting = settings.destination(self.front).sighting();
        let onto = match settings.land {
            Land::Target => Onto::Target(&self.front.branch),
            Land::Branch => Onto::Staging {
                branch: &self.front.branch,
                // An earlier fold of ours gives way to the first landing, and to no later one.
                replaces: self.front.staging.at.filter(|_| self.done.references.is_empty()),
            },
            Land::Push => Onto::Sighting(&sighting),
        };
        let log = self.log("pdca: integrate");
        let put = || land(&self.front.store, &self.fence, gated, onto, log);
        self.driver.effects.perform("land", put)
    }

    /// Has the remote take what was gated, if its branch is where that was gated.
    pub(super) fn push(&self, gated: &Gated) -> Result<Pushed, IntegrateError> {
        let settings = self.order.settings;
        let (to, store) = (settings.destination(self.front), &self.front.store);
        let tell = |text| self.tell(text);
        patiently(settings, self.driver.cancel, &tell, || {
            let effects = self.driver.effects;
            let outcome = effects.perform("push", || push(store, &self.fence, gated, to))?;
            Ok(match outcome {
                PushOutcome::Pushed | PushOutcome::AlreadyThere => Ok(Pushed::There),
                PushOutcome::Race { .. } => match bring(store, to)? {
                    // Somebody built upon it at once.
                    RemoteTip::At(at) if contains(store, at, gated.candidate().commit())? => {
                        Ok(Pushed::There)
                    }
                    RemoteTip::At(_) => Ok(Pushed::Moved),
                    RemoteTip::NoBranch => return Err(lacks(settings, self.front)),
                    RemoteTip::Silent { said } => Err(said),
                },
                PushOutcome::NoBranch => return Err(lacks(settings, self.front)),
                PushOutcome::Transient { said } => Err(said),
                PushOutcome::Permanent { said } => {
                    let (remote, branch) = (settings.remote.clone(), self.front.branch.clone());
                    return Err(IntegrateError::Refused { remote, branch, said });
                }
            })
        })
    }
}

fn lacks(settings: &Settings, front: &TargetBranch) -> IntegrateError {
    IntegrateError::RemoteLacks { remote: settings.remote.clone(), branch: front.branch.clone() }
}

/// Asks again, a few times and each time later, as long as the answer is what the remote said.
fn patiently<T>(
    settings: &Settings,
    cancel: &Cancel,
    tell: &dyn Fn(String),
    mut ask: impl FnMut() -> Result<Result<T, String>, IntegrateError>,
) -> Result<T, IntegrateError> {
    let remote = &settings.remote;
    let mut pause = PAUSE;
    let mut tries = 1;
    loop {
        let said = match ask()? {
            Ok(answer) => return Ok(answer),
            Err(said) => said,
        };
        if cancel.is_cancelled() {
            return Err(IntegrateError::Interrupted);
        }
        if tries == TRIES {
            return Err(IntegrateError::Unreachable { remote: remote.clone(), said });
        }
        tell(format!("{remote} did not answer ({said}); it is asked again"));
        std::thread::park_timeout(pause);
        pause *= 2;
        tries += 1;
    }
}
