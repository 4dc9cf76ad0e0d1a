//! The limits of a running child: time, silence, processes, memory.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;

use crate::ending::Ending;
use crate::memory::TreeMemory;
use crate::spec::{Spec, Stall};
use crate::tree;

/// Caps durations, so that adding one to an `Instant` cannot overflow.
pub(crate) const LONGEST: Duration = Duration::from_secs(1 << 32);
/// The shortest interval between two counts of processes.
const CENSUS: Duration = Duration::from_millis(50);
/// The longest time a count is put off while the number of processes of the whole system does not grow.
const CENSUS_AT_LEAST: Duration = Duration::from_secs(1);
/// The number of entries of the watched trees that are examined; beyond it a change may go
/// unnoticed. The walk runs in the event loop, which must also notice the end of the child.
const MAX_WATCHED: usize = 200_000;

/// All limits of one child.
///
/// `Instant` counts the running time of the machine, so nothing times out because the machine was suspended.
#[derive(Debug)]
pub(crate) struct ChildLimits {
    timeout: Option<Instant>,
    stall: Option<Quiet>,
    census: Census,
    memory: Option<TreeMemory>,
}

impl ChildLimits {
    pub(crate) fn new(spec: &Spec, now: Instant) -> Self {
        Self {
            timeout: spec.timeout.map(|timeout| now + timeout.min(LONGEST)),
            stall: spec.stall.clone().map(|stall| Quiet::new(stall, now)),
            census: Census::new(spec.max_processes.unwrap_or(Spec::MAX_PROCESSES), now),
            memory: spec.max_memory.map(|cap| TreeMemory::new(cap, now)),
        }
    }

    /// Restarts the stall period.
    pub(crate) fn sign_of_life(&mut self, now: Instant) {
        if let Some(quiet) = &mut self.stall {
            quiet.since = now;
        }
    }

    /// Returns the ending of a child that exceeds one of its limits.
    pub(crate) fn exceeded(&mut self, now: Instant) -> Option<Ending> {
        if self.timeout.is_some_and(|timeout| now >= timeout) {
            return Some(Ending::TimedOut);
        }
        if self.stall.as_mut().is_some_and(|quiet| quiet.exceeded(now)) {
            return Some(Ending::Stalled);
        }
        if let Some(cap) = self.memory.as_mut().and_then(|memory| memory.exceeded(now)) {
            return Some(Ending::OverMemory { cap });
        }
        self.crowded(now)
            .then(|| Ending::Infra { why: format!("more than {} processes", self.census.cap) })
    }

    /// Returns true if the tree has too many processes.
    pub(crate) fn crowded(&mut self, now: Instant) -> bool {
        self.census.exceeded(now)
    }

    /// Returns the time of the next count of processes.
    pub(crate) fn next_census(&self) -> Instant {
        self.census.next
    }

    /// Returns the latest time for the next call of [`exceeded`](Self::exceeded).
    pub(crate) fn next_look(&self) -> Option<Instant> {
        let stall = self.stall.as_ref().map(Quiet::next_look);
        let census = Some(self.census.next);
        let memory = self.memory.as_ref().map(TreeMemory::next_look);
        [self.timeout, stall, census, memory].into_iter().flatten().min()
    }
}

/// The stall limit: the time since the last sign of life.
#[derive(Debug)]
struct Quiet {
    after: Duration,
    watch: Vec<Utf8PathBuf>,
    since: Instant,
    looked: Instant,
    seen: u64,
}

impl Quiet {
    fn new(stall: Stall, now: Instant) -> Self {
        Self {
            after: stall.after.min(LONGEST),
            seen: fingerprint(&stall.watch),
            watch: stall.watch,
            since: now,
            looked: now,
        }
    }

    fn exceeded(&mut self, now: Instant) -> bool {
        if now >= self.next_file_look() {
            self.looked = now;
            let seen = fingerprint(&self.watch);
            if seen != self.seen {
                self.seen = seen;
                self.since = now;
            }
        }
        now >= self.since + self.after
    }

    /// Files are examined four times per period, and not while output shows that the child is alive.
    fn next_file_look(&self) -> Instant {
        self.since.max(self.looked) + self.after / 4
    }

    fn next_look(&self) -> Instant {
        let end = self.since + self.after;
        if self.watch.is_empty() { end } else { end.min(self.next_file_look()) }
    }
}

/// Returns a hash that changes when any file below `roots` appears, vanishes or changes.
fn fingerprint(roots: &[Utf8PathBuf]) -> u64 {
    let mut sum = 0_u64;
    let mut room = MAX_WATCHED;
    let mut open: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
    while let Some(path) = open.pop() {
        let Some(next_room) = room.checked_sub(1) else {
            break;
        };
        room = next_room;
        let Ok(found) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        let mut hasher = DefaultHasher::new();
        (found.dev(), found.ino(), found.size()).hash(&mut hasher);
        (found.mtime(), found.mtime_nsec()).hash(&mut hasher);
        // A program can set the modification time back; the change time is set by the kernel.
        (found.ctime(), found.ctime_nsec()).hash(&mut hasher);
        // A sum does not depend on the order in which entries are listed.
        sum = sum.wrapping_add(hasher.finish());
        if found.is_dir() {
            open.extend(entries(&path));
        }
    }
    sum
}

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.flatten().map(|entry| entry.path())
}

/// Counts the child's processes, but only when there may be many.
///
/// The process table is read only if the number of processes of the whole system grew so much that the child could
/// be the cause, or after [`CENSUS_AT_LEAST`]. Limits of the kernel do not fit: `RLIMIT_NPROC` counts all processes of
/// a user, so one child would be stopped by its neighbours, and a control group needs privileges that the driver
/// rarely has.
#[derive(Debug)]
struct Census {
    cap: u32,
    next: Instant,
    counted: Instant,
    count: u32,
    system: u16,
}

impl Census {
    fn new(cap: u32, now: Instant) -> Self {
        Self { cap, next: now + CENSUS, counted: now, count: 1, system: system_tasks() }
    }

    fn exceeded(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + CENSUS;
        let system = system_tasks();
        // The kernel's counter is 16 bits wide and wraps around; so does the difference.
        let grown = u32::try_from(system.wrapping_sub(self.system).cast_signed()).unwrap_or(0);
        // Half of the distance to the cap, not all of it: processes that end elsewhere meanwhile
        // hide new ones of this tree.
        let near = self.cap.saturating_sub(self.count) / 2;
        if grown <= near && now < self.counted + CENSUS_AT_LEAST {
            return false;
        }
        let found = tree::descendants().len();
        self.count = u32::try_from(found).unwrap_or(u32::MAX);
        self.counted = now;
        self.system = system;
        self.count > self.cap
    }
}

#[cfg(target_os = "linux")]
fn system_tasks() -> u16 {
    rustix::system::sysinfo().procs
}

#[cfg(not(target_os = "linux"))]
fn system_tasks() -> u16 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(watch: &[&Path], after: Duration, now: Instant) -> Quiet {
        let watch = watch
            .iter()
            .map(|path| Utf8PathBuf::from_path_buf(path.to_path_buf()).unwrap())
            .collect();
        Quiet::new(Stall { after, watch }, now)
    }

    #[test]
    fn a_changed_file_deep_in_a_watched_tree_is_a_sign_of_life() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("deep")).unwrap();
        let start = Instant::now();
        let after = Duration::from_secs(100);
        let mut quiet = quiet(&[dir.path()], after, start);
        std::fs::write(dir.path().join("deep/file"), "x").unwrap();
        assert!(!quiet.exceeded(start + after));
        assert!(!quiet.exceeded(start + after + after / 2));
        assert!(quiet.exceeded(start + after * 2));
    }

    #[test]
    fn without_any_sign_the_period_is_exact() {
        let start = Instant::now();
        let mut quiet = quiet(&[], Duration::from_secs(100), start);
        assert_eq!(quiet.next_look(), start + Duration::from_secs(100));
        assert!(!quiet.exceeded(start + Duration::from_secs(99)));
        assert!(quiet.exceeded(start + Duration::from_secs(100)));
    }

    /// Returns the seconds that an instant holds.
    fn seconds(instant: Instant) -> i64 {
        let text = format!("{instant:?}");
        let rest = text.split("tv_sec: ").nth(1).unwrap_or_default();
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_else(|_| panic!("an instant is {text}"))
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_clock_of_every_limit_is_the_one_that_stands_still_in_sleep() {
        use rustix::time::{ClockId, clock_gettime};
        let read = || clock_gettime(ClockId::Monotonic).tv_sec;
        let (before, now, after) = (read(), seconds(Instant::now()), read());
        assert!(before <= now && now <= after, "{before} {now} {after}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn f3_after_hours_of_sleep_no_more_time_has_passed_for_a_limit() {
        use crate::Tool;
        use std::io::Write as _;
        // The other clock is eight hours ahead there, as after a sleep of that length.
        let asleep = ["--map-root-user", "--time", "--boottime", "28800", "--fork"];
        let tried = Tool::new("unshare").args(asleep).arg("true").run();
        if !matches!(&tried, Ok(said) if said.code == 0) {
            let said = "f3: not shown here: this host allows no clock of one's own\n";
            std::io::stderr().write_all(said.as_bytes()).unwrap();
            return;
        }
        let own = std::env::current_exe().unwrap();
        let test = "limit::tests::the_clock_of_every_limit_is_the_one_that_stands_still_in_sleep";
        let said =
            Tool::new("unshare").args(asleep).arg(own).args(["--exact", test]).run().unwrap();
        let out = String::from_utf8_lossy(&said.stdout);
        assert!(said.code == 0 && out.contains("1 passed"), "{out}");
    }
}
