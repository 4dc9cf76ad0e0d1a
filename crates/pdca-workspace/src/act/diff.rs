//! Changes in the process since the last review.

use pdca_act::{ActRecords, Baseline, Changes, LedgerReview, PartDiff, Versions, explain};
use pdca_state::BundleId;
use serde::Serialize;

use super::sources;
use crate::{OpenWorkspace, OperationError};

/// The present process, compared with that of the reviews.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BaselineDiff {
    /// The review compared with, if one was recorded.
    pub last_review: Option<RecordedReview>,
    pub since_last_review: Option<Changes>,
    /// How each of them changed.
    pub parts: Vec<PartDiff>,
    /// Every recorded review, oldest first, with the changes since the one before it.
    pub history: Vec<RecordedReview>,
    /// The present process, which the next record would store.
    pub now: Baseline,
    pub problems: Vec<String>,
}

/// A review in the ledger.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedReview {
    pub date: String,
    pub cycles: Vec<BundleId>,
    pub late: bool,
    pub files: usize,
    pub changes: Option<Changes>,
}

/// Compares the process with that of the last review; `names` leaves out how each part changed.
pub fn baseline_diff(
    open: &OpenWorkspace<'_>,
    names: bool,
) -> Result<BaselineDiff, OperationError> {
    let workspace = open.workspace;
    let records = ActRecords::load(&workspace.process_dir)?;
    let sources = sources(workspace);
    let (now, mut problems) = Baseline::collect(&sources);
    problems.extend(
        records.ledger_error.as_ref().map(|error| format!("the ledger counts as empty: {error}")),
    );
    let reviews = records.ledger.reviews();
    let history = history(&reviews);
    let changes = reviews.last().map(|last| now.changes_since(&last.baseline));
    let parts = match &changes {
        Some(changes) if !names && !changes.is_empty() => {
            let versions = Versions::open(&workspace.root);
            explain(changes, &sources, &workspace.root, versions.as_ref())
        }
        Some(_) | None => Vec::new(),
    };
    Ok(BaselineDiff {
        last_review: history.last().cloned(),
        since_last_review: changes,
        parts,
        history,
        now,
        problems,
    })
}

fn history(reviews: &[LedgerReview]) -> Vec<RecordedReview> {
    let before = std::iter::once(None).chain(reviews.iter().map(Some));
    reviews
        .iter()
        .zip(before)
        .map(|(review, before)| RecordedReview {
            date: review.date.clone(),
            cycles: review.cycles.clone(),
            late: review.late,
            files: review.baseline.files().len(),
            changes: before.map(|before| review.baseline.changes_since(&before.baseline)),
        })
        .collect()
}
