//! The rows of requirements, read from their data file.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Deserialize;

/// Rows about one subject.
#[derive(Debug)]
pub(super) struct RequirementGroup {
    pub(super) title: String,
    pub(super) rows: BTreeMap<String, RequirementRow>,
}

/// One requirement.
#[derive(Debug)]
pub(super) struct RequirementRow {
    pub(super) text: String,
    pub(super) standing: RequirementStanding,
    /// The tests that hold it, or that show what holds instead.
    pub(super) tests: Vec<TestName>,
    /// It is about how the project is written, which no run of the program can show.
    pub(super) about_source: bool,
}

/// A test by its file and its function, written `tests/tests/cycle/pool.rs::one_lane`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestName {
    pub(super) path: Utf8PathBuf,
    pub(super) function: String,
}

impl std::fmt::Display for TestName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}::{}", self.path, self.function)
    }
}

/// What the project does about a requirement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequirementStanding {
    /// Tests hold it.
    Required,
    /// It is deliberately otherwise, for the reasons of a decision.
    Otherwise { decision: u32, how: String },
    /// It is not met yet.
    Open { note: String },
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Invalid {
    #[error("cannot read the rows of requirements")]
    Form(#[from] toml::de::Error),
    #[error("{id}: write `text` with `tests`, or with `decision` and `otherwise`, or with `open`")]
    Standing { id: String },
    #[error("{id}: a test is written `tests/tests/<file>.rs::<function>`, and not `{text}`")]
    Test { id: String, text: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    group: Vec<RawGroup>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGroup {
    title: String,
    rows: BTreeMap<String, RawRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    text: String,
    #[serde(default)]
    tests: Vec<String>,
    #[serde(default)]
    about_source: bool,
    decision: Option<u32>,
    otherwise: Option<String>,
    open: Option<String>,
}

pub(super) fn parse(text: &str) -> Result<Vec<RequirementGroup>, Invalid> {
    let raw: RawFile = toml::from_str(text)?;
    raw.group.into_iter().map(group).collect()
}

fn group(raw: RawGroup) -> Result<RequirementGroup, Invalid> {
    let rows = raw.rows.into_iter().map(|(id, raw)| Ok((id.clone(), row(id, raw)?)));
    Ok(RequirementGroup { title: raw.title, rows: rows.collect::<Result<_, Invalid>>()? })
}

fn row(id: String, raw: RawRow) -> Result<RequirementRow, Invalid> {
    let standing = match (raw.decision, raw.otherwise, raw.open) {
        (None, None, None) => RequirementStanding::Required,
        (Some(decision), Some(how), None) => RequirementStanding::Otherwise { decision, how },
        (None, None, Some(note)) => RequirementStanding::Open { note },
        _ => return Err(Invalid::Standing { id }),
    };
    let test = |text: String| match text.split_once("::") {
        Some((path, function)) if Utf8Path::new(path).extension() == Some("rs") => {
            Ok(TestName { path: path.into(), function: function.to_owned() })
        }
        Some(_) | None => Err(Invalid::Test { id: id.clone(), text }),
    };
    let tests = raw.tests.into_iter().map(test).collect::<Result<_, _>>()?;
    Ok(RequirementRow { text: raw.text, standing, tests, about_source: raw.about_source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(row: &str) -> Result<RequirementStanding, String> {
        let text = format!("[[group]]\ntitle = 'A'\n[group.rows]\nS000-01 = {row}\n");
        let mut groups = parse(&text).map_err(|error| error.to_string())?;
        Ok(groups.remove(0).rows.remove("S000-01").unwrap().standing)
    }

    #[test]
    fn a_row_is_held_otherwise_or_open_and_nothing_else() {
        let refused = "S000-01: write `text` with `tests`, or with `decision` and `otherwise`, or with `open`";
        assert_eq!(
            standing("{ text = 'a', tests = ['tests/tests/a.rs::b'] }"),
            Ok(RequirementStanding::Required)
        );
        assert_eq!(
            standing("{ text = 'a', decision = 7, otherwise = 'b' }"),
            Ok(RequirementStanding::Otherwise { decision: 7, how: "b".to_owned() })
        );
        assert_eq!(
            standing("{ text = 'a', open = 'b' }"),
            Ok(RequirementStanding::Open { note: "b".to_owned() })
        );
        for row in [
            "{ text = 'a', decision = 7 }",
            "{ text = 'a', otherwise = 'b' }",
            "{ text = 'a', decision = 7, otherwise = 'b', open = 'c' }",
        ] {
            assert_eq!(standing(row), Err(refused.to_owned()), "{row}");
        }
        assert!(standing("{ text = 'a', partly = 'b' }").is_err());
        assert!(standing("{ text = 'a', tests = ['a_function'] }").is_err());
    }
}
