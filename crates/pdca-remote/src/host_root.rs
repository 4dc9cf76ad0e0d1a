//! The one directory of a host: the program, repositories, contents by digest, jobs and fences.
//!
//! ```text
//! bin/pdca                     the program, the same as the driver's
//! repositories/<name>.git      bare; `refs/pdca/bases/<commit>` keeps what was brought
//! contents/<sha256>            files by their content
//! fences/<run>-<unit>          the highest generation that the host was told of
//! slots.lock                   held while a job is started, so that starts count one after the other
//! lanes/                       private checkouts, warm for the next job
//! jobs/<name>/                 assignment, workspace, log, beat, result
//! ```

use std::fs::File;
use std::io;
use std::time::{Duration, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use pdca_driver::leg::{FileEntry, LegName};
use pdca_journal::Generation;
use pdca_process::{FileLock, FileLockError};
use pdca_state::{files, sha256_hex};

use crate::verb::{Assignment, PublishedResult};

/// The directory of a host.
#[derive(Debug, Clone)]
pub struct HostRoot {
    path: Utf8PathBuf,
}

impl HostRoot {
    /// Creates nothing.
    pub fn new(path: impl Into<Utf8PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The program that a driver puts here.
    pub fn program(&self) -> Utf8PathBuf {
        self.path.join("bin/pdca")
    }

    /// The private checkouts of jobs.
    pub fn lanes(&self) -> Utf8PathBuf {
        self.path.join("lanes")
    }

    pub(crate) fn jobs(&self) -> Utf8PathBuf {
        self.path.join("jobs")
    }

    /// Where a tree goes that could not be removed.
    pub(crate) fn discarded(&self) -> Utf8PathBuf {
        self.path.join("discarded")
    }

    pub(crate) fn contents(&self) -> Utf8PathBuf {
        self.path.join("contents")
    }

    pub(crate) fn repositories(&self) -> Utf8PathBuf {
        self.path.join("repositories")
    }

    /// Returns a bare repository by the name that a driver gave it.
    pub fn repository(&self, name: &str) -> io::Result<Utf8PathBuf> {
        require_plain(name)?;
        Ok(self.repositories().join(format!("{name}.git")))
    }

    /// Returns the directory of a job. It may not exist.
    pub fn job(&self, name: &LegName) -> io::Result<JobDir> {
        let text = name.to_string();
        require_plain(&text)?;
        Ok(JobDir { dir: self.jobs().join(text), name: name.clone() })
    }

    /// Returns the jobs that are here, in name order.
    pub fn list_jobs(&self) -> io::Result<Vec<JobDir>> {
        let entries = match self.jobs().read_dir_utf8() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut jobs = Vec::new();
        for entry in entries {
            if let Ok(name) = entry?.file_name().parse::<LegName>() {
                jobs.push(self.job(&name)?);
            }
        }
        jobs.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(jobs)
    }

    /// Takes the fence of a job's unit. Whoever holds it decides alone.
    pub(crate) fn fence(&self, name: &LegName) -> io::Result<HostFence> {
        let dir = self.path.join("fences");
        fs_err::create_dir_all(&dir)?;
        let unit = format!("{}-{}", name.run(), name.unit());
        require_plain(&unit)?;
        let path = dir.join(unit);
        // A file beside the fence: the fence itself is replaced by a rename, and a lock on the
        // replaced file would hold nothing back.
        let lock = FileLock::wait(&path.with_extension("lock"), "")?;
        let text = read_text(&path)?;
        let at = text.and_then(|text| Generation::new(text.trim().parse().ok()?));
        Ok(HostFence { path, at, _lock: lock })
    }

    /// Takes the right to count the running jobs and to start one more, until the file is dropped.
    pub(crate) fn slots(&self) -> io::Result<FileLock> {
        Ok(FileLock::wait(&self.path.join("slots.lock"), "")?)
    }

    /// Stores content under its digest, which it must have.
    pub(crate) fn keep_content(&self, digest: &str, bytes: &[u8]) -> io::Result<()> {
        if sha256_hex(bytes) != digest {
            return Err(io::Error::other(format!("a content is not of the digest {digest}")));
        }
        fs_err::create_dir_all(self.contents())?;
        // Not synced: the digest is compared again before the content is used.
        files::replace_unsynced(self.contents().join(digest), bytes)
    }

    /// Returns whether a content is here, and sets the time of its last use to `now`, so that a sweep does not take
    /// it for old before the job that needs it is started.
    pub(crate) fn use_content(&self, digest: &str, now: i64) -> bool {
        let path = self.contents().join(digest);
        if require_plain(digest).is_err() || !path.is_file() {
            return false;
        }
        let now = UNIX_EPOCH + Duration::from_secs(now.try_into().unwrap_or(0));
        // A time that cannot be set costs at most a content that is asked for again.
        drop(File::open(&path).and_then(|file| file.set_modified(now)));
        true
    }

    /// Writes the files of an assignment into a directory.
    pub(crate) fn lay_out(&self, entries: &[FileEntry], dir: &Utf8Path) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        for FileEntry { path, digest, executable } in entries {
            require_inside(path)?;
            let bytes = fs_err::read(self.contents().join(digest))?;
            if sha256_hex(&bytes) != *digest {
                // Removed, so that the next `stage` asks for it.
                fs_err::remove_file(self.contents().join(digest))?;
                return Err(io::Error::other(format!("the content {digest} is damaged")));
            }
            let to = dir.join(path);
            fs_err::create_dir_all(to.parent().unwrap_or(dir))?;
            fs_err::write(&to, bytes)?;
            let mode = if *executable { 0o755 } else { 0o644 };
            fs_err::set_permissions(&to, std::fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    }
}

/// Refuses a name that is not one plain file name.
fn require_plain(name: &str) -> io::Result<()> {
    let is_plain = !name.is_empty()
        && !name.starts_with('.')
        && !name.contains(['/', '\\'])
        && !name.contains(|c: char| c.is_control() || c.is_whitespace());
    if is_plain { Ok(()) } else { Err(io::Error::other(format!("{name:?} is no plain name"))) }
}

/// Refuses a path that leads out of its directory.
pub(crate) fn require_inside(path: &Utf8Path) -> io::Result<()> {
    use camino::Utf8Component;
    let is_plain = |part| matches!(part, Utf8Component::Normal(_));
    if !path.as_str().is_empty() && path.components().all(is_plain) {
        return Ok(());
    }
    Err(io::Error::other(format!("{path:?} leads out of the workspace")))
}

pub(crate) fn read_text(path: &Utf8Path) -> io::Result<Option<String>> {
    match fs_err::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Utf8Path) -> io::Result<Option<T>> {
    read_text(path)?.map(|text| serde_json::from_str(&text).map_err(io::Error::other)).transpose()
}

/// The fence of one unit of one run, held until it is dropped.
#[derive(Debug)]
pub(crate) struct HostFence {
    path: Utf8PathBuf,
    at: Option<Generation>,
    _lock: FileLock,
}

impl HostFence {
    /// Returns the generation that bars an attempt, if a later one was announced.
    pub(crate) fn bars(&self, generation: Generation) -> Option<Generation> {
        self.at.filter(|fence| *fence > generation)
    }

    /// Raises the fence. It never goes down.
    pub(crate) fn raise(&mut self, generation: Generation) -> io::Result<()> {
        if self.at.is_none_or(|fence| fence < generation) {
            // Synced before anything relies on it: after a restart of the host an older attempt
            // must still be refused.
            files::replace(&self.path, format!("{generation}\n").as_bytes())?;
            self.at = Some(generation);
        }
        Ok(())
    }
}

/// The directory of one job on a host.
#[derive(Debug, Clone)]
pub struct JobDir {
    dir: Utf8PathBuf,
    name: LegName,
}

/// The right to run a job: held by one process at a time, and released by the kernel with it.
#[derive(Debug)]
pub struct JobLock {
    lock: FileLock,
}

impl JobDir {
    pub fn name(&self) -> &LegName {
        &self.name
    }

    pub fn path(&self) -> &Utf8Path {
        &self.dir
    }

    /// The workspace that the job runs in.
    pub fn workspace(&self) -> Utf8PathBuf {
        self.dir.join("workspace")
    }

    /// The log that a driver reads by offset.
    pub fn log(&self) -> Utf8PathBuf {
        self.dir.join("log")
    }

    /// What the runner printed, for people.
    pub(crate) fn output(&self) -> Utf8PathBuf {
        self.dir.join("output")
    }

    pub(crate) fn cancel_mark(&self) -> Utf8PathBuf {
        self.dir.join("cancelled")
    }

    pub(crate) fn fenced_mark(&self) -> Utf8PathBuf {
        self.dir.join("fenced")
    }

    pub(crate) fn engine_id(&self) -> Utf8PathBuf {
        self.dir.join("engine-id")
    }

    pub(crate) fn engine_choice(&self) -> Utf8PathBuf {
        self.dir.join("engine.json")
    }

    /// Where the runner leaves the new commits.
    pub fn pack(&self) -> Utf8PathBuf {
        self.dir.join("result.pack")
    }

    fn result(&self) -> Utf8PathBuf {
        self.dir.join("result.json")
    }

    /// The file that counts the leaf calls of the job.
    pub fn calls(&self) -> Utf8PathBuf {
        self.dir.join("calls")
    }

    pub(crate) fn beat_file(&self) -> Utf8PathBuf {
        self.dir.join("beat")
    }

    /// Forgets the signs of life of an earlier runner.
    pub(crate) fn forget_beat(&self) -> io::Result<()> {
        match fs_err::remove_file(self.beat_file()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn assignment_file(&self) -> Utf8PathBuf {
        self.dir.join("assignment.json")
    }

    pub(crate) fn exists(&self) -> bool {
        self.dir.is_dir()
    }

    /// Returns the assignment, if the job was staged.
    pub fn assignment(&self) -> io::Result<Option<Assignment>> {
        read_json(&self.assignment_file())
    }

    pub(crate) fn keep_assignment(&self, assignment: &Assignment) -> io::Result<()> {
        fs_err::create_dir_all(&self.dir)?;
        files::replace(self.assignment_file(), &serde_json::to_vec(assignment)?)
    }

    /// Returns the result, if there is one.
    pub fn published(&self) -> io::Result<Option<PublishedResult>> {
        read_json(&self.result())
    }

    pub(crate) fn is_published(&self) -> bool {
        self.result().exists()
    }

    pub(crate) fn keep_result(&self, published: &PublishedResult) -> io::Result<()> {
        files::replace(self.result(), &serde_json::to_vec(published)?)
    }

    /// Takes the right to run the job; `None` if another process has it.
    pub fn lock(&self) -> io::Result<Option<JobLock>> {
        let lock = match FileLock::take(&self.dir.join("lock"), "") {
            Err(FileLockError::Held { .. }) => return Ok(None),
            taken => taken?,
        };
        let pid = rustix::process::getpid().as_raw_pid();
        // Written under the lock. Until then a reader finds the number of an earlier holder.
        fs_err::write(self.dir.join("pid"), format!("{pid}\n"))?;
        Ok(Some(JobLock { lock }))
    }

    /// Returns whether a process of this machine runs the job.
    pub(crate) fn is_locked(&self) -> io::Result<bool> {
        Ok(FileLock::holder(&self.dir.join("lock"))?.is_some())
    }

    /// Returns the process that took the lock last.
    pub(crate) fn pid(&self) -> io::Result<Option<i32>> {
        Ok(read_text(&self.dir.join("pid"))?.and_then(|text| text.trim().parse().ok()))
    }

    /// Returns the count of the runner's signs of life.
    pub(crate) fn beat(&self) -> io::Result<u64> {
        let text = read_text(&self.beat_file())?;
        Ok(text.and_then(|text| text.trim().parse().ok()).unwrap_or(0))
    }
}

impl JobLock {
    /// Gives the right back before the end of the process.
    pub fn release(self) -> io::Result<()> {
        drop(self.lock);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> (tempfile::TempDir, HostRoot) {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        (dir, HostRoot::new(path))
    }

    fn name(generation: u32) -> LegName {
        LegName::new("01JD", "7", Generation::new(generation).unwrap()).unwrap()
    }

    #[test]
    fn a_fence_only_rises_and_bars_what_is_older() {
        let (_dir, root) = root();
        let generation = |number| Generation::new(number).unwrap();
        root.fence(&name(1)).unwrap().raise(generation(3)).unwrap();
        root.fence(&name(1)).unwrap().raise(generation(2)).unwrap();
        let fence = root.fence(&name(5)).unwrap();
        assert_eq!(fence.bars(generation(2)), Some(generation(3)));
        assert_eq!(fence.bars(generation(3)), None);
        assert_eq!(fence.bars(generation(4)), None);
    }

    #[test]
    fn a_path_or_a_name_that_leads_out_is_refused() {
        let (_dir, root) = root();
        for bad in ["", "/etc/passwd", "../x", "a/../b", "./a"] {
            assert!(require_inside(bad.into()).is_err(), "{bad:?}");
        }
        assert!(require_inside("results/issue_7/brief.md".into()).is_ok());
        for bad in ["", "..", "a/b", ".hidden", "a b"] {
            assert!(root.repository(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_job_is_run_by_one_process_at_a_time() {
        let (_dir, root) = root();
        let job = root.job(&name(1)).unwrap();
        fs_err::create_dir_all(job.path()).unwrap();
        assert!(!job.is_locked().unwrap());
        let lock = job.lock().unwrap().unwrap();
        assert!(job.is_locked().unwrap());
        assert!(job.lock().unwrap().is_none());
        lock.release().unwrap();
        assert!(!job.is_locked().unwrap());
    }

    #[test]
    fn content_counts_only_under_its_own_digest_and_a_damaged_one_is_asked_for_again() {
        let (_dir, root) = root();
        let digest = sha256_hex(b"text");
        assert!(root.keep_content(&digest, b"other").is_err());
        root.keep_content(&digest, b"text").unwrap();
        let entry = FileEntry { path: "a/b".into(), digest: digest.clone(), executable: true };
        let out = root.path().join("out");
        root.lay_out(std::slice::from_ref(&entry), &out).unwrap();
        assert_eq!(fs_err::read_to_string(out.join("a/b")).unwrap(), "text");
        fs_err::write(root.contents().join(&digest), "torn").unwrap();
        assert!(root.lay_out(&[entry], &out).is_err());
        assert!(!root.use_content(&digest, 0));
    }
}
