//! The staging branch of a target branch: what was gated together and waits for a person to merge it.
//!
//! Several workspaces may integrate into one clone. The staging branch belongs to the workspace that staged its tip,
//! which a ref beside it says (`refs/pdca/staged/<workspace>/<branch>`). As long as it is not merged, another workspace
//! has a staging branch of its own name and folds on top of the first one: nothing that was told as staged goes away,
//! and either branch can be merged with `--ff-only`, in any order.

use std::collections::BTreeSet;

use crate::git::name::{STAGED_BY, own_staging_branch, staged_by, stager};
use crate::{
    ObjectId, Store, StoreError, descends_from, foreign_commits, refs_below, seals_named,
    staged_for, staging_branch,
};

use super::target_branch::{AcceptedChange, ChangeState};

/// The staging branch of a target branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staging {
    /// The branch name without `refs/heads/`.
    pub branch: String,
    /// The tip; `None` if the branch does not exist.
    pub at: Option<ObjectId>,
    /// True if it starts from the tip of the target branch and contains only changes that are still to land, or that
    /// another workspace has staged. Otherwise the next integration folds it again from scratch.
    pub is_current: bool,
    /// Commits in it that belong to no sealed change: work of a person.
    pub foreign: Vec<ObjectId>,
    /// The staging branch of another workspace to fold on top of, if this one is not current.
    pub beneath: Option<StagedElsewhere>,
    /// The ref that says that this workspace staged the tip.
    pub owner: String,
}

/// The staging branch of another workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedElsewhere {
    /// The branch name without `refs/heads/`.
    pub branch: String,
    pub at: ObjectId,
}

/// The part of a repository that the search for a staging branch reads.
pub(super) struct StagingSearch<'s> {
    pub(super) store: &'s Store,
    /// The mark of the workspace.
    pub(super) workspace: &'s str,
    pub(super) target_branch: &'s str,
    pub(super) tip: ObjectId,
    /// The tips of the branch at remotes, as far as they are known: their commits are nobody's work in a staging branch.
    pub(super) remotes: &'s [ObjectId],
}

impl StagingSearch<'_> {
    pub(super) fn find(&self, changes: &[AcceptedChange]) -> Result<Staging, StoreError> {
        let mut known = vec![self.tip];
        known.extend(self.remotes);
        let (plain, own) = (
            staging_branch(self.target_branch),
            own_staging_branch(self.workspace, self.target_branch),
        );
        let mut own_at = self.store.commit_at(&format!("refs/heads/{own}"))?;
        let plain_at = self.store.commit_at(&format!("refs/heads/{plain}"))?;
        let mut branch = own;
        // A branch of our own name is used until cleanup removes it.
        if own_at.is_none() && self.may_use(plain_at, &known, changes)? {
            (branch, own_at) = (plain, plain_at);
        }
        let others = self.others(&branch)?;
        let mut staging = Staging {
            branch,
            at: own_at,
            is_current: false,
            foreign: Vec::new(),
            beneath: None,
            owner: staged_by(self.workspace, self.target_branch),
        };
        if let Some(at) = own_at {
            // Asked for an outdated staging branch too, because that one is folded anew.
            staging.foreign = foreign_commits(self.store, &known, at)?;
            staging.is_current = staging.foreign.is_empty()
                && descends_from(self.store, at, self.tip)?
                && self.has_only_waiting(at, &known, changes, &others)?;
        }
        if !staging.is_current {
            staging.beneath = self.topmost(&known, others)?;
        }
        Ok(staging)
    }

    /// Returns whether the staging branch of the target branch is free, or this workspace staged its tip.
    fn may_use(
        &self,
        at: Option<ObjectId>,
        known: &[ObjectId],
        changes: &[AcceptedChange],
    ) -> Result<bool, StoreError> {
        let Some(at) = at else { return Ok(true) };
        // What is merged waits for nobody any more.
        if descends_from(self.store, self.tip, at)? {
            return Ok(true);
        }
        let stagers = refs_below(self.store, STAGED_BY)?;
        let stagers: Vec<&str> = stagers
            .iter()
            .filter(|(_, staged)| *staged == at)
            .filter_map(|(name, _)| stager(name, self.target_branch))
            .collect();
        if !stagers.is_empty() {
            return Ok(stagers.contains(&self.workspace));
        }
        // Staged by an earlier version, or a person has added commits: it is of those whose changes it has.
        let named = seals_named(self.store, known, at)?;
        let sealed = changes.iter().filter_map(AcceptedChange::sealed);
        Ok(named.is_empty() || sealed.into_iter().any(|sealed| named.contains(&sealed.digest())))
    }

    /// Returns the staging branches of the target branch that other workspaces use.
    fn others(&self, own: &str) -> Result<Vec<StagedElsewhere>, StoreError> {
        let all = refs_below(self.store, "refs/heads/pdca/")?.into_iter();
        let others = all.filter(|(name, _)| staged_for(name) == Some(self.target_branch));
        let others = others.map(|(name, at)| {
            let branch = name.trim_start_matches("refs/heads/").to_owned();
            StagedElsewhere { branch, at }
        });
        Ok(others.filter(|other| other.branch != own).collect())
    }

    /// Returns whether the commits of a staging branch are all of changes that wait here, or in one of another workspace. A
    /// change that was sent back or has landed since must not be merged with the rest.
    fn has_only_waiting(
        &self,
        at: ObjectId,
        known: &[ObjectId],
        changes: &[AcceptedChange],
        others: &[StagedElsewhere],
    ) -> Result<bool, StoreError> {
        let mut wanted: BTreeSet<String> = changes
            .iter()
            .filter(|change| matches!(change.standing, ChangeState::Sealed(_)))
            .filter_map(|change| Some(change.sealed()?.digest()))
            .collect();
        let named = seals_named(self.store, known, at)?;
        if named.is_disjoint(&wanted) {
            return Ok(false);
        }
        for other in others {
            wanted.extend(seals_named(self.store, known, other.at)?);
        }
        Ok(named.is_subset(&wanted))
    }

    /// Returns the staging branch of another workspace that starts from the tip, and of several the one that has the others.
    fn topmost(
        &self,
        known: &[ObjectId],
        others: Vec<StagedElsewhere>,
    ) -> Result<Option<StagedElsewhere>, StoreError> {
        let mut found: Option<StagedElsewhere> = None;
        for other in others {
            let is_waiting = descends_from(self.store, other.at, self.tip)?
                && other.at != self.tip
                && foreign_commits(self.store, known, other.at)?.is_empty()
                && !seals_named(self.store, known, other.at)?.is_empty();
            let is_above = match &found {
                Some(found) => descends_from(self.store, other.at, found.at)?,
                None => true,
            };
            if is_waiting && is_above {
                found = Some(other);
            }
        }
        Ok(found)
    }
}
