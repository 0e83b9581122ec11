//! Mailboxes that displace: where there is no room, the oldest message gives way to the new one.
//!
//! A message is displaced in the critical section that accepts the new one, and returned to the
//! caller. So an accepted message is received, drained or displaced, once. Room that a permit has
//! is never taken.

use super::contents::{Contents, Mailbox, Refused};
use super::queue::{Emptied, Spare};
use super::state::{Flags, Wake};
use crate::sync::mutant;

/// What is done if there is no room, neither in the bounded mailbox of an
/// [actor](crate::ActorBuilder::overflow) nor in the queue of a
/// [spool](crate::spool::SpoolBuilder::overflow).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// Senders wait for room. A spool does not do this.
    #[default]
    Wait,
    /// The newest message or request is refused.
    Newest,
    /// The oldest one is displaced: it gives way to the newest.
    Oldest,
}

/// What a bounded mailbox does with messages that it displaces; constant from its creation.
pub(crate) struct Displacing<M> {
    pub(crate) overflow: Overflow,
    /// The function for displaced messages.
    pub(crate) on_displaced: Option<OnDisplaced<M>>,
}

type OnDisplaced<M> = Box<dyn Fn(M) + Send + Sync>;

impl<M> Default for Displacing<M> {
    fn default() -> Self {
        Displacing {
            overflow: Overflow::Wait,
            on_displaced: None,
        }
    }
}

/// A message that has given way to a newer one.
pub(crate) struct DisplacedMessage<M> {
    pub(crate) message: M,
    /// The actor that has sent it, if the mailbox is traced.
    pub(crate) from: Option<u64>,
    /// The number of messages behind it in the queue.
    pub(crate) newer: usize,
    /// Its block, if it was the last message there.
    _emptied: Option<Emptied<M>>,
}

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
        from: u64,
    ) -> Result<(Wake, Option<DisplacedMessage<M>>), Refused> {
        let mut spare = Spare::NONE;
        loop {
            let sent = self.lock(|flags, contents| {
                let gives_way = contents.has_to_give_way(*flags)?;
                let waiting = contents.waiting();
                // First of all, since it may need a block. The oldest message is another one.
                if !contents.queue.push(message, &mut spare) {
                    return Ok(None);
                }
                let displaced = match gives_way {
                    true => contents.displace_oldest(*flags, waiting),
                    false => None,
                };
                if let Some(bound) = contents.bound() {
                    bound.len += usize::from(displaced.is_none());
                }
                if flags.has(Flags::TRACED) {
                    contents.note_sender(from);
                }
                flags.set(Flags::FILLED);
                Ok(Some((flags.arrived(), displaced)))
            })?;
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
            if contents.queue.is_empty() && !mutant("emptied_queue_stays_filled") {
                flags.clear(Flags::FILLED);
            }
            if let Some(extras) = contents.extras() {
                if let Some(bound) = &mut extras.bound {
                    bound.len += usize::from(displaced.is_none());
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

    /// Returns the number of messages in the queue of a bounded mailbox.
    fn waiting(&mut self) -> usize {
        self.extras().map_or(0, |extras| {
            (extras.bound.as_ref()).map_or(0, |bound| bound.len - extras.reserved)
        })
    }

    /// Takes the oldest of `waiting` messages, and its sender. It keeps its room.
    fn displace_oldest(&mut self, flags: Flags, waiting: usize) -> Option<DisplacedMessage<M>> {
        // In this critical section, as for a message that is received.
        let (message, emptied) = self.queue.take_one()?.read_apart();
        let hooks = self.hooks()?;
        hooks.displaced += 1;
        let senders = &mut hooks.traced.senders;
        // Before them are those of messages that the reader has taken.
        let index = senders.len().checked_sub(waiting);
        let from = index.filter(|_| flags.has(Flags::TRACED));
        Some(DisplacedMessage {
            message,
            from: from.and_then(|index| senders.remove(index)),
            newer: waiting - 1,
            _emptied: emptied,
        })
    }
}
