//! The files outside of the tree that decide what a command does, as far as they can be followed.
//!
//! A command names programs and scripts: by a path, below `~` or `$HOME`, behind `env` or `sh -c`, or by a name that is
//! found on the search path. A script outside of the tree names further ones, and reads others beside it. All of them are part
//! of the fingerprint by their content. A script that cannot be followed to its end is known as such: a verdict of it is
//! not reused.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{
    check::Command,
    config::Cwd,
    fingerprint::{GateHost, LARGEST_SCRIPT, on_path, shell_words, words_with},
};

/// Endings of scripts, which need not be executable.
const SCRIPTS: [&str; 15] = [
    "sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua", "awk", "mk",
    "nix",
];
/// Trees of the system. Programs there are followed no further.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt", "/nix", "/dev"];
/// The most files of one command.
const MOST_FILES: usize = 512;
/// How deep the directory of a script is searched for scripts beside it.
const DEPTH: usize = 2;
/// Variables that lead to places of a single run.
const OF_A_RUN: [&str; 6] =
    ["$PDCA_WORKTREE", "$PDCA_TMP", "$PDCA_BUNDLE", "$TMPDIR", "$PWD", "$OLDPWD"];

/// The files of a command.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// Each with a name that does not depend on the machine.
    pub(crate) files: Vec<(String, Utf8PathBuf)>,
    /// Nothing was left that could not be followed.
    pub(crate) is_complete: bool,
    seen: BTreeSet<Utf8PathBuf>,
}

impl Followed {
    /// Follows a command that runs in `cwd`.
    pub(crate) fn of(command: &Command, cwd: Cwd, around: &GateHost) -> Self {
        let home = user_home();
        let mut followed = Self { is_complete: true, ..Self::default() };
        let words = shell_words(command, &home, &around.workspace);
        // After `cd ~/gates`, and with `PATH=~/bin:$PATH`, other words are found in that directory.
        let mut dirs: Vec<Utf8PathBuf> = words
            .iter()
            .map(Utf8PathBuf::from)
            .filter(|dir| dir.is_absolute() && dir.is_dir())
            .collect();
        dirs.push(around.workspace.clone());
        for word in words {
            let is_path = word.contains('/');
            let found = dirs.iter().map(|dir| dir.join(&word)).find(|file| file.is_file());
            let found = found.filter(|file| is_path || !file.starts_with(&around.workspace));
            let is_named = found.is_some();
            let found = found.or_else(|| on_path(&word, around.search_path.as_deref()));
            let Some(file) = found else { continue };
            // The tree is part of every key by its id; the content that lies here now may be that of another branch. A
            // full path is not meant relative to the tree.
            let is_relative = is_path && !word.starts_with('/');
            if is_relative && cwd != Cwd::Workspace && is_in_a_tree(&file, around) {
                continue;
            }
            let label = label(&word, &home, around);
            followed.add(&label, &file, is_named, around, &home);
        }
        followed
    }

    fn add(
        &mut self,
        label: &str,
        file: &Utf8Path,
        is_named: bool,
        around: &GateHost,
        home: &Utf8Path,
    ) {
        if !self.seen.insert(file.to_owned()) {
            return;
        }
        if self.files.len() >= MOST_FILES {
            self.is_complete = false;
            return;
        }
        self.files.push((label.to_owned(), file.to_owned()));
        let is_of_system = SYSTEM.iter().any(|tree| file.starts_with(tree));
        if is_of_system {
            return;
        }
        let Some(text) = self.script(file) else { return };
        let dir = file.parent().unwrap_or(Utf8Path::new("/")).to_owned();
        for word in words_with(&text, home, &around.workspace) {
            self.add_word(&word, &dir, around, home);
        }
        if is_named {
            self.add_beside(label, &dir, around, home);
        }
    }

    /// Returns the text of a script.
    fn script(&mut self, file: &Utf8Path) -> Option<String> {
        let Ok(bytes) = pdca_state::files::read_bounded(file, LARGEST_SCRIPT) else {
            // A large file is a program, unless it is called a script.
            self.is_complete &= !is_called_script(file);
            return None;
        };
        let bytes = bytes?;
        let is_script = bytes.starts_with(b"#!") || is_called_script(file);
        is_script.then(|| String::from_utf8(bytes).ok()).flatten()
    }

    /// Adds what a word of a script names.
    fn add_word(&mut self, word: &str, dir: &Utf8Path, around: &GateHost, home: &Utf8Path) {
        if word == "eval" {
            self.is_complete = false;
            return;
        }
        if !word.contains('/') {
            let found = on_path(word, around.search_path.as_deref());
            let found = found.filter(|file| !SYSTEM.iter().any(|tree| file.starts_with(tree)));
            if let Some(file) = found {
                self.add(word, &file, false, around, home);
            }
            return;
        }
        // `$(dirname "$0")/lib.sh` is cut before the slash.
        let inner = word.trim_start_matches('/');
        let places = [dir.join(word), dir.join(inner), around.workspace.join(word)];
        let found = places.into_iter().find(|file| file.is_file());
        match found {
            Some(file) if SYSTEM.iter().any(|tree| file.starts_with(tree)) => {}
            Some(file) => self.add(&label(word, home, around), &file, false, around, home),
            None => {
                let is_of_a_run = OF_A_RUN.iter().any(|name| word.starts_with(name));
                self.is_complete &= !word.starts_with('$') || is_of_a_run;
            }
        }
    }

    /// Adds the scripts beside one: interpreters load modules that no word names.
    fn add_beside(&mut self, label: &str, dir: &Utf8Path, around: &GateHost, home: &Utf8Path) {
        let is_shared = dir == around.workspace || dir == home || dir.parent().is_none();
        let mut open = vec![(dir.to_owned(), if is_shared { 1 } else { DEPTH })];
        while let Some((at, depth)) = open.pop() {
            let entries = at.read_dir_utf8().into_iter().flatten().flatten();
            let mut paths: Vec<Utf8PathBuf> =
                entries.map(|entry| entry.path().to_owned()).collect();
            paths.sort();
            for path in paths {
                let Ok(about) = fs_err::symlink_metadata(&path) else { continue };
                let runs = about.permissions().mode() & 0o111 != 0;
                if about.is_dir() && depth > 1 {
                    open.push((path, depth - 1));
                } else if about.is_file() && (runs || is_called_script(&path)) {
                    if self.files.len() >= MOST_FILES {
                        self.is_complete = false;
                        return;
                    }
                    let inner = path.strip_prefix(dir).unwrap_or(&path);
                    if self.seen.insert(path.clone()) {
                        self.files.push((format!("{label} {inner}"), path.clone()));
                    }
                }
            }
        }
    }
}

fn user_home() -> Utf8PathBuf {
    let home = pdca_process::home().and_then(|home| Utf8PathBuf::from_path_buf(home).ok());
    home.unwrap_or_default()
}

/// Returns a word without the places of this machine: the same checks elsewhere must have the same fingerprint.
fn label(word: &str, home: &Utf8Path, around: &GateHost) -> String {
    let path = Utf8Path::new(word);
    if let Ok(inner) = path.strip_prefix(&around.workspace) {
        return inner.to_string();
    }
    match path.strip_prefix(home) {
        Ok(inner) if !home.as_str().is_empty() => format!("~/{inner}"),
        _ => word.to_owned(),
    }
}

fn is_in_a_tree(file: &Utf8Path, around: &GateHost) -> bool {
    around.trees.iter().any(|tree| file.starts_with(tree))
}

fn is_called_script(file: &Utf8Path) -> bool {
    file.extension().is_some_and(|end| SCRIPTS.contains(&end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::check;

    fn put(file: &Utf8Path, text: &str) {
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(file, text).unwrap();
        fs_err::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn followed(text: &str, around: &GateHost) -> Followed {
        let check = check(text);
        Followed::of(&check.command, check.cwd, around)
    }

    #[test]
    fn a_program_is_found_however_it_is_written_and_so_is_what_it_calls() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        put(&dir.join("ws/gates/check.sh"), "#!/bin/sh\n. \"$(dirname \"$0\")/lib.sh\"\nhelper\n");
        put(&dir.join("ws/gates/lib.sh"), "");
        put(&dir.join("ws/gates/deep/module.py"), "");
        put(&dir.join("path/helper"), "#!/bin/sh\n");
        put(&dir.join("more/tool"), "binary");
        let around = GateHost {
            workspace: dir.join("ws"),
            search_path: Some(dir.join("path").into_string().into()),
            ..GateHost::default()
        };
        for text in [
            "cmd = './gates/check.sh'",
            "cmd = 'env X=1 sh gates/check.sh'",
            "cmd = 'sh \"$PDCA_WORKSPACE\"/gates/check.sh --all'",
            "argv = ['sh', '-c', 'exec ${PDCA_WORKSPACE}/gates/check.sh']",
        ] {
            let found = followed(text, &around);
            let names: Vec<&str> =
                found.files.iter().filter_map(|(_, file)| file.file_name()).collect();
            for name in ["check.sh", "lib.sh", "module.py", "helper"] {
                assert!(names.contains(&name), "{text}: {name} is not among {names:?}");
            }
            assert!(found.is_complete, "{text}");
        }
        let found = followed(&format!("cmd = 'PATH={dir}/more:$PATH tool'"), &around);
        assert!(found.files.iter().any(|(_, file)| file.ends_with("more/tool")));
    }

    #[test]
    fn a_script_that_cannot_be_followed_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        let around = GateHost { workspace: dir.to_owned(), ..GateHost::default() };
        for (text, is_complete) in [
            ("#!/bin/sh\nexit 0", true),
            ("#!/bin/sh\nls \"$PDCA_WORKTREE/src\"", true),
            ("#!/bin/sh\n\"$TOOLS/check\"", false),
            ("#!/bin/sh\neval \"$x\"", false),
        ] {
            put(&dir.join("gate.sh"), text);
            assert_eq!(followed("cmd = './gate.sh'", &around).is_complete, is_complete, "{text}");
        }
    }
}
