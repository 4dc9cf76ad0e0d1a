//! Where accepted changes stand: sealed, landed, or not as they were sealed. Told from git.

use std::collections::{BTreeMap, BTreeSet};

use pdca_integrate::{
    ObjectId, SealError, SealRecord, Sealed, Store, StoreError, contains, present_in, refs_below,
    sightings,
};
use pdca_state::{Artifact, Bundle, BundleId, LoadError, RootError, Snapshot, State, sha256_hex};

use crate::site::{Site, TargetChoiceError, TargetSpec};

/// One branch of one target, and the accepted changes that are meant for it.
#[derive(Debug)]
pub struct Front {
    /// The target.
    pub target: TargetSpec,
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// Its ref, in full.
    pub reference: String,
    /// The target's objects.
    pub store: Store,
    /// Where the branch is.
    pub tip: ObjectId,
    /// The changes, by their ids.
    pub changes: Vec<Accepted>,
}

/// Every branch that accepted changes are meant for.
#[derive(Debug, Default)]
pub struct Fronts {
    /// The branches, each with its changes.
    pub fronts: Vec<Front>,
    /// The changes about which it is not known where they stand.
    pub astray: Vec<Astray>,
    /// The bundles that are not finished: what needs one of them waits for it.
    pub open: BTreeSet<BundleId>,
}

/// Changes about which it is not known where they stand.
#[derive(Debug)]
pub struct Astray {
    /// The bundles.
    pub ids: Vec<BundleId>,
    /// Why not.
    pub error: StandingError,
}

/// An accepted change.
#[derive(Debug)]
pub struct Accepted {
    /// The bundle.
    pub bundle: Bundle,
    /// What its brief says it depends on.
    pub depends_on: Vec<BundleId>,
    /// Where it stands.
    pub standing: Standing,
}

/// Where an accepted change stands.
#[derive(Debug)]
pub enum Standing {
    /// It was accepted without a seal, as before there were any.
    Unsealed,
    /// It is sealed and not in the branch.
    Sealed(Box<Sealed>),
    /// It is in a branch that an integration left for a person, on top of where the branch is.
    Staged {
        /// The seal.
        sealed: Box<Sealed>,
        /// That branch, without `refs/heads/`.
        branch: String,
        /// The commit that brings it.
        commit: ObjectId,
    },
    /// It is in the branch.
    Landed {
        /// The seal.
        sealed: Box<Sealed>,
        /// The commit that brought it.
        commit: ObjectId,
    },
    /// What is there is not what was sealed. Nothing of it lands.
    Drifted {
        /// In what.
        why: String,
    },
}

/// Why it is not known where changes stand.
#[derive(Debug, thiserror::Error)]
pub enum StandingError {
    /// The bundles cannot be listed.
    #[error(transparent)]
    Root(#[from] RootError),
    /// A bundle cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is not known where a bundle belongs.
    #[error("it is not known where {id} belongs")]
    Target {
        /// The bundle.
        id: BundleId,
        /// Why not.
        source: TargetChoiceError,
    },
    /// The branch is not there.
    #[error("the target `{target}` has no branch `{branch}`")]
    NoBranch {
        /// The target.
        target: String,
        /// The branch.
        branch: String,
    },
    /// No branch is named, and the target's checkout is on none.
    #[error("no branch is named for the target `{target}`")]
    Unnamed {
        /// The target.
        target: String,
        /// Why it cannot be found out.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The repository cannot be read.
    #[error("the target `{target}` cannot be read")]
    Store {
        /// The target.
        target: String,
        /// Why not.
        source: StoreError,
    },
}

/// The name of a target, and the branch where somebody names one.
type Place = (String, Option<String>);

impl Standing {
    /// In one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unsealed => "unsealed",
            Self::Sealed(_) => "sealed",
            Self::Staged { .. } => "staged",
            Self::Landed { .. } => "landed",
            Self::Drifted { .. } => "drifted",
        }
    }
}

impl Site {
    /// Every branch that accepted changes are meant for, with those changes. One bundle that cannot
    /// be read keeps nobody from seeing the others.
    pub fn fronts(&self) -> Result<Fronts, RootError> {
        self.fronts_of(|_| true)
    }

    /// The same, with some of the changes only.
    pub(crate) fn fronts_of(
        &self,
        is_wanted: impl Fn(&BundleId) -> bool,
    ) -> Result<Fronts, RootError> {
        let mut places: BTreeMap<Place, Vec<(Bundle, Snapshot)>> = BTreeMap::new();
        let mut specs = BTreeMap::new();
        let (mut astray, mut open) = (Vec::new(), BTreeSet::new());
        for bundle in self.accepted()?.into_iter().filter(|bundle| is_wanted(bundle.id())) {
            match self.place_of(&bundle) {
                Ok(Some((target, branch, snapshot))) => {
                    let name = target.name.clone();
                    specs.insert(name.clone(), target);
                    places.entry((name, branch)).or_default().push((bundle, snapshot));
                }
                Ok(None) => {
                    if bundle.glance().is_ok_and(|glance| glance.state.is_open()) {
                        open.insert(bundle.id().clone());
                    }
                }
                Err(error) => astray.push(Astray { ids: vec![bundle.id().clone()], error }),
            }
        }
        let mut fronts: Vec<Front> = Vec::new();
        for ((name, branch), bundles) in places {
            let ids = bundles.iter().map(|(bundle, _)| bundle.id().clone()).collect();
            let front = match self.front(specs[&name].clone(), branch.as_deref(), bundles) {
                Ok(front) => front,
                Err(error) => {
                    astray.push(Astray { ids, error });
                    continue;
                }
            };
            // One brief may name the branch that another means by saying nothing.
            match fronts.iter_mut().find(|other| {
                (&other.target.name, &other.branch) == (&front.target.name, &front.branch)
            }) {
                Some(other) => other.changes.extend(front.changes),
                None => fronts.push(front),
            }
        }
        for front in &mut fronts {
            front.changes.sort_by(|a, b| a.bundle.id().cmp(b.bundle.id()));
        }
        Ok(Fronts { fronts, astray, open })
    }

    /// Where an accepted change belongs; none where the bundle has no accepted change.
    fn place_of(
        &self,
        bundle: &Bundle,
    ) -> Result<Option<(TargetSpec, Option<String>, Snapshot)>, StandingError> {
        let snapshot = bundle.load()?;
        let has_patch = snapshot.artifacts.contains(Artifact::Patch);
        let is_accepted = has_patch && snapshot.state == State::Complete;
        let Some(brief) = snapshot.authored_brief().filter(|_| is_accepted) else {
            return Ok(None);
        };
        let failed = |source| StandingError::Target { id: bundle.id().clone(), source };
        let Some(target) = self.target_of(brief).map_err(failed)? else { return Ok(None) };
        let branch = self.branch_of(brief, &target);
        Ok(Some((target, branch, snapshot)))
    }

    /// Bundles that may be complete, those that were put away included.
    fn accepted(&self) -> Result<Vec<Bundle>, RootError> {
        let mut all = self.bundles.list()?;
        all.extend(self.bundles.list_completed()?);
        Ok(all)
    }

    fn front(
        &self,
        target: TargetSpec,
        branch: Option<&str>,
        bundles: Vec<(Bundle, Snapshot)>,
    ) -> Result<Front, StandingError> {
        let name = || target.name.clone();
        let failed = |source| StandingError::Store { target: name(), source };
        let store = self.store(&target).map_err(failed)?;
        let branch = if let Some(branch) = branch {
            branch.to_owned()
        } else {
            let unnamed = |source: Box<dyn std::error::Error + Send + Sync>| {
                StandingError::Unnamed { target: name(), source }
            };
            let found = pdca_lanes::Target::open(&target.name, &target.path)
                .map_err(|source| unnamed(source.into()))?;
            found.resolve(None).map_err(|source| unnamed(source.into()))?.branch
        };
        let mut found = None;
        for place in ["heads", "remotes"] {
            let reference = format!("refs/{place}/{branch}");
            let tip = store.commit_at(&reference).map_err(failed)?;
            found = found.or(tip.map(|tip| (reference, tip)));
        }
        let Some((reference, tip)) = found else {
            return Err(StandingError::NoBranch { target: name(), branch });
        };
        let mut changes = Vec::new();
        for (bundle, snapshot) in bundles {
            let standing = standing(&store, &bundle)?;
            let brief = snapshot.authored_brief();
            let depends_on = brief.map(|brief| brief.depends_on().ids).unwrap_or_default();
            changes.push(Accepted { bundle, depends_on, standing });
        }
        mark_landed(&store, tip, &mut changes).map_err(failed)?;
        for seen in sightings(&store, &branch).map_err(failed)? {
            mark_landed(&store, seen, &mut changes).map_err(failed)?;
        }
        mark_staged(&store, tip, &mut changes).map_err(failed)?;
        Ok(Front { target, branch, reference, store, tip, changes })
    }
}

/// What a bundle's own files and its seal say, without looking at the branch.
fn standing(store: &Store, bundle: &Bundle) -> Result<Standing, StandingError> {
    let drifted = |why: String| Ok(Standing::Drifted { why });
    let record: SealRecord = match bundle.read(Artifact::Seal)? {
        None => {
            return Ok(match the_only_seal(store, bundle.id()) {
                Some(sealed) => check_patch(bundle, sealed)?,
                None => Standing::Unsealed,
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

/// The seal of a bundle that has no copy of it, where there is exactly one.
fn the_only_seal(store: &Store, id: &BundleId) -> Option<Sealed> {
    let all = Sealed::all(store).unwrap_or_default().into_iter().flatten();
    let mut of_it = all.filter(|sealed| sealed.id() == id);
    of_it.next().filter(|_| of_it.next().is_none())
}

/// What people read must still be what was sealed.
fn check_patch(bundle: &Bundle, sealed: Sealed) -> Result<Standing, StandingError> {
    let Some(patch) = bundle.read(Artifact::Patch)? else {
        return Ok(Standing::Sealed(Box::new(sealed)));
    };
    let found = sha256_hex(&patch);
    if found == sealed.record().patch_digest {
        return Ok(Standing::Sealed(Box::new(sealed)));
    }
    let sealed = &sealed.record().patch_digest;
    Ok(Standing::Drifted {
        why: format!("patch.diff is {found:.12} and was sealed as {sealed:.12}"),
    })
}

fn mark_landed(store: &Store, tip: ObjectId, changes: &mut [Accepted]) -> Result<(), StoreError> {
    let seals: Vec<&Sealed> = changes.iter().filter_map(Accepted::sealed).collect();
    let landed = present_in(store, tip, &seals)?;
    for change in changes {
        let Some(commit) = landed.get(change.bundle.id()).copied() else { continue };
        if let Standing::Sealed(sealed) = &change.standing {
            change.standing = Standing::Landed { sealed: sealed.clone(), commit };
        }
    }
    Ok(())
}

/// Finds what waits in a branch of an earlier integration that goes on from where the branch is.
fn mark_staged(store: &Store, tip: ObjectId, changes: &mut [Accepted]) -> Result<(), StoreError> {
    if !changes.iter().any(|change| matches!(change.standing, Standing::Sealed(_))) {
        return Ok(());
    }
    for (name, at) in refs_below(store, "refs/heads/pdca/integration-")? {
        if !contains(store, at, tip)? {
            continue;
        }
        let seals: Vec<&Sealed> = changes.iter().filter_map(Accepted::sealed).collect();
        let there = present_in(store, at, &seals)?;
        let branch = name.trim_start_matches("refs/heads/");
        for change in &mut *changes {
            let Some(commit) = there.get(change.bundle.id()).copied() else { continue };
            if let Standing::Sealed(sealed) = &change.standing {
                let (sealed, branch) = (sealed.clone(), branch.to_owned());
                change.standing = Standing::Staged { sealed, branch, commit };
            }
        }
    }
    Ok(())
}

impl Accepted {
    /// Its seal, where it holds.
    pub fn sealed(&self) -> Option<&Sealed> {
        match &self.standing {
            Standing::Sealed(sealed)
            | Standing::Staged { sealed, .. }
            | Standing::Landed { sealed, .. } => Some(sealed),
            Standing::Unsealed | Standing::Drifted { .. } => None,
        }
    }
}
