//! The driver's configuration, made from a loaded workspace.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_driver::{
    Author, BuilderPush, Dates, Errand, LaneSettings, RunLimits, TargetSpec, WorkspaceConfig,
    WorkspaceDirs,
};
use pdca_forge::publish::PublishSettings;
use pdca_process::Supervisor;
use pdca_state::{Brief, BundleId};

use crate::config::{ConfigError, Environment, Problem, Workspace};

/// Facts about this process and its clock, read by the caller.
#[derive(Debug, Clone)]
pub struct Machine {
    pub pid: u32,
    /// This program, for scripts that call it again.
    pub program: Option<Utf8PathBuf>,
    /// The time at the start of the command, in seconds since the epoch.
    pub now: i64,
    /// Returns the current time, in seconds since the epoch.
    pub clock: fn() -> i64,
    /// Returns the current time, with uptime to measure with.
    pub moment: pdca_journal::Clock,
    /// The date of commits where it does not come from the clock.
    pub fixed_date: Option<i64>,
    /// Returns how far local time is ahead of UTC, in seconds.
    pub utc_offset: fn() -> i32,
    /// A person can be talked with at the terminal.
    pub has_terminal: bool,
}

/// Builds the driver's configuration from a workspace.
pub fn driver_config(
    workspace: &Workspace,
    environment: Environment<'_>,
    machine: Machine,
) -> Result<WorkspaceConfig, ConfigError> {
    let config = &workspace.config;
    let rows = config.gates.checks().map_err(|problems| {
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Problem::new(texts.join("; "))
    })?;
    let pid = machine.pid;
    let site = WorkspaceConfig {
        dirs: WorkspaceDirs {
            root: workspace.root.clone(),
            bundles: workspace.bundle_root.clone(),
        },
        configuration: crate::config::closed::closed_paths(workspace, environment),
        rows,
        gate_sandbox: config.gates.sandbox,
        gates_may_write: config.gates.may_write.clone(),
        gates_env_pass: config.gates.env_pass.clone(),
        gates_caches: config.gates.caches.clone(),
        leaves: config.leaves.clone(),
        instructions: None,
        force_stubs: force_stubs(environment)?,
        has_terminal: machine.has_terminal,
        pace: None,
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
            // A glob that does not parse was refused when the configuration was loaded.
            cache: config.lanes.cache.iter().filter_map(|glob| cache_pattern(glob).ok()).collect(),
            hydrate: config.lanes.hydrate.clone(),
            ports: config.lanes.ports,
        },
        close_words: config.driver.close_dispositions.clone(),
        schedule: config.schedule,
        integrate: config.integrate.clone(),
        doctor: config.doctor.clone(),
        builder_push: builder_push(&config.publish),
        check: config.check,
        gate_base: config.driver.gate_base,
        search_path: environment.get("PATH").map(ToOwned::to_owned),
        supervisor: Supervisor::default(),
        breaker: pdca_leaves::Breaker::default(),
        meter: pdca_driver::CostMeter::default(),
        utc_offset: machine.utc_offset,
        run: format!("{:x}-{pid}", machine.now),
        holder: format!("process {pid}"),
        clock: machine.clock,
        errand: Errand::default(),
        config_digest: pdca_state::sha256_hex(&serde_json::to_vec(config).unwrap_or_default()),
        author: author(workspace)?,
        dates: dates(environment, &machine)?,
        program: machine.program,
        iterate_from: config.driver.iterate_from,
        products: config.driver.products.clone(),
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

/// Returns the branches that builders may push; `None` if they may push nothing.
fn builder_push(publish: &PublishSettings) -> Option<BuilderPush> {
    let settings = publish.builder_pushes.then(|| publish.clone())?;
    let remote = settings.remote.clone();
    // A name that is not valid is reported when the change is published.
    let branch = move |id: &BundleId, brief: Option<&Brief>| {
        settings.branch_of(id, brief, "").ok().map(|branch| branch.to_string())
    };
    Some(BuilderPush { remote, branch: Arc::new(branch) })
}

/// Refuses a closed path in `may_write`: if it were silently ignored, it would look open.
fn require_open(site: &WorkspaceConfig, workspace: &Workspace) -> Result<(), ConfigError> {
    let Some((row, path)) = site.closed_to_gates() else { return Ok(()) };
    let row = row.and_then(|id| site.rows.as_slice().iter().position(|row| row.id == id));
    let (table, key) = match row {
        None => ("[gates]".to_owned(), "gates.may_write".to_owned()),
        Some(at) => ("a row".to_owned(), format!("gates.checks[{at}].may_write")),
    };
    Err(Problem::new(format!("`may_write` in {table} names `{path}`, which stays closed"))
        .hint("take it out, or name a directory beside it: bundles, .pdca, lanes, repositories, configuration, and directories of scripts that it names stay closed to gates")
        .at_known(workspace.sources.place(&key))
        .into())
}

/// Parses an entry of `cache` in `[lanes]`.
pub fn cache_pattern(glob: &str) -> Result<pdca_dag::Pattern, pdca_dag::PatternError> {
    pdca_dag::Pattern::parse(glob, pdca_dag::Case::Sensitive)
}

/// Returns the author of the driver's commits: `author` of `[leaves.builder]`, else of `[project]` if it
/// has an address. A name alone is for sign-offs; then git's user is the author.
fn author(workspace: &Workspace) -> Result<Option<Author>, ConfigError> {
    let config = &workspace.config;
    let Some(text) = config.leaves.builder.author.as_deref() else {
        return Ok(config.project.author.as_deref().and_then(|text| text.parse().ok()));
    };
    let author = text.parse::<Author>().map_err(|error| {
        Problem::from_error(&error)
            .hint("write `author = \"Name <address>\"` in [leaves.builder]")
            .at_known(workspace.sources.place("leaves.builder.author"))
    })?;
    Ok(Some(author))
}

/// Returns the source of commit dates: the clock, or `SOURCE_DATE_EPOCH`, as reproducible builds set it.
fn dates(environment: Environment<'_>, machine: &Machine) -> Result<Dates, ConfigError> {
    let dates = match (environment.text("SOURCE_DATE_EPOCH"), machine.fixed_date) {
        (None, None) => Dates::Clock(machine.clock),
        (None, Some(seconds)) => Dates::Fixed(seconds),
        (Some(text), _) => {
            // Git has no dates before 1970, and remotes that check objects refuse them.
            let seconds = text.parse().ok().filter(|seconds: &i64| *seconds >= 0);
            let seconds = seconds.ok_or_else(|| {
                let what = format!(
                    "SOURCE_DATE_EPOCH is `{text}`, which is no number of seconds since 1970"
                );
                Problem::new(what).hint("set it to seconds since 1970, or unset it")
            })?;
            Dates::Fixed(seconds)
        }
    };
    if dates.now() < 0 {
        let what = "the clock of this machine is before 1970, and git has no such dates";
        return Err(Problem::new(what).hint("set the clock, for example with `date -s`").into());
    }
    Ok(dates)
}

/// Returns whether `PDCA_LEAVES_MODE` asks for runs without outside programs.
pub fn force_stubs(environment: Environment<'_>) -> Result<bool, ConfigError> {
    match environment.text("PDCA_LEAVES_MODE") {
        None | Some("command" | "config") => Ok(false),
        Some("stub") => Ok(true),
        Some(other) => Err(Problem::new(format!("PDCA_LEAVES_MODE is `{other}`"))
            .hint("set it to `stub` to use no outside program, or unset it")
            .into()),
    }
}
