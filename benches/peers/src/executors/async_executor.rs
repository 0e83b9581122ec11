//! async-executor, with threads that run it, as smol does it.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use async_executor::{Executor as Threads, Task};
use futures_lite::future::block_on;

use super::{Executor, WORKERS};

/// The executor on which programs spawn tasks.
pub static THREADS: Threads<'static> = Threads::new();

/// The single executor of the process.
pub struct AsyncExecutor;

impl AsyncExecutor {
    /// Starts this number of workers, or as many as are missing.
    pub fn of(workers: usize) -> Self {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        for _ in RUNNING.fetch_max(workers, Ordering::Relaxed)..workers {
            thread::spawn(|| block_on(THREADS.run(pending::<()>())));
        }
        Self
    }
}

impl Executor for AsyncExecutor {
    type Task<T: Send + 'static> = Task<T>;

    fn start() -> Self {
        Self::of(WORKERS)
    }

    fn inside<T: Send + 'static>(&self, driver: impl Future<Output = T> + Send + 'static) -> T {
        block_on(Self::spawn(driver))
    }

    fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
        THREADS.spawn(future)
    }
}
