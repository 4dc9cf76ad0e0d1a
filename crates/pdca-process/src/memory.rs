//! How much memory a tree has, looked at again and again by its supervisor.
//!
//! What is counted is what the tree has for itself (anonymous pages): not files it maps, which the
//! kernel takes back when memory is short, and not address space that is reserved and never touched.
//! Pages that a fork shares count once: as soon as the plain sum is over the cap, the proportional
//! one is asked for.
//!
//! It is a look, not a wall: between two looks a tree can go beyond its cap, by as much as it can
//! touch in that time. The walls that a system has do not fit. `RLIMIT_AS` bounds the address space
//! of each process by itself: it ends programs that reserve much and use little, lets a tree of many
//! processes have any amount, and the program that meets it fails in its own words. A control group
//! with a memory controller takes rights that a driver rarely has.

use std::time::{Duration, Instant};

use crate::tree;

/// How often it is asked whether a look is due.
const PULSE: Duration = Duration::from_millis(50);
/// How long a look may be put off while the machine's memory does not shrink.
const LOOK_AT_LEAST: Duration = Duration::from_millis(250);

/// A cap, and what was seen of the tree.
#[derive(Debug)]
pub(crate) struct Memory {
    cap: u64,
    next: Instant,
    looked: Instant,
    used: u64,
    /// What the machine had available at the last look.
    available: Option<u64>,
}

impl Memory {
    pub(crate) fn new(cap: u64, now: Instant) -> Self {
        Self { cap, next: now, looked: now, used: 0, available: available() }
    }

    /// When to ask again at the latest.
    pub(crate) fn next_look(&self) -> Instant {
        self.next
    }

    /// The cap, where the tree has more.
    pub(crate) fn exceeded(&mut self, now: Instant) -> Option<u64> {
        if now < self.next {
            return None;
        }
        self.next = now + PULSE;
        let left = available();
        let shrunk = self.available.zip(left).map(|(then, now)| then.saturating_sub(now));
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
        if self.used > self.cap {
            self.used = sum(|pid| proportional(pid).or_else(|| anonymous(pid)));
        }
        (self.used > self.cap).then_some(self.cap)
    }
}

/// Whether the memory of a tree can be seen on this host, and why not.
pub fn memory_support() -> Result<(), String> {
    let own = rustix::process::getpid().as_raw_pid();
    match anonymous(own) {
        Some(_) => Ok(()),
        None => Err(format!("/proc/{own}/status does not say RssAnon")),
    }
}

/// The pages that a process has for itself or shares with a fork, in bytes.
fn anonymous(pid: i32) -> Option<u64> {
    field(&format!("/proc/{pid}/status"), "RssAnon:")
}

/// The same with shared pages divided among those who share them.
fn proportional(pid: i32) -> Option<u64> {
    field(&format!("/proc/{pid}/smaps_rollup"), "Pss_Anon:")
}

/// What the kernel says the machine has left.
fn available() -> Option<u64> {
    field("/proc/meminfo", "MemAvailable:")
}

/// A line like `RssAnon:  12 kB` of a file, in bytes. Who is gone has none.
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
