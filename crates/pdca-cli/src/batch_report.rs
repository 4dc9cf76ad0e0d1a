//! The record of a batch as files: a page, a trace, `JUnit`, a summary.
//!
//! `pdca_workspace::batch_report` reads the value; [`html`], [`trace`], [`junit`], [`summary`] and [`annotations`] render it,
//! and [`write_report`] writes the files of `pdca report`.
//!
//! # Invariants
//! - Rendering is a pure function of the report.
//! - Each writer escapes what is markup to it.
//! - The page asks no network for anything, and its policy allows no script but its own.

mod html;
mod junit;
mod markdown;
mod trace;
mod words;
pub(crate) mod write;

pub(crate) use html::html;
pub(crate) use junit::junit;
pub(crate) use markdown::{annotations, summary};
pub(crate) use trace::trace;
pub(crate) use write::{ReportRequest, write_report};
