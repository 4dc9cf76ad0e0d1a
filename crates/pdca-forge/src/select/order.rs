//! The character of a batch: the order it takes records in, and the work it makes.

use std::cmp::{Ordering, Reverse};

use jiff::civil::Date;
use serde::Serialize;

use crate::select::date::age;
use crate::select::labels::rank;
use crate::select::pool::{IssueRecord, Pool};

/// The character of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Character {
    /// The gravest first, and of those what was touched last.
    Fix,
    /// The oldest first.
    Hygiene,
}

/// The facts about chosen records that tell what work they make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outlook {
    pub chosen: u64,
    /// Those of a grave severity.
    pub grave: u64,
    /// Those older than a year: the issue may be gone.
    pub old: u64,
    /// Those whose age is unknown.
    pub undated: u64,
}

impl Pool {
    /// Returns the records that are not dropped, in the order of the character; without one in that of the export.
    pub fn order(&self, character: Option<Character>) -> Vec<&IssueRecord> {
        let mut records: Vec<&IssueRecord> =
            self.records.iter().filter(|record| self.bucket_of(record).dropped.is_none()).collect();
        let rank = |record: &IssueRecord| rank(&record.severity, &self.severities);
        match character {
            None => {}
            Some(Character::Fix) => records.sort_by(|one, two| {
                let key = |record: &IssueRecord| {
                    // Reversed, a record without a date comes last.
                    (rank(record), Reverse(record.updated.or(record.created)))
                };
                key(one).cmp(&key(two)).then_with(|| by_id(one, two))
            }),
            Some(Character::Hygiene) => records.sort_by(|one, two| {
                let key = |record: &IssueRecord| {
                    let since = record.created.or(record.updated);
                    (since.is_none(), since, Reverse(rank(record)))
                };
                key(one).cmp(&key(two)).then_with(|| by_id(one, two))
            }),
        }
        records
    }

    /// Counts what the chosen records promise.
    pub fn outlook(&self, chosen: &[&IssueRecord], today: Date) -> Outlook {
        let count = |is: &dyn Fn(&IssueRecord) -> bool| {
            u64::try_from(chosen.iter().filter(|record| is(record)).count()).unwrap_or(u64::MAX)
        };
        Outlook {
            chosen: count(&|_| true),
            grave: count(&|record| rank(&record.severity, &self.severities) < 2),
            old: count(&|record| age(record.created, today).is_some_and(|days| days > 365)),
            undated: count(&|record| record.created.is_none()),
        }
    }
}

/// Orders ids as people count: 9 before 10, PROJ-9 before PROJ-10.
fn by_id(one: &IssueRecord, two: &IssueRecord) -> Ordering {
    fn key(record: &IssueRecord) -> (&str, u64, &str) {
        let id = record.id.as_str();
        let name = id.trim_end_matches(|c: char| c.is_ascii_digit());
        (name, id[name.len()..].parse().unwrap_or(u64::MAX), id)
    }
    key(one).cmp(&key(two))
}
