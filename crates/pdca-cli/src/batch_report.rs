//! The record of a batch that one can open, show and keep.
//!
//! [`write_report`] is the operation behind `pdca report`. [`WorkspaceReport::load`](model::WorkspaceReport::load) reads a workspace once; [`html`], [`trace`], [`junit`], [`summary`] and [`annotations`] render the
//! same value.
//!
//! # Invariants
//! - Rendering is a pure function of the report; nothing is decided from it.
//! - Text from outside is a [`Text`](text::Text): no control character reaches a page, and each writer escapes what is markup to it.
//! - The page asks no network for anything, and its policy allows no script but its own.
//! - Texts have a budget, so that a page stays small; what is cut is said where it is cut.

mod bundle;
mod history;
mod html;
mod junit;
mod load;
mod markdown;
mod model;
mod text;
mod trace;
pub(crate) mod write;

pub(crate) use html::html;
pub(crate) use junit::junit;
pub(crate) use markdown::{annotations, summary};
pub(crate) use trace::trace;
pub(crate) use write::{ReportRequest, write_report};
