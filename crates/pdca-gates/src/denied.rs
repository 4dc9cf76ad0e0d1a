//! The path that a sandboxed check could not write, read from its output, and the line of `pdca.toml` that opens it.
//!
//! This explains a failure and decides nothing.

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use pdca_process::Sandbox;

use crate::context::PrimaryView;

/// The words with which programs report that a path is closed, in lower case.
const WORDS: [&str; 6] = [
    "read-only file system",
    "permission denied",
    "operation not permitted",
    "readonlyfilesystem",
    "erofs",
    "eacces",
];

/// The most bytes of a log that are read, from its end.
const LONGEST_LOG: usize = 256 << 10;

/// Returns a sentence about the first path outside of the check's places that its output says is closed.
pub(crate) fn proposal(
    log: &[u8],
    cwd: &Utf8Path,
    workspace: &Utf8Path,
    sandbox: &Sandbox,
) -> Option<String> {
    let log = &log[log.len().saturating_sub(LONGEST_LOG)..];
    let text = String::from_utf8_lossy(log);
    let closed = text.lines().filter(|line| {
        let line = line.to_lowercase();
        WORDS.iter().any(|word| line.contains(word))
    });
    let path = closed.flat_map(paths_of).map(|path| tidy(&cwd.join(path))).find(|path| {
        // What is open was refused for another reason, such as its mode. Devices are never opened by name.
        !is_open(path, sandbox) && !path.starts_with("/dev") && !path.starts_with("/proc")
    })?;
    Some(if sandbox.no_write.iter().any(|tree| path.starts_with(tree)) {
        format!(
            "it may not write {path}, which stays closed to gates; `sandbox = \"off\"` in this row confines it to nothing"
        )
    } else {
        let line = format!("may_write = [{:?}]", opening(&path, workspace).as_str());
        format!("it may not write {path}: `{line}` in this row, or in [gates] for all, allows it")
    })
}

/// Words with which programs report that they did not get a file, beyond [`WORDS`], in lower case.
const ABSENT: [&str; 9] = [
    "no such file",
    "not found",
    "cannot find",
    "can't find",
    "does not exist",
    "enoent",
    "failed to read",
    "failed to open",
    "cannot open",
];

/// Returns a sentence about the first path of a target's own checkout that the output says is missing or closed.
pub(crate) fn primary(log: &[u8], cwd: &Utf8Path, view: &PrimaryView) -> Option<String> {
    let log = &log[log.len().saturating_sub(LONGEST_LOG)..];
    let text = String::from_utf8_lossy(log);
    let lines = text.lines().filter(|line| {
        let line = line.to_lowercase();
        WORDS.iter().chain(&ABSENT).any(|word| line.contains(word))
    });
    let mut paths = lines.flat_map(paths_of).map(|path| tidy(&cwd.join(path)));
    let path = paths.find(|path| !path.starts_with(cwd) && view.checkout_of(path).is_some())?;
    Some(format!(
        "{path} is in the target's own checkout, which gates do not see: name the path in the row's own checkout, or write \
         `reads_primary = true` in this row"
    ))
}

/// Returns the words of a line that look like paths.
fn paths_of(line: &str) -> impl Iterator<Item = &str> {
    let words =
        line.split(|letter: char| letter.is_whitespace() || "'\"`‘’“”()[],".contains(letter));
    let words = words.map(|word| word.trim_end_matches([':', ';', '.']));
    words.filter(|word| word.contains('/') && word.len() > 1 && !word.contains("://"))
}

fn is_open(path: &Utf8Path, sandbox: &Sandbox) -> bool {
    let deepest = |trees: &[Utf8PathBuf]| {
        let around = trees.iter().filter(|tree| path.starts_with(tree));
        around.map(|tree| tree.components().count()).max()
    };
    let closed = deepest(&sandbox.no_write).max(deepest(&sandbox.no_read));
    deepest(&sandbox.own) > closed
        || (closed.is_none() && deepest(&sandbox.write) > deepest(&sandbox.apart))
}

/// Returns the path to open: the directory of the workspace below which it lies, or the nearest directory elsewhere.
fn opening(path: &Utf8Path, workspace: &Utf8Path) -> Utf8PathBuf {
    if let Ok(inner) = path.strip_prefix(workspace)
        && let Some(first) = inner.components().next()
    {
        return Utf8PathBuf::from(first.as_str());
    }
    let above = path.ancestors().find(|above| above.is_dir());
    above.unwrap_or(path).to_owned()
}

/// Removes `.` and `..` from a path.
fn tidy(path: &Utf8Path) -> Utf8PathBuf {
    let mut tidy = Utf8PathBuf::new();
    for part in path.components() {
        match part {
            Utf8Component::CurDir => {}
            Utf8Component::ParentDir => {
                tidy.pop();
            }
            Utf8Component::Normal(_) | Utf8Component::RootDir | Utf8Component::Prefix(_) => {
                tidy.push(part);
            }
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;
    use pdca_process::SandboxMode;

    fn of(line: &str) -> Option<String> {
        let paths = |paths: &[&str]| paths.iter().map(Utf8PathBuf::from).collect::<Vec<_>>();
        let sandbox = Sandbox::new(SandboxMode::Auto)
            .own(paths(&["/ws/lanes/lane-0/app"]))
            .write(paths(&["/ws/open", "/people/u/.cache"]))
            .apart(paths(&["/ws"]))
            .no_write(paths(&["/ws/results", "/ws/lanes", "/ws/open/closed"]));
        let cwd = Utf8Path::new("/ws/lanes/lane-0/app");
        proposal(line.as_bytes(), cwd, Utf8Path::new("/ws"), &sandbox)
    }

    #[test]
    fn the_line_that_opens_the_path_is_told_however_a_program_reports_it() {
        for line in [
            "sh: 1: cannot create /ws/out/log: Read-only file system",
            "touch: cannot touch '/ws/out/log': Permission denied",
            "touch: cannot touch ‘/ws/out/log’: Read-only file system",
            "OSError: [Errno 30] Read-only file system: '/ws/out/log'",
            "Error: EROFS: read-only file system, open '/ws/out/log'",
            "mkdir: ../../../out/log: Permission denied",
            "fatal: could not open \"/ws/out/log\" (Read-only file system)",
        ] {
            let said = of(line).unwrap_or_else(|| panic!("nothing is said about {line}"));
            let expected = "it may not write /ws/out/log: `may_write = [\"out\"]` in this row, or in [gates] for all, allows it";
            assert_eq!(said, expected, "{line}");
        }
    }

    #[test]
    fn what_is_open_or_has_no_path_is_not_explained_and_what_stays_closed_is_called_so() {
        for line in [
            "touch: cannot touch '/ws/lanes/lane-0/app/x': Permission denied",
            "touch: cannot touch 'sub/x': Permission denied",
            "/ws/open/x: Permission denied",
            "/people/u/.cache/x: Permission denied",
            "error: permission denied",
            "https://example.org/x: Permission denied",
            "/ws/out/log: No such file or directory",
            "/dev/sda: Permission denied",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        for closed in ["/ws/results/x", "/ws/open/closed/x", "/ws/lanes/lane-1/app/x"] {
            let said = of(&format!("{closed}: Read-only file system")).unwrap();
            let start = format!("it may not write {closed}, which stays closed to gates; ");
            assert!(said.starts_with(&start), "{said}");
        }
    }

    #[test]
    fn a_path_of_the_users_checkout_that_is_missing_or_closed_is_told() {
        let view = PrimaryView {
            hidden: vec!["/srv/app".into()],
            shown: vec!["/srv/app/.git/objects".into()],
            replaced: None,
        };
        let of = |line: &str| primary(line.as_bytes(), "/lanes/0/app".into(), &view);
        for line in [
            "PermissionError: [Errno 13] Permission denied: '/srv/app/src/calc/__init__.py'",
            "make: /srv/app/rules.mk: No such file or directory",
            "  failed to read `/srv/app/calc/Cargo.toml`",
        ] {
            let said = of(line).unwrap_or_else(|| panic!("nothing is said about {line}"));
            assert!(said.contains("reads_primary = true"), "{said}");
        }
        for line in [
            "/srv/app2/x: Permission denied",
            "/srv/app/.git/objects/ab: Permission denied",
            "src/x: No such file or directory",
            "compiling /srv/app/src",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn outside_of_the_workspace_the_nearest_directory_is_proposed() {
        let said = of("/usr/no-such-directory/x: Read-only file system").unwrap();
        assert!(said.contains("may_write = [\"/usr\"]"), "{said}");
    }
}
