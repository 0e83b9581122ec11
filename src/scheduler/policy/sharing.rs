//! Work sharing: one queue for all workers.

use std::collections::VecDeque;
use std::fmt;

use super::central::{Central, QueueOrder};
use super::{Duties, Policy, Runnable};

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
pub struct Sharing(Central<VecDeque<Runnable>>);

impl Default for Sharing {
    fn default() -> Self {
        Sharing(Central::new(VecDeque::new()))
    }
}

impl fmt::Debug for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharing").finish_non_exhaustive()
    }
}

impl QueueOrder for VecDeque<Runnable> {
    fn push(&mut self, runnable: Runnable) {
        self.push_back(runnable);
    }

    fn pop(&mut self) -> Option<Runnable> {
        self.pop_front()
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
