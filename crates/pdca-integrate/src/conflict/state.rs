//! The current state of a conflict and its record. Nothing here changes anything.

use std::collections::BTreeSet;
use std::io;

use camino::Utf8PathBuf;
use pdca_journal::Clock;
use pdca_process::Cancel;
use pdca_state::{Artifact, Bundle, BundleId, LoadError, RootError, State};

use crate::queue::IntegrateError;
use crate::queue::landing_base::LandingBase;
use crate::queue::landing_mode::BaseSearch;
use crate::queue::settings::QueueSettings;
use crate::queue::target_branch::{AcceptedChange, ChangeState, TargetBranch};
use crate::{
    EngineError, MergeEngine, Merged, ObjectId, QueueWorkspace, Sealed, StoreError, contains,
};

use super::attempts::{BootMoment, ConflictDir, ConflictEnd, ConflictRecord, Due, conflict_record};
use super::sides::Sides;

/// The settings of an attempt to resolve a conflict.
#[derive(Debug, Clone, Copy)]
pub struct ResolveRequest<'a> {
    pub settings: &'a QueueSettings,
    /// The unfinished bundles.
    pub open: &'a BTreeSet<BundleId>,
    pub clock: Clock,
}

/// The report about a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictReport {
    pub id: BundleId,
    /// The sentence that describes the conflict, if there is one.
    pub said: Option<String>,
    /// The number of attempts so far.
    pub attempts: u32,
    pub came: ConflictOutcome,
}

/// The outcome of looking at a conflict or of trying to resolve it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictOutcome {
    /// The resolver may be called now. Only reported by a dry run.
    Due,
    /// Resolved: the change is ready for Check.
    Resolved {
        /// The name of the resolver.
        by: String,
    },
    /// The resolver left nothing of the change: its effect is in the branch already.
    Skipped {
        why: String,
    },
    Failed {
        what: String,
        log: Utf8PathBuf,
        /// The time of the next attempt.
        due: Due,
    },
    /// All attempts were used: `blocked_conflict`.
    Blocked {
        /// The evidence for a person.
        evidence: String,
        /// True if this attempt was the last one.
        new: bool,
    },
    /// The next attempt is not due yet.
    Later {
        /// The time at which it is, for people.
        at: String,
    },
    Nothing {
        why: String,
    },
    /// A resolver could do nothing now.
    Waits {
        why: String,
    },
    /// Another process works on it.
    Busy {
        /// The name that it gave.
        holder: String,
    },
}

/// The reasons why the state of a conflict cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum ConflictError {
    #[error("{id} is not accepted for this branch")]
    Unknown { id: BundleId },
    #[error(transparent)]
    LandingBase(Box<IntegrateError>),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("the record of the conflict in {dir} cannot be used")]
    Record { dir: Utf8PathBuf, source: io::Error },
}

impl From<IntegrateError> for ConflictError {
    fn from(error: IntegrateError) -> Self {
        Self::LandingBase(Box::new(error))
    }
}

/// The current state of a conflict and its record.
#[derive(Debug)]
pub struct ConflictState {
    pub dir: ConflictDir,
    pub record: ConflictRecord,
    /// Both sides, if they conflict now.
    pub sides: Option<Sides>,
    /// The outcome, if it is known without calling a resolver.
    pub known: Option<ConflictOutcome>,
}

/// Finds the commit to resolve conflicts on: the tip of the branch, or what is staged on top of it.
pub fn find_base(
    branch: &TargetBranch,
    settings: &QueueSettings,
    cancel: &Cancel,
    tell: &dyn Fn(String),
) -> Result<ObjectId, IntegrateError> {
    Ok(LandingBase::to_land_on(&BaseSearch { branch, settings, cancel, tell })?.at)
}

/// Predicts the outcome of an attempt to resolve the conflict of a change. Writes nothing but unreferenced objects.
pub fn dry_run_resolution(
    workspace: &QueueWorkspace,
    branch: &TargetBranch,
    id: &BundleId,
    request: ResolveRequest<'_>,
) -> Result<ConflictReport, ConflictError> {
    let found = match find_sealed(branch, id)? {
        Ok(found) => found,
        Err(report) => return Ok(report),
    };
    let tip = find_base(branch, request.settings, &Cancel::new(), &|_| ())?;
    let mut state = ConflictState::look(workspace, branch, found, tip, request)?;
    let failed = |source| ConflictError::Record { dir: state.dir.dir().to_owned(), source };
    let now = BootMoment::take(request.clock).map_err(failed)?;
    let due = state.record.due(request.settings.resolve_pause(), &now);
    // An attempt that was begun too often is blocked by the next one, without a call of the resolver.
    if state.known.is_none() && due == Due::Never {
        state.record.exhaust();
        let evidence = state.record.block().unwrap_or_default().to_owned();
        state.known = Some(ConflictOutcome::Blocked { evidence, new: true });
    }
    Ok(state.report(id, state.known.clone().unwrap_or(ConflictOutcome::Due)))
}

impl ConflictState {
    /// Reads the change, the branch at `tip` and the record.
    pub fn look(
        workspace: &QueueWorkspace,
        branch: &TargetBranch,
        (change, sealed): (&AcceptedChange, &Sealed),
        tip: ObjectId,
        request: ResolveRequest<'_>,
    ) -> Result<Self, ConflictError> {
        let id = change.bundle.id();
        let head = sealed.record().head.to_string();
        let file = ConflictDir::of(workspace, id, &head);
        let failed = |source| ConflictError::Record { dir: file.dir().to_owned(), source };
        let case = file.load().map_err(failed)?;
        let case = case
            .unwrap_or_else(|| ConflictRecord::new(id, &head, &branch.target.name, &branch.branch));
        let now = BootMoment::take(request.clock).map_err(failed)?;
        let mut matter = Self { dir: file.clone(), record: case, sides: None, known: None };
        matter.known = match &matter.record.end {
            Some(ConflictEnd::Resolved { by, .. }) => {
                Some(ConflictOutcome::Resolved { by: by.clone() })
            }
            Some(ConflictEnd::Skipped { why, .. }) if holds(branch, &matter.record, tip)? => {
                Some(ConflictOutcome::Skipped { why: why.clone() })
            }
            Some(ConflictEnd::Blocked { evidence }) => {
                Some(ConflictOutcome::Blocked { evidence: evidence.clone(), new: false })
            }
            Some(ConflictEnd::Skipped { .. }) | None => None,
        };
        if matter.known.is_some() {
            return Ok(matter);
        }
        // The branch was rewound since the change was skipped, so that end no longer counts.
        matter.record.end = None;
        if is_put_away(workspace, &change.bundle) {
            let why = "it was put away; move it back to have it resolved".to_owned();
            return Ok(Self { known: Some(ConflictOutcome::Waits { why }), ..matter });
        }
        if let Some(behind) = unlanded(workspace, branch, change, tip, request)? {
            let why = format!("it needs {behind}, which has not landed");
            return Ok(Self { known: Some(ConflictOutcome::Waits { why }), ..matter });
        }
        let record = sealed.record();
        let drivers = request.settings.drivers()?;
        let mut engine = MergeEngine::new(&branch.store, drivers);
        match engine.bring((record.base, record.head), tip)? {
            Merged::Clean { tree } => {
                let known = Some(fits(branch, tip, tree)?);
                return Ok(Self { known, ..matter });
            }
            Merged::Conflicted { tree, conflicts } => {
                let sides = Sides::new(branch, sealed, (tip, tree), conflicts)?;
                matter.record.said = sides.sentence();
                // In memory only. The caller stores the record when an attempt begins.
                matter.record.partners.clone_from(&sides.partners);
                matter.sides = Some(sides);
            }
        }
        if let Due::At(at) = matter.record.due(request.settings.resolve_pause(), &now) {
            matter.known = Some(ConflictOutcome::Later { at });
        }
        Ok(matter)
    }

    pub fn report(&self, id: &BundleId, came: ConflictOutcome) -> ConflictReport {
        let said = Some(self.record.said.clone()).filter(|said| !said.is_empty());
        ConflictReport { id: id.clone(), said, attempts: self.record.attempts, came }
    }
}

/// Returns the first dependency of a change that the branch does not have.
fn unlanded(
    workspace: &QueueWorkspace,
    branch: &TargetBranch,
    change: &AcceptedChange,
    tip: ObjectId,
    request: ResolveRequest<'_>,
) -> Result<Option<BundleId>, StoreError> {
    for needed in &change.depends_on {
        let is_there = match branch.change(needed) {
            // It is neither accepted for this branch nor unfinished, so there is nothing to wait for here.
            None => !request.open.contains(needed),
            Some(other) => match &other.standing {
                ChangeState::Landed { .. } => true,
                // It counts where the conflict is resolved on top of it.
                ChangeState::Staged { commit, .. } => contains(&branch.store, tip, *commit)?,
                ChangeState::Unsealed
                | ChangeState::Sealed(_)
                | ChangeState::Reverted { .. }
                | ChangeState::Drifted { .. } => is_skipped(workspace, branch, other, tip)?,
            },
        };
        if !is_there {
            return Ok(Some(needed.clone()));
        }
    }
    Ok(None)
}

/// Returns true if the resolver found that the branch already has the effect of a change. That counts as long
/// as the branch contains the commit on which it was found.
fn is_skipped(
    workspace: &QueueWorkspace,
    branch: &TargetBranch,
    change: &AcceptedChange,
    now: ObjectId,
) -> Result<bool, StoreError> {
    let ChangeState::Sealed(sealed) = &change.standing else { return Ok(false) };
    let head = sealed.record().head.to_string();
    let record = conflict_record(workspace, change.bundle.id(), &head);
    let Some(record) = record else { return Ok(false) };
    Ok(record.skipped_on().is_some() && holds(branch, &record, now)?)
}

/// Returns true if a bundle was put away, where no driver looks for it.
pub fn is_put_away(workspace: &QueueWorkspace, bundle: &Bundle) -> bool {
    bundle.dir() != workspace.dirs.bundles.bundle(bundle.id()).dir()
}

/// Returns the changes of which a resolver found that nothing is left to land.
pub(crate) fn skipped(
    workspace: &QueueWorkspace,
    branch: &TargetBranch,
    now: ObjectId,
) -> Result<BTreeSet<BundleId>, StoreError> {
    let mut skipped = BTreeSet::new();
    for change in &branch.changes {
        if is_skipped(workspace, branch, change, now)? {
            skipped.insert(change.bundle.id().clone());
        }
    }
    Ok(skipped)
}

/// Returns true if the branch still contains the commit on which the change was skipped.
fn holds(branch: &TargetBranch, case: &ConflictRecord, now: ObjectId) -> Result<bool, StoreError> {
    let found = case.skipped_on().and_then(|tip| ObjectId::from_hex(tip.as_bytes()).ok());
    let Some(tip) = found else { return Ok(false) };
    match contains(&branch.store, now, tip) {
        // The commit was garbage-collected, so no branch contains it.
        Err(StoreError::NoSuchCommit { commit }) if commit == tip => Ok(false),
        answer => answer,
    }
}

/// Returns a report about a change without a record.
pub fn report(id: &BundleId, came: ConflictOutcome) -> ConflictReport {
    ConflictReport { id: id.clone(), said: None, attempts: 0, came }
}

/// Returns the change of a bundle and its seal, or a report if a resolver has nothing to do with it.
pub fn find_sealed<'f>(
    branch: &'f TargetBranch,
    id: &BundleId,
) -> Result<Result<(&'f AcceptedChange, &'f Sealed), ConflictReport>, ConflictError> {
    let change = branch.change(id).ok_or_else(|| ConflictError::Unknown { id: id.clone() })?;
    let nothing = |why| Ok(Err(report(id, ConflictOutcome::Nothing { why })));
    let why = match &change.standing {
        ChangeState::Sealed(sealed) => return Ok(Ok((change, sealed))),
        ChangeState::Landed { .. } => return nothing("it has landed".to_owned()),
        ChangeState::Staged { branch, .. } => {
            return nothing(format!("it is in {branch}, without a conflict"));
        }
        ChangeState::Reverted { by, .. } => return nothing(format!("it was reverted by {by}")),
        ChangeState::Unsealed => "it was accepted without a seal".to_owned(),
        ChangeState::Drifted { why } => format!("it is not as it was sealed: {why}"),
    };
    Ok(Err(report(id, ConflictOutcome::Waits { why })))
}

/// Returns true if a bundle is still accepted with the same seal. To be called once its lock is held.
pub fn is_as_it_was(change: &AcceptedChange, sealed: &Sealed) -> Result<bool, LoadError> {
    let bundle = &change.bundle;
    if bundle.load()?.state != State::Complete {
        return Ok(false);
    }
    let copy = bundle.read(Artifact::Seal)?;
    // Without a copy the seal in the repository alone counts.
    Ok(copy.is_none_or(|text| text == sealed.to_json()))
}

/// Returns the outcome for a change that merges with its branch.
fn fits(
    branch: &TargetBranch,
    tip: ObjectId,
    tree: ObjectId,
) -> Result<ConflictOutcome, StoreError> {
    let name = &branch.branch;
    if tree == branch.store.tree_of(tip)? {
        return Ok(ConflictOutcome::Nothing { why: format!("what it does is in {name} already") });
    }
    let mut waiting: Vec<&str> = branch
        .changes
        .iter()
        .filter_map(|change| match &change.standing {
            ChangeState::Staged { branch, .. } => Some(branch.as_str()),
            ChangeState::Unsealed
            | ChangeState::Sealed(_)
            | ChangeState::Landed { .. }
            | ChangeState::Reverted { .. }
            | ChangeState::Drifted { .. } => None,
        })
        .collect();
    waiting.sort_unstable();
    waiting.dedup();
    if waiting.is_empty() {
        return Ok(ConflictOutcome::Nothing {
            why: format!("it does not conflict with {name} as it is"),
        });
    }
    let waiting = waiting.join(", ");
    let why = format!(
        "{name} as it is has no conflict with it: what waits in {waiting} has to be merged first"
    );
    Ok(ConflictOutcome::Waits { why })
}
