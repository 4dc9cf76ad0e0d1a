//! The events of a run, reported as they happen.

use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_state::{GateResult, GateRow};

use crate::{check::Check, verdict::CheckFinding};

/// An event of a run. The ids tell checks apart that run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateEvent {
    /// A check is about to run. After a fix all checks start once more.
    RowStarted {
        rule_id: String,
        label: String,
        /// Its position among the checks that run, from 1.
        k: usize,
        /// The number of checks that run.
        n: usize,
    },
    /// A check is not run; the report records that.
    RowSkipped {
        rule_id: String,
        /// The result it gets instead.
        result: GateResult,
        why: String,
    },
    /// A check shows a sign of life.
    Alive {
        rule_id: String,
        /// The last line it printed, if it printed anything since the last sign.
        last_line: Option<String>,
    },
    /// A failed check is confirmed or fixed.
    RowAgain { rule_id: String, why: Again },
    /// A failed check was kept from writing a path outside of its places.
    Denied {
        rule_id: String,
        /// The path, and the line of the configuration that would open it.
        line: String,
    },
    /// A fix was accepted: the patch has changed.
    Fixed {
        /// The check whose fix it was.
        rule_id: String,
        /// The tracked files it changed.
        changed: Vec<Utf8PathBuf>,
    },
    /// A check has its result.
    RowEnded {
        rule_id: String,
        result: GateResult,
        /// One line of evidence.
        evidence: String,
        /// The names of failing tests.
        failing: Vec<String>,
        /// The number of failing tests without a name here.
        failing_more: usize,
        /// The path of the log, relative to the bundle if there is one.
        log: Option<String>,
        /// The command that runs the check again.
        reproduce: Option<String>,
        /// If false, a failure does not block.
        gating: bool,
        /// The total duration of its runs.
        duration: Duration,
        /// True if nothing was run, because an earlier verdict was reused.
        reused: bool,
    },
}

/// The step that follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// The check runs once more.
    Confirm,
    /// The fix runs, then the check.
    Fix,
}

impl GateEvent {
    pub(crate) fn row_started(check: &Check, k: usize, n: usize) -> Self {
        Self::RowStarted { rule_id: check.id.clone(), label: check.label.clone(), k, n }
    }

    pub(crate) fn row_skipped(check: &Check, instead: &CheckFinding) -> Self {
        Self::RowSkipped {
            rule_id: check.id.clone(),
            result: instead.result,
            why: instead.evidence.clone(),
        }
    }

    pub(crate) fn row_ended(check: &GateRow, duration: Duration, reused: bool) -> Self {
        Self::RowEnded {
            rule_id: check.rule_id.clone(),
            result: check.result,
            evidence: check.path_line.clone(),
            failing: check.failing.clone(),
            failing_more: check.failing_more,
            log: check.log.clone(),
            reproduce: check.reproduce.clone(),
            gating: check.gating,
            duration,
            reused,
        }
    }
}
