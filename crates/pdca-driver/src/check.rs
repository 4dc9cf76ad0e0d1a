//! Check: the gates over exactly base + patch.

use pdca_gates::{
    Cwd, GateEvent, GatesError, Outcome, Purpose, Rows, Scene, Tree, Warning, close_report,
    run_checks,
};
use pdca_journal::Verdict;
use pdca_process::{Held, Sandbox, SandboxMode, sandbox_support};
use pdca_state::{Artifact, Bundle, GateReport, GateResult, GateRow, Snapshot};

use crate::drive::{DriveError, Driver};
use crate::effect::{Point, When};
use crate::event::What;
use crate::ground::{Ground, Patched};
use crate::seat::Seat;

impl Driver<'_> {
    /// Runs the gates and publishes the report. Whoever calls this holds the bundle.
    pub fn gate(&self, bundle: &Bundle, snapshot: &Snapshot) -> Result<GateReport, DriveError> {
        if snapshot.summary.as_ref().is_some_and(|summary| summary.outcome().is_some()) {
            return Err(DriveError::Signed);
        }
        // Whatever says something about the change by now says it about another one, or is torn.
        self.set_aside_verdicts(bundle, snapshot)?;
        let report = if snapshot.artifacts.contains(Artifact::Patch) {
            self.judge(bundle, snapshot, true)?.report
        } else {
            close_report(bundle)
        };
        if let Some(run) = self.run {
            run.judged(bundle.id(), report.rows.iter().filter_map(verdict))?;
        }
        bundle.publish_derived(Artifact::GatesMarkdown, report.to_markdown().as_bytes())?;
        self.publish(bundle, Artifact::GatesJson, report.to_json().as_bytes())?;
        Ok(report)
    }

    /// Runs the gates over a bundle's patch. Only logs are written, and those only if `keep`.
    pub fn judge(
        &self,
        bundle: &Bundle,
        snapshot: &Snapshot,
        keep: bool,
    ) -> Result<Outcome, DriveError> {
        let ground = self.ground(bundle, snapshot, false)?;
        let patch = Self::require_patch(bundle)?;
        let jobs = self.site.jobs().of(bundle.id());
        let digest = pdca_state::sha256_hex(&patch);
        let mut scene = Scene::new(Purpose::Bundle, &self.site.workspace, &jobs);
        scene.bundle = Some(bundle);
        scene.brief = snapshot.authored_brief();
        scene.run = Some(&self.site.run);
        scene.lane = self.seat_of(ground.as_ref()).map(|seat| &seat.names);
        scene.patch_digest = Some(&digest);
        scene.keep_logs = keep;
        scene.may_fix = keep;
        let children = self.site.children();
        scene.hold = Some(&children);
        scene.max_memory = self.site.limits.leaf_memory;
        scene.search_path = self.site.search_path.as_deref();
        scene.supervisor = self.site.supervisor.clone();
        let (outcome, patch) = match &ground {
            None => (self.run_rows(&self.site.rows, bundle, &scene, None)?, patch),
            Some(ground) => {
                let mut patched = Patched::stand(self, bundle, ground, patch)?;
                scene.worktree = Some(ground.lane.path());
                scene.base = Some(&ground.attempt.base);
                scene.brief_base = Some(&ground.attempt.branch);
                scene.target = Some(&ground.attempt.target);
                scene.sandbox = Some(self.gate_sandbox(ground));
                let outcome = self.run_watched(bundle, ground, &scene, &mut patched)?;
                (outcome, patched.into_patch())
            }
        };
        let outcome = self.with_drift(bundle, snapshot, outcome, &patch);
        for warning in &outcome.warnings {
            let text = warning.to_string();
            self.tell(
                bundle,
                match warning {
                    Warning::NothingConfigured => What::Notice { text },
                    Warning::NothingApplies => What::Warning { text },
                },
            );
        }
        Ok(outcome)
    }

    /// Gates are code of the project; that they leave the user's own checkout alone is checked.
    fn run_watched(
        &self,
        bundle: &Bundle,
        ground: &Ground,
        scene: &Scene<'_>,
        tree: &mut Patched<'_>,
    ) -> Result<Outcome, DriveError> {
        if self.are_gates_confined() {
            return self.run_rows(&self.site.rows, bundle, scene, Some(tree));
        }
        // How the primary was is kept with the jobs, so that a driver that takes over compares with
        // what was before the gates, not with what they did.
        let watch = self.site.jobs().of(bundle.id()).join("gates-watch");
        let wire = self.watch_from(ground, &watch)?;
        let checked = self.run_rows(&self.site.rows, bundle, scene, Some(tree));
        if matches!(checked, Err(DriveError::Interrupted)) {
            return checked;
        }
        let written = wire.breaches();
        if written.is_empty() {
            self.site.jobs().remove(&watch).map_err(DriveError::Own)?;
            return checked;
        }
        // What such gates said is worth nothing, and is not found again.
        self.site.jobs().remove_all(bundle.id()).map_err(DriveError::Own)?;
        let text = format!("Written outside while gates ran:\n- {}\n", written.join("\n- "));
        let log = self.keep_log(bundle, "gates", &text)?;
        Err(DriveError::Breach { role: "gates", log, written })
    }

    /// Whether the kernel keeps every row out of the primary, so that nobody need watch it.
    pub(crate) fn are_gates_confined(&self) -> bool {
        self.site.gate_sandbox != SandboxMode::Off
            && matches!(sandbox_support(), Held::Landlock { .. })
            && self.site.rows.as_slice().iter().all(|row| row.cwd != Cwd::Workspace)
    }

    /// Gates run what the builder wrote, so they are kept from whatever decides about it.
    pub(crate) fn gate_sandbox(&self, ground: &Ground) -> Sandbox {
        Sandbox {
            mode: self.site.gate_sandbox,
            no_write: self.site.own().into_iter().chain(self.site.kept()).collect(),
            write: [ground.lane.path()]
                .into_iter()
                .chain(ground.seat.as_ref().and_then(Seat::tmp))
                .map(ToOwned::to_owned)
                .collect(),
            ..Sandbox::default()
        }
    }

    /// The patch, which must change something.
    pub(crate) fn require_patch(bundle: &Bundle) -> Result<Vec<u8>, DriveError> {
        let patch = bundle.read(Artifact::Patch)?.filter(|patch| !patch.is_empty());
        patch.ok_or(DriveError::EmptyPatch)
    }

    /// Runs rows with a guard at the bundle.
    pub(crate) fn run_rows(
        &self,
        rows: &Rows,
        bundle: &Bundle,
        scene: &Scene<'_>,
        tree: Option<&mut dyn Tree>,
    ) -> Result<Outcome, DriveError> {
        let mut tell = |event| self.follow_gate(bundle, event);
        if rows.is_empty() {
            return run_checks(rows, scene, tree, self.cancel, &mut tell)
                .map_err(DriveError::Gates);
        }
        self.stand_guard(bundle)?;
        let checked = run_checks(rows, scene, tree, self.cancel, &mut tell);
        let written = self.relieve_guard(bundle)?;
        self.require_there(bundle, scene.worktree)?;
        if !written.is_empty() {
            let text =
                format!("Written into the bundle while gates ran:\n- {}\n", written.join("\n- "));
            let log = self.keep_log(bundle, "gates", &text)?;
            return Err(DriveError::Breach { role: "gates", log, written });
        }
        checked.map_err(|error| {
            if matches!(error, GatesError::Cancelled) {
                DriveError::Interrupted
            } else {
                DriveError::Gates(error)
            }
        })
    }

    /// Tells what a gate does, and announces that it does.
    pub(crate) fn follow_gate(&self, bundle: &Bundle, event: GateEvent) {
        if let GateEvent::RowEnded { reused: false, .. } = event {
            self.effects.reached(Point { name: "gate", when: When::After });
        }
        let begins = matches!(event, GateEvent::RowStarted { .. });
        self.tell_gate(bundle, event);
        if begins {
            self.effects.reached(Point { name: "gate", when: When::Before });
        }
    }

    fn tell_gate(&self, bundle: &Bundle, event: GateEvent) {
        self.tell(
            bundle,
            match event {
                GateEvent::RowStarted { rule_id, label: _, k, n } => {
                    What::GateBegan { rule_id, k, n }
                }
                GateEvent::Alive { rule_id, last_line } => {
                    let Some(line) = last_line else { return };
                    What::Alive { what: rule_id, line }
                }
                GateEvent::RowSkipped { rule_id, result, why } => {
                    What::Warning { text: format!("{rule_id} is not run here ({result}): {why}") }
                }
                GateEvent::RowAgain { rule_id, why } => {
                    let why = match why {
                        pdca_gates::Again::Confirm => "is red and runs once more",
                        pdca_gates::Again::Fix => "is red and its fix runs",
                    };
                    What::Warning { text: format!("{rule_id} {why}") }
                }
                GateEvent::Fixed { rule_id, changed } => {
                    let files: Vec<&str> = changed.iter().map(|path| path.as_str()).collect();
                    What::Warning {
                        text: format!(
                            "the fix of {rule_id} is now part of the patch: {}",
                            files.join(", ")
                        ),
                    }
                }
                GateEvent::RowEnded { rule_id, result, evidence, gating, duration, reused } => {
                    What::GateEnded {
                        rule_id,
                        result: result.as_str().to_owned(),
                        evidence,
                        gating,
                        reused,
                        duration,
                    }
                }
            },
        );
    }
}

/// What a row is for the record of the run; nothing where no rule stands behind it.
fn verdict(row: &GateRow) -> Option<(String, Verdict)> {
    let verdict = match row.result {
        GateResult::Pass => Verdict::Pass,
        GateResult::Fail => Verdict::Fail,
        GateResult::Unverifiable | GateResult::Deferred => Verdict::Unverifiable,
        GateResult::None => return None,
    };
    (!row.rule_id.is_empty()).then(|| (row.rule_id.clone(), verdict))
}
