//! The repository to measure with.

use std::{fmt::Write as _, io::Write as _, process::Stdio};

use camino::Utf8Path;

use crate::dice::Dice;
use crate::{Stopped, program};

/// Clones a repository, so that rivals register their worktrees in the clone.
pub(super) fn copy(repo: &Utf8Path, to: &Utf8Path) -> Result<(), Stopped> {
    eprintln!("cloning {repo}");
    let here = Utf8Path::new(".");
    program::output("git", &["clone", "-q", "--no-local", repo.as_str(), to.as_str()], here)?;
    Ok(())
}

/// Generates a repository of this many files, the same in every run.
pub(super) fn generate(at: &Utf8Path, files: u32) -> Result<(), Stopped> {
    eprintln!("generating {files} files");
    fs_err::create_dir_all(at)?;
    program::output("git", &["init", "-q", "-b", "main"], at)?;
    let mut import =
        program::command("git", &["fast-import", "--quiet"], at).stdin(Stdio::piped()).spawn()?;
    let mut stream = std::io::BufWriter::new(
        import.stdin.take().ok_or("the standard input of git is not there")?,
    );
    let mut dice = Dice::new(1);
    writeln!(stream, "commit refs/heads/main\ncommitter B <b@localhost> 1000000000 +0000")?;
    writeln!(stream, "data 5\nbench\nM 644 inline .gitignore\ndata 15\n/target/\n*.tmp\n")?;
    for number in 1..files {
        let text = content(&mut dice, number);
        writeln!(stream, "M 644 inline {}\ndata {}\n{text}", path(number), text.len())?;
    }
    stream.flush()?;
    drop(stream);
    if !import.wait()?.success() {
        return Err("git fast-import failed".into());
    }
    // An import leaves one long delta chain, which a fetched repository does not have.
    program::output("git", &["repack", "-a", "-d", "-f", "-q"], at)?;
    program::output("git", &["reset", "-q", "--hard"], at)?;
    Ok(())
}

/// Returns a path with about ten files per directory, three to five levels deep.
fn path(number: u32) -> String {
    let dir = number / 10;
    let mut path = String::new();
    let (part, module) = (dir % 23, dir / 23);
    write!(path, "part{part}/module{}", module % 29).expect("a string takes any text");
    if module.is_multiple_of(3) {
        write!(path, "/lib/inner{}/unit", module / 29).expect("a string takes any text");
    } else {
        write!(path, "/src{}", module / 29).expect("a string takes any text");
    }
    write!(path, "/file{number}.rs").expect("a string takes any text");
    path
}

/// Returns the contents of a file: most are small, some ten times larger, a few a hundred times.
fn content(dice: &mut Dice, number: u32) -> String {
    let lines = match below(dice, 100) {
        0 => 400 + below(dice, 400),
        1..=12 => 60 + below(dice, 120),
        _ => 4 + below(dice, 36),
    };
    let mut text = format!("//! file {number}\n");
    for _ in 0..lines {
        for _ in 0..2 + below(dice, 6) {
            write!(text, "{} ", WORDS[below(dice, 32) as usize]).expect("a string takes any text");
        }
        writeln!(text, "{:x}", below(dice, 1 << 24)).expect("a string takes any text");
    }
    text
}

/// The vocabulary of the lines.
const WORDS: [&str; 32] = [
    "let", "value", "match", "return", "buffer", "index", "entry", "state", "if", "else", "while",
    "path", "name", "length", "offset", "open", "close", "read", "write", "error", "result",
    "some", "none", "self", "node", "tree", "left", "right", "parse", "format", "static", "const",
];

/// Returns a number below `end`.
fn below(dice: &mut Dice, end: u32) -> u32 {
    u32::try_from(dice.roll(u64::from(end))).expect("it is below a number of 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_repository_has_as_many_files_as_were_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let repo = Utf8Path::from_path(home.path()).unwrap().join("repo");
        generate(&repo, 300).unwrap();
        let listed = program::output("git", &["ls-files"], &repo).unwrap();
        assert_eq!(String::from_utf8(listed).unwrap().lines().count(), 300);
        let dirty = program::output("git", &["status", "--porcelain"], &repo).unwrap();
        assert_eq!(dirty, b"");
    }
}
