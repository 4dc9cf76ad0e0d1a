//! `pdca run`: Do, Check, assemble, stop, for the bundles named.

use std::io::Write;

use pdca_driver::{DriveError, Halt, Site};
use pdca_state::{Bundle, BundleId};
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::{self, Driven, EventsArg};

/// Build, gate and review bundles, and stop where a person is due
///
/// Each bundle goes on from the files it has: nothing that is done is done again. Stopped or killed, the same command
/// goes on.
///
/// Exit codes: 0 at sign-off, 3 a person is due before anything can be done, 4 nothing to do, 100 a gating check is
/// red (the bundle is at sign-off all the same), 130 interrupted.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca run 36                       # one bundle, until it waits for sign-off
  pdca run 36 PROJ-12 --events run.jsonl
  PDCA_LEAVES_MODE=stub pdca run 36 # no model is called")]
pub(crate) struct Args {
    /// The bundles, in the order in which they are driven
    #[arg(value_name = "ID", required = true)]
    ids: Vec<IdArg>,
    #[command(flatten)]
    events: EventsArg,
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    let bundles = cx.require_bundles(&args.ids)?;
    let site = session::site(cx)?;
    drive_all(&site, bundles, &args.events, cx, out, err)
}

/// Drives what may be driven and says what became of each bundle.
pub(super) fn drive_all(
    site: &Site,
    bundles: Vec<Bundle>,
    events: &EventsArg,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    session::require_programs(cx, site)?;
    let (free, blocked) = sort_out(site, bundles);
    if cx.globals.dry_run {
        return tell_plan(&free, &blocked, cx, out);
    }
    let _admitted = site.admit().map_err(|error| session::refused(&error))?;
    let driven = session::drive(cx, site, free, events.path(cx).as_deref(), err)?;
    let report = Report::of(&driven, &blocked);
    if cx.globals.json {
        cx.emit_json(out, "run", &report)?;
    } else {
        report.print(cx, out)?;
    }
    match first_failure(driven) {
        Some(failure) => Err(failure),
        None => Ok(report.exit()),
    }
}

/// Bundles that may start, and those that wait for others.
fn sort_out(site: &Site, bundles: Vec<Bundle>) -> (Vec<Bundle>, Vec<(Bundle, Vec<BundleId>)>) {
    let mut free = Vec::new();
    let mut blocked = Vec::new();
    for bundle in bundles {
        // A bundle that cannot be read is driven, and fails with its own words.
        let brief = bundle.load().ok().and_then(|found| found.brief);
        let waits = brief.map(|brief| site.blocked_by(&brief)).unwrap_or_default();
        if waits.is_empty() {
            free.push(bundle);
        } else {
            blocked.push((bundle, waits));
        }
    }
    (free, blocked)
}

fn tell_plan(
    free: &[Bundle],
    blocked: &[(Bundle, Vec<BundleId>)],
    cx: &Context<'_>,
    out: &mut dyn Write,
) -> Result<Exit, Failure> {
    for bundle in free {
        let state = bundle.load().map(|found| found.state.as_str());
        writeln!(out, "{}  {}", bundle.id().dir_name(), state.unwrap_or("cannot be read"))?;
    }
    for (bundle, waits) in blocked {
        writeln!(out, "{}  {}", bundle.id().dir_name(), cx.out.warn(waiting(waits)))?;
    }
    Ok(Exit::Done)
}

fn waiting(ids: &[BundleId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!("[blocked-by: {}]", ids.join(", "))
}

/// What became of each bundle.
#[derive(Debug, Serialize)]
struct Report {
    bundles: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    id: BundleId,
    /// `sign-off`, `red`, `nothing-to-do`, `waiting`, `blocked`, `failed` or `interrupted`.
    outcome: Fate,
    #[serde(skip_serializing_if = "Option::is_none")]
    halt: Option<Halt>,
    steps: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocked_by: Vec<BundleId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Fate {
    Signoff,
    Red,
    NothingToDo,
    Waiting,
    Blocked,
    Failed,
    Interrupted,
}

impl Report {
    fn of(driven: &[Driven], blocked: &[(Bundle, Vec<BundleId>)]) -> Self {
        let mut bundles: Vec<Line> =
            driven.iter().map(|(bundle, result)| Line::of(bundle, result)).collect();
        bundles.extend(blocked.iter().map(|(bundle, waits)| Line {
            blocked_by: waits.clone(),
            ..Line::empty(bundle, Fate::Blocked)
        }));
        Self { bundles }
    }

    fn print(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        for line in &self.bundles {
            let name = line.id.dir_name();
            let p = cx.out;
            let said = match line.outcome {
                Fate::Signoff => {
                    format!("{}  pdca signoff {} show", p.good("waits for sign-off"), line.id)
                }
                Fate::Red => format!(
                    "{}  pdca status {}",
                    p.bad("a gating check is red, waits for sign-off"),
                    line.id
                ),
                Fate::NothingToDo => p.faint("nothing to do").to_string(),
                Fate::Waiting => p.warn("waits for a person").to_string(),
                Fate::Blocked => p.warn(waiting(&line.blocked_by)).to_string(),
                Fate::Failed => p.bad("failed").to_string(),
                Fate::Interrupted => p.warn("interrupted").to_string(),
            };
            writeln!(out, "{name}  {said}")?;
        }
        Ok(())
    }

    fn exit(&self) -> Exit {
        let any = |fate| self.bundles.iter().any(|line| line.outcome == fate);
        if any(Fate::Red) {
            Exit::GateRed
        } else if any(Fate::Signoff) {
            Exit::Done
        } else if any(Fate::Waiting) || any(Fate::Blocked) {
            Exit::Waiting
        } else {
            Exit::NothingToDo
        }
    }
}

impl Line {
    fn empty(bundle: &Bundle, outcome: Fate) -> Self {
        Self {
            id: bundle.id().clone(),
            outcome,
            halt: None,
            steps: 0,
            blocked_by: Vec::new(),
            error: None,
        }
    }

    fn of(bundle: &Bundle, result: &Result<pdca_driver::Drive, DriveError>) -> Self {
        match result {
            Ok(drive) => {
                let outcome = match drive.halt {
                    Halt::AwaitingSignoff if drive.red => Fate::Red,
                    Halt::AwaitingSignoff if drive.steps > 0 => Fate::Signoff,
                    Halt::AwaitingSignoff | Halt::Unplanned => Fate::Waiting,
                    Halt::Complete | Halt::Resolved | Halt::Discontinued => Fate::NothingToDo,
                };
                Self { halt: Some(drive.halt), steps: drive.steps, ..Self::empty(bundle, outcome) }
            }
            Err(DriveError::Interrupted) => Self::empty(bundle, Fate::Interrupted),
            Err(error) => {
                Self { error: Some(pdca_state::chain(error)), ..Self::empty(bundle, Fate::Failed) }
            }
        }
    }
}

/// The worst failure among the bundles, if any failed: an interruption first.
fn first_failure(driven: Vec<Driven>) -> Option<Failure> {
    let mut failures: Vec<Failure> = driven
        .into_iter()
        .filter_map(|(bundle, result)| Some(session::explain(&bundle, result.err()?)))
        .collect();
    failures.sort_by_key(|failure| failure.exit != Exit::Interrupted);
    let mut failures = failures.into_iter();
    let mut first = failures.next()?;
    first.problems.extend(failures.flat_map(|failure| failure.problems));
    Some(first)
}
