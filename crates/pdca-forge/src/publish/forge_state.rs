//! The state of forge, tracker and remote for one bundle.

use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_integrate::{Destination, ObjectId, RemoteTip, remote_tip};

use crate::publish::error::ForgeError;
use crate::publish::failure::PublishError;
use crate::publish::gh::{Gh, Pull, PullState};
use crate::publish::inputs::PublishInputs;
use crate::publish::record::{Adoption, CommentState};
use crate::publish::request::{Publication, stop_if_cancelled};
use crate::publish::retry::RetryPolicy;
use crate::publish::settings::{Comments, ForgeKind, PublishSettings};
use crate::publish::tracker::{Posted, Tracker};

/// The forge, the tracker and the remote of one bundle, as they were when last looked at.
pub struct ForgeState<'d> {
    pub(super) publication: Publication<'d>,
    program: Utf8PathBuf,
    pub(super) repo: String,
    /// The number of the bundle's issue on the forge, if it has one.
    issue: Option<u64>,
    pub(super) at: Option<ObjectId>,
    /// The pull request with this bundle's key; an open one if there are several.
    pub(super) pull: Option<Pull>,
    /// An open pull request of the branch without the key.
    rival: Option<Pull>,
    /// The change below is merged, or its branch is gone.
    is_below_merged: bool,
    /// Our comment, if it was looked up.
    pub(super) comment: Option<Posted>,
}

impl<'d> ForgeState<'d> {
    /// Looks at the forge and at the remote. Changes nothing.
    pub fn look(
        publication: Publication<'d>,
        inputs: &PublishInputs,
    ) -> Result<Self, PublishError> {
        let id = publication.bundle.id();
        let settings = publication.request.settings;
        // A bare name is looked up on PATH; a path is relative to the workspace.
        let program = if settings.gh.contains('/') {
            publication.workspace.dirs.root.join(&settings.gh)
        } else {
            Utf8PathBuf::from(&settings.gh)
        };
        let mut forge = Self {
            publication,
            program,
            repo: inputs.repo.clone(),
            // `007` would parse as 7, which is another issue.
            issue: id.as_str().parse().ok().filter(|_| is_number(id.as_str())),
            at: None,
            pull: None,
            rival: None,
            is_below_merged: false,
            comment: None,
        };
        if forge.has_forge() {
            forge.look_at_pulls(inputs)?;
        }
        forge.at = forge.look_at_remote(inputs)?;
        if !is_told(inputs)
            && let Some(tracker) = forge.tracker()
        {
            forge.comment = tracker.find(&inputs.key).map_err(of_tracker)?;
        }
        Ok(forge)
    }

    /// Looks for the pull requests of the branch, and for that of the change below.
    fn look_at_pulls(&mut self, inputs: &PublishInputs) -> Result<(), PublishError> {
        let pulls = self.gh().pulls(&inputs.branch)?;
        let (ours, theirs): (Vec<Pull>, Vec<Pull>) =
            pulls.into_iter().partition(|pull| is_ours(inputs, pull));
        // A branch may have had several pull requests. An open one is the one to go on with.
        self.pull = ours.into_iter().min_by_key(|pull| rank(pull.state()));
        self.rival = theirs.into_iter().find(|pull| rank(pull.state()) == 0);
        // Where the builder may push, a pull request of the branch that was never published from here is its own.
        if self.settings().builder_pushes && self.pull.is_none() && inputs.record.branch.is_none() {
            self.pull = self.rival.take();
        }
        if let Some(below) = inputs.stack.below()
            && let Ok(branch) = below.branch.parse()
        {
            let pulls = self.gh().pulls(&branch)?;
            let is_it = |pull: &&Pull| Some(pull.number) == below.number;
            let state = pulls.iter().find(is_it).map(Pull::state);
            self.is_below_merged = state == Some(PullState::Merged);
        }
        Ok(())
    }

    pub(super) fn settings(&self) -> &'d PublishSettings {
        self.publication.request.settings
    }

    /// Returns whether there are pull requests at all.
    pub(super) fn has_forge(&self) -> bool {
        self.settings().forge != ForgeKind::None
    }

    /// Returns the branch that the pull request is to be merged into.
    pub fn base(&self, inputs: &PublishInputs) -> String {
        match inputs.stack.below() {
            Some(below) if !self.is_below_merged => below.branch.clone(),
            Some(_) | None => inputs.base.clone(),
        }
    }

    /// Returns whether the pull request is the builder's, and its text is still to be replaced.
    pub(super) fn is_to_adopt(&self, inputs: &PublishInputs) -> bool {
        let adopted = inputs.record.pull_request.as_ref().and_then(|known| known.adopted);
        match adopted {
            Some(Adoption::Intended) => true,
            Some(Adoption::Done) => false,
            None => self.pull.as_ref().is_some_and(|pull| pull.is_open() && !is_ours(inputs, pull)),
        }
    }

    /// Returns whether a commit that was pushed from here is at the remote.
    pub(super) fn is_out(&self, inputs: &PublishInputs) -> bool {
        let ours = inputs.record.ours(&self.settings().remote, inputs.branch.as_str());
        self.at.is_some_and(|at| ours.contains(&at.to_string()))
    }

    pub(super) fn gh(&self) -> Gh<'_> {
        Gh {
            command: match self.settings().forge {
                ForgeKind::Command => self.settings().forge_cmd.as_deref(),
                ForgeKind::Gh | ForgeKind::None => None,
            },
            program: self.program.as_str(),
            repo: &self.repo,
            cwd: &self.publication.workspace.dirs.root,
            timeout: Duration::from_secs(self.settings().timeout_secs),
            cancel: self.publication.cancel,
        }
    }

    fn look_at_remote(&self, inputs: &PublishInputs) -> Result<Option<ObjectId>, PublishError> {
        let (remote, branch) = (self.settings().remote.as_str(), inputs.branch.as_str());
        let mut patience = RetryPolicy::new(self.publication.cancel);
        loop {
            match remote_tip(&inputs.target_branch.store, Destination { remote, branch })? {
                RemoteTip::At(at) => return Ok(Some(at)),
                RemoteTip::NoBranch => return Ok(None),
                RemoteTip::Silent { said } => {
                    if !patience.wait() {
                        stop_if_cancelled(self.publication.cancel)?;
                        return Err(silent(remote, branch, &said));
                    }
                }
            }
        }
    }

    /// Returns an error if the branch has a foreign pull request, if a person closed ours, or
    /// if the change has already landed without a pull request.
    pub fn require_free_way(&self, inputs: &PublishInputs) -> Result<(), PublishError> {
        if let Some(rival) = &self.rival {
            let (branch, url) = (inputs.branch.to_string(), rival.url.clone());
            return Err(PublishError::ForeignPull { branch, url });
        }
        match (&self.pull, inputs.landed) {
            // A forge closes pull requests whose branch is deleted; those are opened again. One that a person closed stays closed.
            (Some(pull), _)
                if pull.state() == PullState::Closed
                    && self.at.is_some()
                    && !is_to_be_open(inputs, pull) =>
            {
                Err(PublishError::Closed { url: pull.url.clone() })
            }
            (None, Some(commit)) => Err(PublishError::Landed {
                id: self.publication.bundle.id().clone(),
                branch: inputs.target_branch.branch.clone(),
                commit: commit.to_string(),
            }),
            (Some(_), _) | (None, None) => Ok(()),
        }
    }

    /// Returns an error if the branch is at a commit that this bundle did not push.
    pub fn require_branch_is_ours(
        &self,
        inputs: &PublishInputs,
        commit: Option<ObjectId>,
    ) -> Result<(), PublishError> {
        let ours = self.ours(inputs);
        let is_foreign = |at: &ObjectId| commit != Some(*at) && !ours.contains(at);
        // A merged change is not pushed again, so the branch name may be in use by others.
        match self.at.filter(|at| !self.is_merged() && is_foreign(at)) {
            None => Ok(()),
            Some(at) => {
                let (remote, branch) = (self.settings().remote.clone(), inputs.branch.to_string());
                Err(PublishError::Foreign { remote, branch, at: at.to_string() })
            }
        }
    }

    pub(super) fn is_merged(&self) -> bool {
        self.pull.as_ref().is_some_and(|pull| pull.state() == PullState::Merged)
    }

    /// Returns the commits that this bundle pushed to the branch.
    pub(super) fn ours(&self, inputs: &PublishInputs) -> Vec<ObjectId> {
        let ours = inputs.record.ours(&self.settings().remote, inputs.branch.as_str());
        let ours = ours.iter().filter_map(|commit| ObjectId::from_hex(commit.as_bytes()).ok());
        let mut ours: Vec<ObjectId> = ours.collect();
        // What is there before the first publication is the builder's, where it may push.
        if self.settings().builder_pushes && inputs.record.branch.is_none() {
            ours.extend(self.at);
        }
        ours
    }

    /// Looks up our pull request that fulfils a condition.
    pub(super) fn find(
        &self,
        inputs: &PublishInputs,
        is_wanted: impl Fn(&Pull) -> bool,
    ) -> Result<Option<Pull>, ForgeError> {
        let pulls = self.gh().pulls(&inputs.branch)?;
        Ok(pulls.into_iter().find(|pull| is_ours(inputs, pull) && is_wanted(pull)))
    }

    /// Returns the tracker for comments, if one is configured.
    pub(super) fn tracker(&self) -> Option<Tracker<'_>> {
        match self.settings().comments() {
            Comments::Off => None,
            Comments::Gh => self.issue.map(|issue| Tracker::Forge { gh: self.gh(), issue }),
            Comments::Command => Some(Tracker::Commands {
                id: self.publication.bundle.id(),
                repo: &self.repo,
                comment: self.settings().comment_cmd.as_deref()?,
                list: self.settings().list_cmd.as_deref()?,
                cwd: &self.publication.workspace.dirs.root,
                timeout: Duration::from_secs(self.settings().timeout_secs),
                cancel: self.publication.cancel,
            }),
        }
    }
}

/// Returns whether a pull request carries a key of the bundle, or is the recorded one.
fn is_ours(inputs: &PublishInputs, pull: &Pull) -> bool {
    let known = inputs.record.pull_request.as_ref().and_then(|known| known.url.as_ref());
    known == Some(&pull.url) || inputs.record.is_marked(&pull.body)
}

pub(super) fn silent(remote: &str, branch: &str, said: &str) -> PublishError {
    PublishError::Remote {
        remote: remote.to_owned(),
        branch: branch.to_owned(),
        said: said.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// Returns whether an earlier driver was about to open it again.
fn is_to_be_open(inputs: &PublishInputs, pull: &Pull) -> bool {
    let known = inputs.record.pull_request.as_ref();
    known.is_some_and(|known| known.url.as_ref() == Some(&pull.url) && known.state.is_none())
}

/// Returns whether our comment was seen on the tracker.
pub(super) fn is_told(inputs: &PublishInputs) -> bool {
    let known = inputs.record.comment.as_ref();
    known.is_some_and(|known| known.state == CommentState::Posted)
}

/// Orders pull requests: open before merged before closed.
fn rank(state: PullState) -> u8 {
    match state {
        PullState::Draft | PullState::Ready => 0,
        PullState::Merged => 1,
        PullState::Closed => 2,
    }
}

pub(super) fn of_tracker(error: ForgeError) -> PublishError {
    if matches!(error, ForgeError::Interrupted) {
        return PublishError::Interrupted;
    }
    PublishError::Tracker(error)
}

fn is_number(text: &str) -> bool {
    !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_pull_request_counts_before_a_merged_one_and_that_before_a_closed_one() {
        let mut states = [PullState::Closed, PullState::Merged, PullState::Ready, PullState::Draft];
        states.sort_by_key(|state| rank(*state));
        assert_eq!(rank(states[0]), rank(states[1]), "draft or ready, both are open");
        assert_eq!(states[2..], [PullState::Merged, PullState::Closed]);
    }

    #[test]
    fn only_a_plain_number_is_an_issue_of_the_forge() {
        for (text, expected) in [("36", true), ("036", false), ("PROJ-12", false), ("1a", false)] {
            assert_eq!(is_number(text), expected, "{text}");
        }
    }
}
