//! Numbers that tell actors apart for the whole life of the process.

use std::cell::Cell;

use crate::sync::global::{AtomicU64, Ordering};

/// A number that was not given out before.
///
/// They are handed to threads in ranges, so that spawning threads do not share a counter's line.
pub(super) fn next() -> u64 {
    const RANGE: u64 = 1024;
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static OWN: Cell<(u64, u64)> = const { Cell::new((0, 0)) });
    // Relaxed: a number is unique because it is handed out once; it publishes nothing.
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
