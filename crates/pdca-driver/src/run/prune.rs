//! Records of runs that are over and old, removed.
//!
//! A directory is renamed to a name that no run has before anything in it goes; what a crash leaves
//! of it is nobody's, and goes the next time. The newest run always stays: the next epoch is counted
//! from it.

use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_journal::{Moment, RunId, RunPhase};

use crate::site::Site;

/// What stands before the name of a directory that is being removed.
const GOING: &str = ".old-";
/// What stands before the name of one that was being made.
const COMING: &str = ".new-";

/// A record that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prune {
    /// The run; none of what a crash left of one.
    pub run: Option<(RunId, RunPhase)>,
    /// Its directory.
    pub dir: Utf8PathBuf,
}

/// The records that go: of runs that ended before `keep` ago, and what a crash left. Changes nothing.
pub fn to_prune(site: &Site, now: Moment, keep: Duration) -> io::Result<Vec<Prune>> {
    let runs = site.runs();
    let mut ids = runs.list()?;
    ids.pop();
    let mut prunes = Vec::new();
    for id in ids {
        let run = runs.find(&id);
        // One that cannot be read is not known to be over.
        let Ok(found) = run.found else { continue };
        let ended = found.state.since.at.wall;
        let age = Duration::try_from(now.wall.duration_since(ended)).unwrap_or_default();
        if !found.state.is_active() && age >= keep {
            prunes.push(Prune { dir: runs.dir(&id), run: Some((id, found.state.phase)) });
        }
    }
    let root = site.private().join("runs");
    let entries = match root.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(prunes),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        if name.starts_with(GOING) || name.starts_with(COMING) {
            prunes.push(Prune { run: None, dir: entry.path().to_owned() });
        }
    }
    prunes.sort_by(|a, b| a.dir.cmp(&b.dir));
    Ok(prunes)
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
