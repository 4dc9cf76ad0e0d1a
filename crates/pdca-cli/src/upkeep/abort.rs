//! Aborts a run, and rescues its unfinished work.

use std::io::Write;
use std::time::Duration;

use pdca_driver::{RunStatus, Salvage, WorkspaceConfig, run_statuses};
use pdca_journal::{Inbox, InboxRequest, Liveness, RunId, RunPhase, RunState};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::process_env;
use crate::report::{Nothing, Report, Response};
use crate::session;
use crate::style::shell;
use crate::upkeep::recover::{take_up, unexpected, unfinished};

/// The interval at which the journal is polled while waiting for a driver.
const PERIOD: Duration = Duration::from_millis(20);

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AbortReport {
    dry_run: bool,
    run: String,
    /// `here`, or `driver` if a running one was asked.
    by: &'static str,
    /// The phase of the run afterwards.
    phase: String,
    kept: Vec<Kept>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Kept {
    bundle: String,
    lane: u32,
    /// The commit; `None` with `--dry-run`, and if a running driver rescues it.
    commit: Option<String>,
    /// The command that fetches it.
    fetch: Option<String>,
}

/// Aborts the active run; a live driver is asked, and waited for.
pub(crate) fn abort(
    why: &str,
    patience: Duration,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let site = session::driver_config(cx)?;
    let seen = run_statuses(&site)?;
    let Some(sighting) = seen.first() else {
        let nothing = Nothing::to_do("no run is active", err);
        unfinished::mention(&site, err)?;
        return nothing;
    };
    let bundles: Vec<_> = require_known(sighting, &site)?.bundles.keys().cloned().collect();
    let foreseen = || -> Vec<Kept> {
        pdca_driver::unfinished_work(&site, &bundles)
            .iter()
            .map(|one| Kept::of(one, &site))
            .collect()
    };
    let alive = sighting.driver == Liveness::Alive;
    let by = if alive { "driver" } else { "here" };
    let run = sighting.id.to_string();
    if cx.globals.dry_run {
        let phase = RunPhase::Aborted.to_string();
        let told = AbortReport { dry_run: true, run, by, phase, kept: foreseen() };
        return Ok(Response::done(told));
    }
    if alive {
        let request = InboxRequest::Abort { why: why.to_owned() };
        let asked = ask(&site, sighting, &request)?;
        cx.note(err, "asked its driver, and waiting for it")?;
        let phase = wait(&site, &sighting.id, patience, |state| {
            // An answer alone is not the end: the driver still stops its lanes, and their work is
            // rescued only then.
            !state.is_active() || state.answered.contains(asked.as_str()) && !lives(state)
        });
        match phase {
            Some(RunPhase::Aborted) => {
                let phase = RunPhase::Aborted.to_string();
                let told = AbortReport { dry_run: false, run, by, phase, kept: foreseen() };
                return Ok(Response::done(told));
            }
            Some(RunPhase::Completed | RunPhase::Failed) => {
                return Err(Failure::new(Exit::NothingToDo, "the run ended before it heard of it"));
            }
            // It stopped without ending the run, so the run is ended here.
            Some(_) => {}
            None => {
                let text = format!(
                    "its driver was asked, and has not ended after {} s",
                    patience.as_secs()
                );
                return Err(Failure::new(Exit::Waiting, text)
                    .hint("it ends when its lanes have stopped; `pdca status` shows it"));
            }
        }
    }
    let (begun, _admitted) = take_up(sighting, &site)?;
    session::tell_torn(&begun, cx, err)?;
    let kept = begun.run.abort(&site, why).map_err(|error| unexpected(&error))?;
    let phase = begun.run.state().phase.to_string();
    let kept = kept.iter().map(|one| Kept::of(one, &site)).collect();
    Ok(Response::done(AbortReport { dry_run: false, run, by: "here", phase, kept }))
}

/// Returns the state of a run, if enough is known to change it.
pub(crate) fn require_known<'s>(
    sighting: &'s RunStatus,
    site: &WorkspaceConfig,
) -> Result<&'s RunState, Failure> {
    let dir = FilePosition::file(site.dirs.runs().dir(&sighting.id));
    let state = sighting.state.as_ref().map_err(|error| {
        Failure::from_error(Exit::RecoveryBlocked, error).at(dir.clone()).hint(
            "nothing was cut or changed; restore the journal, or move the run's directory away",
        )
    })?;
    if sighting.driver == Liveness::Unknown {
        let text = format!("whether {} lives cannot be told from here", state.driver);
        return Err(Failure::new(Exit::RecoveryBlocked, text)
            .at(dir)
            .hint("nothing was touched; repeat the command where that process runs"));
    }
    Ok(state)
}

/// Puts a request into the inbox of a run. Returns its name.
pub(crate) fn ask(
    site: &WorkspaceConfig,
    sighting: &RunStatus,
    request: &InboxRequest,
) -> Result<RunId, Failure> {
    let name = RunId::generate(process_env::moment().wall)?;
    let inbox = Inbox::new(&site.dirs.runs(), &sighting.id);
    inbox.drop_request(&name, request).map_err(|error| unexpected(&error))?;
    Ok(name)
}

/// Polls a run's journal for a limited time until `done`; returns the phase then.
pub(crate) fn wait(
    site: &WorkspaceConfig,
    run: &RunId,
    patience: Duration,
    done: impl Fn(&pdca_journal::RunState) -> bool,
) -> Option<RunPhase> {
    let begun = std::time::Instant::now();
    loop {
        if let Ok(found) = site.dirs.runs().find(run).found
            && (done(&found.state) || !lives(&found.state))
        {
            return Some(found.state.phase);
        }
        if begun.elapsed() >= patience {
            return None;
        }
        std::thread::park_timeout(PERIOD);
    }
}

/// Returns whether the driver of a run may be alive.
fn lives(state: &pdca_journal::RunState) -> bool {
    pdca_journal::HostScope::here()
        // If this host cannot be told apart, the driver counts as alive: its run must not be taken
        // from it.
        .map_or(true, |here| state.driver.liveness(&here) != Liveness::Dead)
}

impl Kept {
    fn of(one: &Salvage, site: &WorkspaceConfig) -> Self {
        let target = site.targets.iter().find(|target| target.name == one.target);
        let primary = shell(target.map_or("", |target| target.path.as_str()));
        let checkout = shell(one.checkout.as_str());
        let commit = Some(one.commit.clone()).filter(|commit| !commit.is_empty());
        let what = commit.as_deref().unwrap_or("'refs/pdca/rescue/*:refs/rescued/*'");
        let fetch = Some(format!("git -C {primary} fetch {checkout} {what}"));
        Self { bundle: one.bundle.to_string(), lane: one.slot, commit, fetch }
    }
}

impl Report for AbortReport {
    const KIND: &'static str = "abort";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let (is, kept) =
            if self.dry_run { ("would be", "would be kept") } else { ("is", "is kept") };
        writeln!(out, "run {} {is} given up; nothing of it lands", self.run)?;
        for Kept { bundle, lane, commit, fetch } in &self.kept {
            let commit = commit.as_ref().map_or_else(String::new, |it| format!(" as {it:.12}"));
            writeln!(out, "  what {bundle} left unfinished in lane {lane} {kept}{commit}")?;
            if let Some(fetch) = fetch {
                writeln!(out, "  {} {fetch}", cx.out.accent("get it back:"))?;
            }
        }
        Ok(())
    }
}
