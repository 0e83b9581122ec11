//! Sending to a mailbox that conflates: a message replaces the waiting one of its key.
//!
//! The lock of the table is taken around the critical section that puts the message into the queue,
//! so both know the same messages (CONFLATION-1 and CONFLATION-2 of `conflation.rs`).
#![expect(
    unsafe_code,
    reason = "a message is replaced in its slot; see CONFLATION-2 and QUEUE-4"
)]

use super::conflation::Conflation;
use super::contents::{Mailbox, Refused};
use super::displacing::Appended;
use super::overflow::DisplacedMessage;
use super::queue::{MessageSlot, Spare};
use super::state::{Flags, Wake};
use crate::tracer::MessageSender;

/// What has become of a message for a mailbox that conflates.
pub(crate) struct Conflated<M> {
    pub(crate) wake: Wake,
    pub(crate) displaced: Option<DisplacedMessage<M>>,
    /// The message has the position of the displaced one, and has not used its permit.
    pub(crate) is_in_place: bool,
}

impl<M> Mailbox<M> {
    /// Puts the message in the position of the message of this key, or behind all if none waits. It has
    /// a permit, or needs room.
    ///
    /// `from` is the actor that sends, if the mailbox is traced. A refused message stays in
    /// `message`.
    #[cold]
    pub(crate) fn conflate(
        &self,
        conflation: &Conflation<M>,
        key: u128,
        message: &mut Option<M>,
        has_permit: bool,
        from: &MessageSender,
    ) -> Result<Conflated<M>, Refused> {
        let mut spare = Spare::NONE;
        let mut table = conflation.table.lock();
        loop {
            let put = self.lock(|flags, contents| {
                let waiting = contents.waiting();
                let oldest = table.accepted - waiting as u64;
                let last = table.entries.get(&key);
                let Some(last) = last.filter(|last| last.number >= oldest) else {
                    let put = contents.append(flags, message, &mut spare, has_permit, from)?;
                    let slot = contents.queue.newest();
                    return Ok(put.zip(slot).map(|put| Put::Behind(put, oldest)));
                };
                if has_permit && flags.has(Flags::DEAF) || !has_permit && flags.has(Flags::CLOSED) {
                    return Err(Refused::Closed);
                }
                // SAFETY: (CONFLATION-2) the message is in the queue, and waits there.
                let old = unsafe { last.slot.replace(message) };
                let newer = (table.accepted - last.number - 1) as usize;
                Ok(Some(Put::InPlace(
                    old.map(|old| contents.replaced(*flags, old, newer, from)),
                )))
            })?;
            match put {
                None => spare.provide(true),
                Some(Put::InPlace(displaced)) => {
                    return Ok(Conflated {
                        wake: Wake::Nobody,
                        displaced,
                        is_in_place: true,
                    });
                }
                Some(Put::Behind(((wake, displaced), slot), oldest)) => {
                    table.add(key, slot, oldest);
                    return Ok(Conflated {
                        wake,
                        displaced,
                        is_in_place: false,
                    });
                }
            }
        }
    }
}

/// What a critical section has done with a message.
enum Put<M> {
    /// It has replaced this one, so the reader was woken before.
    InPlace(Option<DisplacedMessage<M>>),
    /// It is in this slot. The second number is that of the message that was the oldest.
    Behind((Appended<M>, MessageSlot<M>), u64),
}
