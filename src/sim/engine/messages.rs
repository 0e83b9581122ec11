//! Tracks each message from its sender to its receiver, for the trace and for senders that wait.

use std::collections::BTreeMap;

use super::mirror::{MailboxMirror, SentMessage, urgent_mirror};
use super::simulation::Simulation;
use super::state::SimState;
use super::trace::{TracedMessage, What};
use crate::runtime::deadlock::{Edge, WaitsFor, Who};
use crate::task::{MessageEvent, MessageInfo, TaskInfo};

impl Simulation {
    /// Traces what happens to a message to this actor.
    pub(crate) fn trace(&self, actor: TaskInfo, event: MessageEvent) {
        self.state.lock().trace_message(actor, event);
    }
}

/// Returns whether this event is the first one of a message.
fn begins(event: &MessageEvent) -> bool {
    match event {
        MessageEvent::Urgent(event) => begins(event),
        event => matches!(
            event,
            MessageEvent::Sent(_)
                | MessageEvent::Arrived
                | MessageEvent::AwaitsRoom(..)
                | MessageEvent::AwaitsPermit(..)
                | MessageEvent::FromSource(_)
        ),
    }
}

impl SimState {
    fn trace_message(&mut self, actor: TaskInfo, event: MessageEvent) {
        let (id, event) = match event {
            MessageEvent::Urgent(event) => (urgent_mirror(actor.id()), *event),
            event => (actor.id(), event),
        };
        if !begins(&event) && !self.mirrors.contains_key(&id) {
            // The actor has ended, or the message was sent before there was a trace.
            return;
        }
        let label = self.label(actor);
        let (running, number) = (self.running.clone(), self.messages_born + 1);
        let mirror = self
            .mirrors
            .entry(id)
            .or_insert_with(|| MailboxMirror::new(label.clone()));
        let to = Who::Task(label);
        let born = |info, key| SentMessage {
            message: TracedMessage { number, info },
            from: running,
            key,
        };
        let event = match event {
            MessageEvent::Sent(info) => {
                self.sends_waiting -= mirror.let_all_in();
                let sent = born(info, None);
                let message = sent.message.clone();
                mirror.accept(sent);
                What::Sends(message, to)
            }
            MessageEvent::Arrived => {
                let Some(sent) = self.arriving.take() else {
                    return;
                };
                let message = sent.message.clone();
                mirror.accept(sent);
                What::Arrives(message, to)
            }
            MessageEvent::AwaitsRoom(info, key) => {
                self.sends_waiting += 1;
                What::AwaitsRoom(mirror.wait(born(info, Some(key)), false), to)
            }
            MessageEvent::AwaitsPermit(info, key) => {
                self.sends_waiting += 1;
                What::AwaitsRoom(mirror.wait(born(info, Some(key)), true), to)
            }
            MessageEvent::FromSource(info) => What::FromSource(info),
            event => {
                let (waited, what) = mirror.follow(event, to);
                self.sends_waiting -= waited;
                let Some(what) = what else { return };
                what
            }
        };
        if let What::Sends(..) | What::AwaitsRoom(..) = event {
            self.messages_born = number;
        }
        self.add(event);
    }

    /// Traces a message to this actor, which will arrive in its mailbox later.
    pub(super) fn sent(&mut self, actor: TaskInfo, info: MessageInfo) -> SentMessage {
        self.messages_born += 1;
        let message = TracedMessage {
            number: self.messages_born,
            info,
        };
        let to = Who::Task(self.label(actor));
        self.add(What::Sends(message.clone(), to));
        SentMessage {
            message,
            from: self.running.clone(),
            key: None,
        }
    }

    /// Returns which task waits for room in which mailbox.
    pub(super) fn waiting_sends(&self) -> Vec<Edge> {
        let mut waiting: BTreeMap<u64, Edge> = BTreeMap::new();
        if self.sends_waiting == 0 {
            return Vec::new();
        }
        for mirror in self.mirrors.values() {
            waiting.extend(mirror.all_waiting().map(|(&number, sent)| {
                let (from, to) = (sent.from.clone(), mirror.to.clone());
                let for_what = WaitsFor::Room;
                let ask = Edge::of_ask(from, to);
                (number, Edge { for_what, ..ask })
            }));
        }
        // In the order of their numbers, because the order of the hash map differs between runs.
        waiting.into_values().collect()
    }
}
