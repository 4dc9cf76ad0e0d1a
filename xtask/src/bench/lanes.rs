//! `cargo xtask bench lanes`: provisioning and resetting beside git and `cp`.
//!
//! Everything is measured in one run on one repository, strategies in turn, medians compared.
//! The floor is the same bytes written from memory by as many threads as there are cores.

mod floor;
mod repository;
mod resets;
mod rivals;

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_lanes::{LaneKind, Lanes, Provision, Target};

use super::{
    measure::median,
    ms, note_load,
    report::{self, Against, BenchLine, BenchUnit},
};
use crate::{Outcome, Stopped};
use floor::Floor;
use rivals::Rival;

/// Measure provisioning and resetting of lanes
///
/// Asserts nothing: the exit code is 0 whatever the numbers are. Meant for a release build:
/// `cargo run --release --package xtask -- bench lanes`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The number of files in the generated repository
    #[arg(long, default_value_t = 80_000)]
    files: u32,
    /// Measure with this repository, which is only read, and generate none
    #[arg(long, value_name = "PATH")]
    repo: Option<Utf8PathBuf>,
    /// The numbers of lanes to provision; 0 for none, to measure the resets alone
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8")]
    lanes: Vec<u32>,
    /// The rivals to measure against, besides the floor; all of them if none is named
    #[arg(long, value_name = "RIVAL", value_delimiter = ',', value_enum)]
    against: Vec<Rival>,
    /// Repeat each measurement this often; the median counts
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// The working directory, on the filesystem to measure; a temporary directory if not given
    #[arg(long, value_name = "DIR")]
    scratch: Option<Utf8PathBuf>,
    /// Print JSON in place of the table
    #[arg(long)]
    json: bool,
}

/// The repository and settings of a measurement.
struct Bench<'a> {
    /// A checkout of our own, so that the given repository is not written.
    primary: Utf8PathBuf,
    scratch: &'a Utf8Path,
    repeat: usize,
    base: String,
    rivals: Vec<Rival>,
}

pub(super) fn run(args: &Args) -> Result<Outcome, Stopped> {
    if cfg!(debug_assertions) {
        eprintln!("note: this is a debug build, which measures the build and not the program");
    }
    note_load();
    let home = match &args.scratch {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir()?,
    };
    let scratch = Utf8Path::from_path(home.path()).ok_or("the scratch directory is not UTF-8")?;
    let primary = scratch.join("primary");
    match &args.repo {
        Some(repo) => repository::copy(&repo.canonicalize_utf8()?, &primary)?,
        None => repository::generate(&primary, args.files)?,
    }
    let base = Target::open("app", &primary)?.resolve(None)?.commit;
    let is_asked = |rival: &Rival| args.against.is_empty() || args.against.contains(rival);
    let rivals = Rival::ALL.into_iter().filter(is_asked).collect();
    let bench = Bench { primary, scratch, repeat: args.repeat.max(1), base, rivals };
    let floor = Floor::load(&bench.primary)?;
    eprintln!("{} files, {} MiB", floor.files(), floor.bytes() >> 20);
    let mut lines = Vec::new();
    for count in args.lanes.iter().filter(|count| **count > 0) {
        lines.extend(bench.provisioning(*count, &floor, floor.files() > 40_000)?);
    }
    lines.extend(resets::measure(&bench)?);
    if args.json {
        println!("{:#}", report::json(&lines));
    } else {
        print!("{}", report::table(&lines));
    }
    Ok(Outcome::Passed)
}

impl Bench<'_> {
    /// Compares ours with every rival, for one number of lanes.
    fn provisioning(
        &self,
        count: u32,
        floor: &Floor,
        large: bool,
    ) -> Result<Vec<BenchLine>, Stopped> {
        let mut ours = [Vec::new(), Vec::new()];
        let mut theirs = vec![Vec::new(); self.rivals.len()];
        let mut least = Vec::new();
        for round in 1..=self.repeat {
            eprintln!("{count} lanes, round {round} of {}", self.repeat);
            for (times, kind) in ours.iter_mut().zip([LaneKind::Reference, LaneKind::Worktree]) {
                let name = format!("provision, {kind:?}").to_lowercase();
                times.push(self.timed(&name, |dir| self.provision(dir, count, kind))?);
            }
            least.push(self.timed("the floor", |dir| floor.write(dir, count))?);
            for (times, rival) in theirs.iter_mut().zip(&self.rivals) {
                times.push(self.timed(rival.name(), |dir| rival.run(&self.primary, dir, count))?);
                Rival::clear(&self.primary)?;
            }
        }
        let ours = ours.map(|times| ms(median(&times)));
        let line =
            |what: &str, measured: f64, rival: &str, theirs: f64, aim: Option<f64>| BenchLine {
                what: format!("{count} lanes: {what}"),
                unit: BenchUnit::Milliseconds,
                measured,
                against: Some(Against { what: rival.to_owned(), measured: theirs }),
                aim: aim.map(|aim| theirs * aim),
            };
        let mut lines = Vec::new();
        for (rival, times) in self.rivals.iter().zip(&theirs) {
            let aim = rival.aim(count, large);
            lines.push(line("provision", ours[0], rival.name(), ms(median(times)), aim));
        }
        let least = ms(median(&least));
        let aim = (count >= 4).then_some(1.2);
        lines.push(line("provision", ours[0], "the floor", least, aim));
        lines.push(line("as worktrees", ours[1], "the floor", least, None));
        Ok(lines)
    }

    fn provision(&self, dir: &Utf8Path, count: u32, kind: LaneKind) -> Result<(), Stopped> {
        let target = Target::open("app", &self.primary)?;
        let request = Provision::new(0..count, &target, &self.base).with_kind(kind);
        Lanes::new(dir.join("lanes")).provision(&request, &|_| {})?;
        Ok(())
    }

    /// Times the work in a fresh directory, which is removed afterwards.
    ///
    /// Pending writes of earlier work are synced first, so that they do not count here. Each time is
    /// printed at once, because everything takes long on a slow disk.
    fn timed(
        &self,
        name: &str,
        work: impl FnOnce(&Utf8Path) -> Result<(), Stopped>,
    ) -> Result<Duration, Stopped> {
        let dir = self.scratch.join("work");
        fs_err::create_dir(&dir)?;
        rustix::fs::syncfs(fs_err::File::open(&dir)?)?;
        let start = Instant::now();
        work(&dir)?;
        let took = start.elapsed();
        eprintln!("  {:>9.0} ms  {name}", ms(took));
        fs_err::remove_dir_all(&dir)?;
        Ok(took)
    }
}
