//! The job summary in Markdown, and annotations beside the change: both in the dialect of GitHub Actions.

use std::fmt::Write as _;

use pdca_journal::events::set;
use pdca_state::Overall;

use crate::batch_report::words::{counts, short, symbol, words};
use pdca_workspace::batch_report::{BundlePage, ReportGroup, WorkspaceReport};

/// The rows of the table. A job summary ends at 1 MiB.
const ROWS: usize = 200;

/// Renders the summary.
pub(crate) fn summary(report: &WorkspaceReport) -> String {
    let mut out = format!("## {}: {}\n", plain(report.project.as_str()), counts_or_none(report));
    if report.needs_a_person() {
        out.push_str("\n### Needs you\n\n");
        for bundle in
            report.of(ReportGroup::Failed).chain(report.of(ReportGroup::NeedsYou)).take(ROWS)
        {
            line(&mut out, bundle);
        }
    }
    if !report.bundles.is_empty() {
        out.push_str("\n| | bundle | title | gates | change | cost |\n|---|---|---|---|---|---|\n");
        for bundle in report.bundles.iter().take(ROWS) {
            row(&mut out, bundle);
        }
        if let more @ 1.. = report.bundles.len().saturating_sub(ROWS) {
            add(&mut out, format_args!("\n{more} more bundles are left out.\n"));
        }
    }
    certificates(&mut out, report);
    out
}

fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("because a string takes any text");
}

fn counts_or_none(report: &WorkspaceReport) -> String {
    if report.bundles.is_empty() { "no bundles".to_owned() } else { counts(report) }
}

fn line(out: &mut String, bundle: &BundlePage) {
    let (symbol, words) = (symbol(bundle.group), words(bundle.group));
    let why = plain(bundle.why.as_str());
    add(
        out,
        format_args!("- {symbol} {words}: **{}** {}", bundle.id, plain(bundle.title.as_str())),
    );
    add(out, format_args!(" – {why}"));
    if let Some(next) = &bundle.next {
        add(out, format_args!("<br>`{}`", next.replace('`', "'")));
    }
    out.push('\n');
    for gate in bundle.gates.iter().filter(|gate| gate.is_red()) {
        let tests: Vec<String> = gate.failing.iter().map(|test| plain(test.as_str())).collect();
        let said = if tests.is_empty() { plain(gate.evidence.as_str()) } else { tests.join(", ") };
        add(out, format_args!("  - ✗ {}: {said}\n", plain(gate.check.as_str())));
    }
}

fn row(out: &mut String, bundle: &BundlePage) {
    let gates = match bundle.overall {
        Some(Overall::Pass) => "✓ green",
        Some(Overall::Fail) => "✗ red",
        None => "",
    };
    let change = bundle.diff.as_ref();
    let change =
        change.map_or_else(String::new, |diff| format!("+{} −{}", diff.added, diff.removed));
    let cost = bundle.cost.words().unwrap_or_default();
    let (symbol, words) = (symbol(bundle.group), words(bundle.group));
    let title = plain(bundle.title.as_str());
    add(
        out,
        format_args!(
            "| {symbol} {words} | {} | {title} | {gates} | {change} | {cost} |\n",
            bundle.id
        ),
    );
}

fn certificates(out: &mut String, report: &WorkspaceReport) {
    if report.certificates.is_empty() {
        return;
    }
    out.push_str("\n### Landed, with proof\n\n");
    for one in report.certificates.iter().take(ROWS) {
        let (bundles, tree) = (set(&one.bundles), short(&one.tree));
        let reference = plain(one.reference.as_str());
        add(out, format_args!("- {bundles} on {reference}, tree `{tree}`: `{}`\n", one.command));
    }
}

/// Escapes text so that it is neither markup nor HTML, nor the end of a table cell.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // An address or a name of a person must not become a link or a notification.
            '@' => out.push_str("&#64;"),
            ':' => out.push_str("&#58;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                out.push('\\');
                out.push(c);
            }
            '\n' | '\t' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

/// Renders an annotation for each red row: errors for gating ones, warnings for the others.
pub(crate) fn annotations(report: &WorkspaceReport) -> String {
    let mut out = String::new();
    for bundle in &report.bundles {
        for gate in &bundle.gates {
            if gate.result != pdca_state::GateResult::Fail {
                continue;
            }
            let level = if gate.gating { "error" } else { "warning" };
            let title = format!("{} {}", bundle.id, gate.check);
            let place = place(bundle, gate.evidence.as_str());
            let message = match gate.failing.as_slice() {
                [] => gate.evidence.to_string(),
                tests => tests.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
            };
            let (title, message) = (property(&title), data(&message));
            add(&mut out, format_args!("::{level} {place}title={title}::{message}\n"));
        }
        if bundle.group == ReportGroup::Failed && bundle.gates.iter().all(|gate| !gate.is_red()) {
            let (title, why) = (property(bundle.id.as_str()), data(bundle.why.as_str()));
            add(&mut out, format_args!("::error title={title}::{why}\n"));
        }
    }
    out
}

/// Returns the file and line at the beginning of the evidence, if it is a file of the change.
fn place(bundle: &BundlePage, evidence: &str) -> String {
    let mut parts = evidence.splitn(3, ':');
    let (file, line) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_changed = bundle
        .diff
        .as_ref()
        .is_some_and(|diff| diff.files.iter().any(|path| path.as_str() == file));
    match (is_changed, line.trim().parse::<u32>()) {
        (true, Ok(line)) => format!("file={},line={line},", property(file)),
        (true, Err(_)) => format!("file={},", property(file)),
        (false, _) => String::new(),
    }
}

/// Escapes the message of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
