//! A runtime, as programs hold it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::context;
use super::inner::Inner;
use crate::sync::atomic::Ordering;

/// Worker threads, their queues and timers: what tasks and actors run on.
///
/// A clone is cheap and means the same runtime. When the last *counting* clone is dropped, the
/// runtime shuts down as by [`shutdown`](Runtime::shutdown) with a grace of zero, on the dropping
/// thread; if that is one of its own threads, without waiting for that one. That also holds if the clone
/// goes with a thread-local of such a thread. The runtime that `builder` gives counts, and so do its
/// clones; those of [`current`](Runtime::current) and [`try_current`](Runtime::try_current) and their
/// clones do not.
///
/// A counting clone that is moved into a task of the runtime keeps it alive until that task ends.
/// Addresses, handles, tasks and pinned threads do not keep it alive.
///
/// # In a child of `fork`
///
/// A process that was forked from that of the runtime has a copy of its memory, and none of its threads.
///
/// - What would wait for the runtime, spawn on it or wake something there gives an error where it has one for
///   that, such as [`SpawnProblem::Forked`](crate::SpawnProblem::Forked) and
///   [`HostFault::Gone`](crate::HostFault::Gone). Otherwise it panics, and says why. A
///   [`tell`](crate::Address::tell) that wakes nobody is accepted, and the message stays in the queue.
/// - To drop the runtime, and all that belongs to it, takes no time, and drops nothing that lives there.
/// - A new runtime works as in any process, wherever this one was forked.
/// - If it was forked in a task or an actor, the child goes on with that turn. At the end of the turn it aborts,
///   with a text on stderr: let it `exec` or `_exit` before.
///
/// A child that is made by a system call, and not by the C library's `fork`, is taken for its parent.
///
/// ```
/// let runtime = greenroom::Runtime::builder().workers(2).build()?;
/// let sum = runtime.block_on(async {
///     let tasks: Vec<_> = (1..=4).map(|n| greenroom::spawn(async move { n * n })).collect();
///     let mut sum = 0;
///     for task in tasks {
///         sum += task.await;
///     }
///     sum
/// });
/// assert_eq!(sum, 30);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub struct Runtime {
    pub(super) inner: Arc<Inner>,
    counts: bool,
}

impl Runtime {
    pub(super) fn counting(inner: Arc<Inner>) -> Self {
        Runtime {
            inner,
            counts: true,
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// The runtime whose task, or whose `block_on`, this is called from.
    ///
    /// # Panics
    /// If there is none.
    #[track_caller]
    pub fn current() -> Runtime {
        // No closure: the panic is the caller's.
        match Runtime::try_current() {
            Some(runtime) => runtime,
            None => panic!("{}", crate::SpawnProblem::NoRuntime),
        }
    }

    /// The runtime whose task, or whose `block_on`, this is called from, if any.
    pub fn try_current() -> Option<Runtime> {
        context::runtime().map(Runtime::not_counting)
    }

    pub(crate) fn not_counting(inner: Arc<Inner>) -> Self {
        Runtime {
            inner,
            counts: false,
        }
    }
}

impl Clone for Runtime {
    fn clone(&self) -> Self {
        if self.counts {
            // Relaxed: a new clone comes from one that counts, so the count is not zero.
            self.inner.counting.fetch_add(1, Ordering::Relaxed);
        }
        Runtime {
            inner: self.inner.clone(),
            counts: self.counts,
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // AcqRel: what was done through the other clones is done before the shutdown.
        if !self.counts || self.inner.counting.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        if !self.inner.is_here() {
            return;
        }
        if !context::is_inside(&self.inner) {
            return self.inner.close(Duration::ZERO);
        }
        // Once it is under way, it waits for this thread or is this very stack.
        if !self.inner.shutdown.has_begun() {
            // It ends when this turn does, so it must not be waited for here.
            self.inner.begin_close(Duration::ZERO);
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("workers", &self.inner.options().workers)
            .field("thread_name", &self.inner.options().thread_name)
            .finish_non_exhaustive()
    }
}
