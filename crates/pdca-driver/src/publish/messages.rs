//! The texts of a publication: written by a person, by the publisher, or from templates.

use pdca_leaves::{LeafMode, Output, Role};
use pdca_state::{Artifact, Bundle, tracker_comment};

use crate::config::WorkspaceConfig;
use crate::interactive::consult;
use crate::run_bundle::Driver;

use super::PublishError;
use super::inputs::PublishInputs;

/// The files of the texts, in the order of [`Messages`].
pub(super) const TEXTS: [Artifact; 3] =
    [Artifact::CommitMessage, Artifact::PrDescription, Artifact::TrackerComment];

#[derive(Debug, Clone)]
pub(super) struct Messages {
    pub(super) message: String,
    pub(super) description: String,
    /// `None` if a person removed the draft from §8.
    pub(super) comment: Option<String>,
}

impl Messages {
    /// Reads the texts. Each must exist and not be empty.
    pub(super) fn load(bundle: &Bundle, inputs: &PublishInputs) -> Result<Self, PublishError> {
        let [message, description, comment] = TEXTS;
        let is_declined = bundle.read(comment)?.is_none() && is_declined(inputs);
        Ok(Self {
            message: text(bundle, message)?,
            description: text(bundle, description)?,
            comment: if is_declined { None } else { Some(text(bundle, comment)?) },
        })
    }
}

fn text(bundle: &Bundle, artifact: Artifact) -> Result<String, PublishError> {
    let bad = |flaw| {
        let (id, file) = (bundle.id().clone(), artifact.file_name());
        PublishError::Text { id, file, flaw }
    };
    let bytes = bundle.read(artifact)?.ok_or_else(|| bad("is not there"))?;
    let text = String::from_utf8(bytes).map_err(|_| bad("is not UTF-8"))?;
    if text.contains('\0') {
        return Err(bad("has a zero byte in it"));
    }
    if text.trim().is_empty() { Err(bad("is empty")) } else { Ok(text) }
}

/// Returns the draft of the comment in §8, as the person left it who signed.
pub(super) fn drafted(inputs: &PublishInputs) -> Option<String> {
    inputs.snapshot.summary.as_ref().and_then(tracker_comment)
}

fn is_declined(inputs: &PublishInputs) -> bool {
    drafted(inputs).is_some_and(|text| text.is_empty())
}

/// Returns the missing texts that are to be written.
pub(super) fn absent(
    bundle: &Bundle,
    inputs: &PublishInputs,
) -> Result<Vec<Artifact>, PublishError> {
    let mut absent = missing(bundle)?;
    absent.retain(|text| *text != Artifact::TrackerComment || !is_declined(inputs));
    Ok(absent)
}

fn missing(bundle: &Bundle) -> Result<Vec<Artifact>, PublishError> {
    let mut absent = Vec::new();
    for artifact in TEXTS {
        if bundle.read(artifact)?.is_none() {
            absent.push(artifact);
        }
    }
    Ok(absent)
}

/// Fills in missing texts; returns whether there were any. Existing ones stay as they are.
pub(super) fn fill_messages(
    cx: &Driver<'_>,
    bundle: &Bundle,
    inputs: &PublishInputs,
) -> Result<bool, PublishError> {
    let absent = absent(bundle, inputs)?;
    if absent.is_empty() {
        return Ok(false);
    }
    let draft = drafted(inputs);
    let is_asked = has_publisher(cx.config) && needs_leaf(&absent, draft.is_some());
    let said = if is_asked { Some(consult(cx, bundle, Role::Publisher)?) } else { None };
    for artifact in absent {
        let of_leaf = said.as_ref().and_then(|said| said.get(Output::Artifact(artifact)));
        // The draft in §8 is what the person read who signed, so it comes before anything new.
        let of_summary = draft.as_ref().filter(|_| artifact == Artifact::TrackerComment);
        let text = match of_summary.map(String::as_bytes).or(of_leaf) {
            Some(text) => text.to_vec(),
            None => inputs.stand_in(bundle, artifact)?.into_bytes(),
        };
        cx.publish(bundle, artifact, &text)?;
    }
    Ok(true)
}

/// Returns whether a text is missing that only a leaf or a template can give.
pub(super) fn needs_leaf(absent: &[Artifact], has_draft: bool) -> bool {
    absent.iter().any(|text| *text != Artifact::TrackerComment || !has_draft)
}

/// Returns whether a leaf writes the missing texts.
pub(super) fn has_publisher(config: &WorkspaceConfig) -> bool {
    let leaf = config.leaves.of(Role::Publisher);
    !config.force_stubs && leaf.is_some_and(|leaf| leaf.mode == LeafMode::Command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scene;

    #[test]
    fn a_text_that_cannot_be_published_says_why() {
        let scene = Scene::planned();
        let bundle = scene.bundle();
        let flaw = |bytes: Option<&[u8]>| {
            let file = bundle.path(Artifact::CommitMessage);
            if let Some(bytes) = bytes {
                fs_err::write(&file, bytes).unwrap();
            }
            text(&bundle, Artifact::CommitMessage).unwrap_err().to_string()
        };
        let said = |why: &str| format!("commit-msg.txt of 7 cannot be used: it {why}");
        assert_eq!(flaw(None), said("is not there"));
        assert_eq!(flaw(Some(b"\xff")), said("is not UTF-8"));
        assert_eq!(flaw(Some(b"a\0b")), said("has a zero byte in it"));
        assert_eq!(flaw(Some(b" \n")), said("is empty"));
        assert_eq!(missing(&bundle).unwrap(), TEXTS[1..], "an empty file is not absent");
    }
}
