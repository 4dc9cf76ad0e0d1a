//! Places: the changes of a batch and those that landed below it, numbered for the search, and folds of their
//! subsets.

use std::collections::{BTreeMap, BTreeSet};

use pdca_state::BundleId;

use crate::git::fold::fold_lending;
use crate::{
    Built, Candidate, Combination, CulpritMemory, FoldError, FoldFate, FoldPlan, GateSetId, Known,
    LandedChange, MergeEngine, ObjectId, PlanEntry, Sealed, Strategy, TreePath, contains,
    landed_below,
};

use super::IntegrateError;
use super::integration::Integration;
use super::records;
use super::search::closure;
use super::target_branch::{AcceptedChange, ChangeState};
use super::workspace::QueueWorkspace;

/// The remembered culprits, by the head of their seals.
const CULPRITS: &str = "culprits.json";
/// The maximum number of landed changes below the batch that are considered as partners.
/// Each of them is asked about with `contains`, which starts a git for each change of the batch.
const MOST_BELOW: usize = 64;

/// The changes of a batch and those that landed below it. A place is an index into them.
pub(super) struct ChangePlaces {
    /// The commit below all places.
    origin: ObjectId,
    strategy: Strategy,
    entries: Vec<PlanEntry>,
    needs: Vec<Vec<usize>>,
    /// The number of places that landed before the batch.
    landed_before: usize,
    /// The places that are in the current tip.
    landed: Vec<usize>,
    built: BTreeMap<(ObjectId, Vec<usize>), Built>,
    /// Folds with files of changes that are left out, by set; `None` for a set that does not fold with them either.
    /// Kept for the round, so that a set means one tree however much lands meanwhile.
    lent: BTreeMap<Vec<usize>, Option<LentFold>>,
}

/// A fold that has some files of changes that are not in it. It is gated to explain a red, and never lands.
#[derive(Debug, Clone)]
pub(super) struct LentFold {
    pub(super) candidate: Candidate,
    /// The places of the changes whose version of a file it has.
    pub(super) context: Vec<usize>,
}

impl Integration<'_> {
    /// Numbers the places for a batch: first the changes that landed directly below it, as far down as no
    /// foreign commit lies between, then the batch.
    pub(super) fn places(&self, plan: &FoldPlan) -> Result<ChangePlaces, IntegrateError> {
        let sealed = |id: &BundleId| {
            let change = self.branch.change(id)?;
            Some((change, change.sealed()?))
        };
        let mut landings: Vec<LandedChange<'_>> = Vec::new();
        for change in &self.branch.changes {
            if let ChangeState::Landed { sealed, commit, .. } = &change.standing {
                landings.push(LandedChange { sealed, commit: *commit });
            }
        }
        for (id, commit) in &self.done.landed {
            if let Some((_, sealed)) = sealed(id) {
                landings.push(LandedChange { sealed, commit: *commit });
            }
        }
        let strategy = plan.strategy();
        let (origin, below) =
            landed_below(&self.branch.store, plan.base(), strategy, &landings, MOST_BELOW)?;
        let depends_on = |id: &BundleId| sealed(id).map(|(change, _)| change.depends_on.clone());
        let below_entries = below.iter().map(|landing| {
            let depends_on = depends_on(landing.sealed.id()).unwrap_or_default();
            PlanEntry::new(landing.sealed.clone(), depends_on)
        });
        let entries: Vec<PlanEntry> = below_entries.chain(plan.entries().iter().cloned()).collect();
        let mut needs = Vec::new();
        for (place, entry) in entries.iter().enumerate() {
            let is_needed = |other: &PlanEntry| entry.depends_on().contains(other.sealed().id());
            let mut needed: Vec<usize> =
                // Only earlier places: the search requires that a change comes after what it needs.
                (0..place).filter(|other| is_needed(&entries[*other])).collect();
            // A change was checked on top of its base, so a combination without a change in that base would be new.
            for (other, landing) in below.iter().enumerate().take(place) {
                let base = entry.sealed().record().base;
                if !needed.contains(&other) && contains(&self.branch.store, base, landing.commit)? {
                    needed.push(other);
                }
            }
            needs.push(needed);
        }
        let landed_before = below.len();
        Ok(ChangePlaces {
            origin,
            strategy,
            entries,
            needs,
            landed_before,
            landed: (0..landed_before).collect(),
            built: BTreeMap::new(),
            lent: BTreeMap::new(),
        })
    }
}

impl ChangePlaces {
    pub(super) fn needs(&self) -> Vec<Vec<usize>> {
        self.needs.clone()
    }

    pub(super) fn landed_before(&self) -> usize {
        self.landed_before
    }

    pub(super) fn entry(&self, place: usize) -> &PlanEntry {
        &self.entries[place]
    }

    pub(super) fn id(&self, place: usize) -> BundleId {
        self.entries[place].sealed().id().clone()
    }

    pub(super) fn ids(&self, places: &[usize]) -> Vec<BundleId> {
        places.iter().map(|place| self.id(*place)).collect()
    }

    /// Returns the bundles of the batch, without those below it.
    pub(super) fn batch(&self) -> impl Iterator<Item = BundleId> {
        (self.landed_before..self.entries.len()).map(|place| self.id(place))
    }

    /// Returns the names under which culprits are remembered, by place.
    pub(super) fn names(&self) -> Vec<String> {
        self.entries.iter().map(|entry| head(entry.sealed())).collect()
    }

    /// Records that these places are in the tip now.
    pub(super) fn land(&mut self, places: &[usize]) {
        self.landed.extend(places);
    }

    /// Returns the places of a set that are not in the tip yet, or `None` if the set leaves out a landed place.
    pub(super) fn on_tip(&self, places: &[usize]) -> Option<Vec<usize>> {
        let has = |place: &usize| places.contains(place);
        let rest = || places.iter().copied().filter(|place| !self.landed.contains(place));
        self.landed.iter().all(has).then(|| rest().collect())
    }

    pub(super) fn closure(&self, places: &[usize]) -> Vec<usize> {
        closure(&self.needs, places.iter().copied())
    }

    /// Folds a set onto the tip if it contains everything that landed, and otherwise onto the commit below all
    /// places.
    pub(super) fn build(
        &mut self,
        engine: &mut MergeEngine<'_>,
        tip: ObjectId,
        places: &[usize],
    ) -> Result<Built, IntegrateError> {
        let (base, chosen) = match self.on_tip(places) {
            // Folding only the rest onto the tip gives the same tree with fewer merges, and a commit that can
            // land.
            Some(rest) => (tip, rest),
            None => (self.origin, places.to_vec()),
        };
        let key = (base, chosen);
        if let Some(built) = self.built.get(&key) {
            return Ok(built.clone());
        }
        let built = self.fold(engine, base, &key.1)?;
        // A failure of git may be transient, so it is not remembered.
        if !matches!(built, Built::Failed { .. }) {
            self.built.insert(key, built.clone());
        }
        Ok(built)
    }

    /// Folds a set that does not fold by itself and cannot land: with the files in conflict as everything that landed
    /// has them together with the set.
    pub(super) fn build_lent(
        &mut self,
        engine: &mut MergeEngine<'_>,
        tip: ObjectId,
        places: &[usize],
    ) -> Result<Option<LentFold>, IntegrateError> {
        if let Some(known) = self.lent.get(places) {
            return Ok(known.clone());
        }
        if self.on_tip(places).is_some() {
            // It may land, so it is gated as it is or not at all.
            return Ok(None);
        }
        let last = places.last().copied().unwrap_or_default();
        let mut lent = None;
        // What is planned after the set is taken in only if nothing folds without it.
        for later in [false, true] {
            let wanted = |place: &&usize| later || **place < last;
            let mut all: Vec<usize> =
                self.landed.iter().filter(wanted).chain(places).copied().collect();
            all.sort_unstable();
            all.dedup();
            match self.build(engine, tip, &all)? {
                Built::Candidate(whole) => lent = self.lend(engine, places, (&all, &whole))?,
                Built::Unfit { .. } => {}
                // A failure of git may be transient, so it is not remembered.
                Built::Failed { .. } => return Ok(None),
            }
            if lent.is_some() {
                break;
            }
        }
        self.lent.insert(places.to_vec(), lent.clone());
        Ok(lent)
    }

    fn lend(
        &self,
        engine: &mut MergeEngine<'_>,
        places: &[usize],
        (all, whole): (&[usize], &Candidate),
    ) -> Result<Option<LentFold>, IntegrateError> {
        let entries = places.iter().map(|place| self.entries[*place].clone());
        let plan = FoldPlan::new(self.origin, self.strategy, entries)?;
        let (folded, paths) = fold_lending(engine, &plan, whole.tree())?;
        let is_in = |fate: &FoldFate| {
            matches!(fate, FoldFate::Applied { .. } | FoldFate::AlreadyPresent { .. })
        };
        if paths.is_empty() || !folded.bundles.iter().all(|bundle| is_in(&bundle.fate)) {
            return Ok(None);
        }
        let shares = |place: &usize| {
            let footprint = &self.entries[*place].sealed().record().footprint;
            !places.contains(place) && footprint.iter().any(|path| paths.contains(path))
        };
        let context = all.iter().copied().filter(shares).collect();
        Ok(Some(LentFold { candidate: folded.candidate().clone(), context }))
    }

    /// Returns the places whose version of a file the tree of a set has.
    pub(super) fn context(&self, places: &[usize]) -> Vec<usize> {
        let lent = self.lent.get(places).and_then(Option::as_ref);
        lent.map(|lent| lent.context.clone()).unwrap_or_default()
    }

    /// Returns the files that the changes at `context` share with those at `guilty` or with what these need.
    pub(super) fn shared(&self, guilty: &[usize], context: &[usize]) -> Vec<String> {
        let of = |place: &usize| &self.entries[*place].sealed().record().footprint;
        let own: BTreeSet<&TreePath> = self.closure(guilty).iter().flat_map(of).collect();
        let shared: BTreeSet<&TreePath> =
            context.iter().flat_map(of).filter(|path| own.contains(path)).collect();
        shared.into_iter().map(ToString::to_string).collect()
    }

    fn fold(
        &self,
        engine: &mut MergeEngine<'_>,
        base: ObjectId,
        chosen: &[usize],
    ) -> Result<Built, IntegrateError> {
        let entries = chosen.iter().map(|place| self.entries[*place].clone());
        // The plan may order the entries differently from the places, so the unfit one is found again by its
        // id.
        let plan = FoldPlan::new(base, self.strategy, entries)?;
        let all: Vec<usize> = (0..chosen.len()).collect();
        let built: Result<Built, FoldError> = Combination::new(&plan).build(engine, &all);
        Ok(match built? {
            Built::Unfit { place } => {
                let unfit = plan.entries()[place].sealed().id();
                let is_it = |place: &&usize| self.entries[**place].sealed().id() == unfit;
                let place = chosen.iter().find(is_it).copied().unwrap_or_default();
                Built::Unfit { place }
            }
            built @ (Built::Candidate(_) | Built::Failed { .. }) => built,
        })
    }
}

/// Returns the name under which a change is remembered: any new seal is a new change.
pub(super) fn head(sealed: &Sealed) -> String {
    sealed.record().head.to_string()
}

/// Returns the identity of the gates as it is stored with a culprit.
pub(super) fn gates(oracle: &GateSetId) -> String {
    format!("{} {}", oracle.gate_digest, oracle.environment_digest)
}

/// Returns the partners of a remembered culprit and the changes that could not be left out, or `None` if a partner is
/// gone.
pub(super) fn partners_of(
    known: &Known,
    changes: &[AcceptedChange],
) -> Option<(Vec<BundleId>, Vec<BundleId>)> {
    let heads = changes
        .iter()
        .filter_map(|change| Some((head(change.sealed()?), change.bundle.id().clone())));
    let heads: BTreeMap<String, BundleId> = heads.collect();
    let find = |partner: &String| heads.get(partner).cloned();
    // Context only informs.
    let context = known.context.iter().filter_map(find).collect();
    let partners: Option<Vec<BundleId>> = known.partners.iter().map(find).collect();
    Some((partners?, context))
}

/// Loads the remembered culprits. They only save gate runs, so an unreadable file counts as empty.
pub(super) fn load_culprits(workspace: &QueueWorkspace) -> CulpritMemory {
    records::load(workspace, CULPRITS)
}

pub(super) fn store_culprits(
    workspace: &QueueWorkspace,
    memory: &CulpritMemory,
) -> Result<(), IntegrateError> {
    records::store(workspace, CULPRITS, memory)
}
