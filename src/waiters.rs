//! Tasks that wait for an event elsewhere: the end of an actor, a signal.
//!
//! The event itself is recorded elsewhere. The thread that makes it happen then calls
//! [`Waiters::wake_all`]. Wakers are removed from the list before they are called, and each call is
//! contained. So a waker may do anything, even drop the future that waits.

#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

use slab::Slab;

use crate::contain::KeptWaker;
use crate::sync::{Mutex, look, mutant};

/// A list of wakers.
pub(crate) struct Waiters(Mutex<WaiterList>);

#[derive(Default)]
struct WaiterList {
    /// The number of calls of `wake_all`. The tickets of an earlier round are invalid.
    round: u32,
    /// The first waker; most lists never have a second one.
    first: Option<KeptWaker>,
    others: Slab<KeptWaker>,
}

/// An entry in a list, given up with [`Waiters::leave`].
#[derive(Default)]
pub(crate) struct Ticket {
    round: u32,
    /// `None` without an entry, 1 for the first waker, otherwise the slab key plus 2. Small, since
    /// many futures have a ticket.
    number: Option<NonZeroU32>,
}

impl Ticket {
    fn new(round: u32, key: Option<usize>) -> Self {
        let number = key.map_or(Some(1), |key| u32::try_from(key).ok()?.checked_add(2));
        let number = number.and_then(NonZeroU32::new);
        assert!(number.is_some(), "fewer than 2^32 futures fit into memory");
        Ticket { round, number }
    }

    /// Returns whether there may be an entry to leave.
    pub(crate) fn is_used(&self) -> bool {
        self.number.is_some()
    }

    /// Returns the number of its entry, if that is of this round.
    fn number_in(&self, round: u32) -> Option<NonZeroU32> {
        self.number.filter(|_| self.round == round)
    }
}

/// Returns the slab key of an entry, or `None` for the first waker.
fn key_of(number: NonZeroU32) -> Option<usize> {
    (number.get() as usize).checked_sub(2)
}

impl WaiterList {
    /// Stores the waker in the ticket's entry, or in a new entry that the ticket then has. Returns
    /// the waker that was there.
    fn put(&mut self, ticket: &mut Ticket, waker: KeptWaker) -> Option<KeptWaker> {
        look();
        // Of an earlier round there is no entry any more: its waker was called.
        let number = ticket.number_in(self.round);
        let before = number.and_then(|number| match key_of(number) {
            None => self.first.as_mut(),
            Some(key) => self.others.get_mut(key),
        });
        if let Some(before) = before {
            return Some(std::mem::replace(before, waker));
        }
        let key = match self.first {
            None => {
                self.first = Some(waker);
                None
            }
            Some(_) => Some(self.others.insert(waker)),
        };
        *ticket = Ticket::new(self.round, key);
        None
    }

    fn remove(&mut self, ticket: &Ticket) -> Option<KeptWaker> {
        look();
        match key_of(ticket.number_in(self.round)?) {
            None => self.first.take(),
            Some(key) => self.others.try_remove(key),
        }
    }
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Waiters(Mutex::new(WaiterList::default()))
    }

    /// Returns `Ready` if `happened` returns true. Otherwise the next `wake_all` wakes the task.
    pub(crate) fn poll(
        &self,
        ticket: &mut Ticket,
        cx: &mut Context<'_>,
        happened: impl Fn() -> bool,
    ) -> Poll<()> {
        if !happened() {
            let waker = KeptWaker::new(cx.waker());
            let mut list = self.0.lock();
            let left = list.put(ticket, waker);
            drop(list);
            drop(left);
            // Check again, now that the waker is in the list. A thread that made it true before the
            // waker was stored has not seen it, and one that does so later wakes it.
            if mutant("waits_without_a_second_look") || !happened() {
                return Poll::Pending;
            }
        }
        self.leave(ticket);
        Poll::Ready(())
    }

    /// Returns a future that waits until `happened` returns true, as `poll` does.
    pub(crate) fn until<F: Fn() -> bool>(&self, happened: F) -> Until<'_, F> {
        Until {
            waiters: self,
            ticket: Ticket::default(),
            happened,
        }
    }

    /// Gives up the ticket's entry.
    pub(crate) fn leave(&self, ticket: &mut Ticket) {
        let ticket = std::mem::take(ticket);
        if !ticket.is_used() {
            return;
        }
        let mut list = self.0.lock();
        let left = list.remove(&ticket);
        drop(list);
        drop(left);
    }

    /// Wakes all waiting tasks.
    pub(crate) fn wake_all(&self) {
        let mut list = self.0.lock();
        list.round = list.round.wrapping_add(1);
        let (first, others) = (list.first.take(), std::mem::take(&mut list.others));
        drop(list);
        let others = others.into_iter().map(|(_, waker)| waker);
        for waker in first.into_iter().chain(others) {
            look();
            waker.wake();
        }
    }
}

/// As a waker, a list wakes all waiting tasks. What has this waker keeps none of those that left.
impl Wake for Waiters {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
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
