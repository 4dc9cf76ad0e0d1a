//! `pdca forecast`: which changes will not go together.

use std::collections::BTreeSet;
use std::io::Write;

use pdca_driver::integrate::{Sky, Trouble};
use pdca_integrate::{Level, Outlook};
use pdca_state::BundleId;
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session;

/// Show which changes will not go together
///
/// Every two bundles are merged in the object store, without a checkout: accepted ones as they were sealed, others as
/// they are built, and where there is nothing built yet, what their briefs declare they touch. Nothing is gated: two
/// that merge may still be red together, which `pdca integrate` finds out.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca forecast
  pdca forecast 12 15 20
  pdca forecast --json | jq '.forecasts[].troubles[]'")]
pub(crate) struct Args {
    /// The bundles; all that have not landed where none is named
    #[arg(value_name = "ID")]
    ids: Vec<IdArg>,
}

#[derive(Serialize)]
struct Document<'a> {
    forecasts: Vec<OneBranch<'a>>,
}

#[derive(Serialize)]
struct OneBranch<'a> {
    target: &'a str,
    branch: &'a str,
    bundles: Vec<Item<'a>>,
    troubles: Vec<Pair<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    id: &'a str,
    level: Level,
}

#[derive(Serialize)]
struct Pair<'a> {
    #[serde(flatten)]
    trouble: &'a Trouble,
    text: String,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, out: &mut dyn Write) -> Result<Exit, Failure> {
    let only: BTreeSet<BundleId> =
        cx.require_bundles(&args.ids)?.iter().map(|bundle| bundle.id().clone()).collect();
    let site = session::site(cx)?;
    let skies = site.outlook(&only).map_err(|error| super::integrate::unknown(&error))?;
    if cx.globals.json {
        let forecasts = skies.iter().map(branch).collect();
        cx.emit_json(out, "forecast", &Document { forecasts })?;
        return Ok(Exit::Done);
    }
    for sky in &skies {
        show(cx, sky, out)?;
    }
    if skies.is_empty() {
        writeln!(out, "nothing is planned, built or accepted that has not landed")?;
    }
    Ok(Exit::Done)
}

fn branch(sky: &Sky) -> OneBranch<'_> {
    OneBranch {
        target: &sky.target,
        branch: &sky.branch,
        bundles: sky
            .bundles
            .iter()
            .map(|(id, level)| Item { id: id.as_str(), level: *level })
            .collect(),
        troubles: sky
            .troubles
            .iter()
            .map(|trouble| Pair { trouble, text: trouble.sentence() })
            .collect(),
    }
}

/// The matrix, and a line for each pair that does not go together.
fn show(cx: &Context<'_>, sky: &Sky, out: &mut dyn Write) -> Result<(), Failure> {
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
    for trouble in &sky.troubles {
        let mark = match trouble.outlook {
            Outlook::Conflict { .. } => p.bad("✗ conflict"),
            Outlook::Overlap { .. } => p.warn("~ overlap "),
            Outlook::Clear | Outlook::Unknown { .. } => p.warn("? unknown "),
        };
        writeln!(out, "{mark}  {}", trouble.sentence())?;
    }
    if sky.troubles.is_empty() {
        writeln!(out, "{}", p.good("all go together, as far as git can tell"))?;
    }
    Ok(())
}

fn sign(sky: &Sky, first: &BundleId, second: &BundleId) -> &'static str {
    if first == second {
        return "";
    }
    let is_it = |trouble: &&Trouble| trouble.other(first) == Some(second);
    match sky.troubles.iter().find(is_it).map(|trouble| &trouble.outlook) {
        None | Some(Outlook::Clear) => "·",
        Some(Outlook::Conflict { .. }) => "✗",
        Some(Outlook::Overlap { .. }) => "~",
        Some(Outlook::Unknown { .. }) => "?",
    }
}
