//! `cargo xtask bench integrate`: gate runs of the culprit search, and times of forecast and fold.
//!
//! Runs are counted, not timed: a gate takes minutes, the search microseconds. The rivals are
//! other merge queues, whose rules are in [`strategy`].

mod real;
mod strategy;
pub(super) mod target;

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::{
    Drivers, FlakeRules, FoldPlan, MergeEngine, ObjectId, PairOutlook, PlanEntry, Recorded,
    Strategy, fold,
};

use super::measure::median;
use super::ms;
use super::report::{self, BenchLine, BenchUnit};
use crate::{Outcome, Stopped};
use pdca_integrate::testing::laws;
use pdca_integrate::testing::simulation::Dice;
use strategy::StrategyCount;

/// Measure gate runs of the search, and forecast and fold in a large repository
///
/// Asserts nothing: the exit code is 0 whatever the numbers are. With --check it measures nothing, and fails
/// where the search breaks one of its laws.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The number of files in the repository
    #[arg(long, default_value_t = 20_000)]
    files: usize,
    /// The number of sealed patches to forecast
    #[arg(long, default_value_t = 32)]
    patches: usize,
    /// The number of sealed commits to fold
    #[arg(long, default_value_t = 100)]
    commits: usize,
    /// Repeat each measurement this often; the median counts
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// The number of simulated batches for each count of runs
    #[arg(long, default_value_t = 2_000)]
    batches: u32,
    /// Check the laws of the search over random batches, and measure nothing
    #[arg(long)]
    check: bool,
    /// The number of random batches for --check
    #[arg(long, default_value_t = 10_000)]
    samples: usize,
    /// Count gate runs only, and time nothing
    #[arg(long)]
    runs_only: bool,
    /// Integrate with the real binary and a gate that sleeps, and measure nothing else
    #[arg(long)]
    real: bool,
    /// The duration of that gate, in seconds
    #[arg(long, default_value_t = 1)]
    gate_seconds: u64,
    /// The binary for --real; `target/release/pdca` if not given
    #[arg(long, value_name = "FILE")]
    pdca: Option<Utf8PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Stopped> {
    if args.check {
        return Ok(check(args));
    }
    if args.real {
        let pdca = args.pdca.clone().unwrap_or_else(|| Utf8PathBuf::from("target/release/pdca"));
        let pdca = pdca
            .canonicalize_utf8()
            .map_err(|_| format!("there is no {pdca}; `cargo build --release` makes it"))?;
        super::note_load();
        print!("{}", real::run(&pdca, 8, args.gate_seconds)?);
        return Ok(Outcome::Passed);
    }
    print!("{}", runs(args));
    print!("{}", false_reds(args));
    if args.runs_only {
        return Ok(Outcome::Passed);
    }
    super::note_load();
    print!("{}", report::table(&times(args)?));
    Ok(Outcome::Passed)
}

/// Checks the laws of the search, and prints the distance to the limits.
fn check(args: &Args) -> Outcome {
    let tally = laws::check(29, args.samples);
    let exact = tally.exact * 1000 / tally.named.max(1);
    println!("{} batches, {} culprits named", tally.samples, tally.named);
    println!("exact sets                     {}.{} %, at least 99", exact / 10, exact % 10);
    println!("runs, red batches              {:.2} x one by one, at most 1", tally.red.ratio());
    println!("runs, red batches of 9 to 32   {:.2} x one by one, at most 0.8", tally.large.ratio());
    println!("laws broken                    {}", tally.broken.len());
    for broken in tally.broken.iter().take(5) {
        println!("  {broken}");
    }
    let is_kept = tally.broken.is_empty()
        && exact >= 990
        && tally.red.ratio() <= 1.0
        && tally.large.ratio() <= 0.8;
    if is_kept { Outcome::Passed } else { Outcome::Failed }
}

type Way = fn(&[bool]) -> StrategyCount;

/// The compared strategies, in the order of columns.
const WAYS: [(&str, Way); 7] = [
    ("one by one", strategy::one_by_one),
    ("bisection", strategy::bisection),
    ("window of 4", |guilty| strategy::window(guilty, 4)),
    ("window of 20", |guilty| strategy::window(guilty, 20)),
    ("search, 1 lane", |guilty| strategy::search(guilty, 1)),
    ("search, 4 lanes", |guilty| strategy::search(guilty, 4)),
    ("search, 8 lanes", |guilty| strategy::search(guilty, 8)),
];
const ONE_BY_ONE: usize = 0;
const WINDOW_OF_4: usize = 2;
/// The columns of the search, with their lanes.
const SEARCHES: [(usize, u32); 3] = [(4, 1), (5, 4), (6, 8)];
const FOUR_LANES: usize = 5;

/// The counts of batches of one size and one share of culprits, by column.
struct Cell {
    count: usize,
    in_thousand: usize,
    all: [StrategyCount; 7],
    /// Only batches with a culprit.
    red: [StrategyCount; 7],
}

impl Cell {
    fn measure(count: usize, in_thousand: usize, batches: u32) -> Self {
        let mut dice = Dice::new(11);
        let (mut all, mut red) = ([StrategyCount::default(); 7], [StrategyCount::default(); 7]);
        for _ in 0..batches {
            let guilty = strategy::batch(count, in_thousand, &mut dice);
            for (column, (_, way)) in WAYS.iter().enumerate() {
                let took = way(&guilty);
                all[column] = all[column] + took;
                if guilty.contains(&true) {
                    red[column] = red[column] + took;
                }
            }
        }
        Self { count, in_thousand, all, red }
    }

    fn name(&self) -> String {
        format!("n = {}, p = {:.2}", self.count, share(self.in_thousand))
    }
}

/// Prints runs and rounds per batch for each share of culprits, and compares them with the bounds.
fn runs(args: &Args) -> String {
    let row = |name: &str, cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>21}")).collect();
        format!("{name:<18}{}\n", cells.concat())
    };
    let mut rows =
        vec!["gate runs / rounds until all innocent landed / rounds, per batch\n".to_owned()];
    rows.push(row("", &WAYS.map(|(name, _)| name.to_owned())));
    let mut cells = Vec::new();
    for count in [8, 16, 32] {
        for in_thousand in [20, 50, 100, 150, 200] {
            let cell = Cell::measure(count, in_thousand, args.batches);
            let columns = cell.all.map(|sum| {
                let each = |number: usize| float(number) / f64::from(args.batches.max(1));
                let (runs, land, all) = (sum.runs, sum.rounds_to_land, sum.rounds);
                format!("{:.1} / {:.1} / {:.1}", each(runs), each(land), each(all))
            });
            rows.push(row(&cell.name(), &columns));
            cells.push(cell);
        }
    }
    rows.push(bounds(&cells));
    rows.concat()
}

/// Prints each bound with its measurement, and whether it is kept.
///
/// Runs are bounded for one lane, on the average of red batches over all shares. With p = 0.2 no search that also
/// confirms each culprit can take 0.8 x one by one: telling 2^n outcomes apart takes 0.72 runs for each change, and
/// confirming one in five another 0.2. Several lanes gate ahead what one lane would wait for, so their runs are
/// shown without a bound.
fn bounds(cells: &[Cell]) -> String {
    let mut lines = vec!["\nbounds\n".to_owned()];
    let mut bound = |what: &str, number: f64, most: Option<f64>| {
        let kept = match most {
            Some(most) if number <= most => format!("at most {most:.2}  kept"),
            Some(most) => format!("at most {most:.2}  MISSED"),
            None => "no bound".to_owned(),
        };
        lines.push(format!("{what:<68}{number:>6.2}  {kept}\n"));
    };
    let is_any = |_: &&Cell| true;
    let is_large = |cell: &&Cell| cell.count >= 9;
    for (column, lanes) in SEARCHES {
        let runs = |is_in: &dyn Fn(&&Cell) -> bool| {
            let sum = |column: usize| {
                // Both sides gate the base once, and here it is known.
                cells.iter().filter(is_in).map(|cell| cell.red[column].runs).sum()
            };
            float(sum(column)) / float(sum(ONE_BY_ONE)).max(1.0)
        };
        let most = |most: f64| (lanes == 1).then_some(most);
        let what = format!("runs of red batches / one by one, lanes: {lanes}");
        bound(&what, runs(&is_any), most(1.0));
        bound(&format!("{what}, n >= 9"), runs(&is_large), most(0.8));
    }
    for (what, rounds, most) in [
        (
            "until everything innocent landed",
            (|count| count.rounds_to_land) as fn(StrategyCount) -> usize,
            1.25,
        ),
        ("with explanations", |count| count.rounds, 1.5),
    ] {
        let ratio = |cell: &Cell| {
            float(rounds(cell.all[FOUR_LANES])) / float(rounds(cell.all[WINDOW_OF_4])).max(1.0)
        };
        let worst = cells.iter().max_by(|one, other| ratio(one).total_cmp(&ratio(other)));
        let Some(worst) = worst else { continue };
        let what = format!("rounds {what} / window of 4, lanes: 4, worst ({})", worst.name());
        bound(&what, ratio(worst), Some(most));
    }
    lines.push("\nruns of red batches / one by one, lanes: 1, by n and p\n".to_owned());
    for cell in cells {
        let ratio = float(cell.red[SEARCHES[0].0].runs) / float(cell.red[ONE_BY_ONE].runs).max(1.0);
        lines.push(format!("{:<18}{ratio:>6.2}\n", cell.name()));
    }
    lines.concat()
}

fn float(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn share(in_thousand: usize) -> f64 {
    f64::from(u32::try_from(in_thousand).unwrap_or(u32::MAX)) / 1000.0
}

/// Prints how often an innocent change is held if gates are flaky.
fn false_reds(args: &Args) -> String {
    let mut lines = Vec::new();
    for (name, rules) in
        [("not known", FlakeRules::default()), ("known to flake", strategy::history(6))]
    {
        let mut dice = Dice::new(13);
        let mut held = 0_u32;
        for _ in 0..args.batches {
            let guilty = strategy::batch(8, 50, &mut dice);
            let is_held = strategy::holds_an_innocent(&guilty, 30, rules.clone(), &mut dice);
            held += u32::from(is_held);
        }
        let share = f64::from(held) * 100.0 / f64::from(args.batches.max(1));
        lines.push(format!(
            "with 3 % of false reds in a row {name}, n = 8, p = 0.05: an innocent is held in {share:.3} % of batches\n"
        ));
    }
    lines.concat()
}

fn times(args: &Args) -> Result<Vec<BenchLine>, Stopped> {
    let home = tempfile::tempdir()?;
    let home = Utf8Path::from_path(home.path()).ok_or("the temporary directory is not UTF-8")?;
    eprintln!("making a repository of {} files", args.files);
    let count = args.patches.max(args.commits);
    let target = target::BenchTarget::new(home, args.files, count)?;
    let pairs = args.patches * args.patches.saturating_sub(1) / 2;
    let heads: Vec<ObjectId> =
        target.sealed.iter().take(args.patches).map(|sealed| sealed.record().head).collect();
    let with_later = |(at, one): (usize, &ObjectId)| {
        heads[at + 1..].iter().map(|other| (*one, *other)).collect()
    };
    let asked: Vec<(ObjectId, ObjectId)> =
        heads.iter().enumerate().flat_map::<Vec<_>, _>(with_later).collect();
    let forecast = repeated(args, || {
        let mut engine = MergeEngine::new(&target.store, Drivers::default());
        let outlooks = PairOutlook::of_pairs(&mut engine, target.base, &asked)?;
        if outlooks.len() == pairs { Ok(()) } else { Err("a pair is missing".into()) }
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
        let plan =
            FoldPlan::new(target.base, strategy, entries.map(|sealed| PlanEntry::new(sealed, [])))?;
        let took = repeated(args, || {
            let mut engine = MergeEngine::new(&target.store, Drivers::default());
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

fn line(what: String, took: Duration, aim: Option<f64>) -> BenchLine {
    BenchLine { what, unit: BenchUnit::Milliseconds, measured: ms(took), against: None, aim }
}
