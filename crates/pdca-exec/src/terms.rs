//! The configuration that a job is done under: what decides the result, and nothing of the machine.

use std::time::Duration;

use pdca_dag::{Case, Pattern};
use pdca_gates::Checks;
use pdca_lanes::{HydrateConfig, Reset};
use pdca_leaves::Leaves;
use pdca_process::SandboxMode;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The configuration of a job. Directories, programs and credentials are the executor's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The gates.
    pub rows: Checks,
    /// The wall around gates and hydration.
    pub gate_sandbox: SandboxMode,
    /// Further paths that confined gates may write.
    pub gates_may_write: Vec<String>,
    /// The names of credentials that gates get from the executor's environment.
    pub gates_env_pass: Vec<String>,
    /// The leaves.
    pub leaves: Leaves,
    /// Whether stubs stand in for every leaf.
    pub force_stubs: bool,
    /// The words of a disposition hint that mean "no fix".
    pub close_words: Vec<String>,
    /// How much of a checkout a reset clears.
    pub reset: Reset,
    /// The files that outlive a clean reset.
    #[serde(serialize_with = "write_globs", deserialize_with = "read_globs")]
    pub cache: Vec<Pattern>,
    /// What a checkout needs beyond git.
    pub hydrate: HydrateConfig,
    /// Where a builder starts that tries again.
    pub iterate_from: IterateFrom,
    /// The bounds.
    pub limits: RunLimits,
}

/// Where the builder of a further attempt starts, if a person or a finding sent the bundle back to Do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IterateFrom {
    /// At the base with the patch of the attempt before applied, where it applies.
    #[default]
    Last,
    /// At the base alone.
    Base,
}

/// What keeps a run within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// How long drivers may be at work on it.
    pub max_duration: Duration,
    /// How many leaves it may call; none is no limit.
    pub max_leaf_calls: Option<u64>,
    /// How often a beat of a bundle may fail in a row before it is not started again unasked; 0 is no
    /// limit.
    pub max_attempts: u32,
    /// How often in a row a bundle may go back to Do by itself for findings of its builder's own; 0 is never.
    pub max_auto_iters: u32,
    /// How many bytes have to stay free on the disk for another bundle to start; 0 is not looked at.
    pub min_free: u64,
    /// How many bytes of memory a lane is reckoned with; 0 is not looked at.
    pub lane_memory: u64,
    /// How many bytes of memory a leaf, a gate or a command of hydration may have; none is no cap.
    pub leaf_memory: Option<u64>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            max_duration: Duration::from_secs(4 * 60 * 60),
            max_leaf_calls: None,
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
