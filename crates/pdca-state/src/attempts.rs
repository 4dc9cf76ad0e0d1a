//! The archived attempts of a bundle, for reading.

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

    /// Reads an artifact of the attempt `number`; `None` if it is absent.
    pub fn read(&self, number: u32, artifact: Artifact) -> Result<Option<Vec<u8>>, LoadError> {
        self.bundle.place().require_inside()?;
        let path = archive::dir_of(number).join(artifact.file_name());
        Ok(files::read_within(self.bundle.dir(), &path, artifact.max_len())?)
    }
}
