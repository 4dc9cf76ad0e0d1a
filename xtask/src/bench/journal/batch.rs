//! A batch with one-second gates, beside plain loops of the same sleeps.

use std::time::{Duration, Instant};

use camino::Utf8Path;

use super::Args;
use crate::bench::measure::{MemorySample, median};
use crate::bench::report::{Against, BenchLine, BenchUnit};
use crate::bench::{bundles, ms, pdca, require_all_awaiting_signoff};
use crate::{Stopped, program};

/// The aim for the driver's cost beside the gates: 5 %.
const SHARE: f64 = 1.05;

/// Measures whole batches of the binary, each beside as many shells as there are lanes, which only
/// sleep one after the other, and beside the longest chain of the sleeps.
pub(super) fn measure(args: &Args, binary: &Utf8Path) -> Result<Vec<BenchLine>, Stopped> {
    let (lanes, gates) = (args.lanes.max(1), args.gates);
    let rounds = args.batch.div_ceil(lanes);
    // The gates run over the base once, before the first lane gets a bundle.
    let sleeps = (rounds + 1) * gates;
    let ideal = Duration::from_secs(u64::from(sleeps));
    eprintln!(
        "a batch of {} bundles with {gates} gates of 1 s each on {lanes} lanes, {} times",
        args.batch, args.batches
    );
    let (mut loops, mut runs) = (Vec::new(), Vec::new());
    for _ in 0..args.batches.max(1) {
        let scratch = tempfile::tempdir()?;
        let dir =
            Utf8Path::from_path(scratch.path()).ok_or("the temporary directory is not UTF-8")?;
        loops.push(plain_loops(lanes, sleeps, dir)?);
        runs.push(batch(args, binary, dir)?);
    }
    let (plain, ran) = (ms(median(&loops)), ms(median(&runs)));
    let line = |what: String, measured: f64, against: (&str, f64)| BenchLine {
        what: format!("batch of 1-second gates: {what}"),
        unit: BenchUnit::Milliseconds,
        measured,
        against: Some(Against { what: against.0.to_owned(), measured: against.1 }),
        aim: Some(SHARE * against.1),
    };
    let beyond = BenchLine {
        against: None,
        aim: Some((SHARE - 1.0) * 1000.0),
        ..line("wall time beyond the loops, per gate".to_owned(), 0.0, ("", 0.0))
    };
    Ok(vec![
        line("wall time".to_owned(), ran, ("plain loops of sleep 1", plain)),
        line("wall time".to_owned(), ran, ("the longest chain of sleeps", ms(ideal))),
        BenchLine { measured: (ran - plain) / f64::from(sleeps.max(1)), ..beyond },
    ])
}

/// Runs as many shells as lanes, each with its share of the sleeps.
fn plain_loops(lanes: u32, sleeps: u32, dir: &Utf8Path) -> Result<Duration, Stopped> {
    let script = format!("i=0; while [ $i -lt {sleeps} ]; do sleep 1; i=$((i+1)); done");
    let begun = Instant::now();
    let children: Vec<_> = (0..lanes)
        .map(|_| program::command("sh", &["-c", &script], dir).spawn())
        .collect::<Result<_, _>>()?;
    for mut child in children {
        child.wait()?;
    }
    Ok(begun.elapsed())
}

/// Runs the real batch: lanes, patches, gates, reviews and summaries.
fn batch(args: &Args, binary: &Utf8Path, dir: &Utf8Path) -> Result<Duration, Stopped> {
    let (app, workspace) = (dir.join("app"), dir.join("ws"));
    fs_err::create_dir_all(&app)?;
    let git = |args: &[&str]| program::output("git", args, &app);
    git(&["init", "--quiet", "--initial-branch=main"])?;
    fs_err::write(app.join("part.rs"), "0\n")?;
    git(&["add", "--all"])?;
    let who = ["-c", "user.name=bench", "-c", "user.email=bench@bench.invalid"];
    git(&[&who[..], &["commit", "--quiet", "--message", "first"]].concat())?;
    let results = workspace.join("results");
    fs_err::create_dir_all(&results)?;
    fs_err::write(workspace.join("pdca.toml"), config(args.gates))?;
    bundles::write_planned(&results, args.batch)?;
    let lanes = args.lanes.max(1).to_string();
    let ran =
        pdca(binary, &["batch", "--lanes", &lanes], &workspace, MemorySample::NotSampled, &[0, 3])?;
    require_all_awaiting_signoff(&results, args.batch)?;
    Ok(ran.wall)
}

fn config(gates: u32) -> String {
    let gate = |number: u32| {
        format!(
            "[[gates.checks]]\nid = \"C4-sleep-{number}\"\ntier = \"C4\"\ncmd = \"sleep 1\"\n\n"
        )
    };
    let head = "[[targets]]\nname = \"app\"\npath = \"../app\"\nbranch = \"main\"\n\n\
         [leaves.builder]\nmode = \"command\"\nprompt_via = \"none\"\n\
         argv = [\"sh\", \"-c\", \"echo changed > file-{id}.txt\"]\n\n";
    head.to_owned() + &(1..=gates).map(gate).collect::<String>()
}
