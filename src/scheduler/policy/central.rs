//! Policies with one set of queues for all workers: work sharing and strict priorities.
//!
//! The queues are behind a mutex, with a condition variable for idle workers. Nothing polls: a
//! worker that finds the queues empty waits until there is an entry, or until it has other duties.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU32;

use super::{Duties, Policy, Runnable, Setup};
use crate::sync::{Condvar, Mutex};

/// The queues of all workers: one for each level of priority.
struct Central {
    queues: Mutex<CentralQueues>,
    changed: Condvar,
}

struct CentralQueues {
    levels: Box<[VecDeque<Runnable>]>,
    /// Every so many turns the lowest level goes first.
    aging: Option<NonZeroU32>,
    turns: u32,
    /// The number of workers that wait.
    waiting: usize,
}

impl Central {
    /// Creates queues for the levels up to `highest`. Of `aging` turns one serves the lowest level;
    /// 0 means none.
    fn new(highest: u8, aging: u32) -> Self {
        Central {
            queues: Mutex::new(CentralQueues {
                levels: (0..=highest).map(|_| VecDeque::new()).collect(),
                aging: NonZeroU32::new(aging),
                turns: 0,
                waiting: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Adds a runnable, and wakes a worker if one waits.
    fn push(&self, runnable: Runnable) {
        let mut queues = self.queues.lock();
        queues.push(runnable);
        let wanted = queues.waiting > 0;
        drop(queues);
        if wanted {
            self.changed.notify_one();
        }
    }

    /// Takes the next runnable, or waits for one as long as the duties allow.
    fn pop(&self, duties: &Duties<'_>) -> Option<Runnable> {
        let mut queues = self.queues.lock();
        let mut over = false;
        loop {
            if let Some(runnable) = queues.pop() {
                return Some(runnable);
            }
            let wait = duties.until_next();
            if over || duties.must_return() || wait.is_some_and(|wait| wait.is_zero()) {
                return None;
            }
            duties.parks();
            queues.waiting += 1;
            queues = self.changed.wait(queues, wait);
            queues.waiting -= 1;
            // After a timed wait, check the queue once more, and then return to fire the deadline.
            over = wait.is_some();
        }
    }

    /// Wakes all workers that wait, so that they check their duties.
    fn interrupt(&self) {
        // A worker that read its duties before they changed waits once the lock is free.
        drop(self.queues.lock());
        self.changed.notify_all();
    }
}

impl CentralQueues {
    fn push(&mut self, runnable: Runnable) {
        let highest = self.levels.len() - 1;
        let level = usize::from(runnable.priority()).min(highest);
        self.levels[level].push_back(runnable);
    }

    /// Takes the oldest runnable of the highest level or, at every `aging`-th turn, of the lowest.
    fn pop(&mut self) -> Option<Runnable> {
        let turn = self.turns.wrapping_add(1);
        let lowest_first = self
            .aging
            .is_some_and(|aging| turn.is_multiple_of(aging.get()));
        let mut levels = self.levels.iter_mut();
        let popped = if lowest_first {
            levels.find_map(VecDeque::pop_front)
        } else {
            levels.rev().find_map(VecDeque::pop_front)
        };
        // An empty queue is no turn.
        if popped.is_some() {
            self.turns = turn;
        }
        popped
    }
}

/// Work sharing: one first-in, first-out queue for all workers, behind a mutex.
///
/// Idle workers wait on a condition variable and never poll. It suits machines with few cores, and
/// programs that should draw little power. Every turn takes the same lock, so the policy does not
/// scale as [`Stealing`](super::Stealing) does. It is strictly fair: tasks run in the order in
/// which they became ready. It ignores priorities.
///
/// # Examples
///
/// ```
/// use greenroom::{Runtime, policy};
///
/// let runtime = Runtime::builder().policy(policy::Sharing::default()).build()?;
/// assert_eq!(runtime.block_on(async { greenroom::spawn(async { 40 + 2 }).await }), 42);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub struct Sharing(Central);

impl Default for Sharing {
    fn default() -> Self {
        // One level, which all priorities have.
        Sharing(Central::new(0, 0))
    }
}

impl fmt::Debug for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharing").finish_non_exhaustive()
    }
}

impl Policy for Sharing {
    type Worker = ();

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        self.0.push(runnable);
    }

    fn dequeue(&self, _worker: &(), duties: &Duties<'_>) -> Option<Runnable> {
        self.0.pop(duties)
    }

    fn interrupt(&self) {
        self.0.interrupt();
    }
}

/// Strict priorities: the highest level first, and round-robin within a level.
///
/// The levels range from 0, the lowest and the default, to the runtime's
/// [`priorities`](crate::Builder::priorities). The `priority` option of an actor sets its level.
/// Plain tasks have level 0.
///
/// **A level that is always busy starves all lower levels**: their tasks do not run while the
/// higher level has ready tasks for every worker. [`aging`](Prioritized::aging) bounds the wait.
///
/// All workers share the levels behind one mutex, as with [`Sharing`].
///
/// # Examples
///
/// ```
/// use greenroom::{Context, Runtime, policy, spawn};
///
/// async fn alarm(mut cx: Context<&'static str>) {
///     while let Some(text) = cx.recv().await {
///         println!("{text}");
///     }
/// }
///
/// let levels = policy::Prioritized::default().aging(100);
/// let runtime = Runtime::builder().policy(levels).priorities(3).build()?;
/// runtime.block_on(async {
///     let alarm = spawn!(alarm(_), priority = 3);
///     alarm.tell("fire").unwrap();
///     alarm.join().await.unwrap();
/// });
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub struct Prioritized(Central, u32);

impl Prioritized {
    /// Lets every `turns`-th turn serve the lowest level that has a ready task, so that no level
    /// starves.
    ///
    /// 0, the default, means never. 1 serves the lowest level at every turn.
    pub fn aging(self, turns: u32) -> Self {
        Prioritized(self.0, turns)
    }
}

impl Default for Prioritized {
    fn default() -> Self {
        Prioritized(Central::new(0, 0), 0)
    }
}

impl fmt::Debug for Prioritized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prioritized")
            .field("aging", &self.1)
            .finish_non_exhaustive()
    }
}

impl Policy for Prioritized {
    type Worker = ();

    fn start(&mut self, setup: &Setup) -> Result<(), String> {
        self.0 = Central::new(setup.highest_priority, self.1);
        Ok(())
    }

    fn worker(&self, _index: usize) {}

    fn central_enqueue(&self, runnable: Runnable) {
        self.0.push(runnable);
    }

    fn dequeue(&self, _worker: &(), duties: &Duties<'_>) -> Option<Runnable> {
        self.0.pop(duties)
    }

    fn interrupt(&self) {
        self.0.interrupt();
    }
}
