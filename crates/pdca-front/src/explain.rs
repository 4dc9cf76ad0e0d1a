//! Gives errors of the libraries their position, remedy and exit code, where a conversion needs more than the error.

pub mod driver;
pub mod integrate;
pub mod lanes;
pub mod rejection;
pub mod run;
