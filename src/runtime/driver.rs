//! Reactors of other crates that workers wait in, instead of parking.

use std::future::Future;
use std::pin::Pin;

use crate::instant::SystemInstant;

/// A reactor that the workers of a runtime wait in: see [`Builder::driver`](crate::Builder::driver).
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
    /// Runs `worker` on the calling thread until it is ready, and the reactor while it is pending.
    ///
    /// Each worker thread calls it once. What the reactor wakes on this thread is run by this worker, if that has
    /// nothing else to do. If this panics, or returns before `worker` is ready, the worker goes on without it.
    ///
    /// A waker that the reactor calls here must not wait in [`block_on`](crate::Runtime::block_on), which panics there:
    /// the thread would wait for itself.
    fn drive(&self, worker: Pin<&mut dyn Future<Output = ()>>);

    /// Returns a future that is ready at that time.
    ///
    /// It is polled in [`drive`](Driver::drive), so that a worker waits for its next deadline in the reactor.
    fn sleep_until(&self, at: SystemInstant) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}
