//! `[integrate]` of `pdca.toml`.

use std::collections::BTreeMap;
use std::time::Duration;

use pdca_lanes::LaneCount;
use pdca_state::{BundleId, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::{
    Drivers, EngineError, GateSetId, MergeDriver, Signer, Strategy, VerdictCache, VerdictTrust,
};

use super::landing_mode::Land;
use super::max_age::MaxAge;
use super::target_branch::TargetBranch;
use super::workspace::QueueWorkspace;

/// The number of seconds that the clock of another process may be ahead.
/// A verdict that another host or process has just given would otherwise be from the future and not count.
const AHEAD: i64 = 60;

/// The settings of the merge queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueueSettings {
    /// The ref that moves.
    pub land: Land,
    pub strategy: Strategy,
    /// The maximum number of changes to gate together.
    pub max_batch: u32,
    /// The number of commits that the branch may gain during an integration before a person is asked.
    pub max_base_drift_commits: u64,
    /// The number of checkouts for gating combinations at the same time.
    pub lanes: LaneCount,
    /// The remote of `land = "push"`, and that of a branch that follows none.
    pub remote: String,
    /// Asks the remote that the branch follows, and folds onto what it has.
    pub fetch: bool,
    /// The pause, in seconds, after a failed attempt to resolve a conflict; it doubles after each further one.
    pub resolve_pause_secs: u64,
    /// Pushes the seals of landed changes to the remote too, under `refs/pdca/`, with `land = "push"`.
    pub push_seals: bool,
    /// Trailer lines for every commit that lands, such as `Fixes: #{id}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trailers: Vec<String>,
    /// Adds a `Signed-off-by` of the person who accepted the change to every commit that lands, as the Developer
    /// Certificate of Origin requires.
    pub signed_off_by: bool,
    /// The treatment of changes that are red or conflict, when an integration ends.
    pub return_culprits: ReturnCulprits,
    /// The commits of a landing that are gated.
    pub gate: GateSteps,
    /// The maximum age of a verdict that may replace a gate run; without it, any age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict_max_age: Option<MaxAge>,
    /// The merge drivers that the project's git attributes may use: name and command.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub merge_drivers: BTreeMap<String, String>,
}

/// The commits of a landing that are gated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateSteps {
    /// Only the new tip of the branch.
    #[default]
    Tip,
    /// Every commit that lands.
    Each,
}

/// The treatment of a change that is red or conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReturnCulprits {
    /// It goes back to Do automatically, a limited number of times.
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
            fetch: true,
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
    /// Returns the pause after the first failed attempt to resolve a conflict.
    pub fn resolve_pause(&self) -> Duration {
        Duration::from_secs(self.resolve_pause_secs)
    }

    /// Returns the trailers for the commits of a bundle.
    pub fn trailers_for(&self, id: &BundleId, by: &Signer) -> Vec<String> {
        let own = self.trailers.iter().map(|line| line.replace("{id}", id.as_str()));
        let signed = format!("Signed-off-by: {} <{}>", by.name, by.email);
        own.chain(self.signed_off_by.then_some(signed)).collect()
    }

    /// Returns the declared merge drivers.
    pub fn drivers(&self) -> Result<Drivers, EngineError> {
        let mut drivers = Drivers::default();
        for (name, command) in &self.merge_drivers {
            drivers.declare(name, MergeDriver { command: command.clone(), recursive: None })?;
        }
        Ok(drivers)
    }
}

impl QueueSettings {
    /// Returns a ref in the form that is shown to people.
    pub fn shown(&self, reference: &str) -> String {
        self.land.mode().shown(self, reference)
    }

    /// Opens the verdict cache, restricted to verdicts that are not too old.
    pub fn verdicts(&self, workspace: &QueueWorkspace, now: i64) -> VerdictCache {
        VerdictCache::new(workspace.dirs.private().join("verdicts")).trusting(self.trust(now))
    }

    /// Returns the condition that a verdict is not too old.
    pub fn trust(&self, now: i64) -> VerdictTrust {
        let within = self.verdict_max_age.map(|age| (age.before(now), now + AHEAD));
        VerdictTrust { within, ..VerdictTrust::default() }
    }

    /// Returns a digest of everything that must be unchanged for an interrupted integration to be resumed.
    pub(super) fn terms(&self, branch: &TargetBranch, oracle: &GateSetId, fresh: bool) -> String {
        let parts = [
            branch.target.name.as_str(),
            &branch.reference,
            // Another git may merge differently, so the steps of an interrupted integration would not be its
            // own.
            branch.store.git_version(),
            &serde_json::to_string(self).unwrap_or_default(),
            &oracle.gate_digest,
            &oracle.environment_digest,
            // An integration that trusts no earlier verdict must not resume one that did.
            if fresh { "fresh" } else { "" },
        ];
        sha256_hex(parts.join("\0").as_bytes())
    }
}
