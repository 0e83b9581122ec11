//! Ids that tell actors apart for the whole life of the process.

use std::cell::Cell;

use crate::sync::global::{AtomicU64, Ordering};

/// Returns an id that was not returned before.
///
/// Each thread reserves a range of ids, so that threads that spawn do not contend for the cache
/// line of the counter.
pub(super) fn next() -> u64 {
    const RANGE: u64 = 1024;
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static OWN: Cell<(u64, u64)> = const { Cell::new((0, 0)) });
    // Relaxed: the RMW alone makes each range unique; it publishes nothing.
    let fresh = || NEXT.fetch_add(RANGE, Ordering::Relaxed);
    OWN.try_with(|own| {
        let (mut next, mut end) = own.get();
        if next == end {
            next = fresh();
            end = next + RANGE;
        }
        own.set((next + 1, end));
        next
    })
    .unwrap_or_else(|_| fresh())
}
