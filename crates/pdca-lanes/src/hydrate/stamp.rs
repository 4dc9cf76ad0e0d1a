//! The record of a lane's hydration: its inputs and its progress, kept beside the checkout.
//!
//! `begun` is on disk before any file is put into the lane, and `passed` only after `verify`. So `begun` means that the
//! lane may hold half of a hydration.

use std::{
    fmt::Write as _,
    io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_state::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{
    hydrate::{
        HydrateConfig, HydrationState,
        config::plain,
        select::{FileSelection, INCLUDE},
    },
    marker::LaneRecord,
};

/// The suffix of the hydration directory of a target.
pub(crate) const HYDRATION: &str = ".hydration";
/// The file name of the stamp in that directory.
const STAMP: &str = "stamp.json";
const FORMAT: u32 = 1;
/// The largest file that enters the digest with its content; a larger one enters with its size and
/// times. The digest is computed before each use of the lane.
const LARGEST_READ: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HydrateStamp {
    format: u32,
    pub(crate) progress: HydrateProgress,
    /// The digest over all inputs.
    pub(crate) digest: String,
    /// The files and links that were put there, with their state afterwards.
    pub(crate) placed: Vec<Left>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HydrateProgress {
    Begun,
    Passed,
}

/// The state of a file or link after the hydration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Left {
    pub(crate) path: String,
    /// Size, and seconds and nanoseconds of the change time; `None` before it exists.
    state: Option<(u64, i64, i64)>,
}

impl HydrateStamp {
    pub(crate) fn new(progress: HydrateProgress, digest: String, placed: Vec<Left>) -> Self {
        Self { format: FORMAT, progress, digest, placed }
    }

    /// Reads the stamp; one of another format counts as `begun`.
    pub(crate) fn load(path: &Utf8Path) -> io::Result<Option<Self>> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(err),
        };
        let known =
            serde_json::from_slice(&bytes).ok().filter(|stamp: &Self| stamp.format == FORMAT);
        Ok(Some(
            known.unwrap_or_else(|| Self::new(HydrateProgress::Begun, String::new(), Vec::new())),
        ))
    }

    pub(crate) fn save(&self, path: &Utf8Path) -> io::Result<()> {
        files::replace(path, &serde_json::to_vec_pretty(self)?)
    }

    /// Returns true if the hydration passed with this digest and its files are untouched.
    pub(crate) fn holds(&self, digest: &str, lane: &Utf8Path) -> bool {
        self.progress == HydrateProgress::Passed
            && self.digest == digest
            && self.placed.iter().all(|left| *left == Left::see(lane, &left.path))
    }
}

impl Left {
    /// Reads the present state of a path in the lane.
    pub(crate) fn see(lane: &Utf8Path, path: &str) -> Self {
        let found = fs::symlink_metadata(lane.join(path)).ok();
        // The change time, because unlike the others a program cannot set it.
        let state = found.map(|found| (found.size(), found.ctime(), found.ctime_nsec()));
        Self { path: path.to_owned(), state }
    }

    /// Names a path whose state is not known yet.
    pub(crate) fn coming(path: &str) -> Self {
        Self { path: path.to_owned(), state: None }
    }
}

/// The directory of a lane's hydration, which holds its stamp and the logs of its commands.
#[derive(Debug)]
pub(crate) struct HydrationRecord {
    dir: Utf8PathBuf,
}

impl HydrationRecord {
    pub(crate) fn of(lane: &LaneRecord) -> Self {
        Self::at(lane.beside(HYDRATION))
    }

    pub(crate) fn at(dir: Utf8PathBuf) -> Self {
        Self { dir }
    }

    pub(super) fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    pub(super) fn stamp_path(&self) -> Utf8PathBuf {
        self.dir.join(STAMP)
    }

    pub(crate) fn state(&self) -> HydrationState {
        match HydrateStamp::load(&self.stamp_path()) {
            Ok(None) => HydrationState::None,
            Ok(Some(stamp)) if stamp.progress == HydrateProgress::Passed => HydrationState::Passed,
            Ok(Some(_)) | Err(_) => HydrationState::Begun,
        }
    }

    /// Marks the hydration as begun, because its files are about to be removed.
    pub(crate) fn doubt(&self) -> io::Result<()> {
        let path = self.stamp_path();
        match HydrateStamp::load(&path)? {
            Some(stamp) => {
                // The placed paths stay in it: the next hydration takes them back if the removal
                // was interrupted.
                HydrateStamp::new(HydrateProgress::Begun, stamp.digest, stamp.placed).save(&path)
            }
            None => Ok(()),
        }
    }

    /// Removes the stamp, after the hydrated files were removed.
    pub(crate) fn forget(&self) -> io::Result<()> {
        match fs::remove_file(self.stamp_path()) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => Err(err),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Returns the digest over all inputs of a hydration.
pub(crate) fn digest(
    config: &HydrateConfig,
    selection: &FileSelection,
    primary: &Utf8Path,
    lane: &Utf8Path,
) -> io::Result<String> {
    let mut sum = Sha256::new();
    part(&mut sum, "config", &serde_json::to_vec(config)?);
    for path in &selection.copies {
        part(&mut sum, path, &content(&primary.join(path))?);
    }
    for (path, target) in &selection.links {
        part(&mut sum, path, target.as_str().as_bytes());
    }
    part(&mut sum, INCLUDE, &content(&primary.join(INCLUDE))?);
    // Read in the lane and not in the primary: the lock files of the commit that is checked out
    // decide what `install` fetches.
    for key in config.keys() {
        part(&mut sum, key, &content(&lane.join(plain(key)))?);
    }
    Ok(sum.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes any text");
        text
    }))
}

/// Adds one part with the lengths of its name and content, so that parts cannot be shifted into one another.
fn part(sum: &mut Sha256, name: &str, bytes: &[u8]) {
    for piece in [name.as_bytes(), bytes] {
        sum.update((piece.len() as u64).to_le_bytes());
        sum.update(piece);
    }
}

/// Returns the bytes that stand for a file in the digest, also for a missing one.
fn content(path: &Utf8Path) -> io::Result<Vec<u8>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(err) if is_absent(&err) => return Ok(b"absent".to_vec()),
        Err(err) => return Err(err),
    };
    if found.is_file() && found.len() <= LARGEST_READ {
        let bytes = files::read_bounded(path, LARGEST_READ).map_err(io::Error::other)?;
        return Ok([b"file ", bytes.unwrap_or_default().as_slice()].concat());
    }
    if found.is_symlink() {
        return match fs::read_link(path) {
            Err(err) if is_absent(&err) => Ok(b"absent".to_vec()),
            target => Ok([b"link ", target?.as_os_str().as_bytes()].concat()),
        };
    }
    let (changed, changed_nsec) = (found.ctime(), found.ctime_nsec());
    let times = format!("{}.{} {changed}.{changed_nsec}", found.mtime(), found.mtime_nsec());
    Ok(format!("stat {} {times} {}", found.size(), found.ino()).into_bytes())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
