//! Operations on an actor in a simulation, where turns may be split.
//!
//! A split turn has its messages accepted at once, by reserving permits of the mailboxes. Each
//! message arrives when the simulation draws it, in the order of the turn's operations. Operations
//! that have not taken effect yet are pending effects. Before a turn looks at an actor, the pending
//! effects of both are applied.

#![expect(
    unsafe_code,
    reason = "messages without their type; see CELL-1 and CELL-2 in cell.rs"
)]

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::core::{Core, CoreArc, CoreRef};
use crate::contain::attempt;
use crate::error::TellError;
use crate::mailbox::Refused;
use crate::runtime::{Deferred, DueEffects, context};
use crate::task::{MessageEvent, MessageInfo, SenderAction};
use crate::tracer::MessageSender;

/// The maximum number of characters of a message in a trace: one or two lines of a terminal, so
/// that a long text does not hide the steps around it.
const SHOWN: usize = 200;

impl<M> Core<M> {
    /// Returns the description of a message for traces.
    pub(super) fn message_info(&self, message: &M) -> MessageInfo {
        let Some(show) = self.mailbox.show() else {
            let text = self.label(message).map(Into::into);
            let info = MessageInfo::of::<M>();
            return MessageInfo { text, ..info };
        };
        let shown = attempt(|| show(message));
        let text = shown.unwrap_or_else(|_| "(its Debug panicked)".to_owned());
        let text = match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        };
        MessageInfo {
            text: Some(text.into()),
            ..MessageInfo::of::<M>()
        }
    }

    /// Applies the pending effects of the actor and of this thread, before this thread looks at the
    /// actor.
    #[inline]
    pub(super) fn observe(&self) {
        if self.header.is_traced() {
            apply_effects_of(self.header.id());
        }
    }

    /// Notes that this thread waits for the actor's end.
    #[inline]
    pub(super) fn awaits_end(&self) {
        if self.header.is_traced() {
            self.await_end();
        }
    }

    #[cold]
    #[inline(never)]
    fn await_end(&self) {
        let _ = context::simulated(|engine, _| engine.awaits_end(&self.info()));
    }
}

#[cold]
#[inline(never)]
fn apply_effects_of(id: u64) {
    let _ = context::simulated(|engine, runtime| engine.apply(runtime, DueEffects::ByActor(id)));
}

/// Notes that this thread waits for a message.
#[cold]
#[inline(never)]
pub(super) fn await_message() {
    let _ = context::simulated(|engine, _| engine.awaits_message());
}

/// Applies the pending effects of this thread, unless it runs this actor. The actor's own effects
/// are applied when another turn looks at the actor.
#[cold]
#[inline(never)]
pub(super) fn apply_effects_elsewhere(actor: u64) {
    let _ =
        context::simulated(|engine, runtime| engine.apply(runtime, DueEffects::Elsewhere(actor)));
}

/// Applies all pending effects. A full mailbox reveals the messages of other senders, and an entry in
/// its line comes after them.
#[cold]
#[inline(never)]
pub(super) fn apply_all_effects() {
    let _ = context::simulated(|engine, runtime| engine.apply(runtime, DueEffects::All));
}

/// Calls `act` after the pending effects of this thread, as another effect of its turn.
pub(super) fn after_effects(act: impl FnOnce() + Send + 'static) {
    if !context::has_effects() {
        return act();
    }
    let _ = context::simulated(|engine, runtime| {
        engine.defer(runtime, Deferred::Act(Box::new(act)));
    });
}

impl<M> CoreRef<'_, M> {
    /// Returns whether this thread's operations on the actor take effect later.
    pub(super) fn is_deferred(self) -> bool {
        let id = self.header.id();
        self.header.is_traced()
            && context::simulated(|engine, runtime| engine.defers_to(runtime, id)) == Some(true)
    }

    /// Does what [`CoreRef::tell`] does, for an actor that is traced or conflates.
    #[cold]
    #[inline(never)]
    pub(super) fn tell_specially(self, message: M) -> Result<(), TellError<M>> {
        match self.header.conflates() {
            true => self.tell_conflating(message),
            false => self.tell_traced(message),
        }
    }

    fn tell_traced(self, message: M) -> Result<(), TellError<M>> {
        let is_deferred = self.is_deferred();
        match self.reserve_displacing() {
            Ok(displaced) => {
                match is_deferred {
                    true => self.defer::<false>(message),
                    false => self.fill::<false>(message),
                }
                self.give_displaced(displaced);
            }
            Err(why) => {
                match why {
                    Refused::Full => apply_all_effects(),
                    Refused::Closed => self.observe(),
                }
                return Err(self.tell_error(why, message));
            }
        }
        Ok(())
    }

    /// Sends the message as a pending effect. Returns `None` if it must be sent now, or must wait. A
    /// refused message stays in `message`.
    #[cold]
    #[inline(never)]
    pub(super) fn send_deferred(self, message: &mut Option<M>) -> Option<Result<(), Refused>> {
        if !self.is_deferred() {
            return None;
        }
        let reserved = self.reserve_displacing();
        if let Err(Refused::Full) = reserved {
            apply_all_effects();
            return None;
        }
        match &reserved {
            Ok(_) => self.defer::<false>(message.take()?),
            Err(_) => self.observe(),
        }
        Some(reserved.map(|displaced| self.give_displaced(displaced)))
    }

    /// Reserves a permit for a message that is made afterwards.
    pub(super) fn reserve(self) -> Result<(), Refused> {
        self.is_deferred();
        let reserved = self.reserve_displacing();
        match &reserved {
            Err(Refused::Full) if self.header.is_traced() => apply_all_effects(),
            Err(Refused::Closed) => self.observe(),
            _ => {}
        }
        reserved.map(|displaced| self.give_displaced(displaced))
    }

    /// Defers the arrival of the message with its permit of one of the queues.
    fn defer<const URGENT: bool>(self, message: M) {
        let info = self.message_info(&message);
        self.sent(&message);
        let mut message = ManuallyDrop::new(message);
        // SAFETY: (CELL-2) a reference is held; the message has the cell's type and is given away.
        let deliver = unsafe {
            let message = NonNull::from(&mut message).cast();
            let action = match URGENT {
                true => SenderAction::Urgent(message),
                false => SenderAction::Message(message),
            };
            (self.header.vtable.delivery)(self.header(), action)
        };
        let to = self.info();
        let _ = context::simulated(|engine, runtime| {
            engine.defer(runtime, Deferred::Message(to, info, deliver));
        });
    }

    /// Defers the end of an address, if this thread has pending effects. Returns whether it did.
    #[cold]
    #[inline(never)]
    pub(super) fn leaves_later(self) -> bool {
        if !context::has_effects() {
            return false;
        }
        // SAFETY: (CELL-2) a reference is held; the address is given away.
        let leave = unsafe { (self.header.vtable.delivery)(self.header(), SenderAction::Leave) };
        let _ = context::simulated(|engine, runtime| engine.defer(runtime, Deferred::Act(leave)));
        true
    }

    /// Closes the mailbox for a sender, after the earlier operations of its turn.
    pub(super) fn stop(self) {
        if !self.is_deferred() {
            return self.close();
        }
        // SAFETY: (CELL-2) a reference is held.
        let stop = unsafe { (self.header.vtable.delivery)(self.header(), SenderAction::Stop) };
        let _ = context::simulated(|engine, runtime| {
            engine.defer(runtime, Deferred::Stop(self.header.id(), stop));
        });
    }

    /// Uses a permit of one of the queues now.
    pub(super) fn fill<const URGENT: bool>(self, message: M) {
        let info = self.info_if_simulated(&message);
        let from = self.sent(&message);
        self.put::<URGENT>(message, from, || {
            MessageEvent::Sent(info.unwrap_or(MessageInfo::of::<M>()))
        });
    }

    /// Returns the description of a message if a simulation traces it.
    pub(super) fn info_if_simulated(self, message: &M) -> Option<MessageInfo> {
        let is_simulated = self.header.is_traced()
            && (!self.mailbox.is_traced() || context::simulated(|_, _| ()).is_some());
        is_simulated.then(|| self.message_info(message))
    }

    fn put<const URGENT: bool>(
        self,
        message: M,
        from: Option<MessageSender>,
        event: impl FnOnce() -> MessageEvent,
    ) {
        if !URGENT && self.header.conflates() {
            return self.put_conflating(message, from, event);
        }
        let filled = match URGENT {
            true => self.mailbox.fill_urgent(message, from.as_ref()),
            false => self.mailbox.fill(message, from.as_ref()),
        };
        match filled {
            Ok(wake) => {
                self.trace_in::<URGENT>(event);
                self.pass_on(wake);
            }
            Err(refused) => self.lose_late::<URGENT>(refused, from),
        }
    }
}

impl<M> CoreArc<M> {
    /// Uses a permit of one of the queues, now or as a pending effect.
    pub(super) fn fill<const URGENT: bool>(&self, message: M) {
        if self.at().is_deferred() {
            return self.at().defer::<URGENT>(message);
        }
        self.at().fill::<URGENT>(message);
    }

    /// Uses a permit with a message that was sent earlier, by `from` if it is traced.
    pub(super) fn arrive<const URGENT: bool>(&self, message: M, from: Option<MessageSender>) {
        self.at()
            .put::<URGENT>(message, from, || MessageEvent::Arrived);
    }
}
