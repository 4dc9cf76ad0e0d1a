//! What was gated becomes what is there.
//!
//! One ref moves, from exactly the gated base to exactly the gated commit, under the fence. Then
//! the repository is opened anew and what is found is compared with what was gated: the tree, and
//! that it differs from the base in no path but those that were sealed. Where that does not hold
//! the ref goes back by the same kind of step, and what was found is kept as evidence.
//!
//! A branch that somebody has checked out does not move, see [`Holder`].

mod holder;
pub(crate) mod offer;
pub(crate) mod proof;
pub(crate) mod push;
pub(crate) mod remote;

use gix::ObjectId;
use thiserror::Error;

use crate::{
    git::failure::{RefError, StoreError},
    git::fence::{Effect, Fence, Log, Move, ref_at},
    git::name::staging_branch,
    git::store::Store,
    queue::verdict::Gated,
};

pub use holder::{Holder, holders};
pub use proof::Disproof;

/// Which ref moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Onto<'a> {
    /// A local branch, named without `refs/heads/`.
    Target(&'a str),
    /// The staging branch of a target branch, left for a person to merge.
    ///
    /// It goes on from the gated base, or takes the place of an earlier fold of ours.
    Staging {
        /// The target branch, named without `refs/heads/`.
        branch: &'a str,
        /// The earlier fold that it takes the place of.
        replaces: Option<ObjectId>,
    },
    /// The ref that says where the branch of a remote was last seen, by its full name.
    ///
    /// The remote has the change already; this is the proof and the record of it here.
    Sighting(&'a str),
}

/// What landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub(crate) reference: String,
    pub(crate) before: Option<ObjectId>,
    pub(crate) commit: ObjectId,
    pub(crate) tree: ObjectId,
    pub(crate) effect: Effect,
}

/// How far a base is from where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseDrift {
    /// It is where it was.
    None,
    /// It went on: gate again on the new base.
    Forward {
        /// How many commits were added.
        commits: u64,
    },
    /// It went on further than is to be followed without a person.
    Beyond {
        /// How many commits were added.
        commits: u64,
        /// How many may be.
        limit: u64,
    },
    /// It went back, or to another history.
    Rewritten,
    /// It is gone.
    Gone,
}

/// Why nothing landed.
#[derive(Debug, Error)]
pub enum LandError {
    /// There is nothing in it. "Nothing applied" is never success.
    #[error("there is no change to land")]
    Nothing,
    /// The branch is checked out; moving it would make that checkout look changed.
    #[error("{branch} is checked out in {}", holder.path)]
    CheckedOut {
        /// The branch.
        branch: String,
        /// Who has it.
        holder: Holder,
    },
    /// The ref is not at the gated base.
    #[error("{reference} is not at the gated base {base}")]
    BaseMoved {
        /// The ref.
        reference: String,
        /// The gated base.
        base: ObjectId,
        /// Where the ref is.
        actual: Option<ObjectId>,
    },
    /// What was to land is not what was gated and sealed. Nothing moved.
    #[error("what is to land is not what was gated")]
    Refused(#[source] Box<Disproof>),
    /// What landed is not what was gated and sealed. It is kept under `evidence`.
    #[error("what landed on {reference} is not what was gated; it was {}", restoration(restored.as_deref()))]
    Disproved {
        /// The ref.
        reference: String,
        /// What is wrong.
        #[source]
        disproof: Box<Disproof>,
        /// The ref that keeps what was found.
        evidence: String,
        /// Why the ref could not be put back; none where it was.
        restored: Option<Box<RefError>>,
    },
    /// After the landing somebody moved the ref to where the landed commit is not.
    #[error("{reference} was moved to {} right after landing {commit}", shown(*actual))]
    MovedAfter {
        /// The ref.
        reference: String,
        /// What landed.
        commit: ObjectId,
        /// Where the ref is.
        actual: Option<ObjectId>,
    },
    /// The ref could not be moved.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn restoration(failure: Option<&RefError>) -> &'static str {
    if failure.is_some() { "not put back" } else { "put back" }
}

fn shown(id: Option<ObjectId>) -> String {
    id.map_or_else(|| "nothing".to_owned(), |id| id.to_string())
}

impl Onto<'_> {
    /// The full name of the ref.
    pub fn reference(&self) -> String {
        match self {
            Self::Target(branch) => format!("refs/heads/{branch}"),
            Self::Staging { branch, .. } => format!("refs/heads/{}", staging_branch(branch)),
            Self::Sighting(name) => (*name).to_owned(),
        }
    }
}

impl Landed {
    /// The ref that moved.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Where it was before; none where it was made.
    pub fn before(&self) -> Option<ObjectId> {
        self.before
    }

    /// Where it is now.
    pub fn commit(&self) -> ObjectId {
        self.commit
    }

    /// Whether it moved, or was there already because an earlier landing was not heard of.
    pub fn effect(&self) -> Effect {
        self.effect
    }
}

/// Lands what was gated.
pub fn land(
    store: &Store,
    fence: &Fence,
    gated: &Gated,
    onto: Onto<'_>,
    log: Log<'_>,
) -> Result<Landed, LandError> {
    land_as(store, fence, gated, onto, log, gated.candidate.commit)
}

/// Lands `written`, which is the gated commit unless a test wants to see that another is caught.
pub(crate) fn land_as(
    store: &Store,
    fence: &Fence,
    gated: &Gated,
    onto: Onto<'_>,
    log: Log<'_>,
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
        return Ok(landed(Some(candidate.base), Effect::Recognised));
    }
    require_base(store, gated, onto, before)?;
    require_nobody_there(store, &reference)?;
    store.sync_commits(candidate.base, candidate.commit)?;
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
    Ok(landed(before, Effect::Made))
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
        // The staging branch is made with its first landing.
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

/// Looks at what is there now, through a repository that was opened after the landing.
fn prove(
    store: &Store,
    fence: &Fence,
    gated: &Gated,
    reference: &str,
    before: Option<ObjectId>,
    written: ObjectId,
    log: Log<'_>,
) -> Result<(), LandError> {
    let anew = store.reopen()?;
    let actual = ref_at(&anew, reference)?;
    let commit = gated.candidate.commit;
    if let Some(other) = actual
        && other != written
        && proof::contains(&anew, other, commit)?
    {
        // Somebody built upon it at once. What landed is in there, and is what is to be proved.
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
    let keep = Move { name: evidence.clone(), from: None, to: Some(written) };
    fence.move_refs(store, &[keep], log)?;
    let back = Move { name: reference.to_owned(), from: Some(written), to: before };
    let restored = fence.move_refs(store, &[back], log).err().map(Box::new);
    Err(LandError::Disproved { reference: reference.to_owned(), disproof, evidence, restored })
}

/// How far a base is from where it was, and whether that is to be followed.
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
    let said = store.git().must("count commits", &args, Vec::new())?;
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
