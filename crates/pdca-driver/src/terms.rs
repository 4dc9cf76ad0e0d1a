//! The configuration that a leg runs under: everything that decides the result, nothing about the machine.

use std::time::Duration;

use pdca_dag::{Case, Pattern};
use pdca_gates::Checks;
use pdca_lanes::{HydrateConfig, Products, Reset};
use pdca_leaves::Leaves;
use pdca_process::SandboxMode;
use pdca_state::Money;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The configuration of a leg. Directories, programs and credentials come from the machine that runs it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    pub rows: Checks,
    /// The sandbox around gates and hydration.
    pub gate_sandbox: SandboxMode,
    /// Further paths that sandboxed gates may write.
    pub gates_may_write: Vec<String>,
    /// The names of environment variables that gates inherit there; the values do not travel.
    pub gates_env_pass: Vec<String>,
    /// Caches that gates may read and leaves may not write.
    #[serde(default)]
    pub gates_caches: Vec<String>,
    pub leaves: Leaves,
    /// Replaces every leaf by its stub.
    pub force_stubs: bool,
    /// The words of a disposition hint that mean "close without a fix".
    pub close_words: Vec<String>,
    /// The files that a reset of the checkout removes.
    pub reset: Reset,
    /// The files that survive a clean reset.
    #[serde(serialize_with = "write_globs", deserialize_with = "read_globs")]
    pub cache: Vec<Pattern>,
    /// The setup of a checkout beyond what git tracks.
    pub hydrate: HydrateConfig,
    /// The starting point of a further attempt.
    pub iterate_from: IterateFrom,
    /// The names of build products, which are left out of a change unless they were asked for.
    pub products: Products,
    pub limits: RunLimits,
}

/// The starting point of a builder after a person or a finding sent the bundle back to Do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IterateFrom {
    /// The base with the patch of the previous attempt, if it applies.
    #[default]
    Last,
    /// The base alone.
    Base,
}

/// The limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// The total time that drivers may work on the run.
    pub max_duration: Duration,
    /// The number of leaf calls; `None` means no limit.
    pub max_leaf_calls: Option<u64>,
    /// The cost of all leaf calls; `None` means no limit.
    pub max_cost: Option<Money>,
    /// The cost of all leaf calls for one bundle, in all its attempts; `None` means no limit.
    pub max_cost_per_issue: Option<Money>,
    /// The number of consecutive failures of one beat after which it is no longer retried automatically; 0 means no
    /// limit.
    pub max_attempts: u32,
    /// The number of consecutive times that a bundle may go back to Do automatically, for findings of its
    /// builder's own; 0 means never.
    pub max_auto_iters: u32,
    /// The free disk space, in bytes, below which no further bundle starts; 0 disables the check.
    pub min_free: u64,
    /// The memory, in bytes, that each lane is expected to need; 0 disables the check.
    pub lane_memory: u64,
    /// The memory cap, in bytes, of a leaf, a gate or a hydration command; `None` means no cap.
    pub leaf_memory: Option<u64>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_duration: Duration::from_secs(4 * 60 * 60),
            max_leaf_calls: None,
            max_cost: None,
            max_cost_per_issue: None,
            max_attempts: 3,
            max_auto_iters: 0,
            min_free: 1 << 30,
            lane_memory: 256 << 20,
            leaf_memory: None,
        }
    }
}

fn write_globs<S: Serializer>(globs: &[Pattern], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(globs.iter().map(Pattern::as_str))
}

fn read_globs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Pattern>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    // A glob that arrives must not be one that a person's configuration would refuse.
    let globs = texts.iter().map(|text| Pattern::parse(text, Case::Sensitive));
    globs.collect::<Result<_, _>>().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use pdca_gates::GatesConfig;

    use super::*;

    fn terms() -> Terms {
        let gates: GatesConfig =
            toml::from_str("checks = [{ id = 'a', tier = 'T1', argv = ['true'] }]").unwrap();
        let leaves =
            "[builder]\nmode = 'command'\nargv = ['agent', '{prompt}']\ntimeout_secs = 90\n";
        Terms {
            rows: gates.checks().unwrap(),
            leaves: toml::from_str(leaves).unwrap(),
            cache: vec![Pattern::parse("target/**", Case::Sensitive).unwrap()],
            gates_env_pass: vec!["TOKEN".to_owned()],
            gates_caches: vec!["~/.cache/models".to_owned()],
            limits: RunLimits { max_leaf_calls: Some(9), ..RunLimits::default() },
            ..Terms::default()
        }
    }

    #[test]
    fn terms_are_read_back_as_they_were() {
        for sent in [Terms::default(), terms()] {
            let text = serde_json::to_string(&sent).unwrap();
            assert_eq!(serde_json::from_str::<Terms>(&text).unwrap(), sent);
        }
    }

    #[test]
    fn a_glob_that_leads_out_of_the_tree_does_not_arrive() {
        let mut sent = serde_json::to_value(terms()).unwrap();
        sent["cache"] = serde_json::json!(["../x"]);
        let error = serde_json::from_value::<Terms>(sent).unwrap_err().to_string();
        assert!(error.contains("it leaves the tree"), "{error}");
    }
}
