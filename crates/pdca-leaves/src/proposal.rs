//! What a sign-off leaf proposes. It grants, so it is read strictly.

use pdca_state::SignoffAction;
use serde::Deserialize;
use thiserror::Error;

/// The decision a person reached with the sign-off leaf, not yet recorded.
///
/// Who decided and when are facts of the session, not of this file; whether the decision can be
/// recorded is for [`pdca_state::record`] to say.
///
/// ```
/// use pdca_leaves::Proposal;
/// use pdca_state::SignoffAction;
///
/// let proposal = Proposal::parse(br#"{"action": "iterate-do", "note": "test the empty list"}"#)?;
/// assert_eq!(proposal.action, SignoffAction::IterateDo);
/// assert!(Proposal::parse(b"I accept").is_err());
/// # Ok::<(), pdca_leaves::ProposalError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// What to record.
    pub action: SignoffAction,
    /// The person's reason, literally.
    pub note: Option<String>,
}

/// Why a file proposes nothing.
#[derive(Debug, Error)]
pub enum ProposalError {
    /// It is not what the format asks for.
    #[error("not a proposal")]
    Malformed(#[from] serde_json::Error),
    /// It asks for something that nobody can decide.
    #[error("`{0}` is no decision")]
    UnknownAction(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    action: String,
    #[serde(default)]
    note: Option<String>,
}

impl Proposal {
    /// Reads the file that the leaf left.
    pub fn parse(bytes: &[u8]) -> Result<Self, ProposalError> {
        let File { action, note } = serde_json::from_slice(bytes)?;
        let known = SignoffAction::ALL.into_iter().find(|known| known.as_str() == action);
        let action = known.ok_or(ProposalError::UnknownAction(action))?;
        Ok(Self { action, note })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_exactly_a_proposal_proposes_nothing() {
        for text in [
            "",
            "accept",
            "{}",
            r#"{"action": "Accept"}"#,
            r#"{"action": "accept", "by": "somebody"}"#,
            r#"{"action": "accept"} {"action": "accept"}"#,
            r#"{"action": "accept", "action": "discontinue"}"#,
            r#"[{"action": "accept"}]"#,
        ] {
            assert!(Proposal::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn every_decision_can_be_proposed() {
        for action in SignoffAction::ALL {
            let text = format!(r#"{{"action": "{action}"}}"#);
            assert_eq!(Proposal::parse(text.as_bytes()).unwrap().action, action);
        }
    }

    #[test]
    fn a_reason_is_kept_to_the_letter() {
        let proposal = Proposal::parse(br#"{"action": "accept", "note": "a\\1 $& {x}"}"#).unwrap();
        assert_eq!(proposal.note.as_deref(), Some(r"a\1 $& {x}"));
    }
}
