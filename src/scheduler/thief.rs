//! A thief: which workers it visits, and whether its loot was worth the cost.
//!
//! It visits the other workers from a random one on, each of them once. Each is equally likely to be
//! the first.
//!
//! A task that moves to another core takes cache lines along, and the tasks that it wakes follow
//! it. A thief that has run a few short turns and then has nothing left has cost the other workers
//! more than it did for them. After several such loots it holds off for a while, so that tasks that
//! belong together stay on one core.
//!
//! # Invariants
//! - LOOT-1: a thief holds off once for each loot, and for at most [`HOLD_OFF_MIN`] times 2 to the
//!   power of [`DOUBLINGS_MAX`].

use std::cell::Cell;
use std::time::Duration;

use crate::instant::Instant;
use crate::sync::MODEL;

/// Turns of this average length are worth a task's move, which transfers a few cache lines there
/// and back.
const TURN_WORTH: Duration = Duration::from_micros(1);
/// A loot that lasts this long is worth it, however short its turns are: waking a core takes less.
const LASTING: Duration = Duration::from_micros(30);
/// A loot of this many more entries is worth it: a queue that long means a worker with too much to
/// do.
const LITTLE: usize = 100;
/// This many futile loots in a row may be chance.
const CHANCE: u32 = 2;
/// The first wait, which doubles from loot to loot: about the time to go to sleep and wake up
/// again.
const HOLD_OFF_MIN: Duration = Duration::from_micros(50);
/// The number of doublings, up to 400 µs: a task that is queued behind others starts at most about
/// ten of their turns late.
const DOUBLINGS_MAX: u32 = 3;

/// The loot of one worker.
pub(super) struct Loot {
    /// When a small loot was taken, and how many turns the worker had begun by then.
    begun: Cell<Option<(Instant, u64)>>,
    /// The number of futile loots in a row.
    futile: Cell<u32>,
}

impl Loot {
    pub(super) fn new() -> Self {
        Loot {
            begun: Cell::new(None),
            futile: Cell::new(0),
        }
    }

    /// Records a loot: one entry to run next and `more` others, taken after `turns` turns of the
    /// worker.
    pub(super) fn take(&self, more: usize, turns: u64) {
        // No time passes in a model.
        let is_little = more < LITTLE && !MODEL;
        self.begun.set(is_little.then(|| (Instant::now(), turns)));
    }

    /// Returns how long the worker must hold off, now that it has nothing left after `turns` turns
    /// in all.
    pub(super) fn used_up(&self, turns: u64) -> Option<Duration> {
        let (begun, before) = self.begun.take()?;
        self.hold_off(begun.elapsed(), turns.saturating_sub(before))
    }

    /// Returns how long to hold off after a loot that lasted `took` and had `turns` turns.
    fn hold_off(&self, took: Duration, turns: u64) -> Option<Duration> {
        let worth = TURN_WORTH.as_nanos() * u128::from(turns);
        if took.as_nanos() >= worth || took >= LASTING {
            self.futile.set(0);
            return None;
        }
        let futile = (self.futile.get() + 1).min(CHANCE + 1 + DOUBLINGS_MAX);
        self.futile.set(futile);
        let doublings = futile.checked_sub(CHANCE + 1)?;
        Some(HOLD_OFF_MIN * (1 << doublings))
    }
}

/// The order in which a thief visits the other workers.
pub(super) struct Victims {
    random: Cell<u64>,
}

impl Victims {
    pub(super) fn new(seed: u64) -> Self {
        Victims {
            // The generator would stay at 0.
            random: Cell::new(seed | 1),
        }
    }

    /// Returns the workers that the thief `me` visits, of so many workers.
    pub(super) fn of(&self, me: usize, workers: usize) -> impl Iterator<Item = usize> {
        let others = workers - 1;
        let first = self.random() as usize % others.max(1);
        (0..others).map(move |at| (me + 1 + (first + at) % others) % workers)
    }

    /// Returns the next number of a xorshift generator: any spread will do.
    fn random(&self) -> u32 {
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        (random >> 32) as u32
    }
}

#[cfg(all(test, not(greenroom_loom)))]
mod tests {
    use super::*;

    const FUTILE: (Duration, u64) = (Duration::from_micros(5), 10);
    const WORTH: (Duration, u64) = (Duration::from_micros(50), 10);

    /// Returns how many µs a thief holds off after each of these loots.
    fn waits(loots: &[(Duration, u64)]) -> Vec<Option<u64>> {
        let loot = Loot::new();
        let waits = loots
            .iter()
            .map(|&(took, turns)| loot.hold_off(took, turns));
        waits.map(|wait| Some(wait?.as_micros() as u64)).collect()
    }

    #[test]
    fn third_futile_loot_in_a_row_starts_a_wait_that_doubles_up_to_400_us() {
        let expected = [
            None,
            None,
            Some(50),
            Some(100),
            Some(200),
            Some(400),
            Some(400),
        ];
        assert_eq!(waits(&[FUTILE; 7]), expected);
        assert_eq!(waits(&[FUTILE; 1000]).last(), Some(&Some(400)));
    }

    #[test]
    fn worthwhile_loot_resets_the_futile_count() {
        let loots = [FUTILE, FUTILE, WORTH, FUTILE, FUTILE, FUTILE];
        assert_eq!(waits(&loots), [None, None, None, None, None, Some(50)]);
    }

    #[test]
    fn loot_of_many_short_turns_that_lasts_is_worthwhile() {
        let lasting = (LASTING, 1000);
        assert_eq!(waits(&[lasting; 10]), [None; 10]);
    }

    #[test]
    fn large_loot_never_makes_the_thief_hold_off() {
        let loot = Loot::new();
        for turns in 0..10 {
            loot.take(LITTLE, turns);
            assert_eq!(loot.used_up(turns + 1), None);
        }
    }

    #[test]
    fn thief_without_loot_does_not_hold_off() {
        assert_eq!(Loot::new().used_up(5), None);
    }

    #[test]
    fn each_other_worker_is_visited_once_and_equally_often_the_first() {
        for workers in 1..=8 {
            for me in 0..workers {
                let victims = Victims::new(7);
                let mut firsts = vec![0; workers];
                let rounds = 1000 * (workers - 1);
                for _ in 0..rounds {
                    let order: Vec<_> = victims.of(me, workers).collect();
                    firsts[order[0]] += 1;
                    let start = order[0];
                    let in_turn = (0..workers).map(|at| (start + at) % workers);
                    assert!(in_turn.filter(|it| *it != me).eq(order));
                }
                // The seed is given, so the counts are the same in each run.
                let others = (0..workers).filter(|it| *it != me);
                assert!(
                    others.clone().all(|it| (900..=1100).contains(&firsts[it])),
                    "by {me} of {workers}: {firsts:?}"
                );
                assert_eq!(firsts[me], 0);
                assert_eq!(victims.of(me, workers).count(), others.count());
            }
        }
    }

    #[test]
    fn thieves_of_different_seeds_choose_independently() {
        let mut firsts = [0; 3];
        for seed in 0..3000 {
            let victims = Victims::new(fastrand::Rng::with_seed(seed).u64(..));
            let first = victims.of(3, 4).next();
            firsts[first.unwrap()] += 1;
        }
        assert!(
            firsts.iter().all(|it| (900..=1100).contains(it)),
            "{firsts:?}"
        );
    }
}
