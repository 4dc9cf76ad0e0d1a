//! The configuration of a workspace, with the origin of each value.
//!
//! Five layers, later ones win: the defaults in the types below, the user's file, the workspace's `pdca.toml`, `PDCA_*`
//! variables, flags. Each layer is a TOML document and is checked on its own against [`Config`], so a problem is
//! reported with its file and line, and all problems of a file at once. The types of the gates and the
//! leaves live in the crates that use them.
//!
//! ```
//! use pdca_workspace::config::{Environment, FileTrust, Layer, LoadRequest, load};
//!
//! let variables = [("PDCA_AUTHOR".into(), "Ada".into())].into();
//! let environment = Environment { variables: &variables, cwd: "/workspace".into() };
//! let flags = ["driver.lanes=2".to_owned()];
//! let trust = FileTrust::default();
//! let request = LoadRequest { file: None, flags: &flags, compat: false, trust: &trust };
//! let loaded = load(request, environment)?;
//! assert_eq!(loaded.config.project.author.as_deref(), Some("Ada"));
//! assert_eq!(loaded.sources.of("driver.lanes").layer, Layer::Flag);
//! # Ok::<(), pdca_workspace::config::ConfigError>(())
//! ```
//!
//! # Invariants
//! - Environment, current directory and clock are values of the caller; only config files and the record of trust are
//!   read here.
//! - A configuration is whole or an error: [`ConfigError`] has every problem of every layer, each with its position and
//!   a remedy.
//! - A key of the user's file that decides which programs run counts only if a person trusts exactly that text.
//! - Nothing is printed.

mod check;
mod closed;
mod compat;
mod document;
mod driver;
mod environment;
mod hosts;
mod layer;
mod migrate;
mod preset;
mod problem;
mod programs;
mod rules;
pub mod scaffold;
mod show;
mod signoff;
mod trust;
mod variant;
pub mod workspace;

use camino::Utf8PathBuf;
use pdca_state::Dollars;
use serde::{Deserialize, Serialize};

pub use document::{ConfigDocument, MAX_BYTES};
pub use driver::{Machine, cache_pattern, driver_config, force_stubs};
pub use environment::Environment;
pub use hosts::{HostEngine, HostEntry, host_requirements, repositories, require_sendable};
pub use layer::{Layer, LoadRequest, Loaded, Origin, Sources, load};
pub use migrate::{ConfigMigration, MigratedKey, MigratedKind, plan_migration};
pub use problem::{ConfigError, FilePosition, Problem};
pub use programs::{has_leaf, has_program, require_leaf, require_programs};
pub use rules::hydrate_hint;
pub use show::{EffectiveConfig, EffectiveValue, TrustedFile, effective_config, trust_user_file};
pub use signoff::{LeafDecision, LeafOutcomeWord, OnAccept, SignoffSettings};
pub use trust::FileTrust;
pub use workspace::Workspace;

/// The contents of `pdca.toml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[project]`: names.
    pub project: Project,
    /// `[paths]`: where things are.
    pub paths: Paths,
    /// `[driver]`: lanes and limits of runs.
    pub driver: DriverSettings,
    /// `[schedule]`: from declarations to a plan.
    pub schedule: pdca_driver::Schedule,
    /// `[lanes]`: private checkouts.
    pub lanes: LaneRoot,
    /// `[tracker]`: where issues come from.
    pub tracker: TrackerSettings,
    /// `[select]`: selection of issues from a tracker.
    pub select: pdca_forge::select::SelectSettings,
    /// `[[targets]]`: the repositories under change.
    pub targets: Vec<TargetEntry>,
    /// `[[hosts]]`: other machines that legs run on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostEntry>,
    /// `[gates]`: the deterministic checks.
    pub gates: pdca_gates::GatesConfig,
    /// `[check]`: limits on the size of a change.
    pub check: pdca_driver::CheckSettings,
    /// `[doctor]`: checks of external dependencies.
    pub doctor: pdca_driver::DoctorSettings,
    /// `[integrate]`: integration of accepted changes.
    pub integrate: pdca_driver::integrate::QueueSettings,
    /// `[publish]`: pull requests and comments for accepted changes.
    pub publish: pdca_forge::publish::PublishSettings,
    /// `[signoff]`: what may be recorded by a leaf, and what follows an acceptance.
    pub signoff: SignoffSettings,
    /// `[flow]`: a day of work with `pdca flow`.
    pub flow: crate::flow::FlowSettings,
    /// `[act]`: when a review of the process is due, and what belongs to the process.
    pub act: ActSettings,
    /// `[notify]`: who is told that a person is needed.
    pub notify: crate::flow::NotifySettings,
    /// `[leaves]`: the outside commands that fill one artifact each.
    pub leaves: pdca_leaves::Leaves,
}

/// `[project]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Project {
    /// The project's name; the workspace's directory name if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The branch to base changes on if neither brief nor target names one; the target's current branch if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_branch: Option<String>,
    /// The person who signs off if `--by` is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

/// `[act]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ActSettings {
    /// The number of cycles that end before a review of the process is due; 0 means never.
    pub every: u32,
    /// A review is also due when a cycle waits and the last review is a week old.
    pub weekly: bool,
    /// Globs of further files of the workspace that belong to the process.
    pub rules: Vec<String>,
}

impl Default for ActSettings {
    fn default() -> Self {
        ActSettings { every: 10, weekly: false, rules: Vec::new() }
    }
}

/// `[paths]`, each relative to the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Paths {
    /// The directory of the bundles.
    pub bundle_root: Utf8PathBuf,
    /// The directory of the Act log.
    pub process_dir: Utf8PathBuf,
    /// The directory of `brief.md.tpl`.
    pub templates_dir: Utf8PathBuf,
}

impl Default for Paths {
    fn default() -> Self {
        Paths {
            bundle_root: "results".into(),
            process_dir: "process".into(),
            templates_dir: "templates".into(),
        }
    }
}

/// `[driver]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DriverSettings {
    /// The number of bundles in flight at once, or `auto` for what the machine allows.
    pub lanes: pdca_driver::LaneCount,
    /// The time that drivers may work on one run, in seconds.
    pub max_duration_secs: u64,
    /// The number of leaves that one run may call; no limit if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_leaf_calls: Option<u64>,
    /// The dollars that the leaves of one run may cost; no limit if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Dollars>,
    /// The dollars that the leaves may cost for one issue, over all its attempts; no limit if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_per_issue: Option<Dollars>,
    /// The number of failures in a row before a batch leaves a bundle alone; 0 means no limit.
    pub max_attempts: u32,
    /// How often in a row a bundle may go back to Do by itself, for a red gate or a FAIL of the reviewer; 0 is never.
    pub max_auto_iters: u32,
    /// Where a builder starts that tries again: `last`, at the base with its last patch applied, or `base`.
    pub iterate_from: pdca_driver::IterateFrom,
    /// Names of files and directories that are left out of a change unless they were asked for.
    pub products: pdca_lanes::Products,
    /// The free disk space required to start another bundle, in GiB; 0 disables the check.
    pub min_free_gb: u64,
    /// The memory per lane, in MiB: with less there are fewer lanes. 0 disables the check.
    pub lane_memory_mb: u64,
    /// The memory limit of a leaf or a gate with its children, in MiB; no limit if unset or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_memory_mb: Option<u64>,
    /// The time at which the branch that bundles are built on is gated alone: `before` anything starts, `beside` the
    /// first builders, or `off`.
    pub gate_base: pdca_driver::integrate::GateBase,
    /// A `Disposition hint` that contains one of these words needs no builder and no reviewer.
    pub close_dispositions: Vec<String>,
}

impl Default for DriverSettings {
    fn default() -> Self {
        let words = [
            "likely-close",
            "wontfix",
            "by-design",
            "duplicate",
            "not-reproducible",
            "already-fixed",
            "can't-reproduce",
            "cant-reproduce",
            "cannot-reproduce",
            "manual-verification",
            "upstream",
            "external",
        ];
        DriverSettings {
            lanes: pdca_driver::LaneCount::default(),
            max_duration_secs: 4 * 60 * 60,
            max_leaf_calls: None,
            max_cost: None,
            max_cost_per_issue: None,
            max_attempts: 3,
            max_auto_iters: 0,
            iterate_from: pdca_driver::IterateFrom::default(),
            products: pdca_lanes::Products::default(),
            min_free_gb: 1,
            lane_memory_mb: 256,
            leaf_memory_mb: None,
            gate_base: pdca_driver::integrate::GateBase::default(),
            close_dispositions: words.map(str::to_owned).to_vec(),
        }
    }
}

/// `[lanes]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaneRoot {
    /// The directory of the private checkouts, relative to the workspace; `../<workspace>.lanes` if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Utf8PathBuf>,
    /// The relation of a lane to its target: `reference` or `worktree`.
    pub kind: pdca_lanes::LaneKind,
    /// The files that a reset between bundles leaves besides the commit: `clean` the caches, `tracked` everything
    /// ignored, `pristine` nothing.
    pub reset: pdca_lanes::Reset,
    /// Caches that survive a clean reset, as paths or globs; their contents are trusted across changes.
    pub cache: Vec<String>,
    /// The port range of lanes.
    pub ports: pdca_lanes::PortRange,
    /// `pdca sweep` removes lanes until this many gibibytes are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_free_gb: Option<u64>,
    /// `pdca sweep` removes lanes that were unused for this many days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u64>,
    /// `[lanes.hydrate]`: the files a lane needs in addition to tracked ones.
    #[serde(skip_serializing_if = "pdca_lanes::HydrateConfig::is_empty")]
    pub hydrate: pdca_lanes::HydrateConfig,
}

/// `[tracker]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrackerSettings {
    /// The address of an issue, with `{id}` for its id; shown by `status <id>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_url_pattern: Option<String>,
    /// An `sh -c` command that prints the thread of `PDCA_ISSUE` as a JSON object, for `notes.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes_cmd: Option<String>,
}

/// `[[targets]]`: a repository under change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetEntry {
    /// A short name, also the directory of its private checkouts; the last part of `repo` or of the path if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The user's checkout, relative to the workspace. It is never written.
    pub path: Utf8PathBuf,
    /// `owner/repo`, as briefs name it in `Repo + branch target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The branch to base changes on if the brief names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl TargetEntry {
    /// Returns the configured name, the last part of `repo`, or the last part of the path.
    pub fn name(&self) -> String {
        let of_repo =
            || self.repo.as_deref().and_then(|repo| repo.rsplit('/').next()).map(str::to_owned);
        let of_path = || self.path.file_name().map(str::to_owned);
        self.name.clone().or_else(of_repo).or_else(of_path).unwrap_or_else(|| "target".to_owned())
    }
}

impl Config {
    /// Flattens the configuration, `driver.lanes` → `1`: tables by name, rows in the order of the file.
    pub fn flat(&self) -> Result<Vec<(String, toml::Value)>, toml::ser::Error> {
        let mut flat = Vec::new();
        let table = toml::Table::try_from(self)?;
        layer::flatten(&toml::Value::Table(table), "", &mut |path, value| {
            flat.push((path.to_owned(), value.clone()));
        });
        Ok(flat)
    }
}
