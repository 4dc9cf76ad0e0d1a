//! `[integrate]` of `pdca.toml`.

use std::collections::BTreeMap;
use std::time::Duration;

use pdca_lanes::LaneCount;
use pdca_state::{BundleId, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::{Driver, Drivers, EngineError, GateSetId, Signer, Strategy, Trust, VerdictCache};

use super::landing_mode::Land;
use super::max_age::MaxAge;
use super::target_branch::TargetBranch;
use super::workspace::QueueWorkspace;

/// How far the clock of another process may be ahead.
const AHEAD: i64 = 60;

/// How accepted changes come together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueueSettings {
    /// What moves.
    pub land: Land,
    /// How a change comes onto the tip.
    pub strategy: Strategy,
    /// How many changes are gated together at most.
    pub max_batch: u32,
    /// How many commits the branch may gain meanwhile before a person is asked.
    pub max_base_drift_commits: u64,
    /// In how many checkouts combinations are gated at once.
    pub lanes: LaneCount,
    /// Where `land = "push"` pushes to.
    pub remote: String,
    /// How many seconds after a failed attempt to resolve a conflict the next one may be; twice as many
    /// after each further one.
    pub resolve_pause_secs: u64,
    /// Whether the seals of what `land = "push"` landed go to the remote too, under `refs/pdca/`.
    pub push_seals: bool,
    /// Lines for the trailers of every commit that lands, such as `Fixes: #{id}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trailers: Vec<String>,
    /// Whether every commit that lands gets a `Signed-off-by` of the person who accepted it, as the
    /// Developer Certificate of Origin asks for.
    pub signed_off_by: bool,
    /// Whether a change that is red or conflicts goes back to Do by itself when an integration ends.
    pub return_culprits: ReturnCulprits,
    /// What of a landing is gated.
    pub gate: GateSteps,
    /// How old a verdict may be that is used instead of a gate run; any age where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict_max_age: Option<MaxAge>,
    /// The merge drivers that the project's attributes may use: name and command.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub merge_drivers: BTreeMap<String, String>,
}

/// What of a landing is gated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateSteps {
    /// What the branch comes to.
    #[default]
    Tip,
    /// Every commit that lands.
    Each,
}

/// What becomes of a change that is red or conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReturnCulprits {
    /// It goes back to Do by itself, a few times.
    Auto,
    /// It is held until a person decides.
    #[default]
    Ask,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            land: Land::default(),
            strategy: Strategy::default(),
            max_batch: 64,
            max_base_drift_commits: 50,
            lanes: LaneCount::default(),
            remote: "origin".to_owned(),
            resolve_pause_secs: 5,
            push_seals: true,
            trailers: Vec::new(),
            signed_off_by: false,
            return_culprits: ReturnCulprits::default(),
            gate: GateSteps::default(),
            verdict_max_age: None,
            merge_drivers: BTreeMap::new(),
        }
    }
}

impl QueueSettings {
    /// The pause after the first failed attempt to resolve a conflict.
    pub fn resolve_pause(&self) -> Duration {
        Duration::from_secs(self.resolve_pause_secs)
    }

    /// The trailers of the commits of a bundle, in full.
    pub fn trailers_for(&self, id: &BundleId, by: &Signer) -> Vec<String> {
        let own = self.trailers.iter().map(|line| line.replace("{id}", id.as_str()));
        let signed = format!("Signed-off-by: {} <{}>", by.name, by.email);
        own.chain(self.signed_off_by.then_some(signed)).collect()
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

impl QueueSettings {
    /// A ref as people read it.
    pub fn shown(&self, reference: &str) -> String {
        self.land.mode().shown(self, reference)
    }

    /// The verdicts that are kept, as far as they are not too old.
    pub fn verdicts(&self, workspace: &QueueWorkspace, now: i64) -> VerdictCache {
        VerdictCache::new(workspace.dirs.private().join("verdicts")).trusting(self.trust(now))
    }

    /// The verdicts that are not too old.
    pub fn trust(&self, now: i64) -> Trust {
        let within = self.verdict_max_age.map(|age| (age.before(now), now + AHEAD));
        Trust { within, ..Trust::default() }
    }

    /// A digest of all that must be the same for an integration to be taken up.
    pub(super) fn terms(&self, branch: &TargetBranch, oracle: &GateSetId, fresh: bool) -> String {
        let parts = [
            branch.target.name.as_str(),
            &branch.reference,
            branch.store.git_version(),
            &serde_json::to_string(self).unwrap_or_default(),
            &oracle.gate_digest,
            &oracle.environment_digest,
            // One that trusts no earlier verdict does not go on with what another one believed.
            if fresh { "fresh" } else { "" },
        ];
        sha256_hex(parts.join("\0").as_bytes())
    }
}
