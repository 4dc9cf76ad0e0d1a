//! The fields of a record, and the columns that hold them in the exports of usual trackers.

use std::fmt;

use serde::Serialize;

/// A field that selection knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum IssueField {
    Id,
    Title,
    Status,
    /// Bug, task, feature.
    Kind,
    Severity,
    Component,
    Labels,
    Created,
    Updated,
    Description,
}

impl IssueField {
    /// Every field, in the order of a row.
    pub const ALL: [IssueField; 10] = [
        Self::Id,
        Self::Title,
        Self::Status,
        Self::Kind,
        Self::Severity,
        Self::Component,
        Self::Labels,
        Self::Created,
        Self::Updated,
        Self::Description,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Title => "title",
            Self::Status => "status",
            Self::Kind => "kind",
            Self::Severity => "severity",
            Self::Component => "component",
            Self::Labels => "labels",
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Description => "description",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.as_str().eq_ignore_ascii_case(name))
    }

    /// Returns true for a field without which a record is none.
    pub(crate) fn is_required(self) -> bool {
        matches!(self, Self::Id | Self::Title)
    }

    /// Returns true for a field of which an export may have several columns, as Jira does.
    fn is_list(self) -> bool {
        matches!(self, Self::Component | Self::Labels)
    }

    /// The [plain](plain) names of its columns, the most specific first: Jira, GitHub, GitLab, Mantis, Bugzilla, Redmine.
    fn spellings(self) -> &'static [&'static str] {
        match self {
            Self::Id => &[
                "issuekey", "bugid", "issueid", "iid", "number", "ticketid", "key", "id", "#",
                "ticket", "issue", "bug",
            ],
            Self::Title => {
                &["summary", "title", "subject", "shortdesc", "shortdescription", "name"]
            }
            Self::Status => &["status", "state", "bugstatus", "issuestatus"],
            Self::Kind => &["issuetype", "type", "tracker", "worktype", "kind", "bugtype"],
            Self::Severity => &["severity", "bugseverity", "priority", "importance"],
            Self::Component => &[
                "component",
                "components",
                "components",
                "category",
                "area",
                "module",
                "subsystem",
                "product",
            ],
            Self::Labels => &["labels", "label", "tags", "keywords"],
            Self::Created => &[
                "created",
                "createdat",
                "createdatutc",
                "datesubmitted",
                "opened",
                "creationdate",
                "creationtime",
                "creationts",
                "datecreated",
                "createddate",
                "reported",
                "opendate",
                "submitted",
            ],
            Self::Updated => &[
                "updated",
                "updatedat",
                "updatedatutc",
                "changed",
                "lastupdated",
                "lastupdate",
                "lastmodified",
                "modified",
                "changeddate",
                "lastchange",
                "deltats",
                "updateddate",
            ],
            Self::Description => &["description", "body", "text", "details"],
        }
    }
}

impl fmt::Display for IssueField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns a column's name as it is compared: lowercase letters, digits and `#`.
pub(crate) fn plain(name: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || *c == '#';
    name.chars().filter(kept).flat_map(char::to_lowercase).collect()
}

/// Returns the columns of a field. `names` are those of the export, made [plain].
pub(crate) fn columns(field: IssueField, names: &[String], configured: Option<&str>) -> Vec<usize> {
    let all = |wanted: &str| -> Vec<usize> {
        let found = names.iter().enumerate().filter(|(_, name)| *name == wanted);
        let found = found.map(|(index, _)| index);
        if field.is_list() { found.collect() } else { found.take(1).collect() }
    };
    match configured {
        Some(name) => all(&plain(name)),
        None => field
            .spellings()
            .iter()
            .map(|name| all(name))
            .find(|found| !found.is_empty())
            .unwrap_or_default(),
    }
}

/// Returns the name of the export that is nearest to that of a field, if one is near.
pub(crate) fn nearest<'n>(
    field: IssueField,
    there: &'n [String],
    configured: Option<&str>,
) -> Option<&'n str> {
    let wanted: Vec<String> = match configured {
        Some(name) => vec![plain(name)],
        None => field.spellings().iter().map(|name| (*name).to_owned()).collect(),
    };
    let distance = |name: &String| {
        let name = plain(name);
        wanted.iter().map(|wanted| (strsim::osa_distance(wanted, &name), wanted.len())).min()
    };
    let near = there.iter().filter_map(|name| Some((distance(name)?, name)));
    let near = near.filter(|((distance, length), _)| *distance * 3 <= *length);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(field: IssueField, header: &str) -> Vec<usize> {
        columns(field, &header.split(',').map(plain).collect::<Vec<_>>(), None)
    }

    #[test]
    fn the_columns_of_known_trackers_are_found() {
        let jira = "Summary,Issue key,Issue id,Issue Type,Status,Priority,Created,Updated,Component/s,Component/s,Labels,Labels";
        assert_eq!(found(IssueField::Id, jira), [1]);
        assert_eq!(found(IssueField::Component, jira), [8, 9]);
        let gitlab =
            "Title,Description,Issue ID,URL,State,Author,Created At (UTC),Updated At (UTC),Labels";
        assert_eq!(
            (found(IssueField::Id, gitlab), found(IssueField::Created, gitlab)),
            (vec![2], vec![6])
        );
        let mantis =
            "Id,Project,Reporter,Priority,Severity,Category,Date Submitted,Updated,Summary,Status";
        assert_eq!(
            (found(IssueField::Severity, mantis), found(IssueField::Component, mantis)),
            (vec![4], vec![5])
        );
        let bugzilla = "\"Bug ID\",Product,Component,Assignee,Status,Resolution,Summary,Changed";
        assert_eq!(
            (found(IssueField::Id, bugzilla), found(IssueField::Updated, bugzilla)),
            (vec![0], vec![7])
        );
        let redmine = "#,Project,Tracker,Status,Priority,Subject,Updated";
        assert_eq!(
            (found(IssueField::Id, redmine), found(IssueField::Kind, redmine)),
            (vec![0], vec![2])
        );
        let github = "number,title,state,labels,createdAt,updatedAt";
        assert_eq!(
            (found(IssueField::Id, github), found(IssueField::Created, github)),
            (vec![0], vec![4])
        );
    }

    #[test]
    fn a_misspelt_column_is_recognized_as_near() {
        let there = ["Isue key".to_owned(), "Owner".to_owned()];
        assert_eq!(nearest(IssueField::Id, &there, None), Some("Isue key"));
        assert_eq!(nearest(IssueField::Title, &there, None), None);
        assert_eq!(nearest(IssueField::Title, &there, Some("owners")), Some("Owner"));
    }
}
