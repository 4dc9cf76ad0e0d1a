//! The plan as a picture: a column for each wave, an arrow for each dependency.

use std::collections::BTreeMap;

use maud::{Markup, html};
use pdca_state::BundleId;

use crate::batch_report::words::{class, symbol, words};
use pdca_workspace::batch_report::{PlanView, ReportGroup, WorkspaceReport};

const WIDTH: usize = 168;
const HEIGHT: usize = 40;
const GAP_X: usize = 64;
const GAP_Y: usize = 14;
const MARGIN: usize = 12;
/// The room above the boxes for the name of the wave.
const HEAD: usize = 24;

/// The largest plan that is drawn. A larger picture says nothing, and `pdca plan` lists it.
const MOST: usize = 300;

pub(super) fn section(report: &WorkspaceReport) -> Markup {
    html! {
        section #graph aria-labelledby="h-graph" {
            h2 #h-graph { "Plan" }
            @match &report.plan {
                Err(why) => p { (why) },
                Ok(plan) => (picture(plan, report)),
            }
        }
    }
}

fn picture(plan: &PlanView, report: &WorkspaceReport) -> Markup {
    let count: usize = plan.waves.iter().map(Vec::len).sum();
    html! {
        @if count == 0 { p { "No bundle is planned." } }
        @else if count > MOST { p.cut { (count) " bundles are too many to draw; " code { "pdca plan" } " lists their order." } }
        @else { (svg(plan, report)) }
        @if !plan.left_out.is_empty() {
            ul { @for (id, why) in &plan.left_out { li { (id) ": " (why) } } }
        }
    }
}

fn svg(plan: &PlanView, report: &WorkspaceReport) -> Markup {
    let places = places(plan);
    let tallest = plan.waves.iter().map(Vec::len).max().unwrap_or(0);
    let width = 2 * MARGIN + plan.waves.len() * (WIDTH + GAP_X) - GAP_X;
    let height = 2 * MARGIN + HEAD + tallest * (HEIGHT + GAP_Y);
    let label = format!("{} bundles in {} waves", places.len(), plan.waves.len());
    html! {
        p.sub { (label) ": a column may run at once, an arrow leads from a bundle to one that needs it." }
        div.scroll tabindex="0" role="region" aria-label="plan" {
            svg.graph role="img" aria-label=(label) width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) {
                @for wave in 0..plan.waves.len() {
                    text.wave x=(MARGIN + wave * (WIDTH + GAP_X)) y=(MARGIN + 12) { "wave " (wave + 1) }
                }
                @for (from, to) in &plan.edges {
                    @if let (Some(from), Some(to)) = (places.get(from), places.get(to)) { path.edge d=(curve(*from, *to)) {} }
                }
                @for (id, place) in &places { (node(id, *place, report)) }
            }
        }
    }
}

/// Returns the corner of each box.
fn places(plan: &PlanView) -> BTreeMap<&BundleId, (usize, usize)> {
    let waves = plan.waves.iter().enumerate();
    waves
        .flat_map(|(column, wave)| {
            wave.iter().enumerate().map(move |(row, id)| {
                let x = MARGIN + column * (WIDTH + GAP_X);
                let y = MARGIN + HEAD + row * (HEIGHT + GAP_Y);
                (id, (x, y))
            })
        })
        .collect()
}

fn curve((x, y): (usize, usize), (to_x, to_y): (usize, usize)) -> String {
    let (x, y, to_y) = (x + WIDTH, y + HEIGHT / 2, to_y + HEIGHT / 2);
    let middle = usize::midpoint(x, to_x);
    format!("M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}")
}

fn node(id: &BundleId, (x, y): (usize, usize), report: &WorkspaceReport) -> Markup {
    let bundle = report.bundle(id);
    let group = bundle.map_or(ReportGroup::Waiting, |bundle| bundle.group);
    let title = bundle.map(|bundle| bundle.title.as_str()).unwrap_or_default();
    let head = pdca_state::text::one_line(&format!("{} {id}", symbol(group)), 22);
    html! {
        a href={ "#b-" (id) } {
            title { (id) " " (title) ": " (words(group)) }
            rect.box.(class(group)) x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="5" {}
            text.name x=(x + 8) y=(y + 17) { (head) }
            text.small x=(x + 8) y=(y + 32) { (pdca_state::text::one_line(title, 25)) }
        }
    }
}
