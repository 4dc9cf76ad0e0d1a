//! Fold: applies sealed changes to a base, one after the other, in the object store.
//!
//! # Protocol
//! 1. *Plan*: each sealed commit of each change is recorded as `planned`.
//! 2. *Adopt* a commit that an earlier fold of the same plan made with the same git, if it is still there and lies on
//!    the tip. A resumed integration thereby repeats no merge.
//! 3. *Apply*: `applying` is recorded before the merge, so that a crash is visible as an intent without outcome.
//! 4. *Merge* with git's own merge, under the attributes of the tip and never of a working tree.
//! 5. *Write* a commit that depends on the plan alone: its tree comes from the merge, author and date from the sealed
//!    commit, the committer from the seal. Folding again yields the same id, so a crash at any point is harmless.
//! 6. *Record* `applied`, `conflict`, `skipped` or `failed` before the next commit begins.
//! 7. *Roll back* the tip to where the change began if any of its commits fails, so that a change is applied as a
//!    whole or not at all.

mod commit;
mod foresight;
mod lend;
mod step;

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use pdca_state::BundleId;
use thiserror::Error;
use tracing::{debug, debug_span};

pub(crate) use self::commit::{
    SIGNED, is_trailer, line_on, marker, quoted_line, require_date, with_trailers, write,
};
use self::lend::Lender;
use crate::{
    conflict::Conflict,
    conflict::branch_side,
    git::engine::{EngineError, MergeEngine, Merged, Question, is_attributes},
    git::failure::StoreError,
    git::footprint::TreeDifference,
    git::link::outward_between,
    git::path::TreePath,
    git::presence::descends_from,
    git::store::Store,
    queue::candidate::{AppliedCommit, Candidate, TakenChange},
    queue::plan::{FoldPlan, PlanEntry, Strategy},
};

pub(crate) use lend::fold_lending;
pub use step::{FoldStep, Recorded, Skip, StepState};

/// The result of folding a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The result of each bundle, in the order of the plan.
    pub bundles: Vec<FoldedBundle>,
    /// Commits that differ from those of an earlier fold. What was gated then is not what is there now.
    pub changed: Vec<ChangedCommit>,
    candidate: Candidate,
}

/// A commit that differs from the one of an earlier fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedCommit {
    /// The sealed commit.
    pub commit: ObjectId,
    /// The commit that it became in the earlier fold.
    pub before: ObjectId,
    /// The commit that it became in this one.
    pub now: ObjectId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedBundle {
    pub id: BundleId,
    pub fate: FoldFate,
}

/// The result of folding one bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoldFate {
    /// The bundle is on the tip.
    Applied {
        /// Each sealed commit that was not skipped, and the commit that it became.
        commits: Vec<AppliedCommit>,
    },
    /// The tip has the whole effect already.
    AlreadyPresent {
        /// The bundle of the plan that brought it, if that is known.
        by: Option<BundleId>,
    },
    /// The bundle conflicts with the tip and was rolled back as a whole.
    Conflict {
        /// The sealed commit at which it stopped.
        commit: ObjectId,
        conflicts: Vec<Conflict>,
        /// The bundles of the plan that it does not merge with; empty if it is the base.
        with: Vec<BundleId>,
    },
    /// The bundle depends on one that is not on the tip.
    Held { behind: BundleId },
    /// The merge would do what the sealed change does not: change other files, or leave a link that leads out of the
    /// tree. The bundle was rolled back as a whole.
    Unsealed { why: String },
    /// Git failed, which says nothing about the bundle.
    Failed { why: String },
}

/// The reasons why a fold stopped. The steps recorded so far are valid.
#[derive(Debug, Error)]
pub enum FoldError {
    #[error("a step could not be recorded")]
    Recording(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Called with each step before the next begins. An error stops the fold.
pub type Record<'a> =
    &'a mut dyn FnMut(&FoldStep) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Folds a plan. `known` holds the steps of an earlier fold of it, if there was one.
pub fn fold(
    engine: &mut MergeEngine<'_>,
    plan: &FoldPlan,
    known: &Recorded,
    record: Record<'_>,
) -> Result<Folded, FoldError> {
    let all: BTreeSet<usize> = (0..plan.entries().len()).collect();
    fold_some(engine, plan, &all, known, record)
}

/// Folds only the entries at these places.
pub(crate) fn fold_some(
    engine: &mut MergeEngine<'_>,
    plan: &FoldPlan,
    places: &BTreeSet<usize>,
    known: &Recorded,
    record: Record<'_>,
) -> Result<Folded, FoldError> {
    let _span = debug_span!("fold", bundles = places.len()).entered();
    let mut folding = Folding::new(engine, plan, places, known, record)?;
    folding.take_all()?;
    Ok(folding.finish())
}

struct Folding<'a, 'e> {
    engine: &'a mut MergeEngine<'e>,
    plan: &'a FoldPlan,
    chosen: &'a BTreeSet<usize>,
    record: Record<'a>,
    known: BTreeMap<(BundleId, ObjectId), ObjectId>,
    told: BTreeSet<(BundleId, ObjectId)>,
    tip: Tip,
    bundles: Vec<FoldedBundle>,
    on_tip: Vec<TakenChange>,
    changed: Vec<ChangedCommit>,
    /// The paths to which the target has renamed files of the current bundle.
    renamed: BTreeSet<TreePath>,
    /// The tree that files in conflict are taken from, in a fold that only explains.
    lender: Option<Lender>,
}

/// The current tip.
#[derive(Debug, Clone, Copy)]
struct Tip {
    commit: ObjectId,
    tree: ObjectId,
    /// The latest tree with the same attributes.
    attributes: ObjectId,
}

/// The result of one commit.
enum Pick {
    Applied(AppliedCommit),
    Skipped(Skip),
    Conflict(Vec<Conflict>),
    Unsealed(String),
    Failed(String),
}

impl<'a, 'e> Folding<'a, 'e> {
    fn new(
        engine: &'a mut MergeEngine<'e>,
        plan: &'a FoldPlan,
        chosen: &'a BTreeSet<usize>,
        known: &Recorded,
        record: Record<'a>,
    ) -> Result<Self, FoldError> {
        let store = engine.store();
        let tree = store.tree_of(plan.base())?;
        let tip = Tip { commit: plan.base(), tree, attributes: tree };
        // Another git may merge differently, so its commits are not adopted. They are still compared, to tell
        // what differs.
        let same_git = known.git_version == store.git_version();
        let mut applied = BTreeMap::new();
        for step in &known.steps {
            if let StepState::Applied { applied_commit } = step.state {
                applied.insert((step.bundle.clone(), step.commit), applied_commit);
            }
        }
        let told = known.steps.iter().map(|step| (step.bundle.clone(), step.commit)).collect();
        let told = if same_git { told } else { BTreeSet::new() };
        Ok(Self {
            engine,
            plan,
            chosen,
            record,
            known: applied,
            told,
            tip,
            bundles: Vec::new(),
            on_tip: Vec::new(),
            changed: Vec::new(),
            renamed: BTreeSet::new(),
            lender: None,
        })
    }

    /// Takes the chosen entries, in order.
    fn take_all(&mut self) -> Result<(), FoldError> {
        let (plan, chosen) = (self.plan, self.chosen);
        let chosen = || chosen.iter().filter_map(|place| plan.entries().get(*place));
        for entry in chosen() {
            for commit in self.commits_of(entry) {
                self.tell_once(entry, commit, StepState::Planned)?;
            }
        }
        for entry in chosen() {
            let fate = self.take(entry)?;
            let applied = matches!(fate, FoldFate::Applied { .. });
            debug!(bundle = %entry.sealed().id(), applied, tip = %self.tip.commit, "folded");
            self.bundles.push(FoldedBundle { id: entry.sealed().id().clone(), fate });
        }
        Ok(())
    }

    fn store(&self) -> &'e Store {
        self.engine.store()
    }

    fn commits_of(&self, entry: &PlanEntry) -> Vec<ObjectId> {
        let record = entry.sealed().record();
        match self.plan.strategy() {
            Strategy::RebaseFf => record.commits.clone(),
            Strategy::MergeCommit => vec![record.head],
        }
    }

    /// Applies all commits of a bundle, or none.
    fn take(&mut self, entry: &PlanEntry) -> Result<FoldFate, FoldError> {
        if let Some(behind) = self.missing(entry) {
            return Ok(FoldFate::Held { behind });
        }
        let before = self.tip;
        // A rolled-back bundle may have left some.
        self.renamed.clear();
        let (mut applied, mut present_by) = (Vec::new(), None);
        for commit in self.commits_of(entry) {
            let (state, fate) = match self.pick(entry, commit)? {
                Pick::Applied(done) => {
                    applied.push(done);
                    (StepState::Applied { applied_commit: done.applied }, None)
                }
                Pick::Skipped(reason) => {
                    if let Skip::AlreadyPresent { by } = &reason {
                        present_by.clone_from(by);
                    }
                    (StepState::Skipped { reason }, None)
                }
                Pick::Conflict(conflicts) => {
                    let with = self.others_at(entry, &conflicts)?;
                    let state = StepState::Conflict { conflicts: conflicts.clone() };
                    (state, Some(FoldFate::Conflict { commit, conflicts, with }))
                }
                Pick::Unsealed(why) => {
                    (StepState::Failed { why: why.clone() }, Some(FoldFate::Unsealed { why }))
                }
                Pick::Failed(why) => {
                    (StepState::Failed { why: why.clone() }, Some(FoldFate::Failed { why }))
                }
            };
            self.tell(entry, commit, state)?;
            if let Some(fate) = fate {
                // A change that landed in part was never reviewed as such.
                self.tip = before;
                return Ok(fate);
            }
        }
        if applied.is_empty() {
            return Ok(FoldFate::AlreadyPresent { by: present_by });
        }
        let renamed = std::mem::take(&mut self.renamed);
        self.on_tip.push(TakenChange { entry: entry.clone(), commits: applied.clone(), renamed });
        Ok(FoldFate::Applied { commits: applied })
    }

    /// Returns a dependency of the entry that is in the plan but not on the tip.
    fn missing(&self, entry: &PlanEntry) -> Option<BundleId> {
        let arrived = |id: &BundleId| {
            self.bundles.iter().any(|bundle| {
                bundle.id == *id
                    && matches!(
                        bundle.fate,
                        FoldFate::Applied { .. } | FoldFate::AlreadyPresent { .. }
                    )
            })
        };
        let planned = |id: &BundleId| self.plan.entries().iter().any(|e| e.sealed().id() == id);
        entry.depends_on().iter().find(|id| planned(id) && !arrived(id)).cloned()
    }

    fn pick(&mut self, entry: &PlanEntry, commit: ObjectId) -> Result<Pick, FoldError> {
        // No `applying` step is told for it; the journal writes the missing intent itself.
        if let Some(done) = self.adopt(entry, commit)? {
            return Ok(Pick::Applied(done));
        }
        self.tell(entry, commit, StepState::Applying)?;
        let store = self.store();
        let theirs = store.tree_of(commit)?;
        self.engine.set_attributes(self.tip.attributes);
        let question = match self.plan.strategy() {
            Strategy::RebaseFf => {
                let parent = store.parents_of(commit)?;
                // A pick applies the difference to the first parent. A sealed change has no other parents.
                let base = match parent.first() {
                    Some(parent) => store.tree_of(*parent)?,
                    None => return Ok(Pick::Failed(format!("{commit} has no parent"))),
                };
                if base == theirs {
                    return Ok(Pick::Skipped(Skip::EmptyFromTheStart));
                }
                Question::Trees { base, ours: self.tip.tree, theirs }
            }
            Strategy::MergeCommit => Question::Commits { ours: self.tip.commit, theirs: commit },
        };
        let tree = match self.ask(entry, commit, question)? {
            Ok(Merged::Clean { tree }) => tree,
            Ok(Merged::Conflicted { tree, conflicts }) => {
                let lent = self.lender.as_mut().map(|it| it.settle(store, tree, &conflicts));
                match lent.transpose()?.flatten() {
                    Some(tree) => tree,
                    None => return Ok(Pick::Conflict(conflicts)),
                }
            }
            Err(error @ EngineError::NoAnswer { .. }) => {
                return Ok(Pick::Failed(pdca_state::chain(&error)));
            }
            Err(other) => return Err(other.into()),
        };
        if tree == self.tip.tree {
            return Ok(Pick::Skipped(Skip::AlreadyPresent { by: self.same_patch(entry) }));
        }
        if let Some(why) = self.unsealed_effect(entry, tree)? {
            return Ok(Pick::Unsealed(why));
        }
        let (sealed, form, onto) = (entry.sealed(), self.plan.form(), self.tip.commit);
        let id = sealed.id();
        let applied = match self.plan.strategy() {
            Strategy::RebaseFf => commit::again(store, form, sealed, commit, tree, onto)?,
            Strategy::MergeCommit => commit::merge(store, form, sealed, commit, tree, onto)?,
        };
        if let Some(before) = self.known.get(&(id.clone(), commit)).copied()
            && before != applied
        {
            self.changed.push(ChangedCommit { commit, before, now: applied });
        }
        let done = AppliedCommit { source: commit, applied, tree };
        self.advance(entry, done)?;
        Ok(Pick::Applied(done))
    }

    /// Returns the reason why a merged tree must not be taken: it changes files that are not of the sealed change, or
    /// has links that lead out of it.
    fn unsealed_effect(
        &self,
        entry: &PlanEntry,
        tree: ObjectId,
    ) -> Result<Option<String>, FoldError> {
        let store = self.store();
        let (_, others) = self.paths_of(entry, tree)?;
        // A merge also brings the commits below the base of the change, if the branch lacks them: work of the user, which
        // the proof of the landing refuses with another remedy.
        let brings_base = self.plan.strategy() == Strategy::MergeCommit
            && !descends_from(store, self.tip.commit, entry.sealed().record().base)?;
        if !others.is_empty() && !brings_base {
            let names: Vec<String> = others.iter().map(ToString::to_string).collect();
            return Ok(Some(format!(
                "it would change {}, which its seal does not cover",
                names.join(", ")
            )));
        }
        if !self.plan.judges_links() {
            return Ok(None);
        }
        let links = outward_between(store, self.tip.tree, tree)?;
        if links.is_empty() {
            return Ok(None);
        }
        let names: Vec<String> = links.iter().map(ToString::to_string).collect();
        Ok(Some(format!("its links lead out of the tree: {}", names.join(", "))))
    }

    /// Merges a commit. If git is needed for it, git merges the following ones in the same process.
    fn ask(
        &mut self,
        entry: &PlanEntry,
        commit: ObjectId,
        question: Question,
    ) -> Result<Result<Merged, EngineError>, FoldError> {
        if !self.engine.foresees(question) {
            if let Some(tree) = self.engine.certain(question) {
                return Ok(Ok(Merged::Clean { tree }));
            }
            let questions = self.foresee(entry, commit)?;
            self.engine.foresee(&questions);
        }
        Ok(self.engine.ask(question))
    }

    /// Adopts the commit of an earlier fold, if it exists and lies on the tip.
    fn adopt(
        &mut self,
        entry: &PlanEntry,
        commit: ObjectId,
    ) -> Result<Option<AppliedCommit>, FoldError> {
        let key = (entry.sealed().id().clone(), commit);
        let Some(applied) = self.known.get(&key).copied().filter(|_| self.told.contains(&key))
        else {
            return Ok(None);
        };
        let store = self.store();
        // Garbage collection may have removed it, or an earlier change of the plan may have become another
        // commit.
        if store.require_commit(applied).is_err()
            || store.parents_of(applied)?.first() != Some(&self.tip.commit)
            || !commit::is_marked(store, self.plan.form(), applied, entry.sealed())?
        {
            return Ok(None);
        }
        let done = AppliedCommit { source: commit, applied, tree: store.tree_of(applied)? };
        self.advance(entry, done)?;
        Ok(Some(done))
    }

    fn advance(&mut self, entry: &PlanEntry, done: AppliedCommit) -> Result<(), FoldError> {
        let store = self.store();
        let changed = TreeDifference::between(store, Some(self.tip.tree), done.tree)?;
        let (renamed, _) = self.paths_of(entry, done.tree)?;
        self.renamed.extend(renamed);
        // The tree of the attributes stays the same object as long as it can: results that were made ahead are
        // kept under it, and a git before 2.45 needs its files laid out anew for another one.
        let same = !changed.paths.iter().any(is_attributes);
        let attributes = if same { self.tip.attributes } else { done.tree };
        self.tip = Tip { commit: done.applied, tree: done.tree, attributes };
        Ok(())
    }

    /// Returns the paths outside of the footprint that a merged tree changes: those to which the target has renamed files
    /// of the change since it was made, where git applied the edit under the new name, and all others.
    fn paths_of(
        &self,
        entry: &PlanEntry,
        tree: ObjectId,
    ) -> Result<(Vec<TreePath>, Vec<TreePath>), FoldError> {
        let store = self.store();
        let footprint = &entry.sealed().record().footprint;
        let changed = TreeDifference::between(store, Some(self.tip.tree), tree)?;
        let outside: Vec<TreePath> =
            changed.paths.into_iter().filter(|path| !footprint.contains(path)).collect();
        if outside.is_empty() {
            return Ok((outside, Vec::new()));
        }
        let old = store.tree_of(entry.sealed().record().base)?;
        // Only if a file of the change is gone from the tip can git have applied an edit under another name.
        // Without this condition any path outside of the footprint would pass the proof of the landing.
        let moved_away = has_path_lost(store, footprint, old, self.tip.tree)?;
        let (mut renamed, mut others) = (Vec::new(), Vec::new());
        for path in outside {
            let is_renamed = moved_away
                && store.has_path(self.tip.tree, &path)?
                && !store.has_path(old, &path)?;
            if is_renamed { renamed.push(path) } else { others.push(path) }
        }
        Ok((renamed, others))
    }

    fn same_patch(&self, entry: &PlanEntry) -> Option<BundleId> {
        let patch = &entry.sealed().record().patch_digest;
        let others = self.on_tip.iter().map(|taken| taken.entry.sealed());
        let mut same = others.filter(|other| other.record().patch_digest == *patch);
        same.next().map(|other| other.id().clone())
    }

    /// Returns the bundles on the tip that a change conflicts with when merged with each alone. If there is
    /// none, the base is to blame if the change does not merge with it, and otherwise every bundle that touched
    /// the same files.
    fn others_at(
        &mut self,
        entry: &PlanEntry,
        conflicts: &[Conflict],
    ) -> Result<Vec<BundleId>, FoldError> {
        let touches = |entry: &PlanEntry| {
            let footprint = &entry.sealed().record().footprint;
            conflicts.iter().any(|conflict| footprint.contains(&conflict.path))
        };
        let others = self.on_tip.iter().map(|taken| &taken.entry).filter(|entry| touches(entry));
        let others: Vec<(BundleId, ObjectId)> = others
            .map(|entry| (entry.sealed().id().clone(), entry.sealed().record().head))
            .collect();
        let head = entry.sealed().record().head;
        let mut with = Vec::new();
        // A change that touches the same file may still merge with this one, so each is asked alone.
        for (id, other) in &others {
            if branch_side::disagree(self.engine, *other, head)? {
                with.push(id.clone());
            }
        }
        let is_sure = !with.is_empty()
            || others.is_empty()
            || branch_side::disagree(self.engine, self.plan.base(), head)?;
        let with = if is_sure { with } else { others.into_iter().map(|(id, _)| id).collect() };
        self.engine.set_attributes(self.tip.attributes);
        Ok(with)
    }

    fn tell_once(
        &mut self,
        entry: &PlanEntry,
        commit: ObjectId,
        state: StepState,
    ) -> Result<(), FoldError> {
        let key = (entry.sealed().id().clone(), commit);
        if self.told.contains(&key) { Ok(()) } else { self.tell(entry, commit, state) }
    }

    fn tell(
        &mut self,
        entry: &PlanEntry,
        commit: ObjectId,
        state: StepState,
    ) -> Result<(), FoldError> {
        let bundle = entry.sealed().id().clone();
        (self.record)(&FoldStep { bundle, commit, state }).map_err(FoldError::Recording)
    }

    fn finish(self) -> Folded {
        let store = self.engine.store();
        let candidate = Candidate {
            base: self.plan.base(),
            commit: self.tip.commit,
            tree: self.tip.tree,
            strategy: self.plan.strategy(),
            git_version: store.git_version().to_owned(),
            drivers: self.engine.drivers().digest(),
            bundles: self.on_tip,
        };
        Folded { bundles: self.bundles, changed: self.changed, candidate }
    }
}

/// Returns true if a path of the footprint is in the old tree and not in the new one.
fn has_path_lost(
    store: &Store,
    footprint: &[TreePath],
    old: ObjectId,
    new: ObjectId,
) -> Result<bool, StoreError> {
    for path in footprint {
        if store.has_path(old, path)? && !store.has_path(new, path)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Folded {
    /// Returns the tip as a candidate. It is the base if nothing was applied.
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }
}
