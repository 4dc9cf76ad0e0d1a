//! `[integrate]` of `pdca.toml`.

use std::collections::BTreeMap;
use std::time::Duration;

use pdca_integrate::{Driver, Drivers, EngineError, Oracle, Strategy};
use pdca_state::sha256_hex;
use serde::{Deserialize, Serialize};

use super::standing::Front;

/// How accepted changes come together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What moves.
    pub land: Land,
    /// How a change comes onto the tip.
    pub strategy: Strategy,
    /// How many changes are gated together at most.
    pub max_batch: u32,
    /// How many commits the branch may gain meanwhile before a person is asked.
    pub max_base_drift_commits: u64,
    /// In how many checkouts combinations are gated at once.
    pub lanes: u32,
    /// Where `land = "push"` pushes to.
    pub remote: String,
    /// How many seconds after a failed attempt to resolve a conflict the next one may be; twice as many
    /// after each further one.
    pub resolve_pause_secs: u64,
    /// The merge drivers that the project's attributes may use: name and command.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub merge_drivers: BTreeMap<String, String>,
}

/// What moves when a combination is green.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Land {
    /// The local branch.
    Target,
    /// A branch of the integration's own, for a person to merge.
    #[default]
    Branch,
    /// The branch of a remote.
    Push,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            land: Land::default(),
            strategy: Strategy::default(),
            max_batch: 64,
            max_base_drift_commits: 50,
            lanes: 1,
            remote: "origin".to_owned(),
            resolve_pause_secs: 5,
            merge_drivers: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// The pause after the first failed attempt to resolve a conflict.
    pub(super) fn resolve_pause(&self) -> Duration {
        Duration::from_secs(self.resolve_pause_secs)
    }

    /// The declared merge drivers, as git takes them.
    pub fn drivers(&self) -> Result<Drivers, EngineError> {
        let mut drivers = Drivers::default();
        for (name, command) in &self.merge_drivers {
            drivers.declare(name, Driver { command: command.clone(), recursive: None })?;
        }
        Ok(drivers)
    }
}

impl Settings {
    /// A ref as people read it.
    pub fn shown(&self, reference: &str) -> String {
        match reference.strip_prefix("refs/heads/") {
            Some(branch) => branch.to_owned(),
            None if self.land == Land::Push => {
                let branch = reference.splitn(5, '/').nth(4).unwrap_or(reference);
                format!("{branch} of {}", self.remote)
            }
            None => reference.to_owned(),
        }
    }

    /// A digest of all that must be the same for an integration to be taken up.
    pub(super) fn terms(&self, front: &Front, oracle: &Oracle) -> String {
        let parts = [
            front.target.name.as_str(),
            &front.reference,
            front.store.git_version(),
            &format!("{self:?}"),
            &oracle.gate_digest,
            &oracle.environment_digest,
        ];
        sha256_hex(parts.join("\0").as_bytes())
    }
}

impl Land {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Branch => "branch",
            Self::Push => "push",
        }
    }
}
