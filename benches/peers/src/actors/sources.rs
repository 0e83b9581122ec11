//! The case `sources`: what the actor has received from each of its sources.

use std::time::Instant;

use crate::figures::{self, Figure, check, sum_below};
use crate::sizes::{SOURCED, SOURCED_IN_FLIGHT, TICK_EVERY};

/// A message of the actor.
pub enum Item {
    /// From its mailbox.
    Sent(u64),
    /// From its stream.
    Streamed(u64),
    /// The answer of a request.
    Answered(u64),
    /// From its interval.
    Tick,
}

/// The numbers of a source.
#[derive(Default)]
struct Numbers {
    count: u64,
    sum: u64,
}

impl Numbers {
    fn add(&mut self, n: u64) {
        self.count += 1;
        self.sum += n;
    }
}

/// All that the actor has received.
pub struct Received {
    sent: Numbers,
    streamed: Numbers,
    answered: Numbers,
    ticks: u64,
    begin: Instant,
}

impl Received {
    /// Begins, when the actor starts.
    pub fn nothing() -> Self {
        Self {
            sent: Numbers::default(),
            streamed: Numbers::default(),
            answered: Numbers::default(),
            ticks: 0,
            begin: Instant::now(),
        }
    }

    /// Returns the numbers of the requests that the actor sends when it starts.
    pub fn first_requests() -> std::ops::Range<u64> {
        0..SOURCED_IN_FLIGHT
    }

    /// Adds an item. Returns the number of the request to send next, if there is one.
    pub fn add(&mut self, item: Item) -> Option<u64> {
        match item {
            Item::Sent(n) => self.sent.add(n),
            Item::Streamed(n) => self.streamed.add(n),
            Item::Tick => self.ticks += 1,
            Item::Answered(n) => {
                self.answered.add(n);
                let next = self.answered.count + SOURCED_IN_FLIGHT - 1;
                return (next < SOURCED).then_some(next);
            }
        }
        None
    }

    /// Returns whether all has arrived.
    pub fn is_all(&self) -> bool {
        self.sent.count + self.streamed.count + self.answered.count == 3 * SOURCED
    }

    /// Checks what has arrived, and returns the figures.
    pub fn figures(self) -> Vec<Figure> {
        let time = self.begin.elapsed();
        for numbers in [self.sent, self.streamed, self.answered] {
            check("items", numbers.count, SOURCED);
            check("sum", numbers.sum, sum_below(SOURCED));
        }
        let due = time.as_secs_f64() / TICK_EVERY.as_secs_f64();
        let messages = Figure {
            what: figures::MESSAGES,
            value: (3 * SOURCED + self.ticks) as f64 / time.as_secs_f64(),
        };
        let kept = Figure {
            what: figures::TICKS_KEPT,
            value: self.ticks as f64 / due,
        };
        vec![messages, kept]
    }
}
