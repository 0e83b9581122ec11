//! A reply: the two halves of a value that the engine sends once to the future that waits for it.
//!
//! The value is stored before the waiter is woken. A waker is called outside of the lock.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

enum ValueState<T> {
    Empty(Option<Waker>),
    Full(T),
    /// The other half is gone, or the value was taken.
    Over,
}

/// The half that stores the value.
pub(crate) struct ValueSender<T>(Arc<Mutex<ValueState<T>>>);

/// The half that waits for it.
pub(crate) struct ValueReceiver<T>(Arc<Mutex<ValueState<T>>>);

/// Creates the two halves.
pub(crate) fn reply<T>() -> (ValueSender<T>, ValueReceiver<T>) {
    let state = Arc::new(Mutex::new(ValueState::Empty(None)));
    (ValueSender(state.clone()), ValueReceiver(state))
}

/// Locks a mutex. No code of users runs under one of this package, so a poisoned one is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> ValueSender<T> {
    /// Returns whether the other half waits.
    pub(crate) fn is_wanted(&self) -> bool {
        matches!(*lock(&self.0), ValueState::Empty(_))
    }

    /// Stores the value. Returns it if the other half is gone.
    pub(crate) fn send(self, value: T) -> Result<(), T> {
        let waker = {
            let mut state = lock(&self.0);
            match &mut *state {
                ValueState::Empty(waker) => {
                    let waker = waker.take();
                    *state = ValueState::Full(value);
                    waker
                }
                _ => return Err(value),
            }
        };
        waker.inspect(|waker| waker.wake_by_ref());
        Ok(())
    }
}

impl<T> Drop for ValueSender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut state = lock(&self.0);
            match &mut *state {
                ValueState::Empty(waker) => {
                    let waker = waker.take();
                    *state = ValueState::Over;
                    waker
                }
                _ => None,
            }
        };
        waker.inspect(|waker| waker.wake_by_ref());
    }
}

impl<T> ValueReceiver<T> {
    /// Ends the wait. Returns the value if it has come already.
    pub(crate) fn end(&mut self) -> Option<T> {
        let before = std::mem::replace(&mut *lock(&self.0), ValueState::Over);
        match before {
            ValueState::Full(value) => Some(value),
            _ => None,
        }
    }
}

impl<T> Future for ValueReceiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = lock(&self.0);
        if let ValueState::Empty(waker) = &mut *state {
            let before = waker.replace(cx.waker().clone());
            drop(state);
            drop(before);
            return Poll::Pending;
        }
        match std::mem::replace(&mut *state, ValueState::Over) {
            ValueState::Full(value) => Poll::Ready(Some(value)),
            _ => Poll::Ready(None),
        }
    }
}

impl<T> fmt::Debug for ValueReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueReceiver").finish_non_exhaustive()
    }
}

impl<T> Drop for ValueReceiver<T> {
    fn drop(&mut self) {
        drop(self.end());
    }
}
