//! Fills in the texts of a publication that nobody wrote.

use pdca_driver::{Driver, WorkspaceConfig, ask_publisher};
use pdca_forge::publish::{PublishInputs, absent_texts, drafted_comment, needs_author};
use pdca_leaves::{LeafMode, Output, Role};
use pdca_state::{Artifact, Bundle};

use crate::publish::PublicationError;

/// Fills in missing texts; returns whether there were any. Existing ones stay as they are.
pub(super) fn fill_texts(
    cx: &Driver<'_>,
    bundle: &Bundle,
    inputs: &PublishInputs,
) -> Result<bool, PublicationError> {
    let absent = absent_texts(bundle, inputs)?;
    if absent.is_empty() {
        return Ok(false);
    }
    let draft = drafted_comment(inputs);
    let is_asked = has_publisher(cx.config) && needs_author(&absent, draft.is_some());
    let written = if is_asked { Some(ask_publisher(cx, bundle)?) } else { None };
    for artifact in absent {
        let of_leaf = written.as_ref().and_then(|outcome| outcome.get(Output::Artifact(artifact)));
        // The draft in §8 is what the person read who signed, so it comes before anything new.
        let of_summary = draft.as_ref().filter(|_| artifact == Artifact::TrackerComment);
        let text = match of_summary.map(String::as_bytes).or(of_leaf) {
            Some(text) => text.to_vec(),
            None => inputs.default_text(bundle, artifact)?.into_bytes(),
        };
        cx.publish(bundle, artifact, &text)?;
    }
    Ok(true)
}

/// Returns whether a leaf writes the missing texts.
pub(super) fn has_publisher(config: &WorkspaceConfig) -> bool {
    let leaf = config.leaves.of(Role::Publisher);
    !config.force_stubs && leaf.is_some_and(|leaf| leaf.mode == LeafMode::Command)
}
