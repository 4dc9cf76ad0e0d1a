//! Forge and tracker: publication of accepted changes, and exports of issues.
//!
//! - [`publish`] tells a forge and a tracker what was accepted: a branch, a draft pull request and a comment.
//! - [`select`] reads the export of a tracker into a pool of issues from which a batch is drafted.
//!
//! # Invariants
//! - Nothing is created at a forge that was not looked up first.
//! - Text of a bundle becomes neither a marker nor an option of a program.
//! - Nothing is printed, and neither the environment nor the wall clock is read.

pub mod publish;
pub mod select;
