//! The publication that follows an acceptance, as `[signoff] on_accept` says.

use pdca_forge::publish::{Comments, PublishSettings};

use crate::config::{OnAccept, SignoffSettings};

/// The steps of `[signoff] on_accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptSteps {
    pub ready: bool,
    pub comment: bool,
    pub merge: bool,
}

impl AcceptSteps {
    /// Returns the configured steps; `None` if nothing follows an acceptance.
    pub fn of(settings: &SignoffSettings) -> Option<Self> {
        let has = |step: OnAccept| settings.on_accept.contains(&step);
        let merge = has(OnAccept::Merge);
        (!settings.on_accept.is_empty()).then(|| Self {
            // A draft cannot be merged.
            ready: has(OnAccept::Ready) || merge,
            comment: has(OnAccept::Comment),
            merge,
        })
    }

    /// Returns the settings of a publication with these steps.
    pub fn applied_to(self, settings: &PublishSettings) -> PublishSettings {
        let comments = if self.comment { settings.comments } else { Comments::Off };
        PublishSettings { merge: self.merge, comments, ..settings.clone() }
    }
}
