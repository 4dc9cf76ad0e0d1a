//! What a lane needs beyond what git tracks: local settings, dependencies, warm build caches.
//!
//! A fresh checkout has no `.env` and no `node_modules`. Hydration brings them, in this order:
//! files that the primary's `.worktreeinclude` or `copy` names, links, seeds where the lane has
//! none, then `install`, then `verify`. Only what git ignores comes in, so a hydrated lane is as
//! clean as before.
//!
//! ```text
//!            digest of config, files, lock files = that of the stamp, files as they were left
//! no stamp ──────────────────────────────────────────────────────────────────► nothing to do
//!    │ else                                                                          ▲
//!    ▼                                                                               │
//!  begun ── copy, link, seed ── install ── verify passed ── tree is clean ────────► passed
//!    │  ▲
//!    └──┘ found again (a crash, a failure): what is ignored in the lane is removed first
//! ```
//!
//! A lane is hydrated when [`Lane::hydrate`] says so, and not before; whatever happens on the way,
//! the next call begins from a clean tree.

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
use place::Placer;
use select::{INCLUDE, Rules, Selection};
use stamp::{HydrateProgress, Left, Stamp};

/// What follows the name of the target in the name of the directory of its hydration.
pub(crate) const HYDRATION: &str = ".hydration";
/// The stamp in that directory.
const STAMP: &str = "stamp.json";
/// The largest list of files to include.
const LARGEST_INCLUDE: u64 = 1 << 20;
/// How many of the last lines of a log an error carries.
const LAST_LINES: usize = 10;
/// How much of a line.
const LONGEST_LINE: usize = 400;

/// How a lane is to be hydrated.
#[derive(Debug, Clone)]
pub struct Hydrate<'a> {
    /// The repository whose ignored files are copied.
    pub target: &'a Target,
    /// What is to be done.
    pub config: &'a HydrateConfig,
    /// The environment of the commands: the lane's [private names](crate::PrivateNames).
    pub env: Env,
    /// What the kernel keeps the commands from touching.
    pub sandbox: Option<Sandbox>,
    /// The lock that the supervisor of a command holds while anything of it is alive.
    pub hold: Option<&'a Utf8Path>,
    /// How many bytes of memory each command may have.
    pub max_memory: Option<u64>,
    /// What supervises the commands.
    pub supervisor: Supervisor,
}

impl<'a> Hydrate<'a> {
    /// As configured, with nothing else set.
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
}

/// What came of it. In each case the lane can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hydrated {
    /// Nothing is configured and nothing was there.
    Nothing,
    /// The lane was hydrated already, from the same.
    Warm,
    /// It was hydrated just now.
    Fresh(Placed),
}

/// How far the hydration of a lane got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HydrationState {
    /// There was none.
    None,
    /// One was begun and did not pass: the lane must not be used before the next.
    Begun,
    /// It passed.
    Passed,
}

impl Lane {
    /// Brings what the lane needs beyond what git tracks, unless it is there already.
    ///
    /// To be called after a [`reset`](Self::reset) and before anything runs in the lane; the tree
    /// must be clean. `watch` is told of the running command.
    pub fn hydrate(
        &self,
        how: &Hydrate<'_>,
        cancel: &Cancel,
        watch: &mut dyn FnMut(HydratePhase, Sign),
    ) -> Result<Hydrated, HydrateError> {
        if let Some(problem) = how.config.validate().into_iter().next() {
            return Err(problem.into());
        }
        let stamp_path = self.hydration_dir().join(STAMP);
        let io = |doing| failed(doing, &stamp_path);
        let earlier = Stamp::load(&stamp_path).map_err(io("read"))?;
        let primary = workdir(how.target)?;
        let selection = self.select(how, primary.as_deref())?;
        let from = primary.as_deref().unwrap_or(self.path());
        if earlier.is_none() && how.config.is_empty() && selection.copies.is_empty() {
            return Ok(Hydrated::Nothing);
        }
        let digest = stamp::digest(how.config, &selection, from, self.path())
            .map_err(failed("read the inputs in", from))?;
        if earlier.as_ref().is_some_and(|stamp| stamp.holds(&digest, self.path())) {
            return Ok(Hydrated::Warm);
        }
        let dirt = self.dirt()?;
        if !dirt.is_empty() {
            return Err(HydrateError::Unclean { paths: dirt });
        }
        if earlier.as_ref().is_some_and(|stamp| stamp.progress == HydrateProgress::Begun) {
            self.remove_ignored()?;
        }
        fs::create_dir_all(self.hydration_dir()).map_err(io("make the directory of"))?;
        let begun = Stamp::new(
            HydrateProgress::Begun,
            digest.clone(),
            coming(&selection, earlier.as_ref()),
        );
        begun.save(&stamp_path).map_err(io("write"))?;
        let placed = self.put_in_place(from, &selection, earlier.as_ref())?;
        self.run_commands(how, cancel, watch)?;
        let dirt = self.dirt()?;
        if !dirt.is_empty() {
            return Err(HydrateError::Dirtied { paths: dirt });
        }
        let left = paths(&selection).map(|path| Left::see(self.path(), path)).collect();
        Stamp::new(HydrateProgress::Passed, digest, left).save(&stamp_path).map_err(io("write"))?;
        Ok(Hydrated::Fresh(placed))
    }

    fn select(
        &self,
        how: &Hydrate<'_>,
        primary: Option<&Utf8Path>,
    ) -> Result<Selection, HydrateError> {
        let HydrateConfig { copy, symlink, seed, .. } = how.config;
        let wanted = [copy, symlink, seed].iter().any(|list| !list.is_empty());
        let Some(primary) = primary else {
            let bare = || HydrateError::Bare { primary: how.target.path().to_owned() };
            return if wanted { Err(bare()) } else { Ok(Selection::default()) };
        };
        // Read here as well, because git would wait for a pipe.
        let included = files::read_bounded(primary.join(INCLUDE), LARGEST_INCLUDE)
            .map_err(|source| failed("use", primary)(io::Error::other(source)))?
            .is_some();
        if !wanted && !included {
            return Ok(Selection::default());
        }
        let theirs = how.target.repository();
        let their_index = theirs
            .index_or_empty()
            .map_err(|source| LaneError::objects("read the index of the primary", source))?;
        let own = self.room.enter()?;
        let own_index =
            self.stage.index_of(&own, history::tree_of(&own, self.require_head(&own)?)?)?;
        let utf8 = |path: std::path::PathBuf| {
            Utf8PathBuf::from_path_buf(path).map_err(|path| failed("use", primary)(not_utf8(&path)))
        };
        let (git_dir, index) = (utf8(theirs.git_dir().to_owned())?, utf8(theirs.index_path())?);
        let git = GitLocation { git_dir: &git_dir, checkout: primary, index: &index, cancel: None };
        select::select(
            how.config,
            primary,
            &mut Rules::new(TreeSide::Primary, &theirs, &their_index)?,
            &mut Rules::new(TreeSide::Lane, &own, &own_index)?,
            || self.sharer(),
            included.then_some(git),
        )
    }

    /// This lane, and another that has the same target; the primary where there is none.
    fn sharer(&self) -> (u32, Sharer) {
        let own = self.slot().unwrap_or_default();
        let name = self.target_name();
        let root = self.slot_dir().parent().expect("a slot lies in the directory of all lanes");
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
        selection: &Selection,
        earlier: Option<&Stamp>,
    ) -> Result<Placed, HydrateError> {
        let mut placer = Placer::new(primary, self.path()).map_err(failed("open", primary))?;
        let repo = self.room.enter()?;
        let tree = history::tree_of(&repo, self.require_head(&repo)?)?;
        let tracked = self.stage.index_of(&repo, tree)?;
        for left in earlier.iter().flat_map(|stamp| &stamp.placed) {
            // What the lane stands on by now may have a file of its own there.
            if tracked.entry_by_path(left.path.as_str().into()).is_none() {
                placer.take_back(&left.path).map_err(failed("remove", left.path.as_ref()))?;
            }
        }
        for path in &selection.passed_over {
            placer.pass_over(path);
        }
        for path in &selection.copies {
            placer.copy(path).map_err(failed("copy", path.as_ref()))?;
        }
        for (path, target) in &selection.links {
            placer.link(path, target).map_err(failed("link", path.as_ref()))?;
        }
        for path in &selection.seeds {
            match placer.seed(path) {
                // Somebody builds in the primary. Half a cache is worse than none.
                Err(err) if place::was_changing(&err) => {
                    placer.take_back(path).map_err(failed("remove", path.as_ref()))?;
                    placer.pass_over(format!("{path} ({err})").as_bytes());
                }
                seeded => drop(seeded.map_err(failed("copy", path.as_ref()))?),
            }
        }
        Ok(placer.placed)
    }

    fn run_commands(
        &self,
        how: &Hydrate<'_>,
        cancel: &Cancel,
        watch: &mut dyn FnMut(HydratePhase, Sign),
    ) -> Result<(), HydrateError> {
        let commands = [
            (HydratePhase::Install, &how.config.install),
            (HydratePhase::Verify, &how.config.verify),
        ];
        for (phase, program) in commands {
            let Some(program) = program else { continue };
            let job = self.hydration_dir().join(phase.to_string());
            let mut spec = Spec::new(program.argv(), self.path(), &job);
            spec.env = how.env.clone();
            spec.timeout = Some(how.config.timeout());
            spec.sandbox.clone_from(&how.sandbox);
            spec.hold = how.hold.map(ToOwned::to_owned);
            spec.max_memory = how.max_memory;
            spec.supervisor = how.supervisor.clone();
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

    /// The files of the tree that are changed, gone, or neither tracked nor ignored.
    fn dirt(&self) -> Result<Vec<String>, HydrateError> {
        let shown = |paths: Vec<Utf8PathBuf>| paths.into_iter().map(Utf8PathBuf::into_string);
        let mut paths: Vec<String> = shown(self.nested()?).collect();
        let head = self.head()?.unwrap_or_default();
        if self.tree()? == self.tree_of(&head)? {
            return Ok(paths);
        }
        paths.extend(shown(self.changed_tracked()?).chain(self.untracked()?));
        if paths.is_empty() {
            paths.push("ignored files that were added to the index".to_owned());
        }
        Ok(paths)
    }

    /// Removes what is ignored; the tree is clean otherwise.
    fn remove_ignored(&self) -> Result<(), LaneError> {
        let repo = self.room.enter()?;
        let tree = history::tree_of(&repo, self.require_head(&repo)?)?;
        checkout::reset(&repo, &self.room, &self.stage, tree, None, Spare::Nothing)
    }

    /// Notes that what was put into the lane may be half gone from now on.
    pub(crate) fn doubt_hydration(&self) -> io::Result<()> {
        let path = self.hydration_dir().join(STAMP);
        match Stamp::load(&path)? {
            Some(stamp) => {
                Stamp::new(HydrateProgress::Begun, stamp.digest, stamp.placed).save(&path)
            }
            None => Ok(()),
        }
    }

    /// Forgets that the lane was hydrated: what was put there is gone.
    pub(crate) fn forget_hydration(&self) -> io::Result<()> {
        match fs::remove_file(self.hydration_dir().join(STAMP)) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn hydration_dir(&self) -> Utf8PathBuf {
        self.slot_dir().join(format!("{}{HYDRATION}", self.target_name()))
    }
}

/// How far the hydration got that has this directory.
pub(crate) fn state(dir: &Utf8Path) -> HydrationState {
    match Stamp::load(&dir.join(STAMP)) {
        Ok(None) => HydrationState::None,
        Ok(Some(stamp)) if stamp.progress == HydrateProgress::Passed => HydrationState::Passed,
        Ok(Some(_)) | Err(_) => HydrationState::Begun,
    }
}

/// The root of the user's checkout, or none in a bare repository.
fn workdir(target: &Target) -> Result<Option<Utf8PathBuf>, HydrateError> {
    let repo = target.repository();
    let Some(dir) = repo.workdir() else { return Ok(None) };
    let dir = fs::canonicalize(dir).map_err(failed("find", target.path()))?;
    let dir = Utf8PathBuf::from_path_buf(dir)
        .map_err(|path| failed("use", target.path())(not_utf8(&path)))?;
    Ok(Some(dir))
}

/// Every path that is put into the lane by name.
fn paths(selection: &Selection) -> impl Iterator<Item = &str> {
    let links = selection.links.iter().map(|(path, _)| path);
    selection.copies.iter().chain(links).map(String::as_str)
}

/// What may be in the lane from now on: what an earlier hydration left, and what comes.
fn coming(selection: &Selection, earlier: Option<&Stamp>) -> Vec<Left> {
    let before = earlier.iter().flat_map(|stamp| &stamp.placed).map(|left| left.path.as_str());
    let mut all: Vec<&str> = before.chain(paths(selection)).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(Left::coming).collect()
}

/// The last lines of what a command said.
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
