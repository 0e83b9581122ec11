//! The programs with actors, a file for each peer, and what several of them are made of.

pub mod actix;
pub mod acto;
#[cfg(feature = "greenroom")]
pub mod greenroom;
pub mod kameo;
pub mod ractor;
pub mod smol;
pub mod tokio;
pub mod xtra;

use std::hint::black_box;

use ::tokio::sync::oneshot;

use crate::figures::sum_below;
use crate::sizes::{MEETINGS, NUMBERS, TELLERS};

/// What a collecting actor keeps: it adds up so many numbers, and then says the sum.
pub struct Sum {
    left: u64,
    total: u64,
    done: Option<oneshot::Sender<u64>>,
}

impl Sum {
    /// Of `count` numbers, and where it will be said.
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

/// Whom a call of `fib` answers.
pub enum Caller<A> {
    /// The actor of the call above.
    Actor(A),
    /// Whoever waits for the first one.
    Driver(oneshot::Sender<u64>),
}

/// What a call of `fib` keeps while its two children work.
#[derive(Default)]
pub struct Pending {
    answers: u64,
    sum: u64,
}

impl Pending {
    /// Takes one answer; gives the sum if it was the second one.
    pub fn answer(&mut self, n: u64) -> Option<u64> {
        self.answers += 1;
        self.sum += n;
        (self.answers == 2).then_some(self.sum)
    }
}

/// What a creature of `meetings` is told.
#[derive(Debug, PartialEq)]
pub enum News {
    /// It has met another one.
    Met,
    /// There are no more meetings.
    Over,
}

/// Where the creatures of `meetings` come to; `A` is how one is told the news.
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
    /// Pairs a creature that comes with one that waits for it; says who is to be told what.
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

/// The numbers that each of the actors of `fan_in` tells.
pub fn shares() -> impl Iterator<Item = std::ops::Range<u64>> {
    const EACH: u64 = NUMBERS / TELLERS;
    (0..TELLERS).map(|index| index * EACH..(index + 1) * EACH)
}

/// The sum of what `count` actors say that were told 1 each, and have their index as state.
pub fn adders_sum(count: u64) -> u64 {
    sum_below(count) + count
}

/// Room for `count` addresses, written to beforehand, so that it is resident.
pub fn places<A>(count: u64) -> Vec<Option<A>> {
    // Unseen by the compiler, which would ask the system for zeroes instead of writing them.
    let mut places = black_box(Vec::with_capacity(count as usize));
    places.extend((0..count).map(|_| None));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creatures_meet_in_pairs_as_often_as_they_are_to() {
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
