//! Lanes as text and as a table.

use std::io::Write;

use camino::Utf8PathBuf;
use pdca_lanes::{
    HydratePhase, HydrationState, LaneFinding, LaneKind, LaneState, ProvisionEvent, Remedy, Stays,
    SweepDecision, SweepReason,
};
use pdca_workspace::lanes::{
    HydrationOutcome, LaneEnv, LaneList, LaneRemoval, LaneRemovals, LaneReset, LaneResets,
    ListedLane, MissingLane, ProvisionProgress, ProvisionedLane, ProvisionedLanes, Sweep,
    SweptLane,
};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::json::write_json;
use crate::report::{Report, Response, Table};
use crate::session::{self, Interrupts};
use crate::style::{printable, shell};
use crate::words::{age as ago, size};

impl Report for LaneList {
    const KIND: &'static str = "lanes";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.lanes.is_empty() {
            writeln!(out, "no lanes in {}", cx.show(&self.root))?;
            writeln!(out, "{} `pdca lanes provision` makes them", cx.out.accent("hint:"))?;
        }
        for lane in &self.lanes {
            writeln!(out, "lane {:<3} {:<16} {}", lane.slot, lane.target, cx.show(&lane.path))?;
            writeln!(out, "         {}", facts(lane, cx).join(", "))?;
        }
        Ok(())
    }

    fn table(&self, cx: &Context<'_>) -> Option<Table> {
        let mut table = Table::new(&["lane", "target", "state", "head", "size", "path"]);
        for lane in &self.lanes {
            let state = match lane.dirty {
                _ if lane.in_use => "in use",
                Some(true) => "changed",
                Some(false) | None => state(lane.state),
            };
            table.row([
                lane.slot.to_string(),
                lane.target.clone(),
                state.to_owned(),
                lane.head.as_ref().map_or_else(String::new, |head| format!("{head:.12}")),
                size(lane.size),
                cx.show(&lane.path).to_owned(),
            ]);
        }
        Some(table)
    }
}

fn state(state: LaneState) -> &'static str {
    match state {
        LaneState::Ready => "ready",
        LaneState::Interrupted => "interrupted",
        LaneState::Gone => "gone",
    }
}

/// Returns the facts about a lane, the most important first.
fn facts(lane: &ListedLane, cx: &Context<'_>) -> Vec<String> {
    let p = cx.out;
    let mut facts = Vec::new();
    match (lane.in_use, lane.holder) {
        (true, Some(pid)) => facts.push(p.accent(format!("in use by process {pid}")).to_string()),
        (true, None) => facts.push(p.accent("in use").to_string()),
        (false, _) => {}
    }
    facts.push(match (lane.state, lane.dirty) {
        (LaneState::Ready, Some(false)) => p.good("clean").to_string(),
        (LaneState::Ready, Some(true)) => p.warn("has changes").to_string(),
        (LaneState::Ready, None) if lane.base.is_none() => "empty".to_owned(),
        (LaneState::Ready, None) => "may have changes".to_owned(),
        (LaneState::Interrupted | LaneState::Gone, _) => p.warn(state(lane.state)).to_string(),
    });
    if let Some(head) = &lane.head {
        let ahead = if lane.base.as_ref() == Some(head) { "at" } else { "commits up to" };
        facts.push(format!("{ahead} {head:.12}"));
    }
    match lane.hydration {
        HydrationState::Passed => facts.push("hydrated".to_owned()),
        HydrationState::Begun => facts.push(p.warn("hydration interrupted").to_string()),
        HydrationState::None => {}
    }
    if lane.kind == LaneKind::Worktree {
        facts.push("linked worktree".to_owned());
    }
    facts.push(size(lane.size));
    let now = u64::try_from(cx.env.now()).unwrap_or(0);
    if let Some(age) = lane.used.and_then(|used| now.checked_sub(used)) {
        facts.push(format!("used {} ago", ago(age)));
    }
    facts
}

impl Report for ProvisionedLanes {
    const KIND: &'static str = "lanes-provision";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for MissingLane { slot, target } in &self.missing {
            writeln!(out, "lane {slot} of {target}: would be made")?;
        }
        if self.dry_run && self.missing.is_empty() {
            writeln!(out, "every lane is there")?;
        }
        for ProvisionedLane { target, lane, hydration } in &self.lanes {
            let made = if lane.made { "made" } else { "was there" };
            let hydrated = match hydration {
                HydrationOutcome::Fresh => ", hydrated",
                HydrationOutcome::Warm => ", hydrated before",
                HydrationOutcome::Nothing | HydrationOutcome::Skipped => "",
            };
            let path = cx.show(&lane.path);
            writeln!(
                out,
                "lane {} of {target}: {made} at {:.12}{hydrated}  {path}",
                lane.slot, lane.base
            )?;
        }
        Ok(())
    }
}

/// Picks the exit code of provisioning.
pub(crate) fn provisioned(lanes: ProvisionedLanes) -> Response {
    let is_complete = lanes.dry_run && lanes.missing.is_empty();
    let exit = if is_complete { Exit::NothingToDo } else { Exit::Done };
    Response::new(lanes, exit)
}

/// Shows what happens while lanes are made, and stops hydration at a signal.
pub(crate) struct ProvisionNotes<'a> {
    cx: &'a Context<'a>,
    err: &'a mut dyn Write,
    /// The number of lanes was asked for by a flag.
    by_flag: bool,
    signals: Option<Interrupts>,
}

impl<'a> ProvisionNotes<'a> {
    pub(crate) fn new(cx: &'a Context<'a>, err: &'a mut dyn Write, by_flag: bool) -> Self {
        Self { cx, err, by_flag, signals: None }
    }

    pub(crate) fn show(&mut self, progress: ProvisionProgress) -> Result<(), Failure> {
        let cx = self.cx;
        match progress {
            ProvisionProgress::Reckoned(reckoning) => cx.note(self.err, &reckoning.to_string()),
            ProvisionProgress::NoLaneAsked => {
                session::note_no_lanes(cx, self.by_flag, "driver.lanes", self.err)
            }
            ProvisionProgress::Remark(remark) => self.warn(&remark),
            ProvisionProgress::Making { target, event } => self.making(&event, &target),
            ProvisionProgress::HydrationBegins { cancel } => match Interrupts::listen(&cancel) {
                Ok(signals) => {
                    self.signals = Some(signals);
                    Ok(())
                }
                Err(failure) => {
                    cancel.cancel();
                    Err(failure)
                }
            },
            ProvisionProgress::Hydrating { slot, target, phase } => {
                let word = match phase {
                    HydratePhase::Install => "installing",
                    HydratePhase::Verify => "verifying",
                };
                cx.note(self.err, &format!("lane {slot} of {target}: {word}"))
            }
            ProvisionProgress::HydrationEnded => {
                if let Some(signals) = self.signals.take() {
                    signals.close();
                }
                Ok(())
            }
            ProvisionProgress::NotCopied { slot, target, path } => {
                self.warn(&printable(&format!("lane {slot} of {target}: {path} was not copied")))
            }
        }
    }

    fn warn(&mut self, text: &str) -> Result<(), Failure> {
        self.cx.note(self.err, &format!("{} {text}", self.cx.err.warn("warning:")))
    }

    fn making(&mut self, event: &ProvisionEvent, target: &str) -> Result<(), Failure> {
        /// Clears the live line on a terminal.
        const CLEAR: &str = "\r\u{1b}[K";
        let (cx, err) = (self.cx, &mut *self.err);
        let live = cx.env.terminal.stderr && !cx.globals.quiet;
        if live {
            write!(err, "{CLEAR}")?;
        }
        match event {
            ProvisionEvent::Waiting { slot, holder } => {
                let whom = holder
                    .map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
                cx.note(err, &format!("lane {slot} of {target}: waits for {whom}"))
            }
            ProvisionEvent::Making { slot } => {
                cx.note(err, &format!("lane {slot} of {target}: being made"))
            }
            ProvisionEvent::Files { slot, done, total } => {
                if live {
                    write!(err, "lane {slot} of {target}: {done}/{total} files")?;
                    err.flush()?;
                }
                Ok(())
            }
            ProvisionEvent::Ready(lane) if lane.made => {
                let (slot, base) = (lane.slot, &lane.base);
                cx.note(err, &format!("lane {slot} of {target}: ready at {base:.12}"))
            }
            ProvisionEvent::Ready(_) => Ok(()),
        }
    }
}

/// The private names of a lane in the syntax of a shell.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LaneEnvReport {
    #[serde(flatten)]
    pub(crate) lane: LaneEnv,
    #[serde(skip)]
    pub(crate) syntax: EnvSyntax,
}

/// The syntax of the variables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EnvSyntax {
    /// `export NAME='value'`, for sh, bash and zsh
    #[default]
    Sh,
    /// `set -gx NAME 'value'`
    Fish,
    /// An object
    Json,
}

impl Report for LaneEnvReport {
    const KIND: &'static str = "lane-env";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for (name, value) in &self.lane.env {
            match self.syntax {
                EnvSyntax::Sh => writeln!(out, "export {name}={}", shell(value))?,
                EnvSyntax::Fish => {
                    let value = value.replace('\\', r"\\").replace('\'', r"\'");
                    writeln!(out, "set -gx {name} '{value}'")?;
                }
                EnvSyntax::Json => return Ok(write_json(out, Self::KIND, self, None)?),
            }
        }
        Ok(())
    }
}

/// What is wrong with the lanes, with the remedies.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LaneFindings {
    findings: Vec<FindingRow>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FindingRow {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    path: Utf8PathBuf,
    /// The lane cannot be used as it is.
    broken: bool,
    found: String,
    remedy: String,
}

/// Returns the response to a check of the lanes.
pub(crate) fn checked(findings: &[LaneFinding]) -> Response {
    let row = |finding: &LaneFinding| FindingRow {
        path: finding.path().to_owned(),
        broken: finding.is_broken(),
        found: problem(finding),
        remedy: remedy(finding.remedy()).to_owned(),
    };
    let is_broken = findings.iter().any(LaneFinding::is_broken);
    let exit = if is_broken { Exit::Usage } else { Exit::Done };
    Response::new(LaneFindings { findings: findings.iter().map(row).collect() }, exit)
}

impl Report for LaneFindings {
    const KIND: &'static str = "lanes-doctor";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let p = cx.out;
        if self.findings.is_empty() {
            writeln!(out, "{}", p.good("✓ nothing is wrong with the lanes"))?;
        }
        for row in &self.findings {
            let mark = if row.broken { p.bad("✗ broken") } else { p.warn("! note  ") };
            writeln!(out, "{mark}  {}: {}", cx.show(&row.path), row.found)?;
            writeln!(out, "          {} {}", p.accent("hint:"), row.remedy)?;
        }
        Ok(())
    }
}

fn problem(finding: &LaneFinding) -> String {
    match finding {
        LaneFinding::NoMarker { .. } => "is not a lane: it has no marker".to_owned(),
        LaneFinding::BadMarker { why, .. } => format!("cannot be read: {why}"),
        LaneFinding::Newer { format, .. } => format!("was made by a newer pdca (format {format})"),
        LaneFinding::Copied { slot, .. } => format!("is a copy of lane {slot}, or was renamed"),
        LaneFinding::CopiedWorktree { home, .. } => {
            format!("is a copied worktree: git in it would work on {home}")
        }
        LaneFinding::NoRepository { .. } => {
            "has no .git: git in it would work on a repository above".to_owned()
        }
        LaneFinding::Interrupted { .. } => "was interrupted while it was made".to_owned(),
        LaneFinding::PrimaryGone { primary, .. } => {
            format!("borrows its objects from {primary}, which is gone")
        }
        LaneFinding::PrimaryMoved { was, now, .. } => {
            format!("its target moved from {was} to {now}")
        }
        LaneFinding::OtherPrimary { primary, .. } => {
            format!("was made from another repository than the one at {primary}")
        }
        LaneFinding::UnknownTarget { target, .. } => format!("no target `{target}` is configured"),
        LaneFinding::BaseMissing { base, .. } => {
            format!("stands on {base:.12}, which the target does not have any more")
        }
        LaneFinding::StaleLock { .. } => "was left by a git that is gone".to_owned(),
        LaneFinding::HydrationInterrupted { .. } => "its hydration did not pass".to_owned(),
        LaneFinding::HalfRemoved { .. } => {
            "is left of a removal; what was in it is kept already".to_owned()
        }
        LaneFinding::Rescued { .. } => "holds work that was rescued".to_owned(),
    }
}

fn remedy(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::NextClaim => "nothing to do: the next use of the lane puts it in order",
        Remedy::MoveAway => "move it out of the lanes, or remove it when nothing in it is needed",
        Remedy::NewerVersion => "use the newer pdca, or `pdca lanes remove` it with that",
        Remedy::RestorePrimary => "put the repository back where it was, or move the lane away",
        Remedy::FetchBase => "fetch the commit into the target's checkout, or move the lane away",
        Remedy::NameTarget => "add the [[targets]] again, or move the lane away",
        Remedy::Remove => "`pdca lanes remove <slot>` completes it",
        Remedy::LookAt => "look at it; remove it when nothing in it is needed",
    }
}

impl Report for LaneRemovals {
    const KIND: &'static str = "lanes-remove";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.lanes.is_empty() {
            writeln!(out, "there are no lanes to remove")?;
        }
        self.lanes.iter().try_for_each(|lane| removal(lane, cx, out))
    }
}

/// Picks the exit code of a removal.
pub(crate) fn removed(removals: LaneRemovals) -> Response {
    let failed = removals.lanes.iter().any(|lane| lane.kept_because.is_some());
    let exit = match (failed, removals.lanes.is_empty()) {
        (true, _) => Exit::Unexpected,
        (false, true) => Exit::NothingToDo,
        (false, false) => Exit::Done,
    };
    Response::new(removals, exit)
}

fn removal(removal: &LaneRemoval, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let lane = format!("lane {} of {}", removal.slot, removal.target);
    match (&removal.kept_because, removal.removed) {
        (Some(why), _) => writeln!(out, "{lane}: {} ({why})", cx.out.warn("stays"))?,
        (None, true) => writeln!(out, "{lane}: removed")?,
        (None, false) => {
            let work = match removal.has_work {
                Some(true) => "; what is in it would be kept in a bundle",
                Some(false) => "",
                None => "; anything the target does not have would be kept in a bundle",
            };
            writeln!(out, "{lane}: would be removed{work}")?;
        }
    }
    if let Some(aside) = &removal.moved_aside {
        writeln!(out, "  its checkout was broken, and is as it was in {aside}")?;
    }
    if let Some(bundle) = &removal.bundle {
        writeln!(out, "  kept: {}", cx.show(bundle))?;
    }
    if let Some(fetch) = &removal.fetch {
        writeln!(out, "  {} {fetch}", cx.out.accent("get it back:"))?;
    }
    Ok(())
}

impl Report for LaneResets {
    const KIND: &'static str = "lanes-reset";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for lane in &self.lanes {
            let (would, kept) =
                if lane.done { ("", "rescued") } else { ("would be ", "to rescue") };
            writeln!(
                out,
                "lane {} of {}: {would}reset to {:.12}",
                lane.slot, lane.target, lane.base
            )?;
            match &lane.rescued {
                Some(rescued) if lane.done => writeln!(out, "  {kept}: {}", found(lane, rescued))?,
                Some(_) => writeln!(out, "  {kept}: the changes that are in it")?,
                None => {}
            }
        }
        Ok(())
    }
}

/// Returns where the rescued work is, for a person.
fn found(lane: &LaneReset, rescued: &str) -> String {
    if lane.is_moved {
        return shell(rescued).into_owned();
    }
    format!("git -C {} show {rescued:.12}", shell(lane.path.as_str()))
}

impl Report for Sweep {
    const KIND: &'static str = "sweep";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        writeln!(out, "{} free", size(self.free))?;
        for swept in &self.lanes {
            let age = swept.age.map_or_else(String::new, |age| format!(", used {} ago", ago(age)));
            let size = size(swept.size);
            match swept.decision {
                SweepDecision::Remove(reason) => {
                    removal(&swept.lane, cx, out)?;
                    writeln!(out, "  because {} ({size}{age})", because(reason))?;
                }
                SweepDecision::Keep(stays) if cx.globals.verbose > 0 => {
                    let (slot, target) = (swept.lane.slot, &swept.lane.target);
                    let why = stays_because(stays);
                    writeln!(out, "lane {slot} of {target}: stays, {why} ({size}{age})")?;
                }
                SweepDecision::Keep(_) => {}
            }
        }
        if !self.lanes.iter().any(SweptLane::goes) {
            writeln!(out, "no lane has to go")?;
        }
        Ok(())
    }
}

fn because(reason: SweepReason) -> &'static str {
    match reason {
        SweepReason::Old => "it is old",
        SweepReason::DiskFloor => "the disk is short of room",
    }
}

fn stays_because(stays: Stays) -> &'static str {
    match stays {
        Stays::InUse => "it is in use",
        Stays::UnknownTarget => "its target is not configured",
        Stays::NoNeed => "nothing asks for it to go",
    }
}

/// Picks the exit code of a sweep.
pub(crate) fn swept(sweep: Sweep) -> Response {
    let mut going = sweep.lanes.iter().filter(|lane| lane.goes()).peekable();
    let exit = if going.peek().is_none() {
        Exit::NothingToDo
    } else if going.any(|lane| lane.lane.kept_because.is_some()) {
        Exit::Unexpected
    } else {
        Exit::Done
    };
    Response::new(sweep, exit)
}

#[cfg(test)]
mod tests {
    use pdca_lanes::Reset;

    use super::*;

    #[test]
    fn a_checkout_that_was_moved_is_shown_by_its_path_and_a_commit_by_the_command_that_reads_it() {
        let lane = |is_moved| LaneReset {
            slot: 0,
            target: "app".to_owned(),
            path: "/ws.lanes/lane-0/app".into(),
            base: String::new(),
            reset: Reset::Clean,
            rescued: None,
            is_moved,
            done: true,
        };
        assert_eq!(found(&lane(true), "/ws.lanes/rescued/app-0"), "/ws.lanes/rescued/app-0");
        let shown = found(&lane(false), "fc1959014369fc1959014369");
        assert_eq!(shown, "git -C /ws.lanes/lane-0/app show fc1959014369");
    }
}
