//! The report of an integration.

use std::io::Write;

use camino::Utf8PathBuf;
use pdca_driver::WorkspaceConfig;
use pdca_driver::integrate::{
    ChangeState, DryRun, HeldChange, HeldReason, IntegrateError, Integrated, QueueSettings, RedRow,
    ReturnCulprits, TargetBranch,
};
use pdca_integrate::{Light, ObjectId, RowHistory};
use pdca_state::BundleId;
use pdca_workspace::snapshot::{after_held, merge_command};
use serde::{Serialize, Serializer};

use crate::context::Context;
use crate::failure::Failure;
use crate::landing::resolve::{self, ConflictRow, ResolvedItem};
use crate::report::Report;

/// A culprit that an integration sent back.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ReturnedRow {
    pub(super) id: BundleId,
    pub(super) archived: String,
    pub(super) next: String,
}

/// The results of all branches.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "Document<'static>"))]
pub(crate) struct IntegrateReport {
    pub(super) settings: QueueSettings,
    pub(super) dry_run: bool,
    pub(super) branches: Vec<BranchReport>,
    /// The conflicts that a resolver was asked about.
    pub(super) resolved: Vec<ResolvedItem>,
    /// The held changes that were sent back to Do automatically.
    pub(super) returned: Vec<ReturnedRow>,
}

/// The result of one branch.
pub(super) struct BranchReport {
    target: String,
    branch: String,
    outcome: BranchOutcome,
}

enum BranchOutcome {
    Done {
        done: Box<Integrated>,
        /// The command that merges the staging branch, where there is one.
        merge: Option<String>,
        /// For each held change, the command that goes on with it.
        next: Vec<String>,
    },
    DryRun(DryRun),
    /// Everything waits in a staging branch already.
    Waits {
        tip: ObjectId,
        staged: Vec<(BundleId, String)>,
        /// The tip of the staging branch.
        staged_at: Option<ObjectId>,
        merge: Option<String>,
    },
    Failed(String),
}

impl BranchReport {
    fn new(front: &TargetBranch, outcome: BranchOutcome) -> Self {
        Self { target: front.target.name.clone(), branch: front.branch.clone(), outcome }
    }

    pub(super) fn done(
        cx: &Context<'_>,
        site: &WorkspaceConfig,
        settings: &QueueSettings,
        front: &TargetBranch,
        done: Integrated,
    ) -> Self {
        let staging = done.references.first().filter(|_| settings.land.stages());
        let merge =
            staging.map(|name| merge_command(front, name.trim_start_matches("refs/heads/")));
        let next = done.held.iter().map(|held| cx.typed(&after_held(site, held))).collect();
        Self::new(front, BranchOutcome::Done { done: Box::new(done), merge, next })
    }

    /// The result, where the integration came to its end.
    pub(super) fn integrated(&self) -> Option<&Integrated> {
        match &self.outcome {
            BranchOutcome::Done { done, .. } => Some(done),
            BranchOutcome::DryRun(_) | BranchOutcome::Waits { .. } | BranchOutcome::Failed(_) => {
                None
            }
        }
    }

    pub(super) fn dry_run(front: &TargetBranch, said: DryRun) -> Self {
        Self::new(front, BranchOutcome::DryRun(said))
    }

    pub(super) fn failed(front: &TargetBranch, error: &IntegrateError) -> Self {
        Self::new(front, BranchOutcome::Failed(pdca_state::chain(error)))
    }

    pub(super) fn waits(front: &TargetBranch) -> Self {
        let staged = front.changes.iter().filter_map(|change| match &change.standing {
            ChangeState::Staged { branch, .. } => {
                Some((change.bundle.id().clone(), branch.clone()))
            }
            ChangeState::Unsealed
            | ChangeState::Sealed(_)
            | ChangeState::Landed { .. }
            | ChangeState::Reverted { .. }
            | ChangeState::Drifted { .. } => None,
        });
        let staged: Vec<_> = staged.collect();
        let merge = staged.first().map(|(_, branch)| merge_command(front, branch));
        Self::new(
            front,
            BranchOutcome::Waits { tip: front.tip, staged, staged_at: front.staging.at, merge },
        )
    }
}

impl Report for IntegrateReport {
    const KIND: &'static str = "integrate";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for branch in &self.branches {
            branch.text(cx, &self.settings, out)?;
        }
        resolve::lines(cx, &self.resolved, out)?;
        for ReturnedRow { id, next, .. } in &self.returned {
            let next = cx.out.accent(next);
            writeln!(out, "{}  {id} goes back to Do  {next}", cx.out.warn("returned"))?;
        }
        Ok(())
    }
}

impl BranchReport {
    fn text(
        &self,
        cx: &Context<'_>,
        settings: &QueueSettings,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        match &self.outcome {
            BranchOutcome::Done { done, merge, next } => {
                self.landed(cx, settings, done, out)?;
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
            BranchOutcome::DryRun(said) => self.would(cx, said, out),
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
        &self,
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
            let at = format!("{} {} stays at {}", self.target, self.branch, short(done.base));
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

    fn would(&self, cx: &Context<'_>, said: &DryRun, out: &mut dyn Write) -> Result<(), Failure> {
        let p = cx.out;
        let order: Vec<&str> = said.order.iter().map(BundleId::as_str).collect();
        let Self { target, branch, .. } = self;
        let base = short(said.base);
        writeln!(out, "{target} {branch} is at {base}; the order is {}", order.join(" "))?;
        for (id, commit) in &said.landing {
            writeln!(out, "{}  {id} as {}", p.good("would land"), short(*commit))?;
        }
        let (single, old) = folded(&said.held);
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
        writeln!(out, "the branch by itself is {}", known(said.base_verdict))?;
        writeln!(out, "tree {} is {}", short(said.tree), known(said.verdict))?;
        Ok(())
    }
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
        let rate = rate(history) * 100.0;
        let last = history.last_seen.as_deref().unwrap_or("unknown");
        let trees = history.trees.len();
        let text = format!(
            "{row} failed by mistake in {flakes} of {runs} runs ({rate:.1} %), last {last}, on {trees} trees"
        );
        writeln!(out, "{}   {text}", p.warn("flaky"))?;
    }
    Ok(())
}

fn rate(history: &RowHistory) -> f64 {
    let float = |number: u64| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    float(history.flakes) / float(history.runs.max(history.flakes).max(1))
}

/// An id as people read it.
fn short(id: ObjectId) -> String {
    id.to_hex_with_len(12).to_string()
}

fn plural(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// All branches in one document. The lists are those of all of them, each item with its target and branch,
/// and the numbers their sums, so that nothing is said twice.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Document<'a> {
    dry_run: bool,
    /// The facts of each branch.
    targets: Vec<Target<'a>>,
    /// The same at the top, where there is one branch alone.
    #[serde(flatten)]
    alone: Option<BranchFacts<'a>>,
    order: Vec<&'a str>,
    /// The changes that this integration brought into the branch, into its staging branch, or to its remote.
    landed: Vec<Placed<'a, LandedItem<'a>>>,
    /// Those of them that are in the staging branch alone, and wait to be merged.
    staged: Vec<Placed<'a, LandedItem<'a>>>,
    held: Vec<Placed<'a, HeldItem<'a>>>,
    would_land: Vec<Placed<'a, LandedItem<'a>>>,
    would_hold: Vec<Placed<'a, HeldItem<'a>>>,
    /// Changes whose effect was there already.
    present: Vec<&'a str>,
    /// The refs that moved.
    references: Vec<&'a str>,
    gate_runs: u32,
    /// The number of verdicts that were known before.
    cached: u32,
    /// The number of reds that were not red again.
    flakes: u32,
    /// Rows that are known to have failed by mistake.
    flaky: Vec<Placed<'a, FlakyItem<'a>>>,
    /// Rows that were red and did not block.
    quarantined: Vec<Placed<'a, QuarantinedItem<'a>>>,
    certificates: Vec<&'a str>,
    /// The conflicts that a resolver was asked about.
    resolutions: Vec<Placed<'a, ConflictRow>>,
    /// The held changes that were sent back to Do automatically.
    returned: Vec<Placed<'a, &'a ReturnedRow>>,
    /// The changes that wait in a staging branch already.
    waiting: Vec<WaitingItem<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Target<'a> {
    #[serde(flatten)]
    facts: BranchFacts<'a>,
    gate_runs: u32,
    cached: u32,
    flakes: u32,
    /// The reason why its integration did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BranchFacts<'a> {
    target: &'a str,
    branch: &'a str,
    /// The commit that the branch was at.
    base: Option<String>,
    tip: Option<String>,
    tree: Option<String>,
    /// The ref that moved.
    reference: Option<&'a str>,
    /// The staging branch of another workspace that the changes stand on, not merged yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    staged_on: Option<&'a str>,
    /// The branch compared with that of its remote, if it follows one.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<RemoteItem<'a>>,
    /// With `--dry-run`: the known verdict about the branch by itself.
    base_verdict: Option<Light>,
    /// With `--dry-run`: the known verdict about the tree.
    verdict: Option<Light>,
}

#[derive(Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RemoteItem<'a> {
    /// The remote's branch, such as `origin/main`.
    name: &'a str,
    /// Its tip, as far as it is known.
    tip: Option<String>,
    /// `current`, `fast-forwarded` (the changes go on top of what the remote has), `diverged` or `unknown`.
    drift: &'static str,
    /// The message of a remote that did not answer.
    silent: Option<&'a str>,
    /// What a person should know, in a sentence.
    text: Option<String>,
}

/// An item of a list that is about all branches.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Placed<'a, T> {
    target: &'a str,
    branch: &'a str,
    #[serde(flatten)]
    item: T,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct WaitingItem<'a> {
    target: &'a str,
    /// The staging branch.
    branch: &'a str,
    id: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FlakyItem<'a> {
    row: &'a str,
    runs: u64,
    flakes: u64,
    rate: f64,
    last_seen: Option<&'a str>,
    trees: &'a [String],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct QuarantinedItem<'a> {
    row: &'a str,
    tree: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LandedItem<'a> {
    id: &'a str,
    commit: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HeldItem<'a> {
    id: &'a str,
    reason: &'static str,
    partners: Vec<&'a str>,
    /// The changes that could not be left out of the red combination and are not to blame.
    context: Vec<&'a str>,
    rows: &'a [String],
    evidence: &'a [String],
    #[cfg_attr(feature = "schema", schemars(with = "&'a [String]"))]
    logs: &'a [Utf8PathBuf],
    red: &'a [RedRow],
    files: Vec<String>,
    text: String,
    next: Option<&'a str>,
}

impl Serialize for IntegrateReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document().serialize(serializer)
    }
}

impl IntegrateReport {
    fn document(&self) -> Document<'_> {
        let mut document = Document { dry_run: self.dry_run, ..Document::default() };
        for branch in &self.branches {
            branch.add_to(&mut document, &self.resolved, &self.returned);
            if let Some(done) = branch.integrated().filter(|_| self.settings.land.stages()) {
                document.staged.extend(branch.placed(done.landed.iter().map(landed_item)));
            }
        }
        if let [one] = document.targets.as_slice() {
            document.alone = Some(one.facts.clone());
        }
        document
    }
}

impl BranchReport {
    fn add_to<'a>(
        &'a self,
        document: &mut Document<'a>,
        resolved: &'a [ResolvedItem],
        returned: &'a [ReturnedRow],
    ) {
        let facts = BranchFacts {
            target: &self.target,
            branch: &self.branch,
            base: None,
            tip: None,
            tree: None,
            reference: None,
            staged_on: None,
            remote: None,
            base_verdict: None,
            verdict: None,
        };
        let mut own = Target { facts, gate_runs: 0, cached: 0, flakes: 0, error: None };
        match &self.outcome {
            BranchOutcome::Done { done, next, .. } => {
                own.facts.base = Some(done.base.to_string());
                own.facts.tip = Some(done.tip.to_string());
                own.facts.tree = Some(done.tree.to_string());
                own.facts.reference = done.references.last().map(String::as_str);
                own.facts.staged_on = done.staged_on.as_deref();
                own.facts.remote = done.remote.as_ref().map(|remote| RemoteItem {
                    name: &remote.name,
                    tip: remote.at.map(|at| at.to_string()),
                    drift: remote.drift.as_str(),
                    silent: remote.silent.as_deref(),
                    text: remote.remark(&self.branch),
                });
                (own.gate_runs, own.cached, own.flakes) =
                    (done.gate_runs, done.cached, done.flakes);
                let is_of_it = |id: &BundleId| done.held.iter().any(|held| held.id == *id);
                let returned = returned.iter().filter(|row| is_of_it(&row.id));
                let goes_on = |held: &HeldChange| returned.clone().find(|row| row.id == held.id);
                let held = done.held.iter().zip(next).map(|(held, next)| {
                    let next = goes_on(held).map_or(next, |row| &row.next);
                    held_item(held, Some(next))
                });
                document.order.extend(done.order.iter().map(BundleId::as_str));
                document.landed.extend(self.placed(done.landed.iter().map(landed_item)));
                document.held.extend(self.placed(held));
                document.present.extend(done.present.iter().map(|(id, _)| id.as_str()));
                document.references.extend(done.references.iter().map(String::as_str));
                document.gate_runs += done.gate_runs;
                document.cached += done.cached;
                document.flakes += done.flakes;
                document.flaky.extend(self.placed(done.flaky.iter().map(flaky_item)));
                let quarantined = done
                    .quarantined
                    .iter()
                    .map(|one| QuarantinedItem { row: &one.row, tree: &one.tree });
                document.quarantined.extend(self.placed(quarantined));
                document.certificates.extend(done.certificates.iter().map(|path| path.as_str()));
                let resolved = resolved.iter().filter(|item| is_of_it(&item.told.id));
                document.resolutions.extend(self.placed(resolve::rows(resolved)));
                document.returned.extend(self.placed(returned));
            }
            BranchOutcome::DryRun(said) => {
                own.facts.base = Some(said.base.to_string());
                own.facts.tip = Some(said.tip.to_string());
                own.facts.tree = Some(said.tree.to_string());
                (own.facts.base_verdict, own.facts.verdict) = (said.base_verdict, said.verdict);
                document.order.extend(said.order.iter().map(BundleId::as_str));
                document.would_land.extend(self.placed(said.landing.iter().map(landed_item)));
                let held = said.held.iter().map(|held| held_item(held, None));
                document.would_hold.extend(self.placed(held));
                document.present.extend(said.present.iter().map(|(id, _)| id.as_str()));
            }
            BranchOutcome::Waits { tip, staged, .. } => {
                own.facts.tip = Some(tip.to_string());
                let target = &self.target;
                let waiting = staged.iter().map(|(id, branch)| WaitingItem {
                    target,
                    branch,
                    id: id.as_str(),
                });
                document.waiting.extend(waiting);
            }
            BranchOutcome::Failed(error) => own.error = Some(error),
        }
        document.targets.push(own);
    }

    fn placed<T>(&self, items: impl IntoIterator<Item = T>) -> impl Iterator<Item = Placed<'_, T>> {
        let (target, branch) = (self.target.as_str(), self.branch.as_str());
        items.into_iter().map(move |item| Placed { target, branch, item })
    }
}

fn held_item<'a>(held: &'a HeldChange, next: Option<&'a String>) -> HeldItem<'a> {
    HeldItem {
        id: held.id.as_str(),
        reason: held.reason.as_str(),
        partners: held.partners.iter().map(BundleId::as_str).collect(),
        context: held.context.iter().map(BundleId::as_str).collect(),
        rows: &held.rows,
        evidence: &held.evidence,
        logs: &held.logs,
        red: &held.red,
        files: held.conflicts.iter().map(|conflict| conflict.path.to_string()).collect(),
        text: held.sentence(),
        next: next.map(String::as_str),
    }
}

fn landed_item((id, commit): &(BundleId, ObjectId)) -> LandedItem<'_> {
    LandedItem { id: id.as_str(), commit: commit.to_string() }
}

fn flaky_item((row, history): &(String, RowHistory)) -> FlakyItem<'_> {
    FlakyItem {
        row,
        runs: history.runs,
        flakes: history.flakes,
        rate: rate(history),
        last_seen: history.last_seen.as_deref(),
        trees: &history.trees,
    }
}

/// Says that there is nothing to integrate.
pub(super) fn nothing(
    cx: &Context<'_>,
    fronts: &[TargetBranch],
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let landed = fronts.iter().flat_map(|front| &front.changes).count();
    let text = if landed == 0 {
        "nothing is accepted that could land; `pdca queue` shows what waits for you"
    } else {
        "everything that is accepted has landed"
    };
    cx.note(err, text)
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
