//! Which message is on its way to whom, and from whom: what a trace tells, and who waits for room.

use std::collections::BTreeMap;

use super::lane::{Lane, Sent};
use super::simulation::Simulation;
use super::state::State;
use super::trace::{TracedMessage, What};
use crate::runtime::deadlock::{Edge, Who};
use crate::task::{MessageEvent, MessageInfo, TaskInfo};

impl Simulation {
    /// What becomes of a message to this actor.
    pub(crate) fn trace(&self, actor: TaskInfo, event: MessageEvent) {
        self.state.lock().trace_message(actor, event);
    }
}

/// Returns whether a message becomes known by this event.
fn begins(event: &MessageEvent) -> bool {
    matches!(
        event,
        MessageEvent::Sent(_)
            | MessageEvent::Arrived
            | MessageEvent::AwaitsRoom(..)
            | MessageEvent::FromSource(_)
    )
}

impl State {
    fn trace_message(&mut self, actor: TaskInfo, event: MessageEvent) {
        let id = actor.id();
        if !begins(&event) && !self.lanes.contains_key(&id) {
            // The actor has ended, or the message is from before there was a trace.
            return;
        }
        let label = self.label(actor);
        let (running, number) = (self.running.clone(), self.messages_born + 1);
        let lane = self.lanes.entry(id);
        let lane = lane.or_insert_with(|| Lane::new(label.clone()));
        let to = Who::Task(label);
        let born = |info, key| Sent {
            message: TracedMessage { number, info },
            from: running,
            key,
        };
        let event = match event {
            MessageEvent::Sent(info) => {
                // While anybody waits nobody else is let in, so these were before.
                self.sends_waiting -= lane.let_in(u64::MAX);
                let sent = born(info, None);
                let message = sent.message.clone();
                lane.accepted.push_back(sent);
                What::Sends(message, to)
            }
            MessageEvent::Arrived => {
                let Some(sent) = self.arriving.take() else {
                    return;
                };
                let message = sent.message.clone();
                lane.accepted.push_back(sent);
                What::Arrives(message, to)
            }
            MessageEvent::AwaitsRoom(info, key) => {
                let sent = born(info, Some(key));
                let message = sent.message.clone();
                lane.keys.insert(key, message.number);
                lane.line.insert(message.number, sent);
                self.sends_waiting += 1;
                What::AwaitsRoom(message, to)
            }
            MessageEvent::Accepted(key) => {
                // The line is first in, first out, so those before it have come in as well.
                if let Some(&number) = lane.keys.get(&key) {
                    self.sends_waiting -= lane.let_in(number);
                }
                return;
            }
            MessageEvent::HasPlace(key) => {
                self.sends_waiting -= lane.leave(key);
                return;
            }
            MessageEvent::GivenUp(key) => {
                self.sends_waiting -= lane.leave(key);
                What::GivesUp(to)
            }
            MessageEvent::Received => {
                self.sends_waiting -= lane.let_first_in();
                match lane.accepted.pop_front() {
                    Some(Sent { message, from, .. }) => What::Receives(message, from),
                    None => return,
                }
            }
            MessageEvent::FromSource(name) => What::FromSource(name),
        };
        if let What::Sends(..) | What::AwaitsRoom(..) = event {
            self.messages_born = number;
        }
        self.add(event);
    }

    /// A message to this actor is sent, which is to come into its mailbox later.
    pub(super) fn sent(&mut self, actor: TaskInfo, info: MessageInfo) -> Sent {
        self.messages_born += 1;
        let message = TracedMessage {
            number: self.messages_born,
            info,
        };
        let to = Who::Task(self.label(actor));
        self.add(What::Sends(message.clone(), to));
        Sent {
            message,
            from: self.running.clone(),
            key: None,
        }
    }

    /// Who waits for room in whose mailbox.
    pub(super) fn waiting_sends(&self) -> Vec<Edge> {
        let mut waiting: BTreeMap<u64, Edge> = BTreeMap::new();
        if self.sends_waiting == 0 {
            return Vec::new();
        }
        for lane in self.lanes.values() {
            waiting.extend(lane.line.iter().map(|(&number, sent)| {
                let (from, to) = (sent.from.clone(), lane.to.clone());
                let question = None;
                (number, Edge { from, to, question })
            }));
        }
        // In the order of their numbers: that of the map differs from run to run.
        waiting.into_values().collect()
    }
}
