//! Accept seals what was reviewed.
//!
//! What is sealed are the commits that Do left and Check saw. Where those are not to be had any more, one
//! commit is made from the base and the patch, in the target's object store and without a working tree.
//! Then the ref, then `seal.json`, and only then may the decision be recorded: whoever dies between
//! finds the same seal again.
//!
//! A result that stands on others can be accepted only after them, and not at all while it is stale.

use std::time::Duration;

use pdca_dag::foundation::Stale;
use pdca_integrate::{
    Acceptance, Effect, Fence, Ingredients, Log, ObjectId, RebuildError, RefError, Run, SealError,
    Sealed, Signer, Store, StoreError, Support,
};
use pdca_journal::Effects;
use pdca_state::{
    Artifact, Bundle, BundleId, LoadError, SignoffError, Snapshot, Summary, WriteError,
    require_accepted, sha256_hex,
};

use crate::admission::AdmissionError;
use crate::attempt::Attempt;
use crate::authorship::Author;
use crate::base::{BaseError, checked_change, landscape_of, stale_sentence};
use crate::commits::{author_for, message_for};
use crate::config::{TargetChoiceError, TargetSpec, WorkspaceConfig};
use crate::protected::protected_paths;

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

/// The decision that something is sealed by.
#[derive(Debug, Clone, Copy)]
pub struct Hand<'a> {
    /// The summary that records the acceptance. Who signed is read from it, and nothing is sealed
    /// that accepting would refuse.
    pub summary: &'a str,
}

/// Why nothing was sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealingError {
    /// It is not known where the change belongs.
    #[error(transparent)]
    Target(#[from] TargetChoiceError),
    /// The summary records no acceptance that the rules of accepting allow.
    #[error("it was not accepted as the rules of sign-off ask")]
    NotAccepted(#[source] SignoffError),
    /// The change writes protected paths, and no settled item of §6 says so.
    #[error("no settled item of §6 names the protected path `{}`", .paths.join("`, `"))]
    Protected {
        /// The paths.
        paths: Vec<String>,
    },
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
    /// It stands on results that are not accepted.
    #[error("it stands on {}, which must be accepted first", names(on))]
    AcceptFirst {
        /// Those, in the order in which to accept them.
        on: Vec<BundleId>,
    },
    /// What it stands on changed since it was checked.
    #[error("it is stale: {}", stale_sentence(stale))]
    Stale {
        /// What changed.
        stale: Stale,
    },
    /// What it stands on cannot be looked at.
    #[error(transparent)]
    Foundation(#[from] BaseError),
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

impl WorkspaceConfig {
    /// The object store of a target.
    pub fn store(&self, target: &TargetSpec) -> Result<Store, StoreError> {
        self.queue().store(target)
    }
}

/// Seals a bundle that is about to be accepted. Whoever calls this holds the bundle.
pub fn seal(
    config: &WorkspaceConfig,
    bundle: &Bundle,
    snapshot: &Snapshot,
    hand: Hand<'_>,
    effects: &dyn Effects,
) -> Result<Sealing, SealingError> {
    let Some(patch) = bundle.read(Artifact::Patch)?.filter(|patch| !patch.is_empty()) else {
        return Ok(Sealing::NotNeeded);
    };
    let target = match snapshot.authored_brief() {
        Some(brief) => config.target_of(brief)?,
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
    let accepted = require_accepted(hand.summary, report).map_err(SealingError::NotAccepted)?;
    require_seen(config, hand.summary, &patch)?;
    let brief = sha256_hex(&bundle.read(Artifact::Brief)?.unwrap_or_default());
    let _turn = config.locks().sealing(PATIENCE)?;
    let store = config.store(&target)?;
    let attempt = config.attempts().load(bundle.id()).map_err(BaseError::Attempt)?;
    let based = base.to_string();
    let attempt =
        attempt.filter(|known| known.iterations == snapshot.iterations && known.base == based);
    let head = match checked_change(config, &store, bundle, snapshot)? {
        Some((known, head, _)) if known.base == based => head,
        Some(_) | None => rebuilt(config, &store, &target, bundle, (base, &patch))?,
    };
    require_checked(config, bundle, &target, &store, head, (base, checked))?;
    let known: Vec<Sealed> = Sealed::all(&store)?.into_iter().flatten().collect();
    let is_it = |sealed: &&Sealed| {
        let record = sealed.record();
        (&record.id, record.head, record.base) == (bundle.id(), head, base)
            && record.patch_digest == checked
            && record.brief_digest.as_ref().is_none_or(|sealed| *sealed == brief)
            && record.overrides == accepted.overrides
    };
    let earlier = known.iter().find(is_it).map(Sealed::record);
    let stands_on = match earlier {
        Some(record) => record.stands_on.clone(),
        None => supports(config, &store, &target, bundle, attempt.as_ref())?,
    };
    let last = known.iter().map(|sealed| sealed.record().completion_order).max();
    let gate_digest = config.fingerprint();
    let user = pdca_lanes::Target::open(&target.name, &target.path).ok();
    let user = user.as_ref().and_then(pdca_lanes::Target::user);
    let signer = earlier.and_then(|record| record.accepted.clone());
    let signer = signer.unwrap_or_else(|| signer_for(config, &accepted.by, user));
    let trailers = match earlier {
        Some(record) => record.trailers.clone(),
        None => config.integrate.trailers_for(bundle.id(), &signer),
    };
    let tip = attempt.as_ref().and_then(|known| known.tip.as_deref());
    let tip = tip.and_then(|tip| ObjectId::from_hex(tip.as_bytes()).ok());
    let name = name_of(bundle.id(), (base, head), (checked, &brief), &signer);
    let brief = earlier.map_or(Some(&brief), |record| record.brief_digest.as_ref());
    let accepted = Acceptance {
        run: earlier.map_or(&name, |record| &record.run),
        id: bundle.id(),
        base,
        head,
        patch: &patch,
        reviewed_head: head,
        reviewed_patch: checked,
        gate_digest: earlier.map_or(&gate_digest, |record| &record.gate_digest),
        completion_order: earlier.map_or(last.unwrap_or(0) + 1, |record| record.completion_order),
        tip: earlier.map_or(tip, |record| record.tip),
        stands_on: &stands_on,
        by: earlier.map_or(Some(&signer), |record| record.accepted.as_ref()),
        trailers: &trailers,
        brief: brief.map(String::as_str),
        overrides: &accepted.overrides,
    };
    let log = Log { message: "pdca: accept", seconds: config.dates.now() };
    let (sealed, effect) =
        effects.perform("seal-ref", || seal_under_fence(&store, &accepted, log))?;
    effects.perform("seal.json", || bundle.publish(Artifact::Seal, &sealed.to_json()))?;
    Ok(Sealing::Sealed { sealed: Box::new(sealed), effect })
}

/// Every protected path of the change must be named by an item of §6 that a person settled.
fn require_seen(config: &WorkspaceConfig, summary: &str, patch: &[u8]) -> Result<(), SealingError> {
    let summary = Summary::parse(summary);
    let is_named = |path: &String| {
        let named = format!("`{}`", path.escape_debug());
        summary.cleared_items().iter().any(|item| item.contains(&named))
    };
    let mut paths = protected_paths(&config.rows, patch);
    paths.retain(|path| !is_named(path));
    if paths.is_empty() { Ok(()) } else { Err(SealingError::Protected { paths }) }
}

/// One commit of base and patch, for a change whose own commits are not to be had.
fn rebuilt(
    config: &WorkspaceConfig,
    store: &Store,
    target: &TargetSpec,
    bundle: &Bundle,
    (base, patch): (ObjectId, &[u8]),
) -> Result<ObjectId, SealingError> {
    let user = pdca_lanes::Target::open(&target.name, &target.path).ok();
    let user = user.map_or_else(Author::nobody, |target| author_for(config, &target));
    let made = config.attempts().load(bundle.id()).map_err(BaseError::Attempt)?;
    let made = made.and_then(|known| known.made);
    // Without a record of when the work ended, the base is as close as can be told.
    let seconds = made.as_ref().map(|made| made.seconds);
    let seconds = seconds.map_or_else(|| store.committed_at(base), Ok)?;
    Ok(store.rebuild(&Ingredients {
        base,
        patch,
        message: &message_for(bundle),
        name: made.as_ref().map_or(&user.name, |made| &made.name),
        email: made.as_ref().map_or(&user.email, |made| &made.email),
        seconds,
    })?)
}

/// What a change stands on, each with the digest of its seal.
fn supports(
    config: &WorkspaceConfig,
    store: &Store,
    target: &TargetSpec,
    bundle: &Bundle,
    attempt: Option<&Attempt>,
) -> Result<Vec<Support>, SealingError> {
    let Some(attempt) = attempt.filter(|attempt| !attempt.stands_on.is_empty()) else {
        return Ok(Vec::new());
    };
    let landscape = landscape_of(config, store, target, &attempt.branch)?;
    if let Some(stale) = landscape.stale(bundle.id()) {
        return Err(SealingError::Stale { stale: stale.clone() });
    }
    let open = landscape.results.unsigned_below(bundle.id());
    if !open.is_empty() {
        return Err(SealingError::AcceptFirst { on: open.into_iter().cloned().collect() });
    }
    let seal = |support: &Support| Support {
        seal: landscape.seal_of(&support.id).or_else(|| support.seal.clone()),
        ..support.clone()
    };
    Ok(attempt.stands_on.iter().map(seal).collect())
}

/// Who is named as committer of what lands: the person who accepts, with the address that is known.
fn signer_for(config: &WorkspaceConfig, by: &str, user: Option<(String, String)>) -> Signer {
    let seconds = config.dates.now();
    let known = config.author.clone().into_iter();
    let known = known.chain(user.map(|(name, email)| Author { name, email }));
    let known: Vec<Author> = known.collect();
    let typed = by.parse::<Author>().ok();
    let named = || known.iter().find(|author| author.name == by.trim()).cloned();
    let author = typed.or_else(named).or_else(|| known.first().cloned());
    let Author { name, email } = author.unwrap_or_else(Author::nobody);
    Signer { name, email, seconds }
}

/// The checkout that Check left, where it is still there, must have the same tree. Its commit may be
/// another: a fix is a commit of its own there.
fn require_checked(
    config: &WorkspaceConfig,
    bundle: &Bundle,
    target: &TargetSpec,
    store: &Store,
    made: ObjectId,
    (base, patch): (ObjectId, &str),
) -> Result<(), SealingError> {
    let name = format!("{}-{}-{base}-{}", config.dirs.mark(), bundle.id(), &patch[..16]);
    let notes = config.lanes.lent().notes().unwrap_or_default();
    let mut left = notes.iter().filter(|note| note.target == target.name).filter_map(|note| {
        let left = pdca_lanes::OwnerNote::from_note(&note.text).filter(|left| left.job == name)?;
        Some((note.slot, left.head?))
    });
    let same = made.to_string();
    let Some((slot, checked)) = left.find(|(_, head)| *head != same) else {
        return Ok(());
    };
    let other = || SealingError::OtherCommit { made, checked: checked.clone() };
    let head = ObjectId::from_hex(checked.as_bytes()).map_err(|_| other())?;
    let lane = config.lanes.root.join(format!("lane-{slot}")).join(&target.name);
    store.import(&lane, base, head)?;
    if store.tree_of(head)? == store.tree_of(made)? { Ok(()) } else { Err(other()) }
}

/// The name that a seal's ref goes by. It follows from what is sealed, so that the same acceptance is the
/// same seal everywhere, and what lands has the same ids.
fn name_of(
    id: &BundleId,
    (base, head): (ObjectId, ObjectId),
    (patch, brief): (&str, &str),
    by: &Signer,
) -> Run {
    let Signer { name, email, seconds } = by;
    let text = format!("{id}\0{base}\0{head}\0{patch}\0{name}\0{email}\0{seconds}\0{brief}");
    let name = format!("s{:.25}", sha256_hex(text.as_bytes()));
    name.parse().expect("because it is letters and digits")
}

fn names(ids: &[BundleId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
        match pdca_integrate::seal(store, &fence, accepted, log) {
            Err(SealError::Ref(RefError::Fenced { .. })) if tries < TRIES => {}
            answer => return answer,
        }
    }
}
