//! A worker: one thread, pinned to a slot, that does one bundle after the other.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{BundleId, Done, Panicked, Scope, Sender, Work, words};

/// The dispatcher's end of a worker. Dropping it ends the worker after its present bundle.
pub(super) struct Lane {
    jobs: Sender<BundleId>,
}

impl Lane {
    /// Gives the worker its next bundle. It has none: the dispatcher knows who is busy.
    pub(super) fn give(&self, id: BundleId) {
        self.jobs.send(id).expect("the worker ends only when this end is dropped");
    }
}

/// Makes the worker of a slot, which calls itself `lane` to the work.
///
/// A panic of the work is an end like others: it is one bundle's and stops nobody else.
pub(super) fn hire<'scope, T: Send>(
    scope: &'scope Scope<'scope, '_>,
    slot: usize,
    lane: Option<u32>,
    work: Work<'scope, T>,
    reports: &'scope Sender<Done<T>>,
) -> io::Result<Lane> {
    let (jobs, given) = crossbeam_channel::bounded::<BundleId>(1);
    let thread = std::thread::Builder::new().name(format!("lane-{slot}"));
    thread.spawn_scoped(scope, move || {
        for id in given {
            let result = catch_unwind(AssertUnwindSafe(|| work(&id, lane)));
            let result = result.map_err(|panic| Panicked(words(panic.as_ref())));
            // The dispatcher outlives its workers.
            drop(reports.send(Done { slot, id, result }));
        }
    })?;
    Ok(Lane { jobs })
}
