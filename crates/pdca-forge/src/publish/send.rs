//! The calls that bring a change to the forge, each looked up before and after.

use pdca_integrate::{Destination, ObjectId, OfferOutcome, SealedOffer, offer};
use pdca_journal::events::WarningCode;
use pdca_state::Artifact;

use crate::publish::failure::PublishError;
use crate::publish::forge_state::{ForgeState, is_told, of_tracker, silent};
use crate::publish::gh::{Amendment, NewPullRequest, Pull, PullState};
use crate::publish::inputs::PublishInputs;
use crate::publish::messages::Messages;
use crate::publish::outcome::{CommentOutcome, MergeOutcome, PublishStep, PublishedPull};
use crate::publish::page::{comment_body, pull_body, subject};
use crate::publish::record::{Adoption, BranchState, CommentRecord, CommentState, PullRecord};
use crate::publish::request::stop_if_cancelled;
use crate::publish::retry::{RetryPolicy, once};
use crate::publish::settings::Comments;

/// The pull request and the comment at the end.
#[derive(Debug)]
pub struct Sent {
    pub pull: Option<PublishedPull>,
    pub comment: CommentOutcome,
    pub merge: MergeOutcome,
}

impl ForgeState<'_> {
    /// Creates on the forge whatever does not exist yet.
    pub fn send(
        &self,
        inputs: &mut PublishInputs,
        made: &SealedOffer,
        messages: &Messages,
        news: &mut Vec<PublishStep>,
    ) -> Result<Sent, PublishError> {
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
            return Ok(Sent { pull: None, comment, merge: MergeOutcome::NotAsked });
        }
        let mut pull = self.open(inputs, messages, news)?;
        if pull.is_open() && pull.base_ref_name != self.base(inputs) {
            pull = self.retarget(inputs, &pull)?;
            news.push(PublishStep::Retargeted);
        }
        // After the pull request, whose address it names; before the merge, which may be refused.
        let comment = self.comment(inputs, messages, Some(&pull), news)?;
        if self.publication.request.ready && pull.state() == PullState::Draft {
            pull = self.mark_ready(inputs, &pull)?;
            news.push(PublishStep::Ready);
        }
        let mut merge = MergeOutcome::NotAsked;
        if self.publication.request.ready && self.settings().merge {
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
        Ok(Sent { pull: Some(out), comment, merge })
    }

    /// Pushes the branch; returns whether that was needed.
    fn push(&self, inputs: &mut PublishInputs, made: &SealedOffer) -> Result<bool, PublishError> {
        let (remote, branch) = (self.settings().remote.clone(), inputs.branch.to_string());
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
        // The commit is on record as ours before it is pushed: after a crash a branch at this
        // commit must not look foreign (decision 015).
        inputs.record.intend(&remote, &branch, &commit);
        // `remember` puts each in target_branch, so the order of the record stays.
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
        made: &SealedOffer,
        ours: &[ObjectId],
    ) -> Result<(), PublishError> {
        let (remote, branch) = (self.settings().remote.clone(), inputs.branch.to_string());
        let to = Destination { remote: &remote, branch: &branch };
        let mut patience = RetryPolicy::new(self.publication.cancel);
        loop {
            let push = || offer(&inputs.target_branch.store, made, to, ours);
            let said = match self.publication.effects.perform("publish-push", push)? {
                OfferOutcome::Pushed | OfferOutcome::AlreadyThere => return Ok(()),
                OfferOutcome::Foreign { at } => {
                    return Err(PublishError::Foreign { remote, branch, at: at.to_string() });
                }
                OfferOutcome::Transient { said } if patience.wait() => {
                    (self.publication.warn)(
                        WarningCode::RemoteRetried,
                        format!("{remote}: {said}; trying again"),
                    );
                    continue;
                }
                OfferOutcome::Transient { said } | OfferOutcome::Permanent { said } => said,
            };
            stop_if_cancelled(self.publication.cancel)?;
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
        let opening = NewPullRequest {
            head: &inputs.branch,
            base: &self.base(inputs),
            title: &subject(&messages.message),
            body: &pull_body(&messages.description, inputs.stack.note().as_deref(), &inputs.key),
        };
        let gh = self.gh();
        let look = || self.find(inputs, |_| true);
        let act = || self.publication.effects.perform("pull-request", || gh.open(&opening));
        Ok(once("the pull request", RetryPolicy::new(self.publication.cancel), look, act)?)
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
        let act = || {
            self.publication.effects.perform("pull-request-adopt", || gh.amend(pull.number, text))
        };
        let found = once("the text", RetryPolicy::new(self.publication.cancel), look, act)?;
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
            self.publication.effects.perform("pull-request-base", amend)
        };
        Ok(once("the new base", RetryPolicy::new(self.publication.cancel), look, act)?)
    }

    fn reopen(&self, inputs: &PublishInputs, pull: &Pull) -> Result<Pull, PublishError> {
        let gh = self.gh();
        let is_open =
            |found: &Pull| found.number == pull.number && found.state() != PullState::Closed;
        let look = || self.find(inputs, is_open);
        let act =
            || self.publication.effects.perform("pull-request-reopen", || gh.reopen(pull.number));
        Ok(once("the open pull request", RetryPolicy::new(self.publication.cancel), look, act)?)
    }

    fn mark_ready(&self, inputs: &PublishInputs, pull: &Pull) -> Result<Pull, PublishError> {
        let gh = self.gh();
        let is_ready =
            |found: &Pull| found.number == pull.number && found.state() != PullState::Draft;
        let look = || self.find(inputs, is_ready);
        let act = || {
            self.publication.effects.perform("pull-request-ready", || gh.mark_ready(pull.number))
        };
        Ok(once("the ready mark", RetryPolicy::new(self.publication.cancel), look, act)?)
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
            return Ok(match self.settings().comments() {
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
            let act = || self.publication.effects.perform("comment", post);
            once("the comment", RetryPolicy::new(self.publication.cancel), look, act)
                .map_err(of_tracker)?
        };
        let (url, state) = (posted.url.clone(), CommentState::Posted);
        inputs.record.comment = Some(CommentRecord { issue, url, state });
        self.save(inputs)?;
        news.push(PublishStep::Commented);
        Ok(CommentOutcome::Posted { url: posted.url })
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
        // Most calls change nothing, and a bundle that is rewritten looks changed to everything
        // that watches it.
        if self.publication.bundle.read(Artifact::Publish)?.as_deref() == Some(&text) {
            return Ok(());
        }
        let publish = || self.publication.bundle.publish(Artifact::Publish, &text);
        Ok(self.publication.effects.perform(Artifact::Publish.file_name(), publish)?)
    }
}
