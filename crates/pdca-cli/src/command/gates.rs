//! `pdca gates`: runs the configured checks over a bundle or a working tree.

use std::io::Write;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::{Driver, Jobs, WorkspaceConfig};
use pdca_gates::{GateContext, GateEvent, Purpose, junit_report, run_checks};
use pdca_integrate::Evidence;
use pdca_journal::events::WarningCode;
use pdca_lanes::Toplevel;
use pdca_process::Cancel;
use pdca_state::{Artifact, Bundle, GateReport, GateResult, State};
use pdca_workspace::config::workspace::{ConfiguredTarget, Workspace};
use serde::Serialize;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Report, Response};
use crate::session;
use crate::style::{one_line, printable};

/// Run the configured checks over a bundle's patch or the working tree
///
/// The rows are those of `pdca.toml`, which `pdca run` and continuous integration run too. For a bundle the
/// report is written only while Check is open; before Do, at sign-off and after it the result is only
/// printed. `--record` writes it at sign-off too, after a row of `pdca.toml` was mended; the builder is not called.
///
/// Exit codes: 0 no gating check is red, 100 one is.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca gates 36               # all rows, on base + patch
  pdca gates 36 --row T3      # one row, and what it prints; nothing is written
  pdca gates 36 --record      # all rows again at sign-off, with a new report and summary
  pdca gates --working-tree   # the rows about the repository, on the tree as it stands (for CI)
  pdca gates --working-tree --target app
  pdca gates --tree ../merge  # the same rows on that tree
  pdca gates --working-tree --junit gates.xml
  pdca gates 36 --json

With --working-tree the rows run at the top of the checkout, linked worktree or lane of a target that you are in, also with
`-C WORKSPACE`; elsewhere in the target of the workspace.")]
pub(crate) struct Args {
    /// The id of the bundle
    #[arg(
        value_name = "ID",
        required_unless_present_any = ["working_tree", "tree"],
        conflicts_with_all = ["working_tree", "tree"]
    )]
    id: Option<IdArg>,
    /// Run the rows with `scope = "repo"` over the present working tree
    #[arg(long)]
    working_tree: bool,
    /// Run those rows over the tree that this directory is in: a worktree, a clone or a merge, wherever it is
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, conflicts_with = "target")]
    tree: Option<Utf8PathBuf>,
    /// The target whose tree is gated, if there are several and you are in none of them
    #[arg(long, value_name = "NAME", requires = "working_tree")]
    target: Option<String>,
    /// Write the rows to this file too, as `JUnit` XML
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    junit: Option<Utf8PathBuf>,
    /// Record the result also at sign-off: the report and the summary are made anew
    #[arg(long, conflicts_with_all = ["working_tree", "tree", "row"])]
    record: bool,
    /// Run only this row and show its output if it is red; write no report
    #[arg(long, value_name = "ROW")]
    row: Option<String>,
}

/// The report, with the tree it is about if it is not a bundle's.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct GatesReport {
    #[serde(flatten)]
    report: GateReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    tree: Option<Utf8PathBuf>,
    /// Shows the output of red rows.
    #[serde(skip)]
    with_output: bool,
}

pub(crate) fn run(args: &Args, cx: &Context<'_>, err: &mut dyn Write) -> Result<Response, Failure> {
    let (report, tree) = if let Some(id) = &args.id {
        let bundle = cx.require_bundle(id)?;
        (over_bundle(&bundle, args.row.as_deref(), args.record, cx, err)?, None)
    } else {
        let tree = match &args.tree {
            Some(dir) => named_tree(dir, cx)?,
            None => working_tree(args.target.as_deref(), cx)?,
        };
        (over_tree(&tree, args.row.as_deref(), cx, err)?, Some(tree))
    };
    if let Some(file) = &args.junit {
        let path = cx.env.cwd.join(file);
        pdca_state::files::replace(&path, junit_report(&report).as_bytes()).map_err(|error| {
            Failure::from_error(Exit::Unexpected, &error)
                .at(FilePosition::file(path))
                .hint("name a file in a directory that is there and can be written")
        })?;
    }
    let exit = if report.failed_gating().next().is_some() { Exit::GateRed } else { Exit::Done };
    Ok(Response::new(GatesReport { report, tree, with_output: args.row.is_some() }, exit))
}

impl Report for GatesReport {
    const KIND: &'static str = "gates";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if let Some(tree) = &self.tree {
            writeln!(out, "gated {tree}")?;
        }
        if self.with_output {
            show_output(&self.report, out)?;
        }
        print(&self.report, cx, out)
    }
}

/// Runs the rows over a bundle, and publishes the report if Check is open.
fn over_bundle(
    bundle: &Bundle,
    row: Option<&str>,
    record: bool,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<GateReport, Failure> {
    let site = site(cx, row)?;
    let _admitted = site.locks().admit().map_err(|error| session::refused(&error))?;
    let _taken = site.locks().take(bundle.id()).map_err(|error| session::refused(&error))?;
    // Loaded under the locks, so that no driver changes it between this and the report.
    let snapshot = bundle.load()?;
    let open = match snapshot.state {
        // A report of single rows is no report of Check.
        State::Built | State::Checked => !cx.globals.dry_run && row.is_none(),
        State::Unplanned
        | State::Resolved
        | State::Planned
        | State::AwaitingSignoff
        | State::Complete
        | State::Iterate(_)
        | State::Discontinued => false,
    };
    let is_again = record && snapshot.state == State::AwaitingSignoff && !cx.globals.dry_run;
    let name = bundle.id().dir_name();
    if record && !open && !is_again && !cx.globals.dry_run {
        return Err(Failure::usage(format!(
            "{name} is {}: its gates cannot be recorded",
            snapshot.state
        ))
        .hint(
            "`--record` is for a bundle that waits for sign-off; leave it out to see the result",
        ));
    }
    if !open && !is_again {
        let why = match row {
            Some(row) => format!("only {row} runs"),
            None => format!("{name} is {}", snapshot.state),
        };
        cx.note(err, &format!("{why}: nothing is written"))?;
    }
    if !snapshot.artifacts.contains(Artifact::Patch) {
        // A close has no change to gate.
        return Ok(GateReport::for_close(name));
    }
    let jobs = site.jobs().of(bundle.id());
    if snapshot.state != State::Built || row.is_some() {
        // The person wants the rows run, not an earlier verdict.
        pdca_gates::forget(&jobs)?;
    }
    let report = session::work(cx, &site, None, err, |driver: &Driver<'_>| {
        if open {
            pdca_driver::gate(driver, bundle, &snapshot)
        } else if is_again {
            pdca_driver::gate_again(driver, bundle, &snapshot)
        } else {
            Ok(pdca_driver::judge(driver, bundle, &snapshot, false)?.report)
        }
    })?;
    let report = report.map_err(|error| session::explain(bundle, error))?;
    pdca_gates::forget(&jobs)?;
    Ok(report)
}

/// Returns the top of the tree that a directory is in; the directory itself where there is no repository.
fn named_tree(dir: &Utf8Path, cx: &Context<'_>) -> Result<Utf8PathBuf, Failure> {
    // As typed, not below `-C`: a shell completes paths from its own directory.
    let dir = cx.env.cwd.join(dir);
    let refuse =
        |what: &str, hint: &str| Err(Failure::usage(what).at(FilePosition::file(&*dir)).hint(hint));
    let Ok(dir) = dir.canonicalize_utf8() else {
        return refuse("there is no such directory", "name the directory of a checkout");
    };
    if !dir.is_dir() {
        return refuse("it is not a directory", "name the directory of a checkout");
    }
    match Toplevel::around(&dir) {
        Some(top) => match top.root() {
            Some(root) => Ok(root.to_owned()),
            None => refuse(
                "it is in a bare repository, which has no working tree",
                "`git worktree add DIR BRANCH` makes one",
            ),
        },
        None => Ok(dir),
    }
}

/// Chooses the tree: the checkout of a target around the working directory, else
/// the target's own.
fn working_tree(named: Option<&str>, cx: &Context<'_>) -> Result<Utf8PathBuf, Failure> {
    let workspace = cx.workspace()?;
    let targets = &workspace.targets;
    let wanted = |target: &&ConfiguredTarget| named.is_none_or(|name| name == target.name);
    if let Some(name) = named
        && !targets.iter().any(|target| target.name == name)
    {
        let failure = Failure::usage(format!("there is no target `{name}`"));
        return Err(failure.hint(name_one(targets)));
    }
    let given = cx.globals.start_dir(cx.env)?;
    let cwd = cx.env.cwd.clone();
    // `-C` of a directory of the workspace names the workspace, and the tree is where the command was started.
    let is_of_workspace = given.starts_with(&workspace.root);
    let dirs = if is_of_workspace { [cwd, given] } else { [given, cwd] };
    for top in dirs.iter().filter_map(|dir| Toplevel::around(dir)) {
        if let Some(root) = top.root()
            && targets
                .iter()
                .filter(wanted)
                .any(|target| is_checkout_of(&top, root, target, workspace))
        {
            return Ok(root.to_owned());
        }
    }
    let mut wanted = targets.iter().filter(wanted);
    match (wanted.next(), wanted.next()) {
        (Some(target), None) => tree_of(target),
        (Some(_), Some(_)) => {
            Err(Failure::usage("the workspace has several targets, and this is in none of them")
                .hint(name_one(targets)))
        }
        // Without a target, gate the repository that contains the workspace.
        (None, _) => {
            let top = Toplevel::around(&workspace.root);
            let root = top.and_then(|top| top.root().map(Utf8Path::to_owned));
            Ok(root.unwrap_or_else(|| workspace.root.clone()))
        }
    }
}

/// Returns whether a working tree is a checkout, a linked worktree or a lane of a target.
fn is_checkout_of(
    top: &Toplevel,
    root: &Utf8Path,
    target: &ConfiguredTarget,
    workspace: &Workspace,
) -> bool {
    let own = Toplevel::at(&target.path);
    let lanes = workspace.lanes_root.canonicalize_utf8();
    let is_lane = || {
        lanes.is_ok_and(|lanes| {
            let slot = root.parent().filter(|_| root.file_name() == Some(target.name.as_str()));
            slot.and_then(Utf8Path::parent) == Some(lanes.as_path())
        })
    };
    own.is_some_and(|own| own.is_of_repository_of(top)) || is_lane()
}

/// Returns the top of a target's own checkout.
fn tree_of(target: &ConfiguredTarget) -> Result<Utf8PathBuf, Failure> {
    let Some(own) = Toplevel::at(&target.path) else {
        return Err(Failure::usage(format!("target `{}` is no git repository", target.name))
            .at(FilePosition::file(&*target.path))
            .hint("mend `path` of [[targets]] in pdca.toml"));
    };
    own.root().map(Utf8Path::to_owned).ok_or_else(|| {
        let path = &target.path;
        Failure::usage(format!(
            "target `{}` is a bare repository: it has no working tree",
            target.name
        ))
        .at(FilePosition::file(&**path))
        .hint(format!(
            "`git clone {path} DIR` makes one; name DIR as the target's `path` in pdca.toml"
        ))
    })
}

fn name_one(targets: &[ConfiguredTarget]) -> String {
    let names: Vec<String> = targets.iter().map(|t| format!("`--target {}`", t.name)).collect();
    format!("name one: {}", names.join(" or "))
}

/// Runs the rows of scope `repo` over a tree.
fn over_tree(
    tree: &Utf8Path,
    row: Option<&str>,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<GateReport, Failure> {
    let site = site(cx, row)?;
    // No lock is held, so two calls may run at once: each has a directory of its own.
    let job = site.dirs.private().join(format!("working-tree-{}", std::process::id()));
    let mut scene = GateContext::new(Purpose::WorkingTree, &site.dirs.root, &job);
    scene.worktree = Some(tree);
    site.outfit(&mut scene);
    let logs = Evidence::of(&site.queue()).by_hand("working-tree");
    // CI keeps the output of rows itself.
    scene.logs = row.is_some().then_some(&logs);
    let mut told = Ok(());
    // No signal is caught: if this process dies, the supervisors end the rows by themselves.
    let outcome = run_checks(&site.rows, &scene, None, &Cancel::new(), &mut |event| {
        if let GateEvent::RowStarted { rule_id, k, n, .. } = event
            && told.is_ok()
        {
            told = cx.note(err, &format!("gate {k}/{n} {rule_id}"));
        }
    });
    // Before errors are returned, so that a row that could not run leaves nothing behind.
    Jobs::new(job.clone()).remove(&job)?;
    told?;
    let outcome = outcome.map_err(|error| Failure::from_error(Exit::Unexpected, &error))?;
    for warning in &outcome.warnings {
        cx.warn(err, WarningCode::NoGate, warning)?;
    }
    Ok(outcome.report)
}

/// Returns the configuration with all rows, or with the requested one.
fn site(cx: &Context<'_>, row: Option<&str>) -> Result<WorkspaceConfig, Failure> {
    let mut site = session::driver_config(cx)?;
    if let Some(wanted) = row {
        let rows = site.rows.with_shared(wanted);
        if rows.is_empty() {
            let ids: Vec<&str> = site.rows.as_slice().iter().map(|row| row.id.as_str()).collect();
            let hint = match ids.as_slice() {
                [] => "no row is configured: add one to [[gates.checks]] in pdca.toml".to_owned(),
                ids => format!("the rows are {}", ids.join(", ")),
            };
            return Err(Failure::usage(format!("there is no row `{wanted}`")).hint(hint));
        }
        site.rows = rows;
    }
    Ok(site)
}

/// Prints the output of red rows.
fn show_output(report: &GateReport, out: &mut dyn Write) -> Result<(), Failure> {
    for row in report.rows.iter().filter(|row| row.result == GateResult::Fail) {
        let log = row.log.as_ref().and_then(|log| fs_err::read(log).ok()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        for line in log.lines() {
            writeln!(out, "{}", printable(line))?;
        }
    }
    Ok(())
}

fn print(report: &GateReport, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let p = cx.out;
    for row in &report.rows {
        let result = match row.result {
            GateResult::Pass => p.good("✓ pass").to_string(),
            GateResult::Fail if row.gating => p.bad("✗ fail").to_string(),
            GateResult::Fail => p.warn("✗ fail (advisory)").to_string(),
            GateResult::Unverifiable => p.warn("? unverifiable").to_string(),
            GateResult::Deferred => p.warn("… deferred").to_string(),
            GateResult::None => p.faint("· none").to_string(),
        };
        writeln!(out, "{result}  {}  {}", row.check, p.faint(one_line(row.reason(), 80)))?;
        if row.result != GateResult::Fail {
            continue;
        }
        if let Some(failing) = row.failing_tests() {
            writeln!(out, "        {}", p.faint(format_args!("failing: {}", printable(&failing))))?;
        }
        if let Some(log) = &row.log {
            writeln!(out, "        {}", p.faint(format_args!("log: {log}")))?;
        }
    }
    let overall = match report.overall {
        pdca_state::Overall::Pass => p.good("pass").to_string(),
        pdca_state::Overall::Fail => p.bad("fail").to_string(),
    };
    writeln!(out, "overall: {overall}")?;
    Ok(())
}
