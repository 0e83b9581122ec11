//! How long asks take: one in 61 of a thread is timed.
//!
//! To read the clock twice costs a good part of an ask. The number is a prime, so that of asks that take
//! turns all are among the samples. An ask that is timed has a [listing](super::deadlock::Listing), which
//! another ask may have as well, and the start is there. Where all asks are listed, all are timed.

use std::sync::Arc;
use std::time::Duration;

use super::options::RuntimeOptions;
use crate::instant::Instant;
use crate::sync::MODEL;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::task::SampledTimes;

/// The number of asks of which one is timed, if they are not listed for another reason.
const SAMPLED_EVERY: u32 = 61;

/// Returns the number of asks of which one is listed.
pub(super) fn listed_every(options: &RuntimeOptions) -> u32 {
    match (options.lists_asks, options.counting) {
        (true, _) => 1,
        (false, true) => SAMPLED_EVERY,
        // So rarely that one is no matter. It has no time.
        (false, false) => u32::MAX,
    }
}

/// Returns the number of asks of a new context to the first one that is listed. It is random: a context
/// may see no more than a few.
// A call, so that the loop of a worker, which makes a context, has its registers.
#[inline(never)]
pub(super) fn listed_first(options: &RuntimeOptions) -> u32 {
    match listed_every(options) {
        SAMPLED_EVERY if !MODEL => fastrand::u32(1..=SAMPLED_EVERY),
        every => every,
    }
}

/// How long the timed asks of a runtime took.
#[derive(Default)]
pub(crate) struct AskTimes {
    counts: [AtomicU64; 8],
    nanos: AtomicU64,
}

/// An ask that is timed.
pub(crate) struct AskSample {
    begun: Instant,
    times: Arc<AskTimes>,
}

impl AskTimes {
    pub(super) fn read(&self) -> SampledTimes {
        // Relaxed: numbers, which publish nothing.
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        SampledTimes {
            total: Duration::from_nanos(read(&self.nanos)),
            counts: self.counts.each_ref().map(read),
        }
    }
}

impl AskSample {
    pub(super) fn begin(times: &Arc<AskTimes>) -> Self {
        AskSample {
            begun: Instant::now(),
            times: times.clone(),
        }
    }

    /// Notes that the ask has its outcome.
    pub(super) fn end(&self) {
        let took = self.begun.elapsed();
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: as above.
        self.times.counts[SampledTimes::index(took)].fetch_add(1, Ordering::Relaxed);
        self.times.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}
