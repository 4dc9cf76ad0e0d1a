//! The programs `git` on this machine.

use std::path::PathBuf;

use pdca_process::InstalledGit;

/// Every git that is enough for us, one of each version, the oldest first.
///
/// Looked for in each directory of `PATH`, and where systems and people who build it themselves put
/// it. Panics where there is none.
pub fn gits() -> Vec<InstalledGit> {
    #[expect(clippy::disallowed_methods, reason = "a test looks where programs are looked for")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"].map(PathBuf::from);
    let mut found: Vec<InstalledGit> = std::env::split_paths(&path)
        .chain(usual)
        .map(|dir| dir.join("git"))
        .filter(|program| program.is_file())
        .filter_map(|program| InstalledGit::at(&program).ok()?.new_enough().ok())
        .collect();
    found.sort_by_key(|git| git.version);
    found.dedup_by(|one, other| one.said == other.said);
    assert!(!found.is_empty(), "there is a git on this machine");
    found
}
