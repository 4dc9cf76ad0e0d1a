//! The commit of a branch that a change conflicts with, found by bisection and not only by the files it touches.

use gix::{ObjectId, bstr::ByteSlice as _};

use crate::{
    conflict::Conflict,
    git::engine::{EngineError, MergeEngine, Merged, Question},
    git::failure::StoreError,
    git::presence,
    git::seal::SealRecord,
    git::store::Store,
};

/// The maximum number of commits to walk back.
/// A bound for a change without a common ancestor. The answer only explains a conflict.
const FAR: usize = 10_000;

/// The commit of a branch with which a change began to conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchSide {
    pub commit: ObjectId,
    pub subject: String,
    /// The sealed changes that the commit brought, each by bundle id and digest of the seal.
    pub seals: Vec<(String, Option<String>)>,
}

impl BranchSide {
    /// Finds the first commit of the branch at `tip` with which a change does not merge, among those that
    /// touched a conflicting file since the change was made. Returns `None` if no single commit is to blame or
    /// it is too far back.
    pub fn find(
        engine: &mut MergeEngine<'_>,
        tip: ObjectId,
        change: &SealRecord,
        conflicts: &[Conflict],
    ) -> Result<Option<Self>, EngineError> {
        let store = engine.store();
        let touching = touching(store, tip, change, conflicts)?;
        // Latest first. Each commit includes all earlier ones, so bisection finds where the conflict began.
        let (mut red, mut green) = (None, touching.len());
        let mut low = 0;
        while low < green {
            let middle = usize::midpoint(low, green);
            if disagree(engine, touching[middle], change.head)? {
                red = Some(touching[middle]);
                low = middle + 1;
            } else {
                green = middle;
            }
        }
        let Some(commit) = red else { return Ok(None) };
        let said = store.read_commit(commit)?.message;
        let subject = said.lines().next().unwrap_or_default().to_str_lossy().into_owned();
        let seals = presence::named_by(&said);
        Ok(Some(Self { commit, subject, seals }))
    }
}

/// Returns true if two commits do not merge.
pub(crate) fn disagree(
    engine: &mut MergeEngine<'_>,
    ours: ObjectId,
    theirs: ObjectId,
) -> Result<bool, EngineError> {
    // The attributes of the side that is merged into, as in a fold.
    engine.set_attributes(engine.store().tree_of(ours)?);
    match engine.ask(Question::Commits { ours, theirs }) {
        Ok(merged) => Ok(matches!(merged, Merged::Conflicted { .. })),
        // If git cannot merge for another reason, that is not a conflict with this commit.
        Err(EngineError::NoAnswer { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Returns the first-parent commits of the branch that touched a conflicting file since the change was made,
/// latest first.
fn touching(
    store: &Store,
    tip: ObjectId,
    change: &SealRecord,
    conflicts: &[Conflict],
) -> Result<Vec<ObjectId>, StoreError> {
    let repo = store.repo();
    // Without a common ancestor the whole branch counts as new.
    let common = repo.merge_base(tip, change.head).ok().flatten().map(gix::Id::detach);
    let mut found = Vec::new();
    let mut commit = tip;
    for _ in 0..FAR {
        if common == Some(commit) {
            break;
        }
        let tree = store.tree_of(commit)?;
        let parent = store.parents_of(commit)?.first().copied();
        let before = parent.map(|parent| store.tree_of(parent)).transpose()?;
        // Other commits cannot have begun the conflict, so merges with them need not be made.
        for conflict in conflicts {
            let was = before.map(|tree| store.leaf(tree, &conflict.path)).transpose()?.flatten();
            if store.leaf(tree, &conflict.path)? != was {
                found.push(commit);
                break;
            }
        }
        let Some(parent) = parent else { break };
        commit = parent;
    }
    Ok(found)
}
