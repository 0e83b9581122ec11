//! Which message is on its way to whom, and from whom: what a trace tells, and who waits for room.
//!
//! A lane goes beside a mailbox, which knows nothing of it: the same messages in the same order.

use std::collections::VecDeque;

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
    /// Waiting for room in it. Whoever has got it has not always noticed.
    line: VecDeque<Sent>,
}

#[derive(Clone)]
struct Sent {
    message: Message,
    from: Who,
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
        let mut born = |name| {
            self.messages_born += 1;
            let message = Message {
                number: self.messages_born,
                name,
            };
            (
                message,
                Sent {
                    message,
                    from: running.clone(),
                },
            )
        };
        let event = match passage {
            Passage::Sent(name) => {
                // While anybody waits nobody else is let in, so these were before.
                lane.accepted.append(&mut lane.line);
                let (message, sent) = born(name);
                lane.accepted.push_back(sent);
                What::Sends(message, to)
            }
            Passage::AwaitsRoom(name) => {
                let (message, sent) = born(name);
                lane.line.push_back(sent);
                What::AwaitsRoom(message, to)
            }
            Passage::Accepted => {
                // The line is first in, first out, so those before it have come in as well.
                if let Some(at) = lane.position(&running) {
                    lane.accepted.extend(lane.line.drain(..=at));
                }
                return;
            }
            Passage::HasPlace => {
                if let Some(at) = lane.position(&running) {
                    lane.line.remove(at);
                }
                return;
            }
            Passage::GivenUp => {
                if let Some(at) = lane.position(&running) {
                    lane.line.remove(at);
                }
                What::GivesUp(to)
            }
            Passage::Received => {
                let first = lane.accepted.pop_front().or_else(|| lane.line.pop_front());
                match first {
                    Some(Sent { message, from }) => What::Receives(message, from),
                    None => return,
                }
            }
            Passage::FromSource(name) => What::FromSource(name),
        };
        self.add(event);
    }

    /// Who waits for room in whose mailbox.
    pub(super) fn waiting_sends(&self) -> Vec<Edge> {
        let mut waiting: Vec<(u64, Edge)> = Vec::new();
        for lane in self.lanes.values() {
            waiting.extend(lane.line.iter().map(|sent| {
                let (from, to) = (sent.from.clone(), lane.to.clone());
                (sent.message.number, Edge { from, to })
            }));
        }
        // The map has no order that is the same in every run.
        waiting.sort_unstable_by_key(|(number, _)| *number);
        waiting.into_iter().map(|(_, edge)| edge).collect()
    }
}

impl Lane {
    pub(super) fn new(to: TaskInfo) -> Self {
        Lane {
            to,
            accepted: VecDeque::new(),
            line: VecDeque::new(),
        }
    }

    /// The first in the line that is from this sender.
    fn position(&self, from: &Who) -> Option<usize> {
        let mut line = self.line.iter();
        line.position(|sent| sent.from.number() == from.number())
    }
}
