//! Closes signals that earlier reviews watch.

use pdca_act::{ActRecords, IndexScope, JudgedSignal, LOG, Recorder, Resolution};
use serde::Serialize;

use super::{ActError, date};
use crate::{OpenWorkspace, OperationError};

/// The signals that earlier reviews watch.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchedSignals {
    pub dry_run: bool,
    /// The signals that this call closed.
    pub resolved: Vec<usize>,
    /// Every signal, as it was before.
    pub signals: Vec<JudgedSignal>,
}

/// A request to close signals.
#[derive(Debug, Clone, Copy)]
pub struct ResolveRequest<'a> {
    /// Their numbers; all signals are listed if none is named.
    pub numbers: &'a [usize],
    pub note: Option<&'a str>,
    /// Today if none is given.
    pub date: Option<&'a str>,
    /// The person who decides. A list needs none.
    pub by: Option<&'a str>,
}

/// Closes watched signals, or lists them.
pub fn resolve_signals(
    open: &OpenWorkspace<'_>,
    request: ResolveRequest<'_>,
) -> Result<WatchedSignals, OperationError> {
    let dir = &open.workspace.process_dir;
    let is_list = request.numbers.is_empty();
    let recorder = if is_list || open.dry_run { None } else { Some(Recorder::lock(dir)?) };
    let records = match &recorder {
        Some(recorder) => recorder.load()?,
        None => ActRecords::load(dir)?,
    };
    let bundles = open.workspace.every_bundle()?;
    let signals = pdca_act::index(&bundles, &records, IndexScope::SinceLastReview).signals;
    if signals.is_empty() {
        return if is_list {
            Ok(WatchedSignals { dry_run: false, resolved: Vec::new(), signals })
        } else {
            Err(ActError::NoSignals { log: dir.join(LOG) }.into())
        };
    }
    let date = date(request.date, open)?;
    let resolution = |number: &usize| {
        let judged = signals
            .iter()
            .find(|judged| judged.number == *number)
            .ok_or(ActError::NoSignal { number: *number, count: signals.len() })?;
        Ok(Resolution {
            raw: judged.signal.text.clone(),
            date: date.clone(),
            by: request.by.ok_or(ActError::NoAuthor)?.to_owned(),
            note: request.note.map(str::to_owned),
        })
    };
    let resolutions =
        request.numbers.iter().map(resolution).collect::<Result<Vec<_>, ActError>>()?;
    if let Some(recorder) = &recorder {
        recorder.resolve(&records, &resolutions)?;
    }
    Ok(WatchedSignals { dry_run: open.dry_run, resolved: request.numbers.to_vec(), signals })
}
