//! The integrations: the combinations that were gated as a tree, what landed, what was held and why.

use maud::{Markup, html};
use pdca_journal::events::{
    CombinationVerdict, GatePurpose, GatedCombination, IntegrationStep, combinations, set,
};
use pdca_state::BundleId;

use crate::batch_report::words::short;
use pdca_workspace::batch_report::Text;
use pdca_workspace::batch_report::WorkspaceReport;
use pdca_workspace::batch_report::{RunHistory, RunKind};

/// The integrations that are shown in full.
const SHOWN: usize = 10;

pub(super) fn section(report: &WorkspaceReport) -> Markup {
    let all: Vec<&RunHistory> =
        report.runs.iter().filter(|run| run.kind == RunKind::Integration).collect();
    html! {
        section #together aria-labelledby="h-together" {
            h2 #h-together { "Together" }
            @if all.is_empty() {
                p { "No integration is recorded." }
            }
            @for (place, run) in all.iter().take(SHOWN).enumerate() { (integration(run, place == 0)) }
            @if all.len() > SHOWN { p.cut { (all.len() - SHOWN) " older integrations are left out." } }
        }
    }
}

fn integration(run: &RunHistory, is_open: bool) -> Markup {
    let tree = combinations(run.steps.iter().map(|(_, step)| step));
    html! {
        details.run open[is_open] {
            summary { "integration " code { (run.id) } @if let Some(host) = &run.host { " on " (Text::line(host, 60)) } }
            @if tree.is_empty() { p { "No combination was gated." } } @else { ul.tree { @for one in &tree { (node(one)) } } }
            ul.steps {
                @for (said, step) in &run.steps {
                    @if let Some(line) = outcome(said, step) { li { (line) } }
                }
            }
        }
    }
}

fn node(one: &GatedCombination) -> Markup {
    html! {
        li {
            span.set { (members(&one.bundles)) } " "
            (verdict(&one.verdict)) " "
            small { "tree " code { (short(&one.tree)) } (purpose(one.purpose)) }
            @if !one.parts.is_empty() { ul { @for part in &one.parts { (node(part)) } } }
        }
    }
}

fn members(bundles: &[BundleId]) -> Markup {
    html! {
        @if bundles.is_empty() { (set(bundles)) }
        @for (place, id) in bundles.iter().enumerate() {
            @if place > 0 { " + " }
            a href={ "#b-" (id) } { (id) }
        }
    }
}

fn verdict(verdict: &CombinationVerdict) -> Markup {
    let list = |all: &[String]| Text::line(&all.join(", "), 600);
    match verdict {
        CombinationVerdict::Green => html! { span.pass { "✓ green" } },
        CombinationVerdict::Red { rows, failing } => html! {
            span.fail { "✗ red" } " " (list(rows))
            @if !failing.is_empty() { ": " code { (list(failing)) } }
        },
        CombinationVerdict::Undecided { rows } => {
            html! { span.warn { "? no verdict" } " " (list(rows)) }
        }
        CombinationVerdict::Open => html! { span.warn { "… unfinished" } },
    }
}

fn purpose(purpose: Option<GatePurpose>) -> &'static str {
    match purpose {
        Some(GatePurpose::Decide) => "",
        Some(GatePurpose::Confirm) => ", asked once more to confirm",
        Some(GatePurpose::Explain) => ", asked to explain",
        None => ", known before",
    }
}

/// Renders what became of a change, and what a person should know about the search.
fn outcome(said: &Text, step: &IntegrationStep) -> Option<Markup> {
    Some(match step {
        IntegrationStep::Landed { bundle, onto, commit } => html! {
            span.pass { "✓ landed" } " " a href={ "#b-" (bundle) } { (bundle) }
            " on " code { (Text::line(onto, 120)) } " as " code { (short(commit)) }
        },
        IntegrationStep::Held { bundle, .. } => html! {
            span.fail { "✗ held" } " " a href={ "#b-" (bundle) } { (bundle) } " – " (said)
        },
        IntegrationStep::Flaky { .. } => html! { span.warn { "? flaky" } " " (said) },
        IntegrationStep::Mended { .. } | IntegrationStep::BaseMoved { .. } => html! { (said) },
        IntegrationStep::Gating { .. }
        | IntegrationStep::Green { .. }
        | IntegrationStep::Red { .. }
        | IntegrationStep::NoVerdict { .. } => return None,
    })
}
