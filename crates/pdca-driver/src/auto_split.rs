//! Splits bundles of which some parts can be started and others wait for bundles that are still open.
//!
//! Such a bundle would wait as a whole. Split, its ready parts start at once, and each of the others is a planned bundle that
//! depends on what it waits for, so that the same batch starts it when that is complete.
//!
//! Whether a split is due follows from the files alone, and so does what it makes. A split that was interrupted is always
//! due: the bundle and its parts must not both be built.

use std::collections::BTreeSet;

use pdca_dag::{Awaits, ItemState};
use pdca_journal::Effects;
use pdca_state::{
    Artifact, Brief, Bundle, BundleId, Part, RootError, SPLIT_FROM, State, held_parts,
    may_have_parts, parts,
};
use serde::Serialize;

use crate::batch::{Batch, has_started};
use crate::config::WorkspaceConfig;
use crate::schedule::SplitPolicy;
use crate::split::{Split, SplitBy, SplitError, SplitInto, split_bundle, would_split};

/// The name in §9 of a bundle that a driver split.
const SIGNER: &str = "pdca";

/// The file of the planning groups. While it is there, drivers follow it, and new bundles would make it stale.
const LANES_FILE: &str = "lanes.json";

/// A bundle that is split before anything is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DueSplit {
    pub id: BundleId,
    /// The new bundles that wait for no open bundle, but perhaps for each other.
    pub ready: Vec<BundleId>,
    /// The new bundles that wait.
    pub waiting: Vec<WaitingPart>,
    #[serde(skip)]
    into: SplitInto,
}

/// A new bundle that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingPart {
    pub id: BundleId,
    /// The open bundles; none if it comes after another new one that waits.
    pub waits_for: Vec<BundleId>,
}

impl DueSplit {
    /// Returns the new bundles that can be carried out where only `chosen` are, beside those that are complete.
    pub fn startable_with(&self, chosen: &BTreeSet<BundleId>) -> Vec<BundleId> {
        let is_there = |part: &&WaitingPart| {
            !part.waits_for.is_empty() && part.waits_for.iter().all(|id| chosen.contains(id))
        };
        let waiting = self.waiting.iter().filter(is_there).map(|part| part.id.clone());
        self.ready.iter().cloned().chain(waiting).collect()
    }
}

/// Returns the bundles that a driver splits first, among these or all. Changes nothing.
pub fn due_splits(
    config: &WorkspaceConfig,
    chosen: Option<&BTreeSet<BundleId>>,
) -> Result<Vec<DueSplit>, RootError> {
    let mut due = Vec::new();
    if config.schedule.split == SplitPolicy::Never {
        return Ok(due);
    }
    let listed = match config.dirs.bundles.list() {
        Err(RootError::Missing { .. }) => return Ok(due),
        listed => listed?,
    };
    let is_chosen = |bundle: &&Bundle| chosen.is_none_or(|ids| ids.contains(bundle.id()));
    // Nearly every brief has no parts, and then nothing more is read.
    let candidates: Vec<Candidate> =
        listed.iter().filter(is_chosen).filter_map(|one| Candidate::of(config, one)).collect();
    if candidates.is_empty() {
        return Ok(due);
    }
    let batch = Batch::of_all(config)?;
    let is_planned = batch.plan().is_ok();
    for candidate in candidates {
        // A contradiction between briefs is for a person to mend, with the briefs as they were written.
        if candidate.is_begun || (is_planned && !config.dirs.root.join(LANES_FILE).exists()) {
            due.extend(candidate.due(config, &batch));
        }
    }
    Ok(due)
}

/// Like [`due_splits`], among the bundles of a batch, whose briefs were read already.
pub fn due_splits_in(config: &WorkspaceConfig, batch: &Batch) -> Result<Vec<DueSplit>, RootError> {
    if batch.with_parts.is_empty() {
        return Ok(Vec::new());
    }
    due_splits(config, Some(&batch.with_parts))
}

/// Splits every bundle that is due, among these or all, and returns the splits. A bundle that another process holds
/// is passed over.
pub fn split_due(
    config: &WorkspaceConfig,
    chosen: Option<&BTreeSet<BundleId>>,
    date: &str,
    effects: &dyn Effects,
) -> Result<Vec<(DueSplit, Split)>, SplitError> {
    let mut done = Vec::new();
    for seen in due_splits(config, chosen)? {
        let Ok(_taken) = config.locks().take(&seen.id) else { continue };
        // Decided again under the lock: the bundle may have been started, edited or split since it was listed.
        let only = BTreeSet::from([seen.id.clone()]);
        let Some(due) = due_splits(config, Some(&only))?.pop() else { continue };
        let bundle = config.dirs.bundles.bundle(&due.id);
        let signer = SplitBy { by: SIGNER, date };
        let split = split_bundle(config, &bundle, &due.into, signer, effects)?;
        done.push((due, split));
    }
    Ok(done)
}

/// A planned bundle with parts, all of which can become planned bundles.
struct Candidate {
    bundle: Bundle,
    brief: Brief,
    parts: Vec<Part>,
    /// Set if an interrupted split made bundles of it.
    is_begun: bool,
    into: SplitInto,
}

impl Candidate {
    fn of(config: &WorkspaceConfig, bundle: &Bundle) -> Option<Self> {
        let bytes = bundle.read(Artifact::Brief).ok()??;
        if !may_have_parts(&bytes) {
            return None;
        }
        let brief = Brief::parse(&String::from_utf8_lossy(&bytes));
        let mut parts = parts(&brief).ok()?;
        if parts.len() < 2 || brief.is_placeholder() {
            return None;
        }
        let root = &config.dirs.bundles;
        let exists = |id: &BundleId| {
            root.bundle(id).dir().exists() || root.completed().bundle(id).dir().exists()
        };
        for part in &mut parts {
            part.keep_blockers(&exists);
        }
        let glance = bundle.glance();
        let is_planned = glance.as_ref().is_ok_and(|glance| glance.state == State::Planned);
        if !is_planned || has_started(config, bundle.id(), &glance) {
            return None;
        }
        let is_made = |name: &str| {
            let id: Option<BundleId> = format!("{}-{name}", bundle.id()).parse().ok();
            let brief = id.and_then(|id| root.bundle(&id).read(Artifact::Brief).ok().flatten());
            let brief = brief.map(|bytes| Brief::parse(&String::from_utf8_lossy(&bytes)));
            brief.is_some_and(|brief| brief.ids_of(SPLIT_FROM).ids().contains(bundle.id()))
        };
        let is_begun = parts.iter().any(|part| is_made(&part.id));
        // What cannot be filled in here would become a draft, and splitting into drafts is for a person.
        if !is_begun && !parts.iter().all(Part::is_complete) {
            return None;
        }
        // `--ready` makes the rest last, so with it every bundle of that split is there.
        let into = if is_made("rest") { SplitInto::Ready } else { SplitInto::Parts };
        Some(Self { bundle: bundle.clone(), brief, parts, is_begun, into })
    }

    fn due(self, config: &WorkspaceConfig, batch: &Batch) -> Option<DueSplit> {
        let awaits = Awaits::from(config.schedule.dependants);
        let is_open = |id: &BundleId| {
            let item = batch.items.iter().find(|item| item.id == *id);
            let standing = item.map(|item| item.standing).or_else(|| batch.outside.standing(id));
            standing.and_then(ItemState::reached).is_none_or(|reached| reached < awaits)
        };
        let held = held_parts(&self.parts, &is_open);
        let is_waiting = self.brief.depends_on().ids().iter().any(is_open);
        let is_due = !held.is_empty() && held.len() < self.parts.len() && !is_waiting;
        // A dependant that cannot be edited would wait for a discontinued bundle, so a person has to see it first.
        let is_whole = || {
            would_split(config, &self.bundle, &self.into)
                .is_ok_and(|split| split.unchanged.is_empty())
        };
        let is_due = self.is_begun || (is_due && is_whole());
        if !is_due {
            return None;
        }
        let (mut ready, mut waiting) = (Vec::new(), Vec::new());
        for part in &self.parts {
            let id: BundleId = format!("{}-{}", self.bundle.id(), part.id).parse().ok()?;
            if held.contains(part.id.as_str()) {
                let waits_for = part.blockers.iter().filter(|id| is_open(id)).cloned().collect();
                waiting.push(WaitingPart { id, waits_for });
            } else {
                ready.push(id);
            }
        }
        if self.into == SplitInto::Ready {
            let waits_for =
                waiting.drain(..).flat_map(|part: WaitingPart| part.waits_for).collect();
            let id = format!("{}-rest", self.bundle.id()).parse().ok()?;
            waiting.push(WaitingPart { id, waits_for });
        }
        Some(DueSplit { id: self.bundle.id().clone(), ready, waiting, into: self.into })
    }
}
