//! Runs one bundle, step by step, until a person has to decide.
//!
//! 1. Take the bundle's lock, so that two drivers never write the same bundle.
//! 2. Compare the bundle with the guard of an earlier driver, before any state is derived: a child that
//!    outlived its driver may have written files that would move the state.
//! 3. Load the files, derive the [`Position`], and let [`step`] choose.
//! 4. Carry the step out. Its artifact is published last, because its presence is what moves the state.
//! 5. Load again. A position that did not change is a defect and ends the loop ([`BeatError::NoProgress`]).

use std::io;
use std::time::Instant;

use crossbeam_channel::Sender;
use pdca_journal::events::WarningCode;
use pdca_journal::{Effects, Generation, Unwatched};
use pdca_leaves::{LongWait, WaitDecision};
use pdca_process::Cancel;
use pdca_state::{
    ArchiveError, ArchivePlan, Artifact, Bundle, Coverage, LoadError, Snapshot, State, WriteError,
    archive_auto, archive_plan, chain, close_disposition, close_text,
};
use tracing::{info, info_span};

use crate::admission::BundleLockError;
use crate::assemble::assemble_summary;
use crate::auto_iterate::auto_findings;
use crate::base::BaseError;
use crate::build::build;
use crate::calls::CostReached;
use crate::check::gate;
use crate::checkout::CheckoutError;
use crate::config::{TargetChoiceError, WorkspaceConfig};
use crate::dependencies::UnmetDependency;
use crate::drift::{Drifted, is_drift_outdated, tell_drift};
use crate::failures::BeatFailures;
use crate::guard::{refuse_writes, relieve_guard};
use crate::lane_env::LaneEnv;
use crate::leg::{AttemptLeg, CallGrant, Leg, LegEnd, LegFailure, StaleResult};
use crate::place::{PlaceError, PlaceSlot, Places};
use crate::refold::mend;
use crate::review::review;
use crate::run::{RecordError, Run};
use crate::step::{Halt, Position, ReviewTrace, Step, step};
use pdca_journal::events::{EventKind, EventStream, Scope, millis};

/// The context that every beat takes: configuration, effects, events, cancellation, lane and run.
///
/// Beats are functions over it, one module each. A pool has one for each lane.
#[derive(Clone, Copy)]
pub struct Driver<'a> {
    /// The resolved configuration.
    pub config: &'a WorkspaceConfig,
    /// Observes every durable change, before and after.
    pub effects: &'a dyn Effects,
    pub events: &'a EventStream,
    /// The integration or base that events are about, in place of the bundle.
    pub scope: Option<&'a Scope>,
    /// Tells the dispatcher that a change writes more than its brief declares.
    pub drifts: Option<&'a Sender<Drifted>>,
    pub cancel: &'a Cancel,
    /// The lane it is pinned to; `None` with a single lane.
    pub lane_env: Option<&'a LaneEnv>,
    /// The run it works in; `None` for a command outside any run.
    pub run: Option<&'a Run>,
    /// Where its legs run.
    pub place: PlaceSlot<'a>,
    /// All places of the run; `None` for this machine alone.
    pub places: Option<&'a Places>,
    /// The calls of leaves that a leg may make; `None` where the run counts them.
    pub grant: Option<&'a CallGrant>,
    /// Asks the person at the terminal about a limit that ends later than configured; `None` where nobody is there.
    pub ask_wait: Option<&'a (dyn Fn(&LongWait) -> WaitDecision + Sync)>,
}

impl<'a> Driver<'a> {
    /// Makes a driver outside any run, with one lane and unobserved effects.
    pub fn new(config: &'a WorkspaceConfig, events: &'a EventStream, cancel: &'a Cancel) -> Self {
        Self {
            config,
            effects: &Unwatched,
            events,
            scope: None,
            drifts: None,
            cancel,
            lane_env: None,
            run: None,
            place: PlaceSlot::HERE,
            places: None,
            grant: None,
            ask_wait: None,
        }
    }
}

impl std::fmt::Debug for Driver<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The reason a bundle could not continue. Its files are whole, and the next run continues from them.
#[derive(Debug, thiserror::Error)]
pub enum BeatError {
    /// Cancellation was requested.
    #[error("interrupted")]
    Interrupted,
    /// Another process holds the bundle.
    #[error(transparent)]
    Admission(#[from] BundleLockError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the attempt cannot be archived")]
    Archive(#[from] ArchiveError),
    /// The target to build in cannot be chosen.
    #[error(transparent)]
    Target(#[from] TargetChoiceError),
    /// External dependencies that the brief declares are not there. Nothing was paid for.
    #[error("external dependency not met: {}", listed(unmet))]
    Dependency { unmet: Vec<UnmetDependency> },
    /// The base of the attempt cannot be computed now. Not the bundle's fault.
    #[error("its base cannot be made now")]
    Base(#[from] BaseError),
    /// The private checkout cannot be used. Not the bundle's fault.
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    /// The gates could not be run to the end.
    #[error(transparent)]
    Gates(pdca_gates::GatesError),
    /// A leaf failed and is not retried. Its output is in the error log in the bundle.
    #[error("the {role} failed; see {log}")]
    Leaf { role: &'static str, log: camino::Utf8PathBuf, source: Box<pdca_leaves::LeafError> },
    /// The builder changed nothing, which is neither success nor a reason to retry unasked.
    #[error("the builder changed nothing; see {log}")]
    NoChange { log: camino::Utf8PathBuf },
    /// The builder left nested repositories in the checkout; they are kept when it is cleared.
    #[error("the builder left a repository inside the checkout; see {log}")]
    Nested {
        log: camino::Utf8PathBuf,
        /// Paths relative to the checkout.
        nested: Vec<camino::Utf8PathBuf>,
    },
    #[error("the builder's patch cannot be taken; see {log}")]
    Patch { log: camino::Utf8PathBuf, source: pdca_lanes::ApplyError },
    /// Files outside the checkout changed while a leaf ran. They are not restored.
    #[error("files outside the checkout changed while the {role} ran; see {log}")]
    Breach { role: &'static str, log: camino::Utf8PathBuf, written: Vec<String> },
    /// The patch on disk is empty or missing.
    #[error("patch.diff changes nothing")]
    EmptyPatch,
    /// The patch on disk no longer applies to its base.
    #[error("patch.diff does not apply to {base}")]
    Stale { base: String, source: pdca_lanes::ApplyError },
    /// The bundle is signed off, and the gate report behind the sign-off cannot be read.
    #[error("the bundle is signed off, and its gate report cannot be read; it is not judged again")]
    Signed,
    /// A step ended without moving the bundle: a defect, caught before it loops.
    #[error("the step {step:?} left the bundle where it was")]
    NoProgress { step: Step },
    /// The intent cannot be recorded, so the effect is not carried out.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The run's limit on leaf calls is reached.
    #[error("the run has called {called} leaves, which is its limit")]
    Capped { called: u64 },
    /// A cap on cost is reached.
    #[error(transparent)]
    Cost(#[from] CostReached),
    /// The run blocked the bundle after too many attempts.
    #[error("it was blocked: {evidence}")]
    Blocked {
        /// The reason, as shown to a person.
        evidence: String,
    },
    /// The place of the leg was lost or cannot run it.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The leg ran on another machine and failed there.
    #[error(transparent)]
    Elsewhere(Box<LegFailure>),
    /// The place answered for another attempt.
    #[error(transparent)]
    StaleResult(#[from] StaleResult),
    /// The worker thread panicked: a defect that must not affect other bundles.
    #[error("the driver's thread panicked: {said}")]
    Panicked { said: String },
    #[error("the driver's own files cannot be used")]
    Own(#[source] io::Error),
}

/// The end of a bundle that was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleEnd {
    /// The reason to stop.
    pub halt: Halt,
    /// The number of steps taken; 0 if there was nothing to do.
    pub steps: u32,
    /// True if a gating row is red in the bundle's current report.
    pub red: bool,
}

fn listed(unmet: &[UnmetDependency]) -> String {
    let ids: Vec<String> = unmet.iter().map(|one| format!("`{}`", one.id)).collect();
    ids.join(", ")
}

impl Driver<'_> {
    /// Runs one bundle until it halts, holding its lock.
    pub fn run_bundle(&self, bundle: &Bundle) -> Result<BundleEnd, BeatError> {
        let _span = info_span!("bundle", id = %bundle.id(), lane = self.slot()).entered();
        // The lock before anything is read: a person may be signing the bundle.
        let _taken = self.config.locks().take_for(bundle.id(), self.slot())?;
        if let Some(evidence) = self.run.and_then(|run| run.block_of(bundle.id())) {
            return Err(BeatError::Blocked { evidence });
        }
        let begun = Instant::now();
        let driven = match steps(self, bundle) {
            // Cancellation kills git children too; that is not a fault of the lane.
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
                    let text = format!("its duration cannot be recorded: {error}");
                    self.tell(bundle, EventKind::notice(WarningCode::NotStored, text));
                }
                // Both records only advise the scheduler, so failing to write them fails no bundle.
                if let Err(error) = BeatFailures::of(self.config).forget(bundle.id()) {
                    let text = format!("the record of earlier failures cannot be removed: {error}");
                    self.tell(bundle, EventKind::notice(WarningCode::NotStored, text));
                }
                self.tell(bundle, EventKind::Halted { halt: drive.halt });
            }
            // Says nothing about the bundle, so it counts as no failure.
            Err(BeatError::Interrupted) => {}
            Err(error) => {
                let note = || BeatFailures::of(self.config).note(bundle, error);
                if let Err(error) = self.effects.perform("failure-noted", note) {
                    self.warn(
                        bundle,
                        WarningCode::NotStored,
                        format!("the failure cannot be recorded: {error}"),
                    );
                }
                self.tell(bundle, EventKind::Failed { error: chain(error) });
            }
        }
        driven
    }

    /// Carries out the steps of a leg in a bundle, from wherever its files stand, until a step that is not of a leg.
    /// Counts them in `steps`, also before an error.
    pub fn run_leg(&self, bundle: &Bundle, steps: &mut u32) -> Result<(), BeatError> {
        let _taken = self.config.locks().take(bundle.id())?;
        // A process before this one may have died while a child ran.
        settle_dead_driver(self, bundle)?;
        loop {
            let snapshot = bundle.load()?;
            let position = self.position(&snapshot)?;
            let next = step(position);
            if !is_of_leg(next) {
                return self.config.jobs().remove_all(bundle.id()).map_err(BeatError::Own);
            }
            if self.cancel.is_cancelled() {
                return Err(BeatError::Interrupted);
            }
            let begun = Instant::now();
            begin_step(self, next, bundle, &snapshot)?;
            let after = bundle.load()?;
            if self.position(&after)? == position {
                return Err(BeatError::NoProgress { step: next });
            }
            *steps += 1;
            tell_finished(self, bundle, next, &after, begun);
        }
    }

    /// Returns the position of a bundle, as far as the next step depends on it.
    pub fn position(&self, snapshot: &Snapshot) -> Result<Position, LoadError> {
        let brief = snapshot.authored_brief();
        let closes =
            brief.is_some_and(|brief| close_disposition(brief, &self.config.close_words).is_some());
        let has = |artifact| snapshot.artifacts.contains(artifact);
        // Decides only in these states, and costs reading the whole patch.
        let outdated = match snapshot.state {
            State::Checked => {
                snapshot.coverage()? == Coverage::Changed
                    || snapshot.is_brief_edited()?
                    || is_drift_outdated(self.config, snapshot)?
            }
            State::AwaitingSignoff => snapshot.is_brief_edited()?,
            State::Unplanned
            | State::Resolved
            | State::Planned
            | State::Built
            | State::Complete
            | State::Iterate(_)
            | State::Discontinued => false,
        };
        Ok(Position {
            state: snapshot.state,
            close: closes && !snapshot.reopened,
            closing: has(Artifact::CloseDisposition) && !has(Artifact::Patch),
            outdated: outdated
                && (has(Artifact::Patch) || snapshot.state == State::AwaitingSignoff),
            review: match (has(Artifact::Review), snapshot.has_error_log(REVIEW_LOG)) {
                (true, _) if !auto_findings(self.config, snapshot)?.is_empty() => {
                    ReviewTrace::Mendable
                }
                (true, _) => ReviewTrace::Yes,
                (false, true) => ReviewTrace::Failed,
                (false, false) => ReviewTrace::No,
            },
        })
    }

    /// Publishes an artifact as one effect, provided that the run still owns the workspace.
    pub fn publish(
        &self,
        bundle: &Bundle,
        artifact: Artifact,
        bytes: &[u8],
    ) -> Result<(), BeatError> {
        // A driver that was stopped may wake here after a take-over; its artifact must not appear.
        self.run.map_or(Ok(()), Run::require_ours)?;
        Ok(self.effects.perform(artifact.file_name(), || bundle.publish(artifact, bytes))?)
    }

    /// Renames the verdicts of an earlier change, so that they do not count for this one. Nothing is deleted.
    pub(crate) fn set_aside_verdicts(
        &self,
        bundle: &Bundle,
        snapshot: &Snapshot,
    ) -> Result<(), BeatError> {
        for file in snapshot.verdict_files() {
            if let Some(kept) =
                self.effects.perform("set-aside", || bundle.set_aside_file(&file))?
            {
                let text = format!("{file} does not count any more; it was kept as {kept}");
                self.warn(bundle, WarningCode::FileSetAside, text);
            }
        }
        Ok(())
    }

    /// Emits an event about a bundle, or about the scope that stands for it.
    pub fn tell(&self, bundle: &Bundle, what: EventKind) {
        let scope = self.scope.cloned().unwrap_or_else(|| Scope::Bundle(bundle.id().clone()));
        self.events.emit(scope, self.slot(), what);
    }

    /// Returns the slot that it is pinned to; `None` with a single lane.
    pub fn slot(&self) -> Option<u32> {
        self.lane_env.map(|lane_env| lane_env.slot)
    }

    /// Emits a warning about a bundle.
    pub fn warn(&self, bundle: &Bundle, code: WarningCode, text: impl Into<String>) {
        self.tell(bundle, EventKind::warning(code, text));
    }
}

/// Settles what a driver left that died while a child ran: files in the bundle that are not its own, and calls. Comes
/// before any state is derived.
pub(crate) fn settle_dead_driver(cx: &Driver<'_>, bundle: &Bundle) -> Result<(), BeatError> {
    let written = relieve_guard(cx, bundle)?;
    // Before anything else is done with the bundle, so that a call that ended is on record before a
    // cap is compared or its job is removed (decision 034).
    cx.keep_left_calls(bundle);
    refuse_writes(cx, bundle, written)
}

fn steps(cx: &Driver<'_>, bundle: &Bundle) -> Result<BundleEnd, BeatError> {
    settle_dead_driver(cx, bundle)?;
    let mut snapshot = bundle.load()?;
    let mut position = cx.position(&snapshot)?;
    let mut steps = 0;
    let mut is_drift_told = false;
    let mut published = None;
    loop {
        // Also for a patch that existed before: the dispatcher needs it to schedule the bundle's rivals.
        is_drift_told = is_drift_told || tell_drift(cx, bundle, &snapshot)?;
        let next = step(position);
        info!(state = ?snapshot.state, ?next, "step");
        if let Step::Halt(halt) = next {
            // A stale result looks finished: only a comparison with what it stands on shows that it
            // is not (decision 018).
            if !cx.cancel.is_cancelled() && mend(cx, bundle, &snapshot)? {
                snapshot = bundle.load()?;
                position = cx.position(&snapshot)?;
                steps += 1;
                continue;
            }
            // Every artifact is published, so no verdict of a child is needed again (decision 003).
            cx.config.jobs().remove_all(bundle.id()).map_err(BeatError::Own)?;
            return Ok(BundleEnd { halt, steps, red: is_red(&snapshot) });
        }
        if cx.cancel.is_cancelled() {
            return Err(BeatError::Interrupted);
        }
        let begun = Instant::now();
        let of_leg = if is_of_leg(next) {
            let leg = AttemptLeg { bundle, snapshot: &snapshot, next, published };
            run_attempt(cx, leg)?
        } else {
            begin_step(cx, next, bundle, &snapshot)?;
            None
        };
        snapshot = bundle.load()?;
        let now = cx.position(&snapshot)?;
        // A beat that reports success without its artifact would otherwise be repeated forever.
        if now == position {
            return Err(BeatError::NoProgress { step: next });
        }
        position = now;
        if let Some((generation, taken)) = of_leg {
            published = Some(generation);
            steps += taken;
        } else {
            steps += 1;
            tell_finished(cx, bundle, next, &snapshot, begun);
        }
    }
}

/// Has the place run a leg. Returns the generation and the number of steps of a result that was published; `None` for
/// one step in the bundle itself.
fn run_attempt(
    cx: &Driver<'_>,
    leg: AttemptLeg<'_>,
) -> Result<Option<(Generation, u32)>, BeatError> {
    let name = || format!("{} of {}", leg.bundle.id(), cx.config.run);
    match cx.place.place.run(cx, &Leg::Attempt(leg))? {
        LegEnd::Step => Ok(None),
        LegEnd::Published { generation, steps } => Ok(Some((generation, steps))),
        LegEnd::Gated { .. } => Err(PlaceError::OtherKind { leg: name() }.into()),
    }
}

/// Returns whether a step is of a leg, and not of the driver's own machine.
fn is_of_leg(step: Step) -> bool {
    match step {
        Step::Build | Step::Gate | Step::Review => true,
        Step::Halt(_) | Step::Close | Step::Assemble | Step::SendBack | Step::Archive(_) => false,
    }
}

fn tell_finished(cx: &Driver<'_>, bundle: &Bundle, step: Step, after: &Snapshot, begun: Instant) {
    let duration_ms = millis(begun.elapsed());
    cx.tell(bundle, EventKind::Finished { step, to: after.state, duration_ms });
}

/// Tells of a step and carries it out on this machine.
pub(crate) fn begin_step(
    cx: &Driver<'_>,
    next: Step,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<(), BeatError> {
    cx.tell(bundle, EventKind::Began { step: next, from: snapshot.state });
    carry_out(cx, next, bundle, snapshot)
}

fn carry_out(
    cx: &Driver<'_>,
    next: Step,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<(), BeatError> {
    // A driver that lost its run must not begin a child in a lane that another one uses by now.
    cx.run.map_or(Ok(()), Run::require_ours)?;
    match next {
        Step::Halt(_) => Ok(()),
        Step::Close => close(cx, bundle, snapshot),
        Step::Build => build(cx, bundle, snapshot),
        Step::Gate => gate(cx, bundle, snapshot).map(drop),
        Step::Review => review(cx, bundle, snapshot),
        Step::Assemble => assemble_summary(cx, bundle, snapshot),
        Step::SendBack => {
            let findings = auto_findings(cx.config, snapshot)?;
            archive(cx, &archive_auto(bundle, &findings)?)
        }
        Step::Archive(reentry) => archive(cx, &archive_plan(bundle, reentry)?),
    }
}

fn archive(cx: &Driver<'_>, plan: &ArchivePlan) -> Result<(), BeatError> {
    for one in &plan.steps {
        // Step by step, because each is an effect that a crash may follow. The plan's first step
        // makes the archive visible, and every step can be repeated (decision 005).
        cx.effects.perform(one.name(), || one.apply())?;
    }
    Ok(())
}

fn close(cx: &Driver<'_>, bundle: &Bundle, snapshot: &Snapshot) -> Result<(), BeatError> {
    let words = &cx.config.close_words;
    let found = snapshot.authored_brief().and_then(|brief| close_disposition(brief, words));
    match found {
        Some(found) => {
            cx.publish(bundle, Artifact::CloseDisposition, close_text(&found).as_bytes())
        }
        // Unreachable in practice: `position` looked at the same brief.
        None => Err(BeatError::NoProgress { step: Step::Close }),
    }
}

/// Returns whether a gating row failed in the bundle's gate report.
pub(crate) fn is_red(snapshot: &Snapshot) -> bool {
    snapshot.gates.as_ref().is_some_and(|gates| gates.failed_gating().next().is_some())
}

/// The name of the error log that stands in for a review.
pub(crate) const REVIEW_LOG: &str = "check-review";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::stand_guard;
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

    fn artifacts(effects: Vec<&'static str>) -> Vec<&'static str> {
        let is_artifact = |name: &&str| Artifact::from_file_name(name).is_some();
        effects.into_iter().filter(is_artifact).collect()
    }

    #[test]
    fn whichever_artifact_was_the_last_before_a_stop_no_beat_runs_twice() {
        let whole = {
            let scene = Scene::planned();
            scene.driver().run_bundle(&scene.bundle()).unwrap();
            artifacts(scene.effects())
        };
        let (summary, before) = whole.split_last().unwrap();
        assert_eq!(*summary, "SUMMARY.md");
        assert!(before.len() > 1, "{whole:?}");
        for last in before {
            let mut scene = Scene::planned();
            scene.stop_after(last);
            scene.driver().run_bundle(&scene.bundle()).unwrap();
            assert_eq!(artifacts(scene.effects()), whole, "stopped after {last}");
        }
    }

    #[test]
    fn a_brief_that_asks_for_no_fix_is_closed_without_builder_and_reviewer() {
        let mut scene = Scene::planned();
        scene.config.close_words = vec!["wontfix".into()];
        scene.workspace.brief("7", &[("Disposition hint", "wontfix: it is meant so")]);
        let outcome = scene.driver().run_bundle(&scene.bundle()).unwrap();
        assert_eq!(outcome.halt, Halt::AwaitingSignoff);
        assert_eq!(
            artifacts(scene.effects()),
            ["close-disposition", "check-gates.json", "SUMMARY.md"]
        );
    }

    #[test]
    fn a_patch_that_was_edited_after_its_report_is_gated_again() {
        let mut scene = Scene::planned();
        scene.stop_after("check-gates.json");
        scene.effects();
        let bundle = scene.bundle();
        fs_err::write(
            bundle.path(Artifact::Patch),
            "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n",
        )
        .unwrap();
        scene.driver().run_bundle(&bundle).unwrap();
        let effects = scene.effects();
        assert!(effects.contains(&"check-gates.json"), "{effects:?}");
        assert!(!effects.contains(&"patch.diff"), "the edited patch is kept: {effects:?}");
    }

    #[test]
    fn a_failure_is_counted_until_the_bundle_comes_to_a_halt() {
        let mut scene = Scene::planned();
        scene.stop_after("patch.diff");
        let bundle = scene.bundle();
        let patch = bundle.read(Artifact::Patch).unwrap().unwrap();
        fs_err::write(bundle.path(Artifact::Patch), "").unwrap();
        let failures = || BeatFailures::of(&scene.config).find(&bundle, &bundle.glance().unwrap());
        for times in 1..=2 {
            let failed = scene.driver().run_bundle(&bundle);
            assert!(matches!(failed, Err(BeatError::EmptyPatch)), "{failed:?}");
            assert_eq!(failures().map(|failure| failure.times), Some(times));
        }
        fs_err::write(bundle.path(Artifact::Patch), patch).unwrap();
        scene.driver().run_bundle(&bundle).unwrap();
        assert_eq!(failures(), None);
    }

    #[test]
    fn a_bundle_that_its_run_blocked_is_not_driven() {
        let scene = Scene::planned();
        let (run, bundle) = (scene.begin(&["7"]).run, scene.bundle());
        run.claim(bundle.id(), 0, &"a".repeat(40)).unwrap();
        let lost = CheckoutError::Lost { path: "/x".into() };
        run.ended(bundle.id(), &Err(BeatError::Checkout(lost))).unwrap();
        let driver = Driver { run: Some(&run), ..scene.driver() };
        let outcome = driver.run_bundle(&bundle);
        assert!(matches!(outcome, Err(BeatError::Blocked { .. })), "{outcome:?}");
        assert_eq!(scene.effects(), Vec::<&str>::new());
    }

    #[test]
    fn a_reviewer_that_failed_for_good_is_not_asked_again() {
        let mut scene = Scene::planned();
        scene.stop_after("check-gates.json");
        scene.effects();
        let bundle = scene.bundle();
        fs_err::write(bundle.dir().join(Artifact::error_log(REVIEW_LOG)), "it crashed\n").unwrap();
        let position = scene.driver().position(&bundle.load().unwrap()).unwrap();
        assert_eq!(position.review, ReviewTrace::Failed);
        scene.driver().run_bundle(&bundle).unwrap();
        assert_eq!(artifacts(scene.effects()), ["SUMMARY.md"]);
    }

    #[test]
    fn what_a_child_of_a_dead_process_wrote_into_the_bundle_fails_the_leg() {
        let scene = Scene::planned();
        let (driver, bundle) = (scene.driver(), scene.bundle());
        stand_guard(&driver, &bundle).unwrap();
        fs_err::write(bundle.path(Artifact::Review), "all is well\n").unwrap();
        let ended = driver.run_leg(&bundle, &mut 0);
        assert!(matches!(ended, Err(BeatError::Breach { .. })), "{ended:?}");
    }
}
