//! A mailbox: many senders, one reader, first in first out; unbounded, or bounded with a line.
//!
//! Everything shared is behind one word whose lowest bit is a lock (see [`state`]); a critical
//! section is a few instructions long and calls no user code. The reader of an unbounded mailbox
//! takes the whole queue in one section and reads on without the lock. A mailbox that is empty owns
//! no buffer. It knows nothing of executors: a step says whom it has woken ([`Wake`]) and the
//! caller passes that on.
//!
//! # Invariants
//! - M1: `shared` is touched only between `Word::lock` and `Word::unlock`.
//! - M2: `FILLED` says that the queue is not empty, `WAITED_FOR` that the line is not, `FOREIGN`
//!   that a receiver's waker is stored, `RESERVED` that places are reserved, `BOUNDED` and
//!   `NAMED` that there is a bound and a name.
//! - M3: a bounded queue holds at most `capacity` messages and reserved places; the line is empty
//!   unless it is full.
#![expect(unsafe_code, reason = "state behind a lock bit of our own; see M1")]

mod annex;
mod block;
mod line;
#[cfg(all(test, greenroom_loom))]
mod loom;
mod queue;
mod reserve;
mod send;
mod senders;
mod state;
#[cfg(all(test, not(greenroom_loom)))]
mod tests;

use std::task::Waker;

use annex::{Own, Rare};
pub(crate) use line::Ticket;
pub(crate) use queue::Batch;
use queue::Queue;
pub(crate) use reserve::Refused;
pub(crate) use send::wake_foreign;
use state::Word;
pub(crate) use state::{Flags, Wake};

use crate::sync::atomic::AtomicU32;
use crate::sync::{UnsafeCell, mutant};
use crate::waiters::Waiters;

/// The reading and the writing end share one of these. What all senders write comes first.
#[repr(C)]
pub(crate) struct Mailbox<M> {
    word: Word,
    /// How many can send; as busy as the word.
    senders: AtomicU32,
    shared: UnsafeCell<Shared<M>>,
}

struct Shared<M> {
    queue: Queue<M>,
    /// What most mailboxes never have.
    annex: Option<Own<M>>,
}

// SAFETY: (M1) the lock bit hands `shared` from thread to thread; messages and wakers are `Send`.
unsafe impl<M: Send> Send for Mailbox<M> {}
// SAFETY: (M1) as above.
unsafe impl<M: Send> Sync for Mailbox<M> {}

/// What the reader finds.
pub(crate) enum Received<M> {
    Message(M),
    /// Nothing, and nothing will come.
    Closed,
    /// Nothing now, as far as a look without the lock can say; see [`Mailbox::rest`].
    Empty,
}

/// What a run that is over leads to.
#[must_use]
pub(crate) enum Rest {
    Asleep,
    /// Woken meanwhile: it is scheduled again and the caller has the runnable.
    Again,
    /// To be dropped now; the run is not over.
    Drop,
}

/// Why an actor is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doom {
    Killed,
    Cancelled,
}

impl<M> Mailbox<M> {
    /// An open mailbox of an actor that is scheduled for its first run and can be joined; with the name of
    /// the actor, to be kept.
    pub(crate) fn new(capacity: Option<usize>, name: Option<Box<str>>) -> Self {
        let has_annex = capacity.is_some() || name.is_some();
        let mut flags = Flags::ACTIVE.or(Flags::JOINABLE);
        if capacity.is_some() {
            flags.set(Flags::BOUNDED);
        }
        if name.is_some() {
            flags.set(Flags::NAMED);
        }
        Mailbox {
            word: Word::new(flags),
            senders: AtomicU32::new(1),
            shared: UnsafeCell::new(Shared {
                queue: Queue::EMPTY,
                annex: has_annex.then(|| Own::new(capacity, name)),
            }),
        }
    }

    /// What it was made with; nobody has seen it.
    pub(crate) fn into_options(self) -> (Option<usize>, Option<Box<str>>) {
        self.shared.into_inner().into_options()
    }

    /// How many messages were accepted and are still in the queue. What the reader has taken as a
    /// [`Batch`] is not counted, nor are places whose messages are still to be made.
    ///
    /// The blocks are counted under the lock, so this is for those who ask now and then.
    pub(crate) fn len(&self) -> usize {
        if !self.peek().has(Flags::FILLED) {
            return 0;
        }
        self.lock(|_, shared| shared.queue.len())
    }

    /// How many messages and reserved places it has room for; `None` if it is unbounded.
    pub(crate) fn capacity(&self) -> Option<usize> {
        if !self.peek().has(Flags::BOUNDED) {
            return None;
        }
        self.lock(|_, shared| shared.bound().map(|bound| bound.capacity))
    }

    /// The flags as they were a moment ago.
    pub(crate) fn peek(&self) -> Flags {
        self.word.peek()
    }

    /// Runs a critical section; it must not panic and must not call user code.
    #[inline]
    fn lock<R>(&self, section: impl FnOnce(&mut Flags, &mut Shared<M>) -> R) -> R {
        let mut flags = self.word.lock();
        // SAFETY: (M1) between lock and unlock.
        let result = self
            .shared
            .with_mut(|shared| section(&mut flags, unsafe { &mut *shared }));
        self.word.unlock(flags);
        result
    }

    // -- the reader ---------------------------------------------------------------------------

    /// The next message, from `batch` (what the reader took before) or from the shared queue.
    #[inline(always)]
    pub(crate) fn receive(&self, batch: &mut Batch<M>) -> Received<M> {
        if batch.is_empty() {
            let look = Flags::FILLED.or(Flags::CLOSED).or(Flags::ABANDONED);
            let seen = self.word.peek();
            if !seen.has(look) {
                return Received::Empty;
            }
            if seen.has(Flags::BOUNDED) {
                return self.receive_one();
            }
            let ended = self.lock(|flags, shared| {
                // What it was is empty, so there is nothing to drop.
                std::mem::forget(std::mem::replace(batch, shared.queue.take()));
                flags.clear(Flags::FILLED);
                batch.is_empty() && flags.reach_the_end()
            });
            if batch.is_empty() {
                return match ended {
                    true => Received::Closed,
                    false => Received::Empty,
                };
            }
        }
        Received::Message(batch.pop().expect("it is not empty"))
    }

    /// The next message of a bounded mailbox.
    #[inline(never)]
    fn receive_one(&self) -> Received<M> {
        let (message, waited_for, ended) = self.lock(|flags, shared| {
            let message = shared.queue.pop();
            if message.is_some()
                && let Some(bound) = shared.bound()
            {
                bound.len -= 1;
            }
            if shared.queue.is_empty() {
                flags.clear(Flags::FILLED);
            }
            let ended = message.is_none() && flags.reach_the_end();
            (message, flags.has(Flags::WAITED_FOR), ended)
        });
        if waited_for && !mutant("room_is_not_passed_on") {
            self.promote();
        }
        match message {
            Some(message) => Received::Message(message),
            None if ended => Received::Closed,
            None => Received::Empty,
        }
    }

    /// Lets `waker` be woken by the next message or the close; false if there is one already.
    #[cold]
    pub(crate) fn wait(&self, waker: &Waker) -> bool {
        let mut fresh = Some(waker.clone());
        // `fresh` then holds the waker left before; it is dropped outside the lock.
        self.lock_rare(|flags, _, rare| {
            if flags.has_news() {
                return false;
            }
            std::mem::swap(&mut rare.receiver, &mut fresh);
            flags.set(Flags::FOREIGN);
            true
        })
    }

    /// The reader no longer waits: a message wakes nobody for it.
    #[cold]
    pub(crate) fn wait_no_more(&self) {
        let receiver = self.lock(|flags, shared| {
            flags.clear(Flags::RECEIVING.or(Flags::FOREIGN));
            shared.rare().and_then(|rare| rare.receiver.take())
        });
        drop(receiver);
    }

    // -- the end of messages ------------------------------------------------------------------

    /// Refuses all that comes from now on; what was accepted stays.
    pub(crate) fn close(&self) -> Wake {
        // The close is final, and whoever closed sees to what belongs to it.
        if self.peek().has(Flags::CLOSED) {
            return Wake::Nobody;
        }
        let (wake, waited_for) = self.lock(|flags, shared| {
            if flags.has(Flags::CLOSED) {
                return (Wake::Nobody, false);
            }
            flags.set(Flags::CLOSED);
            (shared.arrived(flags), flags.has(Flags::WAITED_FOR))
        });
        if waited_for {
            self.refuse_line();
        }
        wake
    }

    /// Takes what was accepted and not taken, once it is closed.
    pub(crate) fn drain(&self) -> Batch<M> {
        // What was accepted was so before the close, so it is seen.
        if !self.peek().has(Flags::FILLED.or(Flags::RESERVED)) {
            return Batch::EMPTY;
        }
        self.lock(|flags, shared| shared.drain(flags))
    }

    /// Closes and has the actor dropped at its next suspension; takes what was accepted, if that is to be killed.
    /// What waits in line is still to be given back, what else was accepted to be drained.
    pub(crate) fn doom(&self, doom: Doom) -> (Wake, Batch<M>) {
        self.lock(|flags, shared| {
            flags.set(Flags::CLOSED);
            let messages = match doom {
                Doom::Killed => {
                    flags.set(Flags::KILLED);
                    shared.drain(flags)
                }
                Doom::Cancelled => {
                    flags.set(Flags::CANCELLED);
                    Batch::EMPTY
                }
            };
            let wake = flags.wake();
            (shared.and_receiver(flags, wake), messages)
        })
    }

    // -- the actor's runs ---------------------------------------------------------------------

    /// Something other than a message wakes the actor.
    pub(crate) fn wake(&self) -> Wake {
        if mutant("wake_looks_without_the_lock") && self.peek().has(Flags::ACTIVE) {
            return Wake::Nobody;
        }
        self.lock(|flags, _| flags.wake())
    }

    /// A scheduled run begins; says if it is to drop the actor instead.
    pub(crate) fn begin(&self) -> Option<Doom> {
        let news = Flags::NOTIFIED.or(Flags::KILLED).or(Flags::CANCELLED);
        if !self.peek().has(news) {
            return None;
        }
        self.lock(|flags, _| {
            flags.clear(Flags::NOTIFIED);
            doom(*flags)
        })
    }

    /// A run ends; `receiving` says that `recv` found nothing and waits in this actor's own task, `woken`
    /// that the run itself has woken it.
    pub(crate) fn rest(&self, receiving: bool, woken: bool) -> Rest {
        if woken && !receiving && self.doom_of().is_none() {
            // It stays active, and what came meanwhile is seen by the next run, or by the one after.
            return Rest::Again;
        }
        self.lock(|flags, _| {
            if doom(*flags).is_some() {
                return Rest::Drop;
            }
            let missed = receiving && flags.has_news() && !mutant("rest_without_a_look");
            if receiving && !missed {
                // Also if it goes on: the next run need not poll that `recv` again.
                flags.set(Flags::RECEIVING);
            }
            if flags.has(Flags::NOTIFIED) || woken || missed {
                flags.clear(Flags::NOTIFIED);
                return Rest::Again;
            }
            flags.clear(Flags::ACTIVE);
            Rest::Asleep
        })
    }

    /// The actor is over; says whether somebody may ask for its result, and who waits for the end.
    pub(crate) fn end(&self) -> (bool, Option<&Waiters>) {
        let early = mutant("annex_looked_for_before_the_end")
            .then(|| self.lock(|_, shared| shared.annex()));
        let (is_joinable, annex) = self.lock(|flags, shared| {
            flags.clear(Flags::ACTIVE.or(Flags::NOTIFIED));
            flags.set(Flags::ENDED.or(Flags::CLOSED));
            let annex = early.unwrap_or_else(|| shared.annex());
            (flags.has(Flags::JOINABLE), annex)
        });
        // SAFETY: it is this mailbox's.
        let beside = unsafe { self.beside_of(annex) };
        (is_joinable, beside.map(|beside| &beside.ended))
    }

    /// Nobody will ask for the result; says whether it is there already, to be dropped.
    pub(crate) fn unjoin(&self) -> bool {
        self.lock(|flags, _| {
            flags.clear(Flags::JOINABLE);
            flags.has(Flags::ENDED)
        })
    }

    /// Why it is to be dropped, if it is.
    pub(crate) fn doom_of(&self) -> Option<Doom> {
        doom(self.word.peek())
    }
}

fn doom(flags: Flags) -> Option<Doom> {
    if flags.has(Flags::KILLED) {
        Some(Doom::Killed)
    } else if flags.has(Flags::CANCELLED) {
        Some(Doom::Cancelled)
    } else {
        None
    }
}

impl<M> Shared<M> {
    /// Takes all messages; what is put in reserved places from now on is given back.
    fn drain(&mut self, flags: &mut Flags) -> Batch<M> {
        flags.clear(Flags::FILLED);
        flags.set(Flags::DEAF);
        if let Some(Rare {
            bound: Some(bound),
            reserved,
            ..
        }) = self.rare()
        {
            bound.len = *reserved;
        }
        self.queue.take()
    }

    /// There is something for the reader: whom that wakes.
    fn arrived(&mut self, flags: &mut Flags) -> Wake {
        if !flags.has(Flags::RECEIVING.or(Flags::FOREIGN)) {
            return Wake::Nobody;
        }
        let mut wake = Wake::Nobody;
        if flags.has(Flags::RECEIVING) {
            flags.clear(Flags::RECEIVING);
            wake = flags.wake();
        }
        // One `recv` may have been polled in both tasks, and only the later one polls it again.
        self.and_receiver(flags, wake)
    }

    /// Whoever waits in another task is woken as well.
    fn and_receiver(&mut self, flags: &mut Flags, wake: Wake) -> Wake {
        if !flags.has(Flags::FOREIGN) {
            return wake;
        }
        flags.clear(Flags::FOREIGN);
        match (wake, self.rare().and_then(|rare| rare.receiver.take())) {
            (wake, None) => wake,
            (Wake::Actor, Some(receiver)) => Wake::Both(receiver),
            (_, Some(receiver)) => Wake::Foreign(receiver),
        }
    }
}
