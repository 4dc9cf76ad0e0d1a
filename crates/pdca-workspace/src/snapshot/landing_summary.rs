//! The state of accepted changes for lists of bundles: landed, held, staged, and predicted
//! conflicts. Errors here never hide the rest of a list.

use std::collections::{BTreeMap, BTreeSet};

use pdca_driver::integrate::{
    AcceptedChange, ChangeState, ConflictEnd, ConflictRecord, HeldBack, HeldChange, HeldReason,
    TargetBranch,
};
use pdca_driver::{Staleness, WorkspaceConfig};
use pdca_integrate::{PairOutlook, conflict_record, holders};
use pdca_state::{Artifact, Bundle, BundleId, State};

use pdca_state::text::shell;
use serde::Serialize;

use crate::snapshot::SnapshotEntry;
use crate::snapshot::accepted::AcceptedChanges;

/// The facts about each bundle beyond its state.
#[derive(Debug, Default)]
pub struct LandingSummary {
    marks: BTreeMap<BundleId, ChangeMark>,
    /// The branches with accepted changes that have not landed.
    pub branches: Vec<BranchSummary>,
    conflicts: BTreeMap<BundleId, Vec<BundleId>>,
    stale: BTreeMap<BundleId, Staleness>,
}

/// The state of an accepted change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeMark {
    /// `sealed`, `staged`, `landed`, `reverted`, `held`, `blocked_conflict`, `skipped`, `drifted` or `unsealed`.
    pub word: &'static str,
    /// A branch, or the reason why it is held.
    pub text: Option<String>,
    /// The command that continues it, if there is one.
    pub next: Option<String>,
    /// The record of the integration that held it.
    pub held: Option<Box<HeldChange>>,
}

impl ChangeMark {
    const WORDS: [&str; 9] = [
        "sealed",
        "staged",
        "landed",
        "reverted",
        "held",
        "blocked_conflict",
        "skipped",
        "drifted",
        "unsealed",
    ];

    /// Returns the word as [`ChangeMark::word`] has it.
    pub(crate) fn known_word(word: &str) -> Option<&'static str> {
        Self::WORDS.into_iter().find(|known| *known == word)
    }

    fn new(word: &'static str, text: Option<String>, next: Option<String>) -> Self {
        Self { word, text, next, held: None }
    }
}

/// A branch of a target, with the states of its accepted changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BranchSummary {
    pub target: String,
    pub name: String,
    /// The number of changes per state, without landed ones.
    pub counts: Vec<(&'static str, usize)>,
    /// The next command, and the reason for it.
    pub next: Option<(String, String)>,
}

impl LandingSummary {
    /// Reads seals and branches, if any of these bundles was accepted, and the forecast of conflicts among built ones,
    /// as far as it is known. `accepted` is what was read of the targets before.
    pub(crate) fn load(
        config: &WorkspaceConfig,
        entries: &[SnapshotEntry],
        accepted: Option<AcceptedChanges>,
    ) -> Self {
        let mut found = Self::default();
        if config.targets.is_empty() {
            return found;
        }
        found.stale = pdca_driver::stale_results(config);
        let is_sealed = |entry: &&SnapshotEntry| match &entry.glance {
            Ok(glance) => glance.artifacts.contains(Artifact::Seal),
            Err(_) => entry.dir.join(Artifact::Seal.file_name()).exists(),
        };
        if entries.iter().any(|entry| is_sealed(&entry)) {
            let accepted = accepted.or_else(|| AcceptedChanges::load(config, entries));
            let accepted = accepted.unwrap_or_default();
            (found.marks, found.branches) = (accepted.marks, accepted.branches);
        }
        let is_landed = |id: &BundleId| found.mark(id).is_some_and(|mark| mark.word == "landed");
        let built: BTreeSet<BundleId> = entries
            .iter()
            .filter(|entry| has_change(entry.state()) && !is_landed(&entry.id))
            .map(|entry| entry.id.clone())
            .collect();
        if built.len() < 2 {
            return found;
        }
        // Only what is known: computing a forecast merges trees, which takes too long for a list.
        let forecasts = pdca_driver::integrate::known_forecast(config, &built).unwrap_or_default();
        for pair in forecasts.iter().flat_map(|forecast| &forecast.pairs) {
            if let PairOutlook::Conflict { .. } = pair.outlook {
                let (one, other) = (pair.first.clone(), pair.second.clone());
                found.conflicts.entry(one.clone()).or_default().push(other.clone());
                found.conflicts.entry(other).or_default().push(one);
            }
        }
        found
    }

    /// Counts the changes of a branch, and chooses the next command. `pending` are all branches with
    /// changes that have not landed.
    fn branch(&self, branch: &TargetBranch, pending: &[&TargetBranch]) -> BranchSummary {
        let marks = || {
            let changes = branch.changes.iter().filter(|change| is_pending(change));
            changes.filter_map(|change| Some((change, self.mark(change.bundle.id())?)))
        };
        let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
        for (_, mark) in marks() {
            *counts.entry(mark.word).or_default() += 1;
        }
        let of = |word: &str| counts.get(word).copied().unwrap_or_default();
        let held = || marks().find_map(|(_, mark)| Some((mark.next.clone()?, mark.text.clone()?)));
        let next = if let count @ 1.. = of("sealed") {
            let command = match pending {
                [_only] => "pdca integrate".to_owned(),
                [..] => format!("pdca integrate --target {}", selector(branch, pending)),
            };
            Some((command, format!("{count} accepted and not landed")))
        } else if let Some(staging) = staged(branch) {
            let count = of("staged");
            Some((merge_command(branch, staging), format!("{count} gated together and green")))
        } else {
            held()
        };
        BranchSummary {
            target: branch.target.name.clone(),
            name: branch.branch.clone(),
            counts: counts.into_iter().collect(),
            next,
        }
    }

    /// Returns the state of an accepted change.
    pub fn mark(&self, id: &BundleId) -> Option<&ChangeMark> {
        self.marks.get(id)
    }

    /// Returns the reason why a bundle's result is stale, if it is.
    pub fn stale(&self, id: &BundleId) -> Option<&Staleness> {
        self.stale.get(id)
    }

    /// Returns the bundles that a bundle's change conflicts with.
    pub fn conflicts(&self, id: &BundleId) -> &[BundleId] {
        self.conflicts.get(id).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Derives the marks of all changes, and the summaries of the branches that some have not landed in.
pub(crate) fn marks(
    config: &WorkspaceConfig,
    branches: &[TargetBranch],
) -> (BTreeMap<BundleId, ChangeMark>, Vec<BranchSummary>) {
    let held = HeldBack::load(&config.queue());
    let all: BTreeMap<&BundleId, &ChangeState> = branches
        .iter()
        .flat_map(|branch| &branch.changes)
        .map(|change| (change.bundle.id(), &change.standing))
        .collect();
    let mut found = LandingSummary::default();
    for branch in branches {
        for change in &branch.changes {
            let mark = mark(config, branch, change, (&held, &all));
            found.marks.insert(change.bundle.id().clone(), mark);
        }
    }
    let pending = |branch: &&TargetBranch| branch.changes.iter().any(is_pending);
    let pending: Vec<&TargetBranch> = branches.iter().filter(pending).collect();
    let summaries = pending.iter().map(|branch| found.branch(branch, &pending)).collect();
    (found.marks, summaries)
}

/// Returns whether a bundle in this state has a change that may conflict with others.
fn has_change(state: Option<State>) -> bool {
    match state {
        Some(State::Built | State::Checked | State::AwaitingSignoff | State::Complete) => true,
        Some(
            State::Unplanned
            | State::Resolved
            | State::Planned
            | State::Iterate(_)
            | State::Discontinued,
        )
        | None => false,
    }
}

fn is_pending(change: &AcceptedChange) -> bool {
    !matches!(change.standing, ChangeState::Landed { .. })
}

/// Returns the value of `--target` for a branch: the target alone if it has no other branch.
fn selector(branch: &TargetBranch, all: &[&TargetBranch]) -> String {
    let target = &branch.target.name;
    let of_it = all.iter().filter(|other| other.target.name == *target).count();
    let name = if of_it > 1 { format!("{target}@{}", branch.branch) } else { target.clone() };
    shell(&name).into_owned()
}

/// Returns the staging branch that contains changes of a branch.
fn staged(branch: &TargetBranch) -> Option<&str> {
    branch.changes.iter().find_map(|change| match &change.standing {
        ChangeState::Staged { branch: staging, .. } => Some(staging.as_str()),
        ChangeState::Unsealed
        | ChangeState::Sealed(_)
        | ChangeState::Landed { .. }
        | ChangeState::Reverted { .. }
        | ChangeState::Drifted { .. } => None,
    })
}

/// Returns the command that merges a staging branch into its branch. It is `git merge` only if a checkout has that
/// branch; elsewhere it would merge into whatever is checked out.
pub fn merge_command(branch: &TargetBranch, staging: &str) -> String {
    let staging = shell(staging);
    let git = |path: &camino::Utf8Path| format!("git -C {}", shell(path.as_str()));
    let primary = git(&branch.target.path);
    // A remote-tracking branch is moved by a push, not by a merge here.
    if let Some((remote, name)) = branch
        .reference
        .strip_prefix("refs/remotes/")
        .and_then(|reference| reference.split_once('/'))
    {
        return format!("{primary} push {} {staging}:{}", shell(remote), shell(name));
    }
    match holders(&branch.store, &branch.reference).unwrap_or_default().first() {
        Some(holder) => format!("{} merge --ff-only {staging}", git(&holder.path)),
        // `fetch` into a branch refuses anything but a fast-forward, as `merge --ff-only` does, and
        // needs no checkout of it.
        None => {
            format!("{primary} fetch --no-write-fetch-head . {staging}:{}", shell(&branch.branch))
        }
    }
}

/// Returns whether the reason for holding a change still applies. Once a prerequisite has landed, or a partner
/// was sent back, only the next integration can tell.
fn still_holds(held: &HeldChange, all: &BTreeMap<&BundleId, &ChangeState>) -> bool {
    let has_landed = |id: &BundleId| matches!(all.get(id), Some(ChangeState::Landed { .. }));
    match held.reason {
        HeldReason::Needs => !held.partners.iter().all(has_landed),
        HeldReason::Red | HeldReason::Undecidable | HeldReason::Conflict => {
            held.partners.iter().all(|id| all.contains_key(id))
        }
        HeldReason::Drift
        | HeldReason::Unsealed
        | HeldReason::Present
        | HeldReason::Reverted
        | HeldReason::Stale => true,
    }
}

fn mark(
    config: &WorkspaceConfig,
    branch: &TargetBranch,
    change: &AcceptedChange,
    (known, all): (&HeldBack, &BTreeMap<&BundleId, &ChangeState>),
) -> ChangeMark {
    let id = change.bundle.id();
    let reopen = Some(format!("pdca reopen {id}"));
    match &change.standing {
        ChangeState::Sealed(sealed) => {
            let commit = sealed.record().head.to_string();
            let conflict = conflict_record(&config.queue(), id, &commit);
            // The record is about one sealed commit; a change that was accepted again has another.
            let held = known.of(id, Some(&commit)).filter(|held| still_holds(held, all));
            match (conflict, held) {
                (Some(conflict), held) => {
                    of_conflict(id, &conflict, held.map(HeldChange::sentence))
                }
                (None, Some(held)) => ChangeMark {
                    word: "held",
                    text: Some(held.sentence()),
                    next: Some(after_held(config, held)),
                    held: Some(Box::new(held.clone())),
                },
                (None, None) => ChangeMark::new("sealed", None, Some("pdca integrate".to_owned())),
            }
        }
        ChangeState::Staged { branch: staging, .. } => {
            ChangeMark::new("staged", Some(staging.clone()), Some(merge_command(branch, staging)))
        }
        ChangeState::Drifted { why } => ChangeMark::new("drifted", Some(why.clone()), reopen),
        ChangeState::Unsealed => {
            ChangeMark::new("unsealed", None, Some(after_unsealed(&change.bundle)))
        }
        ChangeState::Landed { places, .. } => {
            // The last place is the farthest: a change on a remote is visible to others.
            let text = places.last().cloned();
            ChangeMark::new("landed", text, Some("pdca verify".to_owned()))
        }
        ChangeState::Reverted { by, .. } => {
            let text = Some(format!("by {}", by.to_hex_with_len(12)));
            ChangeMark::new("reverted", text, reopen)
        }
    }
}

/// Returns the command that continues a held change.
pub fn after_held(config: &WorkspaceConfig, held: &HeldChange) -> String {
    let id = &held.id;
    match (held.reason, held.partners.first()) {
        (HeldReason::Conflict, _) if pdca_driver::integrate::has_resolver(config) => {
            format!("pdca resolve {id}")
        }
        (HeldReason::Needs, Some(partner)) => format!("pdca why {partner}"),
        (HeldReason::Unsealed, _) => after_unsealed(&config.dirs.bundles.bundle(id)),
        (HeldReason::Present, _) => {
            format!("pdca signoff {id} discontinue --note 'its effect is there already'")
        }
        (HeldReason::Stale, _) => format!("pdca run {id}"),
        (
            HeldReason::Red
            | HeldReason::Undecidable
            | HeldReason::Conflict
            | HeldReason::Needs
            | HeldReason::Drift
            | HeldReason::Reverted,
            _,
        ) => format!("pdca reopen {id}"),
    }
}

/// Returns the command for a change that was accepted without a seal: seal it, if accepting would be
/// allowed and the report says what was checked.
pub fn after_unsealed(bundle: &Bundle) -> String {
    let id = bundle.id();
    let snapshot = bundle.load().ok();
    let is_sealable = snapshot.is_some_and(|snapshot| {
        let summary = snapshot.summary.as_ref().map_or("", pdca_state::Summary::text);
        let report = snapshot.gates.as_ref();
        pdca_state::require_accepted(summary, report).is_ok()
            && report.is_some_and(|report| report.patch_digest.is_some() && report.base.is_some())
    });
    if is_sealable { format!("pdca integrate --seal {id}") } else { format!("pdca reopen {id}") }
}

/// Describes the state of a conflict that a resolver was asked about.
fn of_conflict(id: &BundleId, conflict: &ConflictRecord, held: Option<String>) -> ChangeMark {
    let progress = conflict.progress();
    let (word, text, next) = match &conflict.end {
        Some(ConflictEnd::Blocked { evidence }) => {
            ("blocked_conflict", evidence.clone(), format!("pdca unblock {id}"))
        }
        Some(ConflictEnd::Skipped { why, .. }) => {
            let next =
                format!("pdca signoff {id} discontinue --note 'its effect is there already'");
            ("skipped", why.clone(), next)
        }
        Some(ConflictEnd::Resolved { .. }) => {
            let text = format!("{}; resolved, not checked yet", conflict.said);
            ("held", text, format!("pdca resolve {id}"))
        }
        None => {
            let why = held.unwrap_or_else(|| conflict.said.clone());
            ("held", format!("{why}; {progress}"), format!("pdca resolve {id}"))
        }
    };
    ChangeMark::new(word, Some(text), Some(next))
}
