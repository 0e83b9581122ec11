//! Since when a connection has answered its last request, for the listener that needs its place.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// The moment, in microseconds of this process, or 0 while a request is being answered.
#[derive(Debug)]
pub(crate) struct IdleSince(AtomicU64);

impl IdleSince {
    /// Creates that of a connection which begins now.
    pub(crate) fn now() -> Self {
        IdleSince(AtomicU64::new(moment()))
    }

    /// Returns the moment, if the connection is idle.
    pub(crate) fn get(&self) -> Option<u64> {
        // Relaxed: a connection that becomes busy meanwhile was idle.
        Some(self.0.load(Relaxed)).filter(|moment| *moment > 0)
    }

    pub(super) fn set(&self, is_idle: bool) {
        self.0.store(if is_idle { moment() } else { 0 }, Relaxed);
    }
}

fn moment() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let micros = FIRST.get_or_init(Instant::now).elapsed().as_micros();
    1 + micros as u64
}

#[cfg(test)]
mod tests {
    use super::IdleSince;

    #[test]
    fn a_connection_is_idle_since_its_last_answer() {
        let (first, second) = (IdleSince::now(), IdleSince::now());
        assert!(first.get() <= second.get() && first.get().is_some());
        first.set(false);
        assert_eq!(first.get(), None);
        first.set(true);
        assert!(first.get() >= second.get());
    }
}
