//! Finding checks whose program does not exist on this host.
//!
//! A check that cannot start says nothing about the patch. Before a run, [`preflight`] finds the checks whose program
//! is missing, so that a person is told once and not by every bundle. After a check that ended with the status with
//! which shells report a missing program, the same test tells a fault of the host from one of the patch.

use std::{ffi::OsStr, fs::Metadata, os::unix::fs::PermissionsExt as _};

use camino::Utf8Path;

use crate::{
    check::{Check, Checks, Command},
    config::Cwd,
    context::GateContext,
};

/// A check that cannot be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unready {
    pub rule_id: String,
    pub fault: ProgramFault,
}

/// The reason why a program cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramFault {
    /// The path does not exist, or no directory of the search path has the name.
    #[error("`{program}` not found")]
    Missing {
        /// The program as named in the configuration.
        program: String,
    },
    /// The file exists without permission to execute it.
    #[error("`{program}` is not executable")]
    NotExecutable {
        /// The program as named in the configuration.
        program: String,
    },
    /// The first line of the script names an interpreter that does not exist.
    #[error("`{program}` needs `{interpreter}`, not found")]
    NoInterpreter {
        /// The program as named in the configuration.
        program: String,
        /// The interpreter in its first line.
        interpreter: String,
    },
}

/// Returns the checks of this context that cannot be started, in order. Checks that can only be judged by running them
/// (a shell construct, a variable, a script of the tree under check) are not listed.
pub fn preflight(checks: &Checks, context: &GateContext<'_>) -> Vec<Unready> {
    // A script of the tree may come or go with the change, so what lies there now says nothing
    // about the run.
    let of_the_tree = |check: &Check| {
        check.cwd != Cwd::Workspace
            && program(&check.command)
                .is_some_and(|program| program.contains('/') && !program.starts_with('/'))
    };
    let chosen =
        checks.as_slice().iter().filter(|check| context.includes(check) && !of_the_tree(check));
    chosen
        .filter_map(|check| {
            let fault = program_fault(&check.command, check, context)?;
            Some(Unready { rule_id: check.id.clone(), fault })
        })
        .collect()
}

/// Returns the fault of the program that `command` starts, if it can be determined.
pub(crate) fn program_fault(
    command: &Command,
    check: &Check,
    context: &GateContext<'_>,
) -> Option<ProgramFault> {
    let program = program(command)?;
    let places = Places { cwd: context.cwd(check)?, path: context.search_path };
    let fault = places.fault_of(program, program);
    fault.or_else(|| places.interpreter_fault(program))
}

/// Returns the first word, if it is certainly the name of a program.
fn program(command: &Command) -> Option<&str> {
    match command {
        Command::Argv(words) => words.first().map(String::as_str),
        Command::Shell(text) => text
            .split_ascii_whitespace()
            .find(|word| !is_assignment(word))
            .filter(|word| is_plain(word) && !BUILTINS.contains(word)),
    }
}

/// Words that a shell executes itself or reads as syntax.
const BUILTINS: &[&str] = &[
    ".", ":", "[", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue",
    "declare", "do", "echo", "eval", "exec", "exit", "export", "false", "fc", "fg", "for",
    "function", "getopts", "hash", "if", "jobs", "kill", "let", "local", "popd", "printf", "pushd",
    "pwd", "read", "readonly", "return", "select", "set", "shift", "shopt", "source", "test",
    "time", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset",
    "until", "wait", "while",
];

fn is_plain(word: &str) -> bool {
    word.chars().all(|letter| letter.is_alphanumeric() || "_-./+@%,:".contains(letter))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, value)| {
        !name.is_empty()
            && is_plain(value)
            && !name.starts_with(|letter: char| letter.is_ascii_digit())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}

/// The directories in which a program is searched for.
struct Places<'a> {
    cwd: &'a Utf8Path,
    path: Option<&'a OsStr>,
}

impl Places<'_> {
    fn fault_of(&self, program: &str, named: &str) -> Option<ProgramFault> {
        let mut seen = false;
        for file in self.candidates(program)? {
            match fs_err::metadata(&file) {
                Ok(found) if is_executable(&found) => return None,
                Ok(found) => seen |= found.is_file(),
                Err(_) => {}
            }
        }
        let program = named.to_owned();
        Some(if seen {
            ProgramFault::NotExecutable { program }
        } else {
            ProgramFault::Missing { program }
        })
    }

    /// Returns every file that the name could mean; `None` if the search path is unknown.
    fn candidates(&self, program: &str) -> Option<Vec<std::path::PathBuf>> {
        if program.contains('/') {
            return Some(vec![self.cwd.join(program).into_std_path_buf()]);
        }
        let directories = std::env::split_paths(self.path?);
        Some(
            directories
                .map(|directory| self.cwd.as_std_path().join(directory).join(program))
                .collect(),
        )
    }

    /// Checks the interpreter in the first line of a script.
    fn interpreter_fault(&self, program: &str) -> Option<ProgramFault> {
        let files = self.candidates(program)?;
        let file = files.iter().find(|file| file.is_file())?;
        let words = first_line(file)?;
        let mut words = words.split_ascii_whitespace();
        let first = words.next()?;
        // `env` searches for its first argument as a shell does; its options are not examined.
        let wanted = match words.next() {
            Some(name) if first.ends_with("/env") && is_plain(name) && !name.starts_with('-') => {
                name
            }
            Some(_) | None => first,
        };
        self.fault_of(wanted, wanted).map(|_| ProgramFault::NoInterpreter {
            program: program.to_owned(),
            interpreter: wanted.to_owned(),
        })
    }
}

/// Returns the first line of a file after `#!`.
fn first_line(file: &std::path::Path) -> Option<String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let file = fs_err::File::open(file).ok()?;
    file.take(256).read_to_end(&mut bytes).ok()?;
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

fn is_executable(found: &Metadata) -> bool {
    found.is_file() && found.permissions().mode() & 0o111 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Option<&str> {
        let is = |word: &&str| is_plain(word) && !BUILTINS.contains(word);
        text.split_ascii_whitespace().find(|word| !is_assignment(word)).filter(is)
    }

    #[test]
    fn the_program_of_a_shell_command_is_known_only_where_it_is_plain() {
        assert_eq!(named("cargo test --all"), Some("cargo"));
        assert_eq!(named("A=1 B=x/y ./run.sh | cat"), Some("./run.sh"));
        for unknown in
            ["cd x && make", "$TOOL", "'my tool' x", "(make)", "[ -e x ]", "! make", "a;b"]
        {
            assert_eq!(named(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_program_is_found_missing_or_not_executable() {
        let dir = tempfile::tempdir().unwrap();
        let here = Utf8Path::from_path(dir.path()).unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            fs_err::write(here.join(name), text).unwrap();
            let mode = std::fs::Permissions::from_mode(mode);
            fs_err::set_permissions(here.join(name), mode).unwrap();
        };
        write("good", "#!/bin/sh\n", 0o755);
        write("plain", "#!/bin/sh\n", 0o644);
        write("orphan", "#!/no/such/interpreter -x\n", 0o755);
        write("lost", "#!/usr/bin/env no-such-tool\n", 0o755);
        let places = Places { cwd: here, path: Some(here.as_os_str()) };
        let fault = |program: &str| {
            let fault = places.fault_of(program, program);
            let fault = fault.or_else(|| places.interpreter_fault(program));
            fault.map_or_else(|| "ready".to_owned(), |fault| fault.to_string())
        };
        assert_eq!(fault("./good"), "ready");
        assert_eq!(fault("good"), "ready");
        assert_eq!(fault("./plain"), "`./plain` is not executable");
        assert_eq!(fault("absent"), "`absent` not found");
        assert_eq!(fault("./absent"), "`./absent` not found");
        assert_eq!(fault("./orphan"), "`./orphan` needs `/no/such/interpreter`, not found");
        assert_eq!(fault("lost"), "`lost` needs `no-such-tool`, not found");
    }

    #[test]
    fn without_a_search_path_nothing_is_said_about_bare_names() {
        let places = Places { cwd: Utf8Path::new("/"), path: None };
        assert_eq!(places.fault_of("cargo", "cargo"), None);
        assert!(places.fault_of("./no-such-file", "x").is_some());
    }
}
