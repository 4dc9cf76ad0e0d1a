//! Runs a driver for a command: configuration from the workspace, cancellation from signals, lines from events.

mod explain;
mod programs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::thread;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_dag::Plan;
use pdca_driver::pool::Batched;
use pdca_driver::{
    Author, Batch, Begun, Dates, Driver, Errand, Fit, LaneCount, LaneSettings, Pause, Run,
    RunLimits, TargetSpec, WorkspaceConfig, WorkspaceDirs,
};
use pdca_events::{Event, Scope, Stream};
use pdca_gates::{GateContext, Purpose, preflight};
use pdca_leaves::{Called, Mode, ROLES, Role, RoleSpec};
use pdca_process::{Cancel, Supervisor};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use pdca_state::BundleId;

use crate::ambient;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Problem};
use crate::progress::{self, Detail, Progress};
use crate::workspace::Workspace;

pub(crate) use explain::{explain, no_room, no_run, not_taken_over, refused};
pub(crate) use programs::tell_changes;

/// Builds the driver's configuration from a workspace.
pub(crate) fn site(cx: &Context<'_>) -> Result<WorkspaceConfig, Failure> {
    let workspace: &Workspace = cx.workspace()?;
    let config = &workspace.config;
    let rows = config.gates.checks().map_err(|problems| {
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::usage(texts.join("; "))
    })?;
    let pid = std::process::id();
    let site = WorkspaceConfig {
        dirs: WorkspaceDirs {
            root: workspace.root.clone(),
            bundles: workspace.bundle_root.clone(),
        },
        configuration: configuration(cx, workspace),
        rows,
        gate_sandbox: config.gates.sandbox,
        gates_may_write: config.gates.may_write.clone(),
        gates_env_pass: config.gates.env_pass.clone(),
        leaves: config.leaves.clone(),
        force_stubs: force_stubs(cx)?,
        targets: workspace
            .targets
            .iter()
            .map(|target| TargetSpec {
                name: target.name.clone(),
                path: target.path.clone(),
                repo: target.repo.clone(),
                branch: target.branch.clone(),
            })
            .collect(),
        default_branch: config.project.default_branch.clone(),
        lanes: LaneSettings {
            root: workspace.lanes_root.clone(),
            kind: config.lanes.kind,
            reset: config.lanes.reset,
            cache: config.lanes.cache.iter().filter_map(|glob| cache_pattern(glob).ok()).collect(),
            hydrate: config.lanes.hydrate.clone(),
            ports: config.lanes.ports,
        },
        close_words: config.driver.close_dispositions.clone(),
        schedule: config.schedule,
        integrate: config.integrate.clone(),
        gate_base: config.driver.gate_base,
        search_path: cx.ambient.env("PATH").map(ToOwned::to_owned),
        supervisor: Supervisor::default(),
        program: cx.ambient.program.clone(),
        breaker: pdca_leaves::Breaker::default(),
        meter: pdca_driver::CostMeter::default(),
        utc_offset: ambient::utc_offset,
        run: format!("{:x}-{pid}", cx.ambient.now()),
        holder: format!("process {pid}"),
        clock: || ambient::moment().wall.as_second(),
        errand: Errand::default(),
        config_digest: pdca_state::sha256_hex(&serde_json::to_vec(config).unwrap_or_default()),
        author: author(cx)?,
        dates: dates(cx)?,
        iterate_from: config.driver.iterate_from,
        limits: RunLimits {
            max_duration: Duration::from_secs(config.driver.max_duration_secs),
            max_leaf_calls: config.driver.max_leaf_calls,
            max_cost: config.driver.max_cost.map(|dollars| dollars.0),
            max_cost_per_issue: config.driver.max_cost_per_issue.map(|dollars| dollars.0),
            max_attempts: config.driver.max_attempts,
            max_auto_iters: config.driver.max_auto_iters,
            min_free: config.driver.min_free_gb.saturating_mul(1 << 30),
            lane_memory: config.driver.lane_memory_mb.saturating_mul(1 << 20),
            leaf_memory: config
                .driver
                .leaf_memory_mb
                .filter(|mib| *mib > 0)
                .map(|mib| mib.saturating_mul(1 << 20)),
        },
    };
    require_open(&site, workspace)?;
    Ok(site)
}

/// Refuses a closed path in `may_write`: if it were silently ignored, it would look open.
fn require_open(site: &WorkspaceConfig, workspace: &Workspace) -> Result<(), Failure> {
    let Some(path) = site.closed_to_gates() else { return Ok(()) };
    let failure =
        Failure::usage(format!("`may_write` in [gates] names `{path}`, which stays closed"))
            .hint("take it out: bundles, lanes and .pdca are written by the driver alone");
    Err(match workspace.sources.place("gates.may_write") {
        Some(place) => failure.at(place),
        None => failure,
    })
}

/// Returns our configuration outside the workspace, which the sandbox has to close separately.
fn configuration(cx: &Context<'_>, workspace: &Workspace) -> Vec<Utf8PathBuf> {
    let user = cx.ambient.config_home().map(|home| home.join("pdca"));
    let places = [user, Some(workspace.templates_dir.clone()), Some(workspace.process_dir.clone())];
    places.into_iter().flatten().filter(|path| !path.starts_with(&workspace.root)).collect()
}

/// Parses an entry of `cache` in `[lanes]`.
pub(crate) fn cache_pattern(glob: &str) -> Result<pdca_dag::Pattern, pdca_dag::PatternError> {
    pdca_dag::Pattern::parse(glob, pdca_dag::Case::Sensitive)
}

/// Returns the author of the driver's commits: `author` of `[leaves.builder]`, else of `[project]` if it
/// has an address. A name alone is for sign-offs; then git's user is the author.
fn author(cx: &Context<'_>) -> Result<Option<Author>, Failure> {
    let workspace = cx.workspace()?;
    let config = &workspace.config;
    let builder = config.leaves.builder.author.as_deref();
    if let Some(text) = builder {
        let author = text.parse::<Author>().map_err(|error| {
            let failure = Failure::from_error(Exit::Usage, &error)
                .hint("write `author = \"Name <address>\"` in [leaves.builder]");
            match workspace.sources.place("leaves.builder.author") {
                Some(place) => failure.at(place),
                None => failure,
            }
        })?;
        return Ok(Some(author));
    }
    Ok(config.project.author.as_deref().and_then(|text| text.parse().ok()))
}

/// Returns the source of commit dates: the clock, or `SOURCE_DATE_EPOCH`, as reproducible builds set it.
fn dates(cx: &Context<'_>) -> Result<Dates, Failure> {
    match (cx.ambient.env_text("SOURCE_DATE_EPOCH"), &cx.ambient.clock) {
        (None, ambient::Clock::System) => Ok(Dates::Clock(|| ambient::moment().wall.as_second())),
        (None, ambient::Clock::Fixed(seconds)) => Ok(Dates::Fixed(*seconds)),
        (Some(text), _) => text.parse().map(Dates::Fixed).map_err(|_| {
            Failure::usage(format!("SOURCE_DATE_EPOCH is `{text}`, which is no number of seconds"))
                .hint("set it to seconds since 1970, or unset it")
        }),
    }
}

/// Refuses to start if the program of a gate or a leaf is missing, because each bundle would fail on it in the middle of
/// the run.
pub(crate) fn require_programs(cx: &Context<'_>, site: &WorkspaceConfig) -> Result<(), Failure> {
    let workspace = cx.workspace()?;
    let at = |problem: Problem, key: &str| match workspace.sources.place(key) {
        Some(place) => problem.at(place),
        None => problem,
    };
    let jobs = site.dirs.private().join("jobs");
    let mut scene = GateContext::new(Purpose::Bundle, &site.dirs.root, &jobs);
    scene.search_path = site.search_path.as_deref();
    let mut problems = Vec::new();
    for unready in preflight(&site.rows, &scene) {
        let row = site.rows.as_slice().iter().position(|row| row.id == unready.rule_id);
        let problem = Problem::new(format!("gate `{}`: {}", unready.rule_id, unready.fault))
            .hint("install it, or mend the row; `pdca doctor` looks at all of them");
        problems.push(at(problem, &format!("gates.checks[{}].cmd", row.unwrap_or_default())));
    }
    let leaves = &workspace.config.leaves;
    for RoleSpec { role, name, .. } in
        ROLES.iter().filter(|spec| spec.called == Called::InEveryCycle)
    {
        // A missing adviser does not stop a run; `pdca doctor` reports it.
        let Some(leaf) = leaves.of(*role) else { continue };
        let program = leaf.argv.first().filter(|_| leaf.mode == Mode::Command);
        let Some(program) = program else { continue };
        if !site.force_stubs && !has_program(cx, &site.dirs.root, program) {
            let problem = Problem::new(format!("{name} program `{program}` not found on PATH"))
                .hint("install it, or mend its `argv`; PDCA_LEAVES_MODE=stub does without");
            problems.push(at(problem, &format!("leaves.{name}.argv")));
        }
    }
    for (table, leaf) in pdca_driver::leaves_without_cost(site) {
        let agent = leaf.agent.as_deref().unwrap_or(leaf.protocol.as_str());
        let key = if site.limits.max_cost.is_some() { "max_cost" } else { "max_cost_per_issue" };
        let remedy = if leaf.protocol.tells_usage() {
            "add `price = { input = 1.25, output = 10 }`, dollars for a million tokens, or `cost_per_call = 0.30`"
        } else {
            "add `cost_per_call = 0.30`, the dollars that a call is taken to cost"
        };
        let what = format!("`{key}` cannot be kept: [{table}] (`{agent}`) tells no cost");
        let problem = Problem::new(what).hint(format!("{remedy}, to [{table}]; or remove `{key}`"));
        problems.push(at(problem, &format!("driver.{key}")));
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::of(Exit::Usage, problems)) }
}

/// Returns whether a program exists: on `PATH`, or in the workspace if it is a path. A
/// placeholder is not known yet, and counts as existing.
pub(crate) fn has_program(cx: &Context<'_>, workspace: &Utf8Path, program: &str) -> bool {
    if program.contains('{') {
        return true;
    }
    if program.contains('/') {
        return workspace.join(program).is_file();
    }
    cx.ambient.find_program(program).is_some()
}

/// Returns an error if no program is configured for a role that a person asked for by name.
pub(crate) fn require_leaf(cx: &Context<'_>, role: Role) -> Result<(), Failure> {
    let leaf = cx.workspace()?.config.leaves.of(role);
    if leaf.is_some_and(|leaf| leaf.mode == Mode::Command) && !force_stubs(cx)? {
        return Ok(());
    }
    Err(Failure::usage(format!("no {role} is configured"))
        .hint(format!("set `mode = \"command\"` and `argv` of [leaves.{role}] in pdca.toml")))
}

fn force_stubs(cx: &Context<'_>) -> Result<bool, Failure> {
    match cx.ambient.env_text("PDCA_LEAVES_MODE") {
        None | Some("command" | "config") => Ok(false),
        Some("stub") => Ok(true),
        Some(other) => Err(Failure::usage(format!("PDCA_LEAVES_MODE is `{other}`"))
            .hint("set it to `stub` to use no outside program, or unset it")),
    }
}

/// Returns the bundles that wait after faults of the machine. An unreadable run is reported when a run begins.
pub(crate) fn pauses(site: &WorkspaceConfig) -> BTreeMap<BundleId, Pause> {
    let Ok(place) = pdca_journal::HostScope::here() else { return BTreeMap::new() };
    let now = pdca_journal::Now { at: ambient::moment(), boot: &place.boot };
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
    pub(crate) lanes: NonZeroU32,
}

/// Runs a batch in a run, with progress on `err`.
pub(crate) fn run_bundles(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    todo: &Todo<'_>,
    events: Option<&Utf8Path>,
    err: &mut dyn Write,
) -> Result<Batched, Failure> {
    let &Todo { batch, plan, groups, lanes } = todo;
    let lanes = fitting(cx, site, lanes, err)?;
    let ids: Vec<BundleId> = plan.ids().cloned().collect();
    let begun =
        Run::begin(site, &ids, lanes.get(), ambient::moment).map_err(|error| no_run(&error))?;
    tell_torn(&begun, cx, err)?;
    let site = WorkspaceConfig { run: begun.run.id().to_string(), ..site.clone() };
    work(cx, &site, events, err, |driver| {
        let driver = Driver { run: Some(&begun.run), ..*driver };
        driver.events.record(begun.run.id().as_str(), &begun.run.dir());
        for recovered in &begun.recovered {
            let scope = Scope::Bundle(recovered.id.clone());
            let kind = progress::recovered(recovered.was, recovered.action);
            driver.events.emit(scope, recovered.slot, kind);
        }
        driver.run_batch(batch, plan, groups, lanes)
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
        let place = cx.workspace()?.sources.place(key);
        let wherefrom = match (flag, place) {
            (Some(_), _) => "--lanes 0".to_owned(),
            (None, Some(place)) => format!("{}: `{key}` is 0", place.show(&cx.ambient.cwd)),
            (None, None) => format!("`{key}` is 0"),
        };
        let text = format!("{wherefrom}: there is no work without a lane, so 1 is taken");
        cx.note(err, &format!("{} {text}", cx.err.warn("note:")))?;
    }
    Ok(number)
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
    if let Some(torn) = &begun.torn {
        let text =
            format!("the last record of the run was not finished; it is kept as {}", torn.kept);
        cx.note(err, &format!("{} {text}", cx.err.warn("warning:")))?;
    }
    Ok(())
}

/// Runs `job` with a driver on a thread of its own, while this one shows the events.
pub(crate) fn work<T: Send>(
    cx: &Context<'_>,
    site: &WorkspaceConfig,
    events: Option<&Utf8Path>,
    err: &mut dyn Write,
    job: impl FnOnce(&Driver<'_>) -> T + Send,
) -> Result<T, Failure> {
    let mut record = Record::open(events)?;
    let cancel = Cancel::new();
    let signals = Interrupts::listen(&cancel)?;
    let effects = crate::faults::effects(cx)?;
    let (to, from) = crossbeam_channel::unbounded::<Event>();
    // Lines of the log would tear a line that is drawn again and again.
    let live = cx.ambient.terminal.stderr && cx.ambient.env_text(crate::log::VARIABLE).is_none();
    let mut progress = Progress::new(cx.err, detail(cx), live, cx.width());
    let done = thread::scope(|scope| {
        let cancel = &cancel;
        let worker = scope.spawn(move || {
            // The work continues even if the terminal is gone.
            let events = Stream::new(|| ambient::moment().wall, move |event| drop(to.send(event)));
            let effects = effects.as_ref();
            job(&Driver { effects, ..Driver::new(site, &events, cancel) })
        });
        // With the terminal gone nothing can be shown; the exit code still tells the result.
        drop(progress.follow(&from, err, &mut |event| record.write(event)));
        worker.join()
    });
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
struct Record(Option<fs_err::File>);

impl Record {
    fn open(path: Option<&Utf8Path>) -> Result<Self, Failure> {
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

    fn write(&mut self, event: &Event) -> io::Result<()> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        file.write_all(&line)
    }
}

/// `--events FILE`, for commands that run a driver.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct EventsArg {
    /// Append what happens to FILE, one JSON object per line
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) events: Option<Utf8PathBuf>,
}

impl EventsArg {
    /// Returns the file, relative to the working directory.
    pub(crate) fn path(&self, cx: &Context<'_>) -> Option<Utf8PathBuf> {
        self.events.as_ref().map(|path| cx.ambient.cwd.join(path))
    }
}
