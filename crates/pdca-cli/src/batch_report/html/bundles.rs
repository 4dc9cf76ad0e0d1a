//! The list of bundles, each with its evidence to unfold.

use maud::{Markup, html};
use pdca_state::Overall;
use pdca_workspace::review::Tone;

use super::badge;
use crate::batch_report::words::{class, span, symbol, words};
use pdca_workspace::batch_report::Text;
use pdca_workspace::batch_report::{
    BundlePage, CardPart, DiffView, EvidenceView, GateView, ReportGroup, WorkspaceReport,
};

pub(super) fn section(report: &WorkspaceReport) -> Markup {
    html! {
        section #bundles aria-labelledby="h-bundles" {
            h2 #h-bundles { "Bundles" }
            div #tools hidden {
                label { "Filter " input #filter type="search" placeholder="id, title, gate, test, word" autocomplete="off" spellcheck="false"; }
                span #shown role="status" {}
                span.groups role="group" aria-label="Show only" {
                    @for group in ReportGroup::ALL {
                        @if report.count(group) > 0 {
                            button type="button" aria-pressed="false" data-group=(class(group)) { (symbol(group)) " " (words(group)) " " (report.count(group)) }
                        }
                    }
                }
                button #expand type="button" { "Expand all" }
                p.keys { kbd { "/" } " filter · " kbd { "j" } " " kbd { "k" } " next, previous · " kbd { "Enter" } " open · " kbd { "e" } " expand all · " kbd { "d" } " dark or light · " kbd { "Esc" } " clear" }
            }
            @if report.bundles.is_empty() { p { "No bundles." } }
            div #list { @for bundle in &report.bundles { (one(bundle)) } }
        }
    }
}

fn one(bundle: &BundlePage) -> Markup {
    html! {
        details.bundle id={ "b-" (bundle.id) } data-group=(class(bundle.group)) {
            summary {
                (badge(bundle.group)) " "
                strong.id { (bundle.id) } " "
                span.title { (bundle.title) }
                span.facts {
                    @if let Some(overall) = bundle.overall { (gates_word(overall)) }
                    @if let Some((word, _)) = &bundle.landing { span { (word) } }
                    @if let Some(diff) = &bundle.diff { span { "+" (diff.added) " −" (diff.removed) } }
                    @if let Some(cost) = bundle.cost.words() { span { (cost.split(' ').next().unwrap_or_default()) } }
                }
            }
            div.body { (body(bundle)) }
        }
    }
}

fn gates_word(overall: Overall) -> Markup {
    match overall {
        Overall::Pass => html! { span.pass { "✓ gates green" } },
        Overall::Fail => html! { span.fail { "✗ gates red" } },
    }
}

fn body(bundle: &BundlePage) -> Markup {
    html! {
        p {
            @if let Some(state) = bundle.state { code { (state.as_str()) } " · " } @else { code { "UNREADABLE" } " · " }
            (bundle.why)
            @if bundle.attempts > 0 { " · attempt " (bundle.attempts + 1) }
            @if !bundle.depends_on.is_empty() {
                " · stands on "
                @for (place, id) in bundle.depends_on.iter().enumerate() {
                    @if place > 0 { ", " }
                    a href={ "#b-" (id) } { (id) }
                }
            }
        }
        @if let Some(next) = &bundle.next { p { "next: " code.cmd { (next) } } }
        @if let Some((outcome, by, note)) = &bundle.signoff {
            p { "signed off: " strong { (outcome) } " by " (by) @if !note.is_empty() { " – " (note) } }
        }
        (held(&bundle.held))
        @for part in &bundle.card { (card_part(bundle, part)) }
        (logs(&bundle.gates))
        @if let Some(diff) = &bundle.diff { (change(diff)) }
    }
}

fn held(rows: &[EvidenceView]) -> Markup {
    html! {
        @if !rows.is_empty() {
            h3 { "Red together" }
            @for row in rows {
                p { span.fail { "✗ " (row.row) } " " (row.said) }
                (tests(&row.failing, 0))
                @if let Some(how) = &row.reproduce { p { "again: " code.cmd { (how) } } }
                (log(row.log.as_ref()))
            }
        }
    }
}

/// A section of the decision card, in the words of `pdca show`.
fn card_part(bundle: &BundlePage, part: &CardPart) -> Markup {
    html! {
        h3 { (part.title) }
        ul.card {
            @for (tone, line) in &part.lines { (card_line(*tone, line)) }
            @if part.left_out > 0 { li.faint { "… " (part.left_out) " more: " code.cmd { "pdca show " (bundle.id) } } }
        }
    }
}

fn card_line(tone: Tone, line: &Text) -> Markup {
    match tone {
        Tone::Plain => html! { li { (line) } },
        Tone::Faint => html! { li.faint { (line) } },
        Tone::Good => html! { li.pass { "✓ " (line) } },
        Tone::Warn => html! { li.warn { "! " (line) } },
        Tone::Bad => html! { li.fail { "✗ " (line) } },
    }
}

/// The logs of red rows.
fn logs(rows: &[GateView]) -> Markup {
    html! {
        @for row in rows.iter().filter(|row| row.log.is_some()) {
            h3 { "Log of " (row.rule_id) @if let Some(took) = row.duration_ms { ", " (span(took)) } }
            (tests(&row.failing, row.failing_more))
            (log(row.log.as_ref()))
        }
    }
}

fn tests(failing: &[Text], more: usize) -> Markup {
    html! {
        @if !failing.is_empty() {
            ul.tests {
                @for test in failing { li { code { (test) } } }
                @if more > 0 { li { "and " (more) " more" } }
            }
        }
    }
}

fn log(text: Option<&Text>) -> Markup {
    html! {
        @if let Some(text) = text {
            @if let Some(note) = text.cut_note() { p.cut { (note) ", the end follows" } }
            pre { (text) }
        }
    }
}

fn change(diff: &DiffView) -> Markup {
    html! {
        h3 { "Diff" }
        p {
            "+" (diff.added) " −" (diff.removed) " in "
            @for (place, file) in diff.files.iter().enumerate() {
                @if place > 0 { ", " }
                code { (file) }
            }
            @if diff.more_files > 0 { " and " (diff.more_files) " more" }
        }
        @if !diff.text.is_empty() { pre.diff tabindex="0" aria-label="diff" { @for (class, lines) in runs(diff.text.as_str()) { (piece(class, &lines)) } } }
        @if let Some(note) = diff.text.cut_note() { p.cut { (note) "; all of it is in " code { (diff.path) } } }
    }
}

fn piece(class: &str, lines: &str) -> Markup {
    html! { @if class.is_empty() { (lines) } @else { span.(class) { (lines) } } }
}

/// Puts lines of one kind together: a span for each line would double the size of the page.
fn runs(text: &str) -> Vec<(&'static str, String)> {
    let mut runs: Vec<(&'static str, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let class = match line.as_bytes() {
            [b'+', ..] => "a",
            [b'-', ..] => "r",
            [b'@', b'@', ..] => "h",
            _ => "",
        };
        match runs.last_mut() {
            Some((last, lines)) if *last == class => lines.push_str(line),
            _ => runs.push((class, line.to_owned())),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn lines_of_a_diff_are_grouped_by_kind_and_none_is_lost() {
        let diff =
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+new\n+more\n same\n";
        let found = runs(diff);
        let classes: Vec<&str> = found.iter().map(|(class, _)| *class).collect();
        assert_eq!(classes, ["", "r", "a", "h", "r", "a", ""]);
        assert_eq!(found.iter().map(|(_, lines)| lines.as_str()).collect::<String>(), diff);
    }
}
