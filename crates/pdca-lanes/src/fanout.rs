//! Writing one tree to many directories at once.
//!
//! The tree is walked once and each blob is decoded once, then written to every directory. Threads take whole
//! directories and open files relative to their handles. The stat data that is at hand then goes directly into the
//! index of each checkout. File times are set back by some seconds: git would read a file again that is as young as its
//! index, because a change within the same second would not show in its time.

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
/// Returns the stat data of each file for each root. `tell` is called with the number of files written.
pub(crate) fn write(
    plan: &WritePlan,
    repo: &gix::Repository,
    roots: &[OwnedFd],
    tell: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Vec<Stat>>, LaneError> {
    writer::Writer::new(plan, repo, roots, tell)?.run()
}
