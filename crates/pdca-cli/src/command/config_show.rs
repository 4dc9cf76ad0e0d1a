//! `pdca config show`: each effective value and its origin.

use std::io::Write;

use pdca_workspace::config::{effective_config, trust_user_file};

use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::report::Response;

/// Show the effective config and the origin of each value
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  pdca config show                 # -v: the defaults of unused leaves too
  pdca config show driver          # only what begins with `driver`
  pdca config show --json
  PDCA_LANES=4 pdca config show driver.lanes
  pdca config trust                # take the user's file as it is now
  pdca config migrate --dry-run    # the file of an older instance, as it would be written here

`pdca help config` explains the layers.")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print each value with its source: default, preset, user, workspace, env or flag
    Show {
        /// Only keys that begin with this
        key: Option<String>,
    },
    /// Trust the present text of the user's config file in this workspace; any change ends the trust
    Trust,
    /// Write the file of an older instance as one that loads without `--compat`
    ///
    /// Keeps the old file beside the new one, and comments with the keys that they are about. Shows what becomes of each key
    /// and the new text, and asks before it writes; `--yes` does not ask, `--dry-run` only shows.
    Migrate,
}

impl Args {
    /// Returns whether the configuration has to be valid for it.
    pub(super) fn needs_workspace(&self) -> bool {
        !matches!(self.action, Some(Action::Migrate))
    }
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let prefix = match &args.action {
        Some(Action::Migrate) => return super::config_migrate::run(cx, err),
        Some(Action::Trust) => return render::config::trusted(trust_user_file(&cx.open()?)?),
        Some(Action::Show { key }) => key.as_deref().unwrap_or(""),
        None => "",
    };
    let is_whole = !prefix.is_empty() || cx.globals.verbose > 0;
    Ok(render::config::effective(effective_config(&cx.open()?, prefix)?, is_whole))
}

#[cfg(test)]
mod tests {
    use crate::exit::Exit;
    use crate::testing::Desk;

    #[test]
    fn everything_is_listed_with_its_source() {
        let desk = Desk::new();
        desk.workspace.config("[leaves.builder]\nretries = 2\n\n[[gates.checks]]\nid = \"a\"\ntier = \"T1\"\ncmd = \"true\"\n");
        insta::assert_snapshot!(desk.run(&["config", "show"]), @r#"
        act.every = 10  # default
        act.rules = []  # default
        act.weekly = false  # default
        check.citations = "items"  # default
        check.max_files = 50  # default
        check.max_kb = 0  # default
        check.max_lines = 1000  # default
        doctor.checks = []  # default
        doctor.guard = "hold"  # default
        driver.close_dispositions = ["likely-close", "wontfix", "by-design", "duplicate", "not-reproducible", "already-fixed", "can't-reproduce", "cant-reproduce", "cannot-reproduce", "manual-verification", "upstream", "external"]  # default
        driver.gate_base = "before"  # default
        driver.iterate_from = "last"  # default
        driver.lane_memory_mb = 256  # default
        driver.lanes = 1  # default
        driver.max_attempts = 3  # default
        driver.max_auto_iters = 0  # default
        driver.max_duration_secs = 14400  # default
        driver.min_free_gb = 1  # default
        driver.products = ["__pycache__/", "*.py[co]", "*.egg-info/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/", ".tox/", ".nox/", ".coverage", "node_modules/", ".nyc_output/", ".gradle/", "target/", "*.class", "*.o", ".aider.*.history*", ".aider.tags.cache*/", "*.orig", "*.rej", "*.sw[op]", "*~", ".#*", ".DS_Store", "core.[0-9]*"]  # default
        flow.after_accept = "integrate"  # default
        flow.max_unsigned = 10  # default
        gates.checks[0].at_publish = false  # default
        gates.checks[0].cmd = "true"  # pdca.toml:7
        gates.checks[0].confirm = false  # default
        gates.checks[0].id = "a"  # pdca.toml:5
        gates.checks[0].label = ""  # default
        gates.checks[0].needs_lane = false  # default
        gates.checks[0].reads_primary = false  # default
        gates.checks[0].scope = "repo"  # default
        gates.checks[0].shares = false  # default
        gates.checks[0].tier = "T1"  # pdca.toml:6
        gates.cwd = "auto"  # default
        gates.parallel = false  # default
        gates.sandbox = "auto"  # default
        integrate.fetch = true  # default
        integrate.gate = "tip"  # default
        integrate.land = "branch"  # default
        integrate.lanes = 1  # default
        integrate.max_base_drift_commits = 50  # default
        integrate.max_batch = 64  # default
        integrate.push_seals = true  # default
        integrate.remote = "origin"  # default
        integrate.resolve_pause_secs = 5  # default
        integrate.return_culprits = "ask"  # default
        integrate.signed_off_by = false  # default
        integrate.strategy = "rebase-ff"  # default
        lanes.cache = []  # default
        lanes.kind = "reference"  # default
        lanes.ports = "20000-29999"  # default
        lanes.reset = "clean"  # default
        leaves.act.mode = "stub"  # default
        leaves.builder.argv = []  # default
        leaves.builder.env_pass = []  # default
        leaves.builder.interactive = false  # default
        leaves.builder.mode = "stub"  # default
        leaves.builder.network = "on"  # default
        leaves.builder.retries = 2  # pdca.toml:2
        leaves.builder.sandbox = "auto"  # default
        leaves.builder.throttled.backoff_secs = 30  # default
        leaves.builder.throttled.exit_codes = []  # default
        leaves.builder.throttled.max_wait_secs = 3600  # default
        leaves.builder.writable = []  # default
        leaves.planner.mode = "stub"  # default
        leaves.publisher.mode = "stub"  # default
        leaves.resolver.mode = "stub"  # default
        leaves.reviewer.mode = "stub"  # default
        leaves.signoff.mode = "stub"  # default
        notify.terminal = true  # default
        notify.timeout_secs = 10  # default
        paths.bundle_root = "results"  # default
        paths.process_dir = "process"  # default
        paths.templates_dir = "templates"  # default
        publish.branch = "pdca/{id}"  # default
        publish.builder_pushes = false  # default
        publish.comments = "gh"  # default
        publish.forge = "gh"  # default
        publish.gh = "gh"  # default
        publish.merge = false  # default
        publish.merge_method = "merge"  # default
        publish.remote = "origin"  # default
        publish.timeout_secs = 60  # default
        schedule.blocked = "bundle"  # default
        schedule.dependants = "accepted"  # default
        schedule.drift = "warn"  # default
        schedule.durations = "unit"  # default
        schedule.join_dependencies = false  # default
        schedule.lanes_json = "optional"  # default
        schedule.rivals = "built"  # default
        schedule.split = "auto"  # default
        schedule.surfaces = "ignore"  # default
        schedule.untouched = "free"  # default
        select.timeout_secs = 300  # default
        targets = []  # default
        "#);
        assert!(desk.run(&["config", "show", "-v"]).out.contains("leaves.act.retries = 0"));
    }

    #[test]
    fn a_key_that_is_not_there_is_refused() {
        assert_eq!(Desk::new().run(&["config", "show", "drivers"]).exit, Exit::Usage);
    }
}
