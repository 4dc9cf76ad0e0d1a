//! The refs that kept tips from a collection of garbage while they were gated, and when they may go.
//!
//! `refs/pdca/<run>/int/<n>` is needed while its integration is under way. Afterwards it goes as soon
//! as a branch has its commit. One whose commit no branch has, because the combination was red or was
//! superseded, is evidence for as long as the record of its integration is kept; then it goes too, if
//! every change in it still has its seal: a fold of the same seals onto the same base gives the same
//! ids again. Anything else stays, with the reason.

use std::time::Duration;

use pdca_integrate::{
    Destination, Fence, LOCK, Log, ObjectId, RefError, Run, Sealed, Store, StoreError, contains,
    drop_own_ref, refs_below, staged_for, work_prefix, work_ref,
};
use pdca_journal::{Admission, AdmissionError, Moment, RunId, RunState, Workstream};

use pdca_state::State;

use crate::config::{TargetSpec, WorkspaceConfig};
use crate::run::is_past;

/// A ref that kept the tip of a combination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcRef {
    /// The target whose repository has it.
    pub target: String,
    /// The ref.
    pub name: String,
    /// The commit.
    pub commit: ObjectId,
    /// The reason why it may go, or why it stays.
    pub fate: Result<String, KeepReason>,
}

/// Why an anchor stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepReason {
    /// Its integration is not over, or that is not known.
    Active,
    /// No branch has its commit, and the record of its integration is kept still.
    Evidence,
    /// No branch has its commit, and it is not known to be made again from seals.
    Only,
    /// It is a staging branch that is not merged.
    Staged,
    /// It keeps work that is not accepted yet.
    Work,
}

impl KeepReason {
    /// The reason, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "its integration is not over",
            Self::Evidence => "no branch has its commit, and the record of its integration is kept",
            Self::Only => "no branch has its commit, and no seals that make it again are known",
            Self::Staged => "it is not merged",
            Self::Work => "the work is not accepted yet",
        }
    }
}

/// Why anchors could not be looked at or removed.
#[derive(Debug, thiserror::Error)]
pub enum GcRefError {
    /// A driver is at work on the target.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// The ref could not be removed.
    #[error(transparent)]
    Ref(#[from] RefError),
    /// The repository cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The target of the anchor is not configured.
    #[error("the target `{target}` is not configured")]
    NoTarget {
        /// The target.
        target: String,
    },
}

/// Every anchor in the targets, each with what becomes of it; the integrations `ending` count as
/// over. Changes nothing.
pub fn gc_refs(
    config: &WorkspaceConfig,
    now: Moment,
    keep: Duration,
    ending: &[RunId],
) -> Result<Vec<GcRef>, GcRefError> {
    let mut anchors = Vec::new();
    for target in &config.targets {
        let store = config.store(target)?;
        anchors.extend(staging_anchors(target, &store)?);
        let all = refs_below(&store, "refs/pdca/")?;
        anchors.extend(work_anchors(config, target, &all));
        if !all.iter().any(|(name, _)| Run::of_fold_ref(name).is_some()) {
            continue;
        }
        // What a remote was last seen at is as good as a branch here.
        let seen = all.iter().filter(|(name, _)| Destination::is_sighting(name)).cloned();
        let mut branches = refs_below(&store, "refs/heads/")?;
        branches.extend(seen);
        for (name, commit) in all {
            let Some(run) = Run::of_fold_ref(&name) else { continue };
            let is_ending = ending.iter().any(|id| id.as_str() == run.as_str());
            let age = Age { now, keep, is_ending };
            let fate = fate(config, &store, &branches, &run, commit, age)?;
            anchors.push(GcRef { target: target.name.clone(), name, commit, fate });
        }
    }
    Ok(anchors)
}

/// The staging branches: each goes once the branch that it is for has its commit.
fn staging_anchors(target: &TargetSpec, store: &Store) -> Result<Vec<GcRef>, StoreError> {
    let mut anchors = Vec::new();
    for (name, commit) in refs_below(store, "refs/heads/")? {
        let Some(branch) = staged_for(&name) else { continue };
        let is_merged = match store.branch_tip(branch)? {
            Some(tip) => contains(store, tip, commit)?,
            None => false,
        };
        let merged = || format!("{branch} has all of it");
        let fate = if is_merged { Ok(merged()) } else { Err(KeepReason::Staged) };
        anchors.push(GcRef { target: target.name.clone(), name, commit, fate });
    }
    Ok(anchors)
}

/// The refs that keep work of this workspace: each goes once a seal keeps the work, or nobody wants it.
fn work_anchors(
    config: &WorkspaceConfig,
    target: &TargetSpec,
    all: &[(String, ObjectId)],
) -> Vec<GcRef> {
    let bundles = config.dirs.bundles.list().unwrap_or_default();
    let of_bundle = |name: &str| {
        let mark = config.dirs.mark();
        let found = bundles.iter().find(|bundle| work_ref(&mark, bundle.id()) == name)?;
        found.glance().ok().map(|glance| glance.state)
    };
    let own = work_prefix(&config.dirs.mark());
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
    config: &WorkspaceConfig,
    store: &Store,
    branches: &[(String, ObjectId)],
    run: &Run,
    commit: ObjectId,
    age: Age,
) -> Result<Result<String, KeepReason>, StoreError> {
    let id: Option<RunId> = run.as_str().parse().ok();
    let runs = config.dirs.integrations();
    let id = id.filter(|id| runs.dir(id).exists());
    let record = id.map(|id| runs.find(&id).found.map(|found| found.state));
    let is_active = match &record {
        None => false,
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

/// Removes an anchor that may go, if it is where it was. No driver may be at work on the target.
pub fn drop_gc_ref(
    config: &WorkspaceConfig,
    anchor: &GcRef,
    seconds: i64,
) -> Result<(), GcRefError> {
    let is_it = |target: &&TargetSpec| target.name == anchor.target;
    let Some(target) = config.targets.iter().find(is_it) else {
        return Err(GcRefError::NoTarget { target: anchor.target.clone() });
    };
    let store = config.store(target)?;
    let locks = [pdca_journal::lock_path(store.common_dir()), store.common_dir().join(LOCK)];
    let _admission = Admission::take(locks)?;
    // Nobody drives, so the fence is ours to change refs by as it is.
    let Some(fence) = Fence::current(&store)? else { return Ok(()) };
    let log = Log { message: "pdca: what was gated is over", seconds };
    drop_own_ref(&store, &fence, &anchor.name, anchor.commit, log)?;
    Ok(())
}

/// What decides whether an integration ended long enough ago.
#[derive(Clone, Copy)]
struct Age {
    now: Moment,
    keep: Duration,
    /// It ends now.
    is_ending: bool,
}

impl Age {
    fn is_past(self, state: &RunState) -> bool {
        if self.is_ending { self.keep.is_zero() } else { is_past(state, self.now, self.keep) }
    }
}

/// Whether every change of an integration still has exactly the seal that it had then.
fn all_sealed(store: &Store, state: &RunState) -> Result<bool, StoreError> {
    let known: Vec<Sealed> = Sealed::all(store)?.into_iter().flatten().collect();
    let heads: Vec<String> = known.iter().map(|sealed| sealed.record().head.to_string()).collect();
    let is_there = |work: &Workstream| {
        let head = work.seal.as_ref().map(|known| known.seal.head.as_str());
        head.is_some_and(|head| heads.iter().any(|known| known == head))
    };
    Ok(state.bundles.values().all(is_there))
}
