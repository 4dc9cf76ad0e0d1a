//! Compares the paths that a brief declared with those that its patch changed.

use pdca_dag::{Case, Pattern};
use serde::Serialize;

/// The declared paths of a brief compared with the changed ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Touches {
    pub declared: Vec<String>,
    /// The paths of the patch, sorted; empty if no patch names any.
    pub actual: Vec<String>,
    /// Changed paths that no glob covers. Empty if nothing was declared.
    pub undeclared: Vec<String>,
    /// Globs that cover no changed path. Empty if the patch names no path.
    pub untouched: Vec<String>,
}

impl Touches {
    pub fn compare(declared: Vec<String>, actual: Vec<String>) -> Self {
        let patterns: Vec<_> = declared.iter().filter_map(|glob| pattern(glob)).collect();
        let is_undeclared = |path: &&String| !patterns.iter().any(|glob| glob.covers(path));
        let is_untouched = |glob: &&String| {
            !pattern(glob).is_some_and(|glob| actual.iter().any(|path| glob.covers(path)))
        };
        let comparable = !declared.is_empty() && !actual.is_empty();
        let pick = |list: &[String], is: &dyn Fn(&&String) -> bool| -> Vec<String> {
            list.iter().filter(|item| comparable && is(item)).cloned().collect()
        };
        Self {
            undeclared: pick(&actual, &is_undeclared),
            untouched: pick(&declared, &is_untouched),
            declared,
            actual,
        }
    }
}

/// Parses a glob, or takes it literally: a frozen brief is indexed even if a plan would reject it.
fn pattern(glob: &str) -> Option<Pattern> {
    // The patterns of the planner, so that the index and a plan agree about what a brief covers.
    Pattern::parse(glob, Case::Sensitive).or_else(|_| Pattern::of_file(glob, Case::Sensitive)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn covers(glob: &str, path: &str) -> bool {
        pattern(glob).is_some_and(|glob| glob.covers(path))
    }

    fn compare(declared: &[&str], actual: &[&str]) -> (Vec<String>, Vec<String>) {
        let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
        let touches = Touches::compare(owned(declared), owned(actual));
        (touches.undeclared, touches.untouched)
    }

    #[test]
    fn what_was_not_declared_and_what_was_not_touched_are_told() {
        let (undeclared, untouched) = compare(&["src/**", "docs"], &["src/a.rs", "Cargo.toml"]);
        assert_eq!(
            (undeclared, untouched),
            (vec!["Cargo.toml".to_owned()], vec!["docs".to_owned()])
        );
    }

    #[test]
    fn with_one_side_missing_nothing_is_claimed() {
        assert_eq!(compare(&[], &["src/a.rs"]), (Vec::new(), Vec::new()));
        assert_eq!(compare(&["src/**"], &[]), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_glob_covers_what_people_mean_by_it() {
        for (glob, path, covered) in [
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "src/b.rs", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/**", "src/deep/a.rs", true),
            ("src/**/*.rs", "src/a.rs", true),
            ("**/*.md", "docs/deep/a.md", true),
            ("**/*.md", "a.md", true),
            ("docs", "docs/guide/a.md", true),
            ("docs/", "docs/a.md", true),
            ("docs", "docs-old/a.md", false),
            ("src/{a,b}.rs", "src/b.rs", true),
            ("src/{a,b{1,2}}.rs", "src/b2.rs", true),
            ("x[0-9].rs", "x7.rs", true),
            ("x[!0-9].rs", "x7.rs", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("{open", "{open", true),
            ("[", "[", true),
            ("./src/a.rs", "src/a.rs", true),
            ("", "src/a.rs", false),
            ("/", "src/a.rs", false),
        ] {
            assert_eq!(covers(glob, path), covered, "{glob} {path}");
        }
    }

    proptest! {
        #[test]
        fn a_plain_path_covers_itself_and_what_lies_below_it(path in "[a-z]{1,5}(/[a-z]{1,5}){0,3}") {
            let below = format!("{path}/x");
            prop_assert!(covers(&path, &path) && covers(&path, &below));
        }
    }
}
