//! Archiving an attempt: its files move into `iteration-v<N>/`, and the next attempt gets a
//! section that says why.
//!
//! # Protocol
//! The archive of attempt N is a list of steps. Each is atomic and idempotent, so a crash after any
//! of them loses nothing and the whole list can be applied again:
//!
//! 1. *begin*: one rename makes `iteration-v<N>/` appear with `archive-pending.json` in it, the
//!    record of the files to move and of the section for the next attempt. If an accepted attempt
//!    is sent back, `returned.json` and the patches it conflicted with appear in the same rename.
//!    Without the record, a crash during the moves would leave an attempt that looks complete in
//!    neither place.
//! 2. *fold*: the section is appended to the brief, unless it is there already. On the way to Plan,
//!    *seed* also keeps it in `carry-forward.md`, because the brief itself is about to move.
//! 3. *move*: one rename per file, never onto an existing name, so nothing is overwritten.
//! 4. *draft*: on the way to Plan, the next brief starts as a copy of the archived one with its
//!    slug in `<…>`, so that a person has something to edit and nothing is built before that.
//!    Once a brief is in the archive, the one in the bundle is the next one, and no step touches it.
//! 5. *finish*: the directories are synced, then the record is removed. The order matters: a removed
//!    record says that every move is durable.
//!
//! While the record exists, the bundle is in state [`State::Iterate`](crate::State), and the steps
//! come from the record and not from the summary: an interrupted archive is finished into the same N.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::brief::Brief;
use crate::bundle::{self, Bundle, WriteError};
use crate::carry_forward;
use crate::contents::{Contents, LoadError};
use crate::files::{self, FileReadError};
use crate::gates::GateReport;
use crate::id::BundleId;
use crate::last_attempt;
use crate::returned::{self, Returned};
use crate::state::Reentry;
use crate::summary::Summary;

pub(crate) const DIR_PREFIX: &str = "iteration-v";
const MANIFEST: &str = "archive-pending.json";
const MANIFEST_MAX: u64 = 16 << 20;

/// Parses the number out of `iteration-v<N>`.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(DIR_PREFIX)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The path of the record of an unfinished archive, relative to the bundle.
pub(crate) fn manifest_path(number: u32) -> Utf8PathBuf {
    dir_of(number).join(MANIFEST)
}

pub(crate) fn dir_of(number: u32) -> Utf8PathBuf {
    format!("{DIR_PREFIX}{number}").into()
}

/// An archive that was begun and not finished, as its record describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The N of `iteration-v<N>/`.
    pub number: u32,
    /// The beat at which the bundle goes on afterwards.
    pub reentry: Reentry,
    manifest: Manifest,
}

/// The content of `archive-pending.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    reentry: Reentry,
    carry_forward: String,
    moves: Vec<Utf8PathBuf>,
}

/// The error of archiving an attempt. Files that were moved stay moved; see [`resume_archive`].
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The bundle cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The bundle cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An archived attempt has the largest number there is.
    #[error("{dir} has no number left for another archived attempt")]
    NoNumberLeft {
        /// The directory of the bundle.
        dir: Utf8PathBuf,
    },
}

/// The steps that archive one attempt. Apply them in order.
#[derive(Debug)]
pub struct ArchivePlan {
    /// The N of `iteration-v<N>/`.
    pub number: u32,
    /// The beat at which the bundle goes on afterwards.
    pub reentry: Reentry,
    /// The steps. A crash after any of them is harmless; [`resume_archive`] finishes the rest.
    pub steps: Vec<ArchiveStep>,
}

/// One atomic, idempotent step of an archive.
#[derive(Debug)]
pub struct ArchiveStep {
    bundle: Bundle,
    number: u32,
    action: StepAction,
}

#[derive(Debug)]
enum StepAction {
    Begin { manifest: Manifest, beside: Vec<(String, Vec<u8>)> },
    Fold(String),
    Seed(String),
    Move(Utf8PathBuf),
    Draft,
    Finish(Vec<Utf8PathBuf>),
}

/// Plans the archive of an attempt that a person sent back at its sign-off. If an archive was begun
/// already, the plan is to finish that one.
pub fn archive_plan(bundle: &Bundle, reentry: Reentry) -> Result<ArchivePlan, ArchiveError> {
    plan(bundle, reentry, StepReason::SentBack)
}

/// As [`archive_plan`], for an attempt with findings that its builder can mend: it goes back to Do without a person,
/// and the next attempt is told the findings.
pub fn archive_auto(bundle: &Bundle, findings: &[String]) -> Result<ArchivePlan, ArchiveError> {
    plan(bundle, Reentry::Do, StepReason::OwnFindings(findings))
}

/// Like [`archive_plan`], for an attempt that was built on a result that changed since. `said` says
/// what changed, for the next builder. The bundle goes on from Do.
pub fn archive_stale(bundle: &Bundle, said: &str) -> Result<ArchivePlan, ArchiveError> {
    plan(bundle, Reentry::Do, StepReason::Stale(said))
}

/// Like [`archive_plan`], for an accepted attempt that conflicts with a change that landed since.
/// `said` describes the conflict, for the next builder. The bundle goes on from Do.
pub fn archive_superseded(bundle: &Bundle, said: &str) -> Result<ArchivePlan, ArchiveError> {
    plan(bundle, Reentry::Do, StepReason::Superseded(said))
}

/// Like [`archive_plan`], for an accepted attempt that is sent back before it landed. `partners`
/// are the patches that failed together with it; they are kept for the next builder.
pub fn archive_returned(
    bundle: &Bundle,
    reentry: Reentry,
    record: &Returned,
    partners: &[(BundleId, Vec<u8>)],
) -> Result<ArchivePlan, ArchiveError> {
    plan(bundle, reentry, StepReason::Returned { record, partners })
}

/// The reason to archive an attempt; one per public `archive_*` function.
#[derive(Clone, Copy)]
enum StepReason<'a> {
    SentBack,
    /// Its builder can mend what was found.
    OwnFindings(&'a [String]),
    Superseded(&'a str),
    Stale(&'a str),
    Returned {
        record: &'a Returned,
        partners: &'a [(BundleId, Vec<u8>)],
    },
}

fn plan(
    bundle: &Bundle,
    reentry: Reentry,
    why: StepReason<'_>,
) -> Result<ArchivePlan, ArchiveError> {
    let contents = bundle.contents()?;
    // The half-done archive decides, whatever the caller asks for: its files are moved only in
    // part, so a list made now would miss those that are already in the archive (decision 005).
    if let Some(pending) = contents.pending()? {
        return Ok(ArchivePlan::new(bundle, pending, Vec::new()));
    }
    // The largest number plus one, not the count: a person may have removed an earlier attempt.
    let largest = contents.iterations.last().copied().unwrap_or(0);
    let number = largest
        .checked_add(1)
        .ok_or_else(|| ArchiveError::NoNumberLeft { dir: bundle.dir().into() })?;
    let text = |artifact| {
        let bytes = bundle.read(artifact)?;
        Ok::<_, LoadError>(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    // Everything is read before the first step: afterwards the files are in the archive.
    let summary = text(Artifact::Summary)?.map(|text| Summary::parse(&text));
    // A report that cannot be read must not keep an attempt from being archived: it only adds the
    // list of failing gates to the section.
    let gates = bundle
        .read(Artifact::GatesJson)
        .ok()
        .flatten()
        .and_then(|json| GateReport::parse(&json).ok());
    let tests = text(Artifact::Brief)?
        .map(|text| BTreeSet::from_iter(Brief::parse(&text).test_files()))
        .unwrap_or_default();
    let (carry_forward, beside) = match why {
        StepReason::SentBack => {
            (carry_forward::section(number, reentry, summary.as_ref(), gates.as_ref()), Vec::new())
        }
        StepReason::OwnFindings(findings) => (
            carry_forward::own_findings(number, findings, gates.as_ref()),
            vec![last_attempt::auto_record(findings)],
        ),
        StepReason::Superseded(said) => (carry_forward::superseded(number, said), Vec::new()),
        StepReason::Stale(said) => (carry_forward::stale(number, said), Vec::new()),
        StepReason::Returned { record, partners } => {
            let section = carry_forward::returned(number, reentry, record);
            (section, returned::files(record, partners))
        }
    };
    let manifest =
        Manifest { reentry, carry_forward, moves: moves(bundle.dir(), &contents, reentry, &tests) };
    Ok(ArchivePlan::new(bundle, Pending { number, reentry, manifest }, beside))
}

/// Returns the plan of an archive that was begun and not finished, if there is one.
pub fn resume_archive(bundle: &Bundle) -> Result<Option<ArchivePlan>, ArchiveError> {
    let pending = bundle.contents()?.pending()?;
    Ok(pending.map(|pending| ArchivePlan::new(bundle, pending, Vec::new())))
}

pub(crate) fn read_pending(dir: &Utf8Path, number: u32) -> Result<Pending, LoadError> {
    let relative = manifest_path(number);
    // A record that is gone since it was listed parses like an empty file, as damaged. Without it
    // nothing is known about what has moved.
    let bytes = files::read_within(dir, &relative, MANIFEST_MAX)?.unwrap_or_default();
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|source| {
        LoadError::Pending { path: dir.join(&relative), line: source.line().max(1), source }
    })?;
    Ok(Pending { number, reentry: manifest.reentry, manifest })
}

/// The files of the attempt that are to move, relative to the bundle.
fn moves(
    dir: &Utf8Path,
    contents: &Contents<'_>,
    reentry: Reentry,
    tests: &BTreeSet<Utf8PathBuf>,
) -> Vec<Utf8PathBuf> {
    let artifacts = contents.artifacts.iter().filter(|artifact| artifact.is_of_attempt());
    let mut moves: Vec<Utf8PathBuf> =
        artifacts.map(|artifact| artifact.file_name().into()).collect();
    moves.extend(contents.advisories.iter().chain(&contents.leftovers).map(Utf8PathBuf::from));
    // The names come from the brief, so `inside` and `is_test` decide which of them may be moved.
    let tests =
        tests.iter().filter_map(|test| bundle::inside(dir, test)).filter(|test| is_test(dir, test));
    for test in tests {
        if !moves.contains(&test) {
            moves.push(test);
        }
    }
    if reentry == Reentry::Plan && contents.artifacts.contains(Artifact::Brief) {
        moves.push(Artifact::Brief.file_name().into());
        // They are about that brief.
        moves.extend(contents.plan_advisories.iter().map(Utf8PathBuf::from));
    }
    moves
}

/// Returns true if a path named by the brief may be moved as a test. The brief could name any file
/// of the bundle, so artifacts and earlier attempts are excluded.
fn is_test(dir: &Utf8Path, path: &Utf8Path) -> bool {
    let first = path.iter().next().unwrap_or_default();
    Artifact::from_file_name(first).is_none()
        && !first.starts_with(DIR_PREFIX)
        && !files::is_temp_name(first.as_bytes())
        && dir.join(path).symlink_metadata().is_ok()
}

impl ArchivePlan {
    fn new(
        bundle: &Bundle,
        Pending { number, reentry, manifest }: Pending,
        beside: Vec<(String, Vec<u8>)>,
    ) -> Self {
        let section = manifest.carry_forward.clone();
        let moves = manifest.moves.clone();
        let mut actions =
            vec![StepAction::Begin { manifest, beside }, StepAction::Fold(section.clone())];
        if reentry == Reentry::Plan {
            actions.push(StepAction::Seed(section));
        }
        actions.extend(moves.iter().cloned().map(StepAction::Move));
        if reentry == Reentry::Plan {
            actions.push(StepAction::Draft);
        }
        actions.push(StepAction::Finish(moves));
        let steps = actions
            .into_iter()
            .map(|action| ArchiveStep { bundle: bundle.clone(), number, action })
            .collect();
        Self { number, reentry, steps }
    }

    /// Applies every step, up to the first that fails.
    pub fn apply(&self) -> Result<(), ArchiveError> {
        self.steps.iter().try_for_each(ArchiveStep::apply)
    }
}

impl ArchiveStep {
    /// The name of the kind of step, for logs and fault injection.
    pub fn name(&self) -> &'static str {
        match self.action {
            StepAction::Begin { .. } => "archive-begin",
            StepAction::Fold(_) => "archive-fold",
            StepAction::Seed(_) => "archive-seed",
            StepAction::Move(_) => "archive-move",
            StepAction::Draft => "archive-draft",
            StepAction::Finish(_) => "archive-finish",
        }
    }

    /// Applies the step; does nothing if it was applied before.
    pub fn apply(&self) -> Result<(), ArchiveError> {
        match &self.action {
            StepAction::Begin { manifest, beside } => self.begin(manifest, beside),
            // The brief that is there now is the draft, or one that a person wrote since: the section
            // is in the archived one and in `carry-forward.md`.
            StepAction::Fold(_) if self.has_archived_brief()? => Ok(()),
            StepAction::Fold(section) => self.append(Artifact::Brief, section, false),
            StepAction::Seed(section) => self.append(Artifact::CarryForward, section, true),
            // It must stay: moving it would put it beside the archived brief and take the next one
            // from the bundle.
            StepAction::Move(relative)
                if relative == Artifact::Brief.file_name() && self.has_archived_brief()? =>
            {
                Ok(())
            }
            StepAction::Move(relative) => self.move_one(relative),
            StepAction::Draft => self.draft(),
            StepAction::Finish(moves) => self.finish(moves),
        }
    }

    fn begin(&self, manifest: &Manifest, beside: &[(String, Vec<u8>)]) -> Result<(), ArchiveError> {
        let dir = self.bundle.dir().join(dir_of(self.number));
        // A resumed plan begins with this step too.
        if dir.join(MANIFEST).is_file() {
            return Ok(());
        }
        let json =
            serde_json::to_vec_pretty(manifest).expect("because paths and texts are always JSON");
        let beside = beside.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        let with: Vec<(&str, &[u8])> = beside.chain([(MANIFEST, json.as_slice())]).collect();
        bundle::publish_dir(&dir, &with).map_err(|source| failed(&dir, source))
    }

    /// Appends the section unless the artifact contains it; creates a missing artifact if `create`.
    fn append(&self, artifact: Artifact, section: &str, create: bool) -> Result<(), ArchiveError> {
        let mut bytes = match self.bundle.read(artifact)? {
            Some(bytes) => bytes,
            None if create => Vec::new(),
            None => return Ok(()),
        };
        // The section names the attempt by its number, so it is there only if this step ran before.
        if contains(&bytes, section.as_bytes()) {
            return Ok(());
        }
        if !bytes.is_empty() {
            bytes.extend_from_slice(if bytes.ends_with(b"\n") { b"\n" } else { b"\n\n" });
        }
        bytes.extend_from_slice(section.as_bytes());
        let (size, max) = (bytes.len() as u64, artifact.max_len());
        if size > max {
            // A larger file could not be read back. A person has to shorten it.
            let path = self.bundle.path(artifact);
            return Err(LoadError::File(FileReadError::TooLarge { path, size, max }).into());
        }
        Ok(self.bundle.publish(artifact, &bytes)?)
    }

    /// The draft of the next brief, made from the archived one; `None` if no brief was moved.
    fn draft_text(&self) -> Result<Option<Vec<u8>>, ArchiveError> {
        let relative = dir_of(self.number).join(Artifact::Brief.file_name());
        let max = Artifact::Brief.max_len();
        let bytes =
            files::read_within(self.bundle.dir(), &relative, max).map_err(LoadError::from)?;
        // A brief that is not UTF-8 makes no draft: it could not be loaded.
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(text.map(|text| Brief::parse(&text).as_draft().into_bytes()))
    }

    /// Returns true if the brief of the attempt has moved. Only the way to Plan moves it.
    fn has_archived_brief(&self) -> Result<bool, ArchiveError> {
        let dir = self.bundle.dir().join(dir_of(self.number));
        let path = dir.join(Artifact::Brief.file_name());
        match path.symlink_metadata() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(&path, error)),
        }
    }

    fn draft(&self) -> Result<(), ArchiveError> {
        match self.draft_text()? {
            Some(draft) if self.bundle.read(Artifact::Brief)?.is_none() => {
                Ok(self.bundle.publish(Artifact::Brief, &draft)?)
            }
            // Nothing to copy, or a person wrote the next brief already.
            Some(_) | None => Ok(()),
        }
    }

    fn move_one(&self, relative: &Utf8Path) -> Result<(), ArchiveError> {
        let root = self.bundle.dir();
        let outside = || self.bundle.place().outside(relative.as_str());
        let from = root.join(bundle::inside(root, relative).ok_or_else(outside)?);
        match from.symlink_metadata() {
            Ok(_) => {}
            // Moved by an earlier pass.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(&from, error)),
        }
        let to = dir_of(self.number).join(relative);
        let to = root.join(bundle::inside(root, &to).ok_or_else(outside)?);
        fs_err::create_dir_all(to.parent().unwrap_or(root))
            .map_err(|source| failed(&to, source))?;
        // The name is taken only if the file was written again while the archive was half done.
        for copy in 1_u32.. {
            let to = if copy == 1 { to.clone() } else { format!("{to}.{copy}").into() };
            match bundle::rename_new(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                renamed => return renamed.map_err(|source| failed(&to, source)),
            }
        }
        Ok(())
    }

    fn finish(&self, moves: &[Utf8PathBuf]) -> Result<(), ArchiveError> {
        let root = self.bundle.dir();
        let dir = root.join(dir_of(self.number));
        let manifest = dir.join(MANIFEST);
        if !manifest.is_file() {
            return Ok(());
        }
        changed_dirs(root, &dir, moves)
            .iter()
            .filter(|dir| dir.is_dir())
            // Before the record goes: after a loss of power the moves must not be undone without
            // the list that would repeat them.
            .try_for_each(files::sync_dir)
            .and_then(|()| fs_err::remove_file(&manifest))
            .and_then(|()| files::sync_dir(&dir))
            .map_err(|source| failed(&manifest, source))
    }
}

impl fmt::Display for ArchiveStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dir = dir_of(self.number);
        match &self.action {
            StepAction::Begin { .. } => write!(f, "begin {dir}"),
            StepAction::Fold(_) => {
                write!(f, "fold what was learned into {}", Artifact::Brief.file_name())
            }
            StepAction::Seed(_) => write!(f, "keep it as {}", Artifact::CarryForward.file_name()),
            StepAction::Move(path) => write!(f, "move {path} to {dir}"),
            StepAction::Draft => write!(f, "begin the next {}", Artifact::Brief.file_name()),
            StepAction::Finish(_) => write!(f, "finish {dir}"),
        }
    }
}

/// The directories of the bundle and of the archive that gain or lose a name by the moves.
fn changed_dirs(
    root: &Utf8Path,
    archive: &Utf8Path,
    moves: &[Utf8PathBuf],
) -> BTreeSet<Utf8PathBuf> {
    let mut dirs = BTreeSet::from([root.to_owned(), archive.to_owned()]);
    // Not the parents alone: a directory between may be new in the archive, and then its name is in
    // the one above it.
    let above = moves.iter().flat_map(|path| path.ancestors().skip(1));
    for above in above.filter(|above| !above.as_str().is_empty()) {
        dirs.extend([root.join(above), archive.join(above)]);
    }
    dirs
}

fn failed(path: &Utf8Path, source: io::Error) -> ArchiveError {
    WriteError::io(path, source).into()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || haystack.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests;
