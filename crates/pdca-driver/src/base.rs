//! The base of an attempt: the target branch plus the results that the attempt stands on.
//!
//! Only [`base_of`] decides it, for Do, Check, the forecast, `plan`, `why` and the
//! refolding of stale results alike. [`pdca_dag::foundation`] decides which results are needed;
//! they are folded in the object store by the same code that integrates, so the
//! same inputs give the same commit. Nothing is checked out, and no branch moves.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry as Slot};

use pdca_dag::foundation::{
    BundleResult, Finished, FoundationChange, Lacks, LacksWhy, Results, Speculation, Stale,
    Whereabouts,
};
use pdca_dag::{Case, Pattern};
use pdca_integrate::{
    Acceptance, Conflict, EngineError, FoldError, FoldFate, FoldPlan, MergeEngine, ObjectId,
    PlanEntry, PlanError, Recorded, SealError, SealRecord, Sealed, Store, StoreError, Support,
    fold, present_in,
};
use pdca_state::{
    Artifact, Brief, Bundle, BundleId, IdList, LoadError, RootError, Snapshot, State, footprint,
    sha256_hex,
};

use crate::attempt::Attempt;
use crate::config::{TargetSpec, WorkspaceConfig};
use crate::integrate::{HeldBack, HeldReason};
use crate::run_bundle::is_red;

/// The starting point of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptBase {
    /// The tip of the branch.
    pub tip: ObjectId,
    /// The tip with the results folded onto it.
    pub commit: ObjectId,
    /// The results beyond the branch, in fold order.
    pub stands_on: Vec<Support>,
}

/// The reason an attempt cannot start now.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// A prerequisite has no usable result.
    #[error("it waits for {}", list(lacks))]
    Lacks { lacks: Vec<Lacks> },
    /// The results that the attempt needs conflict with each other or with the branch.
    #[error("{id} conflicts with {} in {}", with_or_branch(with), paths(conflicts))]
    Conflict {
        /// The result that could not be merged.
        id: BundleId,
        /// The results it conflicts with; empty for the branch itself.
        with: Vec<BundleId>,
        conflicts: Vec<Conflict>,
    },
    /// The fold of a result failed for a reason other than a conflict.
    #[error("{id} cannot be folded: {why}")]
    Unfoldable { id: BundleId, why: String },
    #[error("the seal of {id} cannot be used")]
    Seal { id: BundleId, source: Box<SealError> },
    #[error("there is no branch {branch}")]
    NoBranch { branch: String },
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("the record of an attempt cannot be read")]
    Attempt(#[source] std::io::Error),
    /// The results depend on each other in a cycle.
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The configured merge drivers cannot be set up.
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn list(lacks: &[Lacks]) -> String {
    let one = |lack: &Lacks| {
        let why = match lack.why {
            LacksWhy::NoResult => "has no result",
            LacksWhy::NotAccepted => "is not accepted",
            LacksWhy::Held => "is held by the last integration",
            LacksWhy::Reverted => "was reverted",
            LacksWhy::Stale => "is stale",
        };
        format!("{}, which {why}", lack.on)
    };
    lacks.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn with_or_branch(with: &[BundleId]) -> String {
    if with.is_empty() {
        return "the branch".to_owned();
    }
    with.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn paths(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(|conflict| conflict.path.to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns a sentence about why a result is stale.
pub(crate) fn stale_sentence(stale: &Stale) -> String {
    let on = &stale.on;
    match stale.how {
        FoundationChange::Gone => format!("{on}, which it stands on, was sent back or given up"),
        FoundationChange::Superseded => format!("{on}, which it stands on, has another result now"),
        FoundationChange::Held => {
            format!("{on}, which it stands on, is held by the last integration")
        }
        FoundationChange::Reverted => format!("{on}, which it stands on, was reverted"),
        FoundationChange::Stale => format!("{on}, which it stands on, is stale itself"),
    }
}

/// The branch of a target and its tip.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetTip<'a> {
    pub(crate) spec: &'a TargetSpec,
    /// The branch, without `refs/heads/` or `refs/remotes/`.
    pub(crate) branch: &'a str,
    pub(crate) tip: ObjectId,
}

/// The results of all bundles of one target branch, with their commits.
#[derive(Debug)]
pub(crate) struct Landscape {
    pub(crate) results: Results,
    sources: BTreeMap<BundleId, Source>,
}

#[derive(Debug)]
struct Source {
    change: Change,
    /// The declared and the actual paths of the change.
    claims: Vec<Pattern>,
    conflicts_with: IdList,
}

#[derive(Debug)]
enum Change {
    Accepted(Box<SealRecord>),
    Checked { attempt: Box<Attempt>, head: ObjectId, patch: Vec<u8> },
}

/// Computes the base of an attempt that starts now.
pub(crate) fn base_of(
    config: &WorkspaceConfig,
    store: &Store,
    bundle: &Bundle,
    brief: &Brief,
    at: TargetTip<'_>,
) -> Result<AttemptBase, BaseError> {
    let landscape = landscape(config, store, at, Some(bundle.id()))?;
    let wanted = landscape
        .foundation_of(bundle.id(), brief, config.schedule.speculation())
        .map_err(|lacks| BaseError::Lacks { lacks })?;
    fold_base(config, store, &landscape, at.tip, &wanted)
}

/// Returns the results that the present attempt stands on, as text; `None` for the branch alone.
pub fn stands_on(config: &WorkspaceConfig, bundle: &Bundle, iterations: u32) -> Option<String> {
    let known = config.attempts().load(bundle.id()).ok().flatten()?;
    if known.iterations != iterations || known.stands_on.is_empty() {
        return None;
    }
    let one = |support: &Support| {
        let head = support.head.to_hex_with_len(12);
        let checked = || format!("{} (checked, not accepted, {head})", support.id);
        let sealed = |seal| format!("{} (sealed {seal:.12})", support.id);
        support.seal.as_ref().map_or_else(checked, sealed)
    };
    Some(known.stands_on.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// Returns the bundles whose present attempt stands on the result of this one.
pub fn based_on(config: &WorkspaceConfig, id: &BundleId) -> Vec<BundleId> {
    let attempts = config.attempts();
    let is_based = |other: &BundleId| {
        let known = attempts.load(other).ok().flatten();
        let known = known.filter(|known| known.stands_on.iter().any(|support| support.id == *id));
        // A record outlives its attempt.
        known.is_some_and(|known| {
            let seen = config.dirs.bundles.bundle(other).glance();
            seen.is_ok_and(|seen| {
                seen.iterations == known.iterations && seen.state != State::Discontinued
            })
        })
    };
    let mut based: Vec<BundleId> = attempts.list().into_iter().filter(is_based).collect();
    based.sort_unstable();
    based
}

/// Returns the results that an attempt starting now would stand on. Nothing is folded.
pub fn would_stand_on(
    config: &WorkspaceConfig,
    bundle: &Bundle,
) -> Result<Vec<BundleId>, BaseError> {
    BranchReadings::default().foundation_now(config, bundle)
}

/// Like [`would_stand_on`] for several bundles. The results of each branch are read once.
pub fn would_all_stand_on(
    config: &WorkspaceConfig,
    bundles: &[Bundle],
) -> BTreeMap<BundleId, Result<Vec<BundleId>, BaseError>> {
    let mut read = BranchReadings::default();
    bundles
        .iter()
        .map(|bundle| (bundle.id().clone(), read.foundation_now(config, bundle)))
        .collect()
}

/// A branch and its tip.
type KnownTip = (String, ObjectId);

/// The branches that bundles ask for, each resolved and read once.
#[derive(Default)]
struct BranchReadings {
    /// The branch and tip by target and requested branch; `None` if it cannot be resolved.
    tips: BTreeMap<(String, Option<String>), Option<KnownTip>>,
    landscapes: BTreeMap<(String, String), Landscape>,
}

impl BranchReadings {
    fn foundation_now(
        &mut self,
        config: &WorkspaceConfig,
        bundle: &Bundle,
    ) -> Result<Vec<BundleId>, BaseError> {
        let brief = bundle.read(Artifact::Brief)?.unwrap_or_default();
        let brief = Brief::parse(&String::from_utf8_lossy(&brief));
        let Some(spec) = config.target_of(&brief).ok().flatten() else { return Ok(Vec::new()) };
        let branch = config.branch_of(&brief, &spec);
        let tip = self.tips.entry((spec.name.clone(), branch));
        let tip = tip.or_insert_with_key(|(_, branch)| {
            let target = pdca_lanes::Target::open(&spec.name, &spec.path).ok()?;
            let found = target.resolve(branch.as_deref()).ok()?;
            let tip = ObjectId::from_hex(found.commit.as_bytes()).ok()?;
            Some((found.branch, tip))
        });
        let Some((branch, tip)) = tip else { return Ok(Vec::new()) };
        let landscape = match self.landscapes.entry((spec.name.clone(), branch.clone())) {
            Slot::Occupied(known) => known.into_mut(),
            Slot::Vacant(slot) => {
                let at = TargetTip { spec: &spec, branch, tip: *tip };
                slot.insert(landscape(config, &config.store_to_read(&spec)?, at, None)?)
            }
        };
        landscape
            .foundation_of(bundle.id(), &brief, config.schedule.speculation())
            .map_err(|lacks| BaseError::Lacks { lacks })
    }
}

/// Folds results onto the tip of the branch.
fn fold_base(
    config: &WorkspaceConfig,
    store: &Store,
    landscape: &Landscape,
    tip: ObjectId,
    wanted: &[BundleId],
) -> Result<AttemptBase, BaseError> {
    if wanted.is_empty() {
        return Ok(AttemptBase { tip, commit: tip, stands_on: Vec::new() });
    }
    let mut entries = Vec::new();
    for (rank, id) in wanted.iter().enumerate() {
        let sealed = landscape
            .sealed(store, id, rank)
            .map_err(|source| BaseError::Seal { id: id.clone(), source: Box::new(source) })?;
        entries.push(PlanEntry::new(sealed, []));
    }
    let plan = FoldPlan::new(tip, config.integrate.strategy, entries)?;
    let mut engine = MergeEngine::new(store, config.integrate.drivers()?);
    // Nothing is recorded per step: a fold that is cut short is made again with the same ids.
    let folded = fold(&mut engine, &plan, &Recorded::default(), &mut |_| Ok(()))?;
    let mut stands_on = Vec::new();
    for (entry, bundle) in plan.entries().iter().zip(folded.bundles.iter()) {
        let id = bundle.id.clone();
        match &bundle.fate {
            // Recorded as support although the base already has it: if it is sent back, this
            // attempt is stale.
            FoldFate::Applied { .. } | FoldFate::AlreadyPresent { .. } => {
                let sealed = entry.sealed();
                let seal = sealed.is_signed().then(|| sealed.digest());
                stands_on.push(Support { id, head: sealed.record().head, seal });
            }
            FoldFate::Conflict { conflicts, with, .. } => {
                let (with, conflicts) = (with.clone(), conflicts.clone());
                return Err(BaseError::Conflict { id, with, conflicts });
            }
            FoldFate::Held { behind } => {
                let why = format!("{behind} is not there");
                return Err(BaseError::Unfoldable { id, why });
            }
            FoldFate::Unsealed { why } | FoldFate::Failed { why } => {
                return Err(BaseError::Unfoldable { id, why: why.clone() });
            }
        }
    }
    Ok(AttemptBase { tip, commit: folded.candidate().commit(), stands_on })
}

/// Collects the results of all bundles that are meant for a branch. The result of `without` is left out, because it
/// is about to be replaced.
pub(crate) fn landscape(
    config: &WorkspaceConfig,
    store: &Store,
    at: TargetTip<'_>,
    without: Option<&BundleId>,
) -> Result<Landscape, BaseError> {
    let mut known: BTreeMap<BundleId, BundleResult> = BTreeMap::new();
    let mut sources = BTreeMap::new();
    let mut records = Vec::new();
    let put_away = match config.dirs.bundles.list_completed() {
        Err(RootError::Missing { .. }) => Vec::new(),
        listed => listed?,
    };
    let open = match config.dirs.bundles.list() {
        Err(RootError::Missing { .. }) => Vec::new(),
        listed => listed?,
    };
    // Completed bundles first: an open one of the same name is newer and replaces it.
    for bundle in put_away.into_iter().chain(open) {
        let id = bundle.id().clone();
        if without == Some(&id) {
            known.insert(id, BundleResult::None);
            continue;
        }
        // An unreadable bundle has no result; its error is reported when it is run.
        let (outcome, source) =
            result_of(config, store, at, &bundle).unwrap_or((BundleResult::None, None));
        // The result of the completed bundle must not stand in for an open one that has none.
        sources.remove(&id);
        if let Some(source) = source {
            if let Change::Accepted(record) = &source.change {
                records.push((**record).clone());
            }
            sources.insert(id.clone(), source);
        }
        known.insert(id, outcome);
    }
    let records: Vec<&SealRecord> = records.iter().collect();
    // One walk of the history for all of them.
    let landed = present_in(store, at.tip, &records)?;
    let held = HeldBack::load(&config.queue());
    for (id, outcome) in &mut known {
        let (BundleResult::Change(finished), Some(source)) = (outcome, sources.get(id)) else {
            continue;
        };
        let Change::Accepted(record) = &source.change else { continue };
        finished.place = match landed.get(&record.digest()) {
            Some(presence) if presence.reverted_by.is_some() => Whereabouts::Reverted,
            Some(_) => Whereabouts::Landed,
            None => match held.of(id, Some(&record.head.to_string())).map(|held| held.reason) {
                Some(
                    HeldReason::Red
                    | HeldReason::Undecidable
                    | HeldReason::Conflict
                    | HeldReason::Drift,
                ) => Whereabouts::Held,
                // Its effect is in the branch, by whatever commit, so nothing has to be folded.
                Some(HeldReason::Present) => Whereabouts::Landed,
                Some(
                    HeldReason::Needs
                    | HeldReason::Unsealed
                    | HeldReason::Reverted
                    | HeldReason::Stale,
                )
                | None => Whereabouts::Pending,
            },
        };
    }
    Ok(Landscape { results: Results::new(known), sources })
}

fn result_of(
    config: &WorkspaceConfig,
    store: &Store,
    at: TargetTip<'_>,
    bundle: &Bundle,
) -> Result<(BundleResult, Option<Source>), BaseError> {
    let glance = bundle.glance()?;
    let is_complete = match glance.state {
        State::Complete => true,
        State::AwaitingSignoff => false,
        State::Unplanned
        | State::Resolved
        | State::Planned
        | State::Built
        | State::Checked
        | State::Iterate(_)
        | State::Discontinued => return Ok((BundleResult::None, None)),
    };
    // Accepted without a change, or for another branch: dependants need not wait for it, and there
    // is nothing to fold.
    let nothing = if is_complete { BundleResult::Nothing } else { BundleResult::None };
    let brief = bundle.read(Artifact::Brief)?.unwrap_or_default();
    let brief = Brief::parse(&String::from_utf8_lossy(&brief));
    if !is_of(config, bundle.id(), &brief, at) {
        return Ok((nothing, None));
    }
    let claims = |files: Vec<String>| {
        let touches = brief.touches();
        let declared = touches.iter().filter_map(|glob| Pattern::parse(glob, Case::Sensitive).ok());
        let actual = files.iter().filter_map(|file| Pattern::of_file(file, Case::Sensitive).ok());
        declared.chain(actual).collect()
    };
    let conflicts_with = brief.conflicts_with();
    if is_complete {
        let Some(text) = bundle.read(Artifact::Seal)? else { return Ok((nothing, None)) };
        let Ok(record) = serde_json::from_slice::<SealRecord>(&text) else {
            return Ok((BundleResult::None, None));
        };
        let files = record.footprint.iter().map(ToString::to_string).collect();
        let finished = Finished {
            version: record.head.to_string(),
            stands_on: below(&record.stands_on),
            order: record.completion_order,
            accepted: true,
            place: Whereabouts::Pending,
        };
        let claims = claims(files);
        let change = Change::Accepted(Box::new(record));
        return Ok((
            BundleResult::Change(finished),
            Some(Source { change, claims, conflicts_with }),
        ));
    }
    let snapshot = bundle.load()?;
    let Some((attempt, head, patch)) = checked_change(config, store, bundle, &snapshot)? else {
        return Ok((nothing, None));
    };
    // Nothing may be built on a red result, although it waits for the same sign-off.
    if is_red(&snapshot) {
        return Ok((nothing, None));
    }
    let finished = Finished {
        version: head.to_string(),
        stands_on: below(&attempt.stands_on),
        // After everything accepted, and among themselves by the time their work ended.
        order: u64::MAX / 2 + attempt.made.as_ref().map_or(0, |made| made.seconds.unsigned_abs()),
        accepted: false,
        place: Whereabouts::Pending,
    };
    let claims = claims(footprint(&patch).unwrap_or_default());
    let change = Change::Checked { attempt: Box::new(attempt), head, patch };
    Ok((BundleResult::Change(finished), Some(Source { change, claims, conflicts_with })))
}

/// Returns the attempt, the head commit and the patch of a checked change, if its commits are in the store.
pub(crate) fn checked_change(
    config: &WorkspaceConfig,
    store: &Store,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<Option<(Attempt, ObjectId, Vec<u8>)>, BaseError> {
    let attempt = config.attempts().load(bundle.id()).map_err(BaseError::Attempt)?;
    let Some(attempt) = attempt.filter(|known| known.iterations == snapshot.iterations) else {
        return Ok(None);
    };
    let Some(patch) = bundle.read(Artifact::Patch)?.filter(|patch| !patch.is_empty()) else {
        return Ok(None);
    };
    let head = attempt.head_of(&sha256_hex(&patch));
    let head = head.and_then(|head| ObjectId::from_hex(head.as_bytes()).ok());
    Ok(head.filter(|head| store.tree_of(*head).is_ok()).map(|head| (attempt, head, patch)))
}

/// Like [`landscape`], at the present tip of the branch.
pub(crate) fn landscape_of(
    config: &WorkspaceConfig,
    store: &Store,
    spec: &TargetSpec,
    branch: &str,
) -> Result<Landscape, BaseError> {
    let tip = store.branch_tip(branch)?;
    let none = || BaseError::NoBranch { branch: branch.to_owned() };
    landscape(config, store, TargetTip { spec, branch, tip: tip.ok_or_else(none)? }, None)
}

fn is_of(config: &WorkspaceConfig, id: &BundleId, brief: &Brief, at: TargetTip<'_>) -> bool {
    let target = config.target_of(brief).ok().flatten();
    let Some(target) = target.filter(|target| target.name == at.spec.name) else {
        return false;
    };
    // Where no branch is named, it was the one of the user's checkout when the attempt began, and that may be on another
    // one by now.
    let begun_on = || {
        let known = config.attempts().load(id).ok().flatten();
        known.filter(|known| known.target == target.name).map(|known| known.branch)
    };
    config.branch_of(brief, &target).or_else(begun_on).is_none_or(|branch| branch == at.branch)
}

fn below(supports: &[Support]) -> Vec<(BundleId, String)> {
    supports.iter().map(|support| (support.id.clone(), support.head.to_string())).collect()
}

impl Landscape {
    /// Returns the bundles whose results belong into the base of an attempt, beyond the branch.
    pub(crate) fn foundation_of(
        &self,
        id: &BundleId,
        brief: &Brief,
        speculation: Speculation,
    ) -> Result<Vec<BundleId>, Vec<Lacks>> {
        let needs = self.named(&brief.depends_on());
        self.results.foundation(id, &needs, &self.rivals_of(id, brief), speculation)
    }

    /// Returns the bundles with results that a brief overlaps with, by touched paths or by name.
    fn rivals_of(&self, id: &BundleId, brief: &Brief) -> BTreeSet<BundleId> {
        let touches = brief.touches();
        let touches: Vec<Pattern> =
            touches.iter().filter_map(|glob| Pattern::parse(glob, Case::Sensitive).ok()).collect();
        let named = self.named(&brief.conflicts_with());
        let meets = |source: &Source| {
            touches.iter().any(|own| source.claims.iter().any(|its| own.meet(its).is_some()))
        };
        let is_rival = |(other, source): &(&BundleId, &Source)| {
            named.contains(other)
                || self.named(&source.conflicts_with).contains(id)
                || meets(source)
        };
        self.sources.iter().filter(is_rival).map(|(other, _)| other.clone()).collect()
    }

    /// Returns the known bundles that a list names; other words in it are prose.
    fn named(&self, list: &IdList) -> Vec<BundleId> {
        list.among(&|id| self.results.knows(id)).ids
    }

    /// Returns the reason that a bundle's result is stale, if it is.
    pub(crate) fn stale(&self, id: &BundleId) -> Option<&Stale> {
        self.results.stale(id)
    }

    /// Returns the digest of the seal, if the bundle is accepted.
    pub(crate) fn seal_of(&self, id: &BundleId) -> Option<String> {
        match &self.sources.get(id)?.change {
            Change::Accepted(record) => Some(record.digest()),
            Change::Checked { .. } => None,
        }
    }

    /// Returns a change in the form that a fold takes. `rank` orders unaccepted changes after all accepted ones.
    fn sealed(&self, store: &Store, id: &BundleId, rank: usize) -> Result<Sealed, SealError> {
        let missing = || SealError::NotSealed { name: id.to_string() };
        match &self.sources.get(id).ok_or_else(missing)?.change {
            Change::Accepted(record) => {
                let sealed = Sealed::load(store, &record.run, id)?;
                // The seal's ref decides; `seal.json` in the bundle is a copy that anybody can
                // edit.
                if sealed.record() == &**record {
                    Ok(sealed)
                } else {
                    let name = record.run.seal_ref(id);
                    Err(SealError::Broken { name, field: "copy in the bundle" })
                }
            }
            Change::Checked { attempt, head, patch } => {
                let base = ObjectId::from_hex(attempt.base.as_bytes());
                let base = base.map_err(|_| missing())?;
                let digest = sha256_hex(patch);
                let run = UNSIGNED.parse().expect("because it is letters only");
                Sealed::unsigned(
                    store,
                    &Acceptance {
                        run: &run,
                        id,
                        base,
                        head: *head,
                        patch,
                        reviewed_head: *head,
                        reviewed_patch: &digest,
                        gate_digest: UNSIGNED,
                        completion_order: u64::MAX / 2 + rank as u64,
                        tip: None,
                        stands_on: &attempt.stands_on,
                        by: None,
                        trailers: &[],
                        brief: None,
                        overrides: &[],
                    },
                )
            }
        }
    }
}

/// Stands for run and gate digest in the record of a change that is not accepted.
const UNSIGNED: &str = "unsigned";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn every_prerequisite_without_a_usable_result_is_named_with_the_reason() {
        let lacks = |(on, why): (&str, LacksWhy)| Lacks { on: on.parse().unwrap(), why };
        let all = [("2", LacksWhy::NotAccepted), ("3", LacksWhy::Reverted), ("4", LacksWhy::Stale)];
        let error = BaseError::Lacks { lacks: all.into_iter().map(lacks).collect() };
        assert_eq!(
            error.to_string(),
            "it waits for 2, which is not accepted; 3, which was reverted; 4, which is stale"
        );
    }

    #[test]
    fn a_conflict_names_the_other_results_or_the_branch() {
        let said = |with: &[&str]| {
            let with = with.iter().map(|id| id.parse().unwrap()).collect();
            let id = "7".parse().unwrap();
            BaseError::Conflict { id, with, conflicts: Vec::new() }.to_string()
        };
        assert!(said(&[]).starts_with("7 conflicts with the branch in"), "{}", said(&[]));
        assert!(said(&["8", "9"]).starts_with("7 conflicts with 8, 9 in"), "{}", said(&["8", "9"]));
    }

    #[test]
    fn each_way_to_become_stale_has_its_sentence() {
        let said = |how| stale_sentence(&Stale { on: "2".parse().unwrap(), how });
        let table = [
            (FoundationChange::Gone, "was sent back or given up"),
            (FoundationChange::Superseded, "has another result now"),
            (FoundationChange::Held, "is held by the last integration"),
            (FoundationChange::Reverted, "was reverted"),
            (FoundationChange::Stale, "is stale itself"),
        ];
        for (how, end) in table {
            assert_eq!(said(how), format!("2, which it stands on, {end}"));
        }
    }

    #[test]
    fn a_result_whose_brief_names_no_branch_is_of_the_branch_that_it_was_built_on() {
        let mut scene = Scene::planned();
        let (name, path) = ("app".to_owned(), scene.workspace.path().to_owned());
        let spec = TargetSpec { name, path, repo: None, branch: None };
        scene.config.targets = vec![spec.clone()];
        let id = scene.bundle().id().clone();
        let attempt = Attempt {
            iterations: 0,
            brief: String::new(),
            target: "app".to_owned(),
            branch: "main".to_owned(),
            base: "a".repeat(40),
            tip: None,
            stands_on: Vec::new(),
            made: None,
            changes: Vec::new(),
            asked: None,
            refolded: None,
            acceptance: None,
        };
        scene.config.attempts().store(&id, &attempt).unwrap();
        let brief = scene.bundle().read(Artifact::Brief).unwrap().unwrap();
        let brief = Brief::parse(&String::from_utf8_lossy(&brief));
        let tip = ObjectId::from_hex(attempt.base.as_bytes()).unwrap();
        let is_of =
            |branch| is_of(&scene.config, &id, &brief, TargetTip { spec: &spec, branch, tip });
        assert_eq!(["main", "release"].map(is_of), [true, false]);
    }
}
