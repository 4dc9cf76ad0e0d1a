//! The object directories from which a repository borrows.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::{BString, ByteSlice as _};

use pdca_state::patch::path::unquote;

use crate::failure::LaneError;

/// Returns the object directory and all directories it borrows from, transitively and each once.
///
/// They are resolved here and written as a flat list, because git follows alternates only five levels deep, and
/// resolves a relative path in the second file from the first.
pub(crate) fn resolve(objects: &Utf8Path) -> Result<Vec<Utf8PathBuf>, LaneError> {
    let failed = |source| LaneError::Io { doing: "find where objects are borrowed from", source };
    let mut all: Vec<Utf8PathBuf> = Vec::new();
    let mut next = vec![objects.to_owned()];
    while let Some(objects) = next.pop() {
        // A missing directory lends nothing; a missing object is reported when it is read.
        let Ok(real) = objects.canonicalize_utf8() else { continue };
        if all.contains(&real) {
            continue;
        }
        let lenders = match fs::read(real.join("info/alternates")) {
            Ok(text) => parse(&text, &real)?,
            Err(err) if err.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(failed(source)),
        };
        // Reversed, because `next` is a stack: the order of the file is the order in which git
        // searches.
        next.extend(lenders.into_iter().rev());
        all.push(real);
    }
    Ok(all)
}

/// Returns the content of an alternates file with these directories.
pub(crate) fn lines(all: &[Utf8PathBuf]) -> Result<Vec<u8>, LaneError> {
    let mut text = Vec::new();
    for objects in all {
        if objects.as_str().contains('\n') {
            return Err(LaneError::Path { path: objects.clone() });
        }
        text.extend_from_slice(objects.as_str().as_bytes());
        text.push(b'\n');
    }
    Ok(text)
}

fn parse(text: &[u8], objects: &Utf8Path) -> Result<Vec<Utf8PathBuf>, LaneError> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
        let quoted = if line.starts_with(b"\"") { unquote(line) } else { None };
        let name: BString = quoted.map_or_else(|| line.into(), |(name, _)| name.into());
        let path = name
            .to_str()
            .map_err(|_| LaneError::Path { path: name.to_str_lossy().into_owned().into() })?;
        found.push(objects.join(path));
    }
    Ok(found)
}
