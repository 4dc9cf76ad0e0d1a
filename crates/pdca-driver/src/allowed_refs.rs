//! Refs of the target that a gate may write: entries of `[gates] may_write` that begin with `refs/`.
//!
//! Real projects have rows that make a worktree and a branch of their own in the target. Such a row is not confined, and what it
//! does there is no breach, of its own lane or of another, if a pattern allows it.

use pdca_dag::{Case, Pattern};
use pdca_lanes::Tripwire;

use crate::config::WorkspaceConfig;

/// Returns whether an entry of `may_write` is about refs and not about files.
pub(crate) fn is_ref(entry: &str) -> bool {
    entry.starts_with("refs/")
}

/// Returns the name of the ref that a finding of the tripwire is about.
fn ref_of(finding: &str) -> Option<&str> {
    let rest = finding.strip_prefix("ref ")?;
    let end = [" is gone", " was changed", " is new"].iter().find_map(|verb| rest.find(verb));
    Some(&rest[..end.unwrap_or(rest.len())])
}

impl WorkspaceConfig {
    /// Returns whether the configuration lets gates write a ref.
    fn may_write_ref(&self, name: &str) -> bool {
        let of_rows = self.rows.as_slice().iter().flat_map(|row| &row.may_write);
        let patterns = self.gates_may_write.iter().chain(of_rows).filter(|entry| is_ref(entry));
        let parse = |entry: &String| Pattern::parse(entry, Case::Sensitive).ok();
        patterns.filter_map(parse).any(|pattern| pattern.covers(name))
    }
}

/// Returns the changes in the primary since the wire was armed, except for refs that gates may write.
pub(crate) fn breaches(config: &WorkspaceConfig, wire: &Tripwire) -> Vec<String> {
    let is_allowed =
        |finding: &String| ref_of(finding).is_some_and(|name| config.may_write_ref(name));
    let mut found = wire.breaches();
    found.retain(|finding| !is_allowed(finding));
    found
}

/// Returns the line of the configuration that would allow what a finding tells of.
pub(crate) fn proposal(finding: &str) -> Option<String> {
    let name = ref_of(finding)?;
    // One branch per lane is written as `-l0`, `-l1`, ….
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let pattern = if stem.len() < name.len() && stem.ends_with("-l") {
        format!("{stem}*")
    } else {
        name.to_owned()
    };
    Some(format!("if a gate makes it, `may_write = [\"{pattern}\"]` in [gates] allows it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn a_pattern_allows_the_refs_that_it_covers_and_no_others() {
        let mut config = Scene::planned().config;
        config.gates_may_write = vec!["refs/heads/pdca-verify-*".into(), "out".into()];
        for (name, expected) in [
            ("refs/heads/pdca-verify-l0", true),
            ("refs/heads/pdca-verify-", true),
            ("refs/heads/pdca-verify-l0/x", false),
            ("refs/heads/main", false),
            ("refs/tags/pdca-verify-l0", false),
        ] {
            assert_eq!(config.may_write_ref(name), expected, "{name}");
        }
    }

    #[test]
    fn the_line_that_would_allow_it_is_proposed() {
        let said = proposal("ref refs/heads/verify-l12 is new, or changed").unwrap();
        assert!(said.contains("`may_write = [\"refs/heads/verify-l*\"]` in [gates]"), "{said}");
        let said = proposal("ref refs/heads/v2 was changed").unwrap();
        assert!(said.contains("[\"refs/heads/v2\"]"), "{said}");
        assert_eq!(proposal("file notes.txt is new, or changed"), None);
    }
}
