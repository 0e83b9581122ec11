//! Permits: accepted messages that are not made yet.
//!
//! Capacity and close are checked when a permit is given; from then on it counts as accepted. It
//! is used once or given up once, and `recv` does not return `None` before that.
//!
//! Each of the two [queues](super::urgent) has permits of its own.

use std::task::{Context, Poll};

use super::contents::{Mailbox, Refused};
use super::line::{LineEntry, SenderState};
use super::queue::Spare;
use super::send::Joining;
use super::state::{Flags, Wake};
use crate::contain::KeptWaker;
use crate::sync::mutant;
use crate::tracer::MessageSender;

impl<M> Mailbox<M> {
    /// Reserves a permit if there is room now.
    pub(crate) fn reserve(&self) -> Result<(), Refused> {
        self.reserve_in::<false>()
    }

    /// Does the same for one of the queues.
    pub(crate) fn reserve_in<const URGENT: bool>(&self) -> Result<(), Refused> {
        self.lock_extras(|flags, _, extras| {
            if flags.has(Flags::CLOSED) {
                return Err(Refused::Closed);
            }
            if let Some(bound) = extras.bound_of::<URGENT>() {
                if !bound.has_room() {
                    return Err(Refused::Full);
                }
                bound.len += 1;
            }
            *extras.reserved_of::<URGENT>() += 1;
            flags.set(Flags::RESERVED);
            Ok(())
        })
    }

    /// Waits in line until a permit is given. Fails if the mailbox is closed, or full and no sender
    /// waits for room.
    pub(crate) fn poll_reserve<const URGENT: bool>(
        &self,
        entry: &mut Option<LineEntry<M>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        if entry.is_some() {
            let polled = self.poll_line::<URGENT>(entry, &mut None, cx);
            return polled.map(|state| match state {
                SenderState::Accepted => Ok(()),
                _ => Err(Refused::Closed),
            });
        }
        loop {
            let reserved = self.reserve_in::<URGENT>();
            if reserved != Err(Refused::Full) {
                return Poll::Ready(reserved);
            }
            // Allocated outside of the lock; meanwhile room may be freed.
            let new = LineEntry::new(&mut None, MessageSender::NONE, KeptWaker::new(cx.waker()));
            let joining = self.join::<URGENT>(&new);
            if joining == Joining::Waits {
                *entry = Some(new);
                return Poll::Pending;
            }
            new.free(&mut None);
            if joining == Joining::Refused {
                return Poll::Ready(Err(Refused::Full));
            }
        }
    }

    /// Leaves the line, and gives up the permit if it was given already.
    pub(crate) fn leave_line<const URGENT: bool>(&self, entry: LineEntry<M>) -> Wake {
        match self.leave::<URGENT>(entry, &mut None) {
            SenderState::Accepted => self.give_up_permit::<URGENT>(),
            _ => Wake::Nobody,
        }
    }

    /// Puts the message in with a permit. Returns the message if the mailbox was drained, so
    /// that no reader will receive it. The permit is then still given. `from` is the actor that
    /// sends, if the mailbox is traced.
    pub(crate) fn fill(&self, message: M, from: Option<&MessageSender>) -> Result<Wake, M> {
        let mut message = Some(message);
        let mut spare = Spare::NONE;
        // (MAILBOX-3) A permit has its room, but the queue may need a block.
        spare.provide(self.state.peek().has(Flags::FILLED));
        let wake = self.lock(|flags, contents| {
            if flags.has(Flags::DEAF) || !contents.queue.push(&mut message, &mut spare) {
                return Wake::Nobody;
            }
            if let Some(from) = from {
                contents.note_sender(from);
            }
            if let Some(extras) = contents.extras() {
                extras.give_back::<false>(flags);
            }
            flags.set(Flags::FILLED);
            flags.arrived()
        });
        message.map_or(Ok(wake), Err)
    }

    /// Gives up a permit, which the next sender in the line may have.
    pub(crate) fn give_up_permit<const URGENT: bool>(&self) -> Wake {
        let waited_for = self.lock(|flags, contents| {
            if let Some(extras) = contents.extras() {
                extras.give_back::<URGENT>(flags);
                if let Some(bound) = extras.bound_of::<URGENT>() {
                    bound.len -= 1;
                }
            }
            flags.has(Flags::line_of::<URGENT>())
        });
        if waited_for && !mutant("given_up_place_is_not_passed_on") {
            match URGENT {
                true => self.promote_urgent(),
                false => self.promote(),
            }
        }
        // The reader receives a promoted message, or learns that no message will come.
        self.lock(|flags, _| match flags.has_news() {
            true if !mutant("given_up_place_wakes_nobody") => flags.arrived(),
            _ => Wake::Nobody,
        })
    }
}
