//! What a change stands on: the results that the base of an attempt contains beyond the target branch.
//!
//! Pure: the caller says which results exist, where each stands and which of them meet the bundle in
//! question. The laws:
//!
//! 1. Everything that the bundle depends on, directly or through others, is in its base.
//! 2. The latest green result of every rival is in its base.
//! 3. Whatever one of those was itself built on is in its base, in the order of completion.
//! 4. A result whose own foundation is no longer what it was is *stale*, and is in nobody's base.
//! 5. Nothing else is there.

use std::collections::{BTreeMap, BTreeSet};

use pdca_state::BundleId;

/// A finished result of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Which result it is: the id of its last commit.
    pub version: String,
    /// What it was built on: bundles, each with the version.
    pub stands_on: Vec<(BundleId, String)>,
    /// The place in the order of completion.
    pub order: u64,
    /// Whether a person accepted it.
    pub accepted: bool,
    /// Where it stands.
    pub place: Whereabouts,
}

/// Where a result stands, seen from the target branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// Not in the branch yet.
    Pending,
    /// In the branch.
    Landed,
    /// It was in the branch and was reverted.
    Reverted,
    /// An integration held it: it is red with others, or conflicts.
    Held,
}

/// What a bundle has to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleResult {
    /// No result that anybody could stand on.
    None,
    /// It is complete without a change, or its change is of another branch: there is nothing to fold.
    Nothing,
    /// A change.
    Change(Finished),
}

/// Which results may be stood on before a person accepted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speculation {
    /// Those of prerequisites.
    pub on_prerequisites: bool,
    /// Those of rivals.
    pub on_rivals: bool,
}

impl Default for Speculation {
    fn default() -> Self {
        Self { on_prerequisites: false, on_rivals: true }
    }
}

/// Why a bundle cannot be built now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacks {
    /// The prerequisite.
    pub on: BundleId,
    /// What is wrong with it.
    pub why: LacksWhy,
}

/// What is wrong with a prerequisite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LacksWhy {
    /// It has no result.
    NoResult,
    /// It is not accepted.
    NotAccepted,
    /// An integration held it.
    Held,
    /// It was reverted.
    Reverted,
    /// Its result is stale.
    Stale,
}

/// Why a result is stale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// The one that changed.
    pub on: BundleId,
    /// How.
    pub how: Changed,
}

/// What happened to a result that another one stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// It was sent back or given up: there is no result any more.
    Gone,
    /// Another result took its place.
    Superseded,
    /// An integration held it.
    Held,
    /// It was reverted.
    Reverted,
    /// It is stale itself.
    Stale,
}

/// The results of all bundles of one target branch.
#[derive(Debug, Clone, Default)]
pub struct Results {
    known: BTreeMap<BundleId, BundleResult>,
    stale: BTreeMap<BundleId, Stale>,
}

impl Results {
    /// Takes the results, and finds those that are stale.
    pub fn new(known: BTreeMap<BundleId, BundleResult>) -> Self {
        let mut results = Self { known, stale: BTreeMap::new() };
        // A result becomes stale with what it stands on, so this settles after at most one round for
        // each link of the longest chain.
        loop {
            let fresh = results.known.iter().filter(|(id, _)| !results.stale.contains_key(*id));
            let found: Vec<(BundleId, Stale)> = fresh
                .filter_map(|(id, result)| Some((id.clone(), results.staleness_of(result)?)))
                .collect();
            if found.is_empty() {
                return results;
            }
            results.stale.extend(found);
        }
    }

    fn staleness_of(&self, result: &BundleResult) -> Option<Stale> {
        let BundleResult::Change(finished) = result else { return None };
        // What is in the branch stays there, whatever becomes of what it was built on.
        if finished.place == Whereabouts::Landed {
            return None;
        }
        let changed = |on: &BundleId, how| Some(Stale { on: on.clone(), how });
        finished.stands_on.iter().find_map(|(on, version)| match self.known.get(on) {
            None | Some(BundleResult::None | BundleResult::Nothing) => changed(on, Changed::Gone),
            Some(BundleResult::Change(now)) if now.version != *version => {
                changed(on, Changed::Superseded)
            }
            Some(BundleResult::Change(now)) => match now.place {
                Whereabouts::Held => changed(on, Changed::Held),
                Whereabouts::Reverted => changed(on, Changed::Reverted),
                Whereabouts::Pending if self.stale.contains_key(on) => changed(on, Changed::Stale),
                Whereabouts::Landed | Whereabouts::Pending => None,
            },
        })
    }

    /// Whether there is such a bundle.
    pub fn knows(&self, id: &BundleId) -> bool {
        self.known.contains_key(id)
    }

    /// Why the result of a bundle is stale; none where it is not.
    pub fn stale(&self, id: &BundleId) -> Option<&Stale> {
        self.stale.get(id)
    }

    /// What the result of a bundle stands on and is not accepted: it must be accepted first.
    pub fn unsigned_below(&self, id: &BundleId) -> Vec<&BundleId> {
        let Some(BundleResult::Change(finished)) = self.known.get(id) else { return Vec::new() };
        let is_open = |on: &&BundleId| !matches!(self.known.get(*on), Some(BundleResult::Change(now)) if now.accepted);
        finished.stands_on.iter().map(|(on, _)| on).filter(is_open).collect()
    }

    /// What the base of a new attempt at a bundle contains beyond the branch, in the order in which it is
    /// folded.
    ///
    /// `needs` is what the bundle depends on, `rivals` the bundles that it meets.
    pub fn foundation(
        &self,
        id: &BundleId,
        needs: &[BundleId],
        rivals: &BTreeSet<BundleId>,
        speculation: Speculation,
    ) -> Result<Vec<BundleId>, Vec<Lacks>> {
        let mut lacking = Vec::new();
        let mut open: Vec<&BundleId> = Vec::new();
        for on in needs {
            match self.usable(on, speculation.on_prerequisites) {
                Ok(Some(on)) => open.push(on),
                Ok(None) => {}
                Err(why) => lacking.push(Lacks { on: on.clone(), why }),
            }
        }
        if !lacking.is_empty() {
            return Err(lacking);
        }
        // A rival that cannot be stood on is nothing to wait for: it will be built on this one.
        let rivals = rivals.iter().filter(|rival| *rival != id);
        open.extend(rivals.filter_map(|on| self.usable(on, speculation.on_rivals).ok().flatten()));
        let mut chosen: BTreeSet<&BundleId> = BTreeSet::new();
        while let Some(on) = open.pop() {
            let Some((on, BundleResult::Change(finished))) = self.known.get_key_value(on) else {
                continue;
            };
            if finished.place == Whereabouts::Landed || !chosen.insert(on) {
                continue;
            }
            open.extend(finished.stands_on.iter().map(|(below, _)| below));
        }
        Ok(self.ordered(chosen))
    }

    /// Whether a result can be stood on: itself, or nothing where the branch has all of it.
    fn usable<'a>(
        &'a self,
        on: &BundleId,
        unsigned: bool,
    ) -> Result<Option<&'a BundleId>, LacksWhy> {
        let Some((on, result)) = self.known.get_key_value(on) else {
            return Err(LacksWhy::NoResult);
        };
        match result {
            BundleResult::None => Err(LacksWhy::NoResult),
            BundleResult::Nothing => Ok(None),
            BundleResult::Change(finished) => match finished.place {
                Whereabouts::Landed => Ok(None),
                Whereabouts::Held => Err(LacksWhy::Held),
                Whereabouts::Reverted => Err(LacksWhy::Reverted),
                Whereabouts::Pending if self.stale.contains_key(on) => Err(LacksWhy::Stale),
                Whereabouts::Pending if finished.accepted || unsigned => Ok(Some(on)),
                Whereabouts::Pending => Err(LacksWhy::NotAccepted),
            },
        }
    }

    /// What is stood on comes first, and otherwise what was completed first.
    fn ordered(&self, chosen: BTreeSet<&BundleId>) -> Vec<BundleId> {
        let finished = |id: &BundleId| match self.known.get(id) {
            Some(BundleResult::Change(finished)) => Some(finished),
            _ => None,
        };
        let mut waiting = chosen;
        let mut ordered = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let is_ready = |id: &&&BundleId| {
                let below = finished(id).map(|one| one.stands_on.as_slice()).unwrap_or_default();
                !below.iter().any(|(below, _)| waiting.contains(below))
            };
            let order = |id: &&&BundleId| (finished(id).map(|one| one.order), (**id).clone());
            // What is not stale has no cycle below it, so one is always ready.
            let ready = waiting.iter().filter(is_ready).min_by_key(order);
            let Some(next) = ready.or_else(|| waiting.iter().min_by_key(order)).copied() else {
                break;
            };
            waiting.remove(next);
            ordered.push(next.clone());
        }
        ordered
    }
}

#[cfg(test)]
mod tests;
