//! Checks the lanes, with the remedy for each problem.

use std::io::Write;

use camino::Utf8PathBuf;
use pdca_lanes::{LaneFinding, Remedy, Target};
use serde::Serialize;

use super::explain;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};
use pdca_workspace::lanes::WorkspaceLanes;

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    path: Utf8PathBuf,
    /// The lane cannot be used as it is.
    broken: bool,
    found: String,
    remedy: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Findings {
    findings: Vec<Row>,
}

/// Checks every lane.
pub(crate) fn check(cx: &Context<'_>) -> Result<Response, Failure> {
    let place = WorkspaceLanes::of(cx.workspace()?)?;
    // The lanes of a target that cannot be opened cannot be judged; `pdca doctor` reports it.
    let targets: Vec<Target> = place
        .workspace
        .targets
        .iter()
        .filter_map(|target| Target::open(&target.name, &target.path).ok())
        .collect();
    let findings = place.lanes.doctor(&targets).map_err(|error| explain::inspect(&error))?;
    let findings: Vec<Row> = findings
        .iter()
        .map(|finding| Row {
            path: finding.path().to_owned(),
            broken: finding.is_broken(),
            found: found(finding),
            remedy: remedy(finding.remedy()).to_owned(),
        })
        .collect();
    let broken = findings.iter().any(|row| row.broken);
    let exit = if broken { Exit::Usage } else { Exit::Done };
    Ok(Response::new(Findings { findings }, exit))
}

impl Report for Findings {
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

fn found(finding: &LaneFinding) -> String {
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
