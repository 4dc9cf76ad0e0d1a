//! Lists the lanes with their states.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::UNIX_EPOCH;

use camino::Utf8PathBuf;
use pdca_lanes::{HydrationState, LaneKind, LaneReport, LaneState};
use serde::Serialize;

use super::{WorkspaceLanes, explain};
use crate::context::Context;
use crate::failure::Failure;
use crate::report::{Report, Response, Table};
use crate::words::{age as ago, size};

/// The JSON of a lane.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row {
    slot: u32,
    target: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    path: Utf8PathBuf,
    kind: LaneKind,
    /// `ready`, `interrupted` or `gone`.
    state: &'static str,
    base: Option<String>,
    head: Option<String>,
    /// Null if unknown.
    dirty: Option<bool>,
    in_use: bool,
    /// The process that holds it, as it says.
    holder: Option<u32>,
    /// `none`, `begun` or `passed`.
    hydration: &'static str,
    size: u64,
    /// The last claim, in seconds since the epoch.
    used: Option<u64>,
    env: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LaneList {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    root: Utf8PathBuf,
    lanes: Vec<Row>,
}

/// Lists the lanes with holder, state, age and size.
pub(crate) fn list(cx: &Context<'_>) -> Result<Response, Failure> {
    let place = WorkspaceLanes::of(cx)?;
    let lanes = place.lanes.list().map_err(|error| explain::inspect(&error))?;
    let lanes = lanes.into_iter().map(|lane| row(&place, lane)).collect();
    Ok(Response::done(LaneList { root: place.lanes.root().to_owned(), lanes }))
}

impl Report for LaneList {
    const KIND: &'static str = "lanes";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.lanes.is_empty() {
            writeln!(out, "no lanes in {}", cx.show(&self.root))?;
            writeln!(out, "{} `pdca lanes provision` makes them", cx.out.accent("hint:"))?;
        }
        for row in &self.lanes {
            writeln!(out, "lane {:<3} {:<16} {}", row.slot, row.target, cx.show(&row.path))?;
            writeln!(out, "         {}", facts(row, cx).join(", "))?;
        }
        Ok(())
    }

    fn table(&self, cx: &Context<'_>) -> Option<Table> {
        let mut table = Table::new(&["lane", "target", "state", "head", "size", "path"]);
        for row in &self.lanes {
            let state = match row.dirty {
                _ if row.in_use => "in use",
                Some(true) => "changed",
                Some(false) | None => row.state,
            };
            table.row([
                row.slot.to_string(),
                row.target.clone(),
                state.to_owned(),
                row.head.as_ref().map_or_else(String::new, |head| format!("{head:.12}")),
                size(row.size),
                cx.show(&row.path).to_owned(),
            ]);
        }
        Some(table)
    }
}

fn row(place: &WorkspaceLanes<'_>, lane: LaneReport) -> Row {
    let env = place.names(&lane.target, lane.slot).env().collect();
    let state = match lane.state {
        LaneState::Ready => "ready",
        LaneState::Interrupted => "interrupted",
        LaneState::Gone => "gone",
    };
    let hydration = match lane.hydration {
        HydrationState::None => "none",
        HydrationState::Begun => "begun",
        HydrationState::Passed => "passed",
    };
    let used = lane.used.and_then(|used| used.duration_since(UNIX_EPOCH).ok());
    Row {
        slot: lane.slot,
        target: lane.target,
        path: lane.path,
        kind: lane.kind,
        state,
        base: lane.base,
        head: lane.head,
        dirty: lane.dirty,
        in_use: lane.holder.is_some(),
        holder: lane.holder.and_then(|holder| holder.pid),
        hydration,
        size: lane.size,
        used: used.map(|used| used.as_secs()),
        env,
    }
}

/// Returns the facts about a lane, the most important first.
fn facts(row: &Row, cx: &Context<'_>) -> Vec<String> {
    let p = cx.out;
    let mut facts = Vec::new();
    match (row.in_use, row.holder) {
        (true, Some(pid)) => facts.push(p.accent(format!("in use by process {pid}")).to_string()),
        (true, None) => facts.push(p.accent("in use").to_string()),
        (false, _) => {}
    }
    facts.push(match (row.state, row.dirty) {
        ("ready", Some(false)) => p.good("clean").to_string(),
        ("ready", Some(true)) => p.warn("has changes").to_string(),
        ("ready", None) if row.base.is_none() => "empty".to_owned(),
        ("ready", None) => "may have changes".to_owned(),
        (state, _) => p.warn(state).to_string(),
    });
    if let Some(head) = &row.head {
        let ahead = if row.base.as_ref() == Some(head) { "at" } else { "commits up to" };
        facts.push(format!("{ahead} {head:.12}"));
    }
    match row.hydration {
        "passed" => facts.push("hydrated".to_owned()),
        "begun" => facts.push(p.warn("hydration interrupted").to_string()),
        _ => {}
    }
    if row.kind == LaneKind::Worktree {
        facts.push("linked worktree".to_owned());
    }
    facts.push(size(row.size));
    let now = u64::try_from(cx.env.now()).unwrap_or(0);
    if let Some(age) = row.used.and_then(|used| now.checked_sub(used)) {
        facts.push(format!("used {} ago", ago(age)));
    }
    facts
}
