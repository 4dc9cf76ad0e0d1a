//! Which changes will not go together, told while there is time to do something about it.
//!
//! Each pair is looked at on the highest level that both have: a seal, a patch that was built, or what
//! the briefs declare. What two commits come to does not change, so it is remembered; the memory
//! decides nothing and may be lost.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use pdca_dag::{Case, Pattern};
use pdca_integrate::{
    ChangeState, Conflict, Engine, Forecast, Grouping, Ingredients, Level, ObjectId, Outlook,
    QueueSettings, Store, Support, TargetBranchError, TargetBranches, place,
};
use pdca_state::{Artifact, Bundle, BundleId, Snapshot, State, files, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::base::checked_change;
use crate::config::{TargetSpec, WorkspaceConfig};

use super::patch_scope::PatchScope;

/// The memory is not larger than this.
const LARGEST: u64 = 64 << 20;
/// In passing, git is asked about so many pairs that nobody asked about before. What is left is asked about the next time,
/// or by `pdca forecast`, which takes its time.
const IN_PASSING: usize = 2_000;
/// More pairs than this are not remembered.
const MOST: usize = 100_000;

/// The pairs of one branch of one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchForecast {
    /// The target.
    pub target: String,
    /// The branch.
    pub branch: String,
    /// The bundles, each with what is known of it.
    pub bundles: Vec<(BundleId, Level)>,
    /// The pairs that do not go together, or may not.
    pub pairs: Vec<PairForecast>,
    /// What goes together, by places in `bundles`.
    pub grouping: Grouping,
}

/// Two bundles that do not go together, or may not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PairForecast {
    /// One.
    pub first: BundleId,
    /// The other.
    pub second: BundleId,
    /// What it was found out from.
    pub level: Level,
    /// How they get along.
    #[serde(flatten)]
    pub outlook: Outlook,
}

impl PairForecast {
    /// One sentence for a person.
    pub fn sentence(&self) -> String {
        let (first, second) = (&self.first, &self.second);
        match &self.outlook {
            Outlook::Clear => format!("{first} and {second} go together"),
            Outlook::Overlap { path } => format!("{first} and {second} both declare {path}"),
            Outlook::Conflict { conflicts } => {
                let places: Vec<String> = conflicts.iter().map(place).collect();
                format!("{first} and {second} conflict in {}", places.join(", "))
            }
            Outlook::Unknown { why } => format!("{first} and {second}: not known, {why}"),
        }
    }

    /// The same, from the side of one of them.
    pub fn sentence_for(&self, id: &BundleId) -> Option<String> {
        let other = self.other(id)?;
        let Outlook::Conflict { conflicts } = &self.outlook else { return None };
        let places: Vec<String> = conflicts.iter().map(place).collect();
        Some(format!("forecast: it does not merge with {other}, in {}", places.join(", ")))
    }

    /// The other of the two.
    pub fn other(&self, id: &BundleId) -> Option<&BundleId> {
        match (*id == self.first, *id == self.second) {
            (true, _) => Some(&self.second),
            (_, true) => Some(&self.first),
            (false, false) => None,
        }
    }
}

/// A target, and the bundles that are meant for one of its branches.
struct Place {
    target: TargetSpec,
    bundles: Vec<(Bundle, Snapshot)>,
}

/// What is known of one bundle.
struct ForecastItem {
    id: BundleId,
    level: Level,
    head: Option<ObjectId>,
    /// What its patch reaches, where it has one.
    scope: Option<PatchScope>,
    touches: Vec<Pattern>,
    needs: Vec<BundleId>,
    /// The results it was built on, each at the commit it had then.
    stands_on: Vec<Support>,
}

impl ForecastItem {
    /// Returns whether it was built on the present result of `other`.
    ///
    /// Such a pair goes together by construction. Merging the two heads without the results that lie between
    /// them would report a conflict that no integration meets.
    fn stands_on(&self, other: &Self) -> bool {
        let is_other = |below: &Support| below.id == other.id && Some(below.head) == other.head;
        self.stands_on.iter().any(is_other)
    }
}

/// Which pairs are looked at.
#[derive(Clone, Copy)]
struct Scope<'s> {
    /// Only those of this one.
    about: Option<&'s BundleId>,
    /// How many git is asked about at most, beside those that are known.
    most: usize,
}

/// What is remembered: the commit that a base and a patch make, and what two commits come to.
#[derive(Default, Serialize, Deserialize)]
struct Memory {
    heads: BTreeMap<String, String>,
    pairs: BTreeMap<String, Vec<Conflict>>,
}

/// The outlook for every branch. Bundles that have landed or will not be built are left out.
pub fn forecast(
    config: &WorkspaceConfig,
    only: &BTreeSet<BundleId>,
) -> Result<Vec<BranchForecast>, TargetBranchError> {
    forecast_among(config, only, Scope { about: None, most: usize::MAX })
}

/// The same, in passing: where very many pairs are new, only some of them are looked at.
pub fn quick_forecast(
    config: &WorkspaceConfig,
    only: &BTreeSet<BundleId>,
) -> Result<Vec<BranchForecast>, TargetBranchError> {
    forecast_among(config, only, Scope { about: None, most: IN_PASSING })
}

/// What a bundle that was just checked does not go together with, among all that are built.
pub fn forecast_of(
    config: &WorkspaceConfig,
    bundle: &BundleId,
) -> Result<Vec<PairForecast>, TargetBranchError> {
    // Without a target nothing merges with anything, and to look through all the others would make each
    // bundle of a batch cost more than the one before it.
    if config.targets.is_empty() {
        return Ok(Vec::new());
    }
    let built: Vec<Bundle> = config
        .dirs
        .bundles
        .list()?
        .into_iter()
        .filter(|other| other.path(Artifact::Patch).exists())
        .collect();
    let own = built.iter().find(|other| other.id() == bundle).map(scope);
    let Some(own) = own else { return Ok(Vec::new()) };
    // Most of them are apart, which is seen without asking git.
    let near = built.iter().filter(|other| scope(other).may_overlap(&own));
    let near: BTreeSet<BundleId> = near.map(|other| other.id().clone()).collect();
    if !near.iter().any(|other| other != bundle) {
        return Ok(Vec::new());
    }
    let only = near.into_iter().chain([bundle.clone()]).collect();
    let forecasts = forecast_among(config, &only, Scope { about: Some(bundle), most: IN_PASSING })?;
    Ok(forecasts.into_iter().flat_map(|forecast| forecast.pairs).collect())
}

fn scope(bundle: &Bundle) -> PatchScope {
    // One that cannot be read is told about by whoever reads it next.
    PatchScope::of(&bundle.read(Artifact::Patch).ok().flatten().unwrap_or_default())
}

/// The outlook among these bundles, or only for one of them with each other one.
fn forecast_among(
    config: &WorkspaceConfig,
    only: &BTreeSet<BundleId>,
    scope: Scope<'_>,
) -> Result<Vec<BranchForecast>, TargetBranchError> {
    let landed = landed(config, only)?;
    let mut memory = load_memory(config);
    let mut forecasts: BTreeMap<(String, String), Place> = BTreeMap::new();
    for bundle in config.dirs.bundles.list()? {
        let is_wanted = only.is_empty() || only.contains(bundle.id());
        let Ok(snapshot) = bundle.load() else { continue };
        let has_patch = snapshot.artifacts.contains(Artifact::Patch);
        let is_over = matches!(snapshot.state, State::Resolved | State::Discontinued)
            || snapshot.state == State::Complete && !has_patch
            || landed.contains(bundle.id());
        let Some(brief) = snapshot.authored_brief().filter(|_| is_wanted && !is_over) else {
            continue;
        };
        // Where a bundle belongs that names no known target is told by whoever builds it.
        let Ok(Some(target)) = config.target_of(brief) else { continue };
        let branch = config.branch_of(brief, &target).unwrap_or_default();
        let key = (target.name.clone(), branch);
        let forecast = forecasts.entry(key).or_insert(Place { target, bundles: Vec::new() });
        forecast.bundles.push((bundle, snapshot));
    }
    let mut found = Vec::new();
    for ((_, branch), Place { target, bundles }) in forecasts {
        let failed = |source| TargetBranchError::Store { target: target.name.clone(), source };
        let store = config.store(&target).map_err(failed)?;
        let items: Vec<ForecastItem> = bundles
            .iter()
            .map(|(bundle, snapshot)| item(config, &store, bundle, snapshot, &mut memory))
            .collect();
        let pairs = unclear_pairs(&store, &config.integrate, &items, scope, &mut memory);
        found.push(BranchForecast {
            grouping: grouping(&items, &pairs),
            target: target.name.clone(),
            branch,
            bundles: items.iter().map(|item| (item.id.clone(), item.level)).collect(),
            pairs,
        });
    }
    store_memory(config, &memory);
    Ok(found)
}

fn landed(
    config: &WorkspaceConfig,
    only: &BTreeSet<BundleId>,
) -> Result<BTreeSet<BundleId>, TargetBranchError> {
    let is_wanted = |id: &BundleId| only.is_empty() || only.contains(id);
    let fronts = TargetBranches::load_some(&config.queue(), is_wanted)?;
    let changes = fronts.branches.iter().flat_map(|front| &front.changes);
    let landed = changes.filter(|change| matches!(change.standing, ChangeState::Landed { .. }));
    Ok(landed.map(|change| change.bundle.id().clone()).collect())
}

fn item(
    config: &WorkspaceConfig,
    store: &Store,
    bundle: &Bundle,
    snapshot: &Snapshot,
    memory: &mut Memory,
) -> ForecastItem {
    let parse = |glob: &String| Pattern::parse(glob, Case::Sensitive).ok();
    let brief = snapshot.authored_brief();
    let globs = brief.map(pdca_state::Brief::touches).unwrap_or_default();
    let touches = globs.iter().filter_map(parse).collect();
    let head = head_of(config, store, bundle, snapshot, memory);
    let level = match (head, snapshot.state) {
        (Some(_), State::Complete) => Level::Seals,
        (Some(_), _) => Level::Heads,
        (None, _) => Level::Declared,
    };
    let needs = brief.map(|brief| brief.depends_on().ids().clone()).unwrap_or_default();
    let scope = head.map(|_| scope(bundle));
    // A record that cannot be read only makes the forecast too careful.
    let attempt = config.attempts().load(bundle.id()).ok().flatten();
    let stands_on = attempt.filter(|_| head.is_some()).map(|attempt| attempt.stands_on);
    let stands_on = stands_on.unwrap_or_default();
    ForecastItem { id: bundle.id().clone(), level, head, scope, touches, needs, stands_on }
}

/// The commit that a bundle's patch makes, where it has one that applies.
fn head_of(
    config: &WorkspaceConfig,
    store: &Store,
    bundle: &Bundle,
    snapshot: &Snapshot,
    memory: &mut Memory,
) -> Option<ObjectId> {
    // The very commit that Do left, where it is known.
    if let Ok(Some((_, head, _))) = checked_change(config, store, bundle, snapshot) {
        return Some(head);
    }
    let patch = bundle.read(Artifact::Patch).ok()?.filter(|patch| !patch.is_empty())?;
    let checked = snapshot.gates.as_ref().and_then(|gates| gates.base.clone());
    let begun = || Some(config.attempts().load(bundle.id()).ok()??.base);
    let base = ObjectId::from_hex(checked.or_else(begun)?.as_bytes()).ok()?;
    let key = format!("{} {base} {}", bundle.id(), sha256_hex(&patch));
    let known = memory.heads.get(&key).and_then(|id| ObjectId::from_hex(id.as_bytes()).ok());
    // What nothing refers to may have been collected; then it is made again.
    if let Some(known) = known.filter(|known| store.tree_of(*known).is_ok()) {
        return Some(known);
    }
    let made = store.rebuild(&Ingredients {
        base,
        patch: &patch,
        message: "pdca: a forecast\n",
        name: "pdca",
        email: "forecast@pdca.invalid",
        seconds: 0,
    });
    let made = made.ok()?;
    memory.heads.insert(key, made.to_string());
    Some(made)
}

fn memory_file(config: &WorkspaceConfig) -> Utf8PathBuf {
    config.dirs.private().join("forecast.json")
}

fn load_memory(config: &WorkspaceConfig) -> Memory {
    let text = files::read_bounded(memory_file(config), LARGEST).ok().flatten();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Remembers, if that can be done: what is lost is time.
fn store_memory(config: &WorkspaceConfig, memory: &Memory) {
    let Ok(text) = serde_json::to_vec(memory) else { return };
    let path = memory_file(config);
    let known = files::read_bounded(&path, LARGEST).ok().flatten();
    let is_news = known.as_ref() != Some(&text);
    if is_news && memory.pairs.len() < MOST && config.dirs.private().is_dir() {
        drop(files::replace_unsynced(&path, &text));
    }
}

fn unclear_pairs(
    store: &Store,
    settings: &QueueSettings,
    items: &[ForecastItem],
    scope: Scope<'_>,
    memory: &mut Memory,
) -> Vec<PairForecast> {
    let merged = merged(store, settings, items, scope, memory);
    let mut found = Vec::new();
    for (first, second) in pairs(items, scope) {
        let outlook = match first.head.zip(second.head) {
            // Those that are apart are not among the merged ones.
            Some(heads) => merged.get(&heads).cloned(),
            None => declared(first, second),
        };
        if let Some(outlook) = outlook.filter(|outlook| *outlook != Outlook::Clear) {
            let (id, other) = (first.id.clone(), second.id.clone());
            let level = first.level.min(second.level);
            found.push(PairForecast { first: id, second: other, level, outlook });
        }
    }
    found
}

/// Every two that are looked at, the earlier one first.
fn pairs<'c>(
    items: &'c [ForecastItem],
    scope: Scope<'c>,
) -> impl Iterator<Item = (&'c ForecastItem, &'c ForecastItem)> {
    let with_later = |(place, first)| items[place + 1..].iter().map(move |second| (first, second));
    let is_about = move |(first, second): &(&ForecastItem, &ForecastItem)| {
        scope.about.is_none_or(|id| first.id == *id || second.id == *id)
    };
    let is_apart = |(first, second): &(&ForecastItem, &ForecastItem)| {
        !first.stands_on(second) && !second.stands_on(first)
    };
    items.iter().enumerate().flat_map(with_later).filter(is_about).filter(is_apart)
}

/// What two come to by what their briefs declare.
fn declared(first: &ForecastItem, second: &ForecastItem) -> Option<Outlook> {
    let items = [first, second].map(|item| (item.id.clone(), item.touches.clone()));
    Forecast::of_touches(&items).pairs.pop().map(|pair| pair.outlook)
}

/// What goes together, as far as it is known to conflict.
fn grouping(items: &[ForecastItem], pairs: &[PairForecast]) -> Grouping {
    let places: BTreeMap<&BundleId, usize> =
        items.iter().enumerate().map(|(place, item)| (&item.id, place)).collect();
    let place = |id: &BundleId| places.get(id).copied();
    let needs = |item: &ForecastItem| item.needs.iter().filter_map(place).collect();
    let needs: Vec<Vec<usize>> = items.iter().map(needs).collect();
    let is_sure = |pair: &&PairForecast| matches!(pair.outlook, Outlook::Conflict { .. });
    let sides = |pair: &PairForecast| Some((place(&pair.first)?, place(&pair.second)?));
    let conflicts: Vec<(usize, usize)> = pairs.iter().filter(is_sure).filter_map(sides).collect();
    Grouping::new(&needs, &conflicts)
}

/// What every two commits come to whose patches may meet: as remembered, or as git says. In passing, those about which
/// git was not asked are left out.
fn merged(
    store: &Store,
    settings: &QueueSettings,
    items: &[ForecastItem],
    scope: Scope<'_>,
    memory: &mut Memory,
) -> BTreeMap<(ObjectId, ObjectId), Outlook> {
    let may_overlap =
        |first: &ForecastItem, second: &ForecastItem| match (&first.scope, &second.scope) {
            (Some(one), Some(other)) => one.may_overlap(other),
            (None, _) | (_, None) => true,
        };
    let mut pairs: Vec<(ObjectId, ObjectId)> = pairs(items, scope)
        .filter(|(first, second)| may_overlap(first, second))
        .filter_map(|(first, second)| first.head.zip(second.head))
        .collect();
    let key = |&(one, other): &(ObjectId, ObjectId)| format!("{one} {other}");
    let is_new = |pair: &(ObjectId, ObjectId)| !memory.pairs.contains_key(&key(pair));
    let news: Vec<(ObjectId, ObjectId)> =
        pairs.iter().copied().filter(is_new).take(scope.most).collect();
    let asked: BTreeSet<(ObjectId, ObjectId)> = news.iter().copied().collect();
    pairs.retain(|pair| !is_new(pair) || asked.contains(pair));
    // One question after the other of a process that answers them all; none where all is known.
    let base = news.first().map(|(one, _)| *one);
    if let (Some(base), Ok(drivers)) = (base, settings.drivers()) {
        let mut engine = Engine::new(store, drivers);
        let said = Outlook::of_pairs(&mut engine, base, &news).unwrap_or_default();
        for (pair, outlook) in news.iter().zip(said) {
            match outlook {
                Outlook::Clear => drop(memory.pairs.insert(key(pair), Vec::new())),
                Outlook::Conflict { conflicts } => drop(memory.pairs.insert(key(pair), conflicts)),
                Outlook::Overlap { .. } | Outlook::Unknown { .. } => {}
            }
        }
    }
    let outlook = |pair: &(ObjectId, ObjectId)| match memory.pairs.get(&key(pair)) {
        Some(conflicts) if conflicts.is_empty() => Outlook::Clear,
        Some(conflicts) => Outlook::Conflict { conflicts: conflicts.clone() },
        None => Outlook::Unknown { why: "git could not merge them".to_owned() },
    };
    pairs.iter().map(|pair| (*pair, outlook(pair))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, head: &str, below: &[(&str, &str)]) -> ForecastItem {
        let commit = |digit: &str| ObjectId::from_hex(digit.repeat(40).as_bytes()).unwrap();
        let support = |(id, head): &(&str, &str)| Support {
            id: id.parse().unwrap(),
            head: commit(head),
            seal: None,
        };
        ForecastItem {
            id: id.parse().unwrap(),
            level: Level::Heads,
            head: Some(commit(head)),
            scope: None,
            touches: Vec::new(),
            needs: Vec::new(),
            stands_on: below.iter().map(support).collect(),
        }
    }

    #[test]
    fn what_was_built_on_another_as_it_is_now_is_not_asked_about_with_it() {
        // 3 was built on an earlier result of 2.
        let items = [
            item("1", "a", &[]),
            item("2", "b", &[("1", "a")]),
            item("3", "c", &[("1", "a"), ("2", "f")]),
        ];
        let scope = Scope { about: None, most: usize::MAX };
        let asked: Vec<_> =
            pairs(&items, scope).map(|(a, b)| (a.id.as_str(), b.id.as_str())).collect();
        assert_eq!(asked, [("2", "3")]);
    }
}
