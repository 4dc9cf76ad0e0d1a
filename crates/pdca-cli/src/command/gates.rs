//! `pdca gates`: the configured checks over a bundle, or over a tree.

use std::io::Write;

use pdca_driver::{Driver, Jobs};
use pdca_gates::{GateEvent, Purpose, Scene, run_checks};
use pdca_process::Cancel;
use pdca_state::{Artifact, Bundle, GateReport, GateResult, State};

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session;
use crate::style::one_line;

/// Run the configured checks over a bundle's patch, or over the working tree
///
/// The rows are those of `pdca.toml`, the same that `pdca run` and continuous integration run. Over a bundle the
/// report is written only where Check is still open; before Do, at sign-off and after it the result is printed and
/// nothing is written.
///
/// Exit codes: 0 no gating check is red, 100 one is.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  pdca gates 36               # all rows, on base + patch
  pdca gates --working-tree   # the rows about the repository, on the tree as it stands (for CI)
  pdca gates 36 --json")]
pub(crate) struct Args {
    /// The bundle
    #[arg(
        value_name = "ID",
        required_unless_present = "working_tree",
        conflicts_with = "working_tree"
    )]
    id: Option<IdArg>,
    /// Run the rows with `scope = "repo"` over the tree as it stands
    #[arg(long)]
    working_tree: bool,
}

pub(crate) fn run(
    args: &Args,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, Failure> {
    let report = match &args.id {
        Some(id) => over_bundle(&cx.require_bundle(id)?, cx, err)?,
        None => over_tree(cx, err)?,
    };
    if cx.globals.json {
        cx.emit_json(out, "gates", &report)?;
    } else {
        print(&report, cx, out)?;
    }
    Ok(if report.failed_gating().next().is_some() { Exit::GateRed } else { Exit::Done })
}

/// Runs the rows over a bundle, and keeps the report where Check is open.
fn over_bundle(
    bundle: &Bundle,
    cx: &Context<'_>,
    err: &mut dyn Write,
) -> Result<GateReport, Failure> {
    let site = session::site(cx)?;
    let _admitted = site.admit().map_err(|error| session::refused(&error))?;
    let _taken = site.take(bundle.id()).map_err(|error| session::refused(&error))?;
    let snapshot = bundle.load()?;
    let open = match snapshot.state {
        State::Built | State::Checked => !cx.globals.dry_run,
        State::Unplanned
        | State::Resolved
        | State::Planned
        | State::AwaitingSignoff
        | State::Complete
        | State::Iterate(_)
        | State::Discontinued => false,
    };
    let name = bundle.id().dir_name();
    if !open {
        cx.note(err, &format!("{name} is {}: nothing is written", snapshot.state))?;
    }
    if !snapshot.artifacts.contains(Artifact::Patch) {
        // There is no change that a gate could be about.
        return Ok(GateReport::for_close(name));
    }
    let jobs = site.jobs().of(bundle.id());
    if snapshot.state != State::Built {
        // Asked for by a person: a verdict of before is not an answer.
        pdca_gates::forget(&jobs)?;
    }
    let report = session::work(cx, &site, None, err, |driver: &Driver<'_>| {
        if open {
            driver.gate(bundle, &snapshot)
        } else {
            Ok(driver.judge(bundle, &snapshot, false)?.report)
        }
    })?;
    let report = report.map_err(|error| session::explain(bundle, error))?;
    pdca_gates::forget(&jobs)?;
    Ok(report)
}

/// Runs the rows about the repository over the tree the workspace is in.
fn over_tree(cx: &Context<'_>, err: &mut dyn Write) -> Result<GateReport, Failure> {
    let site = session::site(cx)?;
    let tree = crate::workspace::start_dir(&cx.globals, cx.ambient)?;
    let job = site.private().join(format!("working-tree-{}", std::process::id()));
    let mut scene = Scene::new(Purpose::WorkingTree, &site.workspace, &job);
    scene.worktree = Some(&tree);
    scene.search_path = site.search_path.as_deref();
    let mut told = Ok(());
    let outcome = run_checks(&site.rows, &scene, None, &Cancel::new(), &mut |event| {
        if let GateEvent::RowStarted { rule_id, k, n, .. } = event
            && told.is_ok()
        {
            told = cx.note(err, &format!("gate {k}/{n} {rule_id}"));
        }
    });
    Jobs::new(job.clone()).remove(&job)?;
    told?;
    let outcome = outcome.map_err(|error| Failure::from_error(Exit::Unexpected, &error))?;
    for warning in &outcome.warnings {
        cx.note(err, &format!("{} {warning}", cx.err.warn("warning:")))?;
    }
    Ok(outcome.report)
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
    }
    let overall = match report.overall {
        pdca_state::Overall::Pass => p.good("pass").to_string(),
        pdca_state::Overall::Fail => p.bad("fail").to_string(),
    };
    writeln!(out, "overall: {overall}")?;
    Ok(())
}
