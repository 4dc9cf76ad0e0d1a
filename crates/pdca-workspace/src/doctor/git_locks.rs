//! Git's lock files in the user's own repository. They are reported, never removed.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_lanes::Target;

use super::{Fact, Finding};

/// The places of git's locks in a repository, except for refs.
const PLACES: [&str; 5] =
    ["index.lock", "HEAD.lock", "packed-refs.lock", "config.lock", "shallow.lock"];
/// The most refs that are searched.
const MOST: usize = 10_000;

/// Returns a finding for each lock file of git, and one if we cannot lock the repository ourselves.
pub(super) fn findings(target: &Target, now: u64) -> Vec<Finding> {
    let dir = target.common_dir();
    let mut findings = Vec::new();
    if let Err(error) = pdca_journal::holder(&dir.join("pdca.lock")) {
        let (name, error) = (target.name().to_owned(), pdca_state::chain(&error));
        findings.push(Finding::broken(Fact::TargetUnlockable { name, error }));
    }
    let locks = locks(dir);
    // The descriptors of all processes are read for it, which is slow where there are many.
    let mut open = if locks.is_empty() { BTreeMap::new() } else { holders() };
    findings.extend(locks.into_iter().map(|file| {
        let target = target.name().to_owned();
        Finding::warning(match open.remove(&file) {
            Some(holder) => Fact::GitLockHeld { target, file, holder },
            None => stale(target, file, now),
        })
    }));
    findings
}

fn stale(target: String, file: Utf8PathBuf, now: u64) -> Fact {
    let found = fs_err::metadata(&file).ok();
    let owner = found.as_ref().map(MetadataExt::uid);
    let made = found.and_then(|found| found.modified().ok());
    let age = made.map(|made| seconds_since(made, now));
    Fact::GitLockStale { target, file, owner, age }
}

fn seconds_since(made: SystemTime, now: u64) -> u64 {
    now.saturating_sub(made.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
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
