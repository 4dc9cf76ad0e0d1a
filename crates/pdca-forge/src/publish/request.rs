//! What is to be published, and the part of the world that this uses.

use pdca_integrate::QueueWorkspace;
use pdca_journal::Effects;
use pdca_journal::events::WarningCode;
use pdca_process::Cancel;
use pdca_state::Bundle;

use crate::publish::failure::PublishError;
use crate::publish::settings::PublishSettings;

/// Settings and options of one publication.
#[derive(Debug, Clone, Copy)]
pub struct PublishRequest<'a> {
    /// The `[publish]` table.
    pub settings: &'a PublishSettings,
    /// Marks the pull request as ready for review, and merges it where `[publish] merge` says so.
    pub ready: bool,
    /// Pushes commits of the base, too, that the remote lacks.
    pub include_base: bool,
}

/// One bundle to be published, and what publishing it uses.
#[derive(Clone, Copy)]
pub struct Publication<'a> {
    pub bundle: &'a Bundle,
    /// Programs run in its root, where a relative path of one is found, too.
    pub workspace: &'a QueueWorkspace,
    pub request: PublishRequest<'a>,
    pub effects: &'a dyn Effects,
    pub cancel: &'a Cancel,
    /// Tells a warning about the bundle.
    pub warn: &'a dyn Fn(WarningCode, String),
}

impl std::fmt::Debug for Publication<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publication").field("bundle", &self.bundle).finish_non_exhaustive()
    }
}

/// Returns an error if cancellation was requested.
pub fn stop_if_cancelled(cancel: &Cancel) -> Result<(), PublishError> {
    if cancel.is_cancelled() { Err(PublishError::Interrupted) } else { Ok(()) }
}
