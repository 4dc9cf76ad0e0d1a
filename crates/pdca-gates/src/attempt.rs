//! One run of a group of checks, on a checkout verified before and after.

use std::{
    os::unix::fs::MetadataExt as _,
    panic::resume_unwind,
    sync::mpsc,
    thread,
    time::{Duration, SystemTime},
};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use pdca_process::{Ending, Sign};
use pdca_state::{GateResult, chain, files};
use tracing::{Span, debug};

use crate::{
    check::Check,
    config::CheckScope,
    context::{GateContext, TreeFault},
    denied,
    event::GateEvent,
    host_fault::{self, HostFault},
    job::{CUSTODY, CheckAttempt, CheckJob, Ran},
    leftovers::{self, CheckoutState, Extent},
    log::Section,
    preflight::program_fault,
    run::{GateRun, GatesError},
    verdict::{CheckFinding, classify},
};

/// The largest `JUnit` report that is read; a larger one counts as absent.
const LARGEST_REPORT: u64 = 32 << 20;

/// The longest list of jobs that share a checkout.
const LONGEST_CUSTODY: u64 = 1 << 20;

/// The result of one run of a check.
pub(crate) struct Judged {
    pub(crate) finding: CheckFinding,
    pub(crate) duration: Duration,
    /// `None` if nothing was run.
    pub(crate) log: Option<Vec<u8>>,
    pub(crate) truncated: bool,
    /// The error that made the log incomplete, if any.
    pub(crate) log_error: Option<String>,
    pub(crate) reused: bool,
    /// The path outside of its places that it could not write, and the line that would open it.
    pub(crate) denied: Option<String>,
}

impl GateRun<'_, '_> {
    /// Runs each of the checks once, on the same checkout.
    pub(crate) fn turns(
        &mut self,
        checks: &[&Check],
        attempt: CheckAttempt,
    ) -> Result<Vec<Judged>, GatesError> {
        if self.cancel.is_cancelled() {
            return Err(GatesError::Cancelled);
        }
        let change = self.change();
        let job = |check: &&Check| CheckJob::of(check, attempt, &change, self.context);
        let jobs: Vec<CheckJob> = checks.iter().map(job).collect();
        let mut found: Vec<Option<Judged>> = Vec::new();
        for (check, job) in checks.iter().zip(&jobs) {
            // A settled verdict comes first, even before a known green: it is about this very
            // check, and it may be red.
            let known = match job.settled(self.tree.is_some()) {
                // Its verdict is known, but the files that it leaves are not there.
                _ if check.shares && self.wants_products && attempt == CheckAttempt::First => None,
                None if self.is_known_green(check, attempt, &change.tree) => {
                    Some(Judged::known_green())
                }
                Some((ran, void)) => Some(judge(check, ran, None, void.as_ref()).reused()),
                None => self.pick_up(check, job),
            };
            found.push(known);
        }
        let to_run: Vec<(&Check, &CheckJob)> = checks
            .iter()
            .copied()
            .zip(&jobs)
            .zip(&found)
            .filter_map(|(pair, found)| found.is_none().then_some(pair))
            .collect();
        let mut fresh = self.run_fresh(&to_run, attempt)?.into_iter();
        Ok(found
            .into_iter()
            .map(|known| {
                known.unwrap_or_else(|| fresh.next().expect("what is not known has just been run"))
            })
            .collect())
    }

    /// Returns true if the verdict about a combination covers this check. A check that may defer is not covered,
    /// because it does not count there.
    pub(crate) fn is_known_green(&self, check: &Check, attempt: CheckAttempt, tree: &str) -> bool {
        attempt == CheckAttempt::First
            && self.context.known_green == Some(tree)
            && check.scope == CheckScope::Repo
            && check.gating
            && !check.may_defer()
    }

    /// Settles a verdict that an earlier driver left unsettled. That is possible as long as the checkout is as this
    /// very check left it.
    fn pick_up(&mut self, check: &Check, job: &CheckJob) -> Option<Judged> {
        // Once this run has prepared the checkout, it no longer shows what the check of the earlier
        // driver did to it.
        let as_left = !self.touched && self.tree.as_ref()?.is_as_left();
        // A verdict of another job must not be vouched for by this checkout, so the job has to be
        // among those it was handed to.
        let names = as_left.then(|| Custody::of(self.context).names().ok().flatten())??;
        let names: Vec<&str> = names.lines().collect();
        let ran = job.ended().filter(|_| names.contains(&job.name()))?;
        let void = self.void(1);
        // Another check of the group may have been about to undo the change.
        if void.is_some() && names.len() > 1 {
            return None;
        }
        let trouble = self.trouble(check, job, &ran);
        conclude(check, job, ran, trouble.as_ref(), void.as_ref()).ok().map(Judged::reused)
    }

    /// Runs checks without a known result, on a checkout prepared for them or each on its own.
    pub(crate) fn run_fresh(
        &mut self,
        checks: &[(&Check, &CheckJob)],
        attempt: CheckAttempt,
    ) -> Result<Vec<Judged>, GatesError> {
        if checks.is_empty() {
            return Ok(Vec::new());
        }
        if checks.len() > 1 && !checks.iter().all(|(check, _)| check.shares) {
            return self.run_apart(checks, attempt);
        }
        if let Err(finding) = self.begin(checks, attempt) {
            let unrun = checks.iter().map(|_| Judged::unrun(finding.clone()));
            return Ok(unrun.collect());
        }
        let contexts = vec![self.context; checks.len()];
        let ran = self.run_all(checks, &contexts);
        let void = self.void(checks.len());
        self.conclude_all(checks, ran, &vec![void; checks.len()])
    }

    /// Runs the jobs in checkouts that are prepared, each in that of its context, and takes in their reports.
    pub(crate) fn run_all(
        &mut self,
        checks: &[(&Check, &CheckJob)],
        contexts: &[&GateContext<'_>],
    ) -> Vec<Ran> {
        let reports =
            checks.iter().zip(contexts).map(|((check, _), context)| JunitFile::of(check, context));
        // The stamps are taken after the checkout was prepared and before anything starts: a report
        // that is tracked, or that an ignored directory kept, is not this run's.
        let before: Vec<_> = reports.map(|file| file.map(|file| (file.stamp(), file))).collect();
        let mut ran = self.start(checks);
        for (((_, job), ran), before) in checks.iter().zip(&mut ran).zip(before) {
            // A report that the check did not write is from another run.
            if let Some((before, file)) = before
                && file.stamp() != before
                && let Some(report) = file.read()
            {
                job.take_report(ran, &report);
            }
        }
        ran
    }

    /// Judges and settles runs, each with the reason why it does not count, if there is one.
    pub(crate) fn conclude_all(
        &mut self,
        checks: &[(&Check, &CheckJob)],
        ran: Vec<Ran>,
        voids: &[Option<CheckFinding>],
    ) -> Result<Vec<Judged>, GatesError> {
        // Cancelled checks are not settled below, but those that ended before are: the next driver
        // need not run them again.
        let stopped = ran.iter().any(|ran| ran.ending == Ending::Cancelled);
        let mut judged = Vec::with_capacity(ran.len());
        for (((check, job), ran), void) in checks.iter().zip(ran).zip(voids) {
            let trouble = self.trouble(check, job, &ran);
            let denied = denied(job, check, self.context, &ran);
            let one = conclude(check, job, ran, trouble.as_ref(), void.as_ref());
            let one = one.unwrap_or_else(|in_doubt| in_doubt);
            let is_red = one.finding.result != GateResult::Pass;
            judged.push(Judged { denied: denied.filter(|_| is_red), ..one });
        }
        if stopped {
            return Err(GatesError::Cancelled);
        }
        Ok(judged)
    }

    /// Prepares the jobs and the checkout, in an order in which a crash at any point leaves nothing that could be taken
    /// for their result: old verdicts are removed first, then the new owners of the checkout are recorded, then it is
    /// prepared.
    pub(crate) fn begin(
        &mut self,
        checks: &[(&Check, &CheckJob)],
        attempt: CheckAttempt,
    ) -> Result<(), CheckFinding> {
        let failed = |error: std::io::Error| {
            CheckFinding::unverifiable(&format!("not run: {}", chain(&error)))
        };
        for (_, job) in checks {
            job.forget().map_err(failed)?;
        }
        if self.tree.is_some() {
            let names: Vec<&str> = checks.iter().map(|(_, job)| job.name()).collect();
            Custody::of(self.context).hand_to(&names).map_err(failed)?;
        }
        if let Some(home) = self.context.home.as_ref().filter(|_| !self.has_products) {
            home.make().map_err(failed)?;
        }
        self.prepare(attempt)?;
        self.note_state(checks.iter().map(|(check, _)| *check));
        Ok(())
    }

    /// Records the state of the checkout before checks start, if a later run must not see what they leave.
    fn note_state<'c>(&mut self, mut checks: impl Iterator<Item = &'c Check> + Clone) {
        self.before = None;
        let is_again = checks.clone().any(|check| check.confirm || check.fix.is_some());
        let Some(root) = self.context.worktree.filter(|_| self.tree.is_some()) else { return };
        let shares = checks.any(|check| check.shares);
        self.has_products |= shares;
        if self.is_followed || is_again {
            let extent = if shares { Extent::Repository } else { Extent::Checkout };
            // If it cannot be recorded, the next check gets a checkout that is made anew.
            self.before = CheckoutState::take(root, extent, &self.context.caches).ok();
        }
    }

    /// Takes back what the last check left, as far as it is recorded. Returns whether a reset suffices for the rest.
    fn take_back(&mut self) -> bool {
        let (Some(before), Some(root)) = (self.before.take(), self.context.worktree) else {
            return false;
        };
        let Ok(damaged) = before.restore(root, &self.context.caches) else { return false };
        if damaged.is_empty() {
            return true;
        }
        // Files that hydration brought cannot be put back one by one.
        let changed = self.tree.as_mut().and_then(|tree| tree.changed().ok()).unwrap_or_default();
        damaged.iter().all(|path| changed.iter().any(|tracked| tracked.as_std_path() == path))
    }

    /// Runs the jobs, at the same time if there are several.
    pub(crate) fn start(&mut self, checks: &[(&Check, &CheckJob)]) -> Vec<Ran> {
        if let [(check, job)] = checks {
            return vec![job.run(self.cancel, &mut |sign| tell_sign(self.tell, check, sign))];
        }
        thread::scope(|scope| {
            let (signs, heard) = mpsc::channel();
            let mut threads = Vec::new();
            for (check, job) in checks.iter().copied() {
                let (signs, cancel) = (signs.clone(), self.cancel);
                let span = Span::current();
                let watched = move || {
                    let _span = span.entered();
                    // The receiver is gone only if this thread is panicking.
                    job.run(cancel, &mut |sign| drop(signs.send((check, sign))))
                };
                threads.push(thread::Builder::new().spawn_scoped(scope, watched));
            }
            // The loop below ends when the last sender is gone, and this one would never go.
            drop(signs);
            for (check, sign) in heard {
                tell_sign(self.tell, check, sign);
            }
            let mut ran = Vec::with_capacity(checks.len());
            for (thread, (check, job)) in threads.into_iter().zip(checks) {
                ran.push(match thread {
                    Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                    // The host is out of threads, so this check runs after the others.
                    Err(_) => job.run(self.cancel, &mut |sign| tell_sign(self.tell, check, sign)),
                });
            }
            ran
        })
    }

    /// Makes the checkout the expected tree; fails with the reason why the checks cannot run.
    fn prepare(&mut self, attempt: CheckAttempt) -> Result<(), CheckFinding> {
        if self.tree.is_none() {
            return Ok(());
        }
        // A builder or another check may have left files there.
        if let Some(tmp) = self.context.lane.and_then(|lane| lane.tmp.as_deref())
            && !self.has_products
        {
            leftovers::empty(tmp).map_err(|error| {
                CheckFinding::unverifiable(&format!("not run: cannot clear {tmp}: {error}"))
            })?;
        }
        let is_known = self.touched && self.take_back();
        let Some(tree) = &mut self.tree else { return Ok(()) };
        let expected = tree.expected().tree;
        // Nothing ran in it since its owner cleared it.
        let is_cleared = !std::mem::replace(&mut self.touched, true) && !tree.is_as_left();
        let prepared = match attempt {
            // Products of a check before it are part of what a fix is tried with.
            CheckAttempt::Proposal if self.has_products => tree.prepare(),
            // A file left by the first run must not make the second one pass.
            CheckAttempt::Confirm if !self.has_products => tree.prepare_anew(),
            CheckAttempt::First | CheckAttempt::Confirm | CheckAttempt::Proposal
                if is_known || is_cleared =>
            {
                tree.prepare()
            }
            CheckAttempt::First | CheckAttempt::Confirm | CheckAttempt::Proposal
                if self.has_products =>
            {
                let why = "not run: the check before it changed files that cannot be put back beside \
                           what other checks share";
                return Err(CheckFinding::unverifiable(why));
            }
            CheckAttempt::First | CheckAttempt::Confirm | CheckAttempt::Proposal => {
                tree.prepare_anew()
            }
        };
        match prepared {
            // The tree is computed from the files and compared, whatever `prepare` believes it did:
            // a verdict over another tree would certify the wrong change.
            Ok(found) if found == expected => Ok(()),
            Ok(found) => Err(CheckFinding::unverifiable(&format!(
                "not run: the checkout is tree {found:.12}, not {expected:.12}"
            ))),
            Err(fault) => Err(CheckFinding::unverifiable(&format!(
                "not run: cannot prepare the checkout: {}",
                chain(fault.as_ref())
            ))),
        }
    }

    /// Returns the reason why the results of the checks that just ran do not count, if there is one.
    pub(crate) fn void(&mut self, checks: usize) -> Option<CheckFinding> {
        let who = if checks == 1 { "it" } else { "it or a row beside it" };
        void_for(who, self.tree.as_mut()?.changed())
    }

    /// Returns a fault of the host that may explain why a check failed.
    fn trouble(&self, check: &Check, job: &CheckJob, ran: &Ran) -> Option<HostFault> {
        match ran.ending {
            // The host cannot explain these: the check says itself that it passed or could not
            // check, or the driver ended it.
            Ending::Exited(0 | 77)
            | Ending::TimedOut
            | Ending::Stalled
            | Ending::OverMemory { .. }
            | Ending::Cancelled => return None,
            Ending::Exited(_)
            | Ending::Signaled(_)
            | Ending::NotStarted { .. }
            | Ending::Infra { .. } => {}
        }
        if matches!(ran.ending, Ending::Exited(126 | 127) | Ending::NotStarted { .. })
            && let Some(fault) = program_fault(&check.command, check, self.context)
        {
            return Some(HostFault::Program(fault));
        }
        if let Some(why) = &ran.log_error {
            return Some(HostFault::LogLost { why: why.clone() });
        }
        host_fault::full_disk([job.dir()].into_iter().chain(self.context.worktree))
    }

    /// Runs one check once.
    pub(crate) fn attempt(
        &mut self,
        check: &Check,
        attempt: CheckAttempt,
    ) -> Result<Judged, GatesError> {
        let judged = self.turns(&[check], attempt)?.pop();
        Ok(judged.expect("one row gives one result"))
    }
}

/// Returns the reason why results do not count, from the tracked files that are changed in the checkout.
pub(crate) fn void_for(
    who: &str,
    changed: Result<Vec<Utf8PathBuf>, TreeFault>,
) -> Option<CheckFinding> {
    match changed {
        Ok(changed) if changed.is_empty() => None,
        Ok(changed) => Some(CheckFinding::unverifiable(&format!(
            "void: {who} changed tracked files: {}",
            listed(&changed)
        ))),
        Err(fault) => Some(CheckFinding::unverifiable(&format!(
            "void: cannot tell whether {who} changed tracked files: {}",
            chain(fault.as_ref())
        ))),
    }
}

/// The file that names the jobs for which the checkout was last prepared.
struct Custody<'c> {
    jobs: &'c Utf8Path,
}

impl<'c> Custody<'c> {
    fn of(context: &GateContext<'c>) -> Self {
        Self { jobs: context.jobs }
    }

    fn path(&self) -> Utf8PathBuf {
        self.jobs.join(CUSTODY)
    }

    fn names(&self) -> Result<Option<String>, files::FileReadError> {
        let names = files::read_bounded(self.path(), LONGEST_CUSTODY)?;
        Ok(names.map(|names| String::from_utf8_lossy(&names).into_owned()))
    }

    fn hand_to(&self, names: &[&str]) -> std::io::Result<()> {
        fs_err::create_dir_all(self.jobs)?;
        // Not synced: after a loss of power the checkout is not known to be as it was left, and the
        // checks run again.
        files::replace_unsynced(self.path(), names.join("\n").as_bytes())
    }
}

/// The `JUnit` report that a check is declared to write, as it is before and after the run.
struct JunitFile<'c> {
    dir: &'c Utf8Path,
    path: Utf8PathBuf,
}

impl<'c> JunitFile<'c> {
    /// Returns `None` for a check without a report, or without a directory to run in.
    fn of(check: &Check, context: &GateContext<'c>) -> Option<Self> {
        let parts = check.junit.as_ref()?.components();
        let path = parts.filter(|part| matches!(part, Utf8Component::Normal(_))).collect();
        Some(Self { dir: context.cwd(check)?, path })
    }

    /// Returns the identity of the present file, which changes when it is written.
    fn stamp(&self) -> Option<(u64, u64, SystemTime)> {
        let found = fs_err::symlink_metadata(self.dir.join(&self.path)).ok()?;
        Some((found.ino(), found.len(), found.modified().ok()?))
    }

    fn read(&self) -> Option<Vec<u8>> {
        // The check may have left a symbolic link there; it must not lead out of the checkout.
        files::read_within(self.dir, &self.path, LARGEST_REPORT).ok().flatten()
    }
}

impl Judged {
    pub(crate) fn unrun(finding: CheckFinding) -> Self {
        Self {
            finding,
            duration: Duration::ZERO,
            log: None,
            truncated: false,
            log_error: None,
            reused: false,
            denied: None,
        }
    }

    fn known_green() -> Self {
        let evidence = "not run again: these gates were green over exactly this tree";
        Self::unrun(CheckFinding::new(GateResult::Pass, evidence)).reused()
    }

    fn reused(self) -> Self {
        Self { reused: true, ..self }
    }

    /// Returns the output of the run as a section of the check's log.
    pub(crate) fn section(&self, attempt: &str) -> Option<Section> {
        let bytes = self.log.clone()?;
        let title = format!("{attempt}: {}", self.finding.result);
        Some(Section { title, bytes })
    }
}

/// Judges a run and settles its job. A result for which the host is to blame is not settled but returned as the error:
/// it is reported now, but a later run does not reuse it.
#[expect(clippy::result_large_err, reason = "both are the result of a row")]
fn conclude(
    check: &Check,
    job: &CheckJob,
    ran: Ran,
    trouble: Option<&HostFault>,
    void: Option<&CheckFinding>,
) -> Result<Judged, Judged> {
    let declared = matches!(ran.ending, Ending::Exited(0 | 77));
    let is_final = ran.ending.is_final();
    let judged = judge(check, ran, trouble, void);
    debug!(row = check.id, result = %judged.finding.result, took = ?judged.duration, "judged");
    // An `unverifiable` that the check declares is its answer and is kept. One that the host caused
    // is not: on the next run the disk may have room again.
    let decided = declared || void.is_some() || judged.finding.result != GateResult::Unverifiable;
    if is_final && decided {
        job.settle(void);
        Ok(judged)
    } else {
        Err(judged)
    }
}

fn judge(
    check: &Check,
    ran: Ran,
    trouble: Option<&HostFault>,
    void: Option<&CheckFinding>,
) -> Judged {
    let finding = void.cloned().unwrap_or_else(|| classify(&ran.ending, &ran.said, check, trouble));
    Judged {
        finding,
        duration: ran.duration,
        log: Some(ran.log),
        truncated: ran.truncated,
        log_error: ran.log_error,
        reused: false,
        denied: None,
    }
}

/// Returns the path that a check could not write for its sandbox, and the line that would open it.
fn denied(job: &CheckJob, check: &Check, context: &GateContext<'_>, ran: &Ran) -> Option<String> {
    let (cwd, sandbox) = job.confinement()?;
    let primary = || {
        let view = Some(&context.primary).filter(|_| !check.reads_primary)?;
        denied::primary(&ran.log, cwd, view)
    };
    primary().or_else(|| denied::proposal(&ran.log, cwd, context.workspace, sandbox))
}

fn tell_sign(tell: &mut dyn FnMut(GateEvent), check: &Check, sign: Sign) {
    let last_line = match sign {
        Sign::Output { last_line, .. } => Some(last_line),
        Sign::Started { .. } | Sign::Tick => None,
    };
    tell(GateEvent::Alive { rule_id: check.id.clone(), last_line });
}

/// Lists the first few paths and the number of the others.
pub(crate) fn listed(paths: &[Utf8PathBuf]) -> String {
    const SHOWN: usize = 3;
    if paths.is_empty() {
        return "new files only".to_owned();
    }
    let names: Vec<_> = paths.iter().take(SHOWN).map(|path| path.as_str()).collect();
    let more = paths.len().saturating_sub(SHOWN);
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{tail}", names.join(", "))
}
