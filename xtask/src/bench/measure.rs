//! Measures one child: wall time, processor time and peak memory.
//!
//! The kernel keeps the accounts. A child that has ended but was not yet waited for still shows
//! its processor time in `/proc/<pid>/stat`; its peak memory (`VmHWM`) is gone by then and is
//! sampled while it runs. `VmHWM` only grows, so a sample misses no earlier peak.

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// The kernel's unit of processor time, on every architecture this builds for.
const TICKS_PER_SECOND: u64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    /// User and system time of the process itself, all its threads.
    pub(super) own_cpu: Duration,
    /// User and system time of the children it waited for, and theirs.
    pub(super) children_cpu: Duration,
    /// `None` if memory was not sampled, or the child ended before the first sample.
    pub(super) peak_kib: Option<u32>,
    /// `None` after a signal.
    pub(super) code: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemorySample {
    /// Sampled every other millisecond, which costs the child a little time.
    Sampled,
    NotSampled,
}

/// Runs the command to its end without input, and discards its output.
pub(super) fn cost(command: &mut Command, memory: MemorySample) -> io::Result<Cost> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn()?;
    let pid = pid_of(&child);
    let ended = AtomicBool::new(false);
    let (wall, peak_kib) = std::thread::scope(|scope| {
        let sampler =
            (memory == MemorySample::Sampled).then(|| scope.spawn(|| sample_peak(pid, &ended)));
        let waited = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let wall = start.elapsed();
        ended.store(true, Ordering::Relaxed);
        let peak =
            sampler.and_then(|sampler| sampler.join().expect("because sampling never panics"));
        waited.map(|_| (wall, peak))
    })?;
    let accounts = fs_err::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))?;
    let status = child.wait()?;
    let (own_cpu, children_cpu) = cpu_times(&accounts)
        .ok_or_else(|| io::Error::other("the kernel's process accounts have an unknown form"))?;
    Ok(Cost { wall, own_cpu, children_cpu, peak_kib, code: status.code() })
}

fn pid_of(child: &Child) -> Pid {
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .expect("because a child that was started has a process id")
}

fn sample_peak(pid: Pid, ended: &AtomicBool) -> Option<u32> {
    let path = format!("/proc/{}/status", pid.as_raw_nonzero());
    let mut peak = None;
    loop {
        if let Ok(status) = fs_err::read_to_string(&path) {
            peak = peak.max(peak_kib(&status));
        }
        if ended.load(Ordering::Relaxed) {
            return peak;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Parses `VmHWM` of `/proc/<pid>/status`, in KiB.
fn peak_kib(status: &str) -> Option<u32> {
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// Parses own and children's processor time of `/proc/<pid>/stat`.
fn cpu_times(stat: &str) -> Option<(Duration, Duration)> {
    // The name in brackets may contain anything, so fields are counted from its last bracket.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    let mut pair = || Some(ticks.next()?? + ticks.next()??);
    let (own, children) = (pair()?, pair()?);
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
    Some((time(own), time(children)))
}

/// Returns the middle value, or the mean of the two in the middle.
pub(super) fn median(values: &[Duration]) -> Duration {
    let mut sorted = values.to_vec();
    sorted.sort();
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => Duration::ZERO,
        odd if odd % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2,
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use crate::program;

    #[test]
    fn processor_time_is_read_past_a_hostile_name() {
        let stat = "42 (a) b (c) Z 1 42 42 0 -1 4 10 0 0 0 7 3 200 50 20 0 1 0 99 0 0";
        assert_eq!(
            cpu_times(stat),
            Some((Duration::from_millis(100), Duration::from_millis(2500)))
        );
        assert_eq!(cpu_times("42 (a) Z 1 2"), None);
    }

    #[test]
    fn the_peak_is_read_from_its_own_line() {
        let status = "Name:\tpdca\nVmPeak:\t  9000 kB\nVmHWM:\t   4321 kB\nVmRSS:\t 100 kB\n";
        assert_eq!(peak_kib(status), Some(4321));
        assert_eq!(peak_kib("Name:\tpdca\nState:\tZ\n"), None);
    }

    #[test]
    fn the_median_is_the_middle() {
        let ms = Duration::from_millis;
        assert_eq!(median(&[ms(9), ms(1), ms(2)]), ms(2));
        assert_eq!(median(&[ms(4), ms(1), ms(2), ms(9)]), ms(3));
        assert_eq!(median(&[]), Duration::ZERO);
    }

    #[test]
    fn a_child_is_measured_and_its_exit_code_kept() {
        let mut command = program::command("sh", &["-c", "exit 3"], Utf8Path::new("."));
        let cost = cost(&mut command, MemorySample::NotSampled).unwrap();
        assert_eq!((cost.code, cost.peak_kib), (Some(3), None));
    }

    #[test]
    fn the_peak_of_a_process_that_lives_is_seen() {
        let peak = sample_peak(rustix::process::getpid(), &AtomicBool::new(true));
        assert!(peak.is_some_and(|peak| peak > 100), "{peak:?}");
    }
}
