//! Finds the log that a person means.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_leaves::{Protocol, Trace};
use pdca_state::{Artifact, Bundle, KeptCall, LoadError};

use super::{LogError, LogRequest};
use crate::config::ConfigError;
use crate::{OpenWorkspace, OperationError};

/// How deep below a bundle's jobs a child's directory may lie.
const DEEP: usize = 4;

/// A log.
pub(super) enum FoundLog {
    /// Of a child that has not ended.
    Live(LiveLog),
    /// Of a call that is on record.
    Kept(Box<KeptCall>),
    /// Of gates.
    Gates(GateLogs),
}

/// A child that has not ended.
pub(super) struct LiveLog {
    /// Its directory.
    pub(super) dir: Utf8PathBuf,
    /// What it prints.
    pub(super) log: Utf8PathBuf,
    /// The same, open: the directory goes when the result is published.
    pub(super) file: fs_err::File,
    /// The leaf, or `gate`.
    pub(super) leaf: String,
    pub(super) protocol: Protocol,
    /// The name of the call; `None` for a gate.
    pub(super) call: Option<String>,
}

/// The logs of the gates of an attempt, by name.
pub(super) struct GateLogs {
    pub(super) attempt: u32,
    pub(super) logs: Vec<(String, Utf8PathBuf)>,
}

pub(super) fn find(
    open: &OpenWorkspace<'_>,
    request: &LogRequest<'_>,
) -> Result<FoundLog, OperationError> {
    let &LogRequest { bundle, what, attempt, .. } = request;
    let id = bundle.id();
    let newest = bundle.attempts().newest()?;
    if let Some(attempt) = attempt.filter(|attempt| !(1..=newest).contains(attempt)) {
        return Err(LogError::NoAttempt { id: id.clone(), attempt, newest }.into());
    }
    let wanted = what.map(|what| match what {
        "review" => "reviewer",
        "build" => "builder",
        "gates" => "gate",
        other => other,
    });
    if attempt.is_none_or(|attempt| attempt == newest) {
        let live = live(open, bundle)?;
        let is_it = |live: &LiveLog| wanted.is_none_or(|wanted| live.leaf == wanted);
        if let Some(live) = live.into_iter().find(is_it) {
            return Ok(FoundLog::Live(live));
        }
    }
    let calls = bundle.calls().all()?;
    let is_it = |call: &&KeptCall| {
        attempt.is_none_or(|attempt| call.attempt == attempt)
            && wanted.is_none_or(|wanted| call.record.leaf == wanted || call.record.role == wanted)
    };
    if wanted != Some("gate")
        && let Some(call) = calls.iter().rev().find(is_it)
    {
        return Ok(FoundLog::Kept(Box::new(call.clone())));
    }
    if let Some(gates) = gates(bundle, wanted, attempt, newest)? {
        return Ok(FoundLog::Gates(gates));
    }
    let mut leaves: Vec<String> = calls.into_iter().map(|call| call.record.leaf).collect();
    leaves.sort_unstable();
    leaves.dedup();
    let (id, what) = (id.clone(), what.map(str::to_owned));
    Err(LogError::NoLog { id, what, attempt, leaves }.into())
}

/// Returns the logs of the gates in the newest attempt that has some, or in the given one.
fn gates(
    bundle: &Bundle,
    wanted: Option<&str>,
    attempt: Option<u32>,
    newest: u32,
) -> Result<Option<GateLogs>, LoadError> {
    let Some(wanted) = wanted else { return Ok(None) };
    let is_role = pdca_leaves::ROLES.iter().any(|role| role.name == wanted);
    if is_role {
        return Ok(None);
    }
    let attempts = attempt.map_or_else(|| (1..=newest).rev().collect(), |attempt| vec![attempt]);
    for attempt in attempts {
        let dir = bundle.attempts().dir(attempt)?.join(Artifact::GateLogs.file_name());
        let Ok(entries) = dir.read_dir_utf8() else { continue };
        let paths = entries.flatten().map(camino::Utf8DirEntry::into_path);
        let named = paths.filter_map(|path| {
            let name = path.file_name()?.strip_suffix(".log")?.to_owned();
            (wanted == "gate" || name == wanted).then_some((name, path))
        });
        let mut logs: Vec<(String, Utf8PathBuf)> = named.collect();
        logs.sort_unstable();
        if !logs.is_empty() {
            return Ok(Some(GateLogs { attempt, logs }));
        }
    }
    Ok(None)
}

/// Returns the children of a bundle that have not ended, newest first; none if no driver works on it.
fn live(open: &OpenWorkspace<'_>, bundle: &Bundle) -> Result<Vec<LiveLog>, ConfigError> {
    let config = open.driver_config()?;
    let mut found = Vec::new();
    if config.locks().at_work_on(bundle.id()).is_ok_and(|holder| holder.is_some()) {
        look(&config.jobs().of(bundle.id()), DEEP, &mut found);
    }
    found.sort_by(|(a, _), (b, _)| b.cmp(a));
    Ok(found.into_iter().map(|(_, live)| live).collect())
}

fn look(dir: &Utf8Path, deep: usize, found: &mut Vec<(std::time::SystemTime, LiveLog)>) {
    if deep == 0 {
        return;
    }
    let Ok(entries) = dir.read_dir_utf8() else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        // A copy of the checkout may be large, and is no log.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || entry.file_name() == "checkout" {
            continue;
        }
        let log = pdca_process::log_path(path);
        // Read before the verdict: a call whose header is there is not on record yet, even if it has ended.
        let header = Trace::load(path).ok().flatten().map(|trace| trace.header);
        let is_open = header.is_some() || matches!(pdca_process::load_verdict(path), Ok(None));
        if is_open
            && let Ok(file) = fs_err::File::open(&log)
            && let Ok(written) = file.metadata().and_then(|log| log.modified())
        {
            let (leaf, protocol, call) = header.map_or_else(
                || ("gate".to_owned(), Protocol::Text, None),
                |header| (header.leaf, header.protocol, Some(header.call)),
            );
            found
                .push((written, LiveLog { dir: path.to_owned(), log, file, leaf, protocol, call }));
        }
        look(path, deep - 1, found);
    }
}
