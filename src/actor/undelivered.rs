//! Messages that an actor has accepted and will not handle.
//!
//! They are counted, then dropped or kept for the actor's `on_undelivered`. A reply in a message
//! that is dropped tells its asker how the actor ended.

use super::core::{Core, CoreRef};
use crate::contain::Panic;
use crate::error::{AskCause, AskDetail, End, FaultyPart};
use crate::info::TaskInfo;
use crate::mailbox::{Batch, Termination};
use crate::runtime::context;
use crate::task::{loss, run};
use crate::tracer::MessageSender;

/// Returns a detail about this actor. In a simulation its text has the number of the actor there.
#[cold]
pub(super) fn detail_about(actor: TaskInfo, why: AskCause) -> AskDetail {
    let label = simulated_label(&actor);
    AskDetail::new(Some(actor), why).shown_as(label)
}

/// Returns the actor with its number in the simulation of this thread, if there is one.
#[cold]
pub(super) fn simulated_label(actor: &TaskInfo) -> Option<TaskInfo> {
    context::simulated(|engine, _| engine.label_of(actor)).flatten()
}

impl<M> Core<M> {
    /// Returns the detail for an ask that this end of the actor leaves without an answer. An actor
    /// that was stopped at once and returns has left it for that.
    pub(super) fn detail(&self, end: End) -> AskDetail {
        let text = || (self.mailbox.panic()).map_or_else(String::new, |text| text.to_string());
        let cause = match end {
            End::Returned if self.is_stopped_now() => AskCause::StoppedNow,
            end => end.cause(text),
        };
        detail_about(self.info(), cause)
    }

    /// Completes the replies that were lost by a panic, which was caught in the actor's turn.
    #[cold]
    pub(super) fn complete_caught(&self, panic: &Panic) {
        loss::complete_caught_for(|| self.caught_detail(panic));
    }

    /// Returns the detail for an ask whose reply was lost by a panic, which was caught.
    #[cold]
    pub(super) fn caught_detail(&self, panic: &Panic) -> AskDetail {
        let text = panic.text().unwrap_or_default().to_owned();
        detail_about(self.info(), AskCause::Panicked(text)).of_caught()
    }

    /// Returns the detail for an ask that the closed mailbox refuses.
    pub(super) fn closed_detail(&self) -> AskDetail {
        let flags = self.mailbox.state.peek();
        match flags.known_end().or(flags.termination().map(End::from)) {
            Some(end) => self.detail(end),
            None if self.is_stopped_now() => self.detail(End::Returned),
            None => detail_about(self.info(), AskCause::Stopped),
        }
    }
}

impl From<Termination> for End {
    fn from(termination: Termination) -> Self {
        match termination {
            Termination::Killed => End::Killed,
            Termination::Cancelled => End::Cancelled,
        }
    }
}

impl<M> CoreRef<'_, M> {
    /// Loses messages because of this end of the actor, or because it ends this way soon.
    #[inline]
    pub(super) fn lose(self, end: End, messages: Batch<M>) {
        if !messages.is_empty() {
            self.lose_some(end, messages, false);
        }
    }

    /// Loses messages that the context has taken out of the mailbox.
    #[inline]
    pub(super) fn lose_taken(self, end: End, messages: Batch<M>) {
        if !messages.is_empty() {
            self.lose_some(end, messages, true);
        }
    }

    #[cold]
    #[inline(never)]
    fn lose_some(self, end: End, messages: Batch<M>, taken: bool) {
        self.count_undelivered(messages.len());
        self.dropped(&messages, taken);
        let lose = || match taken {
            true => self.mailbox.lose_taken(messages),
            false => self.mailbox.lose(messages),
        };
        // While the actor unwinds, `end` is not how it ends.
        if std::thread::panicking() && run::innermost_turn() == Some(self.as_run()) {
            return lose();
        }
        loss::during(|| self.detail(end), lose);
    }

    /// Loses a message whose permit was given before the mailbox was drained.
    #[cold]
    pub(super) fn lose_late<const URGENT: bool>(self, message: M, from: Option<MessageSender>) {
        self.count_undelivered(1);
        if let Some(from) = &from {
            self.dropped_one(&message, Some(from.id));
        }
        let report = |panic| self.report(panic, FaultyPart::OnUndelivered);
        let lose = || self.mailbox.lose_late::<URGENT>(message, report);
        self.pass_on(match self.mailbox.keeps_undelivered() {
            // What the function does with the message is not because of the end.
            true => lose(),
            false => loss::during(|| self.closed_detail(), lose),
        });
    }

    /// Gives up a permit of one of the queues.
    pub(super) fn give_up_permit<const URGENT: bool>(self) {
        context::apply_effects();
        self.pass_on(self.mailbox.give_up_permit::<URGENT>());
        self.pass_undelivered();
    }

    /// Passes the undelivered messages to the actor's function, if it has one and has ended.
    pub(super) fn pass_undelivered(self) {
        if self.mailbox.keeps_undelivered() {
            self.mailbox
                .pass_undelivered(|panic| self.report(panic, FaultyPart::OnUndelivered));
        }
    }

    /// Passes the undelivered messages to the actor's function, as a step of the actor's end.
    /// `rest` are the last of them.
    #[cold]
    #[inline(never)]
    pub(super) fn finish_undelivered(self, end: End, rest: Batch<M>) {
        self.lose(end, rest);
        self.mailbox.finish_handling();
        self.pass_undelivered();
    }
}
