//! The processes below a process: finding and signalling them.
//!
//! A supervisor is a *subreaper*: orphaned descendants become its own children. So descendants are found by following
//! parents through the process table, whatever they did to their group, session or descriptors, and once the
//! supervisor has no child left, no descendant is alive.
//!
//! Without a readable process table (on any system but Linux) nothing is found here, and only the child's process group
//! is ended.

use std::collections::{BTreeSet, HashMap};

use rustix::process::{Pid, Signal, kill_process_group};

/// One entry of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// The start time in ticks since boot; it tells apart two processes with the same id.
    pub(crate) start: u64,
    /// True for a zombie, which has ended and waits to be collected.
    pub(crate) ended: bool,
}

impl ProcessEntry {
    /// Stands for a child that leads its own group and whose entry cannot be read.
    pub(crate) fn unseen(pid: i32) -> Self {
        Self {
            pid,
            parent: rustix::process::getpid().as_raw_pid(),
            group: pid,
            session: 0,
            start: 0,
            ended: false,
        }
    }
}

/// Returns the living processes below `root` in `table`, without `root` itself.
pub(crate) fn below(table: &[ProcessEntry], root: i32) -> Vec<ProcessEntry> {
    below_any(table, [root].into())
}

/// Returns the living processes below any of `roots` in `table`, without the roots themselves.
pub(crate) fn below_any(table: &[ProcessEntry], roots: BTreeSet<i32>) -> Vec<ProcessEntry> {
    let mut children: HashMap<i32, Vec<&ProcessEntry>> = HashMap::new();
    for process in table {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut known = roots.clone();
    let mut open: Vec<i32> = roots.into_iter().collect();
    while let Some(parent) = open.pop() {
        for process in children.get(&parent).into_iter().flatten() {
            if known.insert(process.pid) {
                open.push(process.pid);
                found.push(**process);
            }
        }
    }
    // Removed only now: the living descendants of a zombie that is not collected yet are found
    // through it.
    found.retain(|process| !process.ended);
    found
}

/// Returns the living descendants of this process.
pub(crate) fn descendants() -> Vec<ProcessEntry> {
    below(&table(), rustix::process::getpid().as_raw_pid())
}

/// Sends `SIGTERM` to each of `processes` once: many programs treat a second one as urgent.
pub(crate) fn terminate_all(processes: &[ProcessEntry]) {
    for process in processes {
        send(process, Signal::TERM);
        // A stopped process handles the request only after it continues.
        send(process, Signal::CONT);
    }
}

/// Sends `signal` to all of `processes` and to their process groups: a group gets a signal atomically and cannot
/// escape it by forking.
///
/// Our own group is left out: the supervisor itself is in it, and in an interactive run without a
/// lent terminal the driver as well.
fn signal_all(processes: &[ProcessEntry], signal: Signal) {
    let own = rustix::process::getpgrp().as_raw_pid();
    let groups: BTreeSet<i32> = processes
        .iter()
        .map(|process| process.group)
        // `kill` with group 0 or 1 means this group or every process that we may signal.
        .filter(|group| *group > 1 && *group != own)
        .collect();
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        // Fails if the group is gone, or if we may not signal it; the latter is reported as a survivor.
        let _gone = kill_process_group(group, signal);
    }
    for process in processes {
        send(process, signal);
    }
}

/// Kills all of `processes`. If they are `multiplying`, they are stopped first, until `find` returns no new one:
/// a stopped process cannot fork.
pub(crate) fn kill_all(
    processes: Vec<ProcessEntry>,
    multiplying: bool,
    find: impl Fn() -> Vec<ProcessEntry>,
) {
    // A bound, so that a tree that forks faster than the table is read does not keep this loop; the
    // caller tries again.
    const PASSES: usize = 8;
    let mut processes = processes;
    if multiplying {
        let mut stopped = BTreeSet::new();
        for _ in 0..PASSES {
            let fresh: Vec<ProcessEntry> = processes
                .iter()
                // The start time belongs to the key: in a tree that forks fast, an id can be used
                // again meanwhile.
                .filter(|process| stopped.insert((process.pid, process.start)))
                .copied()
                .collect();
            if fresh.is_empty() {
                break;
            }
            signal_all(&fresh, Signal::STOP);
            processes = find();
        }
    }
    signal_all(&processes, Signal::KILL);
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{become_subreaper, own_start, send, table};

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::io::Read as _;

    use rustix::process::{
        Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal, set_child_subreaper,
    };

    use super::ProcessEntry;

    /// Longer than any `stat` line: a list of numbers and a name of at most 64 bytes.
    const LINE: usize = 2048;

    /// Makes orphaned descendants of this process its own children.
    pub(crate) fn become_subreaper() -> io::Result<()> {
        Ok(set_child_subreaper(Some(rustix::process::getpid()))?)
    }

    /// Returns the process table, as far as it is visible.
    pub(crate) fn table() -> Vec<ProcessEntry> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let mut line = [0; LINE];
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter_map(|pid| look(pid, &mut line))
            .collect()
    }

    /// Returns the start time of this process.
    pub(crate) fn own_start() -> u64 {
        let pid = rustix::process::getpid().as_raw_pid();
        look(pid, &mut [0; LINE]).map_or(0, |process| process.start)
    }

    /// Sends `signal` to `process`, unless its id belongs to another process by now.
    pub(crate) fn send(process: &ProcessEntry, signal: Signal) {
        let Some(pid) = Pid::from_raw(process.pid) else {
            return;
        };
        // Fails if the process is gone, or if we may not signal it; the latter is reported as a survivor.
        let _sent = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => {
                // Compared after the descriptor was opened: from then on the descriptor names this
                // process only. A start of 0 is a child of ours that is not collected, whose id
                // cannot be used again.
                let same = process.start == 0
                    || look(process.pid, &mut [0; LINE])
                        .is_some_and(|now| now.start == process.start);
                if same { pidfd_send_signal(&handle, signal) } else { Ok(()) }
            }
            // The kernel has no pidfds, or no descriptor is left.
            Err(_) => kill_process(pid, signal),
        };
    }

    fn look(pid: i32, line: &mut [u8; LINE]) -> Option<ProcessEntry> {
        let mut file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
        // The kernel generates the line on reading and returns it in one read.
        let read = file.read(line).ok()?;
        parse(pid, &line[..read])
    }

    /// Parses one `stat` line. The name in parentheses may itself contain parentheses, so it ends at the last one.
    pub(super) fn parse(pid: i32, line: &[u8]) -> Option<ProcessEntry> {
        let after_name = line.iter().rposition(|byte| *byte == b')')? + 1;
        let mut fields = std::str::from_utf8(&line[after_name..]).ok()?.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        // Field 22 of `proc(5)`, `starttime`; the four fields before were taken above.
        let start = fields.nth(15)?.parse().ok()?;
        Some(ProcessEntry {
            pid,
            parent,
            group,
            session,
            start,
            ended: matches!(state, "Z" | "X" | "x"),
        })
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{become_subreaper, own_start, send, table};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;

    use rustix::process::{Pid, Signal, kill_process};

    use super::ProcessEntry;

    pub(crate) fn become_subreaper() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn table() -> Vec<ProcessEntry> {
        Vec::new()
    }

    pub(crate) fn own_start() -> u64 {
        0
    }

    pub(crate) fn send(process: &ProcessEntry, signal: Signal) {
        if let Some(pid) = Pid::from_raw(process.pid) {
            let _gone = kill_process(pid, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, ended: bool) -> ProcessEntry {
        ProcessEntry { pid, parent, group: pid, session: pid, start: 0, ended }
    }

    #[test]
    fn the_living_are_found_below_the_dead() {
        let table =
            [process(2, 1, false), process(3, 2, true), process(4, 3, false), process(9, 1, false)];
        let mut found: Vec<i32> = below(&table, 2).iter().map(|found| found.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [4]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_name_may_contain_anything() {
        let line = b"7 (a) R 1 (x) S 5 6 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 1 1\n";
        let process = linux::parse(7, line).unwrap();
        assert_eq!((process.parent, process.group), (5, 6));
        assert_eq!((process.session, process.start), (7, 4711));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn b19_a_number_that_belongs_to_another_process_is_not_signalled() {
        let own = rustix::process::getpid().as_raw_pid();
        let stranger = ProcessEntry { start: own_start() + 1, ..process(own, 0, false) };
        // If the start time were not compared, this would end the test.
        send(&stranger, Signal::KILL);
    }
}
