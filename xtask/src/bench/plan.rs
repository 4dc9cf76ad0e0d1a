//! `cargo xtask bench plan`: the time that planning takes, and its growth.

use std::time::{Duration, Instant};

use pdca_dag::{Declared, Item, Options, Outside, Plan, SourceLocation, Touch};

use super::measure::median;
use super::ms;
use super::report::{self, Against, BenchLine, BenchUnit};
use crate::Stopped;
use crate::dice::Dice;

/// Measure planning: many patterns, long chains, large cycles
///
/// Asserts nothing: the exit code is 0 whatever the numbers are.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Repeat each measurement this often; the median counts
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// Print JSON in place of the table
    #[arg(long)]
    json: bool,
}

pub(super) fn measure(args: &Args) -> Result<(), Stopped> {
    super::note_load();
    let mut lines = Vec::new();
    let mut first: Option<f64> = None;
    for count in [1_000_u32, 2_000, 5_000, 10_000] {
        let measured = ms(timed(args, &touching(count)?, true)?);
        let per_thousand = |total: f64| total * 1_000.0 / f64::from(count);
        let base = *first.get_or_insert(measured);
        lines.push(BenchLine {
            what: format!("{count} bundles with 2 patterns each, per 1,000"),
            unit: BenchUnit::Milliseconds,
            measured: per_thousand(measured),
            against: Some(Against { what: "1,000 bundles".to_owned(), measured: base }),
            aim: None,
        });
        if count == 5_000 {
            lines.push(line("5,000 bundles with 2 patterns each, in all", measured, 500.0));
        }
    }
    let chain = ms(timed(args, &chain(100_000, false)?, true)?);
    lines.push(line("a chain of 100,000 bundles", chain, 1_000.0));
    let cycle = ms(timed(args, &self::chain(10_000, true)?, false)?);
    lines.push(line("a cycle of 10,000 bundles, rejected", cycle, 1_000.0));
    if args.json {
        println!("{:#}", report::json(&lines));
    } else {
        print!("{}", report::table(&lines));
    }
    Ok(())
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
