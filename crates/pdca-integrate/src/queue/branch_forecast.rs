//! Predicts merge conflicts between pending changes.
//!
//! Each pair is compared at the highest level that both have: seals, built patches, or
//! declared paths. The merge of two commits never changes, so results are cached; the cache
//! decides nothing and may be lost.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use pdca_dag::{Case, Pattern};
use pdca_state::{Artifact, Bundle, BundleId, Snapshot, State, files, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::queue::patch_scope::PatchScope;
use crate::{
    ChangeState, Cluster, Conflict, Grouping, Ingredients, Level, MergeEngine, ObjectId,
    PairOutlook, QueueSettings, QueueWorkspace, Store, Support, TargetBranchError, TargetBranches,
    TargetSpec, place,
};

/// The largest size of the cache, in bytes.
const LARGEST: u64 = 64 << 20;
/// The most new pairs that the forecast of one bundle asks git about. The rest is left to the next one,
/// or to `pdca forecast`, which has no limit.
const IN_PASSING: usize = 2_000;
/// The most pairs in the cache.
const MOST: usize = 100_000;

/// The facts that a driver recorded about the attempt of a bundle.
#[derive(Debug, Clone, Default)]
pub struct BuiltAttempt {
    /// The commit that Check saw, if it still exists.
    pub head: Option<ObjectId>,
    /// The commit that the attempt is based on.
    pub base: Option<String>,
    /// The results that it was built on, each at the commit it had then.
    pub stands_on: Vec<Support>,
}

/// The part of the world that a forecast uses.
#[derive(Clone, Copy)]
pub struct Forecasting<'a> {
    pub workspace: &'a QueueWorkspace,
    pub settings: &'a QueueSettings,
    /// Returns what is recorded about the attempt of a bundle.
    pub attempt: &'a dyn Fn(&Store, &Bundle, &Snapshot) -> BuiltAttempt,
}

impl std::fmt::Debug for Forecasting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forecasting").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// The pairs of one branch of one target, and what can land together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BranchForecast {
    pub target: String,
    /// Empty if the briefs name none and the checkout has none.
    pub branch: String,
    pub bundles: Vec<ForecastBundle>,
    /// The largest set that can land, in order.
    pub order: Vec<BundleId>,
    /// Every bundle once; those of a group merge with each other.
    pub groups: Vec<Vec<BundleId>>,
    pub clusters: Vec<ConflictCluster>,
    /// The pairs that conflict, overlap or could not be compared.
    #[serde(rename = "troubles")]
    pub pairs: Vec<PairForecast>,
}

/// A bundle of a forecast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForecastBundle {
    pub id: BundleId,
    pub level: Level,
}

/// Bundles that conflict, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConflictCluster {
    pub bundles: Vec<BundleId>,
    /// Those of them that can land together.
    pub lands: Vec<BundleId>,
    /// The paths that they conflict in.
    pub paths: BTreeSet<String>,
}

/// Two bundles that conflict, overlap or could not be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairForecast {
    pub first: BundleId,
    pub second: BundleId,
    /// The lower level of the two.
    pub level: Level,
    #[serde(flatten)]
    pub outlook: PairOutlook,
    /// The pair in one sentence.
    pub text: String,
}

impl PairForecast {
    fn new(first: &ForecastItem, second: &ForecastItem, outlook: PairOutlook) -> Self {
        let level = first.level.min(second.level);
        let (first, second) = (first.id.clone(), second.id.clone());
        let text = match &outlook {
            PairOutlook::Clear => format!("{first} and {second} go together"),
            PairOutlook::Overlap { path } => format!("{first} and {second} both declare {path}"),
            PairOutlook::Conflict { conflicts } => {
                let places: Vec<String> = conflicts.iter().map(place).collect();
                format!("{first} and {second} conflict in {}", places.join(", "))
            }
            PairOutlook::Unknown { why } => format!("{first} and {second}: not known, {why}"),
        };
        Self { first, second, level, outlook, text }
    }

    /// Returns the paths that the pair conflicts or overlaps in.
    pub fn paths(&self) -> Vec<String> {
        match &self.outlook {
            PairOutlook::Conflict { conflicts } => {
                conflicts.iter().map(|conflict| conflict.path.to_string()).collect()
            }
            PairOutlook::Overlap { path } => vec![path.clone()],
            PairOutlook::Clear | PairOutlook::Unknown { .. } => Vec::new(),
        }
    }

    /// Describes a conflict from the point of view of one of the two.
    pub fn sentence_for(&self, id: &BundleId) -> Option<String> {
        let other = self.other(id)?;
        let PairOutlook::Conflict { conflicts } = &self.outlook else { return None };
        let places: Vec<String> = conflicts.iter().map(place).collect();
        Some(format!("forecast: it does not merge with {other}, in {}", places.join(", ")))
    }

    pub fn other(&self, id: &BundleId) -> Option<&BundleId> {
        match (*id == self.first, *id == self.second) {
            (true, _) => Some(&self.second),
            (_, true) => Some(&self.first),
            (false, false) => None,
        }
    }
}

/// A target, with the bundles that are meant for one of its branches.
struct Place {
    target: TargetSpec,
    bundles: Vec<(Bundle, Snapshot)>,
}

/// The facts about one bundle that its pairs are compared by.
struct ForecastItem {
    id: BundleId,
    level: Level,
    head: Option<ObjectId>,
    /// The paths that its patch may affect, if it has one.
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

/// The pairs to compare.
#[derive(Clone, Copy)]
struct Scope<'s> {
    /// Only pairs with this bundle.
    about: Option<&'s BundleId>,
    /// The most pairs to ask git about, in addition to cached ones.
    most: usize,
    /// Whether commits that do not exist yet are made of patches, for which git is started.
    makes_commits: bool,
}

impl Scope<'_> {
    /// All pairs.
    const ALL: Self = Self { about: None, most: usize::MAX, makes_commits: true };
    /// The pairs that are cached.
    const KNOWN: Self = Self { about: None, most: 0, makes_commits: false };
}

/// The cache: commits by base and patch, and conflicts by pair of commits.
#[derive(Default, Serialize, Deserialize)]
struct Memory {
    heads: BTreeMap<String, String>,
    pairs: BTreeMap<String, Vec<Conflict>>,
}

/// Compares all pairs of every branch. Bundles that have landed or will not be built are left out.
pub fn forecast(
    cx: Forecasting<'_>,
    only: &BTreeSet<BundleId>,
) -> Result<Vec<BranchForecast>, TargetBranchError> {
    forecast_among(cx, only, &landed(cx.workspace, only)?, Scope::ALL)
}

/// Like [`forecast`], but returns only pairs that were compared before, and asks git about none. No bundle of `only`
/// may have landed.
pub fn known_forecast(
    cx: Forecasting<'_>,
    only: &BTreeSet<BundleId>,
) -> Result<Vec<BranchForecast>, TargetBranchError> {
    // Most workspaces know of no conflict, and need not read their bundles once more.
    if load_memory(cx.workspace).pairs.values().all(Vec::is_empty) {
        return Ok(Vec::new());
    }
    forecast_among(cx, only, &BTreeSet::new(), Scope::KNOWN)
}

/// Returns the pairs of a bundle that was just checked with other built ones.
pub fn forecast_of(
    cx: Forecasting<'_>,
    bundle: &BundleId,
) -> Result<Vec<PairForecast>, TargetBranchError> {
    // Without a target nothing is merged, and reading all the other bundles would make each
    // bundle of a batch slower than the one before it.
    if cx.workspace.targets.is_empty() {
        return Ok(Vec::new());
    }
    let built: Vec<Bundle> = cx
        .workspace
        .dirs
        .bundles
        .list()?
        .into_iter()
        .filter(|other| other.path(Artifact::Patch).exists())
        .collect();
    let own = built.iter().find(|other| other.id() == bundle).map(patch_scope);
    let Some(own) = own else { return Ok(Vec::new()) };
    // Most patches affect disjoint paths, which is known without asking git.
    let near = built.iter().filter(|other| patch_scope(other).may_overlap(&own));
    let near: BTreeSet<BundleId> = near.map(|other| other.id().clone()).collect();
    if !near.iter().any(|other| other != bundle) {
        return Ok(Vec::new());
    }
    let only = near.into_iter().chain([bundle.clone()]).collect();
    let scope = Scope { about: Some(bundle), most: IN_PASSING, ..Scope::ALL };
    let forecasts = forecast_among(cx, &only, &landed(cx.workspace, &only)?, scope)?;
    Ok(forecasts.into_iter().flat_map(|forecast| forecast.pairs).collect())
}

fn patch_scope(bundle: &Bundle) -> PatchScope {
    // An unreadable patch is reported when the bundle is run.
    PatchScope::of(&bundle.read(Artifact::Patch).ok().flatten().unwrap_or_default())
}

/// Compares these bundles with each other, or one of them with each other one.
fn forecast_among(
    cx: Forecasting<'_>,
    only: &BTreeSet<BundleId>,
    landed: &BTreeSet<BundleId>,
    scope: Scope<'_>,
) -> Result<Vec<BranchForecast>, TargetBranchError> {
    let workspace = cx.workspace;
    let mut memory = load_memory(workspace);
    let mut forecasts: BTreeMap<(String, String), Place> = BTreeMap::new();
    let mut defaults: BTreeMap<String, Option<String>> = BTreeMap::new();
    for bundle in workspace.dirs.bundles.list()? {
        if !only.is_empty() && !only.contains(bundle.id()) {
            continue;
        }
        let Ok(snapshot) = bundle.load() else { continue };
        let has_patch = snapshot.artifacts.contains(Artifact::Patch);
        let is_over = matches!(snapshot.state, State::Resolved | State::Discontinued)
            || snapshot.state == State::Complete && !has_patch
            || landed.contains(bundle.id());
        let Some(brief) = snapshot.authored_brief().filter(|_| !is_over) else {
            continue;
        };
        // A brief with an unknown target is reported when the bundle is built.
        let Ok(Some(target)) = workspace.target_of(brief) else { continue };
        // A brief that names the default branch and one that names none mean the same branch.
        let branch = workspace.branch_of(brief, &target).or_else(|| {
            let default = defaults.entry(target.name.clone());
            default.or_insert_with(|| default_branch(&target)).clone()
        });
        let key = (target.name.clone(), branch.unwrap_or_default());
        let forecast = forecasts.entry(key).or_insert(Place { target, bundles: Vec::new() });
        forecast.bundles.push((bundle, snapshot));
    }
    let mut found = Vec::new();
    for ((_, branch), Place { target, bundles }) in forecasts {
        let failed = |source| TargetBranchError::Store { target: target.name.clone(), source };
        let store = workspace.store_to_read(&target).map_err(failed)?;
        let items: Vec<ForecastItem> = bundles
            .iter()
            .map(|(bundle, snapshot)| item(cx, &store, bundle, snapshot, scope, &mut memory))
            .collect();
        let pairs = unclear_pairs(&store, cx.settings, &items, scope, &mut memory);
        found.push(branch_forecast(target.name, branch, &items, pairs));
    }
    if scope.makes_commits {
        store_memory(workspace, memory);
    }
    Ok(found)
}

/// Returns the branch of briefs that name none: the one that the target's checkout has. `None` if it cannot be found.
fn default_branch(target: &TargetSpec) -> Option<String> {
    let found = pdca_lanes::Target::open(&target.name, &target.path).ok()?;
    Some(found.resolve(None).ok()?.branch)
}

fn landed(
    workspace: &QueueWorkspace,
    only: &BTreeSet<BundleId>,
) -> Result<BTreeSet<BundleId>, TargetBranchError> {
    let is_wanted = |id: &BundleId| only.is_empty() || only.contains(id);
    let found = TargetBranches::load_some(workspace, is_wanted)?;
    let changes = found.branches.iter().flat_map(|branch| &branch.changes);
    let landed = changes.filter(|change| matches!(change.standing, ChangeState::Landed { .. }));
    Ok(landed.map(|change| change.bundle.id().clone()).collect())
}

fn item(
    cx: Forecasting<'_>,
    store: &Store,
    bundle: &Bundle,
    snapshot: &Snapshot,
    scope: Scope<'_>,
    memory: &mut Memory,
) -> ForecastItem {
    let parse = |glob: &String| Pattern::parse(glob, Case::Sensitive).ok();
    let brief = snapshot.authored_brief();
    let globs = brief.map(pdca_state::Brief::touches).unwrap_or_default();
    let touches = globs.iter().filter_map(parse).collect();
    // A record that cannot be read only makes the forecast too careful.
    let BuiltAttempt { head, base, stands_on } = (cx.attempt)(store, bundle, snapshot);
    // Prefer the commit that Do left.
    let head = head.or_else(|| head_of(store, bundle, snapshot, base, scope, memory));
    let level = match (head, snapshot.state) {
        (Some(_), State::Complete) => Level::Seals,
        (Some(_), _) => Level::Heads,
        (None, _) => Level::Declared,
    };
    let needs = brief.map(|brief| brief.depends_on().ids().clone()).unwrap_or_default();
    let scope = head.map(|_| patch_scope(bundle));
    let stands_on = head.map(|_| stands_on).unwrap_or_default();
    ForecastItem { id: bundle.id().clone(), level, head, scope, touches, needs, stands_on }
}

/// Returns a commit that is made of a bundle's patch, if it has one that applies.
fn head_of(
    store: &Store,
    bundle: &Bundle,
    snapshot: &Snapshot,
    base: Option<String>,
    scope: Scope<'_>,
    memory: &mut Memory,
) -> Option<ObjectId> {
    let patch = bundle.read(Artifact::Patch).ok()?.filter(|patch| !patch.is_empty())?;
    let checked = snapshot.gates.as_ref().and_then(|gates| gates.base.clone());
    let base = ObjectId::from_hex(checked.or(base)?.as_bytes()).ok()?;
    let key = format!("{} {base} {}", bundle.id(), sha256_hex(&patch));
    let known = memory.heads.get(&key).and_then(|id| ObjectId::from_hex(id.as_bytes()).ok());
    // Nothing refers to the commit, so gc may have removed it; then it is made again.
    if let Some(known) = known.filter(|known| store.tree_of(*known).is_ok()) {
        return Some(known);
    }
    if !scope.makes_commits {
        return None;
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

fn memory_file(workspace: &QueueWorkspace) -> Utf8PathBuf {
    workspace.dirs.private().join("forecast.json")
}

fn load_memory(workspace: &QueueWorkspace) -> Memory {
    let text = files::read_bounded(memory_file(workspace), LARGEST).ok().flatten();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Writes the cache if possible, with what other workers added meanwhile; losing it only costs time.
fn store_memory(workspace: &QueueWorkspace, mut memory: Memory) {
    let known = load_memory(workspace);
    if memory.heads.keys().all(|key| known.heads.contains_key(key))
        && memory.pairs.keys().all(|key| known.pairs.contains_key(key))
    {
        return;
    }
    memory.heads.extend(known.heads);
    memory.pairs.extend(known.pairs);
    if memory.pairs.len() < MOST
        && workspace.dirs.private().is_dir()
        && let Ok(text) = serde_json::to_vec(&memory)
    {
        drop(files::replace_unsynced(memory_file(workspace), &text));
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
            // Pairs with disjoint paths are not in `merged`.
            Some(heads) => merged.get(&heads).cloned(),
            None => Some(PairOutlook::of_touches(&first.touches, &second.touches)),
        };
        if let Some(outlook) = outlook.filter(|outlook| *outlook != PairOutlook::Clear) {
            found.push(PairForecast::new(first, second, outlook));
        }
    }
    found
}

/// Returns the pairs to compare, the earlier bundle first.
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

/// Groups the bundles of a branch, and names their ids.
fn branch_forecast(
    target: String,
    branch: String,
    items: &[ForecastItem],
    pairs: Vec<PairForecast>,
) -> BranchForecast {
    let ids = |places: &[usize]| -> Vec<BundleId> {
        places.iter().map(|place| items[*place].id.clone()).collect()
    };
    let Grouping { groups, clusters } = grouping(items, &pairs);
    let groups: Vec<Vec<BundleId>> = groups.iter().map(|group| ids(group)).collect();
    let cluster = |cluster: &Cluster| {
        let bundles = ids(&cluster.places);
        let is_of_it = |pair: &&PairForecast| {
            matches!(pair.outlook, PairOutlook::Conflict { .. }) && bundles.contains(&pair.first)
        };
        let paths = pairs.iter().filter(is_of_it).flat_map(PairForecast::paths).collect();
        ConflictCluster { lands: ids(&cluster.lands), paths, bundles }
    };
    BranchForecast {
        target,
        branch,
        bundles: items
            .iter()
            .map(|item| ForecastBundle { id: item.id.clone(), level: item.level })
            .collect(),
        order: groups.first().cloned().unwrap_or_default(),
        groups,
        clusters: clusters.iter().map(cluster).collect(),
        pairs,
    }
}

/// Groups bundles that are not known to conflict.
fn grouping(items: &[ForecastItem], pairs: &[PairForecast]) -> Grouping {
    let places: BTreeMap<&BundleId, usize> =
        items.iter().enumerate().map(|(place, item)| (&item.id, place)).collect();
    let place = |id: &BundleId| places.get(id).copied();
    let needs = |item: &ForecastItem| item.needs.iter().filter_map(place).collect();
    let needs: Vec<Vec<usize>> = items.iter().map(needs).collect();
    let is_sure = |pair: &&PairForecast| matches!(pair.outlook, PairOutlook::Conflict { .. });
    let sides = |pair: &PairForecast| Some((place(&pair.first)?, place(&pair.second)?));
    let conflicts: Vec<(usize, usize)> = pairs.iter().filter(is_sure).filter_map(sides).collect();
    Grouping::new(&needs, &conflicts)
}

/// Returns the outlook for pairs of commits whose patches may overlap, from the cache or from git. Pairs beyond the limit
/// are left out.
fn merged(
    store: &Store,
    settings: &QueueSettings,
    items: &[ForecastItem],
    scope: Scope<'_>,
    memory: &mut Memory,
) -> BTreeMap<(ObjectId, ObjectId), PairOutlook> {
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
    // One engine process answers all questions; none is started if everything is cached.
    let base = news.first().map(|(one, _)| *one);
    if let (Some(base), Ok(drivers)) = (base, settings.drivers()) {
        let mut engine = MergeEngine::new(store, drivers);
        let said = PairOutlook::of_pairs(&mut engine, base, &news).unwrap_or_default();
        for (pair, outlook) in news.iter().zip(said) {
            match outlook {
                PairOutlook::Clear => drop(memory.pairs.insert(key(pair), Vec::new())),
                PairOutlook::Conflict { conflicts } => {
                    drop(memory.pairs.insert(key(pair), conflicts));
                }
                PairOutlook::Overlap { .. } | PairOutlook::Unknown { .. } => {}
            }
        }
    }
    let outlook = |pair: &(ObjectId, ObjectId)| match memory.pairs.get(&key(pair)) {
        Some(conflicts) if conflicts.is_empty() => PairOutlook::Clear,
        Some(conflicts) => PairOutlook::Conflict { conflicts: conflicts.clone() },
        None => PairOutlook::Unknown { why: "git could not merge them".to_owned() },
    };
    pairs.iter().map(|pair| (*pair, outlook(pair))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdca_testkit::TestWorkspace;

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
        let scope = Scope::ALL;
        let asked: Vec<_> =
            pairs(&items, scope).map(|(a, b)| (a.id.as_str(), b.id.as_str())).collect();
        assert_eq!(asked, [("2", "3")]);
    }

    #[test]
    fn a_brief_that_names_the_default_branch_is_compared_with_one_that_names_none() {
        let dir = TestWorkspace::new();
        let repo = dir.target("app");
        repo.write("README.md", "hello\n");
        repo.commit("first");
        let named = ("Repo + branch target", "team/app @ main");
        dir.brief("7", &[("Touches", "README.md")]);
        dir.brief("8", &[("Touches", "README.md"), named]);
        let (name, path) = ("app".to_owned(), repo.path().to_owned());
        let repo = Some("team/app".to_owned());
        let mut workspace = QueueWorkspace::at(dir.path());
        workspace.targets = vec![TargetSpec { name, path, repo, branch: None }];
        let settings = &QueueSettings::default();
        let attempt = &|_: &Store, _: &Bundle, _: &Snapshot| BuiltAttempt::default();
        let cx = Forecasting { workspace: &workspace, settings, attempt };
        let found = forecast(cx, &BTreeSet::new()).unwrap();
        let found: Vec<_> = found.iter().map(|one| (&*one.branch, one.pairs.len())).collect();
        assert_eq!(found, [("main", 1)]);
    }
}
