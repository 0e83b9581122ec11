//! Figures over time: of the runtime, and of the one actor that is looked at.

use std::collections::VecDeque;

use super::facts::ActorFacts;
use super::parsed::Figures;

/// The refreshes of which figures are kept.
const KEPT: usize = 120;

/// The rates of the runtime, a second, and its queues, over the last refreshes.
#[derive(Debug, Default)]
pub struct Series {
    /// Messages a second.
    pub messages: VecDeque<u64>,
    /// The turns of each worker a second.
    pub turns: Vec<VecDeque<u64>>,
    /// The tasks in all queues.
    pub queued: VecDeque<u64>,
    /// The actors.
    pub actors: VecDeque<u64>,
    /// Steals and parks of each worker in the last refresh, a second.
    pub calm: Vec<(u64, u64)>,
    /// What was counted since the last refresh.
    since: Option<Since>,
}

#[derive(Debug, Default)]
struct Since {
    messages: u64,
    /// Turns, steals and parks by worker.
    workers: Vec<[u64; 3]>,
    before: Vec<[u64; 3]>,
    messages_before: u64,
    is_known: bool,
    queued: u64,
    actors: u64,
}

impl Series {
    /// Takes what the program has sent. The rates follow when it is known how long it took.
    pub(super) fn put(&mut self, figures: &Figures, is_known: bool) {
        let workers = figures.workers.iter();
        let workers = workers.map(|worker| [worker.turns, worker.steals, worker.parks]);
        let old = self.since.take().unwrap_or_default();
        self.since = Some(Since {
            messages: figures.messages,
            messages_before: old.messages,
            workers: workers.collect(),
            before: old.workers,
            is_known,
            queued: figures.queued,
            actors: figures.actors,
        });
    }

    /// Completes a refresh that took so long.
    pub(super) fn refresh(&mut self, interval_ms: u64) {
        let Some(since) = &self.since else { return };
        push(&mut self.queued, since.queued);
        push(&mut self.actors, since.actors);
        if !since.is_known {
            return;
        }
        let rate = |now: u64, before: u64| a_second(now.saturating_sub(before), interval_ms);
        push(
            &mut self.messages,
            rate(since.messages, since.messages_before),
        );
        self.turns.resize_with(since.workers.len(), VecDeque::new);
        self.calm.resize(since.workers.len(), (0, 0));
        let pairs = since.workers.iter().zip(&since.before);
        for (at, (now, before)) in pairs.enumerate() {
            push(&mut self.turns[at], rate(now[0], before[0]));
            self.calm[at] = (rate(now[1], before[1]), rate(now[2], before[2]));
        }
    }
}

/// Returns how many there were a second.
pub(super) fn a_second(count: u64, interval_ms: u64) -> u64 {
    count
        .saturating_mul(1000)
        .checked_div(interval_ms)
        .unwrap_or(0)
}

fn push(values: &mut VecDeque<u64>, value: u64) {
    if values.len() == KEPT {
        values.pop_front();
    }
    values.push_back(value);
}

/// The figures of one actor since it is looked at.
#[derive(Debug)]
pub struct Followed {
    /// Its number.
    pub id: u64,
    /// The messages in its mailbox.
    pub mailbox: VecDeque<u64>,
    /// The messages that it has handled, by refresh.
    pub messages: VecDeque<u64>,
    last: Option<u64>,
}

impl Followed {
    pub(super) fn new(id: u64) -> Self {
        Followed {
            id,
            mailbox: VecDeque::new(),
            messages: VecDeque::new(),
            last: None,
        }
    }

    /// Notes a refresh; the actor may have ended.
    pub(super) fn note(&mut self, actor: Option<&ActorFacts>) {
        let Some(actor) = actor else {
            self.last = None;
            return;
        };
        push(&mut self.mailbox, actor.mailbox.into());
        if let Some(last) = self.last.replace(actor.messages) {
            push(&mut self.messages, actor.messages.saturating_sub(last));
        }
    }
}
