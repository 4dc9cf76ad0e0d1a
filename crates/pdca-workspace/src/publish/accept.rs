//! The publication that follows an acceptance, as `[signoff] on_accept` says.

use pdca_forge::publish::{Comments, PublishSettings};

use crate::config::{OnAccept, SignoffSettings};

/// The steps of `[signoff] on_accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AcceptSteps {
    pub(super) ready: bool,
    comment: bool,
    merge: bool,
}

impl AcceptSteps {
    /// Returns the configured steps; `None` if nothing follows an acceptance.
    pub(super) fn of(settings: &SignoffSettings) -> Option<Self> {
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
    pub(super) fn applied_to(self, settings: &PublishSettings) -> PublishSettings {
        let comments = if self.comment { settings.comments } else { Comments::Off };
        PublishSettings { merge: self.merge, comments, ..settings.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_makes_the_pull_request_ready_and_posts_no_comment_by_itself() {
        let of = |steps: &[OnAccept]| {
            let on_accept = steps.to_vec();
            AcceptSteps::of(&SignoffSettings { on_accept, ..SignoffSettings::default() })
        };
        assert_eq!(of(&[]), None);
        let merge = AcceptSteps { ready: true, comment: false, merge: true };
        assert_eq!(of(&[OnAccept::Merge]), Some(merge));
        let comment = AcceptSteps { ready: false, comment: true, merge: false };
        assert_eq!(of(&[OnAccept::Comment]), Some(comment));
    }
}
