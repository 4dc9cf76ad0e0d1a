//! Removes the records of old runs and integrations that are over.
//!
//! A directory is first renamed to a name that no run has. A half-removed one is therefore never read as a run,
//! and is removed the next time. The newest run always stays, because the next epoch is counted
//! from it.

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_integrate::has_pending_certificate;
use pdca_journal::{Moment, RunId, RunPhase, Runs};

use crate::config::WorkspaceConfig;

/// The prefix of a directory that is being removed.
const GOING: &str = ".old-";
/// The prefix of a directory that was being created.
const COMING: &str = ".new-";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOf {
    /// A run over bundles.
    Run,
    Integration,
}

/// A record to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prune {
    pub of: RecordOf,
    /// The run; `None` for the leftovers of a crash.
    pub run: Option<(RunId, RunPhase)>,
    pub dir: Utf8PathBuf,
}

/// Returns the records of runs that ended at least `keep` ago, and leftovers of crashes. Changes nothing.
///
/// The record of an integration with an unfinished certificate stays.
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
    // The ids are ULIDs in order. The next epoch is counted from the newest run, so its record
    // stays.
    ids.pop();
    let mut prunes = Vec::new();
    for id in ids {
        // An unreadable run may still be active.
        let Ok(found) = runs.find(&id).found else { continue };
        if found.state.is_over_for(keep, now) {
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

/// Removes one record. No driver may be running.
pub fn prune(one: &Prune) -> io::Result<()> {
    let going = match &one.run {
        None => one.dir.clone(),
        Some((run, _)) => {
            let going = one.dir.with_file_name(format!("{GOING}{run}"));
            // Under the new name a removal that is cut short cannot be read as a run with half a
            // journal.
            fs_err::rename(&one.dir, &going)?;
            going
        }
    };
    // A child may have written below the records of its job, as deep as it liked.
    pdca_state::files::remove_tree(going)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scene, clock};

    /// Begins a run over a bundle that waits for its sign-off, and ends it.
    fn ended(scene: &Scene) -> RunId {
        let run = scene.begin(&["7"]).run;
        assert!(run.finish().unwrap());
        run.id()
    }

    fn at_sign_off() -> Scene {
        let scene = Scene::planned();
        scene.driver().run_bundle(&scene.bundle()).unwrap();
        scene
    }

    fn names(scene: &Scene, keep: Duration) -> Vec<String> {
        let prunes = to_prune(&scene.config, clock(), keep).unwrap();
        prunes.iter().map(|one| one.dir.file_name().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_newest_run_stays_because_the_next_epoch_is_counted_from_it() {
        let scene = at_sign_off();
        let first = ended(&scene);
        assert_eq!(names(&scene, Duration::ZERO), Vec::<String>::new());
        ended(&scene);
        assert_eq!(names(&scene, Duration::ZERO), [first.to_string()]);
    }

    #[test]
    fn a_run_that_ended_a_short_time_ago_stays() {
        let scene = at_sign_off();
        ended(&scene);
        ended(&scene);
        assert_eq!(names(&scene, Duration::from_secs(3600)), Vec::<String>::new());
    }

    #[test]
    fn a_run_whose_journal_cannot_be_read_stays_because_it_may_be_active() {
        let scene = at_sign_off();
        let first = ended(&scene);
        ended(&scene);
        let journal = scene.config.dirs.runs().dir(&first).join("journal");
        fs_err::write(journal, "words\n").unwrap();
        assert_eq!(names(&scene, Duration::ZERO), Vec::<String>::new());
    }

    #[test]
    fn what_a_crash_left_of_a_run_goes_at_any_age() {
        let scene = Scene::planned();
        let runs = scene.config.dirs.private().join("runs");
        for left in [".old-01J", ".new-01J", "notes"] {
            fs_err::create_dir_all(runs.join(left)).unwrap();
        }
        assert_eq!(names(&scene, Duration::from_secs(3600)), [".new-01J", ".old-01J"]);
    }

    #[test]
    fn a_pruned_run_leaves_nothing_that_reads_as_a_run() {
        let scene = at_sign_off();
        ended(&scene);
        let second = ended(&scene);
        for one in to_prune(&scene.config, clock(), Duration::ZERO).unwrap() {
            prune(&one).unwrap();
        }
        assert_eq!(scene.config.dirs.runs().list().unwrap(), [second]);
    }
}
