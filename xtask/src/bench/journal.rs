//! `cargo xtask bench journal`: the cost of a step of a run, beside the same bytes and syncs
//! in a plain loop; and the cost of a driver beside gates that take a second.

mod batch;

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_journal::{
    Activity, Admission, Admitted, BeatEnding, Cause, Effect, EffectOutcome, Epoch, GateVerdict,
    HostScope, Journal, Moment, ObjectId, ProcessIdentity, Record, RunId, RunTarget, Runs,
};
use pdca_state::BundleId;

use super::measure::median;
use super::ms;
use super::report::{self, Against, BenchLine, BenchUnit};
use crate::Stopped;

/// Measure the journal: time, syncs and bytes per step, beside the raw floor, and a batch of 1-second gates
///
/// A step is an intent, and its outcome with the five facts that follow from it: two syncs. The batch is one of
/// the release binary, beside plain loops of the same sleeps. Asserts nothing: the exit code is 0 whatever the
/// numbers are.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The number of bundles in the run
    #[arg(long, default_value_t = 100)]
    bundles: u32,
    /// The number of steps per bundle
    #[arg(long, default_value_t = 5)]
    steps: u32,
    /// Repeat everything this often; the median counts
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// The number of bundles in the batch; 0 leaves it out
    #[arg(long, default_value_t = 8)]
    batch: u32,
    /// The number of one-second gates per bundle
    #[arg(long, default_value_t = 3)]
    gates: u32,
    /// The number of lanes
    #[arg(long, default_value_t = 2)]
    lanes: u32,
    /// Repeat the batch this often; the median counts
    #[arg(long, default_value_t = 3)]
    batches: u32,
    /// Measure this binary and build none
    #[arg(long, value_name = "FILE")]
    binary: Option<Utf8PathBuf>,
    /// Print JSON in place of the table
    #[arg(long)]
    json: bool,
}

/// A run, and the floor with the same bytes and syncs.
struct Round {
    run: Duration,
    floor: Duration,
    syncs: u32,
    records: u32,
    bytes: u32,
}

pub(super) fn measure(args: &Args, root: &Utf8Path) -> Result<(), Stopped> {
    let binary = match &args.binary {
        _ if args.batch == 0 => None,
        Some(binary) => Some(binary.canonicalize_utf8()?),
        None => Some(super::build(root)?),
    };
    super::note_load();
    let mut rounds = Vec::new();
    // The first round is a warm-up and is not counted.
    for round in 0..=args.repeat.max(1) {
        let scratch = tempfile::tempdir()?;
        let dir =
            Utf8Path::from_path(scratch.path()).ok_or("the temporary directory is not UTF-8")?;
        let measured = measure_round(args, dir)?;
        if round > 0 {
            rounds.push(measured);
        }
    }
    let mut lines = lines(f64::from(args.bundles.max(1) * args.steps.max(1)), &rounds);
    if let Some(binary) = binary {
        lines.extend(batch::measure(args, &binary)?);
    }
    if args.json {
        println!("{:#}", report::json(&lines));
    } else {
        print!("{}", report::table(&lines));
    }
    Ok(())
}

fn lines(steps: f64, rounds: &[Round]) -> Vec<BenchLine> {
    let time =
        |of: fn(&Round) -> Duration| ms(median(&rounds.iter().map(of).collect::<Vec<_>>())) / steps;
    let (step, floor) = (time(|round| round.run), time(|round| round.floor));
    let (syncs, records, bytes) = rounds
        .last()
        .map(|round| (f64::from(round.syncs), f64::from(round.records), f64::from(round.bytes)))
        .unwrap_or_default();
    let line = |what: &str, unit, measured, aim| BenchLine {
        what: format!("journal: {what}"),
        unit,
        measured,
        against: None,
        aim,
    };
    vec![
        BenchLine {
            against: Some(Against { what: "same bytes and syncs".to_owned(), measured: floor }),
            ..line("wall time per step", BenchUnit::Milliseconds, step, None)
        },
        // 5 % of a gate that takes a second.
        line("wall time per step, beside a gate of 1 s", BenchUnit::Milliseconds, step, Some(50.0)),
        line("syncs per step", BenchUnit::Count, syncs / steps, Some(2.0)),
        line("syncs per record", BenchUnit::Count, syncs / records, None),
        line("bytes per record", BenchUnit::Count, bytes / records, None),
        line("records per second", BenchUnit::Count, records / steps * 1000.0 / step, None),
    ]
}

/// Writes a run as a driver would, then the same bytes in a plain loop.
fn measure_round(args: &Args, dir: &Utf8Path) -> Result<Round, Stopped> {
    let admission = Admission::take([dir.join("lock")])?;
    let runs = Runs::new(dir.join("runs"));
    let wall = "2026-01-01T00:00:00Z".parse()?;
    let at = |uptime| Moment { wall, uptime };
    let run = RunId::generate(wall)?;
    let bundles: Vec<BundleId> = (0..args.bundles.max(1))
        .map(|number| number.to_string().parse())
        .collect::<Result<_, _>>()?;
    let admitted = Admitted {
        driver: ProcessIdentity::of(&HostScope::here()?, std::process::id())
            .ok_or("no such process")?,
        targets: vec![RunTarget { name: "app".to_owned(), common_dir: dir.to_owned() }],
        batch: bundles.clone(),
        config_digest: "0".repeat(64),
        lanes: 4,
    };
    let start = Instant::now();
    let first = at(Duration::ZERO);
    let mut journal = Journal::create(&runs, &admission, &run, Epoch::FIRST, first, admitted)?;
    journal.append(first, vec![Record::Entered { activity: Activity::Running }])?;
    let path = runs.dir(&run).join("journal");
    let before = (journal.syncs(), journal.state().last.seq.get(), fs_err::metadata(&path)?.len());
    let began = Instant::now();
    for _ in 0..args.steps.max(1) {
        for bundle in &bundles {
            step(&mut journal, bundle, at(start.elapsed()))?;
        }
    }
    let spent = began.elapsed();
    let written = fs_err::read(&path)?.split_off(usize::try_from(before.2)?);
    Ok(Round {
        run: spent,
        floor: floor(&dir.join("floor"), &batches(&written)?)?,
        syncs: u32::try_from(journal.syncs() - before.0)?,
        records: u32::try_from(journal.state().last.seq.get() - before.1)?,
        bytes: u32::try_from(written.len())?,
    })
}

/// Records one step: the intent synced, then its outcome.
fn step(journal: &mut Journal, bundle: &BundleId, at: Moment) -> Result<(), Stopped> {
    let base: ObjectId = "0123456789".repeat(4).parse()?;
    let generation = journal.state().next_generation(bundle).ok_or("no generation left")?;
    let (bundle, judged) = (bundle.clone(), "C4-verify".to_owned());
    let intent = journal.intent(
        at,
        Effect::Rescue { bundle: bundle.clone(), reference: "refs/pdca/bench".to_owned() },
    )?;
    let process = journal.state().driver.clone();
    let ending = BeatEnding::Interrupted { cause: Cause::Host };
    let facts = vec![
        Record::Claimed { bundle: bundle.clone(), generation, slot: 0, host: None, base },
        Record::Started { bundle: bundle.clone(), generation, process },
        Record::LeafCalled { bundle: bundle.clone(), role: "builder".to_owned() },
        Record::Judged {
            bundle: bundle.clone(),
            generation,
            step: judged,
            verdict: GateVerdict::Pass,
        },
        Record::Ended { bundle, generation, ending },
    ];
    intent.resolve_before(journal, at, EffectOutcome::Done, facts)?;
    Ok(())
}

/// Returns the bytes that were synced together: lines with the same batch, their fourth word.
fn batches(written: &[u8]) -> Result<Vec<Vec<u8>>, Stopped> {
    let mut batches: Vec<(&[u8], Vec<u8>)> = Vec::new();
    for line in written.split_inclusive(|byte| *byte == b'\n') {
        let batch = line.split(|byte| *byte == b' ').nth(3).ok_or("a line without a batch")?;
        match batches.last_mut() {
            Some((last, bytes)) if *last == batch => bytes.extend_from_slice(line),
            _ => batches.push((batch, line.to_vec())),
        }
    }
    Ok(batches.into_iter().map(|(_, bytes)| bytes).collect())
}

/// Writes and syncs each batch.
fn floor(path: &Utf8Path, batches: &[Vec<u8>]) -> Result<Duration, Stopped> {
    let file = File::create_new(path)?;
    let mut len = 0;
    let start = Instant::now();
    for batch in batches {
        file.write_all_at(batch, len)?;
        file.sync_data()?;
        len += batch.len() as u64;
    }
    Ok(start.elapsed())
}
