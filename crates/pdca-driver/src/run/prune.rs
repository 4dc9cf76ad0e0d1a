//! Records of runs and integrations that are over and old, removed.
//!
//! A directory is renamed to a name that no run has before anything in it goes; what a crash leaves
//! of it is nobody's, and goes the next time. The newest run always stays: the next epoch is counted
//! from it.

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::has_pending_certificate;
use pdca_journal::{Moment, RunId, RunPhase, RunState, Runs};

use crate::config::WorkspaceConfig;

/// What stands before the name of a directory that is being removed.
const GOING: &str = ".old-";
/// What stands before the name of one that was being made.
const COMING: &str = ".new-";

/// Whose record it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOf {
    /// A run that builds.
    Run,
    /// An integration.
    Integration,
}

/// A record that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prune {
    /// Whose it is.
    pub of: RecordOf,
    /// The run; none of what a crash left of one.
    pub run: Option<(RunId, RunPhase)>,
    /// Its directory.
    pub dir: Utf8PathBuf,
}

/// The records that go: of what ended before `keep` ago, and what a crash left. Changes nothing.
///
/// Of an integration in whose directory a certificate waits to be finished, nothing goes.
pub fn to_prune(config: &WorkspaceConfig, now: Moment, keep: Duration) -> io::Result<Vec<Prune>> {
    let mut prunes =
        below(&config.dirs.runs(), &config.dirs.private().join("runs"), RecordOf::Run, now, keep)?;
    let root = config.dirs.private().join("integrations");
    let mut integrations =
        below(&config.dirs.integrations(), &root, RecordOf::Integration, now, keep)?;
    integrations.retain(|one| !has_pending_certificate(&one.dir));
    prunes.append(&mut integrations);
    Ok(prunes)
}

fn below(
    runs: &Runs,
    root: &Utf8Path,
    of: RecordOf,
    now: Moment,
    keep: Duration,
) -> io::Result<Vec<Prune>> {
    let mut ids = runs.list()?;
    ids.pop();
    let mut prunes = Vec::new();
    for id in ids {
        // One that cannot be read is not known to be over.
        let Ok(found) = runs.find(&id).found else { continue };
        if is_past(&found.state, now, keep) {
            prunes.push(Prune { of, dir: runs.dir(&id), run: Some((id, found.state.phase)) });
        }
    }
    let entries = match root.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(prunes),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if name.starts_with(GOING) || name.starts_with(COMING) {
            prunes.push(Prune { of, run: None, dir: entry.path().to_owned() });
        }
    }
    prunes.sort_by(|a, b| a.dir.cmp(&b.dir));
    Ok(prunes)
}

/// Whether a run ended at least `keep` ago.
pub(crate) fn is_past(state: &RunState, now: Moment, keep: Duration) -> bool {
    let age = now.wall.duration_since(state.since.at.wall);
    !state.is_active() && Duration::try_from(age).unwrap_or_default() >= keep
}

/// Removes one record. Nobody may be driving.
pub fn prune(one: &Prune) -> io::Result<()> {
    let going = match &one.run {
        None => one.dir.clone(),
        Some((run, _)) => {
            let going = one.dir.with_file_name(format!("{GOING}{run}"));
            fs_err::rename(&one.dir, &going)?;
            going
        }
    };
    fs_err::remove_dir_all(going)
}
