//! `pdca forecast`: predicts merge conflicts between pending changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use pdca_driver::integrate::{BranchForecast, PairForecast};
use pdca_integrate::{Cluster, Level, PairOutlook};
use pdca_state::BundleId;
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::explain::integrate::standing;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::session;

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Document<'a> {
    forecasts: Vec<OneBranch<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OneBranch<'a> {
    target: &'a str,
    branch: &'a str,
    bundles: Vec<Item<'a>>,
    /// The largest set that can land, in order.
    order: Vec<&'a str>,
    /// Every bundle once; those of a group merge with each other.
    groups: Vec<Vec<&'a str>>,
    clusters: Vec<ClusterItem<'a>>,
    troubles: Vec<Pair<'a>>,
}

/// Bundles that conflict, directly or through others.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ClusterItem<'a> {
    bundles: Vec<&'a str>,
    lands: Vec<&'a str>,
    paths: BTreeSet<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Item<'a> {
    id: &'a str,
    level: Level,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Pair<'a> {
    #[serde(flatten)]
    trouble: &'a PairForecast,
    text: String,
}

/// Merges every pair of pending changes, of these bundles or of all, in the object store.
///
/// # Errors
/// When a branch or a change cannot be read.
pub(crate) fn forecast(ids: &[IdArg], cx: &Context<'_>) -> Result<Response, Failure> {
    let only: BTreeSet<BundleId> =
        cx.require_bundles(ids)?.iter().map(|bundle| bundle.id().clone()).collect();
    let site = session::driver_config(cx)?;
    let branches =
        pdca_driver::integrate::forecast(&site, &only).map_err(|error| standing(&error))?;
    Ok(Response::done(ForecastReport { branches }))
}

/// The forecast of each branch.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "Document<'static>"))]
pub(crate) struct ForecastReport {
    branches: Vec<BranchForecast>,
}

impl Serialize for ForecastReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let forecasts = self.branches.iter().map(branch).collect();
        Document { forecasts }.serialize(serializer)
    }
}

impl Report for ForecastReport {
    const KIND: &'static str = "forecast";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.branches.is_empty() {
            writeln!(out, "nothing is planned, built or accepted that has not landed")?;
        }
        self.branches.iter().try_for_each(|sky| show(cx, sky, out))
    }
}

fn branch(sky: &BranchForecast) -> OneBranch<'_> {
    let names = |places: &[usize]| places.iter().map(|place| id(sky, *place).as_str()).collect();
    let groups: Vec<Vec<&str>> = sky.grouping.groups.iter().map(|group| names(group)).collect();
    OneBranch {
        target: &sky.target,
        branch: &sky.branch,
        bundles: sky
            .bundles
            .iter()
            .map(|(id, level)| Item { id: id.as_str(), level: *level })
            .collect(),
        order: groups.first().cloned().unwrap_or_default(),
        groups,
        clusters: sky
            .grouping
            .clusters
            .iter()
            .map(|cluster| ClusterItem {
                bundles: names(&cluster.places),
                lands: names(&cluster.lands),
                paths: paths(conflicts_of(sky, cluster)),
            })
            .collect(),
        troubles: sky
            .pairs
            .iter()
            .map(|trouble| Pair { trouble, text: trouble.sentence() })
            .collect(),
    }
}

fn id(sky: &BranchForecast, place: usize) -> &BundleId {
    &sky.bundles[place].0
}

/// Returns the conflicts between the bundles of a cluster.
fn conflicts_of<'s>(sky: &'s BranchForecast, cluster: &Cluster) -> Vec<&'s PairForecast> {
    let members: BTreeSet<&BundleId> = cluster.places.iter().map(|place| id(sky, *place)).collect();
    let is_of = |trouble: &&PairForecast| {
        matches!(trouble.outlook, PairOutlook::Conflict { .. }) && members.contains(&trouble.first)
    };
    sky.pairs.iter().filter(is_of).collect()
}

/// Returns the files that the pairs are about.
fn paths<'t>(troubles: impl IntoIterator<Item = &'t PairForecast>) -> BTreeSet<String> {
    let of = |trouble: &PairForecast| match &trouble.outlook {
        PairOutlook::Conflict { conflicts } => {
            conflicts.iter().map(|conflict| conflict.path.to_string()).collect()
        }
        PairOutlook::Overlap { path } => vec![path.clone()],
        PairOutlook::Clear | PairOutlook::Unknown { .. } => Vec::new(),
    };
    troubles.into_iter().flat_map(of).collect()
}

/// Prints the matrix if it fits, what goes together, and a line for each conflicting group.
fn show(cx: &Context<'_>, sky: &BranchForecast, out: &mut dyn Write) -> Result<(), Failure> {
    let p = cx.out;
    let branch = if sky.branch.is_empty() { "its branch" } else { &sky.branch };
    let count = |wanted: Level| sky.bundles.iter().filter(|(_, level)| *level == wanted).count();
    let known = format!(
        "{} accepted, {} built, {} by their briefs",
        count(Level::Seals),
        count(Level::Heads),
        count(Level::Declared)
    );
    writeln!(out, "{} {branch}  {}", p.strong(&sky.target), p.faint(known))?;
    let width = sky.bundles.iter().map(|(id, _)| id.as_str().len()).max().unwrap_or(0).max(2);
    // A matrix that wraps cannot be read.
    let fits = (width + 1) * (sky.bundles.len() + 1) < cx.width();
    if fits && sky.bundles.len() > 1 {
        write!(out, "{:width$}", "")?;
        for (id, _) in &sky.bundles {
            write!(out, " {:>width$}", id.as_str())?;
        }
        writeln!(out)?;
        for (first, _) in &sky.bundles {
            write!(out, "{:>width$}", first.as_str())?;
            for (second, _) in &sky.bundles {
                let sign = sign(sky, first, second);
                write!(out, " {sign:>width$}")?;
            }
            writeln!(out)?;
        }
    }
    if sky.pairs.is_empty() {
        writeln!(out, "{}", p.good("all go together, as far as git can tell"))?;
        return Ok(());
    }
    together(cx, sky, out)?;
    for cluster in &sky.grouping.clusters {
        let troubles = conflicts_of(sky, cluster);
        let text = if let [only] = &troubles[..] {
            only.sentence()
        } else {
            let lands = cluster.lands.iter().map(|place| id(sky, *place).as_str());
            format!(
                "of {} only {} can land ({}), in {}",
                some(cluster.places.iter().map(|place| id(sky, *place).as_str())),
                cluster.lands.len(),
                some(lands),
                some(paths(troubles).iter().map(String::as_str)),
            )
        };
        writeln!(out, "{}  {text}", p.bad("✗ conflict"))?;
    }
    let overlaps = sky.pairs.iter().filter(|t| matches!(t.outlook, PairOutlook::Overlap { .. }));
    for (path, pairs) in by_path(overlaps) {
        let text = if let [only] = &pairs[..] {
            only.sentence()
        } else {
            let ids: BTreeSet<&BundleId> =
                pairs.iter().flat_map(|pair| [&pair.first, &pair.second]).collect();
            format!("{} all declare {path}", some(ids.into_iter().map(BundleId::as_str)))
        };
        writeln!(out, "{}  {text}", p.warn("~ overlap "))?;
    }
    let unknown = sky.pairs.iter().filter(|t| matches!(t.outlook, PairOutlook::Unknown { .. }));
    for (number, trouble) in unknown.clone().enumerate() {
        if number == MOST_NAMED {
            let more = unknown.count() - MOST_NAMED;
            writeln!(out, "{}  {more} more pairs; `--json` has them", p.warn("? unknown "))?;
            break;
        }
        writeln!(out, "{}  {}", p.warn("? unknown "), trouble.sentence())?;
    }
    Ok(())
}

/// The most names on a line.
const MOST_NAMED: usize = 12;

/// Prints the largest group without conflicts, and the command to land it if it is accepted.
fn together(cx: &Context<'_>, sky: &BranchForecast, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(first) = sky.grouping.groups.first().filter(|_| !sky.grouping.clusters.is_empty())
    else {
        return Ok(());
    };
    let (count, all) = (first.len(), sky.bundles.len());
    let accepted: Vec<&str> = first
        .iter()
        .filter(|place| sky.bundles[**place].1 == Level::Seals)
        .map(|place| id(sky, *place).as_str())
        .collect();
    // All of them, however many, because the line is meant to be pasted.
    let how = if accepted.len() > 1 {
        format!("most land with `pdca integrate {}`", accepted.join(" "))
    } else {
        let ids: Vec<&str> = first.iter().map(|place| id(sky, *place).as_str()).collect();
        ids.join(", ")
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
        for path in paths([trouble]) {
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

fn sign(sky: &BranchForecast, first: &BundleId, second: &BundleId) -> &'static str {
    if first == second {
        return "";
    }
    let is_it = |trouble: &&PairForecast| trouble.other(first) == Some(second);
    match sky.pairs.iter().find(is_it).map(|trouble| &trouble.outlook) {
        None | Some(PairOutlook::Clear) => "·",
        Some(PairOutlook::Conflict { .. }) => "✗",
        Some(PairOutlook::Overlap { .. }) => "~",
        Some(PairOutlook::Unknown { .. }) => "?",
    }
}
