//! The options for the threads that the runtime starts: their stacks, and what is around them.

use super::Builder;
use crate::error::BuildError;
use crate::runtime::thread_set::Around;

/// The smallest stack, in bytes. A debug build has room there for small tasks of every kind, and
/// for their panics.
const STACK_MIN: usize = 128 << 10;
/// The largest stack, in bytes. A larger number is a mistake: the largest number of workers would
/// reserve more addresses than a system has.
const STACK_MAX: usize = 1 << 30;

impl Builder {
    /// Sets the size of the stack of each thread that the runtime starts, in bytes: 131 072 (128
    /// KiB) to 1 073 741 824 (1 GiB). The default is that of [`std::thread`]: 2 MiB, unless the
    /// environment variable `RUST_MIN_STACK` says otherwise.
    ///
    /// These are the workers, pinned threads, threads of [`Detached`](crate::Detached) actors,
    /// threads of [`unblock`](crate::unblock()), those that replace a worker in
    /// [`block_on`](crate::Runtime::block_on), and the thread of a shutdown. The stack of a thread
    /// with a [`Stage`](crate::Stage) belongs to the program. A
    /// [simulated](crate::policy::Simulated) runtime starts no threads, so the size has no effect.
    ///
    /// A turn of any task runs on such a stack, with all that it calls. Most systems use memory
    /// only for what a thread has touched of its stack. [Limits](crate::docs::limits) tells how
    /// large a future may be.
    ///
    /// ```
    /// use greenroom::Runtime;
    ///
    /// fn depth(levels: u32) -> u32 {
    ///     let level = std::hint::black_box([levels; 1000]);
    ///     if levels == 0 { 0 } else { depth(levels - 1) + level[0] / levels }
    /// }
    ///
    /// let runtime = Runtime::builder().workers(1).stack_size(32 << 20).build()?;
    /// let task = runtime.spawn(async { depth(2000) });
    /// assert_eq!(runtime.block_on(task), 2000);
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    pub(super) fn judge_stack_size(&self) -> Result<(), BuildError> {
        match self.stack_size {
            Some(bytes) if !(STACK_MIN..=STACK_MAX).contains(&bytes) => {
                Err(BuildError::Impossible {
                    option: "stack_size",
                    reason: format!(
                        "is {bytes} bytes, but must be from {STACK_MIN} to {STACK_MAX}"
                    ),
                })
            }
            _ => Ok(()),
        }
    }
}

impl Builder {
    /// Sets a function around the whole life of each thread that the runtime starts: its workers,
    /// pinned threads, threads of [`unblock`](crate::unblock()), threads of
    /// [`Detached`](crate::Detached) actors, and the thread of a shutdown. By default there is
    /// none.
    ///
    /// The function is called on the new thread, and calls its argument, which returns when the
    /// thread ends. Guards and thread-locals that it sets hold for all that runs there. With the
    /// guard of [`tokio::runtime::Handle::enter`][enter], reqwest, sqlx and `tokio::spawn` work in
    /// actors; see [beside tokio](crate::docs::with_tokio).
    ///
    /// Threads that the runtime did not start are not included. A thread that calls
    /// [`block_on`](crate::Runtime::block_on) or has a [`Stage`](crate::Stage) enters by itself.
    /// The threads of the process are not included either: those of `unblock` and of timers outside
    /// any runtime, and those of [signals](crate::ctrl_c()). A
    /// [simulated](crate::policy::Simulated) runtime starts no threads, so it never calls the
    /// function.
    ///
    /// # If it does not call `run`
    /// If the function returns or panics before it calls its argument, the thread counts as one
    /// that the system did not start:
    ///
    /// - [`build`](Builder::build) and [`spawn_pinned`](crate::Runtime::spawn_pinned) return an
    ///   error that says so.
    /// - The spawn of a `Detached` actor fails with
    ///   [`SpawnProblem::Thread`](crate::SpawnProblem::Thread).
    /// - A job of `unblock` waits for another thread of the pool. If there is none, it runs on the
    ///   calling thread, outside the function.
    /// - [`block_on`](crate::Runtime::block_on) on a worker panics, if it needed that thread.
    /// - A shutdown runs on its thread all the same.
    ///
    /// A second call of the argument does nothing. A panic after the call is reported by the panic
    /// hook, and the thread ends.
    ///
    /// # Blocking
    /// Whatever starts a thread waits until the function calls `run` there. So the function must
    /// not wait for a task of the runtime before that call.
    ///
    /// # Examples
    /// ```
    /// use greenroom::Runtime;
    /// use std::cell::Cell;
    ///
    /// thread_local!(static LOG_LEVEL: Cell<u8> = const { Cell::new(0) });
    ///
    /// let level = 3;
    /// let runtime = Runtime::builder()
    ///     .around_threads(move |run| {
    ///         LOG_LEVEL.set(level);
    ///         run()
    ///     })
    ///     .build()?;
    /// let task = runtime.spawn(async { LOG_LEVEL.get() });
    /// assert_eq!(runtime.block_on(task), 3);
    /// # Ok::<(), greenroom::BuildError>(())
    /// ```
    ///
    /// [enter]: https://docs.rs/tokio/latest/tokio/runtime/struct.Handle.html#method.enter
    pub fn around_threads(
        mut self,
        function: impl Fn(&mut dyn FnMut()) + Send + Sync + 'static,
    ) -> Self {
        self.around = Some(Around::new(function));
        self
    }

    /// Makes each thread that the runtime starts enter this tokio runtime for its whole life.
    ///
    /// So futures of tokio, and `tokio::spawn`, work in actors and tasks of the runtime. Which
    /// threads these are, and what remains to be entered by hand, is said at
    /// [`around_threads`](Builder::around_threads). This is a function of that kind, so of the two
    /// the last call counts. See also [beside tokio](crate::docs::with_tokio).
    ///
    /// ```
    /// let mut builder = tokio::runtime::Builder::new_multi_thread();
    /// let tokio = builder.worker_threads(1).enable_time().build()?;
    /// let runtime = greenroom::Runtime::builder().enter_tokio(tokio.handle()).build()?;
    /// let task = runtime.spawn(async {
    ///     tokio::time::sleep(std::time::Duration::from_millis(1)).await; // needs tokio
    ///     tokio::spawn(async { 42 }).await
    /// });
    /// assert_eq!(runtime.block_on(task)?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "tokio")]
    pub fn enter_tokio(self, handle: &tokio::runtime::Handle) -> Self {
        let handle = handle.clone();
        self.around_threads(move |run| {
            let _guard = handle.enter();
            run();
        })
    }
}
