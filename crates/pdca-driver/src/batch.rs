//! The bundles of a batch as the scheduler sees them: the declarations of their briefs, with file and line.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_dag::{
    Awaits, Case, Declared, Item, ItemState, Options, Outside, Pattern, Plan, Rejection,
    SourceLocation, Touch, slips,
};
use pdca_integrate::landed_of;
use pdca_state::{
    Artifact, Brief, Bundle, BundleId, Coverage, Glance, Label, LoadError, Overall, Reentry,
    RootError, State, chain, may_have_parts, parts, survey_bundles,
};

use crate::config::WorkspaceConfig;
use crate::estimate::declared_duration;
use crate::failures::{BeatFailure, BeatFailures};
use crate::refold::stale_results;
use crate::run::Pause;
use crate::schedule::{Durations, SplitPolicy, SurfacesPolicy};

/// The bundles that are scheduled together, and the state of the others.
#[derive(Debug)]
pub struct Batch {
    /// The bundles of the batch, in name order.
    pub bundles: Vec<Bundle>,
    /// Their declarations, in the same order.
    pub items: Vec<Item>,
    /// All bundles that are not part of it.
    pub outside: Outside,
    /// Oddities in the briefs, for their authors.
    pub remarks: Vec<DeclarationRemark>,
    /// The bundles that failed too often to be started again unasked.
    pub exhausted: Vec<Exhausted>,
    /// The bundles that are started although they failed before, because they were named or have
    /// attempts left.
    pub failed: Vec<Exhausted>,
    /// The bundles whose briefs may have parts.
    pub(crate) with_parts: BTreeSet<BundleId>,
    /// Bundles outside the batch whose results keep rivals waiting.
    guests: Vec<Item>,
    /// The target of each bundle, where there are several.
    apart: BTreeMap<BundleId, String>,
    options: Options,
}

/// A bundle with a failed beat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exhausted {
    pub id: BundleId,
    pub failure: BeatFailure,
}

/// Something odd about a declaration that does not keep any bundle from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclarationRemark {
    pub place: SourceLocation,
    pub text: String,
}

impl Batch {
    /// Loads every unfinished bundle of the workspace. A missing bundle root counts as empty.
    pub fn of_all(config: &WorkspaceConfig) -> Result<Self, RootError> {
        Self::load(config, None, true)
    }

    /// Loads the bundles with these ids, which must exist.
    pub fn of(config: &WorkspaceConfig, ids: &BTreeSet<BundleId>) -> Result<Self, RootError> {
        Self::load(config, Some(ids), false)
    }

    /// Like [`Self::of_all`], over these bundles only: none of them was asked for by name, so one that cannot start is
    /// left alone.
    pub fn among(config: &WorkspaceConfig, ids: &BTreeSet<BundleId>) -> Result<Self, RootError> {
        Self::load(config, Some(ids), true)
    }

    fn load(
        config: &WorkspaceConfig,
        chosen: Option<&BTreeSet<BundleId>>,
        unasked: bool,
    ) -> Result<Self, RootError> {
        let mut known = match config.dirs.bundles.list() {
            Err(RootError::Missing { .. }) => Vec::new(),
            listed => listed?,
        };
        // By id, because `bundle` and `mark_landed` search by it; the order of directories may be
        // another.
        known.sort_by(|a, b| a.id().cmp(b.id()));
        let rows = survey_bundles(&known);
        let stale = stale_results(config);
        let put_away = config.dirs.bundles.list_completed()?;
        let ids: BTreeSet<BundleId> =
            known.iter().chain(&put_away).map(|bundle| bundle.id().clone()).collect();
        let rivals = Awaits::from(config.schedule.rivals);
        let mut outside: BTreeMap<BundleId, ItemState> = survey_bundles(&put_away)
            .iter()
            .map(|row| (row.id.clone(), standing(&row.result)))
            .collect();
        let mut batch = Self {
            bundles: Vec::new(),
            items: Vec::new(),
            outside: Outside::default(),
            remarks: Vec::new(),
            exhausted: Vec::new(),
            failed: Vec::new(),
            with_parts: BTreeSet::new(),
            guests: Vec::new(),
            apart: BTreeMap::new(),
            options: Options {
                untouched: config.schedule.untouched,
                dependants: config.schedule.dependants.into(),
                rivals,
                join_dependencies: config.schedule.join_dependencies,
                join_surfaces: config.schedule.surfaces == SurfacesPolicy::Join,
                // A bundle that was asked for by name is rejected with a reason rather than left out.
                leave_alone: unasked,
                ..Options::default()
            },
        };
        for (bundle, row) in known.into_iter().zip(rows) {
            let is_stale = stale.get(&row.id).is_some_and(|stale| stale.waits_for.is_none());
            // An unreadable bundle is part of a batch, so that its error is reported.
            let is_open = row.result.as_ref().map_or(true, |glance| glance.state.is_open());
            let is_in = chosen.map_or(is_open || is_stale, |chosen| chosen.contains(&row.id));
            if is_in {
                // A completed bundle of the same name is an earlier one.
                outside.remove(&row.id);
                batch.take(config, bundle, &row.result, &ids);
                // A stale result is folded anew and checked again, so it is work.
                if let Some(item) = batch.items.last_mut().filter(|_| is_stale) {
                    item.standing = ItemState::Active;
                }
                batch.look_at_failures(config, &row.result, unasked);
            } else {
                let standing = standing(&row.result);
                if standing.holds(rivals) {
                    let item = Reading::of(config, &bundle, &row.result, &ids).item;
                    batch.guests.push(Item { guest: true, ..item });
                }
                outside.insert(row.id, standing);
            }
        }
        batch.mark_landed(config, &mut outside);
        batch.outside = outside.into_iter().collect();
        Ok(batch)
    }

    /// Keeps the bundle that was taken last from being started if its attempts are used up and
    /// it was not asked for by name.
    fn look_at_failures(
        &mut self,
        config: &WorkspaceConfig,
        glance: &Result<Glance, LoadError>,
        unasked: bool,
    ) {
        let (Some(bundle), Some(item)) = (self.bundles.last(), self.items.last_mut()) else {
            return;
        };
        let failures = BeatFailures::of(config);
        let failure = glance.as_ref().ok().and_then(|glance| failures.find(bundle, glance));
        let Some(failure) = failure else { return };
        let one = Exhausted { id: item.id.clone(), failure };
        if unasked && failures.are_enough(&one.failure) {
            item.standing = ItemState::Waiting;
            self.exhausted.push(one);
        } else {
            self.failed.push(one);
        }
    }

    /// Leaves bundles alone that wait after a fault of the machine, unless they were named.
    pub fn postpone(&mut self, pauses: &BTreeMap<BundleId, Pause>) {
        if !self.options.leave_alone {
            return;
        }
        for item in &mut self.items {
            let Some(Pause { attempts, left }) = pauses.get(&item.id) else { continue };
            item.standing = ItemState::Waiting;
            let failure = BeatFailure {
                beat: "machine".to_owned(),
                times: *attempts,
                why: format!("it is tried again in {} s", left.as_secs() + 1),
                log: None,
            };
            self.exhausted.push(Exhausted { id: item.id.clone(), failure });
        }
    }

    /// Asks git which accepted bundles have landed, if anything waits for a landing.
    fn mark_landed(
        &mut self,
        config: &WorkspaceConfig,
        outside: &mut BTreeMap<BundleId, ItemState>,
    ) {
        let mut asked: BTreeSet<BundleId> = self.awaited_landings();
        if self.options.rivals == Awaits::Landed {
            let items = self.items.iter().chain(&self.guests);
            asked.extend(items.map(|item| item.id.clone()));
        }
        asked.retain(|id| {
            let inside = self.items.binary_search_by(|item| item.id.cmp(id)).ok();
            let inside = inside.map(|at| self.items[at].standing);
            inside.or_else(|| outside.get(id).copied()) == Some(ItemState::Complete)
        });
        // Asking git walks the history of every target, which most batches do not need.
        let landed = if asked.is_empty() { asked } else { landed_of(&config.queue(), &asked) };
        for item in self.items.iter_mut().chain(&mut self.guests) {
            if landed.contains(&item.id) {
                item.standing = ItemState::Landed;
            }
        }
        self.guests.retain(|guest| guest.standing.holds(self.options.rivals));
        for id in landed {
            outside.entry(id).and_modify(|standing| *standing = ItemState::Landed);
        }
    }

    /// Returns the bundles whose landing others of the batch wait for.
    pub(crate) fn awaited_landings(&self) -> BTreeSet<BundleId> {
        let all = self.options.dependants == Awaits::Landed;
        let declared = self.items.iter().flat_map(|item| &item.depends_on);
        let awaited = declared.filter(|declared| all || declared.awaits == Awaits::Landed);
        let mut awaited: BTreeSet<BundleId> = awaited.map(|other| other.id.clone()).collect();
        if self.options.rivals == Awaits::Landed {
            let holders = self.items.iter().chain(&self.guests);
            awaited.extend(holders.map(|item| item.id.clone()));
        }
        awaited
    }

    /// Returns the plan, or every reason why the batch cannot be carried out.
    pub fn plan(&self) -> Result<Plan, Rejection> {
        self.plan_with(self.options)
    }

    /// Like [`Self::plan`], with dependants in the group of their dependencies.
    pub fn plan_joined(&self) -> Result<Plan, Rejection> {
        self.plan_with(Options { join_dependencies: true, ..self.options })
    }

    /// Returns the digests of the declarations, with dependants in groups of their own and joined. Reasons
    /// that keep single bundles from starting do not change them.
    pub fn digests(&self) -> Vec<String> {
        let options = Options { leave_alone: true, join_dependencies: false, ..self.options };
        let joined = Options { join_dependencies: true, ..options };
        let plans = [options, joined].map(|options| self.plan_with(options));
        plans.into_iter().filter_map(|plan| Some(plan.ok()?.digest().to_owned())).collect()
    }

    fn plan_with(&self, options: Options) -> Result<Plan, Rejection> {
        let items = self.items.iter().chain(&self.guests).cloned().collect();
        Plan::new(items, &self.outside, options)
    }

    /// Returns the bundles that are signed off and not known to have landed, guests included.
    pub(crate) fn accepted(&self) -> BTreeSet<BundleId> {
        let all = self.items.iter().chain(&self.guests);
        let accepted = all.filter(|item| item.standing == ItemState::Complete);
        accepted.map(|item| item.id.clone()).collect()
    }

    pub fn bundle(&self, id: &BundleId) -> Option<&Bundle> {
        let at = self.bundles.binary_search_by(|bundle| bundle.id().cmp(id)).ok()?;
        self.bundles.get(at)
    }

    /// Converts the paths of a bundle's change to the scheduler's patterns. Invalid paths are left out.
    pub(crate) fn files_of(&self, id: &BundleId, paths: &[String]) -> Vec<Pattern> {
        let apart = self.apart.get(id).map_or_else(String::new, |target| format!("@{target}/"));
        let file = |path: &String| Pattern::of_file(&format!("{apart}{path}"), Case::Sensitive);
        paths.iter().filter_map(|path| file(path).ok()).collect()
    }

    /// Reads the declarations of one bundle now.
    pub(crate) fn item_of(config: &WorkspaceConfig, bundle: &Bundle) -> Item {
        let glance = bundle.glance();
        let listed = [config.dirs.bundles.list(), config.dirs.bundles.list_completed()];
        let listed = listed.into_iter().filter_map(Result::ok).flatten();
        let ids = listed.map(|bundle| bundle.id().clone()).collect();
        Reading::of(config, bundle, &glance, &ids).item
    }

    fn take(
        &mut self,
        config: &WorkspaceConfig,
        bundle: Bundle,
        glance: &Result<Glance, LoadError>,
        ids: &BTreeSet<BundleId>,
    ) {
        let reading = Reading::of(config, &bundle, glance, ids);
        if let Some(target) = reading.apart {
            self.apart.insert(bundle.id().clone(), target);
        }
        if reading.may_have_parts {
            self.with_parts.insert(bundle.id().clone());
        }
        self.remarks.extend(reading.remarks);
        self.items.push(reading.item);
        self.bundles.push(bundle);
    }
}

/// The declarations of one brief.
struct Reading {
    item: Item,
    remarks: Vec<DeclarationRemark>,
    /// The target, where there are several: equal paths of different repositories are different
    /// files.
    apart: Option<String>,
    may_have_parts: bool,
}

impl Reading {
    fn of(
        config: &WorkspaceConfig,
        bundle: &Bundle,
        glance: &Result<Glance, LoadError>,
        ids: &BTreeSet<BundleId>,
    ) -> Self {
        let file = bundle.path(Artifact::Brief);
        let file = file.strip_prefix(&config.dirs.root).unwrap_or(&file).to_owned();
        let mut item = Item::new(bundle.id().clone(), SourceLocation::new(&*file, 1));
        item.standing = standing(glance);
        item.unreadable = glance.as_ref().err().map(|error| chain(error));
        item.started = has_started(config, bundle.id(), glance);
        if config.schedule.durations == Durations::History {
            item.duration = config.pace().load(bundle.id());
        }
        let mut reading = Self { item, remarks: Vec::new(), apart: None, may_have_parts: false };
        // A brief may be readable although the bundle as a whole is not.
        let bytes = bundle.read(Artifact::Brief).ok().flatten();
        reading.may_have_parts = bytes.as_ref().is_some_and(|bytes| may_have_parts(bytes));
        let brief = bytes.map(|bytes| Brief::parse(&String::from_utf8_lossy(&bytes)));
        if let Some(brief) = brief.filter(|brief| !brief.is_placeholder()) {
            reading.declare(config, &brief, &file, ids);
        }
        reading
    }

    fn declare(
        &mut self,
        config: &WorkspaceConfig,
        brief: &Brief,
        file: &Utf8Path,
        ids: &BTreeSet<BundleId>,
    ) {
        if config.schedule.durations == Durations::History && self.item.duration.is_none() {
            self.item.duration = declared_duration(brief);
        }
        for remark in brief.remarks() {
            let (place, text) = (SourceLocation::new(file, remark.line), remark.to_string());
            if remark.is_lost {
                self.item.misspelled.push((place, text));
            } else {
                self.remarks.push(DeclarationRemark { place, text });
            }
        }
        self.item.depends_on = self.ids(brief, Label::DependsOn, file, ids);
        self.item.conflicts_with = self.ids(brief, Label::ConflictsWith, file, ids);
        self.wait_for_parts(config, brief, file, ids);
        self.item.surfaces = brief.surfaces();
        let target = config.target_of(brief).ok().flatten();
        let apart = target.as_ref().filter(|_| config.targets.len() > 1);
        self.apart = apart.map(|target| target.name.clone());
        let Some(field) = brief.known(Label::Touches) else { return };
        let touch = |glob: String| {
            let is_file = target.as_ref().is_some_and(|target| target.path.join(&glob).is_file());
            // An invalid glob stays as written, so that the error names it as in the brief.
            let is_sound = Pattern::parse(&glob, Case::Sensitive).is_ok();
            let glob = match &self.apart {
                Some(target) if is_sound => format!("@{target}/{glob}"),
                Some(_) | None => glob,
            };
            Touch { glob, place: SourceLocation::new(file, field.line), is_file }
        };
        self.item.touches = brief.touches().into_iter().map(touch).collect();
    }

    /// Adds the bundles that parts wait for, if the bundle was not started. One whose ready parts can start is split before
    /// the batch is loaded, so this one waits as a whole.
    fn wait_for_parts(
        &mut self,
        config: &WorkspaceConfig,
        brief: &Brief,
        file: &Utf8Path,
        ids: &BTreeSet<BundleId>,
    ) {
        let is_whole = config.schedule.split == SplitPolicy::Never || self.item.started;
        if is_whole || !self.may_have_parts {
            return;
        }
        for mut part in parts(brief).unwrap_or_default() {
            part.keep_blockers(&|id| ids.contains(id));
            for id in part.blockers {
                let is_known = self.item.depends_on.iter().any(|known| known.id == id);
                if !is_known {
                    let place = SourceLocation::new(file, part.line);
                    self.item.depends_on.push(Declared::new(id, place));
                }
            }
        }
    }

    /// Returns the ids of a label under all its spellings, each with its line.
    fn ids(
        &mut self,
        brief: &Brief,
        label: Label,
        file: &Utf8Path,
        ids: &BTreeSet<BundleId>,
    ) -> Vec<Declared> {
        let mut declared: Vec<Declared> = Vec::new();
        for &spelling in label.spellings() {
            let Some(field) = brief.field(spelling) else { continue };
            let place = SourceLocation::new(file, field.line);
            let named = field.ids().among(&|id| ids.contains(id));
            for text in named.warnings {
                self.remarks.push(DeclarationRemark { place: place.clone(), text });
            }
            // Prose that begins with almost the name of a bundle is taken for a typo, so that it is reported.
            let is_slip = |id: &BundleId| ids.iter().any(|known| slips(id, known).is_some());
            let slipped = named.doubtful.into_iter().filter(is_slip);
            for id in named.ids.into_iter().chain(slipped) {
                let awaits = Label::awaits(spelling);
                match declared.iter_mut().find(|known| known.id == id) {
                    Some(known) => known.awaits = known.awaits.max(awaits),
                    None => declared.push(Declared { id, place: place.clone(), awaits }),
                }
            }
        }
        declared
    }
}

/// Maps the state of a bundle to the scheduler's.
fn standing(glance: &Result<Glance, LoadError>) -> ItemState {
    // An unreadable bundle is started, so that its error is reported.
    let Ok(glance) = glance else { return ItemState::Active };
    match glance.state {
        State::Planned | State::Built | State::Checked | State::Iterate(Reentry::Do) => {
            ItemState::Active
        }
        // Plan is a person's beat, so the pool cannot continue it.
        State::Unplanned | State::Iterate(Reentry::Plan) => ItemState::Waiting,
        // What was checked is not what it asks for now, so Check runs again.
        State::AwaitingSignoff if glance.is_brief_edited => ItemState::Active,
        State::AwaitingSignoff => {
            let is_green =
                glance.overall == Some(Overall::Pass) && glance.coverage != Coverage::Changed;
            if is_green { ItemState::Built } else { ItemState::Red }
        }
        State::Complete => ItemState::Complete,
        State::Discontinued | State::Resolved => ItemState::Ended,
    }
}

pub(crate) fn has_started(
    config: &WorkspaceConfig,
    id: &BundleId,
    glance: &Result<Glance, LoadError>,
) -> bool {
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
    by_state || config.attempts().is_under_way(id)
}

/// Durations of earlier attempts, for `[schedule] durations = "history"`.
///
/// They only affect the order of starts, never a result.
#[derive(Debug, Clone)]
pub(crate) struct DurationHistory {
    root: Utf8PathBuf,
}

impl DurationHistory {
    pub(crate) fn new(root: Utf8PathBuf) -> Self {
        Self { root }
    }

    fn path(&self, id: &BundleId) -> Utf8PathBuf {
        self.root.join(id.dir_name())
    }

    /// Returns the duration of the last attempt, if known.
    pub(crate) fn load(&self, id: &BundleId) -> Option<std::time::Duration> {
        let text = fs_err::read_to_string(self.path(id)).ok()?;
        text.trim().parse().ok().map(std::time::Duration::from_millis)
    }

    pub(crate) fn store(&self, id: &BundleId, took: std::time::Duration) -> std::io::Result<()> {
        fs_err::create_dir_all(&self.root)?;
        let text = format!("{}\n", took.as_millis());
        pdca_state::files::replace_unsynced(self.path(id), text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    /// The planned bundle of a scene, as if it were in another state.
    fn glance(scene: &Scene, state: State) -> Glance {
        Glance { state, ..scene.bundle().glance().unwrap() }
    }

    #[test]
    fn every_state_means_one_thing_for_the_scheduler() {
        let scene = Scene::planned();
        for state in State::ALL {
            let expected = match state.as_str() {
                "PLANNED" | "BUILT" | "CHECKED" | "ITERATE_DO" => ItemState::Active,
                "UNPLANNED" | "ITERATE_PLAN" => ItemState::Waiting,
                "AWAITING_SIGNOFF" => ItemState::Red,
                "COMPLETE" => ItemState::Complete,
                "DISCONTINUED" | "RESOLVED" => ItemState::Ended,
                other => panic!("{other} is missing from the table"),
            };
            assert_eq!(standing(&Ok(glance(&scene, state))), expected, "{state}");
        }
    }

    #[test]
    fn only_a_green_report_about_this_very_patch_lets_dependants_start() {
        let scene = Scene::planned();
        let table = [
            (Some(Overall::Pass), Coverage::Same, ItemState::Built),
            (Some(Overall::Pass), Coverage::Changed, ItemState::Red),
            (Some(Overall::Fail), Coverage::Same, ItemState::Red),
            (None, Coverage::Same, ItemState::Red),
        ];
        for (overall, coverage, expected) in table {
            let seen = glance(&scene, State::AwaitingSignoff);
            let seen = Ok(Glance { overall, coverage, ..seen });
            assert_eq!(standing(&seen), expected, "{overall:?} {coverage:?}");
        }
    }

    #[test]
    fn a_planned_bundle_has_started_if_it_was_sent_back_or_has_an_attempt_under_way() {
        let scene = Scene::planned();
        let (config, id) = (&scene.config, scene.bundle().id().clone());
        let started = |iterations| {
            has_started(config, &id, &Ok(Glance { iterations, ..glance(&scene, State::Planned) }))
        };
        assert!(!started(0));
        assert!(started(1));
        fs_err::create_dir_all(config.dirs.private().join("attempts")).unwrap();
        fs_err::write(config.dirs.private().join("attempts/issue_7.json"), "{}").unwrap();
        assert!(started(0));
    }
}
