//! Tasks that wait for something to happen to somebody else: the end of an actor, a signal.
//!
//! What is waited for is known elsewhere; whoever makes it true calls [`Waiters::wake_all`] after
//! that. Wakers are taken out before they are called, each call contained, so a waker may do
//! anything, even drop its own future.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use crate::contain::contain;
use crate::sync::Mutex;

/// A list of wakers; empty, it is a mutex and a pointer.
pub(crate) struct Waiters(Mutex<Option<Box<List>>>);

#[derive(Default)]
struct List {
    last: u64,
    wakers: BTreeMap<u64, Waker>,
}

/// A place in a list, given up with [`Waiters::leave`].
#[derive(Default)]
pub(crate) struct Ticket(Option<u64>);

impl Waiters {
    pub(crate) fn new() -> Self {
        Waiters(Mutex::new(None))
    }

    /// Ready if `happened`; otherwise the task is woken by the next `wake_all`.
    pub(crate) fn poll(
        &self,
        ticket: &mut Ticket,
        cx: &mut Context<'_>,
        happened: impl Fn() -> bool,
    ) -> Poll<()> {
        if !happened() {
            let waker = cx.waker().clone();
            let mut list = self.0.lock();
            let open = list.get_or_insert_default();
            let key = *ticket.0.get_or_insert_with(|| {
                open.last += 1;
                open.last
            });
            let left = open.wakers.insert(key, waker);
            drop(list);
            drop(left);
            // Only now: whoever made it true before has not seen us, whoever does later wakes us.
            if !happened() {
                return Poll::Pending;
            }
        }
        self.leave(ticket);
        Poll::Ready(())
    }

    /// The same as a future.
    pub(crate) fn until<F: Fn() -> bool>(&self, happened: F) -> Until<'_, F> {
        Until {
            waiters: self,
            ticket: Ticket::default(),
            happened,
        }
    }

    /// Waits no more.
    pub(crate) fn leave(&self, ticket: &mut Ticket) {
        let Some(key) = ticket.0.take() else { return };
        let left = self
            .0
            .lock()
            .as_mut()
            .and_then(|list| list.wakers.remove(&key));
        drop(left);
    }

    /// Wakes all that wait.
    pub(crate) fn wake_all(&self) {
        let woken = match &mut *self.0.lock() {
            Some(list) => std::mem::take(&mut list.wakers),
            None => return,
        };
        for waker in woken.into_values() {
            contain(|| waker.wake());
        }
    }
}

/// The future of [`Waiters::until`].
pub(crate) struct Until<'a, F> {
    waiters: &'a Waiters,
    ticket: Ticket,
    happened: F,
}

// The closure is only ever called by reference.
impl<F> Unpin for Until<'_, F> {}

impl<F: Fn() -> bool> Future for Until<'_, F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.waiters.poll(&mut this.ticket, cx, &this.happened)
    }
}

impl<F> Drop for Until<'_, F> {
    fn drop(&mut self) {
        self.waiters.leave(&mut self.ticket);
    }
}
