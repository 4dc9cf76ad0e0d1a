//! Changes that did not land, and the reasons.
//!
//! `held.json` remembers the last integration for `status`. It decides nothing: the next integration finds
//! everything out again. An entry counts only while its change has the same seal.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use pdca_state::BundleId;
use serde::{Deserialize, Serialize};

use crate::Conflict;
use pdca_journal::events::IntegrationStep;

use super::IntegrateError;
use super::evidence::{RedRow, failing};
use super::records;
use super::workspace::QueueWorkspace;

const HELD: &str = "held.json";

/// The number of failed tests that a sentence names.
const SHOWN_TESTS: usize = 3;

/// A change that did not land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldChange {
    pub id: BundleId,
    pub reason: HeldReason,
    /// The changes that it breaks or conflicts with, or the one that it waits for.
    pub partners: Vec<BundleId>,
    /// The changes that could not be left out of the red combination and are not to blame.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<BundleId>,
    /// The files for which they could not be left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<String>,
    #[serde(default)]
    pub rows: Vec<String>,
    /// One line of explanation for each red row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<Utf8PathBuf>,
    /// The red rows with their evidence: failed tests, log, and a command that reproduces the failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub red: Vec<RedRow>,
    #[serde(default)]
    pub conflicts: Vec<Conflict>,
    /// Further information, depending on the reason: a commit, or how the change differs from its seal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The sealed commit that this entry is about.
    pub head: Option<String>,
}

/// The reasons why a change did not land.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HeldReason {
    Red,
    /// With it the gates come to no verdict.
    Undecidable,
    /// It conflicts with the branch or with other changes.
    Conflict,
    /// It depends on a change that has not landed.
    Needs,
    /// The bundle differs from its seal.
    Drift,
    Unsealed,
    /// Its effect is in the branch already.
    Present,
    Reverted,
    /// A dependency was accepted with another result than the one it was built on.
    Stale,
}

impl HeldReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Undecidable => "undecidable",
            Self::Conflict => "conflict",
            Self::Needs => "needs",
            Self::Drift => "drift",
            Self::Unsealed => "unsealed",
            Self::Present => "present",
            Self::Reverted => "reverted",
            Self::Stale => "stale",
        }
    }
}

impl HeldChange {
    /// Returns an entry with nothing but the reason.
    pub fn blank(id: &BundleId, reason: HeldReason) -> Self {
        Self {
            id: id.clone(),
            reason,
            partners: Vec::new(),
            context: Vec::new(),
            shared: Vec::new(),
            rows: Vec::new(),
            evidence: Vec::new(),
            logs: Vec::new(),
            red: Vec::new(),
            conflicts: Vec::new(),
            detail: None,
            head: None,
        }
    }

    /// Returns the event for this entry.
    pub(super) fn fact(&self) -> IntegrationStep {
        IntegrationStep::Held {
            bundle: self.id.clone(),
            reason: self.reason.as_str().to_owned(),
            partners: self.partners.clone(),
            context: self.context.clone(),
            rows: self.rows.clone(),
            failing: self.red.iter().flat_map(|row| row.failing.clone()).collect(),
            paths: self.conflicts.iter().map(|conflict| conflict.path.to_string()).collect(),
        }
    }

    /// Returns a clause about the changes that could not be left out, or nothing.
    fn context_clause(&self) -> String {
        if self.context.is_empty() {
            return String::new();
        }
        let (context, share) =
            (list(&self.context), if self.context.len() == 1 { "shares" } else { "share" });
        let why = match &self.shared[..] {
            [] => String::new(),
            [first, rest @ ..] => {
                let more = if rest.is_empty() {
                    String::new()
                } else {
                    format!(" and {} more", rest.len())
                };
                let they = if self.context.len() == 1 { "it" } else { "they" };
                format!(": {they} {share} {first}{more}")
            }
        };
        format!(" ({context} could not be left out{why})")
    }

    /// Describes the entry in one sentence.
    pub fn sentence(&self) -> String {
        let id = &self.id;
        let partners = list(&self.partners);
        let rows = if self.rows.is_empty() { "the gates".to_owned() } else { self.rows.join(", ") };
        match self.reason {
            HeldReason::Red => {
                let how = if self.partners.is_empty() {
                    "by itself".to_owned()
                } else {
                    let only = if self.context.is_empty() { "only " } else { "" };
                    format!("{only}together with {partners}")
                };
                let context = self.context_clause();
                let failing = failing(&self.red, SHOWN_TESTS);
                let failing = failing.map_or_else(String::new, |tests| format!(": {tests}"));
                format!("{id} breaks {rows} {how}{context}{failing}")
            }
            HeldReason::Undecidable if self.partners.is_empty() => {
                format!("with {id} there is no verdict from {rows}{}", self.context_clause())
            }
            HeldReason::Undecidable => {
                let context = self.context_clause();
                format!(
                    "with {id} and {partners} together there is no verdict from {rows}{context}"
                )
            }
            HeldReason::Conflict if self.conflicts.is_empty() => {
                format!("{id} does not merge with what is left of the others")
            }
            HeldReason::Conflict => {
                let files: Vec<String> = self.conflicts.iter().map(place).collect();
                let with = match &self.detail {
                    _ if !self.partners.is_empty() => partners,
                    Some(commit) => format!("the branch ({commit})"),
                    None => "the branch".to_owned(),
                };
                format!("{id} conflicts with {with} in {}", files.join(", "))
            }
            HeldReason::Needs => format!("{id} needs {partners}, which has not landed"),
            HeldReason::Drift => {
                format!("{id} is not as it was sealed: {}", self.detail.as_deref().unwrap_or("?"))
            }
            HeldReason::Unsealed => format!("{id} was accepted without a seal"),
            HeldReason::Reverted => {
                format!("{id} was reverted by {}", self.detail.as_deref().unwrap_or("?"))
            }
            HeldReason::Stale => {
                format!("{id} is stale: it was built on another result of {partners}")
            }
            HeldReason::Present if self.partners.is_empty() => {
                format!("what {id} does is there already")
            }
            HeldReason::Present => format!("what {id} does is there already, by {partners}"),
        }
    }
}

/// Returns the path of a conflict, with its first line if it has one.
pub fn place(conflict: &Conflict) -> String {
    match conflict.hunks.first() {
        Some(hunk) => format!("{}:{}", conflict.path, hunk.line),
        None => format!("{} ({})", conflict.path, conflict.kind.trim_start_matches("CONFLICT ")),
    }
}

fn list(ids: &[BundleId]) -> String {
    match ids {
        [] => String::new(),
        [only] => only.to_string(),
        [rest @ .., last] => {
            let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
            format!("{} and {last}", rest.join(", "))
        }
    }
}

/// The entries of the last integrations, by bundle.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HeldBack(BTreeMap<BundleId, HeldChange>);

impl HeldBack {
    /// Loads the entries. They only inform, so an unreadable file counts as empty.
    pub fn load(workspace: &QueueWorkspace) -> Self {
        records::load(workspace, HELD)
    }

    pub(crate) fn store(&self, workspace: &QueueWorkspace) -> Result<(), IntegrateError> {
        records::store(workspace, HELD, self)
    }

    /// Returns the entry of a bundle if it is about this sealed head.
    pub fn of(&self, id: &BundleId, head: Option<&str>) -> Option<&HeldChange> {
        self.0.get(id).filter(|held| held.head.as_deref() == head)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &HeldChange> {
        self.0.values()
    }

    /// Replaces the entries of the bundles `about` by `held`.
    pub(crate) fn renew<'a>(
        &mut self,
        about: impl IntoIterator<Item = &'a BundleId>,
        held: &[HeldChange],
    ) {
        for id in about {
            self.0.remove(id);
        }
        self.0.extend(held.iter().map(|held| (held.id.clone(), held.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(id: &str, head: &str) -> HeldChange {
        HeldChange {
            head: Some(head.to_owned()),
            ..HeldChange::blank(&id.parse().unwrap(), HeldReason::Red)
        }
    }

    #[test]
    fn an_entry_is_about_one_seal_and_not_about_the_next() {
        let mut known = HeldBack::default();
        known.renew([], &[held("7", "first")]);
        let id = "7".parse().unwrap();
        assert!(known.of(&id, Some("first")).is_some());
        assert!(known.of(&id, Some("second")).is_none());
        assert!(known.of(&id, None).is_none());
    }

    #[test]
    fn an_integration_replaces_only_the_entries_of_the_changes_that_it_was_about() {
        let mut known = HeldBack::default();
        known.renew([], &[held("7", "a"), held("8", "b"), held("9", "c")]);
        let about: Vec<BundleId> = ["7", "8"].iter().map(|id| id.parse().unwrap()).collect();
        known.renew(&about, &[held("8", "d")]);
        let left: Vec<(&str, &str)> = known
            .all()
            .map(|held| (held.id.as_str(), held.head.as_deref().unwrap_or_default()))
            .collect();
        assert_eq!(left, [("8", "d"), ("9", "c")]);
    }

    #[test]
    fn the_guilty_and_those_that_could_not_be_left_out_are_named_apart() {
        let ids = |text: &str| text.split(' ').map(|id| id.parse().unwrap()).collect::<Vec<_>>();
        let mut held = HeldChange {
            partners: ids("9001"),
            context: ids("3681 3728"),
            shared: vec!["CHANGES.md".to_owned()],
            rows: vec!["T3".to_owned()],
            ..HeldChange::blank(&"7".parse().unwrap(), HeldReason::Red)
        };
        assert_eq!(
            held.sentence(),
            "7 breaks T3 together with 9001 (3681 and 3728 could not be left out: they share CHANGES.md)"
        );
        (held.partners, held.context) = (Vec::new(), ids("5"));
        held.shared.push("src/x".to_owned());
        assert_eq!(
            held.sentence(),
            "7 breaks T3 by itself (5 could not be left out: it shares CHANGES.md and 1 more)"
        );
    }

    #[test]
    fn each_reason_has_a_sentence_that_names_the_change_and_its_partners() {
        let partner: BundleId = "8".parse().unwrap();
        let sentence = |reason, with_partner: bool| {
            let partners = if with_partner { vec![partner.clone()] } else { Vec::new() };
            let detail = Some("abc".to_owned());
            let id = "7".parse().unwrap();
            HeldChange { partners, detail, ..HeldChange::blank(&id, reason) }.sentence()
        };
        let table = [
            (HeldReason::Red, false, "7 breaks the gates by itself"),
            (HeldReason::Red, true, "7 breaks the gates only together with 8"),
            (HeldReason::Undecidable, false, "with 7 there is no verdict from the gates"),
            (
                HeldReason::Undecidable,
                true,
                "with 7 and 8 together there is no verdict from the gates",
            ),
            (HeldReason::Conflict, false, "7 does not merge with what is left of the others"),
            (HeldReason::Needs, true, "7 needs 8, which has not landed"),
            (HeldReason::Drift, false, "7 is not as it was sealed: abc"),
            (HeldReason::Unsealed, false, "7 was accepted without a seal"),
            (HeldReason::Present, false, "what 7 does is there already"),
            (HeldReason::Present, true, "what 7 does is there already, by 8"),
            (HeldReason::Reverted, false, "7 was reverted by abc"),
            (HeldReason::Stale, true, "7 is stale: it was built on another result of 8"),
        ];
        for (reason, with_partner, expected) in table {
            assert_eq!(sentence(reason, with_partner), expected);
        }
    }
}
