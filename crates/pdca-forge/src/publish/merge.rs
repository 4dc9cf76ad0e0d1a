//! Whether a pull request may be merged, from what the forge says about it.

use serde::Deserialize;

/// The forge's view of a pull request that is to be merged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MergeView {
    /// `CLEAN`, `BLOCKED`, `DIRTY` and so on.
    merge_state_status: String,
    /// `REVIEW_REQUIRED`, `CHANGES_REQUESTED`, `APPROVED`, or empty.
    review_decision: Option<String>,
    status_check_rollup: Vec<CheckState>,
}

/// One check: a run with status and conclusion, or a status with a state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct CheckState {
    name: Option<String>,
    context: Option<String>,
    status: Option<String>,
    conclusion: Option<String>,
    state: Option<String>,
}

/// The answer to whether a pull request may be merged now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mergeability {
    Ready,
    /// Something that may still come is missing.
    Waits {
        /// A sentence without a full stop.
        why: String,
    },
    /// Somebody has to change something first.
    Refused {
        /// A sentence without a full stop.
        why: String,
    },
}

impl MergeView {
    /// The fields that are asked for.
    pub(crate) const FIELDS: &str = "mergeStateStatus,reviewDecision,statusCheckRollup";

    /// Decides whether to ask for the merge. Every check counts, required or not: a red one is told to a person.
    pub fn judge(&self) -> Mergeability {
        let named = |wanted: Progress| {
            let found = self.status_check_rollup.iter().filter(|one| one.progress() == wanted);
            found.map(CheckState::shown).collect::<Vec<_>>().join(", ")
        };
        let (failed, running) = (named(Progress::Failed), named(Progress::Running));
        let waits = |why: &str| Mergeability::Waits { why: why.to_owned() };
        let refused = |why: &str| Mergeability::Refused { why: why.to_owned() };
        // First, because a failed check must be mended whatever else is missing.
        if !failed.is_empty() {
            return Mergeability::Refused { why: format!("a check failed: {failed}") };
        }
        if self.merge_state_status == "DIRTY" {
            return refused("it conflicts with its base");
        }
        if self.review_decision.as_deref() == Some("CHANGES_REQUESTED") {
            return refused("a reviewer asked for changes");
        }
        if !running.is_empty() {
            return Mergeability::Waits { why: format!("checks are still running: {running}") };
        }
        if self.review_decision.as_deref() == Some("REVIEW_REQUIRED") {
            return waits("a review is required");
        }
        match self.merge_state_status.as_str() {
            "BEHIND" => {
                refused("its branch is behind the base, which the forge requires it to have")
            }
            "BLOCKED" => waits("the forge's rules for the branch do not let it"),
            "UNKNOWN" => waits("the forge has not decided yet whether it merges"),
            "DRAFT" => waits("it is a draft"),
            // `CLEAN`, `UNSTABLE`, `HAS_HOOKS`, or a word of a later forge. The forge decides: it refuses what
            // its rules forbid (decision 046).
            _ => Mergeability::Ready,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Passed,
    Running,
    Failed,
}

impl CheckState {
    fn progress(&self) -> Progress {
        // A check that is neither run nor status in a known way has not passed.
        match (self.conclusion.as_deref(), self.state.as_deref()) {
            (Some("SUCCESS" | "NEUTRAL" | "SKIPPED" | "STALE"), _) => Progress::Passed,
            // `gh` prints an empty conclusion for a run that has not ended.
            (Some(word), _) if !word.is_empty() => Progress::Failed,
            (_, Some("SUCCESS")) => Progress::Passed,
            (_, Some("FAILURE" | "ERROR")) => Progress::Failed,
            (_, _) => Progress::Running,
        }
    }

    fn shown(&self) -> String {
        let name = self.name.as_deref().or(self.context.as_deref()).unwrap_or("unnamed");
        name.chars().filter(|c| !c.is_control()).take(60).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(status: &str, review: Option<&str>, checks: &serde_json::Value) -> String {
        let view: MergeView = serde_json::from_value(json!({
            "mergeStateStatus": status, "reviewDecision": review, "statusCheckRollup": checks,
        }))
        .unwrap();
        match view.judge() {
            Mergeability::Ready => "ready".to_owned(),
            Mergeability::Waits { why } => format!("waits: {why}"),
            Mergeability::Refused { why } => format!("refused: {why}"),
        }
    }

    #[test]
    fn checks_come_before_everything_and_an_unknown_word_is_no_success() {
        let run = |status: &str, conclusion: &str| json!({"name": "ci", "status": status, "conclusion": conclusion});
        let context = |state: &str| json!({"context": "legacy", "state": state});
        let table = [
            ("CLEAN", None, json!([]), "ready"),
            ("CLEAN", None, json!([run("COMPLETED", "SUCCESS"), context("SUCCESS")]), "ready"),
            ("UNSTABLE", None, json!([run("COMPLETED", "SKIPPED")]), "ready"),
            ("HAS_HOOKS", Some("APPROVED"), json!([]), "ready"),
            ("UNSTABLE", None, json!([run("COMPLETED", "FAILURE")]), "refused: a check failed: ci"),
            ("CLEAN", None, json!([run("COMPLETED", "UNHEARD_OF")]), "refused: a check failed: ci"),
            ("CLEAN", None, json!([context("ERROR")]), "refused: a check failed: legacy"),
            (
                "BLOCKED",
                None,
                json!([run("IN_PROGRESS", "")]),
                "waits: checks are still running: ci",
            ),
            ("CLEAN", None, json!([context("PENDING")]), "waits: checks are still running: legacy"),
            ("BLOCKED", Some("REVIEW_REQUIRED"), json!([]), "waits: a review is required"),
            (
                "BLOCKED",
                Some("CHANGES_REQUESTED"),
                json!([]),
                "refused: a reviewer asked for changes",
            ),
            ("BLOCKED", None, json!([]), "waits: the forge's rules for the branch do not let it"),
            ("DIRTY", None, json!([run("IN_PROGRESS", "")]), "refused: it conflicts with its base"),
            ("UNKNOWN", None, json!([]), "waits: the forge has not decided yet whether it merges"),
        ];
        for (status, review, checks, expected) in table {
            assert_eq!(judged(status, review, &checks), expected, "{status} {checks}");
        }
    }
}
