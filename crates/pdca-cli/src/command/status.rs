//! `pdca status`: the state of every bundle, or all about one.

mod detail;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use camino::Utf8Path;
use pdca_driver::BeatFailure;
use pdca_state::{Awaits, BundleId, Coverage, LoadError, Overall, State};
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::{Failure, shorter};
use crate::meeting::Branch;
use crate::overview::runs::RunRow;
use crate::overview::{Blocker, Entry, HeldBy, Overview, UNREADABLE, ago, timestamp};
use crate::session;
use crate::style::{Painted, one_line, printable};

use super::plan::words;

/// Show the state of every bundle, or all about one
///
/// The state is read from the files that are there. Bundles that need a person come first. `[blocked-by: …]` names
/// what a bundle depends on that is not COMPLETE; while a driver is at work, `[lane 2, 3 min]` says where a bundle is in
/// work and for how long, and `[held-by: …]` which of those it may not run beside, with a path both can write. A bundle that cannot be read is one bad row; the exit code is 0
/// whenever the bundles could be listed.
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

    /// Show again whenever something changed, until interrupted
    #[arg(long)]
    watch: bool,
}

/// How often `--watch` looks.
const PERIOD: Duration = Duration::from_secs(1);

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    if !args.watch {
        show(args, cx, out)?;
        return Ok(Exit::Done);
    }
    cx.note(err, "watching; Ctrl-C ends it")?;
    let mut last = Vec::new();
    loop {
        let mut now = Vec::new();
        show(args, cx, &mut now)?;
        if now != last {
            if cx.ambient.terminal.stdout {
                write!(out, "\x1b[H\x1b[2J")?;
            }
            out.write_all(&now)?;
            out.flush()?;
            last = now;
        }
        std::thread::sleep(PERIOD);
    }
}

fn show(args: &Args, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(id) = &args.id {
        let bundle = cx.require_bundle(id)?;
        return detail::show(cx, &bundle, out);
    }
    let overview = Overview::load_at_work(cx)?;
    if cx.globals.json { emit_all(cx, &overview, out) } else { show_all(cx, &overview, out) }
}

/// What scripts get of one bundle.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    id: &'a str,
    dir: &'a Utf8Path,
    state: &'static str,
    blocked_by: Vec<&'a str>,
    /// Rivals at work right now.
    held_by: Vec<&'a str>,
    conflicts_with: Vec<&'a str>,
    touches: &'a [String],
    /// The slot it is in work in.
    lane: Option<u32>,
    /// Who is at work on it, by their own word.
    holder: Option<&'a str>,
    /// Since when it is in work; where it is not, when its directory last changed. In UTC.
    since: Option<String>,
    slug: Option<&'a str>,
    open_items: usize,
    disposition: Option<&'a str>,
    overall: Option<Overall>,
    patch_changed: bool,
    iterations: u32,
    /// The beat that failed, how often in a row, why, and its log; null where none did.
    failed: Option<&'a BeatFailure>,
    /// The name of the block that a person must lift: `blocked_recovery`; null where there is none.
    blocked: Option<&'a str>,
    /// Where an accepted change stands: `sealed`, `staged`, `landed`, `held`, `drifted`, `unsealed`.
    integration: Option<&'static str>,
    /// The branch it is staged in, or why it is held.
    integration_detail: Option<&'a str>,
    /// Why its result is stale: what it was built on changed.
    stale: Option<&'a str>,
    /// The bundles that its change does not merge with.
    forecast_conflicts: Vec<&'a str>,
    /// What to type to go on with it.
    next: Option<String>,
    error: Option<BadRow>,
}

#[derive(Debug, Serialize)]
struct BadRow {
    message: String,
    file: String,
    line: Option<usize>,
}

impl<'a> Row<'a> {
    pub(super) fn of(cx: &Context<'_>, entry: &'a Entry, overview: &'a Overview) -> Self {
        let (work, meeting) = (&overview.work, &overview.meeting);
        let at_work = work.on(&entry.id);
        let mark = meeting.mark(&entry.id);
        let empty = Row {
            id: entry.id.as_ref(),
            dir: &entry.dir,
            state: UNREADABLE,
            blocked_by: entry.blocked_by.iter().map(|blocker| blocker.id.as_ref()).collect(),
            blocked: overview.blocked.get(&entry.id).map(|(name, _)| name.as_str()),
            held_by: work.holding(&entry.id).iter().map(|by| by.id.as_ref()).collect(),
            conflicts_with: Vec::new(),
            touches: &[],
            lane: at_work.and_then(|at| at.lane),
            holder: at_work.map(|at| at.holder.as_str()),
            since: at_work.and_then(|at| timestamp(at.since?)).or_else(|| since(&entry.dir)),
            slug: None,
            open_items: 0,
            disposition: None,
            overall: None,
            patch_changed: false,
            iterations: 0,
            failed: entry.failed.as_ref(),
            integration: mark.map(|mark| mark.word),
            integration_detail: mark.and_then(|mark| mark.text.as_deref()),
            stale: meeting.stale(&entry.id).map(|stale| stale.why.as_str()),
            forecast_conflicts: meeting.conflicts(&entry.id).iter().map(AsRef::as_ref).collect(),
            next: super::next::of_bundle(cx, overview, entry),
            error: None,
        };
        match &entry.glance {
            Err(error) => Row { error: Some(BadRow::of(error)), ..empty },
            Ok(glance) => Row {
                state: glance.state.as_str(),
                conflicts_with: entry.conflicts_with.iter().map(AsRef::as_ref).collect(),
                touches: &glance.touches,
                slug: glance.slug.as_deref(),
                open_items: glance.open_items,
                disposition: glance.disposition_hint.as_deref(),
                overall: glance.overall,
                patch_changed: glance.coverage == Coverage::Changed,
                iterations: glance.iterations,
                ..empty
            },
        }
    }
}

impl BadRow {
    fn of(error: &LoadError) -> Self {
        BadRow { message: message(error), file: error.path().to_string(), line: error.line() }
    }
}

fn message(error: &LoadError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn since(dir: &Utf8Path) -> Option<String> {
    timestamp(fs_err::metadata(dir).ok()?.modified().ok()?)
}

#[derive(Serialize)]
struct All<'a> {
    /// The runs that are not over.
    runs: Vec<RunRow>,
    /// The branches with accepted changes that have not landed.
    targets: Vec<BranchRow<'a>>,
    bundles: Vec<Row<'a>>,
    strangers: Vec<Odd<'a>>,
    next: super::next::Next,
}

/// A branch with accepted changes that have not landed.
#[derive(Serialize)]
struct BranchRow<'a> {
    target: &'a str,
    branch: &'a str,
    counts: BTreeMap<&'static str, usize>,
    next: Option<String>,
    why: Option<&'a str>,
}

impl<'a> BranchRow<'a> {
    fn of(cx: &Context<'_>, branch: &'a Branch) -> Self {
        let (next, why) = branch.next.as_ref().map(|(next, why)| (next, why.as_str())).unzip();
        Self {
            target: &branch.target,
            branch: &branch.name,
            counts: branch.counts.iter().copied().collect(),
            next: next.map(|next| cx.typed(next)),
            why,
        }
    }
}

#[derive(Serialize)]
struct Odd<'a> {
    name: &'a str,
    why: String,
}

/// `status --json`.
pub(super) fn emit_all(
    cx: &Context<'_>,
    overview: &Overview,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let odd = |stranger: &'_ pdca_state::Stranger| stranger.why.to_string();
    let all = All {
        runs: runs(cx),
        targets: overview.meeting.branches.iter().map(|branch| BranchRow::of(cx, branch)).collect(),
        bundles: overview.entries.iter().map(|entry| Row::of(cx, entry, overview)).collect(),
        strangers: overview
            .strangers
            .iter()
            .map(|stranger| Odd { name: &stranger.name, why: odd(stranger) })
            .collect(),
        next: super::next::next(cx, overview),
    };
    cx.emit_json(out, "status", &all)
}

/// The table for people.
pub(super) fn show_all(
    cx: &Context<'_>,
    overview: &Overview,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for line in runs(cx).iter().flat_map(|run| run.lines(cx)) {
        writeln!(out, "{line}")?;
    }
    if overview.entries.is_empty() {
        writeln!(out, "no bundles in {}", cx.show(cx.workspace()?.bundle_root.path()))?;
    }
    let widest = |of: fn(&Entry) -> usize| overview.entries.iter().map(of).max().unwrap_or(0);
    let ids = widest(|entry| entry.id.as_ref().len()).min(24);
    let slugs = widest(|entry| {
        entry
            .glance
            .as_ref()
            .ok()
            .and_then(|glance| glance.slug.as_deref())
            .map_or(0, |slug| slug.chars().count())
    })
    .min(36);
    for entry in &overview.entries {
        let state = entry.state().map_or(UNREADABLE, State::as_str);
        let state = paint(cx.out, entry.state(), format!("{state:<16}"));
        match &entry.glance {
            Err(error) => {
                let what = shorter(&message(error), &cx.ambient.cwd);
                writeln!(out, "{state}  {:<ids$}  {}", entry.id, printable(&what))?;
            }
            Ok(glance) => {
                let slug = one_line(glance.slug.as_deref().unwrap_or("-"), slugs.max(1));
                let line = format!(
                    "{state}  {:<ids$}  {slug:<slugs$}  {}",
                    entry.id,
                    remarks(cx, entry, overview)
                );
                writeln!(out, "{}", line.trim_end())?;
            }
        }
    }
    for stranger in &overview.strangers {
        let name = printable(&stranger.name).into_owned();
        writeln!(
            out,
            "{}  {name} is not a bundle: {}",
            cx.out.warn("ignored"),
            printable(&stranger.why.to_string())
        )?;
    }
    if overview.entries.len() > 1 {
        let counts: Vec<String> =
            overview.counts().iter().map(|(state, count)| format!("{count} {state}")).collect();
        writeln!(
            out,
            "{}",
            cx.out.faint(format!("{} bundles: {}", overview.entries.len(), counts.join(", ")))
        )?;
    }
    if overview.meeting.branches.len() > 1 {
        for branch in &overview.meeting.branches {
            let counts: Vec<String> =
                branch.counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
            let name = format!("{} {}", branch.target, branch.name);
            write!(out, "{}  {}", cx.out.strong(printable(&name)), counts.join(", "))?;
            if let Some((next, _)) = &branch.next {
                write!(out, "  next: {}", cx.out.accent(cx.typed(next)))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// The runs that are not over. What keeps them from being told keeps nobody from seeing the bundles;
/// `pdca doctor` says it.
fn runs(cx: &Context<'_>) -> Vec<RunRow> {
    let Ok(site) = session::site(cx) else { return Vec::new() };
    let runs = pdca_driver::run_statuses(&site).unwrap_or_default();
    let integrations = pdca_driver::integrations(&site).unwrap_or_default();
    let runs = runs.iter().map(|sighting| RunRow::of(sighting, &site));
    let integrations = integrations.iter().map(|seen| RunRow::of_integration(seen, &site));
    runs.chain(integrations).collect()
}

/// What a person should know about a bundle besides its state.
fn remarks(cx: &Context<'_>, entry: &Entry, overview: &Overview) -> String {
    let work = &overview.work;
    let palette = cx.out;
    let mut remarks: Vec<String> = Vec::new();
    if let Some(at) = work.on(&entry.id) {
        let place = at.lane.map_or_else(|| "in work".to_owned(), |lane| format!("lane {lane}"));
        let long = at.since.map(|since| words::duration(ago(since, cx.ambient.now())));
        let long = long.map_or_else(String::new, |long| format!(", {long}"));
        remarks.push(palette.good(format!("[{place}{long}]")).to_string());
    }
    if let Some((name, _)) = overview.blocked.get(&entry.id) {
        remarks.push(palette.bad(format!("[{name}]")).to_string());
    }
    if !entry.blocked_by.is_empty() {
        let ids: Vec<String> = entry.blocked_by.iter().map(blocked_by).collect();
        remarks.push(palette.warn(format!("[blocked-by: {}]", ids.join(", "))).to_string());
    }
    let held: Vec<String> = work.holding(&entry.id).iter().map(held_by).collect();
    if !held.is_empty() {
        remarks.push(palette.warn(format!("[held-by: {}]", held.join(", "))).to_string());
    }
    let Ok(glance) = &entry.glance else { return String::new() };
    if glance.state == State::AwaitingSignoff {
        remarks.push(match (glance.open_items, glance.closes) {
            (0, true) => palette.good("[confirm the close]").to_string(),
            (0, false) => palette.good("[nothing open]").to_string(),
            (count, _) => format!("[{count} to decide]"),
        });
    }
    if let Some(failure) = &entry.failed {
        remarks.push(palette.bad(printable(&failed(failure))).to_string());
    }
    if glance.overall == Some(Overall::Fail) && !glance.state.is_terminal() {
        remarks.push(palette.bad("[gates: fail]").to_string());
    }
    if glance.coverage == Coverage::Changed {
        remarks.push(palette.bad("[patch edited after Check]").to_string());
    }
    let holds = |id: &BundleId| work.holding(&entry.id).iter().any(|by| by.id == *id);
    let rivals = entry.conflicts_with.iter().filter(|id| !holds(id));
    let rivals: Vec<&str> = rivals.map(AsRef::as_ref).collect();
    if !rivals.is_empty() && !glance.state.is_terminal() {
        remarks.push(format!("[not beside: {}]", rivals.join(", ")));
    }
    if let Some(stale) = overview.meeting.stale(&entry.id) {
        remarks.push(palette.warn(format!("[stale: {}]", printable(&stale.why))).to_string());
    }
    if let Some(mark) = overview.meeting.mark(&entry.id) {
        let text = mark.text.as_ref().map_or_else(String::new, |text| format!(": {text}"));
        let text = format!("[{}{}]", mark.word, printable(&text));
        let is_good = matches!(mark.word, "landed" | "sealed");
        let painted = if is_good { palette.good(text) } else { palette.warn(text) };
        remarks.push(painted.to_string());
    }
    let conflicts = overview.meeting.conflicts(&entry.id);
    if !conflicts.is_empty() {
        let ids: Vec<&str> = conflicts.iter().map(AsRef::as_ref).collect();
        remarks.push(palette.warn(format!("[will conflict: {}]", ids.join(", "))).to_string());
    }
    if glance.iterations > 0 {
        remarks.push(palette.faint(format!("[attempt {}]", glance.iterations + 1)).to_string());
    }
    remarks.join(" ")
}

fn held_by(by: &HeldBy) -> String {
    let until = match by.until {
        None | Some(Awaits::Built) => "",
        Some(Awaits::Accepted) => "until it is signed off",
        Some(Awaits::Landed) => "until it has landed",
    };
    match (&by.witness, until) {
        (Some(witness), "") => format!("{} ({})", by.id, printable(witness)),
        (Some(witness), until) => format!("{} {until} ({})", by.id, printable(witness)),
        (None, "") => by.id.to_string(),
        (None, until) => format!("{} {until}", by.id),
    }
}

/// `[builder failed ×2: timed out]`.
fn failed(failure: &BeatFailure) -> String {
    let BeatFailure { beat, times, why, .. } = failure;
    let times = if *times > 1 { format!(" ×{times}") } else { String::new() };
    format!("[{beat} failed{times}: {}]", one_line(why, 60))
}

/// What a bundle waits for, with what is awaited where its state alone does not say it.
fn blocked_by(blocker: &Blocker) -> String {
    match blocker.awaits {
        Awaits::Landed => format!("{} until it has landed", blocker.id),
        Awaits::Built | Awaits::Accepted => blocker.id.to_string(),
    }
}

/// A state in the colour of who must act.
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
