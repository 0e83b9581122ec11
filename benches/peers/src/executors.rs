//! The interface of an executor that the programs of `tasks.rs` and the drivers of actors use.

pub mod async_executor;
#[cfg(feature = "greenroom")]
pub mod greenroom;
pub mod nexosim;
pub mod rayon;
pub mod smolscale;
pub mod tokio;

use crate::figures::Figure;
use crate::process::watch_idle;
use crate::sizes::WORKERS;

/// An executor with [`WORKERS`] threads.
pub trait Executor: 'static {
    /// A spawned task; awaiting it returns its value. Executors differ in whether a dropped task
    /// ends, so the programs keep it.
    type Task<T: Send + 'static>: Future<Output = T> + Send + Unpin + 'static;

    /// Starts the workers.
    fn start() -> Self;

    /// Runs `driver` as a task on a worker and returns its output. The runtime continues to live.
    fn inside<T: Send + 'static>(&self, driver: impl Future<Output = T> + Send + 'static) -> T;

    /// Spawns a task from a worker.
    fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Self::Task<T>;

    /// Yields to other tasks: wakes its own task and is pending once.
    fn yield_now() -> impl Future<Output = ()> + Send {
        futures_lite::future::yield_now()
    }
}

/// Starts an executor, runs `driver` on it and returns its output.
pub fn inside<E: Executor, T: Send + 'static>(
    driver: impl Future<Output = T> + Send + 'static,
) -> T {
    E::start().inside(driver)
}

/// Measures the figures of `idle`, after `driver` has prepared the runtime; its output is held
/// meanwhile.
pub fn idle_after<E: Executor, T: Send + 'static>(
    driver: impl Future<Output = T> + Send + 'static,
) -> Vec<Figure> {
    let runtime = E::start();
    let _held = runtime.inside(driver);
    watch_idle()
}
