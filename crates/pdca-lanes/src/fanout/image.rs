//! The bytes of an index, built once and completed with the stat data of each checkout.

use gix::index::entry::Stat;

use super::plan::WritePlan;
use crate::failure::LaneError;

/// An index of version 2 without stat data and without its checksum.
///
/// Written here because gix cannot write the `TREE` extension, with which git compares the index with HEAD without
/// reading a single tree.
#[derive(Debug)]
pub(crate) struct Image {
    hash: gix::hash::Kind,
    bytes: Vec<u8>,
    /// The offset of each entry.
    entries: Vec<usize>,
}

/// The bytes of an entry before its id: times, device and inode, mode, owner, size.
const FIXED: usize = 40;

impl Image {
    /// Builds the index of a plan.
    pub(crate) fn of(plan: &WritePlan) -> Result<Self, LaneError> {
        let entry = FIXED + plan.hash.len_in_bytes() + 10;
        let mut bytes = Vec::with_capacity(plan.files.len() * (entry + 40) + plan.trees.len());
        bytes.extend_from_slice(b"DIRC");
        bytes.extend_from_slice(&2_u32.to_be_bytes());
        bytes.extend_from_slice(&length(plan.files.len())?);
        let mut entries = Vec::with_capacity(plan.files.len());
        for file in &plan.files {
            let start = bytes.len();
            entries.push(start);
            bytes.resize(start + FIXED, 0);
            bytes[start + 24..start + 28].copy_from_slice(&file.mode.bits().to_be_bytes());
            bytes.extend_from_slice(file.id.as_slice());
            let path = plan.path(file);
            // The length field has 12 bits; a longer path is delimited by its zero byte.
            let short = u16::try_from(path.len()).unwrap_or(u16::MAX).min(0xfff);
            bytes.extend_from_slice(&short.to_be_bytes());
            bytes.extend_from_slice(path);
            let long = bytes.len() - start;
            // An entry ends with one to eight zero bytes, so that its length is a multiple of eight
            // and its path is terminated.
            bytes.resize(start + (long + 8) / 8 * 8, 0);
        }
        bytes.extend_from_slice(b"TREE");
        bytes.extend_from_slice(&length(plan.trees.len())?);
        bytes.extend_from_slice(&plan.trees);
        Ok(Self { hash: plan.hash, bytes, entries })
    }

    /// Returns the complete index for files with this stat data.
    pub(crate) fn with(&self, stats: &[Stat]) -> Result<Vec<u8>, LaneError> {
        let mut bytes = Vec::with_capacity(self.bytes.len() + self.hash.len_in_bytes());
        bytes.extend_from_slice(&self.bytes);
        for (start, stat) in self.entries.iter().zip(stats) {
            let first = [
                stat.ctime.secs,
                stat.ctime.nsecs,
                stat.mtime.secs,
                stat.mtime.nsecs,
                stat.dev,
                stat.ino,
            ];
            put(&mut bytes[*start..], &first);
            put(&mut bytes[start + 28..], &[stat.uid, stat.gid, stat.size]);
        }
        seal(self.hash, &mut bytes)?;
        Ok(bytes)
    }
}

/// Appends the checksum of an index.
pub(crate) fn seal(hash: gix::hash::Kind, bytes: &mut Vec<u8>) -> Result<(), LaneError> {
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(bytes);
    let sum =
        hasher.try_finalize().map_err(|source| LaneError::objects("write the index", source))?;
    bytes.extend_from_slice(sum.as_slice());
    Ok(())
}

fn put(bytes: &mut [u8], numbers: &[u32]) {
    for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
}

fn length(length: usize) -> Result<[u8; 4], LaneError> {
    let length = u32::try_from(length).map_err(|_| LaneError::Io {
        doing: "write the index",
        source: std::io::ErrorKind::FileTooLarge.into(),
    })?;
    Ok(length.to_be_bytes())
}
