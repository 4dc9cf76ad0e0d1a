//! Status files `ws/<issue>/NN-state`, which show the state of each bundle of a run to people.
//!
//! They are derived from [`RunState`] alone and nothing is decided by them: they may be deleted or
//! damaged at any time and are written again.

use std::fmt::Write as _;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::{BundleId, files};

use crate::reconcile::BundlePhase;
use crate::run_id::RunId;
use crate::runs::Runs;
use crate::state::{RunState, Workstream, WorkstreamStatus};

const DIR: &str = "ws";
const MAX_BYTES: u64 = 1 << 20;

/// The error of updating the status files. No information is lost.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}")]
pub struct StatusFilesError {
    pub path: Utf8PathBuf,
    pub source: io::Error,
}

/// Updates the status files of a run; writes only those that differ.
pub fn write_status_files(
    runs: &Runs,
    run: &RunId,
    state: &RunState,
) -> Result<(), StatusFilesError> {
    state.bundles.keys().try_for_each(|bundle| write_bundle_status(runs, run, state, bundle))
}

/// Like [`write_status_files`], for the one bundle that changed. Does nothing for a bundle that is not
/// part of the run.
pub fn write_bundle_status(
    runs: &Runs,
    run: &RunId,
    state: &RunState,
    bundle: &BundleId,
) -> Result<(), StatusFilesError> {
    let Some(work) = state.bundles.get(bundle) else { return Ok(()) };
    let root = runs.dir(run).join(DIR);
    require_dir(&root)?;
    let dir = root.join(bundle.as_str());
    require_dir(&dir)?;
    let name = name(work.status.phase());
    // Before the new file is written: two files would show two states. A crash in between shows
    // none until the next update.
    remove_others(&dir, name)?;
    let (path, text) = (dir.join(name), text(work));
    let there = files::read_bounded(&path, MAX_BYTES).ok().flatten();
    if there.as_deref() != Some(text.as_bytes()) {
        make_way(&path)?;
        // Derived from the journal, so not worth a sync.
        files::replace_unsynced(&path, text.as_bytes()).map_err(|source| failed(&path, source))?;
    }
    Ok(())
}

/// The file name for a phase, numbered so that names sort by progress.
fn name(phase: BundlePhase) -> &'static str {
    match phase {
        BundlePhase::Ready => "00-ready",
        BundlePhase::Running => "10-running",
        BundlePhase::Interrupted => "20-interrupted",
        BundlePhase::Blocked => "30-blocked",
        BundlePhase::Sealed => "40-sealed",
        BundlePhase::Landed => "50-landed",
        BundlePhase::Abandoned => "60-abandoned",
        BundlePhase::Cleaned => "70-cleaned",
    }
}

fn text(work: &Workstream) -> String {
    let mut text = format!("since: {} (record {})\n", work.since.at.wall, work.since.seq);
    let mut add = |label: &str, value: &dyn std::fmt::Display| {
        writeln!(text, "{label}: {value}").expect("because writing to a string cannot fail");
    };
    if let Some(claim) = &work.claim {
        add("generation", &claim.generation);
        add("lane", &claim.slot);
        add("base", &claim.base);
    }
    if let Some(sealed) = &work.seal {
        add("sealed", &sealed.seal.head);
        add("completion order", &sealed.order);
    }
    match &work.status {
        WorkstreamStatus::Blocked { reason, evidence, .. } => {
            add("blocked", &format_args!("{reason:?}"));
            add("evidence", &format_args!("{evidence:?}"));
        }
        WorkstreamStatus::Abandoned { why } => add("why", &format_args!("{why:?}")),
        WorkstreamStatus::Ready
        | WorkstreamStatus::Running
        | WorkstreamStatus::Interrupted
        | WorkstreamStatus::Sealed
        | WorkstreamStatus::Landed
        | WorkstreamStatus::Cleaned => {}
    }
    text
}

/// Creates a directory if necessary. A link or a file in its place is removed; a link's target is not
/// touched.
fn require_dir(dir: &Utf8Path) -> Result<(), StatusFilesError> {
    let made = match fs_err::symlink_metadata(dir) {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => fs_err::remove_file(dir).and_then(|()| fs_err::create_dir(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs_err::create_dir(dir),
        Err(error) => Err(error),
    };
    made.map_err(|source| failed(dir, source))
}

/// Removes a directory at `path`, which a rename of a file would not replace.
fn make_way(path: &Utf8Path) -> Result<(), StatusFilesError> {
    match fs_err::symlink_metadata(path) {
        Ok(there) if there.is_dir() => {
            fs_err::remove_dir_all(path).map_err(|source| failed(path, source))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(failed(path, source)),
    }
}

fn remove_others(dir: &Utf8Path, keep: &str) -> Result<(), StatusFilesError> {
    for entry in fs_err::read_dir(dir).map_err(|source| failed(dir, source))? {
        let entry = entry.map_err(|source| failed(dir, source))?;
        if entry.file_name() == keep {
            continue;
        }
        let is_dir = entry.file_type().map_err(|source| failed(dir, source))?.is_dir();
        let removed = if is_dir {
            fs_err::remove_dir_all(entry.path())
        } else {
            fs_err::remove_file(entry.path())
        };
        removed.map_err(|source| failed(dir, source))?;
    }
    Ok(())
}

fn failed(path: &Utf8Path, source: io::Error) -> StatusFilesError {
    StatusFilesError { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Activity;
    use crate::testing::{Scene, at, claimed, entered, run};

    /// The projection as text: each file and its lines.
    fn shown(scene: &Scene) -> String {
        let root = scene.runs().dir(&run()).join(DIR);
        let mut shown = Vec::new();
        for bundle in root.read_dir_utf8().unwrap().map(Result::unwrap) {
            for file in bundle.path().read_dir_utf8().unwrap().map(Result::unwrap) {
                let text = fs_err::read_to_string(file.path()).unwrap();
                let name = file.path().strip_prefix(&root).unwrap().to_owned();
                shown.push(format!("{name}: {}", text.trim_end().replace('\n', ", ")));
            }
        }
        shown.sort();
        shown.join("\n")
    }

    fn scene() -> (Scene, RunState) {
        let scene = Scene::new();
        let mut journal = scene.create();
        let records = vec![entered(Activity::Running), claimed("2", 1, 1)];
        journal.append(at(1), records).unwrap();
        let state = journal.state().clone();
        (scene, state)
    }

    #[test]
    fn each_bundle_has_one_file_that_is_named_by_where_it_stands() {
        let (scene, state) = scene();
        write_status_files(&scene.runs(), &run(), &state).unwrap();
        insta::assert_snapshot!(shown(&scene), @r"
        1/00-ready: since: 2026-11-16T08:00:00Z (record 1)
        2/10-running: since: 2026-11-16T08:00:01Z (record 3), generation: 1, lane: 1, base: 0000000000000000000000000000000000000000
        3/00-ready: since: 2026-11-16T08:00:00Z (record 1)
        ");
    }

    #[test]
    fn a32_a_projection_that_was_being_written_when_the_driver_died_is_made_again() {
        let (scene, state) = scene();
        write_status_files(&scene.runs(), &run(), &state).unwrap();
        let whole = shown(&scene);
        let dir = scene.runs().dir(&run()).join("ws/2");
        // Killed while replacing: the old state's file, a half of the new one, a temporary.
        fs_err::write(dir.join("00-ready"), "since").unwrap();
        fs_err::write(dir.join("10-running"), "sin").unwrap();
        fs_err::write(dir.join(".10-running.pdca-tmp-1-2"), "").unwrap();
        write_status_files(&scene.runs(), &run(), &state).unwrap();
        assert_eq!(shown(&scene), whole);
    }

    #[test]
    fn e14_a_projection_that_is_wrong_or_gone_is_made_again_and_changes_nothing() {
        let (scene, state) = scene();
        let journal = scene.bytes();
        write_status_files(&scene.runs(), &run(), &state).unwrap();
        let whole = shown(&scene);
        let root = scene.runs().dir(&run()).join(DIR);
        let victim = scene.path().join("victim");
        fs_err::create_dir(&victim).unwrap();
        fs_err::write(victim.join("kept"), "precious").unwrap();
        let spoil: [&dyn Fn(); 6] = [
            &|| fs_err::remove_dir_all(&root).unwrap(),
            &|| fs_err::remove_dir_all(root.join("1")).unwrap(),
            &|| fs_err::rename(root.join("1/00-ready"), root.join("1/50-landed")).unwrap(),
            &|| {
                fs_err::remove_file(root.join("1/00-ready")).unwrap();
                fs_err::create_dir_all(root.join("1/00-ready/x")).unwrap();
            },
            &|| {
                fs_err::remove_dir_all(root.join("1")).unwrap();
                fs_err::os::unix::fs::symlink(&victim, root.join("1")).unwrap();
            },
            &|| {
                fs_err::remove_dir_all(&root).unwrap();
                fs_err::os::unix::fs::symlink(&victim, &root).unwrap();
            },
        ];
        for spoil in spoil {
            spoil();
            let found = scene.runs().find(&run()).found.unwrap();
            assert_eq!(found.state, state, "nothing is read from it");
            write_status_files(&scene.runs(), &run(), &found.state).unwrap();
            assert_eq!(shown(&scene), whole);
        }
        assert_eq!(scene.bytes(), journal);
        assert_eq!(fs_err::read_to_string(victim.join("kept")).unwrap(), "precious");
        assert_eq!(victim.read_dir_utf8().unwrap().count(), 1);
    }
}
