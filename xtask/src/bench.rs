//! `cargo xtask bench`: measurements side by side, in the same run, without assertions.
//!
//! A time alone depends more on the machine than on the program, so each stands beside a
//! floor measured in the same minute: a plain walk over the same files, the start of
//! `/bin/true`, as many starts of a shell as a batch has gates.

mod base;
mod board;
mod bundle;
mod bundles;
mod confine;
mod graphs;
mod integrate;
mod journal;
mod lanes;
mod measure;
mod plan;
mod pool;
mod remote;
mod report;
mod select;

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use crate::{Outcome, Stopped, program};
use measure::{Cost, MemorySample, cost, median};
use report::{Against, BenchLine, BenchUnit};

/// Measure the release binary and report ratios
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    Status(StatusArgs),
    Bundle(bundle::Args),
    Journal(journal::Args),
    Plan(plan::Args),
    Pool(pool::Args),
    Lanes(lanes::Args),
    Integrate(integrate::Args),
    Base(base::Args),
    Remote(remote::Args),
    Select(select::Args),
    Board(board::Args),
}

/// Measure `status`, start-up, a batch of trivial bundles, and memory
///
/// Asserts nothing: the exit code is 0 whatever the numbers are.
#[derive(clap::Args, Debug)]
struct StatusArgs {
    /// The number of bundles that `status` reads
    #[arg(long, default_value_t = 10_000)]
    bundles: u32,
    /// The number of accepted changes, half of them landed, among as many other bundles
    #[arg(long, default_value_t = 500)]
    accepted: u32,
    /// The number of trivial bundles in the batch
    #[arg(long, default_value_t = 1_000)]
    batch: u32,
    /// Repeat each short measurement this often; the median counts
    #[arg(long, default_value_t = 9)]
    repeat: usize,
    /// Measure this binary and build none
    #[arg(long, value_name = "FILE")]
    binary: Option<Utf8PathBuf>,
    /// Print JSON in place of the table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    match &args.what {
        What::Status(args) => measure_status(args, root)?,
        What::Bundle(args) => bundle::measure(args, root)?,
        What::Journal(args) => journal::measure(args, root)?,
        What::Plan(args) => plan::measure(args, root)?,
        What::Pool(args) => pool::measure(args)?,
        What::Lanes(args) => return lanes::run(args),
        What::Integrate(args) => return integrate::run(args),
        What::Base(args) => return base::run(args),
        What::Remote(args) => remote::measure(args, root)?,
        What::Select(args) => select::measure(args, root)?,
        What::Board(args) => board::measure(args)?,
    }
    Ok(Outcome::Passed)
}

fn measure_status(args: &StatusArgs, root: &Utf8Path) -> Result<(), Stopped> {
    let binary = match &args.binary {
        Some(binary) => binary.canonicalize_utf8()?,
        None => build(root)?,
    };
    note_load();
    let scratch = tempfile::tempdir()?;
    let scratch =
        Utf8Path::from_path(scratch.path()).ok_or("the temporary directory is not UTF-8")?;
    let mut lines = Vec::new();
    lines.extend(status(args, &binary, &scratch.join("status"))?);
    lines.extend(accepted(args, &binary, &scratch.join("accepted"))?);
    lines.push(start_up(args, &binary, scratch)?);
    lines.extend(confine::measure(args.repeat * 5, scratch)?);
    lines.extend(batch(args, &binary, &scratch.join("batch"))?);
    if args.json {
        println!("{:#}", report::json(&lines));
    } else {
        print!("{}", report::table(&lines));
    }
    Ok(())
}

/// Warns if other work on this machine makes the wall times worse.
fn note_load() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if let Ok(text) = fs_err::read_to_string("/proc/loadavg")
        && let Some(load) = text.split(' ').next()
        && load.parse::<f64>().is_ok_and(|load| load >= 1.0)
    {
        eprintln!("note: this machine is at work already (load {load} on {cores} cores)");
    }
}

fn build(root: &Utf8Path) -> Result<Utf8PathBuf, Stopped> {
    let args = ["build", "--release", "--package", "pdca-cli"];
    if !program::succeeds("cargo", &args, &[], root)? {
        return Err("the release binary does not build".into());
    }
    let metadata =
        program::output("cargo", &["metadata", "--no-deps", "--format-version", "1"], root)?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata)?;
    let target =
        metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?;
    Ok(Utf8Path::new(target).join("release/pdca"))
}

/// `pdca status` beside a walk that asks for the metadata of the same files.
fn status(
    args: &StatusArgs,
    binary: &Utf8Path,
    workspace: &Utf8Path,
) -> Result<[BenchLine; 2], Stopped> {
    eprintln!("writing {} bundles of mixed states", args.bundles);
    let results = workspace.join("results");
    fs_err::create_dir_all(&results)?;
    fs_err::write(workspace.join("pdca.toml"), "")?;
    bundles::write_mixed(&results, args.bundles)?;
    eprintln!("status");
    let (mut walks, mut runs) = (Vec::new(), Vec::new());
    for round in 0..=args.repeat {
        let walked = walk(&results)?;
        let ran = pdca(binary, &["status"], workspace, MemorySample::NotSampled, &[0])?;
        // The first round fills the page cache and is not counted.
        if round > 0 {
            walks.push(walked);
            runs.push(ran.wall);
        }
    }
    let peak = pdca(binary, &["status"], workspace, MemorySample::Sampled, &[0])?.peak_kib;
    let floor = median(&walks);
    Ok([
        BenchLine {
            what: format!("status over {} bundles", args.bundles),
            unit: BenchUnit::Milliseconds,
            measured: ms(median(&runs)),
            against: Some(Against { what: "plain walk with stat".to_owned(), measured: ms(floor) }),
            aim: Some(3.0 * ms(floor)),
        },
        memory("status: peak memory", peak),
    ])
}

/// Commands that look at accepted changes, beside a walk that asks for the metadata of the same files.
fn accepted(
    args: &StatusArgs,
    binary: &Utf8Path,
    home: &Utf8Path,
) -> Result<Vec<BenchLine>, Stopped> {
    let count = args.accepted;
    eprintln!("sealing {count} changes");
    let workspace = home.join("workspace");
    let results = workspace.join("results");
    fs_err::create_dir_all(&results)?;
    let config = "[[targets]]\nname = \"app\"\npath = \"../target.git\"\nbranch = \"main\"\n";
    fs_err::write(workspace.join("pdca.toml"), config)?;
    let target = integrate::target::BenchTarget::new(home, 1_000, count as usize)?;
    target.land(home, count as usize / 2)?;
    for (number, sealed) in (0..).zip(&target.sealed) {
        let patch = integrate::target::patch(number as usize);
        bundles::write_sealed(&results, number, sealed, &patch)?;
    }
    bundles::write_planned(&results, count)?;
    let mut lines = Vec::new();
    let last = target.sealed.last().map(|sealed| sealed.id().to_string()).unwrap_or_default();
    for command in [&["status"][..], &["queue"], &["why", &last]] {
        eprintln!("{}", command.join(" "));
        let (mut walks, mut runs) = (Vec::new(), Vec::new());
        for round in 0..=args.repeat {
            let walked = walk(&results)?;
            let ran = pdca(binary, command, &workspace, MemorySample::NotSampled, &[0])?;
            // The first round fills the page cache and is not counted.
            if round > 0 {
                walks.push(walked);
                runs.push(ran.wall);
            }
        }
        let floor = ms(median(&walks));
        lines.push(BenchLine {
            what: format!("{} over {} bundles, {count} accepted", command[0], 2 * count),
            unit: BenchUnit::Milliseconds,
            measured: ms(median(&runs)),
            against: Some(Against { what: "plain walk with stat".to_owned(), measured: floor }),
            aim: Some(3.0 * floor),
        });
    }
    Ok(lines)
}

/// `pdca --help` beside `/bin/true`.
fn start_up(args: &StatusArgs, binary: &Utf8Path, dir: &Utf8Path) -> Result<BenchLine, Stopped> {
    eprintln!("start-up");
    let (mut floor, mut runs) = (Vec::new(), Vec::new());
    for _ in 0..args.repeat * 5 {
        let mut nothing = program::command("/bin/true", &[], dir);
        floor.push(cost(&mut nothing, MemorySample::NotSampled)?.wall);
        runs.push(pdca(binary, &["--help"], dir, MemorySample::NotSampled, &[0])?.wall);
    }
    let floor = ms(median(&floor));
    Ok(BenchLine {
        what: "start-up of --help".to_owned(),
        unit: BenchUnit::Milliseconds,
        measured: ms(median(&runs)),
        against: Some(Against { what: "/bin/true".to_owned(), measured: floor }),
        aim: Some(2.0 * floor + 5.0),
    })
}

/// `pdca batch` over bundles with a stub builder and one gate that is `true`, beside as many
/// starts of a shell.
fn batch(
    args: &StatusArgs,
    binary: &Utf8Path,
    workspace: &Utf8Path,
) -> Result<Vec<BenchLine>, Stopped> {
    eprintln!("a batch of {} trivial bundles", args.batch);
    let results = workspace.join("results");
    fs_err::create_dir_all(&results)?;
    fs_err::write(
        workspace.join("pdca.toml"),
        "[[gates.checks]]\nid = \"C4-true\"\ntier = \"C4\"\nlabel = \"nothing\"\ncmd = \"true\"\n",
    )?;
    bundles::write_planned(&results, args.batch)?;
    // Each bundle stops at its sign-off, which is exit code 3.
    let run = pdca(binary, &["batch"], workspace, MemorySample::Sampled, &[0, 3])?;
    require_all_awaiting_signoff(&results, args.batch)?;
    let start = Instant::now();
    for _ in 0..args.batch {
        program::command("sh", &["-c", "true"], workspace).status()?;
    }
    let floor_time = start.elapsed();
    let durable = durable_replacement(&workspace.join("durable"))?;
    let each = |total: Duration| ms(total) / f64::from(args.batch.max(1));
    let floor = each(floor_time);
    let line = |what: &str, measured: f64, aim: Option<f64>| BenchLine {
        what: format!("batch: {what} per bundle"),
        unit: BenchUnit::Milliseconds,
        measured,
        against: None,
        aim,
    };
    Ok(vec![
        BenchLine {
            against: Some(Against { what: "sh -c true".to_owned(), measured: floor }),
            ..line("wall time", each(run.wall), None)
        },
        line("wall time beyond that", each(run.wall) - floor, Some(10.0)),
        line("processor time of the driver", each(run.own_cpu), Some(10.0)),
        line("processor time of its children", each(run.children_cpu), None),
        memory("batch: peak memory", run.peak_kib),
        BenchLine {
            what: "for comparison: one durable replacement of a file".to_owned(),
            ..line("", ms(durable), None)
        },
    ])
}

/// Measures a durable replacement of one file: write, sync, rename, sync the directory.
/// A batch does this several times per bundle, which bounds its wall time from below.
fn durable_replacement(path: &Utf8Path) -> Result<Duration, Stopped> {
    let mut times = Vec::new();
    for _ in 0..50 {
        let start = Instant::now();
        pdca_state::files::replace(path, &[b'x'; 4096])?;
        times.push(start.elapsed());
    }
    Ok(median(&times))
}

/// Returns an error unless all bundles are at their sign-off; otherwise the time is meaningless.
fn require_all_awaiting_signoff(results: &Utf8Path, count: u32) -> Result<(), Stopped> {
    let root = pdca_state::BundleRoot::new(results.to_owned());
    let arrived = pdca_state::survey(&root)?
        .iter()
        .filter(|row| {
            row.result
                .as_ref()
                .is_ok_and(|glance| glance.state == pdca_state::State::AwaitingSignoff)
        })
        .count();
    if u32::try_from(arrived) == Ok(count) {
        return Ok(());
    }
    Err(format!("only {arrived} of {count} bundles reached the sign-off").into())
}

/// Runs the binary in `dir`; an exit code that is not in `codes` voids the measurement.
fn pdca(
    binary: &Utf8Path,
    args: &[&str],
    dir: &Utf8Path,
    memory: MemorySample,
    codes: &[i32],
) -> Result<Cost, Stopped> {
    let cost = cost(&mut program::command(binary.as_str(), args, dir), memory)?;
    match cost.code {
        Some(code) if codes.contains(&code) => Ok(cost),
        Some(code) => Err(format!("`pdca {}` ended with exit code {code}", args.join(" ")).into()),
        None => Err(format!("`pdca {}` was killed", args.join(" ")).into()),
    }
}

/// Lists every directory below `root` and stats every file, without reading any.
fn walk(root: &Utf8Path) -> Result<Duration, Stopped> {
    let start = Instant::now();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir_utf8()? {
            let entry = entry?;
            if entry.metadata()?.is_dir() {
                directories.push(entry.path().to_owned());
            }
        }
    }
    Ok(start.elapsed())
}

fn memory(what: &str, peak_kib: Option<u32>) -> BenchLine {
    BenchLine {
        what: what.to_owned(),
        unit: BenchUnit::Mebibytes,
        measured: peak_kib.map_or(f64::NAN, |kib| f64::from(kib) / 1024.0),
        against: None,
        aim: Some(64.0),
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
