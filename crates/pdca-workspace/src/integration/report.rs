//! The results of integrations and of resolved conflicts.

use camino::Utf8PathBuf;
use pdca_driver::WorkspaceConfig;
use pdca_driver::integrate::{
    ChangeState, ConflictOutcome, ConflictReport, DryRun, Due, Integrated, MOST_ATTEMPTS,
    QueueSettings, TargetBranch,
};
use pdca_integrate::ObjectId;
use pdca_state::{BundleId, State};
use serde::{Serialize, Serializer};

use crate::snapshot::{after_held, merge_command};

/// The results of all branches.
#[derive(Debug)]
pub struct Integration {
    pub settings: QueueSettings,
    pub dry_run: bool,
    pub branches: Vec<BranchIntegration>,
    /// The conflicts that a resolver was asked about.
    pub resolved: Vec<ResolvedConflict>,
    /// The held changes that were sent back to Do automatically.
    pub returned: Vec<ReturnedChange>,
    /// Changes were left out because their branch is unknown or they cannot be sealed.
    pub has_left_out: bool,
    /// The number of accepted changes of the branches.
    pub changes: usize,
}

/// The result of one branch.
#[derive(Debug)]
pub struct BranchIntegration {
    pub target: String,
    pub branch: String,
    pub outcome: BranchOutcome,
}

#[derive(Debug)]
pub enum BranchOutcome {
    Done {
        done: Box<Integrated>,
        /// The command that merges the staging branch, where there is one.
        merge: Option<String>,
        /// For each held change, the command that goes on with it.
        next: Vec<String>,
    },
    DryRun(DryRun),
    /// Everything waits in a staging branch already.
    Waits {
        tip: ObjectId,
        /// Each with its staging branch.
        staged: Vec<(BundleId, String)>,
        /// The tip of the staging branch.
        staged_at: Option<ObjectId>,
        merge: Option<String>,
    },
    /// The reason why its integration did not complete.
    Failed(String),
}

/// A culprit that an integration sent back.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReturnedChange {
    pub id: BundleId,
    /// The name of the archived attempt.
    pub archived: String,
    /// The next command.
    pub next: String,
}

/// The outcome of one conflict.
#[derive(Debug)]
pub struct ResolvedConflict {
    pub report: ConflictReport,
    /// The state of the bundle after Check, if it got that far.
    pub state: Option<State>,
}

/// The outcomes of all conflicts.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResolveReport {
    pub dry_run: bool,
    pub conflicts: Vec<ResolvedConflict>,
}

/// The kind of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConflictKind {
    Due,
    Resolved,
    Skipped,
    Failed,
    /// All attempts were used.
    BlockedConflict,
    Later,
    Nothing,
    Waits,
    Busy,
}

impl Integration {
    pub(super) fn new(settings: &QueueSettings, dry_run: bool) -> Self {
        Self {
            settings: settings.clone(),
            dry_run,
            branches: Vec::new(),
            resolved: Vec::new(),
            returned: Vec::new(),
            has_left_out: false,
            changes: 0,
        }
    }

    /// Iterates over the branches whose integration came to its end.
    pub fn integrated(&self) -> impl Iterator<Item = &Integrated> {
        self.branches.iter().filter_map(BranchIntegration::integrated)
    }

    /// Returns whether the attempts at a bundle's conflict are used up.
    pub(super) fn is_blocked(&self, id: &BundleId) -> bool {
        let is_it = |item: &ResolvedConflict| {
            item.report.id == *id && item.kind() == ConflictKind::BlockedConflict
        };
        self.resolved.iter().any(is_it)
    }

    /// Returns whether the conflict of a bundle is settled.
    pub fn has_settled(&self, id: &BundleId) -> bool {
        let is_it = |item: &ResolvedConflict| {
            item.report.id == *id
                && matches!(item.kind(), ConflictKind::Resolved | ConflictKind::Skipped)
        };
        self.resolved.iter().any(is_it)
    }

    /// Changes the commands that come next, for a caller that is typed to with options of its own.
    pub fn map_commands(&mut self, typed: impl Fn(&str) -> String) {
        for branch in &mut self.branches {
            if let BranchOutcome::Done { next, .. } = &mut branch.outcome {
                for next in next.iter_mut() {
                    *next = typed(next);
                }
            }
        }
        for one in &mut self.returned {
            one.next = typed(&one.next);
        }
    }
}

impl BranchIntegration {
    pub(super) fn new(branch: &TargetBranch, outcome: BranchOutcome) -> Self {
        Self { target: branch.target.name.clone(), branch: branch.branch.clone(), outcome }
    }

    pub(super) fn done(
        config: &WorkspaceConfig,
        settings: &QueueSettings,
        branch: &TargetBranch,
        done: Integrated,
    ) -> Self {
        let staging = done.references.first().filter(|_| settings.land.stages());
        let merge =
            staging.map(|name| merge_command(branch, name.trim_start_matches("refs/heads/")));
        let next = done.held.iter().map(|held| after_held(config, held)).collect();
        Self::new(branch, BranchOutcome::Done { done: Box::new(done), merge, next })
    }

    pub(super) fn waiting(branch: &TargetBranch) -> Self {
        let staged = branch.changes.iter().filter_map(|change| match &change.standing {
            ChangeState::Staged { branch, .. } => {
                Some((change.bundle.id().clone(), branch.clone()))
            }
            ChangeState::Unsealed
            | ChangeState::Sealed(_)
            | ChangeState::Landed { .. }
            | ChangeState::Reverted { .. }
            | ChangeState::Drifted { .. } => None,
        });
        let staged: Vec<_> = staged.collect();
        let merge = staged.first().map(|(_, staging)| merge_command(branch, staging));
        let (tip, staged_at) = (branch.tip, branch.staging.at);
        Self::new(branch, BranchOutcome::Waits { tip, staged, staged_at, merge })
    }

    /// Returns the result, where the integration came to its end.
    pub fn integrated(&self) -> Option<&Integrated> {
        match &self.outcome {
            BranchOutcome::Done { done, .. } => Some(done),
            BranchOutcome::DryRun(_) | BranchOutcome::Waits { .. } | BranchOutcome::Failed(_) => {
                None
            }
        }
    }
}

impl ConflictKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Resolved => "resolved",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::BlockedConflict => "blocked_conflict",
            Self::Later => "later",
            Self::Nothing => "nothing",
            Self::Waits => "waits",
            Self::Busy => "busy",
        }
    }
}

impl ResolvedConflict {
    pub fn kind(&self) -> ConflictKind {
        match self.report.came {
            ConflictOutcome::Due => ConflictKind::Due,
            ConflictOutcome::Resolved { .. } => ConflictKind::Resolved,
            ConflictOutcome::Skipped { .. } => ConflictKind::Skipped,
            ConflictOutcome::Failed { .. } => ConflictKind::Failed,
            ConflictOutcome::Blocked { .. } => ConflictKind::BlockedConflict,
            ConflictOutcome::Later { .. } => ConflictKind::Later,
            ConflictOutcome::Nothing { .. } => ConflictKind::Nothing,
            ConflictOutcome::Waits { .. } => ConflictKind::Waits,
            ConflictOutcome::Busy { .. } => ConflictKind::Busy,
        }
    }

    /// Describes the outcome in one sentence.
    pub fn sentence(&self) -> String {
        let ConflictReport { said, attempts, came, .. } = &self.report;
        let conflict = said.as_deref().unwrap_or("its conflict");
        let count = format!("attempt {attempts}/{MOST_ATTEMPTS}");
        match came {
            ConflictOutcome::Due => {
                format!("{conflict}; attempt {}/{MOST_ATTEMPTS} is due", attempts + 1)
            }
            ConflictOutcome::Resolved { by } => match self.state {
                Some(state) => format!("{conflict}: resolved by {by}, and now {state}"),
                None => format!("{conflict}: resolved by {by}, not checked yet"),
            },
            ConflictOutcome::Skipped { why }
            | ConflictOutcome::Nothing { why }
            | ConflictOutcome::Waits { why } => why.clone(),
            ConflictOutcome::Failed { what, due: Due::At(at), .. } => {
                format!("{conflict}; {count}: {what}; the next is due at {at}")
            }
            ConflictOutcome::Failed { what, .. } => format!("{conflict}; {count}: {what}"),
            ConflictOutcome::Blocked { evidence, new: true } => {
                format!("{evidence}; it is not tried any more")
            }
            ConflictOutcome::Blocked { evidence, new: false } => evidence.clone(),
            ConflictOutcome::Later { at } => {
                format!("{conflict}; attempts {attempts}/{MOST_ATTEMPTS}; the next is due at {at}")
            }
            ConflictOutcome::Busy { holder } => format!("{holder} is at it"),
        }
    }

    /// Returns the time of the next attempt, where there is one.
    fn due(&self) -> Option<&str> {
        match &self.report.came {
            ConflictOutcome::Later { at } | ConflictOutcome::Failed { due: Due::At(at), .. } => {
                Some(at)
            }
            ConflictOutcome::Due
            | ConflictOutcome::Resolved { .. }
            | ConflictOutcome::Skipped { .. }
            | ConflictOutcome::Failed { .. }
            | ConflictOutcome::Blocked { .. }
            | ConflictOutcome::Nothing { .. }
            | ConflictOutcome::Waits { .. }
            | ConflictOutcome::Busy { .. } => None,
        }
    }

    /// Returns the log of the last attempt, if that failed.
    pub fn log(&self) -> Option<&Utf8PathBuf> {
        match &self.report.came {
            ConflictOutcome::Failed { log, .. } => Some(log),
            ConflictOutcome::Due
            | ConflictOutcome::Resolved { .. }
            | ConflictOutcome::Skipped { .. }
            | ConflictOutcome::Blocked { .. }
            | ConflictOutcome::Later { .. }
            | ConflictOutcome::Nothing { .. }
            | ConflictOutcome::Waits { .. }
            | ConflictOutcome::Busy { .. } => None,
        }
    }
}

/// The JSON of a conflict, which has its outcome as facts and as a sentence.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ConflictFacts<'a> {
    id: &'a BundleId,
    outcome: ConflictKind,
    /// The number of attempts so far.
    attempts: u32,
    /// The most attempts.
    of: u32,
    /// The conflicting paths and bundles.
    conflict: Option<&'a str>,
    /// One sentence.
    text: String,
    /// The time of the next attempt.
    due: Option<&'a str>,
    /// The log of the last attempt.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    log: Option<&'a Utf8PathBuf>,
    /// The state of the bundle after Check.
    state: Option<&'static str>,
}

impl Serialize for ResolvedConflict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let facts = ConflictFacts {
            id: &self.report.id,
            outcome: self.kind(),
            attempts: self.report.attempts,
            of: MOST_ATTEMPTS,
            conflict: self.report.said.as_deref(),
            text: self.sentence(),
            due: self.due(),
            log: self.log(),
            state: self.state.map(State::as_str),
        };
        facts.serialize(serializer)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ResolvedConflict {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ResolvedConflict".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        ConflictFacts::<'static>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(came: ConflictOutcome) -> ResolvedConflict {
        let id = "2".parse().unwrap();
        let said = Some("2 conflicts with 1 in f:1".to_owned());
        ResolvedConflict { report: ConflictReport { id, said, attempts: 2, came }, state: None }
    }

    #[test]
    fn a_resolved_conflict_says_whether_it_was_checked() {
        let by = "the resolver".to_owned();
        let unchecked = item(ConflictOutcome::Resolved { by });
        assert!(unchecked.sentence().ends_with("resolved by the resolver, not checked yet"));
        let checked = ResolvedConflict { state: Some(State::AwaitingSignoff), ..unchecked };
        assert!(checked.sentence().ends_with("resolved by the resolver, and now AWAITING_SIGNOFF"));
        let json = serde_json::to_value(&checked).unwrap();
        assert_eq!(
            (&json["outcome"], &json["state"]),
            (&"resolved".into(), &"AWAITING_SIGNOFF".into())
        );
    }

    #[test]
    fn each_kind_is_the_same_word_in_json() {
        for kind in [
            ConflictKind::Due,
            ConflictKind::Resolved,
            ConflictKind::Skipped,
            ConflictKind::Failed,
            ConflictKind::BlockedConflict,
            ConflictKind::Later,
            ConflictKind::Nothing,
            ConflictKind::Waits,
            ConflictKind::Busy,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}
