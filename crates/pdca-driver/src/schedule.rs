//! `[schedule]`: how declarations become a plan, and what is made of a change that leaves them.

use pdca_dag::foundation::Speculation;
use pdca_dag::{Awaits, Untouched};
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
    /// How far what a bundle depends on must be before it may start.
    pub dependants: Dependants,
    /// How far the result of a bundle must be before those that it conflicts or overlaps with may start.
    pub rivals: Rivals,
}

/// When what depends on a bundle may start. `Depends on (merged)` always waits for the landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dependants {
    /// When it is signed off.
    #[default]
    Accepted,
    /// When it is in the target branch.
    Landed,
    /// When it is green and waits for its sign-off.
    Built,
}

/// When a bundle that conflicts or overlaps with one that was built may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rivals {
    /// When the other is no longer in flight.
    #[default]
    Built,
    /// When the result of the other is signed off, sent back or given up.
    Accepted,
    /// When the result of the other is in the target branch, sent back or given up.
    Landed,
}

impl From<Dependants> for Awaits {
    fn from(dependants: Dependants) -> Self {
        match dependants {
            Dependants::Built => Awaits::Built,
            Dependants::Accepted => Awaits::Accepted,
            Dependants::Landed => Awaits::Landed,
        }
    }
}

impl From<Rivals> for Awaits {
    fn from(rivals: Rivals) -> Self {
        match rivals {
            Rivals::Built => Awaits::Built,
            Rivals::Accepted => Awaits::Accepted,
            Rivals::Landed => Awaits::Landed,
        }
    }
}

impl Schedule {
    /// Which results may be stood on before a person accepted them.
    pub(crate) fn speculation(self) -> Speculation {
        Speculation {
            on_prerequisites: self.dependants == Dependants::Built,
            on_rivals: self.rivals == Rivals::Built,
        }
    }
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
