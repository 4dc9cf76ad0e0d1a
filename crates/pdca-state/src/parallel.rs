//! Work on many bundles, spread over the cores.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maps chunks of so many items on all cores, and returns the results in the order of the items. Fewer items than a
/// chunk are not worth another thread.
pub fn map_chunks<T: Sync, R: Send>(
    items: &[T],
    size: NonZero<usize>,
    map: impl Fn(&[T]) -> Vec<R> + Sync,
) -> Vec<R> {
    let chunks: Vec<&[T]> = items.chunks(size.get()).collect();
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            // Threads take the next chunk and have no fixed share: bundles differ in how much there
            // is to read.
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = chunks.get(place) else { return done };
            done.push((place, map(chunk)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        // If the system grants no thread, this one does all the work.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..cores.min(chunks.len())).filter_map(start).collect();
        let mut done = work();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let size = NonZero::new(3).unwrap();
        for count in [0, 1, 3, 4, 100] {
            let items: Vec<usize> = (0..count).collect();
            let doubled = map_chunks(&items, size, |chunk| chunk.iter().map(|n| n * 2).collect());
            assert_eq!(doubled, (0..count).map(|n| n * 2).collect::<Vec<_>>());
        }
    }
}
