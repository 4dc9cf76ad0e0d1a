//! Bundles before they are planned: a brief from a template, and a batch of drafts from a tracker's export.
//!
//! `pdca_forge::select` reads an export and decides what is in a batch; this module opens the export, and writes the bundles.
//!
//! # Invariants
//! - An existing brief is never overwritten, and an existing bundle is left alone.
//! - A draft appears with all its files at once; the index of its batch is written before the first one.
//! - An export that is wrong leaves nothing behind.

pub(crate) mod new;
pub(crate) mod select;
mod template;

pub(crate) use new::{NewBundleRequest, new, new_drafts};
pub(crate) use select::{Export, SelectRequest, select};
pub(crate) use template::load as load_template;
