//! The profile of a pool: what there is, before anything is chosen.

use std::collections::HashMap;

use jiff::civil::Date;
use serde::Serialize;

use crate::select::date::age;
use crate::select::pool::{IssueRecord, Pool};

/// Counts over all records of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    pub status: Vec<ValueCount>,
    pub severity: Vec<ValueCount>,
    pub component: Vec<ValueCount>,
    /// By the day of creation, one count per band.
    pub age: Vec<AgeCount>,
}

/// A value and the number of records that have it; the value is empty where they have none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValueCount {
    pub value: String,
    pub count: u64,
}

/// A band of ages and the number of records in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgeCount {
    pub value: AgeBand,
    pub count: u64,
}

/// A band of ages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AgeBand {
    #[serde(rename = "up to a week")]
    Week,
    #[serde(rename = "up to a month")]
    Month,
    #[serde(rename = "up to 3 months")]
    Quarter,
    #[serde(rename = "up to a year")]
    Year,
    #[serde(rename = "up to 2 years")]
    TwoYears,
    Older,
    /// There is no date, or one that cannot be read.
    Unknown,
}

impl AgeBand {
    pub const ALL: [AgeBand; 7] = [
        Self::Week,
        Self::Month,
        Self::Quarter,
        Self::Year,
        Self::TwoYears,
        Self::Older,
        Self::Unknown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Week => "up to a week",
            Self::Month => "up to a month",
            Self::Quarter => "up to 3 months",
            Self::Year => "up to a year",
            Self::TwoYears => "up to 2 years",
            Self::Older => "older",
            Self::Unknown => "unknown",
        }
    }

    fn of(days: Option<i64>) -> Self {
        match days {
            None => Self::Unknown,
            Some(..=7) => Self::Week,
            Some(..=31) => Self::Month,
            Some(..=92) => Self::Quarter,
            Some(..=365) => Self::Year,
            Some(..=730) => Self::TwoYears,
            Some(_) => Self::Older,
        }
    }
}

impl Pool {
    /// Counts the records by status, severity, component and age.
    pub fn profile(&self, today: Date) -> Profile {
        let mut ages = [0; AgeBand::ALL.len()];
        for record in &self.records {
            let band = AgeBand::of(age(record.created, today));
            if let Some(at) = AgeBand::ALL.iter().position(|one| *one == band) {
                ages[at] += 1;
            }
        }
        Profile {
            status: counts(&self.records, |record| &record.status),
            severity: counts(&self.records, |record| &record.severity),
            component: counts(&self.records, |record| &record.component),
            age: AgeBand::ALL
                .into_iter()
                .zip(ages)
                .map(|(value, count)| AgeCount { value, count })
                .collect(),
        }
    }
}

/// Counts values, the most frequent first.
fn counts(records: &[IssueRecord], of: impl Fn(&IssueRecord) -> &str) -> Vec<ValueCount> {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for record in records {
        *counts.entry(of(record)).or_default() += 1;
    }
    let mut counts: Vec<ValueCount> = counts
        .into_iter()
        .map(|(value, count)| ValueCount { value: value.to_owned(), count })
        .collect();
    counts.sort_by(|one, two| two.count.cmp(&one.count).then_with(|| one.value.cmp(&two.value)));
    counts
}
