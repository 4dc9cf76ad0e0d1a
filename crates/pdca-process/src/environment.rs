//! Which of the driver's variables a child does not get.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

/// The variable that carries the tokens of all supervisors above a process, newest last.
pub(crate) const TOKENS: &str = "PDCA_SUPERVISED";

/// What ties git to a repository other than the one it is started in.
const GIT: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// Takes from `command` what no child is to inherit. The environment is not read for its own sake:
/// its names are only looked through for those to withhold.
pub(crate) fn cleanse(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if is_withheld(&name) {
            command.env_remove(name);
        }
    }
}

fn is_withheld(name: &OsStr) -> bool {
    if name == TOKENS {
        return false;
    }
    name.as_bytes().starts_with(b"PDCA_") || GIT.iter().any(|withheld| name == *withheld)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_binds_to_another_place_is_withheld() {
        let names = ["GIT_DIR", "GIT_EDITOR", "PDCA_BASE", TOKENS, "PATH"];
        let withheld: Vec<_> =
            names.into_iter().filter(|name| is_withheld(OsStr::new(name))).collect();
        assert_eq!(withheld, ["GIT_DIR", "PDCA_BASE"]);
    }
}
