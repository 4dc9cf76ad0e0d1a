//! The change of an attempt: as a patch with colours, or as a list of files.

use std::fmt::Write as _;
use std::io::Write;

use pdca_state::Bundle;
use pdca_state::text::printable;
use pdca_workspace::review::{BundleChange, ChangeRequest, ChangedFile};
use serde::Serialize;

use crate::context::Context;
use crate::explain;
use crate::failure::Failure;
use crate::report::{Format, Report};
use crate::sitting::page_diff;
use crate::style::Palette;

/// The change of an attempt, shown in a pager before where there is one.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ChangeReport {
    #[serde(flatten)]
    change: BundleChange,
    #[serde(skip)]
    is_shown: bool,
}

impl ChangeReport {
    /// Shows a change in a pager, if it is a patch for a person at a terminal.
    pub(crate) fn of(change: BundleChange, cx: &Context<'_>) -> Self {
        let is_patch = cx.globals.format() == Format::Text && change.patch.is_some();
        let is_shown = is_patch && page(&change, cx);
        Self { change, is_shown }
    }
}

/// Reads the change of the present attempt.
pub(crate) fn present(cx: &Context<'_>, bundle: &Bundle) -> Result<BundleChange, Failure> {
    BundleChange::load(bundle, ChangeRequest::default()).map_err(|error| explain::change(error, cx))
}

/// Shows the change in a pager. Returns whether it was shown.
pub(crate) fn page(change: &BundleChange, cx: &Context<'_>) -> bool {
    page_diff(cx, coloured(change, cx.out).as_bytes())
}

/// Returns the patch with colours, without anything that a terminal would obey.
pub(crate) fn coloured(change: &BundleChange, palette: Palette) -> String {
    let mut text = String::new();
    for line in change.patch.as_deref().unwrap_or_default().lines() {
        let shown = printable(line);
        // The colours are added after `printable`, which would escape them.
        let painted = match line.as_bytes().first() {
            Some(b'+') => palette.good(shown).to_string(),
            Some(b'-') => palette.bad(shown).to_string(),
            Some(b'@') => palette.accent(shown).to_string(),
            _ if line.starts_with("diff ") => palette.strong(shown).to_string(),
            _ => shown.into_owned(),
        };
        writeln!(text, "{painted}").expect("a String takes everything");
    }
    text
}

impl Report for ChangeReport {
    const KIND: &'static str = "diff";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.is_shown {
            return Ok(());
        }
        let BundleChange { files, added, removed, patch, .. } = &self.change;
        if patch.is_some() {
            return Ok(out.write_all(coloured(&self.change, cx.out).as_bytes())?);
        }
        for ChangedFile { path, added, removed } in files {
            let counts = format!("{:>6} {:>6}", format!("+{added}"), format!("-{removed}"));
            writeln!(out, "{counts}  {}", printable(path))?;
        }
        let noun = if files.len() == 1 { "file" } else { "files" };
        writeln!(out, "{} {noun}, +{added} -{removed}", files.len())?;
        Ok(())
    }
}
