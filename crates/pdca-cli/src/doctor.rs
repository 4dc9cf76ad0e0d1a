//! Examines host and workspace: each check is a row with what was found, and the remedy where something is wrong.
//!
//! # Invariants
//! - Nothing is changed, not even what is stale; git's locks are reported, never removed.
//! - A check that cannot be made is a row that says so, and hides no other.
//! - No program of a leaf is called unless a probe is asked for.

mod instructions;
mod leads;
mod probe;
mod runs;
mod stale;

use std::io::Write;
use std::time::Duration;

use camino::Utf8Path;
use pdca_driver::{LaneCount, WorkspaceConfig};
use pdca_gates::{Check, GateContext, Purpose, preflight};
use pdca_lanes::Target;
use pdca_leaves::{Called, LeafConfig, LeafMode};
use pdca_process::{
    Cancel, Ending, InstalledGit, SandboxKind, SandboxMode, Spec, bwrap_support, wall_support,
};
use pdca_workspace::config::scaffold;
use pdca_workspace::config::workspace::Workspace;
use pdca_workspace::hosts::{AskedHost, HostWork, ask_hosts};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Problem, install_git};
use crate::report::{Report, Response};
use crate::session;
use crate::words::size;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
enum Health {
    Ok,
    Warning,
    Broken,
}

/// The result of one check.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row {
    what: String,
    health: Health,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The answer of a leaf, with `--probe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<probe::ProbeAnswer>,
}

impl Row {
    fn new(what: impl Into<String>, health: Health, found: impl Into<String>) -> Self {
        Self { what: what.into(), health, found: found.into(), remedy: None, probe: None }
    }

    fn ok(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(what, Health::Ok, found)
    }

    fn warning(
        what: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { remedy: Some(remedy.into()), ..Self::new(what, Health::Warning, found) }
    }

    fn broken(
        what: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { remedy: Some(remedy.into()), ..Self::new(what, Health::Broken, found) }
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Examination {
    rows: Vec<Row>,
}

/// Examines the host, and the workspace if there is one; `probe` calls each leaf once for real, which costs money.
pub(crate) fn examine(probe: bool, cx: &Context<'_>) -> Response {
    let mut rows = host(cx);
    match cx.workspace() {
        Ok(workspace) => {
            rows.push(Row::ok(
                "config",
                workspace.file.as_ref().map_or("PDCA_BUNDLE_ROOT only", |file| file.as_str()),
            ));
            match session::driver_config(cx) {
                Ok(site) => {
                    rows.extend(of_workspace(workspace, &site, cx));
                    rows.extend(
                        hosts(workspace, &site, cx).unwrap_or_else(|failure| {
                            failed("hosts", &failure, "add `--local`", cx)
                        }),
                    );
                    if probe {
                        rows.extend(probe::rows(workspace, &site, cx));
                    }
                }
                Err(failure) => rows.extend(failed("config", &failure, "mend the file", cx)),
            }
        }
        Err(failure) => rows.extend(failed("config", &failure, "mend the file", cx)),
    }
    let broken = rows.iter().any(|row| row.health == Health::Broken);
    let exit = if broken { Exit::Usage } else { Exit::Done };
    Response::new(Examination { rows }, exit)
}

/// Returns the rows of a check that could not be made; `remedy` is for problems without one.
fn failed(what: &str, failure: &Failure, remedy: &str, cx: &Context<'_>) -> Vec<Row> {
    let row = |problem: &Problem| {
        let place = problem
            .place
            .as_ref()
            .map_or(String::new(), |place| format!("{}: ", place.show(&cx.env.cwd)));
        let remedy = problem.hint.clone().unwrap_or_else(|| remedy.to_owned());
        Row::broken(what, format!("{place}{}", problem.what), remedy)
    };
    failure.problems.iter().map(row).collect()
}

impl Report for Examination {
    const KIND: &'static str = "doctor";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let p = cx.out;
        for row in &self.rows {
            let mark = match row.health {
                Health::Ok => p.good("✓ ok     "),
                Health::Warning => p.warn("! warning"),
                Health::Broken => p.bad("✗ broken "),
            };
            writeln!(out, "{mark}  {:<18} {}", row.what, row.found)?;
            if let Some(remedy) = &row.remedy {
                writeln!(out, "           {} {remedy}", p.accent("hint:"))?;
            }
        }
        Ok(())
    }
}

/// Asks every configured host. One that cannot be used only makes a run slower.
fn hosts(
    workspace: &Workspace,
    site: &WorkspaceConfig,
    cx: &Context<'_>,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let entries: Vec<_> = workspace.config.hosts.iter().collect();
    if entries.is_empty() {
        return Ok(rows);
    }
    if let Err(error) = pdca_workspace::config::require_sendable(workspace, site, &entries) {
        rows.extend(error.problems.into_iter().map(|problem| {
            Row::broken(
                "hosts",
                problem.what,
                problem.hint.unwrap_or_else(|| "add `--local`".to_owned()),
            )
        }));
    }
    for AskedHost { entry, answer, .. } in ask_hosts(&cx.open()?, site, entries, HostWork::Legs)? {
        let what = format!("host {}", entry.name);
        match answer {
            Ok(offer) => {
                let git = offer.git.unwrap_or_default();
                rows.push(Row::ok(
                    what,
                    format!("{} slots, {}, {git}", entry.slots, offer.platform),
                ));
            }
            Err(refusals) => rows.extend(refusals.iter().map(|refusal| {
                Row::warning(&what, refusal.to_string(), refusal.remedy(&entry.name))
            })),
        }
    }
    Ok(rows)
}

/// Checks the machine.
fn host(cx: &Context<'_>) -> Vec<Row> {
    vec![git(), sandbox(), supervision(&cx.env.cwd)]
}

fn git() -> Row {
    match InstalledGit::require() {
        Ok(git) => Row::ok("git", git.said),
        Err(error) => {
            let found = pdca_state::chain(&error);
            let failure = Failure::from(error);
            let remedy = failure.problems.into_iter().find_map(|problem| problem.hint);
            Row::broken("git", found, remedy.unwrap_or_else(install_git))
        }
    }
}

fn sandbox() -> Row {
    match wall_support() {
        SandboxKind::Landlock { abi } => {
            // Name what only the stronger sandbox confines.
            let why = bwrap_support().err().unwrap_or_default();
            Row::ok(
                "sandbox",
                format!(
                    "Landlock, interface version {abi}: leaves and gates write what is listed; modes and times of files and named sockets are not held ({why})"
                ),
            )
        }
        held @ SandboxKind::Bwrap { .. } => {
            Row::ok("sandbox", format!("{held}: leaves and gates write what is listed"))
        }
        SandboxKind::NotAvailable { why } => Row::warning(
            "sandbox",
            format!(
                "none ({why}): what a leaf changes beyond its artifact is found by digests and voids it"
            ),
            "install bubblewrap, or use a Linux kernel 5.13 or newer with Landlock switched on; `sandbox = \"require\"` insists",
        ),
        SandboxKind::Off => Row::warning("sandbox", "off", "set `sandbox = \"auto\"`"),
    }
}

/// Starts a program the way gates and leaves are started.
fn supervision(cwd: &Utf8Path) -> Row {
    let remedy = "run `pdca doctor` again; if it stays, the host keeps pdca from starting itself";
    let Ok(dir) = tempfile::tempdir() else {
        return Row::broken(
            "supervision",
            "no temporary directory",
            "set TMPDIR to a writable directory",
        );
    };
    let Some(job) = Utf8Path::from_path(dir.path()) else {
        return Row::broken(
            "supervision",
            "the temporary directory is not UTF-8",
            "set TMPDIR to one that is",
        );
    };
    let mut spec = Spec::new(["true"], cwd, job.join("job"));
    spec.timeout = Some(Duration::from_secs(10));
    match pdca_process::run(&spec, &Cancel::new(), &mut |_| {}) {
        Ok(verdict) if verdict.ending == Ending::Exited(0) => {
            Row::ok("supervision", "children are supervised")
        }
        Ok(verdict) => Row::broken("supervision", verdict.ending.to_string(), remedy),
        Err(error) => Row::broken("supervision", pdca_state::chain(&error), remedy),
    }
}

/// Checks the workspace.
fn of_workspace(workspace: &Workspace, site: &WorkspaceConfig, cx: &Context<'_>) -> Vec<Row> {
    let mut rows = vec![bundles(workspace)];
    rows.extend(
        workspace
            .targets
            .iter()
            .map(|target| self::target(&target.name, &target.path, target.branch.as_deref())),
    );
    if workspace.targets.is_empty() {
        rows.push(Row::warning(
            "targets",
            "none",
            "add a [[targets]] to pdca.toml: without one nothing can be built",
        ));
    }
    for target in &workspace.targets {
        if let Ok(opened) = Target::open(&target.name, &target.path) {
            rows.extend(stale::rows(&opened, cx.env.now()));
        }
    }
    rows.push(room(site));
    rows.push(lanes(workspace, site));
    rows.push(leaf_memory(site));
    rows.push(driver(site));
    rows.extend(runs::rows(site));
    rows.extend(gates(site));
    rows.extend(workflow(workspace));
    rows.extend(dependencies(site));
    rows.extend(leaves(workspace, site, cx));
    rows.extend(independence(workspace, site));
    rows.extend(instructions::rows(workspace, site));
    rows
}

/// Checks that the workflow that `pdca init` wrote can build this program.
fn workflow(workspace: &Workspace) -> Option<Row> {
    let text = fs_err::read_to_string(workspace.root.join(scaffold::WORKFLOW_FILE)).ok()?;
    scaffold::lacks_source(&text).then(|| {
        Row::warning(
            "CI workflow",
            "it does not say where pdca is built from",
            format!("write `PDCA_SOURCE` and `PDCA_REV` in {}", scaffold::WORKFLOW_FILE),
        )
    })
}

fn bundles(workspace: &Workspace) -> Row {
    let path = workspace.bundle_root.path();
    match pdca_state::survey(&workspace.bundle_root) {
        Err(error) => Row::warning(
            "bundles",
            pdca_state::chain(&error),
            "`pdca new <id>` makes the first bundle",
        ),
        Ok(found) => match found.iter().find_map(|row| row.result.as_ref().err()) {
            None => Row::ok("bundles", format!("{} in {path}", found.len())),
            Some(error) => Row::broken(
                "bundles",
                pdca_state::chain(error),
                "`pdca status` shows every bundle that cannot be read",
            ),
        },
    }
}

fn target(name: &str, path: &Utf8Path, branch: Option<&str>) -> Row {
    let what = format!("target {name}");
    let opened = match Target::open(name, path) {
        Ok(opened) => opened,
        Err(error) => {
            return Row::broken(
                what,
                pdca_state::chain(&error),
                "mend `path` of its [[targets]] in pdca.toml",
            );
        }
    };
    match opened.resolve(branch) {
        Ok(base) => match opened.notes() {
            [] => Row::ok(what, format!("{path}, {} at {:.12}", base.branch, base.commit)),
            notes => Row::warning(
                what,
                notes.join("; "),
                "the private checkout differs there; the primary is untouched",
            ),
        },
        Err(error) => Row::broken(
            what,
            pdca_state::chain(&error),
            "name a branch that exists as `branch` of its [[targets]]",
        ),
    }
}

/// Compares free disk and memory with what a run needs.
fn room(site: &WorkspaceConfig) -> Row {
    let room = pdca_driver::room(site);
    let (Ok(disk), Ok(memory)) = (&room.disk, &room.memory) else {
        let why = room.disk.as_ref().err().or(room.memory.as_ref().err());
        let why = why.map_or_else(String::new, |error| format!(": {error}"));
        let remedy = "no limit can be held without a measurement; watch it yourself";
        return Row::warning("room", format!("cannot be measured{why}"), remedy);
    };
    let found = format!("{} free on the disk, {} of memory", size(*disk), size(*memory));
    if *disk < site.limits.min_free {
        let remedy = "make room: `pdca cleanup`, `pdca sweep`; or lower `min_free_gb` in [driver]";
        return Row::broken("room", found, remedy);
    }
    Row::ok("room", found)
}

/// Shows the number of bundles in flight at once, and the value of `auto`.
fn lanes(workspace: &Workspace, site: &WorkspaceConfig) -> Row {
    let what = "lanes";
    match workspace.config.driver.lanes {
        LaneCount::Auto => Row::ok(what, pdca_driver::reckon_lanes(site).to_string()),
        LaneCount::Number(0) => Row::warning(
            what,
            "`lanes` in [driver] is 0, and 1 is taken",
            "write `lanes = 1`, or `lanes = \"auto\"` for what the machine carries",
        ),
        LaneCount::Number(number) => Row::ok(what, format!("{number} at once")),
    }
}

/// Shows whether the memory limit of leaves and gates is enforced.
fn leaf_memory(site: &WorkspaceConfig) -> Row {
    let what = "leaf memory";
    match (site.limits.leaf_memory, pdca_process::memory_support()) {
        (None, Ok(())) => Row::ok(what, "no cap; `leaf_memory_mb` in [driver] sets one"),
        (None, Err(why)) => Row::ok(what, format!("no cap, and none could be held here: {why}")),
        (Some(cap), Ok(())) => {
            let found = format!("{} for each with all it starts, by looking", size(cap));
            Row::ok(what, found)
        }
        (Some(_), Err(why)) => {
            let remedy =
                "nothing holds `leaf_memory_mb` here; use fewer lanes, or cap it from outside";
            Row::warning(what, format!("cannot be seen: {why}"), remedy)
        }
    }
}

fn driver(site: &WorkspaceConfig) -> Row {
    match site.locks().driver_at_work() {
        Ok(None) => match site.locks().integration_at_work() {
            Ok(Some(holder)) => Row::ok("driver", format!("{holder} integrates")),
            Ok(None) | Err(_) => Row::ok("driver", "none is at work here"),
        },
        Ok(Some(holder)) => Row::warning(
            "driver",
            format!("{holder} is at work"),
            "wait for it; a second one would be refused",
        ),
        Err(error) => Row::broken(
            "driver",
            pdca_state::chain(&error),
            "the workspace must be writable and on a filesystem that can lock files",
        ),
    }
}

fn gates(site: &WorkspaceConfig) -> Vec<Row> {
    if site.rows.is_empty() {
        return vec![Row::warning(
            "gates",
            "none configured",
            "add [[gates.checks]] to pdca.toml: nothing real is checked",
        )];
    }
    let jobs = site.dirs.private().join("jobs");
    let mut scene = GateContext::new(Purpose::Bundle, &site.dirs.root, &jobs);
    scene.search_path = site.search_path.as_deref();
    let unready = preflight(&site.rows, &scene);
    let rows = site.rows.as_slice().iter().map(|row| {
        let what = format!("gate {}", row.id);
        match unready.iter().find(|unready| unready.rule_id == row.id) {
            None => Row::ok(what, row.command.shown()),
            Some(unready) => Row::broken(
                what,
                unready.fault.to_string(),
                "install it, or mend the row in pdca.toml",
            ),
        }
    });
    rows.chain(walls_of_gates(site)).chain(leads::rows(site)).collect()
}

/// Tells which rows are not confined, and which openings are not there.
fn walls_of_gates(site: &WorkspaceConfig) -> Vec<Row> {
    let mut rows = Vec::new();
    let is_off = |row: &&Check| row.sandbox.unwrap_or(site.gate_sandbox) == SandboxMode::Off;
    let off: Vec<&str> =
        site.rows.as_slice().iter().filter(is_off).map(|row| row.id.as_str()).collect();
    if !off.is_empty() {
        rows.push(Row::warning(
            "gates' sandbox",
            format!("off for {}: they run the builder's code with all your rights", off.join(", ")),
            "remove `sandbox = \"off\"`; a row that writes beyond its checkout names the directory, `may_write = [\"out\"]`",
        ));
    }
    for (owner, path) in site.absent_openings() {
        rows.push(Row::warning(
            "gates' may_write",
            format!("{owner} names {path}, which does not exist and so is not opened"),
            format!("`mkdir -p {path}`, or take it out"),
        ));
    }
    rows
}

/// Runs the checks of `[[doctor.checks]]`.
fn dependencies(site: &WorkspaceConfig) -> Vec<Row> {
    let rows = site.doctor.checks.iter().map(|check| {
        let what = format!("needs {}", check.id);
        let Err(unmet) = check.run(&site.dirs.root, &Cancel::new()) else {
            return Row::ok(what, &check.cmd);
        };
        let remedy = unmet
            .hint
            .unwrap_or_else(|| format!("provide `{}`; the check is `{}`", check.id, check.cmd));
        if check.required {
            Row::broken(what, unmet.said, remedy)
        } else {
            Row::warning(what, unmet.said, remedy)
        }
    });
    rows.collect()
}

fn leaves(workspace: &Workspace, site: &WorkspaceConfig, cx: &Context<'_>) -> Vec<Row> {
    // A role that is called on demand may be missing without a warning.
    let is_used = |called: Called, leaf: &LeafConfig| {
        called == Called::InEveryCycle || leaf.mode == LeafMode::Command && !site.force_stubs
    };
    let leaves = workspace.config.leaves.all();
    let leaves = leaves
        .filter(|(spec, _, leaf)| is_used(spec.called, leaf))
        .map(|(_, name, leaf)| self::leaf(name, leaf, site, cx));
    let variants = workspace.config.leaves.variants();
    leaves.chain(variants.map(|(name, leaf)| self::leaf(&name, leaf, site, cx))).collect()
}

/// Tells where a builder is judged by a model of its own family.
fn independence(workspace: &Workspace, site: &WorkspaceConfig) -> Vec<Row> {
    let leaves = &workspace.config.leaves;
    let builders =
        std::iter::once(("builder".to_owned(), &leaves.builder)).chain(leaves.variants());
    let row = |(name, builder): (String, &LeafConfig)| {
        let family = builder.shared_family(&leaves.reviewer)?;
        let found = format!("{name} and reviewer are both of family {family}");
        Some(Row::warning("independence", found, REVIEW_BY_ANOTHER))
    };
    builders.filter_map(row).filter(|_| !site.force_stubs).collect()
}

const REVIEW_BY_ANOTHER: &str = "an agent of another family judges more independently: `agent` or `family` of [leaves.reviewer]";

fn leaf(name: &str, leaf: &LeafConfig, site: &WorkspaceConfig, cx: &Context<'_>) -> Row {
    let what = format!("leaf {name}");
    if site.force_stubs || leaf.mode == LeafMode::Stub {
        return Row::warning(
            what,
            "stub: no program is called",
            format!("set `mode = \"command\"` and `argv` of [leaves.{name}]"),
        );
    }
    match leaf.argv.first() {
        Some(program) if session::has_program(cx, &site.dirs.root, program) => {
            Row::ok(what, leaf.argv.join(" "))
        }
        Some(program) => Row::broken(
            what,
            format!("no program `{program}`"),
            format!("install it, or mend [leaves.{name}]"),
        ),
        None => Row::broken(what, "no `argv`", format!("give [leaves.{name}] an `argv`")),
    }
}
