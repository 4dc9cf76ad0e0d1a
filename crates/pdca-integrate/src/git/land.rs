//! Moves a ref to a gated commit.
//!
//! 1. *Examine* the commit: its tree must be the gated one, its changes against the base must lie within the sealed
//!    footprints, and it must build on the base.
//! 2. *Recognize* a ref that contains the commit already: an earlier landing whose outcome was lost.
//! 3. *Require* the ref at exactly the gated base, and no checkout that holds it, see [`Holder`].
//! 4. *Sync* the commits before a ref names them.
//! 5. *Move* the ref under the fence, from exactly the value that was read.
//! 6. *Prove*: reopen the repository and examine what the ref names now. If it is not what was gated, a ref keeps the
//!    evidence and the branch is moved back.

mod holder;
pub(crate) mod offer;
pub(crate) mod proof;
pub(crate) mod push;
pub(crate) mod remote;

use gix::ObjectId;
use thiserror::Error;

use crate::{
    git::durable::LooseObjects,
    git::failure::{RefError, StoreError, shown},
    git::fence::{Fence, Move, ReflogEntry, StepEffect, ref_at},
    git::store::Store,
    queue::verdict::Gated,
};

pub use holder::{Holder, holders};
pub use proof::Disproof;

/// The ref to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Onto<'a> {
    /// A local branch, named without `refs/heads/`.
    Target(&'a str),
    /// The staging branch of a target branch, for a person to merge.
    ///
    /// It continues from the gated base or replaces an earlier fold of ours.
    Staging {
        /// The staging branch, named without `refs/heads/`.
        branch: &'a str,
        /// The earlier fold that may be replaced.
        replaces: Option<ObjectId>,
    },
    /// The full name of the ref that remembers the last known tip of a remote's branch.
    ///
    /// The remote has the commit already; moving this ref proves and records it locally.
    Sighting(&'a str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub(crate) reference: String,
    pub(crate) before: Option<ObjectId>,
    pub(crate) commit: ObjectId,
    pub(crate) tree: ObjectId,
    pub(crate) effect: StepEffect,
}

/// The movement of a base since it was last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseDrift {
    None,
    /// It gained commits: gate again on the new base.
    Forward {
        commits: u64,
    },
    /// It gained more commits than may be followed without a person.
    Beyond {
        commits: u64,
        limit: u64,
    },
    /// It went back, or to another history.
    Rewritten,
    Gone,
}

/// The reasons why a landing failed.
#[derive(Debug, Error)]
pub enum LandError {
    /// The candidate is empty. An empty landing never counts as success.
    #[error("there is no change to land")]
    Nothing,
    /// The branch is checked out; moving it would make that checkout look changed.
    #[error("{branch} is checked out in {}", holder.path)]
    CheckedOut { branch: String, holder: Holder },
    #[error("{reference} is not at the gated base {base}")]
    BaseMoved { reference: String, base: ObjectId, actual: Option<ObjectId> },
    /// The commit is not what was gated and sealed. No ref moved.
    #[error("what is to land is not what was gated")]
    Refused(#[source] Box<Disproof>),
    /// The landed commit is not what was gated and sealed. The ref `evidence` keeps it.
    #[error("what landed on {reference} is not what was gated; it was {}", restoration(restored.as_deref()))]
    Disproved {
        reference: String,
        #[source]
        disproof: Box<Disproof>,
        /// The ref that keeps the landed commit.
        evidence: String,
        /// The reason why the ref could not be moved back; `None` if it was.
        restored: Option<Box<RefError>>,
    },
    /// After the landing another process moved the ref to a commit without the landed one.
    #[error("{reference} was moved to {} right after landing {commit}", shown(*actual))]
    MovedAfter { reference: String, commit: ObjectId, actual: Option<ObjectId> },
    #[error(transparent)]
    Ref(#[from] RefError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn restoration(failure: Option<&RefError>) -> &'static str {
    if failure.is_some() { "not put back" } else { "put back" }
}

impl LandError {
    /// Returns true if the ref may be at the landed commit in spite of the error, which git alone can tell.
    pub(crate) fn may_have_moved(&self) -> bool {
        match self {
            // The store fails before the move, but also when the moved ref is synced and read back.
            Self::MovedAfter { .. } | Self::Ref(RefError::Store(_)) | Self::Store(_) => true,
            Self::Nothing
            | Self::CheckedOut { .. }
            | Self::BaseMoved { .. }
            | Self::Refused(_)
            // What is not what was gated must not count as landed, wherever the ref is.
            | Self::Disproved { .. }
            | Self::Ref(
                RefError::Fenced { .. }
                | RefError::FenceBusy { .. }
                | RefError::Moved { .. }
                | RefError::Locked { .. }
                | RefError::Name { .. },
            ) => false,
        }
    }
}

impl Onto<'_> {
    /// Returns the full name of the ref.
    pub fn reference(&self) -> String {
        match self {
            Self::Target(branch) | Self::Staging { branch, .. } => format!("refs/heads/{branch}"),
            Self::Sighting(name) => (*name).to_owned(),
        }
    }
}

impl Landed {
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Returns the previous commit of the ref, or `None` if the landing created it.
    pub fn before(&self) -> Option<ObjectId> {
        self.before
    }

    pub fn commit(&self) -> ObjectId {
        self.commit
    }

    /// Returns whether the ref moved or had the commit already, because the outcome of an earlier landing was lost.
    pub fn effect(&self) -> StepEffect {
        self.effect
    }
}

/// Lands a gated candidate.
pub fn land(
    store: &Store,
    fence: &Fence,
    gated: &Gated,
    onto: Onto<'_>,
    log: ReflogEntry<'_>,
) -> Result<Landed, LandError> {
    land_as(store, fence, gated, onto, log, gated.candidate.commit)
}

/// Lands `written`, which differs from the gated commit only in tests of the proof.
pub(crate) fn land_as(
    store: &Store,
    fence: &Fence,
    gated: &Gated,
    onto: Onto<'_>,
    log: ReflogEntry<'_>,
    written: ObjectId,
) -> Result<Landed, LandError> {
    let candidate = &gated.candidate;
    if candidate.bundles.is_empty() {
        return Err(LandError::Nothing);
    }
    proof::examine(store, gated, candidate.commit).map_err(refused)?;
    let reference = onto.reference();
    let before = ref_at(store, &reference)?;
    let landed = |before, effect| {
        let (commit, tree) = (candidate.commit, candidate.tree);
        Landed { reference: reference.clone(), before, commit, tree, effect }
    };
    if let Some(at) = before
        && proof::contains(store, at, candidate.commit)?
    {
        // Where the ref was before the earlier landing is no longer visible; the gated base is the best that is
        // known.
        return Ok(landed(Some(candidate.base), StepEffect::Recognised));
    }
    require_base(store, gated, onto, before)?;
    // The mode required this before the first gate ran, but a person may have checked the branch out since.
    require_nobody_there(store, &reference)?;
    LooseObjects::of(store).sync_commits(candidate.base, candidate.commit)?;
    let step = Move { name: reference.clone(), from: before, to: Some(written) };
    fence.move_refs(store, &[step], log).map_err(|error| match error {
        RefError::Moved { actual, .. } => {
            LandError::BaseMoved { reference: reference.clone(), base: candidate.base, actual }
        }
        other @ (RefError::Fenced { .. }
        | RefError::FenceBusy { .. }
        | RefError::Locked { .. }
        | RefError::Name { .. }
        | RefError::Store(_)) => LandError::Ref(other),
    })?;
    prove(store, fence, gated, &reference, before, written, log)?;
    Ok(landed(before, StepEffect::Made))
}

fn refused(error: proof::ProofError) -> LandError {
    match error {
        proof::ProofError::Disproved(disproof) => LandError::Refused(Box::new(disproof)),
        proof::ProofError::Store(error) => LandError::Store(error),
    }
}

fn require_base(
    store: &Store,
    gated: &Gated,
    onto: Onto<'_>,
    actual: Option<ObjectId>,
) -> Result<(), LandError> {
    let base = gated.candidate.base;
    let fits = match (onto, actual) {
        (Onto::Staging { replaces: Some(earlier), .. }, Some(actual)) => {
            actual == base || actual == earlier
        }
        (_, Some(actual)) => actual == base,
        // The first landing creates the staging branch.
        (Onto::Staging { .. }, None) => true,
        (Onto::Target(_) | Onto::Sighting(_), None) => false,
    };
    store.require_commit(base)?;
    if fits {
        Ok(())
    } else {
        Err(LandError::BaseMoved { reference: onto.reference(), base, actual })
    }
}

fn require_nobody_there(store: &Store, reference: &str) -> Result<(), LandError> {
    match holders(store, reference)?.into_iter().next() {
        Some(holder) => Err(LandError::CheckedOut {
            branch: reference.trim_start_matches("refs/heads/").to_owned(),
            holder,
        }),
        None => Ok(()),
    }
}

/// Reads the ref back through a newly opened repository and examines the commit that it names.
fn prove(
    store: &Store,
    fence: &Fence,
    gated: &Gated,
    reference: &str,
    before: Option<ObjectId>,
    written: ObjectId,
    log: ReflogEntry<'_>,
) -> Result<(), LandError> {
    // The refs and objects as they are on disk, without any cache of this process.
    let anew = store.reopen()?;
    let actual = ref_at(&anew, reference)?;
    let commit = gated.candidate.commit;
    if let Some(other) = actual
        && other != written
        && proof::contains(&anew, other, commit)?
    {
        // Another process built on it at once, so the landed commit is examined and not the new tip.
        return proof::examine(&anew, gated, commit).map_err(refused);
    }
    if actual != Some(written) {
        return Err(LandError::MovedAfter { reference: reference.to_owned(), commit, actual });
    }
    let disproof = match proof::examine(&anew, gated, written) {
        Ok(()) => return Ok(()),
        Err(proof::ProofError::Store(error)) => return Err(error.into()),
        Err(proof::ProofError::Disproved(disproof)) => Box::new(disproof),
    };
    let evidence = fence.holder().evidence_ref(written);
    // Before the branch moves back, or garbage collection could remove what went wrong.
    // A resumed integration lands the same commit again, and then an earlier proof has kept it already.
    if ref_at(store, &evidence)? != Some(written) {
        let keep = Move { name: evidence.clone(), from: None, to: Some(written) };
        fence.move_refs(store, &[keep], log)?;
    }
    let back = Move { name: reference.to_owned(), from: Some(written), to: before };
    let restored = fence.move_refs(store, &[back], log).err().map(Box::new);
    Err(LandError::Disproved { reference: reference.to_owned(), disproof, evidence, restored })
}

/// Determines the movement of a base, with a limit on the commits that may be followed.
pub fn base_drift(
    store: &Store,
    base: ObjectId,
    now: Option<ObjectId>,
    limit: u64,
) -> Result<BaseDrift, StoreError> {
    let Some(now) = now else {
        return Ok(BaseDrift::Gone);
    };
    if now == base {
        return Ok(BaseDrift::None);
    }
    let range = format!("{base}...{now}");
    let args = ["rev-list", "--count", "--left-right", range.as_str(), "--"];
    let said = store.git()?.must("count commits", &args, Vec::new())?;
    let said = String::from_utf8_lossy(&said).into_owned();
    let mut counts = said.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(lost)), Some(Ok(commits))) = (counts.next(), counts.next()) else {
        return Err(StoreError::Form { what: "git's count of commits".to_owned() });
    };
    Ok(match (lost, commits) {
        (0, commits) if commits > limit => BaseDrift::Beyond { commits, limit },
        (0, commits) => BaseDrift::Forward { commits },
        _ => BaseDrift::Rewritten,
    })
}
