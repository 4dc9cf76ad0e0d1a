//! Files of older instances: what each of their keys means here.
//!
//! 1. [`edits`] reads a file and lists what has to change: a key that has a counterpart, one that is dropped, one that
//!    cannot be used. It decides everything.
//! 2. [`Translation`] carries the list out on the parsed file, for `--compat`; [`crate::config::migrate`] carries the same
//!    list out on the text. So a file means the same read with `--compat` and migrated.
//!
//! A key of `[gates]` that is in neither list is an error and never a warning: a row that gates must not be lost.

mod driver;
mod edit;
mod gates;
mod leaves;
mod publish;

use std::ops::Range;

use toml::Table;
use toml::de::DeTable;

pub(crate) use edit::{Edit, KeyFate, KeyPath, Numbers, PathStep, path_of, span_at, text_of};

use crate::config::problem::Problem;

/// Lists the changes that make a file of an older instance one of ours.
pub(crate) fn edits(file: &Table) -> Vec<Edit> {
    let mut edits = Vec::new();
    driver::list(file, &mut edits);
    publish::list(file, &mut edits);
    let mut rows = Vec::new();
    gates::list(file, &mut rows);
    // Each edit so far is about a key that a file of ours does not have, but for the directory that its
    // rows get silently. The leaves of a file of ours must not be touched.
    let is_older = !edits.is_empty() || rows.iter().any(|edit| edit.fate != KeyFate::Silent);
    leaves::list(file, is_older, &mut edits);
    edits.extend(rows);
    edits
}

/// An older file that is read as one of ours.
#[derive(Debug, Default)]
pub(super) struct Translation {
    edits: Vec<Edit>,
    numbers: Numbers,
}

impl Translation {
    /// Decides what becomes of the keys of a file. One that is no TOML has errors of its own, and nothing is decided.
    pub(super) fn of(text: &str) -> Self {
        let edits = text.parse::<Table>().map(|file| edits(&file)).unwrap_or_default();
        Self { numbers: Numbers::of(&edits), edits }
    }

    /// Translates a parsed file in place. Calls `refuse` for each key that cannot be used.
    pub(super) fn apply<'a>(
        &'a self,
        root: &mut DeTable<'a>,
        refuse: &mut dyn FnMut(Problem, Range<usize>),
    ) {
        for edit in &self.edits {
            if let KeyFate::Refused { what, hint } = &edit.fate {
                let problem = Problem::new(what.clone()).hint(hint.clone());
                refuse(problem, span_at(root, &edit.at));
            }
        }
        edit::apply(root, &self.edits, &self.numbers);
    }

    /// Returns one sentence about all changes: a warning for each would bury everything else.
    pub(super) fn summary(&self) -> Option<String> {
        let count =
            |of: fn(&KeyFate) -> bool| self.edits.iter().filter(|edit| of(&edit.fate)).count();
        let mapped = count(|fate| matches!(fate, KeyFate::Becomes(_)));
        let dropped = count(|fate| matches!(fate, KeyFate::Dropped(_)));
        let looked = count(|fate| matches!(fate, KeyFate::Noted(_)));
        let parts = [(mapped, "read as other keys"), (dropped, "not used"), (looked, "to look at")];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{number} {what}"))
            .collect();
        (!parts.is_empty()).then(|| {
            let parts = parts.join(", ");
            format!(
                "keys of an older instance: {parts}; `pdca config migrate --dry-run` lists them"
            )
        })
    }
}

#[cfg(test)]
mod tests;
