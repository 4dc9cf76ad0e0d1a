//! The environment of one of several lanes: its slot and the names that are private to it.

use std::collections::BTreeMap;

use camino::Utf8Path;
use pdca_gates::LaneNames;
use pdca_lanes::PrivateNames;

/// The slot and private names of one of several lanes. A workspace with one lane has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneEnv {
    /// The slot, from 0.
    pub slot: u32,
    /// The names as gates are told them.
    pub(crate) names: LaneNames,
    /// The same as variables, for leaves.
    pub(crate) variables: BTreeMap<String, String>,
}

impl LaneEnv {
    /// Returns the environment of a slot that has no claimed checkout yet.
    pub fn new(slot: u32) -> Self {
        let names = LaneNames { slot, ..LaneNames::default() };
        let variables = BTreeMap::from([("PDCA_LANE".to_owned(), slot.to_string())]);
        Self { slot, names, variables }
    }

    /// Returns the environment of a claimed checkout.
    pub(crate) fn named(names: &PrivateNames) -> Self {
        Self {
            slot: names.slot(),
            names: LaneNames {
                slot: names.slot(),
                port_base: names.port_base(),
                test_db_name: Some(names.database()),
                compose_project: Some(names.compose_project()),
                tmp: Some(names.tmp().to_owned()),
            },
            variables: names.env().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }

    /// Returns the same names under the number of another slot.
    pub(crate) fn numbered(mut self, slot: u32) -> Self {
        self.variables.insert("PDCA_LANE".to_owned(), slot.to_string());
        self.names.slot = slot;
        Self { slot, ..self }
    }

    pub(crate) fn tmp(&self) -> Option<&Utf8Path> {
        self.names.tmp.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_without_a_checkout_has_its_number_and_no_other_name() {
        let env = LaneEnv::new(3);
        assert_eq!((env.slot, env.names.slot, env.tmp()), (3, 3, None));
        let variables: Vec<_> = env.variables.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(variables, ["PDCA_LANE=3"]);
    }
}
