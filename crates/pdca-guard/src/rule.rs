//! What a builder must not do, one file per kind of program.

pub(crate) mod driver;
pub(crate) mod files;
pub(crate) mod forge;
pub(crate) mod git;
pub(crate) mod process;
pub(crate) mod registry;

use std::collections::BTreeMap;

use crate::answer::Refusal;
use crate::lexer::{Piece, Word};
use crate::walk::{UNKNOWN, Walk};

/// Programs whose name in a variable (`$GIT push`) is believed.
const PROGRAMS: [&str; 12] = [
    "git", "gh", "glab", "hub", "npm", "pnpm", "yarn", "cargo", "docker", "podman", "twine", "pdca",
];

/// Judges a program with its arguments. `assigned` are the variables set for it alone.
pub(crate) fn judge(
    cmdline: &[String],
    assigned: &BTreeMap<String, String>,
    walk: &mut Walk<'_>,
) -> Result<(), Refusal> {
    let Some((program, args)) = cmdline.split_first() else { return Ok(()) };
    let name = matched_program(program);
    match name {
        "git" => git::judge(args, assigned, walk)?,
        "gh" | "glab" | "hub" | "tea" => forge::judge(name, args, assigned, walk)?,
        "curl" | "wget" | "http" | "https" | "xh" => forge::request(name, args)?,
        "pdca" => driver::judge(args)?,
        "kill" | "pkill" | "killall" | "skill" | "fuser" => process::judge(name, args)?,
        _ => {
            // The parts of git can be called by their own names.
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

/// The last part of a program's path.
pub(crate) fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program).trim_start_matches('\\')
}

/// The program that a name or a pattern such as `/usr/bin/gi?` means.
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

/// The program that a variable such as `$GIT` or `${GH_BIN}` is named after.
pub(crate) fn program_of_variable(word: &Word) -> Option<&'static str> {
    let [Piece::Variable { name, .. }] = word.0.as_slice() else { return None };
    let name = name.to_ascii_lowercase();
    let name = ["_bin", "_cmd", "_exe", "_path", "_command"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(&name);
    PROGRAMS.into_iter().find(|program| *program == name)
}

/// Whether a pattern for processes finds the driver.
pub(crate) fn names_driver(pattern: &str) -> bool {
    let pattern = pattern.replace(['[', ']', '^', '$', '\\'], "");
    pattern.contains("pdca")
}

/// Whether the last argument asks for help and nothing else can be meant by it.
pub(crate) fn asks_for_help(args: &[String]) -> bool {
    match args {
        [.., before, last] => last == "--help" && !before.starts_with('-'),
        [only] => only == "--help" || only == "-h",
        [] => false,
    }
}

/// The arguments as one line.
pub(crate) fn line(program: &str, args: &[String]) -> String {
    std::iter::once(program).chain(args.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

/// Whether the text, or a part of it, is only known when it runs.
pub(crate) fn is_unknown(text: &str) -> bool {
    text.contains(UNKNOWN)
}
