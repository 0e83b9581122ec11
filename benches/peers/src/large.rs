//! The common parts of the cases with large messages, which are sent by value.

use std::time::Instant;

use crate::crowds::Share;
use crate::figures::{self, Figure, check, rate};
use crate::process::Peak;

/// A message of `N` bytes.
pub struct Bytes<const N: usize>([u8; N]);

impl<const N: usize> Bytes<N> {
    /// Creates the message with this number in all bytes.
    pub fn of(n: u64) -> Self {
        Self([n as u8; N])
    }

    /// Returns the sum of the first and the last byte.
    pub fn ends(&self) -> u64 {
        u64::from(self.0[0]) + u64::from(self.0[N - 1])
    }
}

/// Measures the figures of a case: `send_all` sends this number of messages to an actor, which adds
/// their ends to its share; returns what holds the actor.
pub async fn large<A>(count: u64, send_all: impl AsyncFnOnce(Share) -> A) -> Vec<Figure> {
    let (share, mut sums) = Share::of(count);
    let (peak, begin) = (Peak::now(), Instant::now());
    let _actor = send_all(share).await;
    let sum = sums.recv().await.expect("all are sent");
    let figures = vec![rate(figures::MESSAGES, count, begin), peak.mebibytes()];
    check(
        "ends",
        sum,
        (0..count).map(|n| 2 * u64::from(n as u8)).sum(),
    );
    figures
}
