//! The common parts of the cases with loopers: the jobs, and the tasks that post them.
//!
//! Each task posts a round of jobs to its share of the loopers, awaits all results, and goes on
//! with the next round. Each job counts, so the sum of all results shows a lost one.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::executors::Executor;
use crate::figures::{Figure, check, nanoseconds, sum_below};
use crate::sizes::{LOOPER_LOCKS, LOOPER_QUEUE, LOOPER_TASKS, LOOPERS};

/// A task of a looper. It returns how many counts there were before.
#[derive(Clone, Copy)]
pub enum Job {
    /// Counts in a counter of its looper, without a lock.
    Free,
    /// Reads the count behind the lock with this index, which it shares.
    Shared(usize),
    /// Counts behind the lock with this index.
    Exclusive(usize),
}

/// Serial queues, with locks that their jobs may ask for.
pub trait Loopers: Send + Sync + 'static {
    /// Why a job has no result.
    type Lost: Debug;
    /// The result of a posted job.
    type Posted: Future<Output = Result<u64, Self::Lost>> + Send;

    /// Posts a job to the looper with this index.
    fn post(&self, looper: usize, job: Job) -> Self::Posted;
}

/// The jobs of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// None asks for a lock.
    Free,
    /// Nine of ten share a lock, the others exclude all others from it.
    MostlyShared,
    /// Each excludes all others from a lock.
    Exclusive,
}

impl Jobs {
    /// Returns the `n`th job of a looper.
    fn job(self, looper: usize, n: u64) -> Job {
        // Multiples of the golden ratio, modulo 1, are spread evenly and follow no short period.
        let number = n * LOOPERS as u64 + looper as u64;
        let spread = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        let lock = spread % LOOPER_LOCKS;
        match self {
            Self::Free => Job::Free,
            Self::MostlyShared if !(spread / LOOPER_LOCKS).is_multiple_of(10) => Job::Shared(lock),
            Self::MostlyShared | Self::Exclusive => Job::Exclusive(lock),
        }
    }

    /// Returns the sum of what the jobs that count return, in any order.
    fn sum(self, each: u64) -> u64 {
        let mut counts = vec![0; LOOPERS.max(LOOPER_LOCKS)];
        for (looper, n) in (0..LOOPERS).flat_map(|looper| (0..each).map(move |n| (looper, n))) {
            match self.job(looper, n) {
                Job::Free => counts[looper] += 1,
                Job::Exclusive(lock) => counts[lock] += 1,
                Job::Shared(_) => {}
            }
        }
        counts
            .into_iter()
            .filter(|&count| count > 0)
            .map(sum_below)
            .sum()
    }
}

/// The counters of all loopers.
pub struct Counters(Vec<Arc<AtomicU64>>);

impl Counters {
    /// Creates a counter for each looper.
    pub fn new() -> Self {
        Self((0..LOOPERS).map(|_| Arc::default()).collect())
    }

    /// Returns a job of this looper without a lock.
    pub fn job(&self, looper: usize) -> impl FnOnce() -> u64 + Send + 'static {
        let counter = self.0[looper].clone();
        move || counter.fetch_add(1, Ordering::Relaxed)
    }
}

/// Counts; the job of [`Job::Exclusive`].
pub fn count(counter: &mut u64) -> u64 {
    let before = *counter;
    *counter += 1;
    before
}

/// Posts `rounds` rounds of jobs to some of the loopers, and returns the sum of what the jobs that
/// count return.
async fn post(loopers: Arc<impl Loopers>, own: Range<usize>, jobs: Jobs, rounds: u64) -> u64 {
    let mut sum = 0;
    let mut posted = Vec::with_capacity(own.len() * LOOPER_QUEUE as usize);
    for round in 0..rounds {
        for n in round * LOOPER_QUEUE..(round + 1) * LOOPER_QUEUE {
            posted.extend(own.clone().map(|looper| {
                let job = jobs.job(looper, n);
                (job, loopers.post(looper, job))
            }));
        }
        for (job, result) in posted.drain(..) {
            let before = result.await.expect("no job is lost");
            match job {
                Job::Shared(_) => assert!(before <= rounds * LOOPER_QUEUE * LOOPERS as u64),
                Job::Free | Job::Exclusive(_) => sum += before,
            }
        }
    }
    sum
}

/// Lets some tasks post all jobs, and returns the time of a job. The loopers are new.
pub async fn rounds<E: Executor>(
    what: &'static str,
    loopers: impl Loopers,
    jobs: Jobs,
    rounds: u64,
) -> Figure {
    const SHARE: usize = LOOPERS / LOOPER_TASKS;
    let loopers = Arc::new(loopers);
    let begin = Instant::now();
    let tasks = (0..LOOPER_TASKS).map(|task| {
        let own = task * SHARE..(task + 1) * SHARE;
        E::spawn(post(loopers.clone(), own, jobs, rounds))
    });
    let mut sum = 0;
    for task in tasks.collect::<Vec<_>>() {
        sum += task.await;
    }
    let each = rounds * LOOPER_QUEUE;
    let time = nanoseconds(what, each * LOOPERS as u64, begin);
    check("counts", sum, jobs.sum(each));
    time
}
