//! The programs with actors, one file for each peer, and their common parts.

pub mod actix;
pub mod acto;
#[cfg(feature = "greenroom")]
pub mod greenroom;
pub mod kameo;
pub mod ractor;
pub mod smol;
pub mod sources;
pub mod timeouts;
pub mod tokio;
pub mod xtra;

use std::hint::black_box;
use std::panic;
use std::time::Instant;

use ::tokio::sync::oneshot;

use crate::figures::{Figure, REQUEST, REQUEST_ALONE, check, nanoseconds, sum_below};
use crate::sizes::{IN_FLIGHT, MEETINGS, NUMBERS, TELLERS, WAVES, WORKERS};

/// The state of a collecting actor: it adds up a number of numbers, and then sends the sum.
pub struct Sum {
    left: u64,
    total: u64,
    done: Option<oneshot::Sender<u64>>,
}

impl Sum {
    /// Creates the state for `count` numbers, and the receiver of the sum.
    pub fn of(count: u64) -> (Self, oneshot::Receiver<u64>) {
        let (done, sum) = oneshot::channel();
        let empty = Self {
            left: count,
            total: 0,
            done: Some(done),
        };
        (empty, sum)
    }

    /// Adds one number.
    pub fn add(&mut self, n: u64) {
        self.total += n;
        self.left -= 1;
        if self.left == 0 {
            let done = self.done.take().expect("there is one last number");
            done.send(self.total).expect("the driver waits");
        }
    }
}

/// Measures the figures of `answers`: `run` measures one of them with a number of workers.
pub fn with_many_and_one(run: impl Fn(usize, &'static str) -> Figure) -> Vec<Figure> {
    vec![run(WORKERS, REQUEST), run(1, REQUEST_ALONE)]
}

/// Runs the driver of `answers`: `ask` tells the asking actor to send a wave of requests.
pub async fn waves<F: Future>(what: &'static str, ask: impl Fn(Sum) -> F) -> Figure {
    let begin = Instant::now();
    for _ in 0..WAVES {
        let (sum, answers) = Sum::of(IN_FLIGHT);
        ask(sum).await;
        let total = answers.await.expect("all are answered");
        check("answers", total, sum_below(IN_FLIGHT));
    }
    nanoseconds(what, WAVES * IN_FLIGHT, begin)
}

/// The caller of a call of `fib`.
pub enum Caller<A> {
    /// The actor of the parent call.
    Actor(A),
    /// The driver, which waits for the first call.
    Driver(oneshot::Sender<u64>),
}

/// The state of a call of `fib` while its two children work.
#[derive(Default)]
pub struct Pending {
    answers: u64,
    sum: u64,
}

impl Pending {
    /// Adds one result; returns the sum if it was the second one.
    pub fn answer(&mut self, n: u64) -> Option<u64> {
        self.answers += 1;
        self.sum += n;
        (self.answers == 2).then_some(self.sum)
    }
}

/// A message to a creature of `meetings`.
#[derive(Debug, PartialEq)]
pub enum News {
    /// It has met another creature.
    Met,
    /// No meetings are left.
    Over,
}

/// The place to which the creatures of `meetings` come; `A` is the address of a creature.
pub struct Place<A> {
    left: u64,
    waiting: Option<A>,
}

impl<A> Default for Place<A> {
    fn default() -> Self {
        Self {
            left: MEETINGS,
            waiting: None,
        }
    }
}

impl<A> Place<A> {
    /// Pairs a creature with one that waits; returns the messages to send.
    pub fn come(&mut self, creature: A) -> impl Iterator<Item = (A, News)> {
        let told = if self.left == 0 {
            [Some((creature, News::Over)), None]
        } else if let Some(first) = self.waiting.take() {
            self.left -= 1;
            [Some((first, News::Met)), Some((creature, News::Met))]
        } else {
            self.waiting = Some(creature);
            [None, None]
        };
        told.into_iter().flatten()
    }
}

/// Returns the numbers that each actor of `fan_in` sends.
pub fn shares() -> impl Iterator<Item = std::ops::Range<u64>> {
    const EACH: u64 = NUMBERS / TELLERS;
    (0..TELLERS).map(|index| index * EACH..(index + 1) * EACH)
}

/// Returns the sum of the results of `count` adders that receive 1 and have their index as state.
pub fn adders_sum(count: u64) -> u64 {
    sum_below(count) + count
}

/// The payload with which the actor of `restarts` panics.
pub const INTENDED: &str = "the actor is to be restarted";

/// Lets the panic hook print nothing for [`INTENDED`].
pub fn silence_intended() {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload_as_str() != Some(INTENDED) {
            loud(info);
        }
    }));
}

/// Creates space for `count` addresses and writes to it, so that it is resident.
pub fn places<A>(count: u64) -> Vec<Option<A>> {
    // `black_box`, because the compiler would request zeroed memory instead of writing to it.
    let mut places = black_box(Vec::with_capacity(count as usize));
    places.extend((0..count).map(|_| None));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creatures_meet_in_pairs_until_no_meetings_are_left() {
        let mut place = Place {
            left: 2,
            waiting: None,
        };
        let mut told = Vec::new();
        for creature in 0..7 {
            told.extend(place.come(creature));
        }
        let met = |creature| (creature, News::Met);
        let over = |creature| (creature, News::Over);
        let all = [met(0), met(1), met(2), met(3), over(4), over(5), over(6)];
        assert_eq!(told, all);
    }
}
