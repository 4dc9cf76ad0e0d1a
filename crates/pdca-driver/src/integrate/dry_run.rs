//! What an integration would do, found out without doing it.
//!
//! The changes are folded in the object store, which leaves objects there that nothing refers to.
//! No ref moves, nothing is gated and nothing is written down.

use pdca_integrate::{Candidate, Engine, Fate, Light, Lookup, ObjectId, Plan, Recorded, fold};
use pdca_process::Cancel;
use pdca_state::BundleId;

use crate::config::WorkspaceConfig;

use super::held::Held;
use super::integration::{Chosen, choose, conflicting, ids, needs};
use super::landing_base::LandingBase;
use super::target_branch::TargetBranch;
use super::{IntegrateError, IntegrationRequest};

/// What an integration would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DryRun {
    /// Where the branch is.
    pub base: ObjectId,
    /// The order in which the changes are tried.
    pub order: Vec<BundleId>,
    /// What lands if the whole is green, each with its last commit.
    pub landing: Vec<(BundleId, ObjectId)>,
    /// What does not, whatever the gates say.
    pub held: Vec<Held>,
    /// Changes whose effect is there already.
    pub present: Vec<(BundleId, Option<BundleId>)>,
    /// The commit that would be gated.
    pub tip: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// What is known about the branch by itself.
    pub base_verdict: Option<Light>,
    /// What is known about that tree.
    pub verdict: Option<Light>,
}

impl WorkspaceConfig {
    /// Says what an integration of this branch would do.
    pub fn dry_run(
        &self,
        front: &TargetBranch,
        order: &IntegrationRequest<'_>,
    ) -> Result<DryRun, IntegrateError> {
        self.require_landable(front, order.settings.land)?;
        let tip = LandingBase::to_land_on(front, order.settings, &Cancel::new(), &|_| ())?;
        let skipped = self.skipped(front, tip.at)?;
        let Chosen { entries, held: mut out, landed } = choose(front, order, &tip, &skipped)?;
        let strategy = order.settings.strategy;
        let plan = Plan::new(tip.at, strategy, entries)?;
        let mut engine = Engine::new(&front.store, order.settings.drivers()?);
        let mut told = |_: &_| Ok(());
        let folded = fold(&mut engine, &plan, &Recorded::default(), &mut told)?;
        let landed = landed.into_iter().map(|(id, _)| (id, None));
        let mut present: Vec<_> = order.wanted(skipped).into_iter().chain(landed).collect();
        for (entry, bundle) in plan.entries().iter().zip(&folded.bundles) {
            match &bundle.fate {
                Fate::Applied { .. } => {}
                Fate::AlreadyPresent { by } => present.push((bundle.id.clone(), by.clone())),
                Fate::Conflict { conflicts, with, .. } => {
                    out.push(conflicting(&mut engine, tip.at, entry, conflicts, with)?);
                }
                Fate::Held { behind } => out.push(needs(entry, vec![behind.clone()])),
                Fate::Failed { why } => {
                    let (id, why) = (bundle.id.clone(), why.clone());
                    return Err(IntegrateError::Unfoldable { id, why });
                }
            }
        }
        let whole = folded.candidate();
        let nothing = Plan::new(tip.at, strategy, [])?;
        let base = fold(&mut engine, &nothing, &Recorded::default(), &mut told)?;
        Ok(DryRun {
            base: tip.at,
            order: ids(&plan),
            landing: whole.commits().map(|(id, commit)| (id.clone(), commit)).collect(),
            held: out,
            present,
            tip: whole.commit(),
            tree: whole.tree(),
            base_verdict: self.known(base.candidate(), order)?,
            verdict: self.known(whole, order)?,
        })
    }

    fn known(
        &self,
        candidate: &Candidate,
        order: &IntegrationRequest<'_>,
    ) -> Result<Option<Light>, IntegrateError> {
        if order.fresh {
            return Ok(None);
        }
        let cache = self.verdicts(order.settings);
        Ok(match cache.look_up(&self.oracle().key(candidate))? {
            Lookup::Found(verdict) => Some(verdict.light),
            Lookup::Unknown | Lookup::Dropped { .. } => None,
        })
    }
}
