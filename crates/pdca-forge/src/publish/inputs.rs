//! The change to publish, its destination and its key, all known before anything is changed.

use camino::Utf8PathBuf;
use pdca_integrate::{
    AcceptedChange, ChangeState, ObjectId, QueueWorkspace, Sealed, TargetBranch, TargetBranches,
};
use pdca_journal::Effects;
use pdca_state::{Artifact, Bundle, DefaultTexts, Snapshot, State, WriteError};

use crate::publish::branch::Branch;
use crate::publish::failure::PublishError;
use crate::publish::key::PublishKey;
use crate::publish::legacy::LegacyRecord;
use crate::publish::record::PublishRecord;
use crate::publish::settings::{ForgeKind, PublishSettings};
use crate::publish::stack::Stack;

/// The facts about a change to be published.
#[derive(Debug)]
pub struct PublishInputs {
    pub snapshot: Snapshot,
    /// The target branch of the change.
    pub target_branch: TargetBranch,
    pub sealed: Box<Sealed>,
    /// The commit that brought it, if it is already in that branch.
    pub(super) landed: Option<ObjectId>,
    pub key: PublishKey,
    /// The repository on the forge, as `owner/repo`; empty without a forge.
    pub repo: String,
    /// The name of the target branch on the forge.
    pub(super) base: String,
    /// The branch that is pushed.
    pub branch: Branch,
    pub record: PublishRecord,
    settings: PublishSettings,
    /// The published change that this one stands on.
    pub stack: Stack,
    /// The bundle has a `publish.json` that this program did not write.
    is_foreign: bool,
}

/// Returns the target branch of the change, and the state of the change.
fn target_branch_of(
    workspace: &QueueWorkspace,
    bundle: &Bundle,
) -> Result<(TargetBranch, AcceptedChange), PublishError> {
    let mut found = TargetBranches::load_some(workspace, |id| id == bundle.id())?;
    if let Some(unplaceable) = found.unplaceable.pop() {
        return Err(unplaceable.error.into());
    }
    let found = found.branches.pop().and_then(|mut branch| Some((branch.changes.pop()?, branch)));
    match found {
        Some((change, target_branch)) => Ok((target_branch, change)),
        None => Err(PublishError::NoTarget { id: bundle.id().clone() }),
    }
}

impl PublishInputs {
    /// Collects the facts about a bundle to be published. Changes nothing.
    pub fn load(
        workspace: &QueueWorkspace,
        bundle: &Bundle,
        settings: &PublishSettings,
    ) -> Result<Self, PublishError> {
        let id = bundle.id();
        let snapshot = bundle.load()?;
        if snapshot.state != State::Complete {
            return Err(PublishError::NotAccepted { id: id.clone(), state: snapshot.state });
        }
        if !snapshot.artifacts.contains(Artifact::Patch) {
            return Err(PublishError::NoChange { id: id.clone() });
        }
        if let Some(older) =
            bundle.read(Artifact::Publish)?.and_then(|kept| LegacyRecord::parse(&kept))
        {
            // Its branch has another name, so it would not be found at the forge, and there would be two.
            let LegacyRecord { url, branch } = older;
            return Err(PublishError::PublishedBefore { id: id.clone(), url, branch });
        }
        let (target_branch, change) = target_branch_of(workspace, bundle)?;
        let (sealed, landed) = match change.standing {
            ChangeState::Sealed(sealed) | ChangeState::Staged { sealed, .. } => (sealed, None),
            ChangeState::Landed { sealed, commit, .. } => (sealed, Some(commit)),
            ChangeState::Reverted { by, .. } => {
                let why = format!("it was reverted by {by}");
                return Err(PublishError::Drifted { id: id.clone(), why });
            }
            ChangeState::Unsealed => return Err(PublishError::Unsealed { id: id.clone() }),
            ChangeState::Drifted { why } => {
                return Err(PublishError::Drifted { id: id.clone(), why });
            }
        };
        let target = &target_branch.target;
        let repo = target.repo.clone().filter(|repo| is_repository(repo));
        let repo = match settings.forge {
            // Without a forge nothing is asked of a repository there.
            ForgeKind::None => repo.unwrap_or_default(),
            ForgeKind::Gh | ForgeKind::Command => {
                repo.ok_or_else(|| PublishError::NoRepository { target: target.name.clone() })?
            }
        };
        let run = sealed.record().run.as_str();
        let branch = settings
            .branch_of(id, snapshot.authored_brief(), run)
            .map_err(|source| PublishError::Branch { id: id.clone(), source })?;
        let base = base_of(&target_branch, &settings.remote);
        // A push to the target branch would be a landing without a certificate.
        if [base.as_str(), &target_branch.branch].contains(&branch.as_str()) {
            let branch = branch.to_string();
            return Err(PublishError::OwnTarget { id: id.clone(), branch });
        }
        let key = PublishKey::new(run, id, &sealed.to_json());
        let kept = bundle.read(Artifact::Publish)?;
        let parsed = kept.as_deref().map(PublishRecord::parse);
        let is_foreign = matches!(parsed, Some(Err(_)));
        let record = match parsed {
            Some(Ok(record)) => record.under(&key),
            Some(Err(_)) | None => PublishRecord::new(&key),
        };
        let stack = Stack::of(
            &workspace.dirs.bundles,
            &target_branch.store,
            sealed.record(),
            &record,
            &settings.remote,
        );
        Ok(Self {
            stack,
            snapshot,
            target_branch,
            sealed,
            landed,
            key,
            repo,
            base,
            branch,
            record,
            settings: settings.clone(),
            is_foreign,
        })
    }

    /// Renames a `publish.json` that this program did not write. It is kept, because it may matter to a person.
    pub fn set_foreign_record_aside(
        &self,
        bundle: &Bundle,
        effects: &dyn Effects,
    ) -> Result<Option<Utf8PathBuf>, WriteError> {
        if !self.is_foreign {
            return Ok(None);
        }
        effects.perform("set-aside", || bundle.set_aside(Artifact::Publish))
    }

    /// Renders the default for a missing text.
    pub fn default_text(&self, bundle: &Bundle, text: Artifact) -> Result<String, PublishError> {
        let brief = bundle.read(Artifact::Brief)?.unwrap_or_default();
        let texts = DefaultTexts {
            id: bundle.id(),
            brief_text: &String::from_utf8_lossy(&brief),
            brief: self.snapshot.authored_brief(),
            gates: self.snapshot.gates.as_ref(),
            summary: self.snapshot.summary.as_ref(),
        };
        Ok(if text == Artifact::CommitMessage {
            self.settings.with_trailer(texts.message(), bundle.id())
        } else if text == Artifact::PrDescription {
            self.settings.with_trailer(texts.description(), bundle.id())
        } else {
            texts.comment()
        })
    }
}

/// Returns the name of the target branch on the forge.
fn base_of(target_branch: &TargetBranch, remote: &str) -> String {
    let of_remote = target_branch.reference.strip_prefix("refs/remotes/");
    let bare = of_remote.and_then(|name| name.strip_prefix(remote)?.strip_prefix('/'));
    bare.unwrap_or(&target_branch.branch).to_owned()
}

/// Returns whether a text is `owner/repo` or `host/owner/repo`, and cannot be taken for an option or a path.
fn is_repository(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let part =
        |part: &str| !part.is_empty() && !part.starts_with(['-', '.']) && part.bytes().all(legal);
    // It becomes an argument of `gh`.
    (2..=3).contains(&text.split('/').count()) && text.len() <= 200 && text.split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_an_owner_and_a_name() {
        for (text, is_one) in [
            ("team/app", true),
            ("forge.example/team/app.js", true),
            ("app", false),
            ("--web/app", false),
            ("team/../app", false),
            ("https://forge.example/team/app", false),
            ("team/app name", false),
            ("a/b/c/d", false),
        ] {
            assert_eq!(is_repository(text), is_one, "{text}");
        }
    }

    #[test]
    fn a_bundle_that_is_not_accepted_is_refused_before_anything_is_looked_up() {
        let scene = pdca_testkit::TestWorkspace::new();
        scene.brief("7", &[]);
        let workspace = QueueWorkspace::at(scene.path());
        let bundle = workspace.dirs.bundles.bundle(&"7".parse().unwrap());
        let refused = PublishInputs::load(&workspace, &bundle, &PublishSettings::default());
        assert!(
            matches!(refused, Err(PublishError::NotAccepted { state: State::Planned, .. })),
            "{refused:?}"
        );
    }
}
