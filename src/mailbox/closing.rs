//! The end of a mailbox: it is closed, drained, and told that its actor has ended.
//!
//! A close is final. What was accepted before it stays until it is received or drained.

use super::contents::Mailbox;
use super::queue::Batch;
use super::state::{Flags, Termination, Wake};
use crate::sync::mutant;
use crate::waiters::Waiters;

impl<M> Mailbox<M> {
    /// Refuses all that comes from now on; what was accepted stays.
    pub(crate) fn close(&self) -> Wake {
        // The close is final, and the call that closed sees to what belongs to it.
        if self.state.peek().has(Flags::CLOSED) {
            return Wake::Nobody;
        }
        let (wake, waited_for) = self.lock(|flags, contents| {
            if flags.has(Flags::CLOSED) {
                return (Wake::Nobody, false);
            }
            flags.set(Flags::CLOSED);
            (contents.arrived(flags), flags.has(Flags::WAITED_FOR))
        });
        if waited_for {
            self.refuse_line();
        }
        wake
    }

    /// Takes what was accepted and not taken, once it is closed.
    pub(crate) fn drain(&self) -> Batch<M> {
        // What was accepted was so before the close, so it is seen.
        if !self.state.peek().has(Flags::FILLED.or(Flags::RESERVED)) {
            return Batch::EMPTY;
        }
        self.lock(|flags, contents| contents.drain(flags))
    }

    /// Closes and has the actor dropped at its next suspension; takes what was accepted, if that is to be killed.
    /// What waits in line is still to be given back, what else was accepted to be drained.
    pub(crate) fn terminate(&self, termination: Termination) -> (Wake, Batch<M>) {
        self.lock(|flags, contents| {
            flags.set(Flags::CLOSED);
            let messages = match termination {
                Termination::Killed => {
                    flags.set(Flags::KILLED);
                    contents.drain(flags)
                }
                Termination::Cancelled => {
                    flags.set(Flags::CANCELLED);
                    Batch::EMPTY
                }
            };
            let wake = flags.wake();
            (contents.and_receiver(flags, wake), messages)
        })
    }

    /// The actor is over; says whether somebody may ask for its result, and who waits for the end.
    pub(crate) fn end(&self) -> (bool, Option<&Waiters>) {
        let early = mutant("extras_looked_for_before_the_end").then(|| self.ended());
        let (is_joinable, extras) = self.lock_actor_extras(|flags| {
            flags.clear(Flags::ACTIVE.or(Flags::NOTIFIED));
            flags.set(Flags::ENDED.or(Flags::CLOSED));
            flags.has(Flags::JOINABLE)
        });
        let ended = early.unwrap_or_else(|| extras.map(|extras| &extras.ended));
        (is_joinable, ended)
    }
}
