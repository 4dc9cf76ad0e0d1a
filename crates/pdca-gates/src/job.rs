//! One run of one check, in a job directory from which a later driver can reuse the result.
//!
//! The directory is named by a digest over everything that decides what the check reports: the
//! check, the tree it runs on, the patch, the subject of the run, the scripts that the check names
//! and the tests that the bundle brings along. Another change has another name, so a verdict can
//! never count for it (decision 003).
//!
//! 1. The supervisor stores the verdict there.
//! 2. A stamp is added once it is known that the verdict counts: that the check left the tree intact, or what it
//!    changed.
//!
//! A verdict with a stamp is reused without a run. A verdict without one was in doubt when the driver died; the run
//! decides whether it can still be settled. A verdict for which the host is to blame never gets a stamp.

use std::{io, time::Duration};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use pdca_process::{
    Cancel, ChildVerdict, Ending, Sandbox, SandboxMode, Sign, Spec, load_verdict, read_log,
};
use pdca_state::{Artifact, Brief, Bundle, chain, files};
use tracing::debug_span;

use crate::{
    check::{Check, Command},
    config::CheckScope,
    context::{Change, GateContext},
    digest::Digest,
    failing::{Failing, digest_output, read_junit},
    fingerprint::GateHost,
    marker::{MARKERS, MarkedOutput, last_line},
    verdict::CheckFinding,
};

/// The largest test file of a bundle that enters the digest.
const LARGEST_TEST: u64 = 16 << 20;

/// The prefix of the job directories of checks.
const GATE: &str = "gate-";
/// The prefix of the job directories of fixes.
const FIX: &str = "fix-";
/// The prefix of the records of fixes.
pub(crate) const FIXED: &str = "fixed-";
/// The file that lists the jobs that the checkout was last prepared for.
pub(crate) const CUSTODY: &str = "checkout-of";

/// The directory for temporary files of a run, in its job directory. The sandbox opens the same one.
const TMP: &str = "tmp";

/// The longest list of failing tests, in bytes.
const LONGEST_REPORT: u64 = 1 << 16;

/// The longest stamp, in bytes: one line of evidence.
const LONGEST_STAMP: u64 = 4096;

/// The occasion of a run of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckAttempt {
    /// The run that every check gets.
    First,
    /// The second run after a failure.
    Confirm,
    /// The run on a tree that the check's fix has changed, before that change is the bundle's.
    Proposal,
}

#[derive(Debug)]
pub(crate) struct CheckJob {
    spec: Spec,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ending: Ending,
    pub(crate) duration: Duration,
    pub(crate) said: MarkedOutput,
    /// The kept output, byte for byte; empty if it could not be read.
    pub(crate) log: Vec<u8>,
    pub(crate) truncated: bool,
    /// The error that made the log incomplete, if any.
    pub(crate) log_error: Option<String>,
}

impl CheckJob {
    /// Creates the job of a check; the context must have a directory to run it in.
    pub(crate) fn of(
        check: &Check,
        attempt: CheckAttempt,
        change: &Change,
        context: &GateContext<'_>,
    ) -> Self {
        let key = key(check, attempt, change, context);
        // 64 bits of the digest: the name stays short enough for the file system, and only the
        // handful of jobs of one bundle lie beside each other.
        let dir = context.jobs.join(format!("{GATE}{}-{}", check.id, &key[..16]));
        let cwd = context.cwd(check).unwrap_or(context.workspace);
        Self::new(&check.command, check, dir, cwd, context)
    }

    /// Creates the job of a check's fix. A fix acts rather than judges, so its result is never reused.
    pub(crate) fn of_fix(
        fix: &Command,
        check: &Check,
        cwd: &Utf8Path,
        context: &GateContext<'_>,
    ) -> Self {
        let dir = context.jobs.join(format!("{FIX}{}", check.id));
        Self::new(fix, check, dir, cwd, context)
    }

    fn new(
        command: &Command,
        check: &Check,
        dir: Utf8PathBuf,
        cwd: &Utf8Path,
        context: &GateContext<'_>,
    ) -> Self {
        let mut spec = Spec::new(command.argv(), cwd, dir);
        spec.env = context.env_of(check);
        if let Ok(tmp) = std::path::absolute(spec.job.join(TMP)) {
            spec.env = spec.env.with("TMPDIR", tmp);
        }
        spec.fixed_limits = true;
        spec.timeout = Some(check.timeout);
        spec.output = context.output;
        spec.markers = MARKERS.iter().map(ToString::to_string).collect();
        // A check that runs in the workspace reads it; like any other it writes what is listed.
        spec.sandbox = context.sandbox_of(check);
        spec.hold = context.hold.map(ToOwned::to_owned);
        spec.max_memory = context.max_memory;
        spec.supervisor = context.supervisor.clone();
        Self { spec }
    }

    /// Returns the settled result of an earlier run, with the reason why it does not count, if there is one.
    pub(crate) fn settled(&self, in_a_tree: bool) -> Option<(Ran, Option<CheckFinding>)> {
        let ran = self.ended()?;
        let declared = matches!(ran.ending, Ending::Exited(0 | 77));
        match files::read_bounded(self.stamp(), LONGEST_STAMP).ok()? {
            Some(void) if void.is_empty() => Some((ran, None)),
            Some(void) => {
                let void = CheckFinding::unverifiable(&String::from_utf8_lossy(&void));
                Some((ran, Some(void)))
            }
            // Without a tree there is nothing left to verify.
            None => (!in_a_tree && declared).then_some((ran, None)),
        }
    }

    /// Returns the result of an earlier run, settled or not.
    pub(crate) fn ended(&self) -> Option<Ran> {
        // An unreadable verdict counts as missing: the check runs again.
        let verdict = load_verdict(&self.spec.job).ok().flatten()?;
        verdict.ending.is_final().then(|| self.read(verdict))
    }

    /// Removes everything of an earlier run.
    pub(crate) fn forget(&self) -> io::Result<()> {
        // The job has the `TMPDIR` of the check, in which it may leave read-only directories.
        files::remove_tree(&self.spec.job)
    }

    /// Runs the job to its end. A failure to start is an ending like any other.
    pub(crate) fn run(&self, cancel: &Cancel, watch: &mut dyn FnMut(Sign)) -> Ran {
        let failed = |why: String| Ran {
            ending: Ending::Infra { why },
            duration: Duration::ZERO,
            said: MarkedOutput::default(),
            log: Vec::new(),
            truncated: false,
            log_error: None,
        };
        let _span = debug_span!("gate", job = self.name()).entered();
        if let Err(error) = fs_err::create_dir_all(self.spec.job.join(TMP)) {
            return failed(chain(&error));
        }
        pdca_process::run(&self.spec, cancel, watch)
            .map_or_else(|error| failed(chain(&error)), |verdict| self.read(verdict))
    }

    /// Writes the stamp: that the verdict counts, or the reason why not.
    pub(crate) fn settle(&self, void: Option<&CheckFinding>) {
        let void = void.map_or("", |void| void.evidence.as_str());
        // If this fails, the check only runs again.
        drop(files::replace_unsynced(self.stamp(), void.as_bytes()));
    }

    fn read(&self, verdict: ChildVerdict) -> Ran {
        let (log, unread) = match read_log(&self.spec.job) {
            Ok(log) if log.bytes.is_empty() && verdict.output.bytes > 0 => {
                (log.bytes, Some("nothing is left of it".to_owned()))
            }
            Ok(log) => (log.bytes, None),
            Err(error) => (Vec::new(), Some(chain(&error))),
        };
        let marked = verdict.marked.iter().map(String::as_str);
        // Where the log is lost, the supervisor's own last line is left.
        let last_line = match last_line(&log) {
            [] => verdict.output.last_line.as_bytes(),
            line => line,
        };
        let mut said = MarkedOutput::read(marked, last_line);
        if verdict.ending != Ending::Exited(0) {
            // Only of a check that did not pass: the names are evidence of a failure.
            said.digested = digest_output(&log);
            if let Some(reported) = self.reported() {
                said.digested.failing = reported;
            }
        }
        Ran {
            ending: verdict.ending,
            duration: verdict.duration,
            said,
            log,
            truncated: verdict.output.truncated,
            log_error: verdict.output.log_error.or(unread),
        }
    }

    /// Reads the `JUnit` report of the check and keeps the failing tests beside the verdict, because the report itself
    /// goes with the checkout.
    pub(crate) fn take_report(&self, ran: &mut Ran, report: &[u8]) {
        let failing = read_junit(report);
        // The report names tests and decides nothing. A green check whose report has failures is
        // green: the exit status is the verdict.
        if ran.ending == Ending::Exited(0) || failing.is_empty() {
            return;
        }
        if let Ok(text) = serde_json::to_vec(&failing) {
            // If this fails, a later run takes the names from the output.
            drop(files::replace_unsynced(self.report(), &text));
        }
        ran.said.digested.failing = failing;
    }

    fn reported(&self) -> Option<Failing> {
        let text = files::read_bounded(self.report(), LONGEST_REPORT).ok().flatten()?;
        // The file lies where a check without a sandbox can write, so its texts are made printable
        // again.
        serde_json::from_slice::<Failing>(&text).ok().map(Failing::checked)
    }

    fn report(&self) -> Utf8PathBuf {
        self.spec.job.join("failing.json")
    }

    /// Returns the directory the check runs in, and its sandbox.
    pub(crate) fn confinement(&self) -> Option<(&Utf8Path, &Sandbox)> {
        let sandbox =
            self.spec.sandbox.as_ref().filter(|sandbox| sandbox.mode != SandboxMode::Off)?;
        Some((&self.spec.cwd, sandbox))
    }

    pub(crate) fn name(&self) -> &str {
        self.spec.job.file_name().unwrap_or_default()
    }

    pub(crate) fn dir(&self) -> &Utf8Path {
        &self.spec.job
    }

    fn stamp(&self) -> Utf8PathBuf {
        self.spec.job.join("settled")
    }
}

/// Returns the digest over everything that decides what a check reports.
fn key(check: &Check, attempt: CheckAttempt, change: &Change, context: &GateContext<'_>) -> String {
    let mut digest = Digest::default();
    check.add_to(&mut digest);
    digest.text("purpose", context.purpose.as_str());
    // The result of a repository check on a proposed tree stays valid when the tree is accepted. A bundle check must
    // run again, because it has not seen the bundle's new patch.
    let attempt = match (attempt, check.scope) {
        (CheckAttempt::First, _) | (CheckAttempt::Proposal, CheckScope::Repo) => "first",
        (CheckAttempt::Confirm, _) => "confirm",
        (CheckAttempt::Proposal, CheckScope::Bundle) => "proposal",
    };
    digest.text("turn", attempt);
    digest.text("tree", &change.tree);
    digest.text("patch", change.patch_digest.as_deref().unwrap_or_default());
    for (name, value) in context.subject() {
        digest.text(name, &value);
    }
    if check.scope == CheckScope::Bundle
        && let Some(bundle) = context.bundle
        && let Ok(Some(brief)) = bundle.read(Artifact::Brief)
    {
        digest.bytes("brief", &brief);
        add_tests(&mut digest, bundle, &Brief::parse(&String::from_utf8_lossy(&brief)));
    }
    // The kind of sandbox decides what a check can do; the paths do not.
    if let Some(mode) = context.sandbox.as_ref().map(|sandbox| sandbox.mode)
        && mode != SandboxMode::Off
    {
        digest.text("sandbox", mode.as_str());
    }
    let around = GateHost {
        workspace: context.workspace.to_owned(),
        search_path: context.search_path.map(ToOwned::to_owned),
        trees: context.trees.clone(),
        facts: context.facts.clone(),
    };
    around.add_to(&mut digest);
    check.add_programs(&around, &mut digest);
    digest.hex()
}

/// Adds the tests in the bundle itself; those in the checkout are part of the tree.
fn add_tests(digest: &mut Digest, bundle: &Bundle, brief: &Brief) {
    for test in brief.local_test_files() {
        let parts = test.components();
        let test: Utf8PathBuf =
            parts.filter(|part| matches!(part, Utf8Component::Normal(_))).collect();
        match files::read_within(bundle.dir(), &test, LARGEST_TEST) {
            Ok(Some(bytes)) => digest.bytes(&format!("test {test}"), &bytes),
            Ok(None) => {}
            // The error stands for the content.
            Err(error) => digest.text(&format!("unreadable test {test}"), &chain(&error)),
        }
    }
}

/// Removes the verdicts, logs and records of gates in the directory `jobs`. Other jobs there stay, and a missing
/// directory is not an error.
pub fn forget(jobs: &Utf8Path) -> io::Result<()> {
    let entries = match fs_err::read_dir(jobs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == CUSTODY || [GATE, FIX, FIXED].iter().any(|ours| name.starts_with(ours)) {
            if entry.file_type()?.is_dir() {
                files::remove_tree(entry.path())?;
            } else {
                absent_is_fine(fs_err::remove_file(entry.path()))?;
            }
        }
    }
    Ok(())
}

fn absent_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check::tests::check, context::Purpose};

    fn change(tree: &str) -> Change {
        Change { tree: tree.to_owned(), patch_digest: Some("p".to_owned()) }
    }

    #[test]
    fn the_key_follows_what_decides_and_not_where_the_run_is() {
        let dir = tempfile::tempdir().unwrap();
        let here = Utf8Path::from_path(dir.path()).unwrap();
        let context = GateContext::new(Purpose::Bundle, here, here);
        let of = |text: &str, attempt, tree: &str, context: &GateContext<'_>| {
            key(&check(text), attempt, &change(tree), context)
        };
        let plain = of("", CheckAttempt::First, "t1", &context);
        assert_eq!(plain, of("", CheckAttempt::First, "t1", &context));
        assert_ne!(plain, of("", CheckAttempt::First, "t2", &context));
        assert_ne!(plain, of("", CheckAttempt::Confirm, "t1", &context));
        assert_ne!(plain, of("timeout_secs = 1", CheckAttempt::First, "t1", &context));

        let mut moved = context.clone();
        (moved.run, moved.worktree) = (Some("other"), Some(Utf8Path::new("/elsewhere")));
        assert_eq!(plain, of("", CheckAttempt::First, "t1", &moved));
        let mut other = context.clone();
        other.base = Some("abc");
        assert_ne!(plain, of("", CheckAttempt::First, "t1", &other));
        let mut hydrated = context.clone();
        hydrated.facts.insert("hydrate", b"other".to_vec());
        assert_ne!(plain, of("", CheckAttempt::First, "t1", &hydrated));

        assert_eq!(plain, of("", CheckAttempt::Proposal, "t1", &context));
        let bundle = "scope = 'bundle'";
        assert_ne!(
            of(bundle, CheckAttempt::First, "t1", &context),
            of(bundle, CheckAttempt::Proposal, "t1", &context)
        );
    }

    #[test]
    fn only_what_the_gates_left_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let here = Utf8Path::from_path(dir.path()).unwrap();
        forget(&here.join("absent")).unwrap();
        let names = || {
            let entries = fs_err::read_dir(here).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        for job in ["gate-C4-0123", "fix-C4", "builder-0123", "gated", "kept"] {
            fs_err::create_dir(here.join(job)).unwrap();
            fs_err::write(here.join(job).join("verdict.json"), "{}").unwrap();
        }
        for file in ["fixed-C4.json", "fixed-C4.log", CUSTODY, "checkout-of-mine"] {
            fs_err::write(here.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("kept", here.join("gate-link")).unwrap();
        for _ in 0..2 {
            forget(here).unwrap();
            assert_eq!(names(), ["builder-0123", "checkout-of-mine", "gated", "kept"]);
        }
        assert!(here.join("kept/verdict.json").exists());
    }

    #[test]
    fn what_a_check_left_read_only_is_forgotten_too() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let here = Utf8Path::from_path(dir.path()).unwrap();
        let cache = here.join("gate-C4-0123/tmp/cache");
        fs_err::create_dir_all(&cache).unwrap();
        fs_err::write(cache.join("module"), "").unwrap();
        fs_err::set_permissions(&cache, std::fs::Permissions::from_mode(0o555)).unwrap();
        forget(here).unwrap();
        assert!(!here.join("gate-C4-0123").exists());
    }

    #[test]
    fn an_edited_script_is_another_gate() {
        let dir = tempfile::tempdir().unwrap();
        let here = Utf8Path::from_path(dir.path()).unwrap();
        let context = GateContext::new(Purpose::Bundle, here, here);
        let check = check("cmd = './gate.sh --all'");
        let of = || key(&check, CheckAttempt::First, &change("t"), &context);
        let absent = of();
        fs_err::write(here.join("gate.sh"), "true\n").unwrap();
        let first = of();
        fs_err::write(here.join("gate.sh"), "false\n").unwrap();
        assert_ne!(absent, first);
        assert_ne!(first, of());
    }
}
