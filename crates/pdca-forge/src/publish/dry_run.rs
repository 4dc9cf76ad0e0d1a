//! The steps on the forge that publishing would carry out.

use pdca_integrate::ObjectId;

use crate::publish::forge_state::{ForgeState, is_told};
use crate::publish::gh::{Pull, PullState};
use crate::publish::inputs::PublishInputs;
use crate::publish::outcome::Would;

impl ForgeState<'_> {
    /// Returns the steps that [`Self::send`] would carry out, in order.
    pub fn would(&self, inputs: &PublishInputs, commit: Option<ObjectId>) -> Vec<Would> {
        let mut would = Vec::new();
        let state = self.pull.as_ref().map(Pull::state);
        if !self.is_merged() && (self.at.is_none() || self.at != commit) {
            would.push(Would::Push);
        }
        match &self.pull {
            None if !self.has_forge() => {}
            None => would.push(Would::Open),
            Some(pull) if self.is_to_adopt(inputs) => {
                would.push(Would::Adopt { url: pull.url.clone() });
            }
            Some(pull) if pull.state() == PullState::Closed => {
                would.push(Would::Reopen { url: pull.url.clone() });
            }
            Some(_) => {}
        }
        if self.tracker().is_some() && !is_told(inputs) && self.comment.is_none() {
            would.push(Would::Comment);
        }
        let base = self.base(inputs);
        if self.pull.as_ref().is_some_and(|pull| pull.is_open() && pull.base_ref_name != base) {
            would.push(Would::Retarget { base });
        }
        let is_draft = state.is_none_or(|state| state == PullState::Draft);
        if self.publication.request.ready && is_draft && self.has_forge() {
            would.push(Would::Ready);
        }
        let may_merge = self.publication.request.ready
            && self.publication.request.settings.merge
            && self.has_forge();
        if may_merge && !self.is_merged() {
            would.push(Would::Merge);
        }
        would
    }
}
