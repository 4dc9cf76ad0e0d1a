//! A conflict as it is now, and what is on record about it. Nothing here changes anything.

use std::collections::BTreeSet;

use pdca_integrate::{Engine, Merged, ObjectId, Sealed, StoreError, contains};
use pdca_leaves::Mode;
use pdca_process::Cancel;
use pdca_state::{Artifact, Bundle, BundleId, LoadError, State};

use crate::config::WorkspaceConfig;

use super::attempts::{ConflictDir, ConflictEnd, ConflictRecord, Due, Stamp};
use super::resolve::{ConflictOutcome, ConflictReport, ResolveError, ResolveRequest};
use super::sides::Sides;
use crate::integrate::landing_base::LandingBase;
use crate::integrate::target_branch::{Accepted, ChangeState, TargetBranch};

/// A conflict as it is now, and what is on record about it.
pub(in crate::integrate) struct ConflictState {
    pub(in crate::integrate) file: ConflictDir,
    pub(in crate::integrate) case: ConflictRecord,
    pub(in crate::integrate) sides: Option<Sides>,
    /// What is known without asking anybody.
    pub(in crate::integrate) known: Option<ConflictOutcome>,
}

impl WorkspaceConfig {
    /// Whether somebody is there to resolve conflicts.
    pub fn has_resolver(&self) -> bool {
        !self.force_stubs && self.leaves.resolver.mode == Mode::Command
    }

    /// Says what [`Driver::resolve`](crate::Driver::resolve) would do about an accepted change. Nothing is
    /// written but objects that nothing refers to.
    pub fn dry_run_resolution(
        &self,
        front: &TargetBranch,
        id: &BundleId,
        task: ResolveRequest<'_>,
    ) -> Result<ConflictReport, ResolveError> {
        let (change, sealed) = match find(front, id)? {
            Ok(found) => found,
            Err(told) => return Ok(told),
        };
        let tip = LandingBase::find(front, task.settings, &Cancel::new(), &|_| ())?.at;
        let matter = self.look(front, (change, sealed), tip, task)?;
        Ok(matter.told(id, matter.known.clone().unwrap_or(ConflictOutcome::Due)))
    }

    /// Looks at the change, the branch where it is, and the case.
    pub(in crate::integrate) fn look(
        &self,
        front: &TargetBranch,
        (change, sealed): (&Accepted, &Sealed),
        tip: ObjectId,
        task: ResolveRequest<'_>,
    ) -> Result<ConflictState, ResolveError> {
        let id = change.bundle.id();
        let head = sealed.record().head.to_string();
        let file = self.conflict_dir(id, &head);
        let failed = |source| ResolveError::ConflictRecord { dir: file.dir().to_owned(), source };
        let case = file.load().map_err(failed)?;
        let (target, branch) = (&front.target.name, &front.branch);
        let case = case.unwrap_or_else(|| ConflictRecord::new(id, &head, target, branch));
        let now = Stamp::take(task.clock).map_err(failed)?;
        let mut matter = ConflictState { file: file.clone(), case, sides: None, known: None };
        matter.known = match &matter.case.end {
            Some(ConflictEnd::Resolved { by, .. }) => {
                Some(ConflictOutcome::Resolved { by: by.clone() })
            }
            Some(ConflictEnd::Skipped { why, .. }) if holds(front, &matter.case, tip)? => {
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
        // The branch was rewound since: what was found there does not hold any more.
        matter.case.end = None;
        if self.is_put_away(&change.bundle) {
            let why = "it was put away; move it back to have it resolved".to_owned();
            return Ok(ConflictState { known: Some(ConflictOutcome::Waits { why }), ..matter });
        }
        if let Some(behind) = self.unlanded(front, change, tip, task)? {
            let why = format!("it needs {behind}, which has not landed");
            return Ok(ConflictState { known: Some(ConflictOutcome::Waits { why }), ..matter });
        }
        let record = sealed.record();
        let drivers = task.settings.drivers()?;
        let mut engine = Engine::new(&front.store, drivers);
        match engine.bring((record.base, record.head), tip)? {
            Merged::Clean { tree } => {
                let known = Some(fits(front, tip, tree)?);
                return Ok(ConflictState { known, ..matter });
            }
            Merged::Conflicted { tree, conflicts } => {
                let sides = Sides::new(front, sealed, (tip, tree), conflicts)?;
                matter.case.said = sides.sentence();
                matter.case.partners.clone_from(&sides.partners);
                matter.sides = Some(sides);
            }
        }
        if let Due::At(at) = matter.case.due(task.settings.resolve_pause(), &now) {
            matter.known = Some(ConflictOutcome::Later { at });
        }
        Ok(matter)
    }

    /// What the change needs and the branch does not have.
    fn unlanded(
        &self,
        front: &TargetBranch,
        change: &Accepted,
        tip: ObjectId,
        task: ResolveRequest<'_>,
    ) -> Result<Option<BundleId>, ResolveError> {
        for needed in &change.depends_on {
            let found = front.changes.iter().find(|other| other.bundle.id() == needed);
            let is_there = match found {
                None => !task.open.contains(needed),
                Some(other) => {
                    matches!(other.standing, ChangeState::Landed { .. })
                        || self.is_skipped(front, other, tip)?
                }
            };
            if !is_there {
                return Ok(Some(needed.clone()));
            }
        }
        Ok(None)
    }

    /// Whether the resolver found that the branch has the effect of a change already. That holds as long
    /// as the branch has the commit on which it was found.
    fn is_skipped(
        &self,
        front: &TargetBranch,
        change: &Accepted,
        now: ObjectId,
    ) -> Result<bool, StoreError> {
        let ChangeState::Sealed(sealed) = &change.standing else { return Ok(false) };
        let head = sealed.record().head.to_string();
        let Some(case) = self.conflict_record(change.bundle.id(), &head) else { return Ok(false) };
        Ok(case.skipped_on().is_some() && holds(front, &case, now)?)
    }
}

impl WorkspaceConfig {
    /// Whether a bundle lies where nobody drives it.
    pub(in crate::integrate) fn is_put_away(&self, bundle: &Bundle) -> bool {
        bundle.dir() != self.bundles.bundle(bundle.id()).dir()
    }

    /// The changes of which a resolver found that nothing is left to land.
    pub(in crate::integrate) fn skipped(
        &self,
        front: &TargetBranch,
        now: ObjectId,
    ) -> Result<BTreeSet<BundleId>, StoreError> {
        let mut skipped = BTreeSet::new();
        for change in &front.changes {
            if self.is_skipped(front, change, now)? {
                skipped.insert(change.bundle.id().clone());
            }
        }
        Ok(skipped)
    }
}

/// Whether the branch has the commit on which it was found that it has the effect of the change.
fn holds(front: &TargetBranch, case: &ConflictRecord, now: ObjectId) -> Result<bool, StoreError> {
    let found = case.skipped_on().and_then(|tip| ObjectId::from_hex(tip.as_bytes()).ok());
    let Some(tip) = found else { return Ok(false) };
    match contains(&front.store, now, tip) {
        // It was collected as garbage, so no branch has it.
        Err(StoreError::NoSuchCommit { commit }) if commit == tip => Ok(false),
        answer => answer,
    }
}

impl ConflictState {
    pub(in crate::integrate) fn told(
        &self,
        id: &BundleId,
        came: ConflictOutcome,
    ) -> ConflictReport {
        let said = Some(self.case.said.clone()).filter(|said| !said.is_empty());
        ConflictReport { id: id.clone(), said, attempts: self.case.attempts, came }
    }
}

pub(in crate::integrate) fn told(id: &BundleId, came: ConflictOutcome) -> ConflictReport {
    ConflictReport { id: id.clone(), said: None, attempts: 0, came }
}

/// The change of a bundle and its seal, or why a resolver has nothing to do with it.
pub(in crate::integrate) fn find<'f>(
    front: &'f TargetBranch,
    id: &BundleId,
) -> Result<Result<(&'f Accepted, &'f Sealed), ConflictReport>, ResolveError> {
    let found = front.changes.iter().find(|change| change.bundle.id() == id);
    let change = found.ok_or_else(|| ResolveError::Unknown { id: id.clone() })?;
    let nothing = |why| Ok(Err(told(id, ConflictOutcome::Nothing { why })));
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
    Ok(Err(told(id, ConflictOutcome::Waits { why })))
}

/// Whether a bundle is accepted still, with the same seal. Asked once its lock is held.
pub(in crate::integrate) fn is_as_it_was(
    change: &Accepted,
    sealed: &Sealed,
) -> Result<bool, LoadError> {
    let bundle = &change.bundle;
    if bundle.load()?.state != State::Complete {
        return Ok(false);
    }
    let copy = bundle.read(Artifact::Seal)?;
    Ok(copy.is_none_or(|text| text == sealed.to_json()))
}

/// What a change is that merges with its branch.
fn fits(
    front: &TargetBranch,
    tip: ObjectId,
    tree: ObjectId,
) -> Result<ConflictOutcome, StoreError> {
    let branch = &front.branch;
    if tree == front.store.tree_of(tip)? {
        return Ok(ConflictOutcome::Nothing {
            why: format!("what it does is in {branch} already"),
        });
    }
    let mut waiting: Vec<&str> = front
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
            why: format!("it does not conflict with {branch} as it is"),
        });
    }
    let waiting = waiting.join(", ");
    let why = format!(
        "{branch} as it is has no conflict with it: what waits in {waiting} has to be merged first"
    );
    Ok(ConflictOutcome::Waits { why })
}
