//! `[schedule]`: from declarations to a plan, and the treatment of undeclared changes.

use pdca_dag::foundation::Speculation;
use pdca_dag::{Awaits, Untouched};
use serde::{Deserialize, Serialize};

/// The `[schedule]` table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// The claim of a bundle without `Touches`: `free` claims nothing, `exclusive` the whole tree.
    pub untouched: Untouched,
    /// The treatment of a change outside its declared `Touches`.
    pub drift: DriftPolicy,
    /// The source of estimated durations, which decide the order.
    pub durations: Durations,
    /// The state that a dependency must reach before a dependant may start.
    pub dependants: Dependants,
    /// The state that a result must reach before bundles that conflict or overlap with it may start.
    pub rivals: RivalsPolicy,
    /// Puts a dependant into the group of its prerequisite, so that one lane builds both.
    pub join_dependencies: bool,
    /// The effect of equal words in `Surfaces` on the groups.
    pub surfaces: SurfacesPolicy,
    /// Whether drivers start anything without `lanes.json`.
    pub lanes_json: LanesJson,
    /// The bundles that wait while one is blocked.
    pub blocked: BlockedPolicy,
    /// Whether a driver splits a bundle of which some parts can be started and others wait for bundles.
    pub split: SplitPolicy,
}

/// Whether a driver splits a bundle of which some parts can be started and others wait for bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitPolicy {
    /// It does, before it starts anything.
    #[default]
    Auto,
    /// Only `pdca split` does; to drivers, parts mean nothing.
    Never,
}

/// The effect of equal words in `Surfaces` on the groups of `lanes.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SurfacesPolicy {
    /// None.
    #[default]
    Ignore,
    /// Bundles with a common surface are in one group.
    Join,
}

/// Whether drivers start anything without `lanes.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LanesJson {
    /// They follow it if it is there.
    #[default]
    Optional,
    /// They refuse to start without it.
    Required,
}

/// The bundles that wait while one is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockedPolicy {
    /// The blocked one.
    #[default]
    Bundle,
    /// All: no run starts before the block is lifted.
    All,
}

/// The condition under which a dependant may start. `Depends on (merged)` always waits for the landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dependants {
    /// The dependency is signed off.
    #[default]
    Accepted,
    /// The dependency is in the target branch.
    Landed,
    /// The dependency is green and waits for its sign-off.
    Built,
}

/// The condition under which a bundle that conflicts or overlaps with another may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RivalsPolicy {
    /// The other is no longer in flight.
    #[default]
    Built,
    /// The result of the other is signed off, sent back or discontinued.
    Accepted,
    /// The result of the other is in the target branch, sent back or discontinued.
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

impl From<RivalsPolicy> for Awaits {
    fn from(rivals: RivalsPolicy) -> Self {
        match rivals {
            RivalsPolicy::Built => Awaits::Built,
            RivalsPolicy::Accepted => Awaits::Accepted,
            RivalsPolicy::Landed => Awaits::Landed,
        }
    }
}

impl Schedule {
    /// Returns which results may be stood on before a person accepted them.
    pub(crate) fn speculation(self) -> Speculation {
        Speculation {
            on_prerequisites: self.dependants == Dependants::Built,
            on_rivals: self.rivals == RivalsPolicy::Built,
        }
    }
}

/// The treatment of a change that writes undeclared paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftPolicy {
    /// Adds a row to the report that does not block.
    #[default]
    Warn,
    /// Adds a row to the report that blocks.
    Fail,
    /// Adds no row.
    Off,
}

/// The source of estimated durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durations {
    /// All bundles take equally long.
    #[default]
    Unit,
    /// The duration of the last attempt; without one, the `Difficulty` of the brief; if
    /// that is no duration, the usual duration of the others.
    History,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_stood_on_before_its_acceptance_only_where_built_is_enough() {
        let of = |dependants, rivals| {
            let Speculation { on_prerequisites, on_rivals } =
                Schedule { dependants, rivals, ..Schedule::default() }.speculation();
            (on_prerequisites, on_rivals)
        };
        assert_eq!(of(Dependants::Built, RivalsPolicy::Built), (true, true));
        assert_eq!(of(Dependants::Accepted, RivalsPolicy::Built), (false, true));
        assert_eq!(of(Dependants::Landed, RivalsPolicy::Accepted), (false, false));
        assert_eq!(of(Dependants::Built, RivalsPolicy::Landed), (true, false));
    }
}
