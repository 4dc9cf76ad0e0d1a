//! Buckets: the first that matches a record gets it.

use std::collections::BTreeMap;

use regex_lite::Regex;
use serde::Serialize;

use crate::select::field::IssueField;
use crate::select::settings::{BucketSettings, Condition};

/// One bucket and the number of its records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BucketCount {
    pub name: String,
    pub count: u64,
    /// The reason why its records are dropped.
    pub dropped: Option<String>,
    /// The outcome that is suggested for its records.
    pub disposition: Option<String>,
}

/// A column that is no field, and the first bucket that looks at it.
pub(crate) type FurtherColumn = (String, String);

/// A bucket that is ready to match.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) dropped: Option<String>,
    pub(crate) disposition: Option<String>,
    conditions: Vec<(Key, Matcher)>,
}

/// The value that a condition is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    Field(IssueField),
    /// A further column, by its number among those that buckets name.
    Extra(usize),
    /// Days since it was created.
    Age,
    /// Days since it was updated.
    Idle,
}

/// The values of one record that conditions see.
pub(crate) struct Values<'r> {
    pub(crate) field: &'r dyn Fn(IssueField) -> &'r str,
    pub(crate) extra: &'r [String],
    pub(crate) age: Option<i64>,
    pub(crate) idle: Option<i64>,
}

#[derive(Debug, Clone)]
pub(crate) enum Matcher {
    AnyOf(Vec<String>),
    Regex(Regex),
    Age(AgeLimit),
}

/// A limit such as `> 90d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgeLimit {
    comparison: Comparison,
    days: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Over,
    AtLeast,
    Under,
    AtMost,
}

impl AgeLimit {
    pub(crate) fn is_key(key: &str) -> bool {
        key.eq_ignore_ascii_case("age") || key.eq_ignore_ascii_case("idle")
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let signs = [
            (">=", Comparison::AtLeast),
            ("<=", Comparison::AtMost),
            (">", Comparison::Over),
            ("<", Comparison::Under),
        ];
        let (comparison, rest) = signs
            .iter()
            .find_map(|(sign, comparison)| Some((*comparison, text.strip_prefix(sign)?)))?;
        let rest = rest.trim();
        let unit = rest.chars().last()?;
        let days = match unit {
            'd' => 1,
            'w' => 7,
            'm' => 30,
            'y' => 365,
            _ => return None,
        };
        let number: i64 = rest[..rest.len() - 1].trim().parse().ok()?;
        Some(Self { comparison, days: number.checked_mul(days).filter(|days| *days >= 0)? })
    }

    fn holds(self, days: i64) -> bool {
        match self.comparison {
            Comparison::Over => days > self.days,
            Comparison::AtLeast => days >= self.days,
            Comparison::Under => days < self.days,
            Comparison::AtMost => days <= self.days,
        }
    }
}

impl Matcher {
    /// Parses a condition; the error is a sentence about it.
    pub(crate) fn parse(key: &str, condition: &Condition) -> Result<Self, String> {
        match condition {
            Condition::Is(limit) if AgeLimit::is_key(key) => AgeLimit::parse(limit)
                .map(Self::Age)
                .ok_or_else(|| format!("`{limit}` is no limit for `{key}`")),
            Condition::AnyOf(_) | Condition::Matches { .. } if AgeLimit::is_key(key) => {
                Err(format!("`{key}` takes one limit"))
            }
            Condition::Is(value) => Ok(Self::AnyOf(vec![value.trim().to_lowercase()])),
            Condition::AnyOf(values) if values.is_empty() => {
                Err(format!("the list for `{key}` is empty, so nothing matches"))
            }
            Condition::AnyOf(values) => {
                Ok(Self::AnyOf(values.iter().map(|value| value.trim().to_lowercase()).collect()))
            }
            Condition::Matches { regex } => Regex::new(regex)
                .map(Self::Regex)
                .map_err(|error| format!("`{regex}` is no regular expression: {error}")),
        }
    }

    fn matches(&self, key: &Key, values: &Values<'_>) -> bool {
        let text = match key {
            Key::Age | Key::Idle => {
                let days = if *key == Key::Age { values.age } else { values.idle };
                let Self::Age(limit) = self else { return false };
                return days.is_some_and(|days| limit.holds(days));
            }
            Key::Field(field) => (values.field)(*field),
            Key::Extra(at) => values.extra.get(*at).map_or("", String::as_str),
        };
        match self {
            Self::Age(_) => false,
            Self::Regex(regex) => regex.is_match(text),
            Self::AnyOf(words) => {
                let text = text.trim().to_lowercase();
                // A list of labels or components matches by each of its parts.
                words.contains(&text)
                    || (text.contains(',')
                        && text.split(',').any(|part| words.iter().any(|word| word == part.trim())))
            }
        }
    }
}

impl Bucket {
    /// Prepares the configured buckets, or the usual ones if none is configured. Returns the further columns that they
    /// look at, each with the bucket that names it first.
    pub(crate) fn all(
        settings: &[BucketSettings],
    ) -> Result<(Vec<Self>, Vec<FurtherColumn>), String> {
        let usual = usual();
        let settings = if settings.is_empty() { &usual } else { settings };
        let mut extra: Vec<FurtherColumn> = Vec::new();
        let mut buckets = Vec::new();
        for one in settings {
            let mut conditions = Vec::new();
            for (name, condition) in &one.when {
                let matcher = Matcher::parse(name, condition)?;
                let key = match IssueField::named(name) {
                    Some(field) => Key::Field(field),
                    None if name.eq_ignore_ascii_case("age") => Key::Age,
                    None if name.eq_ignore_ascii_case("idle") => Key::Idle,
                    None => {
                        let known = extra.iter().position(|(known, _)| known == name);
                        Key::Extra(known.unwrap_or_else(|| {
                            extra.push((name.clone(), one.name.clone()));
                            extra.len() - 1
                        }))
                    }
                };
                conditions.push((key, matcher));
            }
            buckets.push(Self {
                name: one.name.trim().to_owned(),
                dropped: one.drop.clone(),
                disposition: one.disposition.clone(),
                conditions,
            });
        }
        Ok((buckets, extra))
    }

    pub(crate) fn takes(&self, values: &Values<'_>) -> bool {
        self.conditions.iter().all(|(key, matcher)| matcher.matches(key, values))
    }

    pub(crate) fn looks_at(&self, field: IssueField) -> bool {
        self.conditions.iter().any(|(key, _)| *key == Key::Field(field))
    }
}

/// The buckets of a workspace that configures none: what is closed and what is no defect is dropped.
fn usual() -> Vec<BucketSettings> {
    let words =
        |words: &[&str]| Condition::AnyOf(words.iter().map(|word| (*word).to_owned()).collect());
    let bucket = |name: &str, when: Option<(&str, Condition)>, drop: Option<&str>| BucketSettings {
        name: name.to_owned(),
        when: when
            .into_iter()
            .map(|(key, what)| (key.to_owned(), what))
            .collect::<BTreeMap<_, _>>(),
        drop: drop.map(str::to_owned),
        disposition: None,
    };
    let closed = words(&[
        "closed",
        "resolved",
        "done",
        "verified",
        "fixed",
        "released",
        "rejected",
        "cancelled",
        "canceled",
        "won't do",
        "wontfix",
        "duplicate",
        "invalid",
        "completed",
    ]);
    let no_defect = words(&[
        "feature",
        "feature request",
        "enhancement",
        "improvement",
        "new feature",
        "wishlist",
        "story",
        "epic",
        "task",
        "sub-task",
        "question",
        "support",
        "documentation",
        "discussion",
    ]);
    vec![
        bucket("closed", Some(("status", closed)), Some("closed in the tracker")),
        bucket("requests", Some(("kind", no_defect)), Some("not a defect")),
        bucket("open", None, None),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_age_are_read_with_their_units() {
        let holds = |limit: &str, days| AgeLimit::parse(limit).map(|limit| limit.holds(days));
        assert_eq!((holds("> 90d", 90), holds("> 90d", 91)), (Some(false), Some(true)));
        assert_eq!((holds(">=1y", 365), holds("< 2w", 14)), (Some(true), Some(false)));
        assert_eq!((holds("<= 3m", 90), holds("<= 3m", 91)), (Some(true), Some(false)));
        for text in ["", "90d", "> d", "> 90", "> -3d", "> 9é", "> 99999999999999999999y"] {
            assert_eq!(AgeLimit::parse(text), None, "{text}");
        }
    }
}
