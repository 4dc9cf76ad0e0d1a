//! Who has to act on a bundle next: the groups of every list.

use pdca_state::State;

use crate::snapshot::{DependencyStatus, SnapshotEntry, WorkspaceSnapshot};

/// A group of bundles, in the order in which groups are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StatusGroup {
    /// A person has to decide, write or mend something.
    NeedsYou,
    /// A process works on it.
    Running,
    /// It goes on by itself: with the next run, after others, or with the next integration.
    Waiting,
    /// Nothing is left to do.
    Done,
}

impl StatusGroup {
    pub const ALL: [StatusGroup; 4] =
        [StatusGroup::NeedsYou, StatusGroup::Running, StatusGroup::Waiting, StatusGroup::Done];

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            StatusGroup::NeedsYou => "needs you",
            StatusGroup::Running => "running",
            StatusGroup::Waiting => "waiting",
            StatusGroup::Done => "done",
        }
    }
}

impl WorkspaceSnapshot {
    /// Returns the group of a bundle. Runs and accepted changes count only if loaded with [`Self::load_at_work`].
    pub fn group(&self, entry: &SnapshotEntry) -> StatusGroup {
        let id = &entry.id;
        if self.work.on(id).is_some() {
            return StatusGroup::Running;
        }
        if self.blocked.contains_key(id) || entry.failed.is_some() {
            return StatusGroup::NeedsYou;
        }
        match entry.state() {
            None | Some(State::AwaitingSignoff | State::Unplanned) => StatusGroup::NeedsYou,
            Some(State::Planned | State::Built | State::Checked | State::Iterate(_)) => {
                let is_in_vain = entry.blocked_by.iter().any(|by| match by.standing {
                    DependencyStatus::Missing
                    | DependencyStatus::Unreadable
                    | DependencyStatus::In(State::Discontinued | State::Resolved) => true,
                    DependencyStatus::In(_) => false,
                });
                if is_in_vain { StatusGroup::NeedsYou } else { StatusGroup::Waiting }
            }
            Some(State::Complete) => match self.landing.mark(id).map(|mark| mark.word) {
                None | Some("landed") => StatusGroup::Done,
                Some("sealed") => StatusGroup::Waiting,
                // Staged changes wait for a merge, and held ones for a decision.
                Some(_) => StatusGroup::NeedsYou,
            },
            Some(State::Resolved | State::Discontinued) => StatusGroup::Done,
        }
    }
}
