//! The private resources of a held lane: names, ports, temporary directory.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use pdca_state::files;
use thiserror::Error;

use crate::{
    claim::Lanes,
    dir,
    lane::Lane,
    names::{PrivateNames, WorkspaceId},
    ports::{PortBlock, PortError, PortRange},
};

/// The file of a slot that records its last ports.
pub(crate) const PORTS: &str = "ports";
/// The longest content of that file, in bytes.
const LONGEST_NOTE: u64 = 16;

/// The names and ports of a held lane; dropping it releases the ports.
#[derive(Debug)]
pub struct Private {
    names: PrivateNames,
    _ports: PortBlock,
}

impl Private {
    /// Returns the names, ports included.
    pub fn names(&self) -> &PrivateNames {
        &self.names
    }
}

/// Failure to take the private names of a lane.
#[derive(Debug, Error)]
pub enum PrivateError {
    /// No block of ports could be taken.
    #[error(transparent)]
    Ports(#[from] PortError),
    /// An operation of the system failed.
    #[error("cannot {doing} {path}")]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The path it was applied to.
        path: Utf8PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl Lane {
    /// Returns the slot number of the lane.
    pub fn slot(&self) -> io::Result<u32> {
        Ok(self.record.require_marker()?.slot)
    }

    /// Takes ports for the lane and creates its directory for temporary files, empty.
    ///
    /// Files that an earlier holder left in that directory are removed. The ports stay reserved until the value is
    /// dropped.
    pub fn take_names(
        &self,
        workspace: &WorkspaceId,
        ports: PortRange,
    ) -> Result<Private, PrivateError> {
        let slot = self.slot().map_err(failed("read", &self.record.marker_path()))?;
        let dir = self.record.slot_dir();
        let block = ports.take(workspace, slot)?;
        let names = PrivateNames::new(workspace, self.record.target(), slot, dir)
            .with_port_base(block.base());
        dir::empty(names.tmp()).map_err(failed("empty", names.tmp()))?;
        let note = dir.join(PORTS);
        // Only for `names`, which shows a person the ports of a lane that is not held now.
        files::replace_unsynced(&note, format!("{}\n", block.base()).as_bytes())
            .map_err(failed("write", &note))?;
        Ok(Private { names, _ports: block })
    }
}

impl Lanes {
    /// Returns the directory of a slot.
    pub fn slot_dir(&self, slot: u32) -> Utf8PathBuf {
        self.root().join(format!("lane-{slot}"))
    }

    /// Returns the names of a slot for a target, without reserving or creating anything.
    ///
    /// The ports are the last ones it had, or the preferred ones if it never had any.
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
