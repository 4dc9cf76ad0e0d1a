//! `cargo xtask house`: counts style and size of the source, beside the same counts of
//! model codebases.
//!
//! It is a thermometer. It fails nothing and has no threshold: a comment written to move a number
//! is worse than none.

mod census;
mod lines;

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};

use crate::{Outcome, Stopped};
use census::Census;
use lines::LineCount;

/// Print the counters of the house style beside those of its models
///
/// Fails nothing. Test code is left out of every count but its own.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Also list the names of more than one type, with where each is
    #[arg(long)]
    names: bool,
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let (crates, census) = count(root)?;
    let mut total = LineCount::default();
    for lines in crates.values() {
        total += lines;
    }
    println!("{}", render(&total, &crates, &census, walk(root)?));
    if args.names {
        for (name, places) in census.shared_names() {
            println!("{name}: {}", places.join(", "));
        }
    }
    Ok(Outcome::Passed)
}

/// Counts every Rust file of the workspace, by crate.
fn count(root: &Utf8Path) -> Result<(BTreeMap<String, LineCount>, Census), Stopped> {
    let mut crates: BTreeMap<String, LineCount> = BTreeMap::new();
    let mut census = Census::default();
    for path in sources(root)? {
        let text = fs_err::read_to_string(root.join(&path))?;
        let owner = crate_of(&path);
        census.read(&owner, &path, &text)?;
        *crates.entry(owner).or_default() += &LineCount::of(&path, &text);
    }
    Ok((crates, census))
}

fn render(
    total: &LineCount,
    crates: &BTreeMap<String, LineCount>,
    census: &Census,
    walk: Option<usize>,
) -> String {
    let largest: Vec<_> = census
        .largest_types(3)
        .into_iter()
        .map(|(name, methods)| format!("{methods} {name}"))
        .collect();
    let walk = walk.map_or("not listed".to_owned(), |files| files.to_string());
    let rows = [
        (
            "doc comments that start with What, Whether, How…",
            percent(total.wh, total.docs),
            "1–4 %",
        ),
        ("doc comments of at most two words", percent(total.short, total.docs), "1–3 %"),
        ("comment lines inside code", percent(total.comments, total.source), "5–7 %"),
        (
            "names of more than one type, private and `Args` aside",
            census.shared_names().len().to_string(),
            "–",
        ),
        ("most methods on one type", largest.join(", "), "at most 25"),
        ("files of the walk in ARCHITECTURE.md", walk, "at most 80"),
    ];
    let mut lines = vec![format!("{:<54} {:<44} models", "", "here")];
    lines.extend(rows.map(|(what, here, models)| format!("{what:<54} {here:<44} {models}")));
    lines.push(format!("\n{:<20} {:>8} {:>8} {:>8}", "lines", "source", "tests", "all"));
    lines.extend(crates.iter().map(|(name, lines)| size(name, lines)));
    lines.push(size("total", total));
    lines.join("\n")
}

fn size(name: &str, lines: &LineCount) -> String {
    format!("{name:<20} {:>8} {:>8} {:>8}", lines.source, lines.tests, lines.source + lines.tests)
}

#[expect(clippy::cast_precision_loss, reason = "counts of lines are far below 2^52")]
fn percent(part: usize, whole: usize) -> String {
    format!("{:.1} % ({part} of {whole})", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Returns every Rust file of the workspace, relative to its root.
pub(crate) fn sources(root: &Utf8Path) -> Result<Vec<Utf8PathBuf>, Stopped> {
    let mut files = Vec::new();
    let mut pending: Vec<_> = ["crates", "xtask", "tests"].map(|top| root.join(top)).into();
    while let Some(dir) = pending.pop() {
        for entry in dir.read_dir_utf8()? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path().to_owned());
            } else if entry.path().extension() == Some("rs") {
                files.push(entry.path().strip_prefix(root)?.to_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn crate_of(path: &Utf8Path) -> String {
    let mut parts = path.components().map(|part| part.as_str());
    match parts.next() {
        Some("crates") => parts.next().unwrap_or_default().to_owned(),
        first => first.unwrap_or_default().to_owned(),
    }
}

fn is_source(word: &str) -> bool {
    Utf8Path::new(word).extension() == Some("rs")
}

/// Counts the files that the section about the walk of one issue lists, if there is one.
fn walk(root: &Utf8Path) -> Result<Option<usize>, Stopped> {
    Ok(walk_in(&fs_err::read_to_string(root.join("ARCHITECTURE.md"))?))
}

fn walk_in(text: &str) -> Option<usize> {
    Some(walk_files(text)?.len())
}

fn walk_files(text: &str) -> Option<BTreeSet<&str>> {
    let is_walk = |section: &&str| {
        section.lines().next().is_some_and(|title| title.to_lowercase().contains("walk"))
    };
    let section = text.split("\n## ").find(is_walk)?;
    Some(section.split('`').skip(1).step_by(2).filter(|word| is_source(word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_is_the_set_of_files_that_its_section_names() {
        let text = "# A\n\n## Start reading\n`x.rs`\n\n## The walk of one issue\n1. `a.rs`, `b.rs`\n2. `a.rs` and `State`\n\n## Crates\n`c.rs`\n";
        assert_eq!(walk_in(text), Some(2));
        assert_eq!(walk_in("# A\n\n## Crates\n`c.rs`\n"), None);
    }

    #[test]
    fn every_file_of_the_walk_in_the_architecture_is_there() {
        let root = crate::workspace_root();
        let text = fs_err::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
        let files = walk_files(&text).unwrap();
        assert!(!files.is_empty());
        for file in files {
            assert!(root.join("crates").join(file).is_file(), "{file}");
        }
    }

    #[test]
    fn an_addition_touches_no_more_files_than_the_architecture_lists() {
        let root = crate::workspace_root();
        let text = fs_err::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
        let section =
            text.split("\n## ").find(|part| part.starts_with("What an addition")).unwrap();
        let rows: Vec<Vec<&str>> = section
            .lines()
            .filter(|line| line.starts_with("| a"))
            .map(|line| line.split('|').map(str::trim).collect())
            .filter(|cells: &Vec<&str>| cells[3] != "at most")
            .collect();
        assert_eq!(rows.len(), 5, "{rows:?}");
        for cells in rows {
            let files: Vec<&str> =
                cells[2].split('`').skip(1).step_by(2).filter(|word| word.contains('/')).collect();
            assert!(files.len() <= cells[3].parse().unwrap(), "{cells:?}");
            for file in files.into_iter().filter(|file| !file.contains('<')) {
                assert!(root.join("crates").join(file).is_file(), "{file}");
            }
        }
    }

    /// The arms of a role in a crate that the table does not name would make the table a lie.
    #[test]
    fn only_the_files_of_the_architecture_and_its_caller_know_a_single_role() {
        let root = crate::workspace_root();
        let architecture = fs_err::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
        let mut elsewhere = Vec::new();
        for path in sources(&root).unwrap() {
            let text = fs_err::read_to_string(root.join(&path)).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let is_listed = architecture.contains(path.as_str().trim_start_matches("crates/"));
            if code.contains("Role::Resolver") && !lines::is_test_file(&path) && !is_listed {
                elsewhere.push(path);
            }
        }
        // The beat that calls it, and the command that asks whether it is configured.
        let callers = [
            "crates/pdca-cli/src/landing/resolve.rs",
            "crates/pdca-driver/src/integrate/conflict/resolver.rs",
        ];
        assert_eq!(elsewhere, callers);
    }

    #[test]
    fn a_file_belongs_to_the_crate_whose_directory_it_is_in() {
        assert_eq!(crate_of("crates/pdca-dag/src/lib.rs".into()), "pdca-dag");
        assert_eq!(crate_of("xtask/src/main.rs".into()), "xtask");
    }
}
