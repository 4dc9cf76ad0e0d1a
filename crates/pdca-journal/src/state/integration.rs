//! Progress of applying sealed changes to a target.

use std::collections::BTreeMap;

use pdca_state::BundleId;

use crate::object_id::ObjectId;
use crate::record::{EffectOutcome, GateVerdict, Landing, Seal};

/// The current plan for a target and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrationState {
    /// The commit that the first change is applied to.
    pub base: ObjectId,
    /// The changes in the order they are applied.
    pub order: Vec<BundleId>,
    pub progress: BTreeMap<BundleId, IntegrationProgress>,
    /// The commit that the next one is applied to.
    pub tip: ObjectId,
    /// The trees that were gated, with the changes in them.
    pub judged: Vec<(ObjectId, Vec<BundleId>, GateVerdict)>,
}

/// The progress of applying one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrationProgress {
    /// The tip before the change.
    pub onto: ObjectId,
    /// The commits that were applied or skipped, in order.
    pub commits: Vec<Applied>,
    /// The conflicting paths; if set, the change is out of this plan.
    pub conflict: Option<Vec<String>>,
}

/// One sealed commit that was applied or skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The sealed commit.
    pub commit: ObjectId,
    /// The new commit; `None` if the sealed one added nothing.
    pub became: Option<ObjectId>,
}

impl IntegrationState {
    pub(super) fn new(base: ObjectId, order: Vec<BundleId>) -> Self {
        let (progress, judged) = (BTreeMap::new(), Vec::new());
        Self { tip: base, base, order, progress, judged }
    }

    /// Returns true if this commit of a sealed change may be applied next, onto `onto`.
    pub(super) fn takes(&self, seal: &Seal, commit: &ObjectId, onto: &ObjectId) -> bool {
        let Some(progress) = self.progress.get(&seal.bundle) else {
            // A target that takes merge commits gets the whole change in one step, which is
            // recorded under its head.
            let begins = seal.commits.first() == Some(commit) || &seal.head == commit;
            return self.order.contains(&seal.bundle) && begins && onto == &self.tip;
        };
        let next = seal.commits.get(progress.commits.len());
        let whole = progress.commits.last().is_some_and(|last| last.commit == seal.head);
        progress.conflict.is_none() && !whole && next == Some(commit) && onto == &self.tip
    }

    /// Records the outcome of applying a commit.
    pub(super) fn note(&mut self, bundle: &BundleId, commit: &ObjectId, outcome: &EffectOutcome) {
        let fresh = || IntegrationProgress { onto: self.tip, commits: Vec::new(), conflict: None };
        let became = match outcome {
            EffectOutcome::Applied { commit } => Some(*commit),
            EffectOutcome::Skipped { .. } => None,
            EffectOutcome::Conflict { paths } => {
                let progress = self.progress.entry(bundle.clone()).or_insert_with(fresh);
                progress.conflict = Some(paths.clone());
                // Roll back: commits of a change that conflicts are not part of the combination.
                self.tip = progress.onto;
                return;
            }
            // `resolve` lets neither through: `Done` does not fit an `Apply`, and `Failed` returns
            // before.
            EffectOutcome::Done | EffectOutcome::Failed { .. } => return,
        };
        let progress = self.progress.entry(bundle.clone()).or_insert_with(fresh);
        progress.commits.push(Applied { commit: *commit, became });
        if let Some(became) = became {
            self.tip = became;
        }
    }

    /// Returns true if all commits of a sealed change were applied.
    pub(super) fn is_applied(&self, seal: &Seal) -> bool {
        self.progress.get(&seal.bundle).is_some_and(|progress| {
            progress.conflict.is_none()
                && progress.commits.last().is_some_and(|last| last.commit == seal.head)
        })
    }

    /// Returns true if a change is out of the plan because it conflicts.
    pub(super) fn is_out(&self, bundle: &BundleId) -> bool {
        self.progress.get(bundle).is_some_and(|progress| progress.conflict.is_some())
    }

    /// Returns true if a landing starts from the base, consists of the first applied changes without a
    /// gap, and ends at the commit that the last of them became.
    pub(super) fn leads_to(&self, landing: &Landing) -> bool {
        // Changes that conflict or add nothing do not count as a gap.
        let adds = |id: &&BundleId| !self.is_out(id) && self.made(id).is_some();
        let order: Vec<&BundleId> = self.order.iter().filter(adds).collect();
        let brings: Vec<&BundleId> = landing.bundles.iter().filter(adds).collect();
        let made = brings.last().and_then(|id| self.made(id));
        landing.old == self.base && order.starts_with(&brings) && made == Some(&landing.new)
    }

    /// The last new commit of a change.
    fn made(&self, bundle: &BundleId) -> Option<&ObjectId> {
        let commits = &self.progress.get(bundle)?.commits;
        commits.iter().rev().find_map(|applied| applied.became.as_ref())
    }

    /// Returns true if the last verdict over exactly the tree and the changes that land is a pass.
    pub(super) fn is_green(&self, landing: &Landing) -> bool {
        // The last verdict counts: a tree that was red after it was green does not land.
        let said = self.judged.iter().rev();
        let mut about =
            said.filter(|(tree, members, _)| tree == &landing.tree && members == &landing.bundles);
        about.next().is_some_and(|(_, _, verdict)| *verdict == GateVerdict::Pass)
    }
}
