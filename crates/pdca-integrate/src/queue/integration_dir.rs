//! The directory of one integration: files that outlive a crash and are gone after the end.

use camino::Utf8PathBuf;
use pdca_state::files;

use pdca_journal::RunId;

use crate::{Certificate, Gated};

use super::IntegrateError;
use super::context::QueueContext;
use super::landing::PENDING;

/// The directory that also holds the journal of the integration.
pub(super) struct IntegrationDir {
    path: Utf8PathBuf,
}

impl IntegrationDir {
    pub(super) fn new(cx: &QueueContext<'_>, run: &RunId) -> Self {
        let path = cx.workspace.dirs.private().join("integrations").join(run.as_str());
        Self { path }
    }

    pub(super) fn path(&self) -> &camino::Utf8Path {
        &self.path
    }

    /// Returns the directory for the gate results of this integration.
    pub(super) fn jobs(&self) -> Utf8PathBuf {
        self.path.join("jobs")
    }

    pub(super) fn clear_jobs(&self) -> Result<(), IntegrateError> {
        let path = self.jobs();
        // Gates write here and may leave directories without permissions, which a plain removal fails on.
        let removed = pdca_lanes::discard(&path, &path.with_file_name("discarded"));
        removed.map_err(|source| IntegrateError::Io { path, source })
    }

    /// Writes the certificate of a landing that has not happened yet.
    pub(super) fn announce(
        &self,
        cx: &QueueContext<'_>,
        target: &str,
        gated: &Gated,
        reference: &str,
    ) -> Result<Utf8PathBuf, IntegrateError> {
        let name = format!("{PENDING}{target}-{}", gated.candidate().commit());
        let path = self.path.join(name);
        let text = Certificate::announced(gated, reference).to_json();
        let write = || files::replace(&path, &text);
        let written = cx.effects.perform("announce", write);
        written.map_err(|source| IntegrateError::Io { path: path.clone(), source })?;
        Ok(path)
    }
}
