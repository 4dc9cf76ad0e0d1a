//! The groups, ids and durations of a report in words.

use pdca_workspace::batch_report::{ReportGroup, WorkspaceReport};

/// Returns the words that stand beside the symbol.
pub(super) fn words(group: ReportGroup) -> &'static str {
    match group {
        ReportGroup::Failed => "failed",
        ReportGroup::NeedsYou => "needs you",
        ReportGroup::AtWork => "at work",
        ReportGroup::Waiting => "waits",
        ReportGroup::Accepted => "accepted",
        ReportGroup::Closed => "closed",
    }
}

pub(super) fn symbol(group: ReportGroup) -> &'static str {
    match group {
        ReportGroup::Failed => "✗",
        ReportGroup::NeedsYou => "●",
        ReportGroup::AtWork => "▶",
        ReportGroup::Waiting => "○",
        ReportGroup::Accepted => "✓",
        ReportGroup::Closed => "–",
    }
}

/// Returns the name in identifiers of the page.
pub(super) fn class(group: ReportGroup) -> &'static str {
    match group {
        ReportGroup::Failed => "failed",
        ReportGroup::NeedsYou => "needs",
        ReportGroup::AtWork => "work",
        ReportGroup::Waiting => "waits",
        ReportGroup::Accepted => "accepted",
        ReportGroup::Closed => "closed",
    }
}

/// Returns the counts in words: `2 failed, 1 needs you`.
pub(super) fn counts(report: &WorkspaceReport) -> String {
    let words = ReportGroup::ALL.into_iter().filter_map(|group| match report.count(group) {
        0 => None,
        count => Some(format!("{count} {}", words(group))),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Shortens an object id for people.
pub(super) fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// Formats a duration.
pub(super) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds}.{} s", millis % 1000 / 100),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}
