//! The name of the branch that a change is published in.

use std::fmt;

use pdca_state::BundleId;

/// The longest name; some file systems take no longer one.
const LONGEST: usize = 200;
/// As much of a slug as a name has room for.
const SLUG: usize = 60;

/// The name of a branch, without `refs/heads/`: legal for git, and no option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch(String);

/// Why something cannot be the name of a branch, or make one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BranchFlaw {
    /// The pattern would give two bundles one branch.
    #[error("without `{{id}}` two bundles would have the same")]
    NoId,
    /// The pattern has a place that nothing fills.
    #[error("nothing stands for `{{{0}}}`; there are `{{id}}`, `{{slug}}` and `{{run}}`")]
    Place(String),
    /// The pattern has a brace that opens or closes nothing.
    #[error("a brace has no other half")]
    Brace,
    /// git takes no such name.
    #[error("`{0}` is no name that git takes for a branch")]
    Illegal(String),
}

impl Branch {
    /// The branch of a bundle.
    pub fn of(pattern: &str, id: &BundleId, slug: &str, run: &str) -> Result<Self, BranchFlaw> {
        let slug = tame(slug);
        let name = fill(pattern, &mut |place| match place {
            "id" => Some(id.to_string()),
            "slug" => Some(slug.clone()),
            "run" => Some(run.to_owned()),
            _ => None,
        })?;
        if is_legal(&name) { Ok(Self(name)) } else { Err(BranchFlaw::Illegal(shown(&name))) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Refuses a pattern that makes no branch of its own for each bundle.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), BranchFlaw> {
    let mut has_id = false;
    let name = fill(pattern, &mut |place| match place {
        "id" => {
            has_id = true;
            Some("7".to_owned())
        }
        "slug" | "run" => Some("x".to_owned()),
        _ => None,
    })?;
    if !is_legal(&name) {
        return Err(BranchFlaw::Illegal(shown(&name)));
    }
    if has_id { Ok(()) } else { Err(BranchFlaw::NoId) }
}

/// Fills every place in one pass, so that what fills one is never taken for another.
fn fill(
    pattern: &str,
    value: &mut dyn FnMut(&str) -> Option<String>,
) -> Result<String, BranchFlaw> {
    let mut filled = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let (place, next) = after.split_once('}').ok_or(BranchFlaw::Brace)?;
        filled.push_str(before);
        filled.push_str(&value(place).ok_or_else(|| BranchFlaw::Place(shown(place)))?);
        rest = next;
    }
    if rest.contains('}') || filled.contains('}') {
        return Err(BranchFlaw::Brace);
    }
    Ok(filled + rest)
}

/// A person's words as a part of a name; never empty.
fn tame(slug: &str) -> String {
    let letters = slug.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' });
    let letters: String = letters.take(SLUG).collect();
    let words: Vec<&str> = letters.split_whitespace().collect();
    if words.is_empty() { "change".to_owned() } else { words.join("-").to_lowercase() }
}

/// The rules of `git check-ref-format --branch`, for ASCII names.
fn is_legal(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_graphic() && !"~^:?*[\\".contains(c);
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.to_ascii_lowercase().ends_with(".lock")
    };
    name.len() <= LONGEST
        && !name.starts_with('-')
        && !matches!(name, "@" | "HEAD")
        && !name.contains("..")
        && !name.contains("@{")
        && name.chars().all(letter)
        && name.split('/').all(part)
}

fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn branch(pattern: &str, id: &str, slug: &str) -> Result<String, BranchFlaw> {
        Branch::of(pattern, &id.parse().unwrap(), slug, "01JC").map(|branch| branch.to_string())
    }

    #[test]
    fn every_place_is_filled_once() {
        let slug = "Fast {id} Parser!";
        assert_eq!(branch("pdca/{id}-{slug}", "7", slug).unwrap(), "pdca/7-fast-id-parser");
        assert_eq!(branch("{run}/{id}", "a.b+c", "").unwrap(), "01JC/a.b+c");
        assert_eq!(branch("x/{id}/{slug}", "7", "…").unwrap(), "x/7/change");
    }

    #[test]
    fn what_makes_no_branch_is_refused() {
        for pattern in [
            "main",
            "",
            "{id}..x",
            "-{id}",
            "a b/{id}",
            "{id}.lock",
            "/{id}",
            "{id}/",
            "refs//{id}",
            "{id}:x",
        ] {
            assert!(check_pattern(pattern).is_err(), "{pattern:?}");
        }
        assert_eq!(check_pattern("pdca/{ids}"), Err(BranchFlaw::Place("ids".to_owned())));
        assert_eq!(check_pattern("pdca/{id"), Err(BranchFlaw::Brace));
        assert_eq!(check_pattern("pdca/id}"), Err(BranchFlaw::Brace));
        assert_eq!(check_pattern("pdca/{id}"), Ok(()));
    }

    proptest! {
        #[test]
        fn git_takes_whatever_is_taken_here(
            pattern in "[a-z{}@~^:./ -]{0,6}\\{id\\}[a-z@./-]{0,6}(\\{slug\\})?",
            slug in any::<String>(),
        ) {
            if let Ok(name) = branch(&pattern, "7", &slug) {
                let asked = pdca_process::Tool::new("git").args(["check-ref-format", "--branch", &name]);
                prop_assert!(asked.run().unwrap().success(), "{}", name);
            }
        }
    }
}
