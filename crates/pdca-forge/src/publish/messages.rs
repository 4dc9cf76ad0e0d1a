//! The texts of a publication: written by a person or the publisher, or made by default.

use pdca_state::{Artifact, Bundle, tracker_comment};

use crate::publish::failure::PublishError;
use crate::publish::inputs::PublishInputs;

/// The files of the texts, in the order of [`Messages`].
const TEXTS: [Artifact; 3] =
    [Artifact::CommitMessage, Artifact::PrDescription, Artifact::TrackerComment];

/// The texts of a publication.
#[derive(Debug, Clone)]
pub struct Messages {
    pub message: String,
    pub description: String,
    /// `None` if a person removed the draft from §8.
    pub comment: Option<String>,
}

impl Messages {
    /// Reads the texts. Each must exist and not be empty.
    pub fn load(bundle: &Bundle, inputs: &PublishInputs) -> Result<Self, PublishError> {
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
pub fn drafted_comment(inputs: &PublishInputs) -> Option<String> {
    inputs.snapshot.summary.as_ref().and_then(tracker_comment)
}

fn is_declined(inputs: &PublishInputs) -> bool {
    drafted_comment(inputs).is_some_and(|text| text.is_empty())
}

/// Returns the missing texts that are to be written.
pub fn absent_texts(
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

/// Returns whether a text is missing that has to be written, by a leaf or by default.
pub fn needs_author(absent: &[Artifact], has_draft: bool) -> bool {
    absent.iter().any(|text| *text != Artifact::TrackerComment || !has_draft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_cannot_be_published_says_why() {
        let scene = pdca_testkit::TestWorkspace::new();
        scene.brief("7", &[]);
        let root = pdca_state::BundleRoot::new(scene.path().join("results"));
        let bundle = root.bundle(&"7".parse().unwrap());
        let flaw = |bytes: Option<&[u8]>| {
            if let Some(bytes) = bytes {
                bundle.publish(Artifact::CommitMessage, bytes).unwrap();
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
