//! Gives errors of the libraries their position, remedy and exit code, where a conversion needs more than the error.

mod change;
pub(crate) mod decision;
pub(crate) mod driver;
mod hosts;
pub(crate) mod integrate;
mod integration;
pub(crate) mod lanes;
pub(crate) mod logs;
mod operation;
pub(crate) mod planning;
pub(crate) mod publish;
mod recovery;
pub(crate) mod rejection;
pub(crate) mod run;
mod select;

pub(crate) use change::change;
