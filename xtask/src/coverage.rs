//! `cargo xtask coverage`: the requirements of the process, each with the tests that hold it.
//!
//! A test names its rows in the line above it, `// holds: S000-26, S001-08`. The page is made from
//! those lines and `coverage/requirements.toml`, so it cannot claim a row that no test names. What is
//! deliberately otherwise names the decision that says why, and what is not there yet says so.

mod markers;
mod page_text;
mod rows;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use crate::test_functions::TestFunction;
use crate::tidy::{SourceFile, load_sources};
use crate::{Outcome, Stopped, page};

use markers::HoldsMarker;
use rows::{RequirementGroup, RequirementRow, RequirementStanding};

/// The generated page.
const PAGE: &str = "docs/reference/coverage.md";
/// The rows.
const ROWS: &str = "xtask/src/coverage/requirements.toml";

/// Compare the page of requirements with the tests, or write it
///
/// Fails where a row has neither a test nor a decision, where a line names a row that does not exist or stands above no
/// test, or where the page is not what the tests say.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Args {
    #[command(flatten)]
    page: page::Args,
}

/// Something that keeps the page from being true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoverageProblem {
    pub(crate) path: Utf8PathBuf,
    /// `None` for the whole file.
    pub(crate) line: Option<usize>,
    pub(crate) what: String,
}

impl CoverageProblem {
    fn of_rows(what: String) -> Self {
        Self { path: ROWS.into(), line: None, what }
    }
}

/// The rows of the data file, the tests that hold each, and the pages of decisions.
struct Coverage<'a> {
    groups: Vec<RequirementGroup>,
    markers: Vec<HoldsMarker<'a>>,
    held: BTreeMap<&'a str, Vec<TestFunction<'a>>>,
    decisions: BTreeMap<u32, &'a Utf8Path>,
}

pub(crate) fn run(args: &Args, root: &Utf8Path) -> Result<Outcome, Stopped> {
    let files = load_sources(root)?;
    let coverage = Coverage::read(&files)?;
    let problems = coverage.problems();
    for CoverageProblem { path, line, what } in &problems {
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        println!("error: {path}{line}: {what}");
    }
    let made = page::Page {
        path: PAGE,
        source: "the list of tests",
        command: "coverage",
        text: page_text::text(&coverage),
        sum: page_text::sum(&coverage),
    };
    let settled = made.settle(&args.page, root)?;
    Ok(if problems.is_empty() { settled } else { Outcome::Failed })
}

/// Returns everything that is wrong with rows, markers and the page.
pub(crate) fn check(files: &[SourceFile]) -> Result<Vec<CoverageProblem>, Stopped> {
    let coverage = Coverage::read(files)?;
    let mut problems = coverage.problems();
    let page = files.iter().find(|file| file.path == PAGE).map(|file| file.text.as_str());
    if page != Some(page_text::text(&coverage).as_str()) {
        let what = "not what the tests say; `cargo xtask coverage --write`".to_owned();
        problems.push(CoverageProblem { path: PAGE.into(), line: None, what });
    }
    Ok(problems)
}

impl<'a> Coverage<'a> {
    fn read(files: &'a [SourceFile]) -> Result<Self, Stopped> {
        let data = files.iter().find(|file| file.path == ROWS);
        let data = data.ok_or_else(|| format!("{ROWS} is missing"))?;
        let groups = rows::parse(&data.text)?;
        let markers = markers::all(files);
        let mut held: BTreeMap<&str, Vec<TestFunction<'_>>> = BTreeMap::new();
        for (row, test) in markers.iter().flat_map(HoldsMarker::pairs) {
            held.entry(row).or_default().push(test);
        }
        Ok(Self { groups, markers, held, decisions: decisions(files) })
    }

    fn rows(&self) -> impl Iterator<Item = (&str, &RequirementRow)> {
        self.groups.iter().flat_map(|group| &group.rows).map(|(id, row)| (id.as_str(), row))
    }

    fn tests_of(&self, id: &str) -> &[TestFunction<'a>] {
        self.held.get(id).map_or(&[], Vec::as_slice)
    }

    fn problems(&self) -> Vec<CoverageProblem> {
        let mut problems: Vec<CoverageProblem> =
            self.markers.iter().flat_map(|marker| self.wrong_with_marker(marker)).collect();
        problems.extend(self.rows().filter_map(|(id, row)| self.wrong_with_row(id, row)));
        problems
    }

    fn wrong_with_marker(&self, marker: &HoldsMarker<'_>) -> Vec<CoverageProblem> {
        let problem =
            |what| CoverageProblem { path: marker.path.to_owned(), line: Some(marker.line), what };
        let exists = |id: &str| self.rows().any(|(known, _)| known == id);
        let mut problems = Vec::new();
        if !marker.is_in_form {
            problems.push(problem("a test names its rows as `// holds: S000-01, …`".to_owned()));
        } else if marker.test.is_none() {
            problems.push(problem("no `#[test]` stands below this line".to_owned()));
        }
        for id in &marker.rows {
            if marker.is_in_form && !exists(id) {
                problems.push(problem(format!("`{id}` is not a row of {ROWS}")));
            }
        }
        problems
    }

    fn wrong_with_row(&self, id: &str, row: &RequirementRow) -> Option<CoverageProblem> {
        let held = !self.tests_of(id).is_empty();
        let what = match &row.standing {
            RequirementStanding::Required if held => return None,
            RequirementStanding::Required => format!("{id} has neither a test nor a decision"),
            RequirementStanding::Otherwise { decision, .. }
                if self.decisions.contains_key(decision) =>
            {
                return None;
            }
            RequirementStanding::Otherwise { decision, .. } => {
                format!("{id} names decision {decision:03}, which does not exist")
            }
            RequirementStanding::Open { .. } if held => {
                format!("{id} is said to be open, and a test holds it")
            }
            RequirementStanding::Open { .. } => return None,
        };
        Some(CoverageProblem::of_rows(what))
    }
}

/// Returns the pages of decisions by their numbers.
fn decisions(files: &[SourceFile]) -> BTreeMap<u32, &Utf8Path> {
    let pages = files.iter().filter(|file| file.path.starts_with("docs/decisions"));
    let number = |file: &SourceFile| file.path.file_name()?.split('-').next()?.parse().ok();
    pages.filter_map(|file| Some((number(file)?, file.path.as_path()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str = "[[group]]\ntitle = 'Lanes'\n[group.rows]\nS000-01 = 'a | pool'\n\
        S000-02 = { text = 'a clock', decision = 12, otherwise = 'a lock' }\n\
        S000-03 = { text = 'a flow', open = 'no command yet' }\n";

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.to_owned() }
    }

    fn files(test: &str) -> Vec<SourceFile> {
        vec![
            file(ROWS, DATA),
            file("docs/decisions/012-a-lock.md", "# 012"),
            file("tests/a.rs", test),
        ]
    }

    fn problems(files: &[SourceFile]) -> Vec<String> {
        Coverage::read(files).unwrap().problems().into_iter().map(|found| found.what).collect()
    }

    const HELD: &str = "// holds: S000-01\n#[test]\nfn a_pool() {}\n";

    #[test]
    fn the_page_has_the_test_the_decision_and_what_is_open() {
        let files = files(HELD);
        assert_eq!(problems(&files), [""; 0]);
        let page = page_text::text(&Coverage::read(&files).unwrap());
        for line in [
            "3 requirements: 1 held by 1 tests, 1 otherwise by decision, 1 open.",
            "## Lanes",
            "| S000-01 | a \\| pool | [`a_pool`](../../tests/a.rs) |",
            "| S000-02 | a clock | otherwise: a lock ([012](../decisions/012-a-lock.md)) |",
            "| S000-03 | a flow | **open**: no command yet |",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
        }
    }

    #[test]
    fn a_row_without_a_test_is_found() {
        assert_eq!(problems(&files("fn a() {}")), ["S000-01 has neither a test nor a decision"]);
    }

    #[test]
    fn a_row_that_is_open_and_held_is_found() {
        let text = HELD.replace("S000-01", "S000-01, S000-03");
        assert_eq!(problems(&files(&text)), ["S000-03 is said to be open, and a test holds it"]);
    }

    #[test]
    fn a_decision_that_is_not_there_is_found() {
        let mut files = files(HELD);
        files.remove(1);
        assert_eq!(problems(&files), ["S000-02 names decision 012, which does not exist"]);
    }

    #[test]
    fn a_row_that_does_not_exist_is_found_with_the_line_that_names_it() {
        let files = files(&format!("\n{}", HELD.replace("S000-01", "S000-01, S000-99")));
        let found = Coverage::read(&files).unwrap().problems();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("tests/a.rs", Some(2)));
        assert_eq!(found[0].what, format!("`S000-99` is not a row of {ROWS}"));
    }

    #[test]
    fn a_page_that_is_not_what_the_tests_say_is_found() {
        let mut all = files(HELD);
        assert_eq!(check(&all).unwrap().len(), 1, "there is no page");
        let text = page_text::text(&Coverage::read(&all).unwrap());
        all.push(file(PAGE, &text));
        assert_eq!(check(&all).unwrap(), []);
        all[2].text = HELD.replace("a_pool", "another_name");
        assert_eq!(check(&all).unwrap()[0].path, PAGE);
    }

    fn manifest() -> toml::Table {
        let root = crate::workspace_root();
        toml::from_str(&fs_err::read_to_string(root.join("Cargo.toml")).unwrap()).unwrap()
    }

    // holds: CARD-03, S002-89
    #[test]
    fn the_workspace_has_the_directories_of_its_design() {
        let root = crate::workspace_root();
        for name in ["state", "gates", "lanes", "dag", "cli", "act", "driver", "leaves"] {
            assert!(root.join(format!("crates/pdca-{name}/src")).is_dir(), "pdca-{name}");
        }
        for name in ["xtask/src", "tests/tests", "docs"] {
            assert!(root.join(name).is_dir(), "{name}");
        }
        assert!(root.join("crates/pdca-state/src/summary/assemble.rs").is_file());
        let members = manifest()["workspace"]["members"].to_string();
        assert_eq!(members, r#"["crates/*", "xtask", "tests"]"#);
    }

    // holds: CARD-02, CARD-09
    #[test]
    fn the_packages_of_the_design_are_used() {
        let files = load_sources(&crate::workspace_root()).unwrap();
        let is_manifest = |file: &&SourceFile| file.path.file_name() == Some("Cargo.toml");
        let crates: Vec<toml::Table> = files
            .iter()
            .filter(is_manifest)
            .map(|file| toml::from_str(&file.text).unwrap())
            .collect();
        let uses = |table: &str, package: &str| {
            crates.iter().any(|one| one.get(table).is_some_and(|all| all.get(package).is_some()))
        };
        for package in
            ["gix", "clap", "serde", "toml", "petgraph", "crossbeam-channel", "camino", "fs-err"]
        {
            assert!(uses("dependencies", package), "{package}");
        }
        for package in ["proptest", "tempfile"] {
            assert!(uses("dev-dependencies", package), "{package}");
        }
        let properties = files.iter().filter(|file| file.text.contains("proptest! {"));
        assert!(properties.count() > 10);
    }

    #[test]
    fn there_are_284_rows_in_order_and_each_number_once() {
        let groups = rows::parse(include_str!("coverage/requirements.toml")).unwrap();
        let ids: Vec<&str> =
            groups.iter().flat_map(|group| group.rows.keys()).map(String::as_str).collect();
        let sizes =
            [("S000", 54), ("S001", 26), ("S002", 93), ("S003", 22), ("S004", 80), ("CARD", 9)];
        let expected: Vec<String> = sizes
            .iter()
            .flat_map(|(group, rows)| (1..=*rows).map(move |row| format!("{group}-{row:02}")))
            .collect();
        assert_eq!(expected.len(), 284);
        assert_eq!(ids, expected);
    }
}
