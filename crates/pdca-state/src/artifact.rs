//! The files of a bundle, by what they are.

/// One of the files a bundle may hold under a fixed name.
///
/// `check-advisory-<id>.md`, `*.error.log`, the shipped test and `iteration-v<N>/` have names
/// that vary, so they are not in here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Artifact {
    /// What Plan wants.
    Brief,
    /// What Do changed.
    Patch,
    /// What the builder thought; never shown to the reviewer.
    BuildNotes,
    /// Stands in for the patch where Plan concluded "no fix".
    CloseDisposition,
    /// The verdict of the gates.
    GatesJson,
    /// The verdict of the gates, for people.
    GatesMarkdown,
    /// The directory with one log per gate.
    GateLogs,
    /// What the reviewer says.
    Review,
    /// The result document; ends in the sign-off.
    Summary,
    /// What accept sealed.
    Seal,
    /// The message of the commit to publish.
    CommitMessage,
    /// The text of the pull request to open.
    PrDescription,
    /// The text of the comment for the tracker.
    TrackerComment,
    /// What a person is to try by hand.
    ManualVerification,
    /// What was published, and where.
    Publish,
    /// The tracker's thread; may say that the issue is resolved.
    Notes,
    /// The seed of the next brief after an iteration back to Plan.
    CarryForward,
    /// Written by instances that iterate without a person.
    AutoIterate,
    /// Written by instances that measure their loop.
    LoopTelemetry,
}

/// What the name of an adviser's review starts and ends with.
pub(crate) const ADVISORY: (&str, &str) = ("check-advisory-", ".md");
/// What the names of all that Check leaves start with, the result document aside.
pub(crate) const CHECK: &str = "check-";
/// What the name of a failed leaf's log ends with.
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
        Self::Review,
        Self::Summary,
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

    /// Its name in the bundle's directory.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Brief => "brief.md",
            Self::Patch => "patch.diff",
            Self::BuildNotes => "build-notes.md",
            Self::CloseDisposition => "close-disposition",
            Self::GatesJson => "check-gates.json",
            Self::GatesMarkdown => "check-gates.md",
            Self::GateLogs => "gate-logs",
            Self::Review => "check-review.md",
            Self::Summary => "SUMMARY.md",
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

    /// The artifact of this name.
    pub fn from_file_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|artifact| artifact.file_name() == name)
    }

    /// The largest size a reader takes, in bytes.
    pub fn max_len(self) -> u64 {
        if self == Self::Brief { 1 << 20 } else { 16 << 20 }
    }

    /// Whether it belongs to one attempt, and so is archived when the attempt is.
    pub fn is_of_attempt(self) -> bool {
        match self {
            Self::Patch
            | Self::BuildNotes
            | Self::CloseDisposition
            | Self::GatesJson
            | Self::GatesMarkdown
            | Self::GateLogs
            | Self::Review
            | Self::Summary
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

    /// Whether its presence shows that a cycle ran. A brief alone does not: it may be a template.
    pub(crate) fn shows_a_cycle(self) -> bool {
        self.is_of_attempt()
            || matches!(
                self,
                Self::Publish | Self::CarryForward | Self::AutoIterate | Self::LoopTelemetry
            )
    }
}

/// A set of artifacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Artifacts(u32);

impl Artifacts {
    /// Whether it is in the set.
    pub fn contains(self, artifact: Artifact) -> bool {
        self.0 & bit(artifact) != 0
    }

    /// Puts one in.
    pub fn insert(&mut self, artifact: Artifact) {
        self.0 |= bit(artifact);
    }

    /// Takes one out.
    pub fn remove(&mut self, artifact: Artifact) {
        self.0 &= !bit(artifact);
    }

    /// Those in the set, in the order of the cycle.
    pub fn iter(self) -> impl Iterator<Item = Artifact> {
        Artifact::ALL.iter().copied().filter(move |artifact| self.contains(*artifact))
    }

    /// Whether there is none.
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
