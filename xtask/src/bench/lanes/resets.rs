//! Resetting a lane, beside git doing the same.

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_lanes::{Lane, Lanes, Reset, Target};

use super::Bench;
use crate::{
    Stopped,
    bench::{
        measure::median,
        ms,
        report::{Against, BenchLine, BenchUnit},
    },
    program,
};

/// The number of changed tracked files.
const CHANGED: usize = 20;
/// The number of ignored files that a build left.
const IGNORED: usize = 2_000;
/// The number of files of a commit that is imported.
const IMPORTED: usize = 100;

pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<BenchLine>, Stopped> {
    eprintln!("resets and status");
    let dir = bench.scratch.join("resets");
    fs_err::create_dir(&dir)?;
    let target = Target::open("app", &bench.primary)?;
    let lane = Lanes::new(dir.join("lanes")).claim(0, &target)?;
    lane.reset(&bench.base)?;
    let mut lines = status(lane.path())?;
    let theirs = dir.join("git");
    let clone = ["clone", "-q", "--reference", bench.primary.as_str(), bench.primary.as_str()];
    program::output("git", &[&clone[..], &[theirs.as_str()]].concat(), &dir)?;
    // Its index is as young as its files, so git has to read them once.
    program::output("git", &["status"], &theirs)?;
    let files = tracked(&bench.primary, CHANGED)?;
    let hard = ["reset", "-q", "--hard"];
    lines.push(compare(
        bench,
        "reset after a patch",
        "git reset --hard",
        &Work {
            lane: &lane,
            theirs: &theirs,
            files: &files,
            ignored: 0,
            what: Reset::Tracked,
            commands: &[&hard],
        },
    )?);
    lines.push(compare(
        bench,
        "reset, build caches kept",
        "git reset --hard, clean -fdq",
        &Work {
            lane: &lane,
            theirs: &theirs,
            files: &files,
            ignored: IGNORED,
            what: Reset::Tracked,
            commands: &[&hard, &["clean", "-fdq"]],
        },
    )?);
    lines.push(compare(
        bench,
        "pristine reset",
        "git reset --hard, clean -fdxq",
        &Work {
            lane: &lane,
            theirs: &theirs,
            files: &files,
            ignored: IGNORED,
            what: Reset::Pristine,
            commands: &[&hard, &["clean", "-fdxq"]],
        },
    )?);
    lines.push(import(bench, &lane, &theirs)?);
    Ok(lines)
}

/// Times taking a commit of [`IMPORTED`] files out of a lane, with every object hashed, beside `git fetch`.
fn import(bench: &Bench<'_>, lane: &Lane, theirs: &Utf8Path) -> Result<BenchLine, Stopped> {
    let files = tracked(&bench.primary, IMPORTED)?;
    let (mut ours, mut fetched) = (Vec::new(), Vec::new());
    for round in 0..bench.repeat * 3 {
        lane.reset(&bench.base)?;
        spoil(lane.path(), &files, 0, IMPORTED + round)?;
        program::output("git", &["add", "-A"], lane.path())?;
        program::output("git", &["commit", "-qm", "a change"], lane.path())?;
        fetched.push(timed(|| {
            let from = lane.path().as_str();
            program::output("git", &["fetch", "-q", from, "HEAD"], theirs)?;
            Ok(())
        })?);
        ours.push(timed(|| Ok(lane.import()?))?);
    }
    Ok(BenchLine {
        what: format!("import of {IMPORTED} files"),
        unit: BenchUnit::Milliseconds,
        measured: ms(median(&ours)),
        against: Some(Against { what: "git fetch".to_owned(), measured: ms(median(&fetched)) }),
        aim: Some(15.0),
    })
}

/// The changes to reset in both.
struct Work<'a> {
    lane: &'a Lane,
    theirs: &'a Utf8Path,
    files: &'a [Utf8PathBuf],
    ignored: usize,
    what: Reset,
    commands: &'a [&'a [&'a str]],
}

fn compare(
    bench: &Bench<'_>,
    what: &str,
    rival: &str,
    work: &Work<'_>,
) -> Result<BenchLine, Stopped> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // Short, so repeated more often than the provisioning.
    for round in 0..bench.repeat * 3 {
        for place in [work.lane.path(), work.theirs] {
            spoil(place, work.files, work.ignored, round)?;
        }
        ours.push(timed(|| Ok(work.lane.reset_with(&bench.base, work.what)?))?);
        theirs.push(timed(|| {
            for args in work.commands {
                program::output("git", args, work.theirs)?;
            }
            Ok(())
        })?);
    }
    let theirs = ms(median(&theirs));
    Ok(BenchLine {
        what: what.to_owned(),
        unit: BenchUnit::Milliseconds,
        measured: ms(median(&ours)),
        against: Some(Against { what: rival.to_owned(), measured: theirs }),
        aim: Some(theirs),
    })
}

/// Times the first `git status` in a fresh lane beside the second: equal if no file had to be read.
fn status(lane: &Utf8Path) -> Result<Vec<BenchLine>, Stopped> {
    let mut times = Vec::new();
    for _ in 0..2 {
        times.push(timed(|| {
            let said = program::output("git", &["status", "--porcelain"], lane)?;
            if said.is_empty() { Ok(()) } else { Err("a fresh lane is not clean".into()) }
        })?);
    }
    Ok(vec![BenchLine {
        what: "first git status in a fresh lane".to_owned(),
        unit: BenchUnit::Milliseconds,
        measured: ms(times[0]),
        against: Some(Against { what: "second git status".to_owned(), measured: ms(times[1]) }),
        aim: None,
    }])
}

fn tracked(primary: &Utf8Path, count: usize) -> Result<Vec<Utf8PathBuf>, Stopped> {
    let listed = String::from_utf8(program::output("git", &["ls-files", "-z"], primary)?)?;
    let files: Vec<Utf8PathBuf> = listed.split_terminator('\0').map(Utf8PathBuf::from).collect();
    let step = (files.len() / count).max(1);
    Ok(files.into_iter().step_by(step).take(count).collect())
}

/// Changes tracked files, adds untracked ones, and leaves ignored files.
fn spoil(
    place: &Utf8Path,
    files: &[Utf8PathBuf],
    ignored: usize,
    round: usize,
) -> Result<(), Stopped> {
    for file in files {
        fs_err::write(place.join(file), format!("changed in round {round}\n"))?;
    }
    fs_err::write(place.join("untracked.txt"), "new\n")?;
    let target = place.join("target");
    for number in 0..ignored {
        let dir = target.join((number / 50).to_string());
        fs_err::create_dir_all(&dir)?;
        fs_err::write(dir.join(format!("{number}.o")), [b'x'; 512])?;
    }
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<(), Stopped>) -> Result<Duration, Stopped> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}
