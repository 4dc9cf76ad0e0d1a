//! A worker: one thread, pinned to a slot, that runs one bundle after the other.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{BundleId, Done, Panicked, Scope, Sender, Work, words};

/// The dispatcher's end of a worker. Dropping it ends the worker after its present bundle.
pub(super) struct Worker {
    jobs: Sender<BundleId>,
}

impl Worker {
    /// Assigns the next bundle. The dispatcher knows that the worker is idle.
    pub(super) fn assign(&self, id: BundleId) {
        self.jobs.send(id).expect("the worker ends only when this end is dropped");
    }
}

/// Spawns the worker of a slot, which passes `lane` to the work.
///
/// A panic of the work is caught and reported as the end of that bundle; other bundles go on.
pub(super) fn spawn_worker<'scope, T: Send>(
    scope: &'scope Scope<'scope, '_>,
    slot: usize,
    lane: Option<u32>,
    work: Work<'scope, T>,
    reports: &'scope Sender<Done<T>>,
) -> io::Result<Worker> {
    // One place is enough: the dispatcher assigns only to an idle worker, so sending never blocks
    // it.
    let (jobs, given) = crossbeam_channel::bounded::<BundleId>(1);
    let thread = std::thread::Builder::new().name(format!("lane-{slot}"));
    thread.spawn_scoped(scope, move || {
        for id in given {
            // State shared with other workers is behind locks that recover from poisoning, and a
            // bundle's files are replaced whole.
            let result = catch_unwind(AssertUnwindSafe(|| work(&id, lane)));
            let result = result.map_err(|panic| Panicked(words(panic.as_ref())));
            // The dispatcher outlives its workers.
            drop(reports.send(Done { slot, id, result }));
        }
    })?;
    Ok(Worker { jobs })
}
