//! What a workspace is configured to do, and where each value came from.
//!
//! Five layers, later ones win: the defaults in the types below, the user's file, the workspace's `pdca.toml`, `PDCA_*`
//! variables, flags. Each layer is a TOML document and is checked on its own against [`Config`], so a mistake is
//! reported with the file and line it stands in, and all mistakes of a file at once. The types of the gates and the
//! leaves live in the crates that use them.

mod check;
mod compat;
mod document;
mod layer;
mod rules;
#[cfg(test)]
mod tests;
mod trust;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

pub use document::{Document, MAX_BYTES};
pub(crate) use rules::hydrate_hint;

pub use layer::{Layer, Loaded, Origin, Request, Sources, load};
pub use trust::Trust;

/// Everything `pdca.toml` may say.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[project]`: names.
    pub project: Project,
    /// `[paths]`: where things are.
    pub paths: Paths,
    /// `[driver]`: how bundles are driven.
    pub driver: Driver,
    /// `[schedule]`: how declarations become a plan.
    pub schedule: pdca_driver::Schedule,
    /// `[lanes]`: private checkouts.
    pub lanes: LaneRoot,
    /// `[tracker]`: where issues come from.
    pub tracker: Tracker,
    /// `[[targets]]`: the repositories under change.
    pub targets: Vec<TargetEntry>,
    /// `[gates]`: the deterministic checks.
    pub gates: pdca_gates::GatesConfig,
    /// `[integrate]`: how accepted changes come together.
    pub integrate: pdca_driver::integrate::QueueSettings,
    /// `[publish]`: how accepted changes become known outside.
    pub publish: pdca_publish::PublishSettings,
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
    /// The branch changes are based on where neither brief nor target names one; the target's current branch if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_branch: Option<String>,
    /// Who signs off where `--by` is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
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
pub struct Driver {
    /// How many bundles may be in flight at once: a number, or `auto` for what the machine carries.
    pub lanes: pdca_driver::LaneCount,
    /// How long drivers may be at work on one run, in seconds.
    pub max_duration_secs: u64,
    /// How many leaves one run may call; no limit if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_leaf_calls: Option<u64>,
    /// How often a beat of a bundle may fail in a row before a batch leaves it alone; 0 is no limit.
    pub max_attempts: u32,
    /// How much has to stay free on the disk for another bundle to start, in GiB; 0 is not looked at.
    pub min_free_gb: u64,
    /// How much memory a lane is reckoned with, in MiB: with less there are fewer lanes. 0 is not looked at.
    pub lane_memory_mb: u64,
    /// How much memory a leaf or a gate with all that it starts may have, in MiB; no cap if unset or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_memory_mb: Option<u64>,
    /// When the branch that bundles are built on is gated by itself: `before` anything starts, `beside` the
    /// first builders, or `off`.
    pub gate_base: pdca_driver::integrate::GateBase,
    /// A `Disposition hint` that contains one of these words needs no builder and no reviewer.
    pub close_dispositions: Vec<String>,
}

impl Default for Driver {
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
        Driver {
            lanes: pdca_driver::LaneCount::default(),
            max_duration_secs: 4 * 60 * 60,
            max_leaf_calls: None,
            max_attempts: 3,
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
    /// What a lane is to its target: `reference` or `worktree`.
    pub kind: pdca_lanes::LaneKind,
    /// What a reset between bundles leaves beside the commit: `clean` the caches, `tracked` everything
    /// ignored, `pristine` nothing.
    pub reset: pdca_lanes::Reset,
    /// Caches that outlive a clean reset, as paths or globs: what they hold is trusted across changes.
    pub cache: Vec<String>,
    /// The ports that lanes may have.
    pub ports: pdca_lanes::PortRange,
    /// `pdca sweep` removes lanes until this many gibibytes are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_free_gb: Option<u64>,
    /// `pdca sweep` removes lanes that nobody used for this many days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u64>,
    /// `[lanes.hydrate]`: what a lane needs beyond what git tracks.
    #[serde(skip_serializing_if = "pdca_lanes::HydrateConfig::is_empty")]
    pub hydrate: pdca_lanes::HydrateConfig,
}

/// `[tracker]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tracker {
    /// The address of an issue, with `{id}` for its id; shown by `status <id>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_url_pattern: Option<String>,
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
    /// The branch changes are based on where the brief names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl TargetEntry {
    /// The name in use: the configured one, the last part of `repo`, or the last part of the path.
    pub fn name(&self) -> String {
        let of_repo =
            || self.repo.as_deref().and_then(|repo| repo.rsplit('/').next()).map(str::to_owned);
        let of_path = || self.path.file_name().map(str::to_owned);
        self.name.clone().or_else(of_repo).or_else(of_path).unwrap_or_else(|| "target".to_owned())
    }
}

impl Config {
    /// The config as a flat list, `driver.lanes` → `1`: tables by name, rows in the order of the file.
    pub fn flat(&self) -> Result<Vec<(String, toml::Value)>, toml::ser::Error> {
        let mut flat = Vec::new();
        let table = toml::Table::try_from(self)?;
        layer::flatten(&toml::Value::Table(table), "", &mut |path, value| {
            flat.push((path.to_owned(), value.clone()));
        });
        Ok(flat)
    }
}
