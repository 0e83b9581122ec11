//! What each worker counts as it goes.

use crate::sync::atomic::{AtomicU64, Ordering};

/// What one worker has done since the runtime was built, and how much waits for it.
///
/// It is that of a place among the workers: threads that take turns in it count together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// How many turns of tasks and actors it has begun: polls, an actor's for a batch of messages.
    pub runs: u64,
    /// How often it has taken from another worker, one or several at once; 0 with policies other
    /// than [`Stealing`](crate::policy::Stealing).
    pub steals: u64,
    /// How often it has taken from what came from outside the workers, one or several at once; 0
    /// with policies other than [`Stealing`](crate::policy::Stealing).
    pub injector_takes: u64,
    /// How often it has parked: gone to sleep for want of work.
    pub parks: u64,
    /// How often it has gone on after that, for whatever reason. It sleeps now if this is one less.
    pub wake_ups: u64,
    /// How many tasks and actors wait in its own queue; others may take them. 0 with policies other
    /// than [`Stealing`](crate::policy::Stealing).
    pub queued: usize,
}

/// One worker's counters, on a cache line of their own. Only its worker writes them.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Counters {
    runs: AtomicU64,
    steals: AtomicU64,
    parks: AtomicU64,
    /// How many of these parks are over.
    wake_ups: AtomicU64,
    injected: AtomicU64,
}

/// What a worker counts besides its runs.
#[derive(Clone, Copy)]
pub(crate) enum Counted {
    /// It took from another one.
    Steal,
    Park,
    /// It took something that came from outside.
    Injected,
}

impl Counters {
    pub(crate) fn begin_run(&self) {
        add_one(&self.runs);
    }

    pub(crate) fn runs(&self) -> u64 {
        read(&self.runs)
    }

    pub(crate) fn count(&self, event: Counted) {
        add_one(match event {
            Counted::Steal => &self.steals,
            Counted::Park => {
                // Whoever parks again was awake.
                self.wake_up();
                &self.parks
            }
            Counted::Injected => &self.injected,
        });
    }

    /// The worker is awake: all its parks are over.
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
            // Both may have risen between the two looks.
            parks: read(&self.parks).max(wake_ups),
            wake_ups,
            queued,
        }
    }
}

fn read(counter: &AtomicU64) -> u64 {
    // Relaxed: a count.
    counter.load(Ordering::Relaxed)
}

fn add_one(counter: &AtomicU64) {
    // Relaxed: only its worker writes it, and it publishes nothing.
    counter.store(read(counter).wrapping_add(1), Ordering::Relaxed);
}
