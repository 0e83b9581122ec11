//! How a mailbox closes: by a call, or because its last sender is dropped.
//!
//! A close is final. Messages accepted before it stay in the queue until they are received or
//! drained. Above zero, the count of senders is incremented without the lock. It leaves zero only
//! under the lock, where the reader decides whether to close the mailbox. So a new address never
//! belongs to a mailbox that was closed because it had no address.

use super::contents::{Contents, Mailbox};
use super::queue::Batch;
use super::state::{Flags, Termination, Wake};
use crate::error::End;
use crate::sync::atomic::Ordering;
use crate::sync::{COUNT_MAX, mutant};
use crate::waiters::Waiters;

impl<M> Mailbox<M> {
    /// Closes the mailbox: later messages are refused, accepted ones stay.
    pub(crate) fn close(&self) -> Wake {
        // A close is final, and the call that closed first also refuses the line.
        if self.state.peek().has(Flags::CLOSED) {
            return Wake::Nobody;
        }
        let (wake, waited_for) = self.lock(|flags, _| {
            if flags.has(Flags::CLOSED) {
                return (Wake::Nobody, false);
            }
            flags.set(Flags::CLOSED);
            let lines = Flags::WAITED_FOR.or(Flags::URGENT_LINE);
            (flags.arrived(), flags.has(lines))
        });
        if waited_for {
            self.refuse_line();
        }
        wake
    }

    /// Takes the accepted messages that the reader has not taken. The mailbox must be closed.
    #[inline]
    pub(crate) fn drain(&self) -> Batch<M> {
        self.drain_seen(self.state.peek())
    }

    /// Does the same for flags that were read after the close.
    #[inline]
    pub(crate) fn drain_seen(&self, flags: Flags) -> Batch<M> {
        // Every message was accepted before the close, so these flags tell of it.
        if !flags.has(Flags::FILLED.or(Flags::RESERVED)) {
            return Batch::EMPTY;
        }
        self.lock(|flags, contents| contents.drain(flags))
    }

    /// Closes the mailbox, and marks the actor to receive no accepted message any more. Returns
    /// those that the reader has not taken, unless the actor keeps them.
    ///
    /// The actor is woken whatever it waits for, since it may back off before a restart. The caller
    /// still has to refuse the line.
    pub(crate) fn stop_now(&self) -> (Wake, Batch<M>) {
        self.lock(|flags, contents| {
            flags.set(match flags.has(Flags::ENDED) {
                // It ended in another way.
                true => Flags::CLOSED,
                false => Flags::CLOSED.or(Flags::STOPPED_NOW),
            });
            let messages = drain_unkept(flags, contents);
            let wake = flags.wake();
            (flags.and_receiver(wake), messages)
        })
    }

    /// Closes the mailbox and marks the actor to be dropped at its next suspension. Returns the
    /// accepted messages if the actor is killed and does not keep them.
    ///
    /// The caller still has to refuse the line and, if the actor is cancelled, to drain the
    /// mailbox.
    pub(crate) fn terminate(&self, termination: Termination) -> (Wake, Batch<M>) {
        self.lock(|flags, contents| {
            flags.set(Flags::CLOSED);
            let messages = match termination {
                Termination::Killed => {
                    flags.set(Flags::KILLED);
                    drain_unkept(flags, contents)
                }
                Termination::Cancelled => {
                    flags.set(Flags::CANCELLED);
                    Batch::EMPTY
                }
            };
            // The actor is woken to be dropped, and `recv` elsewhere to return.
            let wake = flags.wake();
            (flags.and_receiver(wake), messages)
        })
    }

    /// Records that the actor has ended, and how. Returns whether its result may still be requested,
    /// and the waiters for its end.
    pub(crate) fn end(&self, end: End) -> (bool, Option<&Waiters>) {
        let early = mutant("extras_looked_for_before_the_end").then(|| self.ended());
        let (is_joinable, extras) = self.lock_actor_extras(|flags| {
            flags.clear(Flags::ACTIVE.or(Flags::NOTIFIED));
            flags.set_end(end);
            flags.has(Flags::JOINABLE)
        });
        let ended = early.unwrap_or_else(|| extras.map(|extras| &extras.ended));
        (is_joinable, ended)
    }
}

impl<M> Mailbox<M> {
    /// Adds a sender. The caller is a sender itself.
    pub(crate) fn add_sender(&self) {
        // Relaxed: the sender from which the new one is cloned stays counted meanwhile.
        if self.senders.fetch_add(1, Ordering::Relaxed) > COUNT_MAX {
            std::process::abort();
        }
    }

    /// Returns the number of senders at this moment.
    pub(crate) fn addresses(&self) -> usize {
        // Relaxed: a snapshot, which publishes nothing.
        self.senders.load(Ordering::Relaxed) as usize
    }

    /// Adds a sender where there may be none. Returns whether there was none, or `None` if the
    /// mailbox is closed and `even_closed` is false.
    pub(crate) fn revive_sender(&self, even_closed: bool) -> Option<bool> {
        if !even_closed && self.state.peek().has(Flags::CLOSED) {
            return None;
        }
        let raise = |senders: u32| (0 < senders && senders < COUNT_MAX).then(|| senders + 1);
        // Relaxed: only the count itself matters; it publishes no other data.
        let raised = self
            .senders
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise);
        if raised.is_ok() {
            return Some(false);
        }
        self.lock(|flags, _| {
            if !even_closed && flags.has(Flags::CLOSED) {
                return None;
            }
            if !mutant("revived_and_still_abandoned") {
                flags.clear(Flags::ABANDONED);
            }
            // Relaxed: the count leaves zero only under the lock.
            let before = self.senders.fetch_add(1, Ordering::Relaxed);
            if before > COUNT_MAX {
                std::process::abort();
            }
            Some(before == 0)
        })
    }

    /// Removes a sender. Returns whether it was the last one, in which case the caller must
    /// [abandon](Mailbox::abandon) the mailbox.
    pub(crate) fn remove_sender(&self) -> bool {
        // AcqRel pairs with itself: the last sender sees what the other senders did, and so does
        // the reader.
        self.senders.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Marks the mailbox as abandoned, unless it has a sender again. The reader of an abandoned
    /// mailbox closes it when it finds no message.
    pub(crate) fn abandon(&self) -> Wake {
        // A close is final.
        if self.state.peek().has(Flags::CLOSED) {
            return Wake::Nobody;
        }
        self.lock(|flags, _| {
            // Relaxed: ordered by the lock, under which the count leaves zero.
            let revived = self.senders.load(Ordering::Relaxed) > 0;
            if revived && !mutant("abandoned_without_a_second_look") {
                return Wake::Nobody;
            }
            flags.set(Flags::ABANDONED);
            match flags.has_news() {
                true => flags.arrived(),
                false => Wake::Nobody,
            }
        })
    }
}

/// Takes the accepted messages, unless the actor keeps them: then its context or its end takes them.
fn drain_unkept<M>(flags: &mut Flags, contents: &mut Contents<M>) -> Batch<M> {
    match flags.has(Flags::KEEPS) {
        true => Batch::EMPTY,
        false => contents.drain(flags),
    }
}
