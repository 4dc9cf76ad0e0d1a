//! An integration as text, and its exit code.

use std::collections::BTreeSet;
use std::io::Write;

use pdca_driver::integrate::{
    DryRun, HeldChange, HeldReason, Integrated, QueueSettings, ReturnCulprits,
};
use pdca_integrate::{Light, ObjectId};
use pdca_state::BundleId;
use pdca_workspace::integration::{
    BranchIntegration, BranchOutcome, Integration, IntegrationEnd, ReturnedChange, flake_rate,
};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};

/// Makes the response of `integrate` for these named bundles, or all.
pub(crate) fn integrated(
    end: IntegrationEnd<Failure>,
    only: &BTreeSet<BundleId>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let IntegrationEnd { mut integration, failures, .. } = end;
    let exits = exits(&integration, only);
    let failure = worst(failures);
    integration.map_commands(|command| cx.typed(command));
    if failure.is_none() && exits.is_empty() {
        let text = if integration.changes == 0 {
            "nothing is accepted that could land; `pdca queue` shows what waits for you"
        } else {
            "everything that is accepted has landed"
        };
        cx.note(err, text)?;
        return Ok(Response::new(integration, Exit::NothingToDo));
    }
    // One exit code for all branches: the one that most needs a person, in this order.
    let grave = [Exit::RecoveryBlocked, Exit::CombinationRed, Exit::MergeConflict, Exit::Waiting];
    let has_old_alone = failure.is_none() && exits.iter().all(|exit| *exit == Exit::NothingToDo);
    let usual = if has_old_alone { Exit::NothingToDo } else { Exit::Done };
    let exit = grave.into_iter().find(|exit| exits.contains(exit)).unwrap_or(usual);
    Ok(Response::new(integration, exit).failed(failure))
}

/// Returns the exit code of each branch that did not fail.
fn exits(integration: &Integration, only: &BTreeSet<BundleId>) -> Vec<Exit> {
    let of_branch = |branch: &BranchIntegration| match &branch.outcome {
        BranchOutcome::Done { done, .. } => Some(exit_of(done, integration, only)),
        BranchOutcome::DryRun(_) => Some(Exit::Done),
        BranchOutcome::Waits { .. } => Some(Exit::Waiting),
        BranchOutcome::Failed(_) => None,
    };
    let left_out = integration.has_left_out.then_some(Exit::Waiting);
    left_out.into_iter().chain(integration.branches.iter().filter_map(of_branch)).collect()
}

fn exit_of(done: &Integrated, integration: &Integration, only: &BTreeSet<BundleId>) -> Exit {
    let is_settled = |held: &&HeldChange| {
        held.reason == HeldReason::Conflict && integration.has_settled(&held.id)
    };
    let has = |reasons: &[HeldReason]| {
        let left = done.held.iter().filter(|held| !is_settled(held));
        left.into_iter().any(|held| reasons.contains(&held.reason))
    };
    // What was accepted without a seal is told, and is no reason to wait unless it was asked for: an older instance has
    // dozens of them.
    let is_old =
        |held: &HeldChange| held.reason == HeldReason::Unsealed && !only.contains(&held.id);
    let is_asked_for =
        |held: &HeldChange| held.reason == HeldReason::Unsealed && only.contains(&held.id);
    if has(&[HeldReason::Drift]) {
        Exit::RecoveryBlocked
    } else if has(&[HeldReason::Red, HeldReason::Undecidable]) {
        Exit::CombinationRed
    } else if has(&[HeldReason::Conflict]) {
        Exit::MergeConflict
    } else if has(&[HeldReason::Needs, HeldReason::Stale])
        || done.held.iter().any(|held| is_settled(&held) || is_asked_for(held))
    {
        Exit::Waiting
    } else if done.landed.is_empty() && done.held.iter().any(is_old) {
        Exit::NothingToDo
    } else {
        Exit::Done
    }
}

/// Combines failures into one: an interruption first, then in order.
fn worst(mut failures: Vec<Failure>) -> Option<Failure> {
    // The exit code is that of the first, and the sort is stable.
    failures.sort_by_key(|failure| failure.exit != Exit::Interrupted);
    let mut failures = failures.into_iter();
    let mut first = failures.next()?;
    first.problems.extend(failures.flat_map(|failure| failure.problems));
    Some(first)
}

impl Report for Integration {
    const KIND: &'static str = "integrate";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for branch in &self.branches {
            show(branch, cx, &self.settings, out)?;
        }
        super::resolve::lines(cx, &self.resolved, out)?;
        for ReturnedChange { id, next, .. } in &self.returned {
            let next = cx.out.accent(next);
            writeln!(out, "{}  {id} goes back to Do  {next}", cx.out.warn("returned"))?;
        }
        Ok(())
    }
}

fn show(
    branch: &BranchIntegration,
    cx: &Context<'_>,
    settings: &QueueSettings,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match &branch.outcome {
        BranchOutcome::Done { done, merge, next } => {
            landed(branch, cx, settings, done, out)?;
            if let Some(merge) = merge {
                merge_line(cx, merge, done.tip, out)?;
            }
            if settings.return_culprits == ReturnCulprits::Ask {
                // Dozens of commands for changes that are not to be decided now would hide the others.
                let (single, _) = folded(&done.held);
                let is_single = |held: &HeldChange| single.iter().any(|one| one.id == held.id);
                let told = done.held.iter().zip(next).filter(|(held, _)| is_single(held));
                for (_, next) in told {
                    writeln!(out, "next: {}", cx.out.accent(next))?;
                }
            }
            Ok(())
        }
        BranchOutcome::DryRun(predicted) => would(branch, cx, predicted, out),
        BranchOutcome::Waits { staged, merge, staged_at, .. } => {
            for (id, branch) in staged {
                writeln!(out, "{}  {id} in {branch}", cx.out.warn("waits"))?;
            }
            if let (Some(merge), Some(at)) = (merge, staged_at) {
                merge_line(cx, merge, *at, out)?;
            }
            Ok(())
        }
        // The failure of the command says it.
        BranchOutcome::Failed(_) => Ok(()),
    }
}

fn landed(
    branch: &BranchIntegration,
    cx: &Context<'_>,
    settings: &QueueSettings,
    done: &Integrated,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let p = cx.out;
    let word = settings.land.done();
    for (id, commit) in &done.landed {
        writeln!(out, "{}  {}  {}", p.good(word), p.strong(id), short(*commit))?;
    }
    let (single, old) = folded(&done.held);
    if let Some(old) = old {
        writeln!(out, "{}    {old}", p.warn("held"))?;
    }
    for held in single {
        writeln!(out, "{}    {}", p.warn("held"), held.sentence())?;
        for line in evidence(cx, held) {
            writeln!(out, "        {}", p.faint(line))?;
        }
    }
    for (id, by) in &done.present {
        let by = by.as_ref().map_or_else(String::new, |by| format!(", by {by}"));
        writeln!(out, "{}  what {id} does is there already{by}", p.faint("there "))?;
    }
    if done.landed.is_empty() {
        let at = format!("{} {} stays at {}", branch.target, branch.branch, short(done.base));
        writeln!(out, "{}", p.faint(at))?;
    }
    for reference in &done.references {
        let name = settings.shown(reference);
        let (tip, tree) = (short(done.tip), short(done.tree));
        writeln!(out, "{} is at {tip}, tree {tree}", p.strong(name))?;
    }
    flaky(cx, done, out)?;
    let runs = plural(done.gate_runs, "gate run");
    let known = plural(done.cached, "verdict");
    writeln!(out, "{}", p.faint(format_args!("{runs}, {known} known before")))?;
    for path in &done.certificates {
        writeln!(out, "certificate: {}", cx.show(path))?;
    }
    Ok(())
}

fn would(
    branch: &BranchIntegration,
    cx: &Context<'_>,
    predicted: &DryRun,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let p = cx.out;
    let order: Vec<&str> = predicted.order.iter().map(BundleId::as_str).collect();
    let BranchIntegration { target, branch, .. } = branch;
    let base = short(predicted.base);
    writeln!(out, "{target} {branch} is at {base}; the order is {}", order.join(" "))?;
    for (id, commit) in &predicted.landing {
        writeln!(out, "{}  {id} as {}", p.good("would land"), short(*commit))?;
    }
    let (single, old) = folded(&predicted.held);
    if let Some(old) = old {
        writeln!(out, "{}  {old}", p.warn("would hold"))?;
    }
    for held in single {
        writeln!(out, "{}  {}", p.warn("would hold"), held.sentence())?;
    }
    let known = |light: Option<Light>| match light {
        Some(Light::Green) => "known to be green",
        Some(Light::Red) => "known to be red",
        None => "to be gated",
    };
    writeln!(out, "the branch by itself is {}", known(predicted.base_verdict))?;
    writeln!(out, "tree {} is {}", short(predicted.tree), known(predicted.verdict))?;
    Ok(())
}

/// Writes the commit that is staged, and the command that merges it.
fn merge_line(
    cx: &Context<'_>,
    merge: &str,
    commit: ObjectId,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    // In a line of its own: in some shells a comment behind the command is an argument of it.
    writeln!(out, "to merge: commit {}", short(commit))?;
    writeln!(out, "next: {}", cx.out.accent(merge))?;
    Ok(())
}

/// From how many on changes without a seal are told in one line.
const MANY: usize = 4;

/// Separates changes that are told one by one from those without a seal, if they are many: an older instance has accepted
/// dozens, and none of them is to be decided now.
fn folded(held: &[HeldChange]) -> (Vec<&HeldChange>, Option<String>) {
    let (old, single): (Vec<&HeldChange>, Vec<&HeldChange>) =
        held.iter().partition(|held| held.reason == HeldReason::Unsealed);
    if old.len() < MANY {
        return (held.iter().collect(), None);
    }
    let (first, last) = (&old[0].id, &old[old.len() - 1].id);
    let number = old.len();
    let text = format!(
        "{number} changes were accepted without a seal, from {first} to {last}; `pdca integrate --seal <id>` looks at one"
    );
    (single, Some(text))
}

/// Writes the rows that are flaky, and those that were red and did not block.
fn flaky(cx: &Context<'_>, done: &Integrated, out: &mut dyn Write) -> Result<(), Failure> {
    let p = cx.out;
    for (at, one) in done.quarantined.iter().enumerate() {
        if done.quarantined[..at].iter().any(|before| before.row == one.row) {
            continue;
        }
        let trees = done.quarantined.iter().filter(|other| other.row == one.row).count();
        let text = format!("{} was red over {trees} trees and did not block", one.row);
        writeln!(out, "{}  {text}", p.warn("quarantine"))?;
    }
    for (row, history) in &done.flaky {
        let (flakes, runs) = (history.flakes, history.runs);
        let rate = flake_rate(history) * 100.0;
        let last = history.last_seen.as_deref().unwrap_or("unknown");
        let trees = history.trees.len();
        let text = format!(
            "{row} failed by mistake in {flakes} of {runs} runs ({rate:.1} %), last {last}, on {trees} trees"
        );
        writeln!(out, "{}   {text}", p.warn("flaky"))?;
    }
    Ok(())
}

/// An id as people read it.
fn short(id: ObjectId) -> String {
    id.to_hex_with_len(12).to_string()
}

fn plural(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Returns the evidence of a held change, one line each: further failing tests,
/// the logs, and the commands that reproduce them.
pub(crate) fn evidence(cx: &Context<'_>, held: &HeldChange) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for row in &held.red {
        if row.failing.is_empty() {
            lines.push(format!("{}: {}", row.row, crate::style::printable(&row.said)));
        } else if held.red.len() > 1 || row.failing.len() > 3 {
            let more = match row.failing_more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            lines.push(format!("{} fails: {}{more}", row.row, row.failing.join(", ")));
        }
    }
    lines.extend(held.logs.iter().map(|log| format!("log: {}", cx.show(log))));
    let commands = held.red.iter().filter_map(|row| row.reproduce.as_ref());
    lines.extend(commands.map(|command| format!("reproduce: {command}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_changes_without_a_seal_are_one_line_and_hide_nothing_else() {
        let held =
            |number: usize, reason| HeldChange::blank(&number.to_string().parse().unwrap(), reason);
        let mut all: Vec<HeldChange> =
            (1..=77).map(|number| held(number, HeldReason::Unsealed)).collect();
        all.push(held(100, HeldReason::Red));
        let (single, old) = folded(&all);
        let ids: Vec<&str> = single.iter().map(|held| held.id.as_str()).collect();
        assert_eq!(ids, ["100"]);
        let old = old.unwrap();
        assert!(old.starts_with("77 changes were accepted without a seal, from 1 to 77;"), "{old}");
        let (single, old) = folded(&all[..MANY - 1]);
        assert_eq!((single.len(), old), (MANY - 1, None));
    }
}
