//! The programs that this process starts outside a sandbox: found once, by absolute path.
//!
//! `PATH` often contains directories that a sandboxed child may write, such as a virtual environment in `~/.cache`. A
//! `git` in one of them may be the work of an earlier child. So the search passes over
//!
//! 1. relative and empty entries, which lead to another program in each directory,
//! 2. trees named by [`avoid_programs_in`], and links that lie in one of them or lead into one,
//! 3. directories that every user can write, and those of another user that a group can write.
//!
//! What was found is remembered, so a program that appears later in an earlier entry is not used. Helpers find their own
//! helpers through [`trusted_path`], the `PATH` without the entries that were passed over. A sandboxed child keeps the
//! whole `PATH`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::access::resolve;
use crate::sandbox::variable;

/// The search path where `PATH` is unset, as in the C library.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The reason why a program cannot be used outside a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// No directory of `PATH` has it.
    #[error("{} not found on PATH", name.display())]
    NotFound {
        /// The name of the program.
        name: OsString,
    },
    /// Only directories that others can write have it.
    #[error(
        "{} found only at {}, which agents, gates or other users can write; install it in a directory of the system, such as /usr/local/bin",
        path.file_name().unwrap_or_default().display(), path.display()
    )]
    Untrusted {
        /// The first place on `PATH` that has it.
        path: PathBuf,
    },
}

#[derive(Debug, Default)]
struct Search {
    avoided: BTreeSet<PathBuf>,
    found: BTreeMap<OsString, PathBuf>,
    /// `PATH` without the entries that are passed over, once it is known.
    trusted: Option<OsString>,
}

fn search() -> MutexGuard<'static, Search> {
    static SEARCH: Mutex<Search> =
        Mutex::new(Search { avoided: BTreeSet::new(), found: BTreeMap::new(), trusted: None });
    SEARCH.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process use no program in these trees, because sandboxed children may write there.
pub fn avoid_programs_in(trees: impl IntoIterator<Item = PathBuf>) {
    let mut search = search();
    for tree in trees {
        // A tree that does not exist yet is avoided under the path where it will appear.
        if let Ok(found) = resolve(&tree) {
            search.avoided.insert(if found.is_missing { tree.clone() } else { found.path });
        }
        search.avoided.insert(tree);
    }
    let Search { avoided, found, trusted } = &mut *search;
    found.retain(|_, path| is_trusted(path, avoided));
    *trusted = None;
}

/// Returns the absolute path of a program to start outside a sandbox; the same one for the life of this process.
pub fn find_program(name: impl AsRef<OsStr>) -> Result<PathBuf, ProgramError> {
    let name = name.as_ref();
    let mut search = search();
    if let Some(path) = search.found.get(name) {
        return Ok(path.clone());
    }
    let found = find_in(&path(), name, &search.avoided)?;
    search.found.insert(name.to_owned(), found.clone());
    Ok(found)
}

/// Remembers where a program is, as another process found it.
pub(crate) fn know(name: &str, path: PathBuf) {
    search().found.insert(name.into(), path);
}

/// Returns `PATH` without the entries in which this process looks for no program.
pub(crate) fn trusted_path() -> OsString {
    let Search { avoided, trusted, .. } = &mut *search();
    trusted.get_or_insert_with(|| without_untrusted(&path(), avoided)).clone()
}

/// Returns another search path without such entries.
pub(crate) fn trusted_part(path: &OsStr) -> OsString {
    without_untrusted(path, &search().avoided)
}

fn without_untrusted(path: &OsStr, avoided: &BTreeSet<PathBuf>) -> OsString {
    let dirs = std::env::split_paths(path)
        .filter(|dir| dir.is_absolute() && is_trusted(&dir.join("program"), avoided));
    // Joined again, the parts of a search path form one.
    std::env::join_paths(dirs).unwrap_or_default()
}

fn path() -> OsString {
    variable("PATH").unwrap_or_else(|| DEFAULT_PATH.into())
}

fn find_in(
    path: &OsStr,
    name: &OsStr,
    avoided: &BTreeSet<PathBuf>,
) -> Result<PathBuf, ProgramError> {
    let dirs = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    let mut passed_over = None;
    for file in dirs.map(|dir| dir.join(name)).filter(|file| is_executable(file)) {
        if is_trusted(&file, avoided) {
            return Ok(file);
        }
        passed_over.get_or_insert(file);
    }
    Err(match passed_over {
        Some(path) => ProgramError::Untrusted { path },
        None => ProgramError::NotFound { name: name.to_owned() },
    })
}

fn is_executable(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.is_file())
        && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Returns true if no sandboxed child and no other user decides what this path leads to. The file need not exist.
fn is_trusted(file: &Path, avoided: &BTreeSet<PathBuf>) -> bool {
    let Ok(found) = resolve(file) else { return false };
    // A directory is missing: it may appear later, under exactly this path.
    let mut places = vec![file.to_owned(), found.path];
    places.extend(found.links);
    let is_avoided = |place: &PathBuf| {
        let mut trees = avoided.iter().filter(|tree| place.starts_with(tree));
        trees.any(|tree| {
            // An opening such as `/` holds directories that only the system can write.
            let within = place.ancestors().take_while(|above| above.starts_with(tree));
            within.filter(|above| above.exists()).any(is_ours)
        })
    };
    !places.iter().any(is_avoided)
        && places.iter().filter_map(|place| place.parent()).all(|dir| !is_shared(dir))
}

/// Returns true if a process of this user can write here, perhaps after it changed the mode.
fn is_ours(path: &Path) -> bool {
    let own = rustix::process::geteuid();
    own.is_root()
        || std::fs::metadata(path).is_ok_and(|found| found.uid() == own.as_raw())
        || rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Returns true if other users can put a program into this directory.
fn is_shared(dir: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_open = |dir: &Path, is_innermost: bool| {
        std::fs::metadata(dir).is_ok_and(|found| {
            let for_all = found.mode() & 0o002 != 0;
            // In a directory such as `/tmp` others can create entries, but not replace ours.
            let is_sticky = found.mode() & 0o1000 != 0;
            let of_another = ![0, own].contains(&found.uid()) && found.mode() & 0o020 != 0;
            (for_all && (is_innermost || !is_sticky)) || of_another
        })
    };
    dir.ancestors().enumerate().any(|(height, above)| is_open(above, height == 0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// Directories `one` to `three`, each with a program `tool`.
    fn scene() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["one", "two", "three"] {
            std::fs::create_dir(root.join(name)).unwrap();
            put(&root.join(name).join("tool"));
        }
        (dir, root)
    }

    fn put(file: &Path) {
        std::fs::write(file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn find(root: &Path, dirs: &[&str], avoided: &[&str]) -> Result<PathBuf, ProgramError> {
        let path = std::env::join_paths(dirs.iter().map(|dir| root.join(dir))).unwrap();
        let avoided = avoided.iter().map(|dir| root.join(dir)).collect();
        find_in(&path, OsStr::new("tool"), &avoided)
    }

    #[test]
    fn an_avoided_directory_is_passed_over() {
        let (_dir, root) = scene();
        assert_eq!(find(&root, &["one", "two"], &[]), Ok(root.join("one/tool")));
        assert_eq!(find(&root, &["one", "two"], &["one"]), Ok(root.join("two/tool")));
        assert_eq!(
            find(&root, &["one", "two"], &[""]),
            Err(ProgramError::Untrusted { path: root.join("one/tool") })
        );
        assert_eq!(
            find(&root, &["none"], &[]),
            Err(ProgramError::NotFound { name: "tool".into() })
        );
    }

    #[test]
    fn a_link_into_or_inside_an_avoided_tree_is_passed_over() {
        let (_dir, root) = scene();
        std::fs::remove_file(root.join("two/tool")).unwrap();
        symlink("../one/tool", root.join("two/tool")).unwrap();
        symlink("one", root.join("alias")).unwrap();
        symlink(root.join("three"), root.join("one/back")).unwrap();
        for dir in ["two", "alias", "one/back"] {
            assert_eq!(
                find(&root, &[dir, "three"], &["one"]),
                Ok(root.join("three/tool")),
                "{dir}"
            );
        }
    }

    #[test]
    fn a_directory_that_everybody_can_write_is_passed_over() {
        let (_dir, root) = scene();
        let open = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(root.join("one"), open(0o777)).unwrap();
        std::fs::set_permissions(root.join("two"), open(0o1777)).unwrap();
        assert_eq!(find(&root, &["one", "two", "three"], &[]), Ok(root.join("three/tool")));
        std::fs::create_dir(root.join("one/inner")).unwrap();
        put(&root.join("one/inner/tool"));
        assert!(find(&root, &["one/inner"], &[]).is_err(), "its parent can be replaced");
        std::fs::set_permissions(root.join("three"), open(0o775)).unwrap();
        assert_eq!(find(&root, &["three"], &[]), Ok(root.join("three/tool")), "of our own group");
    }

    #[test]
    fn a_relative_entry_is_passed_over_and_a_file_that_cannot_be_executed_is_no_program() {
        let (_dir, root) = scene();
        std::fs::set_permissions(root.join("one/tool"), std::fs::Permissions::from_mode(0o644))
            .unwrap();
        let path = format!(".::{}:{}", root.join("one").display(), root.join("two").display());
        let found = find_in(OsStr::new(&path), OsStr::new("tool"), &BTreeSet::new());
        assert_eq!(found, Ok(root.join("two/tool")));
    }

    #[test]
    fn helpers_get_the_path_without_what_is_passed_over() {
        let (_dir, root) = scene();
        let [one, two] = ["one", "two"].map(|dir| root.join(dir));
        let path = std::env::join_paths([Path::new("."), &one, &two]).unwrap();
        assert_eq!(without_untrusted(&path, &BTreeSet::from([one])), two.into_os_string());
    }

    #[test]
    fn a_program_is_found_once_and_forgotten_where_its_tree_is_avoided_later() {
        let (_dir, root) = scene();
        know("of-this-test", root.join("one/tool"));
        assert_eq!(find_program("of-this-test"), Ok(root.join("one/tool")));
        avoid_programs_in([root.join("one")]);
        assert_eq!(
            find_program("of-this-test"),
            Err(ProgramError::NotFound { name: "of-this-test".into() })
        );
        assert!(find_program("sh").unwrap().is_absolute());
    }
}
