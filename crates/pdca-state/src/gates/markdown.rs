//! Renders the gate report as a Markdown table.

use std::fmt::Write as _;

use super::{GateReport, GateRow};
use crate::lines::folded;

pub(super) fn render(report: &GateReport) -> String {
    let mut out =
        format!("# Gates — {}\n\nOverall: **{}**\n", folded(&report.issue_dir), report.overall);
    for (name, value) in [("Patch", &report.patch_digest), ("Base", &report.base)] {
        if let Some(value) = value {
            line(&mut out, format_args!("{name}: `{}`", folded(value)));
        }
    }
    out.push_str("\n| Check | Result | Gating | Evidence | Time |\n|---|---|---|---|---|\n");
    for row in &report.rows {
        line(
            &mut out,
            format_args!(
                "| {} | {} | {} | {} | {} |",
                cell(&row.check),
                result(row),
                if row.gating { "yes" } else { "no" },
                cell(row.reason()),
                row.duration_ms.map(|ms| format!("{ms} ms")).unwrap_or_default(),
            ),
        );
    }
    for row in &report.rows {
        if let Some(log) = &row.log {
            line(&mut out, format_args!("\n- {}: `{}`", cell(&row.check), folded(log)));
        }
        if let Some(failing) = row.failing_tests() {
            line(&mut out, format_args!("\n- {}, failing: {}", cell(&row.check), cell(&failing)));
        }
        if let Some(command) = &row.reproduce {
            line(&mut out, format_args!("\n- {}, again: `{}`", cell(&row.check), folded(command)));
        }
    }
    out
}

fn result(row: &GateRow) -> String {
    let mut shown = row.result.as_str().to_owned();
    for (is_set, word) in [(row.flaky, "flaky"), (row.fixed, "fixed")] {
        if is_set {
            shown.push_str(", ");
            shown.push_str(word);
        }
    }
    if let Some(note) = &row.note {
        shown.push_str(", ");
        shown.push_str(&cell(note));
    }
    shown
}

fn cell(text: &str) -> String {
    folded(text).replace('|', "\\|")
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("writing to a string cannot fail");
}
