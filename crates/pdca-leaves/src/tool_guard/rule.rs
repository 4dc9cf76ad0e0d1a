//! The commands that a builder must not run, one file per kind of program.

pub(crate) mod driver;
pub(crate) mod files;
pub(crate) mod forge;
pub(crate) mod git;
pub(crate) mod process;
pub(crate) mod registry;

use std::collections::BTreeMap;

use crate::tool_guard::answer::GuardRefusal;
use crate::tool_guard::lexer::{Piece, Word};
use crate::tool_guard::walk::{ShellWalk, UNKNOWN};

/// Programs that are assumed when a variable of this name is the command, as in `$GIT push`.
const PROGRAMS: [&str; 12] = [
    "git", "gh", "glab", "hub", "npm", "pnpm", "yarn", "cargo", "docker", "podman", "twine", "pdca",
];

/// Judges a program with its arguments. `assigned` are the variables set for this command alone.
pub(crate) fn judge(
    cmdline: &[String],
    assigned: &BTreeMap<String, String>,
    walk: &mut ShellWalk<'_>,
) -> Result<(), GuardRefusal> {
    let Some((program, args)) = cmdline.split_first() else { return Ok(()) };
    let name = matched_program(program);
    match name {
        "git" => git::judge(args, assigned, walk)?,
        "gh" | "glab" | "hub" | "tea" => forge::judge(name, args, assigned, walk)?,
        "curl" | "wget" | "http" | "https" | "xh" => forge::request(name, args)?,
        "pdca" => driver::judge(args)?,
        "kill" | "pkill" | "killall" | "skill" | "fuser" => process::judge(name, args)?,
        _ => {
            // Subcommands of git also exist as programs, such as `git-push`.
            if let Some(subcommand) = name.strip_prefix("git-") {
                let args: Vec<String> =
                    std::iter::once(subcommand.to_owned()).chain(args.iter().cloned()).collect();
                git::judge(&args, assigned, walk)?;
            }
        }
    }
    registry::judge(name, args)?;
    files::judge(name, args, walk)
}

/// Returns the last component of a program's path.
pub(crate) fn name_of(program: &str) -> &str {
    // `\git` avoids an alias of the shell and runs the same program.
    program.rsplit('/').next().unwrap_or(program).trim_start_matches('\\')
}

/// Returns the program that a name or a pattern such as `/usr/bin/gi?` means.
fn matched_program(program: &str) -> &str {
    let name = name_of(program);
    if name.contains(['?', '*', '[']) {
        return PROGRAMS.into_iter().find(|known| matches_glob(name, known)).unwrap_or(name);
    }
    name
}

fn matches_glob(pattern: &str, text: &str) -> bool {
    let mut chars = pattern.chars();
    match chars.next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = chars.as_str();
            (0..=text.len()).any(|at| text.get(at..).is_some_and(|tail| matches_glob(rest, tail)))
        }
        Some('[') => {
            let Some((set, rest)) = chars.as_str().split_once(']') else { return false };
            text.chars()
                .next()
                .is_some_and(|c| in_set(set, c) && matches_glob(rest, &text[c.len_utf8()..]))
        }
        Some(one) => text.chars().next().is_some_and(|c| {
            (one == '?' || one == c) && matches_glob(chars.as_str(), &text[c.len_utf8()..])
        }),
    }
}

fn in_set(set: &str, c: char) -> bool {
    let (negated, set) = match set.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, set),
    };
    let chars: Vec<char> = set.chars().collect();
    let ranged =
        chars.windows(3).any(|range| range[1] == '-' && (range[0]..=range[2]).contains(&c));
    (ranged || chars.contains(&c)) != negated
}

/// Returns the program that a variable such as `$GIT` or `${GH_BIN}` is named after.
pub(crate) fn program_of_variable(word: &Word) -> Option<&'static str> {
    let [Piece::Variable { name, .. }] = word.0.as_slice() else { return None };
    let name = name.to_ascii_lowercase();
    let name = ["_bin", "_cmd", "_exe", "_path", "_command"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(&name);
    PROGRAMS.into_iter().find(|program| *program == name)
}

/// Returns true if a process pattern matches the driver.
pub(crate) fn names_driver(pattern: &str) -> bool {
    let pattern = pattern.replace(['[', ']', '^', '$', '\\'], "");
    pattern.contains("pdca")
}

/// Returns true if the last argument can only be a request for help.
pub(crate) fn asks_for_help(args: &[String]) -> bool {
    match args {
        [.., before, last] => last == "--help" && !before.starts_with('-'),
        [only] => only == "--help" || only == "-h",
        [] => false,
    }
}

/// Joins a program and its arguments to one line.
pub(crate) fn line(program: &str, args: &[String]) -> String {
    std::iter::once(program).chain(args.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

/// Returns true if a part of the text is only known at run time.
pub(crate) fn is_unknown(text: &str) -> bool {
    text.contains(UNKNOWN)
}
