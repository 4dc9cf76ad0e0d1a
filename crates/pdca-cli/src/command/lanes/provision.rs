//! `pdca lanes provision`: creates missing lanes.

use std::io::Write;
use std::thread;

use pdca_driver::LaneCount;
use pdca_lanes::{Hydrated, LaneKind, LaneReport, Provision, ProvisionEvent, Provisioned, Target};
use serde::Serialize;

use super::{Place, TargetArg, explain, hydration, refuse_driver};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{Report, Response};
use crate::session;

/// Create missing lanes, and hydrate them
///
/// Each is a private checkout of a target at its base commit. An existing lane is left as it is, so the
/// command can be repeated; an interrupted one is completed. Then `[lanes.hydrate]` runs in
/// every lane that is free and has no changes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pdca lanes provision                 # as many as [driver] lanes says
  pdca lanes provision --lanes 4
  pdca lanes provision --lanes auto    # what processors, memory and disk allow
  pdca lanes provision --lanes 4 -n    # say what is missing")]
pub(crate) struct Args {
    /// The number of lanes, or `auto` for what the machine allows [default: `lanes` in [driver]]
    #[arg(long, value_name = "N|auto", allow_negative_numbers = true)]
    lanes: Option<LaneCount>,

    /// The kind of new lanes [default: `kind` in [lanes]]
    #[arg(long, value_name = "KIND", value_enum)]
    kind: Option<KindArg>,

    /// Only create the checkouts
    #[arg(long)]
    no_hydrate: bool,

    #[command(flatten)]
    target: TargetArg,
}

/// The relation of a lane to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum KindArg {
    /// A repository of its own that borrows objects; the target is only read
    Reference,
    /// A linked worktree, registered in the target's repository
    Worktree,
}

impl From<KindArg> for LaneKind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Reference => LaneKind::Reference,
            KindArg::Worktree => LaneKind::Worktree,
        }
    }
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
pub(in crate::command) struct ProvisionReport {
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

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let place = Place::of(cx)?;
    let targets = place.targets(&args.target)?;
    let site = session::driver_config(cx)?;
    let count = session::driver_lanes(cx, &site, args.lanes, err)?;
    let count = session::told_fit(cx, &pdca_driver::fit_ports(&site, count), err)?.get();
    let kind = args.kind.map_or(place.workspace.config.lanes.kind, LaneKind::from);
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
            let done = if args.no_hydrate {
                None
            } else {
                hydration::hydrate(&place, lane.slot, lane.kind, target, cx, err)?
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
fn foresee(place: &Place<'_>, targets: &[Target], count: u32) -> Result<Response, Failure> {
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
    place: &Place<'_>,
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
