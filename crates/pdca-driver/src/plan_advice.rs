//! Advisers on a brief: asked once for each brief that is complete, before anything is built from it.
//!
//! Their advice lies in the bundle as `plan-advisory-<id>.md`; its findings are items of §6. It blocks nothing: an adviser that
//! fails is a warning.

use pdca_journal::events::WarningCode;
use pdca_leaves::{LeafConfig, LeafError, LeafMode, Role};
use pdca_state::{Artifact, Bundle, Snapshot, chain};

use crate::interactive::consult_leaf;
use crate::leaf::keep_log;
use crate::run_bundle::{BeatError, Driver};

/// Asks the advisers of `[[leaves.plan_advisory]]` about the brief, unless it is a draft or they have seen it as it is. The
/// caller must hold the bundle.
pub fn advise_on_brief(cx: &Driver<'_>, bundle: &Bundle) -> Result<(), BeatError> {
    let advisers = &cx.config.leaves.plan_advisory;
    if cx.config.force_stubs || advisers.is_empty() {
        return Ok(());
    }
    let snapshot = bundle.load()?;
    let brief = bundle.read(Artifact::Brief)?.unwrap_or_default();
    for adviser in advisers.iter().filter(|adviser| is_due(adviser, &snapshot)) {
        let id = adviser.id.as_deref().unwrap_or(Role::PlanAdviser.as_str());
        if !bundle.plan_advice().is_about(id, &brief) {
            advise(cx, bundle, adviser, id, &brief)?;
        }
    }
    Ok(())
}

fn is_due(adviser: &LeafConfig, snapshot: &Snapshot) -> bool {
    let brief = snapshot.authored_brief();
    adviser.mode == LeafMode::Command && brief.is_some() && adviser.is_for(brief)
}

fn advise(
    cx: &Driver<'_>,
    bundle: &Bundle,
    adviser: &LeafConfig,
    id: &str,
    brief: &[u8],
) -> Result<(), BeatError> {
    let role = Role::PlanAdviser;
    match consult_leaf(cx, bundle, role, adviser) {
        Ok(outcome) => {
            let advice = outcome.get(role.output()).unwrap_or_default();
            let publish = || bundle.plan_advice().publish(id, brief, advice);
            Ok(cx.effects.perform("plan-advisory", publish)?)
        }
        Err(BeatError::Interrupted) => Err(BeatError::Interrupted),
        Err(error) => {
            if let BeatError::Leaf { source, .. } = &error
                && let Some(log) = LeafError::error_log(source)
            {
                keep_log(cx, bundle, &format!("plan-advisory-{id}"), log)?;
            }
            let text = format!("the adviser {id} has no advice on the brief: {}", chain(&error));
            cx.warn(bundle, WarningCode::NoAdvice, text);
            Ok(())
        }
    }
}
