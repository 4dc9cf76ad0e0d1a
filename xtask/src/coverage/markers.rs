//! Comments that name rows. Rows name their tests, in one file; a comment beside a test would be a second truth.

use camino::Utf8Path;

use crate::tidy::SourceFile;

/// Split, so that this file does not find itself.
const START: &str = concat!("// ", "holds:");

/// Returns the place of every such comment of the Rust files.
pub(super) fn all(files: &[SourceFile]) -> impl Iterator<Item = (&Utf8Path, usize)> {
    let sources = files.iter().filter(|file| file.path.extension() == Some("rs"));
    sources.flat_map(|file| {
        let lines = (1..).zip(file.text.lines().map(str::trim));
        let marked = lines.filter(|(_, line)| line.starts_with(START));
        marked.map(|(line, _)| (file.path.as_path(), line))
    })
}
