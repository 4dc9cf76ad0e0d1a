//! Running every check to its result: one code path for a bundle, a working tree and a combination.
//!
//! 1. Checks run one after the other, each on a checkout that is exactly the change under check, without the files that
//!    the checks before it left, unless those share them. Neighbouring checks marked `parallel` run at the same time,
//!    each in a checkout of its own. Those that are also marked `shares` use one checkout together. If that is not
//!    intact afterwards, none of them counts, because the culprit is unknown.
//! 2. The steps after a failure (a second run, a fix) are always done for one check alone.
//! 3. A fix that makes its check pass changes the tree, so the results of the other checks are about another tree: all
//!    checks are gone through again. Those that already ran on the new tree are found by their job directories and not
//!    run twice. Each check may fix once, so this terminates.

use std::fmt;

use camino::Utf8PathBuf;
use pdca_process::Cancel;
use pdca_state::{Bundle, Element, GateReport, GateResult, GateRow, Provenance};

use crate::{
    attempt::{Judged, listed},
    check::{Check, Checks, quoted},
    confirm::CheckHistory,
    context::{Change, GateContext, Tree, TreeFault},
    event::{Again, GateEvent},
    fix::{Fix, Fixes, Fixing},
    job::{CheckAttempt, CheckJob},
    leftovers::CheckoutState,
    log::Section,
    marker::harmless,
    verdict::CheckFinding,
};

/// The result of a run of the gates.
#[derive(Debug)]
pub struct GatesOutcome {
    /// The report, with all eleven elements in order.
    pub report: GateReport,
    /// The accepted fixes, in order. The patch is no longer the one the run began with.
    pub fixes: Vec<Fix>,
    /// Remarks for a person that no check in the report makes.
    pub warnings: Vec<Warning>,
}

/// A remark about a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// No check is configured: the report is a stub.
    NothingConfigured,
    /// Checks are configured, but none of them takes part in this run.
    NothingApplies,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingConfigured => "no gate is configured: nothing real was checked",
            Self::NothingApplies => "none of the configured gates applies: nothing was checked",
        })
    }
}

/// Failure to produce a report.
#[derive(Debug, thiserror::Error)]
pub enum GatesError {
    /// The run was cancelled. Finished checks are found again by the next run.
    #[error("the gates were cancelled before all checks had ended")]
    Cancelled,
    /// The changes of a fix could not be kept or undone.
    #[error("cannot {action} the changes of the fix of `{rule_id}`")]
    Fix {
        /// The id of the check.
        rule_id: String,
        /// The operation, as a verb.
        action: &'static str,
        #[source]
        source: TreeFault,
    },
    /// A log could not be written.
    #[error("cannot write the log {path}")]
    Log {
        path: Utf8PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Runs every check that takes part and reports on all eleven elements.
///
/// The bundle is written only for logs and, through [`Tree::accept`], for fixes, and for neither unless the context
/// allows it; job directories are written in any case. The files that a check leaves in the checkout stay there until
/// the next check; those of the last one are the caller's to remove.
pub fn run_checks(
    checks: &Checks,
    context: &GateContext<'_>,
    tree: Option<&mut (dyn Tree + '_)>,
    cancel: &Cancel,
    tell: &mut dyn FnMut(GateEvent),
) -> Result<GatesOutcome, GatesError> {
    let mut run = GateRun {
        context,
        tree,
        cancel,
        tell,
        fixes: Fixes::default(),
        touched: false,
        before: None,
        has_products: false,
        is_followed: false,
        wants_products: false,
    };
    let chosen: Vec<&Check> =
        checks.as_slice().iter().filter(|check| context.includes(check)).collect();
    let mut warnings = Vec::new();
    let report = if checks.is_empty() {
        warnings.push(Warning::NothingConfigured);
        GateReport::stub(context.name(), run.provenance())
    } else {
        if !chosen.iter().any(|check| check.applies_to(context.brief)) {
            warnings.push(Warning::NothingApplies);
        }
        // Before the first pass: without its record, the tree that an accepted fix made would look
        // like the builder's own change, and the check could fix a second time.
        run.recall_fixes(&chosen);
        // Each further pass needs a fix that was not there before, and a check fixes once, so there
        // are at most as many passes as fixes and one more.
        let checks = loop {
            if let Some(checks) = run.pass(&chosen)? {
                break checks;
            }
        };
        GateReport::assemble(context.name(), checks, run.provenance())
    };
    if let Some(home) = &context.home {
        // What stays behind is removed before the next row, and takes space until then.
        drop(home.remove());
    }
    Ok(GatesOutcome { report, fixes: run.fixes.into_fixes(), warnings })
}

/// Returns the report of a bundle that is closed without a change.
pub fn close_report(bundle: &Bundle) -> GateReport {
    GateReport::for_close(bundle.id().dir_name())
}

/// A run in progress.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the checkout")]
pub(crate) struct GateRun<'r, 't> {
    pub(crate) context: &'r GateContext<'r>,
    pub(crate) tree: Option<&'r mut (dyn Tree + 't)>,
    pub(crate) cancel: &'r Cancel,
    pub(crate) tell: &'r mut dyn FnMut(GateEvent),
    pub(crate) fixes: Fixes,
    /// True once this run has prepared the checkout itself.
    pub(crate) touched: bool,
    /// The checkout as it was before the last check started.
    pub(crate) before: Option<CheckoutState>,
    /// The checkout holds files that a check of this pass shares.
    pub(crate) has_products: bool,
    /// Another check may run after the present one.
    pub(crate) is_followed: bool,
    /// A later check has to run, so a check that shares files runs too.
    pub(crate) wants_products: bool,
}

enum Settled {
    Row(Box<GateRow>),
    /// A fix changed the tree.
    Fixed,
}

impl GateRun<'_, '_> {
    /// Goes through all checks once; `None` if a fix invalidated the results.
    fn pass(&mut self, checks: &[&Check]) -> Result<Option<Vec<(Element, GateRow)>>, GatesError> {
        let n =
            checks.iter().filter(|check| self.context.reason_not_to_run(check).is_none()).count();
        let (mut k, mut at) = (0, 0);
        self.has_products = false;
        let mut done = Vec::with_capacity(checks.len());
        // Only neighbours run together, so that the order of the file is kept.
        let is_together = |a: &Check, b: &Check| a.parallel && b.parallel && a.shares == b.shares;
        let neighbours = checks.chunk_by(|a, b| is_together(a, b));
        for group in neighbours.flat_map(|group| group.chunks(self.context.at_once.max(1))) {
            at += group.len();
            self.is_followed = at < checks.len();
            self.wants_products = group.iter().any(|check| check.shares)
                && checks[at..].iter().any(|later| !self.is_known(later));
            let to_run: Vec<&Check> = group
                .iter()
                .copied()
                .filter(|check| self.context.reason_not_to_run(check).is_none())
                .collect();
            for check in &to_run {
                k += 1;
                (self.tell)(GateEvent::row_started(check, k, n));
            }
            let mut firsts = self.turns(&to_run, CheckAttempt::First)?.into_iter();
            for check in group.iter().copied() {
                let settled = if let Some(finding) = self.context.reason_not_to_run(check) {
                    (self.tell)(GateEvent::row_skipped(check, &finding));
                    Settled::Row(Box::new(unrun_row(check, &finding)))
                } else {
                    let first = firsts.next().expect("every row that runs has a result");
                    self.settle(check, first)?
                };
                match settled {
                    Settled::Row(made) => done.push((check.tier, *made)),
                    // What was done so far is dropped: it is about a tree that is no longer the
                    // bundle's.
                    Settled::Fixed => return Ok(None),
                }
            }
        }
        Ok(Some(done))
    }

    /// Returns true if a check does not have to run, now or at all.
    fn is_known(&self, check: &Check) -> bool {
        let change = self.change();
        self.context.reason_not_to_run(check).is_some()
            || self.is_known_green(check, CheckAttempt::First, &change.tree)
            || CheckJob::of(check, CheckAttempt::First, &change, self.context)
                .settled(self.tree.is_some())
                .is_some()
    }

    /// Completes a check after its first run: confirms, fixes and records it.
    fn settle(&mut self, check: &Check, first: Judged) -> Result<Settled, GatesError> {
        let mut history = CheckHistory::new(first);
        if history.needs_confirmation(check) {
            self.again(check, Again::Confirm);
            history.confirm(self.attempt(check, CheckAttempt::Confirm)?);
        }
        if history.is_red()
            && let Some(fix) = &check.fix
            && self.may_fix(check)
        {
            self.again(check, Again::Fix);
            match self.fix(check, fix, &mut history.log)? {
                Fixing::Kept => return Ok(Settled::Fixed),
                Fixing::Refused(why) => history.notes.push(format!("not fixed: {why}")),
            }
        }
        let made = self.record(check, history)?;
        Ok(Settled::Row(Box::new(made)))
    }

    /// Creates the row of the report, writes the log and reports the event.
    fn record(&mut self, check: &Check, history: CheckHistory) -> Result<GateRow, GatesError> {
        let CheckHistory { judged, mut log, mut notes, flaky } = history;
        let fixed = self.fixes.of(check);
        notes.extend(fixed.map(|fixed| format!("fix changed {}", listed(&fixed.fix.changed))));
        if judged.finding.timed_out {
            notes.push("timeout".to_owned());
        }
        if judged.truncated {
            notes.push("long output, middle not kept".to_owned());
        }
        notes.extend(judged.log_error.map(|why| format!("log not whole: {why}")));
        if let Some(denied) = judged.denied.filter(|_| judged.finding.result != GateResult::Pass) {
            log.push(Section::note(&denied));
            notes.push(denied.clone());
            (self.tell)(GateEvent::Denied { rule_id: check.id.clone(), line: denied });
        }
        let made = GateRow {
            duration_ms: u64::try_from(judged.duration.as_millis()).ok(),
            flaky,
            fixed: fixed.is_some() && judged.finding.result == GateResult::Pass,
            note: (!notes.is_empty()).then(|| harmless(notes.join("; ").as_bytes())),
            log: self.keep_log(check, judged.finding.result, log)?,
            reproduce: self.reproduce(check, judged.finding.result),
            ..unrun_row(check, &judged.finding)
        };
        (self.tell)(GateEvent::row_ended(&made, judged.duration, judged.reused));
        Ok(made)
    }

    /// Returns the command that runs a failed check of a bundle by itself, on the same change.
    fn reproduce(&self, check: &Check, result: GateResult) -> Option<String> {
        let bundle = self.context.bundle.filter(|_| result == GateResult::Fail)?;
        let (id, check) = (quoted(bundle.id().as_str()), quoted(&check.id));
        Some(format!("pdca gates {id} --row {check}"))
    }

    fn again(&mut self, check: &Check, why: Again) {
        let rule_id = check.id.clone();
        (self.tell)(GateEvent::RowAgain { rule_id, why });
    }

    /// Returns the change under check.
    pub(crate) fn change(&self) -> Change {
        self.tree.as_ref().map_or_else(
            || Change {
                tree: String::new(),
                patch_digest: self.context.patch_digest.map(ToOwned::to_owned),
            },
            |tree| tree.expected(),
        )
    }

    fn provenance(&self) -> Provenance {
        Provenance {
            patch_digest: self.change().patch_digest,
            base: self.context.base.map(ToOwned::to_owned),
        }
    }
}

/// Returns the row of the report for a check that was not run.
fn unrun_row(check: &Check, finding: &CheckFinding) -> GateRow {
    GateRow {
        check: check.check(),
        result: finding.result,
        oracle: check.command.shown(),
        rule_id: check.id.clone(),
        path_line: finding.evidence.clone(),
        failing: finding.failing.names.clone(),
        failing_more: finding.failing.more,
        // A check that does not apply to this change does not gate it.
        gating: check.gating && finding.result != GateResult::None,
        reads_primary: check.reads_primary,
        ..GateRow::none(check.tier)
    }
}
