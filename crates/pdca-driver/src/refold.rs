//! Folds a stale result onto its present base, and has it checked again without a builder.
//!
//! # Protocol
//! 1. *Fold*: the change is folded, commit by commit, onto the base of a new attempt, in the object store.
//!    If that conflicts, a builder has to do the work again.
//! 2. *Record*: the next attempt is recorded with its base, its commits and the reason, and a ref keeps
//!    the commits. Until here the bundle is untouched.
//! 3. *Archive*: the stale attempt is moved away, and the reason goes into the brief.
//! 4. *Do* finds the recorded commits under the number of the archive and takes them in place of calling
//!    the builder; Check judges them as any other change.
//!
//! A driver that dies between 2 and 3 leaves a record that is one ahead of the bundle: the next one continues
//! with 3. One that dies in 3 or 4 leaves the traces of any other archive or attempt.

use std::collections::BTreeMap;

use pdca_integrate::{
    Acceptance, FoldFate, FoldPlan, MergeEngine, PlanEntry, Recorded, Sealed, Store, Strategy, fold,
};
use pdca_state::{Artifact, Brief, Bundle, BundleId, Snapshot, State, archive_stale, sha256_hex};

use crate::attempt::{Attempt, ChangeCommit};
use crate::base::{BaseError, Landscape, TargetTip, base_of, landscape_of, stale_sentence};
use crate::check::require_patch;
use crate::checkout::{CheckoutError, claim_checkout};
use crate::commits::{commit_id, keep_ref};
use crate::config::{TargetSpec, WorkspaceConfig};
use crate::run_bundle::{BeatError, Driver};
use pdca_journal::events::EventKind;

/// The outcome of folding a stale result.
enum Refolded {
    /// It applies to the new base.
    Onto(Box<Attempt>),
    /// It does not apply: a builder has to do it again.
    Conflict(String),
    /// The new base cannot be computed yet.
    Waits,
}

/// Returns a stale result to the beginning of Check, or to Do if it no longer applies. Returns
/// whether the result was stale. The caller holds the bundle.
pub(crate) fn mend(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<bool, BeatError> {
    match snapshot.state {
        State::AwaitingSignoff | State::Complete => {}
        State::Unplanned
        | State::Resolved
        | State::Planned
        | State::Built
        | State::Checked
        | State::Iterate(_)
        | State::Discontinued => return Ok(false),
    }
    let attempts = cx.config.attempts();
    let Some(known) = attempts.load(bundle.id()).map_err(BeatError::Own)? else {
        return Ok(false);
    };
    // The driver died between recording and archiving: go on with the archive, and do not fold
    // again.
    if let Some(said) = known.refolded.clone()
        && known.iterations > snapshot.iterations
    {
        put_away_stale(cx, bundle, &said)?;
        return Ok(true);
    }
    // What stands on the branch alone cannot become stale, and needs no look at other bundles.
    if known.iterations != snapshot.iterations || known.stands_on.is_empty() {
        return Ok(false);
    }
    let Some(spec) = cx.config.spec_of(&known.target) else { return Ok(false) };
    let store = cx.config.store(spec).map_err(CheckoutError::Objects)?;
    let landscape = landscape_of(cx.config, &store, spec, &known.branch)?;
    let Some(stale) = landscape.stale(bundle.id()) else { return Ok(false) };
    let said = stale_sentence(stale);
    match refold(cx, &store, spec, bundle, &known, &said)? {
        Refolded::Waits => return Ok(false),
        Refolded::Onto(next) => {
            let commits = (commit_id(&next.base)?, commit_id(&next.changes[0].head)?);
            // The ref before the record: a gc must not collect the commits that Do is to take.
            keep_ref(cx, &store, bundle.id(), commits)?;
            let note = || attempts.store(bundle.id(), &next);
            cx.effects.perform("attempt", note).map_err(CheckoutError::Record)?;
            cx.tell(bundle, EventKind::integration(format!("stale: {said}; refolded")));
            put_away_stale(cx, bundle, &said)?;
        }
        Refolded::Conflict(why) => {
            let said = format!("{said}; {why}");
            cx.tell(bundle, EventKind::integration(format!("stale: {said}")));
            put_away_stale(cx, bundle, &said)?;
        }
    }
    Ok(true)
}

/// Folds the change of an attempt onto the base that it would have now.
fn refold(
    cx: &Driver<'_>,
    store: &Store,
    spec: &TargetSpec,
    bundle: &Bundle,
    known: &Attempt,
    said: &str,
) -> Result<Refolded, BeatError> {
    let brief_text = bundle.read(Artifact::Brief)?.unwrap_or_default();
    let brief = Brief::parse(&String::from_utf8_lossy(&brief_text));
    let tip = store.branch_tip(&known.branch).map_err(CheckoutError::Objects)?;
    let Some(tip) = tip else { return Ok(Refolded::Waits) };
    let at = TargetTip { spec, branch: &known.branch, tip };
    let base = match base_of(cx.config, store, bundle, &brief, at) {
        Ok(base) => base,
        // A prerequisite may get another result yet. Until then a person sees the stale one, which is more than
        // nothing.
        Err(BaseError::Lacks { .. } | BaseError::Conflict { .. }) => {
            return Ok(Refolded::Waits);
        }
        Err(error) => return Err(error.into()),
    };
    let patch = require_patch(bundle)?;
    let Some(head) = known.head_of(&sha256_hex(&patch)) else {
        return Ok(Refolded::Conflict("its commits no longer exist".to_owned()));
    };
    let (old, head) = (commit_id(&known.base)?, commit_id(head)?);
    let run = "refold".parse().expect("because it is letters only");
    let digest = sha256_hex(&patch);
    let change = Sealed::unsigned(
        store,
        &Acceptance {
            run: &run,
            id: bundle.id(),
            base: old,
            head,
            patch: &patch,
            reviewed_head: head,
            reviewed_patch: &digest,
            gate_digest: "refold",
            completion_order: 0,
            tip: None,
            stands_on: &[],
            by: None,
            trailers: &[],
            brief: None,
            overrides: &[],
        },
    );
    let change = change
        .map_err(|source| BaseError::Seal { id: bundle.id().clone(), source: Box::new(source) })?;
    let entries = [PlanEntry::new(change, [])];
    // Pick commit by commit; a merge would bring the old base along.
    let plan = FoldPlan::new(base.commit, Strategy::RebaseFf, entries);
    let plan = plan.map_err(BaseError::from)?.keeping_messages();
    let drivers = cx.config.integrate.drivers().map_err(BaseError::from)?;
    let mut engine = MergeEngine::new(store, drivers);
    let folded = fold(&mut engine, &plan, &Recorded::default(), &mut |_| Ok(()));
    let folded = folded.map_err(BaseError::from)?;
    let fate = folded.bundles.into_iter().next().map(|bundle| bundle.fate);
    Ok(match fate {
        Some(FoldFate::Applied { commits }) => {
            let Some(last) = commits.last() else { return Ok(Refolded::Waits) };
            // The digest of the patch is known once a lane has computed the difference.
            let head = last.applied.to_string();
            let changes = vec![ChangeCommit { patch: String::new(), head }];
            let iterations = next_iteration(bundle)?;
            Refolded::Onto(Box::new(Attempt {
                iterations,
                brief: sha256_hex(&brief_text),
                target: known.target.clone(),
                branch: known.branch.clone(),
                base: base.commit.to_string(),
                tip: Some(base.tip.to_string()),
                stands_on: base.stands_on,
                // The same signer and time, so that a refold that is repeated makes the same
                // commits.
                made: known.made.clone(),
                changes,
                asked: None,
                refolded: Some(said.to_owned()),
                acceptance: None,
            }))
        }
        // The fold leaves no commit, and an empty patch cannot be checked: it goes back to Do with
        // the reason.
        Some(FoldFate::AlreadyPresent { .. }) | None => {
            Refolded::Conflict("what it does is in the new base already".to_owned())
        }
        Some(FoldFate::Conflict { conflicts, .. }) => {
            let files = conflicts.iter().map(|conflict| conflict.path.to_string());
            let files = files.collect::<Vec<_>>().join(", ");
            Refolded::Conflict(format!("its change conflicts with the new base in {files}"))
        }
        Some(FoldFate::Unsealed { why }) => Refolded::Conflict(why),
        Some(FoldFate::Held { .. }) => Refolded::Waits,
        Some(FoldFate::Failed { why }) => {
            return Err(BaseError::Unfoldable { id: bundle.id().clone(), why }.into());
        }
    })
}

fn next_iteration(bundle: &Bundle) -> Result<u32, BeatError> {
    // The archive takes the largest number plus one; planning the archive changes nothing.
    Ok(archive_stale(bundle, "")?.number)
}

fn put_away_stale(cx: &Driver<'_>, bundle: &Bundle, said: &str) -> Result<(), BeatError> {
    for step in archive_stale(bundle, said)?.steps {
        cx.effects.perform(step.name(), || step.apply())?;
    }
    Ok(())
}

/// Publishes the commits of a refolded change as the result of Do, if there are any for this
/// attempt. Returns whether there were.
pub(crate) fn take_refolded(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<bool, BeatError> {
    let known = cx.config.attempts().load(bundle.id()).map_err(BeatError::Own)?;
    let is_it =
        |known: &Attempt| known.refolded.is_some() && known.iterations == snapshot.iterations;
    let Some(known) = known.filter(is_it) else { return Ok(false) };
    let Some(change) = known.changes.last() else { return Ok(false) };
    // The patch is the difference as a lane computes it, so that it has the same bytes as a
    // builder's.
    let Some(checkout) = claim_checkout(cx, bundle, snapshot, true)? else { return Ok(false) };
    let head = change.head.clone();
    let patch = checkout.lane.diff(&known.base, &head).map_err(CheckoutError::from)?;
    if patch.is_empty() {
        return Ok(false);
    }
    let change = ChangeCommit { patch: sha256_hex(&patch), head };
    // Before the patch appears: a driver that finds a patch looks for its commits by the digest.
    let note =
        || cx.config.attempts().update(bundle.id(), |attempt| attempt.changes = vec![change]);
    cx.effects.perform("attempt", note).map_err(CheckoutError::Record)?;
    if let Some(notes) = bundle.attempts().read(snapshot.iterations, Artifact::BuildNotes)? {
        cx.publish(bundle, Artifact::BuildNotes, &notes)?;
    }
    cx.set_aside_verdicts(bundle, snapshot)?;
    cx.publish(bundle, Artifact::Patch, &patch)?;
    Ok(true)
}

/// The reason a result is stale, and the prerequisite that it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staleness {
    /// One sentence.
    pub why: String,
    /// The prerequisite that needs a result first; `None` if the next run refolds it.
    pub waits_for: Option<BundleId>,
}

/// Returns the bundles whose results are stale. Unreadable ones are left out; their errors are reported when they
/// are run.
pub fn stale_results(config: &WorkspaceConfig) -> BTreeMap<BundleId, Staleness> {
    let mut fronts: BTreeMap<(String, String), Vec<BundleId>> = BTreeMap::new();
    for id in config.attempts().list() {
        let Ok(Some(known)) = config.attempts().load(&id) else { continue };
        // The record of a bundle that was put away says nothing any more.
        if !known.stands_on.is_empty() && config.dirs.bundles.bundle(&id).dir().is_dir() {
            fronts.entry((known.target, known.branch)).or_default().push(id);
        }
    }
    let mut found = BTreeMap::new();
    for ((target, branch), ids) in fronts {
        let Some(spec) = config.spec_of(&target) else { continue };
        let Ok(store) = config.store_to_read(spec) else { continue };
        let Ok(landscape) = landscape_of(config, &store, spec, &branch) else { continue };
        for id in ids {
            if let Some(stale) = landscape.stale(&id) {
                let why = stale_sentence(stale);
                let waits_for = lacking(config, &landscape, &id);
                found.insert(id, Staleness { why, waits_for });
            }
        }
    }
    found
}

/// Returns the first prerequisite of a bundle that has no usable result.
fn lacking(config: &WorkspaceConfig, landscape: &Landscape, id: &BundleId) -> Option<BundleId> {
    let brief = config.dirs.bundles.bundle(id).read(Artifact::Brief).ok().flatten()?;
    let brief = Brief::parse(&String::from_utf8_lossy(&brief));
    match landscape.foundation_of(id, &brief, config.schedule.speculation()) {
        Ok(_) => None,
        Err(lacks) => lacks.into_iter().next().map(|lack| lack.on),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;
    use pdca_integrate::{ObjectId, Support};

    fn support() -> Support {
        let head = ObjectId::from_hex("a".repeat(40).as_bytes()).unwrap();
        Support { id: "2".parse().unwrap(), head, seal: None }
    }

    fn attempt(iterations: u32) -> Attempt {
        Attempt {
            iterations,
            brief: "b".into(),
            target: "app".into(),
            branch: "main".into(),
            base: "a".repeat(40),
            tip: None,
            stands_on: Vec::new(),
            made: None,
            changes: Vec::new(),
            asked: None,
            refolded: None,
            acceptance: None,
        }
    }

    /// A bundle at its sign-off, with this record of its attempt.
    fn at_sign_off(known: Option<&Attempt>) -> Scene {
        let scene = Scene::planned();
        scene.driver().run_bundle(&scene.bundle()).unwrap();
        scene.effects();
        if let Some(known) = known {
            scene.config.attempts().store(scene.bundle().id(), known).unwrap();
        }
        scene
    }

    fn mended(scene: &Scene) -> bool {
        let bundle = scene.bundle();
        mend(&scene.driver(), &bundle, &bundle.load().unwrap()).unwrap()
    }

    #[test]
    fn a_result_without_a_record_of_its_attempt_is_left_alone() {
        assert!(!mended(&at_sign_off(None)));
    }

    #[test]
    fn a_result_that_stands_on_the_branch_alone_is_never_stale() {
        assert!(!mended(&at_sign_off(Some(&attempt(0)))));
    }

    #[test]
    fn the_record_of_an_earlier_attempt_says_nothing_about_this_one() {
        let earlier = Attempt { stands_on: vec![support()], ..attempt(5) };
        assert!(!mended(&at_sign_off(Some(&earlier))));
    }

    #[test]
    fn a_result_for_a_target_that_is_no_longer_configured_is_left_alone() {
        let known = Attempt { stands_on: vec![support()], ..attempt(0) };
        let scene = at_sign_off(Some(&known));
        assert!(!mended(&scene));
        assert_eq!(scene.effects(), Vec::<&str>::new());
    }

    #[test]
    fn a_driver_that_died_after_the_record_leaves_the_archive_to_the_next_one() {
        let ahead = Attempt { refolded: Some("2 has another result now".into()), ..attempt(1) };
        let scene = at_sign_off(Some(&ahead));
        assert!(mended(&scene));
        let snapshot = scene.bundle().load().unwrap();
        assert_eq!((snapshot.state, snapshot.iterations), (State::Planned, 1));
        let brief = scene.workspace.read("results/issue_7/brief.md");
        assert!(brief.contains("2 has another result now"), "{brief}");
    }

    #[test]
    fn a_bundle_that_has_no_result_yet_is_not_archived_for_a_record_that_is_ahead() {
        let scene = Scene::planned();
        let ahead = Attempt { refolded: Some("why".into()), ..attempt(1) };
        scene.config.attempts().store(scene.bundle().id(), &ahead).unwrap();
        assert!(!mended(&scene));
        assert_eq!(scene.bundle().load().unwrap().state, State::Planned);
    }
}
