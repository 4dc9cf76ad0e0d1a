//! The files of a bundle that have a fixed name.

use camino::{Utf8Path, Utf8PathBuf};

/// A file or directory of a bundle with a fixed name.
///
/// `check-advisory-<id>.md`, `*.error.log`, the shipped test and `iteration-v<N>/` are not
/// artifacts in this sense: their names vary, and functions of this type make them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Artifact {
    /// `brief.md`: the plan of the issue.
    Brief,
    /// `patch.diff`: the change that Do made.
    Patch,
    /// `build-notes.md`: the builder's notes; never shown to the reviewer.
    BuildNotes,
    /// `close-disposition`: takes the place of the patch where Plan decided to change nothing.
    CloseDisposition,
    /// `check-gates.json`: the gate report.
    GatesJson,
    /// `check-gates.md`: the gate report as a table for people.
    GatesMarkdown,
    /// `gate-logs/`: one log per gate.
    GateLogs,
    /// `logs/`: the transcripts of leaf calls and the record of what they cost; no leaf reads it.
    Logs,
    /// `check-review.md`: the reviewer's advice.
    Review,
    /// `SUMMARY.md`: the result document; §9 of it is the sign-off.
    Summary,
    /// `signoff-proposal.json`: a decision that the sign-off leaf proposes and nobody has made.
    Proposal,
    /// `seal.json`: the record of what was accepted.
    Seal,
    /// The message of the commit to publish.
    CommitMessage,
    /// The text of the pull request to open.
    PrDescription,
    /// The text of the comment for the tracker.
    TrackerComment,
    /// Steps for a person to try by hand.
    ManualVerification,
    /// `publish.json`: the record of what was published, and where.
    Publish,
    /// `notes.json`: the tracker's thread, which may say that the issue is resolved.
    Notes,
    /// The seed of the next brief after an iteration back to Plan.
    CarryForward,
    /// Written by other tools that iterate without a person; only its presence matters here.
    AutoIterate,
    /// Written by other tools that measure their loop; only its presence matters here.
    LoopTelemetry,
}

/// Prefix and suffix of the file name of an adviser's review.
pub(crate) const ADVISORY: (&str, &str) = ("check-advisory-", ".md");
/// Prefix and suffix of the file name of an adviser's review of the brief.
pub(crate) const PLAN_ADVISORY: (&str, &str) = ("plan-advisory-", ".md");
/// Prefix of everything that Check writes except the result document.
pub(crate) const CHECK: &str = "check-";
/// Suffix of a failed leaf's log.
pub(crate) const ERROR_LOG: &str = ".error.log";

impl Artifact {
    /// Every artifact, in the order of the cycle.
    pub const ALL: &[Artifact] = &[
        Self::Brief,
        Self::Patch,
        Self::BuildNotes,
        Self::CloseDisposition,
        Self::GatesJson,
        Self::GatesMarkdown,
        Self::GateLogs,
        Self::Logs,
        Self::Review,
        Self::Summary,
        Self::Proposal,
        Self::Seal,
        Self::CommitMessage,
        Self::PrDescription,
        Self::TrackerComment,
        Self::ManualVerification,
        Self::Publish,
        Self::Notes,
        Self::CarryForward,
        Self::AutoIterate,
        Self::LoopTelemetry,
    ];

    /// The name in the bundle's directory.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Brief => "brief.md",
            Self::Patch => "patch.diff",
            Self::BuildNotes => "build-notes.md",
            Self::CloseDisposition => "close-disposition",
            Self::GatesJson => "check-gates.json",
            Self::GatesMarkdown => "check-gates.md",
            Self::GateLogs => "gate-logs",
            Self::Logs => "logs",
            Self::Review => "check-review.md",
            Self::Summary => "SUMMARY.md",
            Self::Proposal => "signoff-proposal.json",
            Self::Seal => "seal.json",
            Self::CommitMessage => "commit-msg.txt",
            Self::PrDescription => "pr-description.md",
            Self::TrackerComment => "tracker-comment.md",
            Self::ManualVerification => "MANUAL-VERIFICATION.md",
            Self::Publish => "publish.json",
            Self::Notes => "notes.json",
            Self::CarryForward => "carry-forward.md",
            Self::AutoIterate => "auto-iterate.json",
            Self::LoopTelemetry => "loop-telemetry.json",
        }
    }

    /// The inverse of [`Artifact::file_name`].
    pub fn from_file_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|artifact| artifact.file_name() == name)
    }

    /// Returns true if the artifact is a directory.
    pub(crate) fn is_directory(self) -> bool {
        matches!(self, Self::GateLogs | Self::Logs)
    }

    /// The size limit in bytes; readers refuse anything larger.
    pub fn max_len(self) -> u64 {
        if self == Self::Brief { 1 << 20 } else { 16 << 20 }
    }

    /// The path of a gate's log, relative to the bundle, as [`GateRow::log`](crate::GateRow::log) has it.
    pub fn gate_log(rule_id: &str) -> Utf8PathBuf {
        Utf8Path::new(Self::GateLogs.file_name()).join(format!("{}.log", tame(rule_id)))
    }

    /// The path, relative to the bundle, of the log of a row that failed when the bundle was gated
    /// together with others.
    pub fn integration_log(rule_id: &str) -> Utf8PathBuf {
        Self::integration_logs().join(format!("{}.log", tame(rule_id)))
    }

    /// Cannot collide with a [`Artifact::gate_log`]: those end in `.log`.
    pub(crate) fn integration_logs() -> Utf8PathBuf {
        Utf8Path::new(Self::GateLogs.file_name()).join("integration")
    }

    /// The path of an adviser's review, relative to the bundle.
    pub fn advisory(adviser: &str) -> Utf8PathBuf {
        format!("{}{}{}", ADVISORY.0, tame(adviser), ADVISORY.1).into()
    }

    /// The path of an adviser's review of the brief, relative to the bundle.
    pub fn plan_advisory(adviser: &str) -> Utf8PathBuf {
        format!("{}{}{}", PLAN_ADVISORY.0, tame(adviser), PLAN_ADVISORY.1).into()
    }

    /// The path of the log of a failed leaf, relative to the bundle.
    pub fn error_log(leaf: &str) -> Utf8PathBuf {
        format!("{}{ERROR_LOG}", tame(leaf)).into()
    }

    /// Returns true if the artifact belongs to one attempt and is archived with it.
    pub fn is_of_attempt(self) -> bool {
        match self {
            Self::Patch
            | Self::BuildNotes
            | Self::CloseDisposition
            | Self::GatesJson
            | Self::GatesMarkdown
            | Self::GateLogs
            | Self::Logs
            | Self::Review
            | Self::Summary
            | Self::Proposal
            | Self::Seal
            | Self::CommitMessage
            | Self::PrDescription
            | Self::TrackerComment
            | Self::ManualVerification => true,
            Self::Brief
            | Self::Publish
            | Self::Notes
            | Self::CarryForward
            | Self::AutoIterate
            | Self::LoopTelemetry => false,
        }
    }

    /// Returns true if the artifact proves that a cycle ran. A brief does not: it may be a template.
    pub(crate) fn shows_a_cycle(self) -> bool {
        // A planner's call leaves logs before there is a plan.
        (self.is_of_attempt() && self != Self::Logs)
            || matches!(
                self,
                Self::Publish | Self::CarryForward | Self::AutoIterate | Self::LoopTelemetry
            )
    }
}

/// A set of [`Artifact`]s, stored as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Artifacts(u32);

impl Artifacts {
    /// Returns true if the set contains `artifact`.
    pub fn contains(self, artifact: Artifact) -> bool {
        self.0 & bit(artifact) != 0
    }

    /// Adds an artifact to the set.
    pub fn insert(&mut self, artifact: Artifact) {
        self.0 |= bit(artifact);
    }

    /// Removes an artifact from the set.
    pub fn remove(&mut self, artifact: Artifact) {
        self.0 &= !bit(artifact);
    }

    /// Iterates over the set in the order of [`Artifact::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Artifact> {
        Artifact::ALL.iter().copied().filter(move |artifact| self.contains(*artifact))
    }

    /// Returns true if the set has no elements.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Artifact> for Artifacts {
    fn from_iter<I: IntoIterator<Item = Artifact>>(iter: I) -> Self {
        iter.into_iter().fold(Self::default(), |mut set, artifact| {
            set.insert(artifact);
            set
        })
    }
}

fn bit(artifact: Artifact) -> u32 {
    1 << artifact as u32
}

/// Makes a file name component of a name that comes from configuration or from a model.
pub(crate) fn tame(name: &str) -> String {
    const LONGEST: usize = 100;
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let tamed: String =
        name.chars().take(LONGEST).map(|c| if legal(c) { c } else { '_' }).collect();
    // Not `.` or `..`, and not hidden from a listing.
    if tamed.is_empty() || tamed.starts_with('.') { format!("_{tamed}") } else { tamed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_artifact_is_listed_once_and_found_by_its_name() {
        for (place, artifact) in Artifact::ALL.iter().enumerate() {
            assert_eq!(*artifact as usize, place);
            assert_eq!(Artifact::from_file_name(artifact.file_name()), Some(*artifact));
        }
    }

    #[test]
    fn a_set_gives_back_what_was_put_in_and_nothing_else() {
        let mut set = Artifacts::from_iter([Artifact::Summary, Artifact::Brief]);
        set.insert(Artifact::LoopTelemetry);
        set.remove(Artifact::Summary);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Artifact::Brief, Artifact::LoopTelemetry]);
    }
}
