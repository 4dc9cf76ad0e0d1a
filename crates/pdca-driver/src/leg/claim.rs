//! Claims an attempt for a place that has another disk.

use std::collections::BTreeMap;
use std::io;

use camino::Utf8Path;
use pdca_lanes::Target;
use pdca_leaves::Instructions;
use pdca_state::{Artifact, Bundle};

use super::{AttemptLeg, LegName};
use crate::attempt::Attempt;
use crate::authorship::Author;
use crate::checkout::{CheckoutError, attempt_for};
use crate::commits::author_for;
use crate::config::{TargetSpec, WorkspaceConfig};
use crate::instructions::instructions_to_send;
use crate::integrate::take_resolution;
use crate::lane_env::LaneEnv;
use crate::place::Reserved;
use crate::refold::take_refolded;
use crate::run_bundle::{BeatError, Driver};
use crate::step::Step;

/// The base of a claim where no target is configured.
const NO_BASE: &str = "0000000000000000000000000000000000000000";
/// The lanes of what has to be done here for a bundle that is claimed for another place, above those of the pool.
// Below `FIRST_SLOT`, where the checkouts of integrations begin.
const BESIDE: u32 = 5_000;

/// The answer to the claim of a leg.
#[derive(Debug)]
pub enum Claim<'a> {
    /// The step has to be carried out on the driver's machine.
    Here,
    /// The change existed already and was taken. Nothing is left to run.
    Taken,
    /// The leg is claimed for the place.
    Leg(Box<ClaimedLeg<'a>>),
}

/// A leg that is claimed for a place under a generation.
#[derive(Debug)]
pub struct ClaimedLeg<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) name: LegName,
    pub(super) base: Option<LegBase>,
    calls: Option<Reserved<'a>>,
}

/// The repository of a leg, and the commits of it that the leg needs.
#[derive(Debug)]
pub struct LegBase {
    pub target: Target,
    pub spec: TargetSpec,
    pub commits: Vec<String>,
}

impl LegBase {
    /// Returns the base of gates over one commit.
    pub fn of_commit(spec: &TargetSpec, commit: &str) -> Result<Self, BeatError> {
        let target = Target::open(&spec.name, &spec.path)
            .map_err(|source| CheckoutError::Target { name: spec.name.clone(), source })?;
        Ok(Self { target, spec: spec.clone(), commits: vec![commit.to_owned()] })
    }

    fn of_attempt(cx: &Driver<'_>, target: Target, attempt: &Attempt) -> Result<Self, BeatError> {
        let unconfigured = || CheckoutError::Unconfigured { name: target.name().to_owned() };
        let spec = cx.config.spec_of(&attempt.target).ok_or_else(unconfigured)?.clone();
        // The base, and the head of the change if there is one.
        let head = attempt.changes.last().map(|change| change.head.clone());
        let commits = std::iter::once(attempt.base.clone()).chain(head).collect();
        Ok(Self { target, spec, commits })
    }

    /// Returns the directory of the repository that all its checkouts share.
    pub fn common_dir(&self) -> &Utf8Path {
        self.target.common_dir()
    }

    /// Returns the author of the driver's own commits: the configured one, or the user of this machine's git.
    pub fn author(&self, config: &WorkspaceConfig) -> Author {
        author_for(config, &self.target)
    }
}

impl<'a> Driver<'a> {
    /// Claims a leg for the place of this driver, and fixes its base.
    pub fn claim_leg(&self, leg: &AttemptLeg<'a>) -> Result<Claim<'a>, BeatError> {
        let AttemptLeg { bundle, snapshot, next, published } = *leg;
        let (Some(run), Some(place)) = (self.run, self.place.place.name()) else {
            return Ok(Claim::Here);
        };
        // A close has no patch, and its gates are a file that is written here.
        if next == Step::Gate && !snapshot.artifacts.contains(Artifact::Patch) {
            return Ok(Claim::Here);
        }
        // The base is fixed here, before the claim: another machine does not see the results of other bundles.
        let found = attempt_for(self, bundle, snapshot, next == Step::Build)?;
        let base = found.as_ref().map_or(NO_BASE, |(_, attempt)| attempt.base.as_str());
        let anew = published.is_some() && published == run.generation_of(bundle.id());
        // On record before anything is sent: a driver that takes over knows where to look (decision 064).
        let claim = || run.claim_on(bundle.id(), (place, self.place.slot), base, anew);
        let Some(generation) = self.effects.perform("claim", claim)? else {
            return Ok(Claim::Here);
        };
        if next == Step::Build {
            let beside = LaneEnv::new(BESIDE + self.slot().unwrap_or_default());
            let here = Driver { lane_env: Some(&beside), ..*self };
            if take_resolution(&here, bundle, snapshot)? || take_refolded(&here, bundle, snapshot)?
            {
                return Ok(Claim::Taken);
            }
        }
        let name = self.leg_name(bundle.id().as_str(), generation)?;
        let base = found.map(|(target, attempt)| LegBase::of_attempt(self, target, &attempt));
        let base = base.transpose()?;
        let calls = self.places.map(|places| places.grant(self)).transpose()?.flatten();
        Ok(Claim::Leg(Box::new(ClaimedLeg { bundle, name, base, calls })))
    }
}

impl ClaimedLeg<'_> {
    pub fn bundle(&self) -> &Bundle {
        self.bundle
    }

    /// Returns the name under which a result counts.
    pub fn name(&self) -> &LegName {
        &self.name
    }

    /// Returns the repository and its commits; `None` where no target is configured.
    pub fn base(&self) -> Option<&LegBase> {
        self.base.as_ref()
    }

    /// Returns the number of leaf calls that the leg may make; `None` where the run has no limit.
    pub fn calls(&self) -> Option<u64> {
        self.calls.as_ref().map(Reserved::calls)
    }

    /// Returns the instructions of every role that the leg may call, from the commit that was fixed here; `None` where
    /// they are not from a commit.
    pub fn instructions(
        &self,
        config: &WorkspaceConfig,
    ) -> io::Result<Option<BTreeMap<String, Instructions>>> {
        let Some(base) = &self.base else { return Ok(None) };
        let Some(attempt) = config.attempts().load(self.bundle.id())? else { return Ok(None) };
        instructions_to_send(config, &base.target, &attempt).map(Some).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn a_bundle_that_is_claimed_for_another_place_can_claim_the_lane_beside_the_pool() {
        let scene = Scene::planned();
        let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
        run.claim_on(&id, ("a", 1), NO_BASE, false).unwrap();
        run.claim(&id, BESIDE + 1, NO_BASE).unwrap();
        let claim = run.state().bundles[&id].claim.clone().unwrap();
        assert_eq!((claim.slot, claim.host), (BESIDE + 1, None));
    }
}
