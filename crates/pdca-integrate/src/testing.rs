//! For tests: faults that nothing else can bring about, and searches over made-up batches.

pub mod laws;
pub mod simulation;

use gix::ObjectId;

use crate::{
    git::fence::{Fence, Log},
    git::land::{LandError, Landed, Onto, land_as},
    git::store::Store,
    queue::verdict::Gated,
};

/// Lands as [`land`](crate::land) does, but writes another commit than the one that was gated, to
/// see that it is caught.
pub fn land_another(
    store: &Store,
    fence: &Fence,
    gated: &Gated,
    onto: Onto<'_>,
    log: Log<'_>,
    another: ObjectId,
) -> Result<Landed, LandError> {
    land_as(store, fence, gated, onto, log, another)
}
