//! The part of a workspace that the merge queue works on.

use camino::Utf8PathBuf;
use pdca_journal::Runs;
use pdca_state::{Brief, BundleId, BundleRoot, sha256_hex};

use crate::{Store, StoreError};

/// The directories of a workspace. Only paths: nothing is read or created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceDirs {
    /// The directory that contains `pdca.toml`.
    pub root: Utf8PathBuf,
    pub bundles: BundleRoot,
}

impl WorkspaceDirs {
    /// Returns the directories of the workspace in `root`, with bundles below `results/`.
    pub fn at(root: impl Into<Utf8PathBuf>) -> Self {
        let root = root.into();
        Self { bundles: BundleRoot::new(root.join("results")), root }
    }

    /// Returns the directory for the workspace's own records, which no leaf may touch.
    pub fn private(&self) -> Utf8PathBuf {
        self.root.join(".pdca")
    }

    pub fn runs(&self) -> Runs {
        Runs::new(self.private().join("runs"))
    }

    /// Returns the integrations of the workspace, each recorded as a run.
    pub fn integrations(&self) -> Runs {
        Runs::new(self.private().join("integrations"))
    }

    /// Returns a short digest that distinguishes this workspace from others with the same lanes.
    pub fn mark(&self) -> String {
        sha256_hex(self.root.as_str().as_bytes())[..8].to_owned()
    }

    /// Returns the directories that only drivers write.
    pub fn own(&self) -> [Utf8PathBuf; 2] {
        [self.private(), self.bundles.path().to_owned()]
    }
}

/// The directories and targets of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueWorkspace {
    pub dirs: WorkspaceDirs,
    /// The target repositories.
    pub targets: Vec<TargetSpec>,
    /// The branch to build on if neither brief nor target names one.
    pub default_branch: Option<String>,
}

/// A target repository, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetSpec {
    /// The name, which is also used as a directory name.
    pub name: String,
    /// The primary checkout.
    pub path: Utf8PathBuf,
    /// The name in briefs, as `owner/repo`.
    pub repo: Option<String>,
    /// The branch to build on if the brief names none.
    pub branch: Option<String>,
}

/// The reasons why the target of a bundle is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetChoiceError {
    /// The brief names a repository that is not configured.
    #[error("no target is configured for `{repo}`, which the brief names in line {line}")]
    Unknown {
        repo: String,
        /// The line of the brief.
        line: usize,
        configured: Vec<String>,
    },
    /// The brief names no target, and several are configured.
    #[error("the brief names no target, and several are configured")]
    Ambiguous { configured: Vec<String> },
}

impl QueueWorkspace {
    /// Returns a workspace without targets, with bundles below `results/`.
    pub fn at(root: impl Into<Utf8PathBuf>) -> Self {
        Self { dirs: WorkspaceDirs::at(root), targets: Vec::new(), default_branch: None }
    }

    pub fn store(&self, target: &TargetSpec) -> Result<Store, StoreError> {
        Store::open(&target.path, &self.dirs.private().join("git").join(&target.name))
    }

    /// Opens the repository of a target to look at it: git is not started before something is merged or written.
    pub fn store_to_read(&self, target: &TargetSpec) -> Result<Store, StoreError> {
        let room = self.dirs.private().join("git").join(&target.name);
        Store::open_to_read(&target.path, &room)
    }

    /// Returns true if a bundle with this id exists, put away or not.
    pub fn is_bundle(&self, id: &BundleId) -> bool {
        self.dirs.bundles.bundle(id).dir().is_dir()
            || self.dirs.bundles.completed().bundle(id).dir().is_dir()
    }

    /// Returns the target of a brief, or `None` if no target is configured at all.
    pub fn target_of(&self, brief: &Brief) -> Result<Option<TargetSpec>, TargetChoiceError> {
        let configured = || self.targets.iter().map(|target| target.name.clone()).collect();
        let Some(named) = brief.repo_target() else {
            return match self.targets.as_slice() {
                [] => Ok(None),
                [only] => Ok(Some(only.clone())),
                [..] => Err(TargetChoiceError::Ambiguous { configured: configured() }),
            };
        };
        let found = self.targets.iter().find(|target| target.answers_to(&named.repo)).cloned();
        match (found, self.targets.as_slice()) {
            (Some(found), _) => Ok(Some(found)),
            (None, []) => Ok(None),
            (None, [..]) => Err(TargetChoiceError::Unknown {
                line: brief.field("repo + branch target").map_or(0, |field| field.line),
                repo: named.repo,
                configured: configured(),
            }),
        }
    }

    /// Returns the branch that a brief is about, or `None` if none is named.
    pub fn branch_of(&self, brief: &Brief, target: &TargetSpec) -> Option<String> {
        let onto = brief.onto_branch().map(|onto| format!("{}/{}", onto.remote, onto.branch));
        let named = || brief.repo_target().and_then(|named| named.branch);
        onto.or_else(named)
            .or_else(|| target.branch.clone())
            .or_else(|| self.default_branch.clone())
    }
}

impl TargetSpec {
    /// Returns true if a brief that says `repo` means this target.
    fn answers_to(&self, repo: &str) -> bool {
        self.repo.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(repo))
            || self.name.eq_ignore_ascii_case(repo)
            || self.repo.is_none() && repo.rsplit('/').next() == Some(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str, repo: Option<&str>) -> TargetSpec {
        TargetSpec {
            name: name.into(),
            path: format!("/{name}").into(),
            repo: repo.map(Into::into),
            branch: None,
        }
    }

    fn chosen(targets: &[TargetSpec], brief: &str) -> Result<Option<String>, TargetChoiceError> {
        let workspace = QueueWorkspace {
            dirs: WorkspaceDirs { root: "/w".into(), bundles: BundleRoot::new("/w/results") },
            targets: targets.to_vec(),
            default_branch: None,
        };
        Ok(workspace.target_of(&Brief::parse(brief))?.map(|target| target.name))
    }

    #[test]
    fn a_brief_finds_its_target() {
        let (a, b) = (target("a", Some("team/a")), target("b", None));
        let both = [a.clone(), b.clone()];
        let says =
            |repo: &str| format!("- **Slug:** x\n- **Repo + branch target:** {repo} @ main\n");
        let silent = "- **Slug:** x\n";
        assert_eq!(chosen(&[], &says("team/a")), Ok(None));
        assert_eq!(chosen(&both, &says("Team/A")), Ok(Some("a".into())));
        assert_eq!(chosen(&both, &says("b")), Ok(Some("b".into())));
        assert_eq!(chosen(&both, &says("team/b")), Ok(Some("b".into())));
        assert!(
            chosen(&[b], &says("team/c")).is_err(),
            "another repository is not built in this one"
        );
        assert_eq!(chosen(std::slice::from_ref(&a), silent), Ok(Some("a".into())));
        let configured = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(
            chosen(&both, silent),
            Err(TargetChoiceError::Ambiguous { configured: configured.clone() })
        );
        assert_eq!(
            chosen(&both, &says("team/c")),
            Err(TargetChoiceError::Unknown { repo: "team/c".into(), line: 2, configured })
        );
        assert!(chosen(&[a], &says("team/c")).is_err());
    }
}
