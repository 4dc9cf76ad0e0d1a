//! Shows a log as it grows.

use std::io::{Read as _, Write};
use std::time::Duration;

use pdca_leaves::{Protocol, Renderer};
use pdca_state::Bundle;

use super::find::Live;
use super::{EntryRow, LogReport};
use crate::context::Context;
use crate::failure::Failure;
use crate::session;

/// The interval at which a growing log is read.
const PERIOD: Duration = Duration::from_millis(100);

/// Shows a log until its child has ended or its driver is gone. Ctrl-C ends it earlier.
pub(super) fn follow(
    live: &Live,
    bundle: &Bundle,
    raw: bool,
    cx: &Context<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<LogReport, Failure> {
    let mut file = &live.file;
    let mut renderer = Renderer::new(if raw { Protocol::Text } else { live.protocol });
    let site = session::driver_config(cx)?;
    let locks = site.locks();
    let is_driven = || locks.at_work_on(bundle.id()).is_ok_and(|holder| holder.is_some());
    loop {
        // Asked before the log is read, so that the last read comes after the child's last write.
        let has_ended = !matches!(pdca_process::load_verdict(&live.dir), Ok(None))
            || !live.dir.is_dir()
            || !is_driven();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        for entry in renderer.feed(&bytes) {
            EntryRow::of(entry).write(cx, out)?;
        }
        out.flush()?;
        if has_ended {
            break;
        }
        std::thread::park_timeout(PERIOD);
    }
    for entry in renderer.finish() {
        EntryRow::of(entry).write(cx, out)?;
    }
    // The driver makes the record when it has seen the end.
    let record = |bundle: &Bundle| {
        let calls = bundle.calls().all().ok()?;
        calls.into_iter().find(|call| Some(&call.record.call) == live.call.as_ref())
    };
    let mut kept = record(bundle);
    for _ in 0..20 {
        if kept.is_some() || live.call.is_none() || !is_driven() {
            break;
        }
        std::thread::park_timeout(PERIOD);
        kept = record(bundle);
    }
    if kept.is_none() && live.call.is_some() {
        // The driver may be slow or stopped: only its lock says that it is gone.
        let text = if is_driven() {
            "its driver has not recorded the call yet"
        } else {
            "its driver is gone; the next run records the call"
        };
        cx.note(err, text)?;
    }
    let mut report = match kept {
        Some(call) => LogReport::kept(bundle, call, raw)?,
        None => LogReport {
            id: bundle.id().to_string(),
            what: live.leaf.clone(),
            attempt: bundle.attempts().newest()?,
            running: false,
            path: None,
            call: None,
            entries: Vec::new(),
            notes: None,
            is_shown: false,
        },
    };
    // Shown already.
    report.entries.clear();
    Ok(report)
}
