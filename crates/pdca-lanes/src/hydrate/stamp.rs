//! How far the hydration of a lane got, and from what: kept beside the checkout.
//!
//! `begun` is on disk before anything is put into the lane, `passed` only after `verify`. Whoever
//! finds `begun` knows that what is there may be half of it.

use std::{
    fmt::Write as _,
    io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
};

use camino::Utf8Path;
use fs_err as fs;
use pdca_state::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::hydrate::{
    HydrateConfig,
    config::plain,
    select::{INCLUDE, Selection},
};

const FORMAT: u32 = 1;
/// A file up to this size counts by its bytes, a larger one by its size and times.
const LARGEST_READ: u64 = 1 << 20;

/// What is known about the hydration of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    format: u32,
    pub(crate) progress: HydrateProgress,
    /// Over all that it was made from.
    pub(crate) digest: String,
    /// The files and links that were put there, and how each was left.
    pub(crate) placed: Vec<Left>,
}

/// How far it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HydrateProgress {
    Begun,
    Passed,
}

/// A file or link in the lane as it was left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Left {
    pub(crate) path: String,
    /// Size, and seconds and nanoseconds of its last change; none before it is there.
    state: Option<(u64, i64, i64)>,
}

impl Stamp {
    pub(crate) fn new(progress: HydrateProgress, digest: String, placed: Vec<Left>) -> Self {
        Self { format: FORMAT, progress, digest, placed }
    }

    /// Reads the stamp; one of another format is as good as one that says `begun`.
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

    /// Whether it passed, from just this, and what was put there is there untouched.
    pub(crate) fn holds(&self, digest: &str, lane: &Utf8Path) -> bool {
        self.progress == HydrateProgress::Passed
            && self.digest == digest
            && self.placed.iter().all(|left| *left == Left::see(lane, &left.path))
    }
}

impl Left {
    /// How a path of the lane is now.
    pub(crate) fn see(lane: &Utf8Path, path: &str) -> Self {
        let found = fs::symlink_metadata(lane.join(path)).ok();
        // The change time: unlike the others it cannot be set.
        let state = found.map(|found| (found.size(), found.ctime(), found.ctime_nsec()));
        Self { path: path.to_owned(), state }
    }

    /// A path of which nothing is known yet.
    pub(crate) fn coming(path: &str) -> Self {
        Self { path: path.to_owned(), state: None }
    }
}

/// The digest over all that a hydration is made from.
pub(crate) fn digest(
    config: &HydrateConfig,
    selection: &Selection,
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
    for key in config.keys() {
        part(&mut sum, key, &content(&lane.join(plain(key)))?);
    }
    Ok(sum.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes any text");
        text
    }))
}

/// Adds one named part, so that none can run into the next.
fn part(sum: &mut Sha256, name: &str, bytes: &[u8]) {
    for piece in [name.as_bytes(), bytes] {
        sum.update((piece.len() as u64).to_le_bytes());
        sum.update(piece);
    }
}

/// What stands for a file in the digest; something also for one that is not there.
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
        return Ok([b"link ", fs::read_link(path)?.as_os_str().as_bytes()].concat());
    }
    let (changed, changed_nsec) = (found.ctime(), found.ctime_nsec());
    let times = format!("{}.{} {changed}.{changed_nsec}", found.mtime(), found.mtime_nsec());
    Ok(format!("stat {} {times} {}", found.size(), found.ino()).into_bytes())
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
