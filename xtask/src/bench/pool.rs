//! `cargo xtask bench pool`: the distance of the pool from the fastest possible schedule.
//!
//! Random batches whose gates sleep are carried out by the real dispatcher, each gate a supervised
//! process, and again wave by wave, as schedulers do that wait for a whole wave to end. Both stand
//! beside the lower bound: the longest chain, or all work spread evenly, whichever is longer.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use pdca_dag::{Completion, Plan};
use pdca_driver::pool::{Panicked, PoolHost, carry_out};
use pdca_process::{Cancel, Ending, Spec, run};
use pdca_state::BundleId;
use serde::Serialize;

use super::graphs::BenchGraph;
use crate::Stopped;
use crate::dice::Dice;

/// Measure the makespan of random batches against the lower bound and a wave scheduler
///
/// Asserts nothing: the exit code is 0 whatever the numbers are. What it says of the pool holds for
/// gates that sleep; gates that compute share the cores besides.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The number of random batches
    #[arg(long, default_value_t = 200)]
    graphs: u64,
    /// The number of bundles in each
    #[arg(long, default_value_t = 40)]
    bundles: usize,
    /// The numbers of lanes
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4, 8])]
    lanes: Vec<u32>,
    /// The longest gate, in milliseconds; the shortest takes a fifth of it
    #[arg(long, default_value_t = 500)]
    longest: u64,
    /// Measure this many batches side by side; they sleep most of the time
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Simulate everything by the same rules, without sleeping
    #[arg(long)]
    on_paper: bool,
    /// Print JSON in place of the table
    #[arg(long)]
    json: bool,
}

/// One batch on a number of lanes, in seconds.
#[derive(Debug, Clone, Serialize)]
struct Sample {
    graph: u64,
    lanes: u32,
    lower_bound: f64,
    /// Durations are known beforehand, as with `durations = "history"`.
    pool: f64,
    /// Durations are unknown.
    pool_blind: f64,
    waves: f64,
}

pub(super) fn measure(args: &Args) -> Result<(), Stopped> {
    super::note_load();
    let scratch = tempfile::tempdir()?;
    let scratch =
        Utf8Path::from_path(scratch.path()).ok_or("the temporary directory is not UTF-8")?;
    let next = AtomicUsize::new(0);
    let samples = Mutex::new(Vec::new());
    let tasks: Vec<(u64, u32)> = (0..args.graphs)
        .flat_map(|graph| args.lanes.iter().map(move |lanes| (graph, *lanes)))
        .collect();
    let work = || -> Result<(), String> {
        while let Some((graph, lanes)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let dir = scratch.join(format!("{graph}-{lanes}"));
            let sample = sample(args, *graph, *lanes, &dir).map_err(|error| error.to_string())?;
            let mut samples = samples.lock().map_err(|_| "another measurement panicked")?;
            samples.push(sample);
            if samples.len().is_multiple_of(20) {
                eprintln!("{} of {}", samples.len(), tasks.len());
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().map_err(|_| "a measurement panicked".to_owned())?
        })
    })?;
    let samples = samples.into_inner().map_err(|_| "a measurement panicked")?;
    if args.json {
        println!("{:#}", serde_json::json!({ "samples": samples }));
    } else {
        print!("{}", table(&args.lanes, &samples));
    }
    Ok(())
}

fn sample(args: &Args, number: u64, lanes: u32, dir: &Utf8Path) -> Result<Sample, Stopped> {
    let mut dice = Dice::new(number + 1);
    let graph = BenchGraph::random(&mut dice, args.bundles, Duration::from_millis(args.longest))?;
    let lanes_count = NonZeroU32::new(lanes).ok_or("`--lanes` must be at least 1")?;
    let time = |plan: &Plan, name: &str| {
        if args.on_paper {
            return on_paper(plan, lanes);
        }
        carried_out(&graph, plan, lanes_count, &dir.join(name))
    };
    let known = graph.plan(true)?;
    let pool = time(&known, "pool")?;
    // Unknown durations cannot be simulated.
    let pool_blind = if args.on_paper { pool } else { time(&graph.plan(false)?, "blind")? };
    let mut waves = Duration::ZERO;
    for (n, wave) in known.waves().into_iter().enumerate() {
        waves += time(&graph.wave(&wave).plan(true)?, &format!("wave-{n}"))?;
    }
    let seconds = |time: Duration| time.as_secs_f64();
    Ok(Sample {
        graph: number,
        lanes,
        lower_bound: seconds(graph.lower_bound(lanes)),
        pool: seconds(pool),
        pool_blind: seconds(pool_blind),
        waves: seconds(waves),
    })
}

fn on_paper(plan: &Plan, lanes: u32) -> Result<Duration, Stopped> {
    let lanes = usize::try_from(lanes)?;
    let simulation = plan.simulate(lanes..=lanes);
    let last = simulation.makespans.last().ok_or("nothing was simulated")?;
    Ok(Duration::from_millis(last.time))
}

/// Signs everything off the moment it is done.
struct Obliging {
    failed: Option<String>,
}

impl PoolHost<Result<(), String>> for Obliging {
    fn ended(&mut self, id: &BundleId, result: Result<Result<(), String>, Panicked>) -> Completion {
        match result {
            Ok(Ok(())) => Completion::Complete,
            Ok(Err(said)) | Err(Panicked(said)) => {
                self.failed = Some(format!("{id}: {said}"));
                Completion::Failed
            }
        }
    }
}

/// Carries a plan out with gates that sleep, and returns the time from the first start to the last end.
fn carried_out(
    graph: &BenchGraph,
    plan: &Plan,
    lanes: NonZeroU32,
    dir: &Utf8Path,
) -> Result<Duration, Stopped> {
    let gate = |id: &BundleId, _: Option<u32>| {
        let job = dir.join(id.as_str());
        fs_err::create_dir_all(&job).map_err(|error| error.to_string())?;
        let seconds = format!("{:.3}", graph.takes(id).as_secs_f64());
        let spec = Spec::new(["sleep", &seconds], dir, &job);
        let verdict = run(&spec, &Cancel::new(), &mut |_| {}).map_err(|error| error.to_string())?;
        if verdict.ending == Ending::Exited(0) { Ok(()) } else { Err(verdict.ending.to_string()) }
    };
    fs_err::create_dir_all(dir)?;
    let mut host = Obliging { failed: None };
    let begun = Instant::now();
    carry_out(plan, &[], lanes, &gate, &mut host);
    let took = begun.elapsed();
    fs_err::remove_dir_all(dir)?;
    host.failed.map_or(Ok(took), |failed| Err(failed.into()))
}

fn table(lanes: &[u32], samples: &[Sample]) -> String {
    use std::fmt::Write as _;
    let mut text = String::from(
        "lanes  batches  pool/bound  worst  blind/bound  waves/bound  waves/pool  slower than waves\n",
    );
    for lanes in lanes {
        let of: Vec<&Sample> = samples.iter().filter(|sample| sample.lanes == *lanes).collect();
        let mean = |ratio: &dyn Fn(&Sample) -> f64| {
            let count = u32::try_from(of.len()).unwrap_or(u32::MAX);
            of.iter().map(|sample| ratio(sample)).sum::<f64>() / f64::from(count)
        };
        let worst = of.iter().map(|sample| sample.pool / sample.lower_bound).fold(0.0, f64::max);
        let slower = of.iter().filter(|sample| sample.pool > sample.waves).count();
        writeln!(
            text,
            "{lanes:>5}  {:>7}  {:>10.3}  {worst:>5.3}  {:>11.3}  {:>11.3}  {:>10.3}  {slower:>17}",
            of.len(),
            mean(&|sample| sample.pool / sample.lower_bound),
            mean(&|sample| sample.pool_blind / sample.lower_bound),
            mean(&|sample| sample.waves / sample.lower_bound),
            mean(&|sample| sample.waves / sample.pool),
        )
        .expect("a string takes any text");
    }
    text
}
