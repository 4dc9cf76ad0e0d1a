//! The state of forge, tracker and remote for one bundle, and the calls that change it.

use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_events::WarningCode;
use pdca_integrate::{Destination, ObjectId, Offer, OfferOutcome, RemoteTip, offer, remote_tip};
use pdca_publish::{
    Adoption, Amendment, BranchState, CommentRecord, CommentState, Comments, ForgeError, ForgeKind,
    Gh, Opening, Posted, PublishSettings, Pull, PullRecord, PullState, RetryPolicy, Tracker,
    comment_body, once, pull_body, subject,
};
use pdca_state::{Artifact, Bundle};

use crate::publish::stop_if_told;
use crate::run_bundle::Driver;

use super::inputs::PublishInputs;
use super::messages::Messages;
use super::{
    CommentOutcome, MergeOutcome, PublishError, PublishRequest, PublishStep, PublishedPull,
};

/// The forge, the tracker and the remote of one bundle, as they were when last looked at.
pub(super) struct Forge<'d> {
    driver: &'d Driver<'d>,
    bundle: &'d Bundle,
    settings: &'d PublishSettings,
    program: Utf8PathBuf,
    repo: String,
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

/// The pull request and the comment at the end.
pub(super) struct Done {
    pub(super) pull: Option<PublishedPull>,
    pub(super) comment: CommentOutcome,
    pub(super) merge: MergeOutcome,
}

impl<'d> Forge<'d> {
    /// Looks at the forge and at the remote. Changes nothing.
    pub(super) fn look(
        driver: &'d Driver<'d>,
        bundle: &'d Bundle,
        inputs: &PublishInputs,
        request: &PublishRequest<'d>,
    ) -> Result<Self, PublishError> {
        let id = bundle.id();
        let settings = request.settings;
        // A bare name is looked up on PATH; a path is relative to the workspace.
        let program = if settings.gh.contains('/') {
            driver.config.dirs.root.join(&settings.gh)
        } else {
            Utf8PathBuf::from(&settings.gh)
        };
        let mut forge = Self {
            driver,
            bundle,
            settings,
            program,
            repo: inputs.repo.clone(),
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
        self.pull = ours.into_iter().min_by_key(|pull| rank(pull.state()));
        self.rival = theirs.into_iter().find(|pull| rank(pull.state()) == 0);
        // Where the builder may push, a pull request of the branch that was never published from here is its own.
        if self.settings.builder_pushes && self.pull.is_none() && inputs.record.branch.is_none() {
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

    pub(super) fn driver(&self) -> &'d Driver<'d> {
        self.driver
    }

    pub(super) fn settings(&self) -> &'d PublishSettings {
        self.settings
    }

    /// Returns whether there are pull requests at all.
    pub(super) fn has_forge(&self) -> bool {
        self.settings.forge != ForgeKind::None
    }

    /// Returns the branch that the pull request is to be merged into.
    pub(super) fn base(&self, inputs: &PublishInputs) -> String {
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
        let ours = inputs.record.ours(&self.settings.remote, inputs.branch.as_str());
        self.at.is_some_and(|at| ours.contains(&at.to_string()))
    }

    pub(super) fn gh(&self) -> Gh<'_> {
        Gh {
            command: match self.settings.forge {
                ForgeKind::Command => self.settings.forge_cmd.as_deref(),
                ForgeKind::Gh | ForgeKind::None => None,
            },
            program: self.program.as_str(),
            repo: &self.repo,
            cwd: &self.driver.config.dirs.root,
            timeout: Duration::from_secs(self.settings.timeout_secs),
            cancel: self.driver.cancel,
        }
    }

    fn look_at_remote(&self, inputs: &PublishInputs) -> Result<Option<ObjectId>, PublishError> {
        let (remote, branch) = (self.settings.remote.as_str(), inputs.branch.as_str());
        let mut patience = RetryPolicy::new(self.driver.cancel);
        loop {
            match remote_tip(&inputs.front.store, Destination { remote, branch })? {
                RemoteTip::At(at) => return Ok(Some(at)),
                RemoteTip::NoBranch => return Ok(None),
                RemoteTip::Silent { said } => {
                    if !patience.wait() {
                        stop_if_told(self.driver)?;
                        return Err(silent(remote, branch, &said));
                    }
                }
            }
        }
    }

    /// Returns an error if the branch has a foreign pull request, if a person closed ours, or
    /// if the change has already landed without a pull request.
    pub(super) fn require_free_way(&self, inputs: &PublishInputs) -> Result<(), PublishError> {
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
                id: self.bundle.id().clone(),
                branch: inputs.front.branch.clone(),
                commit: commit.to_string(),
            }),
            (Some(_), _) | (None, None) => Ok(()),
        }
    }

    /// Returns an error if the branch is at a commit that this bundle did not push.
    pub(super) fn require_branch_is_ours(
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
                let (remote, branch) = (self.settings.remote.clone(), inputs.branch.to_string());
                Err(PublishError::Foreign { remote, branch, at: at.to_string() })
            }
        }
    }

    pub(super) fn is_merged(&self) -> bool {
        self.pull.as_ref().is_some_and(|pull| pull.state() == PullState::Merged)
    }

    /// Returns the commits that this bundle pushed to the branch.
    fn ours(&self, inputs: &PublishInputs) -> Vec<ObjectId> {
        let ours = inputs.record.ours(&self.settings.remote, inputs.branch.as_str());
        let ours = ours.iter().filter_map(|commit| ObjectId::from_hex(commit.as_bytes()).ok());
        let mut ours: Vec<ObjectId> = ours.collect();
        // What is there before the first publication is the builder's, where it may push.
        if self.settings.builder_pushes && inputs.record.branch.is_none() {
            ours.extend(self.at);
        }
        ours
    }

    /// Creates on the forge whatever does not exist yet.
    pub(super) fn send(
        &self,
        inputs: &mut PublishInputs,
        made: &Offer,
        messages: &Messages,
        request: &PublishRequest<'_>,
        news: &mut Vec<PublishStep>,
    ) -> Result<Done, PublishError> {
        if let Some(pull) = &self.pull
            && pull.state() == PullState::Closed
        {
            // Recorded before the branch exists again: from then on it would look as if a person
            // had closed the pull request.
            self.note(inputs, pull, None)?;
        }
        // A merged change needs no push; its branch may have been deleted.
        if !self.is_merged() && self.push(inputs, made)? {
            news.push(PublishStep::Pushed);
        }
        if !self.has_forge() {
            let comment = self.comment(inputs, messages, None, news)?;
            return Ok(Done { pull: None, comment, merge: MergeOutcome::NotAsked });
        }
        let mut pull = self.open(inputs, messages, news)?;
        if pull.is_open() && pull.base_ref_name != self.base(inputs) {
            pull = self.retarget(inputs, &pull)?;
            news.push(PublishStep::Retargeted);
        }
        let comment = self.comment(inputs, messages, Some(&pull), news)?;
        if request.ready && pull.state() == PullState::Draft {
            pull = self.mark_ready(inputs, &pull)?;
            news.push(PublishStep::Ready);
        }
        let mut merge = MergeOutcome::NotAsked;
        if request.ready && self.settings.merge {
            let was_merged = pull.state() == PullState::Merged;
            (pull, merge) = self.merge(inputs, made, pull)?;
            if !was_merged && merge == MergeOutcome::Merged {
                news.push(PublishStep::Merged);
            }
        }
        self.note(inputs, &pull, Some(pull.state()))?;
        let below = inputs.stack.below().filter(|below| below.branch == pull.base_ref_name);
        let out = PublishedPull {
            number: pull.number,
            url: pull.url.clone(),
            state: pull.state(),
            base: pull.base_ref_name.clone(),
            stands_on: below.map(|below| below.id.clone()),
        };
        Ok(Done { pull: Some(out), comment, merge })
    }

    /// Pushes the branch; returns whether that was needed.
    fn push(&self, inputs: &mut PublishInputs, made: &Offer) -> Result<bool, PublishError> {
        let (remote, branch) = (self.settings.remote.clone(), inputs.branch.to_string());
        let commit = made.commit().to_string();
        let known = inputs.record.branch.as_ref();
        let was_seen = known.is_some_and(|known| {
            known.state == BranchState::Pushed && known.commit == commit && known.name == branch
        });
        if was_seen && self.at == Some(made.commit()) {
            return Ok(false);
        }
        let ours = self.ours(inputs);
        if self.is_to_adopt(inputs)
            && let Some(pull) = &self.pull
        {
            // Recorded with the branch: once that is ours, only the record tells that the pull request is, too.
            inputs.record.pull_request = Some(PullRecord {
                repo: self.repo.clone(),
                number: Some(pull.number),
                url: Some(pull.url.clone()),
                state: Some(pull.state()),
                adopted: Some(Adoption::Intended),
            });
        }
        inputs.record.stack = inputs.stack.to_record();
        inputs.record.intend(&remote, &branch, &commit);
        for known in ours.iter().map(ToString::to_string).rev() {
            inputs.record.remember(&known);
        }
        self.save(inputs)?;
        self.offer(inputs, made, &ours)?;
        if let Some(known) = &mut inputs.record.branch {
            known.state = BranchState::Pushed;
        }
        self.save(inputs)?;
        Ok(true)
    }

    fn offer(
        &self,
        inputs: &PublishInputs,
        made: &Offer,
        ours: &[ObjectId],
    ) -> Result<(), PublishError> {
        let (remote, branch) = (self.settings.remote.clone(), inputs.branch.to_string());
        let to = Destination { remote: &remote, branch: &branch };
        let mut patience = RetryPolicy::new(self.driver.cancel);
        loop {
            let push = || offer(&inputs.front.store, made, to, ours);
            let said = match self.driver.effects.perform("publish-push", push)? {
                OfferOutcome::Pushed | OfferOutcome::AlreadyThere => return Ok(()),
                OfferOutcome::Foreign { at } => {
                    return Err(PublishError::Foreign { remote, branch, at: at.to_string() });
                }
                OfferOutcome::Transient { said } if patience.wait() => {
                    self.driver.warn(
                        self.bundle,
                        WarningCode::RemoteRetried,
                        format!("{remote}: {said}; trying again"),
                    );
                    continue;
                }
                OfferOutcome::Transient { said } | OfferOutcome::Permanent { said } => said,
            };
            stop_if_told(self.driver)?;
            return Err(silent(&remote, &branch, &said));
        }
    }

    /// Returns the pull request, opening it if there is none.
    fn open(
        &self,
        inputs: &mut PublishInputs,
        messages: &Messages,
        news: &mut Vec<PublishStep>,
    ) -> Result<Pull, PublishError> {
        let was_recorded =
            inputs.record.pull_request.as_ref().is_some_and(|pull| pull.url.is_some());
        let pull = match self.pull.clone() {
            Some(pull) if pull.state() == PullState::Closed => {
                news.push(PublishStep::Reopened);
                self.reopen(inputs, &pull)?
            }
            Some(pull) if self.is_to_adopt(inputs) => {
                news.push(PublishStep::Adopted);
                self.adopt(inputs, messages, &pull)?
            }
            Some(pull) => {
                if !was_recorded {
                    news.push(PublishStep::Opened);
                }
                pull
            }
            None => {
                let repo = self.repo.clone();
                inputs.record.pull_request =
                    Some(PullRecord { repo, number: None, url: None, state: None, adopted: None });
                self.save(inputs)?;
                news.push(PublishStep::Opened);
                self.create(inputs, messages)?
            }
        };
        self.note(inputs, &pull, Some(pull.state()))?;
        Ok(pull)
    }

    fn create(&self, inputs: &PublishInputs, messages: &Messages) -> Result<Pull, PublishError> {
        let opening = Opening {
            head: &inputs.branch,
            base: &self.base(inputs),
            title: &subject(&messages.message),
            body: &pull_body(&messages.description, inputs.stack.note().as_deref(), &inputs.key),
        };
        let gh = self.gh();
        let look = || self.find(inputs, |_| true);
        let act = || self.driver.effects.perform("pull-request", || gh.open(&opening));
        Ok(once("the pull request", RetryPolicy::new(self.driver.cancel), look, act)?)
    }

    /// Gives the builder's pull request the title and the text of the change, with its key.
    fn adopt(
        &self,
        inputs: &mut PublishInputs,
        messages: &Messages,
        pull: &Pull,
    ) -> Result<Pull, PublishError> {
        let title = subject(&messages.message);
        let body = pull_body(&messages.description, inputs.stack.note().as_deref(), &inputs.key);
        let gh = self.gh();
        let carries =
            |found: &Pull| found.number == pull.number && inputs.record.is_marked(&found.body);
        let look = || self.find(inputs, carries);
        let text = Amendment::Text { title: &title, body: &body };
        let act =
            || self.driver.effects.perform("pull-request-adopt", || gh.amend(pull.number, text));
        let found = once("the text", RetryPolicy::new(self.driver.cancel), look, act)?;
        if let Some(known) = &mut inputs.record.pull_request {
            known.adopted = Some(Adoption::Done);
        }
        Ok(found)
    }

    /// Has the pull request merged into the target branch, once the change below is merged.
    fn retarget(&self, inputs: &PublishInputs, pull: &Pull) -> Result<Pull, PublishError> {
        let (gh, base) = (self.gh(), self.base(inputs));
        let is_so = |found: &Pull| found.number == pull.number && found.base_ref_name == base;
        let look = || self.find(inputs, is_so);
        let act = || {
            let amend = || gh.amend(pull.number, Amendment::Base(&base));
            self.driver.effects.perform("pull-request-base", amend)
        };
        Ok(once("the new base", RetryPolicy::new(self.driver.cancel), look, act)?)
    }

    fn reopen(&self, inputs: &PublishInputs, pull: &Pull) -> Result<Pull, PublishError> {
        let gh = self.gh();
        let is_open =
            |found: &Pull| found.number == pull.number && found.state() != PullState::Closed;
        let look = || self.find(inputs, is_open);
        let act = || self.driver.effects.perform("pull-request-reopen", || gh.reopen(pull.number));
        Ok(once("the open pull request", RetryPolicy::new(self.driver.cancel), look, act)?)
    }

    fn mark_ready(&self, inputs: &PublishInputs, pull: &Pull) -> Result<Pull, PublishError> {
        let gh = self.gh();
        let is_ready =
            |found: &Pull| found.number == pull.number && found.state() != PullState::Draft;
        let look = || self.find(inputs, is_ready);
        let act =
            || self.driver.effects.perform("pull-request-ready", || gh.mark_ready(pull.number));
        Ok(once("the ready mark", RetryPolicy::new(self.driver.cancel), look, act)?)
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

    /// Returns the comment, posting it if there is none.
    fn comment(
        &self,
        inputs: &mut PublishInputs,
        messages: &Messages,
        pull: Option<&Pull>,
        news: &mut Vec<PublishStep>,
    ) -> Result<CommentOutcome, PublishError> {
        let Some(tracker) = self.tracker() else {
            return Ok(match self.settings.comments() {
                Comments::Off => CommentOutcome::Off,
                Comments::Gh | Comments::Command => CommentOutcome::NoIssue,
            });
        };
        // Once it was seen, a missing comment was deleted by a person, and stays deleted.
        if let Some(known) = inputs.record.comment.as_ref().filter(|_| is_told(inputs)) {
            return Ok(CommentOutcome::Posted { url: known.url.clone() });
        }
        let Some(comment) = &messages.comment else { return Ok(CommentOutcome::Declined) };
        let issue = inputs.snapshot.id.to_string();
        let posted = if let Some(posted) = &self.comment {
            posted.clone()
        } else {
            let (issue, state) = (issue.clone(), CommentState::Intended);
            inputs.record.comment = Some(CommentRecord { issue, url: None, state });
            self.save(inputs)?;
            let body = comment_body(comment, pull.map(|pull| pull.url.as_str()), &inputs.key);
            let look = || tracker.find(&inputs.key);
            let post = || tracker.post(&inputs.key, &body);
            let act = || self.driver.effects.perform("comment", post);
            once("the comment", RetryPolicy::new(self.driver.cancel), look, act)
                .map_err(of_tracker)?
        };
        let (url, state) = (posted.url.clone(), CommentState::Posted);
        inputs.record.comment = Some(CommentRecord { issue, url, state });
        self.save(inputs)?;
        news.push(PublishStep::Commented);
        Ok(CommentOutcome::Posted { url: posted.url })
    }

    /// Returns the tracker for comments, if one is configured.
    pub(super) fn tracker(&self) -> Option<Tracker<'_>> {
        match self.settings.comments() {
            Comments::Off => None,
            Comments::Gh => self.issue.map(|issue| Tracker::Forge { gh: self.gh(), issue }),
            Comments::Command => Some(Tracker::Commands {
                id: self.bundle.id(),
                repo: &self.repo,
                comment: self.settings.comment_cmd.as_deref()?,
                list: self.settings.list_cmd.as_deref()?,
                cwd: &self.driver.config.dirs.root,
                timeout: Duration::from_secs(self.settings.timeout_secs),
                cancel: self.driver.cancel,
            }),
        }
    }

    /// Records the pull request as seen; `None` as state means that it is to be opened.
    fn note(
        &self,
        inputs: &mut PublishInputs,
        pull: &Pull,
        state: Option<PullState>,
    ) -> Result<(), PublishError> {
        let adopted = inputs.record.pull_request.as_ref().and_then(|known| known.adopted);
        inputs.record.pull_request = Some(PullRecord {
            adopted,
            repo: self.repo.clone(),
            number: Some(pull.number),
            url: Some(pull.url.clone()),
            state,
        });
        self.save(inputs)
    }

    /// Writes the record, unless it is unchanged.
    fn save(&self, inputs: &PublishInputs) -> Result<(), PublishError> {
        let text = inputs.record.to_json();
        if self.bundle.read(Artifact::Publish)?.as_deref() == Some(&text) {
            return Ok(());
        }
        let publish = || self.bundle.publish(Artifact::Publish, &text);
        Ok(self.driver.effects.perform(Artifact::Publish.file_name(), publish)?)
    }
}

/// Returns whether a pull request carries a key of the bundle, or is the recorded one.
fn is_ours(inputs: &PublishInputs, pull: &Pull) -> bool {
    let known = inputs.record.pull_request.as_ref().and_then(|known| known.url.as_ref());
    known == Some(&pull.url) || inputs.record.is_marked(&pull.body)
}

fn silent(remote: &str, branch: &str, said: &str) -> PublishError {
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

fn of_tracker(error: ForgeError) -> PublishError {
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
