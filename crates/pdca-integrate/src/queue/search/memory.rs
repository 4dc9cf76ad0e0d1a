//! Remembered culprits, under names that outlive a search.
//!
//! The caller stores a [`CulpritMemory`]. A remembered culprit with all of its partners below it is held again without
//! a gate run. Once its own name, that of a partner or the gates change, it is searched for like any other
//! change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::decision::CulpritEffect;

/// A culprit and the smallest set with which it is red, by place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprit {
    pub place: usize,
    /// The places of its partners, sorted.
    pub partners: Vec<usize>,
    /// The places that could not be left out and are not to blame, sorted.
    pub context: Vec<usize>,
    pub fault: CulpritEffect,
    /// The rows that fail or come to no verdict.
    pub rows: Vec<String>,
}

/// A culprit under permanent names, such as the digests of seals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The name of the culprit.
    pub held: String,
    pub partners: Vec<String>,
    /// The names of the changes that could not be left out and are not to blame.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    pub fault: CulpritEffect,
    /// The rows that fail or come to no verdict.
    pub rows: Vec<String>,
    /// The tree of the smallest set, which reproduces the fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The identity of the gates that ran.
    pub gates: String,
}

/// All remembered culprits, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CulpritMemory {
    known: BTreeMap<String, Known>,
}

impl CulpritMemory {
    /// Returns what is known about the changes with these names, by these gates. A culprit of which a
    /// partner is missing is not known any more.
    pub fn recall(&self, names: &[String], gates: &str) -> Vec<Culprit> {
        let place = |name: &String| names.iter().position(|other| other == name);
        let recall = |(at, name): (usize, &String)| {
            let known = self.known.get(name).filter(|known| known.gates == gates)?;
            let mut partners = known.partners.iter().map(place).collect::<Option<Vec<usize>>>()?;
            partners.sort_unstable();
            // Context only informs, so one that is gone is left out.
            let mut context: Vec<usize> = known.context.iter().filter_map(place).collect();
            context.sort_unstable();
            let (fault, rows) = (known.fault, known.rows.clone());
            Some(Culprit { place: at, partners, context, fault, rows })
        };
        names.iter().enumerate().filter_map(recall).collect()
    }

    /// Remembers a culprit, replacing what was known about it.
    pub fn learn(&mut self, known: Known) {
        self.known.insert(known.held.clone(), known);
    }

    /// Returns the entry of a change.
    pub fn of(&self, name: &str) -> Option<&Known> {
        self.known.get(name)
    }
}

impl Known {
    /// Translates the places of a culprit into names.
    ///
    /// # Panics
    ///
    /// If a place has no name.
    pub fn new(culprit: &Culprit, names: &[String], gates: &str, tree: Option<String>) -> Self {
        Self {
            held: names[culprit.place].clone(),
            partners: culprit.partners.iter().map(|place| names[*place].clone()).collect(),
            context: culprit.context.iter().map(|place| names[*place].clone()).collect(),
            fault: culprit.fault,
            rows: culprit.rows.clone(),
            tree,
            gates: gates.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_pair_is_recalled_wherever_its_members_are_now() {
        let culprit = Culprit {
            place: 2,
            partners: vec![0],
            context: vec![1],
            fault: CulpritEffect::Red,
            rows: names("T1"),
        };
        let mut memory = CulpritMemory::default();
        memory.learn(Known::new(&culprit, &names("a b c"), "g", None));
        let found = memory.recall(&names("x a y c"), "g");
        assert_eq!(
            found,
            [Culprit { place: 3, partners: vec![1], context: Vec::new(), ..culprit }]
        );
        let text = serde_json::to_string(&memory).unwrap();
        assert_eq!(serde_json::from_str::<CulpritMemory>(&text).unwrap(), memory);
    }

    #[test]
    fn nothing_is_recalled_once_a_member_or_the_gates_changed() {
        let culprit = Culprit {
            place: 1,
            partners: vec![0],
            context: Vec::new(),
            fault: CulpritEffect::Red,
            rows: Vec::new(),
        };
        let mut memory = CulpritMemory::default();
        memory.learn(Known::new(&culprit, &names("a b"), "g", None));
        for (now, gates) in [("a B", "g"), ("A b", "g"), ("b", "g"), ("a b", "other")] {
            assert_eq!(memory.recall(&names(now), gates), [], "{now} {gates}");
        }
    }
}
