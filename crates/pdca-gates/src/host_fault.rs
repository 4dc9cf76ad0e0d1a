//! Faults of the machine, found by examining it and not by reading output.

use std::fmt;

use camino::{Utf8Path, Utf8PathBuf};

use crate::preflight::ProgramFault;

/// Less free space than this counts as none: a build that runs out of space usually leaves a little.
const FLOOR_BYTES: u64 = 1024 * 1024;

/// A condition of the host under which a check says nothing about the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostFault {
    /// A filesystem that the check writes to is full.
    DiskFull {
        /// A directory on that filesystem.
        at: Utf8PathBuf,
    },
    /// The output of the check could not be written or read back.
    LogLost {
        why: String,
    },
    Program(ProgramFault),
}

impl fmt::Display for HostFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DiskFull { at } => write!(f, "disk full at {at}"),
            Self::LogLost { why } => write!(f, "the log is lost: {why}"),
            Self::Program(fault) => fault.fmt(f),
        }
    }
}

/// Returns the first of these directories whose filesystem has no space or no inodes left.
pub(crate) fn full_disk<'a>(places: impl IntoIterator<Item = &'a Utf8Path>) -> Option<HostFault> {
    let mut places = places.into_iter();
    places.find(|place| is_full(place)).map(|place| HostFault::DiskFull { at: place.to_owned() })
}

fn is_full(place: &Utf8Path) -> bool {
    // A filesystem that cannot be queried is not known to be full.
    rustix::fs::statvfs(place.as_std_path()).is_ok_and(|found| {
        Room {
            // Space that an ordinary user can have: `f_bfree` includes the blocks reserved for
            // root.
            bytes: found.f_bavail.saturating_mul(found.f_frsize),
            names: found.f_favail,
            // Some filesystems create inodes on demand and report none.
            counts_names: found.f_files > 0,
        }
        .is_none()
    })
}

/// The free resources of a filesystem.
struct Room {
    bytes: u64,
    names: u64,
    counts_names: bool,
}

impl Room {
    fn is_none(&self) -> bool {
        self.bytes < FLOOR_BYTES || (self.counts_names && self.names == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_room_is_too_few_bytes_or_no_name() {
        let none = |bytes, names, counts_names| Room { bytes, names, counts_names }.is_none();
        assert!(none(0, 10, true));
        assert!(none(1024, 10, true));
        assert!(none(1 << 30, 0, true));
        assert!(!none(1 << 30, 0, false));
        assert!(!none(1 << 30, 1, true));
    }

    #[test]
    fn a_place_that_cannot_be_asked_is_not_called_full() {
        assert_eq!(full_disk([Utf8Path::new("/no/such/place")]), None);
    }
}
