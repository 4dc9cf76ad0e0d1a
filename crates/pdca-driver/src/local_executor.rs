//! The executor that runs jobs in lanes beside the workspace.

use std::borrow::Cow;

use camino::Utf8Path;
use pdca_exec::{Executor, Job, JobContext, JobError, JobOutcome, JobResult, Terms, Work};

use crate::config::WorkspaceConfig;
use crate::integrate::{CombinationCheckout, FIRST_SLOT, gate_rows};
use crate::lane_env::LaneEnv;
use crate::run_bundle::{BeatError, Driver};

/// Runs jobs in the private checkouts of a workspace, and publishes into its bundles.
#[derive(Debug, Clone, Copy)]
pub struct LocalExecutor<'a> {
    driver: Driver<'a>,
}

impl<'a> LocalExecutor<'a> {
    /// Makes the executor of a driver's workspace. The terms of each job apply, not those of `driver`.
    pub fn new(driver: Driver<'a>) -> Self {
        Self { driver }
    }

    fn config_under(&self, terms: &Terms) -> Cow<'a, WorkspaceConfig> {
        // The usual case, in which nothing travelled: the configuration is large and is not copied.
        if self.driver.config.terms() == *terms {
            return Cow::Borrowed(self.driver.config);
        }
        Cow::Owned(self.driver.config.under(terms.clone()))
    }
}

impl Executor for LocalExecutor<'_> {
    fn execute(&self, job: &Job, cx: &JobContext<'_>) -> Result<JobResult, JobError> {
        let config = self.config_under(&job.terms);
        let driver = Driver { config: &config, cancel: cx.cancel, ..self.driver };
        let outcome = match &job.work {
            Work::Band { bundle } => {
                let lane_env = cx.slot.map(LaneEnv::new);
                let driver = Driver { lane_env: lane_env.as_ref(), ..driver };
                JobOutcome::Band(driver.run_bundle(&config.dirs.bundles.bundle(bundle))?)
            }
            Work::Combination { target, branch, commit, tree } => {
                let own = || config.jobs().root().join(job.name.to_string());
                let dir = cx.dir.map_or_else(own, Utf8Path::to_owned);
                let found = config.targets.iter().find(|spec| spec.name == *target);
                let target = found.ok_or_else(|| unknown_target(target))?;
                let slot = cx.slot.unwrap_or(FIRST_SLOT);
                let at = CombinationCheckout { target, branch, commit, tree, slot, dir: &dir };
                JobOutcome::Gated { report: gate_rows(&driver, &at)? }
            }
        };
        Ok(JobResult { name: job.name.clone(), outcome })
    }
}

pub(crate) fn unknown_target(name: &str) -> JobError {
    JobError::Failed(format!("no target `{name}` is configured here").into())
}

impl From<BeatError> for JobError {
    fn from(error: BeatError) -> Self {
        if matches!(error, BeatError::Interrupted) {
            return Self::Interrupted;
        }
        Self::Failed(Box::new(error))
    }
}

impl From<JobError> for BeatError {
    /// Unwraps a beat's error, because hints and exit codes depend on its variant.
    fn from(error: JobError) -> Self {
        match error {
            JobError::Interrupted => Self::Interrupted,
            JobError::Lost { .. } | JobError::Unfit { .. } => Self::Executor(error),
            JobError::Failed(source) => match source.downcast::<Self>() {
                Ok(beat) => *beat,
                Err(source) => Self::Executor(JobError::Failed(source)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use pdca_exec::JobName;
    use pdca_journal::Generation;
    use pdca_state::Artifact;

    use super::*;
    use crate::testing::Scene;

    /// Sends every job and every result as bytes, to an executor that knows the machine and no terms.
    struct Far<'a>(LocalExecutor<'a>);

    impl Executor for Far<'_> {
        fn execute(&self, job: &Job, cx: &JobContext<'_>) -> Result<JobResult, JobError> {
            let sent = serde_json::to_vec(job).unwrap();
            let result = self.0.execute(&serde_json::from_slice(&sent).unwrap(), cx)?;
            let sent = serde_json::to_vec(&result).unwrap();
            Ok(serde_json::from_slice(&sent).unwrap())
        }
    }

    /// Answers with a name of its own, or is lost.
    struct Odd(Option<JobName>);

    impl Executor for Odd {
        fn execute(&self, _: &Job, _: &JobContext<'_>) -> Result<JobResult, JobError> {
            let lost = || JobError::Lost { place: "build1".into(), said: "no route".into() };
            let name = self.0.clone().ok_or_else(lost)?;
            let end = pdca_exec::BandEnd { halt: crate::Halt::Complete, steps: 1, red: false };
            Ok(JobResult { name, outcome: JobOutcome::Band(end) })
        }
    }

    fn scene() -> Scene {
        let mut scene = Scene::planned();
        let rows =
            r#"{"checks": [{"id": "a", "tier": "T1", "cmd": "false", "when": "Surfaces: gui"}]}"#;
        scene.config.rows = serde_json::from_str(rows).unwrap();
        scene
    }

    #[test]
    fn a_job_that_travels_gives_the_same_bundle_on_a_machine_that_knows_no_terms() {
        let (near, far) = (scene(), scene());
        let stripped = far.config.under(Terms::default());
        let machine = Driver { config: &stripped, ..far.driver() };
        let executor = Far(LocalExecutor::new(machine));
        let driver = Driver { executor: Some(&executor), ..far.driver() };
        let id = far.bundle().id().clone();
        assert_eq!(driver.run_band(&id, None).unwrap(), near.driver().run_band(&id, None).unwrap());
        for artifact in [Artifact::Patch, Artifact::GatesJson, Artifact::Summary] {
            let bytes = |scene: &Scene| scene.bundle().read(artifact).unwrap().unwrap();
            assert_eq!(bytes(&far), bytes(&near), "{artifact:?}");
        }
        let report = far.bundle().load().unwrap().gates.unwrap();
        assert!(report.rows.iter().any(|row| row.rule_id == "a"), "{report:?}");
        assert_eq!(far.effects(), near.effects());
    }

    #[test]
    fn terms_and_the_machine_make_the_configuration_that_they_are_of() {
        let scene = scene();
        let again = scene.config.under(Terms::default()).under(scene.config.terms());
        assert_eq!(format!("{again:?}"), format!("{:?}", scene.config));
    }

    #[test]
    fn an_answer_for_another_attempt_does_not_count() {
        let scene = scene();
        let later = JobName::new("r", "7", Generation::FIRST.next().unwrap()).unwrap();
        let executor = Odd(Some(later));
        let driver = Driver { executor: Some(&executor), ..scene.driver() };
        let answer = driver.run_band(scene.bundle().id(), None);
        assert!(matches!(answer, Err(BeatError::StaleResult(_))), "{answer:?}");
        assert_eq!(scene.effects(), Vec::<&str>::new());
    }

    #[test]
    fn a_host_that_was_lost_is_told_and_is_no_failure_of_the_bundle() {
        let scene = scene();
        let executor = Odd(None);
        let driver = Driver { executor: Some(&executor), ..scene.driver() };
        let answer = driver.run_band(scene.bundle().id(), None);
        let error = answer.unwrap_err();
        assert_eq!(error.to_string(), "build1 was lost: no route");
        let bundle = scene.bundle();
        assert_eq!(
            crate::BeatFailures::of(&scene.config).find(&bundle, &bundle.glance().unwrap()),
            None
        );
    }
}
