//! `cargo xtask coverage`: the requirements of the process, each with the tests that hold it.
//!
//! `coverage/requirements.toml` names the tests of each row, by file and function. A row is held only by a test of a suite that
//! starts the built program: a function that no command reaches holds nothing. What is deliberately otherwise names the
//! decision that says why, and what is not there yet says so.

mod markers;
mod page_text;
mod rows;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use crate::test_functions::{self, TestFunction};
use crate::tidy::{SourceFile, load_sources};
use crate::{Outcome, Stopped, page};

use rows::{RequirementGroup, RequirementRow, RequirementStanding, TestName};

/// The generated page.
const PAGE: &str = "docs/generated/coverage.md";
/// The rows.
const ROWS: &str = "xtask/src/coverage/requirements.toml";

/// Compare the page of requirements with the tests, or write it
///
/// Fails where a row has neither a test nor a decision, where it names a test that does not exist or that does not start
/// the program, or where the page is not what the rows say.
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

/// The rows of the data file, the tests of the workspace, and the pages of decisions.
struct Coverage<'a> {
    groups: Vec<RequirementGroup>,
    tests: Vec<TestFunction<'a>>,
    /// The directories and files of tests that start the program.
    suites: Vec<&'a Utf8Path>,
    /// Comments that name rows beside a test.
    comments: Vec<(&'a Utf8Path, usize)>,
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
        Ok(Self {
            groups,
            tests: test_functions::all(files).collect(),
            suites: suites(files),
            comments: markers::all(files).collect(),
            decisions: decisions(files),
        })
    }

    fn rows(&self) -> impl Iterator<Item = (&str, &RequirementRow)> {
        self.groups.iter().flat_map(|group| &group.rows).map(|(id, row)| (id.as_str(), row))
    }

    fn problems(&self) -> Vec<CoverageProblem> {
        let comment = |(path, line): &(&Utf8Path, usize)| CoverageProblem {
            path: (*path).to_owned(),
            line: Some(*line),
            what: format!("rows name their tests in {ROWS}; this line is read by nobody"),
        };
        let mut problems: Vec<CoverageProblem> = self.comments.iter().map(comment).collect();
        for (id, row) in self.rows() {
            let wrong = row.tests.iter().filter_map(|test| self.wrong_with_test(row, test));
            let wrong = wrong.chain(self.wrong_with_standing(row));
            problems.extend(wrong.map(|what| CoverageProblem::of_rows(format!("{id} {what}"))));
        }
        problems
    }

    fn wrong_with_test(&self, row: &RequirementRow, test: &TestName) -> Option<String> {
        let is_it =
            |found: &TestFunction<'_>| found.path == test.path && found.name == test.function;
        if !self.tests.iter().any(is_it) {
            return Some(format!("names {test}, which is no test"));
        }
        let starts = self.suites.iter().any(|suite| test.path.starts_with(suite));
        (!starts && !row.about_source)
            .then(|| format!("names {test}, whose suite does not start the program"))
    }

    fn wrong_with_standing(&self, row: &RequirementRow) -> Option<String> {
        let held = !row.tests.is_empty();
        match &row.standing {
            RequirementStanding::Required if held => None,
            RequirementStanding::Required => Some("has neither a test nor a decision".to_owned()),
            RequirementStanding::Otherwise { decision, .. }
                if self.decisions.contains_key(decision) =>
            {
                None
            }
            RequirementStanding::Otherwise { decision, .. } => {
                Some(format!("names decision {decision:03}, which does not exist"))
            }
            RequirementStanding::Open { .. } if held => {
                Some("is said to be open, and a test holds it".to_owned())
            }
            RequirementStanding::Open { .. } => None,
        }
    }
}

/// Returns the files below `tests/tests/` and the tests of the command line that start the program; of a suite with several
/// files, its directory, `tests/tests/<program>/<suite>`.
fn suites(files: &[SourceFile]) -> Vec<&Utf8Path> {
    let starts = |file: &&SourceFile| {
        let is_suite =
            ["tests/tests", "crates/pdca-cli/tests"].iter().any(|dir| file.path.starts_with(dir));
        let words = ["pdca_e2e::", "pdca_bin", "CARGO_BIN_EXE_pdca"];
        is_suite && words.iter().any(|word| file.text.contains(word))
    };
    let suite = |file: &'_ SourceFile| -> bool { file.path.starts_with("tests/tests") };
    files
        .iter()
        .filter(starts)
        .map(|file| {
            let parent =
                file.path.parent().filter(|dir| suite(file) && dir.components().count() > 3);
            parent.unwrap_or(&file.path)
        })
        .collect()
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

    const DATA: &str = "[[group]]\ntitle = 'Lanes'\n[group.rows]\n\
        S000-01 = { text = 'a | pool', tests = ['tests/tests/a.rs::a_pool'] }\n\
        S000-02 = { text = 'a clock', decision = 12, otherwise = 'a lock' }\n\
        S000-03 = { text = 'a flow', open = 'no command yet' }\n";

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.to_owned() }
    }

    fn files(data: &str, test: &str) -> Vec<SourceFile> {
        vec![
            file(ROWS, data),
            file("docs/decisions/012-a-lock.md", "# 012"),
            file("tests/tests/a.rs", test),
            file("crates/pdca-dag/src/plan.rs", "#[test]\nfn a_plan() {}\n"),
        ]
    }

    fn problems(files: &[SourceFile]) -> Vec<String> {
        Coverage::read(files).unwrap().problems().into_iter().map(|found| found.what).collect()
    }

    const HELD: &str = "use pdca_e2e::Scene;\n#[test]\nfn a_pool() {}\n";

    #[test]
    fn the_page_has_the_test_the_decision_and_what_is_open() {
        let files = files(DATA, HELD);
        assert_eq!(problems(&files), [""; 0]);
        let page = page_text::text(&Coverage::read(&files).unwrap());
        for line in [
            "3 requirements: 1 held by 1 tests, 1 otherwise by decision, 1 open.",
            "## Lanes",
            "| S000-01 | a \\| pool | [`a_pool`](../../tests/tests/a.rs) |",
            "| S000-02 | a clock | otherwise: a lock ([012](../decisions/012-a-lock.md)) |",
            "| S000-03 | a flow | **open**: no command yet |",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is missing in\n{page}");
        }
    }

    #[test]
    fn a_row_without_a_test_and_a_test_that_is_not_there_are_found() {
        let none = DATA.replace(", tests = ['tests/tests/a.rs::a_pool']", "");
        assert_eq!(problems(&files(&none, HELD)), ["S000-01 has neither a test nor a decision"]);
        let gone = HELD.replace("a_pool", "another");
        let said = "S000-01 names tests/tests/a.rs::a_pool, which is no test";
        assert_eq!(problems(&files(DATA, &gone)), [said]);
    }

    #[test]
    fn a_test_of_a_library_holds_no_row_unless_the_row_is_about_the_source() {
        let library =
            DATA.replace("tests/tests/a.rs::a_pool", "crates/pdca-dag/src/plan.rs::a_plan");
        let said = "S000-01 names crates/pdca-dag/src/plan.rs::a_plan, whose suite does not start the program";
        assert_eq!(problems(&files(&library, HELD)), [said]);
        let source = library.replace("a_plan'] }", "a_plan'], about_source = true }");
        assert_eq!(problems(&files(&source, HELD)), [""; 0]);
        let pure = HELD.replace("use pdca_e2e::Scene;\n", "");
        assert_eq!(problems(&files(DATA, &pure)).len(), 1, "its file starts nothing");
    }

    #[test]
    fn a_row_that_is_open_and_held_is_found() {
        let both = DATA.replace("open = 'no", "tests = ['tests/tests/a.rs::a_pool'], open = 'no");
        assert_eq!(
            problems(&files(&both, HELD)),
            ["S000-03 is said to be open, and a test holds it"]
        );
    }

    #[test]
    fn a_decision_that_is_not_there_is_found() {
        let mut files = files(DATA, HELD);
        files.remove(1);
        assert_eq!(problems(&files), ["S000-02 names decision 012, which does not exist"]);
    }

    #[test]
    fn a_comment_that_names_rows_beside_a_test_is_found_with_its_line() {
        let marked = HELD.replace("#[test]", concat!("// ", "holds: S000-01\n#[test]"));
        let files = files(DATA, &marked);
        let found = Coverage::read(&files).unwrap().problems();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("tests/tests/a.rs", Some(2)));
    }

    #[test]
    fn a_page_that_is_not_what_the_rows_say_is_found() {
        let mut all = files(DATA, HELD);
        assert_eq!(check(&all).unwrap().len(), 1, "there is no page");
        let text = page_text::text(&Coverage::read(&all).unwrap());
        all.push(file(PAGE, &text));
        assert_eq!(check(&all).unwrap(), []);
        all[0].text = DATA.replace("a flow", "a river");
        assert_eq!(check(&all).unwrap()[0].path, PAGE);
    }

    fn manifest() -> toml::Table {
        let root = crate::workspace_root();
        toml::from_str(&fs_err::read_to_string(root.join("Cargo.toml")).unwrap()).unwrap()
    }

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
    fn there_are_301_rows_in_order_and_each_number_once() {
        let groups = rows::parse(include_str!("coverage/requirements.toml")).unwrap();
        let ids: Vec<&str> =
            groups.iter().flat_map(|group| group.rows.keys()).map(String::as_str).collect();
        let sizes = [
            ("S000", 54),
            ("S001", 26),
            ("S002", 93),
            ("S003", 22),
            ("S004", 80),
            ("CARD", 9),
            ("M", 17),
        ];
        let expected: Vec<String> = sizes
            .iter()
            .flat_map(|(group, rows)| (1..=*rows).map(move |row| format!("{group}-{row:02}")))
            .collect();
        assert_eq!(expected.len(), 301);
        assert_eq!(ids, expected);
    }
}
