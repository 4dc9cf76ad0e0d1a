//! How bundles get on with each other, for whoever lists them: what landed, what is held, and what
//! will not go together. What keeps that from being told keeps nobody from seeing the rest.

use std::collections::{BTreeMap, BTreeSet};

use pdca_driver::Site;
use pdca_driver::integrate::{Accepted, Case, End, FEW, Held, HeldBack, Standing};
use pdca_integrate::Outlook;
use pdca_state::{Artifact, Bundle, BundleId, State};

use crate::overview::Entry;

/// What is to be said about each bundle besides its state.
#[derive(Debug, Default)]
pub struct Meeting {
    marks: BTreeMap<BundleId, Mark>,
    troubles: BTreeMap<BundleId, Vec<BundleId>>,
}

/// Where an accepted change stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// `sealed`, `staged`, `landed`, `held`, `blocked_conflict`, `skipped`, `drifted` or `unsealed`.
    pub word: &'static str,
    /// What else there is to say: a branch, or why it is held.
    pub text: Option<String>,
}

impl Meeting {
    /// Looks at the seals and the branches, where any of these bundles was accepted, and at what
    /// conflicts among those that are built, where they are few enough to look at in passing.
    pub fn load(site: &Site, entries: &[Entry]) -> Self {
        let mut found = Self::default();
        if site.targets.is_empty() {
            return found;
        }
        let is_sealed = |entry: &&Entry| {
            let bundle = Bundle::at(&*entry.dir);
            bundle.is_ok_and(|bundle| bundle.path(Artifact::Seal).exists())
        };
        if entries.iter().any(|entry| is_sealed(&entry)) {
            let held = site.held_back();
            let fronts = site.fronts().unwrap_or_default().fronts;
            for change in fronts.iter().flat_map(|front| &front.changes) {
                found.marks.insert(change.bundle.id().clone(), mark(site, change, &held));
            }
        }
        let is_landed = |id: &BundleId| found.mark(id).is_some_and(|mark| mark.word == "landed");
        let built: BTreeSet<BundleId> = entries
            .iter()
            .filter(|entry| has_change(entry.state()) && !is_landed(&entry.id))
            .map(|entry| entry.id.clone())
            .collect();
        if !(2..=FEW).contains(&built.len()) {
            return found;
        }
        let skies = site.outlook(&built).unwrap_or_default();
        for trouble in skies.iter().flat_map(|sky| &sky.troubles) {
            if let Outlook::Conflict { .. } = trouble.outlook {
                let (one, other) = (trouble.first.clone(), trouble.second.clone());
                found.troubles.entry(one.clone()).or_default().push(other.clone());
                found.troubles.entry(other).or_default().push(one);
            }
        }
        found
    }

    /// Where an accepted change stands.
    pub fn mark(&self, id: &BundleId) -> Option<&Mark> {
        self.marks.get(id)
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

fn mark(site: &Site, change: &Accepted, known: &HeldBack) -> Mark {
    match &change.standing {
        Standing::Sealed(sealed) => {
            let head = sealed.record().head.to_string();
            let case = site.conflict_case(change.bundle.id(), &head);
            let why = known.of(change.bundle.id(), Some(&head)).map(Held::sentence);
            match (case, why) {
                (Some(case), why) => of_case(&case, why),
                (None, Some(why)) => Mark { word: "held", text: Some(why) },
                (None, None) => Mark { word: "sealed", text: None },
            }
        }
        Standing::Staged { branch, .. } => Mark { word: "staged", text: Some(branch.clone()) },
        Standing::Drifted { why } => Mark { word: "drifted", text: Some(why.clone()) },
        Standing::Landed { .. } | Standing::Unsealed => {
            Mark { word: change.standing.as_str(), text: None }
        }
    }
}

/// What a resolver was asked about, and how often.
fn of_case(case: &Case, held: Option<String>) -> Mark {
    let progress = case.progress();
    match &case.end {
        Some(End::Blocked { evidence }) => {
            Mark { word: "blocked_conflict", text: Some(evidence.clone()) }
        }
        Some(End::Skipped { why, .. }) => Mark { word: "skipped", text: Some(why.clone()) },
        Some(End::Resolved { .. }) => {
            Mark { word: "held", text: Some(format!("{}; resolved, not checked yet", case.said)) }
        }
        None => {
            let why = held.unwrap_or_else(|| case.said.clone());
            Mark { word: "held", text: Some(format!("{why}; {progress}")) }
        }
    }
}
