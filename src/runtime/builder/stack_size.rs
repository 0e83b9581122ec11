//! The option `stack_size`: the stacks of the threads that the runtime starts.

use super::Builder;
use crate::error::BuildError;

/// The smallest stack, in bytes. A debug build has room there for small tasks of every kind, and for
/// their panics.
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
    /// threads of [`unblock`](crate::unblock()), those that take the place of a worker in
    /// [`block_on`](crate::Runtime::block_on), and the thread of a shutdown. The stack of a thread
    /// with a [`Stage`](crate::Stage) belongs to the program. A
    /// [simulated](crate::policy::Simulated) runtime starts no threads, so the size has no effect.
    ///
    /// A turn of any task runs on such a stack, with all that it calls. Most systems use memory only
    /// for what a thread has touched of its stack. [Limits](crate::docs::limits) tells how large a
    /// future may be.
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
