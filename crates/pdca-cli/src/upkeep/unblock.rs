//! Lifts blocks.

use std::io::Write;
use std::time::Duration;

use pdca_driver::{RunStatus, WorkspaceConfig, run_statuses};
use pdca_integrate::{blocked_conflicts, unblock_conflicts};
use pdca_journal::{InboxRequest, Liveness, Reason, RunId, RunState, WorkstreamStatus};
use pdca_state::BundleId;
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::process_env;
use crate::report::{Nothing, Report, Response};
use crate::session;
use crate::upkeep::abort::{ask, require_known, wait};
use crate::upkeep::recover::{take_up, unexpected, unfinished};

/// The longest wait for a running driver.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct UnblockReport {
    dry_run: bool,
    /// The run; `None` for the conflict of an accepted change.
    run: Option<String>,
    /// `here`, or `driver` if a running one was told.
    by: &'static str,
    /// The unblocked bundles; the run itself is `null`.
    unblocked: Vec<Option<BundleId>>,
}

/// Lifts the block of a bundle, or of the run and everything in it that is blocked.
pub(crate) fn unblock(
    id: Option<BundleId>,
    note: Option<&str>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let site = session::driver_config(cx)?;
    // Conflicts first: they belong to accepted changes, which may be in no active run.
    if let Some(id) = &id
        && let Some(done) = unblock_conflict(id, note, cx, &site)?
    {
        return Ok(Response::done(done));
    }
    let seen = run_statuses(&site)?;
    let Some(sighting) = seen.first() else {
        let nothing = Nothing::to_do("no run is active, so nothing is blocked", err);
        unfinished::mention(&site, err)?;
        return nothing;
    };
    let state = require_known(sighting, &site)?;
    let chosen = require_blocked(state, id)?;
    let alive = sighting.driver == Liveness::Alive;
    if !cx.globals.dry_run {
        if alive {
            tell_driver(&site, sighting, &chosen, note)?;
        } else {
            let (begun, _admitted) = take_up(sighting, &site)?;
            session::tell_torn(&begun, cx, err)?;
            for one in &chosen {
                let name = RunId::generate(process_env::moment().wall)?;
                let unblocked = begun.run.unblock(&name, one.as_ref(), note.map(str::to_owned));
                unblocked.map_err(|error| unexpected(&error))?;
                // A bundle whose checkout was lost starts in a new one.
                if let Some(id) = one {
                    pdca_driver::forget_lost_checkout(&site, id)?;
                }
            }
        }
    }
    let by = if alive { "driver" } else { "here" };
    let (dry_run, run) = (cx.globals.dry_run, Some(sighting.id.to_string()));
    Ok(Response::done(UnblockReport { dry_run, run, by, unblocked: chosen }))
}

/// Lifts the block of an accepted change whose resolver attempts are used up.
fn unblock_conflict(
    id: &BundleId,
    note: Option<&str>,
    cx: &Context<'_>,
    site: &WorkspaceConfig,
) -> Result<Option<UnblockReport>, Failure> {
    if blocked_conflicts(&site.queue(), id).is_empty() {
        return Ok(None);
    }
    let dry_run = cx.globals.dry_run;
    if !dry_run {
        let _taken =
            site.locks().take_within(id, PATIENCE).map_err(|error| session::refused(&error))?;
        let effects = crate::faults::effects(cx)?;
        unblock_conflicts(&site.queue(), id, note, effects.as_ref())?;
    }
    Ok(Some(UnblockReport { dry_run, run: None, by: "here", unblocked: vec![Some(id.clone())] }))
}

/// Returns the blocks to lift: bundles, or the run itself as `None`.
fn require_blocked(
    state: &RunState,
    id: Option<BundleId>,
) -> Result<Vec<Option<BundleId>>, Failure> {
    let is_blocked = |status: &WorkstreamStatus| {
        // A sign-off is a block that only a decision of a person lifts.
        status.block().is_some_and(|(reason, _)| reason != Reason::SignOff)
    };
    if let Some(id) = id {
        return match state.bundles.get(&id) {
            Some(work) if is_blocked(&work.status) => Ok(vec![Some(id)]),
            Some(work) => {
                let phase = work.status.phase();
                Err(Failure::usage(format!("{id} is not blocked in the run: it is {phase}"))
                    .hint("`pdca status` shows what waits for a person, and for what"))
            }
            None => Err(Failure::usage(format!("{id} is no part of the active run"))
                .hint("`pdca recover -n` shows its bundles")),
        };
    }
    if state.phase.is_blocked() {
        return Ok(vec![None]);
    }
    let waiting = state.bundles.iter().filter(|(_, work)| is_blocked(&work.status));
    let waiting: Vec<_> = waiting.map(|(id, _)| Some(id.clone())).collect();
    if waiting.is_empty() {
        return Err(Failure::usage("nothing of the active run is blocked")
            .hint("`pdca queue` shows what waits for a sign-off"));
    }
    Ok(waiting)
}

/// Tells the running driver, and waits until it has taken the request.
fn tell_driver(
    site: &WorkspaceConfig,
    sighting: &RunStatus,
    chosen: &[Option<BundleId>],
    note: Option<&str>,
) -> Result<(), Failure> {
    for one in chosen {
        let note = note.map(str::to_owned);
        let request = InboxRequest::Unblock { bundle: one.clone(), note };
        let name = ask(site, sighting, &request)?;
        let taken = |state: &RunState| state.answered.contains(name.as_str());
        if wait(site, &sighting.id, PATIENCE, taken).is_none() {
            return Err(Failure::new(
                Exit::Waiting,
                "its driver was told, and has not answered yet",
            )
            .hint("it takes it when it looks next; `pdca status` shows it"));
        }
    }
    Ok(())
}

impl Report for UnblockReport {
    const KIND: &'static str = "unblock";

    fn text(&self, _: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let does = if self.dry_run { "would go on" } else { "goes on" };
        for one in &self.unblocked {
            match one {
                Some(id) if self.run.is_none() => {
                    writeln!(out, "{id} {does} with its conflict  pdca resolve {id}")?;
                }
                Some(id) => writeln!(out, "{id} {does} where it was blocked  pdca run {id}")?,
                None => {
                    let run = self.run.as_deref().unwrap_or_default();
                    writeln!(out, "run {run} {does} where it was blocked  pdca batch")?;
                }
            }
        }
        Ok(())
    }
}
