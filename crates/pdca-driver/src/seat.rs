//! A place among several lanes: the slot, and the names that are private to it.

use std::collections::BTreeMap;

use pdca_gates::LaneNames;

/// What whoever works in one of several lanes goes by. With one lane there is none of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The slot, from 0.
    pub slot: u32,
    /// The names as gates are told them.
    pub(crate) names: LaneNames,
    /// The same as variables, for leaves.
    pub(crate) variables: BTreeMap<String, String>,
}

impl Seat {
    /// The seat of a slot.
    pub fn new(slot: u32) -> Self {
        let names = LaneNames { slot, port_base: None, test_db_name: None, tmp: None };
        let variables = BTreeMap::from([("PDCA_LANE".to_owned(), slot.to_string())]);
        Self { slot, names, variables }
    }
}
