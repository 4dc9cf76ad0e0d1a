//! Lanes as text and as a table.

use std::io::Write;

use pdca_lanes::{HydrationState, LaneKind, LaneState, Stays, SweepDecision, SweepReason};
use pdca_workspace::lanes::{
    LaneList, LaneRemoval, LaneRemovals, LaneReset, LaneResets, ListedLane, Sweep, SweptLane,
};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response, Table};
use crate::style::shell;
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
