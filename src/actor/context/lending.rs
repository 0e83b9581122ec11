//! What a loan needs of a context: its return to the lender, and a wait for the end.

use std::task::{Poll, Waker};

use super::{Context, done};
use crate::contain::contain;
use crate::mailbox::{Flags, wake_foreign};
use crate::sync::mutant;

impl<M> Context<M> {
    /// Returns this context to its lender, without its sources. Returns false if it is not lent any
    /// more.
    #[cold]
    #[inline(never)]
    pub(super) fn give_back(&mut self) -> bool {
        let early = mutant("given_back_before_the_reader_is_left");
        let early = early.then(|| self.core.mailbox.give_back());
        let (core, reader) = self.parts();
        // The drops of wakers and sources may run any code, but cannot reach this context.
        contain(|| done(core, reader));
        contain(|| drop(reader.take_sources()));
        match early.unwrap_or_else(|| core.mailbox.give_back()) {
            Ok(None) => true,
            Ok(Some(lender)) => {
                wake_foreign(lender);
                true
            }
            Err(()) => false,
        }
    }

    /// Returns whether the mailbox is closed and empty.
    pub(in crate::actor) fn is_at_end(&mut self) -> bool {
        let (core, reader) = self.parts();
        let flags = core.mailbox.state.peek();
        let has_more = !reader.is_empty() || flags.has(Flags::FILLED.or(Flags::RESERVED));
        flags.has(Flags::CLOSED) && !has_more
    }

    /// Waits until the mailbox is closed and empty. It does not receive, and while there is a
    /// message nothing wakes it.
    pub(in crate::actor) fn poll_end(&mut self, waker: &Waker) -> Poll<()> {
        self.end_wait();
        while !self.is_at_end() {
            let (core, reader) = self.parts();
            let flags = core.mailbox.state.peek();
            if !reader.is_empty() || flags.has(Flags::FILLED) {
                return Poll::Pending;
            }
            // Without addresses, `recv` would find the end of the messages.
            let is_usual = !flags.has(Flags::RESERVED.or(Flags::ABANDONED));
            if is_usual && core.receive_in_run(waker) || core.mailbox.wait_for_end(waker) {
                reader.set_waits();
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Ends the wait, so that the next message wakes no task.
    pub(in crate::actor) fn end_wait(&mut self) {
        let (core, reader) = self.parts();
        done(core, reader);
    }
}
