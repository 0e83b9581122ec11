//! The events of an actor and its messages, for the tracer of the user.
//!
//! A message is traced by the tracer of its receiver's runtime, on the thread where the event
//! happens. The sender is the actor that this thread runs, or 0. Nothing here runs for actors of a
//! runtime without a tracer.

use std::any::type_name;
use std::borrow::Cow;
use std::time::Duration;

use super::address::Address;
use super::context::Context;
use super::core::{Core, CoreRef};
use super::family::parent_of;
use super::recipient::RecipientRef;
use crate::contain::attempt;
use crate::error::{Fault, FaultyPart};
use crate::info::short;
use crate::mailbox::{Batch, LabelFn, SOURCE};
use crate::task::{MessageEvent, run};
use crate::tracer::{
    self, EventKind, Level, MessageSender, MessageSource, SentSpan, Subject, current_span,
    forwarded_from, sender_here,
};

impl<M> Core<M> {
    /// Returns the label of a message, if the actor has labels.
    pub(super) fn label(&self, message: &M) -> Option<&'static str> {
        let label = self.mailbox.label()?;
        let label = attempt(|| label(message)).unwrap_or("(its label panicked)");
        (!label.is_empty()).then_some(label)
    }

    /// Returns the name of a message in lines.
    fn message_name(&self, message: &M) -> Cow<'static, str> {
        self.label(message)
            .map_or_else(|| short(type_name::<M>()), Cow::Borrowed)
    }

    /// Returns what events of this actor are about.
    pub(super) fn subject(&self) -> Subject {
        let info = self.info();
        let called = match info.name() {
            Some(_) => Cow::default(),
            None => (self.header.vtable.types)().called(),
        };
        Subject {
            actor: Some(info),
            called,
            state: self.mailbox.state_name(),
        }
    }
}

impl<M> CoreRef<'_, M> {
    /// Traces an event of this actor.
    fn trace_kind(self, kind: EventKind<'_>) {
        if let Some(tracer) = self.tracer() {
            tracer::trace(tracer, || self.subject(), kind);
        }
    }

    /// Returns whether the tracer wants events of messages.
    fn are_messages_wanted(self) -> bool {
        self.tracer()
            .is_some_and(|tracer| tracer::wants(tracer, Level::Object))
    }

    /// Calls `f` with the name of a message, if the tracer wants events of messages.
    fn name_for_tracer(self, message: &M, f: impl FnOnce(&str)) {
        if self.are_messages_wanted() {
            f(&self.message_name(message));
        }
    }

    /// Traces that the actor was created, and keeps the function that names its messages. Notes
    /// their senders from now on, if there is a tracer.
    #[cold]
    pub(super) fn created(self, label: Option<LabelFn<M>>) {
        let by = run::actor_id();
        if let Some(label) = label {
            self.mailbox.set_label(label);
        }
        if self.tracer().is_some() {
            self.mailbox.trace();
        }
        self.trace_kind(EventKind::Created { by });
    }

    /// Traces the end of the actor, with the messages that are dropped later.
    #[cold]
    pub(super) fn ended(
        self,
        fault: Option<&Fault>,
        value: fn() -> &'static str,
        messages: &Batch<M>,
    ) {
        if !self.mailbox.is_traced() {
            return;
        }
        self.dropped(messages, false);
        self.mailbox.end_trace();
        match fault {
            None => self.trace_kind(EventKind::Returned {
                value: &short(value()),
                to: parent_of(self.header.id()),
            }),
            Some(fault) => self.trace_kind(EventKind::Faulted { fault, part: "" }),
        }
        self.trace_kind(EventKind::Destroyed);
        self.handled();
    }

    /// Traces that the actor begins anew.
    #[cold]
    pub(super) fn begins_anew(self, incarnation: u64, fault: Option<&Fault>) {
        if self.mailbox.is_traced() {
            self.trace_kind(EventKind::Restarted { incarnation, fault });
            self.handled();
        }
    }

    /// Traces the fault of a part of the actor.
    pub(super) fn faulted(self, fault: &Fault, part: FaultyPart) {
        let part = match part {
            FaultyPart::Source => "a source",
            FaultyPart::OnUndelivered => "on_undelivered",
            FaultyPart::OnDisplaced => "on_displaced",
        };
        if self.mailbox.is_traced() {
            self.trace_kind(EventKind::Faulted { fault, part });
        }
    }

    /// Returns who sends on this thread, as this receiver sees it.
    pub(super) fn sender(self) -> MessageSender {
        sender_here(self.tracer(), run::actor_id)
    }

    /// Returns the span that is current on this thread, if messages to this actor carry it.
    pub(super) fn current_span(self) -> SentSpan {
        match self.mailbox.is_traced() {
            true => self.tracer().map_or(SentSpan::NONE, current_span),
            false => SentSpan::NONE,
        }
    }

    /// Traces that this thread sends the message, and returns the sender, if the receiver is
    /// traced.
    pub(super) fn sent(self, message: &M) -> Option<MessageSender> {
        if !self.mailbox.is_traced() {
            return None;
        }
        self.name_for_tracer(message, |message| self.trace_sent(message));
        Some(self.sender())
    }

    fn trace_sent(self, message: &str) {
        let to = self.header.id();
        let kind = match forwarded_from() {
            Some(from) => EventKind::Forwarded { message, to, from },
            None => EventKind::Sent { message, to },
        };
        if let Some(tracer) = self.tracer() {
            tracer::trace(tracer, run::subject, kind);
        }
    }

    /// Traces that this thread sends a message of this type, and that the actor has received it,
    /// without its mailbox.
    #[cold]
    pub(super) fn passed_by(self, type_name: &'static str) {
        if self.mailbox.is_traced() && self.are_messages_wanted() {
            let message = &*short(type_name);
            self.trace_sent(message);
            let from = MessageSource::Sender(self.sender().id);
            self.trace_kind(EventKind::Received { message, from });
        }
    }

    /// Traces that the actor receives a message of its mailbox.
    #[inline]
    pub(super) fn received(self, message: &M) {
        if self.header.is_traced() {
            match self.mailbox.was_urgent() {
                true => self.trace_in::<true>(|| MessageEvent::Received),
                false => self.trace(|| MessageEvent::Received),
            }
            if self.mailbox.is_traced() {
                let MessageSender { id, span } = self.mailbox.take_sender();
                let from = match id {
                    SOURCE => MessageSource::Source,
                    sender => MessageSource::Sender(sender),
                };
                self.handles(message, &span);
                self.trace_received(message, from);
            }
        }
    }

    /// Traces that the actor receives a message of one of its sources.
    pub(super) fn received_from(self, message: &M, from: MessageSource, span: SentSpan) {
        if self.header.is_traced() {
            if let Some(info) = self.info_if_simulated(message) {
                self.trace(|| MessageEvent::FromSource(info));
            }
            if self.mailbox.is_traced() {
                self.handles(message, &span);
                self.mailbox
                    .set_last_sender(MessageSender { id: SOURCE, span });
                self.trace_received(message, from);
            }
        }
    }

    /// Begins the span in which a message is handled that was sent within this span, if the tracer
    /// has such spans.
    pub(super) fn handles(self, message: &M, sent: &SentSpan) {
        if let Some(tracer) = self.tracer() {
            tracer::with_spans(tracer, |spans| {
                let (subject, name) = (self.subject(), self.message_name(message));
                spans.handles((self.header.id(), subject.name()), &name, sent.kept());
            });
        }
    }

    /// Ends the span in which the last message is handled, if the tracer has such spans.
    #[cold]
    pub(super) fn handled(self) {
        if let Some(tracer) = self.tracer() {
            tracer::with_spans(tracer, |spans| spans.handled(self.header.id()));
        }
    }

    fn trace_received(self, message: &M, from: MessageSource) {
        self.name_for_tracer(message, |message| {
            self.trace_kind(EventKind::Received { message, from });
        });
    }

    /// Traces that a timer with this message was started.
    pub(super) fn timer(self, message: Option<&M>, after: Duration) {
        if !self.mailbox.is_traced() {
            return;
        }
        let name = message.map_or_else(|| short(type_name::<M>()), |it| self.message_name(it));
        self.trace_kind(EventKind::Timer {
            message: &name,
            after,
            repeats: message.is_none(),
        });
    }

    /// Traces that the actor will not handle these messages; as
    /// [`take_senders`](crate::mailbox::Mailbox::take_senders).
    pub(super) fn dropped(self, messages: &Batch<M>, taken: bool) {
        if !self.mailbox.is_traced() || self.mailbox.is_trace_over() {
            return;
        }
        let mut senders = self.mailbox.take_senders(messages, taken).into_iter();
        messages.for_each(|message| {
            let from = senders.next().map(|from| from.id);
            let from = from.filter(|from| *from != SOURCE);
            self.dropped_one(message, from);
        });
    }

    /// Traces that the actor will not handle this message.
    pub(super) fn dropped_one(self, message: &M, from: Option<u64>) {
        self.name_for_tracer(message, |message| {
            self.trace_kind(EventKind::Dropped { message, from });
        });
    }
}

impl<M> Address<M> {
    /// Sets the state that a trace shows behind the name of this actor, unless a map is in front of
    /// it.
    pub(crate) fn trace_state(&self, name: &'static str) {
        if let RecipientRef::Actor(core) = self.recipient() {
            core.mailbox.trace_state_name(name);
        }
    }
}

impl<M> Context<M> {
    /// Sets the state that a [trace](crate::trace) shows behind the name of this actor, as does its
    /// [status](crate::ActorStatus::state).
    ///
    /// An empty name stands for no state. Does nothing without a [tracer](crate::Builder::tracer).
    ///
    /// ```
    /// use greenroom::{Context, spawn};
    ///
    /// async fn door(mut cx: Context<bool>) {
    ///     while let Some(opens) = cx.recv().await {
    ///         cx.trace_state(if opens { "OPEN" } else { "SHUT" });
    ///     }
    /// }
    ///
    /// greenroom::run(async {
    ///     let door = spawn!(door(_));
    ///     door.tell(true).unwrap();
    ///     door.join().await.unwrap();
    /// });
    /// ```
    pub fn trace_state(&self, name: &'static str) {
        self.core().mailbox.trace_state_name(name);
    }

    /// Does the same for a machine, whose status has its state without a tracer as well, if the runtime
    /// counts.
    pub(crate) fn note_state(&self, name: &'static str) {
        let core = self.core().at();
        if core.header.is_counted() || core.mailbox.is_traced() {
            core.mailbox.set_state_name(name);
        }
    }

    /// Traces that this actor drops the message that it has received last, because it has no use for
    /// it.
    ///
    /// Does nothing without a [tracer](crate::Builder::tracer).
    ///
    /// ```
    /// use greenroom::{Context, spawn};
    ///
    /// async fn even(mut cx: Context<u32>) -> u32 {
    ///     let mut sum = 0;
    ///     while let Some(number) = cx.recv().await {
    ///         if number % 2 == 0 {
    ///             sum += number;
    ///         } else {
    ///             cx.trace_dropped(&number);
    ///         }
    ///     }
    ///     sum
    /// }
    ///
    /// greenroom::run(async {
    ///     let even = spawn!(even(_));
    ///     (1..=4).for_each(|number| even.tell(number).unwrap());
    ///     assert_eq!(even.join().await.unwrap(), 6);
    /// });
    /// ```
    pub fn trace_dropped(&self, message: &M) {
        let core = self.core().at();
        if core.mailbox.is_traced() {
            let from = core.mailbox.last_sender().id;
            core.dropped_one(message, (from != SOURCE).then_some(from));
        }
    }
}
