//! Dry run: predicts the result of an integration.
//!
//! The changes are folded in the object store, which leaves unreferenced objects there. No ref moves, no gate
//! runs and no file is written.

use pdca_process::Cancel;
use pdca_state::BundleId;

use crate::{Candidate, FoldFate, FoldPlan, Light, Lookup, MergeEngine, ObjectId, Recorded, fold};

use crate::conflict::state::skipped;

use super::context::CombinationGates;
use super::held::{HeldChange, HeldReason};
use super::integration::{Chosen, IntegrationRequest, choose, conflicting, held, ids, needs};
use super::landing_base::LandingBase;
use super::landing_mode::BaseSearch;
use super::target_branch::TargetBranch;
use super::workspace::QueueWorkspace;
use super::{IntegrateError, require_landable};

/// The predicted result of an integration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRun {
    /// The tip of the branch.
    pub base: ObjectId,
    /// The order in which the changes would be tried.
    pub order: Vec<BundleId>,
    /// The changes that land if the whole is green, each with its last commit.
    pub landing: Vec<(BundleId, ObjectId)>,
    /// The changes that do not land, whatever the gates say.
    pub held: Vec<HeldChange>,
    /// Changes whose effect is in the branch already, with the change that brought it if that is known.
    pub present: Vec<(BundleId, Option<BundleId>)>,
    /// The commit that would be gated.
    pub tip: ObjectId,
    pub tree: ObjectId,
    /// The known verdict about the branch by itself.
    pub base_verdict: Option<Light>,
    /// The known verdict about `tree`.
    pub verdict: Option<Light>,
}

/// Predicts the result of integrating this branch.
pub fn dry_run(
    workspace: &QueueWorkspace,
    gates: &CombinationGates,
    branch: &TargetBranch,
    request: &IntegrationRequest<'_>,
    now: i64,
) -> Result<DryRun, IntegrateError> {
    let settings = request.settings;
    require_landable(gates, branch, request)?;
    let search = BaseSearch { branch, settings, cancel: &Cancel::new(), tell: &|_| () };
    let base = LandingBase::to_land_on(&search)?;
    let skipped = skipped(workspace, branch, base.at)?;
    let Chosen { entries, held: mut out, landed } = choose(branch, request, &base, &skipped)?;
    let strategy = request.settings.strategy;
    let plan = FoldPlan::new(base.at, strategy, entries)?;
    let mut engine = MergeEngine::new(&branch.store, request.settings.drivers()?);
    let mut told = |_: &_| Ok(());
    let folded = fold(&mut engine, &plan, &Recorded::default(), &mut told)?;
    let landed = landed.into_iter().map(|(id, _)| (id, None));
    let mut present: Vec<_> = request.wanted(skipped).into_iter().chain(landed).collect();
    for (entry, bundle) in plan.entries().iter().zip(&folded.bundles) {
        match &bundle.fate {
            FoldFate::Applied { .. } => {}
            FoldFate::AlreadyPresent { by } => present.push((bundle.id.clone(), by.clone())),
            FoldFate::Conflict { conflicts, with, .. } => {
                out.push(conflicting(&mut engine, base.at, entry, conflicts, with)?);
            }
            FoldFate::Held { behind } => out.push(needs(entry, vec![behind.clone()])),
            FoldFate::Unsealed { why } => {
                let detail = Some(why.clone());
                out.push(HeldChange { detail, ..held(entry, HeldReason::Drift, Vec::new()) });
            }
            FoldFate::Failed { why } => {
                let (id, why) = (bundle.id.clone(), why.clone());
                return Err(IntegrateError::Unfoldable { id, why });
            }
        }
    }
    let cache = settings.verdicts(workspace, now);
    let known = |candidate: &Candidate| -> Result<Option<Light>, IntegrateError> {
        if request.fresh {
            return Ok(None);
        }
        Ok(match cache.look_up(&gates.id.key(candidate))? {
            Lookup::Found(verdict) => Some(verdict.light),
            Lookup::Unknown | Lookup::Dropped { .. } => None,
        })
    };
    let whole = folded.candidate();
    let nothing = FoldPlan::new(base.at, strategy, [])?;
    let alone = fold(&mut engine, &nothing, &Recorded::default(), &mut told)?;
    Ok(DryRun {
        base: base.at,
        order: ids(&plan),
        landing: whole.commits().map(|(id, commit)| (id.clone(), commit)).collect(),
        held: out,
        present,
        tip: whole.commit(),
        tree: whole.tree(),
        base_verdict: known(alone.candidate())?,
        verdict: known(whole)?,
    })
}
