//! The codes of warnings.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of a warning or notice, for programs; people read its text. A code is added, never renamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WarningCode {
    /// The branch is behind its remote, has diverged from it, or the remote does not answer.
    BaseBehind,
    /// The change has configuration of agents, which the reviewer does not load.
    AgentConfig,
    /// An agent said what kept it from its work.
    AgentDiagnosed,
    /// The patch of the attempt before does not apply to the new base.
    AttemptNotUsed,
    /// A branch could not be gated by itself.
    BaseNotGated,
    /// A branch is red by itself.
    BaseRed,
    /// A change is accepted although its brief was edited after Check.
    BriefEdited,
    /// A variant builds in place of the usual builder.
    BuilderVariant,
    /// A file of the bundle was written by another process, and does not count.
    BundleWritten,
    /// Something outside its checkout changed while a leaf ran.
    ChangedMeanwhile,
    /// The user's checkout changed while a child ran.
    CheckoutChanged,
    /// A checkout was no repository any more, and was kept aside.
    CheckoutReplaced,
    /// The commits of an attempt became one.
    CommitsSquashed,
    /// A key of the configuration is not known, and `--compat` lets it pass.
    ConfigIgnored,
    /// A bundle was sent back with other declarations than the plan has.
    DeclarationsChanged,
    /// Bundles depend on one that was given up.
    DependencyGivenUp,
    /// An external dependency that the brief declares is not there.
    DependencyUnmet,
    /// The events of a run are not stored any more.
    EventsNotStored,
    /// The system gives fewer lanes than were asked for.
    FewerLanes,
    /// A file that does not count was renamed.
    FileSetAside,
    /// Commits go out that are not of the change.
    ForeignCommits,
    /// A row is red and known to be flaky, or in quarantine.
    FlakyRow,
    /// Files changed in a lane while no driver used it; they are kept.
    LaneChanged,
    /// The same merge gives another commit than before.
    MergeDiffers,
    /// An adviser gave no advice.
    NoAdvice,
    /// No gate is configured, or none applies.
    NoGate,
    /// The program of the resolver is not found, and conflicts stay open.
    NoResolver,
    /// There is no review.
    NoReview,
    /// There is too little room on the disk.
    NoRoom,
    /// No target is configured.
    NoTarget,
    /// The command of `[notify]` failed.
    NotNotified,
    /// Something that is only kept for later could not be stored.
    NotStored,
    /// Lanes wait for the person who signs off.
    Paced,
    /// The builder left the patch of the attempt before as it was.
    PatchUnchanged,
    /// Build products are left out of the change, or stay in it.
    ProductsLeftOut,
    /// A program that runs unattended is another one than in the run before.
    ProgramChanged,
    /// A record that only informs cannot be read, and counts as empty.
    RecordUnreadable,
    /// A row is red and does not block.
    RedAdvisory,
    /// A remote failed and is asked again.
    RemoteRetried,
    /// The resolution of a conflict is not used.
    ResolutionNotUsed,
    /// A host gave no sign of life; its bundles go elsewhere.
    HostLost,
    /// Another bundle in flight writes the same path.
    RivalMet,
    /// Enough disk space is free again.
    RoomAgain,
    /// A red row runs again, or its fix does.
    RowAgain,
    /// A row failed because it may not write a path outside of its places.
    RowDenied,
    /// The fix of a row is part of the patch.
    RowFixed,
    /// A row is not run here.
    RowSkipped,
    /// An agent's session could not be gone on in; a new one begins.
    SessionNotResumed,
    /// An agent goes on in the session of an earlier attempt.
    SessionResumed,
    /// A change that was taken back is on the staging branch until the next integration.
    StillStaged,
    /// A leaf was not confined by the kernel.
    Unconfined,
    /// An accepted change has no seal and cannot be integrated.
    Unsealed,
    /// Written by a version that has no codes, or by a newer one.
    #[default]
    #[serde(other)]
    Other,
}

impl fmt::Display for WarningCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The name in the stream, so that the two cannot differ.
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::WarningCode;

    #[test]
    fn a_code_is_shown_under_the_name_that_it_has_in_the_stream() {
        for code in [WarningCode::NoGate, WarningCode::ConfigIgnored, WarningCode::Other] {
            let name = serde_json::to_value(code).unwrap();
            assert_eq!(Some(code.to_string().as_str()), name.as_str());
        }
    }
}
