//! Job results.

use pdca_journal::events::Halt;
use pdca_state::GateReport;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::JobName;

/// The outcome of a job under the job's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobResult {
    pub name: JobName,
    pub outcome: JobOutcome,
}

/// The outcome of a job, one variant for each kind of [`Work`](crate::Work).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JobOutcome {
    /// The band stopped at a person. Its artifacts are in the bundle.
    Band(BandEnd),
    Gated {
        #[serde(deserialize_with = "validated")]
        report: GateReport,
    },
}

/// The end of a band.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BandEnd {
    /// The reason to stop.
    pub halt: Halt,
    /// The number of steps taken; 0 if there was nothing to do.
    pub steps: u32,
    /// True if a gating row is red in the bundle's current report.
    pub red: bool,
}

/// The result belongs to another attempt than the requested one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("stale result: expected {expected}, got {given}")]
pub struct StaleResult {
    pub given: JobName,
    pub expected: JobName,
}

impl JobResult {
    /// Returns the outcome if the result is of exactly the attempt `expected`.
    pub fn counted_under(self, expected: &JobName) -> Result<JobOutcome, StaleResult> {
        if self.name == *expected {
            return Ok(self.outcome);
        }
        Err(StaleResult { given: self.name, expected: expected.clone() })
    }
}

/// Deserializes a report through the parser of `check-gates.json`, which rejects reports that contradict themselves.
fn validated<'de, D: Deserializer<'de>>(from: D) -> Result<GateReport, D::Error> {
    // One parser for both, so that a host cannot send a report that a file could not hold.
    let value = serde_json::Value::deserialize(from)?;
    GateReport::parse(value.to_string().as_bytes()).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use pdca_journal::Generation;

    use super::*;

    fn result(generation: u32) -> JobResult {
        let generation = Generation::new(generation).unwrap();
        let name = JobName::new("01JD", "7", generation).unwrap();
        let end = BandEnd { halt: Halt::AwaitingSignoff, steps: 4, red: false };
        JobResult { name, outcome: JobOutcome::Band(end) }
    }

    #[test]
    fn a_result_of_an_attempt_that_was_given_up_does_not_count() {
        let (old, new) = (result(1), result(2));
        let expected = new.name.clone();
        assert_eq!(new.counted_under(&expected), Ok(result(2).outcome));
        let stale = old.counted_under(&expected).unwrap_err();
        let said = "stale result: expected pdca-01JD-7-g2, got pdca-01JD-7-g1";
        assert_eq!(stale.to_string(), said);
    }

    #[test]
    fn a_result_is_read_back_as_it_was() {
        let report = GateReport::for_close("combined".to_owned());
        let gated = JobResult { outcome: JobOutcome::Gated { report }, ..result(1) };
        for sent in [result(3), gated] {
            let text = serde_json::to_string(&sent).unwrap();
            assert_eq!(serde_json::from_str::<JobResult>(&text).unwrap(), sent);
        }
    }

    #[test]
    fn a_report_that_says_two_things_does_not_arrive() {
        let report = GateReport::for_close("combined".to_owned());
        let gated = JobResult { outcome: JobOutcome::Gated { report }, ..result(1) };
        let mut sent = serde_json::to_value(&gated).unwrap();
        let row = &mut sent["outcome"]["report"]["rows"][0];
        (row["result"], row["gating"]) = ("fail".into(), true.into());
        let error = serde_json::from_value::<JobResult>(sent).unwrap_err().to_string();
        assert!(error.contains("overall is pass, but gating row"), "{error}");
    }
}
