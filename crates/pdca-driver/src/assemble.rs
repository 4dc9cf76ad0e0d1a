//! The last step of Check: the summary for the person who signs off.

use pdca_journal::events::WarningCode;
use pdca_state::{
    Advisory, Artifact, Bundle, DefaultTexts, MissingReview, Snapshot, SummaryInputs, asked_digest,
    assemble, carried_items,
};

use crate::base::stands_on;
use crate::citations::citation_items;
use crate::integrate::forecast_of;
use crate::protected::protected_paths;
use crate::run::Run;
use crate::run_bundle::{BeatError, Driver, REVIEW_LOG};
use crate::size::size_item;
use crate::step::Step;
use pdca_journal::events::EventKind;

pub(crate) fn assemble_summary(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
) -> Result<(), BeatError> {
    let (Some(brief), Some(gates)) = (snapshot.authored_brief(), &snapshot.gates) else {
        return Err(BeatError::NoProgress { step: Step::Assemble });
    };
    let text = |artifact| {
        let bytes = bundle.read(artifact)?;
        Ok::<_, BeatError>(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    let review = text(Artifact::Review)?;
    let notes = text(Artifact::BuildNotes)?;
    let advisories: Vec<Advisory<'_>> =
        snapshot.advisories.iter().map(|(id, text)| Advisory { id, text }).collect();
    let attachments: Vec<String> = [
        Artifact::Patch,
        Artifact::BuildNotes,
        Artifact::CloseDisposition,
        Artifact::GatesMarkdown,
        Artifact::Review,
    ]
    .into_iter()
    .filter(|artifact| snapshot.artifacts.contains(*artifact))
    .map(|artifact| artifact.file_name().to_owned())
    .collect();
    let missing_review = if snapshot.has_error_log(REVIEW_LOG) {
        MissingReview::Failed
    } else {
        MissingReview::NotRun
    };
    let forecast = forecast(cx, bundle, snapshot);
    let resolution =
        pdca_integrate::resolution_sentence(&cx.config.queue(), bundle.id(), snapshot.iterations);
    let resolution = resolution.map_err(BeatError::Own)?;
    let stands_on = stands_on(cx.config, bundle, snapshot.iterations);
    let patch = bundle.read(Artifact::Patch)?.unwrap_or_default();
    let protected: Vec<String> = protected_paths(&cx.config.rows, &patch);
    let protected: Vec<String> =
        // A path may hold line breaks that would open another item; sealing looks for the same
        // spelling.
        protected.iter().map(|path| path.escape_debug().to_string()).collect();
    let recorded = cx.config.attempt_notes(bundle.id()).load().map_err(BeatError::Own)?;
    let products = recorded.product_sentences(snapshot.iterations + 1);
    let cost = bundle.calls().cost()?.words();
    let carried = carried_items(bundle);
    let covered = cx.config.doctor.covered();
    let size = size_item(cx.config.check, brief, &patch);
    let documents = [
        (Artifact::Review.file_name().to_owned(), review.as_deref()),
        (Artifact::BuildNotes.file_name().to_owned(), notes.as_deref()),
    ];
    let advice = advisories.iter().map(|one| (Artifact::advisory(one.id), Some(one.text)));
    let documents =
        documents.into_iter().chain(advice.map(|(path, text)| (path.to_string(), text)));
    let documents: Vec<(String, &str)> =
        documents.filter_map(|(name, text)| Some((name, text?))).collect();
    let cited = citation_items(cx, bundle, brief, &patch, &documents);
    let brief_text = text(Artifact::Brief)?.unwrap_or_default();
    let brief_edited = is_other_brief(cx, bundle, snapshot, &brief_text)?;
    let texts = DefaultTexts {
        id: bundle.id(),
        brief_text: &brief_text,
        brief: Some(brief),
        gates: Some(gates),
        summary: None,
    };
    let comment = snapshot.artifacts.contains(Artifact::Patch).then(|| texts.comment());
    let builder = cx.config.leaves.builder_for(Some(brief), snapshot.iterations + 1).config;
    let one_family = builder.shared_family(&cx.config.leaves.reviewer);
    let inputs = SummaryInputs {
        carried: &carried,
        one_family: one_family.filter(|_| !cx.config.force_stubs),
        cost: cost.as_deref(),
        protected: &protected,
        products: &products,
        stands_on: stands_on.as_deref(),
        forecast_conflicts: &forecast,
        resolution: resolution.as_deref(),
        review: review.as_deref(),
        missing_review,
        advisories: &advisories,
        build_notes: notes.as_deref(),
        close_disposition: snapshot.close_disposition.as_deref(),
        attachments: &attachments,
        covered_dependencies: &covered,
        size: size.as_deref(),
        citations: &cited,
        brief_edited,
        tracker_comment: comment.as_deref(),
        ..SummaryInputs::new(bundle.id(), brief, gates)
    };
    cx.run.map_or(Ok(()), Run::require_ours)?;
    let (summary, text) = (Artifact::Summary, assemble(&inputs));
    // Never replaced: a summary that is there may carry a sign-off.
    let publish = || bundle.publish_new(summary, text.as_bytes());
    if !cx.effects.perform(summary.file_name(), publish)? {
        let name = summary.file_name();
        cx.warn(
            bundle,
            WarningCode::BundleWritten,
            format!("{name} was written by another process meanwhile; it is kept as it is"),
        );
    }
    Ok(())
}

/// Returns whether the builder was given a brief that asks for something else.
fn is_other_brief(
    cx: &Driver<'_>,
    bundle: &Bundle,
    snapshot: &Snapshot,
    text: &str,
) -> Result<bool, BeatError> {
    let known = cx.config.attempts().load(bundle.id()).map_err(BeatError::Own)?;
    // The driver itself continues the brief of a refolded attempt.
    let known = known.filter(|known| {
        known.iterations == snapshot.iterations && known.refolded.is_none() && !known.is_accepted()
    });
    Ok(known.and_then(|known| known.asked).is_some_and(|asked| asked != asked_digest(text)))
}

/// Predicts which other built changes this one does not merge with.
fn forecast(cx: &Driver<'_>, bundle: &Bundle, snapshot: &Snapshot) -> Vec<String> {
    if !snapshot.artifacts.contains(Artifact::Patch) {
        return Vec::new();
    }
    match forecast_of(cx.config, bundle.id()) {
        Ok(troubles) => {
            troubles.iter().filter_map(|trouble| trouble.sentence_for(bundle.id())).collect()
        }
        // A failed forecast must not block the summary.
        Err(error) => {
            let text = format!("no forecast: {}", pdca_state::chain(&error));
            cx.tell(bundle, EventKind::integration(text));
            Vec::new()
        }
    }
}
