//! What a brief said would change, against what did.

use serde::Serialize;

use crate::glob::covers;

/// Declared against actual.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Touches {
    /// The globs of the brief's `Touches`.
    pub declared: Vec<String>,
    /// The paths of the patch, sorted; none where there is no patch that names one.
    pub actual: Vec<String>,
    /// Paths that no glob covers. Empty where nothing was declared: then there is nothing to break.
    pub undeclared: Vec<String>,
    /// Globs that cover no path. Empty where the patch names none: then nothing can be told.
    pub untouched: Vec<String>,
}

impl Touches {
    /// Compares the two.
    pub fn compare(declared: Vec<String>, actual: Vec<String>) -> Self {
        let is_undeclared = |path: &&String| !declared.iter().any(|glob| covers(glob, path));
        let is_untouched = |glob: &&String| !actual.iter().any(|path| covers(glob, path));
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
