//! Target branches and the state of the accepted changes for them: sealed, staged, landed, reverted, or drifted from
//! the seal. The state is derived from seals and ancestry in git, never from ids or dates.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use pdca_state::parallel::map_chunks;
use pdca_state::{
    Artifact, Brief, Bundle, BundleId, LoadError, RootError, Snapshot, State, Summary,
    require_accepted, sha256_hex,
};

use crate::{
    ObjectId, SealError, SealRecord, Sealed, Store, StoreError, present_in, refs_below, sightings,
};

use super::staging::{Staging, StagingSearch};
use super::workspace::{QueueWorkspace, TargetChoiceError, TargetSpec};

/// One branch of one target, with the accepted changes for it.
#[derive(Debug)]
pub struct TargetBranch {
    pub target: TargetSpec,
    /// The branch name without `refs/heads/`.
    pub branch: String,
    /// The full ref name.
    pub reference: String,
    pub store: Store,
    pub tip: ObjectId,
    /// The staging branch, where changes wait for a person to merge them.
    pub staging: Staging,
    /// The changes, ordered by id.
    pub changes: Vec<AcceptedChange>,
}

/// Every branch with accepted changes.
#[derive(Debug, Default)]
pub struct TargetBranches {
    pub branches: Vec<TargetBranch>,
    pub unplaceable: Vec<Unplaceable>,
    /// The unfinished bundles. A change that depends on one of them waits.
    pub open: BTreeSet<BundleId>,
}

/// Changes whose state cannot be determined.
#[derive(Debug)]
pub struct Unplaceable {
    pub ids: Vec<BundleId>,
    pub error: TargetBranchError,
}

#[derive(Debug)]
pub struct AcceptedChange {
    pub bundle: Bundle,
    /// The dependencies that its brief declares.
    pub depends_on: Vec<BundleId>,
    pub standing: ChangeState,
}

/// The state of an accepted change.
#[derive(Debug)]
pub enum ChangeState {
    /// Accepted without a seal, as before seals existed.
    Unsealed,
    /// Sealed, and not in the branch.
    Sealed(Box<Sealed>),
    /// In the staging branch, on top of the current tip of the branch.
    Staged {
        sealed: Box<Sealed>,
        /// The staging branch, without `refs/heads/`.
        branch: String,
        /// The last commit of the change.
        commit: ObjectId,
    },
    Landed {
        sealed: Box<Sealed>,
        /// The last commit of the change.
        commit: ObjectId,
        /// The branches that contain it, in the form shown to people: `main`, `origin/main`.
        places: Vec<String>,
    },
    /// Landed, and reverted later.
    Reverted {
        sealed: Box<Sealed>,
        /// The reverting commit.
        by: ObjectId,
    },
    /// The bundle differs from its seal. Nothing of it lands.
    Drifted {
        /// The difference.
        why: String,
    },
}

/// The reasons why the state of changes cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum TargetBranchError {
    #[error(transparent)]
    Root(#[from] RootError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("cannot determine the target of {id}")]
    Target { id: BundleId, source: TargetChoiceError },
    #[error("the target `{target}` has no branch `{branch}`")]
    NoBranch { target: String, branch: String },
    /// No branch is named, and the target's checkout has none checked out.
    #[error("no branch is named for the target `{target}`")]
    Unnamed { target: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("the target `{target}` cannot be read")]
    Store { target: String, source: StoreError },
}

/// The number of bundles that one thread reads at a time.
const CHUNK: NonZero<usize> = NonZero::new(16).expect("because it is not zero");

/// The name of a target, and the branch if one is named.
type Place = (String, Option<String>);

impl ChangeState {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unsealed => "unsealed",
            Self::Sealed(_) => "sealed",
            Self::Staged { .. } => "staged",
            Self::Landed { .. } => "landed",
            Self::Reverted { .. } => "reverted",
            Self::Drifted { .. } => "drifted",
        }
    }
}

impl TargetBranches {
    /// Loads every branch with accepted changes. A bundle that cannot be read becomes an [`Unplaceable`] and does not
    /// affect the others.
    pub fn load(workspace: &QueueWorkspace) -> Result<Self, RootError> {
        Self::load_some(workspace, |_| true)
    }

    /// Loads the branches with only some of the changes.
    pub fn load_some(
        workspace: &QueueWorkspace,
        is_wanted: impl Fn(&BundleId) -> bool,
    ) -> Result<Self, RootError> {
        Self::load_bundles(workspace, |bundle| is_wanted(bundle.id()))
    }

    /// Like [`load_some`](Self::load_some), where two bundles of one id are told apart.
    pub fn load_bundles(
        workspace: &QueueWorkspace,
        is_wanted: impl Fn(&Bundle) -> bool,
    ) -> Result<Self, RootError> {
        let mut places: BTreeMap<Place, Vec<(Bundle, Snapshot)>> = BTreeMap::new();
        let mut specs = BTreeMap::new();
        let mut defaults: BTreeMap<String, Option<String>> = BTreeMap::new();
        let (mut unplaceable, mut open) = (Vec::new(), BTreeSet::new());
        let mut wanted = accepted(workspace)?;
        wanted.retain(|bundle| is_wanted(bundle));
        let found = map_chunks(&wanted, CHUNK, |chunk| {
            chunk.iter().map(|bundle| place_of(workspace, bundle)).collect()
        });
        for (bundle, placed) in wanted.into_iter().zip(found) {
            match placed {
                Ok(Some((target, branch, snapshot))) => {
                    let name = target.name.clone();
                    // A brief that names the default branch and one that names none mean the same branch. They are
                    // loaded together: what a staging branch contains is compared with all the changes that wait.
                    let branch = branch.or_else(|| {
                        let default = defaults.entry(name.clone());
                        // Without one, `TargetBranch::load` says why.
                        default.or_insert_with(|| default_branch(&target).ok()).clone()
                    });
                    specs.insert(name.clone(), target);
                    places.entry((name, branch)).or_default().push((bundle, snapshot));
                }
                Ok(None) => {
                    if bundle.glance().is_ok_and(|glance| glance.state.is_open()) {
                        open.insert(bundle.id().clone());
                    }
                }
                Err(error) => {
                    unplaceable.push(Unplaceable { ids: vec![bundle.id().clone()], error });
                }
            }
        }
        let mut branches: Vec<TargetBranch> = Vec::new();
        for ((name, branch), bundles) in places {
            let ids = bundles.iter().map(|(bundle, _)| bundle.id().clone()).collect();
            let target = specs[&name].clone();
            match TargetBranch::load(workspace, target, branch.as_deref(), bundles) {
                Ok(found) => branches.push(found),
                Err(error) => unplaceable.push(Unplaceable { ids, error }),
            }
        }
        for branch in &mut branches {
            branch.changes.sort_by(|a, b| a.bundle.id().cmp(b.bundle.id()));
        }
        Ok(TargetBranches { branches, unplaceable, open })
    }
}

impl TargetBranch {
    /// Loads one branch of a target with these changes.
    pub fn load(
        workspace: &QueueWorkspace,
        target: TargetSpec,
        branch: Option<&str>,
        bundles: Vec<(Bundle, Snapshot)>,
    ) -> Result<Self, TargetBranchError> {
        let name = || target.name.clone();
        let failed = |source| TargetBranchError::Store { target: name(), source };
        let store = workspace.store_to_read(&target).map_err(failed)?;
        let branch =
            if let Some(branch) = branch { branch.to_owned() } else { default_branch(&target)? };
        let mut found = None;
        for place in ["heads", "remotes"] {
            let reference = format!("refs/{place}/{branch}");
            let tip = store.commit_at(&reference).map_err(failed)?;
            // A local branch outweighs a remote one of the same name.
            found = found.or(tip.map(|tip| (reference, tip)));
        }
        let Some((reference, tip)) = found else {
            return Err(TargetBranchError::NoBranch { target: name(), branch });
        };
        let standings = map_chunks(&bundles, CHUNK, |chunk| {
            chunk.iter().map(|(bundle, _)| standing(&store, bundle)).collect()
        });
        let mut changes = Vec::new();
        for ((bundle, snapshot), standing) in bundles.into_iter().zip(standings) {
            let standing = standing?;
            let brief = snapshot.authored_brief();
            let depends_on = brief.map(Brief::depends_on).unwrap_or_default();
            let depends_on = depends_on.among(&|id| workspace.is_bundle(id)).ids;
            changes.push(AcceptedChange { bundle, depends_on, standing });
        }
        mark_landed(&store, &branch, tip, &mut changes).map_err(failed)?;
        let mut remotes = Vec::new();
        for (name, at) in elsewhere(&store, &reference, &branch).map_err(failed)? {
            mark_landed(&store, &name, at, &mut changes).map_err(failed)?;
            remotes.push(at);
        }
        // Only after landed changes are marked: editing the brief of a landed change is no drift.
        for change in &mut changes {
            mark_edited_brief(change)?;
        }
        // After the other states, because it asks which changes are still to land.
        let search = StagingSearch {
            store: &store,
            workspace: &workspace.dirs.mark(),
            target_branch: &branch,
            tip,
            remotes: &remotes,
        };
        let staging = search.find(&changes).map_err(failed)?;
        mark_staged(&store, &staging, &mut changes).map_err(failed)?;
        Ok(Self { target, branch, reference, store, tip, staging, changes })
    }

    /// Returns the accepted change of a bundle.
    pub fn change(&self, id: &BundleId) -> Option<&AcceptedChange> {
        // Two bundles have one id if the first was put away; the later one is meant.
        self.changes.iter().rev().find(|change| change.bundle.id() == id)
    }
}

/// Returns the branch of a target for briefs that name none: the one that its checkout has.
fn default_branch(target: &TargetSpec) -> Result<String, TargetBranchError> {
    let unnamed = |source: Box<dyn std::error::Error + Send + Sync>| TargetBranchError::Unnamed {
        target: target.name.clone(),
        source,
    };
    let found = pdca_lanes::Target::open(&target.name, &target.path);
    let found = found.map_err(|source| unnamed(source.into()))?;
    Ok(found.resolve(None).map_err(|source| unnamed(source.into()))?.branch)
}

/// Returns the target and branch of an accepted change, or `None` if the bundle has no accepted change.
fn place_of(
    workspace: &QueueWorkspace,
    bundle: &Bundle,
) -> Result<Option<(TargetSpec, Option<String>, Snapshot)>, TargetBranchError> {
    let snapshot = bundle.load()?;
    let has_patch = snapshot.artifacts.contains(Artifact::Patch);
    // A bundle can be complete without a patch, and then has nothing to land.
    let is_accepted = has_patch && snapshot.state == State::Complete;
    let Some(brief) = snapshot.authored_brief().filter(|_| is_accepted) else {
        return Ok(None);
    };
    let failed = |source| TargetBranchError::Target { id: bundle.id().clone(), source };
    let Some(target) = workspace.target_of(brief).map_err(failed)? else { return Ok(None) };
    let branch = workspace.branch_of(brief, &target);
    Ok(Some((target, branch, snapshot)))
}

/// Lists the bundles that may be complete. Those that were put away come first, so that a later bundle of the
/// same name counts as the newer one.
fn accepted(workspace: &QueueWorkspace) -> Result<Vec<Bundle>, RootError> {
    let mut all = workspace.dirs.bundles.list_completed()?;
    all.extend(workspace.dirs.bundles.list()?);
    Ok(all)
}

/// Returns the tips of the branch at remotes, as they were last fetched, pushed or seen.
fn elsewhere(
    store: &Store,
    reference: &str,
    branch: &str,
) -> Result<Vec<(String, ObjectId)>, StoreError> {
    let mut found = Vec::new();
    if reference.starts_with("refs/heads/") {
        for (name, at) in refs_below(store, "refs/remotes/")? {
            let name = name.trim_start_matches("refs/remotes/");
            if name.split_once('/').is_some_and(|(_, of)| of == branch) {
                found.push((name.to_owned(), at));
            }
        }
    }
    found.extend(sightings(store, branch)?);
    Ok(found)
}

/// Derives the state from the bundle's files and its seal, without looking at the branch.
fn standing(store: &Store, bundle: &Bundle) -> Result<ChangeState, TargetBranchError> {
    let drifted = |why: String| Ok(ChangeState::Drifted { why });
    let record: SealRecord = match bundle.read(Artifact::Seal)? {
        None => {
            // The seal may be left from an acceptance that was taken back; it counts only if the bundle is
            // accepted now.
            let sealed = the_only_seal(store, bundle.id()).filter(|_| is_accepted(bundle));
            return Ok(match sealed {
                Some(sealed) => check_patch(bundle, sealed)?,
                None => ChangeState::Unsealed,
            });
        }
        Some(text) => match serde_json::from_slice(&text) {
            Ok(record) => record,
            Err(error) => return drifted(format!("seal.json cannot be read: {error}")),
        },
    };
    if record.id != *bundle.id() {
        return drifted(format!("seal.json is that of {}", record.id));
    }
    match Sealed::load(store, &record.run, &record.id) {
        Ok(sealed) if *sealed.record() == record => check_patch(bundle, sealed),
        Ok(sealed) => drifted(format!(
            "seal.json is not the seal at {}",
            sealed.record().run.seal_ref(bundle.id())
        )),
        Err(SealError::NotSealed { name }) => drifted(format!("{name} is gone")),
        Err(error) => drifted(pdca_state::chain(&error)),
    }
}

/// Returns true if the summary records an acceptance that is valid with the gate report.
fn is_accepted(bundle: &Bundle) -> bool {
    bundle.load().is_ok_and(|snapshot| {
        let summary = snapshot.summary.as_ref().map_or("", Summary::text);
        require_accepted(summary, snapshot.gates.as_ref()).is_ok()
    })
}

/// Returns the seal of a bundle without `seal.json`, if there is exactly one.
fn the_only_seal(store: &Store, id: &BundleId) -> Option<Sealed> {
    let all = Sealed::all(store).unwrap_or_default().into_iter().flatten();
    let mut of_it = all.filter(|sealed| sealed.id() == id);
    of_it.next().filter(|_| of_it.next().is_none())
}

/// Checks that `patch.diff`, which people read, is what was sealed.
fn check_patch(bundle: &Bundle, sealed: Sealed) -> Result<ChangeState, TargetBranchError> {
    // What lands is the seal. `patch.diff` is compared only because a person may have read an edited one.
    let Some(patch) = bundle.read(Artifact::Patch)? else {
        return Ok(ChangeState::Sealed(Box::new(sealed)));
    };
    let found = sha256_hex(&patch);
    if found == sealed.record().patch_digest {
        return Ok(ChangeState::Sealed(Box::new(sealed)));
    }
    let sealed = &sealed.record().patch_digest;
    Ok(ChangeState::Drifted {
        why: format!("patch.diff is {found:.12} and was sealed as {sealed:.12}"),
    })
}

/// Marks a change as drifted that has not landed and whose brief is not the one that was accepted.
fn mark_edited_brief(change: &mut AcceptedChange) -> Result<(), TargetBranchError> {
    let ChangeState::Sealed(sealed) = &change.standing else { return Ok(()) };
    let Some(accepted) = &sealed.record().brief_digest else { return Ok(()) };
    let found = sha256_hex(&change.bundle.read(Artifact::Brief)?.unwrap_or_default());
    if found != *accepted {
        let why = format!("brief.md is {found:.12} and was accepted as {accepted:.12}");
        change.standing = ChangeState::Drifted { why };
    }
    Ok(())
}

/// Marks the changes that a branch contains. The first branch decides the state; later ones are only added to
/// the places.
fn mark_landed(
    store: &Store,
    name: &str,
    tip: ObjectId,
    changes: &mut [AcceptedChange],
) -> Result<(), StoreError> {
    let records: Vec<&SealRecord> =
        changes.iter().filter_map(AcceptedChange::sealed).map(Sealed::record).collect();
    let found = present_in(store, tip, &records)?;
    for change in changes {
        let Some(presence) = change.sealed().and_then(|it| found.get(&it.digest())).copied() else {
            continue;
        };
        match (&mut change.standing, presence.reverted_by) {
            (ChangeState::Sealed(sealed), Some(by)) => {
                change.standing = ChangeState::Reverted { sealed: sealed.clone(), by };
            }
            (ChangeState::Sealed(sealed), None) => {
                let (sealed, places) = (sealed.clone(), vec![name.to_owned()]);
                change.standing = ChangeState::Landed { sealed, commit: presence.commit, places };
            }
            // A remote-tracking ref and a remembered tip may have the same name.
            (ChangeState::Landed { places, .. }, None) if !places.iter().any(|it| it == name) => {
                places.push(name.to_owned());
            }
            (
                ChangeState::Landed { .. }
                | ChangeState::Reverted { .. }
                | ChangeState::Staged { .. }
                | ChangeState::Unsealed
                | ChangeState::Drifted { .. },
                _,
            ) => {}
        }
    }
    Ok(())
}

/// Marks the changes that wait in the staging branch.
fn mark_staged(
    store: &Store,
    staging: &Staging,
    changes: &mut [AcceptedChange],
) -> Result<(), StoreError> {
    let Some(at) = staging.at.filter(|_| staging.is_current) else { return Ok(()) };
    let records: Vec<&SealRecord> =
        changes.iter().filter_map(AcceptedChange::sealed).map(Sealed::record).collect();
    let there = present_in(store, at, &records)?;
    for change in changes {
        let Some(presence) = change.sealed().and_then(|it| there.get(&it.digest())) else {
            continue;
        };
        if let ChangeState::Sealed(sealed) = &change.standing {
            let (sealed, branch) = (sealed.clone(), staging.branch.clone());
            change.standing = ChangeState::Staged { sealed, branch, commit: presence.commit };
        }
    }
    Ok(())
}

impl AcceptedChange {
    /// Returns the seal, if it is valid.
    pub fn sealed(&self) -> Option<&Sealed> {
        match &self.standing {
            ChangeState::Sealed(sealed)
            | ChangeState::Staged { sealed, .. }
            | ChangeState::Reverted { sealed, .. }
            | ChangeState::Landed { sealed, .. } => Some(sealed),
            ChangeState::Unsealed | ChangeState::Drifted { .. } => None,
        }
    }
}
