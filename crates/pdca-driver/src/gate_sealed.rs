//! Runs rows over exactly a sealed commit, in a checkout that no bundle uses.

use pdca_gates::{Checks, Purpose};
use pdca_integrate::{FIRST_SLOT, SealRecord};
use pdca_state::{Brief, Bundle, GateReport};

use crate::allowed_refs::breaches;
use crate::check::{run_rows, tell_of_checkout};
use crate::config::TargetSpec;
use crate::integrate::{CombinationCheckout, CombinationTree, common_scene};
use crate::run_bundle::{BeatError, Driver};

/// An accepted change whose commit is gated.
#[derive(Debug, Clone, Copy)]
pub struct SealedCommit<'a> {
    pub target: &'a TargetSpec,
    /// The branch that the change is for.
    pub branch: &'a str,
    pub seal: &'a SealRecord,
    pub brief: Option<&'a Brief>,
    /// The name of the directory for the verdicts of the rows. The rows of another question have another one.
    pub job: &'a str,
}

/// Runs these rows over a sealed commit. The caller must hold the bundle.
///
/// Verdicts are not reused, so each call runs the rows again. The driver is admitted to the workspace only while they run.
pub fn gate_sealed(
    cx: &Driver<'_>,
    bundle: &Bundle,
    rows: &Checks,
    change: &SealedCommit<'_>,
) -> Result<GateReport, BeatError> {
    let _admitted = cx.config.locks().admit()?;
    let (commit, base) = (change.seal.head.to_string(), change.seal.base.to_string());
    let dir = cx.config.jobs().of(bundle.id()).join(change.job);
    let (slot, tree) = (FIRST_SLOT, change.seal.tree.to_string());
    let (target, branch) = (change.target, change.branch);
    let at = CombinationCheckout { target, branch, commit: &commit, tree: &tree, slot, dir: &dir };
    let checkout = cx.claim_for_combination(target, branch, &commit, slot)?;
    let mut standing = CombinationTree::stand(cx, bundle, &checkout, &at)?;
    let children = cx.config.locks().children();
    let mut scene = common_scene(cx, Purpose::Bundle, &checkout, &at, &children);
    scene.bundle = Some(bundle);
    scene.brief = change.brief;
    scene.base = Some(&base);
    let wire = cx.watch(&checkout)?;
    let outcome = run_rows(cx, rows, bundle, &scene, Some(&mut standing))?;
    // Without the verdicts, a repeated call runs the gates again.
    cx.config.jobs().remove(&dir).map_err(BeatError::Own)?;
    tell_of_checkout(cx, bundle, &breaches(cx.config, &wire));
    Ok(outcome.report)
}
