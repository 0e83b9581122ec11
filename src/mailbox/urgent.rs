//! The second queue of a mailbox, for urgent messages: it is bounded, and read first.
//!
//! All that comes into it has a permit. Its room, its line and its permits are its own. The lock, the
//! close and the end are those of the mailbox.
//!
//! A mailbox with such a queue is read one message at a time. After a number of urgent messages in a
//! row, which are received while plain ones wait, a plain one comes.

use super::bound::Bound;
use super::contents::{Contents, Mailbox};
use super::extras::MailboxExtras;
use super::line::SenderState;
use super::queue::{Batch, Spare, TakenMessage};
use super::send::wake_foreign;
use super::state::{Flags, Wake};
use super::urgent_queue::UrgentQueue;
use crate::tracer::MessageSender;

impl<M> Mailbox<M> {
    /// Returns whether the mailbox has a queue for urgent messages.
    #[inline]
    pub(crate) fn has_urgent(&self) -> bool {
        self.state.peek().has(Flags::HAS_URGENT)
    }

    /// Returns the number of urgent messages that wait, and the capacity for them.
    pub(crate) fn urgent_len(&self) -> (usize, usize) {
        self.lock(|_, contents| {
            let urgent = contents.urgent();
            urgent.map_or((0, 0), |urgent| (urgent.len(), urgent.bound.capacity))
        })
    }

    /// Returns whether the last message that was received was urgent.
    pub(crate) fn was_urgent(&self) -> bool {
        self.has_urgent()
            && self.lock(|_, contents| contents.urgent().is_some_and(|urgent| urgent.was_received))
    }

    /// Puts an urgent message in, with its permit. Returns the message if the mailbox was drained, as
    /// [`Mailbox::fill`] does.
    pub(crate) fn fill_urgent(&self, message: M, from: Option<&MessageSender>) -> Result<Wake, M> {
        let (mut message, mut spare) = (Some(message), Spare::NONE);
        spare.provide(self.state.peek().has(Flags::URGENT));
        let wake = self.lock(|flags, contents| {
            let extras = contents.extras().filter(|_| !flags.has(Flags::DEAF));
            let Some(urgent) = extras.and_then(MailboxExtras::urgent) else {
                return Wake::Nobody;
            };
            if !urgent.queue.push(&mut message, &mut spare) {
                return Wake::Nobody;
            }
            urgent.senders.extend(from.cloned());
            if let Some(extras) = contents.extras() {
                extras.give_back::<true>(flags);
            }
            flags.set(Flags::FILLED.or(Flags::URGENT));
            flags.arrived()
        });
        message.map_or(Ok(wake), Err)
    }

    /// Gives permits to those that wait for one to send an urgent message, while there is room.
    pub(super) fn promote_urgent(&self) {
        while let Some(waker) = self.lock(|flags, contents| {
            let urgent = contents.urgent()?;
            let bound = &mut urgent.bound;
            if bound.len >= bound.capacity || bound.line.is_empty() || flags.has(Flags::CLOSED) {
                return None;
            }
            bound.len += 1;
            urgent.reserved += 1;
            flags.set(Flags::RESERVED);
            let waker = bound.line.complete_first(SenderState::Accepted);
            if bound.line.is_empty() {
                flags.clear(Flags::URGENT_LINE);
            }
            Some(waker)
        }) {
            waker.into_iter().for_each(wake_foreign);
        }
    }

    /// Refuses all that wait to send an urgent message. The mailbox is closed.
    pub(super) fn refuse_urgent_line(&self) {
        while let Some(waker) = self.lock(|flags, contents| {
            flags.clear(Flags::URGENT_LINE);
            let line = &mut contents.urgent()?.bound.line;
            (!line.is_empty()).then(|| line.complete_first(SenderState::Refused))
        }) {
            waker.into_iter().for_each(wake_foreign);
        }
    }
}

impl<M> MailboxExtras<M> {
    pub(super) fn urgent(&mut self) -> Option<&mut UrgentQueue<M>> {
        self.hooks.as_mut()?.urgent.as_deref_mut()
    }

    /// Returns the bound of one of the queues, if it has one.
    pub(super) fn bound_of<const URGENT: bool>(&mut self) -> Option<&mut Bound<M>> {
        match URGENT {
            true => self.urgent().map(|urgent| &mut urgent.bound),
            false => self.bound.as_mut(),
        }
    }

    /// Returns the number of permits of one of the queues.
    pub(super) fn reserved_of<const URGENT: bool>(&mut self) -> &mut usize {
        match URGENT {
            true => &mut self.urgent().expect("it gives permits").reserved,
            false => &mut self.reserved,
        }
    }

    /// Subtracts one permit.
    pub(super) fn give_back<const URGENT: bool>(&mut self, flags: &mut Flags) {
        *self.reserved_of::<URGENT>() -= 1;
        if self.reserved == 0 && self.urgent().is_none_or(|urgent| urgent.reserved == 0) {
            flags.clear(Flags::RESERVED);
        }
    }
}

impl<M> Contents<M> {
    pub(super) fn urgent(&mut self) -> Option<&mut UrgentQueue<M>> {
        self.extras()?.urgent()
    }

    /// Returns whether there may be more messages in both queues than so many, which is seen at once.
    pub(super) fn may_exceed(&mut self, len: usize) -> bool {
        let plain = self.bound().map_or(0, |bound| bound.len);
        let urgent = self.urgent().map_or(0, |urgent| urgent.bound.len);
        plain + urgent > len
    }

    /// Takes the next message of a mailbox with two queues, and notes what is left.
    #[cold]
    pub(super) fn take_of_two(&mut self, flags: &mut Flags) -> Option<TakenMessage<M>> {
        let (queue, extras) = self.parts();
        let extras = extras?;
        let hooks = extras.hooks.as_mut()?;
        let urgent = hooks.urgent.as_deref_mut()?;
        let is_urgent = flags.has(Flags::URGENT) && (urgent.left_in_row > 0 || queue.is_empty());
        urgent.was_received = is_urgent;
        let taken = if is_urgent {
            // A row is one while plain messages wait.
            urgent.left_in_row = match queue.is_empty() {
                true => urgent.in_a_row,
                false => urgent.left_in_row.saturating_sub(1),
            };
            urgent.bound.len -= 1;
            // The reader takes the sender of the message that it has received from there.
            if let Some(from) = urgent.senders.pop_front() {
                hooks.traced.senders.push_front(from);
            }
            urgent.queue.take_one()?
        } else {
            let taken = queue.take_one()?;
            urgent.left_in_row = urgent.in_a_row;
            if let Some(bound) = &mut extras.bound {
                bound.len -= 1;
            }
            taken
        };
        if urgent.queue.is_empty() {
            flags.clear(Flags::URGENT);
        }
        Some(taken)
    }

    /// Takes all messages of a mailbox with two queues, the urgent ones first.
    #[cold]
    pub(super) fn take_both(&mut self, flags: &mut Flags) -> Batch<M> {
        flags.clear(Flags::URGENT);
        let (queue, extras) = self.parts();
        let hooks = extras.and_then(|extras| extras.hooks.as_mut());
        let Some((urgent, traced)) =
            hooks.and_then(|hooks| Some((hooks.urgent.as_deref_mut()?, &mut hooks.traced)))
        else {
            return queue.take();
        };
        urgent.bound.len = urgent.reserved;
        // Before them are the senders of messages that the reader has taken.
        if !urgent.senders.is_empty() {
            let index = traced.senders.len().saturating_sub(queue.len());
            let plain = traced.senders.split_off(index);
            traced.senders.append(&mut urgent.senders);
            traced.senders.extend(plain);
        }
        urgent.queue.take_before(queue)
    }
}
