//! The environment of the process, read once and then passed down as values.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;

use camino::Utf8PathBuf;

use crate::exit::Exit;
use crate::failure::Failure;

/// The variable that holds the filter of the log for maintainers.
pub(crate) const LOG_VARIABLE: &str = "PDCA_LOG";

/// One of the three standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardStream {
    In,
    /// For data.
    Out,
    /// For progress and errors.
    Err,
}

/// The terminals among the standard streams, and their width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terminal {
    pub stdin: bool,
    pub stdout: bool,
    pub stderr: bool,
    /// In columns, if a terminal tells it.
    pub width: Option<u16>,
}

impl Terminal {
    pub fn is_terminal(self, stream: StandardStream) -> bool {
        match stream {
            StandardStream::In => self.stdin,
            StandardStream::Out => self.stdout,
            StandardStream::Err => self.stderr,
        }
    }
}

/// The source of dates. Used only by commands that write a date, so that others do not load time zones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clock {
    /// The system's clock and time zone.
    System,
    /// A fixed time in seconds since the epoch, for tests.
    Fixed(i64),
}

/// Returns the current time: wall clock for people, and uptime to measure with.
pub(crate) fn moment() -> pdca_journal::Moment {
    // On Linux this clock stands still while the machine sleeps: limits count running time only.
    let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let (seconds, nanos) = (uptime.tv_sec, uptime.tv_nsec);
    pdca_journal::Moment {
        wall: jiff::Timestamp::now(),
        uptime: std::time::Duration::new(
            seconds.try_into().unwrap_or_default(),
            nanos.try_into().unwrap_or_default(),
        ),
    }
}

/// How far local time is ahead of UTC, in seconds.
pub(crate) fn utc_offset() -> i32 {
    jiff::tz::TimeZone::system().to_offset(jiff::Timestamp::now()).seconds()
}

/// Environment, current directory, terminal and clock.
#[derive(Debug, Clone)]
pub struct ProcessEnv {
    pub vars: BTreeMap<OsString, OsString>,
    /// Absolute.
    pub cwd: Utf8PathBuf,
    pub terminal: Terminal,
    pub clock: Clock,
    /// This program, for scripts that call it again.
    pub program: Option<Utf8PathBuf>,
    /// Variables may ask for faults. Only the tests' binary sets it.
    pub may_inject_faults: bool,
}

impl ProcessEnv {
    /// Reads everything from the process.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the environment"
    )]
    pub fn read() -> Result<Self, Failure> {
        let cwd = std::env::current_dir().map_err(|error| {
            Failure::new(Exit::Usage, "the current directory cannot be read")
                .cause(&error)
                .hint("cd to a directory that exists, or use `-C DIR`")
        })?;
        let cwd = Utf8PathBuf::from_path_buf(cwd).map_err(|path| {
            Failure::new(
                Exit::Usage,
                format!("the current directory {} is not UTF-8", path.display()),
            )
            .hint("work in a directory whose path is UTF-8")
        })?;
        let terminal = Terminal {
            stdin: std::io::stdin().is_terminal(),
            stdout: std::io::stdout().is_terminal(),
            stderr: std::io::stderr().is_terminal(),
            width: terminal_size::terminal_size().map(|(width, _)| width.0),
        };
        Ok(ProcessEnv {
            vars: std::env::vars_os().collect(),
            cwd,
            terminal,
            clock: Clock::System,
            program: std::env::current_exe()
                .ok()
                .and_then(|path| Utf8PathBuf::from_path_buf(path).ok()),
            may_inject_faults: false,
        })
    }

    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.environment().get(name)
    }

    /// Returns a variable as text; empty counts as unset.
    pub fn var_text(&self, name: &str) -> Option<&str> {
        self.environment().text(name)
    }

    /// Returns the part that a configuration depends on.
    pub fn environment(&self) -> pdca_workspace::config::Environment<'_> {
        pdca_workspace::config::Environment { variables: &self.vars, cwd: &self.cwd }
    }

    /// Looks up a program on `PATH`.
    pub fn find_program(&self, name: &str) -> Option<Utf8PathBuf> {
        self.environment().find_program(name)
    }

    /// Returns the current time, in seconds since the epoch.
    pub fn now(&self) -> i64 {
        match self.clock {
            Clock::System => jiff::Timestamp::now().as_second(),
            Clock::Fixed(seconds) => seconds,
        }
    }

    /// Returns today's local date, as `2026-11-16`.
    pub fn today(&self) -> String {
        match self.clock {
            Clock::System => jiff::Zoned::now().date().to_string(),
            Clock::Fixed(seconds) => jiff::Timestamp::from_second(seconds)
                .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
                .to_zoned(jiff::tz::TimeZone::UTC)
                .date()
                .to_string(),
        }
    }

    /// Makes an environment of values only, for tests: no terminal, and the clock stands at 16 November 2026.
    pub fn of_values(cwd: &str, vars: &[(&str, &str)]) -> Self {
        ProcessEnv {
            vars: vars
                .iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value)))
                .collect(),
            cwd: Utf8PathBuf::from(cwd),
            terminal: Terminal::default(),
            clock: Clock::Fixed(1_794_830_400),
            program: None,
            may_inject_faults: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_clock_says_a_fixed_date() {
        assert_eq!(ProcessEnv::of_values("/", &[]).today(), "2026-11-16");
    }
}
