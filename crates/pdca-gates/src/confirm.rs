//! Confirmation of a red check: when it runs a second time, and which of the two answers counts.
//!
//! A check that asks for it (`confirm = true`) runs again after a failure. A second failure stands.
//! A pass makes the check flaky and counts. No answer, as from a full disk, leaves the first failure.

use pdca_state::GateResult;

use crate::{attempt::Judged, check::Check, log::Section};

/// The attempts of one check so far, and the answer they add up to.
pub(crate) struct CheckHistory {
    pub(crate) judged: Judged,
    pub(crate) log: Vec<Section>,
    pub(crate) notes: Vec<String>,
    pub(crate) flaky: bool,
}

impl CheckHistory {
    pub(crate) fn new(first: Judged) -> Self {
        Self {
            log: first.section("first run").into_iter().collect(),
            judged: first,
            notes: Vec::new(),
            flaky: false,
        }
    }

    pub(crate) fn is_red(&self) -> bool {
        self.judged.finding.result == GateResult::Fail
    }

    pub(crate) fn needs_confirmation(&self, check: &Check) -> bool {
        self.is_red() && check.confirm
    }

    /// Adds the second attempt of a check whose first failed.
    pub(crate) fn confirm(&mut self, second: Judged) {
        self.log.extend(second.section("run again"));
        self.judged.duration += second.duration;
        // Reused only if neither attempt was run now.
        self.judged.reused &= second.reused;
        self.judged.truncated |= second.truncated;
        self.judged.log_error = self.judged.log_error.take().or(second.log_error);
        match second.finding.result {
            GateResult::Pass => {
                self.flaky = true;
                let first = &self.judged.finding.evidence;
                self.notes.push(format!("flaky, first: {first}"));
                self.judged.finding = second.finding;
            }
            GateResult::Fail => self.judged.finding = second.finding,
            // Without an answer the first failure stands, or a host fault would turn red into green.
            GateResult::Unverifiable | GateResult::Deferred | GateResult::None => {
                let second = second.finding.evidence;
                self.notes.push(format!("run again: {second}"));
            }
        }
    }
}
