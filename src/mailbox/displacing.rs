//! Mailboxes that displace: where there is no room, the oldest message gives way to the new one.
//!
//! A message is displaced in the critical section that accepts the new one, and returned to the
//! caller. So an accepted message is received, drained or displaced, once. Room that a permit has
//! is never taken.

use super::contents::{Contents, Mailbox, Refused};
use super::overflow::{DisplacedMessage, Overflow};
use super::queue::Spare;
use super::state::{Flags, Wake};
use crate::sync::mutant;
use crate::tracer::MessageSender;

/// Whom a new message wakes, and the message that has given way to it.
pub(super) type Appended<M> = (Wake, Option<DisplacedMessage<M>>);

impl<M> Mailbox<M> {
    /// Returns whether senders never wait for room.
    #[inline]
    pub(crate) fn overflows(&self) -> bool {
        self.state.peek().has(Flags::OVERFLOWS)
    }

    /// Appends a message that found no room. Returns the message that gives way to it.
    ///
    /// `from` is the actor that sends, if the mailbox is traced. A refused message stays in
    /// `message`.
    #[cold]
    pub(crate) fn send_displacing(
        &self,
        message: &mut Option<M>,
        from: &MessageSender,
    ) -> Result<Appended<M>, Refused> {
        let mut spare = Spare::NONE;
        loop {
            let sent = self
                .lock(|flags, contents| contents.append(flags, message, &mut spare, false, from))?;
            match sent {
                Some(sent) => return Ok(sent),
                None => spare.provide(true),
            }
        }
    }

    /// Reserves a permit where there was no room. Returns the message that gives way to it.
    #[cold]
    pub(crate) fn reserve_displacing(&self) -> Result<Option<DisplacedMessage<M>>, Refused> {
        self.lock(|flags, contents| {
            let waiting = contents.waiting();
            let displaced = match contents.has_to_give_way(*flags)? {
                true => contents.displace_oldest(*flags, waiting),
                false => None,
            };
            if contents.queue.is_empty() && !flags.has(Flags::URGENT) {
                flags.clear(Flags::FILLED);
            }
            if let Some(extras) = contents.extras() {
                if let Some(bound) = &mut extras.bound {
                    bound.len += usize::from(
                        displaced.is_none() || mutant("displaced_letter_keeps_its_room"),
                    );
                }
                extras.reserved += 1;
                flags.set(Flags::RESERVED);
            }
            Ok(displaced)
        })
    }
}

impl<M> Contents<M> {
    /// Returns whether the oldest message has to give way to a new one, or why that is refused.
    fn has_to_give_way(&mut self, flags: Flags) -> Result<bool, Refused> {
        if flags.has(Flags::CLOSED) {
            return Err(Refused::Closed);
        }
        // There may be room by now.
        if self.bound().is_none_or(|bound| bound.has_room()) {
            return Ok(false);
        }
        let hooks = self.hooks();
        let overflow = hooks.and_then(|hooks| Some(hooks.displacing.as_ref()?.overflow));
        match overflow == Some(Overflow::Oldest) && !self.queue.is_empty() {
            true => Ok(true),
            false => Err(Refused::Full),
        }
    }

    /// Puts a message behind the others, with its permit or in room that it needs. Returns `None` if
    /// that takes a block.
    pub(super) fn append(
        &mut self,
        flags: &mut Flags,
        message: &mut Option<M>,
        spare: &mut Spare<M>,
        has_permit: bool,
        from: &MessageSender,
    ) -> Result<Option<Appended<M>>, Refused> {
        if has_permit && flags.has(Flags::DEAF) {
            return Err(Refused::Closed);
        }
        let gives_way = !has_permit && self.has_to_give_way(*flags)?;
        let waiting = self.waiting();
        // First of all, since it may need a block. The oldest message is another one.
        if !self.queue.push(message, spare) {
            return Ok(None);
        }
        let displaced = match gives_way {
            true => self.displace_oldest(*flags, waiting),
            false => None,
        };
        if let Some(extras) = self.extras() {
            if has_permit {
                extras.give_back::<false>(flags);
            } else if let Some(bound) = &mut extras.bound {
                bound.len += usize::from(displaced.is_none());
            }
        }
        if flags.has(Flags::TRACED) {
            self.note_sender(from);
        }
        flags.set(Flags::FILLED);
        Ok(Some((flags.arrived(), displaced)))
    }

    /// Returns the number of messages in the queue of a bounded mailbox.
    pub(super) fn waiting(&mut self) -> usize {
        self.extras().map_or(0, |extras| {
            (extras.bound.as_ref()).map_or(0, |bound| bound.len - extras.reserved)
        })
    }

    /// Takes the oldest of `waiting` messages, and its sender. It leaves its room.
    fn displace_oldest(&mut self, flags: Flags, waiting: usize) -> Option<DisplacedMessage<M>> {
        // In this critical section, as for a message that is received.
        let (message, emptied) = self.queue.take_one()?.read_apart();
        let from = self.displaced_sender(flags, waiting, None);
        Some(DisplacedMessage {
            message,
            from,
            newer: waiting - 1,
            _emptied: emptied,
        })
    }

    /// Returns a message that was replaced, with this number of newer ones, by one that `from` sends.
    pub(super) fn replaced(
        &mut self,
        flags: Flags,
        message: M,
        newer: usize,
        from: &MessageSender,
    ) -> DisplacedMessage<M> {
        let from = self.displaced_sender(flags, newer + 1, Some(from));
        DisplacedMessage {
            message,
            from,
            newer,
            _emptied: None,
        }
    }

    /// Counts a displaced message, the first of the last `waiting` ones. Takes its sender if the
    /// mailbox is traced, and puts that of the message in its position there.
    fn displaced_sender(
        &mut self,
        flags: Flags,
        waiting: usize,
        replaced_by: Option<&MessageSender>,
    ) -> Option<MessageSender> {
        let hooks = self.hooks()?;
        hooks.displaced += 1;
        if !flags.has(Flags::TRACED) {
            return None;
        }
        let senders = &mut hooks.traced.senders;
        let index = senders.len().checked_sub(waiting)?;
        match replaced_by {
            Some(from) => Some(std::mem::replace(senders.get_mut(index)?, from.clone())),
            None => senders.remove(index),
        }
    }
}
