//! What happens during a run, told as it happens.

use std::time::Duration;

use camino::Utf8PathBuf;
use pdca_state::{GateResult, GateRow};

use crate::{check::Check, verdict::Finding};

/// One thing that happened. Checks that run at the same time are told apart by their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateEvent {
    /// A row's turn has come. After a fix all rows have their turn once more.
    RowStarted {
        /// The row.
        rule_id: String,
        /// What it checks.
        label: String,
        /// Its place among the rows that run, from 1.
        k: usize,
        /// How many rows run.
        n: usize,
    },
    /// A row is not run here; the report says so.
    RowSkipped {
        /// The row.
        rule_id: String,
        /// The result it gets instead.
        result: GateResult,
        /// Why.
        why: String,
    },
    /// A row shows life.
    Alive {
        /// The row.
        rule_id: String,
        /// The last line it printed, if it printed anything since the last sign.
        last_line: Option<String>,
    },
    /// A red row is not done yet.
    RowAgain {
        /// The row.
        rule_id: String,
        /// What is tried.
        why: Again,
    },
    /// A fix was accepted: the patch has changed.
    Fixed {
        /// The row whose fix it was.
        rule_id: String,
        /// The tracked files it changed.
        changed: Vec<Utf8PathBuf>,
    },
    /// A row has its result.
    RowEnded {
        /// The row.
        rule_id: String,
        /// The result.
        result: GateResult,
        /// One line of evidence.
        evidence: String,
        /// The tests that failed.
        failing: Vec<String>,
        /// How many more failed.
        failing_more: usize,
        /// The log, relative to the bundle where there is one.
        log: Option<String>,
        /// The command that runs it again.
        reproduce: Option<String>,
        /// Whether red blocks.
        gating: bool,
        /// How long its runs took.
        duration: Duration,
        /// Whether nothing was run, because an earlier driver's verdict stands.
        reused: bool,
    },
}

/// What is tried about a red row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It runs once more.
    Confirm,
    /// Its fix runs, then the row.
    Fix,
}

impl GateEvent {
    pub(crate) fn row_started(check: &Check, k: usize, n: usize) -> Self {
        Self::RowStarted { rule_id: check.id.clone(), label: check.label.clone(), k, n }
    }

    pub(crate) fn row_skipped(check: &Check, instead: &Finding) -> Self {
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
