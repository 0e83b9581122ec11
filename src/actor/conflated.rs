//! Sending to an actor whose mailbox conflates.
//!
//! The key of a message is computed by code of the user, on the sender's thread and without a lock.
//! A message that waits for room waits for a permit, since its key may be another one's meanwhile. In
//! a simulation such a message is no effect of its own: it is put in at once, after the earlier effects
//! of its turn.

use std::task::{Context, Poll};

use super::core::CoreRef;
use crate::contain::attempt;
use crate::error::TellError;
use crate::mailbox::{Conflated, Conflation, LineEntry, Refused};
use crate::runtime::context;
use crate::task::{MessageEvent, MessageInfo};
use crate::tracer::MessageSender;

impl<'a, M> CoreRef<'a, M> {
    /// Returns how messages replace others.
    fn conflation(self) -> &'a Conflation<M> {
        let displacing = self.core().mailbox.displacing();
        let conflation = displacing.and_then(|displacing| displacing.conflation.as_ref());
        conflation.expect("the mailbox conflates")
    }

    /// Does what [`CoreRef::tell`] does.
    pub(super) fn tell_conflating(self, message: M) -> Result<(), TellError<M>> {
        let mut message = Some(message);
        match (self.send_conflating(&mut message), message) {
            (Err(why), Some(message)) => Err(self.tell_error(why, message)),
            _ => Ok(()),
        }
    }

    /// Puts the message in the position of the one of its key, or behind the others if there is room.
    /// A refused message stays in `message`.
    fn send_conflating(self, message: &mut Option<M>) -> Result<(), Refused> {
        if self.header.is_traced() {
            context::apply_effects();
            // With a permit it is traced before the actor has it.
            if self.mailbox.reserve().is_ok() {
                message
                    .take()
                    .into_iter()
                    .for_each(|message| self.fill::<false>(message));
                return Ok(());
            }
            self.observe();
        }
        let Some(sent) = message.as_ref() else {
            return Ok(());
        };
        let conflation = self.conflation();
        let key = conflation.key(sent);
        let info = self.info_if_simulated(sent);
        let is_traced = self.mailbox.is_traced();
        let from = match is_traced {
            true => self.sender(),
            false => MessageSender::NONE,
        };
        let conflated = self
            .mailbox
            .conflate(conflation, key, message, false, &from)?;
        self.pass_on_conflated(conflated, || {
            MessageEvent::Sent(info.unwrap_or(MessageInfo::of::<M>()))
        });
        Ok(())
    }

    /// Uses a permit with the message, or gives it up if the message takes the position of another.
    #[cold]
    pub(super) fn put_conflating(
        self,
        message: M,
        from: Option<MessageSender>,
        event: impl FnOnce() -> MessageEvent,
    ) {
        let conflation = self.conflation();
        let key = match attempt(|| conflation.key(&message)) {
            Ok(key) => key,
            Err(panic) => {
                self.give_up_permit::<false>();
                std::panic::resume_unwind(panic.into_payload());
            }
        };
        let mut message = Some(message);
        let sender = from.clone().unwrap_or_default();
        match (self.mailbox).conflate(conflation, key, &mut message, true, &sender) {
            Ok(conflated) => {
                if conflated.is_in_place {
                    self.give_up_permit::<false>();
                }
                self.pass_on_conflated(conflated, event);
            }
            Err(_) => {
                if let Some(message) = message {
                    self.lose_late::<false>(message, from);
                }
            }
        }
    }

    fn pass_on_conflated(self, conflated: Conflated<M>, event: impl FnOnce() -> MessageEvent) {
        let Conflated {
            wake,
            displaced,
            is_in_place,
        } = conflated;
        self.trace_displaced(displaced.as_ref(), is_in_place);
        self.trace(event);
        self.pass_on(wake);
        self.give_displaced(displaced);
    }

    /// Sends the message, or waits for a permit for it.
    #[cold]
    #[inline(never)]
    pub(super) fn poll_conflating(
        self,
        message: &mut Option<M>,
        entry: &mut Option<LineEntry<M>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Refused>> {
        if entry.is_none() {
            let sent = self.send_conflating(message);
            if sent != Err(Refused::Full) {
                return Poll::Ready(sent);
            }
        }
        self.poll_reserve::<false>(entry, cx).map_ok(|()| {
            context::apply_effects();
            message
                .take()
                .into_iter()
                .for_each(|message| self.fill::<false>(message));
        })
    }
}
