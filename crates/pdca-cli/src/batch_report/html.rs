//! The page: one file, no address outside it.
//!
//! Whatever comes from a model reaches the page as [`Text`] through maud, which escapes it. The content security policy
//! allows exactly the style and the script of this module by their digests, and nothing else: no request, no other
//! script, no form, no frame.

mod bundles;
mod chart;
mod graph;
mod together;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::batch_report::words::{class, counts, short, symbol, words};
use pdca_workspace::batch_report::{BundlePage, CertificateView, ReportGroup, WorkspaceReport};

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// Renders the page.
pub(crate) fn html(report: &WorkspaceReport) -> String {
    let title = format!("{} – pdca report", report.project);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                // Without one a browser asks the server of the page for an icon.
                link rel="icon" href="data:,";
                title { (title) }
                // Not escaped, here and below: the digests of the policy are those of exactly these bytes.
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#bundles" { "Skip to the bundles" }
                (head(report))
                main {
                    (needs(report))
                    (graph::section(report))
                    (chart::section(report))
                    (bundles::section(report))
                    (together::section(report))
                    (certificates(&report.certificates))
                    (unread(report))
                }
                footer { "Written by pdca " (report.made.strftime("%Y-%m-%d %H:%M UTC").to_string()) ". Nothing in this file asks anything of a network." }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Returns the content security policy: the two inline parts by their digests.
fn policy() -> String {
    let digest = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; style-src {}; script-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        digest(STYLE),
        digest(SCRIPT)
    )
}

fn head(report: &WorkspaceReport) -> Markup {
    let cost = report.cost.words();
    html! {
        header {
            h1 { (report.project) }
            p.sub {
                (report.bundles.len()) @if report.bundles.len() == 1 { " bundle" } @else { " bundles" }
                @if !report.bundles.is_empty() { ": " (counts(report)) }
                @if let Some(run) = &report.run { " · run " code { (run) } }
                @if let Some(cost) = cost { " · " (cost) }
                " · " (report.made.strftime("%Y-%m-%d %H:%M UTC").to_string())
            }
            nav aria-label="Sections" {
                a href="#needs" { "Needs you" }
                a href="#graph" { "Plan" }
                a href="#timeline" { "Timeline" }
                a href="#bundles" { "Bundles" }
                a href="#together" { "Together" }
                a href="#certificates" { "Certificates" }
                button #theme type="button" hidden { "Dark or light" }
            }
        }
    }
}

/// Lists failures, then what waits for a person.
fn needs(report: &WorkspaceReport) -> Markup {
    let row = |bundle: &BundlePage| {
        html! {
            li {
                (badge(bundle.group)) " "
                a href={ "#b-" (bundle.id) } { strong { (bundle.id) } " " (bundle.title) }
                span.why { (bundle.why) }
                @if let Some(next) = &bundle.next { code.cmd { (next) } }
            }
        }
    };
    html! {
        section #needs aria-labelledby="h-needs" {
            h2 #h-needs { "Needs you" }
            @if report.needs_a_person() {
                ul.needs {
                    @for bundle in report.of(ReportGroup::Failed) { (row(bundle)) }
                    @for bundle in report.of(ReportGroup::NeedsYou) { (row(bundle)) }
                }
            } @else {
                p { "Nothing failed, and nothing waits for a person." }
            }
        }
    }
}

/// The symbol and the words of a group: nothing is said by colour alone.
fn badge(group: ReportGroup) -> Markup {
    html! { span.badge.(class(group)) { (symbol(group)) " " (words(group)) } }
}

fn certificates(all: &[CertificateView]) -> Markup {
    html! {
        section #certificates aria-labelledby="h-certificates" {
            h2 #h-certificates { "Certificates" }
            @if all.is_empty() {
                p { "Nothing has landed through " code { "pdca integrate" } " yet." }
            } @else {
                p { "Each proves that exactly the tree that landed was gated, and that it is these changes folded onto that base. Anybody with the repository can recompute it:" }
                ul.certificates {
                    @for one in all {
                        li {
                            strong { (pdca_journal::events::set(&one.bundles)) }
                            " → " code { (one.reference) }
                            dl.facts {
                                dt { "base" } dd { code { (short(&one.base)) } }
                                dt { "commit" } dd { code { (short(&one.commit)) } }
                                dt { "tree" } dd { code { (short(&one.tree)) } }
                            }
                            code.cmd { (one.command) }
                        }
                    }
                }
            }
        }
    }
}

fn unread(report: &WorkspaceReport) -> Markup {
    html! {
        @if !report.unread.is_empty() {
            section #unread aria-labelledby="h-unread" {
                h2 #h-unread { "Could not be read" }
                ul { @for why in &report.unread { li { (why) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pdca_workspace::batch_report::{Budget, Text};
    use proptest::prelude::*;

    #[test]
    fn text_of_a_model_is_harmless_before_it_reaches_a_page() {
        let text = Text::new("\u{1b}[31m<script>alert(1)</script>\u{1b}[0m");
        assert_eq!(text.as_str(), "<script>alert(1)</script>");
        assert_eq!(maud::html! { (text) }.into_string(), "&lt;script&gt;alert(1)&lt;/script&gt;");
    }

    proptest! {
        #[test]
        fn a_text_takes_no_more_than_its_budget_when_it_is_escaped(raw in "[<&>\"a\n]{0,200}", bytes in 0usize..100) {
            let text = Text::within(&raw, &mut Budget::new(bytes));
            let page = maud::html! { (text) }.into_string();
            prop_assert!(page.len() <= bytes);
        }
    }
}
