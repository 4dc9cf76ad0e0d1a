//! The record of a conflict: attempts to resolve it, failures and the end.
//!
//! There is one record for each sealed head, in a directory of its own below `.pdca/conflicts/`. It is replaced
//! as a whole before an attempt and after it, so that an attempt is counted even if its driver is killed. Logs
//! of failures are kept beside it. A new seal has a new head and thereby a new record; the old one stays.

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_journal::{Allowance, Clock, Effects, HostScope, Moment, Now, RetryLimits};
use pdca_state::{BundleId, files};
use serde::{Deserialize, Serialize};

use crate::QueueWorkspace;

/// The version of the file format.
const SCHEMA: u32 = 1;
const RECORD: &str = "case.json";
/// The directory for the jobs of attempts.
const JOBS: &str = "jobs";
/// The maximum size, in bytes, of a record or a resolution.
const LARGEST: u64 = 64 << 20;

/// The number of attempts to resolve one sealed change.
pub const MOST_ATTEMPTS: u32 = 5;
/// The number of times an attempt is started, including those that died with their driver.
/// An attempt that died with its driver is not counted as failed, so a resolver that kills its driver each time
/// needs a bound of its own.
const MOST_BEGINNINGS: u32 = 2 * MOST_ATTEMPTS;

/// A conflict of one sealed change with its branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictRecord {
    schema: u32,
    pub id: BundleId,
    pub head: String,
    pub target: String,
    /// The branch name without `refs/heads/`.
    pub branch: String,
    /// The tip of the branch at the last attempt.
    pub tip: String,
    /// The bundles on the other side; empty if it is other commits of the branch.
    pub partners: Vec<BundleId>,
    /// The conflict in one sentence.
    pub said: String,
    /// The number of attempts so far.
    pub attempts: u32,
    /// The number of times an attempt was started.
    begun: u32,
    /// True if the last attempt has not ended.
    pub(crate) open: bool,
    last: Option<Last>,
    pub failures: Vec<FailedAttempt>,
    /// The note of each time that it was unblocked.
    #[serde(default)]
    pub unblocked: Vec<String>,
    pub end: Option<ConflictEnd>,
}

/// The end of the last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Last {
    /// For people.
    wall: String,
    /// For measuring pauses.
    uptime_ms: u64,
    boot: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The tip of the branch.
    pub tip: String,
    /// The failure in one sentence.
    pub what: String,
    pub log: Utf8PathBuf,
}

/// The end of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum ConflictEnd {
    /// All attempts were used. A person decides.
    Blocked {
        /// The evidence for that person.
        evidence: String,
    },
    /// The change has no effect on this commit of the branch.
    Skipped {
        why: String,
        /// The tip of the branch.
        tip: String,
    },
    Resolved {
        /// The number of the attempt.
        attempt: u32,
        /// The commit of the branch that the resolution is based on.
        base: String,
        /// The name of the resolver.
        by: String,
        /// The archived attempt that the resolution replaces, once that is known.
        iteration: Option<u32>,
    },
}

/// The time of the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// Now. An interrupted attempt continues at once.
    Now,
    /// Not before this time, for people.
    At(String),
    /// No further attempt is allowed.
    Never,
}

impl ConflictRecord {
    pub(crate) fn new(id: &BundleId, head: &str, target: &str, branch: &str) -> Self {
        Self {
            schema: SCHEMA,
            id: id.clone(),
            head: head.to_owned(),
            target: target.to_owned(),
            branch: branch.to_owned(),
            tip: String::new(),
            partners: Vec::new(),
            said: String::new(),
            attempts: 0,
            begun: 0,
            open: false,
            last: None,
            failures: Vec::new(),
            unblocked: Vec::new(),
            end: None,
        }
    }

    /// Returns the evidence for a person if the conflict is blocked.
    pub fn block(&self) -> Option<&str> {
        match &self.end {
            Some(ConflictEnd::Blocked { evidence }) => Some(evidence),
            Some(ConflictEnd::Skipped { .. } | ConflictEnd::Resolved { .. }) | None => None,
        }
    }

    /// Returns the commit of the branch on which nothing was left of the change, if it was skipped.
    pub fn skipped_on(&self) -> Option<&str> {
        match &self.end {
            Some(ConflictEnd::Skipped { tip, .. }) => Some(tip),
            Some(ConflictEnd::Blocked { .. } | ConflictEnd::Resolved { .. }) | None => None,
        }
    }

    /// Returns the number of attempts for people.
    pub fn progress(&self) -> String {
        format!("attempts {}/{MOST_ATTEMPTS}", self.attempts)
    }

    /// Records that an attempt starts. An interrupted one continues under its number.
    pub fn begin(&mut self, tip: &str) {
        if !self.open {
            self.attempts += 1;
        }
        self.begun += 1;
        self.open = true;
        tip.clone_into(&mut self.tip);
    }

    /// Records a failed attempt. After the last one the conflict is blocked.
    pub fn fail(&mut self, what: String, log: Utf8PathBuf, now: &BootMoment) {
        self.close(now);
        let (attempt, tip) = (self.attempts, self.tip.clone());
        self.failures.push(FailedAttempt { attempt, tip, what, log });
        if self.attempts >= MOST_ATTEMPTS {
            self.exhaust();
        }
    }

    /// Blocks the conflict, with both sides named in the evidence.
    pub fn exhaust(&mut self) {
        let last = self.failures.last().map_or("it never came to an end", |last| &last.what);
        let evidence = format!("{}; {} and the last: {last}", self.said, self.progress());
        self.end = Some(ConflictEnd::Blocked { evidence });
    }

    /// Records that an attempt ended.
    pub fn close(&mut self, now: &BootMoment) {
        self.open = false;
        self.last = Some(Last {
            wall: now.at.wall.to_string(),
            // Pauses are measured by the uptime of one boot, because the wall clock may be set.
            uptime_ms: u64::try_from(now.at.uptime.as_millis()).unwrap_or(u64::MAX),
            boot: now.boot.clone(),
        });
    }

    /// Removes the block and resets the counters; failures stay on record.
    fn unblock(&mut self, note: Option<&str>) {
        self.unblocked.push(note.unwrap_or_default().to_owned());
        // `last` too, so that the next attempt is due at once.
        (self.attempts, self.begun, self.open, self.last) = (0, 0, false, None);
        self.end = None;
    }

    /// Returns the time of the next attempt.
    pub fn due(&self, first_pause: Duration, now: &BootMoment) -> Due {
        let limits = RetryLimits {
            attempts: MOST_ATTEMPTS,
            absolute: MOST_BEGINNINGS,
            first_pause,
            ..RetryLimits::default()
        };
        // An interrupted attempt has not failed, so it needs no pause.
        if self.open {
            return if self.begun < MOST_BEGINNINGS { Due::Now } else { Due::Never };
        }
        // A time that cannot be read counts as none: the pause is lost and not the attempt.
        let last = self.last.as_ref().and_then(Last::moment);
        let last = last.as_ref().map(BootMoment::now);
        match limits.after(self.attempts, last, self.begun, now.now()) {
            Allowance::Now => Due::Now,
            Allowance::Exhausted => Due::Never,
            Allowance::After(pause) => {
                let at = now.at.wall.checked_add(pause).unwrap_or(now.at.wall);
                Due::At(at.to_string())
            }
        }
    }
}

impl Last {
    fn moment(&self) -> Option<BootMoment> {
        let at =
            Moment { wall: self.wall.parse().ok()?, uptime: Duration::from_millis(self.uptime_ms) };
        Some(BootMoment { at, boot: self.boot.clone() })
    }
}

/// A moment, and the boot in which its uptime was measured.
#[derive(Debug, Clone)]
pub struct BootMoment {
    at: Moment,
    boot: String,
}

impl BootMoment {
    pub fn take(clock: Clock) -> io::Result<Self> {
        Ok(Self { at: clock(), boot: HostScope::here()?.boot })
    }

    fn now(&self) -> Now<'_> {
        Now { at: self.at, boot: &self.boot }
    }
}

/// The directory of a conflict record.
#[derive(Debug, Clone)]
pub struct ConflictDir {
    dir: Utf8PathBuf,
}

impl ConflictDir {
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// Returns the path of the lock that is held while a process of the resolver is alive. It differs from the
    /// lock of the workspace's children, so that an admitted driver need not wait for a resolver.
    pub fn hold(&self) -> Utf8PathBuf {
        self.dir.join("resolver.lock")
    }

    /// Loads the record. A missing one is `None`; an unreadable one is an error, because it counts the attempts.
    pub fn load(&self) -> io::Result<Option<ConflictRecord>> {
        let path = self.dir.join(RECORD);
        let Some(text) = files::read_bounded(&path, LARGEST).map_err(io::Error::other)? else {
            return Ok(None);
        };
        serde_json::from_slice(&text).map(Some).map_err(|source| {
            let what = format!("{path}:{}: {source}", source.line().max(1));
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }

    pub fn store(&self, case: &ConflictRecord) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(case).map_err(io::Error::other)?;
        self.write(RECORD, &text)
    }

    /// Writes a file beside the record.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        fs_err::create_dir_all(&self.dir)?;
        files::replace(self.dir.join(name), bytes)
    }

    /// Returns the directory for the job of an attempt, until its end is on record.
    pub fn job(&self, key: &str) -> Utf8PathBuf {
        self.dir.join(JOBS).join(key)
    }

    /// Removes the jobs of attempts, once their ends are on record.
    pub fn clear_jobs(&self) -> io::Result<()> {
        // Resolvers write here and may leave directories without permissions, which a plain removal fails on.
        pdca_lanes::discard(&self.dir.join(JOBS), &self.dir.join("discarded"))
    }

    /// Removes a file beside the record, if it exists.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match fs_err::remove_file(self.dir.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        files::read_bounded(self.dir.join(name), LARGEST).map_err(io::Error::other)
    }
}

impl ConflictDir {
    fn root(workspace: &QueueWorkspace, id: &BundleId) -> Utf8PathBuf {
        workspace.dirs.private().join("conflicts").join(id.dir_name())
    }

    /// Returns the directory for the conflict of a sealed head.
    pub fn of(workspace: &QueueWorkspace, id: &BundleId, head: &str) -> Self {
        Self { dir: Self::root(workspace, id).join(head) }
    }

    /// Loads every conflict of a bundle, with its directory.
    pub fn all(
        workspace: &QueueWorkspace,
        id: &BundleId,
    ) -> io::Result<Vec<(Self, ConflictRecord)>> {
        let dirs = match Self::root(workspace, id).read_dir_utf8() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            dirs => dirs?,
        };
        let mut found = Vec::new();
        for dir in dirs {
            let dir = Self { dir: dir?.into_path() };
            if let Some(record) = dir.load()? {
                found.push((dir, record));
            }
        }
        Ok(found)
    }
}

/// Loads the record of a conflict to be shown; an unreadable one counts as missing.
pub fn conflict_record(
    workspace: &QueueWorkspace,
    id: &BundleId,
    head: &str,
) -> Option<ConflictRecord> {
    ConflictDir::of(workspace, id, head).load().ok().flatten()
}

/// Loads the blocked conflicts of a bundle to be shown.
pub fn blocked_conflicts(workspace: &QueueWorkspace, id: &BundleId) -> Vec<ConflictRecord> {
    let all = ConflictDir::all(workspace, id).unwrap_or_default().into_iter();
    all.map(|(_, record)| record).filter(|record| record.block().is_some()).collect()
}

/// Unblocks the conflicts of a bundle, so that the resolver is called again. Returns their heads.
pub fn unblock_conflicts(
    workspace: &QueueWorkspace,
    id: &BundleId,
    note: Option<&str>,
    effects: &dyn Effects,
) -> io::Result<Vec<String>> {
    let mut unblocked = Vec::new();
    for (dir, mut record) in ConflictDir::all(workspace, id)? {
        if record.block().is_some() {
            record.unblock(note);
            effects.perform("conflict-unblock", || dir.store(&record))?;
            unblocked.push(record.head);
        }
    }
    Ok(unblocked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(uptime: u64) -> BootMoment {
        let wall = "2026-01-02T03:04:05Z".parse().unwrap();
        let at = Moment { wall, uptime: Duration::from_secs(uptime) };
        BootMoment { at, boot: "b1".into() }
    }

    fn case() -> ConflictRecord {
        let id = "2".parse().unwrap();
        let mut case = ConflictRecord::new(&id, "h", "app", "main");
        case.said = "2 conflicts with 1 in f:1".into();
        case
    }

    const PAUSE: Duration = Duration::from_secs(5);

    #[test]
    fn each_failure_doubles_the_pause_and_the_fifth_blocks_with_both_sides_named() {
        let mut case = case();
        let mut pauses = Vec::new();
        for attempt in 1..=MOST_ATTEMPTS {
            assert_eq!(case.due(PAUSE, &stamp(1_000_000)), Due::Now);
            case.begin("t");
            case.fail(format!("no {attempt}"), "log".into(), &stamp(100));
            pauses.push(case.due(PAUSE, &stamp(100)));
        }
        let at = |text: &str| Due::At(format!("2026-01-02T03:04:{text}Z"));
        assert_eq!(pauses, [at("10"), at("15"), at("25"), at("45"), Due::Never]);
        let block = "2 conflicts with 1 in f:1; attempts 5/5 and the last: no 5";
        assert_eq!(case.block(), Some(block));
        assert_eq!(case.failures.len(), 5);
        case.unblock(Some("mended"));
        assert_eq!((case.due(PAUSE, &stamp(100)), case.failures.len()), (Due::Now, 5));
        assert_eq!(case.unblocked, ["mended"]);
    }

    #[test]
    fn an_attempt_that_was_cut_short_goes_on_under_its_number_but_not_for_ever() {
        let mut case = case();
        for _ in 0..MOST_BEGINNINGS {
            assert_eq!(case.due(PAUSE, &stamp(1)), Due::Now);
            case.begin("t");
            assert_eq!(case.attempts, 1);
        }
        assert_eq!(case.due(PAUSE, &stamp(1)), Due::Never);
    }

    #[test]
    fn what_is_written_is_read_again_and_garbage_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = ConflictDir { dir: Utf8PathBuf::from_path_buf(dir.path().join("c")).unwrap() };
        assert_eq!(file.load().unwrap(), None);
        let mut case = case();
        case.begin("t");
        case.fail("no".into(), "log".into(), &stamp(3));
        case.end = Some(ConflictEnd::Skipped { why: "there".into(), tip: "t".into() });
        file.store(&case).unwrap();
        assert_eq!(file.load().unwrap(), Some(case));
        fs_err::write(file.dir().join(RECORD), "{").unwrap();
        file.load().unwrap_err();
    }
}
