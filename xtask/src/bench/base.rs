//! `cargo xtask bench base`: the cost of folding sealed changes onto a tip.
//!
//! This happens before each attempt that stands on others, so it has to be cheap. Every repetition
//! has its own repository, which borrows the objects it starts from, so that objects of one repetition
//! do not help the next. The rival is a script with one `git merge-tree` and
//! one `git commit-tree` per change.
//!
//! The second line of each size is the case of a batch: all but the last change were folded before, for
//! the previous attempt.

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::{Drivers, FoldPlan, MergeEngine, PlanEntry, Recorded, Store, Strategy, fold};

use super::integrate::target::BenchTarget;
use super::measure::median;
use super::ms;
use super::report::{self, Against, BenchLine, BenchUnit};
use crate::{Outcome, Stopped, program};

/// Measure the cost of folding pending changes onto a tip in a large repository
///
/// Asserts nothing: the exit code is 0 whatever the numbers are.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The number of files in the repository
    #[arg(long, default_value_t = 18_000)]
    files: usize,
    /// The numbers of changes to fold, one measurement each
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 50])]
    changes: Vec<usize>,
    /// Repeat each measurement this often; the median counts
    #[arg(long, default_value_t = 7)]
    repeat: usize,
    /// The same for the scripts beside it
    #[arg(long, default_value_t = 3)]
    rivals: usize,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Stopped> {
    let home = tempfile::tempdir()?;
    let home = Utf8Path::from_path(home.path()).ok_or("the temporary directory is not UTF-8")?;
    eprintln!("making a repository of {} files", args.files);
    let most = args.changes.iter().copied().max().unwrap_or_default();
    let target = BenchTarget::new(home, args.files, most)?;
    super::note_load();
    let mut scratch = Scratch { home, of: target.store.path().to_owned(), next: 0 };
    let mut lines = Vec::new();
    for &count in &args.changes {
        let ours = repeated(args.repeat, || folded(&mut scratch, &target, count, 0))?;
        let next = repeated(args.repeat, || folded(&mut scratch, &target, count, count - 1))?;
        let theirs = repeated(args.rivals, || merged(&mut scratch, &target, count))?;
        lines.push(BenchLine {
            what: format!("fold of {count} onto a tip"),
            unit: BenchUnit::Milliseconds,
            measured: ms(ours),
            against: Some(Against {
                what: "git merge-tree for each".to_owned(),
                measured: ms(theirs),
            }),
            aim: (count == 50).then_some(20.0),
        });
        lines.push(BenchLine {
            what: format!("the same after a fold of {}", count - 1),
            unit: BenchUnit::Milliseconds,
            measured: ms(next),
            against: None,
            aim: (count == 50).then_some(20.0),
        });
    }
    print!("{}", report::table(&lines));
    Ok(Outcome::Passed)
}

/// Repositories that borrow objects from one.
struct Scratch<'a> {
    home: &'a Utf8Path,
    of: Utf8PathBuf,
    next: u32,
}

impl Scratch<'_> {
    fn repository(&mut self) -> Result<Utf8PathBuf, Stopped> {
        self.next += 1;
        let path = self.home.join(format!("scratch-{}.git", self.next));
        let args = ["clone", "--quiet", "--bare", "--shared", self.of.as_str(), path.as_str()];
        program::output("git", &args, self.home)?;
        // An existing repository already has these directories.
        for first in 0..=u8::MAX {
            fs_err::create_dir_all(path.join(format!("objects/{first:02x}")))?;
        }
        Ok(path)
    }
}

/// Folds `count` changes, after another process folded the first `before`.
fn folded(
    scratch: &mut Scratch<'_>,
    target: &BenchTarget,
    count: usize,
    before: usize,
) -> Result<Duration, Stopped> {
    let path = scratch.repository()?;
    if before > 0 {
        fold_once(&path, scratch.home, target, before)?;
    }
    fold_once(&path, scratch.home, target, count)
}

fn fold_once(
    path: &Utf8Path,
    home: &Utf8Path,
    target: &BenchTarget,
    count: usize,
) -> Result<Duration, Stopped> {
    let entries = target.sealed.iter().take(count).cloned();
    let entries = entries.map(|sealed| PlanEntry::new(sealed, []));
    let plan = FoldPlan::new(target.base, Strategy::RebaseFf, entries)?;
    // Opening the repository is part of the measurement.
    let start = Instant::now();
    let store = Store::open(path, &home.join("room"))?;
    let mut engine = MergeEngine::new(&store, Drivers::default());
    let folded = fold(&mut engine, &plan, &Recorded::default(), &mut |_| Ok(()))?;
    let took = start.elapsed();
    if folded.candidate().bundles().count() != count {
        return Err("a change did not fold".into());
    }
    if engine.asked_git() > 0 {
        eprintln!("git was asked for {} of {count} merges", engine.asked_git());
    }
    Ok(took)
}

fn merged(
    scratch: &mut Scratch<'_>,
    target: &BenchTarget,
    count: usize,
) -> Result<Duration, Stopped> {
    let path = scratch.repository()?;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).map(|text| text.trim().to_owned());
    let base = target.base.to_string();
    let mut tip = base.clone();
    let who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
    let start = Instant::now();
    for sealed in target.sealed.iter().take(count) {
        // Every change has the same base, so it is the merge base.
        let head = sealed.record().head.to_string();
        let merge = ["merge-tree", "--write-tree", &tip, &head];
        let tree = text(program::output("git", &merge, &path)?)?;
        let commit = ["commit-tree", "-m", "picked", "-p", &tip, &tree];
        tip = text(program::output("git", &[&who[..], &commit[..]].concat(), &path)?)?;
    }
    Ok(start.elapsed())
}

fn repeated(
    times: usize,
    mut act: impl FnMut() -> Result<Duration, Stopped>,
) -> Result<Duration, Stopped> {
    let taken: Result<Vec<Duration>, Stopped> = (0..times.max(1)).map(|_| act()).collect();
    Ok(median(&taken?))
}
