//! Git's lock files in the user's own repository. They are reported, never removed.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_lanes::Target;

use crate::doctor::Row;
use crate::words::age;

/// The places of git's locks in a repository, except for refs.
const PLACES: [&str; 5] =
    ["index.lock", "HEAD.lock", "packed-refs.lock", "config.lock", "shallow.lock"];
/// The most refs that are searched.
const MOST: usize = 10_000;

/// Returns a row for each lock file of git, and one if we cannot lock the repository ourselves.
pub(super) fn rows(target: &Target, now: i64) -> Vec<Row> {
    let dir = target.common_dir();
    let what = format!("target {}", target.name());
    let mut rows = Vec::new();
    if let Err(error) = pdca_journal::holder(&dir.join("pdca.lock")) {
        rows.push(Row::broken(
            &what,
            pdca_state::chain(&error),
            "without locks two drivers could work at once; move the repository to a filesystem that has them",
        ));
    }
    let locks = locks(dir);
    // The descriptors of all processes are read for it, which is slow where there are many.
    let open = if locks.is_empty() { BTreeMap::new() } else { holders() };
    rows.extend(locks.iter().map(|lock| row(&what, lock, open.get(lock), now)));
    rows
}

fn row(what: &str, lock: &Utf8Path, holder: Option<&String>, now: i64) -> Row {
    if let Some(holder) = holder {
        return Row::warning(
            what,
            format!("{holder} has {lock} open: a git command is at work"),
            "wait until it is done",
        );
    }
    let found = fs_err::metadata(lock).ok();
    let owner =
        found.as_ref().map_or_else(String::new, |found| format!(" of user {}", found.uid()));
    let age = found
        .and_then(|found| found.modified().ok())
        .map_or_else(String::new, |made| format!(", {} old", age(seconds_since(made, now))));
    Row::warning(
        what,
        format!("{lock}{owner} is there{age}, and no process that can be seen has it open"),
        format!("a git command was killed; if none is at work, `rm {lock}`"),
    )
}

fn seconds_since(made: SystemTime, now: i64) -> u64 {
    let made = made.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    u64::try_from(now).unwrap_or(0).saturating_sub(made)
}

/// Finds git's lock files.
fn locks(dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut found: Vec<Utf8PathBuf> =
        PLACES.iter().map(|name| dir.join(name)).filter(|path| path.is_file()).collect();
    let mut waiting = vec![dir.join("refs")];
    let mut seen = 0;
    while let Some(dir) = waiting.pop() {
        let Ok(entries) = dir.read_dir_utf8() else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MOST {
                return found;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path().to_owned()),
                Ok(kind) if kind.is_file() && entry.path().extension() == Some("lock") => {
                    found.push(entry.path().to_owned());
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    found.sort();
    found
}

/// Maps open files to processes, as far as visible.
fn holders() -> BTreeMap<Utf8PathBuf, String> {
    let mut holders = BTreeMap::new();
    let Ok(processes) = Utf8Path::new("/proc").read_dir_utf8() else { return holders };
    for process in processes.flatten() {
        let Ok(pid) = process.file_name().parse::<u32>() else { continue };
        let Ok(files) = process.path().join("fd").read_dir_utf8() else { continue };
        for file in files.flatten() {
            if let Ok(path) = file.path().read_link_utf8()
                && path.extension() == Some("lock")
            {
                let name = fs_err::read_to_string(process.path().join("comm")).unwrap_or_default();
                holders.insert(path, format!("process {pid} ({})", name.trim()));
            }
        }
    }
    holders
}
