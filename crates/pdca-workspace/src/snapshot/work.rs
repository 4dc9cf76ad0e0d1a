//! The running drivers, and the bundles that they keep waiting.
//!
//! The kernel's locks tell who is alive. Without a driver, no bundle's lock is tested.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pdca_dag::{Awaits, Case, Frontier, Pattern, Rivalry, Untouched, Why};
use pdca_driver::{AtWork, Batch, RivalsPolicy, WorkspaceConfig};
use pdca_state::{Artifact, Brief, Bundle, BundleId};

use super::{Doing, SnapshotEntry, activity};

/// The activity in a workspace.
#[derive(Debug, Default)]
pub struct WorkspaceActivity {
    /// The name of the driver, while one is running.
    pub driver: Option<String>,
    /// The name of the integration, while one is running.
    pub integration: Option<String>,
    /// The bundles that a process holds.
    at: BTreeMap<BundleId, AtWork>,
    /// The current activity of each bundle, from the events of its run.
    doing: BTreeMap<BundleId, Doing>,
    /// The bundles that may not start because of rivals.
    held: BTreeMap<BundleId, Vec<HeldBy>>,
}

/// A rival that keeps a bundle from starting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBy {
    pub id: BundleId,
    /// A path that both can write; `None` if one declares a conflict with the other.
    pub witness: Option<String>,
    /// The state its result must reach; `None` while it is in flight.
    pub until: Option<Awaits>,
}

impl WorkspaceActivity {
    /// Tests the locks of these bundles. Errors count as no activity, because this only adds to
    /// what is known without it.
    pub fn load(site: &WorkspaceConfig, entries: &[SnapshotEntry]) -> Self {
        let waiting = results_waited_for(site);
        let integration = site.locks().integration_at_work().ok().flatten();
        let Some(driver) = site.locks().driver_at_work().ok().flatten() else {
            return Self { held: waiting, integration, ..Self::default() };
        };
        let open =
            || entries.iter().filter(|entry| entry.state().is_some_and(pdca_state::State::is_open));
        // Only while a driver is alive, because testing a lock opens a file for each bundle.
        let at: BTreeMap<BundleId, AtWork> = open()
            .filter_map(|entry| Some((entry.id.clone(), site.locks().at_work_on(&entry.id).ok()??)))
            .collect();
        let claims = |entry| Claims::of(entry, site.schedule.untouched);
        let busy: Vec<Claims<'_>> =
            open().filter(|entry| at.contains_key(&entry.id)).map(claims).collect();
        let idle = open().filter(|entry| !at.contains_key(&entry.id) && entry.can_go_on());
        let mut held: BTreeMap<BundleId, Vec<HeldBy>> = idle
            .map(|entry| (entry.id.clone(), claims(entry).held_by(&busy, site)))
            .filter(|(_, by)| !by.is_empty())
            .collect();
        for (id, by) in waiting {
            held.entry(id).or_default().extend(by);
        }
        Self { driver: Some(driver), integration, at, doing: activity::load(site), held }
    }

    /// Returns the process that holds a bundle, if any.
    pub fn on(&self, id: &BundleId) -> Option<&AtWork> {
        self.at.get(id)
    }

    /// Returns the current activity of a bundle that a process holds.
    pub fn doing(&self, id: &BundleId) -> Option<&Doing> {
        // The lock decides: the log of a live driver may still show a bundle that it has left.
        self.doing.get(id).filter(|_| self.at.contains_key(id))
    }

    /// Returns the rivals that keep a bundle from starting.
    pub fn holding(&self, id: &BundleId) -> &[HeldBy] {
        self.held.get(id).map_or(&[], Vec::as_slice)
    }
}

/// Returns the bundles that may not start before the result of a rival is signed off or has landed, if
/// `[schedule] rivals` asks for that.
fn results_waited_for(site: &WorkspaceConfig) -> BTreeMap<BundleId, Vec<HeldBy>> {
    let mut held: BTreeMap<BundleId, Vec<HeldBy>> = BTreeMap::new();
    if site.schedule.rivals == RivalsPolicy::Built {
        return held;
    }
    let Ok(batch) = Batch::of_all(site) else { return held };
    let Ok(plan) = batch.plan() else { return held };
    let frontier = Frontier::new(&plan);
    for id in plan.order() {
        let Some(Why::Held { by, .. }) = frontier.why(id) else { continue };
        let by = by.into_iter().map(|holder| HeldBy {
            id: holder.id,
            witness: match holder.rivalry {
                Rivalry::Conflict { .. } => None,
                Rivalry::Overlap { witness, .. } => Some(witness),
            },
            until: holder.until,
        });
        held.insert(id.clone(), by.collect());
    }
    held
}

/// The claims of one bundle, parsed for comparison.
struct Claims<'a> {
    entry: &'a SnapshotEntry,
    patterns: Vec<Pattern>,
}

impl<'a> Claims<'a> {
    fn of(entry: &'a SnapshotEntry, untouched: Untouched) -> Self {
        let globs = entry.glance.as_ref().map_or(&[][..], |glance| &glance.touches);
        let parse = |glob: &String| Pattern::parse(glob, Case::Sensitive).ok();
        // As the plan claims it, or a bundle would be shown as one that may start.
        let patterns = match untouched {
            Untouched::Exclusive if globs.is_empty() => vec![Pattern::everything()],
            Untouched::Exclusive | Untouched::Free => globs.iter().filter_map(parse).collect(),
        };
        Self { entry, patterns }
    }

    fn held_by(&self, busy: &[Claims<'_>], site: &WorkspaceConfig) -> Vec<HeldBy> {
        let found = |other: &Claims<'_>| {
            let id = other.entry.id.clone();
            if self.names(other) || other.names(self) {
                return Some(HeldBy { id, witness: None, until: None });
            }
            let held = HeldBy { id, witness: Some(self.witness(other)?), until: None };
            self.is_beside(other, site).then_some(held)
        };
        busy.iter().filter_map(found).collect()
    }

    /// Returns a path that both can write.
    fn witness(&self, other: &Claims<'_>) -> Option<String> {
        let meet = |one: &Pattern| other.patterns.iter().find_map(|two| one.meet(two));
        self.patterns.iter().find_map(meet)
    }

    fn names(&self, other: &Claims<'_>) -> bool {
        self.entry.conflicts_with.contains(&other.entry.id)
    }

    /// Returns whether both are about the same repository; paths of different ones never overlap.
    fn is_beside(&self, other: &Claims<'_>, site: &WorkspaceConfig) -> bool {
        if site.targets.len() < 2 {
            return true;
        }
        let target = |entry: &SnapshotEntry| {
            let bytes = Bundle::at(&*entry.dir).ok()?.read(Artifact::Brief).ok()??;
            site.target_of(&Brief::parse(&String::from_utf8_lossy(&bytes))).ok()?
        };
        target(self.entry) == target(other.entry)
    }
}

/// Returns the time from `since` to `now`, which is in seconds since the epoch.
pub fn ago(since: SystemTime, now: i64) -> Duration {
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(u64::try_from(now).unwrap_or(0)).saturating_sub(since)
}

/// Formats a time for `--json`, in UTC.
pub fn timestamp(time: SystemTime) -> Option<String> {
    let seconds = i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()?;
    Some(jiff::Timestamp::from_second(seconds).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use pdca_state::BundleRoot;
    use pdca_testkit::TestWorkspace;

    use super::*;
    use crate::snapshot::{SnapshotSource, WorkspaceSnapshot};

    #[test]
    fn a_bundle_that_declares_no_path_is_a_rival_of_all_where_it_runs_alone() {
        let workspace = TestWorkspace::new();
        workspace.brief("1", &[]);
        workspace.brief("2", &[("Touches", "src/a.rs")]);
        let bundles = BundleRoot::new(workspace.path().join("results"));
        let source = SnapshotSource { bundles: &bundles, awaits: Awaits::Accepted, config: None };
        let snapshot = WorkspaceSnapshot::load(source).unwrap();
        let witness = |untouched| {
            let [one, two] = [0, 1].map(|at| Claims::of(&snapshot.entries[at], untouched));
            one.witness(&two)
        };
        assert!(witness(Untouched::Exclusive).is_some());
        assert_eq!(witness(Untouched::Free), None);
    }
}
