//! `pdca status`: the state of every bundle, or all about one.

pub(super) mod detail;
mod list;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::BeatFailure;
use pdca_state::{
    Artifact, Bundle, BundleId, CostTotal, Coverage, Glance, LoadError, Overall, State, chain,
};
use pdca_workspace::snapshot::{
    BranchSummary, DoingRow, Next, RunRow, SnapshotEntry, UNREADABLE, WorkspaceSnapshot, timestamp,
};
use serde::Serialize;

use crate::context::{Context, Globals, IdArg};
use crate::cost::Bill;
use crate::failure::Failure;
use crate::report::{Format, Report, Response, Table, render};
use crate::session;
use crate::style::{ColorWhen, Painted, printable};

/// Show the state of every bundle, or everything about one
///
/// The state is derived from the files of a bundle. Bundles that need you come first, then what runs, what waits, and what
/// is done. `[blocked-by: …]` names
/// dependencies that are not COMPLETE; while a driver is running, `[lane 2, 3 min]` tells where a bundle is in
/// flight and for how long, and `[held-by: …]` names bundles in flight that it may not run beside, with a path both can
/// write. An unreadable bundle is one bad row; the exit code is 0 whenever the bundles could be listed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca status
  pdca status 36              # brief, gates, open decisions, problems
  pdca status --watch
  pdca status --json | jq -r '.bundles[] | select(.state == \"PLANNED\") | .id'")]
pub(crate) struct Args {
    /// The bundle to show in full
    #[arg(value_name = "ID")]
    id: Option<IdArg>,

    /// Show again whenever something changes, until interrupted
    #[arg(long)]
    watch: bool,
}

impl Args {
    /// Shows every bundle again and again.
    pub(super) fn watching() -> Self {
        Self { id: None, watch: true }
    }
}

/// The polling interval of `--watch`.
const PERIOD: Duration = Duration::from_secs(1);

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    if !args.watch {
        return look(args, cx);
    }
    if cx.globals.format() == Format::Json {
        return Err(Failure::usage("`--watch` shows again and again, and `--json` prints one document")
            .hint("`pdca replay --follow --raw` prints what happens as lines of JSON, and so does `--events FILE` of the command that works"));
    }
    cx.note(err, "watching; Ctrl-C ends it")?;
    let mut last = Vec::new();
    loop {
        let mut now = Vec::new();
        render(&look(args, cx)?, cx, &mut now)?;
        if now != last {
            if cx.env.terminal.stdout {
                write!(out, "\x1b[H\x1b[2J")?;
            }
            out.write_all(&now)?;
            out.flush()?;
            last = now;
        }
        std::thread::sleep(PERIOD);
    }
}

fn look(args: &Args, cx: &Context<'_>) -> Result<Response, Failure> {
    match &args.id {
        Some(id) => detail::look(cx, &cx.require_bundle(id)?),
        None => Ok(Response::done(StatusReport::load(cx, false)?)),
    }
}

/// The JSON of one bundle.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct StatusRow {
    id: BundleId,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    dir: Utf8PathBuf,
    state: &'static str,
    blocked_by: Vec<BundleId>,
    /// Rivals in flight.
    held_by: Vec<BundleId>,
    conflicts_with: Vec<BundleId>,
    touches: Vec<String>,
    lane: Option<u32>,
    /// The process that holds it, as it says.
    holder: Option<String>,
    /// In UTC: the start of the work on it, or the last change of its directory.
    since: Option<String>,
    /// Its current activity; null where it is not in work.
    doing: Option<DoingRow>,
    slug: Option<String>,
    /// The labels that a person has to fill in before a draft counts.
    missing: Vec<&'static str>,
    open_items: usize,
    disposition: Option<String>,
    overall: Option<Overall>,
    patch_changed: bool,
    /// The brief was edited after Check.
    brief_changed: bool,
    /// The decision that the sign-off leaf proposes and nobody has made.
    proposed: Option<&'static str>,
    iterations: u32,
    /// What the calls of leaves cost, over all attempts; null if nothing is known of it.
    cost: Option<CostTotal>,
    /// The failure that still counts, or null.
    failed: Option<BeatFailure>,
    /// The name of the block that a person must lift, such as `blocked_recovery`, or null.
    blocked: Option<String>,
    /// The state of an accepted change: `sealed`, `staged`, `landed`, `held`, `drifted`, `unsealed`.
    integration: Option<&'static str>,
    /// The staging branch, or the reason why it is held.
    integration_detail: Option<String>,
    /// The reason why its result is stale: something it was built on changed.
    stale: Option<String>,
    /// The bundles that its change conflicts with.
    forecast_conflicts: Vec<BundleId>,
    /// The command that continues it.
    next: Option<String>,
    error: Option<BadRow>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BadRow {
    message: String,
    file: String,
    line: Option<usize>,
}

impl StatusRow {
    pub(super) fn of(
        cx: &Context<'_>,
        entry: &SnapshotEntry,
        overview: &WorkspaceSnapshot,
    ) -> Self {
        let (work, landing) = (&overview.work, &overview.landing);
        let at_work = work.on(&entry.id);
        let mark = landing.mark(&entry.id);
        let empty = StatusRow {
            id: entry.id.clone(),
            dir: entry.dir.clone(),
            state: UNREADABLE,
            blocked_by: entry.blocked_by.iter().map(|blocker| blocker.id.clone()).collect(),
            blocked: overview.blocked.get(&entry.id).map(|(name, _)| name.clone()),
            held_by: work.holding(&entry.id).iter().map(|by| by.id.clone()).collect(),
            conflicts_with: Vec::new(),
            touches: Vec::new(),
            lane: at_work.and_then(|at| at.lane),
            holder: at_work.map(|at| at.holder.clone()),
            since: at_work.and_then(|at| timestamp(at.since?)).or_else(|| since(&entry.dir)),
            doing: work.doing(&entry.id).map(DoingRow::of),
            slug: None,
            missing: Vec::new(),
            open_items: 0,
            disposition: None,
            overall: None,
            patch_changed: false,
            brief_changed: false,
            proposed: None,
            iterations: 0,
            cost: overview_cost(entry).filter(CostTotal::is_known),
            failed: entry.failed.clone(),
            integration: mark.map(|mark| mark.word),
            integration_detail: mark.and_then(|mark| mark.text.clone()),
            stale: landing.stale(&entry.id).map(|stale| stale.why.clone()),
            forecast_conflicts: landing.conflicts(&entry.id).to_vec(),
            next: super::next::of_bundle(cx, overview, entry),
            error: None,
        };
        match &entry.glance {
            Err(error) => StatusRow { error: Some(BadRow::of(error)), ..empty },
            Ok(glance) => StatusRow {
                state: glance.state.as_str(),
                conflicts_with: entry.conflicts_with.clone(),
                touches: glance.touches.clone(),
                slug: glance.slug.clone(),
                missing: glance.missing.clone(),
                open_items: glance.open_items,
                disposition: glance.disposition_hint.clone(),
                overall: glance.overall,
                patch_changed: glance.coverage == Coverage::Changed,
                brief_changed: glance.is_brief_edited,
                proposed: glance.proposed.map(pdca_state::SignoffAction::as_str),
                iterations: glance.iterations,
                ..empty
            },
        }
    }
}

impl StatusRow {
    pub(super) fn next(&self) -> Option<&str> {
        self.next.as_deref()
    }
}

impl BadRow {
    fn of(error: &LoadError) -> Self {
        BadRow { message: chain(error), file: error.path().to_string(), line: error.line() }
    }
}

fn since(dir: &Utf8Path) -> Option<String> {
    timestamp(fs_err::metadata(dir).ok()?.modified().ok()?)
}

/// The report about all bundles.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct StatusReport {
    /// The active runs.
    runs: Vec<RunRow>,
    /// The errors of reading runs, one line each.
    unread: Vec<String>,
    /// The branches with accepted changes that have not landed.
    targets: Vec<BranchRow>,
    bundles: Vec<StatusRow>,
    strangers: Vec<Odd>,
    /// What the calls of leaves cost, over all bundles.
    cost: CostTotal,
    /// How much waits for sign-off, and how much may before `pdca flow` holds builds back.
    pace: pdca_workspace::flow::UnsignedWork,
    /// How many cycles wait for a review of the process, and whether one is due; null if the Act log cannot be read.
    act: Option<pdca_workspace::act::ActCadence>,
    next: Next,
    #[serde(skip)]
    overview: WorkspaceSnapshot,
    #[serde(skip)]
    bill: Bill,
    /// Prints the next command for people.
    #[serde(skip)]
    with_next: bool,
}

/// A branch with accepted changes that have not landed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BranchRow {
    target: String,
    branch: String,
    counts: BTreeMap<&'static str, usize>,
    next: Option<String>,
    why: Option<String>,
}

impl BranchRow {
    fn of(cx: &Context<'_>, branch: &BranchSummary) -> Self {
        let (next, why) = branch.next.clone().unzip();
        Self {
            target: branch.target.clone(),
            branch: branch.name.clone(),
            counts: branch.counts.iter().copied().collect(),
            next: next.map(|next| cx.typed(&next)),
            why,
        }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Odd {
    name: String,
    why: String,
}

impl StatusReport {
    pub(super) fn load(cx: &Context<'_>, with_next: bool) -> Result<Self, Failure> {
        let mut overview = session::snapshot_at_work(cx)?;
        let odd = |stranger: &'_ pdca_state::Stranger| Odd {
            name: stranger.name.clone(),
            why: stranger.why.to_string(),
        };
        let branches = overview.landing.branches.iter();
        let row = |entry: &SnapshotEntry| StatusRow::of(cx, entry, &overview);
        // The next command of a bundle is searched over all its dependencies, which is slow, so only JSON has it.
        let is_json = cx.globals.format() == Format::Json;
        let bundles = overview.entries.iter().filter(|_| is_json).map(row).collect();
        let ended =
            overview.entries.iter().filter(|entry| entry.state().is_some_and(State::is_terminal));
        // A log that cannot be read is told by `pdca act index`; the bundles are shown all the same.
        let act = pdca_workspace::act::cadence(
            cx.workspace()?,
            ended.map(|entry| &entry.id),
            &cx.env.today(),
        )
        .ok();
        let next = super::next::next(cx, &overview);
        let next = act.as_ref().map_or(next.clone(), |act| super::next::after_act(cx, act, next));
        let bill = bill(&overview);
        let pace = overview.pace(&cx.workspace()?.config.flow);
        Ok(Self {
            pace,
            act,
            cost: bill.sum(),
            bill,
            runs: std::mem::take(&mut overview.runs),
            unread: std::mem::take(&mut overview.unread),
            targets: branches.map(|branch| BranchRow::of(cx, branch)).collect(),
            bundles,
            strangers: overview.strangers.iter().map(odd).collect(),
            next,
            overview,
            with_next,
        })
    }
}

impl Report for StatusReport {
    const KIND: &'static str = "status";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for why in &self.unread {
            let hint = cx.out.faint("# `pdca doctor` says more");
            writeln!(out, "{} {}   {hint}", cx.out.warn("runs cannot be read:"), printable(why))?;
        }
        list::show_all(cx, &self.overview, &self.runs, &self.bill, out)?;
        let is_held = self.overview.entries.iter().any(SnapshotEntry::can_go_on);
        if let Some(reason) = self.pace.reason().filter(|_| is_held) {
            let by = cx.out.faint("# by `pdca flow`; `pdca batch` builds all the same");
            let text = format!("builds are held back: {reason}");
            writeln!(out, "{}   {by}", cx.out.warn(text))?;
        }
        if let Some(act) = self.act.as_ref().filter(|act| act.waiting > 0) {
            let by = cx.out.faint(format!("# {}", cx.typed("pdca act index")));
            let text = format!("Act: {}", crate::render::act::cadence(act));
            let text = if act.due { cx.out.warn(text) } else { cx.out.faint(text) };
            writeln!(out, "{text}   {by}")?;
        }
        if self.with_next {
            next_line(cx, &self.next, out)?;
        }
        Ok(())
    }

    fn table(&self, cx: &Context<'_>) -> Option<Table> {
        let mut table = Table::new(&["state", "id", "slug", "remarks"]);
        let plain = Context::new(cx.env, Globals { color: ColorWhen::Never, ..cx.globals.clone() });
        for entry in &self.overview.entries {
            let state = entry.state().map_or(UNREADABLE, State::as_str).to_owned();
            let (slug, remarks) = match &entry.glance {
                Ok(glance) => {
                    let remarks = list::remarks(&plain, entry, &self.overview);
                    let texts: Vec<String> =
                        remarks.into_iter().map(|remark| remark.text).collect();
                    (glance.slug.clone(), texts.join(" "))
                }
                Err(error) => (None, chain(error)),
            };
            table.row([state, entry.id.to_string(), slug.unwrap_or_default(), remarks]);
        }
        Some(table)
    }
}

/// Returns the cost of a bundle; `None` if it has no record of calls.
fn overview_cost(entry: &SnapshotEntry) -> Option<CostTotal> {
    // Most bundles have none.
    let has_calls =
        |glance: &Glance| glance.iterations > 0 || glance.artifacts.contains(Artifact::Logs);
    if entry.glance.as_ref().is_ok_and(|glance| !has_calls(glance)) {
        return None;
    }
    Bundle::at(&entry.dir).ok()?.calls().cost().ok()
}

/// Returns the cost of all bundles.
fn bill(overview: &WorkspaceSnapshot) -> Bill {
    let mut bill = Bill::default();
    for entry in &overview.entries {
        let is_accepted = entry.state() == Some(State::Complete);
        bill.add(&entry.id, overview_cost(entry).unwrap_or_default(), is_accepted);
    }
    bill
}

/// Writes the next command with its reason, on two lines where one is too narrow.
fn next_line(cx: &Context<'_>, next: &Next, out: &mut dyn Write) -> Result<(), Failure> {
    let (command, why) = (cx.out.accent(&next.command), format!("# {}", next.why));
    let length = 9 + next.command.chars().count() + why.chars().count();
    let is_long = cx.env.terminal.width.is_some_and(|width| length > usize::from(width));
    let why = cx.out.faint(why);
    if is_long {
        writeln!(out, "\n{why}\nnext: {command}")?;
    } else {
        writeln!(out, "\nnext: {command}   {why}")?;
    }
    Ok(())
}

/// Colours a state by who has to act.
pub(super) fn paint<T: std::fmt::Display>(
    palette: crate::style::Palette,
    state: Option<State>,
    text: T,
) -> Painted<T> {
    match state {
        None => palette.bad(text),
        Some(State::AwaitingSignoff | State::Unplanned) => palette.warn(text),
        Some(State::Planned | State::Built | State::Checked | State::Iterate(_)) => {
            palette.accent(text)
        }
        Some(State::Complete) => palette.good(text),
        Some(State::Discontinued | State::Resolved) => palette.faint(text),
    }
}
