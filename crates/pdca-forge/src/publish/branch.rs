//! Names of the branches that changes are published on.

use std::fmt;

use pdca_state::BundleId;

/// The maximum length of a name. Each ref is also a file, and file systems limit the length of a file name.
const LONGEST: usize = 200;
/// The maximum length of the slug within a name.
const SLUG: usize = 60;

/// A branch name without `refs/heads/`: valid for git, and never mistaken for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch(String);

/// The reasons why a pattern or a name is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BranchFlaw {
    #[error("without `{{id}}` two bundles would share a branch")]
    NoId,
    #[error("unknown placeholder `{{{0}}}`; known are `{{id}}`, `{{slug}}` and `{{run}}`")]
    Place(String),
    #[error("unmatched brace")]
    Brace,
    #[error("`{0}` is not a valid branch name")]
    Illegal(String),
}

impl Branch {
    /// Fills in the pattern of `[publish] branch` for a bundle.
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

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Branch {
    type Err = BranchFlaw;

    fn from_str(name: &str) -> Result<Self, BranchFlaw> {
        if is_legal(name) {
            Ok(Self(name.to_owned()))
        } else {
            Err(BranchFlaw::Illegal(shown(name)))
        }
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Checks that a pattern is valid and gives each bundle a branch of its own.
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

/// Replaces every placeholder in one pass, so that a value containing `{…}` is not expanded again.
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
    // Values have no braces, so one that is left comes from the pattern.
    if rest.contains('}') || filled.contains('}') {
        return Err(BranchFlaw::Brace);
    }
    Ok(filled + rest)
}

/// Turns free text into lowercase words joined by hyphens; never empty.
fn tame(slug: &str) -> String {
    let letters = slug.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' });
    let letters: String = letters.take(SLUG).collect();
    let words: Vec<&str> = letters.split_whitespace().collect();
    if words.is_empty() { "change".to_owned() } else { words.join("-").to_lowercase() }
}

/// Applies the rules of `git check-ref-format --branch` to an ASCII name.
fn is_legal(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_graphic() && !"~^:?*[\\".contains(c);
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            // Stricter than git, which forbids it at the end of the name alone.
            && !part.ends_with('.')
            // Git refuses `.lock` alone. On a file system that ignores case, `.LOCK` would be the lock file of
            // another ref.
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
