//! How bundles get on with each other, for whoever lists them: what landed, what is held, and what
//! will not go together. What keeps that from being told keeps nobody from seeing the rest.

use std::collections::{BTreeMap, BTreeSet};

use pdca_driver::integrate::{
    Accepted, ChangeState, ConflictEnd, ConflictRecord, Held, HeldBack, HeldReason, TargetBranch,
    TargetBranches,
};
use pdca_driver::{Staleness, WorkspaceConfig};
use pdca_integrate::{Outlook, conflict_record, holders};
use pdca_state::{Artifact, Bundle, BundleId, State};

use crate::context::Context;
use crate::overview::Entry;
use crate::style::{printable, shell};

/// What is to be said about each bundle besides its state.
#[derive(Debug, Default)]
pub struct Meeting {
    marks: BTreeMap<BundleId, Mark>,
    /// The branches with accepted changes that have not landed.
    pub branches: Vec<Branch>,
    troubles: BTreeMap<BundleId, Vec<BundleId>>,
    stale: BTreeMap<BundleId, Staleness>,
}

/// Where an accepted change stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// `sealed`, `staged`, `landed`, `reverted`, `held`, `blocked_conflict`, `skipped`, `drifted` or `unsealed`.
    pub word: &'static str,
    /// What else there is to say: a branch, or why it is held.
    pub text: Option<String>,
    /// What goes on with it, where something does.
    pub next: Option<String>,
    /// What an integration said about it when it held it.
    pub held: Option<Box<Held>>,
}

impl Mark {
    fn new(word: &'static str, text: Option<String>, next: Option<String>) -> Self {
        Self { word, text, next, held: None }
    }
}

/// A branch of a target, and how its accepted changes stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// The name of the target.
    pub target: String,
    /// The branch.
    pub name: String,
    /// How many changes stand where, those that have landed left out.
    pub counts: Vec<(&'static str, usize)>,
    /// What goes on with them, and why that.
    pub next: Option<(String, String)>,
}

impl Meeting {
    /// Looks at the seals and the branches, where any of these bundles was accepted, and at what
    /// conflicts among those that are built, where they are few enough to look at in passing.
    pub fn load(site: &WorkspaceConfig, entries: &[Entry]) -> Self {
        let mut found = Self::default();
        if site.targets.is_empty() {
            return found;
        }
        found.stale = pdca_driver::stale_results(site);
        let is_sealed = |entry: &&Entry| {
            let bundle = Bundle::at(&*entry.dir);
            bundle.is_ok_and(|bundle| bundle.path(Artifact::Seal).exists())
        };
        if entries.iter().any(|entry| is_sealed(&entry)) {
            let held = HeldBack::load(&site.queue());
            let fronts = TargetBranches::load(&site.queue()).unwrap_or_default().branches;
            let all: BTreeMap<&BundleId, &ChangeState> = fronts
                .iter()
                .flat_map(|front| &front.changes)
                .map(|change| (change.bundle.id(), &change.standing))
                .collect();
            for front in &fronts {
                for change in &front.changes {
                    let mark = mark(site, front, change, (&held, &all));
                    found.marks.insert(change.bundle.id().clone(), mark);
                }
            }
            let pending = |front: &&TargetBranch| front.changes.iter().any(is_pending);
            let pending: Vec<&TargetBranch> = fronts.iter().filter(pending).collect();
            found.branches = pending.iter().map(|front| found.branch(front, &pending)).collect();
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
        let skies = pdca_driver::integrate::quick_forecast(site, &built).unwrap_or_default();
        for trouble in skies.iter().flat_map(|sky| &sky.pairs) {
            if let Outlook::Conflict { .. } = trouble.outlook {
                let (one, other) = (trouble.first.clone(), trouble.second.clone());
                found.troubles.entry(one.clone()).or_default().push(other.clone());
                found.troubles.entry(other).or_default().push(one);
            }
        }
        found
    }

    /// How the changes of a branch stand, and what goes on with them. `pending` are all branches that have
    /// changes which have not landed.
    fn branch(&self, front: &TargetBranch, pending: &[&TargetBranch]) -> Branch {
        let marks = || {
            let changes = front.changes.iter().filter(|change| is_pending(change));
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
                [..] => format!("pdca integrate --target {}", selector(front, pending)),
            };
            Some((command, format!("{count} accepted and not landed")))
        } else if let Some(branch) = staged(front) {
            let count = of("staged");
            Some((merge(front, branch), format!("{count} gated together and green")))
        } else {
            held()
        };
        Branch {
            target: front.target.name.clone(),
            name: front.branch.clone(),
            counts: counts.into_iter().collect(),
            next,
        }
    }

    /// Where an accepted change stands.
    pub fn mark(&self, id: &BundleId) -> Option<&Mark> {
        self.marks.get(id)
    }

    /// Why the result of a bundle is stale; none where it is not.
    pub fn stale(&self, id: &BundleId) -> Option<&Staleness> {
        self.stale.get(id)
    }

    /// The bundles that a bundle's change conflicts with.
    pub fn conflicts(&self, id: &BundleId) -> &[BundleId] {
        self.troubles.get(id).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Whether a bundle in this state has a change that may conflict with others.
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

/// Whether a change has not landed.
fn is_pending(change: &Accepted) -> bool {
    !matches!(change.standing, ChangeState::Landed { .. })
}

/// How `--target` names a branch: by its target alone where that has no other.
pub fn selector(front: &TargetBranch, all: &[&TargetBranch]) -> String {
    let target = &front.target.name;
    let of_it = all.iter().filter(|other| other.target.name == *target).count();
    let name = if of_it > 1 { format!("{target}@{}", front.branch) } else { target.clone() };
    shell(&name).into_owned()
}

/// The staging branch that has changes of a branch.
fn staged(front: &TargetBranch) -> Option<&str> {
    front.changes.iter().find_map(|change| match &change.standing {
        ChangeState::Staged { branch, .. } => Some(branch.as_str()),
        ChangeState::Unsealed
        | ChangeState::Sealed(_)
        | ChangeState::Landed { .. }
        | ChangeState::Reverted { .. }
        | ChangeState::Drifted { .. } => None,
    })
}

/// The command that brings a staging branch into the branch it is for. Only where a checkout has that
/// branch is it a merge: elsewhere that would merge into whatever the checkout is on.
pub fn merge(front: &TargetBranch, staging: &str) -> String {
    let (branch, staging) = (&front.branch, shell(staging));
    let git = |path: &camino::Utf8Path| format!("git -C {}", shell(path.as_str()));
    let primary = git(&front.target.path);
    if let Some((remote, name)) = front
        .reference
        .strip_prefix("refs/remotes/")
        .and_then(|reference| reference.split_once('/'))
    {
        return format!("{primary} push {} {staging}:{}", shell(remote), shell(name));
    }
    match holders(&front.store, &front.reference).unwrap_or_default().first() {
        Some(holder) => format!("{} merge --ff-only {staging}", git(&holder.path)),
        None => {
            format!("{primary} fetch --no-write-fetch-head . {staging}:{}", shell(branch))
        }
    }
}

/// Whether what was said about a change still holds: with what it needs landed, or one that it is red or
/// in conflict with sent back, only the next integration can tell.
fn still_holds(held: &Held, all: &BTreeMap<&BundleId, &ChangeState>) -> bool {
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
    site: &WorkspaceConfig,
    front: &TargetBranch,
    change: &Accepted,
    (known, all): (&HeldBack, &BTreeMap<&BundleId, &ChangeState>),
) -> Mark {
    let id = change.bundle.id();
    let reopen = Some(format!("pdca reopen {id}"));
    match &change.standing {
        ChangeState::Sealed(sealed) => {
            let commit = sealed.record().head.to_string();
            let case = conflict_record(&site.queue(), id, &commit);
            let held = known.of(id, Some(&commit)).filter(|held| still_holds(held, all));
            match (case, held) {
                (Some(case), held) => of_case(id, &case, held.map(Held::sentence)),
                (None, Some(held)) => Mark {
                    word: "held",
                    text: Some(held.sentence()),
                    next: Some(after_held(site, held)),
                    held: Some(Box::new(held.clone())),
                },
                (None, None) => Mark::new("sealed", None, Some("pdca integrate".to_owned())),
            }
        }
        ChangeState::Staged { branch, .. } => {
            Mark::new("staged", Some(branch.clone()), Some(merge(front, branch)))
        }
        ChangeState::Drifted { why } => Mark::new("drifted", Some(why.clone()), reopen),
        ChangeState::Unsealed => Mark::new("unsealed", None, Some(after_unsealed(&change.bundle))),
        ChangeState::Landed { places, .. } => {
            // The farthest place says most: what a remote has, others have.
            let text = places.last().cloned();
            Mark::new("landed", text, Some("pdca verify".to_owned()))
        }
        ChangeState::Reverted { by, .. } => {
            let text = Some(format!("by {}", by.to_hex_with_len(12)));
            Mark::new("reverted", text, reopen)
        }
    }
}

/// What the red rows of a held change left, one line each: more failing tests than its sentence
/// names, the logs, and the commands that show it again.
pub fn evidence(cx: &Context<'_>, held: &Held) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for row in &held.red {
        if row.failing.is_empty() {
            lines.push(format!("{}: {}", row.row, printable(&row.said)));
        } else if held.red.len() > 1 || row.failing.len() > 3 {
            let more = match row.failing_more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!("{} fails: {}{more}", row.row, row.failing.join(", ")));
        }
    }
    lines.extend(held.logs.iter().map(|log| format!("log: {}", cx.show(log))));
    let commands = held.red.iter().filter_map(|row| row.reproduce.as_ref());
    lines.extend(commands.map(|command| format!("reproduce: {command}")));
    lines
}

/// What goes on with a change that an integration held.
pub fn after_held(site: &WorkspaceConfig, held: &Held) -> String {
    let id = &held.id;
    match (held.reason, held.partners.first()) {
        (HeldReason::Conflict, _) if pdca_driver::integrate::has_resolver(site) => {
            format!("pdca resolve {id}")
        }
        (HeldReason::Needs, Some(partner)) => format!("pdca why {partner}"),
        (HeldReason::Unsealed, _) => after_unsealed(&site.dirs.bundles.bundle(id)),
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

/// What goes on with a change that was accepted without a seal: it is sealed, where accepting it would be
/// allowed and its report says what was checked.
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

/// What a resolver was asked about, and how often.
fn of_case(id: &BundleId, case: &ConflictRecord, held: Option<String>) -> Mark {
    let progress = case.progress();
    let (word, text, next) = match &case.end {
        Some(ConflictEnd::Blocked { evidence }) => {
            ("blocked_conflict", evidence.clone(), format!("pdca unblock {id}"))
        }
        Some(ConflictEnd::Skipped { why, .. }) => {
            let next =
                format!("pdca signoff {id} discontinue --note 'its effect is there already'");
            ("skipped", why.clone(), next)
        }
        Some(ConflictEnd::Resolved { .. }) => {
            let text = format!("{}; resolved, not checked yet", case.said);
            ("held", text, format!("pdca resolve {id}"))
        }
        None => {
            let why = held.unwrap_or_else(|| case.said.clone());
            ("held", format!("{why}; {progress}"), format!("pdca resolve {id}"))
        }
    };
    Mark::new(word, Some(text), Some(next))
}
