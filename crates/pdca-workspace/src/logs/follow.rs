//! Reads a log as it grows.

use std::io::Read as _;
use std::ops::ControlFlow;
use std::time::Duration;

use pdca_leaves::{Protocol, Renderer};
use pdca_state::{Bundle, KeptCall};

use super::find::{self, FoundLog, LiveLog};
use super::{Log, LogEntry, LogRequest};
use crate::{OpenWorkspace, OperationError};

/// The interval at which a growing log is read.
const PERIOD: Duration = Duration::from_millis(100);
/// How often the record of a call that has ended is looked for.
const LOOKS: u32 = 20;

/// The end of a log that was followed. Its entries were passed on as they came.
#[derive(Debug)]
pub struct FollowedLog {
    pub log: Log,
    /// The call has ended, and is not on record yet.
    pub unrecorded: Option<Unrecorded>,
}

/// The reason a call that has ended is not on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecorded {
    /// Its driver is slow or stopped, and will record it.
    DriverSlow,
    /// Its driver is gone; the next run records it.
    DriverGone,
}

/// Reads what a leaf or a gate printed, and goes on until its call ends or its driver is gone. `observe` gets what is new
/// in a log that grows, and can end it.
pub fn follow_log(
    open: &OpenWorkspace<'_>,
    request: LogRequest<'_>,
    observe: &mut dyn FnMut(Vec<LogEntry>) -> ControlFlow<()>,
) -> Result<FollowedLog, OperationError> {
    let LogRequest { bundle, raw, .. } = request;
    let log = match find::find(open, &request)? {
        FoundLog::Live(live) => return follow(&live, bundle, raw, open, observe),
        FoundLog::Kept(call) => Log::kept(bundle, *call, raw)?,
        FoundLog::Gates(gates) => Log::gates(bundle, &gates)?,
    };
    Ok(FollowedLog { log, unrecorded: None })
}

fn follow(
    live: &LiveLog,
    bundle: &Bundle,
    raw: bool,
    open: &OpenWorkspace<'_>,
    observe: &mut dyn FnMut(Vec<LogEntry>) -> ControlFlow<()>,
) -> Result<FollowedLog, OperationError> {
    let mut file = &live.file;
    let mut renderer = Renderer::new(if raw { Protocol::Text } else { live.protocol });
    let config = open.driver_config()?;
    let locks = config.locks();
    let is_driven = || locks.at_work_on(bundle.id()).is_ok_and(|holder| holder.is_some());
    let mut observe =
        |read: Vec<_>| observe(read.into_iter().map(LogEntry::of).collect()).is_continue();
    let mut is_watched;
    loop {
        // Asked before the log is read, so that the last read comes after the child's last write.
        let has_ended = !matches!(pdca_process::load_verdict(&live.dir), Ok(None))
            || !live.dir.is_dir()
            || !is_driven();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        is_watched = observe(renderer.feed(&bytes));
        if has_ended || !is_watched {
            break;
        }
        std::thread::park_timeout(PERIOD);
    }
    is_watched = is_watched && observe(renderer.finish());
    // The driver makes the record when it has seen the end.
    let record = || {
        let calls = bundle.calls().all().ok()?;
        calls.into_iter().find(|call| Some(&call.record.call) == live.call.as_ref())
    };
    let mut kept = record();
    for _ in 0..LOOKS {
        if kept.is_some() || live.call.is_none() || !is_watched || !is_driven() {
            break;
        }
        std::thread::park_timeout(PERIOD);
        kept = record();
    }
    // The driver may be slow or stopped: only its lock says that it is gone.
    let unrecorded = (kept.is_none() && live.call.is_some())
        .then(|| if is_driven() { Unrecorded::DriverSlow } else { Unrecorded::DriverGone });
    Ok(FollowedLog { log: ended(kept, live, bundle, raw)?, unrecorded })
}

/// Returns the log of a call that has ended, without the entries that were passed on.
fn ended(
    kept: Option<KeptCall>,
    live: &LiveLog,
    bundle: &Bundle,
    raw: bool,
) -> Result<Log, OperationError> {
    if let Some(call) = kept {
        return Ok(Log { entries: Vec::new(), ..Log::kept(bundle, call, raw)? });
    }
    Ok(Log {
        id: bundle.id().clone(),
        what: live.leaf.clone(),
        attempt: bundle.attempts().newest()?,
        running: false,
        path: None,
        call: None,
        entries: Vec::new(),
        notes: None,
    })
}
