//! `cargo xtask bench select`: an export of many records, beside a plain read of the file.

use std::fmt::Write as _;
use std::io::Read as _;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

use super::measure::{MemorySample, median};
use super::report::{self, Against, BenchLine, BenchUnit};
use super::{build, memory, ms, note_load, pdca};
use crate::Stopped;

/// Measure `select` over a large export
///
/// Asserts nothing: the exit code is 0 whatever the numbers are.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The number of records
    #[arg(long, default_value_t = 50_000)]
    records: u32,
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
        None => build(root)?,
    };
    note_load();
    let scratch = tempfile::tempdir()?;
    let scratch =
        Utf8Path::from_path(scratch.path()).ok_or("the temporary directory is not UTF-8")?;
    let config = "[[select.bucket]]\nname = \"old\"\nwhen = { age = \"> 1y\" }\n\
        [[select.bucket]]\nname = \"crash\"\nwhen = { title = { regex = \"(?i)crash|panic\" } }\n\
        [[select.bucket]]\nname = \"rest\"\n";
    fs_err::write(scratch.join("pdca.toml"), config)?;
    let export = scratch.join("export.csv");
    fs_err::write(&export, csv(args.records))?;
    let line = ["select", "--from-csv", "export.csv", "--limit", "12", "--dry-run"];
    let (mut walls, mut reads, mut peak) = (Vec::new(), Vec::new(), None);
    for _ in 0..args.repeat.max(1) {
        reads.push(read_plainly(&export)?);
        walls.push(pdca(&binary, &line, scratch, MemorySample::NotSampled, &[0])?.wall);
        peak = peak.max(pdca(&binary, &line, scratch, MemorySample::Sampled, &[0])?.peak_kib);
    }
    let size = fs_err::metadata(&export)?.len() >> 20;
    let lines = [
        BenchLine {
            what: format!("select: {} records, {size} MiB", args.records),
            unit: BenchUnit::Milliseconds,
            measured: ms(median(&walls)),
            against: Some(Against {
                what: "a plain read of the file".to_owned(),
                measured: ms(median(&reads)),
            }),
            aim: Some(1000.0),
        },
        memory("select: peak memory", peak),
    ];
    if args.json {
        println!("{:#}", report::json(&lines));
    } else {
        print!("{}", report::table(&lines));
    }
    Ok(())
}

/// Reads a file in chunks and counts its lines.
fn read_plainly(path: &Utf8Path) -> Result<Duration, Stopped> {
    let begun = Instant::now();
    let (mut file, mut chunk, mut lines) = (fs_err::File::open(path)?, vec![0; 64 << 10], 0);
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        lines += chunk[..read].split(|byte| *byte == b'\n').count() - 1;
    }
    std::hint::black_box(lines);
    Ok(begun.elapsed())
}

/// Makes an export as trackers do: long descriptions in quotes, with line ends and doubled quotes.
fn csv(records: u32) -> String {
    let mut text =
        String::from("Id,Summary,Status,Severity,Category,Date Submitted,Updated,Description\r\n");
    let statuses = ["new", "assigned", "feedback", "closed"];
    let severities = ["minor", "major", "crash", "feature", "trivial"];
    for id in 0..records {
        let at = id as usize;
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "{id:07},\"The list, number {id}, {}\",{},{},area {},20{:02}-{:02}-{:02},2026-{:02}-01,\"{}\"\r\n",
            if id % 17 == 0 { "crashes" } else { "is slow" },
            statuses[at % statuses.len()],
            severities[at % severities.len()],
            id % 40,
            10 + id % 17,
            1 + id % 12,
            1 + id % 28,
            1 + id % 11,
            "Steps:\r\n1. open it\r\n2. say \"\"hello\"\", and wait\r\n".repeat(1 + at % 12),
        );
    }
    text
}
