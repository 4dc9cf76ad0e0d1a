//! A conflict as it is now, and what is on record about it. Nothing here changes anything.

use std::collections::BTreeSet;

use pdca_integrate::{Engine, Merged, ObjectId, Sealed, StoreError, contains};
use pdca_leaves::Mode;
use pdca_process::Cancel;
use pdca_state::{Artifact, Bundle, BundleId, LoadError, State};

use crate::site::Site;

use super::case::{Case, CaseFile, Due, End, Stamp};
use super::resolve::{Came, ResolveError, Task, Told};
use super::sides::Sides;
use super::standing::{Accepted, Front, Standing};
use super::tip::Tip;

/// A conflict as it is now, and what is on record about it.
pub(super) struct Matter {
    pub(super) file: CaseFile,
    pub(super) case: Case,
    pub(super) sides: Option<Sides>,
    /// What is known without asking anybody.
    pub(super) known: Option<Came>,
}

impl Site {
    /// Whether somebody is there to resolve conflicts.
    pub fn has_resolver(&self) -> bool {
        !self.force_stubs && self.leaves.resolver.mode == Mode::Command
    }

    /// Says what [`Driver::resolve`](crate::Driver::resolve) would do about an accepted change. Nothing is
    /// written but objects that nothing refers to.
    pub fn rehearse_resolution(
        &self,
        front: &Front,
        id: &BundleId,
        task: Task<'_>,
    ) -> Result<Told, ResolveError> {
        let (change, sealed) = match find(front, id)? {
            Ok(found) => found,
            Err(told) => return Ok(told),
        };
        let tip = Tip::find(front, task.settings, &Cancel::new(), &|_| ())?.at;
        let matter = self.look(front, (change, sealed), tip, task)?;
        Ok(matter.told(id, matter.known.clone().unwrap_or(Came::Due)))
    }

    /// Looks at the change, the branch where it is, and the case.
    pub(super) fn look(
        &self,
        front: &Front,
        (change, sealed): (&Accepted, &Sealed),
        tip: ObjectId,
        task: Task<'_>,
    ) -> Result<Matter, ResolveError> {
        let id = change.bundle.id();
        let head = sealed.record().head.to_string();
        let file = self.case_file(id, &head);
        let failed = |source| ResolveError::Case { dir: file.dir().to_owned(), source };
        let case = file.load().map_err(failed)?;
        let (target, branch) = (&front.target.name, &front.branch);
        let case = case.unwrap_or_else(|| Case::new(id, &head, target, branch));
        let now = Stamp::take(task.clock).map_err(failed)?;
        let mut matter = Matter { file: file.clone(), case, sides: None, known: None };
        matter.known = match &matter.case.end {
            Some(End::Resolved { by, .. }) => Some(Came::Resolved { by: by.clone() }),
            Some(End::Skipped { why, .. }) if holds(front, &matter.case, tip)? => {
                Some(Came::Skipped { why: why.clone() })
            }
            Some(End::Blocked { evidence }) => {
                Some(Came::Blocked { evidence: evidence.clone(), new: false })
            }
            Some(End::Skipped { .. }) | None => None,
        };
        if matter.known.is_some() {
            return Ok(matter);
        }
        // The branch was rewound since: what was found there does not hold any more.
        matter.case.end = None;
        if self.is_put_away(&change.bundle) {
            let why = "it was put away; move it back to have it resolved".to_owned();
            return Ok(Matter { known: Some(Came::Waits { why }), ..matter });
        }
        if let Some(behind) = self.unlanded(front, change, tip, task)? {
            let why = format!("it needs {behind}, which has not landed");
            return Ok(Matter { known: Some(Came::Waits { why }), ..matter });
        }
        let record = sealed.record();
        let drivers = task.settings.drivers()?;
        let mut engine = Engine::new(&front.store, drivers);
        match engine.bring((record.base, record.head), tip)? {
            Merged::Clean { tree } => {
                let known = Some(fits(front, tip, tree)?);
                return Ok(Matter { known, ..matter });
            }
            Merged::Conflicted { tree, conflicts } => {
                let sides = Sides::new(front, sealed, (tip, tree), conflicts)?;
                matter.case.said = sides.sentence();
                matter.case.partners.clone_from(&sides.partners);
                matter.sides = Some(sides);
            }
        }
        if let Due::At(at) = matter.case.due(task.settings.resolve_pause(), &now) {
            matter.known = Some(Came::Later { at });
        }
        Ok(matter)
    }

    /// What the change needs and the branch does not have.
    fn unlanded(
        &self,
        front: &Front,
        change: &Accepted,
        tip: ObjectId,
        task: Task<'_>,
    ) -> Result<Option<BundleId>, ResolveError> {
        for needed in &change.depends_on {
            let found = front.changes.iter().find(|other| other.bundle.id() == needed);
            let is_there = match found {
                None => !task.open.contains(needed),
                Some(other) => {
                    matches!(other.standing, Standing::Landed { .. })
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
        front: &Front,
        change: &Accepted,
        now: ObjectId,
    ) -> Result<bool, StoreError> {
        let Standing::Sealed(sealed) = &change.standing else { return Ok(false) };
        let head = sealed.record().head.to_string();
        let Some(case) = self.conflict_case(change.bundle.id(), &head) else { return Ok(false) };
        Ok(case.skipped_on().is_some() && holds(front, &case, now)?)
    }
}

impl Site {
    /// Whether a bundle lies where nobody drives it.
    pub(super) fn is_put_away(&self, bundle: &Bundle) -> bool {
        bundle.dir() != self.bundles.bundle(bundle.id()).dir()
    }

    /// The changes of which a resolver found that nothing is left to land.
    pub(super) fn skipped(
        &self,
        front: &Front,
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
fn holds(front: &Front, case: &Case, now: ObjectId) -> Result<bool, StoreError> {
    let found = case.skipped_on().and_then(|tip| ObjectId::from_hex(tip.as_bytes()).ok());
    let Some(tip) = found else { return Ok(false) };
    match contains(&front.store, now, tip) {
        // It was collected as garbage, so no branch has it.
        Err(StoreError::NoSuchCommit { commit }) if commit == tip => Ok(false),
        answer => answer,
    }
}

impl Matter {
    pub(super) fn told(&self, id: &BundleId, came: Came) -> Told {
        let said = Some(self.case.said.clone()).filter(|said| !said.is_empty());
        Told { id: id.clone(), said, attempts: self.case.attempts, came }
    }
}

pub(super) fn told(id: &BundleId, came: Came) -> Told {
    Told { id: id.clone(), said: None, attempts: 0, came }
}

/// The change of a bundle and its seal, or why a resolver has nothing to do with it.
pub(super) fn find<'f>(
    front: &'f Front,
    id: &BundleId,
) -> Result<Result<(&'f Accepted, &'f Sealed), Told>, ResolveError> {
    let found = front.changes.iter().find(|change| change.bundle.id() == id);
    let change = found.ok_or_else(|| ResolveError::Unknown { id: id.clone() })?;
    let nothing = |why| Ok(Err(told(id, Came::Nothing { why })));
    let why = match &change.standing {
        Standing::Sealed(sealed) => return Ok(Ok((change, sealed))),
        Standing::Landed { .. } => return nothing("it has landed".to_owned()),
        Standing::Staged { branch, .. } => {
            return nothing(format!("it is in {branch}, without a conflict"));
        }
        Standing::Reverted { by, .. } => return nothing(format!("it was reverted by {by}")),
        Standing::Unsealed => "it was accepted without a seal".to_owned(),
        Standing::Drifted { why } => format!("it is not as it was sealed: {why}"),
    };
    Ok(Err(told(id, Came::Waits { why })))
}

/// Whether a bundle is accepted still, with the same seal. Asked once its lock is held.
pub(super) fn is_as_it_was(change: &Accepted, sealed: &Sealed) -> Result<bool, LoadError> {
    let bundle = &change.bundle;
    if bundle.load()?.state != State::Complete {
        return Ok(false);
    }
    let copy = bundle.read(Artifact::Seal)?;
    Ok(copy.is_none_or(|text| text == sealed.to_json()))
}

/// What a change is that merges with its branch.
fn fits(front: &Front, tip: ObjectId, tree: ObjectId) -> Result<Came, StoreError> {
    let branch = &front.branch;
    if tree == front.store.tree_of(tip)? {
        return Ok(Came::Nothing { why: format!("what it does is in {branch} already") });
    }
    let mut waiting: Vec<&str> = front
        .changes
        .iter()
        .filter_map(|change| match &change.standing {
            Standing::Staged { branch, .. } => Some(branch.as_str()),
            Standing::Unsealed
            | Standing::Sealed(_)
            | Standing::Landed { .. }
            | Standing::Reverted { .. }
            | Standing::Drifted { .. } => None,
        })
        .collect();
    waiting.sort_unstable();
    waiting.dedup();
    if waiting.is_empty() {
        return Ok(Came::Nothing { why: format!("it does not conflict with {branch} as it is") });
    }
    let waiting = waiting.join(", ");
    let why = format!(
        "{branch} as it is has no conflict with it: what waits in {waiting} has to be merged first"
    );
    Ok(Came::Waits { why })
}
