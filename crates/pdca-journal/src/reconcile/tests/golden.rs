//! The whole table, printed, so that a changed decision shows in review.
//!
//! A row stands for all tuples with one of the values of each column; together the rows of a bundle
//! phase cover every tuple once.

use std::fmt::{Debug, Write as _};

use super::*;

/// The decisions about one bundle phase in one run phase, for everything that can be found.
fn decisions(run: RunPhase, bundle: BundlePhase) -> Vec<RecoveryAction> {
    RecoveryFacts::found(run, bundle).map(decide).collect()
}

/// The values that lead to the same, in groups.
fn groups<T: Copy, K: PartialEq>(values: &[T], key: impl Fn(T) -> K) -> Vec<(Vec<T>, K)> {
    let mut groups: Vec<(Vec<T>, K)> = Vec::new();
    for value in values {
        let key = key(*value);
        match groups.iter_mut().find(|(_, other)| *other == key) {
            Some((group, _)) => group.push(*value),
            None => groups.push((vec![*value], key)),
        }
    }
    groups
}

/// The group as a cell: `*` where it is all there is.
fn cell<T: Debug>(group: &[T], of: usize) -> String {
    if group.len() == of {
        return "*".to_owned();
    }
    group.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join("|")
}

fn table() -> String {
    let mut out = String::from("# runner ; checkout ; branch -> action\n");
    let mut tuples = 0;
    for bundle in BundlePhase::ALL {
        for (runs, _) in groups(&RunPhase::ALL, |run| decisions(run, bundle)) {
            writeln!(out, "\n[{bundle:?}] in {}", cell(&runs, RunPhase::ALL.len())).unwrap();
            tuples += runs.len() * rows(runs[0], bundle, &mut out);
        }
    }
    assert_eq!(tuples, 1440);
    out
}

/// Prints the rows of a run and bundle phase; gives back for how many tuples they stand.
fn rows(run: RunPhase, bundle: BundlePhase, out: &mut String) -> usize {
    let decide =
        |runner, checkout, branch| decide(RecoveryFacts { run, bundle, checkout, branch, runner });
    let by_branch = |r, c| BRANCHES.map(|b| decide(r, c, b));
    let by_checkout = |r| CHECKOUTS.map(|c| by_branch(r, c));
    let mut tuples = 0;
    for (runners, _) in groups(&RUNNERS, by_checkout) {
        for (checkouts, _) in groups(&CHECKOUTS, |c| by_branch(runners[0], c)) {
            for (branches, action) in groups(&BRANCHES, |b| decide(runners[0], checkouts[0], b)) {
                tuples += runners.len() * checkouts.len() * branches.len();
                let cells = [
                    cell(&runners, RUNNERS.len()),
                    cell(&checkouts, CHECKOUTS.len()),
                    cell(&branches, BRANCHES.len()),
                ];
                writeln!(out, "  {} -> {action:?}", cells.join(" ; ")).unwrap();
            }
        }
    }
    tuples
}

/// The table as it was reviewed.
const REVIEWED: &str = include_str!("../../../tests/reconcile.txt");

#[test]
fn the_whole_table_is_the_one_that_was_reviewed() {
    let table = table();
    if table != REVIEWED {
        let new = std::env::temp_dir().join("reconcile.txt");
        fs_err::write(&new, &table).unwrap();
        let differs = |(old, new): &(&str, &str)| old != new;
        let first = REVIEWED.lines().zip(table.lines()).find(differs);
        panic!(
            "the decisions differ from tests/reconcile.txt, first in {first:?}; the new table is in {}",
            new.display()
        );
    }
}
