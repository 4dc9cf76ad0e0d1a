//! What can be wrong with the rows of a config file.

use std::fmt;

use pdca_state::Element;

/// One thing wrong with `[gates]`, with what it takes to find the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The row's place in `[[gates.checks]]`, from 0; `None` for a key of `[gates]` itself.
    pub row: Option<usize>,
    /// The row's id, which may be what is wrong.
    pub id: String,
    /// The key.
    pub key: &'static str,
    /// What is wrong with its value.
    pub fault: ConfigFault,
}

/// What is wrong with the value of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigFault {
    /// Nothing is there, or nothing that does anything.
    #[error("is empty")]
    Empty,
    /// Another row has it; ids that differ only in case count as the same.
    #[error("already the id of gates.checks[{first}]")]
    DuplicateId {
        /// The place of the other row.
        first: usize,
    },
    /// The driver itself writes a row of this name.
    #[error("is the id of a row that pdca writes itself")]
    Reserved,
    /// It names a log, so it is letters, digits, `.`, `_`, `+` and `-`, and not too long.
    #[error("cannot be a file name")]
    NotAFileName,
    /// A row of an unknown tier would have no place in the report.
    #[error("`{tier}` is not an element of the check matrix")]
    UnknownTier {
        /// What was written.
        tier: String,
        /// What was probably meant.
        near: Option<Element>,
    },
    /// Nothing to run.
    #[error("none of `cmd`, `argv` and `subcmd` is given")]
    NoCommand,
    /// Not clear what to run.
    #[error("more than one of `cmd`, `argv` and `subcmd` is given")]
    SeveralCommands,
    /// `subcmd` without `[gates] runner`.
    #[error("there is no `runner` to hand it to")]
    NoRunner,
    /// No time at all, or more than anybody waits.
    #[error("{secs} seconds is not between 1 and {longest}")]
    TimeoutOutOfRange {
        /// What was written.
        secs: u64,
        /// The longest bound that is taken.
        longest: u64,
    },
    /// It leads out of the directory that the row runs in.
    #[error("is not a path inside the directory that the row runs in")]
    NotInside,
    /// Neither a command line nor a table cell can carry it.
    #[error("holds a control character")]
    ControlCharacter,
}

impl ConfigProblem {
    /// The value that was probably meant, where one can be told.
    pub fn suggestion(&self) -> Option<&'static str> {
        match &self.fault {
            ConfigFault::UnknownTier { near, .. } => near.map(Element::as_str),
            ConfigFault::Empty
            | ConfigFault::DuplicateId { .. }
            | ConfigFault::Reserved
            | ConfigFault::NotAFileName
            | ConfigFault::NoCommand
            | ConfigFault::SeveralCommands
            | ConfigFault::NoRunner
            | ConfigFault::TimeoutOutOfRange { .. }
            | ConfigFault::NotInside
            | ConfigFault::ControlCharacter => None,
        }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row {
            None => f.write_str("gates")?,
            Some(row) => write!(f, "gates.checks[{row}]")?,
        }
        if !self.id.is_empty() {
            write!(f, " `{}`", self.id.escape_debug())?;
        }
        write!(f, ": `{}`: {}", self.key, self.fault)
    }
}

impl std::error::Error for ConfigProblem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        None
    }
}
