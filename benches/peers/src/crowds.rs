//! The common parts of the cases with crowds: many threads, workers and members, and skewed asks.

use std::iter;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::figures::{self, Figure, check, nanoseconds, rate, sum_below};
use crate::sizes::{
    MEMBER_ROUNDS, MEMBERS, OF_BURST, SKEWED, SKEWED_ASKS, THREAD_BURSTS, THREADS, WORKERS,
    WORKERS_MANY,
};

/// The numbers of one actor in each of many rounds.
pub struct Share {
    each: u64,
    left: u64,
    total: u64,
    round: Arc<Round>,
}

/// A round, which is over when all actors have their numbers.
struct Round {
    actors: u64,
    left: AtomicU64,
    total: AtomicU64,
    sums: UnboundedSender<u64>,
}
impl Share {
    /// Creates the shares of some actors, of `each` numbers a round, and the receiver of the sum of
    /// each round. The next round may begin then.
    pub fn of_each(actors: usize, each: u64) -> (Vec<Self>, UnboundedReceiver<u64>) {
        let (sums, receiver) = unbounded_channel();
        let round = Arc::new(Round {
            actors: actors as u64,
            left: AtomicU64::new(actors as u64),
            total: AtomicU64::new(0),
            sums,
        });
        let share = |round| Self {
            each,
            left: each,
            total: 0,
            round,
        };
        (iter::repeat_n(round, actors).map(share).collect(), receiver)
    }

    /// Creates the share of a single actor, of `each` numbers a round.
    pub fn of(each: u64) -> (Self, UnboundedReceiver<u64>) {
        let (mut shares, sums) = Self::of_each(1, each);
        (shares.remove(0), sums)
    }

    /// Adds one number.
    pub fn add(&mut self, n: u64) {
        self.total += n;
        self.left -= 1;
        if self.left == 0 {
            self.left = self.each;
            self.round.add(mem::take(&mut self.total));
        }
    }
}

impl Round {
    /// Adds the numbers of an actor; sends the sum if it was the last one.
    fn add(&self, total: u64) {
        self.total.fetch_add(total, Ordering::Relaxed);
        // The last actor sees what all others have added.
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.left.store(self.actors, Ordering::Relaxed);
            let sum = self.total.swap(0, Ordering::Relaxed);
            self.sums.send(sum).expect("the driver waits");
        }
    }
}

/// Measures the figure of the cases with bursts: `spawn` spawns a number of actors, which get a
/// share each. `tell` sends a number to one of them, on a thread that is not a worker.
pub fn bursts<A: Sync>(
    actors: usize,
    spawn: impl FnOnce(Vec<Share>) -> Vec<A>,
    tell: impl Fn(&A, u64) + Sync,
) -> Vec<Figure> {
    let (shares, mut sums) = Share::of_each(actors, THREADS as u64 * OF_BURST / actors as u64);
    let actors = spawn(shares);
    let start = Barrier::new(THREADS + 1);
    let mut elapsed = 0.0;
    thread::scope(|scope| {
        for index in 0..THREADS {
            // The threads begin at different actors.
            let (after, first) = actors.split_at(index * actors.len() / THREADS);
            let (start, tell) = (&start, &tell);
            scope.spawn(move || {
                for _ in 0..THREAD_BURSTS {
                    start.wait();
                    let in_turn = first.iter().chain(after).cycle();
                    (0..OF_BURST).zip(in_turn).for_each(|(n, to)| tell(to, n));
                }
            });
        }
        for _ in 0..THREAD_BURSTS {
            let begin = Instant::now();
            start.wait();
            let sum = sums.blocking_recv().expect("all are told");
            elapsed += begin.elapsed().as_secs_f64();
            check("sum", sum, THREADS as u64 * sum_below(OF_BURST));
        }
    });
    let messages = THREADS as u64 * OF_BURST * THREAD_BURSTS;
    vec![Figure {
        what: figures::MESSAGES,
        value: messages as f64 / elapsed,
    }]
}

/// Measures the figures of `workers_64`: `ring_tokens` measures its own with a number of workers.
pub fn many_workers(ring_tokens: impl Fn(usize) -> Vec<Figure>) -> Vec<Figure> {
    let [two, many] = [WORKERS, WORKERS_MANY].map(|workers| ring_tokens(workers)[0]);
    let beside_two = Figure {
        what: figures::HOPS_BESIDE_TWO,
        value: many.value / two.value,
    };
    vec![many, beside_two]
}

/// Returns the figure of `scatter`, `gather` and `topic`, after all their rounds.
pub fn per_member(begin: Instant) -> Vec<Figure> {
    let count = MEMBERS * MEMBER_ROUNDS;
    vec![nanoseconds(figures::MEMBER, count, begin)]
}

/// Checks the sum of a round, in which each member had a number, counted from 0.
pub fn check_round(sum: u64) {
    check("sum", sum, sum_below(MEMBERS));
}

/// Measures the figure of `asks_skewed`: `spawn` spawns a client, which asks the actors of
/// [`picks`] for the numbers from 0, and returns the sum of their answers.
pub async fn skewed<F: Future<Output = u64>>(spawn: impl Fn(u64) -> F) -> Vec<Figure> {
    let begin = Instant::now();
    let clients: Vec<_> = (0..SKEWED as u64).map(spawn).collect();
    for client in clients {
        check("answers", client.await, sum_below(SKEWED_ASKS));
    }
    vec![rate(figures::ASKS, SKEWED as u64 * SKEWED_ASKS, begin)]
}

/// Returns the places of the actors that a client asks, one after another. Half of all asks go to
/// an eighth of the actors, the others to any of them.
pub fn picks(client: u64) -> impl Iterator<Item = usize> {
    let mut random = fastrand::Rng::with_seed(client);
    let pick = move || {
        let among = if random.bool() { SKEWED / 8 } else { SKEWED };
        random.usize(..among)
    };
    iter::repeat_with(pick).take(SKEWED_ASKS as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_of_a_round_is_sent_after_its_last_number() {
        let (mut shares, mut sums) = Share::of_each(2, 2);
        for round in 1..=2 {
            for share in &mut shares {
                assert!(sums.try_recv().is_err(), "some numbers are left");
                share.add(round);
                share.add(10 * round);
            }
            assert_eq!(sums.try_recv(), Ok(22 * round));
        }
    }

    #[test]
    fn half_of_the_asks_go_to_an_eighth_of_the_actors() {
        let all = (0..SKEWED as u64).flat_map(picks);
        let few = all.filter(|&pick| pick < SKEWED / 8).count() as f64;
        let share = few / (SKEWED as u64 * SKEWED_ASKS) as f64;
        // The other half goes to each eighth alike.
        assert!((share - 0.5625).abs() < 0.01, "{share}");
    }
}
