//! `cargo xtask bench integrate`: gate runs of the search, and times of forecast and fold.
//!
//! Runs are counted, not timed: a gate takes minutes, the search microseconds. Beside the search
//! stand the usual ways: one by one; halves, which tests a red batch again in two parts; and
//! speculation, which tests every prefix at once and starts over behind the first red one.

mod strategy;
mod target;

use std::time::{Duration, Instant};

use camino::Utf8Path;
use pdca_integrate::{Drivers, Engine, Entry, Forecast, Plan, Recorded, Sealed, Strategy, fold};

use super::measure::median;
use super::ms;
use super::report::{self, Line, Unit};
use crate::{Outcome, Stopped};
use strategy::{Count, Dice};

/// Measure gate runs of the search, and forecast and fold in a large repository
///
/// Asserts nothing: the exit code is 0 whatever the numbers are.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// How many files the repository has
    #[arg(long, default_value_t = 20_000)]
    files: usize,
    /// How many sealed patches are forecast
    #[arg(long, default_value_t = 32)]
    patches: usize,
    /// How many sealed commits are folded
    #[arg(long, default_value_t = 100)]
    commits: usize,
    /// How often each time is taken; the median counts
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// How many batches are simulated for each number of runs
    #[arg(long, default_value_t = 20_000)]
    batches: u32,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Stopped> {
    print!("{}", runs(args));
    print!("{}", false_reds(args));
    super::note_load();
    print!("{}", report::table(&times(args)?));
    Ok(Outcome::Passed)
}

/// Runs and rounds per batch, for each share of culprits.
fn runs(args: &Args) -> String {
    let names = ["one by one", "halves", "speculation", "search", "search, 4 lanes"];
    let row = |name: &str, cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>17}")).collect();
        format!("{name:<30}{}\n", cells.concat())
    };
    let mut rows = vec![row("gate runs / rounds per batch", &names.map(str::to_owned))];
    for count in [8, 16] {
        for share in [0.02, 0.05, 0.1, 0.15, 0.2] {
            let mut dice = Dice::new(11);
            let mut sums = [Count::default(); 5];
            for _ in 0..args.batches {
                let guilty: Vec<bool> = (0..count).map(|_| dice.chance(share)).collect();
                let counts = [
                    strategy::one_by_one(&guilty),
                    strategy::halves(&guilty),
                    strategy::speculation(&guilty),
                    strategy::search(&guilty, 1),
                    strategy::search(&guilty, 4),
                ];
                for (sum, count) in sums.iter_mut().zip(counts) {
                    *sum = *sum + count;
                }
            }
            let cells = sums.map(|sum| {
                let each = |total: u32| f64::from(total) / f64::from(args.batches.max(1));
                format!("{:.2} / {:.2}", each(sum.runs), each(sum.rounds))
            });
            rows.push(row(&format!("n = {count}, p = {share}"), &cells));
        }
    }
    rows.concat()
}

/// How often an innocent change is held where gates are red by mistake.
fn false_reds(args: &Args) -> String {
    let mut dice = Dice::new(13);
    let mut held = 0_u32;
    for _ in 0..args.batches {
        let guilty: Vec<bool> = (0..8).map(|_| dice.chance(0.05)).collect();
        held += u32::from(strategy::holds_an_innocent(&guilty, 0.03, &mut dice));
    }
    let share = f64::from(held) * 100.0 / f64::from(args.batches.max(1));
    format!(
        "with 3 % of false reds, n = 8, p = 0.05: an innocent is held in {share:.3} % of batches\n"
    )
}

fn times(args: &Args) -> Result<Vec<Line>, Stopped> {
    let home = tempfile::tempdir()?;
    let home = Utf8Path::from_path(home.path()).ok_or("the temporary directory is not UTF-8")?;
    eprintln!("making a repository of {} files", args.files);
    let count = args.patches.max(args.commits);
    let target = target::Target::new(home, args.files, count)?;
    let pairs = args.patches * args.patches.saturating_sub(1) / 2;
    let patches: Vec<&Sealed> = target.sealed.iter().take(args.patches).collect();
    let forecast = repeated(args, || {
        let mut engine = Engine::new(&target.store, Drivers::default());
        let forecast = Forecast::of_seals(&mut engine, target.base, &patches)?;
        if forecast.pairs.len() == pairs { Ok(()) } else { Err("a pair is missing".into()) }
    })?;
    let mut lines = vec![line(
        format!("forecast of {} patches, {pairs} pairs", args.patches),
        forecast,
        Some(2000.0),
    )];
    for (name, strategy) in
        [("rebase-ff", Strategy::RebaseFf), ("merge-commit", Strategy::MergeCommit)]
    {
        let entries = target.sealed.iter().take(args.commits).cloned();
        let plan = Plan::new(target.base, strategy, entries.map(|sealed| Entry::new(sealed, [])))?;
        let took = repeated(args, || {
            let mut engine = Engine::new(&target.store, Drivers::default());
            let folded = fold(&mut engine, &plan, &Recorded::default(), &mut |_| Ok(()))?;
            let all = folded.candidate().bundles().count() == args.commits;
            if all { Ok(()) } else { Err("a change did not fold".into()) }
        })?;
        lines.push(line(format!("fold of {} commits, {name}", args.commits), took, Some(2000.0)));
    }
    lines.push(line(format!("seal, per change ({count})"), target.seal_time, None));
    Ok(lines)
}

fn repeated(
    args: &Args,
    mut act: impl FnMut() -> Result<(), Stopped>,
) -> Result<Duration, Stopped> {
    let mut times = Vec::new();
    for _ in 0..args.repeat.max(1) {
        let start = Instant::now();
        act()?;
        times.push(start.elapsed());
    }
    Ok(median(&times))
}

fn line(what: String, took: Duration, aim: Option<f64>) -> Line {
    Line { what, unit: Unit::Milliseconds, measured: ms(took), against: None, aim }
}
