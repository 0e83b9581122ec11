//! Which message is on its way to whom, and from whom: what a trace tells, and who waits for room.
//!
//! A lane goes beside a mailbox, which knows nothing of it: the same messages in the same order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Simulation;
use super::state::State;
use super::trace::{Message, What};
use crate::runtime::asks::{Edge, Who};
use crate::task::{Passage, TaskInfo};

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
struct Sent {
    message: Message,
    from: Who,
    /// If it has waited: the key of its place.
    key: Option<usize>,
}

impl Simulation {
    /// What becomes of a message to this actor.
    pub(in crate::runtime) fn trace(&self, actor: TaskInfo, passage: Passage) {
        self.state.lock().trace_message(actor, passage);
    }
}

impl State {
    fn trace_message(&mut self, actor: TaskInfo, passage: Passage) {
        let id = actor.id();
        let label = self.label(actor);
        let running = self.running.clone();
        let lane = self
            .lanes
            .entry(id)
            .or_insert_with(|| Lane::new(label.clone()));
        let to = Who::Task(label);
        let mut born = |name, key| {
            self.messages_born += 1;
            let message = Message {
                number: self.messages_born,
                name,
            };
            let from = running.clone();
            Sent { message, from, key }
        };
        let event = match passage {
            Passage::Sent(name) => {
                // While anybody waits nobody else is let in, so these were before.
                lane.let_in(u64::MAX);
                let sent = born(name, None);
                let message = sent.message;
                lane.accepted.push_back(sent);
                What::Sends(message, to)
            }
            Passage::AwaitsRoom(name, key) => {
                let sent = born(name, Some(key));
                let message = sent.message;
                lane.keys.insert(key, message.number);
                lane.line.insert(message.number, sent);
                What::AwaitsRoom(message, to)
            }
            Passage::Accepted(key) => {
                // The line is first in, first out, so those before it have come in as well.
                if let Some(&number) = lane.keys.get(&key) {
                    lane.let_in(number);
                }
                return;
            }
            Passage::HasPlace(key) => {
                lane.leave(key);
                return;
            }
            Passage::GivenUp(key) => {
                lane.leave(key);
                What::GivesUp(to)
            }
            Passage::Received => {
                if lane.accepted.is_empty() {
                    let first = lane.line.first_key_value().map(|(&number, _)| number);
                    first.inspect(|&first| lane.let_in(first));
                }
                match lane.accepted.pop_front() {
                    Some(Sent { message, from, .. }) => What::Receives(message, from),
                    None => return,
                }
            }
            Passage::FromSource(name) => What::FromSource(name),
        };
        self.add(event);
    }

    /// Who waits for room in whose mailbox.
    pub(super) fn waiting_sends(&self) -> Vec<Edge> {
        let mut waiting: BTreeMap<u64, Edge> = BTreeMap::new();
        for lane in self.lanes.values() {
            waiting.extend(lane.line.iter().map(|(&number, sent)| {
                let (from, to) = (sent.from.clone(), lane.to.clone());
                (number, Edge { from, to })
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

    /// All up to the one of this number were accepted.
    fn let_in(&mut self, number: u64) {
        while let Some(first) = self.line.first_entry()
            && *first.key() <= number
        {
            let sent = first.remove();
            if let Some(key) = sent.key {
                self.keys.remove(&key);
            }
            self.accepted.push_back(sent);
        }
    }

    /// The one with this key waits no more, and was not accepted.
    fn leave(&mut self, key: usize) {
        if let Some(number) = self.keys.remove(&key) {
            self.line.remove(&number);
        }
    }
}
