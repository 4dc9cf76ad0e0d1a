//! Sealed changes on their way into a target.

use std::collections::BTreeMap;

use pdca_state::BundleId;

use crate::oid::ObjectId;
use crate::record::{EffectOutcome, GateVerdict, Landing, Seal};

/// The present plan for a target, and how far it is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration {
    /// What the first change is applied to.
    pub base: ObjectId,
    /// The changes, in order.
    pub order: Vec<BundleId>,
    /// How far each one is.
    pub progress: BTreeMap<BundleId, IntegrationProgress>,
    /// What the next commit is applied to.
    pub tip: ObjectId,
    /// The trees that were judged, with what was in them.
    pub judged: Vec<(ObjectId, Vec<BundleId>, GateVerdict)>,
}

/// How far a change is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrationProgress {
    /// What the target was before it.
    pub onto: ObjectId,
    /// Its commits that are dealt with, in order.
    pub commits: Vec<Applied>,
    /// Where it does not fit; then it is out of this plan.
    pub conflict: Option<Vec<String>>,
}

/// What became of one sealed commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The sealed commit.
    pub commit: ObjectId,
    /// What it became; none where it added nothing.
    pub became: Option<ObjectId>,
}

impl Integration {
    pub(super) fn new(base: ObjectId, order: Vec<BundleId>) -> Self {
        let (progress, judged) = (BTreeMap::new(), Vec::new());
        Self { tip: base.clone(), base, order, progress, judged }
    }

    /// Whether this commit of a sealed change may be applied next, to this.
    pub(super) fn takes(&self, seal: &Seal, commit: &ObjectId, onto: &ObjectId) -> bool {
        let Some(progress) = self.progress.get(&seal.bundle) else {
            let begins = seal.commits.first() == Some(commit) || &seal.head == commit;
            return self.order.contains(&seal.bundle) && begins && onto == &self.tip;
        };
        let next = seal.commits.get(progress.commits.len());
        let whole = progress.commits.last().is_some_and(|last| last.commit == seal.head);
        progress.conflict.is_none() && !whole && next == Some(commit) && onto == &self.tip
    }

    /// Takes note of what became of a commit.
    pub(super) fn note(&mut self, bundle: &BundleId, commit: &ObjectId, outcome: &EffectOutcome) {
        let fresh =
            || IntegrationProgress { onto: self.tip.clone(), commits: Vec::new(), conflict: None };
        let became = match outcome {
            EffectOutcome::Applied { commit } => Some(commit.clone()),
            EffectOutcome::Skipped { .. } => None,
            EffectOutcome::Conflict { paths } => {
                let progress = self.progress.entry(bundle.clone()).or_insert_with(fresh);
                progress.conflict = Some(paths.clone());
                // What of it was applied already is no part of the combination.
                self.tip = progress.onto.clone();
                return;
            }
            EffectOutcome::Done | EffectOutcome::Failed { .. } => return,
        };
        let progress = self.progress.entry(bundle.clone()).or_insert_with(fresh);
        progress.commits.push(Applied { commit: commit.clone(), became: became.clone() });
        if let Some(became) = became {
            self.tip = became;
        }
    }

    /// Whether a sealed change is applied to its end.
    pub(super) fn is_applied(&self, seal: &Seal) -> bool {
        self.progress.get(&seal.bundle).is_some_and(|progress| {
            progress.conflict.is_none()
                && progress.commits.last().is_some_and(|last| last.commit == seal.head)
        })
    }

    /// Whether a change was taken out because it does not fit.
    pub(super) fn is_out(&self, bundle: &BundleId) -> bool {
        self.progress.get(bundle).is_some_and(|progress| progress.conflict.is_some())
    }

    /// Whether a landing starts from the base, brings the first changes that were applied without a gap,
    /// and ends at the commit that came of the last one.
    pub(super) fn leads_to(&self, landing: &Landing) -> bool {
        // What adds nothing may be left out.
        let adds = |id: &&BundleId| !self.is_out(id) && self.made(id).is_some();
        let order: Vec<&BundleId> = self.order.iter().filter(adds).collect();
        let brings: Vec<&BundleId> = landing.bundles.iter().filter(adds).collect();
        let made = brings.last().and_then(|id| self.made(id));
        landing.old == self.base && order.starts_with(&brings) && made == Some(&landing.new)
    }

    /// The last commit that came of applying a change.
    fn made(&self, bundle: &BundleId) -> Option<&ObjectId> {
        let commits = &self.progress.get(bundle)?.commits;
        commits.iter().rev().find_map(|applied| applied.became.as_ref())
    }

    /// Whether exactly what lands was judged, and green.
    pub(super) fn is_green(&self, landing: &Landing) -> bool {
        let said = self.judged.iter().rev();
        let mut about =
            said.filter(|(tree, members, _)| tree == &landing.tree && members == &landing.bundles);
        about.next().is_some_and(|(_, _, verdict)| *verdict == GateVerdict::Pass)
    }
}
