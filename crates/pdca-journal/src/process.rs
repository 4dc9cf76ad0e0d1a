//! Identity and liveness of processes: dead, alive or unknown, never a guess.
//!
//! A process id is reused, so it does not identify a process. Boot id, process id and start time do,
//! within one host and one process namespace. From anywhere else the answer is unknown, and nothing
//! may be done to the process.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// The identity of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessIdentity {
    /// The scope in which `pid` has a meaning.
    pub place: HostScope,
    pub pid: u32,
    /// The start time in ticks since boot.
    pub start: u64,
}

/// The scope in which process ids have a meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostScope {
    pub host: String,
    /// The boot id of the kernel.
    pub boot: String,
    /// The inode of the process namespace.
    pub namespace: u64,
    /// The effective user id of the observer.
    pub user: u32,
}

/// The entry of a process id in the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// No process has the id.
    Nobody,
    /// A live process with this start time.
    Started(u64),
    /// A zombie.
    Ended,
    /// Unknown, because the table hides processes of other users.
    Hidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Liveness {
    Dead,
    Alive,
    /// It cannot be determined from here. Alert, and change nothing.
    Unknown,
}

impl Liveness {
    /// Determines the liveness of `recorded` from the process table entry of its id at `here`.
    ///
    /// Only [`Liveness::Alive`] means that the id belongs to the recorded process, so only then may it
    /// be signalled.
    pub fn of(recorded: &ProcessIdentity, here: &HostScope, seen: Seen) -> Self {
        if recorded.place.host != here.host {
            return Self::Unknown;
        }
        // Before the namespace: nothing survives a reboot, whichever namespace it was in.
        if recorded.place.boot != here.boot {
            return Self::Dead;
        }
        // The same number is another process in another namespace, so `seen` says nothing about it.
        if recorded.place.namespace != here.namespace {
            return Self::Unknown;
        }
        match seen {
            // A process that has exited and was only not waited for changes nothing any more.
            Seen::Nobody | Seen::Ended => Self::Dead,
            Seen::Hidden => Self::Unknown,
            Seen::Started(start) if start != recorded.start => Self::Dead,
            // A process of another user: it lives, but this driver may not signal it.
            Seen::Started(_) if here.user != 0 && here.user != recorded.place.user => Self::Unknown,
            Seen::Started(_) => Self::Alive,
        }
    }

    /// Determines if anything runs in a lane. All processes of a lane inherit its lock, so the lock
    /// takes precedence over process ids: it also covers detached grandchildren.
    pub fn in_lane(lock: LaneLock, runner: Option<Self>) -> Self {
        match lock {
            LaneLock::Free => Self::Dead,
            LaneLock::Held => Self::Alive,
            LaneLock::Untold => runner.unwrap_or(Self::Unknown),
        }
    }
}

/// The state of a lane's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneLock {
    Free,
    Held,
    /// The lock could not be probed.
    Untold,
}

impl HostScope {
    /// The scope of the calling process.
    pub fn here() -> io::Result<Self> {
        let line = |path| fs_err::read_to_string(path).map(|text: String| text.trim().to_owned());
        let namespace =
            std::os::unix::fs::MetadataExt::ino(&fs_err::metadata("/proc/self/ns/pid")?);
        Ok(Self {
            host: line("/proc/sys/kernel/hostname")?,
            boot: line("/proc/sys/kernel/random/boot_id")?,
            namespace,
            user: rustix::process::geteuid().as_raw(),
        })
    }
}

impl Seen {
    /// Looks up a process id in `/proc`.
    pub fn look(pid: u32) -> Self {
        match std::fs::read(format!("/proc/{pid}/stat")) {
            Ok(line) => parse_stat(&line),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::absent(),
            // The process ended while the file was read.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
                Seen::Nobody
            }
            // Any other failure must not be read as "gone": work would be taken from a live
            // process.
            Err(_) => Seen::Hidden,
        }
    }

    /// Interprets a missing entry: the process is gone, unless `/proc` hides other users' processes.
    fn absent() -> Self {
        // Process 1 always lives and usually belongs to another user.
        if std::fs::exists("/proc/1/stat").unwrap_or(false) { Seen::Nobody } else { Seen::Hidden }
    }
}

impl ProcessIdentity {
    /// Identifies a live process; `None` if it has ended or cannot be seen.
    pub fn of(place: &HostScope, pid: u32) -> Option<Self> {
        match Seen::look(pid) {
            Seen::Started(start) => Some(Self { place: place.clone(), pid, start }),
            Seen::Nobody | Seen::Ended | Seen::Hidden => None,
        }
    }

    pub fn liveness(&self, here: &HostScope) -> Liveness {
        Liveness::of(self, here, Seen::look(self.pid))
    }
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.place.host)
    }
}

/// Parses `/proc/<pid>/stat`. The command name is in parentheses and may contain anything, so fields
/// are counted from the last closing one.
fn parse_stat(line: &[u8]) -> Seen {
    let fields = || {
        let after = line.iter().rposition(|byte| *byte == b')')? + 1;
        let text = std::str::from_utf8(&line[after..]).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X");
        // `starttime` is field 22 of the line, and the state before it was field 3.
        Some((ended, fields.nth(18)?.parse().ok()?))
    };
    match fields() {
        Some((true, _)) => Seen::Ended,
        Some((false, start)) => Seen::Started(start),
        None => Seen::Hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> HostScope {
        HostScope { host: "h".into(), boot: "b1".into(), namespace: 7, user: 1000 }
    }

    fn recorded() -> ProcessIdentity {
        ProcessIdentity { place: place(), pid: 12, start: 500 }
    }

    #[test]
    fn b19_a_number_that_a_stranger_has_now_is_a_dead_process() {
        assert_eq!(Liveness::of(&recorded(), &place(), Seen::Started(501)), Liveness::Dead);
        assert_eq!(Liveness::of(&recorded(), &place(), Seen::Started(500)), Liveness::Alive);
        assert_eq!(Liveness::of(&recorded(), &place(), Seen::Nobody), Liveness::Dead);
        assert_eq!(Liveness::of(&recorded(), &place(), Seen::Ended), Liveness::Dead);
    }

    #[test]
    fn b20_nothing_survives_a_reboot_whoever_has_the_number_now() {
        let here = HostScope { boot: "b2".into(), ..place() };
        for seen in [Seen::Nobody, Seen::Started(500), Seen::Started(1), Seen::Ended, Seen::Hidden]
        {
            assert_eq!(Liveness::of(&recorded(), &here, seen), Liveness::Dead, "{seen:?}");
        }
    }

    #[test]
    fn b21_from_another_namespace_another_host_or_behind_a_hidden_table_nothing_is_known() {
        let elsewhere = HostScope { namespace: 8, ..place() };
        let other_host = HostScope { host: "h2".into(), boot: "b2".into(), ..place() };
        for seen in [Seen::Nobody, Seen::Started(500), Seen::Started(1), Seen::Ended, Seen::Hidden]
        {
            assert_eq!(Liveness::of(&recorded(), &elsewhere, seen), Liveness::Unknown, "{seen:?}");
            assert_eq!(Liveness::of(&recorded(), &other_host, seen), Liveness::Unknown, "{seen:?}");
        }
        assert_eq!(Liveness::of(&recorded(), &place(), Seen::Hidden), Liveness::Unknown);
        let as_user = |user, start| {
            Liveness::of(&recorded(), &HostScope { user, ..place() }, Seen::Started(start))
        };
        assert_eq!(as_user(1001, 500), Liveness::Unknown, "somebody else's cannot be stopped");
        assert_eq!(as_user(1001, 501), Liveness::Dead);
        assert_eq!(as_user(0, 500), Liveness::Alive);
    }

    #[test]
    fn a_lane_s_lock_is_believed_before_a_process_number() {
        use LaneLock::{Free, Held, Untold};
        use Liveness::{Alive, Dead, Unknown};
        for runner in [None, Some(Dead), Some(Alive), Some(Unknown)] {
            assert_eq!(Liveness::in_lane(Free, runner), Dead);
            assert_eq!(Liveness::in_lane(Held, runner), Alive, "a daemon of it may live");
            assert_eq!(Liveness::in_lane(Untold, runner), runner.unwrap_or(Unknown));
        }
    }

    #[test]
    fn this_process_is_alive_and_one_like_it_that_started_before_is_not() {
        let here = HostScope::here().unwrap();
        let own = ProcessIdentity::of(&here, std::process::id()).unwrap();
        assert_eq!(own.liveness(&here), Liveness::Alive);
        let earlier = ProcessIdentity { start: own.start - 1, ..own };
        assert_eq!(earlier.liveness(&here), Liveness::Dead);
    }

    #[test]
    fn a_command_cannot_disguise_its_start_by_its_name() {
        let tail = "S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 75372 0";
        for name in ["cat", "a b", ") Z 1 2", "x\n) S 1"] {
            let stat = format!("12 ({name}) {tail}");
            assert_eq!(parse_stat(stat.as_bytes()), Seen::Started(75372), "{name:?}");
        }
        assert_eq!(
            parse_stat(format!("12 (x) {}", tail.replacen('S', "Z", 1)).as_bytes()),
            Seen::Ended
        );
        assert_eq!(parse_stat(b"12 (x"), Seen::Hidden);
        assert_eq!(parse_stat(b"12 (x) S 1"), Seen::Hidden);
    }
}
