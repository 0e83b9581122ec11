//! Threads for what must not leave its thread: each with a single-thread executor of its own.
//!
//! Everything on a pinned thread is created, polled and dropped there. Document 1: SDL's events and
//! SQLite's queries must happen on the thread that initialised the library or opened the connection.

mod call;
mod hosted;
mod local;
#[cfg(all(test, greenroom_loom))]
mod loom;
mod seat;
mod seats;
mod stage;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

pub use hosted::Hosted;
pub(crate) use local::Local;
pub(crate) use seat::Seat;
pub(crate) use seats::Seats;
pub use stage::Stage;

use crate::contain::{attempt, drop_refused};
use crate::error::{HostFault, TryHostError};
use crate::runtime::Inner;
use crate::task::{CellHome, Task, cancelled};

/// A thread with a single-thread executor, for futures and values that must stay on it.
///
/// A clone is cheap and means the same thread. The thread ends when no clone is left and no task,
/// actor or hosted value lives on it; and with its runtime, which cancels what is there. It does
/// not keep the runtime alive.
///
/// ```
/// use greenroom::{Context, Runtime, spawn};
/// use std::rc::Rc;
///
/// async fn counter(mut cx: Context<u32>) -> u32 {
///     let sum = Rc::new(std::cell::Cell::new(0)); // not `Send`
///     while let Some(number) = cx.recv().await {
///         sum.set(sum.get() + number);
///     }
///     sum.get()
/// }
///
/// greenroom::run(async {
///     let pinned = Runtime::current().spawn_pinned("counter").unwrap();
///     let counter = spawn!(counter(_), on = &pinned);
///     counter.tell(42).unwrap();
///     assert_eq!(counter.join().await.unwrap(), 42);
/// });
/// ```
pub struct Pinned {
    seat: Arc<Seat>,
}

impl Pinned {
    pub(crate) fn start(runtime: &Arc<Inner>, name: String) -> std::io::Result<Pinned> {
        // The new seat is kept once, for this handle.
        Ok(Pinned {
            seat: runtime.seats.start(runtime, name)?,
        })
    }

    /// A thread for one actor of this name, kept by this handle until the actor keeps it.
    pub(crate) fn start_detached(
        runtime: &Arc<Inner>,
        name: Option<&str>,
    ) -> std::io::Result<Pinned> {
        Ok(Pinned {
            seat: runtime.seats.start_detached(runtime, name)?,
        })
    }

    pub(crate) fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }

    /// Spawns a plain task there: `make` is called on the thread and its future stays on it.
    ///
    /// If the thread has ended or is ending the task is a cancelled one.
    pub fn spawn<F, Fut>(&self, make: F) -> Task<Fut::Output>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        if self.seat.is_closing() {
            drop_refused(make);
            return cancelled();
        }
        Seat::spawn(&self.seat, make)
    }

    /// Makes a value on the thread and keeps it there, to be called from anywhere.
    ///
    /// # Errors
    /// [`HostFault`] if `make` panicked or the thread has ended.
    ///
    /// # Cancel safety
    /// If this is dropped, a value that was made is dropped on its thread.
    ///
    /// ```
    /// greenroom::run(async {
    ///     let pinned = greenroom::Runtime::current().spawn_pinned("lua").unwrap();
    ///     let list = pinned.host(|| std::rc::Rc::new(vec![1, 2])).await.unwrap();
    ///     assert_eq!(list.with(|list| list.len()).await.unwrap(), 2);
    /// });
    /// ```
    pub async fn host<T, F>(&self, make: F) -> Result<Hosted<T>, HostFault>
    where
        F: FnOnce() -> T + Send + 'static,
        T: 'static,
    {
        let made = self
            .try_host(move || Ok::<T, std::convert::Infallible>(make()))
            .await;
        made.map_err(|error| match error {
            TryHostError::Failed(never) => match never {},
            TryHostError::Host(fault) => fault,
        })
    }

    /// As [`host`](Pinned::host), for a value whose making can fail.
    ///
    /// # Errors
    /// [`TryHostError::Failed`] with the error of `make`; [`TryHostError::Host`] if it panicked or
    /// the thread has ended.
    ///
    /// # Cancel safety
    /// As [`host`](Pinned::host).
    pub async fn try_host<T, E, F>(&self, make: F) -> Result<Hosted<T>, TryHostError<E>>
    where
        F: FnOnce() -> Result<T, E> + Send + 'static,
        T: 'static,
        E: Send + 'static,
    {
        let seat = self.seat.clone();
        let made = self.spawn(move || async move {
            match attempt(make) {
                Ok(Ok(value)) => Ok(Hosted::new(&seat, value)),
                Ok(Err(error)) => Err(TryHostError::Failed(error)),
                Err(panic) => Err(TryHostError::Host(HostFault::Panicked(panic))),
            }
        });
        made.fallible()
            .await
            .unwrap_or(Err(TryHostError::Host(HostFault::Gone)))
    }
}

impl Clone for Pinned {
    fn clone(&self) -> Self {
        self.seat.keep();
        Pinned {
            seat: self.seat.clone(),
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.seat.let_go();
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned")
            .field("name", &self.seat.name())
            .finish_non_exhaustive()
    }
}
