//! Hydration: bringing files into a lane that git does not track, such as local settings, dependencies and warm caches.
//!
//! A fresh checkout has no `.env` and no `node_modules`. Hydration adds, in this order: files that the primary's
//! `.worktreeinclude` or `copy` names, symbolic links, seeds where the lane has none, then runs `install`, then
//! `verify`. Only ignored files are added, so a hydrated lane is as clean as before.
//!
//! ```text
//!            digest of config, files, lock files equals the stamp's, and the files are unchanged
//! no stamp ──────────────────────────────────────────────────────────────────► nothing to do
//!    │ else                                                                          ▲
//!    ▼                                                                               │
//!  begun ── copy, link, seed ── install ── verify passed ── tree is clean ────────► passed
//!    │  ▲
//!    └──┘ found again (after a crash or a failure): ignored files in the lane are removed first
//! ```
//!
//! A lane may be used only after [`Lane::hydrate`] succeeded. After any failure the next call starts from a clean tree.

mod config;
mod failure;
mod place;
mod select;
mod shared;
mod stamp;

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_process::{Cancel, Ending, Env, Sandbox, Sign, Spec, Supervisor, log_path, read_log};
use pdca_state::files;

pub use config::{HydrateConfig, HydrateFault, HydrateProblem, HydrateProgram};
pub use failure::{HydrateError, HydratePhase, Sharer, TreeSide};
pub use place::Placed;

use crate::{
    checkout, claim::MARKER, failure::LaneError, git::GitLocation, history, lane::Lane,
    target::Target, walk::Spare,
};
use config::plain;
use place::Placer;
use select::{FileSelection, INCLUDE, Rules};
pub(crate) use stamp::{HYDRATION, HydrationRecord};
use stamp::{HydrateProgress, HydrateStamp, Left};

/// The largest accepted `.worktreeinclude`, in bytes.
const LARGEST_INCLUDE: u64 = 1 << 20;
/// The number of last log lines that an error carries.
const LAST_LINES: usize = 10;
/// The longest such line, in bytes.
const LONGEST_LINE: usize = 400;

/// The inputs of a hydration.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hydrate<'a> {
    /// The repository whose ignored files are copied.
    pub target: &'a Target,
    /// The files to bring and the commands to run.
    pub config: &'a HydrateConfig,
    /// The environment of the commands, with the lane's [private names](crate::PrivateNames).
    pub env: Env,
    /// The sandbox of the commands.
    pub sandbox: Option<Sandbox>,
    /// The lock that the supervisor of a command holds while any process of it is alive; see
    /// [`Spec::hold`](pdca_process::Spec::hold).
    pub hold: Option<&'a Utf8Path>,
    /// The memory cap of each command, in bytes.
    pub max_memory: Option<u64>,
    /// The program that supervises the commands.
    pub supervisor: Supervisor,
}

impl<'a> Hydrate<'a> {
    /// Describes a hydration as configured, with defaults for everything else.
    pub fn new(target: &'a Target, config: &'a HydrateConfig) -> Self {
        Self {
            target,
            config,
            env: Env::default(),
            sandbox: None,
            hold: None,
            max_memory: None,
            supervisor: Supervisor::default(),
        }
    }

    /// Sets the environment of the commands.
    #[must_use]
    pub fn with_env(self, env: Env) -> Self {
        Self { env, ..self }
    }

    /// Sets the sandbox of the commands.
    #[must_use]
    pub fn with_sandbox(self, sandbox: Sandbox) -> Self {
        Self { sandbox: Some(sandbox), ..self }
    }

    /// Sets the lock that is held while a command runs.
    #[must_use]
    pub fn with_hold(self, hold: &'a Utf8Path) -> Self {
        Self { hold: Some(hold), ..self }
    }

    /// Sets the memory cap of each command, in bytes.
    #[must_use]
    pub fn with_max_memory(self, max_memory: Option<u64>) -> Self {
        Self { max_memory, ..self }
    }

    /// Sets the program that supervises the commands.
    #[must_use]
    pub fn with_supervisor(self, supervisor: Supervisor) -> Self {
        Self { supervisor, ..self }
    }
}

/// The outcome of a successful hydration. In each case the lane can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hydrated {
    /// Nothing is configured and nothing was hydrated before.
    Nothing,
    /// The lane was already hydrated from the same inputs.
    Warm,
    /// The lane was hydrated now.
    Fresh(Placed),
}

/// The progress of the hydration of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HydrationState {
    /// The lane was never hydrated.
    None,
    /// A hydration began and did not pass; the lane must not be used before the next one passes.
    Begun,
    /// The hydration passed.
    Passed,
}

impl Lane {
    /// Brings the untracked files that the lane needs, unless they are already there.
    ///
    /// Must be called after a [`reset`](Self::reset) and before any process runs in the lane; the tree must be clean.
    /// `watch` receives the signs of life of the running command.
    pub fn hydrate(
        &self,
        how: &Hydrate<'_>,
        cancel: &Cancel,
        watch: &mut dyn FnMut(HydratePhase, Sign),
    ) -> Result<Hydrated, HydrateError> {
        Hydration { lane: self, how, record: HydrationRecord::of(&self.record) }.run(cancel, watch)
    }
}

/// A hydration of a lane in progress.
struct Hydration<'a> {
    lane: &'a Lane,
    how: &'a Hydrate<'a>,
    record: HydrationRecord,
}

impl Hydration<'_> {
    fn run(
        &self,
        cancel: &Cancel,
        watch: &mut dyn FnMut(HydratePhase, Sign),
    ) -> Result<Hydrated, HydrateError> {
        let (lane, how) = (self.lane, self.how);
        if let Some(problem) = how.config.validate().into_iter().next() {
            return Err(problem.into());
        }
        let stamp_path = self.record.stamp_path();
        let io = |doing| failed(doing, &stamp_path);
        let earlier = HydrateStamp::load(&stamp_path).map_err(io("read"))?;
        let primary = workdir(how.target)?;
        let selection = self.select(primary.as_deref())?;
        let from = primary.as_deref().unwrap_or(lane.path());
        if earlier.is_none() && how.config.is_empty() && selection.copies.is_empty() {
            return Ok(Hydrated::Nothing);
        }
        let digest = stamp::digest(how.config, &selection, from, lane.path())
            .map_err(failed("read the inputs in", from))?;
        if earlier.as_ref().is_some_and(|stamp| stamp.holds(&digest, lane.path())) {
            return Ok(Hydrated::Warm);
        }
        let dirt = self.dirt()?;
        if !dirt.is_empty() {
            return Err(HydrateError::Unclean { paths: dirt });
        }
        // Half of an earlier hydration may lie there, and its files are not all named in the stamp:
        // `install` leaves others.
        if earlier.as_ref().is_some_and(|stamp| stamp.progress == HydrateProgress::Begun) {
            self.remove_ignored()?;
        }
        fs::create_dir_all(self.record.dir()).map_err(io("make the directory of"))?;
        let begun = HydrateStamp::new(
            HydrateProgress::Begun,
            digest.clone(),
            coming(&selection, earlier.as_ref()),
        );
        // On disk before the first file is put into the lane: from here on a crash is seen as
        // `begun`.
        begun.save(&stamp_path).map_err(io("write"))?;
        let placed = self.put_in_place(from, &selection, earlier.as_ref())?;
        self.run_commands(cancel, watch)?;
        let dirt = self.dirt()?;
        if !dirt.is_empty() {
            return Err(HydrateError::Dirtied { paths: dirt });
        }
        // Seen after the commands, which may have changed a copied file.
        let left = paths(&selection).map(|path| Left::see(lane.path(), path)).collect();
        HydrateStamp::new(HydrateProgress::Passed, digest, left)
            .save(&stamp_path)
            .map_err(io("write"))?;
        Ok(Hydrated::Fresh(placed))
    }

    fn select(&self, primary: Option<&Utf8Path>) -> Result<FileSelection, HydrateError> {
        let HydrateConfig { copy, symlink, seed, .. } = self.how.config;
        let wanted = [copy, symlink, seed].iter().any(|list| !list.is_empty());
        let Some(primary) = primary else {
            let bare = || HydrateError::Bare { primary: self.how.target.path().to_owned() };
            return if wanted { Err(bare()) } else { Ok(FileSelection::default()) };
        };
        // Checked here as well, because git would block on a FIFO.
        let included = files::read_bounded(primary.join(INCLUDE), LARGEST_INCLUDE)
            .map_err(|source| failed("use", primary)(io::Error::other(source)))?
            .is_some();
        if !wanted && !included {
            return Ok(FileSelection::default());
        }
        let theirs = self.how.target.repository();
        let their_index = theirs
            .index_or_empty()
            .map_err(|source| LaneError::objects("read the index of the primary", source))?;
        let own = self.lane.room.enter()?;
        let own_index = self
            .lane
            .stage
            .index_of(&own, history::tree_of(&own, self.lane.require_head(&own)?)?)?;
        let utf8 = |path: std::path::PathBuf| {
            Utf8PathBuf::from_path_buf(path).map_err(|path| failed("use", primary)(not_utf8(&path)))
        };
        let (git_dir, index) = (utf8(theirs.git_dir().to_owned())?, utf8(theirs.index_path())?);
        let git = GitLocation { git_dir: &git_dir, checkout: primary, index: &index, cancel: None };
        select::select(
            self.how.config,
            primary,
            &mut Rules::new(TreeSide::Primary, &theirs, &their_index)?,
            &mut Rules::new(TreeSide::Lane, &own, &own_index)?,
            || self.sharer(),
            included.then_some(git),
        )
    }

    /// Returns the slot of this lane, and another lane with the same target, or else the primary.
    fn sharer(&self) -> (u32, Sharer) {
        let own = self.lane.slot().unwrap_or_default();
        let name = self.lane.record.target();
        let root = self
            .lane
            .record
            .slot_dir()
            .parent()
            .expect("a slot lies in the directory of all lanes");
        let others = root.read_dir_utf8().into_iter().flatten().flatten().filter_map(|entry| {
            let slot = entry.file_name().strip_prefix("lane-")?.parse().ok()?;
            let there = entry.path().join(format!("{name}{MARKER}")).exists();
            (slot != own && there).then_some(slot)
        });
        (own, others.min().map_or(Sharer::Primary, Sharer::Lane))
    }

    fn put_in_place(
        &self,
        primary: &Utf8Path,
        selection: &FileSelection,
        earlier: Option<&HydrateStamp>,
    ) -> Result<Placed, HydrateError> {
        let mut placer = Placer::new(primary, self.lane.path()).map_err(failed("open", primary))?;
        let repo = self.lane.room.enter()?;
        let tree = history::tree_of(&repo, self.lane.require_head(&repo)?)?;
        let tracked = self.lane.stage.index_of(&repo, tree)?;
        for left in earlier.iter().flat_map(|stamp| &stamp.placed) {
            // The commit that is checked out now may track a file at this path.
            if tracked.entry_by_path(left.path.as_str().into()).is_none() {
                placer.take_back(&left.path).map_err(failed("remove", left.path.as_ref()))?;
            }
        }
        for path in &selection.passed_over {
            placer.pass_over(path);
        }
        let is_named = |path: &str| self.how.config.copy.iter().any(|entry| plain(entry) == path);
        for path in &selection.copies {
            let mut copied = placer.copy(path);
            // Found by a pattern or below a directory: a program may replace such files at any time.
            if !is_named(path) {
                copied = placer.leave_changing(path, copied);
            }
            copied.map_err(failed("copy", path.as_ref()))?;
        }
        for (path, target) in &selection.links {
            placer.link(path, target).map_err(failed("link", path.as_ref()))?;
        }
        for path in &selection.seeds {
            // Half a cache is worse than none.
            let seeded = placer.seed(path).map(drop);
            placer.leave_changing(path, seeded).map_err(failed("copy", path.as_ref()))?;
        }
        Ok(placer.placed)
    }

    fn run_commands(
        &self,
        cancel: &Cancel,
        watch: &mut dyn FnMut(HydratePhase, Sign),
    ) -> Result<(), HydrateError> {
        let commands = [
            (HydratePhase::Install, &self.how.config.install),
            (HydratePhase::Verify, &self.how.config.verify),
        ];
        for (phase, program) in commands {
            let Some(program) = program else { continue };
            let job = self.record.dir().join(phase.to_string());
            let mut spec = Spec::new(program.argv(), self.lane.path(), &job);
            spec.env = self.how.env.clone();
            spec.timeout = Some(self.how.config.timeout());
            spec.sandbox.clone_from(&self.how.sandbox);
            spec.hold = self.how.hold.map(ToOwned::to_owned);
            spec.max_memory = self.how.max_memory;
            spec.supervisor = self.how.supervisor.clone();
            let verdict = pdca_process::run(&spec, cancel, &mut |sign| watch(phase, sign))
                .map_err(|source| HydrateError::Run { phase, source })?;
            match verdict.ending {
                Ending::Exited(0) => {}
                Ending::Cancelled => return Err(HydrateError::Cancelled),
                ending @ (Ending::Exited(_)
                | Ending::Signaled(_)
                | Ending::TimedOut
                | Ending::OverMemory { .. }
                | Ending::Stalled
                | Ending::NotStarted { .. }
                | Ending::Infra { .. }) => {
                    let log = log_path(&job);
                    return Err(HydrateError::Command {
                        phase,
                        ending,
                        log,
                        last_lines: end_of(&job),
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns the files that are changed, missing, or neither tracked nor ignored.
    fn dirt(&self) -> Result<Vec<String>, HydrateError> {
        let shown = |paths: Vec<Utf8PathBuf>| paths.into_iter().map(Utf8PathBuf::into_string);
        let mut paths: Vec<String> = shown(self.lane.nested()?).collect();
        let head = self.lane.head()?.unwrap_or_default();
        if self.lane.tree()? == self.lane.tree_of(&head)? {
            return Ok(paths);
        }
        paths.extend(shown(self.lane.changed_tracked()?).chain(self.lane.untracked()?));
        if paths.is_empty() {
            paths.push("ignored files that were added to the index".to_owned());
        }
        Ok(paths)
    }

    /// Removes ignored files; the tree is clean otherwise.
    fn remove_ignored(&self) -> Result<(), LaneError> {
        let repo = self.lane.room.enter()?;
        let tree = history::tree_of(&repo, self.lane.require_head(&repo)?)?;
        checkout::reset(&repo, &self.lane.room, &self.lane.stage, tree, None, Spare::Nothing)
    }
}

/// Returns the root of the user's checkout; `None` in a bare repository.
fn workdir(target: &Target) -> Result<Option<Utf8PathBuf>, HydrateError> {
    let repo = target.repository();
    let Some(dir) = repo.workdir() else { return Ok(None) };
    let dir = fs::canonicalize(dir).map_err(failed("find", target.path()))?;
    let dir = Utf8PathBuf::from_path_buf(dir)
        .map_err(|path| failed("use", target.path())(not_utf8(&path)))?;
    Ok(Some(dir))
}

/// Returns every path that is put into the lane by name.
fn paths(selection: &FileSelection) -> impl Iterator<Item = &str> {
    let links = selection.links.iter().map(|(path, _)| path);
    selection.copies.iter().chain(links).map(String::as_str)
}

/// Lists the paths that may exist in the lane from now on: those of the earlier hydration and the new ones.
fn coming(selection: &FileSelection, earlier: Option<&HydrateStamp>) -> Vec<Left> {
    let before = earlier.iter().flat_map(|stamp| &stamp.placed).map(|left| left.path.as_str());
    let mut all: Vec<&str> = before.chain(paths(selection)).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(Left::coming).collect()
}

/// Returns the last lines of the log of a command.
fn end_of(job: &Utf8Path) -> Vec<String> {
    let lines: Vec<String> =
        read_log(job).map(|log| log.lines(LONGEST_LINE).collect()).unwrap_or_default();
    lines[lines.len().saturating_sub(LAST_LINES)..].to_vec()
}

fn failed<'a>(
    doing: &'static str,
    path: &'a Utf8Path,
) -> impl FnOnce(io::Error) -> HydrateError + use<'a> {
    move |source| HydrateError::Io { doing, path: path.to_owned(), source }
}

fn not_utf8(path: &std::path::Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} is not UTF-8", path.display()))
}
