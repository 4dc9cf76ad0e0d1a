//! All bundles of a workspace side by side: what each is, and what it waits for.

pub(crate) mod runs;
mod work;

use std::collections::{BTreeMap, VecDeque};

use pdca_state::{BundleId, Glance, LoadError, RootError, State, Stranger, survey_bundles};

use camino::Utf8PathBuf;

use crate::context::Context;
use crate::failure::Failure;
use crate::meeting::Meeting;
use crate::session;
use crate::workspace::Workspace;

pub use work::{HeldBy, Work, ago, timestamp};

/// Every active bundle of a workspace.
#[derive(Debug)]
pub struct Overview {
    /// The bundles: the unreadable ones first, then by state, those that need a person before the others, then by id.
    pub entries: Vec<Entry>,
    /// What is named like a bundle and is none.
    pub strangers: Vec<Stranger>,
    /// Who is at work, where that was looked for.
    pub work: Work,
    /// How they get on with each other, where that was looked for.
    pub meeting: Meeting,
}

/// One bundle among the others.
#[derive(Debug)]
pub struct Entry {
    /// Its id.
    pub id: BundleId,
    /// Its directory.
    pub dir: Utf8PathBuf,
    /// What it is, or why that cannot be told.
    pub glance: Result<Glance, LoadError>,
    /// What must be complete before it.
    pub blocked_by: Vec<Blocker>,
}

/// A bundle that must be complete first, and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// Its id.
    pub id: BundleId,
    /// How far it is.
    pub standing: Standing,
}

/// How far a bundle is that others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// In this state.
    In(State),
    /// It cannot be read.
    Unreadable,
    /// There is no such bundle.
    Missing,
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Standing::In(state) => write!(f, "{state}"),
            Standing::Unreadable => f.write_str("unreadable"),
            Standing::Missing => f.write_str("no such bundle"),
        }
    }
}

impl Entry {
    /// Its state; `None` where it cannot be read.
    pub fn state(&self) -> Option<State> {
        self.glance.as_ref().ok().map(|glance| glance.state)
    }

    /// Whether the driver has something to do for it now.
    pub fn can_go_on(&self) -> bool {
        self.blocked_by.is_empty() && self.has_work()
    }

    /// Whether the driver has something to do for it, now or once others are done.
    pub fn has_work(&self) -> bool {
        self.state().is_some_and(|state| match state {
            State::Planned | State::Built | State::Checked | State::Iterate(_) => true,
            State::Unplanned
            | State::Resolved
            | State::AwaitingSignoff
            | State::Complete
            | State::Discontinued => false,
        })
    }
}

impl Overview {
    /// Looks at every bundle. One bad bundle is one bad entry; a bundle root that is not there yet is empty.
    pub fn load(workspace: &Workspace) -> Result<Self, Failure> {
        let root = &workspace.bundle_root;
        let listing = match root.scan() {
            Err(RootError::Missing { .. }) => {
                return Ok(Overview {
                    entries: Vec::new(),
                    strangers: Vec::new(),
                    work: Work::default(),
                    meeting: Meeting::default(),
                });
            }
            listing => listing?,
        };
        let rows = survey_bundles(&listing.bundles);
        let mut standings: BTreeMap<BundleId, Standing> = rows
            .iter()
            .map(|row| {
                let standing = row
                    .result
                    .as_ref()
                    .map_or(Standing::Unreadable, |glance| Standing::In(glance.state));
                (row.id.clone(), standing)
            })
            .collect();
        let mut standing_of = |id: &BundleId| {
            *standings.entry(id.clone()).or_insert_with(|| {
                let put_away = root.completed().bundle(id);
                match put_away.glance() {
                    Ok(glance) => Standing::In(glance.state),
                    Err(LoadError::Missing { .. }) => Standing::Missing,
                    Err(_) => Standing::Unreadable,
                }
            })
        };
        let mut entries: Vec<Entry> = rows
            .into_iter()
            .map(|row| {
                let blocked_by = match &row.result {
                    Ok(glance) if glance.state.is_open() => glance
                        .depends_on
                        .ids
                        .iter()
                        .map(|id| Blocker { id: id.clone(), standing: standing_of(id) })
                        .filter(|blocker| blocker.standing != Standing::In(State::Complete))
                        .collect(),
                    Ok(_) | Err(_) => Vec::new(),
                };
                Entry { id: row.id, dir: row.dir, glance: row.result, blocked_by }
            })
            .collect();
        entries.sort_by_key(|entry| rank(entry.state()));
        let strangers = listing.strangers;
        let (work, meeting) = (Work::default(), Meeting::default());
        Ok(Overview { entries, strangers, work, meeting })
    }

    /// As [`Self::load`], and who is at work. What keeps that from being told keeps nobody from
    /// seeing the rest.
    pub fn load_at_work(cx: &Context<'_>) -> Result<Self, Failure> {
        let mut overview = Self::load(cx.workspace()?)?;
        if let Ok(site) = session::site(cx) {
            overview.work = Work::load(&site, &overview.entries);
            overview.meeting = Meeting::load(&site, &overview.entries);
        }
        Ok(overview)
    }

    /// The bundle of that id.
    pub fn get(&self, id: &BundleId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == *id)
    }

    /// The shortest way from a bundle over what it depends on back to itself, if there is one.
    pub fn cycle(&self, start: &BundleId) -> Option<Vec<BundleId>> {
        let entries: BTreeMap<&BundleId, &Entry> =
            self.entries.iter().map(|entry| (&entry.id, entry)).collect();
        // Each bundle that was reached, and from where.
        let mut reached: BTreeMap<&BundleId, &BundleId> = BTreeMap::new();
        let mut waiting = VecDeque::from([entries.get(start)?.id.clone()]);
        while let Some(at) = waiting.pop_front() {
            let Some((&at, entry)) = entries.get_key_value(&at) else { continue };
            for blocker in &entry.blocked_by {
                if blocker.id == *start {
                    let mut way = vec![start.clone(), at.clone()];
                    while let Some(before) = way.last().and_then(|last| reached.get(last)) {
                        way.push((*before).clone());
                    }
                    way.reverse();
                    return Some(way);
                }
                if !reached.contains_key(&blocker.id) {
                    reached.insert(&blocker.id, at);
                    waiting.push_back(blocker.id.clone());
                }
            }
        }
        None
    }

    /// How many bundles are in each state, in the order they are shown.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        let mut counts: Vec<(&'static str, usize)> = Vec::new();
        for entry in &self.entries {
            let name = entry.state().map_or(UNREADABLE, State::as_str);
            match counts.last_mut() {
                Some((last, count)) if *last == name => *count += 1,
                _ => counts.push((name, 1)),
            }
        }
        counts
    }
}

/// What stands in place of a state where a bundle cannot be read.
pub const UNREADABLE: &str = "UNREADABLE";

fn rank(state: Option<State>) -> u8 {
    match state {
        None => 0,
        Some(State::AwaitingSignoff) => 1,
        Some(State::Iterate(pdca_state::Reentry::Do)) => 2,
        Some(State::Iterate(pdca_state::Reentry::Plan)) => 3,
        Some(State::Checked) => 4,
        Some(State::Built) => 5,
        Some(State::Planned) => 6,
        Some(State::Unplanned) => 7,
        Some(State::Resolved) => 8,
        Some(State::Complete) => 9,
        Some(State::Discontinued) => 10,
    }
}
