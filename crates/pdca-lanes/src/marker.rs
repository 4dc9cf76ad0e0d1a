//! What says that a directory is a lane of ours, kept beside the checkout.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_state::files;
use serde::{Deserialize, Serialize};

use crate::{
    provision::LaneKind,
    target::{Identity, Target},
};

/// The format that this build writes; a larger number is from a newer one.
pub(crate) const FORMAT: u32 = 1;

/// Whose checkout it is and how far it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    pub(crate) format: u32,
    pub(crate) progress: Progress,
    pub(crate) slot: u32,
    pub(crate) target: String,
    pub(crate) primary: Identity,
    /// Where the primary was when the marker was written; it may move.
    pub(crate) primary_path: Utf8PathBuf,
    /// What the checkout is to the primary; markers from before there were two kinds say nothing.
    #[serde(default)]
    pub(crate) kind: LaneKind,
    /// The commit that the checkout was last reset to.
    pub(crate) base: Option<String>,
    /// The branch that was made for the work in it, noted before it is made and until it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
}

/// How far the checkout got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Progress {
    /// Written before the directory is touched, so that a crash is visible.
    Preparing,
    /// The repository is whole.
    Ready,
}

impl Marker {
    pub(crate) fn new(slot: u32, target: &Target, kind: LaneKind) -> Self {
        Self {
            format: FORMAT,
            progress: Progress::Preparing,
            slot,
            target: target.name().to_owned(),
            primary: target.identity(),
            primary_path: target.common_dir().to_owned(),
            kind,
            base: None,
            branch: None,
        }
    }

    /// Whether it speaks of this slot and this repository, wherever that is now.
    pub(crate) fn is_of(&self, slot: u32, target: &Target) -> bool {
        self.slot == slot && self.target == target.name() && self.primary == target.identity()
    }

    /// Reads the marker at `path`, if there is one.
    pub(crate) fn load(path: &Utf8Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(err) => Err(err),
        }
    }

    pub(crate) fn save(&self, path: &Utf8Path) -> io::Result<()> {
        files::replace(path, &serde_json::to_vec_pretty(self)?)
    }

    /// As [`save`](Self::save), for what may be lost with the power.
    pub(crate) fn note(&self, path: &Utf8Path) -> io::Result<()> {
        files::replace_unsynced(path, &serde_json::to_vec_pretty(self)?)
    }
}
