//! `[signoff]` of `pdca.toml`.

use pdca_state::{SignoffAction, same_disposition};
use serde::{Deserialize, Serialize};

/// `[signoff]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignoffSettings {
    /// The decisions that the sign-off leaf may record without a person, each by outcome and disposition; none by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaf_may_record: Vec<LeafDecision>,
    /// What `accept` does besides: publish the change, and of its pull request `ready`, `comment`, `merge`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_accept: Vec<OnAccept>,
}

/// A decision that a leaf may record: exactly this outcome of bundles with exactly this disposition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeafDecision {
    pub outcome: LeafOutcomeWord,
    /// The disposition of the close record, else the brief's `Disposition hint`, else `fix`.
    pub disposition: String,
}

/// The word of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeafOutcomeWord {
    Accept,
    IterateDo,
    IteratePlan,
    Discontinue,
}

/// A step that follows an acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnAccept {
    /// The pull request is marked as ready for review.
    Ready,
    /// The comment is posted to the tracker.
    Comment,
    /// The pull request is merged, if its checks passed.
    Merge,
}

impl LeafOutcomeWord {
    fn action(self) -> SignoffAction {
        match self {
            Self::Accept => SignoffAction::Accept,
            Self::IterateDo => SignoffAction::IterateDo,
            Self::IteratePlan => SignoffAction::IteratePlan,
            Self::Discontinue => SignoffAction::Discontinue,
        }
    }
}

impl SignoffSettings {
    /// Returns whether a leaf may record this decision about a bundle with this disposition.
    pub fn may_record(&self, action: SignoffAction, disposition: &str) -> bool {
        self.leaf_may_record.iter().any(|rule| {
            rule.outcome.action() == action && same_disposition(&rule.disposition, disposition)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_may_record_exactly_what_is_named() {
        let text = r#"leaf_may_record = [{ outcome = "accept", disposition = "already-fixed" }]"#;
        let settings: SignoffSettings = toml::from_str(text).unwrap();
        let accept = SignoffAction::Accept;
        assert!(settings.may_record(accept, "Already fixed"));
        assert!(!settings.may_record(accept, "already-fixed by 41"));
        assert!(!settings.may_record(accept, "fix"));
        assert!(!settings.may_record(SignoffAction::Discontinue, "already-fixed"));
        assert!(!SignoffSettings::default().may_record(accept, "already-fixed"));
    }
}
