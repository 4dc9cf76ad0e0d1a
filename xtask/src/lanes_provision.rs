//! `cargo xtask lanes-provision`: private checkouts of any repository, without a workspace.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, Write as _},
    sync::{Mutex, PoisonError},
};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::{LaneCount, LaneNeeds, RunLimits};
use pdca_lanes::{
    LaneKind, Lanes, MOST_PORT_BLOCKS, PortRange, Provision, ProvisionEvent, Provisioned, Target,
};

use crate::{Outcome, Stopped};

/// Set up private checkouts of a repository
///
/// Those that are there already are left as they are; asking again completes what was interrupted.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The number of lanes, or `auto` for what the machine allows
    #[arg(long, value_name = "N|auto", allow_negative_numbers = true)]
    lanes: LaneCount,
    /// The repository: a checkout, a linked worktree or a bare repository
    #[arg(long, value_name = "PATH")]
    repo: Utf8PathBuf,
    /// Repositories of their own that borrow objects, or linked worktrees
    #[arg(long, default_value = "reference")]
    kind: KindArg,
    /// The directory of the lanes; `<repo>.lanes` beside the repository if not given
    #[arg(long, value_name = "DIR")]
    root: Option<Utf8PathBuf>,
    /// The branch, full ref or full commit id to check out; HEAD's branch if not given
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// Print JSON in place of a line per lane
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Debug, Clone, Copy)]
enum KindArg {
    Reference,
    Worktree,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Stopped> {
    let repo = args.repo.canonicalize_utf8()?;
    let name = repo.file_name().unwrap_or("target").trim_start_matches(['.', '-']).to_owned();
    let target = Target::open(&name, &repo)?;
    let base = match &args.base {
        Some(id) if is_commit_id(id) => id.to_lowercase(),
        branch => target.resolve(branch.as_deref())?.commit,
    };
    let root = match &args.root {
        Some(root) => camino::absolute_utf8(root)?,
        None => beside(&repo),
    };
    let kind = match args.kind {
        KindArg::Reference => LaneKind::Reference,
        KindArg::Worktree => LaneKind::Worktree,
    };
    for note in target.notes() {
        eprintln!("note: {note}");
    }
    let count = count(args.lanes, &target, &base, &root);
    let request = Provision::new(0..count, &target, &base).with_kind(kind);
    let progress = Progress::default();
    let lanes = Lanes::new(root).provision(&request, &|event| progress.show(event))?;
    if args.json {
        let value = serde_json::json!({"schema": 1, "kind": "lanes", "lanes": lanes});
        println!("{value:#}");
    } else {
        for lane in &lanes {
            println!("{}", line(lane));
        }
    }
    Ok(Outcome::Passed)
}

/// Returns the number of lanes, and prints the meaning of 0 and `auto`.
fn count(asked: LaneCount, target: &Target, base: &str, root: &Utf8Path) -> u32 {
    match asked {
        LaneCount::Number(0) => {
            eprintln!("note: --lanes 0: there is no work without a lane, so 1 is taken");
            1
        }
        LaneCount::Number(number) if number > MOST_PORT_BLOCKS => {
            eprintln!(
                "warning: there are ports for {MOST_PORT_BLOCKS} lanes: {MOST_PORT_BLOCKS} of {number}"
            );
            MOST_PORT_BLOCKS
        }
        LaneCount::Number(number) => number,
        LaneCount::Auto => {
            let limits = RunLimits::default();
            let needs = LaneNeeds {
                min_free: limits.min_free,
                lane_memory: limits.lane_memory,
                checkout: target.checkout_size(base).ok(),
                ports: PortRange::default(),
            };
            let reckoning = needs.reckon([root]);
            eprintln!("{reckoning}");
            reckoning.lanes.get()
        }
    }
}

/// Returns whether a text is an object id, of either length.
fn is_commit_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn beside(repo: &Utf8Path) -> Utf8PathBuf {
    let name = repo.file_name().unwrap_or("repository");
    repo.with_file_name(format!("{name}.lanes"))
}

fn line(lane: &Provisioned) -> String {
    let how = if lane.made { "made" } else { "there" };
    let short = lane.base.get(..12).unwrap_or(&lane.base);
    format!("lane {} {how} at {short} {}", lane.slot, lane.path)
}

/// Prints the progress of each lane on standard error.
#[derive(Default)]
struct Progress {
    /// The last reported tenth of each lane.
    told: Mutex<BTreeMap<u32, usize>>,
}

impl Progress {
    fn show(&self, event: ProvisionEvent) {
        let text = match event {
            ProvisionEvent::Waiting { slot, holder: Some(pid) } => {
                format!("lane {slot}: process {pid} is making it")
            }
            ProvisionEvent::Waiting { slot, holder: None } => {
                format!("lane {slot}: another process is making it")
            }
            ProvisionEvent::Making { slot } => format!("lane {slot}: making it"),
            ProvisionEvent::Files { slot, done, total } => {
                if !self.is_news(slot, done, total) {
                    return;
                }
                format!("lane {slot}: {done} of {total} files")
            }
            ProvisionEvent::Ready(lane) => format!("lane {}: ready", lane.slot),
        };
        let mut out = std::io::stderr().lock();
        // One line each also on a terminal, because lanes interleave.
        let dim = if out.is_terminal() { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        // A closed standard error must not stop the work.
        drop(writeln!(out, "{}{text}{}", dim.0, dim.1));
    }

    /// Returns whether another tenth is done.
    fn is_news(&self, slot: u32, done: usize, total: usize) -> bool {
        let tenth = done * 10 / total.max(1);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // Threads overtake one another, so an earlier tenth may arrive later.
        let news = told.get(&slot).is_none_or(|before| *before < tenth);
        if news {
            told.insert(slot, tenth);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_checkouts_are_made_as_are_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let repo = Utf8Path::from_path(dir.path()).unwrap().join("app");
        fs_err::create_dir(&repo).unwrap();
        let git = |args: &[&str]| crate::program::output("git", args, &repo).unwrap();
        git(&["init", "--quiet", "--initial-branch=main"]);
        fs_err::write(repo.join("a.txt"), "a\n").unwrap();
        git(&["add", "a.txt"]);
        git(&["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "first"]);
        let args = Args {
            lanes: "3".parse().unwrap(),
            repo: repo.clone(),
            kind: KindArg::Reference,
            root: None,
            base: None,
            json: false,
        };
        assert_eq!(run(&args).unwrap(), Outcome::Passed);
        for lane in 0..3 {
            let file = beside(&repo).join(format!("lane-{lane}/app/a.txt"));
            assert_eq!(fs_err::read_to_string(file).unwrap(), "a\n");
        }
        assert!(!beside(&repo).join("lane-3").exists());
    }

    #[test]
    fn lanes_lie_beside_the_repository() {
        assert_eq!(beside(Utf8Path::new("/srv/app")), "/srv/app.lanes");
    }

    #[test]
    fn progress_is_told_by_tenths() {
        let progress = Progress::default();
        let news: Vec<usize> = (0..=100).filter(|done| progress.is_news(0, *done, 100)).collect();
        assert_eq!(news, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
    }
}
