//! Closing, draining and terminating a mailbox, and recording that its actor has ended.
//!
//! A close is final. Messages accepted before it stay in the queue until they are received or
//! drained.

use super::contents::Mailbox;
use super::queue::Batch;
use super::state::{Flags, Termination, Wake};
use crate::error::End;
use crate::sync::mutant;
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
            (flags.arrived(), flags.has(Flags::WAITED_FOR))
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
                    match flags.has(Flags::KEEPS) {
                        true => Batch::EMPTY,
                        false => contents.drain(flags),
                    }
                }
                Termination::Cancelled => {
                    flags.set(Flags::CANCELLED);
                    Batch::EMPTY
                }
            };
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
