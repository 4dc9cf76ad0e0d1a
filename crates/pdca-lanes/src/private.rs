//! What a lane has for itself while it is held: its names, its ports, its temporary files.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::files;
use thiserror::Error;

use crate::{
    claim::Lanes,
    dir,
    lane::Lane,
    marker::Marker,
    names::{PrivateNames, WorkspaceId},
    ports::{PortBlock, PortError, PortRange},
};

/// The note of a slot that says which ports it last had.
pub(crate) const PORTS: &str = "ports";
/// The longest such note.
const LONGEST_NOTE: u64 = 16;

/// Names and ports of a lane that is held; dropping it gives the ports back.
#[derive(Debug)]
pub struct Private {
    names: PrivateNames,
    _ports: PortBlock,
}

impl Private {
    /// The names, ports included.
    pub fn names(&self) -> &PrivateNames {
        &self.names
    }
}

/// Why a lane got no names of its own.
#[derive(Debug, Error)]
pub enum PrivateError {
    /// There are no ports for it.
    #[error(transparent)]
    Ports(#[from] PortError),
    /// The system would not.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: Utf8PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl Lane {
    /// The slot of the lane.
    pub fn slot(&self) -> io::Result<u32> {
        Ok(Marker::load(&self.marker)?.ok_or(io::ErrorKind::NotFound)?.slot)
    }

    /// Takes ports for the lane and makes its directory for temporary files, empty.
    ///
    /// What an earlier holder left in that directory is gone. The ports stay the same, and held,
    /// until the value is dropped.
    pub fn take_names(
        &self,
        workspace: &WorkspaceId,
        ports: PortRange,
    ) -> Result<Private, PrivateError> {
        let slot = self.slot().map_err(failed("read", &self.marker))?;
        let dir = self.slot_dir();
        let block = ports.take(workspace, slot)?;
        let names = PrivateNames::new(workspace, self.target_name(), slot, dir)
            .with_port_base(block.base());
        dir::empty(names.tmp()).map_err(failed("empty", names.tmp()))?;
        let note = dir.join(PORTS);
        files::replace_unsynced(&note, format!("{}\n", block.base()).as_bytes())
            .map_err(failed("write", &note))?;
        Ok(Private { names, _ports: block })
    }

    /// The name of the target, which its checkout has too.
    pub(crate) fn target_name(&self) -> &str {
        self.path().file_name().unwrap_or_default()
    }

    /// The directory of the slot, in which the checkout and all that belongs to it lie.
    pub(crate) fn slot_dir(&self) -> &Utf8Path {
        self.marker.parent().expect("a marker lies in the directory of its slot")
    }
}

impl Lanes {
    /// The directory of a slot.
    pub fn slot_dir(&self, slot: u32) -> Utf8PathBuf {
        self.slot_path(slot)
    }

    /// The names that a slot has for a target, without taking or making anything.
    ///
    /// The ports are those it last had; where it never had any, those it would prefer.
    pub fn names(
        &self,
        workspace: &WorkspaceId,
        target: &str,
        slot: u32,
        ports: PortRange,
    ) -> PrivateNames {
        let dir = self.slot_dir(slot);
        let note = files::read_bounded(dir.join(PORTS), LONGEST_NOTE).ok().flatten();
        let last = note.and_then(|note| String::from_utf8(note).ok()?.trim().parse().ok());
        let base = last.unwrap_or_else(|| ports.preferred(workspace, slot));
        PrivateNames::new(workspace, target, slot, &dir).with_port_base(base)
    }
}

fn failed<'a>(
    doing: &'static str,
    path: &'a Utf8Path,
) -> impl FnOnce(io::Error) -> PrivateError + use<'a> {
    move |source| PrivateError::Io { doing, path: path.to_owned(), source }
}
