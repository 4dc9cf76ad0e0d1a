//! A leaf that does what its script says, and nothing else.
//!
//! ```text
//! fake-leaf SCRIPT [WORD…]          run the file SCRIPT
//! fake-leaf -e LINE [-e LINE…]      run these lines
//! FAKE_LEAF_SCRIPT=SCRIPT fake-leaf run the file that the environment names
//! ```
//!
//! # Language
//! One action per line, in order. Words are parted by blanks; `"…"` is one word in which
//! `\n`, `\t`, `\r`, `\0`, `\"` and `\\` are escapes. `#` starts a comment line. `${NAME}` in
//! any word is the environment variable, empty when unset; `${1}` is the first WORD after
//! the script. A last word `<<END` stands for all lines up to one that is just `END`,
//! unchanged and with their line ends.
//!
//! A path is relative to the current directory, absolute, or starts with a place:
//! `worktree:` (`PDCA_WORKTREE`), `bundle:` (`PDCA_BUNDLE`), `workspace:` (`PDCA_WORKSPACE`).
//! Directories above a file that is written are made.
//!
//! | action | does |
//! |---|---|
//! | `write PATH TEXT` | replaces a file |
//! | `append PATH TEXT` | adds to the end of a file |
//! | `log PATH TEXT` | adds one line to a file, in one write: for counting calls |
//! | `copy FROM TO`, `remove PATH` | copies a file; removes a file or a whole directory |
//! | `link TARGET PATH` | makes a symbolic link |
//! | `mode PATH OCTAL` | sets the mode of a file |
//! | `print TEXT`, `eprint TEXT` | one line to standard output or error |
//! | `flood BYTES` | that many bytes to standard output |
//! | `read PATH [REPORT]` | tries to read; `read PATH: yes` or `read PATH: no (why)` goes to the file REPORT, else to standard output |
//! | `try-write PATH [REPORT]` | likewise for writing: adds nothing, but opens the file for it |
//! | `ask TEXT [REPORT]` | prints TEXT and reads a line; `answer: …` or `answer: end of input` |
//! | `save-stdin PATH` | reads standard input to its end into a file |
//! | `save-env PATH` | writes the environment, `NAME=value` per line, sorted |
//! | `pwd [REPORT]` | the current directory |
//! | `sleep MS` | waits |
//! | `wait-for PATH` | waits until a file exists, at most five minutes |
//! | `exit CODE` | ends here |
//! | `count FILE` | counts calls in FILE and remembers which one this is |
//! | `[N] ACTION`, `[N+] ACTION`, `[-N] ACTION` | only on call N, from call N on, up to call N |
//! | `fail-first N FILE [CODE]` | counts calls in FILE; the first N end here with CODE, or 1 |
//! | `git WORD…` | runs git in the current directory; must succeed |
//! | `commit TEXT` | commits everything in the current directory |
//! | `daemon MS PATH` | leaves a process of its own session behind that holds no descriptor of ours, writes its pid to PATH and lives for MS |
//! | `daemon-holding MS PATH` | the same, but it keeps standard output and error open |
//! | `ignore-term` | TERM, INT and HUP have no effect from here on |
//! | `kill-self SIGNAL` | ends by that signal number |
//!
//! An action that cannot be carried out ends the program with 124, a script that makes no
//! sense with 125; standard error says which line.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a program that stands for any program a user may configure"
)]

mod action;
mod daemon;
mod script;

use std::{env, process::exit};

use script::{LeafScript, ScriptLine};

/// The script makes no sense.
const BAD_SCRIPT: i32 = 125;
/// An action could not be carried out.
const BAD_ACTION: i32 = 124;

fn main() {
    let mut args: Vec<String> = env::args().skip(1).collect();
    if args.first().is_some_and(|first| first == daemon::FLAG) {
        daemon::live(&args);
        return;
    }
    let text = match args.first().map(String::as_str) {
        Some("-e") => args
            .chunks(2)
            .filter_map(|pair| pair.get(1))
            .fold(String::new(), |text, line| text + line + "\n"),
        Some(_) => load(&args.remove(0)),
        None => match env::var("FAKE_LEAF_SCRIPT") {
            Ok(path) => load(&path),
            Err(_) => fail(BAD_SCRIPT, "no script was given"),
        },
    };
    let script = LeafScript::parse(&text).unwrap_or_else(|bad| fail(BAD_SCRIPT, &bad));
    let mut call = 0;
    for line in script.lines {
        if line.calls.as_ref().is_none_or(|calls| calls.contains(&call)) {
            step(&line, &args, &mut call);
        }
    }
}

fn load(path: &str) -> String {
    fs_err::read_to_string(path).unwrap_or_else(|err| fail(BAD_SCRIPT, &err.to_string()))
}

fn step(line: &ScriptLine, args: &[String], call: &mut u32) {
    let words: Vec<String> = line.words.iter().map(|word| script::expand(word, args)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match action::run(&words, call) {
        Ok(()) => {}
        Err(action::Error::Unknown) => {
            fail(BAD_SCRIPT, &format!("line {}: {words:?} is no action", line.number))
        }
        Err(action::Error::Failed(why)) => {
            fail(BAD_ACTION, &format!("line {}: {words:?}: {why}", line.number))
        }
    }
}

fn fail(code: i32, why: &str) -> ! {
    eprintln!("fake-leaf: {why}");
    exit(code)
}
