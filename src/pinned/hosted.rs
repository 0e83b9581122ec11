//! `Hosted`: a value that lives on a pinned thread and is called from any thread.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};

use futures_util::future::Either;

use super::local::PinnedLocal;
use super::thread::{PinnedThread, ThreadKeep};
use crate::contain::{KeptWaker, contain};
use crate::error::HostFault;
use crate::task::{HostedJob, JobEnd, is_large};

/// A value that never leaves its pinned thread: closures are sent to it, results come back.
///
/// A clone is cheap and refers to the same value. The value is dropped on its thread with the last
/// clone, or when the thread ends. Several values are then dropped in no particular order.
///
/// Calls are served in the order in which they are first polled. A closure is never called if its
/// call was dropped or the thread has ended. It is then dropped on the pinned thread, or on the
/// thread that finds that the pinned thread has ended. Closures and results are therefore `Send`; a
/// result may be taken long after the thread has ended. The value itself is dropped on its thread
/// only.
pub struct Hosted<T> {
    value: Arc<HostedValue>,
    /// The value is reached through closures only, so this type is `Send` and `Sync` for any `T`.
    _value: PhantomData<fn(T) -> T>,
}

/// The reference that all clones share; dropping it drops the value on its thread.
struct HostedValue {
    key: usize,
    kept: ThreadKeep,
}

impl<T: 'static> Hosted<T> {
    /// Stores `value` on the calling thread, which must be the thread of `thread`.
    pub(super) fn new(thread: &Arc<PinnedThread>, value: Rc<RefCell<T>>) -> Self {
        let key = PinnedLocal::with(|local| local.insert(value));
        Hosted {
            value: Arc::new(HostedValue {
                key,
                kept: ThreadKeep::new(thread),
            }),
            _value: PhantomData,
        }
    }

    /// Calls `call` with a shared reference to the value, on its thread, and returns the result.
    ///
    /// # Errors
    /// - [`HostFault::Gone`] if the thread has ended.
    /// - [`HostFault::Panicked`] if `call` panicked; the value stays as the panic left it. Also if
    ///   the value is already borrowed mutably, which happens when a closure of `with_mut` runs its
    ///   own stage.
    ///
    /// # Cancel safety
    /// If the future is dropped before the call has begun, the call does not begin. After that only
    /// the result is lost.
    pub fn with<R, F>(&self, call: F) -> impl Future<Output = Result<R, HostFault>>
    where
        F: FnOnce(&T) -> R + Send + 'static,
        R: Send + 'static,
    {
        if const { is_large::<F>() } {
            let call = Box::new(call);
            return Either::Left(self.call(|value| call(&value.borrow())));
        }
        Either::Right(self.call(|value| call(&value.borrow())))
    }

    /// Calls `call` with a mutable reference to the value, on its thread, and returns the result.
    ///
    /// # Errors
    /// As [`with`](Hosted::with). A closure of `with` that runs its own stage has borrowed the
    /// value too.
    ///
    /// # Cancel safety
    /// As [`with`](Hosted::with).
    pub fn with_mut<R, F>(&self, call: F) -> impl Future<Output = Result<R, HostFault>>
    where
        F: FnOnce(&mut T) -> R + Send + 'static,
        R: Send + 'static,
    {
        if const { is_large::<F>() } {
            let call = Box::new(call);
            return Either::Left(self.call(|value| call(&mut value.borrow_mut())));
        }
        Either::Right(self.call(|value| call(&mut value.borrow_mut())))
    }

    /// Calls the function on the thread of the value. Not `async`, which would keep a second copy
    /// for the closure.
    fn call<R, F>(&self, call: F) -> impl Future<Output = Result<R, HostFault>>
    where
        F: FnOnce(&RefCell<T>) -> R + Send + 'static,
        R: Send + 'static,
    {
        let key = self.value.key;
        let thread = self.value.kept.thread();
        let mut job = Some(move || {
            let value = PinnedLocal::with(|local| local.get(key))?;
            Some(call(value.downcast_ref()?))
        });
        let mut sent: Option<HostedJob<_, _, _>> = None;
        poll_fn(move |cx| {
            // The first poll sends the job, with the waker for its end. Later ones ask for the end.
            let end = match &mut sent {
                _ if !thread.runtime().is_here() => JobEnd::Lost,
                Some(job) => ready!(Pin::new(job).poll(cx)),
                None => {
                    sent = job
                        .take()
                        .map(|job| thread.send(job, KeptWaker::new(cx.waker())));
                    return Poll::Pending;
                }
            };
            Poll::Ready(match end {
                JobEnd::Done(Some(result)) => Ok(result),
                JobEnd::Panicked(panic) => Err(HostFault::Panicked(panic)),
                JobEnd::Done(None) | JobEnd::Lost => Err(HostFault::Gone),
            })
        })
    }
}

impl Drop for HostedValue {
    fn drop(&mut self) {
        if !self.kept.thread().runtime().is_here() {
            return;
        }
        let key = self.key;
        let drops = move || async move {
            let value: Option<Rc<dyn Any>> = PinnedLocal::with(|local| local.remove(key));
            contain(|| drop(value));
        };
        PinnedThread::spawn(self.kept.thread(), drops, None).detach();
    }
}

impl<T> Clone for Hosted<T> {
    fn clone(&self) -> Self {
        Hosted {
            value: self.value.clone(),
            _value: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Hosted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosted")
            .field("on", &self.value.kept.thread().name())
            .finish()
    }
}
