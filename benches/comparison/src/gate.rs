//! A gate at which the actors of a program wait, so that its clients find them busy.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A gate, which is open at first. A clone is the same gate.
#[derive(Clone, Default)]
pub struct Gate(Arc<Mutex<Parts>>);

#[derive(Default)]
struct Parts {
    is_closed: bool,
    arrived: usize,
    waiting: Vec<Waker>,
}

impl Gate {
    /// Arrives at the gate, and waits while it is closed.
    pub async fn pass(&self) {
        self.change(|parts| parts.arrived += 1);
        self.wait_until(|parts| !parts.is_closed).await;
    }

    /// Closes the gate.
    pub fn close(&self) {
        self.change(|parts| parts.is_closed = true);
    }

    /// Opens the gate.
    pub fn open(&self) {
        self.change(|parts| parts.is_closed = false);
    }

    /// Returns how many times the gate was reached.
    pub fn arrived(&self) -> usize {
        self.lock().arrived
    }

    /// Waits until the gate was reached so many times.
    pub async fn reached(&self, times: usize) {
        self.wait_until(|parts| parts.arrived >= times).await;
    }

    fn change(&self, change: impl FnOnce(&mut Parts)) {
        let mut parts = self.lock();
        change(&mut parts);
        let waiting = std::mem::take(&mut parts.waiting);
        drop(parts);
        waiting.into_iter().for_each(Waker::wake);
    }

    async fn wait_until(&self, is_over: impl Fn(&Parts) -> bool) {
        poll_fn(|cx: &mut Context<'_>| {
            let mut parts = self.lock();
            if is_over(&parts) {
                return Poll::Ready(());
            }
            parts.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, Parts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls a future once, for example a request, so that it is sent.
pub async fn is_pending<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}
