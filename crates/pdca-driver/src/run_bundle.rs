//! One bundle, step by step, until a person is due.

use std::io;
use std::time::Instant;

use crossbeam_channel::Sender;
use pdca_exec::{
    BandEnd, Executor, Job, JobContext, JobError, JobName, JobOutcome, StaleResult, Work,
};
use pdca_journal::{Effects, Generation, Unwatched};
use pdca_process::Cancel;
use pdca_state::{
    ArchiveError, Artifact, Bundle, BundleId, Coverage, LoadError, Snapshot, State, WriteError,
    archive_plan, chain, close_disposition, close_text,
};

use crate::admission::AdmissionError;
use crate::assemble::assemble_summary;
use crate::base::BaseError;
use crate::build::build;
use crate::check::gate;
use crate::checkout::CheckoutError;
use crate::config::{TargetChoiceError, WorkspaceConfig};
use crate::drift::{Drifted, is_drift_outdated, tell_drift};
use crate::event::{Scope, Stream, What, millis};
use crate::failures::BeatFailures;
use crate::guard::relieve_guard;
use crate::lane_env::LaneEnv;
use crate::leaf::keep_log;
use crate::local_executor::LocalExecutor;
use crate::refold::mend;
use crate::review::review;
use crate::run::{RecordError, Run};
use crate::step::{Position, Reviewed, Step, step};

/// The context that every beat takes: configuration, effects, events, cancellation, lane and run.
///
/// Beats are functions over it, one module each. A pool has one for each lane.
#[derive(Clone, Copy)]
pub struct Driver<'a> {
    /// The resolved configuration.
    pub config: &'a WorkspaceConfig,
    /// Who is told of every effect.
    pub effects: &'a dyn Effects,
    /// Where facts are emitted.
    pub events: &'a Stream,
    /// The integration or base that facts are about, in place of the bundle.
    pub scope: Option<&'a Scope>,
    /// Where the dispatcher hears that a change writes more than its brief declares.
    pub drifts: Option<&'a Sender<Drifted>>,
    /// What stops the driver.
    pub cancel: &'a Cancel,
    /// The lane it is pinned to, where there are several.
    pub lane_env: Option<&'a LaneEnv>,
    /// The run it works in; none where a person asks for one thing alone.
    pub run: Option<&'a Run>,
    /// Does bands and gates combinations; where none is given, [`LocalExecutor`](crate::LocalExecutor).
    pub executor: Option<&'a dyn Executor>,
}

impl<'a> Driver<'a> {
    /// Makes a driver outside any run, in one lane, whose effects nobody is told of.
    pub fn new(config: &'a WorkspaceConfig, events: &'a Stream, cancel: &'a Cancel) -> Self {
        Self {
            config,
            effects: &Unwatched,
            events,
            scope: None,
            drifts: None,
            cancel,
            lane_env: None,
            run: None,
            executor: None,
        }
    }
}

impl std::fmt::Debug for Driver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Why a bundle could not go on. What it has on disk is whole, and the next run goes on from it.
#[derive(Debug, thiserror::Error)]
pub enum BeatError {
    /// The driver was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// Somebody else has the bundle.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The bundle cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The bundle cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An earlier attempt cannot be archived.
    #[error("the attempt cannot be archived")]
    Archive(#[from] ArchiveError),
    /// It is not known where the bundle is to be built.
    #[error(transparent)]
    Target(#[from] TargetChoiceError),
    /// The base of the attempt cannot be made now. That is no fault of the bundle.
    #[error("its base cannot be made now")]
    Base(#[from] BaseError),
    /// The private checkout cannot be used. That is no fault of the bundle.
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    /// The gates could not be run to their end.
    #[error(transparent)]
    Gates(pdca_gates::GatesError),
    /// A leaf failed for good. What it said is in its error log in the bundle.
    #[error("the {role} failed; see {log}")]
    Leaf {
        /// Which one.
        role: &'static str,
        /// The error log.
        log: camino::Utf8PathBuf,
        /// How it failed.
        source: Box<pdca_leaves::LeafError>,
    },
    /// The builder changed nothing, which is neither success nor a reason to try again unasked.
    #[error("the builder changed nothing; see {log}")]
    NoChange {
        /// The error log.
        log: camino::Utf8PathBuf,
    },
    /// The builder left repositories of their own in the checkout; they are kept when it is cleared.
    #[error("the builder left a repository inside the checkout; see {log}")]
    Nested {
        /// The error log.
        log: camino::Utf8PathBuf,
        /// Where they are, relative to the checkout.
        nested: Vec<camino::Utf8PathBuf>,
    },
    /// The builder's patch cannot be taken.
    #[error("the builder's patch cannot be taken; see {log}")]
    Patch {
        /// The error log.
        log: camino::Utf8PathBuf,
        /// Why not.
        source: pdca_lanes::ApplyError,
    },
    /// Something was written outside the checkout while a leaf ran. Nothing was restored.
    #[error("something was written where it must not be while the {role} ran; see {log}")]
    Breach {
        /// Which leaf.
        role: &'static str,
        /// The error log.
        log: camino::Utf8PathBuf,
        /// What was written.
        written: Vec<String>,
    },
    /// The patch on disk is empty, or went away.
    #[error("patch.diff changes nothing")]
    EmptyPatch,
    /// The patch on disk no longer applies to its base.
    #[error("patch.diff does not apply to {base}")]
    Stale {
        /// The base.
        base: String,
        /// Why not.
        source: pdca_lanes::ApplyError,
    },
    /// The bundle is signed off, and the gate report it was signed on cannot be read.
    #[error("the bundle is signed off, and its gate report cannot be read; it is not judged again")]
    Signed,
    /// A step ended without moving the bundle: a defect, caught before it loops.
    #[error("the step {step:?} left the bundle where it was")]
    NoProgress {
        /// The step.
        step: Step,
    },
    /// What is about to be done cannot be recorded, so it is not done.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The run may call no more leaves.
    #[error("the run has called {called} leaves, which is its limit")]
    Capped {
        /// How many it called.
        called: u64,
    },
    /// Trying it again was tried enough.
    #[error("it was blocked: {evidence}")]
    Blocked {
        /// What a person should see.
        evidence: String,
    },
    /// The executor failed, or its host was lost.
    #[error(transparent)]
    Executor(JobError),
    /// The executor answered for another attempt.
    #[error(transparent)]
    StaleResult(#[from] StaleResult),
    /// The thread that drove it panicked: a defect, and no other bundle's concern.
    #[error("the driver's thread panicked: {said}")]
    Panicked {
        /// What it said.
        said: String,
    },
    /// The driver's own directory cannot be used.
    #[error("the driver's own files cannot be used")]
    Own(#[source] io::Error),
}

impl Driver<'_> {
    /// Drives one bundle until it halts.
    pub fn run_bundle(&self, bundle: &Bundle) -> Result<BandEnd, BeatError> {
        let _taken = self.config.locks().take_for(bundle.id(), self.slot())?;
        if let Some(evidence) = self.run.and_then(|run| run.block_of(bundle.id())) {
            return Err(BeatError::Blocked { evidence });
        }
        let begun = Instant::now();
        let driven = match steps(self, bundle) {
            // A git that was ended because an end was asked for is no fault of the lane's.
            Err(BeatError::Checkout(_)) if self.cancel.is_cancelled() => {
                Err(BeatError::Interrupted)
            }
            driven => driven,
        };
        match &driven {
            Ok(drive) => {
                if drive.steps > 0
                    && let Err(error) = self.config.pace().store(bundle.id(), begun.elapsed())
                {
                    let text = format!("how long bundles take cannot be noted: {error}");
                    self.tell(bundle, What::notice(text));
                }
                if let Err(error) = BeatFailures::of(self.config).forget(bundle.id()) {
                    let text = format!("that it failed before cannot be forgotten: {error}");
                    self.tell(bundle, What::notice(text));
                }
                self.tell(bundle, What::Halted { halt: drive.halt });
            }
            Err(BeatError::Interrupted) => {}
            Err(error) => {
                let note = || BeatFailures::of(self.config).note(bundle, error);
                if let Err(error) = self.effects.perform("failure-noted", note) {
                    self.warn(bundle, format!("that it failed cannot be noted: {error}"));
                }
                self.tell(bundle, What::Failed { error: chain(error) });
            }
        }
        driven
    }

    /// Where a bundle stands, as far as the next step depends on it.
    pub fn position(&self, snapshot: &Snapshot) -> Result<Position, LoadError> {
        let brief = snapshot.authored_brief();
        let closes =
            brief.is_some_and(|brief| close_disposition(brief, &self.config.close_words).is_some());
        let has = |artifact| snapshot.artifacts.contains(artifact);
        // Only there does the answer decide anything, and it costs a look at the whole patch.
        let outdated = snapshot.state == State::Checked
            && (snapshot.coverage()? == Coverage::Changed
                || is_drift_outdated(self.config, snapshot)?);
        Ok(Position {
            state: snapshot.state,
            close: closes && !snapshot.reopened,
            closing: has(Artifact::CloseDisposition) && !has(Artifact::Patch),
            outdated: outdated && has(Artifact::Patch),
            review: match (has(Artifact::Review), snapshot.has_error_log(REVIEW_LOG)) {
                (true, _) => Reviewed::Yes,
                (false, true) => Reviewed::Failed,
                (false, false) => Reviewed::No,
            },
        })
    }

    /// Does a job where jobs are done, and takes what counts of the answer.
    pub(crate) fn execute(&self, job: &Job, cx: &JobContext<'_>) -> Result<JobOutcome, BeatError> {
        let result = match self.executor {
            Some(executor) => executor.execute(job, cx),
            None => LocalExecutor::new(*self).execute(job, cx),
        };
        Ok(result?.counted_under(&job.name)?)
    }

    /// Drives one bundle as a job.
    pub fn run_band(&self, id: &BundleId, slot: Option<u32>) -> Result<BandEnd, BeatError> {
        let generation = self.run.and_then(|run| run.generation_of(id)).map_or(1, Generation::get);
        let job = Job {
            name: self.job_name(id.as_str(), generation)?,
            work: Work::Band { bundle: id.clone() },
            terms: self.config.terms(),
        };
        let cx = JobContext { slot, ..JobContext::new(self.cancel) };
        match self.execute(&job, &cx)? {
            JobOutcome::Band(end) => Ok(end),
            JobOutcome::Gated { .. } => Err(unexpected_outcome(&job.name)),
        }
    }

    /// Returns the name of an attempt in this run.
    pub(crate) fn job_name(&self, unit: &str, generation: u32) -> Result<JobName, BeatError> {
        // Outside a recorded run the name has a hyphen, which separates the parts of a job's name.
        let run = self.config.run.replace('-', ".");
        let generation = Generation::new(generation).unwrap_or(Generation::FIRST);
        let name = JobName::new(&run, unit, generation);
        name.map_err(|error| BeatError::Executor(JobError::Failed(Box::new(error))))
    }

    /// Puts an artifact in place, as one effect.
    pub(crate) fn publish(
        &self,
        bundle: &Bundle,
        artifact: Artifact,
        bytes: &[u8],
    ) -> Result<(), BeatError> {
        self.run.map_or(Ok(()), Run::require_ours)?;
        Ok(self.effects.perform(artifact.file_name(), || bundle.publish(artifact, bytes))?)
    }

    /// Moves whatever judges a change out of the way, because it was not this one; nothing of it is lost.
    pub(crate) fn set_aside_verdicts(
        &self,
        bundle: &Bundle,
        snapshot: &Snapshot,
    ) -> Result<(), BeatError> {
        for file in snapshot.verdict_files() {
            if let Some(kept) =
                self.effects.perform("set-aside", || bundle.set_aside_file(&file))?
            {
                let text = format!("{file} does not count for this patch; it was kept as {kept}");
                self.warn(bundle, text);
            }
        }
        Ok(())
    }

    pub(crate) fn tell(&self, bundle: &Bundle, what: What) {
        let scope = self.scope.cloned().unwrap_or_else(|| Scope::Bundle(bundle.id().clone()));
        self.events.emit(scope, self.slot(), what);
    }

    /// The slot it is pinned to; none where there is one lane only.
    pub(crate) fn slot(&self) -> Option<u32> {
        self.lane_env.map(|lane_env| lane_env.slot)
    }

    pub(crate) fn warn(&self, bundle: &Bundle, text: impl Into<String>) {
        self.tell(bundle, What::Warning { text: text.into() });
    }
}

/// An executor that answers something else than what it was asked.
pub(crate) fn unexpected_outcome(name: &JobName) -> BeatError {
    let said = format!("the executor answered {name} with the outcome of another kind of work");
    BeatError::Executor(JobError::Failed(said.into()))
}

fn steps(cx: &Driver<'_>, bundle: &Bundle) -> Result<BandEnd, BeatError> {
    // A driver before this one may have died while a child ran: compare before any state is derived.
    let written = relieve_guard(cx, bundle)?;
    if !written.is_empty() {
        let text =
            format!("Written into the bundle while a child ran:\n- {}\n", written.join("\n- "));
        let log = keep_log(cx, bundle, "breach", &text)?;
        return Err(BeatError::Breach { role: "child of an earlier driver", log, written });
    }
    let mut snapshot = bundle.load()?;
    let mut position = cx.position(&snapshot)?;
    let mut steps = 0;
    let mut is_drift_told = false;
    loop {
        // Also for a patch that was there already: whoever drives others beside it must know.
        is_drift_told = is_drift_told || tell_drift(cx, bundle, &snapshot)?;
        let next = step(position);
        if let Step::Halt(halt) = next {
            if !cx.cancel.is_cancelled() && mend(cx, bundle, &snapshot)? {
                snapshot = bundle.load()?;
                position = cx.position(&snapshot)?;
                steps += 1;
                continue;
            }
            cx.config.jobs().remove_all(bundle.id()).map_err(BeatError::Own)?;
            return Ok(BandEnd { halt, steps, red: is_red(&snapshot) });
        }
        if cx.cancel.is_cancelled() {
            return Err(BeatError::Interrupted);
        }
        cx.tell(bundle, What::Began { step: next, from: snapshot.state });
        let begun = Instant::now();
        carry_out(cx, next, bundle, &snapshot)?;
        snapshot = bundle.load()?;
        let now = cx.position(&snapshot)?;
        if now == position {
            return Err(BeatError::NoProgress { step: next });
        }
        position = now;
        steps += 1;
        let duration_ms = millis(begun.elapsed());
        cx.tell(bundle, What::Finished { step: next, to: snapshot.state, duration_ms });
    }
}

fn carry_out(
    cx: &Driver<'_>,
    next: Step,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<(), BeatError> {
    cx.run.map_or(Ok(()), Run::require_ours)?;
    match next {
        Step::Halt(_) => Ok(()),
        Step::Close => close(cx, bundle, snapshot),
        Step::Build => build(cx, bundle, snapshot),
        Step::Gate => gate(cx, bundle, snapshot).map(drop),
        Step::Review => review(cx, bundle, snapshot),
        Step::Assemble => assemble_summary(cx, bundle, snapshot),
        Step::Archive(reentry) => {
            for one in archive_plan(bundle, reentry)?.steps {
                cx.effects.perform(one.name(), || one.apply())?;
            }
            Ok(())
        }
    }
}

fn close(cx: &Driver<'_>, bundle: &Bundle, snapshot: &Snapshot) -> Result<(), BeatError> {
    let words = &cx.config.close_words;
    let found = snapshot.authored_brief().and_then(|brief| close_disposition(brief, words));
    match found {
        Some(found) => {
            cx.publish(bundle, Artifact::CloseDisposition, close_text(&found).as_bytes())
        }
        // `position` and this look at the same brief.
        None => Err(BeatError::NoProgress { step: Step::Close }),
    }
}

/// Whether a gating row is red in the report that a bundle has.
pub(crate) fn is_red(snapshot: &Snapshot) -> bool {
    snapshot.gates.as_ref().is_some_and(|gates| gates.failed_gating().next().is_some())
}

/// The name of the error log that stands in for a review.
pub(crate) const REVIEW_LOG: &str = "check-review";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::stand_guard;
    use crate::step::Halt;
    use crate::testing::Scene;

    #[test]
    fn the_patch_is_published_before_its_verdict_and_the_summary_last() {
        let scene = Scene::planned();
        let outcome = scene.driver().run_bundle(&scene.bundle()).unwrap();
        assert_eq!(outcome.halt, Halt::AwaitingSignoff);
        let effects = scene.effects();
        let at = |name: &str| effects.iter().position(|one| *one == name).expect(name);
        assert!(at("patch.diff") < at("check-gates.json"), "{effects:?}");
        assert!(at("check-gates.json") < at("SUMMARY.md"), "{effects:?}");
    }

    #[test]
    fn a_bundle_at_its_sign_off_is_left_alone() {
        let scene = Scene::planned();
        scene.driver().run_bundle(&scene.bundle()).unwrap();
        scene.effects();
        let outcome = scene.driver().run_bundle(&scene.bundle()).unwrap();
        assert_eq!((outcome.halt, outcome.steps), (Halt::AwaitingSignoff, 0));
        assert_eq!(scene.effects(), Vec::<&str>::new());
    }

    #[test]
    fn a_driver_that_was_cancelled_starts_no_beat() {
        let scene = Scene::planned();
        scene.cancel.cancel();
        let outcome = scene.driver().run_bundle(&scene.bundle());
        assert!(matches!(outcome, Err(BeatError::Interrupted)), "{outcome:?}");
        assert_eq!(scene.effects(), Vec::<&str>::new());
    }

    #[test]
    fn what_a_child_of_a_dead_driver_planted_moves_no_state() {
        let scene = Scene::planned();
        let bundle = scene.bundle();
        stand_guard(&scene.driver(), &bundle).unwrap();
        fs_err::write(bundle.path(Artifact::Patch), "planted\n").unwrap();
        let outcome = scene.driver().run_bundle(&bundle);
        assert!(matches!(outcome, Err(BeatError::Breach { .. })), "{outcome:?}");
        assert!(!bundle.path(Artifact::Patch).exists());
        assert_eq!(bundle.load().unwrap().state, State::Planned);
    }

    #[test]
    fn a_bundle_that_is_taken_is_not_driven() {
        let scene = Scene::planned();
        let _taken = scene.config.locks().take(scene.bundle().id()).unwrap();
        let outcome = scene.driver().run_bundle(&scene.bundle());
        assert!(matches!(outcome, Err(BeatError::Admission(_))), "{outcome:?}");
        assert_eq!(scene.effects(), Vec::<&str>::new());
    }
}
