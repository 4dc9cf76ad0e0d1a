//! The problems of checks in a configuration file.

use std::fmt;

use pdca_state::Element;

/// One problem of `[gates]`, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The index in `[[gates.checks]]`; `None` for a key of `[gates]` itself.
    pub row: Option<usize>,
    /// The id of the check, which may itself be invalid.
    pub id: String,
    pub key: &'static str,
    pub fault: ConfigFault,
}

/// The reason why the value of a key is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigFault {
    /// The value is missing or does nothing.
    #[error("is empty")]
    Empty,
    /// Another check has the id; ids that differ only in case count as equal.
    #[error("already the id of gates.checks[{first}]")]
    DuplicateId {
        /// The index of the other check.
        first: usize,
    },
    /// pdca itself writes a check with this id.
    #[error("is the id of a row that pdca writes itself")]
    Reserved,
    /// The id names a log, so it has only letters, digits, `.`, `_`, `+` and `-`, and a limited length.
    #[error("cannot be a file name")]
    NotAFileName,
    /// The tier is not an element of the check matrix.
    #[error("`{tier}` is not an element of the check matrix")]
    UnknownTier {
        /// The value as written.
        tier: String,
        /// The element that was probably meant.
        near: Option<Element>,
    },
    /// None of the three command keys is set.
    #[error("none of `cmd`, `argv` and `subcmd` is given")]
    NoCommand,
    /// More than one of the three command keys is set.
    #[error("more than one of `cmd`, `argv` and `subcmd` is given")]
    SeveralCommands,
    /// `subcmd` is set without `[gates] runner`.
    #[error("there is no `runner` to hand it to")]
    NoRunner,
    /// The timeout is zero or unreasonably long.
    #[error("{secs} seconds is not between 1 and {longest}")]
    TimeoutOutOfRange {
        /// The value as written.
        secs: u64,
        /// The longest accepted timeout.
        longest: u64,
    },
    /// The path leads out of the working directory of the check.
    #[error("is not a path inside the directory that the row runs in")]
    NotInside,
    /// The name cannot be that of a variable.
    #[error("`{name}` is not the name of a variable")]
    NotAVariable { name: String },
    /// pdca sets the variable itself.
    #[error("`{name}` is set by pdca")]
    SetByPdca { name: String },
    /// The variable is not one of those that differ from one run to the next.
    #[error("`{name}` is not a variable that a row can need")]
    NotChanging { name: String },
    /// The command names a variable that `needs` does not.
    #[error("the command names `{name}`, and `needs` does not")]
    NotNeeded { name: String },
    /// Neither a command line nor a table cell can hold the character.
    #[error("holds a control character")]
    ControlCharacter,
}

impl ConfigProblem {
    /// Returns the value that was probably meant, if there is one.
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
            | ConfigFault::NotAVariable { .. }
            | ConfigFault::SetByPdca { .. }
            | ConfigFault::NotChanging { .. }
            | ConfigFault::NotNeeded { .. }
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
