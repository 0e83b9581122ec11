//! Which message is on its way to whom, and from whom: what a trace tells, and who waits for room.
//!
//! A lane goes beside a mailbox, which knows nothing of it: the same messages in the same order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Simulation;
use super::state::State;
use super::trace::{Message, What};
use crate::runtime::deadlock::{Edge, Who};
use crate::task::{MessageEvent, MessageInfo, TaskInfo};

/// What is on its way to one actor.
pub(super) struct Lane {
    pub(super) to: TaskInfo,
    /// In its mailbox.
    accepted: VecDeque<Sent>,
    /// Waiting for room in it, in order of arrival. Whoever has got it has not always noticed.
    line: BTreeMap<u64, Sent>,
    /// Which of them has this key.
    keys: HashMap<usize, u64>,
}

#[derive(Clone)]
pub(super) struct Sent {
    message: Message,
    from: Who,
    /// If it has waited: the key of its place.
    key: Option<usize>,
}

impl Simulation {
    /// What becomes of a message to this actor.
    pub(crate) fn trace(&self, actor: TaskInfo, event: MessageEvent) {
        self.state.lock().trace_message(actor, event);
    }
}

impl State {
    fn trace_message(&mut self, actor: TaskInfo, event: MessageEvent) {
        let id = actor.id();
        let begins = matches!(
            event,
            MessageEvent::Sent(_)
                | MessageEvent::Arrived
                | MessageEvent::AwaitsRoom(..)
                | MessageEvent::FromSource(_)
        );
        if !begins && !self.lanes.contains_key(&id) {
            // The actor has ended, or the message is from before there was a trace.
            return;
        }
        let label = self.label(actor);
        let (running, number) = (self.running.clone(), self.messages_born + 1);
        let lane = self.lanes.entry(id);
        let lane = lane.or_insert_with(|| Lane::new(label.clone()));
        let to = Who::Task(label);
        let born = |info, key| Sent {
            message: Message { number, info },
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
        let message = Message {
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

impl Lane {
    pub(super) fn new(to: TaskInfo) -> Self {
        Lane {
            to,
            accepted: VecDeque::new(),
            line: BTreeMap::new(),
            keys: HashMap::new(),
        }
    }

    /// If none is accepted but is received, the first that waits was let in; says how many.
    fn let_first_in(&mut self) -> usize {
        match self.line.first_key_value() {
            Some((&first, _)) if self.accepted.is_empty() => self.let_in(first),
            _ => 0,
        }
    }

    /// All up to the one of this number were accepted; says how many.
    fn let_in(&mut self, number: u64) -> usize {
        let before = self.line.len();
        while let Some(first) = self.line.first_entry()
            && *first.key() <= number
        {
            let sent = first.remove();
            if let Some(key) = sent.key {
                self.keys.remove(&key);
            }
            self.accepted.push_back(sent);
        }
        before - self.line.len()
    }

    /// The one with this key waits no more, and was not accepted; says how many that is.
    fn leave(&mut self, key: usize) -> usize {
        let number = self.keys.remove(&key);
        let left = number.and_then(|number| self.line.remove(&number));
        usize::from(left.is_some())
    }

    /// Returns whether it has the message of this number.
    pub(super) fn has(&self, number: u64) -> bool {
        let mut accepted = self.accepted.iter();
        accepted.any(|sent| sent.message.number == number)
    }

    /// How many wait for room.
    pub(super) fn waiting(&self) -> usize {
        self.line.len()
    }
}
