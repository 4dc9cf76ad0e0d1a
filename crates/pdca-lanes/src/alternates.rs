//! Where else a repository has its objects.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use gix::bstr::{BString, ByteSlice as _};

use crate::{failure::LaneError, path::unquote};

/// The directory of objects, and every one that it borrows from in turn, each once.
///
/// Resolved here and written out flat, because git follows them only five deep, and takes a
/// relative path in the second file for one that is relative to the first.
pub(crate) fn resolve(objects: &Utf8Path) -> Result<Vec<Utf8PathBuf>, LaneError> {
    let failed = |source| LaneError::Io { doing: "find where objects are borrowed from", source };
    let mut all: Vec<Utf8PathBuf> = Vec::new();
    let mut next = vec![objects.to_owned()];
    while let Some(objects) = next.pop() {
        // One that is gone lends nothing, and whether it is missed shows when objects are read.
        let Ok(real) = objects.canonicalize_utf8() else { continue };
        if all.contains(&real) {
            continue;
        }
        let lenders = match fs::read(real.join("info/alternates")) {
            Ok(text) => parse(&text, &real)?,
            Err(err) if err.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(failed(source)),
        };
        next.extend(lenders.into_iter().rev());
        all.push(real);
    }
    Ok(all)
}

/// The lines of an alternates file that name directories of objects.
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
        let name: BString = quoted.map_or_else(|| line.into(), |(name, _)| name);
        let path = name
            .to_str()
            .map_err(|_| LaneError::Path { path: name.to_str_lossy().into_owned().into() })?;
        found.push(objects.join(path));
    }
    Ok(found)
}
