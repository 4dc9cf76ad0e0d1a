//! Forecasts as text.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use pdca_driver::integrate::{BranchForecast, PairForecast};
use pdca_integrate::{Level, PairOutlook};
use pdca_state::BundleId;
use pdca_workspace::integration::ForecastReport;

use crate::context::Context;
use crate::failure::Failure;
use crate::report::Report;

impl Report for ForecastReport {
    const KIND: &'static str = "forecast";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.forecasts.is_empty() {
            writeln!(out, "nothing is planned, built or accepted that has not landed")?;
        }
        self.forecasts.iter().try_for_each(|forecast| show(cx, forecast, out))
    }
}

/// Prints the matrix if it fits, what goes together, and a line for each conflicting group.
fn show(cx: &Context<'_>, forecast: &BranchForecast, out: &mut dyn Write) -> Result<(), Failure> {
    let p = cx.out;
    let branch = if forecast.branch.is_empty() { "its branch" } else { &forecast.branch };
    let count =
        |wanted: Level| forecast.bundles.iter().filter(|bundle| bundle.level == wanted).count();
    let known = format!(
        "{} accepted, {} built, {} by their briefs",
        count(Level::Seals),
        count(Level::Heads),
        count(Level::Declared)
    );
    writeln!(out, "{} {branch}  {}", p.strong(&forecast.target), p.faint(known))?;
    let width =
        forecast.bundles.iter().map(|bundle| bundle.id.as_str().len()).max().unwrap_or(0).max(2);
    // A matrix that wraps cannot be read.
    let fits = (width + 1) * (forecast.bundles.len() + 1) < cx.width();
    if fits && forecast.bundles.len() > 1 {
        write!(out, "{:width$}", "")?;
        for bundle in &forecast.bundles {
            write!(out, " {:>width$}", bundle.id.as_str())?;
        }
        writeln!(out)?;
        for first in &forecast.bundles {
            write!(out, "{:>width$}", first.id.as_str())?;
            for second in &forecast.bundles {
                let sign = sign(forecast, &first.id, &second.id);
                write!(out, " {sign:>width$}")?;
            }
            writeln!(out)?;
        }
    }
    if forecast.pairs.is_empty() {
        writeln!(out, "{}", p.good("all go together, as far as git can tell"))?;
        return Ok(());
    }
    together(cx, forecast, out)?;
    for cluster in &forecast.clusters {
        let is_of_it = |pair: &&PairForecast| {
            matches!(pair.outlook, PairOutlook::Conflict { .. })
                && cluster.bundles.contains(&pair.first)
        };
        let pairs: Vec<&PairForecast> = forecast.pairs.iter().filter(is_of_it).collect();
        let text = if let [only] = &pairs[..] {
            only.text.clone()
        } else {
            format!(
                "of {} only {} can land ({}), in {}",
                some(cluster.bundles.iter().map(BundleId::as_str)),
                cluster.lands.len(),
                some(cluster.lands.iter().map(BundleId::as_str)),
                some(cluster.paths.iter().map(String::as_str)),
            )
        };
        writeln!(out, "{}  {text}", p.bad("✗ conflict"))?;
    }
    let overlaps =
        forecast.pairs.iter().filter(|t| matches!(t.outlook, PairOutlook::Overlap { .. }));
    for (path, pairs) in by_path(overlaps) {
        let text = if let [only] = &pairs[..] {
            only.text.clone()
        } else {
            let ids: BTreeSet<&BundleId> =
                pairs.iter().flat_map(|pair| [&pair.first, &pair.second]).collect();
            format!("{} all declare {path}", some(ids.into_iter().map(BundleId::as_str)))
        };
        writeln!(out, "{}  {text}", p.warn("~ overlap "))?;
    }
    let unknown =
        forecast.pairs.iter().filter(|t| matches!(t.outlook, PairOutlook::Unknown { .. }));
    for (number, trouble) in unknown.clone().enumerate() {
        if number == MOST_NAMED {
            let more = unknown.count() - MOST_NAMED;
            writeln!(out, "{}  {more} more pairs; `--json` has them", p.warn("? unknown "))?;
            break;
        }
        writeln!(out, "{}  {}", p.warn("? unknown "), trouble.text)?;
    }
    Ok(())
}

/// The most names on a line.
const MOST_NAMED: usize = 12;

/// Prints the largest group without conflicts, and the command to land it if it is accepted.
fn together(
    cx: &Context<'_>,
    forecast: &BranchForecast,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if forecast.clusters.is_empty() {
        return Ok(());
    }
    let BranchForecast { order, bundles, .. } = forecast;
    let is_accepted = |id: &&BundleId| {
        bundles.iter().any(|bundle| bundle.id == **id && bundle.level == Level::Seals)
    };
    let accepted: Vec<&str> = order.iter().filter(is_accepted).map(BundleId::as_str).collect();
    let (count, all) = (order.len(), bundles.len());
    // All of them, however many, because the line is meant to be pasted.
    let how = if accepted.len() > 1 {
        format!("most land with `pdca integrate {}`", accepted.join(" "))
    } else {
        order.iter().map(BundleId::as_str).collect::<Vec<_>>().join(", ")
    };
    writeln!(out, "{}  {count} of {all}: {how}", cx.out.good("✓ together"))?;
    Ok(())
}

/// Groups overlaps by the path that both declare.
fn by_path<'t>(
    overlaps: impl Iterator<Item = &'t PairForecast>,
) -> BTreeMap<String, Vec<&'t PairForecast>> {
    let mut found: BTreeMap<String, Vec<&PairForecast>> = BTreeMap::new();
    for trouble in overlaps {
        for path in trouble.paths() {
            found.entry(path).or_default().push(trouble);
        }
    }
    found
}

/// Lists the first names, and counts the rest.
fn some<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.len().checked_sub(MOST_NAMED) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..MOST_NAMED].join(", ")),
    }
}

fn sign(forecast: &BranchForecast, first: &BundleId, second: &BundleId) -> &'static str {
    if first == second {
        return "";
    }
    let is_it = |trouble: &&PairForecast| trouble.other(first) == Some(second);
    match forecast.pairs.iter().find(is_it).map(|trouble| &trouble.outlook) {
        None | Some(PairOutlook::Clear) => "·",
        Some(PairOutlook::Conflict { .. }) => "✗",
        Some(PairOutlook::Overlap { .. }) => "~",
        Some(PairOutlook::Unknown { .. }) => "?",
    }
}
