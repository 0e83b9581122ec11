//! Messages that give way to newer ones, since a bounded mailbox has no room.
//!
//! They go to the actor's function, or are dropped, on the sender's thread and without a lock. A
//! reply that is lost by that refuses its ask.

use super::core::CoreRef;
use super::deferred::apply_all_effects;
use super::recipient::RecipientRef;
use super::undelivered::simulated_label;
use crate::contain::attempt;
use crate::error::{AskError, FaultyPart, Refusal, RefusalKind, TellError};
use crate::info::TaskInfo;
use crate::mailbox::{DisplacedMessage, Refused};
use crate::task::{MessageEvent, loss};
use crate::tracer::MessageSender;

/// Returns the refusal of an ask for which this actor has no room.
#[cold]
fn overloaded(actor: TaskInfo, why: &str) -> Refusal {
    let actor = simulated_label(&actor).unwrap_or(actor);
    Refusal::of(
        RefusalKind::Overloaded,
        format!("the mailbox of {actor} {why}"),
    )
}

impl<M> RecipientRef<'_, M> {
    /// Returns the error of an ask whose message no mailbox took.
    #[cold]
    pub(super) fn unsent_error(self, is_full: bool) -> AskError {
        match is_full {
            true => AskError::Refused(overloaded(self.view().info(), "is full")),
            false => self.closed_error(),
        }
    }
}

impl<M> CoreRef<'_, M> {
    /// Sends a message that the mailbox has refused, if another one gives way to it.
    // Not inlined: so the way of a message that is accepted is short.
    #[cold]
    #[inline(never)]
    pub(super) fn tell_refused(self, why: Refused, message: M) -> Result<(), TellError<M>> {
        let mut message = Some(message);
        let sent = match why {
            Refused::Full => self.send_displacing(&mut message),
            Refused::Closed => Err(why),
        };
        match (sent, message) {
            (Err(why), Some(message)) => Err(self.tell_error(why, message)),
            _ => Ok(()),
        }
    }

    /// Sends a message that found no room, if another one gives way to it. A refused message stays
    /// in `message`.
    #[cold]
    pub(super) fn send_displacing(self, message: &mut Option<M>) -> Result<(), Refused> {
        if !self.mailbox.overflows() {
            return Err(Refused::Full);
        }
        let (wake, displaced) = self
            .mailbox
            .send_displacing(message, &MessageSender::NONE)?;
        self.pass_on(wake);
        self.give_displaced(displaced);
        Ok(())
    }

    /// Reserves a permit. Returns the message that gives way to it, if there is no room and one does.
    #[inline]
    pub(super) fn reserve_displacing(self) -> Result<Option<DisplacedMessage<M>>, Refused> {
        match self.mailbox.reserve() {
            Err(Refused::Full) if self.mailbox.overflows() => self.displace(),
            reserved => reserved.map(|()| None),
        }
    }

    #[cold]
    fn displace(self) -> Result<Option<DisplacedMessage<M>>, Refused> {
        // In a simulation, messages on their way have permits, which are not taken from them.
        if self.header.is_traced() {
            apply_all_effects();
        }
        let displaced = self.mailbox.reserve_displacing()?;
        self.trace_displaced(displaced.as_ref(), false);
        Ok(displaced)
    }

    /// Traces that a message has left the mailbox. If it `is_replaced`, the next one that is sent has
    /// its position.
    pub(super) fn trace_displaced(
        self,
        displaced: Option<&DisplacedMessage<M>>,
        is_replaced: bool,
    ) {
        if let Some(&DisplacedMessage { newer, .. }) = displaced {
            self.trace(|| MessageEvent::Displaced { newer, is_replaced });
        }
    }

    /// Gives a displaced message to the actor's function, or drops it.
    // The caller has woken the actor, since either may wait for its end.
    #[cold]
    pub(super) fn give_displaced(self, displaced: Option<DisplacedMessage<M>>) {
        let Some(DisplacedMessage { message, from, .. }) = displaced else {
            return;
        };
        if let Some(from) = &from {
            self.dropped_one(&message, Some(from.id));
        }
        let displacing = self.mailbox.displacing();
        let function = displacing.and_then(|displacing| displacing.on_displaced.as_deref());
        let refusal = || overloaded(self.info(), "gave its room to a newer message");
        let given = attempt(|| {
            loss::refusing(refusal, || match function {
                Some(function) => function(message),
                None => drop(message),
            });
        });
        if let Err(panic) = given
            && function.is_some()
        {
            self.report(panic, FaultyPart::OnDisplaced);
        }
    }
}
