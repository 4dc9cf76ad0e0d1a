//! Merging of a published change on the forge.
//!
//! The forge decides: it is asked for the state of the checks first, and to merge exactly the pushed commit. A merge that it
//! refuses is an outcome with its reason, not an error: the branch, the pull request and the comment are out and stay.

use pdca_integrate::SealedOffer;

use crate::publish::error::ForgeError;
use crate::publish::failure::PublishError;
use crate::publish::forge_state::ForgeState;
use crate::publish::gh::{Pull, PullState};
use crate::publish::inputs::PublishInputs;
use crate::publish::merge::Mergeability;
use crate::publish::outcome::MergeOutcome;
use crate::publish::retry::{RetryPolicy, once};

impl ForgeState<'_> {
    /// Merges the pull request if the forge lets it; returns it as found afterwards.
    pub(super) fn merge(
        &self,
        inputs: &PublishInputs,
        made: &SealedOffer,
        pull: Pull,
    ) -> Result<(Pull, MergeOutcome), PublishError> {
        if pull.state() == PullState::Merged {
            return Ok((pull, MergeOutcome::Merged));
        }
        if let Some(why) = unlike(inputs, made, &pull) {
            return Ok((pull, why));
        }
        let gh = self.gh();
        match gh.merge_view(pull.number)?.judge() {
            Mergeability::Ready => {}
            Mergeability::Waits { why } => return Ok((pull, MergeOutcome::Waits { why })),
            Mergeability::Refused { why } => return Ok((pull, MergeOutcome::Refused { why })),
        }
        // The forge is told the commit, so that it refuses if the branch moves after the look
        // (decision 046).
        let (method, head) = (self.settings().merge_method, made.commit().to_string());
        let is_merged =
            |found: &Pull| found.number == pull.number && found.state() == PullState::Merged;
        let look = || self.find(inputs, is_merged);
        let effects = self.publication.effects;
        let act = || effects.perform("pull-request-merge", || gh.merge(pull.number, method, &head));
        match once("the merge", RetryPolicy::new(self.publication.cancel), look, act) {
            Ok(merged) => Ok((merged, MergeOutcome::Merged)),
            Err(ForgeError::Refused { said, .. }) => {
                Ok((pull, MergeOutcome::Refused { why: said }))
            }
            // A merge queue takes the request and leaves the pull request open.
            Err(ForgeError::Unseen { .. }) => {
                let why = "the forge queued it, or took it and shows it as open".to_owned();
                Ok((pull, MergeOutcome::Waits { why }))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the reason not to merge a pull request that is not what was accepted, or stands on another one.
fn unlike(inputs: &PublishInputs, made: &SealedOffer, pull: &Pull) -> Option<MergeOutcome> {
    let pushed = made.commit().to_string();
    if pull.head_ref_oid != pushed {
        let why = format!("its head is {}, and {pushed} was accepted", pull.head_ref_oid);
        return Some(MergeOutcome::Refused { why });
    }
    let below = inputs.stack.below()?;
    if pull.base_ref_name == inputs.base {
        return None;
    }
    let why = format!("it stands on {}, which is not merged yet", below.id);
    Some(MergeOutcome::Waits { why })
}
