//! The rows for publishing, over exactly the sealed commit.

use pdca_driver::{Driver, SealedCommit, WorkspaceConfig, gate_sealed};
use pdca_forge::publish::{GateRecord, Messages, PublishInputs};
use pdca_gates::Checks;
use pdca_journal::events::{EventKind, WarningCode};
use pdca_state::{Bundle, GateReport, GateResult, GateRow, Snapshot, sha256_hex};

use crate::publish::PublicationError;

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
) -> Result<bool, PublicationError> {
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
    let change = SealedCommit {
        target: &inputs.target_branch.target,
        branch: &inputs.target_branch.branch,
        seal: sealed,
        brief: inputs.snapshot.authored_brief(),
        job: &format!("publish-{}", &digest[..16]),
    };
    let report = gate_sealed(cx, bundle, &rows, &change)?;
    require_green(cx, bundle, &report)?;
    let ran = rows.as_slice().iter().map(|row| row.id.clone()).collect();
    inputs.record.gates = Some(GateRecord { digest, rows: ran });
    Ok(true)
}

/// Returns an error if a gating row is red or undecided.
fn require_green(
    cx: &Driver<'_>,
    bundle: &Bundle,
    report: &GateReport,
) -> Result<(), PublicationError> {
    let shown = |row: &GateRow| format!("{}: {}", row.rule_id, row.reason());
    let red: Vec<String> = report.failed_gating().map(shown).collect();
    if !red.is_empty() {
        return Err(PublicationError::Red { rows: red });
    }
    let is_open =
        |row: &GateRow| matches!(row.result, GateResult::Unverifiable | GateResult::Deferred);
    let open = report.rows.iter().filter(|row| row.gating && is_open(row));
    let open: Vec<String> = open.map(shown).collect();
    if !open.is_empty() {
        return Err(PublicationError::Undecided { rows: open });
    }
    for row in report.rows.iter().filter(|row| row.result == GateResult::Fail) {
        let text = format!("{} is red and does not block", shown(row));
        cx.tell(bundle, EventKind::warning(WarningCode::RedAdvisory, text));
    }
    Ok(())
}
