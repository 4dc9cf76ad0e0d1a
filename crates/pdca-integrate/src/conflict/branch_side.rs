//! The other side of a conflict: what a change really disagrees with, not only what changed the same files.

use gix::{ObjectId, bstr::ByteSlice as _};

use crate::{
    conflict::Conflict,
    git::engine::{Engine, EngineError, Merged, Question},
    git::failure::StoreError,
    git::presence,
    git::seal::SealRecord,
    git::store::Store,
};

/// How many commits of a branch are walked back.
const FAR: usize = 10_000;

/// The commit of a branch with which a change began to conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchSide {
    /// The commit.
    pub commit: ObjectId,
    /// The first line of its message.
    pub subject: String,
    /// The sealed changes that it brings, each by bundle id and digest of the seal.
    pub seals: Vec<(String, Option<String>)>,
}

impl BranchSide {
    /// Finds the first commit of the branch at `tip` with which a change does not merge, among those that changed a file in
    /// conflict since the change was made. None where no single commit is to blame, or it is too far back.
    pub fn find(
        engine: &mut Engine<'_>,
        tip: ObjectId,
        change: &SealRecord,
        conflicts: &[Conflict],
    ) -> Result<Option<Self>, EngineError> {
        let store = engine.store();
        let touching = touching(store, tip, change, conflicts)?;
        // The latest first. Each is asked about with all before it, so that halving finds where it began.
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

/// Whether two commits do not merge.
pub(crate) fn disagree(
    engine: &mut Engine<'_>,
    ours: ObjectId,
    theirs: ObjectId,
) -> Result<bool, EngineError> {
    engine.set_attributes(engine.store().tree_of(ours)?);
    match engine.ask(Question::Commits { ours, theirs }) {
        Ok(merged) => Ok(matches!(merged, Merged::Conflicted { .. })),
        // What git cannot merge for another reason names nobody.
        Err(EngineError::NoAnswer { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

/// The commits of the branch, by first parents, that changed a file in conflict since the change was made, latest first.
fn touching(
    store: &Store,
    tip: ObjectId,
    change: &SealRecord,
    conflicts: &[Conflict],
) -> Result<Vec<ObjectId>, StoreError> {
    let repo = store.repo();
    // Without a common ancestor the whole branch is new.
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
