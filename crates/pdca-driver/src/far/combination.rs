//! Gates a combination on a host.
//!
//! A verdict about a tree follows from the tree, the gates and their environment, so it needs no claim in a journal: the
//! job has the name of the integration, the tree and the number of the question, and a driver that asks again finds the
//! same job. A host that is lost leaves nothing that counts: the tree is gated here instead.

use pdca_exec::{Executor, Job, JobContext, JobError, JobOutcome, JobResult, Work};
use pdca_integrate::Evidence;
use pdca_journal::events::Scope;
use pdca_lanes::Target;
use pdca_remote::{Fetched, ReapRequest};
use pdca_state::{GateReport, sha256_hex};

use super::follow::follow;
use super::stage::{Leg, Wanted, combination};
use super::{FarOutcome, FleetHost, unusable};
use crate::checkout::CheckoutError;
use crate::local_executor::unknown_target;
use crate::run_bundle::{BeatError, Driver};

/// Gates combinations in one slot of one host.
#[derive(Debug)]
pub(crate) struct HostGate<'a> {
    driver: Driver<'a>,
    place: (&'a FleetHost, u32),
    scope: Scope,
}

impl<'a> HostGate<'a> {
    pub(crate) fn new(driver: Driver<'a>, place: (&'a FleetHost, u32), scope: Scope) -> Self {
        Self { driver, place, scope }
    }

    fn gate(&self, cx: &Driver<'_>, job: &Job) -> Result<GateReport, BeatError> {
        let Work::Combination { target: name, commit, tree, .. } = &job.work else {
            return Err(crate::run_bundle::unexpected_outcome(&job.name));
        };
        let spec = cx.config.spec_of(name).ok_or_else(|| unknown_target(name))?;
        let target = Target::open(&spec.name, &spec.path)
            .map_err(|source| CheckoutError::Target { name: spec.name.clone(), source })?;
        let wanted = Wanted { target: &target, spec, commits: vec![commit.clone()] };
        let leg = combination(cx, self.place, job.clone(), &wanted)?;
        let followed = follow(cx, self.place.0, &leg, &self.scope);
        let report = followed.and_then(|fetched| take(cx, &leg, tree, fetched));
        // A job that was called off would refuse to start again under its name.
        if !matches!(report, Err(BeatError::Executor(_))) {
            let taken = vec![leg.name.clone()];
            drop(self.place.0.host.reap(ReapRequest { taken, ..ReapRequest::default() }));
        }
        report
    }
}

impl Executor for HostGate<'_> {
    fn execute(&self, job: &Job, cx: &JobContext<'_>) -> Result<JobResult, JobError> {
        let driver = Driver { cancel: cx.cancel, executor: None, ..self.driver };
        let report = self.gate(&driver, job)?;
        Ok(JobResult { name: job.name.clone(), outcome: JobOutcome::Gated { report } })
    }
}

/// Reads the report of a host, and keeps the logs of its red rows where those of a local gate are.
fn take(
    cx: &Driver<'_>,
    leg: &Leg,
    tree: &str,
    (collected, contents, _): Fetched,
) -> Result<GateReport, BeatError> {
    let published = collected.published;
    let outcome = serde_json::from_value(published.outcome)
        .map_err(|error| unusable(&format!("its outcome cannot be read: {error}")))?;
    let mut report = match outcome {
        FarOutcome::Gated { outcome: JobOutcome::Gated { report } } => report,
        FarOutcome::Failed { failure, .. } => return Err(BeatError::Far(Box::new(failure))),
        FarOutcome::Gated { outcome: JobOutcome::Band(_) }
        | FarOutcome::Band { .. }
        | FarOutcome::Interrupted => {
            return Err(unusable("it is of no combination"));
        }
    };
    let dir = Evidence::of(&cx.config.queue()).of_tree(tree);
    for row in &mut report.rows {
        let Some(log) = row.log.take() else { continue };
        let path = camino::Utf8Path::new(&log);
        let entry = published.files.iter().find(|entry| entry.path == path);
        let bytes = entry.and_then(|entry| {
            contents.get(&entry.digest).or_else(|| leg.contents.get(&entry.digest))
        });
        let (Some(bytes), Some(name)) = (bytes, path.file_name()) else { continue };
        let to = dir.join(name);
        let kept = fs_err::create_dir_all(&dir)
            .and_then(|()| pdca_state::files::replace_unsynced(&to, bytes));
        kept.map_err(BeatError::Own)?;
        row.log = Some(to.into_string());
    }
    Ok(report)
}

/// Returns the environment of gates that may run here and on hosts: a verdict counts where all of them are the same.
pub(crate) fn joint_environment(here: &str, hosts: &[FleetHost]) -> String {
    let mut all: Vec<&str> = hosts.iter().filter_map(|one| one.offer.gates.as_deref()).collect();
    all.sort_unstable();
    all.dedup();
    sha256_hex(format!("{here}\0{}", all.join("\0")).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::fleet::testing::host;
    use super::*;

    #[test]
    fn the_environment_of_a_verdict_has_those_of_all_hosts_in_no_order() {
        let fleet = |digests: &[&str]| {
            let one = |digest: &&str| {
                let mut host = host("h", 1, &[]);
                host.offer.gates = Some((*digest).to_owned());
                host
            };
            joint_environment("here", &digests.iter().map(one).collect::<Vec<_>>())
        };
        assert_eq!(fleet(&["a", "b"]), fleet(&["b", "a", "b"]));
        assert_ne!(fleet(&["a"]), fleet(&["a", "b"]));
        assert_ne!(fleet(&["a"]), fleet(&[]));
    }
}
