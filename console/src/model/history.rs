//! Figures over time: of the runtime, and of the one actor that is looked at.

use std::collections::VecDeque;

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
    pub steals_and_parks: Vec<(u64, u64)>,
    /// The figures of the refresh before.
    before: Option<Figures>,
}

impl Series {
    /// Adds a refresh that took so long.
    pub(super) fn refresh(&mut self, figures: &Figures, interval_ms: u64) {
        push(&mut self.queued, figures.queued);
        push(&mut self.actors, figures.actors);
        let Some(before) = self.before.replace(figures.clone()) else {
            return;
        };
        let rate = |now: u64, before: u64| a_second(now.saturating_sub(before), interval_ms);
        push(&mut self.messages, rate(figures.messages, before.messages));
        self.turns.resize_with(figures.workers.len(), VecDeque::new);
        self.steals_and_parks.resize(figures.workers.len(), (0, 0));
        let workers = figures.workers.iter().zip(&before.workers);
        for (at, (now, before)) in workers.enumerate() {
            push(&mut self.turns[at], rate(now.turns, before.turns));
            self.steals_and_parks[at] = (
                rate(now.steals, before.steals),
                rate(now.parks, before.parks),
            );
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
}

impl Followed {
    pub(super) fn new(id: u64) -> Self {
        Followed {
            id,
            mailbox: VecDeque::new(),
            messages: VecDeque::new(),
        }
    }

    /// Adds a refresh.
    pub(super) fn put(&mut self, mailbox: u64, messages: u64) {
        push(&mut self.mailbox, mailbox);
        push(&mut self.messages, messages);
    }
}
