//! A TOML text with positions.

use std::io::Read as _;
use std::ops::Range;

use camino::{Utf8Path, Utf8PathBuf};

use crate::config::problem::{FilePosition, Problem};

/// The largest config file that is read, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;

/// A config file, or a variable or flag that stands for one line of it.
#[derive(Debug, Clone)]
pub struct ConfigDocument {
    /// The file, or the name of the variable or flag.
    pub name: Utf8PathBuf,
    pub text: String,
}

impl ConfigDocument {
    /// Makes a document from text that is not from a file.
    pub fn new(name: impl Into<Utf8PathBuf>, text: impl Into<String>) -> Self {
        ConfigDocument { name: name.into(), text: text.into() }
    }

    /// Reads a config file; `None` if there is none.
    pub fn load(path: &Utf8Path) -> Result<Option<Self>, Box<Problem>> {
        let refuse = |what: String, hint: &str| {
            Err(Box::new(Problem::new(what).at(FilePosition::file(path)).hint(hint)))
        };
        let name = path.file_name().unwrap_or(path.as_str());
        match fs_err::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                return refuse(
                    format!("{name} is a directory"),
                    "a config file is a TOML text; `pdca init` writes one",
                );
            }
            // Reading a pipe would wait for ever.
            Ok(meta) if !meta.is_file() => {
                return refuse(
                    format!("{name} is not a regular file"),
                    "replace it by a TOML text",
                );
            }
            Ok(meta) if meta.len() > MAX_BYTES => {
                return refuse(
                    format!("{name} has {} bytes; at most {MAX_BYTES} are read", meta.len()),
                    "a config file is small; check what was written there",
                );
            }
            Ok(_) => {}
            // The link is there, so the person has a configuration. Without this check the defaults would
            // run in its place: stub leaves and no gates.
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound
                    && path.symlink_metadata().is_ok() =>
            {
                return refuse(
                    format!("{name} is a link to a file that does not exist"),
                    "restore the file, or remove the link",
                );
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return refuse(error.to_string(), "make the file readable"),
        }
        let mut bytes = Vec::new();
        let read =
            // Bounded again: the file may have grown since it was looked at.
            fs_err::File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
        if let Err(error) = read {
            return refuse(error.to_string(), "make the file readable");
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(ConfigDocument::new(path, text))),
            Err(error) => {
                let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = before.split(|byte| *byte == b'\n').count();
                let problem =
                    Problem::new(format!("{name} is not UTF-8")).at(FilePosition::line(path, line));
                Err(Box::new(problem.hint("save the file as UTF-8")))
            }
        }
    }

    /// Returns the position at which a range of the text begins.
    pub fn place(&self, span: &Range<usize>) -> FilePosition {
        let start =
            (0..=span.start.min(self.text.len())).rev().find(|at| self.text.is_char_boundary(*at));
        let before = &self.text[..start.unwrap_or(0)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        FilePosition {
            file: self.name.clone(),
            line: Some(before.matches('\n').count() + 1),
            column: Some(before[line_start..].chars().count() + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_not_the_same_as_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().join("pdca.toml");
        assert!(ConfigDocument::load(&path).unwrap().is_none());
        std::os::unix::fs::symlink("gone.toml", &path).unwrap();
        let problem = ConfigDocument::load(&path).unwrap_err();
        assert_eq!(problem.what, "pdca.toml is a link to a file that does not exist");
    }
}
