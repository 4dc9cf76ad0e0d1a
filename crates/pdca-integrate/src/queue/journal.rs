//! The journal of an integration.
//!
//! Everything that an integration did can be found out from git, so the journal is not what makes a crash safe.
//! It gives the integration its name, records the progress of each commit, and says why an integration waits
//! for a person.
//!
//! # Protocol
//! 1. *Lock* the target repository, so that two drivers cannot integrate on it at the same time.
//! 2. *Settle* every integration that was left open on the target: for each intent without outcome, git tells whether
//!    it happened. A landing is thereby never repeated or forgotten.
//! 3. *Resume* the one that has the same terms and changes, under its name; abort the others, so that no two
//!    integrations claim the same change.
//! 4. *Epoch*: each driver that opens a journal takes a new one, which the fence compares. A driver that was only
//!    slow cannot move a ref after a successor has taken over.
//! 5. *Intent before, outcome after* each commit of a fold and each landing. An intent without outcome marks the
//!    point of a crash.
//! 6. *Finish*: record why each change that did not land was held.
//!
//! These journals are stored apart from those of runs that build: an integration claims no lanes, and a run that
//! builds must not be mistaken for an integration to resume.

mod resume;

use std::collections::BTreeSet;
use std::io;

use pdca_journal::{
    Activity, Admission, AdmissionError, Admitted, AppendError, Cause, Clock, Effect,
    EffectOutcome, Epoch, GateVerdict, HostScope, Intent, Journal, JournalCreateError, Landing,
    ObjectId, OpenError, ProcessIdentity, Reason, Record, RunId, RunPhase, RunTarget, Runs, Seal,
    WorkstreamStatus, next_epoch,
};
use pdca_state::BundleId;

use crate::{AppliedCommit, Candidate, FoldStep, PlanEntry, Recorded, StepState};

use resume::{is_of, settle};

use super::held::{HeldChange, HeldReason};
use super::landing_base::LandingBase;
use super::target_branch::TargetBranch;

/// The lock file in the git common directory of a target. Runs that build use another one: they move no branch, and
/// read the branch from git each time.
pub const LOCK: &str = "pdca-integrate.lock";
/// The maximum number of files to record of a conflict.
/// A record is one line of the journal. What a conflict is about in full is found again by folding.
const MOST_PATHS: usize = 50;
/// The maximum length, in characters, of a recorded sentence.
const LONGEST: usize = 2000;

/// The reasons why an integration cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another driver holds the target.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The journal of an integration cannot be read, so that integration may not be over.
    #[error("cannot read the journal of the integration {run}")]
    Unreadable { run: RunId },
    #[error("cannot resume the integration {run}")]
    TakeUp { run: RunId, source: Box<OpenError> },
    #[error("cannot create the journal of the integration")]
    Create(#[from] JournalCreateError),
    #[error("cannot write the journal of the integration")]
    Append(#[from] AppendError),
    #[error("cannot list the integrations")]
    Io(#[from] io::Error),
    #[error("no epoch is left")]
    NoEpoch,
}

#[derive(Debug)]
pub(crate) struct IntegrationJournal {
    journal: Journal,
    clock: Clock,
    target: String,
    /// The intent of the commit that is being applied.
    applying: Option<Intent>,
    /// The intent of the landing under way.
    landing: Option<Intent>,
    _admission: Admission,
}

impl IntegrationJournal {
    /// Begins an integration of these changes, or resumes an interrupted one with the same changes and `terms`,
    /// which is a digest of the settings and gates.
    pub(super) fn begin(
        runs: &Runs,
        branch: &TargetBranch,
        base: &LandingBase,
        entries: &[PlanEntry],
        terms: String,
        clock: Clock,
    ) -> Result<Self, JournalError> {
        let common_dir = branch.store.common_dir().to_owned();
        let admission = Admission::take([common_dir.join(LOCK)])?;
        let me = myself()?;
        let mut taken = None;
        for run in runs.active()? {
            // Not skipped: an integration that cannot be read may have a landing under way.
            let found = run.found.map_err(|_| JournalError::Unreadable { run: run.id.clone() })?;
            if !found.state.admitted.targets.iter().any(|known| known.name == branch.target.name) {
                continue;
            }
            let at = clock();
            let epoch = next(runs)?;
            let opened =
                Journal::open(runs, &admission, &run.id, epoch, at, me.clone(), false).map_err(
                    |source| JournalError::TakeUp { run: run.id.clone(), source: Box::new(source) },
                )?;
            let mut journal = opened.journal;
            // Before the comparison: whether an open landing happened decides which changes are left.
            settle(&mut journal, Some((branch, base)), clock)?;
            if taken.is_none() && is_of(&journal, entries, &terms) {
                taken = Some(journal);
            } else {
                let why = "another integration was asked for".to_owned();
                journal.append(clock(), vec![Record::Aborted { why }])?;
            }
        }
        let journal = if let Some(journal) = taken {
            journal
        } else {
            let admitted = Admitted {
                driver: me,
                targets: vec![RunTarget { name: branch.target.name.clone(), common_dir }],
                batch: entries.iter().map(|entry| entry.sealed().id().clone()).collect(),
                config_digest: terms,
                lanes: 1,
            };
            let at = clock();
            let run = RunId::generate(at.wall)?;
            Journal::create(runs, &admission, &run, next(runs)?, at, admitted)?
        };
        let target = branch.target.name.clone();
        let mut journal =
            Self { journal, clock, target, applying: None, landing: None, _admission: admission };
        journal.enter(entries)?;
        Ok(journal)
    }

    /// Brings the journal to the state in which changes can be applied.
    fn enter(&mut self, entries: &[PlanEntry]) -> Result<(), JournalError> {
        let mut records = Vec::new();
        if self.journal.state().block.is_some() {
            records.push(Record::Unblocked { bundle: None });
            // At once: the phase that follows from it decides which records come next.
            self.journal.append((self.clock)(), std::mem::take(&mut records))?;
        }
        if self.journal.state().phase == RunPhase::Preparing {
            let record = Record::Entered { activity: Activity::Running };
            self.journal.append((self.clock)(), vec![record])?;
        }
        for entry in entries {
            let id = entry.sealed().id();
            let work = &self.journal.state().bundles[id];
            if work.seal.is_none() {
                let seal = seal_of(entry);
                let intent = self.journal.intent((self.clock)(), Effect::Seal(seal))?;
                intent.done(&mut self.journal, (self.clock)())?;
            } else if work.status.block().is_some() {
                records.push(Record::Unblocked { bundle: Some(id.clone()) });
            }
        }
        if self.journal.state().phase == RunPhase::Running {
            records.push(Record::Entered { activity: Activity::Integrating });
        }
        self.journal.append((self.clock)(), records)?;
        Ok(())
    }

    pub(super) fn run(&self) -> &RunId {
        self.journal.run()
    }

    /// Returns the epoch of this driver; it is larger than that of any earlier driver.
    pub(super) fn epoch(&self) -> u64 {
        self.journal.state().epoch.get()
    }

    /// Records a plan and returns the steps that are known if it is the current one.
    pub(super) fn plan(
        &mut self,
        plan: &crate::FoldPlan,
        git_version: &str,
    ) -> Result<Recorded, JournalError> {
        let base = plan.base();
        let order: Vec<BundleId> =
            plan.entries().iter().map(|entry| entry.sealed().id().clone()).collect();
        let mut steps = Vec::new();
        match self.journal.state().integrations.get(&self.target) {
            // A commit depends on everything below it, so the steps of another base or order are of no use.
            Some(known) if known.base == base && known.order == order => {
                for (bundle, progress) in &known.progress {
                    for applied in &progress.commits {
                        let Some(became) = applied.became else { continue };
                        steps.extend(Some(FoldStep {
                            bundle: bundle.clone(),
                            commit: applied.commit,
                            state: StepState::Applied { applied_commit: became },
                        }));
                    }
                }
            }
            Some(_) | None => {}
        }
        // Planned anew even if it is the current plan: the journal's state machine would otherwise refuse to apply a
        // commit that it has as applied.
        let target = self.target.clone();
        self.journal.append((self.clock)(), vec![Record::Planned { target, base, order }])?;
        Ok(Recorded { git_version: git_version.to_owned(), steps })
    }

    pub(super) fn step(&mut self, step: &FoldStep) -> Result<(), JournalError> {
        match &step.state {
            StepState::Planned => Ok(()),
            StepState::Applying => self.apply(&step.bundle, step.commit),
            StepState::Applied { applied_commit } => {
                // A commit that an earlier driver applied is taken over without being applied again.
                if self.applying.is_none() {
                    self.apply(&step.bundle, step.commit)?;
                }
                self.applied(EffectOutcome::Applied { commit: *applied_commit })
            }
            StepState::Conflict { conflicts } => {
                let paths = conflicts.iter().take(MOST_PATHS);
                let paths = paths.map(|conflict| conflict.path.to_string()).collect();
                self.applied(EffectOutcome::Conflict { paths })
            }
            StepState::Skipped { reason } => {
                if self.applying.is_none() {
                    self.apply(&step.bundle, step.commit)?;
                }
                self.applied(EffectOutcome::Skipped { why: format!("{reason:?}") })
            }
            StepState::Failed { why } => {
                self.applied(EffectOutcome::Failed { cause: Cause::Git, what: why.clone() })
            }
        }
    }

    fn apply(&mut self, bundle: &BundleId, commit: ObjectId) -> Result<(), JournalError> {
        let Some(known) = self.journal.state().integrations.get(&self.target) else {
            return Ok(());
        };
        let effect = Effect::Apply {
            target: self.target.clone(),
            bundle: bundle.clone(),
            commit,
            onto: known.tip,
        };
        self.applying = Some(self.journal.intent((self.clock)(), effect)?);
        Ok(())
    }

    fn applied(&mut self, outcome: EffectOutcome) -> Result<(), JournalError> {
        if let Some(intent) = self.applying.take() {
            intent.resolve(&mut self.journal, (self.clock)(), outcome)?;
        }
        Ok(())
    }

    /// Records the verdict about a combination.
    pub(super) fn judged(
        &mut self,
        candidate: &Candidate,
        gate_digest: &str,
        verdict: GateVerdict,
    ) -> Result<(), JournalError> {
        let record = self.combined(candidate, gate_digest, verdict);
        if self.journal.state().integrations.contains_key(&self.target) {
            self.journal.append((self.clock)(), vec![record])?;
        }
        Ok(())
    }

    fn combined(&self, candidate: &Candidate, gate_digest: &str, verdict: GateVerdict) -> Record {
        let bundles = &self.journal.state().bundles;
        // Members that landed before are part of the tree, but no longer of this integration's work.
        let is_new = |id: &&BundleId| {
            bundles.get(*id).is_some_and(|work| !matches!(work.status, WorkstreamStatus::Landed))
        };
        Record::Combined {
            target: self.target.clone(),
            tree: candidate.tree(),
            gate_digest: gate_digest.to_owned(),
            verdict,
            members: candidate.bundles().filter(is_new).cloned().collect(),
        }
    }

    /// Records the intent to land a candidate, after a record for each commit that it consists of.
    pub(super) fn land(
        &mut self,
        candidate: &Candidate,
        reference: &str,
        gate_digest: &str,
    ) -> Result<(), JournalError> {
        // The journal refuses a landing of commits that it does not have as applied.
        self.require_applied(candidate)?;
        let combined = self.combined(candidate, gate_digest, GateVerdict::Pass);
        let landing = Effect::Land(Landing {
            target: self.target.clone(),
            reference: reference.to_owned(),
            old: candidate.base(),
            new: candidate.commit(),
            tree: candidate.tree(),
            bundles: candidate.bundles().cloned().collect(),
        });
        self.landing = Some(self.journal.intent_after((self.clock)(), vec![combined], landing)?);
        Ok(())
    }

    /// Makes sure that every commit of a candidate is recorded as applied, also if the candidate is only a part
    /// of the plan.
    fn require_applied(&mut self, candidate: &Candidate) -> Result<(), JournalError> {
        let base = candidate.base();
        let parts: Vec<(BundleId, Vec<AppliedCommit>)> =
            candidate.applied().map(|(id, commits)| (id.clone(), commits.to_vec())).collect();
        let is_known = self.journal.state().integrations.get(&self.target).is_some_and(|known| {
            known.base == base
                && parts.iter().all(|(bundle, commits)| {
                    let became = |commit: &AppliedCommit| {
                        known.progress.get(bundle).is_some_and(|progress| {
                            progress.conflict.is_none()
                                && progress
                                    .commits
                                    .iter()
                                    .any(|applied| applied.became == Some(commit.applied))
                        })
                    };
                    commits.iter().all(became)
                })
        });
        if is_known {
            return Ok(());
        }
        let order = parts.iter().map(|(id, _)| id.clone()).collect();
        let target = self.target.clone();
        self.journal.append((self.clock)(), vec![Record::Planned { target, base, order }])?;
        for (bundle, commits) in parts {
            let sources: Vec<ObjectId> = match &self.journal.state().bundles[&bundle].seal {
                // Commits that the fold skipped have a record too. With one commit it may be a merge, whose
                // source is the head alone.
                Some(sealed) if commits.len() > 1 => sealed.seal.commits.clone(),
                Some(_) | None => commits.iter().map(|commit| commit.source).collect(),
            };
            for source in sources {
                self.apply(&bundle, source)?;
                let became = commits.iter().find(|commit| commit.source == source);
                self.applied(match became {
                    Some(commit) => EffectOutcome::Applied { commit: commit.applied },
                    None => EffectOutcome::Skipped { why: "there already".to_owned() },
                })?;
            }
        }
        Ok(())
    }

    /// Records the outcome of a landing and, if it succeeded, the plan for the rest.
    pub(super) fn landed(
        &mut self,
        outcome: Result<ObjectId, (Cause, String)>,
        rest: &BTreeSet<BundleId>,
    ) -> Result<(), JournalError> {
        let Some(intent) = self.landing.take() else { return Ok(()) };
        let at = (self.clock)();
        match outcome {
            Ok(commit) => {
                let brought = match intent.effect() {
                    Effect::Land(landing) => landing.bundles.clone(),
                    Effect::Rescue { .. } | Effect::Seal(_) | Effect::Apply { .. } => Vec::new(),
                };
                let order =
                    rest.iter().filter(|bundle| !brought.contains(*bundle)).cloned().collect();
                let (target, base) = (self.target.clone(), commit);
                // In one append with the outcome, so that a resumed integration goes on from the new tip.
                let next = Record::Planned { target, base, order };
                intent.resolve_before(&mut self.journal, at, EffectOutcome::Done, vec![next])?;
            }
            Err((cause, what)) => {
                intent.failed(&mut self.journal, at, cause, what)?;
            }
        }
        Ok(())
    }

    /// Records that the integration waits for a person.
    pub(super) fn block(&mut self, reason: Reason, evidence: String) -> Result<(), JournalError> {
        let record = Record::Blocked { bundle: None, reason, evidence };
        self.journal.append((self.clock)(), vec![record])?;
        Ok(())
    }

    /// Records the changes that did not land, and the end of the integration.
    pub(super) fn finish(
        &mut self,
        held: &[HeldChange],
        present: &[BundleId],
    ) -> Result<(), JournalError> {
        let mut records = Vec::new();
        let state = self.journal.state();
        let cut = |text: String| text.chars().take(LONGEST).collect::<String>();
        let out = held.iter().map(|held| (&held.id, reason_of(held.reason), cut(held.sentence())));
        let there = present.iter().map(|id| (id, Reason::NoChange, "it is there already".into()));
        let mut gone = BTreeSet::new();
        for (bundle, reason, evidence) in out.chain(there) {
            let Some(work) = state.bundles.get(bundle) else { continue };
            if matches!(work.status, WorkstreamStatus::Sealed | WorkstreamStatus::Blocked { .. })
                && gone.insert(bundle.clone())
            {
                let (bundle, why) = (bundle.clone(), evidence.clone());
                // A sealed change can be abandoned only once it is blocked, and the block keeps the reason for
                // people.
                records.push(Record::Blocked { bundle: Some(bundle.clone()), reason, evidence });
                records.push(Record::Abandoned { bundle, why });
            }
        }
        records.push(Record::Entered { activity: Activity::Draining });
        for (bundle, work) in &state.bundles {
            if matches!(work.status, WorkstreamStatus::Landed) || gone.contains(bundle) {
                records.push(Record::Cleaned { bundle: bundle.clone() });
            }
        }
        records.push(Record::Completed);
        self.journal.append((self.clock)(), records)?;
        Ok(())
    }
}

fn myself() -> Result<ProcessIdentity, JournalError> {
    let me = ProcessIdentity::of(&HostScope::here()?, std::process::id());
    Ok(me.ok_or_else(|| io::Error::other("this process is not in the process table"))?)
}

fn next(runs: &Runs) -> Result<Epoch, JournalError> {
    // Of all integrations: those of several targets are open at the same time, so the newest one need not have the
    // highest epoch.
    let known = runs.list()?.into_iter().filter_map(|run| runs.find(&run).found.ok());
    next_epoch(known.map(|found| found.state.epoch)).ok_or(JournalError::NoEpoch)
}

fn seal_of(entry: &PlanEntry) -> Seal {
    let record = entry.sealed().record();
    Seal {
        bundle: record.id.clone(),
        base: record.base,
        head: record.head,
        tree: record.tree,
        commits: record.commits.clone(),
        gate_digest: record.gate_digest.clone(),
    }
}

fn reason_of(reason: HeldReason) -> Reason {
    match reason {
        HeldReason::Red | HeldReason::Undecidable => Reason::Validation,
        HeldReason::Conflict => Reason::Conflict,
        HeldReason::Needs
        | HeldReason::Drift
        | HeldReason::Unsealed
        | HeldReason::Reverted
        | HeldReason::Stale => Reason::Recovery,
        HeldReason::Present => Reason::NoChange,
    }
}
