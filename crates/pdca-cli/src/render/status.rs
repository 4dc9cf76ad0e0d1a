//! The list of all bundles: groups, rows that fit the terminal, and what follows them.

use std::io::Write;
use std::time::Duration;

use pdca_driver::BeatFailure;
use pdca_journal::Liveness;
use pdca_state::{Awaits, BundleId, CostTotal, Coverage, Money, Overall, State, chain};
use pdca_workspace::issue::{IssueCosts, StatusRequest, WorkspaceStatus, workspace_status};
use pdca_workspace::review::Tone;
use pdca_workspace::snapshot::{
    Blocker, HeldBy, Next, RunRow, SnapshotEntry, StatusGroup, UNREADABLE, WorkspaceSnapshot, ago,
    next_of_workspace,
};
use serde::Serialize;

use crate::context::{Context, Globals};
use crate::cost;
use crate::failure::{Failure, shorter};
use crate::progress::span;
use crate::render::runs::run_lines;
use crate::render::{self, paint, toned};
use crate::report::{Format, Report, Table};
use crate::style::{ColorWhen, one_line, printable};
use crate::words;

/// The status of a workspace, with the command to type next.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StatusReport {
    #[serde(flatten)]
    status: WorkspaceStatus,
    next: Next,
    /// Prints the next command for people.
    #[serde(skip)]
    with_next: bool,
}

impl StatusReport {
    pub(crate) fn load(cx: &Context<'_>, with_next: bool) -> Result<Self, Failure> {
        let with_rows = cx.globals.format() == Format::Json;
        let mut status = workspace_status(&cx.open()?, StatusRequest { with_rows })?;
        let to_type = status.bundles.iter_mut().map(|row| &mut row.next);
        let to_type = to_type.chain(status.targets.iter_mut().map(|branch| &mut branch.next));
        for command in to_type.flatten() {
            *command = cx.typed(command);
        }
        let next = next_command(cx, &status);
        Ok(Self { status, next, with_next })
    }
}

/// Chooses the most useful command, to be typed here: a review of the process where nothing else is left and one is due.
fn next_command(cx: &Context<'_>, status: &WorkspaceStatus) -> Next {
    let mut next = next_of_workspace(&status.snapshot, &cx.env.cwd);
    if let Some(act) = status.act.as_ref().filter(|act| act.due && next.is_idle()) {
        next = Next { command: "pdca act index".to_owned(), why: render::act::cadence(act) };
    }
    // A person at a terminal is shown the cards themselves.
    let is_decision = next.command == "pdca queue" || next.command.starts_with("pdca show ");
    if is_decision && cx.env.terminal.stdin && cx.env.terminal.stdout {
        "pdca review".clone_into(&mut next.command);
    }
    Next { command: cx.typed(&next.command), ..next }
}

impl Report for StatusReport {
    const KIND: &'static str = "status";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for why in &self.status.unread {
            let hint = cx.out.faint("# `pdca doctor` says more");
            writeln!(out, "{} {}   {hint}", cx.out.warn("runs cannot be read:"), printable(why))?;
        }
        show_all(cx, &self.status, out)?;
        let is_held = self.status.snapshot.entries.iter().any(SnapshotEntry::can_go_on);
        if let Some(reason) = self.status.pace.reason().filter(|_| is_held) {
            let by = cx.out.faint("# by `pdca flow`; `pdca batch` builds all the same");
            let text = format!("builds are held back: {reason}");
            writeln!(out, "{}   {by}", cx.out.warn(text))?;
        }
        if let Some(act) = self.status.act.as_ref().filter(|act| act.waiting > 0) {
            let by = cx.out.faint(format!("# {}", cx.typed("pdca act index")));
            let text = format!("Act: {}", render::act::cadence(act));
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
        for entry in &self.status.snapshot.entries {
            let state = entry.state().map_or(UNREADABLE, State::as_str).to_owned();
            let (slug, remarks) = match &entry.glance {
                Ok(glance) => {
                    let remarks = remarks(&plain, entry, &self.status.snapshot);
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

/// Returns one line about the cost of all bundles; `None` if no cost is known.
fn cost_line(costs: &IssueCosts) -> Option<String> {
    let sum = costs.sum();
    let words = cost::total(&sum)?;
    // Tokens alone, without a price, make no line about cost.
    sum.words()?;
    let each = match costs.accepted {
        0 => String::new(),
        accepted => {
            let each = Money::from_micros(sum.cost.micros().div_ceil(accepted));
            format!(", {each} per accepted issue")
        }
    };
    Some(format!("cost: {words}{each}"))
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

/// The width of the longest state.
const STATE: usize = 16;
/// The widest columns for ids and slugs.
const ID: usize = 24;
const SLUG: usize = 36;
/// The indent of remarks that do not fit beside their bundle.
const INDENT: usize = 4;

/// A remark about a bundle.
struct StatusRemark {
    tone: Tone,
    text: String,
}

/// The widths of the columns.
struct Columns {
    id: usize,
    slug: usize,
    /// The width of the terminal; `None` if the output is not for one, and lines stay whole.
    width: Option<usize>,
}

impl Columns {
    fn of(cx: &Context<'_>, overview: &WorkspaceSnapshot) -> Self {
        let width = cx.env.terminal.width.map(|width| usize::from(width).max(40));
        let widest =
            |of: fn(&SnapshotEntry) -> usize| overview.entries.iter().map(of).max().unwrap_or(0);
        let id = widest(|entry| entry.id.as_ref().len()).min(ID);
        let slug = widest(|entry| {
            let glance = entry.glance.as_ref().ok();
            glance.and_then(|glance| glance.slug.as_deref()).map_or(0, |slug| slug.chars().count())
        });
        // Half of what is left is for the remarks.
        let room = width.map_or(SLUG, |width| (width.saturating_sub(STATE + id + 6) / 2).max(8));
        Self { id, slug: slug.min(SLUG).min(room), width }
    }

    fn fit(&self, text: &str) -> String {
        self.width.map_or_else(|| printable(text).into_owned(), |width| one_line(text, width))
    }
}

/// Writes the bundles by group, then what there is besides.
fn show_all(
    cx: &Context<'_>,
    status: &WorkspaceStatus,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let WorkspaceStatus { snapshot: overview, runs, costs, .. } = status;
    if overview.entries.is_empty() {
        writeln!(out, "no bundles in {}", cx.show(cx.workspace()?.bundle_root.path()))?;
    }
    let columns = Columns::of(cx, overview);
    let grouped = StatusGroup::ALL.map(|group| {
        let of_it = |entry: &&SnapshotEntry| overview.group(entry) == group;
        let runs = runs.iter().filter(|run| group_of_run(run) == group);
        let lines: Vec<String> = runs.flat_map(|run| run_lines(run, cx)).collect();
        (group, lines, overview.entries.iter().filter(of_it).collect::<Vec<_>>())
    });
    let shown = |(_, runs, entries): &&(StatusGroup, Vec<String>, Vec<&SnapshotEntry>)| {
        !runs.is_empty() || !entries.is_empty()
    };
    let is_mixed = grouped.iter().filter(shown).count() > 1;
    for (group, runs, entries) in grouped.iter().filter(shown) {
        if is_mixed {
            writeln!(out, "{}", cx.out.strong(group.title()))?;
        }
        for line in runs.iter().flat_map(|line| folded(line, columns.width)) {
            writeln!(out, "{line}")?;
        }
        for entry in entries {
            row(cx, entry, overview, costs, &columns, out)?;
        }
    }
    for stranger in &overview.strangers {
        let text = format!("{} is not a bundle: {}", stranger.name, stranger.why);
        let room = columns.width.map_or(usize::MAX, |width| width.saturating_sub(9));
        writeln!(out, "{}  {}", cx.out.warn("ignored"), one_line(&text, room))?;
    }
    foot(cx, overview, costs, &columns, out)
}

/// Returns the group of a run: one that nobody drives, or that is blocked, needs a person.
fn group_of_run(run: &RunRow) -> StatusGroup {
    let is_alive = run.driver.as_ref().is_some_and(|driver| driver.liveness == Liveness::Alive);
    if is_alive && run.block.is_none() { StatusGroup::Running } else { StatusGroup::NeedsYou }
}

/// Folds a line at its commas, where it is wider than the terminal. Colours take no width.
fn folded(line: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width.filter(|width| visible(line) > *width) else {
        return vec![line.to_owned()];
    };
    let mut lines: Vec<String> = Vec::new();
    for part in line.split_inclusive([',', ';']) {
        match lines.last_mut() {
            Some(last) if visible(last) + visible(part) <= width => last.push_str(part),
            Some(_) => lines.push(format!("    {}", part.trim_start())),
            None => lines.push(part.to_owned()),
        }
    }
    lines
}

/// Returns the number of columns that a line with colours takes.
fn visible(line: &str) -> usize {
    // A colour is `ESC [ … m`.
    let mut parts = line.split('\u{1b}');
    let first = parts.next().map_or(0, |part| part.chars().count());
    let rest = parts.map(|part| part.split_once('m').map_or(0, |(_, text)| text.chars().count()));
    first + rest.sum::<usize>()
}

/// Writes one bundle: remarks that do not fit beside it follow on lines of their own.
fn row(
    cx: &Context<'_>,
    entry: &SnapshotEntry,
    overview: &WorkspaceSnapshot,
    costs: &IssueCosts,
    columns: &Columns,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let state = entry.state().map_or(UNREADABLE, State::as_str);
    let painted = paint(cx.out, entry.state(), format!("{state:<STATE$}"));
    let id = match columns.width {
        Some(width) => one_line(entry.id.as_ref(), width.saturating_sub(STATE + 2)),
        None => entry.id.to_string(),
    };
    let glance = match &entry.glance {
        Ok(glance) => glance,
        Err(error) => {
            let what = shorter(&chain(error), &cx.env.cwd);
            let taken = STATE + 4 + id.len().max(columns.id);
            let room =
                columns.width.map_or(usize::MAX, |width| width.saturating_sub(taken).max(20));
            let what = one_line(&what, room);
            writeln!(out, "{painted}  {id:<width$}  {what}", width = columns.id)?;
            return Ok(());
        }
    };
    let slug = one_line(glance.slug.as_deref().unwrap_or("-"), columns.slug.max(1));
    let mut remarks = remarks(cx, entry, overview);
    if let Some(cost) = costs.bundles.get(&entry.id).and_then(CostTotal::words) {
        let cost = format!("[{}]", cost.split(' ').next().unwrap_or_default());
        remarks.insert(0, StatusRemark { tone: Tone::Plain, text: cost });
    }
    let id_width = id.chars().count().max(columns.id);
    let mut line = format!("{painted}  {id:<id_width$}");
    let mut used = STATE + 2 + id_width;
    if columns.width.is_some_and(|width| used + 2 + columns.slug > width) {
        // An id that takes the whole line leaves the slug to the next one.
        remarks.insert(0, StatusRemark { tone: Tone::Plain, text: slug });
    } else {
        line = format!("{line}  {slug:<width$}", width = columns.slug);
        used += 2 + slug.chars().count().max(columns.slug);
    }
    let mut gap = 2;
    for remark in remarks {
        let text = columns.width.map_or_else(
            || remark.text.clone(),
            |width| one_line(&remark.text, width.saturating_sub(INDENT)),
        );
        let length = text.chars().count();
        if columns.width.is_some_and(|width| used + gap + length > width) {
            writeln!(out, "{}", line.trim_end())?;
            (line, used, gap) = (String::new(), 0, INDENT);
        }
        line.push_str(&" ".repeat(gap));
        line.push_str(&toned(cx.out, remark.tone, &text));
        (used, gap) = (used + gap + length, 1);
    }
    Ok(writeln!(out, "{}", line.trim_end())?)
}

/// Writes the counts, the cost, and the branches if there are several.
fn foot(
    cx: &Context<'_>,
    overview: &WorkspaceSnapshot,
    costs: &IssueCosts,
    columns: &Columns,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if overview.entries.len() > 1 {
        let mut counts: Vec<String> =
            overview.counts().iter().map(|(state, count)| format!("{count} {state}")).collect();
        if let Some(first) = counts.first_mut() {
            *first = format!("{} bundles: {first}", overview.entries.len());
        }
        let width = columns.width.unwrap_or(usize::MAX);
        for line in words::wrapped(counts.iter().map(String::as_str), ", ", width) {
            writeln!(out, "{}", cx.out.faint(line))?;
        }
    }
    if let Some(line) = cost_line(costs) {
        writeln!(out, "{}", cx.out.faint(columns.fit(&line)))?;
    }
    if overview.landing.branches.len() > 1 {
        for branch in &overview.landing.branches {
            let counts: Vec<String> =
                branch.counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
            let name = format!("{} {}", branch.target, branch.name);
            write!(out, "{}  {}", cx.out.strong(printable(&name)), counts.join(", "))?;
            if let Some((next, _)) = &branch.next {
                // A command stays whole, so that it can be pasted.
                let next = cx.typed(next);
                let length = name.chars().count() + counts.join(", ").len() + next.len() + 10;
                let is_long = columns.width.is_some_and(|width| length > width);
                write!(
                    out,
                    "{}next: {}",
                    if is_long { "\n    " } else { "  " },
                    cx.out.accent(next)
                )?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Returns the remarks about a bundle besides its state.
fn remarks(
    cx: &Context<'_>,
    entry: &SnapshotEntry,
    overview: &WorkspaceSnapshot,
) -> Vec<StatusRemark> {
    let work = &overview.work;
    let mut remarks: Vec<StatusRemark> = Vec::new();
    let mut say = |tone, text: String| {
        remarks.push(StatusRemark { tone, text: printable(&text).into_owned() });
    };
    if let Some(at) = work.on(&entry.id) {
        let place = at.lane.map_or_else(|| "in work".to_owned(), |lane| format!("lane {lane}"));
        let long = at.since.map(|since| words::duration(ago(since, cx.env.now())));
        let long = long.map_or_else(String::new, |long| format!(", {long}"));
        let doing = work.doing(&entry.id).map(|doing| {
            let seconds = cx.env.now().saturating_sub(doing.since.as_second());
            let long = span(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
            format!(": {} for {long}", doing.text())
        });
        say(Tone::Good, format!("[{place}{long}{}]", doing.unwrap_or_default()));
    }
    if let Some((name, _)) = overview.blocked.get(&entry.id) {
        say(Tone::Bad, format!("[{name}]"));
    }
    if !entry.blocked_by.is_empty() {
        let ids: Vec<String> = entry.blocked_by.iter().map(blocked_by).collect();
        say(Tone::Warn, format!("[blocked-by: {}]", ids.join(", ")));
    }
    let held: Vec<String> = work.holding(&entry.id).iter().map(held_by).collect();
    if !held.is_empty() {
        say(Tone::Warn, format!("[held-by: {}]", held.join(", ")));
    }
    let Ok(glance) = &entry.glance else { return Vec::new() };
    if !glance.missing.is_empty() {
        say(Tone::Warn, format!("[fill in: {}]", glance.missing.join(", ")));
    }
    if glance.state == State::AwaitingSignoff {
        match (glance.open_items, glance.closes) {
            (0, true) => say(Tone::Good, "[confirm the close]".to_owned()),
            (0, false) => say(Tone::Good, "[nothing open]".to_owned()),
            (count, _) => say(Tone::Plain, format!("[{count} to decide]")),
        }
    }
    if let Some(failure) = &entry.failed {
        say(Tone::Bad, failed(failure));
    }
    if glance.overall == Some(Overall::Fail) && !glance.state.is_terminal() {
        say(Tone::Bad, "[gates: fail]".to_owned());
    }
    if glance.coverage == Coverage::Changed {
        say(Tone::Bad, "[patch edited after Check]".to_owned());
    }
    if let Some(action) = glance.proposed {
        say(Tone::Plain, format!("[proposed: {action}]"));
    }
    if glance.is_brief_edited {
        say(Tone::Bad, "[brief edited after Check]".to_owned());
    }
    let holds = |id: &BundleId| work.holding(&entry.id).iter().any(|by| by.id == *id);
    let rivals = entry.conflicts_with.iter().filter(|id| !holds(id));
    let rivals: Vec<&str> = rivals.map(AsRef::as_ref).collect();
    if !rivals.is_empty() && !glance.state.is_terminal() {
        say(Tone::Plain, format!("[not beside: {}]", rivals.join(", ")));
    }
    if let Some(stale) = overview.landing.stale(&entry.id) {
        say(Tone::Warn, format!("[stale: {}]", stale.why));
    }
    if let Some(mark) = overview.landing.mark(&entry.id) {
        let text = mark.text.as_ref().map_or_else(String::new, |text| format!(": {text}"));
        let is_good = matches!(mark.word, "landed" | "sealed");
        say(if is_good { Tone::Good } else { Tone::Warn }, format!("[{}{text}]", mark.word));
    }
    let conflicts = overview.landing.conflicts(&entry.id);
    if !conflicts.is_empty() {
        let ids: Vec<&str> = conflicts.iter().map(AsRef::as_ref).collect();
        say(Tone::Warn, format!("[will conflict: {}]", ids.join(", ")));
    }
    if glance.iterations > 0 {
        say(Tone::Faint, format!("[attempt {}]", glance.iterations + 1));
    }
    remarks
}

pub(crate) fn held_by(by: &HeldBy) -> String {
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

/// Renders `[builder failed ×2: timed out]`.
fn failed(failure: &BeatFailure) -> String {
    let BeatFailure { beat, times, why, .. } = failure;
    let how = match times {
        0 => "was hindered".to_owned(),
        1 => "failed".to_owned(),
        times => format!("failed ×{times}"),
    };
    format!("[{beat} {how}: {}]", one_line(why, 60))
}

/// Names a blocker, with what is awaited if its state alone does not tell.
fn blocked_by(blocker: &Blocker) -> String {
    match blocker.awaits {
        Awaits::Landed => format!("{} until it has landed", blocker.id),
        Awaits::Built | Awaits::Accepted => blocker.id.to_string(),
    }
}
