//! Test support: faults that cannot be provoked otherwise, and searches over synthetic batches.

pub mod laws;
pub mod shared_file;
pub mod simulation;

use gix::ObjectId;

use crate::{
    git::fence::{Fence, ReflogEntry},
    git::land::{LandError, Landed, Onto, land_as},
    git::store::Store,
    queue::verdict::Gated,
};

/// Lands like [`land`](crate::land), but writes another commit than the gated one, to show that it is noticed.
pub fn land_another(
    store: &Store,
    fence: &Fence,
    gated: &Gated,
    onto: Onto<'_>,
    log: ReflogEntry<'_>,
    another: ObjectId,
) -> Result<Landed, LandError> {
    land_as(store, fence, gated, onto, log, another)
}
