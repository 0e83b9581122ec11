//! The handle of a runtime that programs hold.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::context;
use super::inner::Inner;
use crate::sync::atomic::Ordering;

/// A runtime: worker threads with their queues and timers, which run tasks and actors.
///
/// Cloning is cheap, and a clone refers to the same runtime. A runtime is created by
/// [`Runtime::new`], [`Runtime::builder`] or [`greenroom::run`](crate::run()).
///
/// # Dropping
///
/// The runtime shuts down when its last *counting* clone is dropped. The runtime that
/// [`build`](crate::Builder::build) returns counts, and so do its clones. Clones from
/// [`current`](Runtime::current) and [`try_current`](Runtime::try_current), and clones of these, do
/// not count. Addresses, handles, tasks and pinned threads do not keep a runtime alive either.
///
/// This shutdown is like [`shutdown`](Runtime::shutdown) with a grace of zero. It blocks the
/// dropping thread. If that is one of the runtime's own threads, the shutdown does not wait for
/// that thread. This also holds if the clone is dropped with a thread-local of such a thread.
///
/// A counting clone that is moved into a task of the runtime keeps the runtime alive until that
/// task ends.
///
/// # In a child of `fork`
///
/// A process that was forked from the process of the runtime has a copy of its memory but none of
/// its threads. In the child:
///
/// - Operations that would wait for the runtime, spawn on it or wake a task there return an error
///   if they have one for this case, such as [`SpawnProblem::Forked`](crate::SpawnProblem::Forked)
///   and [`HostFault::Gone`](crate::HostFault::Gone). Otherwise they panic with a text that gives
///   the reason. A [`tell`](crate::Address::tell) that wakes no task is accepted, and the message
///   stays in the mailbox.
/// - Dropping the runtime, and everything that belongs to it, returns at once and drops nothing
///   that lives on the runtime.
/// - A new runtime works as in any other process, wherever the fork happened.
/// - If the fork happened in a task or an actor, the child continues with that turn. At the end of
///   the turn the child aborts, with a message on stderr. Call `exec` or `_exit` before that.
///
/// A child that was made by a raw system call, and not by the C library's `fork`, is taken for its
/// parent.
///
/// # Examples
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

    /// Returns the current runtime: the one whose task, actor or [`block_on`](Runtime::block_on)
    /// runs on this thread. On the thread of a [`Stage`](crate::Stage) it is the runtime of the
    /// stage.
    ///
    /// The handle does not keep the runtime alive.
    ///
    /// # Panics
    /// If there is no current runtime.
    #[track_caller]
    pub fn current() -> Runtime {
        // No closure, so that the panic has the caller's location.
        match Runtime::try_current() {
            Some(runtime) => runtime,
            None => panic!("{}", crate::SpawnProblem::NoRuntime),
        }
    }

    /// Returns the [current](Runtime::current) runtime, or `None` if there is none.
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
            // Relaxed: the clone is made from a counting one, so the count is not zero.
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
        // AcqRel: the effects of the other clones happen before the shutdown.
        if !self.counts || self.inner.counting.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        if !self.inner.is_here() {
            return;
        }
        if !context::is_inside(&self.inner) {
            return self.inner.close(Duration::ZERO);
        }
        // A shutdown that has begun waits for this thread, or is running on this stack.
        if !self.inner.shutdown.has_begun() {
            // The shutdown waits for the end of this turn, so this turn must not wait for the
            // shutdown.
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
