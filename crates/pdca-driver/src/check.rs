//! Check: runs the gates over exactly base + patch.

use pdca_gates::{
    Checks, GateContext, GateEvent, GatesError, GatesOutcome, PrimaryView, Purpose, Tree, Warning,
    close_report, run_checks,
};
use pdca_journal::events::WarningCode;
use pdca_journal::{EffectSide, GateVerdict, Point};
use pdca_process::{Sandbox, SandboxKind, SandboxMode, wall_support};
use pdca_state::{Artifact, Bundle, GateReport, GateResult, GateRow, Snapshot, sha256_hex};

use crate::allowed_refs::{breaches, proposal};
use crate::assemble::assemble_summary;
use crate::checkout::{Checkout, Patched, claim_checkout};
use crate::drift::with_drift;
use crate::guard::{relieve_guard, stand_guard};
use crate::integrate::{Evidence, Shared, share, shared, with_quarantine};
use crate::lane_env::LaneEnv;
use crate::leaf::{keep_log, require_there};
use crate::run_bundle::{BeatError, Driver};
use pdca_journal::events::{EventKind, RedEvidence, millis};

/// Runs the gates and publishes the report. The caller must hold the bundle.
pub fn gate(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<GateReport, BeatError> {
    refuse_signed(snapshot)?;
    // Existing verdicts are about an earlier patch, or torn.
    cx.set_aside_verdicts(bundle, snapshot)?;
    let report = if snapshot.artifacts.contains(Artifact::Patch) {
        judge(cx, bundle, snapshot, true)?.report
    } else {
        let brief_digest = Some(brief_digest(bundle)?);
        GateReport { brief_digest, ..close_report(bundle) }
    };
    if let Some(run) = cx.run {
        // Before the report is published: once it is there, no driver runs the gates of this
        // attempt again.
        run.judged(bundle.id(), report.rows.iter().filter_map(verdict))?;
    }
    // Before the JSON, whose presence moves the state; after it nothing would write the text again.
    bundle.publish_derived(Artifact::GatesMarkdown, report.to_markdown().as_bytes())?;
    cx.publish(bundle, Artifact::GatesJson, report.to_json().as_bytes())?;
    Ok(report)
}

fn brief_digest(bundle: &Bundle) -> Result<String, BeatError> {
    Ok(sha256_hex(&bundle.read(Artifact::Brief)?.unwrap_or_default()))
}

/// Refuses a bundle with a sign-off: a person signed what its report said, and a new one would change the evidence
/// afterwards.
fn refuse_signed(snapshot: &Snapshot) -> Result<(), BeatError> {
    if snapshot.summary.as_ref().is_some_and(|summary| summary.outcome().is_some()) {
        return Err(BeatError::Signed);
    }
    Ok(())
}

/// Runs the gates again over a bundle that waits for sign-off, and records the new report and summary. The builder is not
/// called, and the review stays, because both are about the same patch. The caller must hold the bundle.
pub fn gate_again(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<GateReport, BeatError> {
    refuse_signed(snapshot)?;
    let reviewed = sha256_hex(&require_patch(bundle)?);
    let report = judge(cx, bundle, snapshot, true)?.report;
    if let Some(run) = cx.run {
        run.judged(bundle.id(), report.rows.iter().filter_map(verdict))?;
    }
    let is_reviewed = sha256_hex(&require_patch(bundle)?) == reviewed;
    if is_reviewed {
        // Before the report: a driver that is killed from here on leaves a bundle whose summary is still to be made.
        cx.effects.perform("set-aside", || bundle.set_aside(Artifact::Summary))?;
    } else {
        // A fix of a row changed the patch, and nobody reviewed that.
        cx.set_aside_verdicts(bundle, snapshot)?;
    }
    bundle.publish_derived(Artifact::GatesMarkdown, report.to_markdown().as_bytes())?;
    cx.publish(bundle, Artifact::GatesJson, report.to_json().as_bytes())?;
    if is_reviewed {
        assemble_summary(cx, bundle, &bundle.load()?)?;
    }
    Ok(report)
}

/// Runs the gates over a bundle's patch. Writes logs only, and into the bundle only if `keep`.
pub fn judge(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    keep: bool,
) -> Result<GatesOutcome, BeatError> {
    let checkout = claim_checkout(cx, bundle, snapshot, false)?;
    let patch = require_patch(bundle)?;
    // Before the rows run: a brief that is edited meanwhile is not the one that was checked.
    let brief = brief_digest(bundle)?;
    let jobs = cx.config.jobs().of(bundle.id());
    let digest = sha256_hex(&patch);
    let mut scene = GateContext::new(Purpose::Bundle, &cx.config.dirs.root, &jobs);
    scene.bundle = Some(bundle);
    scene.brief = snapshot.authored_brief();
    scene.run = Some(&cx.config.run);
    scene.lane = cx.lane_env_of(checkout.as_ref()).map(|lane_env| &lane_env.names);
    scene.patch_digest = Some(&digest);
    scene.keep_logs = keep;
    // A run for a person keeps its log outside the bundle, which it must not change.
    let by_hand = Evidence::of(&cx.config.queue()).by_hand(&bundle.id().dir_name());
    scene.logs = (!keep).then_some(&by_hand);
    scene.may_fix = keep;
    let children = cx.config.locks().children();
    scene.hold = Some(&children);
    scene.max_memory = cx.config.limits.leaf_memory;
    cx.config.outfit(&mut scene);
    scene.supervisor = cx.config.supervisor.clone();
    let (outcome, patch) = match &checkout {
        None => {
            scene.sandbox = Some(cx.config.rows_sandbox([]));
            scene.opened = cx.config.row_openings();
            (run_rows(cx, &cx.config.rows, bundle, &scene, None)?, patch)
        }
        Some(checkout) => {
            let mut patched = Patched::stand(cx, bundle, checkout, patch)?;
            scene.worktree = Some(checkout.lane.path());
            scene.git_common_dir = Some(checkout.target.common_dir());
            scene.base = Some(&checkout.attempt.base);
            scene.brief_base = Some(&checkout.attempt.branch);
            scene.target = Some(&checkout.attempt.target);
            scene.sandbox = Some(row_sandbox(cx, checkout));
            scene.primary = primary_view(cx, checkout);
            scene.opened = cx.config.row_openings();
            scene.caches.clone_from(&cx.config.lanes.cache);
            // A verdict that is shared may land, so it must not come from a checkout that an earlier driver left.
            let is_clean = !patched.is_as_left();
            let shared = shared(cx, patched.tree()).filter(|_| keep && is_clean);
            let green = shared.as_ref().and_then(Shared::green_tree);
            scene.known_green = green.as_deref();
            let outcome = run_watched(cx, bundle, checkout, &scene, &mut patched)?;
            if let Some(shared) = shared {
                share(cx, shared, patched.tree(), &outcome.report)?;
            }
            (outcome, patched.into_patch())
        }
    };
    let outcome = with_quarantine(cx, bundle, outcome);
    let mut outcome = with_drift(cx, bundle, snapshot, outcome, &patch);
    outcome.report.brief_digest = Some(brief);
    for warning in &outcome.warnings {
        let text = warning.to_string();
        cx.tell(
            bundle,
            match warning {
                Warning::NothingConfigured => EventKind::notice(WarningCode::NoGate, text),
                Warning::NothingApplies => EventKind::warning(WarningCode::NoGate, text),
            },
        );
    }
    Ok(outcome)
}

/// Warns about changes in the primary checkout while gates ran.
pub(crate) fn tell_of_checkout(cx: &Driver<'_>, bundle: &Bundle, written: &[String]) {
    if are_gates_confined(cx) {
        return tell_of_primary(cx, bundle, "gates", written);
    }
    for one in written.iter().filter(|one| is_news(one)) {
        let remedy = proposal(one).map_or_else(String::new, |line| format!("; {line}"));
        let text = format!(
            "while gates ran without a sandbox, the target's checkout changed: {one} (the user, or a gate){remedy}"
        );
        cx.warn(bundle, WarningCode::CheckoutChanged, text);
    }
}

/// Returns the sandbox of hydration: it runs the builder's code, so they must not write the files that decide about it.
pub(crate) fn gate_sandbox(cx: &Driver<'_>, checkout: &Checkout) -> Sandbox {
    let own =
        [checkout.lane.path()].into_iter().chain(checkout.lane_env.as_ref().and_then(LaneEnv::tmp));
    cx.config.gates_sandbox(own.map(ToOwned::to_owned))
}

/// Returns the sandbox of the rows of gates in a checkout.
pub(crate) fn row_sandbox(cx: &Driver<'_>, checkout: &Checkout) -> Sandbox {
    let own =
        [checkout.lane.path()].into_iter().chain(checkout.lane_env.as_ref().and_then(LaneEnv::tmp));
    cx.config.rows_sandbox(own.map(ToOwned::to_owned))
}

/// Returns what rows in a checkout see of the user's checkouts.
pub(crate) fn primary_view(cx: &Driver<'_>, checkout: &Checkout) -> PrimaryView {
    let target = cx.config.targets.iter().find(|one| one.name == checkout.attempt.target);
    cx.config.primary_view(target.map(|target| (target, checkout.lane.path())))
}

/// Emits the event of a gate, and announces its start and end as effects.
pub(crate) fn follow_gate(cx: &Driver<'_>, bundle: &Bundle, event: GateEvent) {
    if let GateEvent::RowEnded { reused: false, .. } = event {
        cx.effects.announce(Point { name: "gate", when: EffectSide::After });
    }
    let begins = matches!(event, GateEvent::RowStarted { .. });
    tell_gate(cx, bundle, event);
    if begins {
        cx.effects.announce(Point { name: "gate", when: EffectSide::Before });
    }
}

/// Runs the rows under a tripwire on the user's checkout, and warns about changes there. It is no failure: a gate in
/// the sandbox cannot have written there, and without a sandbox a gate cannot be told from the user or from
/// another lane.
fn run_watched(
    cx: &Driver<'_>,
    bundle: &Bundle,
    checkout: &Checkout,
    scene: &GateContext<'_>,
    tree: &mut Patched<'_>,
) -> Result<GatesOutcome, BeatError> {
    let wire = cx.watch(checkout)?;
    let checked = run_rows(cx, &cx.config.rows, bundle, scene, Some(tree));
    tell_of_checkout(cx, bundle, &breaches(cx.config, &wire));
    checked
}

/// Warns about changes in the primary checkout while a confined child ran, which the child cannot have
/// written. The driver's own refs are left out.
pub(crate) fn tell_of_primary(cx: &Driver<'_>, bundle: &Bundle, who: &str, written: &[String]) {
    for one in written.iter().filter(|one| is_news(one)) {
        let text = format!(
            "while {who} ran in the sandbox, the user's checkout changed: {one} (the user, or a program outside the sandbox)"
        );
        cx.warn(bundle, WarningCode::CheckoutChanged, text);
    }
}

/// Returns whether the kernel keeps every row from writing the primary checkout.
pub(crate) fn are_gates_confined(cx: &Driver<'_>) -> bool {
    let rows = cx.config.rows.as_slice().iter().filter_map(|row| row.sandbox);
    [cx.config.gate_sandbox].into_iter().chain(rows).all(|mode| match mode {
        SandboxMode::Off => false,
        SandboxMode::Bwrap => true,
        SandboxMode::Auto | SandboxMode::Require | SandboxMode::Landlock => {
            matches!(wall_support(), SandboxKind::Landlock { .. } | SandboxKind::Bwrap { .. })
        }
    })
}

/// Reads the patch, which must not be empty.
pub(crate) fn require_patch(bundle: &Bundle) -> Result<Vec<u8>, BeatError> {
    let patch = bundle.read(Artifact::Patch)?.filter(|patch| !patch.is_empty());
    patch.ok_or(BeatError::EmptyPatch)
}

/// Runs rows, with a guard on the bundle.
pub(crate) fn run_rows(
    cx: &Driver<'_>,
    rows: &Checks,
    bundle: &Bundle,
    scene: &GateContext<'_>,
    tree: Option<&mut dyn Tree>,
) -> Result<GatesOutcome, BeatError> {
    let mut tell = |event| follow_gate(cx, bundle, event);
    // Nothing is started, so there is nothing to guard the bundle against.
    if rows.is_empty() {
        return run_checks(rows, scene, tree, cx.cancel, &mut tell).map_err(BeatError::Gates);
    }
    stand_guard(cx, bundle)?;
    let checked = run_checks(rows, scene, tree, cx.cancel, &mut tell);
    // Before any return: whatever the rows' outcome, no state may be derived from a planted file.
    let written = relieve_guard(cx, bundle)?;
    require_there(cx, bundle, scene.worktree)?;
    if !written.is_empty() {
        let text =
            format!("Written into the bundle while gates ran:\n- {}\n", written.join("\n- "));
        let log = keep_log(cx, bundle, "gates", &text)?;
        return Err(BeatError::Breach { role: "gates", log, written });
    }
    checked.map_err(|error| {
        if matches!(error, GatesError::Cancelled) {
            BeatError::Interrupted
        } else {
            BeatError::Gates(error)
        }
    })
}

fn tell_gate(cx: &Driver<'_>, bundle: &Bundle, event: GateEvent) {
    cx.tell(
        bundle,
        match event {
            GateEvent::RowStarted { rule_id, label: _, k, n } => {
                EventKind::GateBegan { rule_id, k, n }
            }
            GateEvent::Alive { rule_id, last_line } => {
                let Some(line) = last_line else { return };
                EventKind::Alive { what: rule_id, line }
            }
            GateEvent::RowSkipped { rule_id, result, why } => {
                let text = format!("{rule_id} is not run here ({result}): {why}");
                EventKind::warning(WarningCode::RowSkipped, text)
            }
            GateEvent::RowAgain { rule_id, why } => {
                let why = match why {
                    pdca_gates::Again::Confirm => "is red and runs once more",
                    pdca_gates::Again::Fix => "is red and its fix runs",
                };
                EventKind::warning(WarningCode::RowAgain, format!("{rule_id} {why}"))
            }
            GateEvent::Denied { rule_id, line } => {
                EventKind::warning(WarningCode::RowDenied, format!("{rule_id} failed: {line}"))
            }
            GateEvent::Fixed { rule_id, changed } => {
                let files: Vec<&str> = changed.iter().map(|path| path.as_str()).collect();
                let files = files.join(", ");
                let text = format!("the fix of {rule_id} is now part of the patch: {files}");
                EventKind::warning(WarningCode::RowFixed, text)
            }
            GateEvent::RowEnded {
                rule_id,
                result,
                evidence,
                failing,
                failing_more,
                log,
                reproduce,
                gating,
                duration,
                reused,
            } => {
                let is_red = result == GateResult::Fail;
                let log = log.filter(|_| is_red);
                EventKind::GateEnded {
                    rule_id,
                    result: result.as_str().to_owned(),
                    evidence,
                    proof: RedEvidence { failing, failing_more, log, reproduce },
                    gating,
                    reused,
                    duration_ms: millis(duration),
                }
            }
        },
    );
}

/// Filters out the driver's own refs.
fn is_news(finding: &str) -> bool {
    !finding.starts_with("ref refs/pdca/")
}

/// Returns the journal entry of a row; `None` for rows without a rule.
pub(crate) fn verdict(row: &GateRow) -> Option<(String, GateVerdict)> {
    let verdict = match row.result {
        GateResult::Pass => GateVerdict::Pass,
        GateResult::Fail => GateVerdict::Fail,
        GateResult::Unverifiable | GateResult::Deferred => GateVerdict::Unverifiable,
        GateResult::None => return None,
    };
    (!row.rule_id.is_empty()).then(|| (row.rule_id.clone(), verdict))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn refs_of_the_record_are_no_news() {
        assert!(!is_news("ref refs/pdca/fence moved"));
        assert!(is_news("ref refs/heads/main moved"));
    }

    #[test]
    fn an_empty_patch_is_never_gated() {
        let scene = Scene::planned();
        let bundle = scene.bundle();
        assert!(matches!(require_patch(&bundle), Err(BeatError::EmptyPatch)));
        fs_err::write(bundle.path(Artifact::Patch), "").unwrap();
        assert!(matches!(require_patch(&bundle), Err(BeatError::EmptyPatch)));
        fs_err::write(bundle.path(Artifact::Patch), "a change\n").unwrap();
        assert_eq!(require_patch(&bundle).unwrap(), b"a change\n");
    }
}
