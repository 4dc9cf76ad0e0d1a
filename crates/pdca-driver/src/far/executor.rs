//! The executor that runs bands on a host.

use std::sync::atomic::{AtomicU32, Ordering};

use pdca_exec::{Executor, Job, JobContext, JobError, JobOutcome, JobResult, Work};
use pdca_journal::events::{Scope, Step};
use pdca_lanes::Target;
use pdca_remote::ReapRequest;
use pdca_state::{Bundle, Snapshot};

use super::apply::apply;
use super::follow::follow;
use super::stage::{Leg, Wanted, band, commits_of};
use super::{FarClass, FleetHost};
use crate::checkout::{CheckoutError, attempt_for};
use crate::config::WorkspaceConfig;
use crate::integrate::take_resolution;
use crate::lane_env::LaneEnv;
use crate::local_executor::LocalExecutor;
use crate::refold::take_refolded;
use crate::run_bundle::{BeatError, Carried, Driver, carry_here};

/// The base of a claim where no target is configured.
const NO_BASE: &str = "0000000000000000000000000000000000000000";
/// The lanes of what has to be done here for a bundle that runs on a host, above those of the pool.
// Below `FIRST_SLOT`, where the checkouts of integrations begin.
const BESIDE: u32 = 5_000;

/// Runs bands in one slot of one host.
#[derive(Debug)]
pub struct HostExecutor<'a> {
    driver: Driver<'a>,
    host: &'a FleetHost,
    slot: u32,
    /// The generation whose job was collected last; 0 for none.
    spent: AtomicU32,
}

impl<'a> HostExecutor<'a> {
    pub(crate) fn new(driver: Driver<'a>, host: &'a FleetHost, slot: u32) -> Self {
        Self { driver, host, slot, spent: AtomicU32::new(0) }
    }

    /// Carries out a step: Build, Gate and Review on the host, everything else here.
    fn carry(
        &self,
        cx: &Driver<'_>,
        next: Step,
        bundle: &Bundle,
        snapshot: &Snapshot,
    ) -> Result<Carried, BeatError> {
        match next {
            Step::Build | Step::Gate | Step::Review => self.leg(cx, next, bundle, snapshot),
            Step::Halt(_) | Step::Close | Step::Assemble | Step::SendBack | Step::Archive(_) => {
                carry_here(cx, next, bundle, snapshot)
            }
        }
    }

    /// Carries out the steps of one attempt on the host.
    fn leg(
        &self,
        cx: &Driver<'_>,
        next: Step,
        bundle: &Bundle,
        snapshot: &Snapshot,
    ) -> Result<Carried, BeatError> {
        let Some(run) = cx.run else { return carry_here(cx, next, bundle, snapshot) };
        // A close has no patch, and its gates are a file that is written here.
        if next == Step::Gate && !snapshot.artifacts.contains(pdca_state::Artifact::Patch) {
            return carry_here(cx, next, bundle, snapshot);
        }
        // The base is fixed here, before the claim: a host does not see the results of other
        // bundles.
        let found = attempt_for(cx, bundle, snapshot, next == Step::Build)?;
        let base = found.as_ref().map_or(NO_BASE, |(_, attempt)| attempt.base.as_str());
        let place = (self.host.host.name(), self.slot);
        let current = run.generation_of(bundle.id()).map_or(0, pdca_journal::Generation::get);
        let anew = self.spent.load(Ordering::SeqCst) == current;
        // On record before anything is staged: a driver that takes over knows where to look
        // (decision 064).
        let claim = || run.claim_on(bundle.id(), place, base, anew);
        let Some(generation) = cx.effects.perform("claim", claim)? else {
            return carry_here(cx, next, bundle, snapshot);
        };
        if next == Step::Build {
            let beside = LaneEnv::new(BESIDE + cx.slot().unwrap_or_default());
            let here = Driver { lane_env: Some(&beside), ..*cx };
            if take_resolution(&here, bundle, snapshot)? || take_refolded(&here, bundle, snapshot)?
            {
                return Ok(Carried::Here);
            }
        }
        let name = cx.job_name(bundle.id().as_str(), generation.get())?;
        let wanted = found.as_ref().map(|(target, attempt)| {
            let spec = cx.config.spec_of(&attempt.target).ok_or_else(|| unconfigured(target))?;
            Ok::<_, CheckoutError>(Wanted { target, spec, commits: commits_of(attempt) })
        });
        let wanted = wanted.transpose()?;
        let calls = cx.fleet.map(|fleet| fleet.grant(cx)).transpose()?.flatten();
        let left = calls.as_ref().map(super::fleet::Reserved::calls);
        let leg = band(cx, (self.host, self.slot), bundle, &name, wanted.as_ref(), left)?;
        let scope = Scope::Bundle(bundle.id().clone());
        let fetched = follow(cx, self.host, &leg, &scope)?;
        let applied = apply(cx, bundle, &leg, generation, fetched);
        // The calls that were made are recorded by now, so setting them aside longer would count
        // them twice.
        drop(calls);
        self.spent.store(generation.get(), Ordering::SeqCst);
        // After a failure to write here, the job on the host still has the only copy of the result.
        if !matches!(applied, Err(BeatError::Record(_) | BeatError::Own(_) | BeatError::Write(_))) {
            self.reap(&leg);
        }
        match applied {
            // Every other band would fail there in the same way, so the host gets none.
            Err(BeatError::Far(failure))
                if matches!(failure.class, FarClass::SignedOut | FarClass::Full) =>
            {
                self.host.lose();
                let (place, said) = (self.host.host.name().to_owned(), failure.said);
                Err(BeatError::Executor(JobError::Unfit { place, said }))
            }
            applied => Ok(Carried::Elsewhere { steps: applied? }),
        }
    }

    /// Removes a job whose result is here. What stays is removed at the end of the run.
    fn reap(&self, leg: &Leg) {
        let taken = vec![leg.name.clone()];
        drop(self.host.host.reap(ReapRequest { taken, ..ReapRequest::default() }));
    }
}

fn unconfigured(target: &Target) -> CheckoutError {
    CheckoutError::Unconfigured { name: target.name().to_owned() }
}

impl Executor for HostExecutor<'_> {
    fn execute(&self, job: &Job, cx: &JobContext<'_>) -> Result<JobResult, JobError> {
        let lane_env = cx.slot.map(LaneEnv::new);
        // Whoever asks who holds a bundle is told where it runs.
        let holder = format!("{} on {}", self.driver.config.holder, self.host.host.name());
        let config = &WorkspaceConfig { holder, ..self.driver.config.clone() };
        let driver =
            Driver { config, cancel: cx.cancel, lane_env: lane_env.as_ref(), ..self.driver };
        let outcome = match &job.work {
            Work::Band { bundle } => {
                let bundle = driver.config.dirs.bundles.bundle(bundle);
                let carry =
                    |next: Step, snapshot: &Snapshot| self.carry(&driver, next, &bundle, snapshot);
                JobOutcome::Band(driver.run_bundle_by(&bundle, &carry)?)
            }
            // An integration asks hosts through `HostGate`; what comes here is of its own machine.
            Work::Combination { .. } => return LocalExecutor::new(driver).execute(job, cx),
        };
        Ok(JobResult { name: job.name.clone(), outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn a_bundle_of_a_host_can_claim_the_lane_beside_the_pool() {
        let scene = Scene::planned();
        let (run, id) = (scene.begin(&["7"]).run, scene.bundle().id().clone());
        run.claim_on(&id, ("a", 1), NO_BASE, false).unwrap();
        run.claim(&id, BESIDE + 1, NO_BASE).unwrap();
        let claim = run.state().bundles[&id].claim.clone().unwrap();
        assert_eq!((claim.slot, claim.host), (BESIDE + 1, None));
    }
}
