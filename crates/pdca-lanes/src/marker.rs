//! The marker beside a checkout, which records that the directory is a lane of ours.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use pdca_state::files;
use serde::{Deserialize, Serialize};

use crate::{
    claim::MARKER,
    failure::LaneError,
    provision::LaneKind,
    target::{Identity, Target},
};

/// The format that this version writes; a greater number is from a newer version.
pub(crate) const FORMAT: u32 = 1;

/// The repository, slot and progress of a checkout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    pub(crate) format: u32,
    pub(crate) progress: LaneProgress,
    pub(crate) slot: u32,
    pub(crate) target: String,
    pub(crate) primary: Identity,
    /// The path of the primary when the marker was written; the repository may have moved since.
    pub(crate) primary_path: Utf8PathBuf,
    /// The relation to the primary; absent in markers from before there were two kinds.
    #[serde(default)]
    pub(crate) kind: LaneKind,
    /// The commit of the last reset.
    pub(crate) base: Option<String>,
    /// The branch of the work in the checkout, recorded from before it is created until it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LaneProgress {
    /// Written before the directory is touched, so that an interrupted creation is recognised.
    Preparing,
    /// The repository is complete.
    Ready,
}

impl Marker {
    pub(crate) fn new(slot: u32, target: &Target, kind: LaneKind) -> Self {
        Self {
            format: FORMAT,
            progress: LaneProgress::Preparing,
            slot,
            target: target.name().to_owned(),
            primary: target.identity(),
            primary_path: target.common_dir().to_owned(),
            kind,
            base: None,
            branch: None,
        }
    }

    /// Returns true if the marker is for this slot and this repository, wherever that is now.
    pub(crate) fn is_of(&self, slot: u32, target: &Target) -> bool {
        self.slot == slot && self.target == target.name() && self.primary == target.identity()
    }

    /// Reads the marker at `path`, if it exists.
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

    /// Like [`save`](Self::save), without a sync: for changes that a power failure may undo.
    pub(crate) fn note(&self, path: &Utf8Path) -> io::Result<()> {
        files::replace_unsynced(path, &serde_json::to_vec_pretty(self)?)
    }
}

/// The files of a lane beside its checkout, each named after the target, and the marker among them.
#[derive(Debug)]
pub(crate) struct LaneRecord {
    slot_dir: Utf8PathBuf,
    target: String,
}

impl LaneRecord {
    pub(crate) fn new(slot_dir: &Utf8Path, target: &str) -> Self {
        Self { slot_dir: slot_dir.to_owned(), target: target.to_owned() }
    }

    /// Returns the directory of the slot, which contains the checkout and everything that belongs to it.
    pub(crate) fn slot_dir(&self) -> &Utf8Path {
        &self.slot_dir
    }

    /// Returns the name of the target, which is also the directory name of its checkout.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// Returns the path of the file of the lane that has this suffix.
    pub(crate) fn beside(&self, suffix: &str) -> Utf8PathBuf {
        self.slot_dir.join(format!("{}{suffix}", self.target))
    }

    pub(crate) fn checkout_path(&self) -> Utf8PathBuf {
        self.slot_dir.join(&self.target)
    }

    pub(crate) fn marker_path(&self) -> Utf8PathBuf {
        self.beside(MARKER)
    }

    pub(crate) fn marker(&self) -> io::Result<Option<Marker>> {
        Marker::load(&self.marker_path())
    }

    pub(crate) fn require_marker(&self) -> io::Result<Marker> {
        self.marker()?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Updates the marker, unless the change makes no difference.
    pub(crate) fn update(
        &self,
        doing: &'static str,
        change: impl FnOnce(&mut Marker),
    ) -> Result<(), LaneError> {
        let updated = || -> io::Result<()> {
            let before = self.require_marker()?;
            let mut after = before.clone();
            change(&mut after);
            if after == before { Ok(()) } else { after.note(&self.marker_path()) }
        };
        updated().map_err(|source| LaneError::Io { doing, source })
    }
}
