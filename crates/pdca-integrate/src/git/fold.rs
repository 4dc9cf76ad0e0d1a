//! Sealed changes are put onto a base, one by one, in the object store.
//!
//! Each commit of each change goes `planned → applying → applied | conflict | skipped | failed`,
//! and every step is told before the next begins, so that it can be made durable. The commits are
//! a function of the plan alone: trees come from git's merge, authors and their dates from the sealed
//! commits, committers from the seals. Folding again gives the same ids, which is what makes a crash
//! harmless.

mod commit;
mod foresight;
mod step;

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;
use pdca_state::BundleId;
use thiserror::Error;
use tracing::{debug, debug_span};

pub(crate) use self::commit::{
    SIGNED, TRAILER, is_trailer, marker, with_trailers, without_claims, write,
};
use crate::{
    conflict::Conflict,
    conflict::branch_side,
    git::engine::{Engine, EngineError, Merged, Question, is_attributes},
    git::failure::StoreError,
    git::footprint::Difference,
    git::path::TreePath,
    git::store::Store,
    queue::candidate::{AppliedCommit, Candidate, Taken},
    queue::plan::{Entry, Plan, Strategy},
};

pub use step::{Recorded, Skip, Step, StepState};

/// A plan, carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// What came of each bundle, in the order of the plan.
    pub bundles: Vec<FoldedBundle>,
    /// Steps that gave another commit than an earlier fold told: whatever was gated then is not
    /// what is there now.
    pub changed: Vec<Changed>,
    candidate: Candidate,
}

/// A commit that came out otherwise than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The sealed commit.
    pub commit: ObjectId,
    /// What it became before.
    pub before: ObjectId,
    /// What it became now.
    pub now: ObjectId,
}

/// What came of one bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedBundle {
    /// The bundle.
    pub id: BundleId,
    /// What came of it.
    pub fate: Fate,
}

/// What came of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is on the tip.
    Applied {
        /// Each sealed commit that was not skipped, and what it became.
        commits: Vec<AppliedCommit>,
    },
    /// All of it is there already.
    AlreadyPresent {
        /// By which bundle of the plan, where that is known.
        by: Option<BundleId>,
    },
    /// It disagrees with what is on the tip, and was taken off again as a whole.
    Conflict {
        /// The sealed commit at which it stopped.
        commit: ObjectId,
        /// The files.
        conflicts: Vec<Conflict>,
        /// The bundles of the plan that it does not merge with; none where it is the base.
        with: Vec<BundleId>,
    },
    /// It needs a bundle that is not on the tip.
    Held {
        /// That bundle.
        behind: BundleId,
    },
    /// It could not be tried, which says nothing about it.
    Failed {
        /// Why.
        why: String,
    },
}

/// Why a fold stopped. What was told so far holds.
#[derive(Debug, Error)]
pub enum FoldError {
    /// Somebody who was to write a step down could not.
    #[error("a step could not be recorded")]
    Recording(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// git could not be asked.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Told each step before the next begins; an error stops the fold.
pub type Record<'a> =
    &'a mut dyn FnMut(&Step) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Folds a plan. `known` is what an earlier fold of it told, if there was one.
pub fn fold(
    engine: &mut Engine<'_>,
    plan: &Plan,
    known: &Recorded,
    record: Record<'_>,
) -> Result<Folded, FoldError> {
    let all: BTreeSet<usize> = (0..plan.entries().len()).collect();
    fold_some(engine, plan, &all, known, record)
}

/// Folds only the entries at these places.
pub(crate) fn fold_some(
    engine: &mut Engine<'_>,
    plan: &Plan,
    places: &BTreeSet<usize>,
    known: &Recorded,
    record: Record<'_>,
) -> Result<Folded, FoldError> {
    let _span = debug_span!("fold", bundles = places.len()).entered();
    let mut folding = Folding::new(engine, plan, places, known, record)?;
    let chosen = || places.iter().filter_map(|place| plan.entries().get(*place));
    for entry in chosen() {
        for commit in folding.commits_of(entry) {
            folding.tell_once(entry, commit, StepState::Planned)?;
        }
    }
    for entry in chosen() {
        let fate = folding.take(entry)?;
        let applied = matches!(fate, Fate::Applied { .. });
        debug!(bundle = %entry.sealed().id(), applied, tip = %folding.tip.commit, "folded");
        folding.bundles.push(FoldedBundle { id: entry.sealed().id().clone(), fate });
    }
    Ok(folding.finish())
}

struct Folding<'a, 'e> {
    engine: &'a mut Engine<'e>,
    plan: &'a Plan,
    chosen: &'a BTreeSet<usize>,
    record: Record<'a>,
    known: BTreeMap<(BundleId, ObjectId), ObjectId>,
    told: BTreeSet<(BundleId, ObjectId)>,
    tip: Tip,
    bundles: Vec<FoldedBundle>,
    on_tip: Vec<Taken>,
    changed: Vec<Changed>,
    /// Where the target has files of the bundle at hand that it renamed since.
    renamed: BTreeSet<TreePath>,
}

/// Where the fold is.
#[derive(Debug, Clone, Copy)]
struct Tip {
    commit: ObjectId,
    tree: ObjectId,
    /// The latest tree with the same attributes.
    attributes: ObjectId,
}

/// What came of one commit.
enum Pick {
    Applied(AppliedCommit),
    Skipped(Skip),
    Conflict(Vec<Conflict>),
    Failed(String),
}

impl<'a, 'e> Folding<'a, 'e> {
    fn new(
        engine: &'a mut Engine<'e>,
        plan: &'a Plan,
        chosen: &'a BTreeSet<usize>,
        known: &Recorded,
        record: Record<'a>,
    ) -> Result<Self, FoldError> {
        let store = engine.store();
        let tree = store.tree_of(plan.base())?;
        let tip = Tip { commit: plan.base(), tree, attributes: tree };
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
        })
    }

    fn store(&self) -> &'e Store {
        self.engine.store()
    }

    fn commits_of(&self, entry: &Entry) -> Vec<ObjectId> {
        let record = entry.sealed().record();
        match self.plan.strategy() {
            Strategy::RebaseFf => record.commits.clone(),
            Strategy::MergeCommit => vec![record.head],
        }
    }

    /// Puts one bundle onto the tip, all of it or nothing.
    fn take(&mut self, entry: &Entry) -> Result<Fate, FoldError> {
        if let Some(behind) = self.missing(entry) {
            return Ok(Fate::Held { behind });
        }
        let before = self.tip;
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
                    (state, Some(Fate::Conflict { commit, conflicts, with }))
                }
                Pick::Failed(why) => {
                    (StepState::Failed { why: why.clone() }, Some(Fate::Failed { why }))
                }
            };
            self.tell(entry, commit, state)?;
            if let Some(fate) = fate {
                self.tip = before;
                return Ok(fate);
            }
        }
        if applied.is_empty() {
            return Ok(Fate::AlreadyPresent { by: present_by });
        }
        let renamed = std::mem::take(&mut self.renamed);
        self.on_tip.push(Taken { entry: entry.clone(), commits: applied.clone(), renamed });
        Ok(Fate::Applied { commits: applied })
    }

    /// A bundle that this one needs, that is of the plan and that is not on the tip.
    fn missing(&self, entry: &Entry) -> Option<BundleId> {
        let arrived = |id: &BundleId| {
            self.bundles.iter().any(|bundle| {
                bundle.id == *id
                    && matches!(bundle.fate, Fate::Applied { .. } | Fate::AlreadyPresent { .. })
            })
        };
        let planned = |id: &BundleId| self.plan.entries().iter().any(|e| e.sealed().id() == id);
        entry.depends_on().iter().find(|id| planned(id) && !arrived(id)).cloned()
    }

    fn pick(&mut self, entry: &Entry, commit: ObjectId) -> Result<Pick, FoldError> {
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
            Ok(Merged::Conflicted { conflicts, .. }) => return Ok(Pick::Conflict(conflicts)),
            Err(error @ EngineError::NoAnswer { .. }) => {
                return Ok(Pick::Failed(pdca_state::chain(&error)));
            }
            Err(other) => return Err(other.into()),
        };
        if tree == self.tip.tree {
            return Ok(Pick::Skipped(Skip::AlreadyPresent { by: self.same_patch(entry) }));
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
            self.changed.push(Changed { commit, before, now: applied });
        }
        let done = AppliedCommit { source: commit, applied, tree };
        self.advance(entry, done)?;
        Ok(Pick::Applied(done))
    }

    /// Makes the merge of a pick, and where git is needed for it has it make those behind it too.
    fn ask(
        &mut self,
        entry: &Entry,
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

    /// Takes over what an earlier fold did, where it is here and lies on the tip.
    fn adopt(
        &mut self,
        entry: &Entry,
        commit: ObjectId,
    ) -> Result<Option<AppliedCommit>, FoldError> {
        let key = (entry.sealed().id().clone(), commit);
        let Some(applied) = self.known.get(&key).copied().filter(|_| self.told.contains(&key))
        else {
            return Ok(None);
        };
        let store = self.store();
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

    fn advance(&mut self, entry: &Entry, done: AppliedCommit) -> Result<(), FoldError> {
        let store = self.store();
        let changed = Difference::between(store, Some(self.tip.tree), done.tree)?;
        let footprint = &entry.sealed().record().footprint;
        let old = store.tree_of(entry.sealed().record().base)?;
        let moved_away = has_path_lost(store, footprint, old, self.tip.tree)?;
        for path in changed.paths.iter().filter(|path| !footprint.contains(path)) {
            // The change was made to a file that has another name in the target by now.
            if moved_away && store.has_path(self.tip.tree, path)? && !store.has_path(old, path)? {
                self.renamed.insert(path.clone());
            }
        }
        let same = !changed.paths.iter().any(is_attributes);
        let attributes = if same { self.tip.attributes } else { done.tree };
        self.tip = Tip { commit: done.applied, tree: done.tree, attributes };
        Ok(())
    }

    fn same_patch(&self, entry: &Entry) -> Option<BundleId> {
        let patch = &entry.sealed().record().patch_digest;
        let others = self.on_tip.iter().map(|taken| taken.entry.sealed());
        let mut same = others.filter(|other| other.record().patch_digest == *patch);
        same.next().map(|other| other.id().clone())
    }

    /// The bundles on the tip that a change disagrees with: those that it does not merge with by themselves. Where there is
    /// none, the base is to blame if the change does not merge with it, and else all that changed the same files.
    fn others_at(
        &mut self,
        entry: &Entry,
        conflicts: &[Conflict],
    ) -> Result<Vec<BundleId>, FoldError> {
        let touches = |entry: &Entry| {
            let footprint = &entry.sealed().record().footprint;
            conflicts.iter().any(|conflict| footprint.contains(&conflict.path))
        };
        let others = self.on_tip.iter().map(|taken| &taken.entry).filter(|entry| touches(entry));
        let others: Vec<(BundleId, ObjectId)> = others
            .map(|entry| (entry.sealed().id().clone(), entry.sealed().record().head))
            .collect();
        let head = entry.sealed().record().head;
        let mut with = Vec::new();
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
        entry: &Entry,
        commit: ObjectId,
        state: StepState,
    ) -> Result<(), FoldError> {
        let key = (entry.sealed().id().clone(), commit);
        if self.told.contains(&key) { Ok(()) } else { self.tell(entry, commit, state) }
    }

    fn tell(&mut self, entry: &Entry, commit: ObjectId, state: StepState) -> Result<(), FoldError> {
        let bundle = entry.sealed().id().clone();
        (self.record)(&Step { bundle, commit, state }).map_err(FoldError::Recording)
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

/// Whether a path of the footprint was in the old tree and is not in the new one.
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
    /// The tip, to be gated. It is the base where nothing was applied.
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }
}
