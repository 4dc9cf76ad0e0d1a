//! The life of a job's runner on a host: lock, signs of life, result under the fence.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::leg::{FileEntry, LegName};
use pdca_state::sha256_hex;

use crate::host_root::{HostRoot, JobDir, JobLock};
use crate::verb::{Assignment, PublishedResult};

/// The interval between two signs of life.
const BEAT: Duration = Duration::from_millis(250);

/// A job that this process runs.
#[derive(Debug)]
pub struct RunningJob {
    root: HostRoot,
    job: JobDir,
    assignment: Assignment,
    log: Mutex<fs_err::File>,
    _lock: JobLock,
}

/// The reason why a process does not run a job.
#[derive(Debug, thiserror::Error)]
pub enum RunJobError {
    /// Another process runs it, which is as good.
    #[error("the job is run by another process")]
    Taken,
    #[error("the job was not staged")]
    Unknown,
    #[error("the job was cancelled, has ended, or is older than the fence")]
    Over,
    #[error("the job's files cannot be used")]
    Io(#[from] io::Error),
}

impl RunningJob {
    /// Takes a staged job. One process has it until it ends, however it ends.
    pub fn take(root: HostRoot, name: &LegName) -> Result<Self, RunJobError> {
        // Leaves the session of whoever started it. Fails where it leads one already, which is as good.
        let _session = rustix::process::setsid();
        let job = root.job(name)?;
        let lock = job.lock()?.ok_or(RunJobError::Taken)?;
        let assignment = job.assignment()?.ok_or(RunJobError::Unknown)?;
        // Looked at under the lock: a `cancel` or a later attempt from here on finds this process
        // and ends it.
        let is_barred = root.fence(name)?.bars(name.generation()).is_some();
        if is_barred || job.cancel_mark().exists() || job.is_published() {
            return Err(RunJobError::Over);
        }
        let log = fs_err::OpenOptions::new().create(true).append(true).open(job.log())?;
        beat_once(&job, 1)?;
        Ok(Self { root, job, assignment, log: Mutex::new(log), _lock: lock })
    }

    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    pub fn dir(&self) -> &JobDir {
        &self.job
    }

    pub fn root(&self) -> &HostRoot {
        &self.root
    }

    /// Appends one line to the log that the driver reads.
    pub fn log(&self, line: &[u8]) -> io::Result<()> {
        let mut log = self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut whole = Vec::with_capacity(line.len() + 1);
        whole.extend_from_slice(line);
        whole.push(b'\n');
        // One write, so that a reader sees whole lines or the beginning of one that goes on.
        log.write_all(&whole)
    }

    /// Returns whether a driver wants the job to end.
    pub fn is_cancelled(&self) -> bool {
        self.job.cancel_mark().exists()
    }

    /// Gives signs of life while `work` runs, and calls `cancelled` once when a driver wants the job to end.
    pub fn alive_while<T>(&self, cancelled: impl Fn() + Sync, work: impl FnOnce() -> T) -> T {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (over, cancelled) = (&over, &cancelled);
            let beating = scope.spawn(move || {
                let mut count = 1;
                let mut is_told = false;
                while !over.load(Ordering::SeqCst) {
                    std::thread::park_timeout(BEAT);
                    count += 1;
                    // A full disk stops the signs of life, and the driver takes the job elsewhere.
                    drop(beat_once(&self.job, count));
                    if !is_told && self.is_cancelled() {
                        cancelled();
                        is_told = true;
                    }
                }
            });
            let done = work();
            over.store(true, Ordering::SeqCst);
            beating.thread().unpark();
            done
        })
    }

    /// Publishes the result, unless a later attempt was announced meanwhile or a driver cancelled the job. Returns
    /// whether it was published.
    pub fn publish(
        &self,
        paths: &[Utf8PathBuf],
        head: Option<&str>,
        outcome: serde_json::Value,
    ) -> io::Result<bool> {
        let name = self.job.name();
        // Before the fence is taken: hashing takes a while, and other requests for the unit wait
        // for the fence.
        let files = entries(&self.job.workspace(), paths)?;
        // Before the result: it is on disk when it is there, and so must be what it names.
        sync_all(&self.job.workspace(), &files)?;
        let head = head.map(str::to_owned);
        let published = PublishedResult { name: name.clone(), files, head, outcome };
        // Held until the result is in place, so that no later attempt is announced between the look
        // and the rename.
        let fence = self.root.fence(name)?;
        if let Some(later) = fence.bars(name.generation()) {
            pdca_state::files::replace(self.job.fenced_mark(), format!("{later}\n").as_bytes())?;
            return Ok(false);
        }
        if self.is_cancelled() {
            return Ok(false);
        }
        self.job.keep_result(&published)?;
        Ok(true)
    }
}

fn beat_once(job: &JobDir, count: u64) -> io::Result<()> {
    pdca_state::files::replace_unsynced(job.beat_file(), format!("{count}\n").as_bytes())
}

/// Brings files and their names to the disk.
fn sync_all(dir: &Utf8Path, files: &[FileEntry]) -> io::Result<()> {
    let paths = || files.iter().map(move |file| dir.join(&file.path));
    for path in paths() {
        fs_err::File::open(path)?.sync_all()?;
    }
    let parents: BTreeSet<Utf8PathBuf> =
        paths().filter_map(|path| path.parent().map(Utf8Path::to_owned)).collect();
    parents.iter().try_for_each(pdca_state::files::sync_dir)
}

/// Describes files by their content. What is no file is left out.
pub(crate) fn entries(dir: &Utf8Path, paths: &[Utf8PathBuf]) -> io::Result<Vec<FileEntry>> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut found = Vec::new();
    for path in paths {
        let file = dir.join(path);
        let about = fs_err::symlink_metadata(&file)?;
        if !about.is_file() {
            continue;
        }
        let digest = sha256_hex(&fs_err::read(&file)?);
        let executable = about.permissions().mode() & 0o111 != 0;
        found.push(FileEntry { path: path.clone(), digest, executable });
    }
    Ok(found)
}
