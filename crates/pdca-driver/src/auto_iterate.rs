//! Findings that are the builder's own go back to Do without a person, up to `max_auto_iters` in a row.
//!
//! A finding is the builder's where nothing has to be decided: a gating row that failed, or an element of the check
//! matrix that the reviewer failed. As soon as the review, a gate or the builder asks for a person, the whole attempt
//! does. Items that every attempt with this change would have (a protected path, a forecast) ask at the last one.

use pdca_state::declared_dependencies;
use pdca_state::{Artifact, Bundle, GateReport, LoadError, Review, Snapshot, State};

use crate::config::WorkspaceConfig;

/// What the decision looks at.
struct Attempt<'a> {
    gates: &'a GateReport,
    review: Option<&'a Review>,
    /// Whether the builder's notes declare something that a person has to provide.
    needs_outside: bool,
    /// Whether it is the change of the attempt before it.
    is_repeated: bool,
}

/// Returns the findings for which a checked bundle goes back to Do by itself; none where a person is due.
pub(crate) fn auto_findings(
    config: &WorkspaceConfig,
    snapshot: &Snapshot,
) -> Result<Vec<String>, LoadError> {
    let most = config.limits.max_auto_iters;
    let is_due = most > 0 && snapshot.state == State::Checked;
    let (true, Some(gates)) = (is_due, &snapshot.gates) else { return Ok(Vec::new()) };
    let bundle = config.dirs.bundles.bundle(&snapshot.id);
    if bundle.attempts().auto_iterations()? >= most {
        return Ok(Vec::new());
    }
    let Some(patch) = bundle.read(Artifact::Patch)? else { return Ok(Vec::new()) };
    let notes = bundle.read(Artifact::BuildNotes)?.unwrap_or_default();
    let attempt = Attempt {
        gates,
        review: snapshot.review.as_ref(),
        needs_outside: !declared_dependencies(&String::from_utf8_lossy(&notes)).is_empty(),
        is_repeated: is_repeated(&bundle, &patch)?,
    };
    Ok(findings(&attempt))
}

fn is_repeated(bundle: &Bundle, patch: &[u8]) -> Result<bool, LoadError> {
    Ok(bundle.attempts().last()?.is_some_and(|last| last.patch() == Some(patch)))
}

fn findings(attempt: &Attempt<'_>) -> Vec<String> {
    // Without a review it is not known whether a person is asked for anything.
    let Some(review) = attempt.review.filter(|review| review.has_verdict()) else {
        return Vec::new();
    };
    let asks_a_person = review.asks_a_person()
        || attempt.gates.unverifiable().next().is_some()
        || attempt.needs_outside
        // A builder that repeats itself does not get any further alone.
        || attempt.is_repeated;
    if asks_a_person {
        return Vec::new();
    }
    let red = attempt.gates.failed_gating();
    let red = red.map(|row| format!("{} failed: {}", row.rule_id, row.reason()));
    red.chain(review.failures().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREEN: &str = "| C5 Causal adequacy | PASS | read |\n";
    const FAILED: &str = "| C5 Causal adequacy | FAIL | one early |\n";
    const ASKS: &str = "| T4 Contribution | NEEDS-HUMAN | which name? |\n";
    const VALIDATION: &str = "| Validation — fitness-to-purpose | NEEDS-HUMAN | try it |\n";

    fn report(result: &str) -> GateReport {
        let json = format!(
            r#"{{"issue_dir":"issue_7","overall":"{result}","rows":[{{"check":"T3 Runtime","result":"{result}",
            "oracle":"make test","rule_id":"T3-tests","path_line":"2 failed","gating":true,"element":"T3"}}]}}"#
        );
        GateReport::parse(json.as_bytes()).unwrap()
    }

    fn review(rows: &[&str]) -> Review {
        Review::parse(&format!("| Item | Verdict | Basis |\n|---|---|---|\n{}", rows.concat()))
    }

    #[test]
    fn only_findings_that_the_builder_can_mend_go_back_and_never_beside_a_question() {
        let (red, green) = (report("fail"), report("pass"));
        // The gates, the review's rows, and how many findings go back.
        let table: [(&GateReport, &[&str], usize); 8] = [
            (&red, &[GREEN, VALIDATION], 1),
            (&green, &[GREEN, FAILED, VALIDATION], 1),
            (&red, &[GREEN, FAILED, VALIDATION], 2),
            (&green, &[GREEN, VALIDATION], 0),
            (&red, &[GREEN, ASKS, VALIDATION], 0),
            (&green, &[FAILED, ASKS, VALIDATION], 0),
            (&red, &["| nothing | | |\n"], 0),
            (&red, &[], 0),
        ];
        for (gates, rows, expected) in table {
            let review = review(rows);
            for (needs_outside, is_repeated) in [(false, false), (true, false), (false, true)] {
                let attempt = Attempt { gates, review: Some(&review), needs_outside, is_repeated };
                let expected = if needs_outside || is_repeated { 0 } else { expected };
                assert_eq!(findings(&attempt).len(), expected, "{rows:?}");
            }
            let unreviewed =
                Attempt { gates, review: None, needs_outside: false, is_repeated: false };
            assert_eq!(findings(&unreviewed), Vec::<String>::new());
        }
    }
}
