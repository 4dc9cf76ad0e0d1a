//! A running integration: it chooses changes, folds them in batches onto the branch, and follows the branch.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_journal::{Clock, RunId};
use pdca_state::BundleId;

use crate::{
    BaseDrift, BatchPace, BranchSide, Candidate, ChangedCommit, Conflict, Fence, FoldFate,
    FoldPlan, FoldStep, MergeEngine, ObjectId, PlanEntry, ReflogEntry, RowHistory, SealRecord,
    Sealed, Support, base_drift, claim, fold, present_in, workspace_ref,
};
use pdca_journal::events::{IntegrationStep, WarningCode};

use super::IntegrateError;
use super::anchors::Anchors;
use super::context::{IntegrationNotice, QueueContext};
use super::evidence::keep_logs_beside;
use super::flakes::{Quarantined, flaky_rows};
use super::held::{HeldBack, HeldChange, HeldReason};
use super::integration_dir::IntegrationDir;
use super::journal::IntegrationJournal;
use super::known_verdicts::KnownVerdicts;
use super::landing::finish_certificates;
use super::landing_base::{LandingBase, RemoteStanding, StagedBase};
use super::landing_mode::BaseSearch;
use super::run_progress::RunProgress;
use super::settings::QueueSettings;
use super::stats::IntegrationTally;
use super::target_branch::{AcceptedChange, ChangeState, TargetBranch};

/// The number of times that a branch is followed which moves while it is being gated.
const MOST_MOVES: u32 = 20;

/// The request for an integration.
#[derive(Debug)]
pub struct IntegrationRequest<'a> {
    pub settings: &'a QueueSettings,
    /// The bundles that may take part; empty means all.
    pub only: &'a BTreeSet<BundleId>,
    /// Changes that have not landed on other branches and targets, and unfinished ones. A change that depends
    /// on one of them is held.
    pub elsewhere: &'a BTreeSet<BundleId>,
    /// The number of checkouts for gating combinations at the same time.
    pub lanes: NonZeroU32,
    /// The directory for certificates.
    pub certificates: &'a Utf8Path,
    pub clock: Clock,
    /// Ignores every verdict from before this integration.
    pub fresh: bool,
}

/// The result of an integration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integrated {
    /// The commit of the branch that the last round started from.
    pub base: ObjectId,
    /// The commit that contains everything that landed.
    pub tip: ObjectId,
    pub tree: ObjectId,
    /// The order in which the changes were planned.
    pub order: Vec<BundleId>,
    /// The changes that landed, in order, each with its last commit.
    pub landed: Vec<(BundleId, ObjectId)>,
    pub held: Vec<HeldChange>,
    /// Changes whose effect was in the branch already, with the change that brought it if that is known.
    pub present: Vec<(BundleId, Option<BundleId>)>,
    /// The refs that moved.
    pub references: Vec<String>,
    pub gate_runs: u32,
    /// The number of tests answered by an earlier verdict.
    pub cached: u32,
    /// The number of reds that were green on the same tree when repeated.
    pub flakes: u32,
    /// The rows with a known history of flakes.
    pub flaky: Vec<(String, RowHistory)>,
    /// Red rows that were ignored, with the trees.
    pub quarantined: Vec<Quarantined>,
    /// The certificates of this integration, one for each landing.
    pub certificates: Vec<Utf8PathBuf>,
    /// The staging branch of another workspace that the changes were folded on top of.
    pub staged_on: Option<String>,
    /// The branch compared with that of its remote, if it has one.
    pub remote: Option<RemoteStanding>,
}

impl Integrated {
    /// Returns the changes that have landed, are held or were present.
    fn settled(&self) -> BTreeSet<BundleId> {
        let landed = self.landed.iter().map(|(id, _)| id);
        let held = self.held.iter().map(|held| &held.id);
        let present = self.present.iter().map(|(id, _)| id);
        landed.chain(held).chain(present).cloned().collect()
    }

    /// Holds the changes that depend on a held one.
    fn hold_dependants(&mut self, waiting: &mut Vec<PlanEntry>) {
        let out = |held: &[HeldChange], entry: &PlanEntry| {
            let needed = entry.depends_on().iter();
            let is_held = |id: &&BundleId| held.iter().any(|held| held.id == **id);
            needed.filter(is_held).min().cloned()
        };
        while let Some((place, behind)) = waiting
            .iter()
            .enumerate()
            .find_map(|(place, entry)| Some((place, out(&self.held, entry)?)))
        {
            let entry = waiting.remove(place);
            self.held.push(needs(&entry, vec![behind]));
        }
    }
}

pub(crate) struct Integration<'w> {
    pub(super) cx: QueueContext<'w>,
    pub(super) branch: &'w TargetBranch,
    pub(super) request: &'w IntegrationRequest<'w>,
    pub(super) engine: MergeEngine<'w>,
    pub(super) fence: Fence,
    pub(super) journal: IntegrationJournal,
    pub(super) run: RunId,
    pub(super) dir: IntegrationDir,
    pub(super) verdicts: KnownVerdicts<'w>,
    /// The base of the first round.
    pub(super) base: LandingBase,
    /// The commit that the ref to move is expected at.
    pub(super) at: ObjectId,
    pub(super) done: Integrated,
    /// The changes that the current round held.
    pub(super) round: Vec<HeldChange>,
    pub(super) tally: IntegrationTally,
    pub(super) runs: RunProgress,
    anchors: Anchors,
    pace: BatchPace,
}

/// The end of a round.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Round {
    Done,
    /// The branch moved; the changes that are left must be planned again.
    Moved,
}

impl<'w> Integration<'w> {
    /// Begins an integration or resumes one, and takes the fence, so that an earlier driver can no longer move a ref.
    pub(super) fn begin(
        cx: QueueContext<'w>,
        branch: &'w TargetBranch,
        request: &'w IntegrationRequest<'w>,
        engine: MergeEngine<'w>,
        entries: &[PlanEntry],
        base: LandingBase,
    ) -> Result<Self, IntegrateError> {
        let settings = request.settings;
        let terms = settings.terms(branch, &cx.gates.id, request.fresh);
        let begin = || {
            let runs = cx.workspace.dirs.integrations();
            IntegrationJournal::begin(&runs, branch, &base, entries, terms, request.clock)
        };
        // The journal comes before the fence, because the fence takes the epoch that the journal was opened
        // with.
        let journal = cx.effects.perform("journal", begin)?;
        let run = journal.run().clone();
        let dir = IntegrationDir::new(&cx, &run);
        (cx.notify)(IntegrationNotice::Begun {
            run: run.as_str().to_owned(),
            dir: dir.path().to_owned(),
        });
        let take = || Fence::take(&branch.store, &(&run).into(), journal.epoch());
        let fence = cx.effects.perform("fence", take)?;
        let here = workspace_ref(&cx.workspace.dirs.mark());
        if branch.store.commit_at(&here)?.is_none() {
            let seconds = (request.clock)().wall.as_second();
            let log = ReflogEntry { message: "pdca: a workspace that integrates here", seconds };
            let own = || claim(&branch.store, &fence, &here, branch.tip, log);
            cx.effects.perform("workspace", own)?;
        }
        let tree = branch.store.tree_of(base.at)?;
        let mode = settings.land.mode();
        // A staging branch that is current is continued, so it counts as moved already: `onto` then replaces
        // nothing.
        let staged = base.goes_on().then(|| mode.reference(settings, branch));
        let done = Integrated {
            base: base.at,
            tip: base.at,
            tree,
            order: Vec::new(),
            landed: Vec::new(),
            held: Vec::new(),
            present: Vec::new(),
            references: staged.into_iter().collect(),
            gate_runs: 0,
            cached: 0,
            flakes: 0,
            flaky: Vec::new(),
            quarantined: Vec::new(),
            certificates: Vec::new(),
            staged_on: match &base.staged {
                Some(StagedBase::Other { branch }) => Some(branch.clone()),
                Some(StagedBase::Own) | None => None,
            },
            remote: base.remote.clone(),
        };
        let now = (cx.now)();
        let drivers = engine.drivers().digest();
        let verdicts = KnownVerdicts::new(cx, settings, &run, drivers, request.fresh);
        let mut tally = IntegrationTally::load(cx.workspace, &run);
        // A resumed integration keeps the time of its first beginning.
        if tally.begun == 0 {
            tally.begun = now;
        }
        tally.target.clone_from(&branch.target.name);
        tally.branch.clone_from(&branch.branch);
        Ok(Self {
            verdicts,
            dir,
            tally,
            cx,
            branch,
            request,
            engine,
            fence,
            journal,
            run,
            at: base.at,
            base,
            done,
            round: Vec::new(),
            runs: RunProgress::new(request.lanes),
            anchors: Anchors::default(),
            pace: BatchPace::default(),
        })
    }

    /// Runs rounds until every change has landed, is held or is present already.
    pub(super) fn run(&mut self, chosen: Chosen) -> Result<Integrated, IntegrateError> {
        let Chosen { entries: mut waiting, held, landed } = chosen;
        // Before the certificates: with `land = "push"` it remembers where the remote is, and what became of an
        // announced push is read from that ref. Only then is `remote_was_asked` true.
        self.request.settings.land.mode().begin(self)?;
        let remote = self.base.remote.as_ref();
        if let Some(text) = remote.and_then(|remote| remote.remark(&self.branch.branch)) {
            (self.cx.notify)(IntegrationNotice::Warning { code: WarningCode::BaseBehind, text });
        }
        let QueueContext { workspace, effects, .. } = self.cx;
        let certificates = self.request.certificates;
        let finished = finish_certificates(workspace, self.branch, certificates, true, effects)?;
        self.done.certificates.extend(finished);
        self.done.held = held;
        self.done.landed = landed;
        let mut moved = 0;
        while !waiting.is_empty() {
            if self.cx.cancel.is_cancelled() {
                return Err(IntegrateError::Interrupted);
            }
            // Each round starts from the branch as it is now. What was gated on an older tip is void (decision
            // 013).
            let base = self.follow()?;
            let strategy = self.request.settings.strategy;
            let plan = FoldPlan::new(base, strategy, waiting.iter().cloned())?;
            if self.done.order.is_empty() {
                self.done.order = ids(&plan);
            }
            let most = self.request.settings.max_batch.max(1) as usize;
            let size = self.pace.batch().min(most);
            let batch: Vec<PlanEntry> = plan.entries().iter().take(size).cloned().collect();
            let fit = self.fold(&FoldPlan::new(base, strategy, batch.iter().cloned())?)?;
            let round = self.bisect(&FoldPlan::new(base, strategy, fit)?)?;
            if round == Round::Moved {
                // What this round held was held relative to the old base. The next round decides again.
                self.round.clear();
                moved += 1;
                if moved > MOST_MOVES {
                    let reference = self.request.settings.shown(&self.base.reference);
                    let how = "keeps moving".to_owned();
                    return Err(IntegrateError::Drifted { reference, how });
                }
            } else {
                // The size of a batch follows from how often the gates fail, so a conflict does not count.
                let culprits = self.round.iter().filter(|held| {
                    matches!(held.reason, HeldReason::Red | HeldReason::Undecidable)
                });
                self.pace.learn(batch.len(), culprits.count());
                self.done.held.append(&mut self.round);
            }
            self.count();
            let settled = self.done.settled();
            waiting.retain(|entry| !settled.contains(entry.sealed().id()));
            self.done.hold_dependants(&mut waiting);
        }
        self.done.flaky = flaky_rows(self.cx.gates, &self.verdicts.rules);
        self.tally.ended = Some((self.cx.now)());
        self.count();
        Ok(self.done.clone())
    }

    /// Stores the result and the costs so far.
    pub(super) fn count(&mut self) {
        self.tally.came_to(&self.done, &self.round, (self.cx.now)());
        let store = || self.tally.store(self.cx.workspace);
        // Nothing is decided from it, so a failure costs neither a gate run that is over nor the report of a landing.
        if let Err(error) = self.cx.effects.perform("stats", store) {
            self.cx.tell(format!("the statistics are incomplete: {}", pdca_state::chain(&error)));
        }
    }

    pub(super) fn base_search<'s>(&'s self, tell: &'s dyn Fn(String)) -> BaseSearch<'s> {
        let (branch, settings) = (self.branch, self.request.settings);
        BaseSearch { branch, settings, cancel: self.cx.cancel, tell }
    }

    /// Returns true if the ref that moves has a landing already, which later ones must build on.
    pub(super) fn has_landing(&self) -> bool {
        // Not `landed`, which has only requested changes: the staging branch may hold others.
        !self.done.references.is_empty() || self.base.staged.is_some()
    }

    /// Returns the base of the next round: the current tip of the branch, if it only moved forward.
    fn follow(&mut self) -> Result<ObjectId, IntegrateError> {
        let mode = self.request.settings.land.mode();
        // The staging branch has its first landing. Going on from a branch that moved meanwhile would drop it.
        if mode.stays_on_landing() && self.has_landing() {
            return Ok(self.at);
        }
        let now = mode.look(self)?;
        let reference = self.request.settings.shown(&self.base.reference);
        let limit = self.request.settings.max_base_drift_commits;
        let drifted = |how: String| IntegrateError::Drifted { reference: reference.clone(), how };
        match (base_drift(&self.branch.store, self.at, now, limit)?, now) {
            (BaseDrift::None, _) => {}
            (BaseDrift::Forward { commits }, Some(now)) => {
                let text = format!("{} gained {commits} commits", self.branch.branch);
                self.cx.emit(text, IntegrationStep::BaseMoved { commits });
                self.at = now;
                self.done.base = now;
            }
            (BaseDrift::Beyond { commits, limit }, _) => {
                return Err(drifted(format!("gained {commits} commits, and {limit} are followed")));
            }
            (BaseDrift::Rewritten, _) => return Err(drifted("was rewound or rewritten".into())),
            // `Forward` without a tip cannot happen: `base_drift` calls that `Gone`.
            (BaseDrift::Gone | BaseDrift::Forward { .. }, _) => {
                return Err(drifted("is gone".into()));
            }
        }
        Ok(self.at)
    }

    /// Folds a plan, holds the changes that conflict, and returns the entries that fit.
    fn fold(&mut self, plan: &FoldPlan) -> Result<Vec<PlanEntry>, IntegrateError> {
        let (effects, journal) = (self.cx.effects, &mut self.journal);
        let known = journal.plan(plan, self.branch.store.git_version())?;
        let mut record = |step: &FoldStep| {
            effects.perform("fold", || journal.step(step))?;
            Ok(())
        };
        let folded = fold(&mut self.engine, plan, &known, &mut record)?;
        for ChangedCommit { commit, before, now } in &folded.changed {
            let text = format!(
                "{commit:.12} became {before:.12} before and {now:.12} now: this git merges differently, so earlier \
                 verdicts do not count"
            );
            (self.cx.notify)(IntegrationNotice::Warning { code: WarningCode::MergeDiffers, text });
        }
        let mut fit = Vec::new();
        // A fold gives one result for each entry, in the order of the plan.
        for (entry, bundle) in plan.entries().iter().zip(&folded.bundles) {
            match &bundle.fate {
                FoldFate::Applied { .. } => fit.push(entry.clone()),
                FoldFate::AlreadyPresent { by } => {
                    self.done.present.push((bundle.id.clone(), by.clone()));
                }
                FoldFate::Conflict { conflicts, with, .. } => {
                    let held = conflicting(&mut self.engine, plan.base(), entry, conflicts, with)?;
                    self.cx.emit(held.sentence(), held.fact());
                    self.round.push(held);
                }
                FoldFate::Held { behind } => self.round.push(needs(entry, vec![behind.clone()])),
                FoldFate::Unsealed { why } => {
                    let detail = Some(why.clone());
                    let held = HeldChange { detail, ..held(entry, HeldReason::Drift, Vec::new()) };
                    self.cx.emit(held.sentence(), held.fact());
                    self.round.push(held);
                }
                FoldFate::Failed { why } => {
                    let (id, why) = (bundle.id.clone(), why.clone());
                    // Leaving the change out would call it unfit because git failed.
                    return Err(IntegrateError::Unfoldable { id, why });
                }
            }
        }
        Ok(fit)
    }

    /// Creates a ref that protects a candidate from garbage collection while it is gated.
    pub(super) fn anchor(&mut self, candidate: &Candidate) -> Result<(), IntegrateError> {
        if candidate.bundles().next().is_none() {
            // The branch itself: a ref protects it already.
            return Ok(());
        }
        let log = self.log("pdca: a combination to be gated");
        let (store, fence, effects) = (&self.branch.store, &self.fence, self.cx.effects);
        let create =
            |number| effects.perform("int-ref", || candidate.anchor(store, fence, number, log));
        Ok(self.anchors.anchor(candidate.commit(), create)?)
    }

    pub(super) fn log(&self, message: &'static str) -> ReflogEntry<'static> {
        ReflogEntry { message, seconds: (self.request.clock)().wall.as_second() }
    }

    /// Records the end for people and for a driver that resumes.
    pub(super) fn keep(
        &mut self,
        ended: &Result<Integrated, IntegrateError>,
    ) -> Result<(), IntegrateError> {
        let present: Vec<BundleId> = self.done.present.iter().map(|(id, _)| id.clone()).collect();
        match ended {
            Ok(_) => {
                let finish = || self.journal.finish(&self.done.held, &present);
                self.cx.effects.perform("journal-end", finish)?;
            }
            Err(error @ IntegrateError::BaseRed { .. }) => {
                self.journal.block(pdca_journal::Reason::Validation, error.to_string())?;
            }
            Err(
                error @ (IntegrateError::Drifted { .. }
                | IntegrateError::Stuck { .. }
                | IntegrateError::Refused { .. }),
            ) => {
                self.journal.block(pdca_journal::Reason::Recovery, error.to_string())?;
            }
            // The journal stays open, so the next driver resumes this integration.
            Err(_) => {}
        }
        // Job files hold results of finished rows. An interrupted integration needs them when it is resumed;
        // after any other end they would answer for gates that ought to run again.
        if !matches!(ended, Err(IntegrateError::Interrupted)) {
            self.dir.clear_jobs()?;
        }
        self.keep_held()
    }

    fn keep_held(&mut self) -> Result<(), IntegrateError> {
        let present = self.done.present.iter().map(|(id, by)| {
            let sealed = self.branch.change(id).and_then(AcceptedChange::sealed);
            HeldChange {
                partners: by.iter().cloned().collect(),
                head: sealed.map(|sealed| sealed.record().head.to_string()),
                ..HeldChange::blank(id, HeldReason::Present)
            }
        });
        let held: Vec<HeldChange> =
            self.done.held.iter().chain(&self.round).cloned().chain(present).collect();
        for change in self.branch.changes.iter().filter(|one| self.request.wants(one.bundle.id())) {
            let about_it = held.iter().find(|held| held.id == *change.bundle.id());
            keep_logs_beside(&change.bundle, about_it);
        }
        // Entries of changes that this integration was not about stay as they are.
        let mut known = HeldBack::load(self.cx.workspace);
        let about = self.branch.changes.iter().map(|change| change.bundle.id());
        known.renew(about.filter(|id| self.request.wants(id)), &held);
        self.cx.effects.perform("held.json", || known.store(self.cx.workspace))
    }
}

impl IntegrationRequest<'_> {
    pub(super) fn wants(&self, id: &BundleId) -> bool {
        self.only.is_empty() || self.only.contains(id)
    }

    /// Returns the requested bundles among `ids` in the form of [`Integrated::present`].
    pub(super) fn wanted(
        &self,
        ids: impl IntoIterator<Item = BundleId>,
    ) -> Vec<(BundleId, Option<BundleId>)> {
        ids.into_iter().filter(|id| self.wants(id)).map(|id| (id, None)).collect()
    }
}

pub(super) fn ids(plan: &FoldPlan) -> Vec<BundleId> {
    plan.entries().iter().map(|entry| entry.sealed().id().clone()).collect()
}

pub(super) fn held(entry: &PlanEntry, reason: HeldReason, partners: Vec<BundleId>) -> HeldChange {
    let head = Some(entry.sealed().record().head.to_string());
    HeldChange { partners, head, ..HeldChange::blank(entry.sealed().id(), reason) }
}

/// Holds a change for a conflict: with other changes of its plan, or else with the landed change or the commit that
/// introduced the other side.
pub(super) fn conflicting(
    engine: &mut MergeEngine<'_>,
    base: ObjectId,
    entry: &PlanEntry,
    conflicts: &[Conflict],
    with: &[BundleId],
) -> Result<HeldChange, IntegrateError> {
    let conflicts = conflicts.to_vec();
    let mut held = HeldChange { conflicts, ..held(entry, HeldReason::Conflict, with.to_vec()) };
    // Bundles of the same plan are named by the fold. Only a conflict with the base needs a search.
    if with.is_empty()
        && let Some(side) =
            BranchSide::find(engine, base, entry.sealed().record(), &held.conflicts)?
    {
        let landed = side.seals.iter().filter_map(|(id, _)| id.parse().ok());
        // A landed change of the same name is an earlier attempt, so naming it would make the change conflict
        // with itself.
        held.partners = landed.filter(|id| *id != held.id).collect();
        let commit = side.commit.to_hex_with_len(12);
        held.detail = held.partners.is_empty().then(|| format!("{commit} {}", side.subject));
    }
    Ok(held)
}

pub(super) fn needs(entry: &PlanEntry, behind: Vec<BundleId>) -> HeldChange {
    held(entry, HeldReason::Needs, behind)
}

/// The requested changes, sorted by what can happen to them.
pub(super) struct Chosen {
    pub(super) entries: Vec<PlanEntry>,
    pub(super) held: Vec<HeldChange>,
    /// Those that the remote or the staging branch already has.
    pub(super) landed: Vec<(BundleId, ObjectId)>,
}

/// Returns whether a later acceptance of a bundle with the same id is there.
fn is_succeeded(branch: &TargetBranch, sealed: &Sealed) -> bool {
    let mut others = branch.changes.iter().filter_map(AcceptedChange::sealed);
    others.any(|other| {
        other.id() == sealed.id()
            && other.record().completion_order > sealed.record().completion_order
    })
}

/// Sorts the requested changes into those that take part, those that are held and those that have landed.
///
/// Those in `skipped` have nothing to land; they are left out and hold nothing else back.
pub(super) fn choose(
    branch: &TargetBranch,
    request: &IntegrationRequest<'_>,
    base: &LandingBase,
    skipped: &BTreeSet<BundleId>,
) -> Result<Chosen, IntegrateError> {
    let seals = || branch.changes.iter().filter_map(AcceptedChange::sealed);
    // `TargetBranch` knows the contents of the local branch; only a remote or the staging branch can have more.
    let there: BTreeMap<String, ObjectId> = if base.at == branch.tip {
        BTreeMap::new()
    } else {
        let records: Vec<&SealRecord> = seals().map(Sealed::record).collect();
        let found = present_in(&branch.store, base.at, &records)?;
        let live = found.into_iter().filter(|(_, presence)| presence.reverted_by.is_none());
        live.map(|(digest, presence)| (digest, presence.commit)).collect()
    };
    // Presence is by digest of the seal: an earlier bundle of the same name is another change.
    let there = |sealed: &Sealed| there.get(&sealed.digest()).copied();
    let mut landed = Vec::new();
    let mut entries: BTreeMap<BundleId, PlanEntry> = BTreeMap::new();
    let mut out = Vec::new();
    for change in &branch.changes {
        let id = change.bundle.id();
        if !request.wants(id) || skipped.contains(id) {
            continue;
        }
        match &change.standing {
            ChangeState::Landed { .. } => {}
            // Done and accepted again under its id: the later acceptance has a seal of its own, and decides.
            ChangeState::Reverted { sealed, .. } if is_succeeded(branch, sealed) => {}
            ChangeState::Reverted { by, sealed } => {
                let detail = Some(by.to_hex_with_len(12).to_string());
                let head = Some(sealed.record().head.to_string());
                out.push(HeldChange {
                    detail,
                    head,
                    ..HeldChange::blank(id, HeldReason::Reverted)
                });
            }
            ChangeState::Unsealed => out.push(HeldChange::blank(id, HeldReason::Unsealed)),
            ChangeState::Drifted { why } => {
                let detail = Some(why.clone());
                out.push(HeldChange { detail, ..HeldChange::blank(id, HeldReason::Drift) });
            }
            ChangeState::Sealed(sealed) | ChangeState::Staged { sealed, .. }
                if there(sealed).is_some() =>
            {
                landed.extend(there(sealed).map(|commit| (id.clone(), commit)));
            }
            ChangeState::Sealed(sealed) | ChangeState::Staged { sealed, .. }
                if !outdated(branch, change, sealed).is_empty() =>
            {
                let head = Some(sealed.record().head.to_string());
                let partners = outdated(branch, change, sealed);
                out.push(HeldChange { partners, head, ..HeldChange::blank(id, HeldReason::Stale) });
            }
            ChangeState::Sealed(sealed) | ChangeState::Staged { sealed, .. } => {
                let entry = PlanEntry::new((**sealed).clone(), change.depends_on.iter().cloned());
                entries.insert(id.clone(), entry);
            }
        }
    }
    // A dependency is missing if it was accepted for this branch and is neither there nor in the plan, or if it
    // has not landed on the branch that it belongs to.
    let missing = |entries: &BTreeMap<BundleId, PlanEntry>, id: &BundleId| {
        if request.elsewhere.contains(id) {
            return true;
        }
        branch.change(id).is_some_and(|change| {
            !matches!(change.standing, ChangeState::Landed { .. })
                && change.sealed().is_none_or(|sealed| there(sealed).is_none())
        }) && !entries.contains_key(id)
            && !skipped.contains(id)
    };
    // Repeated until nothing changes, because each change that is held may be what another one needs.
    while let Some((id, behind)) = entries.iter().find_map(|(id, entry)| {
        let behind = entry.depends_on().iter().find(|needed| missing(&entries, needed))?;
        Some((id.clone(), behind.clone()))
    }) {
        if let Some(entry) = entries.remove(&id) {
            out.push(needs(&entry, vec![behind]));
        }
    }
    Ok(Chosen { entries: entries.into_values().collect(), held: out, landed })
}

/// Returns the dependencies that were accepted with another result than the one this change was built on. A
/// rival that is not declared as a dependency does not count: the gates decide about the combination.
fn outdated(branch: &TargetBranch, change: &AcceptedChange, sealed: &Sealed) -> Vec<BundleId> {
    let is_outdated = |support: &&Support| {
        // A dependency that is not accepted at all is judged by `missing`.
        let now = branch.change(&support.id).and_then(AcceptedChange::sealed);
        change.depends_on.contains(&support.id)
            && now.is_some_and(|now| now.record().head != support.head)
    };
    let supports = sealed.record().stands_on.iter().filter(is_outdated);
    supports.map(|support| support.id.clone()).collect()
}
