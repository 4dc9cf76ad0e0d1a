//! `cargo xtask bench bundle`: the cost of a trivial bundle beyond its gate, on 1, 2, 4 and 8 lanes.

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::measure::{MemorySample, median};
use super::report::{self, Against, BenchLine, BenchUnit};
use super::{bundles, ms, pdca, require_all_awaiting_signoff};
use crate::{Stopped, program};

/// Measure the wall time of a trivial bundle, beside a loop that starts a shell and syncs a file
///
/// With `--beside`, another binary runs in turn with the first, so that both meet the same machine. Asserts nothing:
/// the exit code is 0 whatever the numbers are.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The number of bundles in a batch
    #[arg(long, default_value_t = 100)]
    bundles: u32,
    /// The numbers of lanes
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8])]
    lanes: Vec<u32>,
    /// Repeat each batch this often; the median counts
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Measure this binary and build none
    #[arg(long, value_name = "FILE")]
    binary: Option<Utf8PathBuf>,
    /// Measure this binary too, in turn with the first
    #[arg(long, value_name = "FILE")]
    beside: Option<Utf8PathBuf>,
    /// Print JSON in place of the table
    #[arg(long)]
    json: bool,
}

pub(super) fn measure(args: &Args, root: &Utf8Path) -> Result<(), Stopped> {
    let binary = match &args.binary {
        Some(binary) => binary.canonicalize_utf8()?,
        None => super::build(root)?,
    };
    let beside = args.beside.as_ref().map(|beside| beside.canonicalize_utf8()).transpose()?;
    super::note_load();
    let each = |times: &[Duration]| ms(median(times)) / f64::from(args.bundles.max(1));
    let mut lines = Vec::new();
    // Removed at the end: ext4 passes over each inode that was deleted lately whenever it makes one, so the removal of
    // one workspace would be charged to the bundles of the next.
    let mut scratches = Vec::new();
    let mut scratch = || -> Result<Utf8PathBuf, Stopped> {
        let made = tempfile::tempdir()?;
        let path = Utf8Path::from_path(made.path()).map(ToOwned::to_owned);
        scratches.push(made);
        Ok(path.ok_or("the temporary directory is not UTF-8")?)
    };
    for lanes in &args.lanes {
        eprintln!("{} bundles, {lanes} lanes", args.bundles);
        let (mut runs, mut others, mut loops) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..args.repeat.max(1) {
            loops.push(shells(args.bundles, &scratch()?)?);
            runs.push(batch(&binary, args.bundles, *lanes, &scratch()?)?);
            if let Some(beside) = &beside {
                others.push(batch(beside, args.bundles, *lanes, &scratch()?)?);
            }
        }
        let (run, floor) = (each(&runs), each(&loops));
        let line = |what: &str, measured, against: Option<(&str, f64)>, aim| BenchLine {
            what: format!("{lanes} lanes: {what}"),
            unit: BenchUnit::Milliseconds,
            measured,
            against: against.map(|(what, measured)| Against { what: what.to_owned(), measured }),
            aim,
        };
        lines.push(line("wall time per bundle", run, Some(("sh -c true, one sync", floor)), None));
        if beside.is_some() {
            let other = Some(("the other binary", each(&others)));
            lines.push(line("the same", run, other, None));
        }
        lines.push(line("beyond the loop", run - floor, None, Some(8.0)));
    }
    if args.json {
        println!("{:#}", report::json(&lines));
    } else {
        print!("{}", report::table(&lines));
    }
    Ok(())
}

/// Runs one batch in a fresh workspace: stub leaves, one gate that is `true`.
fn batch(
    binary: &Utf8Path,
    count: u32,
    lanes: u32,
    workspace: &Utf8Path,
) -> Result<Duration, Stopped> {
    let results = workspace.join("results");
    fs_err::create_dir_all(&results)?;
    fs_err::write(
        workspace.join("pdca.toml"),
        "[[gates.checks]]\nid = \"C4-true\"\ntier = \"C4\"\nlabel = \"nothing\"\ncmd = \"true\"\n",
    )?;
    bundles::write_planned(&results, count)?;
    let lanes = lanes.to_string();
    // Each bundle stops at its sign-off, which is exit code 3.
    let args = ["batch", "--lanes", &lanes];
    let cost = pdca(binary, &args, workspace, MemorySample::NotSampled, &[0, 3])?;
    require_all_awaiting_signoff(&results, count)?;
    Ok(cost.wall)
}

/// Starts as many shells, each with a durable replacement of a file.
fn shells(count: u32, dir: &Utf8Path) -> Result<Duration, Stopped> {
    let start = Instant::now();
    for _ in 0..count {
        program::command("sh", &["-c", "true"], dir).status()?;
        pdca_state::files::replace(dir.join("artifact"), &[b'x'; 4096])?;
    }
    Ok(start.elapsed())
}
