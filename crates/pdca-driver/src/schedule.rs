//! `[schedule]`: how declarations become a plan, and what is made of a change that leaves them.

use pdca_dag::Untouched;
use serde::{Deserialize, Serialize};

/// What the config says about scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// What a bundle without `Touches` claims: `free` nothing, `exclusive` the whole tree.
    pub untouched: Untouched,
    /// What becomes of a change outside its declared `Touches`.
    pub drift: Drift,
    /// How long a bundle is taken to last when the order is decided.
    pub durations: Durations,
}

/// What becomes of a change that leaves what its brief declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drift {
    /// The report has a row about it that does not block.
    #[default]
    Warn,
    /// The report has a row about it that blocks.
    Fail,
    /// Nothing is said.
    Off,
}

/// How long a bundle is taken to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durations {
    /// Every bundle as long as any other.
    #[default]
    Unit,
    /// As long as its last attempt took here; where there was none, as its `Difficulty` says; where
    /// that is no duration, as long as the others usually take.
    History,
}
