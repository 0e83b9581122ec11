//! Models of loopers: any tasks, locks and worlds, at any time, and what always holds of them.
//!
//! [`wild`] draws everything and checks rules. [`naive`] predicts the exact order in which tasks
//! run, where that is determined.

mod book;
mod naive;
mod wild;

use std::time::Duration;

/// Draws numbers from a seed.
struct Draws(u64);

impl Draws {
    fn of(seed: u64, part: u64) -> Draws {
        Draws((seed * 1000 + part + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    fn millis(&mut self, limit: usize) -> Duration {
        Duration::from_millis(self.below(limit) as u64)
    }
}
