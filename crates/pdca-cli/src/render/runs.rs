//! Lines about runs, for people.

use std::time::{Duration, UNIX_EPOCH};

use pdca_journal::{BranchFact, CheckoutFact, Liveness, RecoveryAction};
use pdca_workspace::snapshot::{DriverRow, FoundRow, RunRow, RunRowKind, ago};

use crate::context::Context;
use crate::style::printable;
use crate::words;

/// Returns the command that continues a run.
fn command(run: &RunRow) -> &'static str {
    match run.kind {
        RunRowKind::Integration => "pdca integrate",
        RunRowKind::Batch => "pdca batch",
    }
}

/// Renders the run, with a line for each block.
pub(crate) fn run_lines(run: &RunRow, cx: &Context<'_>) -> Vec<String> {
    let p = cx.out;
    let long = run.at.map(|at| {
        let begun = UNIX_EPOCH + Duration::from_secs(at.wall.as_second().try_into().unwrap_or(0));
        words::duration(ago(begun, cx.env.now()).max(Duration::from_secs(1)))
    });
    let long = long.map_or_else(String::new, |long| format!(" for {long}"));
    let phase = if run.block.is_some() || run.error.is_some() {
        p.bad(&run.phase).to_string()
    } else {
        p.accent(&run.phase).to_string()
    };
    let driver = run.driver.as_ref().map_or_else(String::new, |driver| {
        let DriverRow { pid, liveness, .. } = driver;
        let what = match *liveness {
            Liveness::Alive => format!("driven by process {pid}"),
            Liveness::Dead if driver.cut_short => {
                format!("its driver died (process {pid}), `{}` goes on with it", command(run))
            }
            // Nothing is left for a driver: its bundles wait for people.
            Liveness::Dead if !run.blocked.is_empty() => format!("stopped by process {pid}"),
            Liveness::Dead => {
                format!("stopped by process {pid}, `{}` goes on with it", command(run))
            }
            Liveness::Unknown => {
                format!("driven from {} by process {pid}, if it lives", driver.host)
            }
        };
        format!(", {what}")
    });
    let is_integration = run.kind == RunRowKind::Integration;
    let name = if is_integration { "integration" } else { "run" };
    let doing = run.doing.as_ref().map(|doing| {
        let long = Duration::from_secs(doing.seconds(cx.env.now()).max(1));
        let text = format!("{} for {}", printable(&doing.what), words::duration(long));
        format!(": {}", p.good(text))
    });
    let doing = doing.unwrap_or_default();
    let mut lines = vec![format!("{name} {}  {phase}{long}{driver}{doing}", run.id)];
    let told = |what: &str, evidence: &str, hint: &str| {
        let evidence = printable(evidence).into_owned();
        format!("  {} {evidence}  {hint}", p.warn(what))
    };
    if let Some(error) = &run.error {
        lines.push(told("cannot be read:", error, "`pdca doctor` says more"));
    }
    if let Some(block) = &run.block {
        let hint = if is_integration {
            "mend it, and `pdca integrate` goes on"
        } else {
            "`pdca unblock` lets it go on, `pdca abort` gives it up"
        };
        lines.push(told(&format!("waits for a person ({}):", block.name), &block.evidence, hint));
    }
    for block in &run.blocked {
        let id = block.bundle.as_deref().unwrap_or_default();
        let what = format!("{id} waits for a person ({}):", block.name);
        let hint = if is_integration {
            "`pdca integrate` tries it again".to_owned()
        } else {
            format!("`pdca unblock {id}`")
        };
        lines.push(told(&what, &block.evidence, &hint));
    }
    lines
}

/// Describes one bundle of a run: its phase, the facts found, the action.
pub(crate) fn found_line(found: &FoundRow) -> String {
    let FoundRow { id, was, .. } = found;
    let lane = found.lane.map_or_else(String::new, |lane| format!(" in lane {lane}"));
    let checkout = match found.checkout {
        CheckoutFact::Absent => "absent",
        CheckoutFact::Clean => "clean",
        CheckoutFact::Dirty => "dirty",
    };
    let branch = match found.branch {
        BranchFact::Absent => "absent",
        BranchFact::AsExpected => "as-expected",
    };
    let runner = match found.runner {
        Liveness::Dead => "dead",
        Liveness::Alive => "alive",
        Liveness::Unknown => "unknown",
    };
    let action = action(found.action);
    format!(
        "  {id}  was {was}{lane}; its checkout is {checkout}, its commits {branch}, its runner {runner}: {action}"
    )
}

fn action(action: RecoveryAction) -> &'static str {
    match action {
        RecoveryAction::Noop => "noop",
        RecoveryAction::Launch => "launch",
        RecoveryAction::Reclaim => "reclaim",
        RecoveryAction::MarkInterrupted => "mark-interrupted",
        RecoveryAction::AwaitRunner => "await-runner",
        RecoveryAction::BlockRecovery => "block-recovery",
        RecoveryAction::MarkAbandoned => "mark-abandoned",
        RecoveryAction::MarkCleaned => "mark-cleaned",
        RecoveryAction::AwaitHuman => "await-human",
        RecoveryAction::AlertNoop => "alert-noop",
    }
}
