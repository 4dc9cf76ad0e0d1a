//! `signoff-proposal.json`: a decision that the sign-off leaf proposes.
//!
//! It decides nothing: the state does not depend on it. A person makes the decision with the command that records it.

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::bundle::{Bundle, WriteError};
use crate::contents::LoadError;

use crate::signoff::SignoffAction;

/// A decision that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignoffProposal {
    /// The proposed choice.
    pub action: SignoffAction,
    /// The reason that the leaf gives.
    pub note: Option<String>,
    /// The date of the proposal, such as `2026-11-16`.
    pub date: String,
}

#[derive(Serialize, Deserialize)]
struct ProposalFile {
    action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(default)]
    date: String,
}

impl Bundle {
    /// Returns the decision that waits for a person, if there is one. A file that cannot be parsed proposes nothing.
    pub fn proposal(&self) -> Result<Option<SignoffProposal>, LoadError> {
        Ok(self.read(Artifact::Proposal)?.and_then(|bytes| SignoffProposal::parse(&bytes)))
    }

    /// Keeps a proposal for a person, in place of an earlier one.
    pub fn keep_proposal(&self, proposal: &SignoffProposal) -> Result<(), WriteError> {
        self.publish(Artifact::Proposal, &proposal.to_json())
    }
}

impl SignoffProposal {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let ProposalFile { action, note, date } = serde_json::from_slice(bytes).ok()?;
        let action = SignoffAction::ALL.into_iter().find(|known| known.as_str() == action)?;
        Some(Self { action, note, date })
    }

    fn to_json(&self) -> Vec<u8> {
        let (action, note, date) =
            (self.action.as_str().to_owned(), self.note.clone(), self.date.clone());
        let file = ProposalFile { action, note, date };
        let mut bytes = serde_json::to_vec_pretty(&file).expect("because every key is a string");
        bytes.push(b'\n');
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposal_is_read_as_written_and_anything_else_proposes_nothing() {
        for action in SignoffAction::ALL {
            let note = Some("a \"quoted\" reason".to_owned());
            let proposal = SignoffProposal { action, note, date: "2026-11-18".to_owned() };
            assert_eq!(SignoffProposal::parse(&proposal.to_json()), Some(proposal));
        }
        for text in ["", "accept", "{}", r#"{"action": "merge"}"#] {
            assert_eq!(SignoffProposal::parse(text.as_bytes()), None, "{text}");
        }
    }
}
