//! Drivers: reactors of other crates in which workers wait instead of parking.

use std::future::Future;
use std::pin::Pin;

use crate::instant::SystemInstant;

/// A reactor in which the workers of a runtime wait.
///
/// It is set with [`Builder::driver`](crate::Builder::driver).
///
/// # Examples
///
/// ```
/// use std::pin::Pin;
/// use std::time::Instant;
///
/// use greenroom::{Driver, Runtime};
///
/// /// Sockets of `async-io` wake tasks on the thread that waits for them.
/// struct AsyncIo;
///
/// impl Driver for AsyncIo {
///     fn drive(&self, worker: Pin<&mut dyn Future<Output = ()>>) {
///         async_io::block_on(worker);
///     }
///
///     fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
///         Box::pin(async move {
///             async_io::Timer::at(at).await;
///         })
///     }
/// }
///
/// let runtime = Runtime::builder().workers(1).driver(AsyncIo).build()?;
/// assert_eq!(runtime.block_on(async { greenroom::spawn(async { 40 + 2 }).await }), 42);
/// # Ok::<(), greenroom::BuildError>(())
/// ```
pub trait Driver: Send + Sync + 'static {
    /// Runs `worker` on the calling thread until it completes, and the reactor while it is pending.
    ///
    /// A thread calls this when it becomes a worker. A task that the reactor wakes on this thread is
    /// run by this worker if the worker has nothing else to do. If this method panics, or returns
    /// before `worker` has completed, the worker continues without the driver. A panic is a
    /// [warning](crate::Warning::WorkerPanicked).
    ///
    /// A waker with which `worker` is polled may panic, in its call as in its clone and its drop.
    ///
    /// A waker that the reactor calls on this thread must not wait in
    /// [`block_on`](crate::Runtime::block_on). The thread would wait for itself, so `block_on`
    /// panics there.
    fn drive(&self, worker: Pin<&mut dyn Future<Output = ()>>);

    /// Returns a future that completes at `at`.
    ///
    /// It is polled within [`drive`](Driver::drive), so that a worker waits for its next deadline
    /// in the reactor.
    fn sleep_until(&self, at: SystemInstant) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}
