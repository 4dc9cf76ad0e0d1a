//! A host as a place of the driver: legs are staged, followed, and published in the bundle here.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pdca_driver::leg::{Claim, ClaimedLeg, FailureClass, GatesLeg, Leg, LegEnd, LegName};
use pdca_driver::place::{Here, Place, PlaceError};
use pdca_driver::{BeatError, Driver};
use pdca_journal::events::Scope;
use pdca_state::GateReport;

use crate::follow::follow;
use crate::host::Host;
use crate::offer::HostOffer;
use crate::stage::{stage_attempt, stage_gates};
use crate::verb::ReapRequest;

/// A host that was asked for its facts and found fit.
#[derive(Debug)]
pub struct FitHost {
    pub host: Host,
    pub offer: HostOffer,
    /// Set once it gave no sign of life. It gets no further leg in this run.
    lost: AtomicBool,
    /// The repositories with a checkout on the host.
    warm: Mutex<BTreeSet<String>>,
}

impl FitHost {
    pub fn new(host: Host, offer: HostOffer) -> Self {
        let warm = offer.have.iter().filter(|(_, have)| !have.is_empty());
        let warm = warm.map(|(name, _)| name.clone()).collect();
        Self { host, offer, lost: AtomicBool::new(false), warm: Mutex::new(warm) }
    }

    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    pub(crate) fn warmed(&self, repository: &str) {
        let mut warm = self.warm.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        warm.insert(repository.to_owned());
    }

    /// Runs a leg that is claimed for this host, and publishes its result.
    fn run_claimed(&self, cx: &Driver<'_>, claimed: ClaimedLeg<'_>) -> Result<LegEnd, BeatError> {
        let staging = stage_attempt(cx, self, &claimed)?;
        let name = claimed.name().clone();
        let scope = Scope::Bundle(claimed.bundle().id().clone());
        let fetched = follow(cx, self, &staging, &scope)?;
        let (sent, result) = staging.result(fetched);
        let published = claimed.publish(cx, &sent, result);
        // After a failure to write here, the job on the host still has the only copy of the result.
        if !matches!(published, Err(BeatError::Record(_) | BeatError::Own(_) | BeatError::Write(_)))
        {
            self.forget(&name);
        }
        match published {
            // Every other leg would fail there in the same way, so the host gets none.
            Err(BeatError::Elsewhere(failure))
                if matches!(failure.class, FailureClass::SignedOut | FailureClass::Full) =>
            {
                self.lose();
                let (place, said) = (self.host.name().to_owned(), failure.said);
                Err(PlaceError::Unfit { place, said }.into())
            }
            published => Ok(LegEnd::Published { generation: name.generation(), steps: published? }),
        }
    }

    /// Gates a combination.
    ///
    /// A verdict about a tree follows from the tree, the gates and their environment, so it needs no claim in a
    /// journal: the leg has the name of the integration, the tree and the number of the question, and a driver that asks
    /// again finds the same job. A host that is lost leaves nothing that counts.
    fn gate(&self, cx: &Driver<'_>, leg: &GatesLeg<'_>) -> Result<GateReport, BeatError> {
        let staging = stage_gates(cx, self, leg)?;
        let (target, branch) = (leg.target.name.clone(), leg.branch.to_owned());
        let fetched = follow(cx, self, &staging, &Scope::Integration { target, branch });
        let report = fetched.and_then(|fetched| staging.result(fetched).1.gated(cx, leg));
        // A job that was called off would refuse to start again under its name.
        if !matches!(report, Err(BeatError::Place(_))) {
            self.forget(leg.name);
        }
        report
    }

    /// Removes a job whose result is here. What stays is removed at the end of the run.
    fn forget(&self, name: &LegName) {
        let taken = vec![name.clone()];
        drop(self.host.reap(ReapRequest { taken, ..ReapRequest::default() }));
    }
}

impl Place for FitHost {
    fn run<'a>(&self, cx: &Driver<'a>, leg: &Leg<'a>) -> Result<LegEnd, BeatError> {
        match leg {
            Leg::Attempt(attempt) => match cx.claim_leg(attempt)? {
                Claim::Here => Here::default().run(cx, leg),
                Claim::Taken => Ok(LegEnd::Step),
                Claim::Leg(claimed) => self.run_claimed(cx, *claimed),
            },
            Leg::Gates(gates) => Ok(LegEnd::Gated { report: self.gate(cx, gates)? }),
        }
    }

    fn name(&self) -> Option<&str> {
        Some(self.host.name())
    }

    fn slots(&self) -> u32 {
        self.host.spec.slots
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::SeqCst)
    }

    fn is_warm(&self) -> bool {
        !self.warm.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_empty()
    }

    fn gates_environment(&self) -> Option<&str> {
        self.offer.gates.as_deref()
    }

    fn reap(&self, current: &[LegName], over: Option<&str>) {
        let (current, over) = (current.to_vec(), over.map(str::to_owned).into_iter().collect());
        // What stays is found again by `pdca hosts gc`.
        drop(self.host.reap(ReapRequest { current, over, ..ReapRequest::default() }));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::host::HostSpec;
    use crate::transport::LocalProcess;
    use crate::verb::JobEngine;

    fn host(have: &[&str]) -> FitHost {
        let spec = HostSpec {
            name: "a".to_owned(),
            slots: 2,
            root: "~/x".to_owned(),
            engine: JobEngine::Process,
            lost_after: Duration::from_secs(1),
            send: Vec::new(),
        };
        let transport = LocalProcess::new("/nowhere".into(), "/nowhere".into());
        let have = have.iter().map(|one| ((*one).to_owned(), vec!["c".to_owned()])).collect();
        let offer = HostOffer { have, ..HostOffer::default() };
        FitHost::new(Host::new(spec, Box::new(transport)), offer)
    }

    #[test]
    fn a_host_is_warm_once_it_has_commits_of_a_repository() {
        assert!(host(&["app"]).is_warm());
        let cold = host(&[]);
        assert!(!cold.is_warm());
        cold.warmed("app");
        assert!(cold.is_warm());
    }

    #[test]
    fn a_host_that_was_lost_says_so() {
        let host = host(&[]);
        assert!(!host.is_lost());
        host.lose();
        assert!(host.is_lost());
    }
}
