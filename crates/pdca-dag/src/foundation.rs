//! The foundation of a change: the results that its base commit contains beyond the target branch.
//!
//! A pure function. The caller passes in which results exist, if they landed, and which of them are
//! rivals of the bundle. The rules:
//!
//! 1. Every direct or transitive dependency of the bundle is in its base.
//! 2. The latest green result of every rival is in its base, so that the two merge.
//! 3. A result in the base brings the results that it was itself built on, in order of completion.
//! 4. A result whose own foundation has changed is *stale* and is in no base.
//! 5. Nothing else is in the base.

use std::collections::{BTreeMap, BTreeSet};

use pdca_state::BundleId;

/// A finished result of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The version of the result: the id of its last commit.
    pub version: String,
    /// The bundles that it was built on, each with the version.
    pub stands_on: Vec<(BundleId, String)>,
    /// The position in the order of completion.
    pub order: u64,
    /// True if a person accepted it.
    pub accepted: bool,
    /// The relation to the target branch.
    pub place: Whereabouts,
}

/// The relation of a result to the target branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// Not in the branch yet.
    Pending,
    /// Landed in the branch.
    Landed,
    /// Landed and then reverted.
    Reverted,
    /// Held back by an integration: it fails together with others, or conflicts.
    Held,
}

/// The result of a bundle, if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleResult {
    /// No result that another change could be based on.
    None,
    /// Complete without a change, or with a change for another branch: there is nothing to fold.
    Nothing,
    /// A finished change.
    Change(Finished),
}

/// Permissions to build on results that are not accepted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speculation {
    /// Build on results of prerequisites before they are accepted. Off by default.
    pub on_prerequisites: bool,
    /// Build on results of rivals before they are accepted. On by default.
    pub on_rivals: bool,
}

impl Default for Speculation {
    fn default() -> Self {
        // A result that stood on a rival which is sent back is folded onto its new base and checked
        // again, without a builder (decision 018). Prerequisites are waited for unless asked.
        Self { on_prerequisites: false, on_rivals: true }
    }
}

/// A prerequisite because of which a bundle cannot be built now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacks {
    /// The id of the prerequisite.
    pub on: BundleId,
    /// The reason its result cannot be used.
    pub why: LacksWhy,
}

/// The reason the result of a prerequisite cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LacksWhy {
    /// There is no result.
    NoResult,
    /// The result is not accepted, and [`Speculation`] does not allow it.
    NotAccepted,
    /// An integration held the result back.
    Held,
    /// The result landed and was reverted.
    Reverted,
    /// The result is stale.
    Stale,
}

/// The reason a result is stale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// The result below that changed.
    pub on: BundleId,
    /// The kind of change.
    pub how: FoundationChange,
}

/// A change of a result that another one was built on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundationChange {
    /// The bundle was sent back or given up, so there is no result any more.
    Gone,
    /// A newer result replaced it.
    Superseded,
    /// An integration held it back.
    Held,
    /// It landed and was reverted.
    Reverted,
    /// It became stale itself.
    Stale,
}

/// The results of all bundles of one target branch.
#[derive(Debug, Clone, Default)]
pub struct Results {
    known: BTreeMap<BundleId, BundleResult>,
    stale: BTreeMap<BundleId, Stale>,
}

impl Results {
    /// Stores the results and computes which of them are stale.
    pub fn new(known: BTreeMap<BundleId, BundleResult>) -> Self {
        let mut results = Self { known, stale: BTreeMap::new() };
        // Staleness propagates upwards one link per round, so this ends after at most as many rounds
        // as the longest chain has links.
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
        // A landed result is part of the branch; changes of its foundation no longer matter.
        if finished.place == Whereabouts::Landed {
            return None;
        }
        let changed = |on: &BundleId, how| Some(Stale { on: on.clone(), how });
        finished.stands_on.iter().find_map(|(on, version)| match self.known.get(on) {
            None | Some(BundleResult::None | BundleResult::Nothing) => {
                changed(on, FoundationChange::Gone)
            }
            // By commit and not by bundle: the same bundle may have another result by now (decision
            // 018).
            Some(BundleResult::Change(now)) if now.version != *version => {
                changed(on, FoundationChange::Superseded)
            }
            Some(BundleResult::Change(now)) => match now.place {
                Whereabouts::Held => changed(on, FoundationChange::Held),
                Whereabouts::Reverted => changed(on, FoundationChange::Reverted),
                Whereabouts::Pending if self.stale.contains_key(on) => {
                    changed(on, FoundationChange::Stale)
                }
                Whereabouts::Landed | Whereabouts::Pending => None,
            },
        })
    }

    /// Returns true if there is a bundle with this id.
    pub fn knows(&self, id: &BundleId) -> bool {
        self.known.contains_key(id)
    }

    /// Returns the reason the result of a bundle is stale, or `None` if it is not.
    pub fn stale(&self, id: &BundleId) -> Option<&Stale> {
        self.stale.get(id)
    }

    /// Returns the results below that of a bundle that are not accepted; a person must accept them
    /// first.
    pub fn unsigned_below(&self, id: &BundleId) -> Vec<&BundleId> {
        let Some(BundleResult::Change(finished)) = self.known.get(id) else { return Vec::new() };
        let is_open = |on: &&BundleId| !matches!(self.known.get(*on), Some(BundleResult::Change(now)) if now.accepted);
        finished.stands_on.iter().map(|(on, _)| on).filter(is_open).collect()
    }

    /// Returns the results that the base of a new attempt contains beyond the branch, in the order in
    /// which they are folded.
    ///
    /// `needs` are the dependencies of the bundle. Fails with all of them that cannot be used now. A
    /// rival that cannot be used is skipped.
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
        // No need to wait for a rival that cannot be used: its next attempt is built on this one.
        let rivals = rivals.iter().filter(|rival| *rival != id);
        open.extend(rivals.filter_map(|on| self.usable(on, speculation.on_rivals).ok().flatten()));
        let mut chosen: BTreeSet<&BundleId> = BTreeSet::new();
        while let Some(on) = open.pop() {
            let Some((on, BundleResult::Change(finished))) = self.known.get_key_value(on) else {
                continue;
            };
            // A landed result comes with the branch, in the form in which it landed. What it was
            // built on before no longer matters.
            if finished.place == Whereabouts::Landed || !chosen.insert(on) {
                continue;
            }
            // Without asking `usable`: below a result that is not stale nothing is stale, held or
            // reverted.
            open.extend(finished.stands_on.iter().map(|(below, _)| below));
        }
        Ok(self.ordered(chosen))
    }

    /// Returns the bundle if its result can be built on, `None` if the branch contains it already.
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

    /// Sorts topologically by `stands_on`, then by order of completion.
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
            // Results that are not stale have no cycle below them, so one is always ready. The fallback
            // only guards against an endless loop on contradictory input.
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
