//! Runs the rows for publishing, over exactly the sealed commit.

use pdca_forge::publish::GateRecord;
use pdca_gates::{Checks, Purpose};
use pdca_journal::events::WarningCode;
use pdca_state::{Bundle, GateReport, GateResult, GateRow, Snapshot, sha256_hex};

use crate::allowed_refs::breaches;
use crate::check::{run_rows, tell_of_checkout};
use crate::config::WorkspaceConfig;
use crate::integrate::FIRST_SLOT;
use crate::integrate::gate::{CombinationCheckout, CombinationTree, common_scene};
use crate::run_bundle::{BeatError, Driver};
use pdca_journal::events::EventKind;

use super::PublishError;
use super::inputs::PublishInputs;
use super::messages::Messages;

/// Returns the rows with `at_publish`, and those that were deferred until publishing.
pub(super) fn rows_at_publishing(config: &WorkspaceConfig, snapshot: &Snapshot) -> Checks {
    let was_deferred = |id: &str| {
        let rows = snapshot.gates.iter().flat_map(|report| &report.rows);
        rows.into_iter().any(|row| row.rule_id == id && row.result == GateResult::Deferred)
    };
    config.rows.only(|row| row.at_publish || (row.may_defer() && was_deferred(&row.id)))
}

/// Runs those rows, unless they passed on exactly these inputs before; returns whether any ran.
pub(super) fn gate_again(
    cx: &Driver<'_>,
    bundle: &Bundle,
    inputs: &mut PublishInputs,
    messages: &Messages,
) -> Result<bool, PublishError> {
    let rows = rows_at_publishing(cx.config, &inputs.snapshot);
    if rows.is_empty() {
        return Ok(false);
    }
    let sealed = inputs.sealed.record();
    // Gates may read the texts too, so they are part of the key.
    let parts = [
        rows.fingerprint(&cx.config.gates().surroundings()),
        sealed.tree.to_string(),
        sealed.base.to_string(),
        messages.message.clone(),
        messages.description.clone(),
        messages.comment.clone().unwrap_or_default(),
    ];
    let digest = sha256_hex(parts.join("\0").as_bytes());
    if inputs.record.gates.as_ref().is_some_and(|passed| passed.digest == digest) {
        return Ok(false);
    }
    let report = ask_gates(cx, bundle, inputs, &rows, &digest)?;
    require_green(cx, bundle, &report)?;
    let ran = rows.as_slice().iter().map(|row| row.id.clone()).collect();
    inputs.record.gates = Some(GateRecord { digest, rows: ran });
    Ok(true)
}

fn ask_gates(
    cx: &Driver<'_>,
    bundle: &Bundle,
    inputs: &PublishInputs,
    rows: &Checks,
    digest: &str,
) -> Result<GateReport, PublishError> {
    // Admitted only while the gates run, because waiting for a forge must not block other drivers.
    let _admitted = cx.config.locks().admit()?;
    let (front, sealed) = (&inputs.front, inputs.sealed.record());
    let (commit, base) = (sealed.head.to_string(), sealed.base.to_string());
    let jobs = cx.config.jobs().of(bundle.id()).join(format!("publish-{}", &digest[..16]));
    let (slot, tree) = (FIRST_SLOT, sealed.tree.to_string());
    let at = CombinationCheckout {
        target: &front.target,
        branch: &front.branch,
        commit: &commit,
        tree: &tree,
        slot,
        dir: &jobs,
    };
    let checkout = cx
        .claim_for_combination(&front.target, &front.branch, &commit, slot)
        .map_err(BeatError::Checkout)?;
    let mut standing = CombinationTree::stand(cx, bundle, &checkout, &at)?;
    let children = cx.config.locks().children();
    let mut scene = common_scene(cx, Purpose::Bundle, &checkout, &at, &children);
    scene.bundle = Some(bundle);
    scene.brief = inputs.snapshot.authored_brief();
    scene.base = Some(&base);
    let wire = cx.watch(&checkout).map_err(BeatError::Checkout)?;
    let outcome = run_rows(cx, rows, bundle, &scene, Some(&mut standing))?;
    // Discard the verdicts, so that a repeated publication runs the gates again.
    cx.config.jobs().remove(&jobs).map_err(BeatError::Own)?;
    tell_of_checkout(cx, bundle, &breaches(cx.config, &wire));
    Ok(outcome.report)
}

/// Returns an error if a gating row is red or undecided.
fn require_green(
    cx: &Driver<'_>,
    bundle: &Bundle,
    report: &GateReport,
) -> Result<(), PublishError> {
    let shown = |row: &GateRow| format!("{}: {}", row.rule_id, row.reason());
    let red: Vec<String> = report.failed_gating().map(shown).collect();
    if !red.is_empty() {
        return Err(PublishError::Red { rows: red });
    }
    let is_open =
        |row: &GateRow| matches!(row.result, GateResult::Unverifiable | GateResult::Deferred);
    let open = report.rows.iter().filter(|row| row.gating && is_open(row));
    let open: Vec<String> = open.map(shown).collect();
    if !open.is_empty() {
        return Err(PublishError::Undecided { rows: open });
    }
    for row in report.rows.iter().filter(|row| row.result == GateResult::Fail) {
        let text = format!("{} is red and does not block", shown(row));
        cx.tell(bundle, EventKind::warning(WarningCode::RedAdvisory, text));
    }
    Ok(())
}
