//! `cargo xtask bench plan`: the time that planning takes, and its growth.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_dag::{Declared, Item, Options, Outside, Plan, SourceLocation, Touch};

use super::measure::{MemorySample, median};
use super::report::{self, Against, BenchLine, BenchUnit};
use super::{ms, pdca};
use crate::dice::Dice;
use crate::{Stopped, program};

/// Measure the processor time of `pdca plan` at n and 2n bundles, and of its graph alone
///
/// Starts the program on workspaces with a target, and prints the growth from n to 2n. Lines that call a function name
/// it. Asserts nothing: the exit code is 0 whatever the numbers are.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The numbers of bundles, each measured beside its double
    #[arg(long, value_delimiter = ',', default_values_t = [500, 2_500])]
    bundles: Vec<u32>,
    /// Repeat each measurement this often; the median counts
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Measure this binary and build none
    #[arg(long, value_name = "FILE")]
    binary: Option<Utf8PathBuf>,
    /// Print JSON in place of the table
    #[arg(long)]
    json: bool,
}

pub(super) fn measure(args: &Args, root: &Utf8Path) -> Result<(), Stopped> {
    let binary = match &args.binary {
        Some(binary) => binary.canonicalize_utf8()?,
        None => super::build(root)?,
    };
    super::note_load();
    let mut lines = Vec::new();
    for count in &args.bundles {
        let (small, large) =
            (program_cost(args, &binary, *count)?, program_cost(args, &binary, 2 * count)?);
        lines.push(BenchLine {
            what: format!("pdca plan of {} bundles, processor time", 2 * count),
            unit: BenchUnit::Milliseconds,
            measured: large,
            against: Some(Against { what: format!("of {count}"), measured: small }),
            aim: (2 * count == 5_000).then_some(500.0),
        });
    }
    let all = ms(timed(args, &touching(5_000)?, true)?);
    lines.push(line("Plan::new alone: 5,000 bundles with 2 patterns each", all, 500.0));
    let chain = ms(timed(args, &chain(100_000, false)?, true)?);
    lines.push(line("Plan::new alone: a chain of 100,000 bundles", chain, 1_000.0));
    let cycle = ms(timed(args, &self::chain(10_000, true)?, false)?);
    lines.push(line("Plan::new alone: a cycle of 10,000 bundles, rejected", cycle, 1_000.0));
    if args.json {
        println!("{:#}", report::json(&lines));
    } else {
        print!("{}", report::table(&lines));
    }
    Ok(())
}

/// Returns the processor time of `pdca plan` over so many planned bundles, in milliseconds.
fn program_cost(args: &Args, binary: &Utf8Path, count: u32) -> Result<f64, Stopped> {
    eprintln!("pdca plan of {count} bundles");
    let scratch = tempfile::tempdir()?;
    let scratch =
        Utf8Path::from_path(scratch.path()).ok_or("the temporary directory is not UTF-8")?;
    let (workspace, target) = (scratch.join("work"), scratch.join("app"));
    fs_err::create_dir_all(&target)?;
    for line in [
        &["init", "--quiet", "--initial-branch", "main"][..],
        &[
            "-c",
            "user.name=b",
            "-c",
            "user.email=b@c.d",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "b",
        ],
    ] {
        program::output("git", line, &target)?;
    }
    for number in 1..=count {
        let dir = workspace.join(format!("results/issue_{number}"));
        fs_err::create_dir_all(&dir)?;
        let mut text = format!("# Brief\n\n- **Slug:** s-{number}\n- **Defect:** d\n");
        if number % 3 == 0 {
            writeln!(text, "- **Depends on:** {}", number / 2)?;
        }
        let shared = number % (count / 2).max(1);
        writeln!(text, "- **Touches:** src/m{number}/**, src/shared/f{shared}.rs")?;
        fs_err::write(dir.join("brief.md"), text)?;
    }
    let config = "[[targets]]\nname = \"app\"\npath = \"../app\"\nbranch = \"main\"\n";
    fs_err::write(workspace.join("pdca.toml"), config)?;
    let mut times = Vec::new();
    for round in 0..=args.repeat.max(1) {
        let ran = pdca(binary, &["--json", "plan"], &workspace, MemorySample::NotSampled, &[0])?;
        // The first round fills the page cache and is not counted.
        if round > 0 {
            times.push(ran.own_cpu + ran.children_cpu);
        }
    }
    Ok(ms(median(&times)))
}

fn line(what: &str, measured: f64, aim: f64) -> BenchLine {
    let (what, unit) = (what.to_owned(), BenchUnit::Milliseconds);
    BenchLine { what, unit, measured, against: None, aim: Some(aim) }
}

/// Plans, and computes the views that `pdca plan` shows.
fn timed(args: &Args, items: &[Item], sound: bool) -> Result<Duration, Stopped> {
    let mut times = Vec::new();
    for _ in 0..args.repeat.max(1) {
        let items = items.to_vec();
        let begun = Instant::now();
        let plan = Plan::new(items, &Outside::default(), Options::default());
        if let Ok(plan) = &plan {
            std::hint::black_box((plan.order(), plan.waves(), plan.critical_path()));
        }
        times.push(begun.elapsed());
        if plan.is_ok() != sound {
            return Err("the plan is not what was to be measured".into());
        }
    }
    Ok(median(&times))
}

fn item(number: usize) -> Result<Item, Stopped> {
    let place = SourceLocation::new(format!("results/issue_{number:06}/brief.md"), 1);
    Ok(Item::new(format!("{number:06}").parse()?, place))
}

/// Makes realistic bundles: a file each, and a glob in one of many directories.
fn touching(count: u32) -> Result<Vec<Item>, Stopped> {
    let mut dice = Dice::new(u64::from(count));
    let mut items = Vec::new();
    for number in 0..count {
        let mut item = item(number as usize)?;
        let (area, part) = (dice.roll(u64::from(count) / 4), dice.roll(9));
        let globs = [
            format!("crates/area{area}/src/part{number}.rs"),
            format!("crates/area{area}/tests/case{part}_*.rs"),
        ];
        item.touches =
            globs.map(|glob| Touch { glob, place: item.place.clone(), is_file: false }).into();
        items.push(item);
    }
    Ok(items)
}

/// Makes bundles that each depend on the one before; for a cycle, the first depends on the last.
fn chain(count: usize, closed: bool) -> Result<Vec<Item>, Stopped> {
    let mut items = (0..count).map(item).collect::<Result<Vec<_>, _>>()?;
    for number in 0..count {
        let before = match number.checked_sub(1) {
            Some(before) => before,
            None if closed => count - 1,
            None => continue,
        };
        let declared = Declared::new(items[before].id.clone(), items[number].place.clone());
        items[number].depends_on.push(declared);
    }
    Ok(items)
}
