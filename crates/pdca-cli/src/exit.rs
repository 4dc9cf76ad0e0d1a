//! The exit codes of `pdca`.

use std::process::ExitCode;

/// The exit code of every `pdca` command.
///
/// Scripts may rely on these numbers. Commands that only read (`status`, `why`, `queue`, `config show`) end in
/// [`Exit::Done`] whenever they could print their answer, whatever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// The request was carried out.
    Done = 0,
    /// Something that should not happen did: a leaf failed for good, an I/O error, a defect.
    Unexpected = 1,
    /// The command line, a config file or a bundle file is invalid. Nothing was changed.
    Usage = 2,
    /// Everything possible is done; a person has to decide.
    Waiting = 3,
    NothingToDo = 4,
    /// A gating check failed.
    GateRed = 100,
    /// Changes that are green alone are red together.
    CombinationRed = 101,
    /// Two changes do not merge.
    MergeConflict = 102,
    /// A budget or a time cap ended the run.
    Capped = 103,
    /// Recovery found facts that contradict its record and touched nothing.
    RecoveryBlocked = 104,
    /// Stopped by a signal; `pdca run` goes on from here.
    Interrupted = 130,
}

impl Exit {
    /// Every code, in ascending order.
    pub const ALL: [Exit; 11] = [
        Exit::Done,
        Exit::Unexpected,
        Exit::Usage,
        Exit::Waiting,
        Exit::NothingToDo,
        Exit::GateRed,
        Exit::CombinationRed,
        Exit::MergeConflict,
        Exit::Capped,
        Exit::RecoveryBlocked,
        Exit::Interrupted,
    ];

    /// The number the process ends with.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the meaning, as in the help text.
    pub const fn meaning(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::Unexpected => {
                "unexpected: a leaf failed for good, an I/O error, or a defect in pdca"
            }
            Exit::Usage => {
                "usage or config: the command line, pdca.toml or a bundle file is wrong; nothing changed"
            }
            Exit::Waiting => "waiting for a person: a plan, a decision or a sign-off is due",
            Exit::NothingToDo => "nothing to do",
            Exit::GateRed => "a gating check failed",
            Exit::CombinationRed => "green alone, red together",
            Exit::MergeConflict => "merge conflict",
            Exit::Capped => "a budget or a time cap ended the run",
            Exit::RecoveryBlocked => {
                "recovery is blocked: facts contradict the record, nothing was touched"
            }
            Exit::Interrupted => "interrupted; the same command goes on from here",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_documented_ones() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 100, 101, 102, 103, 104, 130]);
    }
}
