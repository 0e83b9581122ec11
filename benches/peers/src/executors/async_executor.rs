//! async-executor, with threads that run it, as smol does it.

use std::future::pending;
use std::thread;

use async_executor::{Executor as Threads, Task};
use futures_lite::future::block_on;

use super::{Executor, WORKERS};

/// The executor on which programs spawn tasks.
pub static THREADS: Threads<'static> = Threads::new();

/// The single executor of the process.
pub struct AsyncExecutor;

impl Executor for AsyncExecutor {
    type Task<T: Send + 'static> = Task<T>;

    fn start() -> Self {
        for _ in 0..WORKERS {
            thread::spawn(|| block_on(THREADS.run(pending::<()>())));
        }
        Self
    }

    fn inside<T: Send + 'static>(&self, driver: impl Future<Output = T> + Send + 'static) -> T {
        block_on(Self::spawn(driver))
    }

    fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
        THREADS.spawn(future)
    }
}
