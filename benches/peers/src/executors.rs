//! What an executor has to offer for the programs of `tasks.rs` and for a driver of actors.

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
    /// A spawned task; awaiting it gives its value. Whether it ends when this is dropped is the
    /// executor's affair: the programs keep it.
    type Task<T: Send + 'static>: Future<Output = T> + Send + Unpin + 'static;

    /// Starts the workers.
    fn start() -> Self;

    /// What `driver` gives, which is a task on a worker itself. The runtime lives on.
    fn inside<T: Send + 'static>(&self, driver: impl Future<Output = T> + Send + 'static) -> T;

    /// Spawns a task from inside.
    fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Self::Task<T>;

    /// Lets the other tasks go first: wakes itself and is pending once.
    fn yield_now() -> impl Future<Output = ()> + Send {
        futures_lite::future::yield_now()
    }
}

/// What `driver` gives, on an executor that is started for it.
pub fn inside<E: Executor, T: Send + 'static>(
    driver: impl Future<Output = T> + Send + 'static,
) -> T {
    E::start().inside(driver)
}

/// The figures of `idle`: `driver` leaves the runtime with what it gives, and that is held.
pub fn idle_after<E: Executor, T: Send + 'static>(
    driver: impl Future<Output = T> + Send + 'static,
) -> Vec<Figure> {
    let runtime = E::start();
    let _held = runtime.inside(driver);
    watch_idle()
}
