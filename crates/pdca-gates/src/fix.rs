//! The fix of a failed check: tried on the change, kept only if the check passes with it.
//!
//! Each of the three steps may be the last one before a crash:
//!
//! 1. The fix and its check run on a *proposed* tree; the bundle is unchanged.
//! 2. The fix is *recorded* beside the jobs.
//! 3. The tree is *accepted* as the bundle's change.
//!
//! A record whose tree is not the one under check belongs to a fix that was never accepted and is ignored. A run that
//! finds the record of an accepted fix reports that fix as its own.

use camino::{Utf8Path, Utf8PathBuf};
use pdca_process::Ending;
use pdca_state::{GateResult, files, sha256_hex};
use serde::{Deserialize, Serialize};

use crate::{
    check::{Check, Command},
    context::{Change, Purpose, TreeFault},
    event::GateEvent,
    job::{CheckAttempt, CheckJob, FIXED},
    log::{Section, rendered},
    run::{GateRun, GatesError},
};

/// The longest record, and the longest log beside it.
const LONGEST: u64 = 64 << 20;

/// A change by the fix of a check, with which the check passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    /// The id of the check.
    pub rule_id: String,
    /// The tracked files it changed; new files are not among them.
    pub changed: Vec<Utf8PathBuf>,
}

pub(crate) enum Fixing {
    /// The tree was changed.
    Kept,
    /// Nothing was changed, for this reason.
    Refused(String),
}

/// An accepted fix, and the log of its check before the fix.
pub(crate) struct Fixed {
    pub(crate) fix: Fix,
    pub(crate) log: Vec<u8>,
}

/// The fixes that led to the tree under check, in order. Each check has at most one.
#[derive(Default)]
pub(crate) struct Fixes(Vec<Fixed>);

impl Fixes {
    /// Finds the fixes of an earlier run that led to `tree`, by their records.
    fn recall(jobs: &Utf8Path, checks: &[&Check], mut tree: String) -> Self {
        let fixers = checks.iter().filter(|check| check.fix.is_some());
        let mut records: Vec<Record> = fixers
            .filter_map(|check| {
                let (record, _) = places(jobs, &check.id);
                let bytes = files::read_bounded(record, LONGEST).ok().flatten()?;
                serde_json::from_slice(&bytes).ok()
            })
            .collect();
        let mut found = Vec::new();
        // Backwards from the tree, because a record whose tree was never accepted must be left out.
        while let Some(last) = records.iter().position(|record| record.after == tree) {
            let record = records.swap_remove(last);
            let (_, log) = places(jobs, &record.fix.rule_id);
            let log = files::read_bounded(log, LONGEST).ok().flatten();
            tree = record.before;
            found.insert(0, Fixed { fix: record.fix, log: log.unwrap_or_default() });
        }
        Self(found)
    }

    /// Returns the fix that this check already made.
    pub(crate) fn of(&self, check: &Check) -> Option<&Fixed> {
        self.0.iter().find(|fixed| fixed.fix.rule_id == check.id)
    }

    fn push(&mut self, fixed: Fixed) {
        self.0.push(fixed);
    }

    pub(crate) fn into_fixes(self) -> Vec<Fix> {
        self.0.into_iter().map(|fixed| fixed.fix).collect()
    }
}

/// A fix as recorded beside the jobs.
#[derive(Serialize, Deserialize)]
struct Record {
    before: String,
    after: String,
    fix: Fix,
}

impl GateRun<'_, '_> {
    /// Returns true if the check may be fixed: fixing changes the bundle's patch, so the context must allow it, and
    /// each check may fix once.
    pub(crate) fn may_fix(&self, check: &Check) -> bool {
        self.context.may_fix
            && self.context.purpose == Purpose::Bundle
            && self.tree.is_some()
            && self.context.worktree.is_some()
            && self.fixes.of(check).is_none()
    }

    /// Runs the fix and then the check. The change is kept only if the check passes.
    pub(crate) fn fix(
        &mut self,
        check: &Check,
        fix: &Command,
        log: &mut Vec<Section>,
    ) -> Result<Fixing, GatesError> {
        if let Some(why) = self.run_fix(check, fix, log)? {
            return Ok(Fixing::Refused(why));
        }
        let before = self.change();
        // Before the proposal, after which the changes are what is expected and nothing differs any
        // more.
        let changed = self.in_tree(check, "list", |tree| tree.changed())?;
        let proposed = self.in_tree(check, "take over", |tree| tree.propose())?;
        // From here on the tree expects the proposal. Every way out has to accept or withdraw it,
        // or the next check would run on a change that is not the bundle's.
        let refused = match self.try_proposal(check, &before, &proposed, log) {
            Ok(refused) => refused,
            Err(error) => {
                // The run is over; its own error is more useful than one of the withdrawal.
                drop(self.in_tree(check, "take back", |tree| tree.withdraw()));
                return Err(error);
            }
        };
        if let Some(why) = refused {
            self.in_tree(check, "take back", |tree| tree.withdraw())?;
            return Ok(Fixing::Refused(why));
        }
        let fixed = Fixed {
            fix: Fix { rule_id: check.id.clone(), changed },
            log: rendered(std::mem::take(log)),
        };
        self.keep(check, before, proposed, &fixed)?;
        (self.tell)(GateEvent::Fixed {
            rule_id: fixed.fix.rule_id.clone(),
            changed: fixed.fix.changed.clone(),
        });
        self.fixes.push(fixed);
        Ok(Fixing::Kept)
    }

    /// Runs the fix command on the change. Returns the reason if it failed.
    fn run_fix(
        &mut self,
        check: &Check,
        fix: &Command,
        log: &mut Vec<Section>,
    ) -> Result<Option<String>, GatesError> {
        let cwd = self.context.worktree.unwrap_or(self.context.workspace);
        let job = CheckJob::of_fix(fix, check, cwd, self.context);
        if let Err(finding) = self.begin(&[(check, &job)], CheckAttempt::First) {
            return Ok(Some(finding.evidence));
        }
        let ran = self.start(&[(check, &job)]).pop();
        let ran = ran.expect("one job gives one ending");
        // It is meant to change files, so nothing is put back to the state before it.
        self.before = None;
        if ran.ending == Ending::Cancelled {
            return Err(GatesError::Cancelled);
        }
        log.push(Section {
            title: format!("fix: {}: {}", fix.shown(), ran.ending),
            bytes: ran.log,
        });
        let failed = ran.ending != Ending::Exited(0);
        Ok(failed.then(|| format!("the fix command ended with {}", ran.ending)))
    }

    /// Runs the check on the proposed tree. Returns the reason if the proposal must not be kept.
    fn try_proposal(
        &mut self,
        check: &Check,
        before: &Change,
        proposed: &Change,
        log: &mut Vec<Section>,
    ) -> Result<Option<String>, GatesError> {
        if proposed.tree == before.tree {
            return Ok(Some("the fix command changed nothing".to_owned()));
        }
        // A fix that takes the patch back would make most checks pass.
        if proposed.patch_digest.as_deref() == Some(sha256_hex(b"").as_str()) {
            return Ok(Some("the fix undoes the whole change".to_owned()));
        }
        let after = self.attempt(check, CheckAttempt::Proposal)?;
        log.extend(after.section("after the fix"));
        let green = after.finding.result == GateResult::Pass;
        Ok((!green).then(|| format!("still not green: {}", after.finding.evidence)))
    }

    /// Records the fix, then makes it the bundle's.
    fn keep(
        &mut self,
        check: &Check,
        before: Change,
        proposed: Change,
        fixed: &Fixed,
    ) -> Result<(), GatesError> {
        let record = Record { before: before.tree, after: proposed.tree, fix: fixed.fix.clone() };
        let json = serde_json::to_vec(&record).expect("a record is made of texts");
        let (record, log) = places(self.context.jobs, &check.id);
        // The log before the record, and the record before the acceptance: a record that is found
        // has its log, and an accepted fix has its record. Only the record is synced; a lost log
        // costs a section of text.
        files::replace_unsynced(&log, &fixed.log)
            .and_then(|()| files::replace(&record, &json))
            .map_err(|source| fault(check, "record", source.into()))?;
        self.in_tree(check, "keep", |tree| tree.accept())
    }

    /// Performs an operation on the tree, which exists wherever a check is fixed.
    fn in_tree<T>(
        &mut self,
        check: &Check,
        action: &'static str,
        deed: impl FnOnce(&mut dyn crate::Tree) -> Result<T, TreeFault>,
    ) -> Result<T, GatesError> {
        let tree = self.tree.as_mut().expect("only a tree is ever fixed");
        deed(*tree).map_err(|source| fault(check, action, source))
    }

    /// Finds the fixes of an earlier run that led to the tree under check.
    pub(crate) fn recall_fixes(&mut self, checks: &[&Check]) {
        if self.tree.is_none() || self.context.purpose != Purpose::Bundle {
            return;
        }
        self.fixes = Fixes::recall(self.context.jobs, checks, self.change().tree);
    }
}

fn fault(check: &Check, action: &'static str, source: TreeFault) -> GatesError {
    GatesError::Fix { rule_id: check.id.clone(), action, source }
}

/// Returns the paths of the record of a fix and of the log before it.
fn places(jobs: &Utf8Path, rule_id: &str) -> (Utf8PathBuf, Utf8PathBuf) {
    (jobs.join(format!("{FIXED}{rule_id}.json")), jobs.join(format!("{FIXED}{rule_id}.log")))
}
