//! Who has to act on a bundle next: the groups of every list.

use pdca_state::State;

use crate::{Entry, Standing, WorkspaceSnapshot};

/// A group of bundles, in the order in which groups are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// A person has to decide, write or mend something.
    NeedsYou,
    /// A process works on it.
    Running,
    /// It goes on by itself: with the next run, after others, or with the next integration.
    Waiting,
    /// Nothing is left to do.
    Done,
}

impl Group {
    pub const ALL: [Group; 4] = [Group::NeedsYou, Group::Running, Group::Waiting, Group::Done];

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::NeedsYou => "needs you",
            Group::Running => "running",
            Group::Waiting => "waiting",
            Group::Done => "done",
        }
    }
}

impl WorkspaceSnapshot {
    /// Returns the group of a bundle. Runs and accepted changes count only if loaded with [`Self::load_at_work`].
    pub fn group(&self, entry: &Entry) -> Group {
        let id = &entry.id;
        if self.work.on(id).is_some() {
            return Group::Running;
        }
        if self.blocked.contains_key(id) || entry.failed.is_some() {
            return Group::NeedsYou;
        }
        match entry.state() {
            None | Some(State::AwaitingSignoff | State::Unplanned) => Group::NeedsYou,
            Some(State::Planned | State::Built | State::Checked | State::Iterate(_)) => {
                let is_in_vain = entry.blocked_by.iter().any(|by| match by.standing {
                    Standing::Missing
                    | Standing::Unreadable
                    | Standing::In(State::Discontinued | State::Resolved) => true,
                    Standing::In(_) => false,
                });
                if is_in_vain { Group::NeedsYou } else { Group::Waiting }
            }
            Some(State::Complete) => match self.landing.mark(id).map(|mark| mark.word) {
                None | Some("landed") => Group::Done,
                Some("sealed") => Group::Waiting,
                // Staged changes wait for a merge, and held ones for a decision.
                Some(_) => Group::NeedsYou,
            },
            Some(State::Resolved | State::Discontinued) => Group::Done,
        }
    }
}
