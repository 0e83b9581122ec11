//! The counters of each worker.

use crate::sync::atomic::{AtomicU64, Ordering};

/// The activity counters of one worker since the runtime was built, and the length of its queue.
///
/// They belong to the worker's index and not to a thread. If another thread takes over the worker,
/// it continues the same counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// The number of turns that it has begun. A turn is one poll of a task, or of an actor, which
    /// handles up to a batch of messages.
    pub runs: u64,
    /// The number of times that it took one or more tasks from another worker. 0 with policies
    /// other than [`Stealing`](crate::policy::Stealing).
    pub steals: u64,
    /// The number of times that it took one or more tasks from the injector, where tasks from
    /// outside the workers are queued. 0 with policies other than
    /// [`Stealing`](crate::policy::Stealing).
    pub injector_takes: u64,
    /// The number of times that it parked because it found no work.
    pub parks: u64,
    /// The number of times that it woke up from parking, for any reason. The worker is parked now
    /// if this is one less than `parks`.
    pub wake_ups: u64,
    /// The number of tasks and actors in its local queue, from which other workers may steal. 0
    /// with policies other than [`Stealing`](crate::policy::Stealing).
    pub queued: usize,
}

/// One worker's counters, on separate cache lines. Only that worker writes them.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Counters {
    runs: AtomicU64,
    steals: AtomicU64,
    parks: AtomicU64,
    /// How many of these parks have ended.
    wake_ups: AtomicU64,
    injected: AtomicU64,
}

impl Counters {
    pub(crate) fn begin_run(&self) {
        add_one(&self.runs);
    }

    pub(crate) fn runs(&self) -> u64 {
        read(&self.runs)
    }

    /// Counts that the worker took entries from another worker.
    pub(crate) fn count_steal(&self) {
        add_one(&self.steals);
    }

    /// Counts that the worker took entries from the injector.
    pub(crate) fn count_injected(&self) {
        add_one(&self.injected);
    }

    pub(crate) fn count_park(&self) {
        // A worker that parks again was awake.
        self.wake_up();
        add_one(&self.parks);
    }

    /// Notes that the worker is awake: all its parks have ended.
    pub(crate) fn wake_up(&self) {
        // Relaxed: as in `add_one`.
        self.wake_ups.store(read(&self.parks), Ordering::Relaxed);
    }

    pub(crate) fn stats(&self, queued: usize) -> WorkerStats {
        let wake_ups = read(&self.wake_ups);
        WorkerStats {
            runs: read(&self.runs),
            steals: read(&self.steals),
            injector_takes: read(&self.injected),
            // Both may have increased between the two loads.
            parks: read(&self.parks).max(wake_ups),
            wake_ups,
            queued,
        }
    }
}

fn read(counter: &AtomicU64) -> u64 {
    // Relaxed: a counter, which publishes nothing.
    counter.load(Ordering::Relaxed)
}

fn add_one(counter: &AtomicU64) {
    // Relaxed: only its worker writes it, and it publishes nothing.
    counter.store(read(counter).wrapping_add(1), Ordering::Relaxed);
}
