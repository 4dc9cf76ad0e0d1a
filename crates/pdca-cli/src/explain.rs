//! Gives errors of the libraries their position, remedy and exit code, where a conversion needs more than the error.

pub(crate) mod driver;
pub(crate) mod integrate;
pub(crate) mod lanes;
mod operation;
pub(crate) mod rejection;
pub(crate) mod run;
mod select;
