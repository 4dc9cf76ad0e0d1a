//! `[select]` of `pdca.toml`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::select::bucket::{AgeLimit, Matcher};
use crate::select::date::DateOrder;
use crate::select::field::IssueField;

/// Selection of issues from a tracker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectSettings {
    /// An `sh -c` command that prints the issues as JSON, one object per line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cmd: Option<String>,
    /// The time limit of `cmd`, in seconds.
    pub timeout_secs: u64,
    /// The names of the columns, where they are not the usual ones.
    #[serde(skip_serializing_if = "Columns::is_empty")]
    pub columns: Columns,
    /// The order of day and month in dates such as `03/04/2026`; without it such a date counts as unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dates: Option<DateOrder>,
    /// The severities, the gravest first, where they are not the usual words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub severities: Vec<String>,
    /// The buckets; the first that matches a record gets it.
    #[serde(rename = "bucket", skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<BucketSettings>,
}

impl Default for SelectSettings {
    fn default() -> Self {
        Self {
            cmd: None,
            timeout_secs: 300,
            columns: Columns::default(),
            dates: None,
            severities: Vec::new(),
            buckets: Vec::new(),
        }
    }
}

/// `[select] columns`: the column of each field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Columns {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Columns {
    fn is_empty(&self) -> bool {
        IssueField::ALL.iter().all(|field| self.of(*field).is_none())
    }

    pub(crate) fn of(&self, field: IssueField) -> Option<&str> {
        let name = match field {
            IssueField::Id => &self.id,
            IssueField::Title => &self.title,
            IssueField::Status => &self.status,
            IssueField::Kind => &self.kind,
            IssueField::Severity => &self.severity,
            IssueField::Component => &self.component,
            IssueField::Labels => &self.labels,
            IssueField::Created => &self.created,
            IssueField::Updated => &self.updated,
            IssueField::Description => &self.description,
        };
        name.as_deref()
    }
}

/// `[[select.bucket]]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketSettings {
    pub name: String,
    /// The conditions by field, all of which must hold; without any the bucket takes what is left.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Condition>,
    /// The reason why its records are dropped; without it they become drafts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<String>,
    /// The outcome that is suggested to the person who triages, such as `likely-close`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disposition: Option<String>,
}

/// A condition on one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Condition {
    /// The value in any case; for `age` and `idle` a limit such as `> 90d`.
    Is(String),
    /// One of these values, in any case.
    AnyOf(Vec<String>),
    /// The value contains a match.
    Matches { regex: String },
}

/// An invalid value in `[select]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct SelectSettingsProblem {
    /// The path of the value below `select`, such as `bucket[1].when.age`.
    pub key: String,
    pub what: String,
    /// The remedy.
    pub hint: &'static str,
}

impl SelectSettings {
    /// Returns every problem of the settings.
    pub fn validate(&self) -> Vec<SelectSettingsProblem> {
        let mut problems = Vec::new();
        let mut say = |key: String, what: String, hint| {
            problems.push(SelectSettingsProblem { key, what, hint });
        };
        if self.timeout_secs == 0 {
            let what = "`timeout_secs` in [select] must be at least 1".to_owned();
            say("timeout_secs".to_owned(), what, "write a number of seconds, such as 300");
        }
        if self.cmd.as_deref().is_some_and(|cmd| cmd.trim().is_empty()) {
            let what = "`cmd` in [select] is empty".to_owned();
            say("cmd".to_owned(), what, "write a command, or remove the line");
        }
        let mut names = BTreeSet::new();
        let mut rest: Option<&str> = None;
        for (index, bucket) in self.buckets.iter().enumerate() {
            let at = |key: &str| format!("bucket[{index}].{key}");
            let name = bucket.name.trim();
            if name.is_empty() || name.chars().any(char::is_control) {
                let what = "`name` in [[select.bucket]] is empty or has a control character";
                say(at("name"), what.to_owned(), "write a word, such as `crashes`");
            } else if !names.insert(name.to_lowercase()) {
                let what = format!("bucket `{name}` is there twice");
                say(at("name"), what, "give each [[select.bucket]] its own name");
            }
            if let Some(rest) = rest {
                let what = format!("bucket `{name}` gets nothing: `{rest}` before it takes all");
                say(at("name"), what, "move the bucket without `when` to the end");
            } else if bucket.when.is_empty() {
                rest = Some(name);
            }
            if bucket.drop.as_deref().is_some_and(|reason| reason.trim().is_empty()) {
                let what = format!("bucket `{name}` drops its records without a reason");
                say(at("drop"), what, "write the reason: `drop = \"not a defect\"`");
            }
            for (key, condition) in &bucket.when {
                if let Err(why) = Matcher::parse(key, condition) {
                    let hint = if AgeLimit::is_key(key) {
                        "write a limit such as `> 90d`, `<= 2w` or `> 1y`"
                    } else {
                        "write a value, a list of values, or `{ regex = \"…\" }`"
                    };
                    say(at(&format!("when.{key}")), format!("bucket `{name}`: {why}"), hint);
                }
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(name: &str, when: &[(&str, Condition)]) -> BucketSettings {
        let when = when.iter().map(|(key, what)| ((*key).to_owned(), what.clone())).collect();
        BucketSettings { name: name.to_owned(), when, ..BucketSettings::default() }
    }

    #[test]
    fn everything_wrong_is_reported_at_once() {
        let settings = SelectSettings {
            cmd: Some(" ".to_owned()),
            timeout_secs: 0,
            buckets: vec![
                bucket("old", &[("age", Condition::Is("long".to_owned()))]),
                bucket("crash", &[("title", Condition::Matches { regex: "(".to_owned() })]),
                bucket("rest", &[]),
                BucketSettings { drop: Some(String::new()), ..bucket("OLD", &[]) },
            ],
            ..SelectSettings::default()
        };
        let said: Vec<String> = settings.validate().iter().map(|one| one.key.clone()).collect();
        assert_eq!(
            said,
            [
                "timeout_secs",
                "cmd",
                "bucket[0].when.age",
                "bucket[1].when.title",
                "bucket[3].name",
                "bucket[3].name",
                "bucket[3].drop",
            ]
        );
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(SelectSettings::default().validate(), []);
    }
}
