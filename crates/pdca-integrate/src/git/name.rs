//! Names of refs.

use std::{fmt, str::FromStr};

use pdca_journal::RunId;
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

/// The component of a ref below `refs/pdca/` that groups what belongs together: the id of a run, or the name of a
/// seal, which is derived from its contents.
///
/// ASCII letters, digits, `-` and `_`, at most 64 of them, and no `-` in front.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RefNamespace(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not a component of a ref")]
pub struct RefNamespaceError {
    pub given: String,
}

impl RefNamespace {
    pub const MAX_LEN: usize = 64;

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the ref of a bundle's seal, an annotated tag.
    pub fn seal_ref(&self, id: &BundleId) -> String {
        format!("refs/pdca/{self}/seal/{id}")
    }

    /// Returns the ref that protects the tip of a fold from garbage collection.
    pub fn fold_ref(&self, number: u32) -> String {
        format!("refs/pdca/{self}/int/{number}")
    }

    /// Returns the namespace of a ref that [`fold_ref`](Self::fold_ref) made, or `None` for any other ref.
    pub fn of_fold_ref(name: &str) -> Option<Self> {
        let (run, number) = name.strip_prefix("refs/pdca/")?.split_once("/int/")?;
        number.parse::<u32>().ok()?;
        run.parse().ok()
    }

    /// Returns the ref that keeps a commit as evidence of a failed landing.
    pub fn evidence_ref(&self, commit: gix::ObjectId) -> String {
        format!("refs/pdca/{self}/evidence/{commit}")
    }
}

/// The prefix of staging branches, without `refs/heads/`.
pub(crate) const STAGING: &str = "pdca/staging/";

/// The prefix of refs that keep attempts.
pub(crate) const ATTEMPTS: &str = "refs/pdca/attempts/";

/// The prefix of staging branches of further workspaces, before their mark.
const STAGING_OF: &str = "pdca/staging-";

/// The prefix of the refs that say which workspace staged a commit.
pub(crate) const STAGED_BY: &str = "refs/pdca/staged/";

/// The prefix of the refs that say which workspaces integrate here.
const WORKSPACES: &str = "refs/pdca/workspaces/";

/// Returns the target branch of a staging branch, or `None` for any other ref.
pub fn staged_for(reference: &str) -> Option<&str> {
    let branch = reference.strip_prefix("refs/heads/")?;
    branch
        .strip_prefix(STAGING)
        .or_else(|| Some(branch.strip_prefix(STAGING_OF)?.split_once('/')?.1))
}

/// Returns the staging branch of a target branch. The name is permanent, so that people and tools can refer to it.
pub fn staging_branch(target_branch: &str) -> String {
    format!("{STAGING}{target_branch}")
}

/// Returns the staging branch that a workspace uses while that of the target branch belongs to another one.
pub(crate) fn own_staging_branch(workspace: &str, target_branch: &str) -> String {
    format!("{STAGING_OF}{workspace}/{target_branch}")
}

/// Returns the ref that holds the commit that a workspace staged last for a target branch.
pub fn staged_by(workspace: &str, target_branch: &str) -> String {
    format!("{STAGED_BY}{workspace}/{target_branch}")
}

/// Returns the workspace of a ref that [`staged_by`] names for a target branch.
pub fn stager<'r>(reference: &'r str, target_branch: &str) -> Option<&'r str> {
    let (workspace, branch) = reference.strip_prefix(STAGED_BY)?.split_once('/')?;
    (branch == target_branch).then_some(workspace)
}

/// Returns the ref that says that a workspace integrates here.
pub fn workspace_ref(workspace: &str) -> String {
    format!("{WORKSPACES}{workspace}")
}

/// Returns the workspace of a ref that [`workspace_ref`] names.
pub fn workspace_of(reference: &str) -> Option<&str> {
    reference.strip_prefix(WORKSPACES)
}

impl FromStr for RefNamespace {
    type Err = RefNamespaceError;

    fn from_str(text: &str) -> Result<Self, RefNamespaceError> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        // A leading `-` could be taken for an option, and a dot or a slash could leave the namespace.
        let fits = !text.is_empty() && text.len() <= Self::MAX_LEN && !text.starts_with('-');
        if fits && text.bytes().all(legal) {
            Ok(Self(text.to_owned()))
        } else {
            Err(RefNamespaceError { given: text.chars().take(80).collect() })
        }
    }
}

impl fmt::Display for RefNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<&RunId> for RefNamespace {
    fn from(run: &RunId) -> Self {
        Self(run.to_string())
    }
}

impl TryFrom<String> for RefNamespace {
    type Error = RefNamespaceError;

    fn try_from(text: String) -> Result<Self, RefNamespaceError> {
        text.parse()
    }
}

impl From<RefNamespace> for String {
    fn from(run: RefNamespace) -> Self {
        run.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_leave_the_namespace_of_the_run_is_refused() {
        for text in ["", "-x", "a/b", "..", "a.lock", "a b", "é", &"x".repeat(65)] {
            assert!(text.parse::<RefNamespace>().is_err(), "{text:?}");
        }
        assert!("01J9Z8-a_b".parse::<RefNamespace>().is_ok());
    }

    #[test]
    fn every_run_id_is_a_namespace() {
        let run = RunId::new("2026-11-16T08:00:00Z".parse().unwrap(), [7; 10]);
        assert_eq!(run.as_str().parse(), Ok(RefNamespace::from(&run)));
    }

    #[test]
    fn only_the_ref_of_a_fold_names_the_run_of_a_fold() {
        let run: RefNamespace = "01J9Z8".parse().unwrap();
        assert_eq!(RefNamespace::of_fold_ref(&run.fold_ref(7)), Some(run));
        for name in ["refs/pdca/01J9Z8/seal/7", "refs/pdca/01J9Z8/int/x", "refs/heads/int/1"] {
            assert_eq!(RefNamespace::of_fold_ref(name), None, "{name}");
        }
    }
}
