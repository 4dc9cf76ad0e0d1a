//! Repairs interrupted runs, or shows them.

pub(crate) mod unfinished;

use std::io::Write;

use pdca_driver::{Begun, Run, RunStatus, WorkspaceConfig, has_work, run_statuses_in_lanes};
use pdca_journal::{Liveness, RecoveryAction, RunState};
use pdca_workspace::snapshot::{FoundRow, RunRow};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::process_env;
use crate::report::{Report, Response};
use crate::session;
use crate::upkeep::runs::{found_line, run_lines};

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RecoverReport {
    dry_run: bool,
    runs: Vec<Recovery>,
}

/// One run, with the action taken.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Recovery {
    #[serde(flatten)]
    run: RunRow,
    bundles: Vec<FoundRow>,
    /// `take-up`, `take-over` or `leave`; for an integration
    /// `end`, `integrate` (by that command) or `leave`.
    action: &'static str,
    /// The next step of `pdca integrate` with an integration.
    follows: Option<String>,
    /// The action was carried out.
    done: bool,
    /// The run is over now.
    over: bool,
    /// The decisions that a person must make before it can continue.
    decide: Vec<String>,
}

/// Repairs the runs of dead drivers, with `take_over` also that of a live one, which is killed.
pub(crate) fn recover(
    take_over: bool,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let site = session::driver_config(cx)?;
    let seen = run_statuses_in_lanes(&site)?;
    let mut runs = Vec::new();
    for sighting in &seen {
        let mut recovery = Recovery::foreseen(sighting, &site, take_over);
        if !cx.globals.dry_run && recovery.action != "leave" {
            recovery.carry_out(sighting, &site, cx, err)?;
        }
        runs.push(recovery);
    }
    runs.extend(unfinished::recover(&site, cx)?);
    let exit = if runs.iter().any(|run| !run.decide.is_empty()) {
        Exit::RecoveryBlocked
    } else if runs.iter().all(|run| run.action == "leave") {
        Exit::NothingToDo
    } else {
        Exit::Done
    };
    Ok(Response::new(RecoverReport { dry_run: cx.globals.dry_run, runs }, exit))
}

impl Report for RecoverReport {
    const KIND: &'static str = "recover";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.runs.is_empty() {
            writeln!(out, "no run is left to recover")?;
        }
        self.runs.iter().try_for_each(|run| run.print(cx, out))
    }
}

impl Recovery {
    fn foreseen(sighting: &RunStatus, site: &WorkspaceConfig, take_over: bool) -> Self {
        let run = RunRow::of(sighting, site);
        let mut bundles: Vec<FoundRow> = sighting.bundles.iter().map(FoundRow::of).collect();
        let (action, decide) = match (&sighting.state, sighting.driver) {
            (Err(_), _) => {
                let dir = site.dirs.runs().dir(&sighting.id);
                let text = format!("restore {dir}/journal, or move the directory away");
                ("leave", vec![text])
            }
            // Not even `take_over` touches it: a process number of another host, boot or namespace
            // may belong to another process here.
            (Ok(state), Liveness::Unknown) => {
                let text = format!(
                    "whether {} lives cannot be told from here: look there, or wait for it",
                    state.driver
                );
                ("leave", vec![text])
            }
            (Ok(_), Liveness::Alive) if take_over => ("take-over", Vec::new()),
            (Ok(_), Liveness::Alive) => ("leave", Vec::new()),
            (Ok(state), Liveness::Dead) => ("take-up", decisions(state, sighting)),
        };
        if sighting.driver == Liveness::Alive && action == "leave" {
            // A live driver is about to do whatever a bundle lacks, so there is nothing to recover.
            bundles.iter_mut().for_each(FoundRow::leave);
        }
        Self { run, bundles, action, follows: None, done: false, over: false, decide }
    }

    fn carry_out(
        &mut self,
        sighting: &RunStatus,
        site: &WorkspaceConfig,
        cx: &Context<'_>,
        err: &mut dyn Write,
    ) -> Result<(), Failure> {
        // In a take-over the lock of the workspace comes last: the old driver has it until
        // `take_over` has ended it (decision 014).
        let (begun, _admitted) = if self.action == "take-over" {
            let begun = Run::take_over(site, &sighting.id, process_env::moment)
                .map_err(|error| session::not_taken_over(&error))?;
            (begun, site.locks().admit().map_err(|error| session::refused(&error))?)
        } else {
            take_up(sighting, site)?
        };
        session::tell_torn(&begun, cx, err)?;
        let Begun { run, recovered, .. } = begun;
        self.bundles = recovered.iter().map(FoundRow::of).collect();
        self.over =
            !has_work(site, &run.state()) && run.finish().map_err(|error| unexpected(&error))?;
        let state = run.state();
        self.decide = if self.over { Vec::new() } else { decisions(&state, sighting) };
        self.run.phase = state.phase.to_string();
        self.done = true;
        Ok(())
    }

    fn print(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for line in run_lines(&self.run, cx) {
            writeln!(out, "{line}")?;
        }
        for bundle in &self.bundles {
            writeln!(out, "{}", found_line(bundle))?;
        }
        let p = cx.out;
        let said = match (self.action, self.done) {
            ("leave", _) if self.decide.is_empty() && self.run.kind == "integration" => {
                p.faint("its driver is at work").to_string()
            }
            ("leave", _) if self.decide.is_empty() => p
                .faint("its driver is at work; `--take-over` would take the run from it")
                .to_string(),
            ("leave", _) => p.warn("nothing was touched").to_string(),
            ("integrate", _) => self.follows.clone().unwrap_or_default(),
            ("end", false) => "nothing is left to do: it would be ended".to_owned(),
            ("end", true) => p.good("nothing was left to do: it is ended").to_string(),
            (_, false) => format!("would be taken up ({})", self.action),
            (_, true) if self.over => p.good("nothing was left to do: the run is over").to_string(),
            (_, true) if self.decide.is_empty() => {
                p.good("set right: `pdca batch` goes on with it").to_string()
            }
            (_, true) => p.warn("set right as far as it goes without a person").to_string(),
        };
        writeln!(out, "  {said}")?;
        for decision in &self.decide {
            writeln!(out, "  {} {decision}", p.accent("decide:"))?;
        }
        Ok(())
    }
}

/// Resumes a run whose driver is dead, and locks other drivers out of the workspace.
pub(crate) fn take_up(
    sighting: &RunStatus,
    site: &WorkspaceConfig,
) -> Result<(Begun, pdca_driver::LockGuard), Failure> {
    // Before any lock is taken: supervisors of the dead driver may still be killing their trees in
    // the lanes.
    site.locks().wait_for_children().map_err(|error| session::refused(&error))?;
    let admitted = site.locks().admit().map_err(|error| session::refused(&error))?;
    let begun = Run::resume(site, &sighting.id, process_env::moment)
        .map_err(|error| session::no_run(&error))?;
    Ok((begun, admitted))
}

pub(crate) fn unexpected(error: &dyn std::error::Error) -> Failure {
    Failure::from_error(Exit::Unexpected, error).hint("`pdca recover` shows where the run stands")
}

/// Returns the decisions that a person must make before a run can continue.
fn decisions(state: &RunState, sighting: &RunStatus) -> Vec<String> {
    let mut decisions = Vec::new();
    if let Some(block) = &state.block {
        decisions.push(format!(
            "{}: mend it and `pdca unblock`, or `pdca abort`",
            crate::style::printable(&block.evidence)
        ));
    }
    for (id, work) in &state.bundles {
        if let Some(evidence) = work.status.recovery_block() {
            let evidence = crate::style::printable(evidence);
            decisions.push(format!("{id}: {evidence}: mend it and `pdca unblock {id}`"));
        }
    }
    for found in sighting.bundles.iter().filter(|found| found.action == RecoveryAction::AlertNoop) {
        let id = &found.id;
        decisions
            .push(format!("{id}: whether anything runs in its lane cannot be told: look there"));
    }
    decisions
}
