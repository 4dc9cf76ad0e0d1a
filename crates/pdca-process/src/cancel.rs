//! Cancellation of running children from another thread.

use std::io;
use std::io::{PipeReader, PipeWriter, Write as _};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A handle that ends every [`run`](crate::run) it was given to. Clones share one state.
///
/// It takes a lock, so it must not be used inside a signal handler: let a thread wait for the signal and call it.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    urgency: AtomicU8,
    wakers: Mutex<Wakers>,
}

#[derive(Debug, Default)]
struct Wakers {
    next: u64,
    live: Vec<(u64, PipeWriter)>,
    children: Vec<Weak<Shared>>,
}

/// The most urgent end that was asked for so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    None,
    Cancel,
    Kill,
}

impl Cancel {
    /// Creates a handle that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a handle for a part of the work. Cancelling `self` cancels the part, but not the other way round.
    #[must_use]
    pub fn part(&self) -> Self {
        let part = Self::new();
        let mut wakers = self.lock();
        wakers.children.retain(|child| child.strong_count() > 0);
        wakers.children.push(Arc::downgrade(&part.shared));
        drop(wakers);
        // `self` may have been cancelled before the part was listed, and would not notify it then.
        part.raise(self.shared.urgency.load(Ordering::SeqCst));
        part
    }

    /// Asks for an orderly end: `SIGTERM`, the grace period, then `SIGKILL`.
    pub fn cancel(&self) {
        self.raise(1);
    }

    /// Asks for an immediate end: `SIGKILL`.
    pub fn kill(&self) {
        self.raise(2);
    }

    /// Returns true if any end was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.urgency() >= Urgency::Cancel
    }

    /// Returns true if an immediate end was asked for.
    pub fn is_killed(&self) -> bool {
        self.urgency() == Urgency::Kill
    }

    pub(crate) fn urgency(&self) -> Urgency {
        match self.shared.urgency.load(Ordering::SeqCst) {
            0 => Urgency::None,
            1 => Urgency::Cancel,
            _ => Urgency::Kill,
        }
    }

    fn raise(&self, urgency: u8) {
        if self.shared.urgency.fetch_max(urgency, Ordering::SeqCst) >= urgency {
            return;
        }
        let mut wakers = self.lock();
        for (_, waker) in &mut wakers.live {
            // At most two bytes are ever written, so the pipe is never full. A reader that is gone needs no
            // notification.
            let _written = waker.write(&[urgency]);
        }
        let parts: Vec<Self> = wakers
            .children
            .iter()
            .filter_map(Weak::upgrade)
            .map(|shared| Self { shared })
            .collect();
        // Unlocked first: raising a part takes that part's own lock.
        drop(wakers);
        for part in parts {
            part.raise(urgency);
        }
    }

    /// Returns a descriptor that becomes readable when an end is asked for.
    pub(crate) fn subscribe(&self) -> io::Result<Subscription> {
        let (reader, writer) = io::pipe()?;
        let mut wakers = self.lock();
        let id = wakers.next;
        wakers.next += 1;
        // An end that was asked for before is not in the pipe. A subscriber therefore reads the
        // urgency before it waits.
        wakers.live.push((id, writer));
        Ok(Subscription { cancel: self.clone(), id, reader })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Wakers> {
        self.shared.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The registration of a run that waits for cancellation; removed on drop.
#[derive(Debug)]
pub(crate) struct Subscription {
    cancel: Cancel,
    id: u64,
    pub(crate) reader: PipeReader,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut wakers = self.cancel.lock();
        wakers.live.retain(|(id, _)| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_is_never_softened_to_a_cancel() {
        let cancel = Cancel::new();
        cancel.kill();
        cancel.clone().cancel();
        assert!(cancel.is_killed());
    }

    #[test]
    fn an_end_reaches_every_part_and_the_end_of_a_part_nobody_else() {
        let whole = Cancel::new();
        let (one, other) = (whole.part(), whole.part());
        one.cancel();
        assert!(!whole.is_cancelled() && !other.is_cancelled());
        let below = other.part();
        whole.cancel();
        assert!(below.is_cancelled() && !below.is_killed());
        whole.kill();
        assert!(one.is_killed() && below.is_killed() && whole.part().is_killed());
    }

    #[test]
    fn a_dropped_subscription_is_forgotten() {
        let cancel = Cancel::new();
        let kept = cancel.subscribe().unwrap();
        drop(cancel.subscribe().unwrap());
        assert_eq!(cancel.lock().live.len(), 1);
        drop(kept);
        assert_eq!(cancel.lock().live.len(), 0);
    }
}
