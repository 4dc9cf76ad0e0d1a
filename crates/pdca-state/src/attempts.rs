//! The archived attempts of a bundle, for reading.

use camino::Utf8PathBuf;

use crate::archive;
use crate::artifact::Artifact;
use crate::bundle::Bundle;
use crate::contents::LoadError;
use crate::files;

/// The archived attempts of a bundle. An attempt in the archive never changes.
#[derive(Debug)]
pub struct Attempts<'b> {
    pub(crate) bundle: &'b Bundle,
}

impl<'b> Attempts<'b> {
    pub(crate) fn of(bundle: &'b Bundle) -> Self {
        Self { bundle }
    }

    /// Returns the numbers of the archived attempts, oldest first.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>, LoadError> {
        Ok(self.bundle.contents()?.iterations)
    }

    /// Returns the number of the present attempt, from 1.
    pub fn newest(&self) -> Result<u32, LoadError> {
        Ok(self.numbers()?.last().map_or(1, |last| last.saturating_add(1)))
    }

    /// Returns the directory of an attempt: an archive, or the bundle's own for the present one.
    pub fn dir(&self, number: u32) -> Result<Utf8PathBuf, LoadError> {
        let is_archived = self.numbers()?.contains(&number);
        let archived = || self.bundle.dir().join(archive::dir_of(number));
        Ok(if is_archived { archived() } else { self.bundle.dir().to_owned() })
    }

    /// Reads an artifact of the attempt `number`; `None` if it is absent.
    pub fn read(&self, number: u32, artifact: Artifact) -> Result<Option<Vec<u8>>, LoadError> {
        self.bundle.place().require_inside()?;
        let path = archive::dir_of(number).join(artifact.file_name());
        Ok(files::read_within(self.bundle.dir(), &path, artifact.max_len())?)
    }
}
