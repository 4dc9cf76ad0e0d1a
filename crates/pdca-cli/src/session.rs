//! Runs a driver for a command: configuration from the workspace, cancellation from signals, lines from events.

pub(crate) mod fleet;
pub(crate) mod integration;
mod programs;
pub(crate) mod waits;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::thread;

use camino::Utf8Path;
use pdca_dag::Plan;
use pdca_driver::pool::Batched;
use pdca_driver::{Batch, Begun, Driver, Fit, LaneCount, Pause, Run, WorkspaceConfig};
use pdca_journal::events::{Event, EventStream, Scope};
use pdca_leaves::{LongWait, Role, WaitDecision};
use pdca_process::Cancel;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use pdca_state::BundleId;
use pdca_workspace::snapshot::WorkspaceSnapshot;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::process_env;
use crate::progress::{self, Detail, ProgressRenderer};
use crate::render;

pub(crate) use crate::explain::driver::{explain, no_room, no_run, refused};
pub(crate) use programs::tell_changes;
use waits::WaitDesk;

/// Builds the driver's configuration from a workspace.
pub(crate) fn driver_config(cx: &Context<'_>) -> Result<WorkspaceConfig, Failure> {
    Ok(cx.open()?.driver_config()?)
}

/// Reads every bundle of the workspace.
pub(crate) fn snapshot(cx: &Context<'_>) -> Result<WorkspaceSnapshot, Failure> {
    Ok(cx.open()?.snapshot()?)
}

/// Like [`snapshot`], with running drivers, accepted changes and blocks.
pub(crate) fn snapshot_at_work(cx: &Context<'_>) -> Result<WorkspaceSnapshot, Failure> {
    Ok(cx.open()?.snapshot_at_work()?)
}

/// Refuses to start if the program of a gate or a leaf is missing.
pub(crate) fn require_programs(cx: &Context<'_>, site: &WorkspaceConfig) -> Result<(), Failure> {
    Ok(pdca_workspace::config::require_programs(cx.workspace()?, site, cx.env.environment())?)
}

/// Returns an error if no program is configured for a role that a person asked for by name, or if it needs a terminal and
/// there is none.
pub(crate) fn require_leaf(cx: &Context<'_>, role: Role) -> Result<(), Failure> {
    let environment = cx.env.environment();
    Ok(pdca_workspace::config::require_leaf(cx.workspace()?, role, environment, cx.may_ask())?)
}

/// Returns the bundles that wait after faults of the machine. An unreadable run is reported when a run begins.
pub(crate) fn pauses(site: &WorkspaceConfig) -> BTreeMap<BundleId, Pause> {
    let Ok(place) = pdca_journal::HostScope::here() else { return BTreeMap::new() };
    let now = pdca_journal::Now { at: process_env::moment(), boot: &place.boot };
    let seen = pdca_driver::run_statuses(site).unwrap_or_default();
    let states = seen.iter().filter_map(|sighting| sighting.state.as_ref().ok());
    states.flat_map(|state| pdca_driver::pauses(state, now)).collect()
}

/// A batch to run, with its plan and lanes.
pub(crate) struct Todo<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) plan: &'a Plan,
    /// The planning groups of `lanes.json`, if there is one.
    pub(crate) groups: &'a [Vec<BundleId>],
    /// The local lanes.
    pub(crate) lanes: NonZeroU32,
    /// The lanes with the hosts beside them.
    pub(crate) places: Option<&'a pdca_driver::place::Places>,
}

/// Runs a batch in a run, with progress on `err`.
pub(crate) fn run_bundles(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    todo: &Todo<'_>,
    events: Option<&Utf8Path>,
    err: &mut dyn Write,
) -> Result<Batched, Failure> {
    let &Todo { batch, plan, groups, lanes, places } = todo;
    // Beside hosts this was asked before they were: their slots come after the lanes that fit.
    let lanes = if places.is_some() { lanes } else { fitting(cx, site, lanes, err)? };
    let ids: Vec<BundleId> = plan.ids().cloned().collect();
    let begun =
        Run::begin(site, &ids, lanes.get(), process_env::moment).map_err(|error| no_run(&error))?;
    tell_torn(&begun, cx, err)?;
    // Names of attempts and jobs carry the run (decision 055), which exists only now.
    let site = WorkspaceConfig { run: begun.run.id().to_string(), ..site.clone() };
    work(cx, &site, events, err, |driver| {
        let driver = Driver { run: Some(&begun.run), ..*driver };
        driver.events.record(begun.run.id().as_str(), &begun.run.dir());
        for recovered in &begun.recovered {
            let scope = Scope::Bundle(recovered.id.clone());
            let kind = progress::recovered(recovered.was, recovered.action);
            driver.events.emit(scope, recovered.slot, kind);
        }
        let driver = Driver { places, ..driver };
        let slots = places.and_then(|places| NonZeroU32::new(places.slots()));
        driver.run_batch(batch, plan, groups, slots.unwrap_or(lanes))
    })
}

/// Returns the number of lanes: from the flag, else from the configuration under `key`. The meaning of 0 and
/// `auto` is printed.
pub(crate) fn lanes(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    flag: Option<LaneCount>,
    (key, configured): (&str, LaneCount),
    err: &mut dyn Write,
) -> Result<NonZeroU32, Failure> {
    let asked = flag.unwrap_or(configured);
    let Some(number) = asked.number() else {
        let reckoning = pdca_driver::reckon_lanes(site);
        cx.note(err, &reckoning.to_string())?;
        return Ok(reckoning.lanes);
    };
    if asked == LaneCount::Number(0) {
        note_no_lanes(cx, flag.is_some(), key, err)?;
    }
    Ok(number)
}

/// Prints that one lane is taken, where a flag or the configuration asks for none.
pub(crate) fn note_no_lanes(
    cx: &Context<'_>,
    by_flag: bool,
    key: &str,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let asked = match cx.workspace()?.sources.place(key) {
        _ if by_flag => "--lanes 0".to_owned(),
        Some(place) => format!("{}: `{key}` is 0", place.show(&cx.env.cwd)),
        None => format!("`{key}` is 0"),
    };
    let text = format!("{asked}: there is no work without a lane, so 1 is taken");
    cx.note(err, &format!("{} {text}", cx.err.warn("note:")))
}

/// Like [`lanes`], for `[driver]`.
pub(crate) fn driver_lanes(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    flag: Option<LaneCount>,
    err: &mut dyn Write,
) -> Result<NonZeroU32, Failure> {
    lanes(cx, site, flag, ("driver.lanes", cx.workspace()?.config.driver.lanes), err)
}

/// Returns the number of lanes that fit, and prints the remarks. A full disk stops nothing here.
pub(crate) fn told_fit(
    cx: &Context<'_>,
    fit: &Fit,
    err: &mut dyn Write,
) -> Result<NonZeroU32, Failure> {
    for remark in &fit.remarks {
        cx.note(err, &format!("{} {remark}", cx.err.warn("warning:")))?;
    }
    Ok(fit.lanes)
}

/// Returns how many of the requested lanes fit, and prints the remarks. A full disk is
/// an error before anything starts.
fn fitting(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    lanes: NonZeroU32,
    err: &mut dyn Write,
) -> Result<NonZeroU32, Failure> {
    let fit = pdca_driver::fit_lanes(site, lanes);
    let lanes = told_fit(cx, &fit, err)?;
    match fit.short {
        None => Ok(lanes),
        Some(short) => Err(no_room(short)),
    }
}

/// Reports the unfinished end of a journal that was cut off.
pub(crate) fn tell_torn(
    begun: &Begun,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    begun.torn.iter().try_for_each(|torn| render::recovery::journal_cut(torn, cx, err))
}

/// Runs `job` with a driver on a thread of its own, while this one shows the events.
pub(crate) fn work<T: Send>(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    events: Option<&Utf8Path>,
    err: &mut dyn Write,
    job: impl FnOnce(&Driver<'_>) -> T + Send,
) -> Result<T, Failure> {
    let mut record = EventsFile::open(events)?;
    let cancel = Cancel::new();
    // Before the driver starts, so that every signal leads to an orderly stop.
    let signals = Interrupts::listen(&cancel)?;
    let effects = crate::faults::effects(cx)?;
    let (to, from) = crossbeam_channel::unbounded::<Event>();
    // Lines of the log would tear a line that is drawn again and again.
    let live = cx.env.terminal.stderr && cx.env.var_text(process_env::LOG_VARIABLE).is_none();
    let talking = site.leaves.all().filter(|(_, _, leaf)| leaf.interactive);
    let talking = talking.map(|(role, _, _)| role.name.to_owned()).collect();
    let mut progress =
        ProgressRenderer::new(cx.err, detail(cx), live, cx.width()).lending_to(talking);
    let (desk, questions) = WaitDesk::open(&cancel);
    if cx.may_ask() {
        progress = progress.asking(questions);
    }
    let done = thread::scope(|scope| {
        let cancel = &cancel;
        let ask = move |wait: &LongWait| desk.ask(wait);
        let may_ask = cx.may_ask();
        let worker = scope.spawn(move || {
            // The work continues even if the terminal is gone.
            let events =
                EventStream::new(|| process_env::moment().wall, move |event| drop(to.send(event)));
            let effects = effects.as_ref();
            let ask_wait: Option<&(dyn Fn(&LongWait) -> WaitDecision + Sync)> =
                if may_ask { Some(&ask) } else { None };
            job(&Driver { effects, ask_wait, ..Driver::new(site, &events, cancel) })
        });
        // With the terminal gone nothing can be shown; the exit code still tells the result.
        drop(progress.follow(&from, err, &mut |event| record.write(event)));
        worker.join()
    });
    // After the worker has ended: until then a second signal has to kill at once.
    signals.close();
    done.map_err(|_| {
        Failure::unexpected("the driver's thread panicked")
            .hint("what is on disk is whole; run it again")
    })
}

/// Returns the requested amount of output.
pub(crate) fn detail(cx: &Context<'_>) -> Detail {
    match (cx.globals.quiet, cx.globals.verbose) {
        (true, _) => Detail::Quiet,
        (false, 0) => Detail::Usual,
        (false, _) => Detail::More,
    }
}

/// Handles signals: the first INT, TERM or HUP stops in order, the second at once.
pub(crate) struct Interrupts {
    handle: signal_hook::iterator::Handle,
    thread: thread::JoinHandle<()>,
}

impl Interrupts {
    pub(crate) fn listen(cancel: &Cancel) -> Result<Self, Failure> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        let cancel = cancel.clone();
        let thread = thread::spawn(move || {
            for _ in signals.forever() {
                if cancel.is_cancelled() {
                    cancel.kill();
                } else {
                    cancel.cancel();
                }
            }
        });
        Ok(Self { handle, thread })
    }

    pub(crate) fn close(self) {
        self.handle.close();
        // The thread only forwards signals, so a panic in it changes nothing.
        drop(self.thread.join());
    }
}

/// The events of a run as JSON lines, for `--events`.
pub(crate) struct EventsFile(Option<fs_err::File>);

impl EventsFile {
    pub(crate) fn open(path: Option<&Utf8Path>) -> Result<Self, Failure> {
        let open = |path: &Utf8Path| {
            use std::os::unix::fs::OpenOptionsExt as _;
            let mut options = fs_err::OpenOptions::new();
            options.append(true).create(true);
            // Opening a pipe without a reader would block forever; this way it fails.
            options.options_mut().custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
            options.open(path)
        };
        Ok(Self(path.map(open).transpose().map_err(|error| {
            Failure::from_error(Exit::Usage, &error).hint("name a file in a directory that exists")
        })?))
    }

    pub(crate) fn write(&mut self, event: &Event) -> io::Result<()> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let written = file.write_all(&line);
        if written.is_err() {
            // A line may be there in part, and whatever follows would be read as its end.
            self.0 = None;
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use pdca_journal::events::{EventKind, Halt};

    use super::*;

    #[test]
    fn after_a_line_that_could_not_be_written_no_other_is_tried() {
        let (to, from) = crossbeam_channel::unbounded();
        let stream = EventStream::new(jiff::Timestamp::now, move |event| to.send(event).unwrap());
        for _ in 0..2 {
            let kind = EventKind::Halted { halt: Halt::AwaitingSignoff };
            stream.emit(Scope::Workspace, None, kind);
        }
        let mut file = EventsFile::open(Some("/dev/full".into())).unwrap();
        let written = [(); 2].map(|()| file.write(&from.recv().unwrap()).is_ok());
        assert_eq!(written, [false, true]);
    }
}
