//! The refs that protect gated tips from gc, and the rules for removing them.
//!
//! `refs/pdca/<run>/int/<n>` is needed while its integration is active. Afterwards it is removed as soon
//! as a branch contains its commit. If no branch does, because the combination was red or
//! superseded, it is evidence for as long as the record of its integration is kept. Then it is removed too, if
//! every change in it still has its seal: folding the same seals onto the same base gives the same
//! ids again. Any other ref stays, with the reason.

use std::time::Duration;

use pdca_journal::{Admission, AdmissionError, Moment, RunId, RunState, Workstream};
use pdca_state::State;

use crate::queue::journal::LOCK;
use crate::{
    Destination, Fence, ObjectId, QueueWorkspace, RefError, RefNamespace, ReflogEntry, Sealed,
    Store, StoreError, TargetSpec, contains, drop_own_ref, refs_below, staged_by, staged_for,
    stager, work_prefix, work_ref, workspace_of,
};

/// A ref that protects a commit from gc.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcRef {
    /// The target whose repository has it.
    pub target: String,
    pub name: String,
    pub commit: ObjectId,
    /// The reason to remove it, or to keep it.
    pub fate: Result<String, KeepReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepReason {
    /// Its integration is active, or its record cannot be read.
    Active,
    /// No branch contains its commit, and the record of its integration is still kept.
    Evidence,
    /// No branch contains its commit, and it cannot be made again from seals.
    Only,
    /// It is a staging branch that is not merged.
    Staged,
    /// It protects work that is not accepted yet.
    Work,
    /// Another workspace that integrates here made it, or may have.
    Foreign,
}

impl KeepReason {
    /// Returns the reason as a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "its integration is not over",
            Self::Evidence => "no branch has its commit, and the record of its integration is kept",
            Self::Only => "no branch has its commit, and no seals that make it again are known",
            Self::Staged => "it is not merged",
            Self::Work => "the work is not accepted yet",
            Self::Foreign => "another workspace made it",
        }
    }
}

/// The reason refs could not be listed or removed.
#[derive(Debug, thiserror::Error)]
pub enum GcRefError {
    /// A driver is working on the target.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    #[error(transparent)]
    Ref(#[from] RefError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the target `{target}` is not configured")]
    NoTarget { target: String },
}

/// Returns every ref of ours in the targets, each with its fate; the integrations in `ending` count as
/// over. Changes nothing.
pub fn gc_refs(
    workspace: &QueueWorkspace,
    now: Moment,
    keep: Duration,
    ending: &[RunId],
) -> Result<Vec<GcRef>, GcRefError> {
    let mut anchors = Vec::new();
    for target in &workspace.targets {
        let store = workspace.store(target)?;
        let all = refs_below(&store, "refs/pdca/")?;
        anchors.extend(staging_anchors(workspace, target, &store, &all)?);
        let mark = workspace.dirs.mark();
        let is_shared =
            all.iter().any(|(name, _)| workspace_of(name).is_some_and(|other| other != mark));
        anchors.extend(work_anchors(workspace, target, &all));
        if !all.iter().any(|(name, _)| RefNamespace::of_fold_ref(name).is_some()) {
            continue;
        }
        // The last seen tip of a remote branch protects a commit like a local branch.
        let seen = all.iter().filter(|(name, _)| Destination::is_sighting(name)).cloned();
        let mut branches = refs_below(&store, "refs/heads/")?;
        branches.extend(seen);
        for (name, commit) in all {
            let Some(run) = RefNamespace::of_fold_ref(&name) else { continue };
            let is_ending = ending.iter().any(|id| id.as_str() == run.as_str());
            let age = Age { now, keep, is_ending };
            let fate = fate(workspace, &store, &branches, (&run, is_shared), commit, age)?;
            anchors.push(GcRef { target: target.name.clone(), name, commit, fate });
        }
    }
    Ok(anchors)
}

/// Returns the staging branches of this workspace, and the refs that say so. Each may go once its target branch contains
/// its commit. Those of other workspaces stay, merged or not: their owners clean them up.
fn staging_anchors(
    workspace: &QueueWorkspace,
    target: &TargetSpec,
    store: &Store,
    all: &[(String, ObjectId)],
) -> Result<Vec<GcRef>, StoreError> {
    let mut anchors = Vec::new();
    let mark = workspace.dirs.mark();
    for (name, commit) in refs_below(store, "refs/heads/")? {
        let Some(branch) = staged_for(&name) else { continue };
        let is_merged = match store.branch_tip(branch)? {
            Some(tip) => contains(store, tip, commit)?,
            None => false,
        };
        let owner = staged_by(&mark, branch);
        let staged = |by: &String| stager(by, branch).is_some();
        let stagers: Vec<&String> =
            all.iter().filter(|(by, at)| staged(by) && *at == commit).map(|(by, _)| by).collect();
        // Without a ref beside it, it is of an earlier version, which knew one workspace alone.
        let is_own = stagers.is_empty() || stagers.contains(&&owner);
        let merged = || format!("{branch} has all of it");
        let fate = match (is_own, is_merged) {
            (false, _) => Err(KeepReason::Foreign),
            (true, true) => Ok(merged()),
            (true, false) => Err(KeepReason::Staged),
        };
        if let (true, Ok(why)) = (stagers.contains(&&owner), &fate) {
            let (target, fate) = (target.name.clone(), Ok(why.clone()));
            anchors.push(GcRef { target, name: owner, commit, fate });
        }
        anchors.push(GcRef { target: target.name.clone(), name, commit, fate });
    }
    Ok(anchors)
}

/// Returns the refs that protect work of this workspace. Each may go once a seal protects the work, or it was discontinued.
fn work_anchors(
    workspace: &QueueWorkspace,
    target: &TargetSpec,
    all: &[(String, ObjectId)],
) -> Vec<GcRef> {
    let bundles = workspace.dirs.bundles.list().unwrap_or_default();
    let of_bundle = |name: &str| {
        let mark = workspace.dirs.mark();
        let found = bundles.iter().find(|bundle| work_ref(&mark, bundle.id()) == name)?;
        found.glance().ok().map(|glance| glance.state)
    };
    let own = work_prefix(&workspace.dirs.mark());
    let own = all.iter().filter(|(name, _)| name.starts_with(&own));
    let anchors = own.map(|(name, commit)| {
        let fate = match of_bundle(name) {
            None => Ok("its bundle is gone or put away".to_owned()),
            Some(State::Complete) => Ok("its seal keeps the work".to_owned()),
            Some(State::Discontinued | State::Resolved) => Ok("it was given up".to_owned()),
            Some(
                State::Unplanned
                | State::Planned
                | State::Built
                | State::Checked
                | State::AwaitingSignoff
                | State::Iterate(_),
            ) => Err(KeepReason::Work),
        };
        GcRef { target: target.name.clone(), name: name.clone(), commit: *commit, fate }
    });
    anchors.collect()
}

fn fate(
    workspace: &QueueWorkspace,
    store: &Store,
    branches: &[(String, ObjectId)],
    (run, is_shared): (&RefNamespace, bool),
    commit: ObjectId,
    age: Age,
) -> Result<Result<String, KeepReason>, StoreError> {
    let id: Option<RunId> = run.as_str().parse().ok();
    let runs = workspace.dirs.integrations();
    let id = id.filter(|id| runs.dir(id).exists());
    // Without a record it is of another workspace, or the record was removed here.
    if id.is_none() && is_shared {
        return Ok(Err(KeepReason::Foreign));
    }
    let record = id.map(|id| runs.find(&id).found.map(|found| found.state));
    let is_active = match &record {
        None => false,
        // A record that cannot be read may be of an integration that still lands.
        Some(Err(_)) => true,
        Some(Ok(state)) => state.is_active() && !age.is_ending,
    };
    if is_active {
        return Ok(Err(KeepReason::Active));
    }
    for (name, tip) in branches {
        if contains(store, *tip, commit)? {
            let name = name.trim_start_matches("refs/heads/");
            return Ok(Ok(format!("{name} has its commit")));
        }
    }
    Ok(match record {
        Some(Ok(state)) if !age.is_past(&state) => Err(KeepReason::Evidence),
        Some(Ok(state)) if all_sealed(store, &state)? => {
            Ok("its integration is over, and the seals make it again".to_owned())
        }
        Some(_) | None => Err(KeepReason::Only),
    })
}

/// Removes a ref, if it is still at the same commit. No driver may be working on the target.
pub fn drop_gc_ref(
    workspace: &QueueWorkspace,
    anchor: &GcRef,
    seconds: i64,
) -> Result<(), GcRefError> {
    let is_it = |target: &&TargetSpec| target.name == anchor.target;
    let Some(target) = workspace.targets.iter().find(is_it) else {
        return Err(GcRefError::NoTarget { target: anchor.target.clone() });
    };
    let store = workspace.store(target)?;
    // Both kinds of driver use these refs: one that builds and one that integrates.
    let locks = [pdca_journal::lock_path(store.common_dir()), store.common_dir().join(LOCK)];
    let _admission = Admission::take(locks)?;
    // The locks are held, so no driver is fenced out by using the present fence.
    let Some(fence) = Fence::current(&store)? else { return Ok(()) };
    let log = ReflogEntry { message: "pdca: what was gated is over", seconds };
    drop_own_ref(&store, &fence, &anchor.name, anchor.commit, log)?;
    Ok(())
}

/// The minimum age of an integration whose refs are removed.
#[derive(Clone, Copy)]
struct Age {
    now: Moment,
    keep: Duration,
    /// The integration ends now, so it has no age yet.
    is_ending: bool,
}

impl Age {
    fn is_past(self, state: &RunState) -> bool {
        if self.is_ending { self.keep.is_zero() } else { state.is_over_for(self.keep, self.now) }
    }
}

/// Returns whether every change of an integration still has the seal that it had then.
fn all_sealed(store: &Store, state: &RunState) -> Result<bool, StoreError> {
    let known: Vec<Sealed> = Sealed::all(store)?.into_iter().flatten().collect();
    let is_there = |work: &Workstream| {
        let head = work.seal.as_ref().map(|known| known.seal.head);
        head.is_some_and(|head| known.iter().any(|sealed| sealed.record().head == head))
    };
    Ok(state.bundles.values().all(is_there))
}
