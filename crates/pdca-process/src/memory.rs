//! The memory cap of a process tree, sampled by its supervisor.
//!
//! Only anonymous pages count: not mapped files, which the kernel reclaims when memory is short, and not address space
//! that is reserved but never touched. Pages shared after a fork count once: as soon as the plain sum exceeds the cap,
//! the proportional sum is read.
//!
//! This is a sample, not an enforced limit: between two samples a tree can exceed its cap by as much as it can touch in
//! that time. The limits of the system do not fit. `RLIMIT_AS` bounds the address space of each process by itself: it
//! ends programs that reserve much and use little, puts no bound on a tree of many processes, and a program that
//! meets it fails with an error of its own. A control group with a memory controller needs privileges that a driver
//! rarely has.

use std::time::{Duration, Instant};

use crate::tree;

/// The shortest interval between two checks whether a sample is due.
const PULSE: Duration = Duration::from_millis(50);
/// The longest time a sample is put off while the free memory of the machine does not shrink.
const LOOK_AT_LEAST: Duration = Duration::from_millis(250);

/// A cap, and the last sample of the tree.
#[derive(Debug)]
pub(crate) struct TreeMemory {
    cap: u64,
    next: Instant,
    looked: Instant,
    used: u64,
    /// The memory available on the machine at the last sample.
    available: Option<u64>,
}

impl TreeMemory {
    pub(crate) fn new(cap: u64, now: Instant) -> Self {
        Self { cap, next: now, looked: now, used: 0, available: available_memory() }
    }

    /// Returns the latest time for the next call of [`exceeded`](Self::exceeded).
    pub(crate) fn next_look(&self) -> Instant {
        self.next
    }

    /// Returns the cap if the tree uses more.
    pub(crate) fn exceeded(&mut self, now: Instant) -> Option<u64> {
        if now < self.next {
            return None;
        }
        self.next = now + PULSE;
        let left = available_memory();
        let shrunk = self.available.zip(left).map(|(then, now)| then.saturating_sub(now));
        // Half of the distance to the cap, not all of it: memory that other processes free
        // meanwhile hides what this tree takes.
        let near = self.cap.saturating_sub(self.used) / 2;
        if shrunk.is_some_and(|shrunk| shrunk <= near) && now < self.looked + LOOK_AT_LEAST {
            return None;
        }
        (self.looked, self.available) = (now, left);
        let tree = tree::descendants();
        let sum = |of: fn(i32) -> Option<u64>| -> u64 {
            tree.iter().filter_map(|process| of(process.pid)).sum()
        };
        self.used = sum(anonymous);
        // The proportional figure is exact but costs a walk over each process's mappings, so it is only read here.
        if self.used > self.cap {
            // The plain figure stands in for a process whose mappings this one may not read.
            self.used = sum(|pid| proportional(pid).or_else(|| anonymous(pid)));
        }
        (self.used > self.cap).then_some(self.cap)
    }
}

/// Checks that the memory of a process can be read on this host; the error names what is missing.
pub fn memory_support() -> Result<(), String> {
    let own = rustix::process::getpid().as_raw_pid();
    match anonymous(own) {
        Some(_) => Ok(()),
        None => Err(format!("/proc/{own}/status has no RssAnon line")),
    }
}

/// Returns the anonymous pages of a process in bytes, including those it shares with a fork.
fn anonymous(pid: i32) -> Option<u64> {
    field(&format!("/proc/{pid}/status"), "RssAnon:")
}

/// Returns the same with shared pages divided by the number of processes that share them.
fn proportional(pid: i32) -> Option<u64> {
    field(&format!("/proc/{pid}/smaps_rollup"), "Pss_Anon:")
}

/// Returns the bytes of memory that can be used without swapping; `None` if the system does not say.
pub fn available_memory() -> Option<u64> {
    field("/proc/meminfo", "MemAvailable:")
}

/// Reads a line like `RssAnon:  12 kB` of a file, in bytes; `None` if the process is gone.
fn field(file: &str, name: &str) -> Option<u64> {
    value(&fs_err::read_to_string(file).ok()?, name)
}

fn value(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_is_read_in_bytes() {
        let text = "VmRSS:\t  9 kB\nRssAnon:\t     120 kB\nRssFile:\t 7 kB\n";
        assert_eq!(value(text, "RssAnon:"), Some(120 * 1024));
        assert_eq!(value(text, "RssShmem:"), None);
        assert_eq!(value("RssAnon: many kB\n", "RssAnon:"), None);
    }

    #[test]
    fn what_this_process_has_can_be_seen_and_grows_with_what_it_takes() {
        memory_support().unwrap();
        let own = rustix::process::getpid().as_raw_pid();
        let before = anonymous(own).unwrap();
        let taken = vec![1_u8; 64 << 20];
        let after = anonymous(own).unwrap();
        assert!(after >= before + (48 << 20), "{before} {after} {}", taken.len());
        assert!(proportional(own).is_some());
    }
}
