//! The far side: answers one request on a host.
//!
//! Every verb may be asked again after a lost answer. What an effect needs is on disk before it, in this order:
//!
//! 1. `stage` stores contents, then objects with a ref that keeps them, then the assignment.
//! 2. `start` raises the fence, lays out the workspace under another name and renames it, and starts the runner. Only
//!    the runner that gets the job's lock works, so two starts are one job.
//! 3. The runner publishes its result by one rename, under the fence. A result is never half there.
//! 4. `cancel` leaves its mark before it ends anything, so nothing starts the job again.

use std::io;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use pdca_driver::leg::LegName;
use pdca_process::GitCallError;
use pdca_state::chain;

use crate::engine;
use crate::host_root::{HostRoot, JobDir, read_text};
use crate::objects;
use crate::offer::{OfferContext, offer, running};
use crate::verb::{
    CollectRequest, Collected, JobState, Needs, ReapRequest, StageRequest, StartRequest,
    VerbRefusal, VerbRequest, VerbResponse, WatchRequest, WatchResponse,
};
use crate::wire::WireMessage;

/// The time within which a started runner has to take its lock.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
/// The time for an orderly end before everything is killed. Twice as long is waited after the kill,
/// because the supervisors of the leaves may need ten seconds to end their trees.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// The interval between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// The time for which lines are gathered into one answer: an agent that prints without pause would cost a request for each
/// line.
const GATHER: Duration = Duration::from_millis(250);
/// The longest part of a log in one answer.
const MAX_LOG: u64 = 1 << 20;

/// The far side of one host.
#[derive(Debug)]
pub struct HostAgent<'a> {
    root: HostRoot,
    about: OfferContext<'a>,
    /// Runs a job; the name of the job is added.
    runner: Vec<String>,
}

/// The reason why a request has no effect: a refusal, or an error of the host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error(transparent)]
    Refused(#[from] VerbRefusal),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Git(#[from] GitCallError),
    #[error(transparent)]
    Tool(#[from] pdca_process::ToolError),
}

impl<'a> HostAgent<'a> {
    /// Makes the far side of a directory. `runner` is the command line that runs a job of it.
    pub fn new(root: HostRoot, about: OfferContext<'a>, runner: Vec<String>) -> Self {
        Self { root, about, runner }
    }

    /// Answers one request.
    pub fn answer(&self, request: WireMessage<VerbRequest>) -> (VerbResponse, Vec<Vec<u8>>) {
        match self.carry_out(request) {
            Ok(answer) => answer,
            Err(AgentError::Refused(refusal)) => (VerbResponse::Refused(refusal), Vec::new()),
            Err(error) => {
                (VerbResponse::Refused(VerbRefusal::Host { said: chain(&error) }), Vec::new())
            }
        }
    }

    fn carry_out(
        &self,
        WireMessage { head, parts }: WireMessage<VerbRequest>,
    ) -> Result<(VerbResponse, Vec<Vec<u8>>), AgentError> {
        let alone = |response| (response, Vec::new());
        match head {
            VerbRequest::Offer(request) => {
                Ok(alone(VerbResponse::Offer(Box::new(offer(&self.root, &request, self.about)))))
            }
            VerbRequest::Stage(request) => self.stage(&request, parts).map(alone),
            VerbRequest::Start(request) => self.start(&request).map(alone),
            VerbRequest::Watch(request) => self.watch(&request),
            VerbRequest::Cancel { name } => self.cancel(&name).map(alone),
            VerbRequest::Collect(request) => self.collect(&request),
            VerbRequest::Reap(request) => self.reap(&request).map(alone),
        }
    }

    fn stage(
        &self,
        request: &StageRequest,
        parts: Vec<Vec<u8>>,
    ) -> Result<VerbResponse, AgentError> {
        let StageRequest { assignment, has_pack } = request;
        let name = &assignment.job.name;
        self.require_current(name)?;
        let mut parts = parts.into_iter();
        let pack = if *has_pack { parts.next() } else { None };
        for content in parts {
            self.root.keep_content(&pdca_state::sha256_hex(&content), &content)?;
        }
        let mut needs = Needs::default();
        for entry in &assignment.files {
            crate::host_root::require_inside(&entry.path)?;
            if !self.root.use_content(&entry.digest, self.about.clock)
                && !needs.contents.contains(&entry.digest)
            {
                needs.contents.push(entry.digest.clone());
            }
        }
        if let Some(wanted) = &assignment.objects {
            let repository = self.root.repository(&wanted.repository)?;
            fs_err::create_dir_all(self.root.repositories())?;
            objects::require_repository(&repository, &wanted.format, &wanted.shallow)?;
            if let Some(pack) = pack {
                pdca_driver::leg::unpack(&repository, pack)?;
                objects::keep(&repository, &wanted.commits)?;
            }
            if !objects::keeps_all(&repository, &wanted.commits)? {
                needs.have = Some(objects::kept(&repository)?);
            }
        }
        if needs != Needs::default() {
            return Ok(VerbResponse::Needs(needs));
        }
        let job = self.root.job(name)?;
        // A second `stage` does not change what a runner may already work with.
        if job.assignment()?.is_none() {
            job.keep_assignment(assignment)?;
        }
        Ok(VerbResponse::Staged)
    }

    /// Refuses an attempt that is older than one that this host was told of.
    fn require_current(&self, name: &LegName) -> Result<(), AgentError> {
        let fence = self.root.fence(name)?;
        match fence.bars(name.generation()) {
            None => Ok(()),
            Some(fence) => Err(VerbRefusal::Fenced { given: name.generation(), fence }.into()),
        }
    }

    fn start(&self, request: &StartRequest) -> Result<VerbResponse, AgentError> {
        let name = &request.name;
        let job = self.require_job(name)?;
        // Before the older attempts are ended: from here on none of them can publish.
        self.announce(name)?;
        self.end_older(name)?;
        let engine = request.engine.engine();
        // Held until the runner counts as running: of two starts at once both would find the last
        // slot free. Taken before the fence, for which the runner waits while its start waits for it.
        let slots = if engine.has_queue() { None } else { Some(self.root.slots()?) };
        // Held until the runner is started, so that of two requests one starts it and the other one finds it.
        let fence = self.root.fence(name)?;
        if let Some(fence) = fence.bars(name.generation()) {
            return Err(VerbRefusal::Fenced { given: name.generation(), fence }.into());
        }
        if job.cancel_mark().exists() {
            return Err(VerbRefusal::Cancelled.into());
        }
        if job.is_published() || engine::is_alive(&job)? {
            return Ok(VerbResponse::Started { already: true });
        }
        if slots.is_some() && running(&self.root) >= request.slots {
            return Err(VerbRefusal::Busy { slots: request.slots }.into());
        }
        self.lay_out(&job)?;
        // Of a runner that died: it would be taken for a sign of life of the new one.
        job.forget_beat()?;
        // Before the start: after an interrupted start the state is asked of the right engine.
        fs_err::write(
            job.engine_choice(),
            serde_json::to_vec(&request.engine).map_err(io::Error::other)?,
        )?;
        let mut argv = self.runner.clone();
        argv.push(name.to_string());
        engine.start(&job, &argv)?;
        // The runner takes the fence when it publishes, which may be at once.
        drop(fence);
        if slots.is_some() {
            await_runner(&job)?;
        }
        Ok(VerbResponse::Started { already: false })
    }

    /// Raises the fence of a job's unit to its generation, unless a later one was announced.
    fn announce(&self, name: &LegName) -> Result<(), AgentError> {
        let mut fence = self.root.fence(name)?;
        match fence.bars(name.generation()) {
            None => Ok(fence.raise(name.generation())?),
            Some(fence) => Err(VerbRefusal::Fenced { given: name.generation(), fence }.into()),
        }
    }

    /// Ends older attempts at the same unit. They can no longer publish, and each would keep a slot until its own end,
    /// for which the later attempt would have to wait. The fence is not held, because a runner that is about to publish
    /// waits for it.
    fn end_older(&self, name: &LegName) -> Result<(), AgentError> {
        for job in self.root.list_jobs()? {
            if is_older(job.name(), name) {
                end(&job)?;
            }
        }
        Ok(())
    }

    /// Makes the workspace of a job, whole or not at all. A workspace that a runner has worked in is kept.
    fn lay_out(&self, job: &JobDir) -> Result<(), AgentError> {
        if job.workspace().exists() {
            return Ok(());
        }
        let unknown = || VerbRefusal::Unknown { name: job.name().clone() };
        let assignment = job.assignment()?.ok_or_else(unknown)?;
        let fresh = job.path().join("workspace.new");
        if fresh.exists() {
            fs_err::remove_dir_all(&fresh)?;
        }
        fs_err::create_dir_all(&fresh)?;
        self.root.lay_out(&assignment.files, &fresh)?;
        fs_err::rename(&fresh, job.workspace())?;
        Ok(())
    }

    fn require_job(&self, name: &LegName) -> Result<JobDir, AgentError> {
        let job = self.root.job(name)?;
        if job.exists() { Ok(job) } else { Err(VerbRefusal::Unknown { name: name.clone() }.into()) }
    }

    /// Waits for something new, and answers soon after there is something, or at once when the job has ended.
    fn watch(&self, request: &WatchRequest) -> Result<(VerbResponse, Vec<Vec<u8>>), AgentError> {
        let job = self.require_job(&request.name)?;
        let deadline = Instant::now() + Duration::from_millis(request.wait_ms);
        let ask_every = engine::engine_of(&job)?.engine().ask_every();
        let mut asked = Instant::now();
        let mut state = engine::state(&job)?;
        let mut gathered_since = None;
        loop {
            // Read after the state was asked for: with a final state this is the whole log.
            let log = read_from(&job.log(), request.offset)?;
            let is_live = matches!(state, JobState::Running | JobState::Queued | JobState::Staged);
            let is_due = !log.is_empty()
                && gathered_since.get_or_insert_with(Instant::now).elapsed() >= GATHER;
            if is_due || !is_live || Instant::now() >= deadline {
                let next = request.offset + log.len() as u64;
                let watched = WatchResponse { state, next, beat: job.beat()? };
                return Ok((VerbResponse::Watched(watched), vec![log]));
            }
            std::thread::sleep(LOOK);
            // An engine is a program, and asking it costs more than a look at a file.
            if job.is_published() || asked.elapsed() > ask_every {
                state = engine::state(&job)?;
                asked = Instant::now();
            }
        }
    }

    fn cancel(&self, name: &LegName) -> Result<VerbResponse, AgentError> {
        let job = self.root.job(name)?;
        if !job.exists() {
            return Ok(VerbResponse::Cancelled);
        }
        end(&job)?;
        Ok(VerbResponse::Cancelled)
    }

    fn collect(
        &self,
        request: &CollectRequest,
    ) -> Result<(VerbResponse, Vec<Vec<u8>>), AgentError> {
        let job = self.require_job(&request.name)?;
        // Also for a result that was published in time: the driver that asks has given the attempt
        // up, or another one has taken the run over.
        self.require_current(&request.name)?;
        let published = job.published()?.ok_or(VerbRefusal::NoResult)?;
        let (mut contents, mut parts) = (Vec::new(), Vec::new());
        for entry in &published.files {
            if request.known.contains(&entry.digest) || contents.contains(&entry.digest) {
                continue;
            }
            let bytes = fs_err::read(job.workspace().join(&entry.path))?;
            if pdca_state::sha256_hex(&bytes) != entry.digest {
                let said = format!("{} changed after the job ended", entry.path);
                return Err(VerbRefusal::Host { said }.into());
            }
            contents.push(entry.digest.clone());
            parts.push(bytes);
        }
        let has_pack = published.head.is_some();
        if has_pack {
            parts.push(fs_err::read(job.pack())?);
        }
        Ok((VerbResponse::Collected(Box::new(Collected { published, contents, has_pack })), parts))
    }

    fn reap(&self, request: &ReapRequest) -> Result<VerbResponse, AgentError> {
        for name in &request.current {
            // All fences before any removal: an older attempt that another request is starting is
            // refused.
            self.root.fence(name)?.raise(name.generation())?;
        }
        let mut gone = Vec::new();
        for job in self.root.list_jobs()? {
            let name = job.name();
            if request.current.iter().any(|current| is_older(name, current))
                || request.taken.contains(name)
                || request.over.iter().any(|run| run == name.run())
            {
                end(&job)?;
                // Leaves may have made directories that cannot be removed in the ordinary way.
                pdca_lanes::discard(job.path(), &self.root.discarded())?;
                gone.push(name.clone());
            }
        }
        if let Some(days) = request.older_than_days {
            crate::sweep::sweep(&self.root, days, self.about.clock)?;
        }
        Ok(VerbResponse::Reaped { jobs: gone })
    }
}

/// Returns whether a job is an earlier attempt at the unit of another.
fn is_older(name: &LegName, than: &LegName) -> bool {
    (name.run(), name.unit()) == (than.run(), than.unit()) && name.generation() < than.generation()
}

/// Waits until the runner has the job's lock, or has ended already.
fn await_runner(job: &JobDir) -> Result<(), AgentError> {
    let deadline = Instant::now() + STARTS_WITHIN;
    while Instant::now() < deadline {
        // The file says that a runner had the lock, and so tells one that died from one that is not up yet.
        if job.beat_file().exists() || job.is_published() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(VerbRefusal::NotStarted { said: tail(&job.output()) }.into())
}

/// Ends a job for good, and returns when nothing of it is alive.
fn end(job: &JobDir) -> Result<(), AgentError> {
    pdca_state::files::replace(job.cancel_mark(), b"")?;
    let mut asked = false;
    let begun = Instant::now();
    while engine::is_alive(job)? {
        let engine = engine::engine_of(job)?;
        let is_late = begun.elapsed() > ENDS_WITHIN;
        if !asked || is_late {
            engine.engine().end(job, is_late)?;
            asked = true;
        }
        if begun.elapsed() > 3 * ENDS_WITHIN {
            return Err(VerbRefusal::Alive.into());
        }
        std::thread::sleep(engine.engine().ask_every());
    }
    Ok(())
}

fn read_from(path: &Utf8Path, offset: u64) -> io::Result<Vec<u8>> {
    use std::io::{Read as _, Seek as _};
    let mut file = match fs_err::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    file.seek(io::SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(MAX_LOG).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the last lines of a file, for an error.
pub(crate) fn tail(path: &Utf8Path) -> String {
    let text = read_text(path).ok().flatten().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;
    use pdca_driver::Terms;
    use pdca_driver::leg::{FileEntry, LegWork, SentLeg};
    use pdca_process::{FileLock, FileLockError, GitCall};

    use super::*;
    use crate::verb::{Assignment, JobEngine, Objects};

    const DAY: i64 = 24 * 60 * 60;
    /// The clock of the host.
    const NOW: i64 = 1000 * DAY;

    struct Scene {
        _dir: tempfile::TempDir,
        root: HostRoot,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = HostRoot::new(Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap());
            Self { _dir: dir, root }
        }

        /// Answers a request on a host whose runner is a shell script, started in the directory of its job.
        fn ask(&self, head: VerbRequest, runner: &str) -> VerbResponse {
            let about = OfferContext { search_path: None, clock: NOW };
            let runner = ["sh", "-c", runner].map(str::to_owned).to_vec();
            let agent = HostAgent::new(self.root.clone(), about, runner);
            agent.answer(WireMessage { head, parts: Vec::new() }).0
        }

        fn stage(
            &self,
            name: &LegName,
            objects: Option<Objects>,
            files: Vec<FileEntry>,
        ) -> VerbResponse {
            let work = LegWork::Attempt { bundle: name.unit().parse().unwrap() };
            let job = SentLeg { name: name.clone(), work, terms: Terms::default() };
            let settings = serde_json::Value::Null;
            let assignment = Assignment { job, objects, files, slot: 0, settings };
            let request = StageRequest { assignment, has_pack: false };
            self.ask(VerbRequest::Stage(Box::new(request)), "exit 1")
        }

        fn start(&self, name: &LegName, slots: u32, runner: &str) -> VerbResponse {
            let (name, engine) = (name.clone(), JobEngine::Process);
            self.ask(VerbRequest::Start(StartRequest { name, slots, engine }), runner)
        }
    }

    fn job(unit: &str) -> LegName {
        format!("pdca-01JD-{unit}-g1").parse().unwrap()
    }

    #[test]
    fn a_commit_is_found_behind_any_number_of_newer_ones() {
        let scene = Scene::new();
        let repository = scene.root.repository("target").unwrap();
        fs_err::create_dir_all(scene.root.repositories()).unwrap();
        objects::require_repository(&repository, "sha1", &[]).unwrap();
        let git = || GitCall::isolated(&repository);
        let tree = git().args(["hash-object", "-t", "tree", "-w", "/dev/null"]).run().unwrap();
        let tree = tree.require("write a tree").unwrap().text();
        let commit = |second: u32| {
            let made = git().args(["commit-tree", tree.as_str(), "-m", "base"]);
            let date = format!("{second} +0000");
            let made = ["GIT_AUTHOR", "GIT_COMMITTER"].iter().fold(made, |made, who| {
                made.env(&format!("{who}_NAME"), "A")
                    .env(&format!("{who}_EMAIL"), "a@example.org")
                    .env(&format!("{who}_DATE"), date.as_str())
            });
            made.run().unwrap().require("commit").unwrap().text()
        };
        let commits: Vec<String> = (0..65).map(|second| commit(1_000_000_000 + second)).collect();
        objects::keep(&repository, &commits).unwrap();
        let objects = Objects {
            repository: "target".to_owned(),
            format: "sha1".to_owned(),
            commits: vec![commits[0].clone()],
            shallow: Vec::new(),
        };
        assert_eq!(scene.stage(&job("7"), Some(objects), Vec::new()), VerbResponse::Staged);
    }

    #[test]
    fn the_start_after_a_death_waits_for_the_new_runner() {
        let scene = Scene::new();
        let name = job("7");
        assert_eq!(scene.stage(&name, None, Vec::new()), VerbResponse::Staged);
        let dir = scene.root.job(&name).unwrap();
        fs_err::write(dir.beat_file(), "3\n").unwrap();
        let runner = "test -e beat || { echo 9 > beat.new; mv beat.new beat; }";
        let started = scene.start(&name, 1, runner);
        assert_eq!(started, VerbResponse::Started { already: false });
        assert_eq!(dir.beat().unwrap(), 9);
    }

    #[test]
    fn a_content_that_is_staged_again_is_not_swept_as_old() {
        let scene = Scene::new();
        let digest = pdca_state::sha256_hex(b"text");
        scene.root.keep_content(&digest, b"text").unwrap();
        assert!(scene.root.use_content(&digest, NOW - 30 * DAY));
        let file = FileEntry { path: "a".into(), digest: digest.clone(), executable: false };
        assert_eq!(scene.stage(&job("7"), None, vec![file]), VerbResponse::Staged);
        let gone = ReapRequest { older_than_days: Some(14), ..ReapRequest::default() };
        let reaped = scene.ask(VerbRequest::Reap(gone), "exit 1");
        assert_eq!(reaped, VerbResponse::Reaped { jobs: Vec::new() });
        assert!(scene.root.use_content(&digest, NOW));
    }

    #[test]
    fn a_start_keeps_others_from_counting_until_its_runner_is_up() {
        let scene = Scene::new();
        let name = job("7");
        assert_eq!(scene.stage(&name, None, Vec::new()), VerbResponse::Staged);
        let dir = scene.root.job(&name).unwrap().path().to_owned();
        let runner = "touch up; until test -e go; do :; done; touch beat";
        let (counted, answer) = std::thread::scope(|scope| {
            let asked = scope.spawn(|| scene.start(&name, 1, runner));
            while !dir.join("up").exists() && !asked.is_finished() {
                std::thread::yield_now();
            }
            let path = scene.root.path().join("slots.lock");
            let counted = FileLock::take(&path, "");
            fs_err::write(dir.join("go"), "").unwrap();
            (counted, asked.join().unwrap())
        });
        assert!(matches!(counted, Err(FileLockError::Held { .. })), "{counted:?}");
        assert_eq!(answer, VerbResponse::Started { already: false });
    }
}
