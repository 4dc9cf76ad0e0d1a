//! Bundles before they are planned: a brief from a template, and a batch of drafts from a tracker's export.
//!
//! `pdca_forge::select` reads an export and decides what is in a batch; this module opens the export, and writes the bundles.
//!
//! # Invariants
//! - An existing brief is never overwritten, and an existing bundle is left alone.
//! - A draft appears with all its files at once; the index of its batch is written before the first one.
//! - An invalid export leaves nothing behind.

mod new_bundle;
mod select;
mod template;

pub use new_bundle::{
    BriefState, NewBundle, NewBundleError, NewBundleRequest, advise_on_brief, new_bundle,
    new_drafts, plan_brief,
};
pub use select::{
    DraftBatchRef, DraftRequest, DraftState, DraftedIssue, ExportSource, IssueExport, OpenedExport,
    SelectError, Selection, open_export,
};
pub use template::{TemplateNotUtf8, load as brief_template};
