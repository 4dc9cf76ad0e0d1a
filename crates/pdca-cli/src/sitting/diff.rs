//! `pdca diff`: the change of an attempt, or what changed since the attempt before.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use pdca_state::text::printable;
use pdca_state::{Artifact, Bundle, BundleId, patch_files};
use pdca_workspace::review::ChangedFile;
use serde::Serialize;
use similar::TextDiff;

use crate::context::{Context, IdArg};
use crate::exit::Exit;
use crate::failure::{Failure, FilePosition};
use crate::report::{Format, Report, Response};
use crate::sitting::pager;
use crate::style::Palette;

/// The change that is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiffRequest<'a> {
    pub(crate) id: &'a IdArg,
    /// The attempt, from 1; the present one if unset.
    pub(crate) attempt: Option<u32>,
    /// Only the files and the number of lines.
    pub(crate) stat: bool,
    /// What changed since the attempt before.
    pub(crate) since: bool,
}

/// The change of an attempt.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DiffReport {
    id: BundleId,
    /// The attempt, from 1.
    attempt: u32,
    /// The attempt that it is compared with; null for the base.
    since: Option<u32>,
    files: Vec<ChangedFile>,
    added: usize,
    removed: usize,
    /// The patch; null with `--stat`. Bytes that are not UTF-8 are replaced.
    patch: Option<String>,
    #[serde(skip)]
    is_shown: bool,
}

/// Loads the change, and shows it in a pager where there is one.
pub(crate) fn diff(request: DiffRequest<'_>, cx: &Context<'_>) -> Result<Response, Failure> {
    let bundle = cx.require_bundle(request.id)?;
    let mut report = load(cx, &bundle, request)?;
    if cx.globals.format() == Format::Text && !request.stat {
        report.is_shown = report.page(cx);
    }
    Ok(Response::done(report))
}

/// Loads the change of the present attempt.
pub(crate) fn present(cx: &Context<'_>, bundle: &Bundle) -> Result<DiffReport, Failure> {
    let id = IdArg::from(std::ffi::OsString::from(bundle.id().as_str()));
    load(cx, bundle, DiffRequest { id: &id, attempt: None, stat: false, since: false })
}

fn load(
    cx: &Context<'_>,
    bundle: &Bundle,
    request: DiffRequest<'_>,
) -> Result<DiffReport, Failure> {
    let id = bundle.id();
    let newest = bundle.attempts().newest()?;
    let attempt = request.attempt.unwrap_or(newest);
    if !(1..=newest).contains(&attempt) {
        let hint = cx.typed(&format!("pdca diff {id} --attempt {newest}"));
        return Err(Failure::usage(format!("{id} has no attempt {attempt}"))
            .hint(format!("it has {newest}; `{hint}` shows the newest")));
    }
    if request.since && attempt == 1 {
        return Err(Failure::usage(format!("attempt 1 of {id} has none before it"))
            .hint(cx.typed(&format!("`pdca diff {id}` shows the whole change"))));
    }
    let patch = patch_of(bundle, attempt, newest)?.ok_or_else(|| {
        Failure::new(Exit::NothingToDo, format!("attempt {attempt} of {id} has no change"))
            .at(FilePosition::file(bundle.path(Artifact::Patch)))
            .hint(cx.typed(&format!("`pdca why {id}` says what comes next")))
    })?;
    let file = |file: pdca_state::PatchFile<'_>| {
        let (added, removed) = (file.added, file.removed);
        ChangedFile { path: file.path, added, removed }
    };
    let (since, text) = if request.since {
        let before = patch_of(bundle, attempt - 1, newest)?.unwrap_or_default();
        (Some(attempt - 1), between(&before, &patch))
    } else {
        (None, String::from_utf8_lossy(&patch).into_owned())
    };
    let files: Vec<ChangedFile> = patch_files(&patch).into_iter().map(file).collect();
    Ok(DiffReport {
        id: id.clone(),
        attempt,
        since,
        added: files.iter().map(|file| file.added).sum(),
        removed: files.iter().map(|file| file.removed).sum(),
        files,
        patch: (!request.stat).then_some(text),
        is_shown: false,
    })
}

/// Reads the patch of an attempt; the newest one is not archived.
fn patch_of(bundle: &Bundle, attempt: u32, newest: u32) -> Result<Option<Vec<u8>>, Failure> {
    Ok(if attempt == newest {
        bundle.read(Artifact::Patch)?
    } else {
        bundle.attempts().read(attempt, Artifact::Patch)?
    })
}

/// Compares two patches file by file, as texts.
fn between(before: &[u8], now: &[u8]) -> String {
    let by_path = |patch| -> BTreeMap<String, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        patch_files(patch).into_iter().map(|file| (file.path, text(file.text))).collect()
    };
    let (before, now) = (by_path(before), by_path(now));
    let mut paths: Vec<&String> = before.keys().chain(now.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut text = String::new();
    let of = |side: &BTreeMap<String, String>, path: &String| {
        side.get(path).cloned().unwrap_or_default()
    };
    for path in paths {
        let (old, new) = (of(&before, path), of(&now, path));
        if old != new {
            let diff = TextDiff::from_lines(&old, &new);
            let mut unified = diff.unified_diff();
            let unified =
                unified.header(&format!("before/{path}"), &format!("now/{path}")).to_string();
            text.push_str(&unified);
        }
    }
    if text.is_empty() {
        text.push_str("the change is the same as before\n");
    }
    text
}

impl DiffReport {
    /// Shows the change in a pager. Returns whether it was shown.
    pub(crate) fn page(&self, cx: &Context<'_>) -> bool {
        let text = self.coloured(cx.out);
        pager::page_diff(cx, text.as_bytes())
    }

    /// Returns the patch with colours, without anything that a terminal would obey.
    pub(crate) fn coloured(&self, palette: Palette) -> String {
        let mut text = String::new();
        for line in self.patch.as_deref().unwrap_or_default().lines() {
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
}

impl Report for DiffReport {
    const KIND: &'static str = "diff";

    fn text(&self, cx: &Context<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        if self.is_shown {
            return Ok(());
        }
        if self.patch.is_some() {
            return Ok(out.write_all(self.coloured(cx.out).as_bytes())?);
        }
        for ChangedFile { path, added, removed } in &self.files {
            let counts = format!("{:>6} {:>6}", format!("+{added}"), format!("-{removed}"));
            writeln!(out, "{counts}  {}", printable(path))?;
        }
        let files = if self.files.len() == 1 { "file" } else { "files" };
        writeln!(out, "{} {files}, +{} -{}", self.files.len(), self.added, self.removed)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_attempts_are_compared_file_by_file() {
        let file = |name: &str, line: &str| {
            format!(
                "diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-o\n+{line}\n"
            )
        };
        let before = [file("a", "1"), file("b", "1")].concat();
        let now = [file("a", "1"), file("b", "2")].concat();
        let text = between(before.as_bytes(), now.as_bytes());
        assert!(text.starts_with("--- before/b\n+++ now/b\n"), "{text}");
        assert!(text.contains("\n-+1\n++2\n") && !text.contains("/a"), "{text}");
        let same = between(now.as_bytes(), now.as_bytes());
        assert_eq!(same, "the change is the same as before\n");
    }
}
