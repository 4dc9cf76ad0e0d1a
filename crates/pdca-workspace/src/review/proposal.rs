//! The proposal of the sign-off leaf: a person makes it a decision, or `[signoff] leaf_may_record` lets the leaf record it.

use pdca_leaves::{Proposal, ProposalError};
use pdca_state::{SignoffAction, SignoffProposal, Snapshot, WriteError};

use crate::config::SignoffSettings;
use crate::review::decide::{Signing, TakenBundle};

/// The name that §9 records for a decision of the leaf, followed by the rule.
const LEAF: &str = "sign-off leaf, as [signoff] leaf_may_record allows";

/// A proposal was not kept. Nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum KeepProposalError {
    /// The leaf left something else than a proposal.
    #[error(transparent)]
    Unreadable(#[from] ProposalError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl TakenBundle<'_> {
    /// Reads what the leaf proposed, and keeps it in the bundle before anybody is asked: a terminal that goes away costs no
    /// second call. A `note` of the person replaces that of the leaf.
    pub fn keep_proposal(
        &self,
        signing: &Signing<'_>,
        proposed: &[u8],
        note: Option<&str>,
    ) -> Result<SignoffProposal, KeepProposalError> {
        let Proposal { action, note: given } = Proposal::parse(proposed)?;
        let note = note.map(str::to_owned).or(given);
        let proposal = SignoffProposal { action, note, date: signing.date.to_owned() };
        if !signing.dry_run {
            self.bundle().keep_proposal(&proposal)?;
        }
        Ok(proposal)
    }
}

/// Returns the name under which the leaf may record a decision without a person; `None` if a person has to decide.
pub fn leaf_signature(
    settings: &SignoffSettings,
    snapshot: &Snapshot,
    action: SignoffAction,
) -> Option<String> {
    let disposition = disposition(snapshot);
    let is_allowed = settings.may_record(action, &disposition);
    is_allowed.then(|| format!("{LEAF} ({action} {})", disposition.trim()))
}

/// Returns the disposition of a bundle, as `leaf_may_record` names it.
fn disposition(snapshot: &Snapshot) -> String {
    let closed = snapshot.close_disposition.as_deref().and_then(|text| text.lines().next());
    let hint = || snapshot.authored_brief().and_then(|brief| brief.disposition_hint());
    closed.or_else(hint).unwrap_or("fix").to_owned()
}
