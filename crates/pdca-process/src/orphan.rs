//! Ending the tree that a killed supervisor left behind.
//!
//! The driver is a subreaper too, so the tree of a killed supervisor is reparented to it. The driver may also have
//! children of its own (another program may embed it), so only processes that certainly belong to that tree are
//! touched: those in the supervisor's session, those that carry its token in their environment, and their descendants.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions, waitpid};

use crate::environment::TOKENS;
use crate::tree;
use crate::tree::ProcessEntry;

/// The time killed processes may take to be gone; the same as in the supervisor's own kill.
const PATIENCE: Duration = Duration::from_secs(10);

/// The attributes by which the tree of a dead supervisor is recognised.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) pid: i32,
    pub(crate) token: String,
    /// True if the supervisor led a session of its own.
    pub(crate) detached: bool,
}

impl Lost {
    /// Kills and collects the tree. The supervisor must have ended but not been collected, so that its process id is
    /// not reused. Returns the processes that could not be ended.
    pub(crate) fn end_tree(&self) -> Vec<i32> {
        let begun = Instant::now();
        let own = rustix::process::getpid().as_raw_pid();
        let mut pause = Duration::from_millis(1);
        let mut last = 0;
        // An ended process no longer shows its session and environment, so members are remembered.
        let mut known = BTreeSet::new();
        loop {
            let table = tree::table();
            let mut found = self.members(&table);
            known.extend(found.iter().map(|process| (process.pid, process.start)));
            let ended = |process: &&ProcessEntry| {
                process.ended
                    && process.parent == own
                    && known.contains(&(process.pid, process.start))
            };
            found.extend(table.iter().filter(ended));
            let alive: Vec<ProcessEntry> = found.iter().filter(|one| !one.ended).copied().collect();
            if found.is_empty() || begun.elapsed() >= PATIENCE {
                return alive.iter().map(|process| process.pid).collect();
            }
            let count = alive.len();
            tree::kill_all(alive, last > 0 && count >= last, || {
                let mut members = self.members(&tree::table());
                members.retain(|process| !process.ended);
                members
            });
            last = count;
            for process in found.iter().filter(|process| process.parent == own) {
                if let Some(pid) = Pid::from_raw(process.pid) {
                    let _collected = waitpid(Some(pid), WaitOptions::NOHANG);
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Returns the processes of this tree, including ended ones that wait to be collected by us.
    fn members(&self, table: &[ProcessEntry]) -> Vec<ProcessEntry> {
        let own = rustix::process::getpid().as_raw_pid();
        // Only descendants of ours can be members, which avoids reading the environment of every process.
        let below: BTreeSet<i32> =
            tree::below(table, own).iter().map(|process| process.pid).collect();
        let certain: BTreeSet<i32> = table
            .iter()
            // The dead supervisor itself must not be collected here, or its id could be used again.
            .filter(|process| process.pid != self.pid)
            // `below` has no ended process. One that waits to be collected by us is a child of
            // ours.
            .filter(|process| below.contains(&process.pid) || process.parent == own)
            .filter(|process| self.is_certain(process))
            .map(|process| process.pid)
            .collect();
        let mut members: Vec<ProcessEntry> =
            table.iter().filter(|process| certain.contains(&process.pid)).copied().collect();
        members.extend(tree::below_any(table, certain));
        members
    }

    fn is_certain(&self, process: &ProcessEntry) -> bool {
        // The session finds processes that cleared their environment, the token those that left the
        // session. A process that did both is found if one of its ancestors is found.
        (self.detached && process.session == self.pid) || carries(process.pid, &self.token)
    }
}

/// Returns true if a process has `token` in its environment.
fn carries(pid: i32, token: &str) -> bool {
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else {
        return false;
    };
    environment
        .split(|byte| *byte == 0)
        .filter_map(|variable| variable.strip_prefix(TOKENS.as_bytes())?.strip_prefix(b"="))
        .any(|tokens| tokens.split(|byte| *byte == b':').any(|one| one == token.as_bytes()))
}
