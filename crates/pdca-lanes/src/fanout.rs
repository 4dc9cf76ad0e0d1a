//! One tree written to many directories at once.
//!
//! The tree is walked once and each blob is decoded once, then written to every place. Threads
//! take whole directories, files are opened relative to a handle of theirs, and the stat data
//! that is at hand then goes straight into the index of each place. File times are set back by
//! some seconds: a file as young as its index would be read again by git, because a change in
//! the same second would not show in its time.

mod image;
mod plan;
mod writer;

use std::os::fd::OwnedFd;

use gix::index::entry::Stat;

pub(crate) use self::{
    image::{Image, seal},
    plan::WritePlan,
};
use crate::failure::LaneError;

/// Writes the files of the plan below each root, none of which has any of them yet.
///
/// Says for each root what the stat data of each file is; `tell` hears how many are written.
pub(crate) fn write(
    plan: &WritePlan,
    repo: &gix::Repository,
    roots: &[OwnedFd],
    tell: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Vec<Stat>>, LaneError> {
    writer::Writer::new(plan, repo, roots, tell)?.run()
}
