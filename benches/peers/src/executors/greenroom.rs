//! greenroom's executor.

use greenroom::{Runtime, Task};

use super::{Executor, WORKERS};

/// A runtime; its tasks end with it.
pub struct Greenroom(pub Runtime);

impl Greenroom {
    /// Starts this number of workers.
    pub fn of(workers: usize) -> Self {
        let runtime = Runtime::builder().workers(workers).build();
        Self(runtime.expect("two threads can be started"))
    }
}

impl Executor for Greenroom {
    type Task<T: Send + 'static> = Task<T>;

    fn start() -> Self {
        Self::of(WORKERS)
    }

    fn inside<T: Send + 'static>(&self, driver: impl Future<Output = T> + Send + 'static) -> T {
        self.0.block_on(self.0.spawn(driver))
    }

    fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
        greenroom::spawn(future)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        greenroom::yield_now()
    }
}
