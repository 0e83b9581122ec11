//! The order in which a thief visits the other workers: from a random one on, each of them once.
//!
//! Each of the others is equally likely to be the first.

use std::cell::Cell;

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
    use super::Victims;

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
