//! Accept seals what was reviewed.
//!
//! The commit is made again from the base and the patch that Check saw, in the target's object store
//! and without a working tree; it is the same commit that the gates and the reviewer were given.
//! Then the ref, then `seal.json`, and only then may the decision be recorded: whoever dies between
//! finds the same seal again.

use std::time::{Duration, Instant};

use pdca_integrate::{
    Acceptance, Effect, Fence, Ingredients, Log, ObjectId, RebuildError, RefError, Run, SealError,
    Sealed, Store, StoreError, seal,
};
use pdca_state::{Artifact, Bundle, LoadError, Snapshot, WriteError, sha256_hex};

use crate::admission::{AdmissionError, Held, admit};
use crate::attempt::Tenancy;
use crate::effect::Effects;
use crate::ground;
use crate::site::{Site, TargetChoiceError, TargetSpec};

/// How long another acceptance may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often sealing is tried while others take the fence.
const TRIES: u32 = 5;

/// What became of an acceptance.
#[derive(Debug)]
pub enum Sealing {
    /// There is nothing to seal: no patch, or no target.
    NotNeeded,
    /// The report does not say what was checked, as those of other tools do not.
    Unknown {
        /// What it does not say.
        what: &'static str,
    },
    /// It is sealed.
    Sealed {
        /// The seal.
        sealed: Box<Sealed>,
        /// Whether it was there already.
        effect: Effect,
    },
}

/// When and by whom something is sealed.
#[derive(Debug, Clone, Copy)]
pub struct Hand<'a> {
    /// The name that the seal's ref goes by, where there is no seal yet.
    pub run: &'a Run,
    /// The clock, in seconds since 1970, for the reflog.
    pub seconds: i64,
}

/// Why nothing was sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealingError {
    /// It is not known where the change belongs.
    #[error(transparent)]
    Target(#[from] TargetChoiceError),
    /// `patch.diff` is not what Check saw.
    #[error("patch.diff is not what Check saw")]
    PatchChanged {
        /// SHA-256 of what Check saw.
        checked: String,
        /// SHA-256 of what is there.
        found: String,
    },
    /// The base that Check saw is no commit of the target.
    #[error("the report names the base {given:?}, which is no commit id")]
    Base {
        /// What it says.
        given: String,
    },
    /// The commit that comes of base and patch is not the one in the checkout that Check saw.
    #[error("base and patch make {made}, and Check saw {checked}")]
    OtherCommit {
        /// What they make.
        made: ObjectId,
        /// What the checkout was at.
        checked: String,
    },
    /// The patch does not apply to the base that Check saw.
    #[error(transparent)]
    Rebuild(#[from] RebuildError),
    /// It could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The repository cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody else is sealing.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The bundle cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The bundle cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Site {
    /// The object store of a target.
    pub fn store(&self, target: &TargetSpec) -> Result<Store, StoreError> {
        Store::open(&target.path, &self.private().join("git").join(&target.name))
    }

    /// Seals a bundle that is about to be accepted. Whoever calls this holds the bundle.
    pub fn seal(
        &self,
        bundle: &Bundle,
        snapshot: &Snapshot,
        hand: Hand<'_>,
        effects: &dyn Effects,
    ) -> Result<Sealing, SealingError> {
        let Some(patch) = bundle.read(Artifact::Patch)?.filter(|patch| !patch.is_empty()) else {
            return Ok(Sealing::NotNeeded);
        };
        let target = match snapshot.authored_brief() {
            Some(brief) => self.target_of(brief)?,
            None => None,
        };
        let Some(target) = target else {
            return Ok(Sealing::NotNeeded);
        };
        let report = snapshot.gates.as_ref();
        let checked = report.and_then(|report| report.patch_digest.as_deref());
        let Some(checked) = checked.map(|digest| digest.trim_start_matches("sha256:")) else {
            return Ok(Sealing::Unknown { what: "which patch was checked" });
        };
        let Some(base) = report.and_then(|report| report.base.as_deref()) else {
            return Ok(Sealing::Unknown { what: "on which commit" });
        };
        let found = sha256_hex(&patch);
        if found != checked {
            return Err(SealingError::PatchChanged { checked: checked.to_owned(), found });
        }
        let base = ObjectId::from_hex(base.as_bytes())
            .map_err(|_| SealingError::Base { given: base.to_owned() })?;
        let _turn = self.turn_to_seal()?;
        let store = self.store(&target)?;
        let head = store.rebuild(&Ingredients {
            base,
            patch: &patch,
            message: &ground::message(bundle),
            name: ground::COMMITTER.name,
            email: ground::COMMITTER.email,
            seconds: ground::COMMITTER.seconds,
        })?;
        self.require_checked(bundle, &target, &store, head, (base, checked))?;
        let known: Vec<Sealed> = Sealed::all(&store)?.into_iter().flatten().collect();
        let is_it = |sealed: &&Sealed| {
            let record = sealed.record();
            (&record.id, record.head, record.base) == (bundle.id(), head, base)
                && record.patch_digest == checked
        };
        let earlier = known.iter().find(is_it).map(Sealed::record);
        let last = known.iter().map(|sealed| sealed.record().completion_order).max();
        let gate_digest = self.rows.digest();
        let accepted = Acceptance {
            run: earlier.map_or(hand.run, |record| &record.run),
            id: bundle.id(),
            base,
            head,
            patch: &patch,
            reviewed_head: head,
            reviewed_patch: checked,
            gate_digest: earlier.map_or(&gate_digest, |record| &record.gate_digest),
            completion_order: earlier
                .map_or(last.unwrap_or(0) + 1, |record| record.completion_order),
        };
        let log = Log { message: "pdca: accept", seconds: hand.seconds };
        let (sealed, effect) =
            effects.perform("seal-ref", || seal_under_fence(&store, &accepted, log))?;
        effects.perform("seal.json", || bundle.publish(Artifact::Seal, &sealed.to_json()))?;
        Ok(Sealing::Sealed { sealed: Box::new(sealed), effect })
    }

    /// The checkout that Check left, where it is still there, must have the same tree. Its commit may be
    /// another: a fix is a commit of its own there.
    fn require_checked(
        &self,
        bundle: &Bundle,
        target: &TargetSpec,
        store: &Store,
        made: ObjectId,
        (base, patch): (ObjectId, &str),
    ) -> Result<(), SealingError> {
        let name = format!("{}-{}-{base}-{}", self.mark(), bundle.id(), &patch[..16]);
        let notes = self.lent().notes().unwrap_or_default();
        let mut left = notes.iter().filter(|note| note.target == target.name).filter_map(|note| {
            let left = Tenancy::from_note(&note.text).filter(|left| left.job == name)?;
            Some((note.slot, left.head?))
        });
        let same = made.to_string();
        let Some((slot, checked)) = left.find(|(_, head)| *head != same) else {
            return Ok(());
        };
        let other = || SealingError::OtherCommit { made, checked: checked.clone() };
        let head = ObjectId::from_hex(checked.as_bytes()).map_err(|_| other())?;
        let lane = self.lanes.root.join(format!("lane-{slot}")).join(&target.name);
        store.import(&lane, base, head)?;
        if store.tree_of(head)? == store.tree_of(made)? { Ok(()) } else { Err(other()) }
    }

    /// One acceptance at a time, so that the order of completion has no two alike.
    fn turn_to_seal(&self) -> Result<Held, AdmissionError> {
        let path = self.private().join("sealing.lock");
        let begun = Instant::now();
        loop {
            match admit(&path, "the order of acceptance", &self.holder) {
                Err(AdmissionError::Taken { .. }) if begun.elapsed() < PATIENCE => {
                    std::thread::park_timeout(Duration::from_millis(10));
                }
                answer => return answer,
            }
        }
    }
}

/// Seals under the fence as it is: a new ref takes nothing from a driver that is at work.
fn seal_under_fence(
    store: &Store,
    accepted: &Acceptance<'_>,
    log: Log<'_>,
) -> Result<(Sealed, Effect), SealError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let fence = match Fence::current(store)? {
            Some(fence) => fence,
            None => Fence::take(store, accepted.run, 0)?,
        };
        match seal(store, &fence, accepted, log) {
            Err(SealError::Ref(RefError::Fenced { .. })) if tries < TRIES => {}
            answer => return answer,
        }
    }
}
