//! Seals the reviewed change on acceptance.
//!
//! 1. Take the commits that Do left and Check saw. If they no longer exist, make one
//!    commit from the base and the patch, in the target's object store and without a working tree.
//! 2. Note the name of the seal with the attempt, create its ref, then write `seal.json`.
//! 3. Only then may the caller record the decision, and say so with [`accepted`]. After a crash in between, the noted
//!    seal is taken up again. Without a note a seal is that of an earlier acceptance of the same change, which may have
//!    landed and been reverted: the change gets a seal of its own.
//!
//! A result that stands on others can be accepted only after them, and not at all while it is stale.

use std::io;
use std::time::Duration;

use pdca_dag::foundation::Stale;
use pdca_integrate::{
    Acceptance, Ingredients, ObjectId, RebuildError, ReflogEntry, SealError, Sealed, Signer,
    StepEffect, Store, StoreError, Support, free_seal_name, seal_under_present_fence,
};
use pdca_journal::Effects;
use pdca_state::{
    Artifact, Bundle, BundleId, LoadError, SignoffError, Snapshot, State, Summary, WriteError,
    require_accepted, sha256_hex,
};

use crate::admission::BundleLockError;
use crate::attempt::{Attempt, AttemptAcceptance};
use crate::authorship::Author;
use crate::base::{BaseError, checked_change, landscape_of, stale_sentence};
use crate::commits::{author_for, message_for};
use crate::config::{TargetChoiceError, TargetSpec, WorkspaceConfig};
use crate::protected::protected_paths;

/// The longest wait for another acceptance.
const PATIENCE: Duration = Duration::from_secs(30);

/// The outcome of sealing.
#[derive(Debug)]
pub enum Sealing {
    /// There is nothing to seal: no patch, or no target.
    NotNeeded,
    /// The gate report does not say what was checked, for example because another tool wrote it.
    Unknown {
        /// The missing fact.
        what: &'static str,
    },
    Sealed {
        sealed: Box<Sealed>,
        /// Tells whether the seal already existed.
        effect: StepEffect,
    },
}

/// The decision behind a seal.
#[derive(Debug, Clone, Copy)]
pub struct Hand<'a> {
    /// The summary that records the acceptance. The signer is read from it, and a summary that does not pass the
    /// rules of acceptance is not sealed.
    pub summary: &'a str,
}

/// The reason nothing was sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealingError {
    /// The target of the change cannot be determined.
    #[error(transparent)]
    Target(#[from] TargetChoiceError),
    /// The summary records no acceptance that passes the rules.
    #[error("the sign-off does not pass the rules of acceptance")]
    NotAccepted(#[source] SignoffError),
    /// The change writes protected paths that no settled item of §6 names.
    #[error("no settled item of §6 names the protected path `{}`", .paths.join("`, `"))]
    Protected { paths: Vec<String> },
    /// `patch.diff` was changed after Check.
    #[error("patch.diff is not what Check saw")]
    PatchChanged {
        /// SHA-256 of the checked patch.
        checked: String,
        /// SHA-256 of the present patch.
        found: String,
    },
    /// The brief was edited after Check, and the sign-off gives no reason.
    #[error("the brief is not the one that Check began with, and the sign-off gives no reason")]
    BriefChanged,
    /// The base in the gate report is no commit id.
    #[error("the report names the base {given:?}, which is no commit id")]
    Base { given: String },
    /// Base and patch give another commit than the one that Check saw in its checkout.
    #[error("base and patch make {made}, and Check saw {checked}")]
    OtherCommit {
        made: ObjectId,
        /// The head of the checkout.
        checked: String,
    },
    /// It stands on results that are not accepted.
    #[error("it stands on {}, which must be accepted first", names(on))]
    AcceptFirst {
        /// The results, in the order in which to accept them.
        on: Vec<BundleId>,
    },
    /// A result that it stands on changed after Check.
    #[error("it is stale: {}", stale_sentence(stale))]
    Stale { stale: Stale },
    /// The results that it stands on cannot be read.
    #[error(transparent)]
    Foundation(#[from] BaseError),
    /// The patch does not apply to its base.
    #[error(transparent)]
    Rebuild(#[from] RebuildError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another acceptance is in progress.
    #[error(transparent)]
    Admission(#[from] BundleLockError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl WorkspaceConfig {
    pub fn store(&self, target: &TargetSpec) -> Result<Store, StoreError> {
        self.queue().store(target)
    }

    /// Opens the repository of a target to look at it: git is not started before something is merged or written.
    pub fn store_to_read(&self, target: &TargetSpec) -> Result<Store, StoreError> {
        self.queue().store_to_read(target)
    }
}

/// Seals a bundle that is about to be accepted. The caller holds the bundle.
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
    let checked_brief = report.and_then(|report| report.brief_digest.as_deref());
    let is_edited = checked_brief.is_some_and(|seen| seen.trim_start_matches("sha256:") != brief);
    if is_edited && !has_note(hand.summary) {
        return Err(SealingError::BriefChanged);
    }
    // From here on, because the completion order is the largest known one plus one.
    let _turn = config.locks().sealing(PATIENCE)?;
    let store = config.store(&target)?;
    let attempt = config.attempts().load(bundle.id()).map_err(BaseError::Attempt)?;
    let based = base.to_string();
    let attempt =
        // The report names the base that was checked. A record of another base is of another
        // attempt.
        attempt.filter(|known| known.iterations == snapshot.iterations && known.base == based);
    let head = match checked_change(config, &store, bundle, snapshot)? {
        Some((known, head, _)) if known.base == based => head,
        Some(_) | None => rebuilt(config, &store, &target, bundle, (base, &patch))?,
    };
    require_checked(config, bundle, &target, &store, head, (base, checked))?;
    let known: Vec<Sealed> = Sealed::all(&store)?.into_iter().flatten().collect();
    // A seal of exactly this acceptance is there if a driver died before `seal.json` or the
    // sign-off was written. All of its fields are taken over below, so that the seal gets the same
    // bytes.
    let begun = attempt.as_ref().and_then(|attempt| attempt.acceptance.as_ref());
    let begun = begun.filter(|begun| !begun.is_recorded);
    let is_it = |sealed: &&Sealed| {
        let record = sealed.record();
        begun.is_some_and(|begun| begun.seal == record.run.as_str())
            && (&record.id, record.head, record.base) == (bundle.id(), head, base)
            && record.patch_digest == checked
            // Seals of earlier versions have no digest of the brief.
            && record.brief_digest.as_ref().is_none_or(|sealed| *sealed == brief)
            && record.overrides == accepted.overrides
    };
    let earlier = known.iter().find(is_it).map(Sealed::record);
    let stands_on = match earlier {
        Some(record) => record.stands_on.clone(),
        None => supports(config, &store, &target, bundle, attempt.as_ref())?,
    };
    let last = known.iter().map(|sealed| sealed.record().completion_order).max();
    let gate_digest = config.gates().fingerprint();
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
    let name = free_seal_name(&known, bundle.id(), (base, head), (checked, &brief), &signer);
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
    begin_acceptance(config, &accepted, effects).map_err(BaseError::Attempt)?;
    let log = ReflogEntry { message: "pdca: accept", seconds: config.dates.now() };
    let (sealed, effect) =
        // The ref first: it decides. Without it, `seal.json` would be a claim that nothing proves.
        effects.perform("seal-ref", || seal_under_present_fence(&store, &accepted, log))?;
    effects.perform("seal.json", || bundle.publish(Artifact::Seal, &sealed.to_json()))?;
    Ok(Sealing::Sealed { sealed: Box::new(sealed), effect })
}

/// Notes which seal an attempt is about to get, so that an accept that is interrupted is repeated with the same one.
fn begin_acceptance(
    config: &WorkspaceConfig,
    accepted: &Acceptance<'_>,
    effects: &dyn Effects,
) -> io::Result<()> {
    let begun = AttemptAcceptance { seal: accepted.run.to_string(), is_recorded: false };
    effects.perform("attempt", || {
        let attempts = config.attempts();
        attempts.update(accepted.id, |attempt| attempt.acceptance = Some(begun.clone()))
    })
}

/// Notes that the decision about a sealed attempt is recorded: the attempt is over, and its seal is not taken up again.
pub fn accepted(config: &WorkspaceConfig, id: &BundleId, effects: &dyn Effects) -> io::Result<()> {
    effects.perform("attempt", || {
        config.attempts().update(id, |attempt| {
            if let Some(acceptance) = &mut attempt.acceptance {
                acceptance.is_recorded = true;
            }
        })
    })
}

/// Makes up for the last note of accepts that were killed after the decision was recorded: from now on the seals of these
/// bundles may land, or be archived, and are not taken up again by a later acceptance.
///
/// The caller holds the landings.
pub fn finish_acceptances<'b>(
    config: &WorkspaceConfig,
    bundles: impl IntoIterator<Item = &'b Bundle>,
    effects: &dyn Effects,
) -> io::Result<()> {
    for bundle in bundles {
        let attempt = config.attempts().load(bundle.id())?;
        let begun = attempt.and_then(|attempt| Some((attempt.iterations, attempt.acceptance?)));
        let Some((iterations, _)) = begun.filter(|(_, begun)| !begun.is_recorded) else { continue };
        // A bundle that cannot be read lands nothing, and is told by whoever needs it.
        let is_accepted = bundle
            .load()
            .is_ok_and(|found| found.state == State::Complete && found.iterations == iterations);
        if is_accepted {
            accepted(config, bundle.id(), effects)?;
        }
    }
    Ok(())
}

/// Returns an error unless a settled item of §6 names every protected path of the change.
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

fn has_note(summary: &str) -> bool {
    let summary = Summary::parse(summary);
    let note = summary.signoff().and_then(|signed| signed.note);
    note.is_some_and(|note| !note.trim().is_empty())
}

/// Makes one commit from base and patch, for a change whose own commits no longer exist.
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
    // Without a recorded time, the base's is the best available one that is deterministic.
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

/// Returns the results that a change stands on, each with the digest of its seal.
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

/// Returns the committer of the landed commits: the person who accepts, with a known address.
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

/// Compares with the tree in the checkout that Check left, if it still exists. The commit may
/// differ, because a fix is a commit of its own there.
fn require_checked(
    config: &WorkspaceConfig,
    bundle: &Bundle,
    target: &TargetSpec,
    store: &Store,
    made: ObjectId,
    (base, patch): (ObjectId, &str),
) -> Result<(), SealingError> {
    // The name that `Checkout::change_name` gives to a checkout at this change.
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
    // The commit in the lane may never have been taken into the target's store.
    store.import(&lane, base, head)?;
    if store.tree_of(head)? == store.tree_of(made)? { Ok(()) } else { Err(other()) }
}

fn names(ids: &[BundleId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn the_signer_is_who_was_typed_else_who_has_that_name_else_who_is_known() {
        let mut scene = Scene::planned();
        let signed = |config: &WorkspaceConfig, by: &str, user: Option<&str>| {
            let user = user.map(|name| (name.to_owned(), format!("{name}@git")));
            let Signer { name, email, .. } = signer_for(config, by, user);
            format!("{name} <{email}>")
        };
        assert_eq!(signed(&scene.config, "Ada", None), "pdca <pdca@localhost>");
        assert_eq!(signed(&scene.config, "Ada", Some("ci")), "ci <ci@git>");
        scene.config.author = Some("Bot <bot@x>".parse().unwrap());
        assert_eq!(signed(&scene.config, "Eve <eve@y>", Some("ada")), "Eve <eve@y>");
        assert_eq!(signed(&scene.config, "ada", Some("ada")), "ada <ada@git>");
        assert_eq!(signed(&scene.config, "Eve", Some("ada")), "Bot <bot@x>");
    }

    #[test]
    fn a_protected_path_needs_a_settled_item_that_names_it() {
        let scene = Scene::planned();
        let patch = b"diff --git a/pdca.toml b/pdca.toml\nold mode 100644\nnew mode 100755\n";
        let seen = |item: &str| {
            let summary = format!("# Result\n\n## 6. NEEDS-HUMAN\n\n{item}\n\n## 9. Sign-off\n");
            require_seen(&scene.config, &summary, patch).is_ok()
        };
        assert!(seen("- [x] it writes `pdca.toml`"));
        assert!(!seen("- [ ] it writes `pdca.toml`"), "open");
        assert!(!seen("- [x] it writes pdca.toml.bak"), "another path");
        assert!(!seen(""));
    }
}
