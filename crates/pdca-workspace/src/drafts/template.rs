//! The template of a brief, and how it is filled.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::files;

use crate::OperationError;
use crate::config::scaffold::BRIEF_TEMPLATE;
use crate::config::workspace::Workspace;

/// The largest template, in bytes.
const MAX_TEMPLATE: u64 = 1 << 20;

/// A template or a brief that is not UTF-8.
#[derive(Debug, thiserror::Error)]
#[error("the file is not UTF-8")]
pub struct TemplateNotUtf8 {
    pub path: Utf8PathBuf,
    /// The line of the first byte that is not.
    pub line: usize,
}

/// Returns the template of the workspace, or the built-in one.
pub fn load(workspace: &Workspace) -> Result<String, OperationError> {
    let own = text_of(&workspace.templates_dir.join("brief.md.tpl"))?;
    Ok(own.unwrap_or_else(|| BRIEF_TEMPLATE.to_owned()))
}

/// Reads a text; `None` if there is no such file.
pub(super) fn text_of(path: &Utf8Path) -> Result<Option<String>, OperationError> {
    let Some(bytes) = files::read_bounded(path, MAX_TEMPLATE)? else { return Ok(None) };
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.split(|byte| *byte == b'\n').count();
            Err(TemplateNotUtf8 { path: path.to_owned(), line }.into())
        }
    }
}

/// Fills a template. The title is inserted as it is, on one line.
pub(super) fn fill(template: &str, id: &str, title: Option<&str>) -> String {
    let title = title
        .map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|title| !title.is_empty());
    let slug = title.as_deref().map(slug_of).filter(|slug| !slug.is_empty());
    let heading = title.as_deref().map_or_else(String::new, |title| format!(" — {title}"));
    let values =
        [("{id}", id), ("{title}", &heading), ("{slug}", slug.as_deref().unwrap_or("short-name"))];
    let mut filled = String::with_capacity(template.len() + heading.len());
    let mut rest = template;
    // One pass, so that braces in the title are not taken for placeholders.
    while let Some((at, (key, value))) = values
        .iter()
        .filter_map(|pair| rest.find(pair.0).map(|at| (at, *pair)))
        .min_by_key(|(at, _)| *at)
    {
        filled.push_str(&rest[..at]);
        filled.push_str(value);
        rest = &rest[at + key.len()..];
    }
    filled + rest
}

fn slug_of(title: &str) -> String {
    let words = title.to_lowercase();
    let words =
        words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).take(6);
    words.collect::<Vec<_>>().join("-")
}
