//! The bundles of a batch as the scheduler sees them: what their briefs declare, with file and line.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_dag::{
    Case, Declared, Item, Options, Outside, Pattern, Place, Plan, Rejection, Standing, Touch,
};
use pdca_state::{
    Artifact, Brief, Bundle, BundleId, Glance, Label, LoadError, Reentry, RootError, State,
    survey_bundles,
};

use crate::estimate::declared_duration;
use crate::schedule::Durations;
use crate::site::Site;

/// The bundles that are driven together, and what is known of the others.
#[derive(Debug)]
pub struct Batch {
    /// The bundles of the batch, in name order.
    pub bundles: Vec<Bundle>,
    /// What they declare, in the same order.
    pub items: Vec<Item>,
    /// All bundles that are not part of it.
    pub outside: Outside,
    /// What the authors of the briefs should look at.
    pub remarks: Vec<Remark>,
    /// The target of each bundle, where there are several.
    apart: BTreeMap<BundleId, String>,
    options: Options,
}

/// Something odd about a declaration that does not keep anybody from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The brief.
    pub place: Place,
    /// One sentence.
    pub text: String,
}

impl Batch {
    /// Every bundle of the workspace that is not finished. A root that is not there yet is empty.
    pub fn of_all(site: &Site) -> Result<Self, RootError> {
        Self::load(site, None)
    }

    /// The bundles of these ids, which must exist.
    pub fn of(site: &Site, ids: &BTreeSet<BundleId>) -> Result<Self, RootError> {
        Self::load(site, Some(ids))
    }

    fn load(site: &Site, chosen: Option<&BTreeSet<BundleId>>) -> Result<Self, RootError> {
        let mut known = match site.bundles.list() {
            Err(RootError::Missing { .. }) => Vec::new(),
            listed => listed?,
        };
        known.sort_by(|a, b| a.id().cmp(b.id()));
        let rows = survey_bundles(&known);
        let put_away = site.bundles.list_completed()?;
        let mut outside: BTreeMap<BundleId, Standing> = survey_bundles(&put_away)
            .iter()
            .map(|row| (row.id.clone(), standing(&row.result)))
            .collect();
        let mut batch = Self {
            bundles: Vec::new(),
            items: Vec::new(),
            outside: Outside::default(),
            remarks: Vec::new(),
            apart: BTreeMap::new(),
            options: Options { untouched: site.schedule.untouched, ..Options::default() },
        };
        for (bundle, row) in known.into_iter().zip(rows) {
            let is_open = row.result.as_ref().map_or(true, |glance| glance.state.is_open());
            let is_in = chosen.map_or(is_open, |chosen| chosen.contains(&row.id));
            if is_in {
                // An archived bundle of the same name is an earlier one.
                outside.remove(&row.id);
                batch.take(site, bundle, &row.result);
            } else {
                outside.insert(row.id, standing(&row.result));
            }
        }
        batch.outside = outside.into_iter().collect();
        Ok(batch)
    }

    /// The plan, or everything that keeps the batch from being carried out.
    pub fn plan(&self) -> Result<Plan, Rejection> {
        self.plan_with(self.options)
    }

    /// As [`Self::plan`], with dependants in the group of what they depend on.
    pub fn plan_joined(&self) -> Result<Plan, Rejection> {
        self.plan_with(Options { join_dependencies: true, ..self.options })
    }

    fn plan_with(&self, options: Options) -> Result<Plan, Rejection> {
        Plan::new(self.items.clone(), &self.outside, options)
    }

    /// The bundle of that id, if it is part of the batch.
    pub fn bundle(&self, id: &BundleId) -> Option<&Bundle> {
        let at = self.bundles.binary_search_by(|bundle| bundle.id().cmp(id)).ok()?;
        self.bundles.get(at)
    }

    /// The files of a bundle's change, as the scheduler names them. What is no path is left out.
    pub(crate) fn files_of(&self, id: &BundleId, paths: &[String]) -> Vec<Pattern> {
        let apart = self.apart.get(id).map_or_else(String::new, |target| format!("@{target}/"));
        let file = |path: &String| Pattern::of_file(&format!("{apart}{path}"), Case::Sensitive);
        paths.iter().filter_map(|path| file(path).ok()).collect()
    }

    /// What one bundle declares right now.
    pub(crate) fn item_of(site: &Site, bundle: &Bundle) -> Item {
        let glance = bundle.glance();
        Reading::of(site, bundle, &glance).item
    }

    fn take(&mut self, site: &Site, bundle: Bundle, glance: &Result<Glance, LoadError>) {
        let reading = Reading::of(site, &bundle, glance);
        if let Some(target) = reading.apart {
            self.apart.insert(bundle.id().clone(), target);
        }
        self.remarks.extend(reading.remarks);
        self.items.push(reading.item);
        self.bundles.push(bundle);
    }
}

/// What one brief says.
struct Reading {
    item: Item,
    remarks: Vec<Remark>,
    /// The target, where there are several: files of different repositories are different files,
    /// whatever they are called.
    apart: Option<String>,
}

impl Reading {
    fn of(site: &Site, bundle: &Bundle, glance: &Result<Glance, LoadError>) -> Self {
        let file = bundle.path(Artifact::Brief);
        let file = file.strip_prefix(&site.workspace).unwrap_or(&file).to_owned();
        let mut item = Item::new(bundle.id().clone(), Place::new(&*file, 1));
        item.standing = standing(glance);
        item.started = has_started(site, bundle.id(), glance);
        if site.schedule.durations == Durations::History {
            item.duration = site.pace().load(bundle.id());
        }
        let mut reading = Self { item, remarks: Vec::new(), apart: None };
        // One that cannot be read declares nothing, and says so itself when it is driven.
        let brief = bundle.read(Artifact::Brief).ok().flatten();
        let brief = brief.map(|bytes| Brief::parse(&String::from_utf8_lossy(&bytes)));
        if let Some(brief) = brief.filter(|brief| !brief.is_placeholder()) {
            reading.declare(site, &brief, &file);
        }
        reading
    }

    fn declare(&mut self, site: &Site, brief: &Brief, file: &Utf8Path) {
        if site.schedule.durations == Durations::History && self.item.duration.is_none() {
            self.item.duration = declared_duration(brief);
        }
        self.item.depends_on = self.ids(brief, Label::DependsOn, file);
        self.item.conflicts_with = self.ids(brief, Label::ConflictsWith, file);
        let target = site.target_of(brief).ok().flatten();
        let apart = target.as_ref().filter(|_| site.targets.len() > 1);
        self.apart = apart.map(|target| target.name.clone());
        let Some(field) = brief.known(Label::Touches) else { return };
        let touch = |glob: String| {
            let is_file = target.as_ref().is_some_and(|target| target.path.join(&glob).is_file());
            // One that is wrong stays as it is written, so that it can be found.
            let is_sound = Pattern::parse(&glob, Case::Sensitive).is_ok();
            let glob = match &self.apart {
                Some(target) if is_sound => format!("@{target}/{glob}"),
                Some(_) | None => glob,
            };
            Touch { glob, place: Place::new(file, field.line), is_file }
        };
        self.item.touches = brief.touches().into_iter().map(touch).collect();
    }

    /// The ids of a label under all its spellings, each with the line it is named in.
    fn ids(&mut self, brief: &Brief, label: Label, file: &Utf8Path) -> Vec<Declared> {
        let mut declared: Vec<Declared> = Vec::new();
        for field in label.spellings().iter().filter_map(|spelling| brief.field(spelling)) {
            let place = Place::new(file, field.line);
            let list = field.ids();
            for text in list.warnings {
                self.remarks.push(Remark { place: place.clone(), text });
            }
            for id in list.ids {
                if declared.iter().all(|known| known.id != id) {
                    declared.push(Declared { id, place: place.clone() });
                }
            }
        }
        declared
    }
}

/// What a bundle's state means for what may start.
fn standing(glance: &Result<Glance, LoadError>) -> Standing {
    // One that cannot be read is tried, so that it is told.
    let Ok(glance) = glance else { return Standing::Active };
    match glance.state {
        State::Planned | State::Built | State::Checked | State::Iterate(Reentry::Do) => {
            Standing::Active
        }
        // Back to Plan is back to a person: the pool has no part in it.
        State::Unplanned | State::AwaitingSignoff | State::Iterate(Reentry::Plan) => {
            Standing::Waiting
        }
        State::Complete => Standing::Complete,
        State::Discontinued | State::Resolved => Standing::Ended,
    }
}

fn has_started(site: &Site, id: &BundleId, glance: &Result<Glance, LoadError>) -> bool {
    let by_state = glance.as_ref().is_ok_and(|glance| match glance.state {
        State::Unplanned | State::Resolved => false,
        State::Planned => glance.iterations > 0,
        State::Built
        | State::Checked
        | State::AwaitingSignoff
        | State::Complete
        | State::Iterate(_)
        | State::Discontinued => true,
    });
    by_state || site.attempts().is_under_way(id)
}

/// How long bundles took, remembered for `[schedule] durations = "history"`.
///
/// A guess about the future and nothing else: losing it changes an order, never a result.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    root: Utf8PathBuf,
}

impl Pace {
    pub(crate) fn new(root: Utf8PathBuf) -> Self {
        Self { root }
    }

    fn path(&self, id: &BundleId) -> Utf8PathBuf {
        self.root.join(id.dir_name())
    }

    /// How long the last attempt took, where that is known.
    pub(crate) fn load(&self, id: &BundleId) -> Option<std::time::Duration> {
        let text = fs_err::read_to_string(self.path(id)).ok()?;
        text.trim().parse().ok().map(std::time::Duration::from_millis)
    }

    /// Remembers how long an attempt took.
    pub(crate) fn store(&self, id: &BundleId, took: std::time::Duration) -> std::io::Result<()> {
        fs_err::create_dir_all(&self.root)?;
        let text = format!("{}\n", took.as_millis());
        pdca_state::files::replace_unsynced(self.path(id), text.as_bytes())
    }
}
