//! Creates missing lanes.

use std::io::Write;
use std::thread;

use pdca_driver::LaneCount;
use pdca_lanes::{Hydrated, LaneKind, LaneReport, Provision, ProvisionEvent, Provisioned, Target};
use serde::Serialize;

use super::{explain, hydration, refuse_driver};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::session;
use pdca_workspace::lanes::WorkspaceLanes;

/// A request for lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneRequest<'a> {
    /// The number; that of the configuration if none is given.
    pub(crate) lanes: Option<LaneCount>,
    /// The kind of new lanes; that of the configuration if none is given.
    pub(crate) kind: Option<LaneKind>,
    /// Runs `[lanes.hydrate]` in each that is free.
    pub(crate) hydrate: bool,
    /// Only lanes of this target.
    pub(crate) target: Option<&'a str>,
}

/// A lane after provisioning.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row {
    target: String,
    #[serde(flatten)]
    lane: Provisioned,
    /// `nothing`, `warm`, `fresh`, or `skipped` if it was not tried.
    hydration: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ProvisionReport {
    dry_run: bool,
    lanes: Vec<Row>,
    /// The missing slots, with `--dry-run`.
    missing: Vec<Missing>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Missing {
    slot: u32,
    target: String,
}

/// Creates missing lanes, and hydrates them.
pub(crate) fn create(
    asked: LaneRequest<'_>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Response, Failure> {
    let place = WorkspaceLanes::of(cx.workspace()?)?;
    let targets = place.targets(asked.target)?;
    let site = session::driver_config(cx)?;
    let count = session::driver_lanes(cx, &site, asked.lanes, err)?;
    let count = session::told_fit(cx, &pdca_driver::fit_ports(&site, count), err)?.get();
    let kind = asked.kind.unwrap_or(place.workspace.config.lanes.kind);
    if cx.globals.dry_run {
        return foresee(&place, &targets, count);
    }
    refuse_driver(cx)?;
    let mut rows = Vec::new();
    for target in &targets {
        let base = place.base(target)?.commit;
        let request = Provision::new(0..count, target, &base).with_kind(kind);
        let lanes = provision(&place, &request, cx, err)?;
        for lane in lanes {
            let done = if asked.hydrate {
                hydration::hydrate(&place, lane.slot, lane.kind, target, cx, err)?
            } else {
                None
            };
            let target = target.name().to_owned();
            rows.push(Row { target, lane, hydration: word(done.as_ref()) });
        }
    }
    Ok(Response::done(ProvisionReport { dry_run: false, lanes: rows, missing: Vec::new() }))
}

fn word(hydrated: Option<&Hydrated>) -> &'static str {
    match hydrated {
        None => "skipped",
        Some(Hydrated::Nothing) => "nothing",
        Some(Hydrated::Warm) => "warm",
        Some(Hydrated::Fresh(_)) => "fresh",
    }
}

/// Reports the missing lanes.
fn foresee(
    place: &WorkspaceLanes<'_>,
    targets: &[Target],
    count: u32,
) -> Result<Response, Failure> {
    let there = place.lanes.list().map_err(|error| explain::inspect(&error))?;
    let is_there = |slot: u32, target: &Target| {
        let is_it = |lane: &LaneReport| lane.slot == slot && lane.target == target.name();
        there.iter().any(|lane| is_it(lane) && lane.head.is_some())
    };
    let mut missing = Vec::new();
    for target in targets {
        let slots = (0..count).filter(|slot| !is_there(*slot, target));
        missing.extend(slots.map(|slot| Missing { slot, target: target.name().to_owned() }));
    }
    let exit = if missing.is_empty() { Exit::NothingToDo } else { Exit::Done };
    Ok(Response::new(ProvisionReport { dry_run: true, lanes: Vec::new(), missing }, exit))
}

impl Report for ProvisionReport {
    const KIND: &'static str = "lanes-provision";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for Missing { slot, target } in &self.missing {
            writeln!(out, "lane {slot} of {target}: would be made")?;
        }
        if self.dry_run && self.missing.is_empty() {
            writeln!(out, "every lane is there")?;
        }
        for Row { target, lane, hydration } in &self.lanes {
            let made = if lane.made { "made" } else { "was there" };
            let hydrated = match *hydration {
                "fresh" => ", hydrated",
                "warm" => ", hydrated before",
                _ => "",
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

/// Provisions the lanes on a separate thread, while this one shows the events.
fn provision(
    place: &WorkspaceLanes<'_>,
    request: &Provision<'_>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<Vec<Provisioned>, Failure> {
    let (to, from) = crossbeam_channel::unbounded();
    let (made, shown) = thread::scope(|scope| {
        let worker = scope.spawn(move || {
            place.lanes.provision(request, &|event| {
                // Sending fails if the terminal is gone; the work continues.
                drop(to.send(event));
            })
        });
        let mut shown = Ok(());
        // Read to the end even after an error of the terminal: the loop ends with the worker.
        for event in &from {
            if shown.is_ok() {
                shown = show(&event, request.target.name(), cx, err);
            }
        }
        (worker.join(), shown)
    });
    shown?;
    let made = made.map_err(|_| {
        Failure::unexpected("the thread that makes the lanes panicked")
            .hint("run it again; it completes what was begun")
    })?;
    made.map_err(|error| explain::provision(&error))
}

fn show(
    event: &ProvisionEvent,
    target: &str,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    /// Clears the live line on a terminal.
    const CLEAR: &str = "\r\u{1b}[K";
    let live = cx.env.terminal.stderr && !cx.globals.quiet;
    if live {
        write!(err, "{CLEAR}")?;
    }
    match event {
        ProvisionEvent::Waiting { slot, holder } => {
            let whom =
                holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
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
            cx.note(err, &format!("lane {} of {target}: ready at {:.12}", lane.slot, lane.base))
        }
        ProvisionEvent::Ready(_) => Ok(()),
    }
}
